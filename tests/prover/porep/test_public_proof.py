"""A real proof made by others verifies with the public inputs that we derive, and with nothing else."""

from __future__ import annotations

import json
import lzma
from pathlib import Path

import pytest

from prover.errors import BadRequest, ProverError
from prover.files.bellperson_vk import decode_vk
from prover.files.zcash import decode_proof
from prover.params import R
from prover.porep.challenges import interactive
from prover.porep.graph import Graph
from prover.porep.labels import replica_id
from prover.porep.public_inputs import public_inputs
from prover.verify import PreparedKey


class Record:
    """polka-storage's 2 KiB PoRep."""

    def __init__(self, folder: Path) -> None:
        record = json.loads((folder / "porep_2kib_verify.json").read_text())
        self.fields = {
            name: bytes.fromhex(record[f"{name}_hex"])
            for name in ("porep_id", "prover_id", "ticket", "seed", "comm_d", "comm_r")
        }
        self.sector_number = record["sector_number"]
        self.key = PreparedKey(decode_vk(bytes.fromhex(record["vk_hex"])))
        self.proof = bytes.fromhex(record["proof_hex"])

    def inputs(self, **changes: bytes | int) -> list[int]:
        fields = self.fields | {name: value for name, value in changes.items() if isinstance(value, bytes)}
        sector = changes.get("sector_number", self.sector_number)
        assert isinstance(sector, int)
        replica = replica_id(fields["prover_id"], sector, fields["ticket"], fields["comm_d"], fields["porep_id"])
        graph = Graph(64, fields["porep_id"], is_legacy=False)
        nodes = interactive(64, range(2), replica, fields["seed"])
        return public_inputs(graph, nodes, replica, fields["comm_d"], fields["comm_r"])


@pytest.fixture(scope="module")
def record(filecoin: Path) -> Record:
    return Record(filecoin)


def test_the_public_proof_verifies_with_inputs_derived_here(record: Record) -> None:
    inputs = record.inputs()
    assert record.key.verify(decode_proof(record.proof), inputs)
    assert inputs[3:7] == [37, 36, 31, 35]


@pytest.mark.parametrize("field", ["porep_id", "prover_id", "ticket", "seed", "comm_d", "comm_r"])
def test_another_byte_anywhere_in_what_is_proved_does_not_verify(record: Record, field: str) -> None:
    proof = decode_proof(record.proof)
    for at in range(0, 32, 5):
        value = bytearray(record.fields[field])
        value[at] ^= 1
        assert not record.key.verify(proof, record.inputs(**{field: bytes(value)})), at
    assert not record.key.verify(proof, record.inputs(sector_number=78))


def test_each_public_input_matters(record: Record) -> None:
    proof, inputs = decode_proof(record.proof), record.inputs()
    for i in range(len(inputs)):
        assert not record.key.verify(proof, [*inputs[:i], (inputs[i] + 1) % R, *inputs[i + 1 :]]), i


def test_no_changed_byte_of_the_proof_verifies(record: Record) -> None:
    inputs = record.inputs()
    for at in range(0, 192, 7):
        changed = bytearray(record.proof)
        changed[at] ^= 1
        try:
            proof = decode_proof(bytes(changed))
        except ProverError:
            continue
        assert not record.key.verify(proof, inputs), at


def test_commitments_that_are_no_field_elements_are_refused(record: Record) -> None:
    graph = Graph(64, bytes(32), is_legacy=False)
    for bad in (R.to_bytes(32, "little"), b"\xff" * 32, b"", bytes(31)):
        with pytest.raises(BadRequest, match="comm_r"):
            public_inputs(graph, [1], bytes(32), bytes(32), bad)


@pytest.mark.parametrize("version", [16, 18])
def test_every_public_seal_record_gives_public_inputs_for_each_of_its_partitions(filecoin: Path, version: int) -> None:
    """Without their verifying keys this shows that the derivation takes every configuration that was ever recorded."""
    from prover.porep.challenges import challenges
    from prover.porep.shapes import SHAPES, RegisteredProof, Rule

    rules = {"": Rule.INTERACTIVE, "SyntheticPoRep": Rule.SYNTHETIC, "NonInteractivePoRep": Rule.NON_INTERACTIVE}
    seen = set()
    with lzma.open(filecoin / f"seal_regression_records-v{version}.jsonl.xz", "rt") as lines:
        records = [json.loads(line) for line in lines]
    for record in records:
        config = record["porep_config"]
        shape = next(s for s in SHAPES if s.sector_bytes == config["sector_size"])
        rule = rules["".join(config["api_features"])]
        legacy = config["api_version"] == "V1_0_0"
        proof = RegisteredProof("record", 0, shape, legacy, rule)
        assert proof.partitions == config["partitions"]
        porep_id, comm_d, comm_r, seed = (bytes(v) for v in (
            config["porep_id"], record["comm_d"], record["comm_r"], record["seed"],
        ))  # fmt: skip
        replica = replica_id(bytes(record["prover_id"]), record["sector_id"], bytes(record["ticket"]), comm_d, porep_id)
        graph = Graph(shape.num_nodes, porep_id, is_legacy=legacy)
        for k in (0, proof.partitions - 1):
            nodes = challenges(proof, k, replica, comm_r, seed)
            inputs = public_inputs(graph, nodes, replica, comm_d, comm_r)
            assert len(inputs) == shape.num_inputs and all(0 <= value < R for value in inputs)
        seen.add((shape.name, rule))
    assert len(seen) >= 5
