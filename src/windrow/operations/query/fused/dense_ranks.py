"""Order statistics of dense arrays: a column of chunks is laid into one block, group by group, and parted there."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.aggregates.columns import Result
from windrow.aggregates.folds import finish_rank
from windrow.execution.executor import Executor, Job
from windrow.expressions.nodes import Column
from windrow.kernels.folds.select import select_rows
from windrow.model.schema import Attribute
from windrow.operations.query.fused.dense_runs import Frame, Run, RunPlan, chunk_inside, plan_runs
from windrow.operations.query.fused.groups import GridGroups
from windrow.operations.query.fused.pipeline import Pipeline
from windrow.operations.query.fused.results import FoldResults
from windrow.plan.bound import NamedAggregates
from windrow.storage.dense.chunks import AHEAD, ChunkBuffers, ChunkRequests
from windrow.storage.dense.snapshots import DenseSnapshot

Array = npt.NDArray[Any]
LONGEST = 2**22
"""Values of a group, from which on the table of its ranks would be too large."""


@dataclass(frozen=True)
class DenseRanks:
    """Order statistics of one stored attribute, for groups of whole cells along some axes. It pickles."""

    pipeline: Pipeline
    groups: GridGroups
    aggregates: NamedAggregates

    @property
    def attribute(self) -> Attribute:
        node = self.pipeline.outputs[str(self.aggregates[0][1].attribute)]
        assert isinstance(node, Column)
        return self.pipeline.stored.schema.attribute(node.key)

    @property
    def snapshot(self) -> DenseSnapshot:
        snapshot: DenseSnapshot = self.pipeline.stored.snapshot  # type: ignore[assignment]
        return snapshot

    @property
    def group_cells(self) -> int:
        return math.prod(n for n, axis in zip(self.groups.box.shape, self.groups.axes, strict=True) if not axis.by_cell)

    @property
    def column_bytes(self) -> int:
        """The block of a column, and what is decoded meanwhile."""
        grid = self.snapshot.schema.grid
        sides = zip(grid.chunk, self.groups.box.shape, self.groups.axes, strict=True)
        cells = math.prod(min(size, extent) if axis.by_cell else extent for size, extent, axis in sides)
        return (cells + (2 + AHEAD) * grid.chunk_cells) * self.attribute.type.itemsize

    def plan(self) -> RunPlan:
        """A run for each column: its groups are whole there, and nowhere else."""
        return plan_runs(self.snapshot.schema.grid, self.groups, 2**62, 1)


@dataclass(frozen=True)
class ColumnTask:
    """A task: the order statistics of a column. It pickles, without the requests that threads share."""

    work: DenseRanks
    run: Run
    frame: Frame
    requests: ChunkRequests | None = None
    next_first: int = 0


def rank_column(task: ColumnTask) -> list[Result]:
    work, run = task.work, task.run
    start = 0 if task.requests is None else run.first
    requests = task.requests or work.snapshot.requests([work.attribute.name], run.keys)
    buffers = ChunkBuffers()
    axes = work.groups.axes
    shape = [stop - first if axis.by_cell else n for (first, stop), axis, n in _sides(work, task.frame)]
    order = [at for at, axis in enumerate(axes) if axis.by_cell] + [at for at, a in enumerate(axes) if not a.by_cell]
    block = np.empty([shape[at] for at in order], work.attribute.type.dtype)
    corner = [first if axis.by_cell else 0 for (first, _), axis, _ in _sides(work, task.frame)]
    try:
        for number, key in enumerate(run.keys):
            requests.ask(start + number, start + min(number + AHEAD + 1, len(run.keys)))
            if task.next_first and number + AHEAD >= len(run.keys):
                requests.ask(task.next_first, task.next_first + AHEAD)
            values = requests.take(start + number, buffers)[work.attribute.name]
            inside, begin = chunk_inside(work.snapshot.schema.grid, key, work.groups.box)
            cut = tuple(slice(lo, lo + n) for lo, n in zip(begin, inside.shape, strict=True))
            at = [lo - low - first for lo, low, first in zip(inside.lo, work.groups.box.lo, corner, strict=True)]
            where = tuple(slice(at[axis], at[axis] + inside.shape[axis]) for axis in order)
            block[where] = values[cut].transpose(order)
    except BaseException:
        requests.forget()
        raise
    rows = block.reshape(-1, work.group_cells)
    tables = [aggregate.ranks(work.group_cells) for _, aggregate in work.aggregates]
    outcomes = select_rows(rows, [table for table in tables if table is not None])
    named = zip(work.aggregates, outcomes, strict=True)
    return [finish_rank(aggregate, outcome, work.attribute.type) for (_, aggregate), outcome in named]


def _sides(work: DenseRanks, frame: Frame) -> Any:
    return zip(frame, work.groups.axes, work.groups.box.shape, strict=True)


def rank_dense(executor: Executor, work: DenseRanks) -> FoldResults:
    """The order statistics of all groups."""
    plan = work.plan()
    shared = None
    if executor.name == "local":
        shared = work.snapshot.requests([work.attribute.name], plan.sequence)
    ahead = [run.first for run in plan.runs[executor.workers :]] + [0] * executor.workers
    tasks = [
        ColumnTask(work, run, frame, shared, after)
        for run, frame, after in zip(plan.runs, plan.frames, ahead, strict=False)
    ]
    found = executor.run(Job("computing totals", rank_column, tasks, work.column_bytes))
    results = FoldResults(work.groups, work.aggregates, False)
    for frame, one in zip(plan.frames, found, strict=True):
        results.put(frame, one, None)
    return results
