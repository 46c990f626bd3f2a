"""A field element in a kernel is one wide integer (i256, i384, i768), Montgomery form, always below the modulus.

These are the LLVM generators under `field`. Two rules keep a cached kernel right: no module-level constants
(immediates only; numba's cache mixes up internal globals of inlined functions), and every shared function is
``linkonce_odr`` so that each module carries its own copy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import extending, types
from numba.extending import models, register_model

from prover.params import P, R

I1, I64, I128 = ir.IntType(1), ir.IntType(64), ir.IntType(128)
MASK64 = (1 << 64) - 1
intrinsic: Any = extending.intrinsic
"""Untyped for the type checker: what a kernel calls has another signature than what is written here."""


class FieldType(types.Type):
    """A prime field as a numba type; values are immutable wide integers."""

    def __init__(self, tag: str, modulus: int, limbs: int) -> None:
        self.tag, self.modulus, self.limbs, self.degree = tag, modulus, limbs, 1
        self.words = limbs
        self.mont = (1 << 64 * limbs) % modulus
        super().__init__(name=f"Field_{tag}")


class QuadraticType(types.Type):
    """Fp2 = Fp[u]/(u^2 + 1): c0 in the low half of the integer, c1 in the high half."""

    def __init__(self, base: FieldType) -> None:
        self.tag, self.base, self.degree = base.tag + "2", base, 2
        self.words = 2 * base.limbs
        self.mont = base.mont
        super().__init__(name=f"Field_{self.tag}")


class _FieldModel(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: Any) -> None:
        super().__init__(dmm, fe_type, ir.IntType(64 * fe_type.words))


register_model(FieldType)(_FieldModel)
register_model(QuadraticType)(_FieldModel)

FR = FieldType("fr", R, 4)
FP = FieldType("fp", P, 6)
FP2 = QuadraticType(FP)
FIELDS = (FieldType, QuadraticType)


def wide(field: Any) -> ir.IntType:
    return ir.IntType(64 * field.words)


def split(b: ir.IRBuilder, value: Any, count: int) -> list[Any]:
    """Limbs of a wide integer, least significant first."""
    return [b.trunc(b.lshr(value, ir.Constant(value.type, 64 * i)), I64) for i in range(count)]


def join(b: ir.IRBuilder, limbs: list[Any]) -> Any:
    """The wide integer of these limbs."""
    width = ir.IntType(64 * len(limbs))
    total = b.zext(limbs[0], width)
    for i, limb in enumerate(limbs[1:], 1):
        total = b.or_(total, b.shl(b.zext(limb, width), ir.Constant(width, 64 * i)))
    return total


def halves(b: ir.IRBuilder, value: Any) -> tuple[Any, Any]:
    """c0 and c1 of an Fp2 integer."""
    half = ir.IntType(value.type.width // 2)
    return b.trunc(value, half), b.trunc(b.lshr(value, ir.Constant(value.type, half.width)), half)


def unite(b: ir.IRBuilder, c0: Any, c1: Any) -> Any:
    """The Fp2 integer of c0 and c1."""
    width = ir.IntType(2 * c0.type.width)
    return b.or_(b.zext(c0, width), b.shl(b.zext(c1, width), ir.Constant(width, c0.type.width)))


def reduce_once(b: ir.IRBuilder, value: Any, modulus: int) -> Any:
    """[0, 2p) to [0, p)."""
    p = ir.Constant(value.type, modulus)
    return b.select(b.icmp_unsigned("<", value, p), value, b.sub(value, p))


def gen_add(b: ir.IRBuilder, x: Any, y: Any, field: Any) -> Any:
    """x + y; both moduli leave a spare bit at the top, so the sum does not overflow."""
    if field.degree == 1:
        return reduce_once(b, b.add(x, y), field.modulus)
    (x0, x1), (y0, y1) = halves(b, x), halves(b, y)
    return unite(b, gen_add(b, x0, y0, field.base), gen_add(b, x1, y1, field.base))


def gen_sub(b: ir.IRBuilder, x: Any, y: Any, field: Any) -> Any:
    if field.degree == 1:
        borrow = b.icmp_unsigned("<", x, y)
        return b.add(b.sub(x, y), b.select(borrow, ir.Constant(x.type, field.modulus), ir.Constant(x.type, 0)))
    (x0, x1), (y0, y1) = halves(b, x), halves(b, y)
    return unite(b, gen_sub(b, x0, y0, field.base), gen_sub(b, x1, y1, field.base))


def gen_mul(b: ir.IRBuilder, x: Any, y: Any, field: FieldType) -> Any:
    """Montgomery product, operand scanning without a carry word.

    Needs the modulus' top limb below 2^63 - 1 (true for Fr and Fp): then the running sum never needs limb n.
    """
    n, p = field.limbs, [(field.modulus >> 64 * i) & MASK64 for i in range(field.limbs)]
    inv = ir.Constant(I64, -pow(field.modulus, -1, 1 << 64) % (1 << 64))
    xs, ys = split(b, x, n), split(b, y, n)

    def up(v: Any) -> Any:
        return b.zext(v, I128)

    def cut(v: Any) -> tuple[Any, Any]:
        return b.trunc(v, I64), b.trunc(b.lshr(v, ir.Constant(I128, 64)), I64)

    t: list[Any] = [ir.Constant(I64, 0)] * n
    for i in range(n):
        low, carry_a = cut(b.add(b.mul(up(xs[0]), up(ys[i])), up(t[0])))
        m = b.mul(low, inv)
        _, carry_m = cut(b.add(b.mul(up(m), ir.Constant(I128, p[0])), up(low)))
        for j in range(1, n):
            low, carry_a = cut(b.add(b.add(b.mul(up(xs[j]), up(ys[i])), up(t[j])), up(carry_a)))
            t[j - 1], carry_m = cut(b.add(b.add(b.mul(up(m), ir.Constant(I128, p[j])), up(low)), up(carry_m)))
        t[n - 1] = b.add(carry_a, carry_m)
    return reduce_once(b, join(b, t), field.modulus)


def gen_product(b: ir.IRBuilder, x: Any, y: Any, limbs: int) -> Any:
    """The full product of two integers of so many limbs, row by row."""
    xs, ys = split(b, x, limbs), split(b, y, limbs)
    t: list[Any] = [ir.Constant(I64, 0)] * (2 * limbs)
    for i in range(limbs):
        carry: Any = ir.Constant(I64, 0)
        for j in range(limbs):
            term = b.mul(b.zext(xs[j], I128), b.zext(ys[i], I128))
            total = b.add(b.add(term, b.zext(t[i + j], I128)), b.zext(carry, I128))
            t[i + j], carry = b.trunc(total, I64), b.trunc(b.lshr(total, ir.Constant(I128, 64)), I64)
        t[i + limbs] = carry
    return join(b, t)


def gen_reduce(b: ir.IRBuilder, wide_value: Any, field: FieldType) -> Any:
    """Montgomery reduction of a value below p * 2^(64 limbs)."""
    n, p = field.limbs, [(field.modulus >> 64 * i) & MASK64 for i in range(field.limbs)]
    inv = ir.Constant(I64, -pow(field.modulus, -1, 1 << 64) % (1 << 64))
    t = split(b, wide_value, 2 * n)
    above: Any = ir.Constant(I64, 0)
    for i in range(n):
        m = b.mul(t[i], inv)
        carry: Any = ir.Constant(I64, 0)
        for j in range(n):
            term = b.mul(b.zext(m, I128), ir.Constant(I128, p[j]))
            total = b.add(b.add(term, b.zext(t[i + j], I128)), b.zext(carry, I128))
            t[i + j], carry = b.trunc(total, I64), b.trunc(b.lshr(total, ir.Constant(I128, 64)), I64)
        total = b.add(b.add(b.zext(t[i + n], I128), b.zext(carry, I128)), b.zext(above, I128))
        t[i + n], above = b.trunc(total, I64), b.trunc(b.lshr(total, ir.Constant(I128, 64)), I64)
    return reduce_once(b, join(b, t[n:]), field.modulus)


def gen_mul_fp2(b: ir.IRBuilder, x: Any, y: Any, base: FieldType) -> Any:
    """Karatsuba on full products, reduced twice instead of three times.

    The sums of coordinates stay below 2p and their product's difference below 2p^2; a negative difference is lifted by
    p * 2^384: all within what `gen_reduce` takes.
    """
    (x0, x1), (y0, y1) = halves(b, x), halves(b, y)
    low, high = gen_product(b, x0, y0, base.limbs), gen_product(b, x1, y1, base.limbs)
    cross = gen_product(b, b.add(x0, x1), b.add(y0, y1), base.limbs)
    imag = b.sub(b.sub(cross, low), high)
    lift = ir.Constant(low.type, base.modulus << 64 * base.limbs)
    borrow = b.icmp_unsigned("<", low, high)
    real = b.add(b.sub(low, high), b.select(borrow, lift, ir.Constant(low.type, 0)))
    return unite(b, gen_reduce(b, real, base), gen_reduce(b, imag, base))


def shared(b: ir.IRBuilder, name: str, args: list[Any], body: Callable[..., Any], *, inline: bool = False) -> Any:
    """Calls the module's one copy of a function on wide integers, making it on first use."""
    name = f"zk_{name}_inline" if inline else f"zk_{name}"
    function = b.module.globals.get(name)
    if function is None:
        width = args[0].type
        function = ir.Function(b.module, ir.FunctionType(width, [width] * len(args)), name)
        function.linkage = "linkonce_odr"
        function.attributes.add("nounwind")
        function.attributes.add("alwaysinline" if inline else "noinline")
        inner = ir.IRBuilder(function.append_basic_block("entry"))
        inner.ret(body(inner, *function.args))
    return b.call(function, args)


def call_mul(b: ir.IRBuilder, x: Any, y: Any, field: Any, *, inline: bool = False) -> Any:
    """x * y in any of the three fields; Fp2 by Karatsuba."""
    if field.degree == 1:
        return shared(b, field.tag + "_mul", [x, y], lambda e, u, v: gen_mul(e, u, v, field), inline=inline)
    return shared(b, field.tag + "_mul", [x, y], lambda e, u, v: gen_mul_fp2(e, u, v, field.base))


def call_sqr(b: ir.IRBuilder, x: Any, field: Any, *, inline: bool = False) -> Any:
    """x^2; in Fp2 two products: (a + bu)^2 = (a + b)(a - b) + 2abu."""
    if field.degree == 1:
        return call_mul(b, x, x, field, inline=inline)
    base = field.base

    def complex_square(e: ir.IRBuilder, u: Any) -> Any:
        u0, u1 = halves(e, u)
        real = call_mul(e, gen_add(e, u0, u1, base), gen_sub(e, u0, u1, base), base)
        imag = call_mul(e, u0, u1, base)
        return unite(e, real, gen_add(e, imag, imag, base))

    return shared(b, field.tag + "_sqr", [x], complex_square)


def element_pointer(ctx: Any, b: ir.IRBuilder, array_type: Any, array: Any, index: Any, field: Any) -> Any:
    """Address of element `index` of a C-contiguous uint64 array, as a pointer to a wide integer."""
    data = ctx.make_array(array_type)(ctx, b, array).data
    address = b.gep(data, [b.mul(index, ir.Constant(I64, field.words))])
    return b.bitcast(address, wide(field).as_pointer())


def is_limbs(array: Any) -> bool:
    return isinstance(array, types.Array) and array.dtype == types.uint64 and array.layout == "C"


def make_load(field: Any) -> Any:
    """An intrinsic ``load(array, i)``: element i, counted in elements whatever the array's shape."""

    @intrinsic
    def load(tyctx, array, index):
        if not is_limbs(array) or not isinstance(index, types.Integer):
            return None

        def codegen(ctx: Any, b: Any, sig: Any, args: Any) -> Any:
            return b.load(element_pointer(ctx, b, sig.args[0], args[0], args[1], field), align=8)

        return field(array, types.int64), codegen

    return load


def make_constant(field: Any, value: int) -> Any:
    """An intrinsic ``constant()`` of the given raw integer."""

    @intrinsic
    def constant(tyctx):
        return field(), lambda ctx, b, sig, args: ir.Constant(wide(field), value)

    return constant
