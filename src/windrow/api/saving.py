"""Results into arrays and files, computed while they are written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from windrow.api.creation import draw_up
from windrow.errors import DataError, FileFormatError, SchemaError
from windrow.formats.registry import format_of
from windrow.model.labels import Labels
from windrow.operations.query.bound_query import BoundQuery, CellsQuery, GridQuery
from windrow.plan.bound import Bound, table_hint, table_words

if TYPE_CHECKING:
    from windrow.api.batch import Batch
    from windrow.api.query import Query
    from windrow.api.reports import Report
    from windrow.storage.working import WorkingArray


def store(query: Query, name: str, batch: str | None = None) -> Report:
    """Make a query's result all that an array holds; the array is created if it is not there."""
    with query.database.batch(batch) as change:
        store_in(change, query, name)
    assert change.report is not None
    return change.report


def store_in(batch: Batch, query: Query, name: str) -> None:
    """The same as a step of a batch.

    The query is bound after the array is locked, for it may read that array too.
    """
    if batch._claim(name):
        create_in(batch, query, name)
    elif batch._working(name) is not None:
        _replace(batch, query.bind(batch), name)


def create_in(batch: Batch, query: Query, name: str) -> None:
    """Make an array of a query's result; there must be none of that name."""
    found = query.bind(batch)
    bound = found.bound
    _check_cells(bound)
    labels = {key: known for key, known in found.labels.items() if not bound.schema.dimension(key).growing}
    lies_on = None if bound.gridding is None else bound.gridding.along(bound.schema.dimension_names)
    plan = draw_up(name, found.schema, sparse=found.sparse, labels=labels, metadata=found.metadata)
    batch._make(replace(plan, gridding=lies_on))
    _replace(batch, found, name)


def _replace(batch: Batch, query: BoundQuery, name: str) -> None:
    working, bound = batch._working(name), query.bound
    if working is None:
        return
    _check_cells(bound)
    _check_kind(working, bound)
    if not query.sparse:
        _check_covers(working, bound)
        batch.write(name, query.source, bound.box.lo)
        return
    from windrow.operations.query.sparse_run import insert_computed
    from windrow.operations.sparse.rewrite import delete

    cells = query.as_cells()
    replaced = delete(query.engine, working, None)
    working.hi = tuple(d.lo - 1 if d.hi is None else d.hi for d in working.schema.dimensions)
    found = insert_computed(query.engine, working, cells)
    batch._done(working, "write", found.cells, replaced)


def insert_in(batch: Batch, query: Query, name: str) -> None:
    """Put the cells of a query's result into an array; its other cells stay as they are."""
    working = batch._working(name)
    if working is None:
        return
    bound = query.bind(batch)
    if bound.bound.is_table:
        _check_cells(bound.bound)
    _check_placed(working, bound.bound)
    if bound.box.is_empty:
        batch._done(working, "insert")
    elif working.record.sparse:
        batch.insert(name, bound.as_cells())
    elif isinstance(bound, CellsQuery):
        batch.insert(name, bound.compute())
    else:
        batch.write(name, bound.source, bound.box.lo)


def _check_cells(bound: Bound) -> None:
    if bound.is_table:
        hint = f"{table_hint(bound)}, or save it to a file"
        raise SchemaError(f"{table_words(bound)} is a table, which no array can hold", hint=hint)
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


def save(query: BoundQuery, path: str, format: str | None = None, overwrite: bool = False) -> int:
    """Write a query's result to a file; returns the number of its cells."""
    found = format_of(path, format)
    if isinstance(query, GridQuery):
        if found.write_grid is None:
            raise FileFormatError(f"files of the format {found.name} cannot be written", got=path)
        if query.box.is_empty:
            raise DataError("there are no cells to save", got=str(query.box))
        found.write_grid(path, query.as_grid(), overwrite=overwrite)
        return query.box.size
    assert isinstance(query, CellsQuery)
    if found.write_table is None:
        hint = "Use .parquet or .csv"
        raise FileFormatError(f"a sparse result cannot be written as {found.name}", got=path, hint=hint)
    cells = 0

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal cells
        for table in query.stream():
            cells += table.num_rows
            yield from table.to_batches()

    found.write_table(path, query.fields, batches(), overwrite=overwrite)
    return cells
