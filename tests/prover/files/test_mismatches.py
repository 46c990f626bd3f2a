"""Key, witness and circuit that do not belong together are refused before any work is done for them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from iden3_bytes import take_apart

from prover.backends.cpu.field import fr_to_ints, ints_to_fr
from prover.errors import Mismatch, UnsatisfiedWitness
from prover.file_workload import FileWorkload
from prover.files.wtns import read_wtns, write_wtns
from prover.files.zkey import read_zkey
from prover.params import R
from prover.run import Run


def test_witness_of_another_circuit_is_refused(chain: Path, product: Path) -> None:
    with pytest.raises(Mismatch, match="1004 values"):
        FileWorkload("product", read_zkey(product / "3_fac_final.zkey"), chain / "small.wtns")


def test_circuit_of_another_key_is_refused(chain: Path, product: Path, tmp_path: Path) -> None:
    write_wtns(tmp_path / "w.wtns", ints_to_fr([1, 561, 3, 11, 17, 33]))
    with pytest.raises(Mismatch, match="another circuit"):
        FileWorkload("x", read_zkey(product / "3_fac_final.zkey"), tmp_path / "w.wtns", chain / "small.r1cs")


def broken_rows(r1cs: Path, values: list[int]) -> list[int]:
    """Constraints that integers fail, read from the file's bytes by this test alone."""
    words, at, broken = take_apart(r1cs).get(2), 0, []
    for row in range(1001):
        sums = []
        for _ in "abc":
            count, at = int.from_bytes(words[at : at + 4], "little"), at + 4
            total = 0
            for _ in range(count):
                wire, coefficient = words[at : at + 4], words[at + 4 : at + 36]
                total += values[int.from_bytes(wire, "little")] * int.from_bytes(coefficient, "little")
                at += 36
            sums.append(total)
        if (sums[0] * sums[1] - sums[2]) % R:
            broken.append(row)
    return broken


@pytest.mark.parametrize("wire", [3, 4, 500, 1003])
def test_unsatisfied_witness_names_its_first_constraint(wire: int, chain: Path, tmp_path: Path) -> None:
    witness = read_wtns(chain / "small.wtns")
    witness[wire] = ints_to_fr([123])[0]
    write_wtns(tmp_path / "w.wtns", witness)
    workload = FileWorkload("chain", read_zkey(chain / "small.zkey"), tmp_path / "w.wtns", chain / "small.r1cs")
    run = Run(lambda event: None)
    assignment, *sides = (np.empty((n, 4), np.uint64) for n in (1004, 1024, 1024, 1024))
    workload.witness(0, assignment, run)
    with pytest.raises(UnsatisfiedWitness) as caught:
        workload.eval_abc(0, assignment, *sides, run)
    assert caught.value.row == broken_rows(chain / "small.r1cs", fr_to_ints(witness))[0]
