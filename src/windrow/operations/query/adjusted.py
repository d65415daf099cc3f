"""Aggregates joined from kept results: totals of finer totals, and results of which some pairs come and others go."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.aggregates.aggregate import Aggregate
from windrow.aggregates.columns import Column, Result
from windrow.aggregates.parts import join_parts
from windrow.errors import DataError
from windrow.model.arrow import arrow_to_block
from windrow.model.box import Box
from windrow.model.grid import ChunkGrid
from windrow.model.labels import Labels
from windrow.model.schema import Schema
from windrow.model.source import ComputedCells
from windrow.operations.query.totals import Groups, column_of, gather_groups
from windrow.plan.bound import LabelItems, NamedAggregates
from windrow.storage.cells import cell_fields, coordinates

MOST = float(2**63) * (1 - 1e-9)
"""Sums nearer than this to the end of int64 are taken from the cells, which tells whether they overflow."""

PAIRS = "count"
"""The column that counts the pairs of a result."""


class TooLargeError(Exception):
    """A sum of parts may not fit."""


def rejoin(
    table: pa.Table, axes: Sequence[int], source: Schema, aggregates: NamedAggregates, schema: Schema
) -> pa.Table:
    """Totals of finer totals, in the order of their coordinates."""
    at = coordinates(table, source)
    groups = gather_groups([at[axis] for axis in axes], _columns(table, source.attribute_names), table.num_rows)
    return _table(groups, [joined(groups, aggregate) for _, aggregate in aggregates], schema)


def adjust(kept: pa.Table, added: pa.Table | None, taken: pa.Table | None, wanted: Adjusting) -> pa.Table:
    """Results of the pairs of ``kept`` and ``added`` without those of ``taken``."""
    names = [*wanted.schema.dimension_names, *wanted.parts]
    pieces = [piece.select(names) for piece in (kept, added, taken) if piece is not None]
    fields = pa.schema([field.with_nullable(True) for field in pieces[0].schema])
    table = pa.concat_tables([piece.cast(fields) for piece in pieces])
    columns = _columns(table, wanted.parts)
    if taken is not None:
        columns[SIGN] = Column(np.repeat(np.array([1, -1]), [table.num_rows - taken.num_rows, taken.num_rows]))
    groups = gather_groups(coordinates(table, wanted.schema), columns, table.num_rows)
    if taken is None:
        return _table(groups, [joined(groups, aggregate) for _, aggregate in wanted.aggregates], wanted.schema)
    found = _table(groups, [subtracted(groups, aggregate) for _, aggregate in wanted.aggregates], wanted.schema)
    return found.filter(pa.array(_signed(groups, PAIRS) > 0)) if wanted.inner else found


SIGN = "\0sign"


@dataclass(frozen=True)
class Adjusting:
    """What is made of parts: aggregates, from the columns ``parts``. Cells without a pair stay unless ``inner``."""

    aggregates: NamedAggregates
    schema: Schema
    parts: tuple[str, ...]
    inner: bool


def _columns(table: pa.Table, names: Iterable[str]) -> dict[str, Column]:
    return {name: Column(*arrow_to_block(table.column(name))) for name in names}


def _table(groups: Groups, results: Sequence[Result], schema: Schema) -> pa.Table:
    values = [result.to_arrow(a.type) for result, a in zip(results, schema.attributes, strict=True)]
    places = [pa.array(place) for place in groups.places] or [pa.array(np.zeros(1, np.int64))]
    return pa.table([*places, *values], schema=cell_fields(schema))


def needed_parts(aggregate: Aggregate, known: Mapping[str, object]) -> list[Aggregate]:
    """The parts that an aggregate is joined from; an average also from sums, where there are no averages."""
    parts = list(aggregate.parts().values())
    if aggregate.definition.averages and any(column_of(part) not in known for part in parts):
        return [Aggregate("count", aggregate.attribute), Aggregate("sum", aggregate.attribute)]
    return parts


def joined(groups: Groups, aggregate: Aggregate) -> Result:
    """One aggregate of parts that are all there."""
    parts = needed_parts(aggregate, groups.columns)
    if aggregate.definition.averages and parts[-1].definition.sums:
        total, count = (_of_parts(groups, part) for part in (parts[1], parts[0]))
        return _average(total.values, count.values)
    return _of_parts(groups, aggregate)


def _of_parts(groups: Groups, aggregate: Aggregate) -> Result:
    own = {name: groups.columns[column_of(part)] for name, part in aggregate.parts().items()}
    return join_parts(aggregate, own, groups.starts)


def _average(total: npt.NDArray[np.generic], count: npt.NDArray[np.int64]) -> Result:
    with np.errstate(divide="ignore", invalid="ignore"):
        return Result(total.astype(np.float64) / count, count == 0)


def subtracted(groups: Groups, aggregate: Aggregate) -> Result:
    """One aggregate where parts are also taken away: a count, or a sum or an average of whole numbers."""
    counts = _signed(groups, column_of(Aggregate("count", aggregate.attribute)))
    if aggregate.definition.counts:
        return Result(counts, None)
    total = _signed(groups, column_of(Aggregate("sum", aggregate.attribute)))
    return Result(total, counts == 0) if aggregate.definition.sums else _average(total, counts)


def _signed(groups: Groups, name: str) -> npt.NDArray[np.int64]:
    """The sum of a column of whole numbers, exact: what is too large on the way is right again at the end."""
    column, signs = groups.columns[name], groups.columns[SIGN].values
    values = column.values if column.present is None else np.where(column.present, column.values, 0)
    if not len(values):
        return np.zeros(0, np.int64)
    about = np.add.reduceat(values.astype(np.float64) * signs, groups.starts[:-1])
    if (np.abs(about) >= MOST).any():
        raise TooLargeError
    with np.errstate(over="ignore"):
        return np.asarray(np.add.reduceat(values.astype(np.int64) * signs, groups.starts[:-1]), np.int64)


@dataclass(frozen=True, eq=False)
class AdjustedCells:
    """Results made of kept ones and of the pairs that differ, where they lie. It pickles."""

    kept: ComputedCells
    added: ComputedCells | None
    taken: ComputedCells | None
    direct: ComputedCells
    wanted: Adjusting
    box: Box
    label_items: LabelItems

    @property
    def schema(self) -> Schema:
        return self.wanted.schema

    @property
    def labels(self) -> Mapping[str, Labels]:
        return dict(self.label_items)

    @property
    def _sources(self) -> list[ComputedCells]:
        return [source for source in (self.kept, self.added, self.taken) if source is not None]

    @property
    def keep_whole(self) -> tuple[int, ...]:
        return tuple(sorted({axis for source in self._sources for axis in source.keep_whole}))

    @property
    def reading_grid(self) -> ChunkGrid:
        return self.direct.reading_grid

    def cells_in(self, box: Box) -> int:
        inside = box & self.box
        return 0 if inside.is_empty else self.direct.cells_in(inside)

    def cells_decoded(self, results: Box) -> int:
        inside = results & self.box
        return 0 if inside.is_empty else sum(source.cells_decoded(inside) for source in self._sources)

    def touched_bytes(self, results: Box) -> int:
        inside = results & self.box
        return 0 if inside.is_empty else sum(source.touched_bytes(inside) for source in self._sources)

    def task_bytes(self, results: Box) -> int:
        inside = results & self.box
        return 0 if inside.is_empty else sum(source.task_bytes(inside) for source in [*self._sources, self.direct])

    def within(self, results: Box) -> AdjustedCells:
        inside = results & self.box
        if inside.is_empty:
            return self
        kept, direct = self.kept.within(inside), self.direct.within(inside)
        added, taken = (None if part is None else part.within(inside) for part in (self.added, self.taken))
        return replace(self, kept=kept, added=added, taken=taken, direct=direct)

    def read(self, box: Box | None = None, attributes: Iterable[str] | None = None) -> pa.Table:
        inside = self.box if box is None else box & self.box
        chosen = self.schema if attributes is None else self.schema.select(attributes)
        if inside.is_empty:
            return cell_fields(chosen).empty_table()
        try:
            parts = [None if part is None else part.read(inside) for part in (self.kept, self.added, self.taken)]
            return adjust(parts[0], parts[1], parts[2], self.wanted).select(cell_fields(chosen).names)
        except (TooLargeError, DataError):
            # A sum of some pairs may be too large where that of all is not; so may be what a user's expression gives.
            return self.direct.read(inside, chosen.attribute_names)
