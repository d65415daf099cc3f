"""View: a stored query that follows the arrays it reads, and reads like an array."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from windrow.api.array import Array
from windrow.api.creation import draw_up
from windrow.api.reports import Report
from windrow.errors import SchemaError, UnknownNameError, nearest
from windrow.operations.dense.write import settle
from windrow.plan.nodes import Scan
from windrow.storage.failures import damaged_rows
from windrow.storage.view_rows import FRESH, HIDDEN, ViewChange
from windrow.views.apply import follow_query, rebuild
from windrow.views.definition import Definition, Settings, facts_of
from windrow.views.explain import ViewExplanation, check_strict, explain
from windrow.views.history import Entry, as_table, loads_table
from windrow.views.known import KnownView, known_views, stale_because, warn_of_stale
from windrow.views.making import view_schema
from windrow.views.placed.build import build_placed
from windrow.views.reduced.form import reduced_by, stored_form
from windrow.views.reduced.states import keep_states
from windrow.views.rules.choose import state_store

if TYPE_CHECKING:
    from windrow.api.batch import Batch
    from windrow.api.database import Database
    from windrow.api.query import Query


class View(Array):
    """A view of a database. It is read like an array, and changes with the arrays that it reads."""

    def _known_view(self) -> KnownView:
        record = self._record()
        for view in known_views(self._database.warehouse):
            if view.array.id == record.id:
                return view
        raise UnknownNameError("the view was dropped", got=repr(self._name))

    @property
    def definition(self) -> str:
        """Its query, as text."""
        return self._known_view().record.definition

    @property
    def settings(self) -> dict[str, Any]:
        return self._known_view().settings.as_json()

    @property
    def deferred(self) -> bool:
        return self._known_view().settings.deferred

    @property
    def status(self) -> str:
        """Whether it is "fresh", "stale" (behind, or reading one that is) or "failed" (a batch broke it)."""
        view = self._known_view()
        return "stale" if view.is_fresh and self.reason is not None else view.record.status

    @property
    def stale(self) -> bool:
        return self.reason is not None

    @property
    def reason(self) -> str | None:
        """Why it does not hold for the present state of its bases; None if it does."""
        views = {view.name: view for view in known_views(self._database.warehouse)}
        return stale_because(self._known_view(), views)

    @property
    def bases(self) -> dict[str, int]:
        """The arrays that it reads, each with the version that it holds for."""
        return dict(self._known_view().held)

    def history(self) -> pa.Table:
        """What was done to it, oldest first: when, by which batch, which way and why, and what it cost."""
        entries = self._database.catalog.view_history(self._record())
        with damaged_rows("the history of a view"):
            return as_table(entries)

    def loads(self) -> pa.Table:
        """What each node was planned to take at the last batch that several nodes did, and what it took."""
        entries = [one for one in self._database.catalog.view_history(self._record()) if one.get("placement")]
        return loads_table(entries[-1:])

    def plot_loads(self, path: str | Path) -> Path:
        """Draw what each node had to read at the last batch that several nodes did: planned, measured, by baseline."""
        from windrow.api.plotting import plot_loads

        return plot_loads(self.loads(), path, self._name)

    def refresh(self, full: bool = False) -> Report:
        """Bring it up to date, together with stale views that it reads; ``full`` computes all of it again."""
        from windrow.api.refreshing import refresh

        return refresh(self._database, self._name, full)

    def check(self) -> Any:
        """Compare it with its definition, evaluated from scratch."""
        from windrow.api.refreshing import check

        return check(self._database, self._name)

    def _attempt(self, read: Any) -> Any:
        warn_of_stale(self._database.warehouse, Scan(self._name))
        return super()._attempt(read)

    def drop(self) -> None:
        """Remove the view."""
        self._refuse_pinned()
        self._database.drop_view(self._name)


def open_view(database: Database, name: str) -> View:
    names = view_names(database)
    if name not in names:
        is_array = isinstance(name, str) and name in database
        what = "that is an array, not a view" if is_array else "no such view"
        raise UnknownNameError(what, got=repr(name), hint=nearest(str(name), names))
    return View(database, name)


def view_names(database: Database) -> list[str]:
    """All views that somebody asked for, by name."""
    return sorted(v.name for v in known_views(database.warehouse) if not v.name.startswith(HIDDEN))


def create_view(database: Database, name: str, query: Query | str, settings: Settings) -> View:
    """Make a view, filled with its query's result."""
    definition = _definition(query)
    _check_name(database, name, definition)
    database.catalog.make_view_tables()
    with database.batch() as batch:
        fill_new(batch, name, definition, settings)
    return View(database, name)


def explain_view(database: Database, query: Query | str, settings: Settings) -> ViewExplanation:
    """How a view of a query would be kept up to date."""
    from windrow.api.query import Query

    definition = _definition(query)
    bound = Query(database, definition.plan, views="off").bind().bound
    if settings.maintain == "strict":
        check_strict(bound)
    view_schema(bound, settings.chunks)
    return explain(str(definition.plan), bound, settings, definition.names)


def _definition(query: Query | str) -> Definition:
    from windrow.api.query import Query

    if isinstance(query, Query):
        # As text and back: what is stored must mean the same when it is read again.
        return Definition.of(str(query.plan))
    if not isinstance(query, str):
        raise SchemaError("a view is made of a query", got=repr(query), hint='As in create_view("V", A.window(i=3)…)')
    return Definition.of(query)


def _check_name(database: Database, name: str, definition: Definition) -> None:
    if name in (*definition.names, *definition.pinned_names):
        raise SchemaError("a view cannot read itself", got=repr(name), hint="Give it another name")


def fill_new(batch: Batch, name: str, definition: Definition, settings: Settings) -> None:
    from windrow.api.query import Query

    transaction, _ = batch.opened()
    transaction.lock_all(dict.fromkeys([*definition.names, *definition.pinned_names]))
    query = Query(batch.database, definition.plan, views="off")
    found = query.bind(batch)
    bound = found.bound
    reduced = reduced_by(bound, settings)
    if settings.maintain == "strict":
        check_strict(bound)
    schema = view_schema(bound, settings.chunks)
    labels = {key: known for key, known in found.labels.items() if not schema.dimension(key).growing}
    lies_on = None if bound.gridding is None else bound.gridding.along(bound.schema.dimension_names)
    plan = draw_up(name, schema, sparse=schema.sparse, labels=labels, metadata=found.metadata)
    batch._make(replace(plan, gridding=lies_on))
    working = transaction.working(name)
    follow_query(working, bound)
    engine, stores = batch.database.engine, stored_form(bound, reduced)
    by_nodes = build_placed(engine, transaction, working, stores, settings, mends=True)
    made = rebuild(engine, working, stores) if by_nodes is None else by_nodes.applied
    kept = None if by_nodes is None else by_nodes.state
    if by_nodes is None and settings.maintain != "full":
        kept = keep_states(engine, state_store(engine, transaction, name, stores), stores)
    settle(working)
    entry = Entry.now("created", "its query was computed", cells=made.cells)
    if by_nodes is not None:
        entry = entry.placed(by_nodes.placement)
    transaction.view_changes[name] = ViewChange(
        name,
        dict.fromkeys(definition.names),
        FRESH,
        definition=str(definition.plan),
        settings=settings.as_json(),
        facts=facts_of(definition, bound.scalar, reduced),
        history=(entry.as_json(),),
        state=kept,
    )
