"""Statements carried out: ``Session.run`` does one and reports, keeping the batch that ``begin`` opened."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC
from typing import TYPE_CHECKING, Any

from windrow.api.batch import Batch
from windrow.api.describe import counted
from windrow.api.plotting import Plotting
from windrow.api.query import Query
from windrow.api.reports import Report
from windrow.api.saving import create_in, insert_in, save, store_in
from windrow.api.session import view_statements as views
from windrow.api.session.cell_input import cell_table, dense_values
from windrow.api.session.listing import listed
from windrow.api.session.options import checked, chosen
from windrow.api.transfer import import_in, opened_file
from windrow.errors import DataError, SchemaError, StoreError
from windrow.plan import statements as asked

if TYPE_CHECKING:
    from pathlib import Path

    from windrow.api.array import Array
    from windrow.api.database import Database
    from windrow.plan.nodes import Plan

_DUPLICATES = ("on_duplicate",)
_READING = ("format", "variables", "along", "delimiter")
_MAKING = ("grow", "dimensions", "chunks")
_IMPORT = (*_READING, *_MAKING, "batch")
_PLOT = ("attribute",)
_FILE = ("on_duplicate", "delimiter")


Look = Callable[["Database", Callable[[], Any]], Any]
"""Does work that changes nothing."""


@dataclass(frozen=True)
class Done:
    """What a statement did that wrote no cells, and the versions that it made."""

    text: str
    versions: Mapping[str, int] = field(default_factory=dict)

    @property
    def version(self) -> int | None:
        """The version that it made, None if there is none or more than one."""
        return next(iter(self.versions.values())) if len(self.versions) == 1 else None

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class OptionSet(Done):
    """What ``set`` did."""

    name: str = ""
    value: str = ""


def _do(_database: Database, work: Callable[[], Any]) -> Any:
    return work()


def _draw(plotting: Plotting) -> Path:
    if plotting.path is None:
        raise DataError("a plot needs a file here", hint="As in plot A to 'a.png'")
    return plotting.query.plot(plotting.path, plotting.attribute, plotting.kind)


def _accept(_name: str, _value: str) -> None:
    """Every setting will do."""


@dataclass(frozen=True)
class Hooks:
    """What a console does in its own way while a session's statements run."""

    ask_rows: Callable[[Array], list[Any]] | None = None  # for a ``load`` that no rows follow
    look: Look = _do
    plot: Callable[[Plotting], Any] = _draw
    check_option: Callable[[str, str], None] = _accept  # raises what is wrong with a setting


class Session:
    """Statements one after another on a warehouse: settings, and at most one open batch.

    In the place of a database there may be a function that opens it, once a statement needs it; the function is told
    whether the statement may make a new warehouse.
    """

    def __init__(
        self,
        database: Database | Callable[[bool], Database],
        hooks: Hooks | None = None,
        options: Mapping[str, str] | None = None,
    ) -> None:
        self.hooks = hooks or Hooks()
        self.options: dict[str, str] = dict(options or {})
        self.batch: Batch | None = None
        self._open = database if callable(database) else None
        self._database = None if callable(database) else database

    @property
    def database(self) -> Database:
        """The warehouse, opened if it was not."""
        return self._opened(create=False)

    def run(self, statement: asked.Statement | str) -> Any:
        """A lazy query for a query; for others what they have to show, or a report of what they did."""
        if isinstance(statement, str):
            from windrow.language.parser import parse

            statement = parse(statement)
        if isinstance(statement, (asked.CreateArray, asked.ImportFiles)):
            self._opened(create=True)
        return _RUN[type(statement)](self, statement)

    def close(self) -> bool:
        """Let go of the warehouse; returns whether a batch was open, of which nothing is kept."""
        unfinished, database = self.batch is not None, self._database
        try:
            if unfinished:
                self.run(asked.Rollback())
        finally:
            self._database = None
            if database is not None:
                database.close()
        return unfinished

    def _opened(self, create: bool) -> Database:
        if self._database is None:
            if self._open is None:
                raise StoreError("the session was closed", hint="Connect again")
            self._database = self._open(create)
            self._use_options()
        return self._database

    def _use_options(self) -> None:
        """Settings that concern the connection."""
        if self._database is not None and "engine" in self.options:
            self._database.engine.name = self.options["engine"]  # type: ignore[assignment]
        if self._database is not None and "views" in self.options:
            self._database.view_use = self.options["views"]
        if self._database is not None and "strategy" in self.options:
            self._database.plan_maintenance(strategy=self.options["strategy"])

    # Queries

    def _query(self, statement: asked.Query) -> Any:
        query = self._bound(statement.plan)
        if statement.into is None:
            return query
        return self._changed(lambda batch: store_in(batch, query, str(statement.into)))

    def _bound(self, plan: Plan) -> Query:
        """A query, which sees what the open batch, if there is one, has changed so far."""
        return Query(self.database, plan, within=self.batch)

    def _sql(self, statement: asked.Sql) -> Any:
        from windrow.api.sql_queries import run_sql

        if self.batch is not None:
            raise DataError("SQL does not see the open batch", hint="Use commit or rollback first")
        found = self.hooks.look(self.database, lambda: run_sql(self.database, statement.text))
        return found or Done("done")

    def _explain(self, statement: asked.Explain) -> Any:
        query = self._bound(statement.plan)
        return self.hooks.look(self.database, lambda: self._explained(query, statement))

    def _explained(self, query: Query, statement: asked.Explain) -> Any:
        bound = query.bind()
        return bound.explain_run() if statement.analyze else bound.explain()

    def _save(self, statement: asked.Save) -> Done:
        options = chosen(statement.settings, ("format", "overwrite"))
        cells = save(self._bound(statement.plan).bind(), statement.path, **options)
        return Done(f"{counted(cells, 'cell')} saved to {statement.path}")

    def _plot(self, statement: asked.Plot) -> Any:
        attribute = chosen(statement.settings, _PLOT).get("attribute")
        query = self._bound(statement.plan)
        return self.hooks.plot(Plotting(query, statement.path, attribute, statement.kind))

    # Arrays

    def _create(self, statement: asked.CreateArray) -> Done:
        self._changed(lambda batch: batch.create(statement.array, statement.schema))
        if self.batch is not None:
            return Done(f"created {statement.array}, for the batch to publish")
        return Done(f"created {statement.array}@0", {statement.array: 0})

    def _create_from(self, statement: asked.CreateFrom) -> Report:
        query = self._bound(statement.plan)
        return self._changed(lambda batch: self._fill_new(batch, query, statement.array))

    def _fill_new(self, batch: Batch, query: Query, name: str) -> None:
        if batch._claim(name):
            create_in(batch, query, name)
        elif not batch.applied_before:
            hint = "Keep the result in it with into, or choose another name"
            raise SchemaError("an array of that name exists", got=repr(name), hint=hint)

    def _drop(self, statement: asked.Drop) -> Done:
        if statement.if_exists and not self._has(statement.name):
            return Done(f"there is no {statement.name}")
        views.drop(self, statement)
        return Done(f"dropped {statement.name}")

    def _has(self, name: str) -> bool:
        return name in self.database or (self.batch is not None and self.batch._known(name) is not None)

    def _array(self, name: str) -> Array:
        """An array, as the open batch has left it."""
        return self.database.array(name) if self.batch is None else self.batch.array(name)

    def _describe(self, statement: asked.Describe) -> Any:
        view = views.describe_if_view(self, statement)
        if view is not None:
            return view
        source = statement.source
        array = self._array(source.array)
        if source.version is None and source.as_of is None:
            return array.describe()
        moment = None if source.as_of is None else source.as_of.replace(tzinfo=UTC)
        return array.at(version=source.version, time=moment).describe()

    def _list(self, statement: asked.List) -> Any:
        return listed(self.database, statement.kind, statement.array)

    # Cells

    def _load(self, statement: asked.Load) -> Report:
        array = self._array(statement.array)
        rows: Any = statement.rows
        if not rows and self.hooks.ask_rows is not None:
            rows = self.hooks.ask_rows(array)
        values = dense_values(array, rows)
        return self._changed(lambda batch: batch.write(statement.array, values))

    def _load_file(self, statement: asked.LoadFile) -> Report:
        self._array(statement.array)
        return self._imported(statement.path, statement.array, statement.settings)

    def _import(self, statement: asked.ImportFiles) -> Report:
        paths = statement.paths[0] if len(statement.paths) == 1 else list(statement.paths)
        return self._imported(paths, statement.array, statement.settings)

    def _imported(self, paths: Any, array: str, settings: asked.Settings) -> Report:
        options = chosen(settings, _IMPORT)
        if self.batch is None:
            report: Report = self.database.import_file(paths, array, **options)
            return report
        if "batch" in options:
            raise DataError("a batch is open already", got=f"batch = {options['batch']!r}", hint="Leave it out here")
        opened = opened_file(paths, **{name: options[name] for name in _READING if name in options})
        making = {name: options[name] for name in _MAKING if name in options}
        return self._changed(lambda batch: import_in(batch, opened, array, **making))

    def _insert(self, statement: asked.InsertCells) -> Report:
        options = chosen(statement.settings, _DUPLICATES)
        table = cell_table(self._array(statement.array), statement.cells)
        return self._changed(lambda batch: batch.insert(statement.array, table, **options))

    def _insert_file(self, statement: asked.InsertFile) -> Report:
        from windrow.formats.registry import TableOptions
        from windrow.operations.arguments import open_table

        self._array(statement.array)
        options = chosen(statement.settings, _FILE)
        table = open_table(statement.path, TableOptions(delimiter=options.pop("delimiter", None)))
        return self._changed(lambda batch: batch.insert(statement.array, table, **options))

    def _insert_query(self, statement: asked.InsertQuery) -> Report:
        self._array(statement.array)
        query = self._bound(statement.plan)
        return self._changed(lambda batch: insert_in(batch, query, statement.array))

    def _delete(self, statement: asked.Delete) -> Report:
        return self._changed(lambda batch: batch.delete(statement.array, statement.condition))

    def _update(self, statement: asked.Update) -> Report:
        assignments = dict(statement.assignments)
        return self._changed(lambda batch: batch.update(statement.array, assignments, statement.condition))

    def _changed(self, change: Callable[[Batch], None]) -> Report:
        """What a change did: alone, or as one more step of the open batch, which has no version yet."""
        if self.batch is None:
            with self.database.batch() as batch:
                change(batch)
            assert batch.report is not None
            return batch.report
        before = len(self.batch._changes)
        change(self.batch)
        return Report(self.batch.id, not self.batch.applied_before, {}, tuple(self.batch._changes[before:]))

    # Batches and settings

    def _begin(self, statement: asked.Begin) -> Report | Done:
        if self.batch is not None:
            raise DataError("a batch is open already", got=self.batch.id, hint="Use commit or rollback first")
        batch = self.database.batch(statement.batch)
        batch.__enter__()
        self.batch = batch
        return batch.report or Done("a batch is open" if batch.id is None else f"batch {batch.id!r} is open")

    def _commit(self, _statement: asked.Commit) -> Report:
        batch = self._closed()
        batch.__exit__(None, None, None)
        assert batch.report is not None
        return batch.report

    def _rollback(self, _statement: asked.Rollback) -> Done:
        batch = self._closed()
        batch.__exit__(DataError, None, None)
        return Done("the batch was given up")

    def _closed(self) -> Batch:
        if self.batch is None:
            raise DataError("no batch is open", hint="As in begin 'night42'; …; commit")
        batch, self.batch = self.batch, None
        return batch

    def _set(self, statement: asked.SetOption) -> OptionSet:
        name, value = checked(statement.option, statement.value)
        self.hooks.check_option(name, value)
        self.options[name] = value
        self._use_options()
        return OptionSet(f"{name} is {value}", name=name, value=value)

    def _create_view(self, statement: asked.CreateView) -> Done:
        view = views.create_view(self, statement)
        return Done(f"created {view.name}@{view.version}", {view.name: view.version})


_RUN: dict[type[asked.Statement], Callable[[Session, Any], Any]] = {
    asked.Query: Session._query,
    asked.Sql: Session._sql,
    asked.CreateArray: Session._create,
    asked.CreateFrom: Session._create_from,
    asked.CreateView: Session._create_view,
    asked.Load: Session._load,
    asked.LoadFile: Session._load_file,
    asked.ImportFiles: Session._import,
    asked.InsertCells: Session._insert,
    asked.InsertFile: Session._insert_file,
    asked.InsertQuery: Session._insert_query,
    asked.Delete: Session._delete,
    asked.Update: Session._update,
    asked.Describe: Session._describe,
    asked.Explain: Session._explain,
    asked.List: Session._list,
    asked.ExplainView: views.explain_view,
    asked.ShowHistory: views.show_history,
    asked.Refresh: views.refresh,
    asked.CheckView: views.check_view,
    asked.Drop: Session._drop,
    asked.Save: Session._save,
    asked.Plot: Session._plot,
    asked.Begin: Session._begin,
    asked.Commit: Session._commit,
    asked.Rollback: Session._rollback,
    asked.SetOption: Session._set,
}


def session_of(database: Database) -> Session:
    """The session in which a connection's own statements run; it lives as long as the connection."""
    found: Session = vars(database).setdefault("_session", Session(database))
    return found


def run(database: Database, statement: asked.Statement) -> Any:
    """Carry out one statement in the session of a connection."""
    return session_of(database).run(statement)
