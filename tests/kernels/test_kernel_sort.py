"""Digits recompose to their scalar, and grouping by bucket loses and invents nothing, whatever the skew."""

from __future__ import annotations

import random

import numpy as np
import pytest

from prover.backends.cuda import sort
from prover.backends.cuda.ntt import field_array
from prover.backends.cuda.sort import ScalarSource
from prover.params import R

RNG = random.Random(9)


@pytest.mark.parametrize("window", [4, 7, 11, 16, 17, 20, 22])
def test_digits_recompose_to_the_scalar(launcher, window):
    scalars = [0, 1, 2, R - 1, (R - 1) // 2, (R + 1) // 2, 1 << 254] + [RNG.randrange(R) for _ in range(40)]
    windows = sort.num_windows(window)
    source = ScalarSource(launcher.upload(field_array(scalars)), len(scalars))
    words = launcher.download(sort.digits(launcher, source, window, 0, windows), (windows, len(scalars)), np.uint32)
    values = (words & 0x7FFFFFFF).astype(object) * np.where(words >> 31, -1, 1)
    assert int((words & 0x7FFFFFFF).max()) <= 1 << (window - 1)
    for i, scalar in enumerate(scalars):
        assert sum(int(v) << (window * w) for w, v in enumerate(values[:, i])) % R == scalar


def test_windows_from_the_middle_are_those_of_the_whole(launcher):
    source = ScalarSource(launcher.upload(field_array([RNG.randrange(R) for _ in range(9)])), 9)
    whole = launcher.download(sort.digits(launcher, source, 9, 0, 29), (29, 9), np.uint32)
    part = launcher.download(sort.digits(launcher, source, 9, 11, 5), (5, 9), np.uint32)
    assert (whole[11:16] == part).all()


@pytest.mark.parametrize(("window", "windows", "count"), [(5, 3, 100), (12, 2, 9000), (16, 1, 20000), (10, 1, 1)])
@pytest.mark.parametrize("skew", ["uniform", "one value", "mostly none"])
def test_grouping_keeps_every_entry_in_its_bucket(launcher, window, windows, count, skew):
    rng = np.random.default_rng(1)
    half = 1 << (window - 1)
    words = rng.integers(0, half + 1, (windows, count), dtype=np.uint32)
    if skew == "one value":
        words[:] = half
    elif skew == "mostly none":
        words[rng.random((windows, count)) < 0.95] = 0
    signs = rng.integers(0, 2, (windows, count), dtype=np.uint32) << 31
    words |= np.where(words != 0, signs, 0).astype(np.uint32)
    buckets = sort.group_by_bucket(launcher, launcher.upload(words), None, count, window, windows)
    expected: dict[int, list[int]] = {}
    for w in range(windows):
        for i in range(count):
            word = int(words[w, i])
            if word:
                expected.setdefault(w * half + (word & 0x7FFFFFFF) - 1, []).append(i | word & 0x80000000)
    n = buckets.num_buckets
    lengths, starts = (launcher.download(m, (n,), np.uint32) for m in (buckets.lengths, buckets.starts))
    entries = launcher.download(buckets.sorted, (max(1, buckets.num_entries),), np.uint32)
    assert buckets.num_entries == sum(map(len, expected.values()))
    assert buckets.longest == max(map(len, expected.values()), default=0)
    assert buckets.num_sums == sum((len(v) + 1) // 2 for v in expected.values())
    for b in range(n):
        got = sorted(int(e) for e in entries[starts[b] : starts[b] + lengths[b]])
        assert got == sorted(expected.get(b, []))


def test_even_buckets_cut_a_list_without_rest(launcher):
    buckets = sort.even_buckets(launcher, launcher.empty(4 * 1001), 1001, 16)
    lengths = launcher.download(buckets.lengths, (buckets.num_buckets,), np.uint32)
    assert lengths.sum() == 1001 and set(lengths[:-1]) == {16} and buckets.num_sums == 62 * 8 + 5
