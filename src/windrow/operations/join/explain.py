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
from windrow.operations.join.chunks import find_chunk_pairs, stored_scan
from windrow.operations.join.reader import JoinReader
from windrow.operations.join.sources import task_bytes, touched_bytes, work
from windrow.plan.bound import Bound, BoundJoin, BoundJoined

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
    seconds: float
    engine: str

    def lines(self) -> Iterator[str]:
        yield f"  join      about {self.pairs:,} pair{'' if self.pairs == 1 else 's'}{self._chunks()}"
        yield f"  kernel    {self.kernel}"
        yield f"  memory    about {self.memory / 2**20:,.0f} MB for all of it at once, cut into tasks that fit"
        yield f"  cost      about {self.seconds:.2g} s of a worker"

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
    for step in bound.walk():
        if any(step is joined.source for joined in on_grid):
            continue
        if isinstance(step, BoundJoin) and all(stored_scan(side) is not None for side in step.sides):
            yield _explained(engine, step, build.join_reader(step, source_of))


def _explained(engine: Engine, join: BoundJoin, reader: JoinReader) -> JoinExplanation:
    box = _first_box(join)
    empty = box.is_empty
    return JoinExplanation(
        pairs=0 if empty else reader.rows_in(box),
        chunk_pairs=_counted(join),
        kernel=kernel_text(reader),
        memory=0 if empty else task_bytes(reader, box),
        seconds=0.0 if empty else work(reader, box) / CELLS_A_SECOND,
        engine="spark" if engine.goes_to_spark(0 if empty else touched_bytes(reader, box)) else "local",
    )


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
    found = [find_chunk_pairs(join, by_grid) for by_grid in (False, True)]
    return None if found[0] is None or found[1] is None else (len(found[0].left), len(found[1].left))


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
