"""From the bytes of a C1 output to a workload: read, checked, its circuit built or taken from those at hand."""

from __future__ import annotations

import os

from prover.builtin import KeySource
from prover.errors import BadRequest
from prover.porep.c1_read import parse_c1, read_c1
from prover.porep.checks import check_output
from prover.porep.circuit import StackedCircuit, build
from prover.porep.workload import PorepWorkload
from prover.run import Run
from prover.wire import Stage


def open_job(
    source: str | os.PathLike[str] | bytes, keys: KeySource, run: Run, *, miner_id: int | None = None,
    sector_number: int | None = None, threads: int = 2, checked: bool = True, partitions: list[int] | None = None,
    circuits: dict[str, StackedCircuit] | None = None,
) -> PorepWorkload:  # fmt: skip
    """The workload of a C1 output.

    Args:
        source: a path, or the output itself.
        miner_id, sector_number: what it must be of; None believes it.
        checked: refuse an output that contradicts itself; else the circuit's constraints are left to find it.
        partitions: which to prove; None: all.
        circuits: built ones by name of the sector's size, added to.

    Raises:
        BadFile: not a C1 output.
        BadRequest: it has no such partition.
        BadVanillaProof: the first check that fails.
        Mismatch: of another sector.
    """
    with run.span("read C1 output", stage=Stage.SETUP):
        if isinstance(source, bytes):
            output = parse_c1(source, check_copies=checked)
        else:
            output = read_c1(source, check_copies=checked)
    for k in partitions or ():
        if not 0 <= k < len(output.partitions):
            raise BadRequest(f"partition {k} is not one of 0 to {len(output.partitions) - 1}")
    if checked:
        with run.span("check C1 output", stage=Stage.SETUP):
            check_output(output, run=run, threads=threads, miner_id=miner_id, sector_number=sector_number)
    shape = output.proof.shape
    circuit = circuits.get(shape.name) if circuits is not None else None
    if circuit is None:
        with run.span("build circuit", stage=Stage.SETUP):
            circuit = build(shape)
        if circuits is not None:
            circuits[shape.name] = circuit
    return PorepWorkload(output, keys, circuit=circuit, threads=threads, partitions=partitions)
