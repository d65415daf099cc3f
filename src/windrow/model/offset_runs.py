"""Offsets as runs along one dimension: what a merge join walks through, and arithmetic with such runs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from windrow.errors import SchemaError

Int64Array = npt.NDArray[np.int64]

MOST_OFFSETS = 2**24
"""More offsets, or rows of them, than this are not listed one by one."""


class Runs(NamedTuple):
    """For each row, the offset in the leading dimensions and the range ``first`` to ``last`` in the last one."""

    leading: Int64Array
    first: Int64Array
    last: Int64Array


class KeyRuns(NamedTuple):
    """Offsets as runs along the last of ``axes``; those along the others lead. Sorted by the leading ones, then first.

    Dimensions that are not among the axes may have any offset. Along a periodic dimension each neighbour is held
    once, by whichever of its offsets, so that the runs themselves say how far they reach (``bounds``). Whether a cell
    is its own neighbour is not said here.
    """

    axes: tuple[int, ...]
    leading: Int64Array
    first: Int64Array
    last: Int64Array

    @property
    def size(self) -> int:
        """Number of offsets."""
        lengths = zip(self.first.tolist(), self.last.tolist(), strict=True)
        return sum(last - first + 1 for first, last in lengths)

    def bounds(self) -> tuple[tuple[int, int], ...]:
        """For each of the axes the least and the largest offset; (0, -1) if there are no offsets."""
        if not len(self.first):
            return ((0, -1),) * len(self.axes)
        least, most = self.leading.min(axis=0).tolist(), self.leading.max(axis=0).tolist()
        ends = [(int(self.first.min()), int(self.last.max()))] if self.axes else []
        return (*zip(least, most, strict=True), *ends)

    def offsets(self) -> Int64Array:
        """Every offset, with a column for each of the axes."""
        listed = expanded(Runs(self.leading, self.first, self.last))
        return listed if self.axes else listed[:, :0]


def check_size(count: float) -> None:
    """Refuse to list more offsets than memory should hold."""
    if count > MOST_OFFSETS:
        hint = "Use a smaller radius or list, or ranges: along one dimension a range counts once, however long it is"
        raise SchemaError("the shape has too many offsets to list", got=f"about {count:.3g}", hint=hint)


def expanded(runs: Runs) -> Int64Array:
    """Every offset of the runs."""
    check_size(float(np.sum(np.maximum(runs.last.astype(float) - runs.first + 1, 0))))
    counts = np.maximum(runs.last - runs.first + 1, 0)
    ends = np.cumsum(counts)
    within = np.arange(counts.sum()) - np.repeat(ends - counts, counts)
    return np.column_stack([np.repeat(runs.leading, counts, axis=0), np.repeat(runs.first, counts) + within])


def as_runs(listed: Int64Array) -> Runs:
    """Offsets in row-major order, as runs."""
    if not len(listed):
        return Runs(listed[:, :-1], listed[:, -1], listed[:, -1])
    breaks = (listed[1:, :-1] != listed[:-1, :-1]).any(axis=1) | (listed[1:, -1] != listed[:-1, -1] + 1)
    first = np.flatnonzero(np.concatenate([[True], breaks]))
    last = np.flatnonzero(np.concatenate([breaks, [True]]))
    return Runs(listed[first, :-1], listed[first, -1], listed[last, -1])


def without_self(runs: Runs) -> Runs:
    """The runs with the offset 0 taken out of the one that holds it."""
    holds = ~runs.leading.any(axis=1) & (runs.first <= 0) & (runs.last >= 0)
    if not holds.any():
        return runs
    at = int(np.flatnonzero(holds)[0])
    leading = np.insert(runs.leading, at, runs.leading[at], axis=0)
    first, last = np.insert(runs.first, at + 1, 1), np.insert(runs.last, at, -1)
    kept = first <= last
    return Runs(leading[kept], first[kept], last[kept])


def subtract(runs: Runs, taken: Runs | None = None) -> Runs:
    """The offsets of ``runs`` that are in no run of ``taken``, each once, in order, in the fewest runs.

    Both ends of all runs are passed in order, counting how many runs of either kind are open.
    """
    taken = Runs(runs.leading[:0], runs.first[:0], runs.last[:0]) if taken is None else taken
    kinds = [part for part in (runs, taken) for _ in range(2)]
    rows, group = _numbered_rows(np.concatenate([part.leading for part in kinds]))
    place = np.concatenate([runs.first, runs.last + 1, taken.first, taken.last + 1])
    step = np.repeat(np.array([1, -1], np.int64), len(runs.first)), np.repeat(np.array([1, -1]), len(taken.first))
    nothing = np.zeros(2 * len(runs.first), np.int64), np.zeros(2 * len(taken.first), np.int64)
    order = np.lexsort((place, group))
    group, place = group[order], place[order]
    held = np.cumsum(np.concatenate([step[0], nothing[1]])[order])
    gone = np.cumsum(np.concatenate([nothing[0], step[1]])[order])
    # What lies between two ends is in the result or not as the counts after the former say.
    kept = np.flatnonzero((held[:-1] > 0) & (gone[:-1] == 0) & (place[1:] > place[:-1]))
    group, first, stop = group[kept], place[kept], place[kept + 1]
    joins = (group[1:] == group[:-1]) & (first[1:] == stop[:-1])
    begins, ends = np.append(True, ~joins)[: len(kept)], np.append(~joins, True)[: len(kept)]
    return Runs(rows[group[begins]], first[begins], stop[ends] - 1)


def _numbered_rows(leading: Int64Array) -> tuple[Int64Array, Int64Array]:
    """The distinct rows in order, and the number of each row among them."""
    if not leading.shape[1] or not len(leading):
        return leading[:1], np.zeros(len(leading), np.int64)
    rows, group = np.unique(leading, axis=0, return_inverse=True)
    return rows, group.reshape(-1)


def wrapped_into(runs: Runs, start: int, modulus: int) -> Runs:
    """The runs with both ends moved, by turns of ``modulus``, to between ``start`` and ``start + modulus - 1``.

    A run is cut in two where it leaves that range; one that is longer than a turn meets everything once.
    """
    first = start + (runs.first - start) % modulus
    last = first + np.minimum(runs.last - runs.first, modulus - 1)
    cut = last >= start + modulus
    leading = np.concatenate([runs.leading, runs.leading[cut]])
    begins = np.concatenate([first, np.full(int(cut.sum()), start, np.int64)])
    ends = np.concatenate([np.minimum(last, start + modulus - 1), last[cut] - modulus])
    return Runs(leading, begins, ends)
