"""Results into arrays and files, computed while they are written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from windrow.api.batch import fill_array
from windrow.errors import DataError, FileFormatError, SchemaError
from windrow.formats.registry import format_of
from windrow.model.box import Box
from windrow.model.labels import Labels
from windrow.model.schema import Schema
from windrow.model.source import Blocks, ComputedCells
from windrow.operations.blocks import ComputedSource
from windrow.operations.cellwise import GridCells
from windrow.operations.queries import Source, compute_cells_in, compute_grid, source_of, stream_cells
from windrow.plan.bound import Bound, Metadata, carried_metadata
from windrow.storage.cells import cell_fields

if TYPE_CHECKING:
    from windrow.api.batch import Batch, Report
    from windrow.api.query import Query
    from windrow.execution.engine import Engine
    from windrow.storage.transaction import WorkingArray


def store(query: Query, name: str, batch: str | None = None) -> Report:
    """Make a query's result all that an array holds; the array is created if it is not there."""
    database, bound = query.database, query._optimized().bound
    created = name not in database
    if created:
        _check_cells(bound)
        source = source_of(database.engine, bound)
        labels = {key: found for key, found in source.labels.items() if not bound.schema.dimension(key).growing}
        known = carried_metadata(bound)
        database.create(name, source.schema, sparse=bound.schema.sparse, labels=labels, metadata=known)
    return fill_array(database, name, created, batch, lambda change: store_in(change, query, name))


def store_in(batch: Batch, query: Query, name: str) -> None:
    """The same for an array that is there, as a step of a batch."""
    working, bound, engine = batch._working(name), query._optimized().bound, query.database.engine
    if working is None:
        return
    _check_kind(working, bound)
    if not bound.schema.sparse:
        _check_cells(bound)
        _check_covers(working, bound)
        batch.write(name, source_of(engine, bound), bound.box.lo)
        return
    from windrow.operations.computed_cells import insert_computed
    from windrow.operations.rewrite import delete

    source = source_of(engine, bound)
    assert isinstance(source, ComputedCells)
    replaced = delete(engine, working, None)
    working.hi = tuple(d.lo - 1 if d.hi is None else d.hi for d in working.schema.dimensions)
    found = insert_computed(engine, working, source)
    batch._done(working, "write", found.cells, replaced)


def insert_in(batch: Batch, query: Query, name: str) -> None:
    """Put the cells of a query's result into an array; its other cells stay as they are."""
    working, bound, engine = batch._working(name), query._optimized().bound, query.database.engine
    if working is None:
        return
    _check_placed(working, bound)
    source = source_of(engine, bound)
    if bound.box.is_empty:
        batch._done(working, "insert")
    elif working.record.sparse:
        batch.insert(name, _as_cells(source, bound))
    elif isinstance(source, ComputedCells):
        batch.insert(name, compute_cells_in(engine, source, bound.box))
    else:
        batch.write(name, source, bound.box.lo)


def _as_cells(source: Source, bound: Bound) -> ComputedCells:
    if isinstance(source, ComputedCells):
        return source
    return GridCells(source, replace(source.schema, sparse=True), bound.box, bound.labels, None)


def _check_cells(bound: Bound) -> None:
    if bound.box.is_empty and not bound.schema.sparse:
        raise DataError("the result has no cells to store", got=str(bound.box))


def _check_kind(working: WorkingArray, bound: Bound) -> None:
    kinds = ["sparse" if sparse else "dense" for sparse in (working.record.sparse, bound.schema.sparse)]
    if kinds[0] != kinds[1]:
        what = f"array {working.record.name} is {kinds[0]}, and the result is {kinds[1]}"
        raise SchemaError(what, hint=_other_ways(working))
    wanted, found = (schema.attribute_names for schema in (working.schema, bound.schema))
    if set(wanted) != set(found):
        what = f"array {working.record.name} has other attributes than the result"
        raise SchemaError(what, got=", ".join(found), hint=f"It has {', '.join(wanted)}")
    _check_placed(working, bound)


def _check_placed(working: WorkingArray, bound: Bound) -> None:
    """Cells keep their coordinates, so the dimensions must be the same."""
    wanted, found = working.schema.dimension_names, bound.schema.dimension_names
    if wanted != found:
        what = f"array {working.record.name} has other dimensions than the result"
        raise SchemaError(what, got=", ".join(found), hint=f"It has {', '.join(wanted)}")
    _check_labels(working, bound)


def _check_labels(working: WorkingArray, bound: Bound) -> None:
    """Cells of one number must have one label."""
    for axis, (name, given) in enumerate(_labels_along(bound)):
        known = working.labels.get(name)
        if known is None or given is None:
            continue
        first = bound.box.lo[axis] - working.schema.lo[axis]
        there = known.slice(max(0, first), max(0, first + len(given)))
        here = given.slice(max(0, -first), max(0, -first) + len(there))
        if not there.same_values(here):
            what = f"dimension {name} of array {working.record.name} has other labels than the result"
            raise SchemaError(what, got=f"{here.values[0]} …", hint=f"It has {there.values[0]} …")


def _labels_along(bound: Bound) -> Iterator[tuple[str, Labels | None]]:
    known = dict(bound.labels)
    for name in bound.schema.dimension_names:
        yield name, known.get(name)


def _check_covers(working: WorkingArray, bound: Bound) -> None:
    if not working.box.is_empty and working.box not in bound.box:
        what = f"array {working.record.name} has cells that the result does not have"
        raise SchemaError(what, got=str(bound.box), hint=f"It has {working.box}. {_other_ways(working)}")


def _other_ways(working: WorkingArray) -> str:
    return f"Use insert into {working.record.name} select …, or choose another name"


@dataclass(frozen=True)
class Described:
    """A dense result with what is known of its attributes, as a GridSource that the engine computes."""

    engine: Engine
    source: ComputedSource
    box: Box
    metadata: Metadata

    @property
    def schema(self) -> Schema:
        return self.source.schema

    @property
    def labels(self) -> Mapping[str, Labels]:
        return self.source.labels

    def read(self, box: Box) -> Blocks:
        return compute_grid(self.engine, self.source, box, self.box)


def save(query: Query, path: str, format: str | None = None, overwrite: bool = False) -> int:
    """Write a query's result to a file; returns the number of its cells."""
    found = format_of(path, format)
    bound, engine = query._optimized().bound, query.database.engine
    source = source_of(engine, bound)
    if not isinstance(source, ComputedCells):
        if found.write_grid is None:
            raise FileFormatError(f"files of the format {found.name} cannot be written", got=path)
        if bound.box.is_empty:
            raise DataError("there are no cells to save", got=str(bound.box))
        found.write_grid(path, Described(engine, source, bound.box, carried_metadata(bound)), overwrite=overwrite)
        return bound.box.size
    if found.write_table is None:
        hint = "Use .parquet or .csv"
        raise FileFormatError(f"a sparse result cannot be written as {found.name}", got=path, hint=hint)
    cells = 0

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal cells
        for table in stream_cells(engine, source, bound.box):
            cells += table.num_rows
            yield from table.to_batches()

    found.write_table(path, cell_fields(source.schema), batches(), overwrite=overwrite)
    return cells
