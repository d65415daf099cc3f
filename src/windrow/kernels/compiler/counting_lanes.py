"""Steps of counting in lanes, emitted as LLVM vector code: what ``frames.lanes`` does to all lanes at once."""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types

from windrow.kernels.compiler.vectors import load_vector, pointer_to, step, store_vector

LANES = 32
GROUP = 10
"""Values that are counted on one way along the lanes."""
BLOCK = 16
"""Rows and columns that are turned in registers."""


@step
def turn(typing: Any, source: Any, start: Any, pitch: Any, target: Any, place: Any, gap: Any) -> Any:
    """Make rows of a block columns; those of ``source`` are ``pitch`` apart, those of ``target`` ``gap``."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        def pointers(array: int) -> Any:
            for row in range(BLOCK):
                at = builder.add(args[array + 1], builder.mul(args[array + 2], args[array + 2].type(row)))
                yield pointer_to(context, builder, signature.args[array], args[array], at)

        lines = [load_vector(builder, pointer, _vector(signature.args[0], BLOCK)) for pointer in pointers(0)]
        half = BLOCK // 2
        masks = [
            ir.Constant(ir.VectorType(ir.IntType(32), BLOCK), [k // 2 + first + k % 2 * BLOCK for k in range(BLOCK)])
            for first in (0, half)
        ]
        for _ in range(BLOCK.bit_length() - 1):  # interleaving both halves so often turns the block
            lines = [builder.shuffle_vector(lines[k // 2], lines[k // 2 + half], masks[k % 2]) for k in range(BLOCK)]
        for line, pointer in zip(lines, pointers(3), strict=True):
            store_vector(builder, line, pointer)
        return context.get_dummy_value()

    return types.void(source, *[types.int64] * 2, target, *[types.int64] * 2), generate


def _vector(array: Any, lanes: int = LANES) -> Any:
    return ir.VectorType(ir.IntType(array.dtype.bitwidth), lanes)


def _step(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """What both ways along the lanes do first: pointers to the lanes' memory, and what is there."""
    vector = _vector(signature.args[0])
    places = [pointer_to(context, builder, signature.args[k], args[k], args[4]) for k in range(4)]
    return places, [load_vector(builder, place, vector) for place in places]


def _everywhere(builder: Any, number: Any, vector: Any) -> Any:
    """A whole number in every lane."""
    item = builder.trunc(number, vector.element)
    one = builder.insert_element(ir.Constant(vector, ir.Undefined), item, ir.IntType(32)(0))
    return builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES))


def _moved(context: Any, builder: Any, signature: Any, args: Any, each: int, came: Any, left: Any) -> Any:
    """The counts of one value of a group after a row, given as masks, came and another left."""
    place = builder.mul(builder.add(args[6], args[6].type(each)), args[6].type(LANES))
    pointer = pointer_to(context, builder, signature.args[5], args[5], place)
    count = load_vector(builder, pointer, _vector(signature.args[5]))
    count = builder.sub(count, builder.sext(came, count.type))  # a mask is -1 where it is set
    count = builder.add(count, builder.sext(left, count.type))
    store_vector(builder, count, pointer)
    return count


@step
def count_equal(typing: Any, came: Any, left: Any, most: Any, mode: Any, place: Any, counts: Any, value: Any) -> Any:
    """One step of all lanes: of the values from ``value`` on, keep the first that occurs most often."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        places, (came, left, most, mode) = _step(context, builder, signature, args)
        for each in range(GROUP):
            value = _everywhere(builder, builder.add(args[6], args[6].type(each)), came.type)
            masks = (builder.icmp_signed("==", row, value) for row in (came, left))
            count = _moved(context, builder, signature, args, each, *masks)
            more = builder.icmp_signed(">", count, most)
            mode = builder.select(more, value, mode)
            most = builder.select(more, count, most)
        store_vector(builder, most, places[2])
        store_vector(builder, mode, places[3])
        return context.get_dummy_value()

    return types.void(came, left, most, mode, types.int64, counts, types.int64), generate


@step
def count_larger(
    typing: Any, came: Any, left: Any, one: Any, other: Any, place: Any, counts: Any, value: Any, lower: Any, upper: Any
) -> Any:
    """One step of all lanes: count the values from ``value`` on that have more than so many larger rows."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        places, (came, left, one, other) = _step(context, builder, signature, args)
        lower, upper = (_everywhere(builder, number, came.type) for number in args[7:])
        for each in range(GROUP):
            value = _everywhere(builder, builder.add(args[6], args[6].type(each)), came.type)
            masks = (builder.icmp_signed(">", row, value) for row in (came, left))
            count = _moved(context, builder, signature, args, each, *masks)
            one = builder.sub(one, builder.sext(builder.icmp_signed(">", count, lower), one.type))
            other = builder.sub(other, builder.sext(builder.icmp_signed(">", count, upper), other.type))
        store_vector(builder, one, places[2])
        store_vector(builder, other, places[3])
        return context.get_dummy_value()

    return types.void(came, left, one, other, types.int64, counts, *[types.int64] * 3), generate


@step
def count_larger_each(
    typing: Any, came: Any, left: Any, one: Any, other: Any, place: Any, counts: Any, value: Any, lower: Any, upper: Any
) -> Any:
    """The same where each window has numbers of its own, in lanes as the rows are."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        places, (came, left, one, other) = _step(context, builder, signature, args)
        lower, upper = (
            load_vector(builder, pointer_to(context, builder, signature.args[k], args[k], args[4]), came.type)
            for k in (7, 8)
        )
        for each in range(GROUP):
            value = _everywhere(builder, builder.add(args[6], args[6].type(each)), came.type)
            masks = (builder.icmp_signed(">", row, value) for row in (came, left))
            count = _moved(context, builder, signature, args, each, *masks)
            one = builder.sub(one, builder.sext(builder.icmp_signed(">", count, lower), one.type))
            other = builder.sub(other, builder.sext(builder.icmp_signed(">", count, upper), other.type))
        store_vector(builder, one, places[2])
        store_vector(builder, other, places[3])
        return context.get_dummy_value()

    return types.void(came, left, one, other, types.int64, counts, types.int64, lower, upper), generate
