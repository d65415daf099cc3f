"""Writing sorted cells as parts: what workers do with the ranges they get."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from windrow.errors import DataError, DuplicateError
from windrow.model.box import Box
from windrow.model.schema import Schema
from windrow.storage.cells import CellKeys, conform_cells, coordinates, from_stored, to_stored
from windrow.storage.part_writing import PartWriter
from windrow.storage.parts import PartReader
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
        """Number cells with equal coordinates along the numbering dimension, after those that the array has already."""
        others = [name for name in self.schema.dimension_names if name != self._numbering]
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
        name = self._numbering
        if name in table.column_names:
            return table.set_column(table.column_names.index(name), name, column)
        return table.append_column(name, column)

    @property
    def _numbering(self) -> str:
        assert self.schema.numbering_name is not None, "the insert has checked that there is one"
        return self.schema.numbering_name

    def _next_numbers(self, places: list[Any], axes: list[int]) -> Any:
        """For each place, the first number that no existing cell there has."""
        axis = self.schema.axis(self._numbering)
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
