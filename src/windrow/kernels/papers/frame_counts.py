"""Distinct values and modes of frames as in paper 003: ``naive``, and ``incremental`` with the threshold tau."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiler.jit import bare, bare_kernel
from windrow.kernels.contract.outcomes import Outcome
from windrow.kernels.frames.spans import Spans
from windrow.kernels.papers.frame_table import NONZERO, FrameTable, add, flush, frame_table, is_worn, mode, remove

Array = npt.NDArray[Any]


def count_frames(operation: str, values: Array, spans: Spans, tau: float, *, reuses: bool) -> Outcome:
    """``distinct`` or ``mode``: Algorithms 1 and 3, or with ``reuses`` Algorithms 2 and 4."""
    table = frame_table(len(values), spans.most, tau if reuses else 1.0, values.dtype)
    out = np.zeros(spans.count, values.dtype if operation == "mode" else np.int64)
    # Adding 0.0 makes -0.0 a 0.0.
    bits = (values + 0.0 if values.dtype.kind == "f" else values).view(np.uint64)
    run = _run_incremental if reuses else _run_naive
    run(values, bits, spans.begin, spans.end, table, tau, operation == "mode", out)
    return Outcome(out, out, None)


@bare
def _fill(values: Array, bits: Array, begin: Array, end: Array, k: int, table: FrameTable, wants_mode: bool) -> None:
    flush(table)
    for r in range(len(begin)):
        for row in range(begin[r, k], end[r, k]):
            add(table, values[row], bits[row], wants_mode)


@bare
def _answer(table: FrameTable, wants_mode: bool, k: int, out: Array) -> None:
    if not wants_mode:
        out[k] = table.state[NONZERO]
    elif table.state[NONZERO] > 0:
        out[k] = mode(table)


@bare
def _overlap(begin: Array, end: Array, k: int) -> bool:
    """Whether a frame has a row in common with the one before."""
    shared = False
    for r in range(len(begin)):
        shared |= max(begin[r, k], begin[r, k - 1]) < min(end[r, k], end[r, k - 1])
    return shared


@bare
def _move(values: Array, bits: Array, begin: Array, end: Array, k: int, table: FrameTable, wants_mode: bool) -> None:
    """From the frame before: take out what has left, add what has come."""
    for r in range(len(begin)):
        first, last, low, high = begin[r, k - 1], end[r, k - 1], begin[r, k], end[r, k]
        for row in range(first, min(last, low)):
            remove(table, values[row], bits[row])
        for row in range(max(first, high), last):
            remove(table, values[row], bits[row])
    for r in range(len(begin)):
        first, last, low, high = begin[r, k - 1], end[r, k - 1], begin[r, k], end[r, k]
        for row in range(low, min(high, first)):
            add(table, values[row], bits[row], wants_mode)
        for row in range(max(low, last), high):
            add(table, values[row], bits[row], wants_mode)


def _naive(
    values: Array, bits: Array, begin: Array, end: Array, table: FrameTable, tau: float, wants_mode: bool, out: Array
) -> None:
    for k in range(begin.shape[1]):
        _fill(values, bits, begin, end, k, table, wants_mode)
        _answer(table, wants_mode, k, out)


def _incremental(
    values: Array, bits: Array, begin: Array, end: Array, table: FrameTable, tau: float, wants_mode: bool, out: Array
) -> None:
    for k in range(begin.shape[1]):
        if k == 0 or is_worn(table, tau) or not _overlap(begin, end, k):
            _fill(values, bits, begin, end, k, table, wants_mode)
        else:
            _move(values, bits, begin, end, k, table, wants_mode)
        _answer(table, wants_mode, k, out)


_run_naive, _run_incremental = bare_kernel(_naive, __name__), bare_kernel(_incremental, __name__)
