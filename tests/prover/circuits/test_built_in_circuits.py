"""Built-in circuits compute what they say, differ from job to job, and name what is broken."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from prover.backends.cpu.field import fr_to_ints, ints_to_fr
from prover.circuits import registry
from prover.circuits.circuit import Circuit
from prover.circuits.gadgets.poseidon_constants import permute
from prover.errors import UnknownCircuit
from prover.params import R
from prover.r1cs.evaluate import describe_row, evaluate_abc, first_unsatisfied

SEED = b"seed"


def solved(name: str, index: int = 0, threads: int = 2) -> tuple[Circuit, np.ndarray, bytes]:
    circuit = registry.build(name)
    witness = np.full((circuit.r1cs.num_wires, 4), 0x1234567, np.uint64)
    inputs = circuit.sample(SEED, index)
    circuit.witness(inputs, witness, threads=threads)
    return circuit, witness, inputs


def broken_row(circuit: Circuit, witness: np.ndarray) -> int | None:
    sides = [np.empty((circuit.r1cs.domain_size, 4), np.uint64) for _ in range(3)]
    evaluate_abc(circuit.r1cs, witness, *sides, threads=2)
    return first_unsatisfied(circuit.r1cs, *sides, threads=2)


@pytest.mark.parametrize("name", ["cubic", "sha256-chain:1", "sha256-chain:2", "sha256-chain:5", "poseidon-merkle:84"])
def test_witnesses_satisfy_their_circuit(name: str) -> None:
    circuit, witness, _ = solved(name)
    assert broken_row(circuit, witness) is None
    assert fr_to_ints(witness[:1]) == [1]


@pytest.mark.parametrize("num_blocks", [1, 2, 3, 7])
def test_sha256_chain_is_hashlibs_sha256(num_blocks: int) -> None:
    circuit, witness, inputs = solved(f"sha256-chain:{num_blocks}")
    assert len(inputs) == 64 * num_blocks - 9
    digest = hashlib.sha256(inputs).digest()
    low, top = fr_to_ints(circuit.public_inputs(witness))
    assert (low | top << 254).to_bytes(32, "little") == digest
    assert circuit.describe(circuit.public_inputs(witness)) == f"sha256 = {digest.hex()}"


@pytest.mark.parametrize("depth", [1, 3])
def test_poseidon_merkle_recomputes_the_root(depth: int) -> None:
    circuit, witness, inputs = solved(f"poseidon-merkle:{depth}")
    digits = [byte % 8 for byte in inputs[:depth]]
    values = [int.from_bytes(inputs[depth + 48 * i :][:48], "little") % R for i in range(1 + 7 * depth)]
    node = values[0]
    for level, digit in enumerate(digits):
        siblings = values[1 + 7 * level : 8 + 7 * level]
        node = permute(8, [*siblings[:digit], node, *siblings[digit:]])
    index = sum(digit << 3 * level for level, digit in enumerate(digits))
    assert fr_to_ints(circuit.public_inputs(witness)) == [index, node]


def test_cubic_is_its_formula() -> None:
    circuit, witness, inputs = solved("cubic")
    x = int.from_bytes(inputs, "little") % R
    assert fr_to_ints(circuit.public_inputs(witness)) == [(x**3 + x + 5) % R]


def test_circuits_of_one_job_have_different_inputs_and_the_same_seed_repeats() -> None:
    circuit = registry.build("sha256-chain:1")
    samples = [circuit.sample(SEED, i) for i in range(20)] + [circuit.sample(b"other", 0)]
    assert len(set(samples)) == len(samples)
    assert circuit.sample(SEED, 3) == samples[3]


def test_thread_count_does_not_change_the_witness() -> None:
    assert (solved("sha256-chain:6", threads=1)[1] == solved("sha256-chain:6", threads=3)[1]).all()


@pytest.mark.parametrize("name", ["sha256-chain:3", "poseidon-merkle:4"])
def test_every_flipped_wire_is_found(name: str) -> None:
    circuit, witness, _ = solved(name)
    rng = np.random.default_rng(1)
    for wire in [1, circuit.r1cs.num_wires - 1, *rng.integers(1, circuit.r1cs.num_wires, 30).tolist()]:
        kept = witness[wire].copy()
        witness[wire] = ints_to_fr([fr_to_ints(witness[wire : wire + 1])[0] + 1])
        assert broken_row(circuit, witness) is not None, f"wire {wire} is free"
        witness[wire] = kept
    assert broken_row(circuit, witness) is None


def test_a_broken_row_is_named_by_gadget_instance_and_part() -> None:
    circuit, witness, _ = solved("sha256-chain:4")
    blocks = next(stamp for stamp in circuit.r1cs.stamps if stamp.template.name == "sha256-block")
    wire = int(blocks.wire0[1])
    witness[wire] = ints_to_fr([2])
    row = broken_row(circuit, witness)
    assert row == blocks.row0[1]
    assert describe_row(circuit.r1cs, row) == "sha256-block 1, schedule, row 0 of 26192"
    last = describe_row(circuit.r1cs, int(blocks.row0[1]) + 26191)
    assert last == "sha256-block 1, chaining value, row 26191 of 26192"


def test_a_broken_level_of_a_path_is_named() -> None:
    circuit, witness, _ = solved("poseidon-merkle:3")
    levels = circuit.r1cs.stamps[0]
    witness[int(levels.wire0[2])] = ints_to_fr([5])
    row = broken_row(circuit, witness)
    assert row is not None and describe_row(circuit.r1cs, row).startswith("level 2, poseidon-level-8 2, index bits")


def test_progress_adds_up_and_cancellation_is_heard() -> None:
    circuit = registry.build("sha256-chain:9")
    r1cs = circuit.r1cs
    witness = np.empty((r1cs.num_wires, 4), np.uint64)
    done: list[int] = []
    circuit.witness(circuit.sample(SEED), witness, progress=done.append, threads=2)
    assert sum(done) == r1cs.num_wires - 3
    sides = [np.empty((r1cs.domain_size, 4), np.uint64) for _ in range(3)]
    done.clear()
    evaluate_abc(r1cs, witness, *sides, progress=done.append, threads=2)
    assert sum(done) == r1cs.num_constraints

    def refuse() -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        circuit.witness(circuit.sample(SEED), witness, check=refuse)
    with pytest.raises(InterruptedError):
        evaluate_abc(r1cs, witness, *sides, check=refuse, threads=2)


@pytest.mark.parametrize(
    "text",
    ["", "sha256", "sha256-chain", "sha256-chain:", "sha256-chain:0", "sha256-chain:-1", "sha256-chain:1.5",
     "sha256-chain:99999999999999999999", "sha256-chain:16385", "sha256-chain:８", "poseidon-merkle:85", "cubic:3",
     "x" * 1000],
)  # fmt: skip
def test_what_is_no_circuit_is_refused_in_one_line_with_the_ranges(text: str) -> None:
    with pytest.raises(UnknownCircuit) as caught:
        registry.build(text)
    message = str(caught.value)
    assert len(message) < 400 and "\n" not in message
    assert "cubic" in message or "(1 to " in message


def test_names_parse() -> None:
    assert registry.parse(" sha256-chain:8 ") == ("sha256-chain", 8)
    assert registry.parse("cubic") == ("cubic", None)
    assert registry.build("poseidon-merkle:2").name == "poseidon-merkle:2"
