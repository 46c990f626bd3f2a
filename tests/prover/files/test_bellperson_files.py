"""bellperson's keys: a real verifying key survives, parameters are read back as written, foreign ones are refused."""

from __future__ import annotations

import json
import struct
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from prover.backends.cpu.field import ints_to_fp
from prover.circuits.registry import build
from prover.errors import BadFile, Mismatch
from prover.files.bellperson_vk import decode_vk, encode_vk, read_vk, write_vk
from prover.files.densities import Densities, densities_of
from prover.files.params_file import read_params, write_params
from prover.files.r1cs_file import read_r1cs
from prover.files.zcash import decode_g1, decode_g2, decode_proof, encode_proof
from prover.files.zkey import read_zkey
from prover.keys import HBasis, ProvingKey, Query, VerifyingKey
from prover.r1cs.expand import expand


@pytest.fixture
def porep(filecoin: Path) -> dict[str, str]:
    document: dict[str, str] = json.loads((filecoin / "porep_2kib_verify.json").read_text())
    return document


@pytest.fixture
def parameters(product: Path, points: Path) -> tuple[ProvingKey, Densities]:
    """A key of the right shape for the product circuit; its points are multiples of the generators."""
    densities = densities_of(read_zkey(product / "3_fac_final.zkey").relation, bytes(range(32)))

    def fault(why: str, i: int) -> BadFile:
        return BadFile("points", str(i), why)

    g1 = decode_g1((points / "g1_compressed.dat").read_bytes(), fault)[1:]
    g2 = decode_g2((points / "g2_compressed.dat").read_bytes(), fault)[1:]
    d = densities
    vk = VerifyingKey(g1[10], g2[11], g2[12], g2[13], g1[14 : 14 + d.num_public + 1], g1[20], g1[21])
    a, b = len(d.a_wires), len(d.b_wires)
    key = ProvingKey(
        vk, g1[20], g1[21], d.num_wires, d.num_public, d.num_constraints, d.domain_size,
        Query(g1[30 : 30 + a], d.a_wires), Query(g1[40 : 40 + b], d.b_wires), Query(g2[50 : 50 + b], d.b_wires),
        Query(g1[60 : 60 + d.num_wires - d.num_public - 1], None, d.num_public + 1),
        g1[70 : 70 + d.domain_size - 1], HBasis.MONOMIAL, bytes(range(32)), False,
    )  # fmt: skip
    return key, densities


def assert_same(x: object, y: object) -> None:
    if isinstance(x, np.ndarray):
        assert isinstance(y, np.ndarray) and np.array_equal(x, y)
    elif isinstance(x, ProvingKey | VerifyingKey | Query):
        for field in fields(x):
            assert_same(getattr(x, field.name), getattr(y, field.name))
    else:
        assert x == y


def test_real_verifying_key_is_read_and_written_back(porep: dict[str, str]) -> None:
    data = bytes.fromhex(porep["vk_hex"])
    vk = decode_vk(data)
    assert vk.num_public == 39
    assert encode_vk(vk, compressed=True) == data


def test_uncompressed_key_has_the_size_of_the_format_and_is_the_same_key(porep: dict[str, str], tmp_path: Path) -> None:
    vk = decode_vk(bytes.fromhex(porep["vk_hex"]))
    write_vk(tmp_path / "k.vk", vk)
    assert (tmp_path / "k.vk").stat().st_size == 868 + 96 * 40
    assert_same(read_vk(tmp_path / "k.vk"), vk)


def test_real_proof_is_read_and_written_back(porep: dict[str, str]) -> None:
    data = bytes.fromhex(porep["proof_hex"])
    assert encode_proof(decode_proof(data)) == data


def test_cut_or_lengthened_verifying_key_is_refused(porep: dict[str, str], tmp_path: Path) -> None:
    write_vk(tmp_path / "k.vk", decode_vk(bytes.fromhex(porep["vk_hex"])))
    data = (tmp_path / "k.vk").read_bytes()
    absurd = data[:864] + struct.pack(">I", (1 << 32) - 1) + data[868:]
    for bad in (b"", data[:1], data[:867], data[:868], data[:-96], data[:-1], data + b"\0", absurd):
        (tmp_path / "bad.vk").write_bytes(bad)
        with pytest.raises(BadFile, match=r"bad\.vk"):
            read_vk(tmp_path / "bad.vk")


def test_point_of_a_verifying_key_outside_the_subgroup_is_named(porep: dict[str, str], tmp_path: Path) -> None:
    write_vk(tmp_path / "k.vk", decode_vk(bytes.fromhex(porep["vk_hex"])))
    data = (tmp_path / "k.vk").read_bytes()
    outside = bytes(95) + b"\2"
    for offset, name in ((0, "alpha_g1"), (96, "beta_g1"), (868 + 96 * 3, r"IC\[3\]")):
        (tmp_path / "bad.vk").write_bytes(data[:offset] + outside + data[offset + 96 :])
        with pytest.raises(BadFile, match=rf"{name}, offset {offset}.*subgroup"):
            read_vk(tmp_path / "bad.vk")
    (tmp_path / "bad.vk").write_bytes(bytes([0x40]) + bytes(95) + data[96:])
    with pytest.raises(BadFile, match=r"alpha_g1.*infinity"):
        read_vk(tmp_path / "bad.vk")


def test_parameters_are_read_back_as_they_were_written(
    parameters: tuple[ProvingKey, Densities], tmp_path: Path
) -> None:
    key, densities = parameters
    write_params(tmp_path / "k.params", key)
    assert_same(read_params(tmp_path / "k.params", densities), key)
    write_params(tmp_path / "again.params", read_params(tmp_path / "k.params", densities))
    assert (tmp_path / "again.params").read_bytes() == (tmp_path / "k.params").read_bytes()


def test_parameters_in_many_blocks_are_the_same(
    parameters: tuple[ProvingKey, Densities], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, densities = parameters
    write_params(tmp_path / "k.params", key)
    monkeypatch.setattr("prover.files.params_file.BLOCK_POINTS", 2)
    write_params(tmp_path / "blocks.params", key)
    assert (tmp_path / "blocks.params").read_bytes() == (tmp_path / "k.params").read_bytes()
    assert_same(read_params(tmp_path / "blocks.params", densities), key)


def test_parameters_of_another_circuit_are_a_mismatch(
    parameters: tuple[ProvingKey, Densities], tmp_path: Path
) -> None:
    key, densities = parameters
    write_params(tmp_path / "k.params", key)
    for other in (
        replace(densities, domain_size=16), replace(densities, num_wires=7),
        replace(densities, a_wires=densities.a_wires[:-1]), replace(densities, b_wires=densities.a_wires),
    ):  # fmt: skip
        with pytest.raises(Mismatch, match="another circuit"):
            read_params(tmp_path / "k.params", other)


def test_damaged_parameters_are_refused(parameters: tuple[ProvingKey, Densities], tmp_path: Path) -> None:
    key, densities = parameters
    write_params(tmp_path / "k.params", key)
    data = (tmp_path / "k.params").read_bytes()
    h = 868 + 96 * 3
    outside = bytes(95) + b"\2"
    bad = [data[:n] for n in (0, 100, 867, h, h + 3, h + 50, len(data) - 1)]
    bad += [data + b"\0", data[:h] + b"\xff\xff\xff\xff" + data[h + 4 :], data[:864] + b"\xff\xff\xff\xff" + data[868:]]
    bad += [data[: h + 4] + outside + data[h + 100 :], data[: h + 4] + b"\x80" + data[h + 5 :]]
    for content in bad:
        (tmp_path / "bad.params").write_bytes(content)
        with pytest.raises(BadFile, match=r"bad\.params"):
            read_params(tmp_path / "bad.params", densities)


def test_odd_lagrange_key_is_not_written_as_parameters(product: Path, tmp_path: Path) -> None:
    with pytest.raises(Mismatch, match="monomial"):
        write_params(tmp_path / "k.params", read_zkey(product / "3_fac_final.zkey").key)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["cubic", "sha256-chain:2", "poseidon-merkle:3", "chain"])
def test_densities_are_those_of_the_rows_one_by_one(name: str, chain: Path) -> None:
    r1cs = read_r1cs(chain / "small.r1cs") if name == "chain" else build(name).r1cs
    rows = expand(r1cs)
    inputs = np.arange(r1cs.num_public + 1)
    densities = densities_of(r1cs)
    assert np.array_equal(densities.a_wires, np.union1d(inputs, rows.a.columns))
    assert np.array_equal(densities.b_wires, np.unique(rows.b.columns))


def test_outside_point_is_really_on_the_curve() -> None:
    from prover.files.canonical import is_on_curve

    assert is_on_curve(ints_to_fp([0, 2]).reshape(2, 6))
    assert not is_on_curve(ints_to_fp([0, 3]).reshape(2, 6))
