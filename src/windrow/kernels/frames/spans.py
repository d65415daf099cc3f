"""Frames as ranges of present rows.

Rows that are missing, or that a FILTER leaves out, are taken out of the values first, and the frames' bounds are moved
to where they are then; so no other kernel of frames needs to know of missing rows. EXCLUDE cuts a frame into at most
three ranges: the rows before the cut, those after it, and for ``ties`` the current row itself.

Most frames are windows at the same distance from every row. Those are recognised by one look, and nobody who knows
their distance needs their bounds, so that bounds are written down only when they are asked for.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from windrow.errors import DataError

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]
Int64Array = npt.NDArray[np.int64]
Bounds = tuple[Int64Array, Int64Array]

COMPILED = 1 << 15
"""Frames for which it pays to load compiled code."""
NO_BOUNDS: Int64Array = np.zeros(0, np.int64)
FARTHEST = 1 << 40
"""Starts and lengths beyond this are not added up."""


class Survey(NamedTuple):
    """What one look at frames tells: the first and last rows, the smallest and largest frame, and how frames move.

    ``moves`` is how many rows come and go from frame to frame if a frame may begin anew, ``shifted`` if it may not.
    """

    first: int
    last: int
    fewest: int
    most: int
    moves: int
    shifted: int


class Starts(NamedTuple):
    """Frames of one length, whole or cut off at the first or the last row: where each would start if it were whole."""

    place: Int64Array
    first: int
    last: int
    length: int


class Spans:
    """The rows ``begin[r, k] <= row < end[r, k]`` of ranges r make up frame k; ranges do not overlap.

    No range ends before it begins. Range 0 lies before range 1, and range 2 (the current row) between them.
    """

    starts: Starts | None = None
    """Where frames that are known to be of one length start."""

    def __init__(self, bounds: Bounds, rows: int, survey: Survey | None = None, *, outside: bool = False) -> None:
        """``outside`` says that bounds may lie beyond the rows; then there is one range, and a survey."""
        self._bounds, self.rows, self._outside = bounds, rows, outside
        self.ranges, self.count = bounds[0].shape
        if survey is not None:
            self.survey = survey

    @cached_property
    def begin(self) -> Int64Array:
        return self._inside[0]

    @cached_property
    def end(self) -> Int64Array:
        return self._inside[1]

    @cached_property
    def _inside(self) -> Bounds:
        lo, hi = self._bounds
        return cut_bounds(lo[0], hi[0], self.rows) if self._outside else self._bounds

    @property
    def whole(self) -> bool:
        """Whether nothing is excluded, so that every frame is one range."""
        return self.ranges == 1

    @cached_property
    def offsets(self) -> tuple[int, int] | None:
        """(start, stop) if frame k holds the rows from k + start to k + stop, as far as there are any."""
        return offsets_of(self.begin[0], self.end[0], self.rows) if self.whole and self.count else None

    def one_range(self, first: int = 0) -> tuple[Int64Array, Int64Array, int, int]:
        """What kernels that slide take: the bounds of frames from ``first`` on, or none and the offsets of windows."""
        if self.offsets is None:
            return self.begin[0, first:], self.end[0, first:], 0, 0
        start, stop = self.offsets
        return NO_BOUNDS, NO_BOUNDS, start + first, stop + first

    @cached_property
    def sizes(self) -> Int64Array:
        """How many rows each frame has."""
        sizes: Int64Array = (self.end - self.begin).sum(0) if self.ranges > 1 else self.end[0] - self.begin[0]
        return sizes

    @cached_property
    def survey(self) -> Survey:
        return survey(self.begin, self.end)

    @property
    def most(self) -> int:
        """The rows of the largest frame."""
        return max(0, self.survey.most)

    @property
    def fewest(self) -> int:
        """The rows of the smallest frame."""
        return self.survey.fewest

    def rows_numbered(self, numbers: Int64Array | int) -> Int64Array:
        """The row of each frame that has so many of the frame's rows before it; -1 if there is none."""
        found = np.full(self.count, -1, np.int64)
        before = np.broadcast_to(np.asarray(numbers, np.int64), found.shape)
        for number in (0, 2, 1)[: self.ranges] if self.ranges == 3 else range(self.ranges):
            begin, size = self.begin[number], self.end[number] - self.begin[number]
            found = np.where((before >= 0) & (before < size), begin + before, found)
            before = before - size
        return found

    def present(self, there: Mask | None) -> Spans:
        """The same frames after all rows that are not ``there`` have been taken out."""
        if there is None:
            return self
        before = np.zeros(self.rows + 1, np.int64)
        np.cumsum(there, out=before[1:])
        return Spans((before[self.begin], before[self.end]), int(before[-1]))


class Windows(Spans):
    """Frame k holds the rows from ``k + start`` to ``k + stop``, as far as there are any."""

    def __init__(self, count: int, rows: int, start: int, stop: int) -> None:
        self.count, self.rows, self.ranges, self.offsets = count, rows, 1, (start, stop)

    @cached_property
    def _inside(self) -> Bounds:
        from windrow.kernels.frames.survey import window_bounds

        begin, end = np.empty((2, 1, self.count), np.int64)
        window_bounds(*(self.offsets or (0, 0)), self.rows, begin[0], end[0])
        return begin, end

    @cached_property
    def sizes(self) -> Int64Array:
        start, stop = self.offsets or (0, 0)
        sizes = np.full(self.count, stop - start + 1, np.int64)
        first, last = find_uncut(self)
        for part in (slice(0, first), slice(last, self.count)):
            place = np.arange(part.start, part.stop)
            begin = np.clip(place + start, 0, self.rows)
            sizes[part] = np.clip(place + (stop + 1), begin, self.rows) - begin
        return sizes

    @cached_property
    def survey(self) -> Survey:
        start, stop = self.offsets or (0, 0)

        def bounds(k: int) -> tuple[int, int]:
            begin = min(max(k + start, 0), self.rows)
            return begin, min(max(k + stop + 1, begin), self.rows)

        # Bounds never fall, and sizes grow until frames are whole and fall when they reach the last row.
        last = self.count - 1
        turns = {min(max(k, 0), last) for k in (0, -start, self.rows - stop - 1, last)}
        sizes = [end - begin for begin, end in map(bounds, turns)]
        (low, high), (far, end) = bounds(0), bounds(last)
        return Survey(low, end, min(sizes), max(sizes), far - low + end - high, far - low + end - high)


def find_uncut(spans: Spans) -> tuple[int, int]:
    """The first whole window and the one after the last; windows before and after these are cut off."""
    start, stop = spans.offsets or (0, 0)
    first = min(max(0, -start), spans.count)
    return first, max(first, min(spans.count, spans.rows - stop))


def cut_bounds(lo: Int64Array, hi: Int64Array, rows: int) -> Bounds:
    """Bounds without what lies beyond the rows, as one range."""
    if len(lo) > COMPILED:
        from windrow.kernels.frames.survey import cut_off

        begin, end = np.empty_like(lo), np.empty_like(hi)
        cut_off(lo, hi, rows, begin, end)
    else:
        begin = np.clip(lo, 0, rows)
        end = np.clip(hi, begin, rows)
    return begin[None], end[None]


def offsets_of(lo: Int64Array, hi: Int64Array, rows: int) -> tuple[int, int] | None:
    """The offsets of frames that are windows."""
    from windrow.kernels.frames.survey import are_windows

    middle = len(lo) // 2
    start, stop = int(lo[middle]) - middle, int(hi[middle]) - 1 - middle
    near = max(abs(start), abs(stop)) < FARTHEST and stop >= start
    return (start, stop) if near and are_windows(lo, hi, start, stop, rows) else None


def survey(begin: Int64Array, end: Int64Array) -> Survey:
    """What there is to know about frames before anything is done with them."""
    frames = begin.shape[1]
    if frames > COMPILED:
        from windrow.kernels.frames.survey import survey_one, survey_several

        one = len(begin) == 1
        found = survey_one(begin[0], end[0], np.iinfo(np.int64).max)[0] if one else survey_several(begin, end)
        return Survey(*(int(number) for number in found))
    if not frames:
        return Survey(0, 0, 0, 0, 0, 0)
    sizes = end - begin
    moved = np.abs(np.diff(begin)) + np.abs(np.diff(end))
    anew = sizes[:, 1:] + sizes[:, :-1]
    whole = sizes.sum(0)
    return Survey(
        int(begin.min()), int(end.max()), int(whole.min()), int(whole.max()), int(np.minimum(moved, anew).sum()),
        int(moved.sum()),
    )  # fmt: skip


def spans_of(
    lo: Int64Array,
    hi: Int64Array,
    rows: int,
    cut: tuple[Int64Array, Int64Array] | None = None,
    current: Int64Array | None = None,
) -> Spans:
    """The frames ``lo <= row < hi`` without the rows of ``cut``, except for the row ``current`` if that is given."""
    lo, hi = np.ascontiguousarray(lo, np.int64), np.ascontiguousarray(hi, np.int64)
    if lo.shape != hi.shape or lo.ndim != 1:
        raise DataError("lo and hi must be vectors of one length", got=f"{lo.shape} and {hi.shape}")
    if cut is None:
        return _many_spans(lo, hi, rows) if len(lo) > COMPILED else Spans(cut_bounds(lo, hi, rows), rows)
    lo, hi = (side[0] for side in cut_bounds(lo, hi, rows))
    cut_lo, cut_hi = (np.clip(np.asarray(side, np.int64), lo, hi) for side in cut)
    begin, end = [lo, cut_hi], [cut_lo, hi]
    if current is not None:
        inside = (current >= lo) & (current < hi)
        own = np.where(inside, current, lo)
        begin.append(own)
        end.append(own + inside)
    return Spans((np.stack(begin), np.stack(end)), rows)


def _many_spans(lo: Int64Array, hi: Int64Array, rows: int) -> Spans:
    """Frames of one range each, and their survey."""
    from windrow.kernels.frames.survey import survey_one

    offsets = offsets_of(lo, hi, rows)
    if offsets is not None:
        return Windows(len(lo), rows, *offsets)
    seen, (first, last, shortest, longest, outside) = survey_one(lo, hi, rows)
    spans = Spans((lo[None], hi[None]), rows, Survey(*(int(number) for number in seen)), outside=bool(outside))
    spans.offsets = None
    if shortest == longest and 0 < longest < FARTHEST and first > -FARTHEST and last < FARTHEST:
        spans.starts = Starts(lo, int(first), int(last), int(longest))
    return spans
