"""Functions that workers run on the cells of sparse arrays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from windrow.errors import DataError, DuplicateError
from windrow.expressions.evaluate import evaluate
from windrow.expressions.nodes import Node
from windrow.model.box import Box
from windrow.model.grid import ChunkGrid
from windrow.model.schema import CHUNK_COLUMN, NUMBERING, Schema
from windrow.operations.sources import assigned
from windrow.storage.cells import (
    CellKeys,
    conform_cells,
    coordinates,
    found_in,
    from_stored,
    to_stored,
)
from windrow.storage.parts import PartReader, PartWriter
from windrow.storage.records import Part

Duplicates = Literal["error", "last", "keep"]

_ROWS_AT_ONCE = 262_144


@dataclass(frozen=True)
class CellsReceipt:
    """What was written from one range of sorted cells."""

    parts: tuple[Part, ...]
    duplicates: int
    example: tuple[int, ...] | None


@dataclass(frozen=True)
class WriteCells:
    """Checks sorted cells and writes them as parts. Called by workers on the range each of them got."""

    directory: str
    schema: Schema
    bounds: Box
    on_duplicate: Duplicates
    existing: tuple[Part, ...] = ()
    title: str = ""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> CellsReceipt:
        writer = PartWriter(self.directory, self.schema)
        seen = _Seen()
        try:
            for table in gathered(batches):
                if self.on_duplicate == "keep":
                    table = self._numbered(table, seen)
                cells = conform_cells(table, self.schema, self.bounds)
                writer.append(self._unique(cells, seen))
            if seen.held is not None:
                writer.append(seen.held)
            parts = writer.close()
        except BaseException:
            writer.abandon()
            raise
        return CellsReceipt(tuple(parts), seen.duplicates, seen.example)

    def _unique(self, cells: pa.Table, seen: _Seen) -> pa.Table:
        """The cells with their chunk column, sorted, after looking for coordinates that occur twice.

        The last cell is held back: its twin may come with the next rows.
        """
        if seen.held is not None:
            cells = pa.concat_tables([from_stored(seen.held, self.schema), cells])
        keys = CellKeys(self.schema.grid, coordinates(cells, self.schema))
        if not keys.is_sorted():
            order = keys.order()
            keys.take(order)
            cells = cells.take(pa.array(order))
        repeated = keys.repeats()
        if repeated.any():
            at = coordinates(cells, self.schema)
            first = int(np.flatnonzero(repeated)[0])
            seen.note(int(repeated.sum()), tuple(int(column[first]) for column in at))
            last_of_run = np.append(~repeated[1:], True)
            cells = cells.filter(pa.array(last_of_run))
            keys.take(np.flatnonzero(last_of_run))
        stored = to_stored(cells, keys.ordinals, self.schema)
        seen.held = stored.slice(stored.num_rows - 1)
        return stored.slice(0, stored.num_rows - 1)

    def _numbered(self, table: pa.Table, seen: _Seen) -> pa.Table:
        """Number cells with equal coordinates along ``n``, after those that the array has already."""
        others = [name for name in self.schema.dimension_names if name != NUMBERING]
        axes = [self.schema.axis(name) for name in others]
        rows = table.num_rows
        at = [_integers(table, name) for name in others]
        starts = _run_starts(at)
        counts = np.diff(np.append(starts, rows))
        position = np.arange(rows) - np.repeat(starts, counts)
        base = self._next_numbers([column[starts] for column in at], axes)
        continued = bool(rows) and seen.last_place == tuple(int(column[0]) for column in at)
        if continued:
            base[0] = seen.next_number
        numbers = np.repeat(base, counts) + position
        if rows:
            seen.last_place = tuple(int(column[-1]) for column in at)
            seen.next_number = int(numbers[-1]) + 1
            twins = rows - len(starts) + int(continued)
            if twins:
                first = 0 if continued else int(np.flatnonzero(position)[0])
                seen.note(twins, tuple(int(column[first]) for column in at))
        return self._with_numbers(table, numbers)

    def _with_numbers(self, table: pa.Table, numbers: Any) -> pa.Table:
        column = pa.array(numbers, pa.int64())
        if NUMBERING in table.column_names:
            return table.set_column(table.column_names.index(NUMBERING), NUMBERING, column)
        return table.append_column(NUMBERING, column)

    def _next_numbers(self, places: list[Any], axes: list[int]) -> Any:
        """For each place, the first number that no existing cell there has."""
        axis = self.schema.axis(NUMBERING)
        first = self.schema.lo[axis]
        result = np.full(len(places[0]), first, np.int64)
        if not len(result) or not self.existing:
            return result
        lo, hi = list(self.bounds.lo), list(self.bounds.hi)
        for column, of_dimension in zip(places, axes, strict=True):
            lo[of_dimension], hi[of_dimension] = int(column.min()), int(column.max())
        box = Box(tuple(lo), tuple(hi))
        reader = PartReader(self.title, self.directory, self.schema)
        for part in self.existing:
            if part.box.overlaps(box):
                held = coordinates(reader.read(part, box, self.schema.dimension_names), self.schema)
                _raise_numbers(result, places, [held[a] for a in axes], held[axis])
        return result


@dataclass
class _Seen:
    """What one range of rows has shown so far."""

    duplicates: int = 0
    example: tuple[int, ...] | None = None
    held: pa.Table | None = None
    last_place: tuple[int, ...] | None = None
    next_number: int = 0

    def note(self, count: int, example: tuple[int, ...]) -> None:
        self.duplicates += count
        self.example = self.example or example


def gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Batches joined into tables large enough that per-table work does not show."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        if rows >= _ROWS_AT_ONCE:
            yield pa.Table.from_batches(waiting)
            waiting, rows = [], 0
    if rows:
        yield pa.Table.from_batches(waiting)


def _integers(table: pa.Table, name: str) -> Any:
    if name not in table.column_names:
        raise DataError(f"the cells have no column {name}", got=", ".join(table.column_names))
    column = table.column(name)
    if column.null_count or not pa.types.is_integer(column.type):
        raise DataError(f"coordinates of dimension {name} must be integers, none missing", got=column.type)
    return column.cast(pa.int64()).to_numpy()


def _run_starts(at: list[Any]) -> Any:
    """Where runs of equal coordinates begin."""
    rows = len(at[0])
    new = np.zeros(rows, bool)
    new[:1] = True
    for column in at:
        new[1:] |= column[1:] != column[:-1]
    return np.flatnonzero(new)


def _raise_numbers(result: Any, places: list[Any], held: list[Any], numbers: Any) -> None:
    """Let each place's number follow the largest one held there."""
    if not len(numbers):
        return
    joined = np.stack([np.concatenate([a, b]) for a, b in zip(places, held, strict=True)], axis=1)
    _, groups = np.unique(joined, axis=0, return_inverse=True)
    groups = groups.reshape(-1)
    largest = np.full(int(groups.max()) + 1, np.iinfo(np.int64).min)
    np.maximum.at(largest, groups[len(places[0]) :], numbers)
    mine = largest[groups[: len(places[0])]]
    np.maximum(result, np.where(mine == np.iinfo(np.int64).min, result, mine + 1), out=result)


@dataclass(frozen=True)
class PartRewrite:
    """What became of a part: the parts that replace it, and how many of its cells were removed or changed."""

    old: Part
    new: tuple[Part, ...]
    touched: int

    @property
    def unchanged(self) -> bool:
        return self.touched == 0


@dataclass(frozen=True)
class MaskPart:
    """A task: remove from ``part`` the cells that newer parts replace."""

    reader: PartReader
    part: Part
    newer: tuple[Part, ...]


def mask_part(task: MaskPart) -> PartRewrite:
    names = task.reader.schema.dimension_names
    grid: ChunkGrid = task.reader.schema.grid
    newer = [task.reader.read(part, task.part.box, names) for part in task.newer]
    others = coordinates(pa.concat_tables(newer), task.reader.schema)
    if not len(others[0]):
        return PartRewrite(task.part, (), 0)
    reach = Box(tuple(int(c.min()) for c in others), tuple(int(c.max()) for c in others))
    mine = coordinates(task.reader.read(task.part, reach, names), task.reader.schema)
    if not found_in(grid, mine, others).any():
        return PartRewrite(task.part, (), 0)

    def survivors(table: pa.Table) -> tuple[pa.Table, int]:
        replaced = found_in(grid, coordinates(table, task.reader.schema), others)
        return table.filter(pa.array(~replaced)), int(replaced.sum())

    return _rewritten(task.reader, task.part, survivors)


@dataclass(frozen=True)
class DeleteCells:
    """A task: remove the cells of ``part`` that satisfy the condition (all of them if there is none)."""

    reader: PartReader
    part: Part
    condition: Node | None


def delete_cells(task: DeleteCells) -> PartRewrite:
    if task.condition is None:
        return PartRewrite(task.part, (), task.part.cells)
    condition = task.condition

    def survivors(table: pa.Table) -> tuple[pa.Table, int]:
        chosen = _satisfying(table, task.reader.schema, condition)
        return table.filter(pa.array(~chosen)), int(chosen.sum())

    return _rewritten(task.reader, task.part, survivors)


@dataclass(frozen=True)
class UpdateCells:
    """A task: evaluate assignments in the cells of ``part`` that satisfy the condition."""

    reader: PartReader
    part: Part
    assignments: tuple[tuple[str, Node], ...]
    condition: Node | None


def update_cells(task: UpdateCells) -> PartRewrite:
    schema = task.reader.schema

    def updated(table: pa.Table) -> tuple[pa.Table, int]:
        chosen = np.ones(table.num_rows, bool)
        if task.condition is not None:
            chosen = _satisfying(table, schema, task.condition)
        if not chosen.any():
            return table, 0
        cells = from_stored(table, schema)
        changed = cells.filter(pa.array(chosen))
        columns = {name: changed.column(name) for name in changed.column_names}
        result = changed
        for name, expression in task.assignments:
            value = assigned(evaluate(expression, columns, changed.num_rows), schema.attribute(name))
            index = result.column_names.index(name)
            result = result.set_column(index, name, value)
        result = conform_cells(result, schema, _anywhere(schema.ndim))
        order = np.argsort(np.concatenate([np.flatnonzero(~chosen), np.flatnonzero(chosen)]), kind="stable")
        merged = pa.concat_tables([cells.filter(pa.array(~chosen)), result]).take(pa.array(order))
        return to_stored(merged, table.column(CHUNK_COLUMN).to_numpy(), schema), int(chosen.sum())

    return _rewritten(task.reader, task.part, updated)


def _anywhere(ndim: int) -> Box:
    return Box((-(2**62),) * ndim, (2**62,) * ndim)


def _satisfying(table: pa.Table, schema: Schema, condition: Node) -> Any:
    cells = from_stored(table, schema)
    columns = {name: cells.column(name) for name in cells.column_names}
    return evaluate(condition, columns, cells.num_rows).fill_null(False).to_numpy(zero_copy_only=False)


def _rewritten(reader: PartReader, part: Part, change: Any) -> PartRewrite:
    """Pass every row group through ``change`` and write what it returns, unless nothing was touched."""
    writer = PartWriter(reader.directory, reader.schema)
    touched = 0
    try:
        for table in reader.batches(part):
            kept, count = change(table)
            touched += count
            writer.append(kept)
        parts = writer.close()
    except BaseException:
        writer.abandon()
        raise
    if not touched:
        writer.abandon()
        return PartRewrite(part, (), 0)
    return PartRewrite(part, tuple(parts), touched)


def refuse_duplicates(receipts: list[CellsReceipt], schema: Schema) -> None:
    """Say how many coordinates occurred more than once in one insert, and name one."""
    count = sum(receipt.duplicates for receipt in receipts)
    if count:
        example = next(receipt.example for receipt in receipts if receipt.example is not None)
        place = ", ".join(f"{name}={at}" for name, at in zip(schema.dimension_names, example, strict=False))
        raise DuplicateError(
            "several cells for one coordinate in one insert",
            got=f"{count:,} too many, the first at {place}",
            hint='Use on_duplicate="last" (ordered input) or "keep"',
        )
