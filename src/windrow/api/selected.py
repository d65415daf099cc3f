"""Selections: cells of an array chosen by label or by number, not yet read."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windrow.api.cells import Cells
from windrow.api.query import Pinned, Query
from windrow.errors import DataError, MemoryLimitError
from windrow.execution.engine import Engine
from windrow.expressions.nodes import Node
from windrow.model.box import Box
from windrow.model.schema import Schema
from windrow.operations.query.bound_query import CellsQuery, GridQuery
from windrow.operations.query.round import stored_boxes
from windrow.operations.query.run import source_of
from windrow.plan.bound import Bound, BoundNamed, BoundScan, BoundSelection, carried_metadata
from windrow.plan.nodes import Filter, Plan, Scan
from windrow.plan.scopes import CellScope

if TYPE_CHECKING:
    import pyarrow as pa
    import xarray as xr
    from pyspark.sql import DataFrame

    from windrow.api.batch import Batch
    from windrow.api.cells import Steps
    from windrow.api.database import Database

Choice = Callable[[CellScope, Mapping[str, object]], Node | None]
"""Turns what was asked for, by dimension, into a condition."""


@dataclass(frozen=True)
class Selected(Query, Cells):
    """Cells of an array, to be read, aggregated, stored, exported or drawn.

    Labels are looked up whenever something is done with it, in the version that the array has then.
    """

    @property
    def _database(self) -> Database:  # type: ignore[override]
        return self.database

    @property
    def schema(self) -> Schema:
        return Query.schema.fget(self)  # type: ignore[attr-defined, no-any-return]

    @property
    def name(self) -> str:
        """The array's name."""
        return next(step.array for step in self.plan.walk() if isinstance(step, Scan))

    def choose(self, choice: Choice, selection: Mapping[str, object]) -> Selected:
        """Some of these cells."""
        bound = self._bound
        scope = CellScope(bound.schema, bound.box, bound.coordinates, bound.dimension_names)
        condition = choice(scope, selection)
        if condition is None:
            return self
        chosen = Selected(self.database, Filter(self.plan, condition), self.pinned, self.within)
        return chosen.check(condition, bound.schema.sparse)

    def check(self, condition: Node, sparse: bool) -> Selected:
        """Refuse cells of a dense array that lie here and there."""
        if self.schema.sparse and not sparse:
            raise DataError(
                "the cells of these labels are not next to each other",
                got=str(condition),
                hint="The labels are not in order: select by cell, or in text, which gives single cells",
            )
        return self

    @property
    def box(self) -> Box:
        """The cells, by number; beyond the last one where a range goes round."""
        return self._bound.box

    @property
    def shape(self) -> tuple[int, ...]:
        return self.box.shape

    def read(self, attributes: Iterable[str] | None = None, /) -> xr.Dataset | pa.Table:
        """The cells: an xarray.Dataset if dense, a pyarrow.Table in coordinate order if sparse."""
        query = self.bind()  # which keeps what is read from being removed
        with query.lease.explaining():
            return self._read(query, attributes)

    def read_stored(self) -> pa.Table:
        """The cells of a sparse array with all dimensions, also of a view that is one result over all cells."""
        query = self.bind()
        with query.lease.explaining():
            return self._read_cells(query, None)

    def _read(self, query: GridQuery | CellsQuery, attributes: Iterable[str] | None) -> xr.Dataset | pa.Table:
        found: xr.Dataset | pa.Table = as_it_lies(query.bound, self._read_cells(query, attributes))
        return found

    def _read_cells(self, query: GridQuery | CellsQuery, attributes: Iterable[str] | None) -> xr.Dataset | pa.Table:
        bound = query.bound
        names = chosen_attributes(bound.schema, attributes)
        if not bound.schema.sparse:
            from windrow.api.labelled import labelled

            needed = 2 * max(0, bound.box.size) * bound.schema.bytes_of(names)
            check_memory(self.database.engine, self.name, needed)
            blocks = source_of(self.database.engine, bound).read(bound.box, names)
            return labelled(bound.schema, bound.box, blocks, dict(bound.labels), carried_metadata(bound))
        scan = _scanned(bound)
        if scan is None:
            found: pa.Table = query.preview(bound.box)
            return found.select([*bound.schema.dimension_names, *names])
        box = None if isinstance(bound, BoundScan) else bound.box
        cells = sum(part.cells for part in scan.snapshot.touching(bound.box))
        check_memory(self.database.engine, self.name, 3 * cells * (8 * bound.schema.ndim + bound.schema.cell_bytes))
        read: pa.Table = scan.snapshot.read(box, names, self.database.engine.workers)
        return read

    def to_xarray(self) -> xr.Dataset:
        """The cells of a dense array as an xarray.Dataset, read now."""
        if self.schema.sparse:
            raise DataError(f"array {self.name} is sparse", hint="Use read()")
        found: xr.Dataset = self.read()
        return found

    def batches(self, attributes: Iterable[str] | None = None, /) -> Iterator[pa.Table]:
        """The cells of a sparse array as a stream of tables, in no particular order."""
        query = self.bind()
        names = chosen_attributes(query.bound.schema, attributes)
        assert isinstance(query, CellsQuery)
        return _stream(query, names)

    def to_spark(self) -> DataFrame:
        """The cells as a lazy Spark DataFrame: dimensions and attributes as columns, missing as NULL."""
        from windrow.operations.dataframes import computed_frame, dense_frame, sparse_frame

        query, executor = self.bind(), self.database.engine.spark()
        # What is made of a DataFrame does not know of it, so that only the connection's end is surely late enough.
        self.database.warehouse.leases.keep(query.lease)
        bound = query.bound
        scan = next(step for step in bound.walk() if isinstance(step, BoundNamed))
        if not isinstance(scan, BoundScan):
            return computed_frame(executor, source_of(self.database.engine, bound), bound.box)
        if scan is bound and bound.schema.sparse:
            return sparse_frame(executor, scan.snapshot, None)
        frame: Any = sparse_frame if bound.schema.sparse else dense_frame
        frames: list[DataFrame] = [frame(executor, scan.snapshot, box) for box in stored_boxes(bound, bound.box)]
        return functools.reduce(lambda one, other: one.unionAll(other), frames)

    def export(
        self,
        path: str | Path,
        format: str | None = None,
        overwrite: bool = False,
        attributes: Sequence[str] | None = None,
    ) -> None:
        """Write the cells, or some of their attributes, to a file."""
        from windrow.api.transfer import export_selected

        export_selected(self, path, format=format, overwrite=overwrite, attributes=attributes)

    @property
    def _bound(self) -> Bound:
        return self._optimized()[0].bound

    @property
    def _batch(self) -> Batch | None:  # type: ignore[override]
        return self.within

    def _steps(self) -> Steps:
        return self.plan, self.pinned

    def _all(self) -> Selected:
        return self

    def __repr__(self) -> str:
        return f"<windrow selection, not yet read: {self.plan}>"


def all_of(database: Database, plan: Plan, pinned: Pinned, batch: Batch | None = None) -> Selected:
    """All cells that a step gives."""
    return Selected(database, plan, pinned, batch)


def as_it_lies(bound: Bound, found: Any) -> Any:
    """What was read; one result over all cells, which a view stores as a cell, is shown without a dimension."""
    if not bound.scalar:
        return found
    nowhere = bound.schema.dimension_names
    if hasattr(found, "column_names"):
        return found.drop_columns([name for name in nowhere if name in found.column_names])
    return found.isel({name: 0 for name in nowhere if name in found.dims}, drop=True)


def _stream(query: CellsQuery, names: Sequence[str]) -> Iterator[pa.Table]:
    bound = query.bound
    scan = _scanned(bound)
    tables = scan.snapshot.batches(None if scan is bound else bound.box, names) if scan is not None else query.stream()
    for table in tables:
        yield table.select([*bound.dimension_names, *names])


def _scanned(bound: Bound) -> BoundScan | None:
    """The array, if the cells are a box of it."""
    inner = bound.source if isinstance(bound, BoundSelection) else bound
    return inner if isinstance(inner, BoundScan) else None


def chosen_attributes(schema: Schema, attributes: Iterable[str] | None) -> tuple[str, ...]:
    """The attributes that are asked for, all by default."""
    if attributes is None:
        return schema.attribute_names
    if not isinstance(attributes, Iterable):
        raise DataError(
            "attributes is a list of names", got=repr(attributes), hint=f"As in {[schema.attributes[0].name]}"
        )
    listed = (attributes,) if isinstance(attributes, str) else tuple(attributes)
    return tuple(schema.attribute(name).name for name in listed)


def check_memory(engine: Engine, name: str, needed: int) -> None:
    """Refuse to read more than memory holds."""
    if needed > engine.memory:
        raise MemoryLimitError(
            f"reading this from {name} needs about {needed / 2**30:.1f} GB of memory",
            got=f"a limit of {engine.memory / 2**30:.1f} GB",
            hint="Select less, use to_spark(), or connect with a larger memory=",
        )
