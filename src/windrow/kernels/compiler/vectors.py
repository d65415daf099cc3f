"""Steps on whole vectors, emitted as LLVM vector code: Numba's own loops would have to check for overlap each time.

A *slot* is 128 bytes of an array, as many lanes as fit; LLVM cuts it into whatever registers the machine has.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import binding as llvm  # type: ignore[import-untyped]
from llvmlite import ir
from numba import types
from numba.core import cgutils as untyped_cgutils
from numba.extending import intrinsic

SLOT_BYTES = 128
cgutils: Any = untyped_cgutils  # mypy would not let typed code call it
# Blocks that are transposed in registers are this many bytes wide.
BLOCK_BYTES = 32


def step(generator: Callable[..., Any]) -> Any:
    """Numba's ``intrinsic``, whose declared type would ask for the typing context at every call."""
    return intrinsic(generator)


@functools.cache
def vector_bytes() -> int:
    """How wide this machine's vector registers are."""
    features = llvm.get_host_cpu_features()
    if features.get("avx512f"):
        return 64
    return 32 if features.get("avx") else 16


def lanes_of(itemsize: int) -> int:
    return SLOT_BYTES // itemsize


def aligned(count: int, dtype: Any) -> npt.NDArray[Any]:
    """Working memory that starts at a slot's border; loads across cache lines would cost half as much again."""
    itemsize = np.dtype(dtype).itemsize
    memory = np.empty(count + SLOT_BYTES // itemsize, dtype)
    start = -memory.ctypes.data % SLOT_BYTES // itemsize
    return memory[start : start + count]


def pointer_to(context: Any, builder: Any, array_type: Any, array: Any, place: Any) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    return builder.gep(data, [place])


def vector_type(context: Any, array_type: Any, size: int) -> Any:
    """The LLVM type of ``size`` bytes of an array."""
    return ir.VectorType(context.get_value_type(array_type.dtype), size // (array_type.dtype.bitwidth // 8))


def registers(context: Any, array_type: Any) -> Iterator[tuple[int, Any]]:
    """A slot of an array register by register: the lane each begins with, and its type.

    LLVM handles wider vectors too, but turns their comparisons into bytes and back.
    """
    vector = vector_type(context, array_type, vector_bytes())
    for shift in range(0, lanes_of(array_type.dtype.bitwidth // 8), vector.count):
        yield shift, vector


def moved(builder: Any, place: Any, shift: int) -> Any:
    return builder.add(place, ir.Constant(place.type, shift))


def _width(vector: Any) -> int:
    """How many bytes an item has; items of an array lie at multiples of that."""
    item = vector.element
    return item.width // 8 if isinstance(item, ir.IntType) else 4 if isinstance(item, ir.FloatType) else 8


def load_vector(builder: Any, pointer: Any, vector: Any) -> Any:
    return builder.load(builder.bitcast(pointer, vector.as_pointer()), align=_width(vector))


def store_vector(builder: Any, value: Any, pointer: Any) -> None:
    builder.store(value, builder.bitcast(pointer, value.type.as_pointer()), align=_width(value.type))


@step
def call_network(typing: Any, address: Any, work: Any, place: Any, results: Any, target: Any) -> Any:
    """Run the network at ``address`` on inputs from ``work[place]``, results to ``results[target]``."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        byte = ir.PointerType(ir.IntType(8))
        kind = ir.PointerType(ir.FunctionType(ir.VoidType(), [byte, byte]))
        ends = [
            builder.bitcast(pointer_to(context, builder, signature.args[k], args[k], args[k + 1]), byte) for k in (1, 3)
        ]
        builder.call(builder.inttoptr(args[0], kind), ends)
        return context.get_dummy_value()

    return types.void(address, work, place, results, target), generate


@step
def try_network(typing: Any, address: Any, work: Any, place: Any, results: Any, target: Any) -> Any:
    """As ``call_network``, for a network that answers with a whole number."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        byte = ir.PointerType(ir.IntType(8))
        kind = ir.PointerType(ir.FunctionType(ir.IntType(64), [byte, byte]))
        ends = [
            builder.bitcast(pointer_to(context, builder, signature.args[k], args[k], args[k + 1]), byte) for k in (1, 3)
        ]
        return builder.call(builder.inttoptr(args[0], kind), ends)

    return types.int64(address, work, place, results, target), generate


@step
def copy_slot(typing: Any, source: Any, start: Any, target: Any, place: Any) -> Any:
    """Copy the slot at ``source[start]`` to ``target[place]``; whether it holds a NaN."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        source_type, _, target_type, _ = signature.args
        flags = []
        for shift, vector in registers(context, source_type):
            at = pointer_to(context, builder, source_type, args[0], moved(builder, args[1], shift))
            value = load_vector(builder, at, vector)
            at = pointer_to(context, builder, target_type, args[2], moved(builder, args[3], shift))
            store_vector(builder, value, at)
            flags.append(builder.fcmp_unordered("uno", value, value))
        return any_set(builder, flags)

    return types.boolean(source, start, target, place), generate


@step
def slot_has_nan(typing: Any, source: Any, start: Any) -> Any:
    """Whether the slot at ``source[start]`` holds a NaN."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        flags = []
        for shift, vector in registers(context, signature.args[0]):
            at = pointer_to(context, builder, signature.args[0], args[0], moved(builder, args[1], shift))
            value = load_vector(builder, at, vector)
            flags.append(builder.fcmp_unordered("uno", value, value))
        return any_set(builder, flags)

    return types.boolean(source, start), generate


@step
def gather_block(
    typing: Any, source: Any, shift: Any, starts: Any, lane: Any, target: Any, place: Any, pitch: Any
) -> Any:
    """Turn rows into lanes, a square block of 32 bytes' side at a time.

    Row r is read at ``source[starts[lane + r] + shift]``; what it holds goes to lane r of slots ``pitch`` apart, the
    first at ``target[place]``.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        source_type, _, starts_type, _, target_type, _, _ = signature.args
        source, shift, starts, lane, target, place, pitch = args
        vector = vector_type(context, source_type, BLOCK_BYTES)
        lines = []
        for number in range(vector.count):
            start = _item(context, builder, starts_type, starts, lane, number)
            at = pointer_to(context, builder, source_type, source, builder.add(start, shift))
            lines.append(load_vector(builder, at, vector))
        for number, line in enumerate(_transposed(builder, lines)):
            at = builder.add(place, builder.mul(pitch, ir.Constant(pitch.type, number)))
            store_vector(builder, line, pointer_to(context, builder, target_type, target, at))
        return context.get_dummy_value()

    return types.void(source, shift, starts, lane, target, place, pitch), generate


@step
def scatter_block(
    typing: Any, source: Any, place: Any, pitch: Any, target: Any, shift: Any, starts: Any, lane: Any
) -> Any:
    """Turn lanes back into rows: the reverse of ``gather_block``."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        source_type, _, _, target_type, _, starts_type, _ = signature.args
        source, place, pitch, target, shift, starts, lane = args
        vector = vector_type(context, source_type, BLOCK_BYTES)
        lines = []
        for number in range(vector.count):
            at = builder.add(place, builder.mul(pitch, ir.Constant(pitch.type, number)))
            lines.append(load_vector(builder, pointer_to(context, builder, source_type, source, at), vector))
        for number, line in enumerate(_transposed(builder, lines)):
            start = _item(context, builder, starts_type, starts, lane, number)
            at = pointer_to(context, builder, target_type, target, builder.add(start, shift))
            store_vector(builder, line, at)
        return context.get_dummy_value()

    return types.void(source, place, pitch, target, shift, starts, lane), generate


def _item(context: Any, builder: Any, array_type: Any, array: Any, index: Any, number: int) -> Any:
    place = builder.add(index, ir.Constant(index.type, number))
    return builder.load(pointer_to(context, builder, array_type, array, place))


def _transposed(builder: Any, lines: list[Any]) -> list[Any]:
    """Swap half-blocks, then quarters, and so on; each round exchanges one bit of row and column number."""
    count = len(lines)
    half = count // 2
    while half:
        swapped = list(lines)
        for row in range(count):
            if row & half:
                continue
            upper, lower = lines[row], lines[row + half]
            first = [c if not c & half else c - half + count for c in range(count)]
            second = [c + half if not c & half else c + count for c in range(count)]
            swapped[row] = builder.shuffle_vector(upper, lower, _mask(first))
            swapped[row + half] = builder.shuffle_vector(upper, lower, _mask(second))
        lines = swapped
        half //= 2
    return lines


def _mask(lanes: list[int]) -> Any:
    return ir.Constant(ir.VectorType(ir.IntType(32), len(lanes)), lanes)


def any_set(builder: Any, flags: list[Any]) -> Any:
    """Whether any lane of any of these vectors of bits is set."""
    every = functools.reduce(builder.or_, flags)
    return cgutils.is_not_null(builder, builder.bitcast(every, ir.IntType(every.type.count)))
