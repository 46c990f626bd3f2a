"""A file's prime decides its curve; only BLS12-381 passes, and every other curve is refused by its name."""

from __future__ import annotations

from prover.params import P, R

SCALAR_PRIMES = {
    R: "bls12381",
    21888242871839275222246405745257275088548364400416034343698204186575808495617: "bn128",
    # secp256r1 base field and Goldilocks, the other primes circom offers.
    0xFFFFFFFF00000001000000000000000000000000FFFFFFFFFFFFFFFFFFFFFFFF: "secq256r1",
    0xFFFFFFFF00000001: "goldilocks",
    28948022309329048855892746252171976963363056481941560715954676764349967630337: "pallas",
    28948022309329048855892746252171976963363056481941647379679742748393362948097: "vesta",
}
BASE_PRIMES = {
    P: "bls12381",
    21888242871839275222246405745257275088696311157297823662689037894645226208583: "bn128",
}


def why_not_scalar(prime: int) -> str:
    """Empty for the scalar field of BLS12-381, else the sentence that refuses it."""
    return _why_not(SCALAR_PRIMES.get(prime, ""), prime, "scalar field")


def why_not_base(prime: int) -> str:
    """Empty for the base field of BLS12-381, else the sentence that refuses it."""
    return _why_not(BASE_PRIMES.get(prime, ""), prime, "base field")


def why_not_curve(name: object) -> str:
    """Empty for the name snarkjs gives BLS12-381, else the sentence that refuses it."""
    if isinstance(name, str) and name.lower().replace("-", "").replace("_", "") == "bls12381":
        return ""
    return f"curve {str(name)[:40]!r} is not supported here yet; only bls12381 is"


def _why_not(name: str, prime: int, which: str) -> str:
    if name == "bls12381":
        return ""
    what = f"curve {name}" if name else f"prime {hex(prime)[:22]}... ({prime.bit_length()} bits)"
    return f"{which} of {what} is not supported here yet; only bls12381 is: compile with --prime bls12381"
