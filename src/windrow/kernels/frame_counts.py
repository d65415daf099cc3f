"""Distinct values and modes of frames as in paper 003: ``naive``, and ``incremental`` with the threshold tau."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.kernels.frame_spans import Spans
from windrow.kernels.frame_table import NONZERO, TAKEN, FrameTable, add, flush, frame_table, mode, remove
from windrow.kernels.jit import inner, kernel
from windrow.kernels.results import Outcome

Array = npt.NDArray[Any]


def counted_frames(operation: str, values: Array, spans: Spans, tau: float, *, reuses: bool) -> Outcome:
    """``distinct`` or ``mode``: Algorithms 1 and 3, or with ``reuses`` Algorithms 2 and 4."""
    table = frame_table(len(values), spans.most, tau if reuses else 1.0, values.dtype)
    distinct, modes = np.zeros(spans.count, np.int64), np.zeros(spans.count, values.dtype)
    run = _incremental if reuses else _naive
    run(values, spans.begin, spans.end, table, tau, operation == "mode", distinct, modes)
    return Outcome(distinct, modes, spans.sizes)


@inner
def _fill(values: Array, begin: Array, end: Array, k: int, table: FrameTable) -> None:
    flush(table)
    for r in range(len(begin)):
        for row in range(begin[r, k], end[r, k]):
            add(table, values[row])


@kernel
def _naive(
    values: Array, begin: Array, end: Array, table: FrameTable, tau: float, wants_mode: bool, distinct: Array,
    modes: Array,
) -> None:  # fmt: skip
    for k in range(begin.shape[1]):
        _fill(values, begin, end, k, table)
        _answer(table, wants_mode, k, distinct, modes)


@inner
def _answer(table: FrameTable, wants_mode: bool, k: int, distinct: Array, modes: Array) -> None:
    distinct[k] = table.state[NONZERO]
    if wants_mode and distinct[k] > 0:
        modes[k] = mode(table)


@kernel
def _incremental(
    values: Array, begin: Array, end: Array, table: FrameTable, tau: float, wants_mode: bool, distinct: Array,
    modes: Array,
) -> None:  # fmt: skip
    for k in range(begin.shape[1]):
        if k == 0 or table.state[NONZERO] <= tau * table.state[TAKEN] or not _overlap(begin, end, k):
            _fill(values, begin, end, k, table)
        else:
            _move(values, begin, end, k, table)
        _answer(table, wants_mode, k, distinct, modes)


@inner
def _overlap(begin: Array, end: Array, k: int) -> bool:
    """Whether a frame has a row in common with the one before."""
    shared = False
    for r in range(len(begin)):
        shared |= max(begin[r, k], begin[r, k - 1]) < min(end[r, k], end[r, k - 1])
    return shared


@inner
def _move(values: Array, begin: Array, end: Array, k: int, table: FrameTable) -> None:
    """From the frame before: take out what has left, add what has come."""
    for r in range(len(begin)):
        first, last, low, high = begin[r, k - 1], end[r, k - 1], begin[r, k], end[r, k]
        for row in range(first, min(last, low)):
            remove(table, values[row])
        for row in range(max(first, high), last):
            remove(table, values[row])
    for r in range(len(begin)):
        first, last, low, high = begin[r, k - 1], end[r, k - 1], begin[r, k], end[r, k]
        for row in range(low, min(high, first)):
            add(table, values[row])
        for row in range(max(low, last), high):
            add(table, values[row])
