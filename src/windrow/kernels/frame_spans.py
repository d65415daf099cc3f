"""Frames as ranges of present rows.

Rows that are missing, or that a FILTER leaves out, are taken out of the values first, and the frames' bounds are moved
to where they are then; so no other kernel of frames needs to know of missing rows. EXCLUDE cuts a frame into at most
three ranges: the rows before the cut, those after it, and for ``ties`` the current row itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from windrow.errors import DataError

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]
Int64Array = npt.NDArray[np.int64]


COMPILED = 1 << 15
"""Frames for which it pays to load compiled code."""


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


@dataclass(frozen=True, eq=False)
class Spans:
    """The rows ``begin[r, k] <= row < end[r, k]`` of ranges r make up frame k; ranges do not overlap.

    No range ends before it begins. Range 0 lies before range 1, and range 2 (the current row) between them.
    """

    begin: Int64Array
    end: Int64Array
    rows: int
    surveyed: Survey | None = field(default=None, repr=False)

    @property
    def count(self) -> int:
        return self.begin.shape[1]

    @property
    def whole(self) -> bool:
        """Whether nothing is excluded, so that every frame is one range."""
        return len(self.begin) == 1

    @cached_property
    def sizes(self) -> Int64Array:
        """How many rows each frame has."""
        sizes: Int64Array = (self.end - self.begin).sum(0) if len(self.begin) > 1 else self.end[0] - self.begin[0]
        return sizes

    @cached_property
    def survey(self) -> Survey:
        return self.surveyed or survey(self.begin, self.end)

    @property
    def most(self) -> int:
        """The rows of the largest frame."""
        return max(0, self.survey.most)

    @property
    def fewest(self) -> int:
        """The rows of the smallest frame."""
        return self.survey.fewest

    def present(self, there: Mask | None) -> Spans:
        """The same frames after all rows that are not ``there`` have been taken out."""
        if there is None:
            return self
        before = np.zeros(self.rows + 1, np.int64)
        np.cumsum(there, out=before[1:])
        return Spans(before[self.begin], before[self.end], int(before[-1]))


def survey(begin: Int64Array, end: Int64Array) -> Survey:
    """What there is to know about frames before anything is done with them."""
    frames = begin.shape[1]
    if frames > COMPILED:
        from windrow.kernels.frame_survey import survey_one, survey_several

        found = survey_one(begin[0], end[0]) if len(begin) == 1 else survey_several(begin, end)
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
    seen = survey(lo[None], hi[None])
    if seen.first < 0 or seen.last > rows or seen.fewest < 0:
        lo = np.clip(lo, 0, rows)
        hi = np.clip(hi, lo, rows)
        seen = survey(lo[None], hi[None])
    if cut is None:
        return Spans(lo[None], hi[None], rows, seen)
    cut_lo, cut_hi = (np.clip(np.asarray(side, np.int64), lo, hi) for side in cut)
    begin, end = [lo, cut_hi], [cut_lo, hi]
    if current is not None:
        inside = (current >= lo) & (current < hi)
        own = np.where(inside, current, lo)
        begin.append(own)
        end.append(own + inside)
    return Spans(np.stack(begin), np.stack(end), rows)
