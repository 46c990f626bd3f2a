"""The circuit is the field's: public counts of every shape, and its hash row by row.

Figures: rust-fil-proofs' circuit tests (constraints), curio's cuzk-project.md (32 GiB); the hashes are bellpepper's
`cs.hash` of an independently written circuit that reproduces those figures.
"""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest
from porep_samples import TEST_SHAPES
from stacked_oracle import bellpepper_digest

from prover.circuits.gadgets.scalar import bits
from prover.files.densities import densities_of
from prover.porep.circuit import StackedCircuit, build
from prover.porep.gadgets import Gadgets, create_label
from prover.porep.shapes import shape_of
from prover.r1cs.build import Builder
from prover.r1cs.record import Coefficients


@pytest.mark.parametrize(
    ("shape", "constraints", "digest"),
    [
        ("2-0-0", 1_206_212, ""),
        ("8-0-0", 1_199_620, "b9e22ee377bc73c4e08f679252c4f87948f5812be8c95358a6bf87a7279a785f"),
        ("8-4-0", 1_296_576, ""),
        ("8-4-2", 1_346_982, ""),
    ],
)
def test_small_stacked_circuits_have_the_public_counts(shape: str, constraints: int, digest: str) -> None:
    r1cs = build(TEST_SHAPES[shape]).r1cs
    assert (r1cs.num_public + 1, r1cs.num_constraints) == (22, constraints)
    if digest:
        assert bellpepper_digest(r1cs) == digest


def test_the_2_kib_circuit_is_row_for_row_that_of_the_field(circuit: StackedCircuit) -> None:
    wanted = "2c120b1125bd531d5a62b11932b2ae0e0cb47f455cea582994f97534e296bb42"
    assert bellpepper_digest(circuit.r1cs) == wanted


@pytest.mark.slow
def test_a_challenge_of_the_32_gib_circuit_is_row_for_row_that_of_the_field() -> None:
    r1cs = build(dataclasses.replace(shape_of("32GiB"), challenges=1)).r1cs
    assert (r1cs.num_public + 1, r1cs.num_constraints) == (22, 7_238_236)
    assert bellpepper_digest(r1cs) == "5d477993ad4d9f61d0bb3309e06fd6659635ddd6007f0b3fdf81feb9d4ed5ef6"


def test_create_label_has_the_public_count() -> None:
    gadgets = Gadgets(Coefficients())
    builder = Builder("label")
    one = bits(gadgets.coefficients, 256)
    columns = [builder.stamp(one).tolist() for _ in range(38)]
    replica, *parents = [[2 * column for column in row] for row in columns]
    create_label(gadgets, builder, replica, parents, 1, [1] * 64)
    assert builder.num_rows == 532_025


@pytest.mark.parametrize(
    ("size", "inputs", "aux", "constraints", "nnz", "density", "log_domain", "file_bytes"),
    [
        ("2KiB", 40, 2_685_673, 2_687_921, (6_421_005, 2_689_006, 5_824_682), (2_674_908, 685_521), 22, 1_114_707_768),
        ("4KiB", 40, 2_786_423, 2_788_733, (6_697_391, 2_789_942, 6_030_908), (2_773_158, 716_039), 22, 1_142_600_952),
        ("32KiB", 40, 3_075_617, 3_077_985, (7_439_253, 3_079_662, 6_633_458), (3_058_180, 797_481), 22, 1_221_180_984),
        (
            "8MiB", 40, 3_842_449, 3_844_929, (9_388_453, 3_847_886, 8_234_882),
            (3_814_996, 1_011_289), 22, 1_429_027_896,
        ),
        (
            "512MiB", 40, 4_420_837, 4_423_433, (10_872_177, 4_427_326, 9_439_982),
            (4_385_040, 1_174_173), 23, 1_988_841_144,
        ),
    ],
)
def test_every_figure_of_a_small_sectors_circuit(
    size: str, inputs: int, aux: int, constraints: int, nnz: tuple, density: tuple, log_domain: int, file_bytes: int
) -> None:
    assert figures(build(shape_of(size))) == (inputs, aux, constraints, nnz, density, log_domain, file_bytes)


def test_the_32_gib_circuit_has_the_eight_public_figures_quickly_and_small() -> None:
    """In a process of its own, whose VmHWM is this circuit's peak; ru_maxrss would begin with that of its parent."""
    code = (
        f"import re, sys, time; sys.path.insert(0, {str(Path(__file__).parent)!r});"
        "from test_stacked_circuit import figures, build, shape_of; began = time.process_time();"
        "print(figures(build(shape_of('32GiB')))); print(time.process_time() - began);"
        "print(1024 * int(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    found, cpu_s, peak_bytes = done.stdout.splitlines()
    density = (129_753_292, 33_112_281)
    nnz = (309_405_051, 130_327_340, 282_656_500)
    assert found == str((328, 130_169_893, 130_278_541, nnz, density, 27, 47_373_928_632))
    assert 130_278_541 + 328 == 130_278_869
    assert float(cpu_s) < 10
    assert int(peak_bytes) < 2_000_000_000


def test_rows_are_named_by_challenge_layer_and_gadget(circuit: StackedCircuit) -> None:
    from prover.r1cs.evaluate import describe_row

    r1cs = circuit.r1cs
    assert describe_row(r1cs, 0).startswith("preamble")
    assert describe_row(r1cs, 571).startswith("challenge 0, data leaf in D")
    assert describe_row(r1cs, 273_176).startswith("challenge 0, base parent 0, poseidon-level-8")
    assert describe_row(r1cs, 281_103).startswith("challenge 0, expander parent 0")
    assert describe_row(r1cs, 815_957 + 3_584).startswith("challenge 0, label of layer 2, label-first")
    assert describe_row(r1cs, 1_341_811).startswith("challenge 0, replica node in R_last")
    assert describe_row(r1cs, 1_344_245).startswith("challenge 0, column in C, equal")
    assert describe_row(r1cs, 1_344_246).startswith("challenge 1, data leaf in D")


def figures(circuit: StackedCircuit) -> tuple:
    """Of a circuit: inputs with ONE, aux, constraints, nnz with the input rows in A, densities of the aux in A and B,
    log domain, and the bytes of its `.params`.
    """
    r1cs = circuit.r1cs
    inputs = r1cs.num_public + 1
    d = densities_of(r1cs)
    assert (d.b_wires < inputs).sum() == 1
    assert (d.a_wires < inputs).sum() == inputs
    a, b, c = r1cs.nnz
    density = (len(d.a_wires) - inputs, len(d.b_wires) - 1)
    num_g1 = inputs + d.domain_size - 1 + d.num_wires - inputs + len(d.a_wires) + len(d.b_wires)
    file_bytes = 868 + 5 * 4 + 96 * num_g1 + 192 * len(d.b_wires)
    log_domain = d.domain_size.bit_length() - 1
    return inputs, r1cs.num_wires - inputs, r1cs.num_constraints, (a + inputs, b, c), density, log_domain, file_bytes
