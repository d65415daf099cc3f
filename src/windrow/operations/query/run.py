"""Bound queries as sources, and how they run: gathered here, streamed, or written where they are computed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.errors import DataError
from windrow.execution.engine import Engine
from windrow.execution.executor import Executor, Job
from windrow.expressions.nodes import Column
from windrow.kernels.choose import AUTO
from windrow.kernels.sparse.order import coordinate_order
from windrow.model.box import Box
from windrow.model.source import Blocks, ComputedCells
from windrow.operations.query.blocks import ComputedSource, computed_blocks, too_large
from windrow.operations.query.cellwise import CellColumns, GridCells, GridColumns
from windrow.operations.query.fused.paths import TotalsProblem, choose_path, fold_blocks
from windrow.operations.query.held import HeldCells, HeldGrid, laid_on_grid
from windrow.operations.query.operated import OperatedGrid
from windrow.operations.query.positions import PositionCells, RepeatedCells
from windrow.operations.query.round import RoundGrid
from windrow.operations.query.scans import StoredCells, StoredGrid
from windrow.operations.query.sparse_run import ComputeCells, cell_blocks, compute_cells
from windrow.operations.query.windows import ComputeBlock, WindowSource, compute_block
from windrow.plan.bound import (
    Bound,
    BoundAdjusted,
    BoundChanges,
    BoundColumns,
    BoundCount,
    BoundFilter,
    BoundHeld,
    BoundJoin,
    BoundJoined,
    BoundOrdered,
    BoundPairs,
    BoundRejoined,
    BoundRound,
    BoundScan,
    BoundSelection,
    BoundSpread,
    BoundTotals,
    BoundWindow,
    NamedNodes,
)
from windrow.plan.changes import CHANGE
from windrow.plan.grouping.label_parts import BoundParted, key_attributes
from windrow.plan.grouping.positions import BoundPositions, BoundRepeated
from windrow.plan.operators import BoundOperated
from windrow.plan.steps import ended
from windrow.plan.windows import WindowPlan
from windrow.storage.cells import cell_fields, coordinates, in_coordinate_order

Source = ComputedSource | ComputedCells


def source_of(engine: Engine, bound: Bound) -> Any:
    """What computes a query when it is read: ComputedCells if it is sparse, else a ComputedSource.

    Totals below other steps are computed now.
    """
    return _source(engine, bound)


def _source(engine: Engine, bound: Bound) -> Any:
    if isinstance(bound, BoundScan):
        return StoredCells(bound.snapshot, bound.labels) if bound.schema.sparse else StoredGrid(bound.snapshot)
    if isinstance(bound, BoundHeld):
        return _held(bound, bound.table)
    if isinstance(bound, BoundCount):
        values = [pa.array([bound.count]) for _ in bound.schema.attributes]
        return _held(bound, pa.table([pa.array([0]), *values], schema=cell_fields(bound.schema)))
    if isinstance(bound, (BoundTotals, BoundParted)):
        return _totals(engine, bound)
    if isinstance(bound, BoundOrdered):
        return _held(bound, _ordered(engine, bound))
    if isinstance(bound, BoundChanges):
        return _held(bound, _changed(bound))
    if isinstance(bound, (BoundJoin, BoundPairs, BoundJoined)):
        return _join(engine, bound)
    if isinstance(bound, BoundRejoined):
        return _held(bound, _rejoined(engine, bound))
    if isinstance(bound, BoundAdjusted):
        return _adjusted(engine, bound)
    source = _source(engine, _below(bound))
    if isinstance(bound, BoundPositions):
        return PositionCells(source, bound.schema, bound.box, bound.labels, bound.source.box, bound.axes)
    if isinstance(bound, BoundRepeated):
        results = _source(engine, bound.results)
        return RepeatedCells(source, results, bound.schema, bound.box, bound.labels, bound.axes)
    if isinstance(bound, BoundSpread):
        return _spread(engine, source, bound)
    if isinstance(bound, BoundFilter):
        if not _below(bound).schema.sparse:
            return GridCells(source, bound.schema, bound.box, bound.labels, bound.condition)
        return CellColumns(source, bound.schema, bound.box, bound.labels, _identity(bound), bound.condition)
    if isinstance(bound, BoundColumns):
        return _columns(source, bound, bound.outputs)
    if isinstance(bound, BoundOperated):
        return OperatedGrid(source, bound.schema, bound.box, bound.labels, bound.operator, bound.parameters, bound.halo)
    if isinstance(bound, BoundRound):
        return RoundGrid(source, ended(bound.schema, bound.box), bound.labels, bound.axis, bound.seam, bound.skip)
    if isinstance(bound, BoundSelection):
        return _columns(source, bound, _identity(bound))
    assert isinstance(bound, BoundWindow)
    if bound.box.is_empty:
        return _held(bound, cell_fields(bound.schema).empty_table())
    if not bound.source.schema.sparse:
        return WindowSource(source, bound.plan)
    from windrow.operations.query.sparse_windows import CellWindowSource

    return CellWindowSource(source, bound.plan)


def _below(bound: Bound) -> Bound:
    return bound.inputs()[0]


def _identity(bound: Bound) -> NamedNodes:
    return tuple((name, Column(name)) for name in bound.schema.attribute_names)


def _columns(source: Any, bound: Bound, outputs: NamedNodes) -> Source:
    if bound.schema.sparse:
        return CellColumns(source, bound.schema, bound.box, bound.labels, outputs)
    return GridColumns(source, ended(bound.schema, bound.box), bound.box, bound.labels, outputs)


def _spread(engine: Engine, source: Any, bound: BoundSpread) -> Source:
    from windrow.operations.query.spread import Membership, SpreadCells, SpreadGrid

    groups, below = Membership(bound.axes, bound.parts), bound.totals
    totals = _source(engine, below)
    if bound.schema.sparse:
        if not isinstance(totals, HeldCells):  # a view has them
            totals = HeldCells(below.schema, below.box, below.labels, compute_cells_in(engine, totals, below.box))
        return SpreadCells(source, totals, bound.schema, bound.box, bound.labels, groups)
    if not isinstance(totals, HeldGrid):
        totals = HeldGrid(below.schema, below.box, below.labels, compute_grid(engine, totals, below.box))
    return SpreadGrid(source, totals, ended(bound.schema, bound.box), bound.box, bound.labels, groups)


def _changed(bound: BoundChanges) -> pa.Table:
    """What changed, in the order of coordinates; of two rows at one place the one that left comes first."""
    fields = cell_fields(bound.schema)
    table = bound.read().select(fields.names).cast(fields)
    came = pa.compute.equal(table.column(CHANGE), "came").to_numpy()
    return table.take(pa.array(coordinate_order([*coordinates(table, bound.schema), came.astype(np.int64)])))


def totals_problem(engine: Engine, bound: BoundTotals | BoundParted) -> TotalsProblem:
    """Totals with the source that they are of, which computes what is below them if that has to be."""
    parts = bound.parts if isinstance(bound, BoundParted) else ()
    by_values = bool(key_attributes(parts))  # which lie here and there, so that cells are looked at one by one
    source = _cells_of(engine, bound.source) if by_values else source_of(engine, bound.source)
    return TotalsProblem(engine, source, bound.source.box, bound.axes, bound.aggregates, bound.schema, parts)


def _totals(engine: Engine, bound: BoundTotals | BoundParted) -> HeldGrid | HeldCells:
    found = choose_path(totals_problem(engine, bound)).run()
    if isinstance(found, pa.Table):
        return _held(bound, found)  # type: ignore[no-any-return]
    if bound.schema.sparse or not found.can_be_blocks():
        return _held(bound, found.table(bound.schema))  # type: ignore[no-any-return]
    return HeldGrid(bound.schema, bound.box, bound.labels, found.blocks(bound.schema, bound.box.shape))


def regrid_problem(engine: Engine, source: Any) -> TotalsProblem | str:
    """The blocks of a regrid of sparse cells as groups, or why they are none."""
    plan: WindowPlan | None = getattr(source, "plan", None)
    if plan is None or not plan.is_regrid:
        return "it is no regrid"
    if plan.method != AUTO:
        return f"method {plan.method} is asked for"
    if plan.window.min_count or plan.window.boundary != "clip":
        return "it has a min count or a boundary"
    axes = tuple(range(plan.schema.ndim))
    steps, schema = tuple(plan.window.step), plan.result_schema
    return TotalsProblem(engine, source.source, plan.bounds, axes, plan.aggregates, schema, (), steps)


def fold_regrid(engine: Engine, source: Any) -> pa.Table | None:
    """The blocks of a regrid of sparse cells in one pass; None for windows, and for what is not folded."""
    problem = regrid_problem(engine, source)
    return None if isinstance(problem, str) else fold_blocks(problem)


def _ordered(engine: Engine, bound: BoundOrdered) -> pa.Table:
    from windrow.operations.query.ordering import order_rows

    return order_rows(engine, _cells_of(engine, bound.source), bound)


def _cells_of(engine: Engine, bound: Bound) -> ComputedCells:
    """The results of a step as sparse data, also where they are dense."""
    source = source_of(engine, bound)
    if not bound.schema.sparse:
        source = GridCells(source, replace(source.schema, sparse=True), bound.box, bound.labels, None)
    return source  # type: ignore[no-any-return]


def _join(engine: Engine, bound: BoundJoin | BoundPairs | BoundJoined) -> Any:
    """Pairs, or aggregates over them. Aggregates over groups of several cells are computed now."""
    from windrow.operations.join import build

    def below(side: Bound) -> Any:
        return _source(engine, side)

    if isinstance(bound, BoundJoin):
        return build.anti_source(bound, below)
    if isinstance(bound, BoundPairs):
        return build.pairs_source(bound, below)
    if build.is_on_grid(bound) and not bound.box.is_empty:
        return build.shape_source(bound, below)
    if build.is_by_cell(bound):
        return build.joined_source(bound, below)
    return _held(bound, build.join_totals(engine, build.join_reader(bound.source, below), bound))


def _rejoined(engine: Engine, bound: BoundRejoined) -> pa.Table:
    from windrow.operations.query.adjusted import rejoin

    below = bound.source
    table = compute_cells_in(engine, _cells_of(engine, below), below.box)
    return rejoin(table, bound.axes, below.schema, bound.aggregates, bound.schema)


def _adjusted(engine: Engine, bound: BoundAdjusted) -> Any:
    """Results of single cells are adjusted when they are read, those of groups of cells now."""
    from windrow.operations.join.build import is_by_cell
    from windrow.operations.query.adjusted import AdjustedCells, Adjusting, TooLargeError, adjust

    direct = bound.direct
    assert isinstance(direct, BoundJoined)
    names = bound.source.schema.attribute_names
    wanted = Adjusting(bound.aggregates, bound.schema, names, direct.source.kind == "inner")
    if is_by_cell(direct):
        added, taken = (None if part is None else _source(engine, part) for part in (bound.added, bound.taken))
        kept = _source(engine, bound.source)
        return AdjustedCells(kept, added, taken, _source(engine, direct), wanted, bound.box, bound.labels)
    try:
        tables = [
            None if part is None else compute_cells_in(engine, _source(engine, part), part.box)
            for part in (bound.source, bound.added, bound.taken)
        ]
        return _held(bound, adjust(tables[0], tables[1], tables[2], wanted))
    except (TooLargeError, DataError):  # a sum of some pairs may be too large where that of all is not
        return _source(engine, direct)


def _held(bound: Bound, table: pa.Table) -> Any:
    if bound.schema.sparse:
        return HeldCells(bound.schema, bound.box, bound.labels, table)
    return laid_on_grid(bound.schema, bound.box, bound.labels, table)


def compute_grid(engine: Engine, source: ComputedSource, box: Box, whole: Box | None = None) -> Blocks:
    """Dense results in ``box``, gathered in this process; it runs where ``whole``, of which it is a part, would run."""
    needed = 2 * box.size * source.schema.cell_bytes
    if needed > engine.memory:
        raise too_large(needed, engine)
    if box.is_empty:
        return source.read(box)
    executor = engine.choose(source.touched_bytes(whole or box))
    blocks = computed_blocks(source, source.reading_grid, box, executor)
    if len(blocks) == 1:
        return _grid_pieces(executor, source, blocks)[0]
    gathered = GatheredBlocks(box)
    if executor.name == "local":  # each thread puts what it has computed where it belongs, and holds it no longer
        largest = max(map(source.task_bytes, blocks))
        executor.run(Job("computing", lambda block: gathered.compute(source, block), blocks, largest))
    else:
        for block, piece in zip(blocks, _grid_pieces(executor, source, blocks), strict=True):
            gathered.put(block, piece)
    return gathered.blocks


class GatheredBlocks:
    """The results of a box, put together of those of its blocks; threads may do so at the same time."""

    def __init__(self, box: Box) -> None:
        self.blocks: dict[str, Any] = {}
        self._box = box
        self._lock = Lock()

    def compute(self, source: ComputedSource, block: Box) -> None:
        """Put the results of a block where they belong; what can be computed there is."""
        if isinstance(source, GridColumns):
            room = {name: self._room(name, np.dtype(np.float64), block) for name in source.tiled}
            piece = source.read(block, room=room)
            self.put(block, {name: values for name, values in piece.items() if name not in room})
            with self._lock:  # in the order of the results, whichever were there first
                self.blocks = {name: self.blocks[name] for name in piece} | self.blocks
        else:
            self.put(block, source.read(block))

    def put(self, block: Box, piece: Blocks) -> None:
        for name, values in piece.items():
            self._room(name, values.dtype, block)[...] = values

    def _room(self, name: str, dtype: Any, block: Box) -> Any:
        """Where the results of a block belong."""
        with self._lock:
            if name not in self.blocks:
                self.blocks[name] = np.empty(self._box.shape, dtype)
        return self.blocks[name][block.slices(self._box.lo)]


def stream_grid(engine: Engine, source: ComputedSource, box: Box) -> Iterator[tuple[Box, Blocks]]:
    """Dense results block by block, as many at a time as there are workers."""
    executor = engine.choose(source.touched_bytes(box))
    blocks = [] if box.is_empty else computed_blocks(source, source.reading_grid, box, executor)
    for together in _in_turns(blocks, executor):
        yield from zip(together, _grid_pieces(executor, source, together), strict=True)


def _grid_pieces(executor: Executor, source: ComputedSource, blocks: Sequence[Box]) -> list[Blocks]:
    largest = max(map(source.task_bytes, blocks), default=0)
    tasks = [ComputeBlock(source, block) for block in blocks]
    return executor.run(Job("computing", compute_block, tasks, largest))


def compute_cells_in(engine: Engine, source: ComputedCells, box: Box) -> pa.Table:
    """Sparse results, gathered in the order of their coordinates; how many a condition leaves is seen on the way."""
    pieces, size = [cell_fields(source.schema).empty_table()], 0
    for piece in stream_cells(engine, source, box):
        pieces.append(piece)
        size += 3 * piece.nbytes
        if size > engine.memory:
            raise too_large(size, engine)
    return in_coordinate_order(pa.concat_tables(pieces), source.schema)


def stream_cells(engine: Engine, source: ComputedCells, box: Box) -> Iterator[pa.Table]:
    """Sparse results block by block, as many at a time as there are workers."""
    if box.is_empty:
        return
    executor = engine.choose(source.touched_bytes(box))
    blocks = cell_blocks(source, source.reading_grid, box, executor)
    for together in _in_turns(blocks, executor):
        tasks = [ComputeCells(source.within(block), block) for block in together]
        largest = max(map(source.task_bytes, together), default=0)
        yield from executor.run(Job("computing", compute_cells, tasks, largest))


def _in_turns(blocks: Sequence[Box], executor: Executor) -> Iterator[Sequence[Box]]:
    at_once = 4 * executor.workers
    for start in range(0, len(blocks), at_once):
        yield blocks[start : start + at_once]
