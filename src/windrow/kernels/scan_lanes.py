"""Vectors of one cache line as Numba values, so that row loops say themselves what is loaded, merged and stored.

LLVM's own vectoriser guards every loop with overlap tests, falls back to single elements on rows that are updated in
place, leaves up to fifteen elements over, and gives up on a loop that prefetches. Here a vector is a value of generic
LLVM vector type: two registers on AVX2, one on AVX-512, four on NEON. Memory is named by plain addresses, which, unlike
arrays, cost nothing to pass on and are not reference-counted in every call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import extending
from numba.core import cgutils, types
from numba.core.datamodel import models
from numba.extending import register_model, typeof_impl
from numba.np.numpy_support import from_dtype

LINE = 64  # bytes of a vector of totals, and of a cache line on x86 and most ARM cores

Typed = tuple[Any, Callable[..., Any]]
# Numba's own building blocks, which are typed for what its compiler sees, or not at all.
llvm: Any = cgutils
native: Any = extending


def intrinsic(typer: Callable[..., Typed]) -> Callable[..., Any]:
    """A function of compiled code, written as the LLVM instructions it stands for."""
    function: Callable[..., Any] = native.intrinsic(typer)
    return function


class Merge:
    """How partial results become one, and from cells of which type; a type of its own in compiled code.

    ``rule`` is one of: sum; squares (adds the squares of the cells); carried (adds partial sums, in which a NaN is not
    a missing cell but the sum of opposite infinities); min; max.
    """

    def __init__(self, rule: str, cell: np.dtype[Any], total: np.dtype[Any]) -> None:
        self.rule = rule
        self.cell = cell
        self.total = total


class MergeType(types.Type):
    def __init__(self, rule: str, cell: Any, total: Any) -> None:
        self.rule = rule
        self.cell = cell
        self.total = total
        self.lanes = LINE * 8 // total.bitwidth
        super().__init__(name=f"Merge({rule}, {cell}, {total})")


class Lanes(types.Type):
    """Several values of one type, in a vector."""

    def __init__(self, element: Any, count: int) -> None:
        self.element = element
        self.count = count
        super().__init__(name=f"Lanes({element}, {count})")


@typeof_impl.register(Merge)
def _typeof_merge(value: Merge, context: object) -> MergeType:
    return MergeType(value.rule, from_dtype(value.cell), from_dtype(value.total))


@register_model(MergeType)
class _MergeModel(models.OpaqueModel):
    pass


def _unbox_merge(kind: MergeType, value: Any, context: Any) -> Any:
    return native.NativeValue(context.context.get_dummy_value())


native.unbox(MergeType)(_unbox_merge)


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Lanes) -> None:
        super().__init__(manager, kind, _vector(kind))  # type: ignore[no-untyped-call]


def _scalar(element: Any) -> ir.Type:
    known = {types.float32: ir.FloatType(), types.float64: ir.DoubleType()}
    return known.get(element) or ir.IntType(element.bitwidth)


def _vector(kind: Lanes) -> ir.VectorType:
    return ir.VectorType(_scalar(kind.element), kind.count)


def _constant(kind: Lanes, value: Any) -> ir.Constant:
    return ir.Constant(_vector(kind), [value] * kind.count)


def _cells(merge: MergeType) -> Lanes:
    return Lanes(merge.cell, merge.lanes)


def _totals(merge: MergeType) -> Lanes:
    return Lanes(merge.total, merge.lanes)


def _load(builder: Any, address: Any, kind: Lanes) -> Any:
    loaded = builder.load(builder.inttoptr(address, _vector(kind).as_pointer()))
    loaded.align = kind.element.bitwidth // 8
    return loaded


@intrinsic
def cell_size(typing: Any, merge: MergeType) -> Typed:
    """Bytes of a cell."""
    return types.int64(merge), lambda *_: ir.Constant(ir.IntType(64), merge.cell.bitwidth // 8)


@intrinsic
def total_size(typing: Any, merge: MergeType) -> Typed:
    """Bytes of a total."""
    return types.int64(merge), lambda *_: ir.Constant(ir.IntType(64), merge.total.bitwidth // 8)


@intrinsic
def load_cells(typing: Any, merge: MergeType, address: types.Integer) -> Typed:
    """As many cells as totals fit a line."""
    kind = _cells(merge)
    return kind(merge, types.int64), lambda context, builder, signature, values: _load(builder, values[1], kind)


@intrinsic
def load(typing: Any, merge: MergeType, address: types.Integer) -> Typed:
    kind = _totals(merge)
    return kind(merge, types.int64), lambda context, builder, signature, values: _load(builder, values[1], kind)


@intrinsic
def store(typing: Any, address: types.Integer, value: Lanes) -> Typed:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        pointer = builder.inttoptr(values[0], values[1].type.as_pointer())
        builder.store(values[1], pointer, align=value.element.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(types.int64, value), generate


@intrinsic
def take(typing: Any, merge: MergeType, to: types.Integer, origin: types.Integer) -> Typed:
    """Copy one total."""
    pointer = _scalar(merge.total).as_pointer()

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        builder.store(builder.load(builder.inttoptr(values[2], pointer)), builder.inttoptr(values[1], pointer))
        return context.get_dummy_value()

    return types.void(merge, types.int64, types.int64), generate


@intrinsic
def copy_bytes(typing: Any, to: types.Integer, origin: types.Integer, count: types.Integer) -> Typed:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        byte = ir.IntType(8).as_pointer()
        target, source = (builder.inttoptr(value, byte) for value in values[:2])
        llvm.raw_memcpy(builder, target, source, values[2], 1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


def _prefetch(writing: int) -> Callable[..., Typed]:
    def typer(typing: Any, address: types.Integer) -> Typed:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
            kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
            function = llvm.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
            numbers = [ir.Constant(word, number) for number in (writing, 3, 1)]
            builder.call(function, [builder.inttoptr(values[0], byte), *numbers])
            return context.get_dummy_value()

        return types.void(types.int64), generate

    return typer


will_read = intrinsic(_prefetch(0))
will_write = intrinsic(_prefetch(1))


def _identity(merge: MergeType) -> Any:
    """What merges with anything without changing it."""
    floating = isinstance(merge.total, types.Float)
    if merge.rule not in ("min", "max"):
        return 0.0 if floating else 0
    if floating:
        return float("inf") if merge.rule == "min" else float("-inf")
    return merge.total.maxval if merge.rule == "min" else merge.total.minval


@intrinsic
def identity(typing: Any, merge: MergeType) -> Typed:
    kind = _totals(merge)
    return kind(merge), lambda *_: _constant(kind, _identity(merge))


def _extreme(merge: MergeType) -> str:
    """LLVM's name for the smaller or larger of two vectors."""
    if isinstance(merge.total, types.Float):
        return f"llvm.{merge.rule}num.v{merge.lanes}f{merge.total.bitwidth}"
    sign = "s" if merge.total.signed else "u"
    return f"llvm.{sign}{merge.rule}.v{merge.lanes}i{merge.total.bitwidth}"


@intrinsic
def join(typing: Any, merge: MergeType, a: Lanes, b: Lanes) -> Typed:
    """Two vectors of totals merged lane by lane."""
    floating = isinstance(merge.total, types.Float)

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        _, one, other = values
        if merge.rule not in ("min", "max"):
            return builder.fadd(one, other) if floating else builder.add(one, other)
        # Contributions are neither NaN nor minus zero: one instruction will do.
        flags = ("nnan", "nsz") if floating else ()
        kind = ir.FunctionType(one.type, [one.type, one.type])
        function = llvm.get_or_insert_function(builder.module, kind, _extreme(merge))
        return builder.call(function, [one, other], fastmath=flags)

    return a(merge, a, a), generate


def _converted(builder: Any, values: Any, source: Lanes, target: Lanes) -> Any:
    if source.element.bitwidth == target.element.bitwidth:
        return values
    if isinstance(source.element, types.Float):
        return builder.fpext(values, _vector(target))
    return (builder.sext if source.element.signed else builder.zext)(values, _vector(target))


@intrinsic
def contribution(typing: Any, merge: MergeType, value: Lanes) -> Typed:
    """What cells bring into a merge: converted, or squared; a NaN brings the identity."""
    kind = _totals(merge)
    floating = isinstance(value.element, types.Float)

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        cells = values[1]
        result = _converted(builder, cells, value, kind)
        if not floating or merge.rule == "carried":
            return result
        if merge.rule == "squares":
            result = builder.fmul(result, result)
        elif merge.rule in ("min", "max"):
            # Minus zero becomes zero, or the sign of a result would depend on the order of merging.
            result = builder.fadd(result, _constant(kind, 0.0))
        there = builder.fcmp_ordered("ord", cells, cells)
        return builder.select(there, result, _constant(kind, _identity(merge)))

    return kind(merge, value), generate


def _bits(value: Lanes) -> Lanes:
    return Lanes(types.Integer.from_bitwidth(value.element.bitwidth, signed=True), value.count)


@intrinsic
def nan_bits(typing: Any, value: Lanes) -> Typed:
    """The bits of the lanes that hold a NaN, zero elsewhere.

    A mask of comparisons would be simpler, but LLVM narrows it to single bits and unpacks them in every turn.
    """
    kind = _bits(value)

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        if not isinstance(value.element, types.Float):
            return _constant(kind, 0)
        there = builder.fcmp_ordered("ord", values[0], values[0])
        return builder.bitcast(builder.select(there, _constant(value, 0.0), values[0]), _vector(kind))

    return kind(value), generate


@intrinsic
def no_bits(typing: Any, merge: MergeType) -> Typed:
    """What ``nan_bits`` says of cells without NaN."""
    kind = _bits(_cells(merge))
    return kind(merge), lambda *_: _constant(kind, 0)


@intrinsic
def gather_bits(typing: Any, a: Lanes, b: Lanes) -> Typed:
    return a(a, a), lambda context, builder, signature, values: builder.or_(values[0], values[1])


@intrinsic
def any_bits(typing: Any, value: Lanes) -> Typed:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        whole = ir.IntType(value.count)
        flags = builder.icmp_signed("!=", values[0], _constant(value, 0))
        return builder.icmp_unsigned("!=", builder.bitcast(flags, whole), ir.Constant(whole, 0))

    return types.boolean(value), generate
