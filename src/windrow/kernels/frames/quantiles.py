"""Medians, quantiles and percentiles of frames: as float64 where ranks are interpolated, else as values.

Ways that work on floats alone get values of any type as floats in the same order. For whole numbers that lie close
together there is a counter for each value, and a walk from the last answer while frames slide.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiler.jit import inner, kernel
from windrow.kernels.contract.keys import keys_of
from windrow.kernels.contract.outcomes import rank_arrays
from windrow.kernels.contract.ranks import RankTable
from windrow.kernels.frames.lanes import lane_select
from windrow.kernels.frames.spans import Spans, find_uncut
from windrow.kernels.frames.survey import bounds_at

Array = npt.NDArray[Any]


def select_by_keys(way: Callable[[Array, RankTable], Array], values: Array, spans: Spans, ranks: RankTable) -> Array:
    """The order statistic of every frame by a way that works on floats."""
    keys = keys_of(values, None)
    if not ranks.interpolates:
        return keys.values(way(keys.floats, ranks))[0]
    if not keys.coded:
        return way(keys.floats, ranks)
    low, high = (keys.values(way(keys.floats, ranks.picking(side)))[0] for side in (ranks.lower, ranks.upper))
    return _between(low, high, ranks.weights(spans.sizes))


def select_side_by_side(values: Array, close: tuple[int, int], spans: Spans, ranks: RankTable) -> Array:
    """Whole windows side by side, and one after the other those that are cut off at either end."""
    out = np.empty(spans.count, np.float64 if ranks.interpolates else np.int64)
    bits = values.view(np.int64)
    start, stop = spans.offsets or (0, 0)
    first, last = find_uncut(spans)
    lane_select(bits[first + start :], *close, stop - start + 1, ranks.part(first, last), out[first:last])
    for part in (slice(0, first), slice(last, spans.count)):
        tables = rank_arrays(ranks.part(part.start, part.stop))
        _slide_one(bits, *close, *spans.one_range(part.start), *tables, ranks.interpolates, out[part])
    return out if ranks.interpolates else out.view(values.dtype)


def _between(low: Array, high: Array, weight: Array) -> Array:
    """Between whole numbers too large to be keys themselves."""
    floats: Array = low.astype(np.float64)
    return floats + weight * (high.astype(np.float64) - floats)


def select_by_counters(values: Array, close: tuple[int, int], spans: Spans, order: Array, ranks: RankTable) -> Array:
    """The order statistic of whole numbers that lie close together."""
    out = np.zeros(spans.count, np.float64 if ranks.interpolates else np.int64)
    tables = rank_arrays(ranks)
    bits = values.view(np.int64)
    if spans.whole and not len(order):
        _slide_one(bits, *close, *spans.one_range(), *tables, ranks.interpolates, out)
    else:
        _slide(bits, *close, spans.begin, spans.end, order, *tables, ranks.interpolates, out)
    return out if ranks.interpolates else out.view(values.dtype)


@kernel
def _slide_one(
    values: Array, low: int, span: int, begin: Array, end: Array, start: int, stop: int, lower: Array, upper: Array,
    weight: Array, each: bool, interpolates: bool, out: Array,
) -> None:  # fmt: skip
    """One range, frames as they come; ``below`` of its rows have codes before ``code``."""
    counts = np.zeros(span + 1, np.int32)
    first = last = code = below = np.int64(0)
    for k in range(len(out)):
        lo, hi = bounds_at(begin, end, start, stop, len(values), k)
        if lo >= last or hi <= first:
            below -= _count(values, low, first, last, counts, np.int32(-1), code)
            first = last = lo
        while last < hi:
            value = values[np.uint64(last)] - low
            counts[np.uint64(value)] += 1
            below += value < code
            last += 1
        while first < lo:
            value = values[np.uint64(first)] - low
            counts[np.uint64(value)] -= 1
            below -= value < code
            first += 1
        if first > lo or last > hi:
            below += _count(values, low, lo, first, counts, np.int32(1), code)
            below -= _count(values, low, hi, last, counts, np.int32(-1), code)
            first, last = lo, hi
        if lo < hi:
            at = np.uint64(k if each else hi - lo)
            code, below = _walk(counts, code, below, np.int64(lower[at]))
            if interpolates:
                out[k] = _interpolate(counts, code, below, low, upper[at], weight[at])
            else:
                out[k] = code + low


@inner
def _count(values: Array, low: int, first: int, last: int, counts: Array, by: int, code: int) -> Any:
    """Count rows in or out; how many of them are before ``code``."""
    below = np.int64(0)
    for row in range(first, last):
        value = values[np.uint64(row)] - low
        counts[np.uint64(value)] += by
        below += value < code
    return below


@inner
def _walk(counts: Array, code: int, below: int, rank: int) -> Any:
    """The code that has a rank, and how many rows are before it."""
    while below > rank:
        code -= 1
        below -= counts[np.uint64(code)]
    while below + counts[np.uint64(code)] <= rank:
        below += counts[np.uint64(code)]
        code += 1
    return code, below


@inner
def _interpolate(counts: Array, code: int, below: int, low: int, upper: int, weight: float) -> float:
    """Between the value at ``code`` and the one that has the upper rank."""
    if upper < below + counts[np.uint64(code)]:
        return np.float64(code + low)
    other = code + 1
    while counts[np.uint64(other)] == 0:
        other += 1
    value = np.float64(code + low)
    return value + weight * (np.float64(other + low) - value)


@kernel
def _slide(
    values: Array, low: int, span: int, begin: Array, end: Array, order: Array, lower: Array, upper: Array,
    weight: Array, each: bool, interpolates: bool, out: Array,
) -> None:  # fmt: skip
    """Any ranges in any order."""
    counts = np.zeros(span + 1, np.int32)
    ranges = len(begin)
    first, last = np.zeros(ranges, np.int64), np.zeros(ranges, np.int64)
    code = below = size = np.int64(0)
    for j in range(len(out)):
        k = order[j] if len(order) else j
        for r in range(ranges):
            lo, hi = begin[r, k], end[r, k]
            if lo >= last[r] or hi <= first[r]:
                below -= _count(values, low, first[r], last[r], counts, np.int32(-1), code)
                size -= last[r] - first[r]
                first[r] = last[r] = lo
            below += _count(values, low, last[r], hi, counts, np.int32(1), code)
            below += _count(values, low, lo, first[r], counts, np.int32(1), code)
            below -= _count(values, low, first[r], lo, counts, np.int32(-1), code)
            below -= _count(values, low, hi, last[r], counts, np.int32(-1), code)
            size += (hi - lo) - (last[r] - first[r])
            first[r], last[r] = lo, hi
        if size > 0:
            at = k if each else size
            code, below = _walk(counts, code, below, np.int64(lower[at]))
            if interpolates:
                out[k] = _interpolate(counts, code, below, low, upper[at], weight[at])
            else:
                out[k] = code + low
