"""Cuts of unordered rows into tasks, and the rows that tasks need of their neighbours, found from a sample of the keys.

Around each cut lie the rows that frames of the tasks on both sides may reach. Where they begin and end is guessed from
the sample; when they are here, ``share_out`` sees whether they are enough.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.dataframes.cuts import TIE, Cuts, hashed_columns, literal, write_below, write_search, write_whole
from windrow.dataframes.keys import join_chunks, steps
from windrow.dataframes.order import Halo
from windrow.dataframes.row_order import encode_hashes, encode_key
from windrow.dataframes.rows import SortedRows
from windrow.dataframes.sessions import quote_name
from windrow.dataframes.spec import BoundFrame, FrameBound, FrameTask
from windrow.kernels.frames.row_sorting import sort_rows
from windrow.model.frame import SortKey

DEVIATIONS = 6.0
"""Standard deviations by which the rows between two sampled ones may be fewer than expected."""
SPARE = 4
"""Sampled rows beside these, for frames that are short against the distances between sampled rows."""

FIRST, AT, LAST = -1, 0, 1
LEAST = -(2**63)


@dataclass(frozen=True, order=True)
class Mark:
    """A place in the order: before a sampled row, before its partition's first or after its partition's last row.

    ``row`` is then the first or the last sampled row of the partition, so that marks sort as they lie.
    """

    row: int
    side: int = AT


@dataclass(frozen=True)
class Border:
    """A cut between two tasks, and from where to where frames of either may reach."""

    start: Mark
    cut: Mark
    stop: Mark


@dataclass(frozen=True, eq=False)
class KeySample:
    """The keys of some rows in order; with the hashes of these rows if some keys are equal."""

    keys: pa.Table
    rows: int  # of which these are a sample
    partition: tuple[SortKey, ...]
    order: tuple[SortKey, ...]
    groups: int = 1  # the groups of peers among all rows, where frames count them

    @property
    def fraction(self) -> float:
        return int(self.keys.num_rows) / max(self.rows, 1)

    @property
    def group_fraction(self) -> float:
        """The share of groups of peers that have a row in the sample."""
        return min(1.0, (len(self.sorted_rows.peer_starts) - 1) / max(self.groups, 1))

    @cached_property
    def sorted_rows(self) -> SortedRows:
        return SortedRows(self.keys, self.partition, self.order)

    @cached_property
    def ties(self) -> list[int | None]:
        """For each row its hash, if another row has the same keys."""
        if TIE not in self.keys.column_names:
            return [None] * self.keys.num_rows
        equal = steps(self.keys, self.partition + self.order) == 0
        tied = np.concatenate([equal, [False]]) | np.concatenate([[False], equal])
        hashes = join_chunks(self.keys.column(TIE)).to_pylist()
        return [tie if there else None for tie, there in zip(hashes, tied.tolist(), strict=True)]

    def write_below(self, mark: Mark, kinds: Mapping[str, Any]) -> str:
        """Spark SQL for whether a row sorts before a mark."""
        keys = self.partition + (self.order if mark.side == AT else ())
        values = [
            literal(self.keys.column(key.column)[mark.row].as_py(), kinds[key.column].simpleString()) for key in keys
        ]
        equal = "true" if mark.side == LAST else "false"
        tie = self.ties[mark.row] if mark.side == AT else None
        if tie is not None:
            columns = ", ".join(quote_name(name) for name in hashed_columns(kinds))
            equal = f"xxhash64({columns}) < {write_whole(tie)}"
        return write_below(keys, values, equal)


def choose_borders(task: FrameTask, sample: KeySample, tasks: int) -> tuple[Border, ...]:
    """Cuts into tasks of about the same number of rows, and what lies around them."""
    count = sample.keys.num_rows
    rows: list[int] = []
    for number in range(1, tasks):
        row = number * count // tasks
        tie = sample.ties[row] if count else None
        if row == 0 or (rows and row == rows[-1]):
            continue
        # Rows that are equal in all columns have one hash, and cannot be cut.
        if rows and tie is not None and tie == sample.ties[rows[-1]] and _are_peers(sample, rows[-1], row):
            continue
        rows.append(row)
    return tuple(_find_border(task, sample, row) for row in rows)


def choose_clean_borders(sample: KeySample, tasks: int, through: bool) -> tuple[Border, ...]:
    """Cuts between partitions or, where they may go ``through`` these, between groups of peers."""
    count, rows = sample.keys.num_rows, [0]
    for number in range(1, tasks):
        row = number * count // tasks
        whole = sample.sorted_rows.peers if through else sample.sorted_rows.groups
        first = int(whole(row, row + 1)[0][0]) if row else 0
        if first > rows[-1]:
            rows.append(first)
    marks = [Mark(row, AT if through else FIRST) for row in rows[1:]]
    return tuple(Border(mark, mark, mark) for mark in marks)


def cuts_through(sample: KeySample, borders: Sequence[Border]) -> Cuts:
    """Cuts between groups of peers, of which it matters which partitions they go through."""
    rows = pa.array([border.cut.row for border in borders], pa.int64())
    return Cuts(sample.keys.take(rows), (None,) * len(borders), sample.partition, sample.order)


def estimate_tasks(sample: KeySample, borders: Sequence[Border]) -> list[int]:
    """About how many rows each task has."""
    edges = [0, *(border.cut.row for border in borders), sample.keys.num_rows]
    return [round((stop - start) / max(sample.fraction, 1e-12)) for start, stop in pairwise(edges)]


def _are_peers(sample: KeySample, one: int, other: int) -> bool:
    first, last = sample.sorted_rows.peers(other, other + 1)
    return int(first[0]) <= one < int(last[0])


def _find_border(task: FrameTask, sample: KeySample, row: int) -> Border:
    first, last = (int(edge[0]) for edge in sample.sorted_rows.groups(row, row + 1))
    low, high = row, row
    for frame in task.envelopes:
        before, after = _find_reach(frame, sample, row)
        low, high = min(low, before), max(high, after)
    start = Mark(low) if low >= first else Mark(first, FIRST)
    return Border(start, Mark(row), Mark(high) if high < last else Mark(last - 1, LAST))


def _find_reach(frame: BoundFrame, sample: KeySample, row: int) -> tuple[int, int]:
    """The sampled rows between which lies all that frames at a cut before a sampled row may reach."""
    before, after = (abs(bound.offset) for bound in (frame.start, frame.end))  # type: ignore[arg-type]
    if frame.unit == "rows":
        return row - _expect(before, sample.fraction), row + _expect(after, sample.fraction)
    if frame.unit == "groups":
        # Small groups mostly have no row in the sample; so many of those that have one are enough.
        before, after = (
            min(wanted, _expect(wanted and wanted + 2, sample.group_fraction)) for wanted in (before, after)
        )
        frame = replace(frame, start=FrameBound(-before), end=FrameBound(after))
    found = sample.sorted_rows.bounds(frame, row, row + 1)
    # The sampled rows next to the frame are not in it, and so lie beyond all rows that are.
    return int(found[0][0]) - 1, int(found[1][0]) + 1


def _expect(amount: Any, fraction: float) -> int:
    """How many sampled rows surely hold so many rows between them."""
    if not amount:
        return 0
    expected = float(amount) * fraction
    return math.ceil(expected + DEVIATIONS * math.sqrt(expected)) + SPARE


def estimate_neighbours(sample: KeySample, borders: Sequence[Border]) -> int:
    """About how many rows all tasks together need of their neighbours."""
    return round(sum(border.stop.row - border.start.row + 1 for border in borders) / max(sample.fraction, 1e-12))


def write_task(sample: KeySample, borders: Sequence[Border], kinds: Mapping[str, Any]) -> str:
    """Spark SQL for the number of a row's task."""
    below = [sample.write_below(border.cut, kinds) for border in borders]
    return write_search(below, [str(number) for number in range(len(borders) + 1)])


def write_reached(sample: KeySample, borders: Sequence[Border], kinds: Mapping[str, Any]) -> str:
    """Spark SQL for whether a row lies where other tasks' frames may reach."""
    marks = sorted({mark for border in borders for mark in (border.start, border.stop)})
    held = [any(border.start <= mark < border.stop for border in borders) for mark in marks]
    leaves = ["false", *(str(there).lower() for there in held)]
    return write_search([sample.write_below(mark, kinds) for mark in marks], leaves)


@dataclass(frozen=True, eq=False)
class Shares:
    """The rows that each task needs of its neighbours, or why they are not enough."""

    halos: Mapping[int, Halo]
    obstacle: str | None = None


def share_out(task: FrameTask, sample: KeySample, borders: Sequence[Border], rows: pa.Table) -> Shares:
    """Each task's neighbouring rows, from all rows that lie around cuts.

    ``rows`` have their hashes if any have equal keys.
    """
    placed = _place_marks(task, sample, borders, rows)
    sides = []
    for border in borders:
        first, last = placed.groups[border.cut.row]
        cut = placed.places[border.cut.row]
        start = first if border.start.side == FIRST else placed.places[border.start.row]
        stop = last if border.stop.side == LAST else placed.places[border.stop.row]
        before, after = placed.rows.slice(start, cut - start), placed.rows.slice(cut, stop - cut)
        for frame in task.envelopes:
            short = _find_shortage(task, sample, border, frame.unit, frame.start.offset, before)
            short = short or _find_shortage(task, sample, border, frame.unit, frame.end.offset, after)
            if short is not None:
                return Shares({}, short)
        sides.append((before, after))
    ends = [(None, None), *sides, (None, None)]
    return Shares(
        {number: Halo(0, one[0], other[1]) for number, (one, other) in enumerate(pairwise(ends))},
    )


def _find_shortage(
    task: FrameTask, sample: KeySample, border: Border, unit: str, offset: Any, found: pa.Table
) -> str | None:
    """Why rows on one side of a cut are too few; the ends of ranges are known, those of other frames are guessed.

    Frames reach rows before a cut if their offset is negative, and rows after it if it is positive.
    """
    edge = border.start if offset < 0 else border.stop
    if edge.side != AT or unit == "range" or not offset:
        return None
    wanted, there = abs(offset), found.num_rows
    if unit == "groups" and there:
        # The group at the far end may have more rows beyond it. That of a cut through equal keys is the task's own.
        nearest = found.slice(there - 1 if offset < 0 else 0, 1).select(sorted({key.column for key in task.keys}))
        cut = sample.keys.slice(border.cut.row, 1).select(nearest.column_names)
        own = sample.ties[border.cut.row] is not None and steps(pa.concat_tables([nearest, cut]), task.keys)[0] == 0
        wanted, there = wanted + 1 + own, int(np.count_nonzero(steps(found, task.keys))) + 1
    if there >= wanted:
        return None
    return f"the sample is misleading: {there:,} {unit} were found at a cut where frames reach {wanted:,}"


@dataclass(frozen=True, eq=False)
class _Placed:
    """Rows in order, and how many of them lie before each mark, and before its partition's first and last."""

    rows: pa.Table
    places: Mapping[int, int]
    groups: Mapping[int, tuple[int, int]]


def _place_marks(task: FrameTask, sample: KeySample, borders: Sequence[Border], rows: pa.Table) -> _Placed:
    marks = sorted({mark.row for border in borders for mark in (border.start, border.cut, border.stop)})
    names = list(dict.fromkeys(key.column for key in task.keys))
    marked = sample.keys.take(pa.array(marks, pa.int64()))
    whole = pa.concat_tables([marked.select(names), rows.select(names)]).combine_chunks()
    codes = [code for key in task.keys for code in encode_key(join_chunks(whole.column(key.column)), key)]
    if TIE in rows.column_names:
        # A mark before all rows of a key comes before every hash.
        ties = [LEAST if sample.ties[row] is None else sample.ties[row] for row in marks]
        codes.append(
            encode_hashes(np.concatenate([np.array(ties, np.int64), join_chunks(rows.column(TIE)).to_numpy()]))
        )
    order = sort_rows(codes, len(marks) + rows.num_rows)
    own = order >= len(marks)
    passed: npt.NDArray[np.int64] = np.concatenate([[0], np.cumsum(own)])
    place_of = np.empty(len(order), np.int64)
    place_of[order] = np.arange(len(order))
    places = {row: int(passed[place_of[number]]) for number, row in enumerate(marks)}
    groups = dict.fromkeys(marks, (0, int(rows.num_rows)))
    if task.partition:
        ordered = SortedRows(whole.take(pa.array(order)), task.partition, task.order)
        for number, row in enumerate(marks):
            first, last = ordered.groups(int(place_of[number]), int(place_of[number]) + 1)
            groups[row] = (int(passed[first[0]]), int(passed[last[0]]))
    return _Placed(rows.take(pa.array(order[own] - len(marks))), places, groups)
