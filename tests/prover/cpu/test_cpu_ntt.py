"""Transforms against evaluation by definition, back and forth, on subgroups and cosets, for both roots."""

from __future__ import annotations

import random

import numpy as np
import pytest

from prover.backends.cpu import ntt as ntt_module
from prover.backends.cpu.field import fr_to_ints, ints_to_fr, powers
from prover.backends.cpu.ntt import bit_reverse, dif, dit, intt, ntt, twiddles
from prover.backends.cpu.workers import Workers
from prover.errors import DomainTooLarge
from prover.params import ROOT_BELLMAN, ROOT_SNARKJS, R, root_of_unity
from prover.reference.scalars import dft, evaluate


@pytest.mark.parametrize("root", [ROOT_SNARKJS, ROOT_BELLMAN], ids=["snarkjs", "bellman"])
@pytest.mark.parametrize("shift", [1, 7])
@pytest.mark.parametrize("log_size", range(7))
def test_transform_is_evaluation(log_size: int, shift: int, root: int) -> None:
    rng = random.Random(log_size)
    coefficients = [rng.randrange(R) for _ in range(1 << log_size)]
    values = ntt(ints_to_fr(coefficients), root=root, shift=shift)
    assert fr_to_ints(values) == dft(coefficients, root, shift)
    assert fr_to_ints(intt(values, root=root, shift=shift)) == coefficients


@pytest.mark.parametrize("shift", [1, 5])
@pytest.mark.parametrize("log_size", [13, 14, 15, 16])
def test_layers_beyond_the_cache_block_agree_with_evaluation(log_size: int, shift: int) -> None:
    data = powers(3, 1 << log_size, first=11)
    values = ntt(data, threads=2, shift=shift)
    for i in (0, 1, (1 << log_size) - 1, 12345 % (1 << log_size)):
        x = shift * pow(root_of_unity(log_size), i, R) % R
        closed = 11 * (pow(3 * x, 1 << log_size, R) - 1) * pow(3 * x - 1, -1, R) % R
        assert fr_to_ints(values[i : i + 1]) == [closed]
    assert (intt(values, threads=2, shift=shift) == data).all()


@pytest.mark.parametrize("log_size", [1, 2, 5, 8, 11])
def test_small_blocks_take_the_same_path_as_large_data(log_size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ntt_module, "BLOCK", 8)
    rng = random.Random(log_size)
    coefficients = [rng.randrange(R) for _ in range(1 << log_size)]
    values = fr_to_ints(ntt(ints_to_fr(coefficients), threads=2, shift=3))
    omega = root_of_unity(log_size)
    for i in range(0, len(values), max(1, len(values) // 16)):
        assert values[i] == evaluate(coefficients, 3 * pow(omega, i, R) % R)


def test_dif_then_dit_is_the_size_times_the_identity() -> None:
    workers = Workers(2)
    data = powers(9, 1 << 10)
    work = data.copy()
    dif(work, twiddles(10, inverse=True), workers)
    dit(work, twiddles(10), workers)
    assert fr_to_ints(work) == [v * 1024 % R for v in fr_to_ints(data)]
    workers.close()


def test_dif_leaves_bit_reversed_order() -> None:
    data = powers(9, 16)
    work, natural = data.copy(), ntt(data)
    dif(work, twiddles(4), Workers(1))
    assert not (work == natural).all()
    bit_reverse(work)
    assert (work == natural).all()


def test_a_constant_has_one_coefficient() -> None:
    coefficients = fr_to_ints(intt(np.repeat(ints_to_fr([42]), 64, axis=0)))
    assert coefficients == [42] + [0] * 63


def test_wrong_size_and_too_large_domains_are_refused() -> None:
    with pytest.raises(ValueError, match="8 elements"):
        dif(powers(2, 8), twiddles(4), Workers(1))
    with pytest.raises(ValueError, match="contiguous"):
        dif(powers(2, 16)[::2], twiddles(3), Workers(1))
    with pytest.raises(DomainTooLarge):
        root_of_unity(33)
