"""Lazy queries: built by ``Array.window`` and its kin and by ``Database.query``, run by ``compute`` or ``store``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windrow.aggregates.aggregate import Aggregate
from windrow.aggregates.windows import METHODS
from windrow.errors import DataError, UnknownNameError
from windrow.language.expression import parse_expression
from windrow.model.schema import Schema
from windrow.model.window import Window, regrid
from windrow.operations.query.bound_query import BoundQuery, CellsQuery, GridQuery, bound_query
from windrow.operations.query.stored import stored_scan, working_scan
from windrow.plan.binding import bind
from windrow.plan.bound import Bound, BoundNamed
from windrow.plan.grouping.positions import BoundRepeated
from windrow.plan.nodes import Changes, GroupBy, Plan, Scan
from windrow.plan.nodes import Windowed as WindowedPlan
from windrow.plan.rewriting import Optimized, optimize
from windrow.plan.specs import Measure, WindowSpec
from windrow.plan.stored_shapes import shape_arrays, unknown_shape
from windrow.storage.records import ArrayRecord, Versioned, VersionRecord
from windrow.storage.working import WorkingArray
from windrow.views.shown import as_shown, versions_below

if TYPE_CHECKING:
    import pyarrow as pa
    import xarray as xr

    from windrow.api.batch import Batch
    from windrow.api.cells import Cells
    from windrow.api.database import Database
    from windrow.api.reports import Report
    from windrow.operations.query.explain import QueryExplanation
    from windrow.operations.query.explain_windows import WindowExplanation
    from windrow.operations.query.held import HeldGrid

__all__ = ["BoundQuery", "CellsQuery", "GridQuery", "Query", "Windowed", "computed", "regridded", "windowed"]

ATTEMPTS = 5
"""How often a query that loses a version to a collection looks for the next one."""

Versions = dict[Scan, tuple[ArrayRecord, VersionRecord, "WorkingArray | None"]]
Pinned = tuple[tuple[Scan, tuple[ArrayRecord, VersionRecord]], ...]
"""Versions that were opened before, each under the step that reads it."""


@dataclass(frozen=True)
class Windowed:
    """An array with a window on it; ``agg`` says what to compute."""

    array: Cells
    window: Window

    def agg(
        self, *, method: str = "auto", strategy: str = "auto", sweep: str | None = None, **aggregates: Aggregate
    ) -> Query:
        """Named aggregates over the window: ``.agg(p=wr.percentile("t", 70), m=wr.max("t"))``.

        ``method`` is "auto" (the fastest), "incremental" (the papers' algorithm) or "naive". Under "auto" the cheapest
        of several strategies is taken, which ``explain`` lists, or the one named by ``strategy``. ``sweep`` names the
        dimension along which windows are to slide, by the incremental method, instead of the best one.
        """
        if method not in METHODS:
            raise DataError("method must be one of " + ", ".join(METHODS), got=repr(method))
        scan, pinned = self.array._steps()
        window = WindowSpec.of(self.window, self.array.schema)
        plan = WindowedPlan(scan, window, measures_of(aggregates), method, strategy, sweep)
        return Query(self.array._database, plan, pinned, self.array._batch)

    def __repr__(self) -> str:
        return f'<windrow {self.window} on {self.array.name}: .agg(m=wr.max("…")) computes something>'


def measures_of(aggregates: Mapping[str, Aggregate]) -> tuple[Measure, ...]:
    """Named aggregates as plans hold them."""
    if not aggregates:
        raise DataError("there is nothing to compute", hint='As in .agg(m=wr.max("a"))')
    for name, aggregate in aggregates.items():
        if not isinstance(aggregate, Aggregate):
            raise DataError(f"{name} is not an aggregate", got=repr(aggregate), hint='As in wr.max("a")')
    return tuple(_measure(name, aggregate) for name, aggregate in aggregates.items())


def _measure(name: str, aggregate: Aggregate) -> Measure:
    arguments = [parse_expression(text) for text in aggregate.attributes]
    argument, second = (*arguments, None, None)[:2]
    return Measure(name, aggregate.name, argument, aggregate.constant, second)


@dataclass(frozen=True)
class Query:
    """A query, not yet computed.

    What is done with it begins by binding it to the versions that its arrays have then, all as of one moment.
    ``pinned`` are versions that were opened before, which must still be those of the same arrays. ``within`` is a batch
    whose changes so far it sees, until the batch is published.
    """

    database: Database
    plan: Plan
    pinned: Pinned = ()
    within: Batch | None = field(default=None, compare=False, repr=False)
    views: str | None = None
    """Whether it may be answered from views; None leaves that to the connection."""
    _last: tuple[object, Optimized, dict[Scan, BoundNamed]] = field(init=False, compare=False, repr=False)
    """The versions that it was bound to last, and the steps: binding them again would come to the same."""

    def __post_init__(self) -> None:
        self._optimized()  # a wrong name, type or unit fails here, before any work

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.database, self.plan, self.pinned, self.within, self.views)

    @property
    def schema(self) -> Schema:
        """The schema of the result, as of when the query was made or last run."""
        return self._last[1].bound.schema

    def bind(self, within: Batch | None = None) -> GridQuery | CellsQuery:
        """The query on the versions that its arrays have now, which all that is done with it then sees.

        They are not removed while the bound query is there. ``within`` is a batch as part of which it runs.
        """
        for attempt in range(ATTEMPTS):
            optimized, versions = self._answered(within)
            try:
                lease = self.database.warehouse.hold(versions)
            except UnknownNameError:
                if attempt == ATTEMPTS - 1:
                    raise
                continue  # given up since they were looked up: there are newer ones, unless one was asked for
            return bound_query(self.database.engine, optimized, self.plan, lease)
        raise AssertionError("the last attempt returns or raises")

    def compute(self) -> xr.Dataset | pa.Table:
        """The result, in memory: an xarray.Dataset if it is dense, a pyarrow.Table if it is sparse.

        One result over all cells is a Dataset without dimensions, or a table of one row. Rows of a table are those of
        a stored array by chunk and, in a chunk, by coordinate, unless ``order_by`` says otherwise; groups, windows and
        joins are in the order of coordinates.
        """
        return computed(self.bind())

    def operate(self, operator: str, *parameters: Any) -> Query:
        """An operator of users or of an installed package on the result: ``q.operate("smooth", 3)``."""
        from windrow.plan.operators import Operated

        return Query(self.database, Operated(self.plan, operator, parameters), self.pinned, self.within)

    def order_by(self, *keys: str) -> Query:
        """The rows of the result in an order: ``q.order_by("m desc", "abs(a)")``; missing values come last.

        Rows whose keys are equal are in the order of their coordinates. The result is a table, of a dense query too.
        """
        from windrow.api.ordering import ordered

        return Query(self.database, ordered(self.plan, keys), self.pinned, self.within, self.views)

    def limit(self, rows: int) -> Query:
        """The first rows of the result, in the order of coordinates unless ``order_by`` gave another: a table."""
        from windrow.api.ordering import limited

        return Query(self.database, limited(self.plan, rows), self.pinned, self.within, self.views)

    def stream(self) -> Iterator[xr.Dataset | pa.Table]:
        """The result piece by piece, each a box of it: for results that do not fit into memory."""
        bound = self.bind()
        if isinstance(bound, CellsQuery):
            yield from bound.stream()
        else:
            yield from (_dataset(bound, piece) for piece in bound.stream())

    def store(self, name: str, batch: str | None = None) -> Report:
        """Make the result all that an array holds, as a new version of it; the array is created if it is not there.

        Nothing passes through this process: it is written where it is computed.
        """
        from windrow.api.saving import store

        return store(self, name, batch)

    def explain(self) -> WindowExplanation | QueryExplanation:
        """How it will be computed: the steps, what is read, blocks, memory and estimated cost."""
        return self.bind().explain()

    def plot(self, path: str | Path, attribute: str | None = None, kind: str | None = None) -> Path:
        """Compute it and draw one attribute into a file: a "map", a "line" or a "histogram"."""
        from windrow.api.plotting import plot, require_matplotlib

        require_matplotlib()
        bound = self.bind()
        return plot(computed(bound), path, attribute, kind, bound.dimension_names)

    def using_views(self, use: str) -> Query:
        """The same query, answered from views where that is cheaper ("auto"), wherever they can serve ("always"), the
        same also from views that are behind, as they are ("stale"), or never ("off").
        """
        from windrow.views.answering.uses import checked_use

        return replace(self, views=checked_use(use))

    def _optimized(self, within: Batch | None = None) -> tuple[Optimized, Versions]:
        """The steps on the arrays themselves, and the versions that they read."""
        batch = within or self.within
        with self.database.catalog.one_moment():
            found = self._versions(batch)
            key = [(record.directory, version.number, version.pointer) for record, version, _ in found.values()]
            last = getattr(self, "_last", None)
            if last is None or last[0] != key:
                scans: dict[Scan, BoundNamed] = {}
                bound = bind(
                    self.plan,
                    lambda scan: self._opened(batch, scan, found, scans),
                    self._changed,
                    lambda step, name: self._values(step, name, found),
                )
                last = key, optimize(bound), scans
                object.__setattr__(self, "_last", last)
        return last[1], found

    def _opened(self, batch: Batch | None, scan: Scan, found: Versions, scans: dict[Scan, BoundNamed]) -> BoundNamed:
        """An array as it is read, the same wherever the query names it."""
        if scan not in scans:
            scans[scan] = _scan(self.database, scan, batch, *found[scan])
        return scans[scan]

    def _changed(self, step: Changes) -> pa.Table:
        from windrow.api.changes import stored_changes

        return stored_changes(self.database, step.array, step.before, step.after)[1]

    def _values(self, step: Bound, name: str, found: Versions) -> pa.Array:
        """The values of an attribute that cells are grouped by, which say what the dimensions of the result are."""
        from windrow.operations.query.distinct import distinct_values

        published = [(record, version) for record, version, working in found.values() if working is None]
        with self.database.warehouse.hold(published) as lease, lease.explaining():
            return distinct_values(self.database.engine, step, name)

    def _answered(self, within: Batch | None) -> tuple[Optimized, list[Versioned]]:
        """The steps, from views where that pays, and the published versions that they read."""
        with self.database.catalog.one_moment():
            optimized, found = self._optimized(within)
            versions = [(record, version) for record, version, working in found.values() if working is None]
            known = {view.array_id for view in self.database.catalog.views()}
            if not known:
                return optimized, versions
            if any(record.id in known for record, _ in versions):
                from windrow.views.known import warn_of_stale

                warn_of_stale(self.database.warehouse, self.plan)
            return self._from_views(optimized, found, versions)

    def _from_views(
        self, optimized: Optimized, found: Versions, versions: list[Versioned]
    ) -> tuple[Optimized, list[Versioned]]:
        from windrow.views.answering.answer import answer
        from windrow.views.answering.candidates import Read
        from windrow.views.stale import say_stale

        if len(versions) < len(found):  # a batch's own changes are in no view yet
            return optimized, versions
        reads = [Read(scan, bound, *found[scan][:2]) for scan, bound in self._last[2].items()]
        given = answer(
            self.database.engine, self.database.warehouse, optimized, reads, self.views or self.database.view_use
        )
        for name, reason in given.stale:
            say_stale(name, reason)
        return given.optimized, [*versions, *given.versions]

    def _versions(self, batch: Batch | None) -> Versions:
        """The version of each array that the query names."""
        pinned = dict(self.pinned)
        scans = dict.fromkeys(scan for step in self.plan.walk() for scan in _scans(step))
        found = {scan: _version(self.database, scan, pinned.get(scan), batch) for scan in scans}
        for scan in shape_arrays(self.plan):
            try:
                found[scan] = _version(self.database, scan, pinned.get(scan), batch)
            except UnknownNameError as error:
                raise unknown_shape(scan, error) from error
        return found | self._below(found, batch)

    def _below(self, found: Versions, batch: Batch | None) -> Versions:
        """The versions of other arrays at whose cells views are shown."""
        below: Versions = {}
        for record, version, working in found.values():
            for base, held in versions_below(self.database.warehouse, record, version.number):
                scan = Scan(base.name, held.number if working is None else None)
                below[scan] = _version(self.database, scan, None, batch) if working is not None else (base, held, None)
        return below

    def __repr__(self) -> str:
        return f"<windrow query, not yet computed: {self.plan}>"


def _scans(step: Plan) -> tuple[Scan, ...]:
    if isinstance(step, Changes):
        return step.versions
    return (step,) if isinstance(step, Scan) else ()


def computed(bound: BoundQuery) -> xr.Dataset | pa.Table:
    """The result of a bound query in the form users have it."""
    with bound.lease.explaining():
        if isinstance(bound, CellsQuery):
            return bound.compute()
        assert isinstance(bound, GridQuery)
        return _dataset(bound, bound.compute())


def _dataset(bound: GridQuery, piece: HeldGrid) -> xr.Dataset:
    from windrow.api.labelled import of_blocks

    found = of_blocks(piece.schema, None if bound.scalar else piece.box, piece.blocks, piece.labels)
    for name, known in bound.metadata.items():
        found[name].attrs.update(known)
    return found


def _version(
    database: Database, scan: Scan, pinned: tuple[ArrayRecord, VersionRecord] | None, batch: Batch | None
) -> tuple[ArrayRecord, VersionRecord, WorkingArray | None]:
    """An array's version, and its state in a batch if that is what is read."""
    catalog = database.catalog
    if scan.version is None and scan.as_of is None:
        working = None if batch is None else batch._known(scan.array)
        if working is not None:
            return working.record, working.version(), working
        return *catalog.current(scan.array), None
    if pinned is not None:
        return *pinned, None  # whether it is still offered is looked at when it is held
    record = catalog.array(scan.array)
    moment = None if scan.as_of is None else scan.as_of.replace(tzinfo=UTC)
    return record, catalog.version(record, scan.version, moment), None


def _scan(
    database: Database,
    scan: Scan,
    batch: Batch | None,
    record: ArrayRecord,
    version: VersionRecord,
    working: WorkingArray | None,
) -> BoundNamed:
    asked = scan.version is not None or scan.as_of is not None
    shown = f"{record.name}@{version.number}" if asked else record.name
    if working is not None:
        found = as_shown(database.warehouse, record, working_scan(database.catalog, working), version.number)
        if isinstance(found, BoundRepeated) and batch is not None:
            return batch.opened()[1].now(record.name)  # which knows at which cells it is shown
        return found
    return as_shown(database.warehouse, record, stored_scan(database.warehouse, shown, record, version), version.number)


def totals(cells: Cells, aggregates: Mapping[str, Aggregate]) -> Query:
    """Aggregates over all cells."""
    plan, pinned = cells._steps()
    return Query(cells._database, GroupBy(plan, (), measures_of(aggregates)), pinned, cells._batch)


def windowed(array: Cells, extents: Mapping[str, Any], options: Mapping[str, Any]) -> Windowed:
    return Windowed(array, Window.of(array.schema, extents, **options))


def regridded(array: Cells, sizes: Mapping[str, Any], options: Mapping[str, Any]) -> Windowed:
    return Windowed(array, regrid(array.schema, sizes, **options))
