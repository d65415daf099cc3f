"""Compile what most queries need and keep it on disk, so that none of them has to wait for a compiler.

It runs at set-up. What is there already is only looked at, and several processes may do it at the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from windrow.kernels.geometry import most_cells
from windrow.kernels.ranks import RankTable, cont_ranks, percentile_ranks
from windrow.kernels.sweep import Sweep

SIDE = 72  # cells along the longest axes of what is computed: more than a line of anything
TYPES = ("float64", "float32", "int64")
SERIES = (3, 5, 7, 10, 12, 24, 30)  # common widths along one axis
BOXES = ((3, 3), (5, 5), (7, 7), (9, 9), (3, 3, 3), (5, 5, 5))
PERCENTILES = (10, 25, 50, 70, 75, 90, 95)
ROWS = 40_000  # rows of a table: more than are looked at without a compiler


class Job(NamedTuple):
    """Something to compute, for the sake of what has to be compiled for it."""

    name: str
    run: Callable[[], object]


def warm(progress: Callable[[int, int, str], None] | None = None) -> int:
    """Compile the common kernels; how many jobs that took. ``progress`` is told how many are done, of how many."""
    jobs = [*_scans(), *_selections(), *_networks(), *_simple_methods(), *_frames()]
    for number, job in enumerate(jobs):
        if progress:
            progress(number, len(jobs), job.name)
        job.run()
    if progress:
        progress(len(jobs), len(jobs), "done")
    return len(jobs)


def _values(axes: int, dtype: str, missing: bool = False) -> Any:
    """Cells of a small array; a corner of it is missing if asked for."""
    shape = (SIDE,) * min(axes, 2) if axes < 3 else (6,) * (axes - 1) + (SIDE,)
    values = np.arange(np.prod(shape)).reshape(shape) % 17
    if not missing:
        return values.astype(dtype)
    floats = values.astype(dtype)
    floats[(0,) * axes] = np.nan
    return floats


def _sweeps(shape: Sequence[int], widths: Sequence[int]) -> list[Sweep]:
    return [Sweep(0, n, -(w // 2), (w - 1) // 2) for n, w in zip(shape, widths, strict=True)]


def _scans() -> Iterator[Job]:
    from windrow.kernels.fast import fast_windows

    def job(operation: str, widths: Sequence[int], dtype: str) -> Job:
        def run() -> None:
            for missing in (False, True) if dtype.startswith("float") else (False,):
                values = _values(len(widths), dtype, missing)
                fast_windows(operation, values, None, _sweeps(values.shape, widths))

        return Job(f"{operation} {'×'.join(map(str, widths))} {dtype}", run)

    for operation in ("sum", "avg", "min", "max", "squares", "count"):
        for dtype in TYPES if operation != "avg" else TYPES[:2]:
            for widths in [*((w,) for w in SERIES), *((w, 1) for w in SERIES), *BOXES]:
                yield job(operation, widths, dtype)


def _select(
    widths: Sequence[int], dtype: str, ranks: Callable[[int], RankTable], strategy: str
) -> Callable[[], object]:
    from windrow.kernels.select import window_select

    def run() -> None:
        values = _values(len(widths), dtype)
        sweeps = _sweeps(values.shape, widths)
        window_select(values, sweeps, ranks(most_cells(values.shape, sweeps)), strategy=strategy)

    return run


def _median(most: int) -> RankTable:
    return cont_ranks(0.5, most)


def _percentile(percent: int) -> Callable[[int], RankTable]:
    return lambda most: percentile_ranks(percent, most)


def _selections() -> Iterator[Job]:
    """The loops around networks and bits."""
    for dtype in ("float32", "float64"):
        for name, ranks in (("percentile", _percentile(50)), ("median", _median)):
            for strategy, widths in (("direct", (3, 3)), ("rows", (3, 3)), ("series", (1, 3)), ("bitset", (3, 3))):
                yield Job(f"{name} {dtype}, {strategy}", _select(widths, dtype, ranks, strategy))


def _networks() -> Iterator[Job]:
    for dtype in ("float32", "float64"):
        for widths in [*((1, w) for w in SERIES), *BOXES[:2], BOXES[4]]:
            strategy = "series" if widths[0] == 1 else "rows"
            size = "×".join(map(str, widths))
            yield Job(f"median {size} {dtype}", _select(widths, dtype, _median, strategy))
            for percent in PERCENTILES:
                yield Job(
                    f"percentile {percent} {size} {dtype}", _select(widths, dtype, _percentile(percent), strategy)
                )


def _simple_methods() -> Iterator[Job]:
    from windrow.kernels.counters import counted_windows
    from windrow.kernels.incremental import incremental_windows
    from windrow.kernels.naive import naive_windows

    def job(name: str, method: Callable[..., object], operation: str, dtype: str) -> Job:
        def run() -> None:
            values = _values(2, dtype)
            sweeps = _sweeps(values.shape, (3, 3))
            ranks = (percentile_ranks(50, 9),) if operation == "select" else ()
            method(operation, values, None, sweeps, *ranks)

        return Job(f"{operation} {dtype}, {name}", run)

    yield job("counters", counted_windows, "mode", "int64")
    for dtype in ("float64", "int64"):
        yield job("naive", naive_windows, "sum", dtype)
        for operation in ("sum", "min", "select", "mode"):
            yield job("incremental", incremental_windows, operation, dtype)


def _frames() -> Iterator[Job]:
    """Frames that slide and frames that jump, over few values and over values of which no two are alike."""
    from windrow.kernels.frame_auto import compute_frames
    from windrow.kernels.frame_spans import spans_of

    rows = np.arange(ROWS, dtype=np.int64)
    jumps = rows * 7919 % (ROWS // 2)
    kinds = {"few values": rows * 31 % 100, "whole numbers": rows * 7919 % 1_000_003, "floats": np.sqrt(rows)}
    bounds = {
        "short": (rows - 9, rows + 1),
        "sliding": (rows - 199, rows + 1),
        "jumping": (jumps, jumps + rows % 301),
    }
    # Sums and minima treat all windows alike.
    holistic = {"long": (rows - 999, rows + 1), "longer": (rows - 5999, rows + 1), "scattered": (jumps, jumps + 101)}

    def job(operation: str, kind: str, frame: str) -> Job:
        def run() -> None:
            spans = spans_of(*{**bounds, **holistic}[frame], ROWS)
            compute_frames(operation, kinds[kind], spans, _median(spans.most) if operation == "select" else None)

        return Job(f"{operation} of {kind}, {frame} frames", run)

    for operation in ("sum", "min", "distinct", "mode", "select"):
        for kind in kinds:
            for frame in bounds if operation in ("sum", "min") else (*bounds, *holistic):
                yield job(operation, kind, frame)
