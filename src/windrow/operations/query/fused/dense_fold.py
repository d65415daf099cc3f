"""Totals of dense arrays in one pass: each chunk is fetched ahead, decoded into a buffer, and folded from there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.aggregates.columns import Result
from windrow.aggregates.folds import finish_fold
from windrow.execution.executor import Executor, Job
from windrow.kernels.contract.outcomes import Outcome
from windrow.model.types import DataType
from windrow.operations.query.fused.dense_runs import Frame, Run, RunPlan, chunk_inside, frame_size, plan_runs
from windrow.operations.query.fused.folding import BlockFold
from windrow.operations.query.fused.groups import GridGroups
from windrow.operations.query.fused.pipeline import output_type
from windrow.operations.query.fused.results import FoldResults
from windrow.operations.query.fused.states import State
from windrow.plan.bound import NamedAggregates
from windrow.storage.dense.chunks import AHEAD, ChunkBuffers, ChunkRequests
from windrow.storage.dense.layout import variables_of
from windrow.storage.dense.snapshots import DenseSnapshot

Array = npt.NDArray[Any]
_NOTHING = np.zeros(1, np.int64)
TASKS = 64
"""How many tasks runs are shared out to where tasks are sent away."""
FINISHED_AT_ONCE = 2**16
"""Groups whose aggregates are worked out together."""


@dataclass(frozen=True)
class DenseFold:
    """A fold over a dense array: what is computed, for which groups."""

    fold: BlockFold
    groups: GridGroups
    aggregates: NamedAggregates

    @property
    def snapshot(self) -> DenseSnapshot:
        snapshot: DenseSnapshot = self.fold.pipeline.stored.snapshot  # type: ignore[assignment]
        return snapshot

    @property
    def arguments(self) -> tuple[str, ...]:
        return tuple(kept.argument for kept in self.fold.kept if kept.argument is not None)

    @property
    def variables(self) -> list[str]:
        schema = self.snapshot.schema
        names = self.fold.pipeline.needed(self.arguments)
        # A count of all cells that a condition meets reads what the condition reads, and so something in any case.
        return [variable for name in names for variable in variables_of(schema.attribute(name))]

    @property
    def chunk_bytes(self) -> int:
        schema = self.snapshot.schema
        return schema.grid.chunk_cells * schema.bytes_of(self.fold.pipeline.needed(self.arguments))

    def types(self) -> dict[str, DataType]:
        return {name: output_type(self.fold.pipeline, name) for name in self.arguments}

    def plan(self) -> RunPlan:
        kept = sum(one.bytes() for one in self.fold.kept)
        return plan_runs(self.snapshot.schema.grid, self.groups, kept, self.chunk_bytes)

    def task_bytes(self, plan: RunPlan) -> int:
        """What the largest task holds: a decoded chunk, some that wait, and what is kept of its groups, twice."""
        most = max((frame_size(run.frame) for run in plan.runs), default=0)
        return (2 + AHEAD) * self.chunk_bytes + 2 * most * sum(kept.bytes() for kept in self.fold.kept)


@dataclass(frozen=True)
class RunTask:
    """A task: fold some runs. It pickles, without the requests that threads of one process share."""

    work: DenseFold
    runs: tuple[Run, ...]
    requests: ChunkRequests | None = None
    next_first: int = 0
    """Where the run after these begins, so that its first chunks are fetched before it is taken up."""


@dataclass(frozen=True, eq=False)
class Finished:
    """The results of a column that one run has seen whole."""

    results: list[Result]
    cells: Array | None


def fold_runs(task: RunTask) -> list[list[State] | Finished]:
    """What was kept of each run, in order."""
    requests = task.requests
    start = 0 if requests is None else task.runs[0].first
    if requests is None:
        sequence = [key for run in task.runs for key in run.keys]
        requests = task.work.snapshot.requests(task.work.variables, sequence)
    buffers, place = ChunkBuffers(), start
    found: list[list[State] | Finished] = []
    try:
        for run in task.runs:
            states = _empty(task.work, run.frame)
            for number, key in enumerate(run.keys):
                requests.ask(place, place + min(AHEAD + 1, len(run.keys) - number))
                if task.next_first and number + AHEAD >= len(run.keys):
                    requests.ask(task.next_first, task.next_first + AHEAD)
                _fold_chunk(task.work, requests.take(place, buffers), key, run.frame, states)
                place += 1
            found.append(finish(task.work, states, run.frame) if run.alone else states)
    except BaseException:
        requests.forget()
        raise
    return found


def _fold_chunk(
    work: DenseFold, blocks: dict[str, Array], key: tuple[int, ...], frame: Frame, states: Sequence[State]
) -> None:
    grid, box = work.snapshot.schema.grid, work.groups.box
    inside, start = chunk_inside(grid, key, box)
    codes, stride = [], 1
    for axis in range(len(frame) - 1, -1, -1):
        lo = inside.lo[axis] - box.lo[axis]
        if work.groups.axes[axis].extent == 1:
            codes.append(np.broadcast_to(_NOTHING, inside.shape[axis]))
            continue
        own = work.groups.axes[axis].codes[lo : lo + inside.shape[axis]] - frame[axis][0]
        codes.append(own * stride)
        stride *= frame[axis][1] - frame[axis][0]
    work.fold.fold(blocks, start, inside.shape, codes[::-1], states)


def fold_dense(executor: Executor, work: DenseFold) -> FoldResults:
    """The aggregates of all groups."""
    results = FoldResults(work.groups, work.aggregates, bool(work.fold.pipeline.conditions))
    whole = tuple((0, axis.extent) for axis in work.groups.axes)
    if not work.variables:  # cells are counted without looking at any
        _put(results, whole, finish(work, _empty(work, whole), whole))
        return results
    plan = work.plan()
    found = executor.run(Job("computing totals", fold_runs, _tasks(executor, work, plan), work.task_bytes(plan)))
    waiting: list[State] = []
    for run, kept in zip(plan.runs, (one for several in found for one in several), strict=True):
        frame = plan.frames[run.column]
        if isinstance(kept, Finished):
            _put(results, frame, kept)
            continue
        waiting = waiting or _empty(work, frame)
        for one, other in zip(waiting, kept, strict=True):
            one.join(_places(frame, run.frame), other)
        if run.last:
            _put(results, frame, finish(work, waiting, frame))
            waiting = []
    return results


def _put(results: FoldResults, frame: Frame, found: Finished) -> None:
    results.put(frame, found.results, found.cells)


def _empty(work: DenseFold, frame: Frame) -> list[State]:
    return [State(kept, frame_size(frame)) for kept in work.fold.kept]


def _places(frame: Frame, inner: Frame) -> Array:
    """Where the groups of a run are among those of its column."""
    found = np.zeros(1, np.int64)
    for (first, stop), (lo, hi) in zip(frame, inner, strict=True):
        found = (found[:, None] * (stop - first) + np.arange(lo - first, hi - first)).reshape(-1)
    return found


def _tasks(executor: Executor, work: DenseFold, plan: RunPlan) -> list[RunTask]:
    if executor.name == "local":
        requests = work.snapshot.requests(work.variables, plan.sequence)
        ahead = [run.first for run in plan.runs[executor.workers :]] + [0] * executor.workers
        return [RunTask(work, (run,), requests, after) for run, after in zip(plan.runs, ahead, strict=False)]
    share = -(-len(plan.runs) // TASKS)
    return [RunTask(work, plan.runs[start : start + share]) for start in range(0, len(plan.runs), share)]


def finish(work: DenseFold, states: Sequence[State], frame: Frame) -> Finished:
    """Every aggregate of the groups of a frame."""
    known = {state.kept.argument: state for state in states}
    types, chosen = work.types(), bool(work.fold.pipeline.conditions)
    if None in known and not chosen:
        known[None].arrays["counts"] = _cells_of(work.groups, frame)

    counted = known[None].arrays["counts"] if chosen and None in known else None
    return Finished(_finish_all(work, types, states), counted)


def _finish_all(work: DenseFold, types: Mapping[str, DataType], states: Sequence[State]) -> list[Result]:
    """Every aggregate, some groups after others: what is worked out on the way stays in the processor's cache."""
    groups = states[0].groups
    whole: list[Array] = []
    missing: list[Array | None] = [None] * len(work.aggregates)
    for start in range(0, max(groups, 1), FINISHED_AT_ONCE):
        some = slice(start, start + FINISHED_AT_ONCE)
        found = _finish_some(work, types, [state.at(some) for state in states])
        if groups <= FINISHED_AT_ONCE:
            return found
        whole = whole or [np.empty(groups, result.values.dtype) for result in found]
        for number, result in enumerate(found):
            whole[number][some] = result.values
            if result.missing is not None:
                lacking = missing[number]
                if lacking is None:
                    lacking = missing[number] = np.zeros(groups, bool)
                lacking[some] = result.missing
    return [Result(*both) for both in zip(whole, missing, strict=True)]


def _finish_some(work: DenseFold, types: Mapping[str, DataType], states: Sequence[State]) -> list[Result]:
    known = {state.kept.argument: state for state in states}

    def outcome(argument: str | None, operation: str) -> Outcome:
        return known[argument].outcome(operation)

    return [finish_fold(aggregate, outcome, types) for _, aggregate in work.aggregates]


def _cells_of(groups: GridGroups, frame: Frame) -> Array:
    """How many cells each group of a frame has, if all of them count."""
    found = np.ones(1, np.int64)
    for axis, (start, stop) in zip(groups.axes, frame, strict=True):
        found = (found[:, None] * np.bincount(axis.codes, minlength=axis.extent)[start:stop]).reshape(-1)
    return found
