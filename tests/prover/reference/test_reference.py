"""The oracle itself: against py_ecc, against definitions, and as a backend that makes the same proof as the CPU."""

from __future__ import annotations

import random

import numpy as np
import pytest
from py_ecc import optimized_bls12_381 as ecc

from prover import setup, wire
from prover.arena import Arena
from prover.backends import Backend
from prover.backends.cpu.backend import CpuBackend
from prover.builtin import BuiltinWorkload
from prover.keys import HBasis, Proof, ProvingKey
from prover.params import ROOT_BELLMAN, ROOT_SNARKJS, R, root_of_unity
from prover.prove import Blinding, Instance, prove_batch
from prover.r1cs.matrices import R1cs
from prover.reference import pairing
from prover.reference.backend import ReferenceBackend
from prover.reference.groups import G1, G2, Group
from prover.reference.scalars import dft, evaluate, from_array, h_scalars, intt, ntt, to_array
from prover.run import Run, silent
from prover.wire import Owner
from prover.workload import public_inputs


@pytest.mark.parametrize(("group", "generator"), [(G1, ecc.G1), (G2, ecc.G2)])
def test_multiples_agree_with_py_ecc(group: Group, generator: tuple) -> None:
    for k in (1, 2, 3, R - 1, random.Random(1).randrange(R)):
        x, y = ecc.normalize(ecc.multiply(generator, k))
        coordinates = (int(x), int(y)) if group is G1 else (tuple(map(int, x.coeffs)), tuple(map(int, y.coeffs)))
        assert group.mul(group.generator, k) == coordinates
    assert group.mul(group.generator, 0) is None and group.is_member(group.generator)
    assert not group.is_member((group.generator[0], group.generator[0]))


@pytest.mark.parametrize("group", [G1, G2])
def test_points_survive_their_array(group: Group) -> None:
    points = [group.generator, None, group.mul(group.generator, 5), group.neg(group.generator)]
    array = group.to_array(points)
    assert group.from_array(array) == points and not array[1].any()
    assert group.add(points[0], points[3]) is None and group.msm(points, [2, 9, 3, 17]) is None
    assert group.msm(points, [2, 9, 3, 16]) == points[0]


@pytest.mark.parametrize("root", [ROOT_SNARKJS, ROOT_BELLMAN])
def test_transform_by_halving_is_the_definition(root: int) -> None:
    rng = random.Random(2)
    coefficients = [rng.randrange(R) for _ in range(16)]
    values = ntt(coefficients, root_of_unity(4, root))
    assert values == dft(coefficients, root)
    assert intt(values, root_of_unity(4, root)) == coefficients
    assert from_array(to_array(values)) == values


def test_quotient_times_vanishing_polynomial_is_the_difference() -> None:
    """At a point outside every domain: (a b - c)(x) = h(x) (x^n - 1) when c agrees with a b on the domain."""
    rng, n, x = random.Random(3), 16, 123456789
    omega = root_of_unity(4, ROOT_BELLMAN)
    a, b = ([rng.randrange(R) for _ in range(n)] for _ in range(2))
    c = [u * v % R for u, v in zip(a, b, strict=True)]
    h = h_scalars(a, b, c, HBasis.MONOMIAL)
    at_x = [evaluate(intt(column, omega), x) for column in (a, b, c)]
    assert h[-1] == 0
    assert evaluate(h, x) * (pow(x, n, R) - 1) % R == (at_x[0] * at_x[1] - at_x[2]) % R
    c[3] += 1
    assert h_scalars(a, b, c, HBasis.MONOMIAL)[-1] != 0, "a broken row leaves a remainder"


class _FixedKey:
    """One key for every circuit, from waste that the test knows."""

    def __init__(self) -> None:
        self.key: ProvingKey | None = None

    def key_for(self, r1cs: R1cs, run: Run) -> ProvingKey:
        self.key = self.key or setup.test_setup(r1cs, run, waste=setup.ToxicWaste(11, 12, 13, 1, 15))
        return self.key


def _prove(workload: BuiltinWorkload, backend: Backend, key: ProvingKey) -> tuple[list[Proof], list[list[int]]]:
    arena = Arena(lambda _event: None)
    scope = arena.scope("test", wire.Policy.SYNC_4K)
    instances, publics = [], []
    for i in range(workload.num_circuits):
        assignment = scope.array("assignment", Owner.ASSIGNMENT, (workload.num_wires, 4))
        a, b, c = (scope.array(name, Owner.ABC, (workload.domain_size, 4)) for name in "abc")
        workload.witness(i, assignment, silent())
        workload.eval_abc(i, assignment, a, b, c, silent())
        publics.append(list(public_inputs(workload, assignment)))
        instances.append(Instance(assignment, a, b, c))
    del assignment, a, b, c
    resident = backend.load_key(key, silent())
    blinding = [Blinding(1000 + i, 2000 + i) for i in range(workload.num_circuits)]
    proofs, _times = prove_batch(resident, instances, backend, scope, silent(), blinding)
    arena.close()
    return proofs, publics


def test_reference_and_cpu_make_the_same_proof_and_py_ecc_accepts_it() -> None:
    keys = _FixedKey()
    workload = BuiltinWorkload("cubic", 2, keys, seed=b"seed of this test, 32 bytes long")
    key = workload.proving_key(silent())
    cpu = CpuBackend(2)
    ours, publics = _prove(workload, cpu, key)
    oracles, same_publics = _prove(workload, ReferenceBackend(), key)
    cpu.close()
    assert publics == same_publics
    for proof, oracle in zip(ours, oracles, strict=True):
        assert all(np.array_equal(getattr(proof, part), getattr(oracle, part)) for part in "abc")
    assert pairing.verify(key.vk, ours[0], publics[0])
    assert not pairing.verify(key.vk, ours[0], [(publics[0][0] + 1) % R, *publics[0][1:]])
    swapped = Proof(ours[0].c, ours[0].b, ours[0].a)
    assert not pairing.verify(key.vk, swapped, publics[0])
    assert not pairing.verify(key.vk, Proof(ours[0].a, ours[0].b, 0 * ours[0].c), publics[0])
