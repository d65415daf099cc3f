"""Values as small numbers: counted from the smallest where they lie close together, else by a hash table."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiler.jit import inner, kernel

Array = npt.NDArray[Any]
Int64Array = npt.NDArray[np.int64]

CLOSE = 4
"""Whole numbers are counted from the smallest if they span no more than so many numbers for each row."""
FEW = 1 << 12
"""Or if they span no more than this."""
FREE = -1


def span_of(values: Array) -> tuple[int, int] | None:
    """The smallest number and how many numbers lie between it and the largest, if they lie close together."""
    if values.dtype.kind == "f" or not len(values):
        return None
    low, high = (int(bound) for bound in _limits(values))
    span = high - low + 1
    return (low, span) if span <= max(FEW, CLOSE * len(values)) and span < 2**31 and high < 2**63 else None


@kernel
def _limits(values: Array) -> tuple[Any, Any]:
    low = high = values[0]
    for k in range(1, len(values)):
        low, high = min(low, values[k]), max(high, values[k])
    return low, high


@inner
def place_of(bits: int, mask: int) -> Any:
    """Where in a table of mask + 1 places the search for a value begins."""
    mixed = np.uint64(bits) * np.uint64(0x9E3779B97F4A7C15)
    return np.int64((mixed ^ (mixed >> np.uint64(32))) & np.uint64(mask))


@kernel
def number_values(bits: Array) -> tuple[Array, Array]:
    """Number values in the order in which they are first seen; the numbers, and the first row of each."""
    mask = np.int64(1023)
    table = np.full(mask + 1, FREE, np.int32)
    keys = np.empty(mask + 1, np.int64)
    codes = np.empty(len(bits), np.int32)
    firsts = np.empty(len(bits), np.int64)
    count = np.int64(0)
    for k in range(len(bits)):
        value = bits[k]
        place = place_of(value, mask)
        while table[place] != FREE and keys[place] != value:
            place = (place + 1) & mask
        if table[place] == FREE:
            if 2 * count > mask:
                mask = 4 * mask + 3
                table = np.full(mask + 1, FREE, np.int32)
                keys = np.empty(mask + 1, np.int64)
                for code in range(count):
                    place = place_of(bits[firsts[code]], mask)
                    while table[place] != FREE:
                        place = (place + 1) & mask
                    table[place], keys[place] = code, bits[firsts[code]]
                place = place_of(value, mask)
                while table[place] != FREE:
                    place = (place + 1) & mask
            table[place], keys[place] = count, value
            firsts[count] = k
            count += 1
        codes[k] = table[place]
    return codes, firsts[:count].copy()


@kernel
def previous_rows(bits: Array) -> Array:
    """For each row the last one before it with the same value, -1 if there is none."""
    previous = np.empty(len(bits), np.int32)
    mask = np.int64(1023)
    last = np.full(mask + 1, FREE, np.int32)  # the last row seen with the value of this place
    count = np.int64(0)
    for k in range(len(bits)):
        value = bits[k]
        place = place_of(value, mask)
        while last[place] != FREE and bits[last[place]] != value:
            place = (place + 1) & mask
        previous[k] = last[place]
        if last[place] == FREE:
            count += 1
        last[place] = k
        if 2 * count > mask:
            last, mask = _grow(bits, last, mask)
    return previous


@kernel
def previous_near(bits: Array, reach: int) -> Array:
    """``previous_rows``, where rows more than ``reach`` rows before may be overlooked.

    Of every ``reach`` rows the last occurrences are put into a small table, which stays in the cache, and forgotten
    with the rows after the next.
    """
    previous = np.empty(len(bits), np.int32)
    mask = np.int64(15)
    while mask < 4 * reach:
        mask = 2 * mask + 1
    last = np.empty(mask + 1, np.int32)
    for start in range(0, len(bits), reach):
        last[:] = FREE
        for k in range(max(0, start - reach), min(start + reach, len(bits))):
            value = bits[k]
            place = place_of(value, mask)
            while last[place] != FREE and bits[last[place]] != value:
                place = (place + 1) & mask
            previous[k] = last[place] if k >= start else previous[k]
            last[place] = k
    return previous


@inner
def _grow(bits: Array, last: Array, mask: int) -> tuple[Array, int]:
    wide = 4 * mask + 3
    grown = np.full(wide + 1, FREE, np.int32)
    for old in range(mask + 1):
        if last[old] != FREE:
            place = place_of(bits[last[old]], wide)
            while grown[place] != FREE:
                place = (place + 1) & wide
            grown[place] = last[old]
    return grown, wide


@kernel
def previous_close(values: Array, low: int, span: int) -> Array:
    """``previous_rows`` of whole numbers that lie close together."""
    previous = np.empty(len(values), np.int32)
    last = np.full(span, FREE, np.int32)
    for k in range(len(values)):
        code = np.uint64(values[k] - low)
        previous[k] = last[code]
        last[code] = k
    return previous


@kernel
def next_rows(previous: Array) -> Array:
    """For each row the next one with the same value, or the number of rows."""
    following = np.full(len(previous), len(previous), np.int32)
    for k in range(len(previous)):
        if previous[k] >= 0:
            following[previous[k]] = k
    return following
