"""The last chain of an MSM, 255 doublings and some hundred additions one after another, runs on the host.

One GPU thread needs 6 us for a doubling, a host core under 1 us; what comes back from the device is some ten KB.
"""

from __future__ import annotations

import numpy as np

from prover.backends.cpu.curve import xyzz_add, xyzz_clear, xyzz_double, xyzz_to_affine
from prover.backends.cpu.jit import jit
from prover.backends.cuda.launch import U64


def fold(slots: U64, window_bits: int, log_chunk: int) -> U64:
    """Sum over windows w of 2^(window_bits w) (A_w + 2^log_chunk sum_i 2^i T_(w,i)), affine.

    Args:
        slots: (windows, log_chunks + 1, 4, 6) or (.., 4, 2, 6) XYZZ: T_(w,0), T_(w,1), .., A_w.
    """
    windows, per_window = slots.shape[:2]
    # Row 0 is the running total, the rows after it the slots.
    rows = np.concatenate([np.zeros((1, *slots.shape[2:]), np.uint64), slots.reshape(-1, *slots.shape[2:])])
    shifts = np.array(
        [
            window_bits * w + (log_chunk + i if i + 1 < per_window else 0)
            for w in range(windows)
            for i in range(per_window)
        ]
    )
    order = np.argsort(-shifts, kind="stable")
    out = np.zeros((1, 2, *slots.shape[3:]), np.uint64)
    _horner(rows, shifts[order], order + 1, out)
    return out[0]


@jit
def _horner(rows, shifts, order, out):
    xyzz_clear(rows, 0)
    at = shifts[0]
    for j in range(len(order)):
        while at > shifts[j]:
            xyzz_double(rows, 0)
            at -= 1
        xyzz_add(rows, 0, order[j])
    while at > 0:
        xyzz_double(rows, 0)
        at -= 1
    xyzz_to_affine(rows, 0, out, 0)
