"""Distinct values in frames, whatever the frames: four ways.

- *Counters*, one for each value, while frames slide (perhaps in another order); values that do not lie close together
  are *numbered* first.
- *Links*: a row is new in a frame if the row before with the same value lies before the frame. Only links to the
  previous and the next row with the same value are needed, and frames slide along them.
- *Ends*: frames by their end, with one bit for each row that has a later twin so far; a frame has as many distinct
  values as it has rows without such a bit. Counts of bits over stretches make that quick, and frames need not slide.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiler.bits import count_bits
from windrow.kernels.compiler.jit import inner, kernel
from windrow.kernels.counting.codes import next_rows, number_values, previous_close, previous_near, previous_rows
from windrow.kernels.frames.paths import AS_THEY_COME, order_by, rises
from windrow.kernels.frames.spans import Spans
from windrow.kernels.frames.survey import bounds_at

Array = npt.NDArray[Any]
Int64Array = npt.NDArray[np.int64]

NEAR, MANY = 1 << 16, 1 << 11
"""Rows of which a table stays in the cache, and of which one is worth making."""
STRETCH = 6
"""Bits of a level's counts: one for each 64 of the level below."""


def distinct_by_counters(values: Array, close: tuple[int, int], spans: Spans, order: Array) -> Int64Array:
    """How many different values each frame has, of whole numbers that lie close together."""
    out = np.zeros(spans.count, np.int64)
    bits = values.view(np.int64)
    if spans.offsets is not None:
        _windows_close(bits, *close, *spans.offsets, out)
    elif spans.whole and not len(order):
        _slide_close(bits, *close, spans.begin[0], spans.end[0], out)
    else:
        _slide_counters(bits, *close, spans.begin, spans.end, order, out)
    return out


def distinct_by_numbers(values: Array, spans: Spans, order: Array) -> Int64Array:
    """The same of any values, which are numbered first."""
    out = np.zeros(spans.count, np.int64)
    codes, firsts = number_values(values.view(np.int64))
    _slide_counters(codes, 0, len(firsts), spans.begin, spans.end, order, out)
    return out


def distinct_by_links(values: Array, close: tuple[int, int] | None, spans: Spans, order: Array) -> Int64Array:
    """The same by links between equal values, for frames of one range."""
    out = np.zeros(spans.count, np.int64)
    previous = _previous(values.view(np.int64), close, spans.most)
    _slide_links(previous, next_rows(previous), *spans.one_range(), order, out)
    return out


def distinct_by_ends(values: Array, close: tuple[int, int] | None, spans: Spans) -> Int64Array:
    """The same by the ends of frames of one range."""
    out = np.zeros(spans.count, np.int64)
    previous = _previous(values.view(np.int64), close, spans.most)
    order = AS_THEY_COME if rises(spans.end[0]) else order_by(spans.end[0], spans.rows)
    _by_end(previous, spans.begin[0], spans.end[0], order, out)
    return out


def _previous(bits: Array, close: tuple[int, int] | None, most: int) -> Array:
    """The row before each with the same value; only those that a frame can hold together matter."""
    if most <= NEAR and most * 8 <= len(bits):
        return previous_near(bits, max(MANY, most))
    return previous_rows(bits) if close is None else previous_close(bits, *close)


@kernel
def _windows_close(values: Array, low: int, span: int, start: int, stop: int, out: Array) -> None:
    """Windows: from one to the next at most one row comes, and one leaves."""
    counts = np.zeros(span, np.int32)
    distinct = _count(values, low, max(0, start), min(len(values), stop), counts, np.int32(1))
    rows = np.uint64(len(values))
    for k in range(len(out)):
        # Unsigned, a row before the first is a very large number, and so lies behind the last as well.
        came, left = np.uint64(k + stop), np.uint64(k + start - 1)
        if came < rows:
            code = np.uint64(values[came] - low)
            distinct += counts[code] == 0
            counts[code] += 1
        if left < rows and k > 0:
            code = np.uint64(values[left] - low)
            counts[code] -= 1
            distinct -= counts[code] == 0
        out[k] = distinct


@kernel
def _slide_close(values: Array, low: int, span: int, begin: Array, end: Array, out: Array) -> None:
    """One range, frames as they come."""
    counts = np.zeros(span, np.int32)
    first = last = distinct = np.int64(0)
    for k in range(len(out)):
        lo, hi = begin[k], end[k]
        if lo >= last or hi <= first:
            while first < last:
                counts[np.uint64(values[np.uint64(first)] - low)] = 0
                first += 1
            first = last = lo
            distinct = 0
        while last < hi:
            code = np.uint64(values[np.uint64(last)] - low)
            distinct += counts[code] == 0
            counts[code] += 1
            last += 1
        while first < lo:
            code = np.uint64(values[np.uint64(first)] - low)
            counts[code] -= 1
            distinct -= counts[code] == 0
            first += 1
        while first > lo:
            first -= 1
            code = np.uint64(values[np.uint64(first)] - low)
            distinct += counts[code] == 0
            counts[code] += 1
        while last > hi:
            last -= 1
            code = np.uint64(values[np.uint64(last)] - low)
            counts[code] -= 1
            distinct -= counts[code] == 0
        out[k] = distinct


@kernel
def _slide_counters(values: Array, low: int, span: int, begin: Array, end: Array, order: Array, out: Array) -> None:
    """Any ranges in any order."""
    counts = np.zeros(span, np.int32)
    ranges = len(begin)
    first, last = np.zeros(ranges, np.int64), np.zeros(ranges, np.int64)
    distinct = np.int64(0)
    for j in range(len(out)):
        k = order[j] if len(order) else j
        for r in range(ranges):
            lo, hi = begin[r, k], end[r, k]
            if lo >= last[r] or hi <= first[r]:
                distinct += _count(values, low, first[r], last[r], counts, np.int32(-1))
                first[r] = last[r] = lo
            distinct += _count(values, low, last[r], hi, counts, np.int32(1))
            distinct += _count(values, low, lo, first[r], counts, np.int32(1))
            distinct += _count(values, low, first[r], lo, counts, np.int32(-1))
            distinct += _count(values, low, hi, last[r], counts, np.int32(-1))
            first[r], last[r] = lo, hi
        out[k] = distinct


@inner
def _count(values: Array, low: int, first: int, last: int, counts: Array, by: int) -> Any:
    """Count rows in or out; by how much the number of distinct values changes."""
    change = np.int64(0)
    for row in range(first, last):
        code = np.uint64(values[np.uint64(row)] - low)
        before = counts[code]
        counts[code] = before + by
        change += np.int64(before == 0) - np.int64(before + by == 0)
    return change


@kernel
def _slide_links(
    previous: Array, following: Array, begin: Array, end: Array, start: int, stop: int, order: Array, out: Array
) -> None:
    first = last = distinct = np.int64(0)
    for j in range(len(out)):
        k = order[j] if len(order) else j
        lo, hi = bounds_at(begin, end, start, stop, len(previous), k)
        if lo >= last or hi <= first:
            first = last = lo
            distinct = 0
        while last < hi:
            distinct += previous[np.uint64(last)] < first
            last += 1
        while first > lo:
            first -= 1
            distinct += following[np.uint64(first)] >= last
        while first < lo:
            distinct -= following[np.uint64(first)] >= last
            first += 1
        while last > hi:
            last -= 1
            distinct -= previous[np.uint64(last)] < first
        out[k] = distinct


@kernel
def _by_end(previous: Array, begin: Array, end: Array, order: Array, out: Array) -> None:
    rows = len(previous)
    words = np.zeros((rows >> STRETCH) + 2, np.uint64)
    stretches = np.zeros((rows >> 2 * STRETCH) + 2, np.int32)
    tracts = np.zeros((rows >> 3 * STRETCH) + 2, np.int32)
    seen = np.int64(0)
    for j in range(len(out)):
        k = order[j] if len(order) else j
        while seen < end[k]:
            twin = np.int64(previous[np.uint64(seen)])
            if twin >= 0:
                words[np.uint64(twin >> STRETCH)] |= np.uint64(1) << np.uint64(twin & 63)
                stretches[np.uint64(twin >> 2 * STRETCH)] += 1
                tracts[np.uint64(twin >> 3 * STRETCH)] += 1
            seen += 1
        # No bit is set at or behind the end.
        out[k] = end[k] - begin[k] - _set_from(words, stretches, tracts, begin[k], end[k])


@inner
def _set_from(words: Array, stretches: Array, tracts: Array, first: int, last: int) -> Any:
    """How many bits are set from one row to before another."""
    word, stop = first >> STRETCH, (last + 63) >> STRETCH
    if word >= stop:
        return 0
    total = count_bits(words[word] >> np.uint64(first & 63))
    word += 1
    while word < stop and word & 63:
        total += count_bits(words[np.uint64(word)])
        word += 1
    if word == stop:
        return total
    stretch, far = word >> STRETCH, (stop + 63) >> STRETCH
    while stretch < far and stretch & 63:
        total += stretches[np.uint64(stretch)]
        stretch += 1
    if stretch == far:
        return total
    tract = stretch >> STRETCH
    while tract < (far + 63) >> STRETCH:
        total += tracts[np.uint64(tract)]
        tract += 1
    return total
