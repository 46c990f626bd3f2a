"""A circuit that came from a file is written back entry for entry; one built of templates in its canonical rows."""

from __future__ import annotations

from prover.r1cs.expand import Rows, expand
from prover.r1cs.matrices import R1cs


def plain_rows(r1cs: R1cs) -> Rows:
    """The three matrices with absolute wires, without the appended input rows."""
    if len(r1cs.stamps) == 1:
        stamp = r1cs.stamps[0]
        is_whole = stamp.template.num_rows == r1cs.num_constraints and len(stamp.row0) == 1
        # One port (ONE) and own wires from wire 1 on: relative columns are the wires.
        if is_whole and stamp.row0[0] == 0 and stamp.template.num_ports == 1 and stamp.wire0[0] == 1:
            return Rows(stamp.template.a, stamp.template.b, stamp.template.c, r1cs.table)
    return expand(r1cs)
