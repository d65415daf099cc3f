"""Counting and finding bits, and the order of a block's values."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import binding as llvm  # type: ignore[import-untyped]
from llvmlite import ir
from numba import types

from windrow.kernels.compiler.jit import inlined, inner
from windrow.kernels.compiler.vectors import cgutils, step

Array = npt.NDArray[Any]

# Bits per pass of the radix sort; 2**11 counters fit into the first-level cache.
DIGIT = 11
BUCKETS = 1 << DIGIT


@step
def count_bits(typing: Any, word: Any) -> Any:
    """How many bits of a 64-bit word are set."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.int64(types.uint64), generate


@step
def lowest_bit(typing: Any, word: Any) -> Any:
    """The place of the lowest set bit of a 64-bit word that is not 0."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), generate


@step
def bits_of(typing: Any, value: Any) -> Any:
    """The bits of a float as a whole number of 64 bits, the same for both zeros."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        width = signature.args[0].bitwidth
        # Adding 0.0 makes -0.0 a 0.0.
        whole = builder.bitcast(builder.fadd(args[0], ir.Constant(args[0].type, 0.0)), ir.IntType(width))
        return whole if width == 64 else builder.zext(whole, ir.IntType(64))

    return types.uint64(value), generate


@step
def _deposit(typing: Any, bits: Any, word: Any) -> Any:
    """Spread the lowest bits over the set bits of a word (BMI2's pdep)."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        whole = ir.IntType(64)
        kind = ir.FunctionType(whole, [whole, whole])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.bmi.pdep.64")
        return builder.call(function, args)

    return types.uint64(types.uint64, types.uint64), generate


@inner
def _select_by_deposit(word: int, rank: int) -> int:
    return lowest_bit(_deposit(np.uint64(1) << np.uint64(rank), word))


@inner
def _select_by_halves(word: int, rank: int) -> Any:
    # Without branches: which half a bit is in cannot be predicted.
    place = np.int64(0)
    for half in (32, 16, 8, 4, 2, 1):
        below = count_bits(word & np.uint64((1 << half) - 1))
        move = np.int64(rank >= below)
        rank -= below * move
        word >>= np.uint64(half * move)
        place += half * move
    return place


# The place of the set bit of a word that has ``rank`` set bits below it.
select_bit = _select_by_deposit if llvm.get_host_cpu_features().get("bmi2") else _select_by_halves


@inner
def rank_values(values: Array, count: int, codes: Array, ordered: Array, packed: Array, spare: Array) -> int:
    """Number the first ``count`` values by size, missing ones last; how many are present.

    ``codes[k]`` becomes the rank of value k, ``ordered`` the values by rank; equal values get ranks of their own.
    """
    wide = values.itemsize == 8
    width, shift = np.int64(8 * values.itemsize), np.int64(32 if wide else 0)
    present = 0
    for place in range(count):
        present += values[place] == values[place]
        packed[place] = _key(values[place], width, shift) << np.uint64(32) | np.uint64(place)
    order = _sort(packed, spare, count)
    if wide and not _settle(values, order, count):
        order = _sort_wide(values, packed, spare, count)
    for rank in range(count):
        place = np.int64(order[rank] & np.uint64(0xFFFFFFFF))
        codes[place] = rank
        ordered[rank] = values[place]
    return present


@inner
def _key(value: Any, width: int, shift: int) -> Any:
    """32 of ``width`` bits, ``shift`` bits up, of whole numbers in the order of floats; NaN comes last."""
    every = np.uint64(0xFFFFFFFF)
    if value != value:
        return every
    bits = bits_of(value)
    top = np.uint64(1) << np.uint64(width - 1)
    bits = ~bits if bits & top else bits | top
    return (bits >> np.uint64(shift)) & every


@inner
def _sort(packed: Array, spare: Array, count: int) -> Array:
    """Sort by the upper 32 bits, keeping the order of equal ones; the result is one of the two arrays."""
    counters = np.zeros((3, BUCKETS), np.int64)
    mask = np.uint64(BUCKETS - 1)
    for place in range(count):
        item = packed[place] >> np.uint64(32)
        counters[0, item & mask] += 1
        counters[1, item >> np.uint64(DIGIT) & mask] += 1
        counters[2, item >> np.uint64(2 * DIGIT)] += 1
    for digit in range(3):
        shift = np.uint64(32 + digit * DIGIT)
        counter = counters[digit]
        if counter[packed[0] >> shift & mask] == count:
            continue
        total = 0
        for bucket in range(BUCKETS):
            counter[bucket], total = total, total + counter[bucket]
        for place in range(count):
            item = packed[place]
            bucket = item >> shift & mask
            spare[counter[bucket]] = item
            counter[bucket] += 1
        packed, spare = spare, packed
    return packed


@inner
def _settle(values: Array, order: Array, count: int) -> bool:
    """Order doubles that agree in their upper halves by insertion; False if there are too many of them."""
    low = np.uint64(0xFFFFFFFF)
    patience = 8 * count
    for place in range(1, count):
        item = order[place]
        value = values[np.int64(item & low)]
        gap = place
        while gap > 0 and order[gap - 1] >> np.uint64(32) == item >> np.uint64(32):
            if not values[np.int64(order[gap - 1] & low)] > value:
                break
            order[gap] = order[gap - 1]
            gap -= 1
        order[gap] = item
        patience -= place - gap
        if patience < 0:
            return False
    return True


@inner
def _sort_wide(values: Array, packed: Array, spare: Array, count: int) -> Array:
    """Sort doubles by their lower halves, then by their upper halves."""
    low = np.uint64(0xFFFFFFFF)
    for place in range(count):
        packed[place] = _key(values[place], np.int64(64), np.int64(0)) << np.uint64(32) | np.uint64(place)
    order = _sort(packed, spare, count)
    for place in range(count):
        item = order[place] & low
        order[place] = _key(values[np.int64(item)], np.int64(64), np.int64(32)) << np.uint64(32) | item
    return _sort(packed, spare, count) if order is packed else _sort(spare, packed, count)


@inlined
def walk(bits: Array, word: int, below: int, rank: int) -> tuple[int, int]:
    """The word that holds the set bit of ``rank``, and how many are set before it."""
    while below > rank:
        word -= 1
        below -= count_bits(bits[np.uint64(word)])
    inside = count_bits(bits[np.uint64(word)])
    while below + inside <= rank:
        below += inside
        word += 1
        inside = count_bits(bits[np.uint64(word)])
    return word, below
