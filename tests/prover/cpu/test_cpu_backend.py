"""The CPU backend against the oracle, verb by verb, on keys whose points and wires are drawn at random."""

from __future__ import annotations

import functools
import random

import numpy as np
import pytest
from points_for_tests import both_groups

from prover import wire
from prover.arena import Arena
from prover.backends import Backend
from prover.backends.cpu.backend import CpuBackend
from prover.backends.cpu.field import U64, ints_to_fr
from prover.backends.cpu.split import CpuSplit, split_bytes
from prover.errors import Cancelled
from prover.keys import HBasis, ProvingKey, Query, QueryName, VerifyingKey
from prover.params import R
from prover.reference.backend import ReferenceBackend
from prover.run import Run, silent

NUM_WIRES, NUM_PUBLIC, DOMAIN = 29, 3, 32
CIRCUITS = 2


@functools.cache
def _key(basis: HBasis) -> ProvingKey:
    rng = random.Random(21)
    g1, g2 = both_groups()
    a_wires = np.array(sorted(rng.sample(range(NUM_WIRES), 23)), np.uint32)
    b_wires = np.array(sorted(rng.sample(range(NUM_WIRES), 14)), np.uint32)
    few_g1, few_g2 = g1.draw(4).points, g2.draw(4).points
    return ProvingKey(
        vk=VerifyingKey(few_g1[0], few_g2[0], few_g2[1], few_g2[2], few_g1),
        beta_g1=few_g1[1],
        delta_g1=few_g1[2],
        num_wires=NUM_WIRES,
        num_public=NUM_PUBLIC,
        num_constraints=DOMAIN - NUM_PUBLIC - 1,
        domain_size=DOMAIN,
        a_query=Query(g1.draw(23).points, a_wires),
        b_g1_query=Query(g1.draw(14).points, b_wires),
        b_g2_query=Query(g2.draw(14).points, b_wires),
        l_query=Query(g1.draw(NUM_WIRES - NUM_PUBLIC - 1).points, None, NUM_PUBLIC + 1),
        h_query=g1.draw(DOMAIN if basis is HBasis.LAGRANGE_ODD else DOMAIN - 1).points,
        h_basis=basis,
        circuit_hash=b"",
    )


def _assignments() -> list[U64]:
    rng = random.Random(22)
    kinds = [0, 0, 1, 1, R - 1, 2, 200, rng.randrange(1 << 32), rng.randrange(R)]
    always_zero_or_one = {5, 6, 7, 20}
    rows = []
    for _ in range(CIRCUITS):
        values = [1] + [rng.choice(kinds) for _ in range(NUM_WIRES - 1)]
        for w in always_zero_or_one:
            values[w] = rng.randrange(2)
        rows.append(ints_to_fr(values))
    return rows


def _columns(seed: int) -> list[U64]:
    rng = random.Random(seed)
    return [ints_to_fr([rng.randrange(R) for _ in range(DOMAIN)]) for _ in range(3)]


def _sums(backend: Backend, key: ProvingKey, run: Run) -> list[U64]:
    """Everything that a backend computes for a job, in a fixed order."""
    leaks: list[wire.Event] = []
    arena = Arena(lambda event: leaks.append(event) if isinstance(event, wire.BufferLeaked) else None)
    scope = arena.scope("test", wire.Policy.SYNC_4K)
    resident = backend.load_key(key, run)
    results: list[U64] = []
    try:
        parts = backend.prep_msm(resident, _assignments(), scope, run)
        for i in range(CIRCUITS):
            for query in QueryName:
                results.append(backend.batch_add(resident, parts, query, run, i))
                results.append(backend.tail_msm(resident, parts, query, run, i))
            scalars = backend.ntt_h(resident, *_columns(i), run, i)
            results.append(backend.msm_h(resident, scalars, run, i))
            scalars.close()
        parts.close()
        released = scope.release()
        assert (released > 0) == isinstance(backend, CpuBackend)
    finally:
        resident.close()
        arena.close()
    assert not leaks
    return results


@pytest.fixture(scope="module")
def oracle() -> dict[HBasis, list[U64]]:
    return {basis: _sums(ReferenceBackend(), _key(basis), silent()) for basis in HBasis}


@pytest.mark.parametrize("basis", list(HBasis))
@pytest.mark.parametrize("threads", [1, 2])
def test_every_verb_agrees_with_the_oracle(basis: HBasis, threads: int, oracle: dict[HBasis, list[U64]]) -> None:
    cpu = CpuBackend(threads)
    got, expected = _sums(cpu, _key(basis), silent()), oracle[basis]
    cpu.close()
    assert len(got) == len(expected) == CIRCUITS * 9
    for i, (x, y) in enumerate(zip(got, expected, strict=True)):
        assert (x == y).all(), i


def test_the_bases_differ(oracle: dict[HBasis, list[U64]]) -> None:
    lagrange, monomial = (oracle[basis][8] for basis in HBasis)
    assert not (lagrange == monomial).all()


def test_every_routine_reports_a_span_with_counts() -> None:
    events: list[wire.Event] = []
    cpu = CpuBackend(2)
    _sums(cpu, _key(HBasis.LAGRANGE_ODD), Run(events.append, "job"))
    cpu.close()
    spans = [event for event in events if isinstance(event, wire.Span)]
    names = {span.name for span in spans}
    assert {"split", "intt", "coset_ntt", "quotient", "recode h", "msm h"} <= names
    assert {"batch_add b_g2", "msm b_g2", "msm a", "msm l", "batch_add a"} <= names
    for span in spans:
        assert span.job_id == "job" and span.begin_ns <= span.t_ns
        assert span.ops is not None and span.moved_bytes is not None and span.op and span.cpu_ns is not None
    by_name = {span.name: span for span in spans}
    assert by_name["intt"].ops == DOMAIN // 2 * 5
    assert by_name["quotient"].ops == 4 * DOMAIN
    assert by_name["batch_add b_g2"].stage is wire.Stage.B_G2_MSM
    ones = int((_assignments()[-1][_key(HBasis.LAGRANGE_ODD).a_query.wires] == ints_to_fr([1])).all(axis=1).sum())
    assert by_name["batch_add a"].ops == ones > 0
    assert any(isinstance(event, wire.Progress) and event.stage is wire.Stage.MSM_H for event in events)


def test_a_wire_that_is_never_significant_is_in_no_tail() -> None:
    cpu, arena = CpuBackend(1), Arena(lambda _event: None)
    scope = arena.scope("test", wire.Policy.SYNC_4K)
    key = _key(HBasis.LAGRANGE_ODD)
    parts = cpu.prep_msm(cpu.load_key(key, silent()), _assignments(), scope, silent())
    assert isinstance(parts, CpuSplit) and parts.wires is not None
    tail = parts.wires.tolist()
    assert tail == sorted(set(tail)) and not {0, 5, 6, 7, 20} & set(tail) and len(tail) > 12
    assert split_bytes(NUM_WIRES, CIRCUITS, len(tail)) <= scope.size_bytes
    ones_and_tail = np.zeros(NUM_WIRES, np.int64)
    for w in range(NUM_WIRES):
        ones_and_tail[w] = int(parts.ones[1][w >> 3]) >> (w & 7) & 1
    for row, w in enumerate(tail):
        assert not (parts.scalars[1][row].any() and ones_and_tail[w]), "a wire is a one or a tail scalar, never both"
    del tail
    parts.close()
    scope.release()
    arena.close()


def test_a_job_without_a_tail_sums_to_its_ones() -> None:
    cpu, arena = CpuBackend(2), Arena(lambda _event: None)
    scope = arena.scope("test", wire.Policy.SYNC_4K)
    key = _key(HBasis.LAGRANGE_ODD)
    resident = cpu.load_key(key, silent())
    bits = ints_to_fr([1] + [w % 2 for w in range(1, NUM_WIRES)])
    parts = cpu.prep_msm(resident, [bits], scope, silent())
    for query in QueryName:
        assert (cpu.tail_msm(resident, parts, query, silent(), 0) == 0).all()
        assert cpu.batch_add(resident, parts, query, silent(), 0).any()
    parts.close()
    scope.release()
    arena.close()
    cpu.close()


@pytest.mark.parametrize("basis", list(HBasis))
def test_a_cancelled_job_stops_in_every_verb(basis: HBasis) -> None:
    key, cpu, arena = _key(basis), CpuBackend(2), Arena(lambda _event: None)
    scope = arena.scope("test", wire.Policy.SYNC_4K)
    resident = cpu.load_key(key, silent())
    parts = cpu.prep_msm(resident, _assignments(), scope, silent())
    scalars = cpu.ntt_h(resident, *_columns(1), silent(), 0)
    run = Run(lambda _event: None, "cancelled")
    run.cancel()
    verbs = [
        lambda: cpu.prep_msm(resident, _assignments(), scope, run),
        lambda: cpu.batch_add(resident, parts, QueryName.A, run, 0),
        lambda: cpu.tail_msm(resident, parts, QueryName.L, run, 0),
        lambda: cpu.ntt_h(resident, *_columns(1), run, 0),
        lambda: cpu.msm_h(resident, scalars, run, 0),
        lambda: cpu.warm_up(run),
    ]
    for verb in verbs:
        with pytest.raises(Cancelled):
            verb()
    parts.close()
    scope.release()
    arena.close()
    cpu.close()


def test_warm_up_reports_its_steps_and_ends_complete() -> None:
    events: list[wire.Event] = []
    cpu = CpuBackend(2)
    cpu.warm_up(Run(events.append))
    cpu.close()
    steps = [event for event in events if isinstance(event, wire.Progress)]
    assert all(step.stage is wire.Stage.COMPILE for step in steps)
    assert [step.done for step in steps] == list(range(len(steps))) and steps[-1].done == steps[-1].total
    assert cpu.devices == ("cpu (2 threads)",) and CpuBackend(1).devices == ("cpu (1 thread)",)
