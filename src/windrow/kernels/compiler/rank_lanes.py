"""Order statistics of many neighbourhoods side by side, emitted as LLVM vector code.

Cells have ranks of 16 bits. A lane is a neighbourhood: the cell of a wanted rank is searched for bit by bit, and how
many cells lie below a candidate is counted in all lanes at once.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types

from windrow.kernels.compiler.vectors import cgutils, load_vector, moved, pointer_to, registers, step, store_vector

LANES = 64
"""16-bit numbers in a slot."""
_ITEM = ir.IntType(16)


def _spread(builder: Any, number: Any, vector: Any) -> Any:
    """A whole number in every lane."""
    one = builder.insert_element(ir.Constant(vector, ir.Undefined), number, ir.IntType(32)(0))
    return builder.shuffle_vector(
        one, one, ir.Constant(ir.VectorType(ir.IntType(32), vector.count), [0] * vector.count)
    )


def _over_cells(context: Any, builder: Any, signature: Any, args: Any, visit: Any) -> None:
    """Call ``visit(register, cells)`` for every offset and register of the slots at codes[base + offset]."""
    codes_type, _, offsets_type = signature.args[:3]
    codes, base, offsets, count = args[:4]
    with cgutils.for_range(builder, count) as loop:
        offset = builder.load(pointer_to(context, builder, offsets_type, offsets, loop.index))
        place = builder.add(base, offset)
        for number, (shift, vector) in enumerate(registers(context, codes_type)):
            at = pointer_to(context, builder, codes_type, codes, moved(builder, place, shift))
            visit(number, load_vector(builder, at, vector))


def _rooms(context: Any, builder: Any, signature: Any, initial: int) -> list[Any]:
    """A variable for each register."""
    return [
        cgutils.alloca_once_value(builder, ir.Constant(vector, [initial] * vector.count))
        for _, vector in registers(context, signature.args[0])
    ]


def _loaded(context: Any, builder: Any, array_type: Any, array: Any) -> list[Any]:
    return [
        load_vector(builder, pointer_to(context, builder, array_type, array, ir.IntType(64)(shift)), vector)
        for shift, vector in registers(context, array_type)
    ]


def _stored(context: Any, builder: Any, array_type: Any, array: Any, values: list[Any]) -> None:
    for (shift, _), value in zip(registers(context, array_type), values, strict=True):
        store_vector(builder, value, pointer_to(context, builder, array_type, array, ir.IntType(64)(shift)))


@step
def count_below(typing: Any, codes: Any, base: Any, offsets: Any, cells: Any, limit: Any, counts: Any) -> Any:
    """How many cells of each lane's neighbourhood have ranks below ``limit``."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        rooms = _rooms(context, builder, signature, 0)
        for room in rooms:
            builder.store(ir.Constant(room.type.pointee, [0] * room.type.pointee.count), room)
        limits = [_spread(builder, builder.trunc(args[4], _ITEM), room.type.pointee) for room in rooms]

        def visit(number: int, cell: Any) -> None:
            below = builder.icmp_unsigned("<", cell, limits[number])
            count = builder.load(rooms[number])
            builder.store(builder.sub(count, builder.sext(below, cell.type)), rooms[number])

        _over_cells(context, builder, signature, args, visit)
        _stored(context, builder, signature.args[5], args[5], [builder.load(room) for room in rooms])
        return context.get_dummy_value()

    return types.void(codes, types.int64, offsets, types.int64, types.int64, counts), generate


@step
def search_ranks(
    typing: Any, codes: Any, base: Any, offsets: Any, cells: Any, bits: Any, wanted: Any, found: Any
) -> Any:
    """The cell of rank ``wanted`` within each lane's neighbourhood, by its rank of so many bits."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        counts, results = (_rooms(context, builder, signature, 0) for _ in range(2))
        tries = _rooms(context, builder, signature, 0)
        ranks = _loaded(context, builder, signature.args[5], args[5])
        for room in results:
            builder.store(ir.Constant(room.type.pointee, [0] * room.type.pointee.count), room)

        def visit(number: int, cell: Any) -> None:
            below = builder.icmp_unsigned("<", cell, builder.load(tries[number]))
            count = builder.load(counts[number])
            builder.store(builder.sub(count, builder.sext(below, cell.type)), counts[number])

        with cgutils.for_range(builder, args[4]) as loop:
            shift = builder.sub(builder.sub(args[4], loop.index), ir.IntType(64)(1))
            bit = builder.trunc(builder.shl(ir.IntType(64)(1), shift), _ITEM)
            for room, result, count in zip(tries, results, counts, strict=True):
                vector = room.type.pointee
                builder.store(builder.or_(builder.load(result), _spread(builder, bit, vector)), room)
                builder.store(ir.Constant(vector, [0] * vector.count), count)
            _over_cells(context, builder, signature, args, visit)
            for number, rank in enumerate(ranks):
                enough = builder.icmp_unsigned("<=", builder.load(counts[number]), rank)
                kept = builder.select(enough, builder.load(tries[number]), builder.load(results[number]))
                builder.store(kept, results[number])
        _stored(context, builder, signature.args[6], args[6], [builder.load(room) for room in results])
        return context.get_dummy_value()

    return types.void(codes, types.int64, offsets, types.int64, types.int64, wanted, found), generate


@step
def next_ranks(typing: Any, codes: Any, base: Any, offsets: Any, cells: Any, found: Any, following: Any) -> Any:
    """The smallest rank of each lane's neighbourhood that is larger than the one found."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        rooms = _rooms(context, builder, signature, 0xFFFF)
        for room in rooms:
            builder.store(ir.Constant(room.type.pointee, [0xFFFF] * room.type.pointee.count), room)
        before = _loaded(context, builder, signature.args[4], args[4])

        def visit(number: int, cell: Any) -> None:
            best = builder.load(rooms[number])
            larger = builder.icmp_unsigned(">", cell, before[number])
            better = builder.and_(larger, builder.icmp_unsigned("<", cell, best))
            builder.store(builder.select(better, cell, best), rooms[number])

        _over_cells(context, builder, signature, args, visit)
        _stored(context, builder, signature.args[5], args[5], [builder.load(room) for room in rooms])
        return context.get_dummy_value()

    return types.void(codes, types.int64, offsets, types.int64, found, following), generate
