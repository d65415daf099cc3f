"""Compile what most queries need and keep it on disk, so that none of them has to wait for a compiler.

It runs at set-up. What is there already is only looked at, and several processes may do it at the same time.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Any, NamedTuple

import numpy as np

from windrow.kernels.contract.geometry import most_cells
from windrow.kernels.contract.ranks import RankTable, cont_ranks, percentile_ranks
from windrow.kernels.contract.sweeps import Sweep

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


Progress = Callable[[int, int, str], None]
AT_ONCE = 8
"""Jobs that a process takes together: neighbours share kernels, which two processes would both compile."""


def warm(progress: Progress | None = None, processes: int = 1) -> int:
    """Compile the common kernels; how many jobs that took. ``progress`` is told how many are done, of how many."""
    jobs = _jobs()
    if processes > 1:
        _warm_in(processes, jobs, progress)
    else:
        for number, job in enumerate(jobs):
            if progress:
                progress(number, len(jobs), job.name)
            job.run()
    if progress:
        progress(len(jobs), len(jobs), "done")
    return len(jobs)


def _jobs() -> list[Job]:
    return [
        *_scans(),
        *_selections(),
        *_networks(),
        *_simple_methods(),
        *_shapes(),
        *_frames(),
        *_joins(),
        *_states(),
        *_folds(),
    ]


def _warm_in(processes: int, jobs: Sequence[Job], progress: Progress | None) -> None:
    """The same in several processes, which are started anew: forked ones would share the compiler's locks."""
    ready = 0
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        starts = {pool.submit(_run_some, start): start for start in range(0, len(jobs), AT_ONCE)}
        for done in as_completed(starts):
            done.result()
            ready += len(jobs[starts[done] : starts[done] + AT_ONCE])
            if progress:
                progress(ready, len(jobs), jobs[starts[done]].name)


def _run_some(start: int) -> None:
    for job in _jobs()[start : start + AT_ONCE]:
        job.run()


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
    from windrow.kernels.scans.operations import scan_windows

    def job(operation: str, widths: Sequence[int], dtype: str) -> Job:
        def run() -> None:
            for missing in (False, True) if dtype.startswith("float") else (False,):
                values = _values(len(widths), dtype, missing)
                scan_windows(operation, values, None, _sweeps(values.shape, widths))

        return Job(f"{operation} {'×'.join(map(str, widths))} {dtype}", run)

    for operation in ("sum", "avg", "min", "max", "squares", "count"):
        for dtype in TYPES if operation != "avg" else TYPES[:2]:
            for widths in [*((w,) for w in SERIES), *((w, 1) for w in SERIES), *BOXES]:
                yield job(operation, widths, dtype)


def _select(
    widths: Sequence[int], dtype: str, ranks: Callable[[int], RankTable], strategy: str
) -> Callable[[], object]:
    from windrow.kernels.windows import compute_windows

    def run() -> None:
        values = _values(len(widths), dtype)
        sweeps = _sweeps(values.shape, widths)
        ranked = ranks(most_cells(values.shape, sweeps))
        compute_windows("select", values, None, sweeps, ranked, strategy=strategy)

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
    from windrow.kernels.counting.counters import count_windows
    from windrow.kernels.naive import naive_windows
    from windrow.kernels.papers.incremental import incremental_windows

    def job(name: str, method: Callable[..., object], operation: str, dtype: str) -> Job:
        def run() -> None:
            values = _values(2, dtype)
            sweeps = _sweeps(values.shape, (3, 3))
            ranks = (percentile_ranks(50, 9),) if operation == "select" else ()
            method(operation, values, None, sweeps, *ranks)

        return Job(f"{operation} {dtype}, {name}", run)

    yield job("counters", count_windows, "mode", "int64")
    for dtype in ("float64", "int64"):
        yield job("naive", naive_windows, "sum", dtype)
        for operation in ("sum", "min", "select", "mode"):
            yield job("incremental", incremental_windows, operation, dtype)


def _shapes() -> Iterator[Job]:
    """Diamonds, so small that their cells are merged one by one, and larger."""
    from windrow.kernels.shapes.problems import Runs
    from windrow.kernels.shapes.strategies import compute_shapes

    def job(operation: str, dtype: str, radius: int, strategy: str) -> Job:
        def run() -> None:
            rows = np.arange(-radius, radius + 1)
            width = radius - np.abs(rows)
            ranks = _median(2 * radius * (radius + 1) + 1) if operation == "select" else None
            for missing in (False, True) if dtype.startswith("float") else (False,):
                values = _values(2, dtype, missing)
                sweeps = [Sweep(0, n, 0, 0) for n in values.shape]
                compute_shapes(
                    operation, values, None, sweeps, Runs(rows[:, None], -width, width), ranks, None, strategy
                )

        return Job(f"{operation} {dtype} over L1({radius}), {strategy}", run)

    for operation in ("sum", "min", "max"):  # each takes seconds to compile: other types do so when they are asked for
        for radius in (1, 3):
            yield job(operation, "float64", radius, "rows")
    yield job("select", "float64", 2, "lanes")


def _frames() -> Iterator[Job]:
    """Frames that slide and frames that jump, over few values and over values of which no two are alike."""
    from windrow.kernels.frames.methods import frame_outcome
    from windrow.kernels.frames.spans import spans_of

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
            frame_outcome(operation, kinds[kind], spans, _median(spans.most) if operation == "select" else None)

        return Job(f"{operation} of {kind}, {frame} frames", run)

    for operation in ("sum", "min", "distinct", "mode", "select"):
        for kind in kinds:
            for frame in bounds if operation in ("sum", "min") else (*bounds, *holistic):
                yield job(operation, kind, frame)


def _joins() -> Iterator[Job]:
    """Joins of sparse cells by bands of keys: many against many, few against many, lists, chunks and the sky."""
    from windrow.kernels.sparse.bands import (
        Bands,
        Reduction,
        count_bands,
        list_bands,
        met_bands,
        present_before,
        reduce_several,
    )
    from windrow.kernels.sparse.chunk_pairs import Chunks, Grid, chunk_pairs
    from windrow.kernels.sparse.keys import key_space
    from windrow.kernels.sparse.sky import sky_pairs
    from windrow.kernels.sparse.sorting import sort_keys

    rows = np.arange(ROWS, dtype=np.int64)
    columns = [rows * 7919 % 200, rows % 199]
    space = key_space([0, 0], [199, 199], [1, 1], [1, 1])
    assert space is not None, "two short dimensions fit into a key"
    keys, bits = space.keys(columns), space.bits
    zero = np.zeros(3, np.int64)
    runs = space.differences(np.arange(-1, 2)[:, None], zero - 1, zero + 1)

    def cells(dtype: str) -> Callable[[], object]:
        def run() -> None:
            right, order = sort_keys(keys, bits)
            values = np.sqrt(rows).astype(dtype)[order]
            for left in (right, right[::400].copy()):
                for skip in (np.zeros(0, np.int64), np.zeros(len(left), np.int64)):
                    bands = Bands(left, left, *runs, skip)
                    there = np.arange(len(values)) % 2 == 0
                    asked = [(name, mask) for name in ("sum", "min", "max", "count") for mask in (None, there)]
                    reduce_several([Reduction(name, values, mask) for name, mask in asked], right, bands)

        return run

    def lists() -> None:
        for column in columns:
            column.flags.writeable = False  # as what comes from Arrow is
        right, _ = sort_keys(space.keys(columns), bits)
        bands = Bands(right, right, *runs)
        list_bands(right, bands, count_bands(right, bands, None))
        met_bands(right, bands)
        count_bands(right, bands, present_before(right % 2 == 0))

    def chunks() -> None:
        chunk_pairs(columns, columns, Chunks(columns, columns, columns), Grid((0, 0), (1, 1)))

    for dtype in ("float64", "int64"):
        yield Job(f"joins of sparse cells, {dtype}", cells(dtype))
    yield Job("lists of neighbours of sparse cells", lists)
    yield Job("pairs of chunks", chunks)
    yield Job("pairs on the sky", lambda: sky_pairs(rows % 360, rows % 90, rows % 360, rows % 90, 0.1))


def _states() -> Iterator[Job]:
    """What views keep of groups: sums, extremes and order statistics."""
    from windrow.kernels.states.brackets import Brackets, Moving, enter_values, leave_values
    from windrow.kernels.states.entering import enter_sums
    from windrow.kernels.states.extremes import find_largest, find_smallest
    from windrow.kernels.states.sums import (
        count_groups,
        finish_sums,
        fold_products,
        fold_values,
        fold_whole,
        join_groups,
    )

    ends, there = np.arange(0, SIDE + 1, 2), np.ones(SIDE, bool)
    starts, stops = ends[None, :-1].copy(), ends[None, 1:].copy()

    def whole() -> Any:
        return np.zeros(len(ends) - 1, np.int64)

    def sums() -> None:
        values, room, infinities = (
            np.ones(SIDE),
            np.zeros((5, len(ends) - 1)),
            np.zeros((2, len(ends) - 1), np.int64),
        )
        count_groups(there, starts, stops, whole())
        fold_values(values, there, starts, stops, room, infinities)
        fold_products(values, values, np.array([1, 1]), there, starts, stops, room, infinities)
        parts, boundless = tuple(np.ones(len(ends) - 1) for _ in room), (whole(), whole())
        join_groups(parts, parts, boundless, boundless, 1.0, whole() > 0, room, infinities)
        for kind in (np.int64, np.uint32):
            ranges = starts.astype(kind), stops.astype(kind)
            old = (whole(), *parts, *boundless)
            enter_sums(values, there, *ranges, 0, whole(), old, whole(), room, infinities)
        missing = np.zeros((2, len(whole())), bool)
        for average in (False, True):
            finish_sums(parts, boundless, whole(), average, 1e-13, room[0], missing[0], missing[1])
        for dtype in ("int64", "uint64"):
            fold_whole(np.ones(SIDE, dtype), there, starts, stops, whole(), whole())

    def order(dtype: str) -> Callable[[], object]:
        def run() -> None:
            values = np.arange(SIDE).astype(dtype)
            for find in (find_smallest, find_largest):
                find(values, there, starts, stops, whole(), whole())
            brackets = Brackets(np.zeros((16, len(ends) - 1), dtype), whole(), whole(), whole())
            moving = Moving(values, ends[:-1].copy(), ends[1:].copy())
            enter_values(brackets, moving, 0.5)
            leave_values(brackets, moving)

        return run

    yield Job("states of sums", sums)
    for dtype in ("float64", "int64"):
        yield Job(f"states of extremes and order statistics, {dtype}", order(dtype))


def _folds() -> Iterator[Job]:
    """Totals of what is decoded: counts, sums, moments and extremes."""
    from windrow.kernels.folds.extremes import KeyRule, fold_extremes
    from windrow.kernels.folds.lanes import fold_counts, fold_moments, fold_sums, fold_whole_sums

    one, none = np.zeros(1, np.int64), np.zeros(0, np.uint8)
    lanes = (one, one, np.array([0, SIDE]), one)

    def job(dtype: str) -> Job:
        def run() -> None:
            values = _values(1, dtype)
            sums = np.zeros((4, 1)) if values.dtype.kind == "f" else np.zeros((4, 1), np.int64)
            if values.dtype.kind == "f":
                fold_sums(values, none, *lanes, False, one.copy(), *sums[:2])
            else:
                fold_whole_sums(values, none, *lanes, one.copy(), *sums[:2])
            fold_counts(values, none, *lanes, one.copy())
            fold_moments(values, none, *lanes, one.copy(), *np.zeros((4, 1)))
            rule = KeyRule(values.dtype, True)
            best = np.full(1, rule.lowest, rule.key_dtype)
            bits = values.view(rule.key_dtype)
            seen = np.zeros(1, np.uint8)
            fold_extremes(bits, none, *lanes, rule.infinity, rule.first_bit, rule.flip, seen, best)

        return Job(f"totals, {dtype}", run)

    for dtype in (*TYPES, "int32"):
        yield job(dtype)
    yield Job("totals, cells", lambda: fold_counts(np.ones(SIDE, np.uint8), none, *lanes, one.copy()))
    yield Job("totals, cells that lie anywhere", _cell_folds)


def _cell_folds() -> None:
    from windrow.kernels.folds import cells

    groups, none, counts = np.zeros(SIDE, np.int64), np.zeros(0, np.uint8), np.zeros(1, np.int64)
    cells.add_places(groups.copy(), 0, 1, 1, groups)
    cells.add_known_places(groups.copy(), 0, np.zeros(1, np.int64), groups)
    cells.count_cells(none, groups, counts)
    for dtype in (*TYPES, "int32"):
        values = _values(1, dtype)
        sums = np.zeros((2, 1), np.float64 if values.dtype.kind == "f" else np.int64)
        add = cells.sum_cells if values.dtype.kind == "f" else cells.sum_whole_cells
        add(values, none, groups, counts, *sums)
