"""Keys in order, by the digits of numbers: no key is compared with another, and equal ones keep their order."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiler.jit import kernel

Array = npt.NDArray[Any]
Int64Array = npt.NDArray[np.int64]

_AS_THEY_ARE: Int64Array = np.zeros(0, np.int64)
_FEW = 512  # keys that NumPy sorts as fast
_DIGIT = 10  # bits at most: keys are spread over no more places than the processor can translate addresses for


def sort_keys(keys: Int64Array, bits: int) -> tuple[Int64Array, Int64Array]:
    """Keys below ``2**bits`` in order, and the place that each of them came from; equal keys stay in order.

    Keys that are in order are only looked at once. If their lower bits alone are in order already, as those of the last
    dimension are when cells were stored by it, only the upper ones are sorted by.
    """
    low, high = _unordered_bits(keys, bits) if len(keys) else (0, 0)
    if low >= high:
        return keys, np.arange(len(keys), dtype=np.int64)
    if len(keys) <= _FEW:
        order = np.argsort(keys, kind="stable").astype(np.int64, copy=False)
        return keys[order], order
    index_bits = (len(keys) - 1).bit_length()
    at_once = 64 - index_bits
    if low == 0 and high <= at_once:  # what is sorted holds all that differs: keys need not be looked up again
        items, spare = _sorted_by(keys, _AS_THEY_ARE, low, high, index_bits)
        _split(items, spare, index_bits, int(keys[0]) >> high << high)
        return spare.view(np.int64), items.view(np.int64)
    order = _AS_THEY_ARE
    for begin in range(low, high, at_once):
        items, spare = _sorted_by(keys, order, begin, min(high, begin + at_once), index_bits)
        _look_up(keys, items, spare, index_bits)
        ordered, order = spare.view(np.int64), items.view(np.int64)
    return ordered, order


def is_sorted(keys: Int64Array) -> bool:
    """Whether keys, none of them negative, are in order already, so that nothing that goes with them has to move."""
    return len(keys) < 2 or not _compare(keys)[0] >> 63


def _unordered_bits(keys: Int64Array, bits: int) -> tuple[int, int]:
    """From which bit to before which one keys have to be sorted; equal numbers if they are in order."""
    borrowed, varying = _compare(keys)
    # Bit k of ``borrowed`` says whether the k lowest bits of some key are less than those of the one before it.
    high = min(bits, varying.bit_length())
    low = high
    while borrowed >> low & 1:
        low -= 1
    return low, high


def _sorted_by(keys: Int64Array, order: Int64Array, low: int, high: int, index_bits: int) -> tuple[Array, Array]:
    """Places of keys, in order of the bits from ``low`` to before ``high``; equal ones stay in the given order.

    Also as much room as they take, which results are best written to: memory that is new costs more than the writing.
    """
    passes = -(-(high - low) // _DIGIT)
    digit = -(-(high - low) // passes)
    counters = np.zeros((passes, 1 << digit), np.int64)
    items = _packed(keys, order, low, high, index_bits, digit, counters)
    spare = np.empty_like(items)
    for number in range(passes):
        _scatter(items, spare, index_bits + number * digit, counters[number])
        items, spare = spare, items
    return items, spare


def _compare(keys: Int64Array) -> tuple[int, int]:
    borrowed, varying = _borrows(keys)
    return int(borrowed) & (1 << 64) - 1, int(varying) & (1 << 64) - 1


@kernel
def _borrows(keys: Array) -> tuple[int, int]:
    """Which bits are borrowed from when each key is taken from the next, and which bits differ between any two."""
    borrowed = varying = keys[0] ^ keys[0]
    for place in range(1, len(keys)):
        one, other = keys[place - 1], keys[place]
        borrowed |= one ^ other ^ (other - one)
        varying |= one ^ other
    return borrowed, varying


@kernel
def _packed(keys: Array, order: Array, low: int, high: int, index_bits: int, digit: int, counters: Array) -> Array:
    """Some bits of each key above its place, one word to move instead of two; digits are counted on the way."""
    mask = (np.uint64(1) << np.uint64(high - low)) - np.uint64(1)
    digit_mask = np.uint64(counters.shape[1] - 1)
    items = np.empty(len(keys), np.uint64)
    for number in range(len(keys)):
        place = np.uint64(order[number]) if len(order) > 0 else np.uint64(number)
        bits = np.uint64(keys[place]) >> np.uint64(low) & mask
        items[number] = bits << np.uint64(index_bits) | place
        for which in range(len(counters)):
            counters[which, bits >> np.uint64(which * digit) & digit_mask] += 1
    return items


@kernel
def _scatter(items: Array, ordered: Array, shift: int, counters: Array) -> None:
    """One pass: items in the order of a digit, of which there are so many each, and equal ones as they were."""
    total = np.int64(0)
    for bucket in range(len(counters)):
        counters[bucket], total = total, total + counters[bucket]
    by, mask = np.uint64(shift), np.uint64(len(counters) - 1)
    for item in items:
        bucket = item >> by & mask
        ordered[np.uint64(counters[bucket])] = item
        counters[bucket] += 1


@kernel
def _split(items: Array, ordered: Array, index_bits: int, common: int) -> None:
    """The keys that items hold above their places, with the bits that all have in common; items become places."""
    mask, by = (np.uint64(1) << np.uint64(index_bits)) - np.uint64(1), np.uint64(index_bits)
    for number in range(len(items)):
        ordered[number] = np.uint64(common) | items[number] >> by
        items[number] &= mask


@kernel
def _look_up(keys: Array, items: Array, ordered: Array, index_bits: int) -> None:
    """The keys in the order of the items, which become places."""
    mask = (np.uint64(1) << np.uint64(index_bits)) - np.uint64(1)
    for number in range(len(items)):
        items[number] &= mask
        ordered[number] = np.uint64(keys[items[number]])
