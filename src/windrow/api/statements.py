"""Statements carried out: ``Session.run`` does one and reports, keeping the batch that ``begin`` opened."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from windrow.api.batch import Batch, Report
from windrow.api.cell_input import cell_table, dense_values
from windrow.api.describe import counted
from windrow.api.listing import listed
from windrow.api.options import checked
from windrow.api.query import Query, bound_scan
from windrow.api.saving import insert_in, save, store_in
from windrow.api.transfer import fill, opened_file
from windrow.errors import DataError, SchemaError, nearest
from windrow.expressions.nodes import Node, Value
from windrow.plan import statements as asked
from windrow.plan.binding import Scope

if TYPE_CHECKING:
    from windrow.api.database import Database

_DUPLICATES = ("on_duplicate",)
_READING = ("format", "variables", "along", "delimiter")
_IMPORT = (*_READING, "grow", "dimensions", "chunks", "batch")
_PLOT = ("attribute",)
_FILE = ("on_duplicate", "delimiter")


@dataclass(frozen=True)
class Done:
    """What a statement did that wrote no cells, and the versions that it made."""

    text: str
    versions: Mapping[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.text


class Session:
    """Statements one after another on a database: settings, and at most one open batch."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.batch: Batch | None = None
        self.options: dict[str, str] = {}

    def run(self, statement: asked.Statement) -> Any:
        """A lazy query for a query; for others what they have to show, or a report of what they did."""
        return _RUN[type(statement)](self, statement)

    # Queries

    def _query(self, statement: asked.Query) -> Any:
        query = Query(self.database, statement.plan)
        if statement.into is None:
            return query
        if self.batch is None:
            return query.store(statement.into)
        self._refuse_new(statement.into)
        return self._changed(lambda batch: store_in(batch, query, str(statement.into)))

    def _explain(self, statement: asked.Explain) -> Any:
        query = Query(self.database, statement.plan)
        told = query.explain()
        if not statement.analyze:
            return told
        from windrow.operations.explain_query import explain_query

        started = time.perf_counter()
        found = query.compute()
        took = time.perf_counter() - started
        cells = (
            found.num_rows if hasattr(found, "num_rows") else max((v.size for v in found.data_vars.values()), default=0)
        )
        measured = explain_query(self.database.engine, query._optimized(), str(statement.plan))
        return measured.measured(took, cells)

    def _save(self, statement: asked.Save) -> Done:
        options = _chosen(statement.settings, ("format", "overwrite"))
        cells = save(Query(self.database, statement.plan), statement.path, **options)
        return Done(f"{counted(cells, 'cell')} saved to {statement.path}")

    def _plot(self, statement: asked.Plot) -> Any:
        options = _chosen(statement.settings, _PLOT)
        if statement.path is None:
            raise DataError("a plot needs a file here", hint="As in plot A to 'a.png'")
        return Query(self.database, statement.plan).plot(statement.path, kind=statement.kind, **options)

    # Arrays

    def _create(self, statement: asked.CreateArray) -> Done:
        self._refuse_inside_batch("an array is made")
        array = self.database.create(statement.array, statement.schema)
        return Done(f"created {array.name}@{array.version}", {array.name: array.version})

    def _create_from(self, statement: asked.CreateFrom) -> Report:
        self._refuse_inside_batch("an array is made")
        if statement.array in self.database:
            hint = "Keep the result in it with into, or choose another name"
            raise SchemaError("an array of that name exists", got=repr(statement.array), hint=hint)
        return Query(self.database, statement.plan).store(statement.array)

    def _drop(self, statement: asked.Drop) -> Done:
        self._refuse_inside_batch("an array is dropped")
        if statement.kind == "view":
            raise _no_views()
        if statement.if_exists and statement.name not in self.database:
            return Done(f"there is no {statement.name}")
        self.database.drop(statement.name)
        return Done(f"dropped {statement.name}")

    def _describe(self, statement: asked.Describe) -> Any:
        from windrow.api.query import _opened

        return _opened(self.database, statement.source).describe()

    def _list(self, statement: asked.List) -> Any:
        return listed(self.database, statement.kind, statement.array)

    def _history(self, statement: asked.ShowHistory) -> Any:
        return listed(self.database, "versions", statement.name)

    # Cells

    def _load(self, statement: asked.Load) -> Report:
        array = self.database.array(statement.array)
        values = dense_values(array, statement.rows)
        return self._changed(lambda batch: batch.write(statement.array, values))

    def _load_file(self, statement: asked.LoadFile) -> Report:
        self.database.array(statement.array)
        return self._imported(statement.path, statement.array, statement.settings)

    def _import(self, statement: asked.ImportFiles) -> Report:
        paths = statement.paths[0] if len(statement.paths) == 1 else list(statement.paths)
        return self._imported(paths, statement.array, statement.settings)

    def _imported(self, paths: Any, array: str, settings: asked.Settings) -> Report:
        options = _chosen(settings, _IMPORT)
        if self.batch is None:
            report: Report = self.database.import_file(paths, array, **options)
            return report
        self._refuse_new(array)
        if "batch" in options:
            raise DataError("a batch is open already", got=f"batch = {options['batch']!r}", hint="Leave it out here")
        opened = opened_file(paths, **{name: options[name] for name in _READING if name in options})
        return self._changed(lambda batch: fill(batch, opened, array))

    def _insert(self, statement: asked.InsertCells) -> Report:
        options = _chosen(statement.settings, _DUPLICATES)
        table = cell_table(self.database.array(statement.array), statement.cells)
        return self._changed(lambda batch: batch.insert(statement.array, table, **options))

    def _insert_file(self, statement: asked.InsertFile) -> Report:
        from windrow.formats.registry import TableOptions
        from windrow.operations.arguments import open_table

        self.database.array(statement.array)
        options = _chosen(statement.settings, _FILE)
        table = open_table(statement.path, TableOptions(delimiter=options.pop("delimiter", None)))
        return self._changed(lambda batch: batch.insert(statement.array, table, **options))

    def _insert_query(self, statement: asked.InsertQuery) -> Report:
        self.database.array(statement.array)
        query = Query(self.database, statement.plan)
        return self._changed(lambda batch: insert_in(batch, query, statement.array))

    def _delete(self, statement: asked.Delete) -> Report:
        condition = self._in_cells(statement.array, statement.condition)
        return self._changed(lambda batch: batch.delete(statement.array, condition))

    def _update(self, statement: asked.Update) -> Report:
        assignments = {name: self._in_cells(statement.array, node) for name, node in statement.assignments}
        condition = None if statement.condition is None else self._in_cells(statement.array, statement.condition)
        return self._changed(lambda batch: batch.update(statement.array, assignments, condition))

    def _in_cells(self, name: str, node: Node) -> Node:
        """An expression over an array's cells, with labels as cell numbers."""
        return Scope(bound_scan(self.database.array(name)), (name,)).plain(node)

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

    def _refuse_inside_batch(self, what: str) -> None:
        if self.batch is not None:
            raise DataError(f"{what} outside a batch", hint="Use commit or rollback first")

    def _refuse_new(self, name: str) -> None:
        if name not in self.database:
            raise DataError("an array is made outside a batch", got=repr(name), hint="Create it before begin")

    def _set(self, statement: asked.SetOption) -> Done:
        name, value = checked(statement.option, statement.value)
        self.options[name] = value
        if name == "engine":
            self.database.engine.name = value  # type: ignore[assignment]
        return Done(f"{name} is {value}")

    # Views

    def _create_view(self, statement: asked.CreateView) -> Any:
        Query(self.database, statement.plan)  # an unknown name is said before anything else
        raise _no_views()

    def _refresh(self, _statement: asked.Refresh) -> Any:
        raise _no_views()


def _no_views() -> DataError:
    return DataError("views do not run yet", hint="Keep a result with into, or create array … as …")


def _chosen(settings: asked.Settings, known: tuple[str, ...]) -> dict[str, Any]:
    """What follows ``with`` as options of a function."""
    chosen: dict[str, Any] = {}
    for name, value in settings:
        if name not in known:
            raise DataError("no such option here", got=repr(name), hint=nearest(name, known))
        chosen[name] = _READ.get(name, _as_it_is)(value)
    return chosen


def _as_it_is(value: Value) -> Any:
    return value


def _listed(value: Value) -> list[str]:
    return [part.strip() for part in str(value).split(",")]


def _sizes(value: Value) -> dict[str, int]:
    """``time=366, lat=145`` as sizes by name."""
    sizes = {}
    for item in _listed(value):
        name, _, size = (part.strip() for part in item.partition("="))
        if not name or not size.isascii() or not size.isdigit() or name in sizes:
            raise DataError("chunk sizes are given once for each dimension", got=item, hint="As in 'time=366, lat=145'")
        sizes[name] = int(size)
    return sizes


_READ: dict[str, Callable[[Value], Any]] = {"variables": _listed, "dimensions": _listed, "chunks": _sizes}
"""The options that are not simply the value given."""


_RUN: dict[type[asked.Statement], Callable[[Session, Any], Any]] = {
    asked.Query: Session._query,
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
    asked.ShowHistory: Session._history,
    asked.Refresh: Session._refresh,
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
