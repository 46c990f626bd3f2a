"""The operations of Fr, Fp and Fp2 on kernel values: one LLVM sequence each, every result below its modulus.

`mul mul_inline sqr add sub neg is_zero eq zero_like one_like st` take all three fields; the `_raw` ones see the stored
integer and exist for Fr and Fp. `field` gives them their names by field.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types

from prover.backends.cpu.limbs import (
    FIELDS,
    FP,
    FP2,
    FR,
    I64,
    FieldType,
    call_mul,
    call_sqr,
    element_pointer,
    gen_add,
    gen_sub,
    halves,
    intrinsic,
    is_limbs,
    unite,
    wide,
)


@intrinsic
def mul(tyctx, x, y):
    """Montgomery product, out of line."""
    if not isinstance(x, FIELDS) or x != y:
        return None
    return x(x, x), lambda ctx, b, sig, args: call_mul(b, args[0], args[1], x)


@intrinsic
def mul_inline(tyctx, x, y):
    """The same, inlined (Fr and Fp): for the few loops where the call shows."""
    if not isinstance(x, FIELDS) or x != y:
        return None
    return x(x, x), lambda ctx, b, sig, args: call_mul(b, args[0], args[1], x, inline=x.degree == 1)


@intrinsic
def sqr(tyctx, x):
    """x * x."""
    return (x(x), lambda ctx, b, sig, args: call_sqr(b, args[0], x)) if isinstance(x, FIELDS) else None


@intrinsic
def add(tyctx, x, y):
    """x + y."""
    if not isinstance(x, FIELDS) or x != y:
        return None
    return x(x, x), lambda ctx, b, sig, args: gen_add(b, args[0], args[1], x)


@intrinsic
def sub(tyctx, x, y):
    """x - y."""
    if not isinstance(x, FIELDS) or x != y:
        return None
    return x(x, x), lambda ctx, b, sig, args: gen_sub(b, args[0], args[1], x)


@intrinsic
def neg(tyctx, x):
    """-x."""
    if not isinstance(x, FIELDS):
        return None
    return x(x), lambda ctx, b, sig, args: gen_sub(b, ir.Constant(wide(x), 0), args[0], x)


@intrinsic
def is_zero(tyctx, x):
    """x == 0."""
    if not isinstance(x, FIELDS):
        return None
    return types.boolean(x), lambda ctx, b, sig, args: b.icmp_unsigned("==", args[0], ir.Constant(wide(x), 0))


@intrinsic
def eq(tyctx, x, y):
    """x == y."""
    if not isinstance(x, FIELDS) or x != y:
        return None
    return types.boolean(x, x), lambda ctx, b, sig, args: b.icmp_unsigned("==", args[0], args[1])


@intrinsic
def less_raw(tyctx, x, y):
    """The stored integers compared (Fr, Fp); `y` need not be below the modulus."""
    if not isinstance(x, FIELDS) or x != y:
        return None
    return types.boolean(x, x), lambda ctx, b, sig, args: b.icmp_unsigned("<", args[0], args[1])


@intrinsic
def sub_raw(tyctx, x, y):
    """The stored integers subtracted modulo the word size, no reduction (Fr, Fp)."""
    if not isinstance(x, FIELDS) or x != y:
        return None
    return x(x, x), lambda ctx, b, sig, args: b.sub(args[0], args[1])


@intrinsic
def halve_raw(tyctx, x):
    """The stored integer shifted right by one (Fr, Fp)."""
    if not isinstance(x, FIELDS):
        return None
    return x(x), lambda ctx, b, sig, args: b.lshr(args[0], ir.Constant(wide(x), 1))


@intrinsic
def halve(tyctx, x):
    """x / 2 (Fr, Fp)."""
    if x not in (FR, FP):
        return None

    def codegen(ctx: Any, b: Any, sig: Any, args: Any) -> Any:
        odd = b.trunc(args[0], ir.IntType(1))
        even = b.add(args[0], b.select(odd, ir.Constant(wide(x), x.modulus), ir.Constant(wide(x), 0)))
        return b.lshr(even, ir.Constant(wide(x), 1))

    return x(x), codegen


@intrinsic
def is_odd_raw(tyctx, x):
    """Lowest bit of the stored integer."""
    return (types.boolean(x), lambda ctx, b, sig, args: b.trunc(args[0], ir.IntType(1))) if x in (FR, FP) else None


@intrinsic
def zero_like(tyctx, x):
    """0 of the field of x."""
    return (x(x), lambda ctx, b, sig, args: ir.Constant(wide(x), 0)) if isinstance(x, FIELDS) else None


@intrinsic
def one_like(tyctx, x):
    """1 of the field of x."""
    return (x(x), lambda ctx, b, sig, args: ir.Constant(wide(x), x.mont)) if isinstance(x, FIELDS) else None


@intrinsic
def modulus_like(tyctx, x):
    """The raw integer of the modulus (Fr, Fp)."""
    return (x(x), lambda ctx, b, sig, args: ir.Constant(wide(x), x.modulus)) if x in (FR, FP) else None


@intrinsic
def square_of_r_like(tyctx, x):
    """The raw integer R^2 mod p: takes canonical to Montgomery form by one product (Fr, Fp)."""
    if x not in (FR, FP):
        return None
    return x(x), lambda ctx, b, sig, args: ir.Constant(wide(x), x.mont * x.mont % x.modulus)


@intrinsic
def raw_one_like(tyctx, x):
    """The raw integer 1: takes Montgomery to canonical form by one product (Fr, Fp)."""
    return (x(x), lambda ctx, b, sig, args: ir.Constant(wide(x), 1)) if x in (FR, FP) else None


@intrinsic
def fp2_join(tyctx, c0, c1):
    """c0 + c1 u."""
    return (FP2(FP, FP), lambda ctx, b, sig, args: unite(b, *args)) if c0 == FP and c1 == FP else None


@intrinsic
def fp2_c0(tyctx, x):
    """The real part."""
    return (FP(FP2), lambda ctx, b, sig, args: halves(b, args[0])[0]) if x == FP2 else None


@intrinsic
def fp2_c1(tyctx, x):
    """The part at u."""
    return (FP(FP2), lambda ctx, b, sig, args: halves(b, args[0])[1]) if x == FP2 else None


@intrinsic
def st(tyctx, array, index, value):
    """Stores a value of any field as element `index`, counted in elements of its own field."""
    if not is_limbs(array) or not isinstance(index, types.Integer) or not isinstance(value, FIELDS):
        return None

    def codegen(ctx: Any, b: Any, sig: Any, args: Any) -> Any:
        b.store(args[2], element_pointer(ctx, b, sig.args[0], args[0], args[1], value), align=8)
        return ctx.get_dummy_value()

    return types.none(array, types.int64, value), codegen


@intrinsic
def ld(tyctx, array, index):
    """Coordinate `index` of a point array: Fp of a 3-D array (G1), Fp2 of a 4-D one (G2).

    The dimension picks the field, so that one source serves both groups.
    """
    if not is_limbs(array) or array.ndim not in (3, 4) or not isinstance(index, types.Integer):
        return None
    field: Any = FP if array.ndim == 3 else FP2

    def codegen(ctx: Any, b: Any, sig: Any, args: Any) -> Any:
        return b.load(element_pointer(ctx, b, sig.args[0], args[0], args[1], field), align=8)

    return field(array, types.int64), codegen


@intrinsic
def raw_from_u64(tyctx, like, x):
    """The raw integer x as a value of the field of `like`."""
    if like not in (FR, FP) or not isinstance(x, types.Integer):
        return None
    return like(like, types.uint64), lambda ctx, b, sig, args: b.zext(args[1], wide(like))


@intrinsic
def fr_limb(tyctx, x, index):
    """Limb `index` of the stored integer of an Fr value, as uint64."""
    if x != FR or not isinstance(index, types.Integer):
        return None

    def codegen(ctx: Any, b: Any, sig: Any, args: Any) -> Any:
        shift = b.zext(b.mul(args[1], ir.Constant(I64, 64)), wide(FR))
        return b.trunc(b.lshr(args[0], shift), I64)

    return types.uint64(FR, types.int64), codegen


@intrinsic
def conjugate(tyctx, x):
    """c0 - c1 u of an Fp2 value; an Fp value is its own conjugate."""
    if x not in (FP, FP2):
        return None

    def codegen(ctx: Any, b: Any, sig: Any, args: Any) -> Any:
        if x == FP:
            return args[0]
        c0, c1 = halves(b, args[0])
        return unite(b, c0, gen_sub(b, ir.Constant(c1.type, 0), c1, FP))

    return x(x), codegen


@intrinsic
def is_reduced(tyctx, x):
    """Whether the stored integers are below the modulus, as everything here takes for granted."""
    if not isinstance(x, FIELDS):
        return None

    def codegen(ctx: Any, b: Any, sig: Any, args: Any) -> Any:
        if isinstance(x, FieldType):
            return b.icmp_unsigned("<", args[0], ir.Constant(wide(x), x.modulus))
        return b.and_(*(b.icmp_unsigned("<", c, ir.Constant(c.type, FP.modulus)) for c in halves(b, args[0])))

    return types.boolean(x), codegen
