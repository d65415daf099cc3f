"""How the joins of a query will run: which chunks meet, how many pairs are expected, which kernel, memory and cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from windrow.aggregates.shape_blocks import shape_choice
from windrow.execution.engine import Engine
from windrow.model.box import Box
from windrow.operations.join import build
from windrow.operations.join.aggregates import Wanted
from windrow.operations.join.chunks import count_chunk_pairs, stored_scan
from windrow.operations.join.groups import cut_for_totals, cutting_grid
from windrow.operations.join.reader import JoinReader, first_source
from windrow.operations.join.sources import JoinedCells, PairCells, work
from windrow.operations.query.sparse_run import largest_task, task_limit
from windrow.plan.bound import Bound, BoundJoin, BoundJoined, BoundPairs

CELLS_A_SECOND = 5e6
"""What a worker reads, numbers and joins, roughly; pairs are counted as parts of a cell."""


@dataclass(frozen=True)
class JoinExplanation:
    """What is known of a join before it runs."""

    pairs: int
    chunk_pairs: tuple[int, int] | None
    """Pairs of chunks that can hold partners, by the chunks' own bounds and by the grid alone, where that is known."""
    kernel: str
    memory: int
    """That of all of it at once."""
    task: int
    """That of the largest task that it is cut into."""
    task_limit: int
    worker_memory: int
    seconds: float
    engine: str

    def lines(self) -> Iterator[str]:
        yield f"  join      about {self.pairs:,} pair{'' if self.pairs == 1 else 's'}{self._chunks()}"
        yield f"  kernel    {self.kernel}"
        yield f"  memory    about {self.memory / 2**20:,.0f} MB for all of it at once{self._tasks()}"
        yield f"  cost      about {self.seconds:.2g} s of a worker"

    def _tasks(self) -> str:
        if self.memory <= self.task_limit:
            return ""
        needed = f"{self.task / 2**20:,.0f} MB"
        if self.task <= self.task_limit:
            return f", cut into tasks of up to {needed}"
        return f"; one task needs about {needed}, and a worker has {self.worker_memory / 2**20:,.0f} MB"

    def _chunks(self) -> str:
        if self.chunk_pairs is None:
            return ""
        by_bounds, by_grid = self.chunk_pairs
        pairs = "chunk pair" if by_bounds == 1 else "chunk pairs"
        return f", in {by_bounds:,} {pairs} by the chunks' own bounds ({by_grid:,} by the grid alone)"


@dataclass(frozen=True)
class ShapeExplanation:
    """How neighbourhoods on a dense array are computed: for each aggregate the strategies there are."""

    cells: int
    """How many cells a neighbourhood holds at most."""
    chosen: tuple[str, ...]

    def lines(self) -> Iterator[str]:
        yield f"  shape     up to {self.cells:,} cell{'' if self.cells == 1 else 's'} around each cell, on the grid"
        yield from (f"  kernel    {text}" for text in self.chosen)


def explain_joins(
    engine: Engine, bound: Bound, source_of: Callable[[Bound], Any]
) -> Iterator[JoinExplanation | ShapeExplanation]:
    """The joins of a query whose sides are stored; of others nothing is known before what is below them runs."""
    on_grid = [step for step in bound.walk() if isinstance(step, BoundJoined) and build.is_on_grid(step)]
    for joined in on_grid:
        if stored_scan(joined.source.right) is not None and not joined.box.is_empty:
            yield _explained_shape(joined, source_of)
    above = {id(step.source): step for step in bound.walk() if isinstance(step, (BoundPairs, BoundJoined))}
    for step in bound.walk():
        if any(step is joined.source for joined in on_grid):
            continue
        if isinstance(step, BoundJoin) and all(stored_scan(side) is not None for side in step.sides):
            yield _explained(engine, step, above.get(id(step)), source_of)


def _explained(
    engine: Engine, join: BoundJoin, above: Bound | None, source_of: Callable[[Bound], Any]
) -> JoinExplanation:
    source = _source(join, above, source_of)
    reader, box = source.reader, _first_box(join)
    empty = box.is_empty or source.box.is_empty
    on_spark = engine.goes_to_spark(0 if empty else source.touched_bytes(source.box))
    executor = engine.spark() if on_spark and engine.spark_is_running else engine.local
    grid = source.schema.grid
    uncut: tuple[int, ...] = ()
    if isinstance(source, JoinedCells) and isinstance(above, BoundJoined):
        grid, uncut = cutting_grid(source, above.groups)
    return JoinExplanation(
        pairs=0 if empty else reader.rows_in(box),
        chunk_pairs=_counted(join),
        kernel=kernel_text(reader),
        memory=0 if empty else source.task_bytes(source.box),
        task=0 if empty else largest_task(source, grid, source.box, executor, uncut),
        task_limit=task_limit(executor),
        worker_memory=executor.worker_memory,
        seconds=0.0 if empty else work(reader, box) / CELLS_A_SECOND,
        engine="spark" if on_spark else "local",
    )


def _source(join: BoundJoin, above: Bound | None, source_of: Callable[[Bound], Any]) -> PairCells | JoinedCells:
    """What computes a join, as far as tasks and their memory go: pairs that are listed take more than aggregates."""
    if isinstance(above, BoundPairs):
        return build.pairs_source(above, source_of)
    if join.kind == "anti":
        return build.anti_source(join, source_of)
    reader = build.join_reader(join, source_of)
    if isinstance(above, BoundJoined) and not build.is_by_cell(above):
        return cut_for_totals(reader, above)
    first = first_source(reader)
    return JoinedCells(reader, first.schema, first.box, (), Wanted((), ()))


def _explained_shape(bound: BoundJoined, source_of: Callable[[Bound], Any]) -> ShapeExplanation:
    source = build.shape_source(bound, source_of)
    chosen = []
    for name, aggregate in bound.aggregates:
        if aggregate.attribute is None:
            continue
        kind = source.source.schema.attribute(aggregate.attribute).type.dtype
        choice = shape_choice(source.request, bound.box, aggregate, kind)
        if choice is None:
            chosen.append(f"{name}: {bound.method}")
        else:
            chosen += [f"{name}: {line}" for line in choice.lines()]
    return ShapeExplanation(bound.source.offsets.size, tuple(chosen))


def _counted(join: BoundJoin) -> tuple[int, int] | None:
    by_bounds, by_grid = (count_chunk_pairs(join, by_grid) for by_grid in (False, True))
    return None if by_bounds is None or by_grid is None else (by_bounds, by_grid)


def _first_box(join: BoundJoin) -> Box:
    return join.sides[0].box


def kernel_text(reader: JoinReader) -> str:
    """Which kernel finds the partners, and why."""
    names = reader.right.schema.dimension_names
    if reader.sky is not None:
        return f"bands of declination, {reader.sky.sky.radius:g} degrees: exact distances of the coordinates kept"
    shape = reader.shape
    runs = shape.key_runs()
    free = [name for name, is_free in zip(names, shape.free, strict=True) if is_free]
    along = ", ".join(names[axis] for axis in runs.axes)
    bits = sum(int(np.log2(max(1, extent)) + 2) for extent in (reader.right.box.shape[axis] for axis in runs.axes))
    way = f"bands of keys over ({along})" if bits <= 62 else f"rows of cells over ({along}), too many for keys"
    count = f"{len(runs.first):,} run{'' if len(runs.first) == 1 else 's'}"
    reduced = f"; any {' and '.join(free)}: looked for once per position" if free else ""
    asked = reader.selection.nodes() or reader.selection.nearest is not None
    listed = "; pairs are listed, for conditions look at both sides" if asked else ""
    return f"{way}, {count}{reduced}{listed}"
