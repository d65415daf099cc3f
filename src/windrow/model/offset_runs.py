"""Offsets in row-major order, as runs along the last dimension: what a merge join walks through."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from windrow.errors import SchemaError

Int64Array = npt.NDArray[np.int64]

MOST_OFFSETS = 2**24
"""More offsets than this are not listed one by one."""


class Runs(NamedTuple):
    """For each row, the offset in the leading dimensions and the range ``first`` to ``last`` in the last one."""

    leading: Int64Array
    first: Int64Array
    last: Int64Array


def check_size(count: float) -> None:
    """Refuse to list more offsets than memory should hold."""
    if count > MOST_OFFSETS:
        hint = "Use a smaller radius, or bind the shape with the array's bounds if it is unlimited"
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
