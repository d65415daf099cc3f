"""Totals of sparse arrays in one pass: a task folds the row groups of a part, in the order in which they are stored.

Nothing is sorted. Dead cells and cells outside of a box are passed over by a mask; only the columns that are needed are
read. What parts give is joined in their order, so that sums repeat bit by bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.aggregates.folds import finish_fold
from windrow.execution.executor import Executor, Job
from windrow.kernels.contract.outcomes import Outcome
from windrow.model.arrow import arrow_to_block, arrow_type
from windrow.model.box import Box
from windrow.model.schema import Attribute, Schema
from windrow.operations.query.fused.cell_groups import CellGroups
from windrow.operations.query.fused.folding import ALL_THERE, BlockFold
from windrow.operations.query.fused.pipeline import output_type
from windrow.operations.query.fused.states import State
from windrow.operations.query.scans import StoredCells
from windrow.plan.bound import NamedAggregates
from windrow.storage.cells import cell_fields
from windrow.storage.parts import MASKED_CELLS
from windrow.storage.records import Part

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Batch:
    """A row group: its attributes, what its cells are grouped by, and which of them are there."""

    rows: int
    tile: dict[str, Array]
    keys: dict[str, Array]
    alive: Array


@dataclass(frozen=True)
class SparseFold:
    """A fold over the cells of some parts. It pickles; ``parts`` alone differ between tasks."""

    fold: BlockFold
    groups: CellGroups
    aggregates: NamedAggregates
    box: Box | None

    @property
    def stored(self) -> StoredCells:
        stored = self.fold.pipeline.stored
        assert isinstance(stored, StoredCells)
        return stored

    @property
    def arguments(self) -> tuple[str, ...]:
        return tuple(kept.argument for kept in self.fold.kept if kept.argument is not None)

    @cached_property
    def attributes(self) -> tuple[str, ...]:
        """The stored attributes that are read; every row group asks."""
        return self.fold.pipeline.needed(self.arguments)

    def batches(self, part: Part) -> Iterator[Batch]:
        """The row groups of a part; a cell that is in no group is as good as dead."""
        schema, dimensions = self.stored.schema, self.groups.dimensions
        wanted = list(dict.fromkeys([*dimensions, *self.attributes]))
        for table, mask in self.stored.snapshot.reader.masked_batches(part, self.box, wanted):
            keys: dict[str, Array] = {}
            for name in dimensions:
                values = self.groups.values_along(name)
                if values is None:
                    keys[name] = table.column(name).to_numpy()
                    continue
                keys[name] = values.codes(_in_own_type(table.column(name), schema.attribute(name)))
                if keys[name].min(initial=0) < 0:
                    mask = keys[name] >= 0 if mask is None else mask & (keys[name] >= 0)
            alive = ALL_THERE if mask is None else mask.view(np.uint8)
            yield Batch(table.num_rows, tile_of(table, self.attributes, schema), keys, alive)

    @property
    def task_bytes(self) -> int:
        width = 8 * self.stored.schema.ndim + self.stored.schema.bytes_of(self.attributes)
        return 4 * MASKED_CELLS * width + 2 * self.groups.count * sum(kept.bytes() for kept in self.fold.kept)


@dataclass(frozen=True)
class PartTask:
    """A task: fold one part."""

    work: SparseFold
    part: Part


@dataclass(frozen=True, eq=False)
class PartStates:
    """What is kept of the groups that a part has cells in, and where those are among all groups."""

    groups: slice
    states: list[State]


def fold_part(task: PartTask) -> PartStates:
    work, part = task.work, task.part
    names = work.stored.schema.dimension_names
    groups = work.groups.within(names, part.box if work.box is None else part.box & work.box)
    states = [State(kept, groups.count) for kept in work.fold.kept]
    room = np.empty(0, np.int64)  # the same for all batches, so that it stays in the cache
    for batch in work.batches(part):
        room = room if len(room) >= batch.rows else np.empty(batch.rows, np.int64)
        lanes = groups.lanes(batch.keys, batch.rows, room)
        work.fold.fold_tile(batch.tile, (batch.rows,), lanes, states, batch.alive)
    return PartStates(groups.range, states)


def tile_of(table: pa.Table, names: tuple[str, ...], schema: Schema) -> dict[str, Array]:
    """The attributes of a row group as NumPy has them; missing floats are NaN."""
    found: dict[str, Array] = {}
    for name in names:
        attribute = schema.attribute(name)
        values, valid = arrow_to_block(_in_own_type(table.column(name), attribute))
        found[name] = values
        if attribute.has_companion:
            found[attribute.companion] = np.ones(len(values), bool) if valid is None else valid
    return found


def _in_own_type(column: Any, attribute: Attribute) -> Any:
    """A stored column as the attribute's type has it."""
    wanted = arrow_type(attribute.type)
    return column if column.type == wanted else column.cast(wanted)


def _join_parts(whole: list[State], parts: list[PartStates]) -> None:
    """Join what parts give in their order; groups that none before them has are theirs as they are."""
    lowest = reach = 0
    for number, part in enumerate(parts):
        start, stop = part.groups.start, part.groups.stop
        if number == 0:
            lowest = reach = start
        shared = min(stop, max(start, reach)) if start >= lowest else stop
        for one, other in zip(whole, part.states, strict=True):
            one.join(slice(start, shared), other.at(slice(0, shared - start)))
            one.put(slice(shared, stop), other.at(slice(shared - start, stop - start)))
        lowest, reach = min(lowest, start), max(reach, stop)


def fold_sparse(executor: Executor, work: SparseFold, schema: Schema) -> pa.Table:
    """A row for each group that has cells, in the order of their coordinates; ``schema`` is that of the result."""
    parts = work.stored.snapshot.touching(work.box)
    tasks = [PartTask(work, part) for part in parts]
    whole = [State(kept, work.groups.count) for kept in work.fold.kept]
    _join_parts(whole, executor.run(Job("computing totals", fold_part, tasks, work.task_bytes)))
    known = {state.kept.argument: state for state in whole}
    occurring, places = np.zeros(1, np.int64), [np.zeros(1, np.int64)]
    if work.groups.groupings:
        occurring = np.flatnonzero(known[None].arrays["counts"])
        places = work.groups.places(occurring)
        known = {name: state.at(occurring) for name, state in known.items()}
    types = {name: output_type(work.fold.pipeline, name) for name in work.arguments}

    def outcome(argument: str | None, operation: str) -> Outcome:
        return known[argument].outcome(operation)

    columns = []
    for (_, aggregate), attribute in zip(work.aggregates, schema.attributes, strict=True):
        result = finish_fold(aggregate, outcome, types)
        columns.append(result.to_arrow(attribute.type))
    return pa.table([*map(pa.array, places), *columns], schema=cell_fields(schema))
