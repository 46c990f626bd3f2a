"""A query without its infinite points says the same as one that keeps them in place; files pick, memory drops."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from prover.keys import Query

U64 = npt.NDArray[np.uint64]


def compact(points: U64, first_wire: int = 0) -> Query:
    """The query whose point i belongs to wire `first_wire + i`, infinite points left out.

    Args:
        points: (n, 2, 6) or (n, 2, 2, 6), infinity all zeros; not copied if all are finite.
    """
    finite = points.reshape(len(points), -1).any(axis=1)
    if finite.all():
        return Query(points, None, first_wire)
    kept = np.flatnonzero(finite)
    return Query(np.ascontiguousarray(points[kept]), (kept + first_wire).astype(np.uint32))


def in_place(query: Query, first_wire: int, count: int) -> U64:
    """Points of wires first_wire .. first_wire + count - 1 with the left-out ones as infinity.

    Returns:
        (count, ...) like `query.points`; that array itself where nothing was left out.
    """
    if query.wires is None and query.first_wire == first_wire and len(query.points) == count:
        return query.points
    wires = query.wires if query.wires is not None else np.arange(len(query.points)) + query.first_wire
    out = np.zeros((count, *query.points.shape[1:]), np.uint64)
    out[np.asarray(wires, np.int64) - first_wire] = query.points
    return out
