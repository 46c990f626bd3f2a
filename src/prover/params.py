"""The constants of BLS12-381, each with its derivation; nothing here computes more than Python integers at import.

Source: IETF draft-irtf-cfrg-pairing-friendly-curves, section 4.2.1; x = -0xd201000000010000.
"""

from __future__ import annotations

P = 0x1A0111EA397FE69A4B1BA7B6434BACD764774B84F38512BF6730D2A0F6B0F6241EABFFFEB153FFFFB9FEFFFFFFFFAAAB
"""Base field modulus, 381 bits."""
R = 0x73EDA753299D7D483339D80809A1D80553BDA402FFFE5BFEFFFFFFFF00000001
"""Scalar field modulus = order of G1 and G2, 255 bits; x^4 - x^2 + 1."""
X = -0xD201000000010000
"""The curve's parameter."""
FP_LIMBS, FR_LIMBS = 6, 4
FP_MONT = (1 << 384) % P
"""R of the Montgomery form of Fp: 1 is stored as this."""
FR_MONT = (1 << 256) % R
TWO_ADICITY = 32
"""2^32 divides r - 1."""
ROOT_SNARKJS = pow(5, (R - 1) >> TWO_ADICITY, R)
"""2^32-th root of unity used by circom and snarkjs: 5 is the smallest non-residue."""
ROOT_BELLMAN = pow(7, (R - 1) >> TWO_ADICITY, R)
"""2^32-th root of unity used by bellman and Filecoin: 7 generates the multiplicative group."""
COSET_BELLMAN = 7
"""Shift of bellman's coset."""
B_G1 = 4
"""G1: y^2 = x^3 + 4."""
B_G2 = (4, 4)
"""G2: y^2 = x^3 + 4(1 + u), c0 first."""
G1_GENERATOR = (
    0x17F1D3A73197D7942695638C4FA9AC0FC3688C4F9774B905A14E3A3F171BAC586C55E83FF97A1AEFFB3AF00ADB22C6BB,
    0x08B3F481E3AAA0F1A09E30ED741D8AE4FCF5E095D5D00AF600DB18CB2C04B3EDD03CC744A2888AE40CAA232946C5E7E1,
)
G2_GENERATOR = (
    (
        0x024AA2B2F08F0A91260805272DC51051C6E47AD4FA403B02B4510B647AE3D1770BAC0326A805BBEFD48056C8C121BDB8,
        0x13E02B6052719F607DACD3A088274F65596BD0D09920B61AB5DA61BBDC7F5049334CF11213945D57E5AC7D055D042B7E,
    ),
    (
        0x0CE5D527727D6E118CC9CDC6DA2E351AADFD9BAA8CBDD3A76D429A695160D12C923AC9CC3BACA289E193548608B82801,
        0x0606C4A02EA734CC32ACD2B02BC28B99CB3E287E85A763AF267492AB572E99AB3F370D275CEC1DA1AAA9075FF05F79BE,
    ),
)
"""((x.c0, x.c1), (y.c0, y.c1))."""


def root_of_unity(log_size: int, root: int = ROOT_SNARKJS) -> int:
    """The generator of the subgroup of order 2**log_size below the given 2^32-th root.

    Raises:
        DomainTooLarge: log_size exceeds the two-adicity of Fr.
    """
    from prover.errors import DomainTooLarge

    if log_size > TWO_ADICITY:
        raise DomainTooLarge(f"domain 2^{log_size} exceeds 2^{TWO_ADICITY}, the largest that Fr has")
    return pow(root, 1 << (TWO_ADICITY - log_size), R)
