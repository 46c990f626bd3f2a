"""`.r1cs`, `.wtns` and `.zkey` of other programs are read, agree with each other, and are written back unchanged."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from iden3_bytes import take_apart

from prover.backends.cpu.field import fr_to_ints, ints_to_fr
from prover.errors import Mismatch
from prover.files.r1cs_file import read_r1cs, write_r1cs
from prover.files.wtns import read_wtns, require_length, write_wtns
from prover.files.zkey import read_zkey, require_zkey_of
from prover.files.zkey_rows import evaluate_rows
from prover.files.zkey_write import write_zkey
from prover.params import R
from prover.r1cs.evaluate import evaluate_abc, first_unsatisfied
from prover.r1cs.matrices import Csr, R1cs, Stamp, Template


def rows_at(evaluate, circuit: R1cs, witness: np.ndarray, domain_size: int) -> list[np.ndarray]:
    out = [np.full((domain_size, 4), 7, np.uint64) for _ in range(3)]
    evaluate(circuit, witness, *out)
    return out


def test_counts_of_a_circom_circuit_are_those_its_compiler_states(chain: Path) -> None:
    r1cs = read_r1cs(chain / "small.r1cs")
    assert (r1cs.num_constraints, r1cs.num_wires, r1cs.num_public, r1cs.num_outputs) == (1001, 1004, 2, 1)
    assert r1cs.domain_size == 1024


def test_circoms_witness_satisfies_circoms_circuit_and_a_changed_one_does_not(chain: Path) -> None:
    r1cs, witness = read_r1cs(chain / "small.r1cs"), read_wtns(chain / "small.wtns")
    assert first_unsatisfied(r1cs, *rows_at(evaluate_abc, r1cs, witness, 1024)) is None
    witness[700] = ints_to_fr([5])[0]
    assert first_unsatisfied(r1cs, *rows_at(evaluate_abc, r1cs, witness, 1024)) is not None


def test_rows_of_the_zkey_are_those_of_the_r1cs(chain: Path) -> None:
    zkey, r1cs, witness = (
        read_zkey(chain / "small.zkey"), read_r1cs(chain / "small.r1cs"), read_wtns(chain / "small.wtns"),
    )  # fmt: skip
    require_zkey_of(zkey, r1cs)
    ours = rows_at(evaluate_abc, r1cs, witness, zkey.key.domain_size)
    theirs = rows_at(evaluate_rows, zkey.relation, witness, zkey.key.domain_size)
    for x, y in zip(ours, theirs, strict=True):
        assert np.array_equal(x, y)


def test_r1cs_is_written_back_byte_for_byte(chain: Path, tmp_path: Path) -> None:
    write_r1cs(tmp_path / "again.r1cs", read_r1cs(chain / "small.r1cs"))
    assert (tmp_path / "again.r1cs").read_bytes() == (chain / "small.r1cs").read_bytes()


def test_witness_is_written_back_byte_for_byte(chain: Path, tmp_path: Path) -> None:
    write_wtns(tmp_path / "again.wtns", read_wtns(chain / "small.wtns"))
    assert (tmp_path / "again.wtns").read_bytes() == (chain / "small.wtns").read_bytes()


@pytest.mark.parametrize("folder, name", [("chain", "small.zkey"), ("product", "3_fac_final.zkey")])
def test_zkey_is_written_back_byte_for_byte_but_for_its_contributions(
    folder: str, name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    source = request.getfixturevalue(folder) / name
    zkey = read_zkey(source)
    write_zkey(tmp_path / "again.zkey", zkey.key, zkey.relation)
    before, after = take_apart(source), take_apart(tmp_path / "again.zkey")
    assert {k: c for k, c in after.sections if k != 10} == {k: c for k, c in before.sections if k != 10}
    assert after.get(10) == bytes(68)


def test_circuit_hash_survives_a_zkey_of_ours_and_is_not_taken_from_one_of_snarkjs(
    product: Path, tmp_path: Path
) -> None:
    zkey = read_zkey(product / "3_fac_final.zkey")
    assert zkey.key.circuit_hash == b"" and not zkey.key.is_test_setup
    write_zkey(tmp_path / "ours.zkey", replace(zkey.key, circuit_hash=bytes(range(32))), zkey.relation)
    ours = read_zkey(tmp_path / "ours.zkey")
    assert ours.key.circuit_hash == bytes(range(32)) and ours.key.is_test_setup


def test_sections_may_come_in_any_order_with_unknown_ones_between(chain: Path, tmp_path: Path) -> None:
    rng = random.Random(1)
    for name, read in (("small.r1cs", read_r1cs), ("small.wtns", read_wtns), ("small.zkey", read_zkey)):
        parts = take_apart(chain / name)
        sections = [*parts.sections, (99, b"unknown"), (99, b"unknown again"), (77, b"")]
        rng.shuffle(sections)
        (tmp_path / name).write_bytes(replace(parts, sections=tuple(sections)).bytes())
        read(tmp_path / name)
    assert np.array_equal(read_wtns(tmp_path / "small.wtns"), read_wtns(chain / "small.wtns"))
    again, before = read_zkey(tmp_path / "small.zkey").key, read_zkey(chain / "small.zkey").key
    assert np.array_equal(again.h_query, before.h_query)
    assert np.array_equal(again.b_g2_query.points, before.b_g2_query.points)


def test_witness_of_another_circuit_is_a_mismatch_that_gives_both_lengths(chain: Path) -> None:
    with pytest.raises(Mismatch, match=r"1004 values.* 6 wires"):
        require_length(read_wtns(chain / "small.wtns"), 6, "the zkey")


def test_key_of_another_circuit_is_a_mismatch(chain: Path, product: Path) -> None:
    r1cs = read_r1cs(chain / "small.r1cs")
    with pytest.raises(Mismatch, match="another circuit"):
        require_zkey_of(read_zkey(product / "3_fac_final.zkey"), r1cs)
    stamp = r1cs.stamps[0]
    columns = stamp.template.a.columns.copy()
    columns[40] = 1003
    other = replace(stamp.template, a=replace(stamp.template.a, columns=columns))
    with pytest.raises(Mismatch, match=r"constraint \d+ has other entries in A"):
        require_zkey_of(read_zkey(chain / "small.zkey"), replace(r1cs, stamps=(replace(stamp, template=other),)))


ROW = st.dictionaries(st.integers(0, 6), st.integers(1, R - 1), max_size=4)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(ROW, ROW, ROW), min_size=1, max_size=12))
def test_any_circuit_is_read_back_as_it_was_written(tmp_path_factory, rows) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path_factory.mktemp("r1cs") / "any.r1cs"
    values = [1, R - 1, *{v for row in rows for lc in row for v in lc.values()} - {1, R - 1}]

    def matrix(which: int) -> Csr:
        sizes = [len(row[which]) for row in rows]
        entries = [(w, values.index(v)) for row in rows for w, v in row[which].items()]
        flat = np.array(entries, np.uint32).reshape(-1, 2)
        return Csr(np.cumsum([0, *sizes]), flat[:, 0].copy(), flat[:, 1].copy())

    template = Template("any", 1, 6, matrix(0), matrix(1), matrix(2))
    stamp = Stamp(template, np.zeros(1, np.int64), np.ones(1, np.int64), np.zeros((1, 1), np.uint32))
    written = R1cs(len(rows), 7, 1, ints_to_fr(values), (stamp,), num_outputs=1)
    write_r1cs(path, written)
    read = read_r1cs(path)
    assert (read.num_constraints, read.num_wires, read.num_public, read.num_outputs) == (len(rows), 7, 1, 1)
    for which in "abc":
        x, y = getattr(written.stamps[0].template, which), getattr(read.stamps[0].template, which)
        assert np.array_equal(x.indptr, y.indptr) and np.array_equal(x.columns, y.columns)
        assert [values[i] for i in x.coefficients] == [fr_to_ints(read.table)[i] for i in y.coefficients]


def test_more_distinct_coefficients_than_the_table_starts_with_are_all_kept(tmp_path: Path) -> None:
    rng = random.Random(7)
    values = [1, R - 1, *(rng.randrange(2, R - 1) for _ in range(5000))]
    count = len(values)
    nothing = np.empty(0, np.uint32)
    a = Csr(np.arange(count + 1), np.zeros(count, np.uint32), np.arange(count, dtype=np.uint32))
    empty = Csr(np.zeros(count + 1, np.int64), nothing, nothing)
    stamp = Stamp(
        Template("many", 1, 1, a, empty, empty), np.zeros(1, np.int64), np.ones(1, np.int64),
        np.zeros((1, 1), np.uint32),
    )  # fmt: skip
    write_r1cs(tmp_path / "many.r1cs", R1cs(count, 2, 0, ints_to_fr(values), (stamp,)))
    read = read_r1cs(tmp_path / "many.r1cs")
    table = fr_to_ints(read.table)
    assert [table[i] for i in read.stamps[0].template.a.coefficients] == values


def test_points_of_a_large_zkey_are_checked_once_and_again_after_any_change(
    chain: Path, tmp_path: Path, no_record: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked: list[str] = []
    from prover.files import zkey

    monkeypatch.setattr(zkey, "RECORD_FROM", 1000)
    monkeypatch.setattr(zkey, "require_points", lambda points, what, *_, **__: checked.append(what))
    read_zkey(chain / "small.zkey")
    assert "section 9" in checked
    checked.clear()
    read_zkey(chain / "small.zkey")
    assert checked == ["the header"] * 2
    parts = take_apart(chain / "small.zkey")
    (tmp_path / "other.zkey").write_bytes(parts.patched(9, 96, parts.get(9)[:96]).bytes())
    read_zkey(tmp_path / "other.zkey")
    assert "section 9" in checked
