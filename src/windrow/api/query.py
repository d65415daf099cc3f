"""Lazy queries: built by ``Array.window`` and its kin and by ``Database.query``, run by ``compute`` or ``store``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windrow.aggregates.aggregate import Aggregate
from windrow.aggregates.evaluate import METHODS
from windrow.errors import DataError
from windrow.expressions.nodes import Column
from windrow.model.schema import Schema
from windrow.model.source import ComputedCells
from windrow.model.window import Window, regrid
from windrow.operations.queries import (
    Source,
    compute_cells_in,
    compute_grid,
    source_of,
    stream_cells,
    stream_grid,
)
from windrow.plan.binding import bind
from windrow.plan.bound import Bound, BoundScan, BoundWindow, carried_metadata
from windrow.plan.nodes import Plan, Scan
from windrow.plan.nodes import Windowed as WindowedPlan
from windrow.plan.optimizer import Optimized, optimize
from windrow.plan.specs import Measure, WindowAxis, WindowSpec
from windrow.storage.dense import DenseSnapshot

if TYPE_CHECKING:
    import pyarrow as pa
    import xarray as xr

    from windrow.api.array import Array
    from windrow.api.batch import Report
    from windrow.api.database import Database
    from windrow.operations.explain import WindowExplanation
    from windrow.operations.explain_query import QueryExplanation


@dataclass(frozen=True)
class Windowed:
    """An array with a window on it; ``agg`` says what to compute."""

    array: Array
    window: Window

    def agg(self, *, method: str = "auto", **aggregates: Aggregate) -> Query:
        """Named aggregates over the window: ``.agg(p=wr.percentile("t", 70), m=wr.max("t"))``.

        ``method`` is "auto" (the fastest), "incremental" (the papers' algorithm) or "naive".
        """
        if method not in METHODS:
            raise DataError("method must be one of " + ", ".join(METHODS), got=repr(method))
        if not aggregates:
            raise DataError("there is nothing to compute", hint='As in .agg(m=wr.max("a"))')
        for name, aggregate in aggregates.items():
            if not isinstance(aggregate, Aggregate):
                raise DataError(f"{name} is not an aggregate", got=repr(aggregate), hint='As in wr.max("a")')
            if aggregate.attribute is not None:
                self.array.schema.attribute(aggregate.attribute)
        pinned = self.array._pinned
        scan = Scan(self.array.name, None if pinned is None else pinned.number)
        measures = tuple(_measure(name, aggregate) for name, aggregate in aggregates.items())
        plan = WindowedPlan(scan, _spec(self.window), measures, method)
        return Query(self.array._database, plan, ((scan, self.array),))

    def __repr__(self) -> str:
        return f'<windrow {self.window} on {self.array.name}: .agg(m=wr.max("…")) computes something>'


def _measure(name: str, aggregate: Aggregate) -> Measure:
    argument = None if aggregate.attribute is None else Column(aggregate.attribute)
    return Measure(name, aggregate.name, argument, aggregate.parameter)


def _spec(window: Window) -> WindowSpec:
    axes = zip(window.dimensions, window.extents, window.step, strict=True)
    return WindowSpec(tuple(WindowAxis(*axis) for axis in axes), window.boundary, window.min_count)


@dataclass(frozen=True)
class Query:
    """A query, not yet computed. ``arrays`` are those that are known already; the others are looked up by name."""

    database: Database
    plan: Plan
    arrays: tuple[tuple[Scan, Array], ...] = ()

    def __post_init__(self) -> None:
        _ = self.schema  # a wrong name, type or unit fails here, before any work

    @property
    def schema(self) -> Schema:
        """The schema of the result."""
        return self._bound().schema

    def compute(self) -> xr.Dataset | pa.Table:
        """The result, in memory: an xarray.Dataset if it is dense, a pyarrow.Table if it is sparse.

        One result over all cells is a Dataset without dimensions, or a table of one row.
        """
        bound = self._optimized().bound
        source = source_of(self.database.engine, bound)
        if isinstance(source, ComputedCells):
            return _without_place(bound, self._cells(source, bound))
        from windrow.api.labelled import of_blocks

        blocks = compute_grid(self.database.engine, source, bound.box)
        found = of_blocks(source.schema, bound.box, blocks, source.labels)
        for name, known in carried_metadata(bound).items():
            found[name].attrs.update(known)
        return found.isel({bound.schema.dimension_names[0]: 0}, drop=True) if bound.scalar else found

    def _cells(self, source: ComputedCells, bound: Bound) -> pa.Table:
        if isinstance(bound, BoundWindow):  # how many results there will be is known, so a lack of memory is too
            from windrow.operations import computed_cells

            return computed_cells.compute(self.database.engine, source, bound.box)
        return compute_cells_in(self.database.engine, source, bound.box)

    def stream(self) -> Iterator[xr.Dataset | pa.Table]:
        """The result piece by piece, each a box of it: for results that do not fit into memory."""
        bound = self._optimized().bound
        source = source_of(self.database.engine, bound)
        if isinstance(source, ComputedCells):
            for piece in stream_cells(self.database.engine, source, bound.box):
                yield _without_place(bound, piece)
            return
        from windrow.api.labelled import of_blocks

        for box, blocks in stream_grid(self.database.engine, source, bound.box):
            yield of_blocks(source.schema, box, blocks, source.labels)

    def store(self, name: str, batch: str | None = None) -> Report:
        """Make the result all that an array holds, as a new version of it; the array is created if it is not there.

        Nothing passes through this process: it is written where it is computed.
        """
        from windrow.api.saving import store

        return store(self, name, batch)

    def explain(self) -> WindowExplanation | QueryExplanation:
        """How it will be computed: the steps, what is read, blocks, memory and estimated cost."""
        optimized = self._optimized()
        bound, engine = optimized.bound, self.database.engine
        if isinstance(bound, BoundWindow) and isinstance(bound.source, BoundScan) and not bound.box.is_empty:
            from windrow.operations.explain import explain

            return explain(engine, self._source(), self._text())
        from windrow.operations.explain_query import explain_query

        return explain_query(engine, optimized, self._text())

    def plot(self, path: str | Path, attribute: str | None = None, kind: str | None = None) -> Path:
        """Compute it and draw one attribute into a file: a "map", a "line" or a "histogram"."""
        from windrow.api.plotting import plot, require_matplotlib

        require_matplotlib()
        return plot(self.compute(), path, attribute, kind, self.schema.dimension_names)

    def _bound(self) -> Bound:
        known = dict(self.arrays)
        return bind(self.plan, lambda scan: bound_scan(known.get(scan) or _opened(self.database, scan)))

    def _optimized(self) -> Optimized:
        return optimize(self._bound())

    def _source(self) -> Any:
        found: Source = source_of(self.database.engine, self._optimized().bound)
        return found

    def _text(self) -> str:
        return str(self.plan)

    def __repr__(self) -> str:
        return f"<windrow query, not yet computed: {self._text()}>"


def _without_place(bound: Bound, table: pa.Table) -> pa.Table:
    """One result over all cells lies nowhere."""
    return table.drop_columns([bound.schema.dimension_names[0]]) if bound.scalar else table


def _opened(database: Database, scan: Scan) -> Array:
    array = database.array(scan.array)
    if scan.version is not None:
        return array.at(version=scan.version)
    if scan.as_of is None:
        return array
    from datetime import UTC

    return array.at(time=scan.as_of.replace(tzinfo=UTC))


def bound_scan(array: Array) -> BoundScan:
    """An array as the lowest step of a query, at the version that is current or that it is pinned to."""
    now = array._now()
    snapshot = now._snapshot()
    name = array.name if array._pinned is None else f"{array.name}@{array._pinned.number}"
    cells = now._version().cells
    if isinstance(snapshot, DenseSnapshot):
        schema, labels = snapshot.growing_schema, snapshot.label_items
    else:
        schema, labels = snapshot.schema, tuple(now.labels.items())
    return BoundScan(
        schema=schema,
        box=snapshot.box,
        labels=labels,
        gridding=now.gridding,
        name=name,
        snapshot=snapshot,
        cells=cells,
        metadata=now._record().metadata,
    )


def windowed(array: Array, extents: Mapping[str, Any], options: Mapping[str, Any]) -> Windowed:
    return Windowed(array, Window.of(array.schema, extents, **options))


def regridded(array: Array, sizes: Mapping[str, Any], options: Mapping[str, Any]) -> Windowed:
    return Windowed(array, regrid(array.schema, sizes, **options))
