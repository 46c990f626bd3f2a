"""`proof.json`, `public.json` and `verification_key.json` as snarkjs writes them; only members of G1 and G2 are read.

Coordinates are decimal strings, c0 first, points affine with z = 1; infinity is ["0", "1", "0"].
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from prover.backends.cpu.field import fp_to_ints, ints_to_fp
from prover.errors import Mismatch
from prover.files.atomic import write_json
from prover.files.canonical import require_points
from prover.files.json_text import JsonFile
from prover.files.pairing_target import pairing_coordinates
from prover.files.primes import why_not_curve
from prover.keys import Proof, VerifyingKey
from prover.params import P, R

U64 = npt.NDArray[np.uint64]
MAX_PUBLIC = 1 << 20


def read_proof(path: str | os.PathLike[str]) -> Proof:
    """The proof of a `proof.json`.

    Raises:
        BadFile: malformed, another protocol or curve, a coordinate not below p, a point that is infinity, off its
            curve or outside its subgroup.
    """
    file = JsonFile(path)
    _require_protocol(file)
    return Proof(_g1(file, "pi_a"), _g2(file, "pi_b"), _g1(file, "pi_c"))


def write_proof(path: str | os.PathLike[str], proof: Proof) -> None:
    write_json(
        path,
        {
            "pi_a": _print_g1(proof.a),
            "pi_b": _print_g2(proof.b),
            "pi_c": _print_g1(proof.c),
            "protocol": "groth16",
            "curve": "bls12381",
        },
    )


def read_public(path: str | os.PathLike[str]) -> list[int]:
    """The public inputs of a `public.json`, without ONE.

    Raises:
        BadFile: not an array of decimal strings below r.
    """
    file = JsonFile(path)
    values = file.array(file.root, "")
    if len(values) > MAX_PUBLIC:
        raise file.bad("", f"has {len(values)} inputs, more than {MAX_PUBLIC}")
    return [file.integer(value, f"[{i}]", R, "the modulus of Fr") for i, value in enumerate(values)]


def write_public(path: str | os.PathLike[str], values: Sequence[int]) -> None:
    write_json(path, [str(value) for value in values])


def read_verification_key(path: str | os.PathLike[str]) -> VerifyingKey:
    """The key of a `verification_key.json`; `vk_alphabeta_12` is not believed and not read.

    Raises:
        BadFile: as `read_proof`, or an IC that does not fit nPublic.
    """
    file = JsonFile(path)
    _require_protocol(file)
    num_public = file.integer(file.field("nPublic"), "nPublic", MAX_PUBLIC + 1, str(MAX_PUBLIC + 1))
    listed = file.array(file.field("IC"), "IC", num_public + 1)
    ic = np.stack([_parse_g1(file, value, f"IC[{i}]") for i, value in enumerate(listed)])
    require_points(ic, "IC", lambda why, i: file.bad(f"IC[{i}]", why))
    return VerifyingKey(
        alpha_g1=_g1(file, "vk_alpha_1"),
        beta_g2=_g2(file, "vk_beta_2"),
        gamma_g2=_g2(file, "vk_gamma_2"),
        delta_g2=_g2(file, "vk_delta_2"),
        ic=ic,
    )


def write_verification_key(path: str | os.PathLike[str], vk: VerifyingKey) -> None:
    target = pairing_coordinates(vk.alpha_g1, vk.beta_g2)
    write_json(
        path,
        {
            "protocol": "groth16",
            "curve": "bls12381",
            "nPublic": vk.num_public,
            "vk_alpha_1": _print_g1(vk.alpha_g1),
            "vk_beta_2": _print_g2(vk.beta_g2),
            "vk_gamma_2": _print_g2(vk.gamma_g2),
            "vk_delta_2": _print_g2(vk.delta_g2),
            "vk_alphabeta_12": [[[str(c) for c in fp2] for fp2 in fp6] for fp6 in target],
            "IC": [_print_g1(point) for point in vk.ic],
        },
    )


def require_public_count(values: Sequence[int], vk: VerifyingKey) -> None:
    """Raises Mismatch unless there is an input for each public wire of the key."""
    if len(values) != vk.num_public:
        raise Mismatch(f"{len(values)} public inputs given, the verification key takes {vk.num_public}")


def _require_protocol(file: JsonFile) -> None:
    protocol = file.field("protocol")
    if protocol != "groth16":
        raise file.bad("protocol", f"is {str(protocol)[:24]!r}, and only 'groth16' can be used here")
    if fault := why_not_curve(file.field("curve")):
        raise file.bad("curve", fault)


def _g1(file: JsonFile, name: str) -> U64:
    return _checked(file, name, _parse_g1(file, file.field(name), name))


def _g2(file: JsonFile, name: str) -> U64:
    return _checked(file, name, _parse_g2(file, file.field(name), name))


def _checked(file: JsonFile, name: str, point: U64) -> U64:
    require_points(point[None], name, lambda why, _: file.bad(name, why), allow_infinity=False)
    return point


def _parse_g1(file: JsonFile, value: object, place: str) -> U64:
    listed = file.array(value, place, 3)
    x, y, z = (file.integer(v, f"{place}[{i}]", P, "the modulus of Fp") for i, v in enumerate(listed))
    if (x, y, z) == (0, 1, 0):
        return np.zeros((2, 6), np.uint64)
    if z != 1:
        raise file.bad(f"{place}[2]", "is not 1: points must be affine")
    return ints_to_fp([x, y]).reshape(2, 6)


def _parse_g2(file: JsonFile, value: object, place: str) -> U64:
    numbers = []
    for i, pair in enumerate(file.array(value, place, 3)):
        for j, v in enumerate(file.array(pair, f"{place}[{i}]", 2)):
            numbers.append(file.integer(v, f"{place}[{i}][{j}]", P, "the modulus of Fp"))
    if numbers == [0, 0, 1, 0, 0, 0]:
        return np.zeros((2, 2, 6), np.uint64)
    if numbers[4:] != [1, 0]:
        raise file.bad(f"{place}[2]", "is not 1: points must be affine")
    return ints_to_fp(numbers[:4]).reshape(2, 2, 6)


def _print_g1(point: U64) -> list[str]:
    x, y = fp_to_ints(point)
    return [str(x), str(y), "1"] if x or y else ["0", "1", "0"]


def _print_g2(point: U64) -> list[list[str]]:
    x0, x1, y0, y1 = (str(v) for v in fp_to_ints(point))
    return [[x0, x1], [y0, y1], ["1", "0"]] if point.any() else [["0", "0"], ["1", "0"], ["0", "0"]]
