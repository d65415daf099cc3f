"""Order statistics of frames, whatever the frames: six ways, of which the cheapest is taken.

- Windows of up to a thousand rows over few values: many side by side.
- Frames at regular offsets are windows, for which networks on lanes and sets of bits are there already.
- Few values and frames that slide: a counter for each value, and a walk from the last answer.
- Many values and frames that slide: sets of ranks, block by block.
- Short frames that do not slide: each on its own.
- Anything else: wavelet matrices.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.kernels.frame_bitset import bitset_select
from windrow.kernels.frame_codes import span_of
from windrow.kernels.frame_lanes import exact_lanes, fit_lanes, lane_select
from windrow.kernels.frame_order import Path, sliding_path
from windrow.kernels.frame_quantile import quantile_frames
from windrow.kernels.frame_spans import Spans, uncut
from windrow.kernels.frame_survey import bounds_at
from windrow.kernels.frame_wavelet import wavelet_select
from windrow.kernels.jit import inner, kernel
from windrow.kernels.keys import keys_of
from windrow.kernels.ranks import RankTable
from windrow.kernels.results import rank_arrays
from windrow.kernels.select import window_select
from windrow.kernels.sweep import Sweep

Array = npt.NDArray[Any]

FEW = 1 << 12
"""Counters of so many values are quickly walked."""
SPARSE = 4
"""Counters are walked quickly while frames have at least one row for so many of them."""
SIDE_BY_SIDE = 1 << 10
"""Rows of windows that are counted side by side; with more, a walk along counters is as short."""
NETWORKS = 124
"""Rows of windows that networks on lanes sort."""
SHORT = 24
"""Rows of frames that are quickly sorted, each on its own."""


def select_frames(values: Array, spans: Spans, ranks: RankTable) -> Array:
    """The order statistic of every frame, as a float64 if ``ranks`` interpolates, else as a value."""
    close = span_of(values)
    if close is not None and fit_lanes(spans, close[1], SIDE_BY_SIDE) and exact_lanes(close[0]):
        return _select_lanes(values, close, spans, ranks)
    few = close is not None and close[1] <= min(FEW, SPARSE * spans.most)
    # Beyond what networks do, frames that slide are as good as windows, and better where there are two ranks to find.
    offsets = None if spans.most > NETWORKS and (few or ranks.interpolates) else spans.offsets
    if offsets is not None:
        return window_select(values, [Sweep(0, spans.count, *offsets)], ranks).values
    path = sliding_path(spans)
    if few and path.slides(spans):
        assert close is not None
        return counter_select(values, close, spans, path, ranks)
    if not path.shifts(spans) and int(spans.sizes.sum()) <= SHORT * spans.count:
        outcome = quantile_frames(values, spans, ranks, "naive")
        return outcome.reals if ranks.interpolates else outcome.exact

    def select(keys: Array, picked: RankTable) -> Array:
        if path.shifts(spans):
            return bitset_select(keys, spans, path.order, picked)
        return wavelet_select(keys, spans, picked)

    keys = keys_of(values, None)
    if not ranks.interpolates:
        return keys.values(select(keys.floats, ranks))[0]
    if not keys.coded:
        return select(keys.floats, ranks)
    low, high = (keys.values(select(keys.floats, ranks.picking(side)))[0] for side in (ranks.lower, ranks.upper))
    return _between(low, high, ranks.weight[spans.sizes])


def _select_lanes(values: Array, close: tuple[int, int], spans: Spans, ranks: RankTable) -> Array:
    """Whole windows side by side, and one after the other those that are cut off at either end."""
    out = np.empty(spans.count, np.float64 if ranks.interpolates else np.int64)
    bits, tables = values.view(np.int64), rank_arrays(ranks)
    start, stop = spans.offsets or (0, 0)
    first, last = uncut(spans)
    lane_select(bits[first + start :], *close, stop - start + 1, ranks, out[first:last])
    for part in (slice(0, first), slice(last, spans.count)):
        _slide_one(bits, *close, *spans.one_range(part.start), *tables, ranks.interpolates, out[part])
    return out if ranks.interpolates else out.view(values.dtype)


def _between(low: Array, high: Array, weight: Array) -> Array:
    """Between whole numbers too large to be keys themselves."""
    floats: Array = low.astype(np.float64)
    return floats + weight * (high.astype(np.float64) - floats)


def counter_select(values: Array, close: tuple[int, int], spans: Spans, path: Path, ranks: RankTable) -> Array:
    """The order statistic of whole numbers that lie close together."""
    out = np.zeros(spans.count, np.float64 if ranks.interpolates else np.int64)
    tables = rank_arrays(ranks)
    bits = values.view(np.int64)
    if spans.whole and not len(path.order):
        _slide_one(bits, *close, *spans.one_range(), *tables, ranks.interpolates, out)
    else:
        _slide(bits, *close, spans.begin, spans.end, path.order, *tables, ranks.interpolates, out)
    return out if ranks.interpolates else out.view(values.dtype)


@kernel
def _slide_one(
    values: Array, low: int, span: int, begin: Array, end: Array, start: int, stop: int, lower: Array, upper: Array,
    weight: Array, interpolates: bool, out: Array,
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
            code, below = _walk(counts, code, below, np.int64(lower[np.uint64(hi - lo)]))
            if interpolates:
                size = np.uint64(hi - lo)
                out[k] = _interpolated(counts, code, below, low, upper[size], weight[size])
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
def _interpolated(counts: Array, code: int, below: int, low: int, upper: int, weight: float) -> float:
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
    weight: Array, interpolates: bool, out: Array,
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
            code, below = _walk(counts, code, below, np.int64(lower[size]))
            if interpolates:
                out[k] = _interpolated(counts, code, below, low, upper[size], weight[size])
            else:
                out[k] = code + low
