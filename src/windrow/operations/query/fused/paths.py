"""The ways to compute totals, of which the cheapest that can is taken: each says whether it can, its cost, and runs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from windrow.aggregates.folds import CELLS, COUNT, folded_parts, primitives_of
from windrow.execution.engine import Engine
from windrow.execution.executor import Executor
from windrow.expressions.nodes import Column
from windrow.kernels.choose import AUTO, LOADING, Choice, Cost, Strategy, choose
from windrow.model.box import Box
from windrow.model.schema import Schema
from windrow.operations.query.fused.cell_groups import CellGroups, block_groups, cell_groups
from windrow.operations.query.fused.groups import GridGroups, grid_groups
from windrow.operations.query.fused.pipeline import Pipeline, output_type, pipeline_obstacle, pipeline_of
from windrow.operations.query.scans import StoredGrid
from windrow.plan.bound import NamedAggregates
from windrow.plan.grouping.label_parts import Part, along_axes, key_attributes

CELL, SORTED_CELL, FOLDED_CELL, RANKED_CELL, CHUNK = 20.0, 100.0, 2.0, 10.0, 3e5
"""Nanoseconds of a cell as a block, of one that is sorted, of one in a fold and in a parted column, and of
fetching a chunk; measured on one core."""

MANY_GROUPS = 2**16
"""Places for groups that are kept whether or not there are cells enough to fill them."""


@dataclass(frozen=True)
class TotalsProblem:
    """Aggregates over groups of the cells of a source."""

    engine: Engine
    source: Any
    box: Box
    axes: tuple[int, ...]
    aggregates: NamedAggregates
    schema: Schema
    parts: tuple[Part | None, ...] = ()
    steps: tuple[int, ...] = ()
    """How many cells along each axis make one, for the blocks of a regrid."""

    def __str__(self) -> str:
        return ", ".join(str(aggregate) for _, aggregate in self.aggregates)

    @cached_property
    def pipeline(self) -> Pipeline | str:
        return pipeline_of(self.source)

    @cached_property
    def groups(self) -> GridGroups:
        return grid_groups(self.box, self.axes, along_axes(self.parts))

    @cached_property
    def cell_groups(self) -> CellGroups:
        names = self.source.schema.dimension_names
        if self.steps:
            return block_groups(names, self.box, self.steps)
        assert isinstance(self.pipeline, Pipeline)
        stored = {name: self.pipeline.outputs[name] for name in key_attributes(self.parts)}
        columns = {name: node.key for name, node in stored.items() if isinstance(node, Column)}
        return cell_groups(names, self.box, self.axes, self.parts, columns)

    @property
    def is_dense(self) -> bool:
        """Whether what is stored below is dense."""
        return isinstance(self.pipeline, Pipeline) and isinstance(self.pipeline.stored, StoredGrid)

    @property
    def arguments(self) -> tuple[str, ...]:
        found = primitives_of(aggregate for _, aggregate in self.aggregates)
        return tuple(sorted({argument for argument, _ in found if argument is not None}))

    @cached_property
    def cells(self) -> int:
        """About how many cells of a sparse source there are; whoever asks walks over its parts."""
        return 0 if self.box.is_empty else self.source.cells_in(self.box)

    @cached_property
    def executor(self) -> Executor:
        return self.engine.choose(0 if self.box.is_empty else self.source.touched_bytes(self.box))


def _fold_obstacle(problem: TotalsProblem) -> str | None:
    pipeline = problem.pipeline
    if isinstance(pipeline, str):
        return pipeline
    if problem.box.is_empty:
        return "there are no cells"
    if key_attributes(problem.parts):
        found = _values_obstacle(problem, pipeline)
        if found is not None:
            return found
    for _, aggregate in problem.aggregates:
        if folded_parts(aggregate) is None:
            return f"{aggregate} is not made of counts, sums, squares and extremes"
    return (
        pipeline_obstacle(pipeline, problem.arguments)
        or _type_obstacle(pipeline, problem.arguments)
        or (_layout_obstacle(pipeline, problem.arguments) if problem.is_dense else None)
        or _size_obstacle(problem, pipeline)
    )


def _values_obstacle(problem: TotalsProblem, pipeline: Pipeline) -> str | None:
    """Why cells cannot be brought into groups by values of attributes as they are decoded."""
    if problem.is_dense:
        return "cells of a dense array are grouped by an attribute"
    for name in key_attributes(problem.parts):
        node = pipeline.outputs[name]
        if not isinstance(node, Column) or node.key not in pipeline.stored.schema.attribute_names:
            return f"cells are grouped by {name}, which is computed"
    return None


def _type_obstacle(pipeline: Pipeline, names: tuple[str, ...]) -> str | None:
    found = [kind for kind in (output_type(pipeline, name) for name in names) if kind.dtype.kind not in "biuf"]
    return f"values of type {found[0]} are not folded" if found else None


def _layout_obstacle(pipeline: Pipeline, names: tuple[str, ...]) -> str | None:
    snapshot: Any = pipeline.stored.snapshot
    stored = map(snapshot.schema.attribute, pipeline.needed(names))
    return next(filter(None, (snapshot.layout_obstacle(attribute) for attribute in stored)), None)


def _size_obstacle(problem: TotalsProblem, pipeline: Pipeline) -> str | None:
    """Sparse groups are kept for every part, those of a dense array once."""
    kept = sum(one.bytes() for one in _block_fold(problem, pipeline).kept)
    if problem.is_dense:
        large = problem.groups.count * kept * 3 > problem.engine.memory
        return "what is kept of so many groups does not fit" if large else None
    count, cells = problem.cell_groups.count, problem.cells
    if count > max(MANY_GROUPS, 4 * cells) or 4 * count * kept > problem.executor.worker_memory:
        return "there are many more places for groups than cells"
    return None


def _block_fold(problem: TotalsProblem, pipeline: Pipeline) -> Any:
    from windrow.operations.query.fused.folding import BlockFold
    from windrow.operations.query.fused.states import kept_of

    wanted = primitives_of(aggregate for _, aggregate in problem.aggregates)
    if pipeline.conditions or not problem.is_dense:
        wanted |= CELLS
    types = {name: output_type(pipeline, name) for name in problem.arguments}
    return BlockFold(pipeline, kept_of(wanted, types))


def _fold_cost(problem: TotalsProblem) -> Cost:
    pipeline = problem.pipeline
    assert isinstance(pipeline, Pipeline)
    grid = pipeline.stored.reading_grid
    if not problem.is_dense:
        return Cost(FOLDED_CELL * problem.cells)
    chunks = grid.aligned(problem.box).size / grid.chunk_cells
    return Cost(FOLDED_CELL * problem.box.size + CHUNK * chunks)


def _run_fold(problem: TotalsProblem) -> Any:
    pipeline = problem.pipeline
    assert isinstance(pipeline, Pipeline)
    fold = _block_fold(problem, pipeline)
    if problem.is_dense:
        from windrow.operations.query.fused.dense_fold import DenseFold, fold_dense

        return fold_dense(problem.executor, DenseFold(fold, problem.groups, problem.aggregates))
    from windrow.operations.query.fused.sparse_fold import fold_sparse

    return fold_sparse(problem.executor, _sparse_fold(problem, fold), problem.schema)


def _sparse_fold(problem: TotalsProblem, fold: Any) -> Any:
    from windrow.operations.query.fused.sparse_fold import SparseFold

    box = None if fold.pipeline.stored.snapshot.box in problem.box else problem.box
    return SparseFold(fold, problem.cell_groups, problem.aggregates, box)


def _rank_obstacle(problem: TotalsProblem) -> str | None:
    pipeline = problem.pipeline
    if isinstance(pipeline, str):
        return pipeline
    if problem.box.is_empty:
        return "there are no cells"
    if key_attributes(problem.parts):
        found = _values_obstacle(problem, pipeline)
        if found is not None:
            return found
    if any(aggregate.definition.ranks is None or aggregate.varies for _, aggregate in problem.aggregates):
        return "there are aggregates that are no order statistics"
    if len({str(aggregate.attribute) for _, aggregate in problem.aggregates}) > 1:
        return "it is of more than one attribute"
    rank_obstacle = _dense_rank_obstacle if problem.is_dense else _sparse_rank_obstacle
    return rank_obstacle(problem, pipeline, str(problem.aggregates[0][1].attribute))


def _dense_rank_obstacle(problem: TotalsProblem, pipeline: Pipeline, name: str) -> str | None:
    from windrow.operations.query.fused.dense_ranks import LONGEST

    node = pipeline.outputs[name]
    if pipeline.conditions or not isinstance(node, Column):
        return "it is of more than one stored attribute"
    if any(part is not None for part in problem.parts):
        return "the cells of a part of labels lie here and there"
    known = pipeline.stored.schema
    if node.key not in known.attribute_names or known.attribute(node.key).has_companion:
        return "missing values are noted beside the values"
    work = _ranks(problem)
    if work.group_cells > LONGEST or work.group_cells < 2:
        return "groups are too large" if work.group_cells > LONGEST else "groups have one cell"
    if work.column_bytes > problem.executor.worker_memory:
        return "a column of chunks does not fit into the memory of a worker"
    return _layout_obstacle(pipeline, (name,))


def _sparse_rank_obstacle(problem: TotalsProblem, pipeline: Pipeline, name: str) -> str | None:
    from windrow.operations.query.fused.sparse_ranks import held_bytes

    found = (
        pipeline_obstacle(pipeline, (name,)) or _type_obstacle(pipeline, (name,)) or _size_obstacle(problem, pipeline)
    )
    if found is not None:
        return found
    if problem.executor.name != "local":
        return "all values would have to be brought into this process"
    work = _sparse_ranks(problem, pipeline)
    cells = sum(part.cells for part in work.stored.snapshot.touching(work.box))
    large = held_bytes(work, cells) > problem.engine.memory
    return "the values of all groups do not fit into memory" if large else None


def _sparse_ranks(problem: TotalsProblem, pipeline: Pipeline) -> Any:
    from windrow.operations.query.fused.folding import BlockFold
    from windrow.operations.query.fused.states import kept_of

    name = str(problem.aggregates[0][1].attribute)
    kept = kept_of({(name, COUNT)}, {name: output_type(pipeline, name)})
    return _sparse_fold(problem, BlockFold(pipeline, kept))


def _ranks(problem: TotalsProblem) -> Any:
    from windrow.operations.query.fused.dense_ranks import DenseRanks

    assert isinstance(problem.pipeline, Pipeline)
    return DenseRanks(problem.pipeline, problem.groups, problem.aggregates)


def _rank_cost(problem: TotalsProblem) -> Cost:
    if not problem.is_dense:
        return Cost(RANKED_CELL * problem.cells)
    grid = problem.source.reading_grid
    chunks = grid.aligned(problem.box).size / grid.chunk_cells
    return Cost(RANKED_CELL * problem.box.size + CHUNK * chunks)


def _run_ranks(problem: TotalsProblem) -> Any:
    if not problem.is_dense:
        from windrow.operations.query.fused.sparse_ranks import rank_sparse

        assert isinstance(problem.pipeline, Pipeline)
        return rank_sparse(problem.executor, _sparse_ranks(problem, problem.pipeline), problem.schema)
    from windrow.operations.query.fused.dense_ranks import rank_dense

    return rank_dense(problem.executor, _ranks(problem))


def _block_cost(problem: TotalsProblem) -> Cost:
    if problem.source.schema.sparse and not problem.is_dense:
        return Cost(SORTED_CELL * problem.cells)
    grid = problem.source.reading_grid
    cells = problem.source.cells_decoded(problem.box) if not problem.box.is_empty else 0
    sorts = any(aggregate.definition.ranks is not None for _, aggregate in problem.aggregates)
    return Cost(
        (SORTED_CELL if sorts else CELL) * cells
        + CHUNK * (cells / max(1, min(cells, grid.chunk_cells)) if cells else 0)
    )


def _run_blocks(problem: TotalsProblem) -> Any:
    from windrow.operations.query.totals import totals

    return totals(
        problem.engine, problem.source, problem.box, problem.axes, problem.aggregates, problem.schema, problem.parts
    )


FUSED, RANKS, BLOCKS = "fused", "ranks", "blocks"
CHAIN: tuple[Strategy[TotalsProblem], ...] = (
    Strategy(BLOCKS, "blocks are read, and aggregated by kernels", lambda _: None, _block_cost, _run_blocks, start=0.0),
    Strategy(FUSED, "what is stored is folded as it is decoded", _fold_obstacle, _fold_cost, _run_fold, start=LOADING),
    Strategy(
        RANKS,
        "groups are laid side by side, and parted in place",
        _rank_obstacle,
        _rank_cost,
        _run_ranks,
        start=LOADING,
    ),
)
"""Blocks first: they need nothing loaded, so that a small total asks nobody else."""


def choose_path(problem: TotalsProblem) -> Choice[TotalsProblem]:
    """The way that totals take; ``engine.path`` forces one."""
    return choose(CHAIN, problem, problem.engine.path)


def blocks_obstacle(problem: TotalsProblem) -> str | None:
    """Why the blocks of a regrid are not folded."""
    path, cells = problem.engine.path, problem.cells
    if problem.is_dense:
        return "conditions choose cells of a dense array"
    if path not in (AUTO, FUSED):
        return f"{path} is asked for"
    if path == AUTO and (SORTED_CELL - FOLDED_CELL) * cells < LOADING:
        return "there are too few cells: its code takes longer to load than they take"
    return _fold_obstacle(problem)


def fold_blocks(problem: TotalsProblem) -> Any | None:
    """The blocks of a regrid of a sparse array, folded; None where they are not, or too few cells repay it."""
    return _run_fold(problem) if blocks_obstacle(problem) is None else None
