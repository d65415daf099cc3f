"""Batches: changes to one or several arrays that become visible together."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from windrow.api.batch_arguments import (
    Grid,
    bind_where,
    compact_array,
    find_gridding,
    parse_value,
    refuse_sparse,
    scope_of,
)
from windrow.api.creation import Blueprint, draw_up
from windrow.api.reports import Change, Earlier, Report
from windrow.errors import ConflictError, DataError, SchemaError
from windrow.model.gridding import Gridding
from windrow.model.labels import Labels
from windrow.model.source import ComputedCells
from windrow.operations.arguments import At, Region, gridded, is_spark_frame, region_of, rows_of
from windrow.operations.dense import write as writing
from windrow.operations.tables import as_table
from windrow.storage.failures import damaged_rows
from windrow.storage.records import ArrayRecord
from windrow.storage.transaction import Transaction
from windrow.storage.view_rows import HIDDEN, STATE, ViewRecord
from windrow.storage.working import WorkingArray

if TYPE_CHECKING:
    from windrow.api.array import Array
    from windrow.api.database import Database
    from windrow.expressions.nodes import Node
    from windrow.model.schema import Schema
    from windrow.operations.sparse.tasks import Duplicates
    from windrow.views.known import KnownView
    from windrow.views.maintain import Maintenance

Opened = TypeVar("Opened")


@dataclass
class Batch:
    """Collects changes; leaving its ``with`` block publishes all of them, an exception none.

    Inside a batch whose id was applied before to the same arrays, every change is passed over. ``array`` and ``query``
    see what the batch has changed so far; nobody else does.
    """

    database: Database
    id: str | None = None
    report: Report | None = None
    _transaction: Transaction | None = None
    _changes: list[Change] = field(default_factory=list)
    _touched: set[str] = field(default_factory=set)
    _earlier: Earlier = field(default_factory=lambda: Earlier())
    _started: float = 0.0
    _maintenance: Maintenance | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        hint = "Publish the batch first, then send arrays and queries"
        raise DataError("a batch stays in its process", got=repr(self.id), hint=hint)

    def __enter__(self) -> Batch:
        self._started = time.perf_counter()
        if self.id is not None and (not isinstance(self.id, str) or not self.id or len(self.id) > 255):
            raise DataError("a batch id is a text of 1 to 255 characters", got=repr(self.id), hint="As in 'night42'")
        if not self._find_earlier():
            self._transaction = Transaction(self.database.warehouse, self.database.lock_timeout, self.id)
            self.database.engine.cancellation.begin()
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if self._transaction is None:
            if kind is None and self._touched:
                self._check_targets(self._touched, whole=True)
            return
        try:
            if kind is None:
                self._maintain()
                unchanged, followed = self._transaction.unchanged, self._transaction.maintained
                moved = {name for name in self._transaction.changed if name in followed}
                published = self._transaction.publish()
                versions = {name: version.number for name, version in published.items() if name not in followed}
                views = {name: published[name].number for name in sorted(moved) if not name.startswith(HIDDEN)}
                took = time.perf_counter() - self._started
                self.report = Report(self.id, True, versions, tuple(self._changes), took, unchanged, views)
        finally:
            self._end()

    def _end(self) -> None:
        transaction, self._transaction = self._transaction, None
        self.database.engine.cancellation.end()
        if transaction is not None:
            transaction.close()

    def opened(self) -> tuple[Transaction, Maintenance]:
        """What changes are made through, and what keeps views up to date with them."""
        from windrow.views.maintain import Maintenance

        if self._transaction is None:
            raise DataError("the batch is not open", hint="Use it as: with db.batch() as b: …")
        if self._maintenance is None:
            self._maintenance = Maintenance(self.database.engine, self._transaction)
        return self._transaction, self._maintenance

    @property
    def applied_before(self) -> bool:
        return self.report is not None and not self.report.applied

    def _find_earlier(self) -> bool:
        """Whether a batch of this id was applied, by whomever."""
        earlier = None if self.id is None else self.database.catalog.batch_report(self.id)
        if earlier is not None:
            with damaged_rows(f"what the batch {self.id!r} did"):
                self._earlier = Earlier.of(earlier)
            self.report = Report(self.id, False, self._earlier.versions)
        return earlier is not None

    def _check_targets(self, names: set[str], whole: bool = False) -> None:
        """Refuse an id that was used for other arrays: what it is used for now has not been done."""
        known, needed = self._earlier.known, self._earlier.needed
        if not names <= known or (whole and not names >= needed):
            raise ConflictError(
                f"a batch {self.id!r} was applied to {', '.join(sorted(needed or known)) or 'no array'}",
                got=", ".join(sorted(names)),
                hint="An id stands for one batch: choose another, or give it the same arrays. Nothing was changed",
            )
        now = {record.name: record.directory for record in self.database.catalog.array_records()}
        for name in sorted(names & now.keys() & self._earlier.folders.keys()):
            if now[name] != self._earlier.folders[name]:
                raise ConflictError(
                    f"a batch {self.id!r} was applied to another {name}, which was dropped since",
                    hint="What it did is not in this one: choose another id. Nothing was changed",
                )

    def _maintain(self) -> None:
        """Bring views up to date with what was changed so far."""
        if self._transaction is not None and self._transaction.changed and self._transaction.views():
            self.opened()[1].run()

    def _working(self, name: str) -> WorkingArray | None:
        """An array to be changed by the batch itself, which a view never is."""
        refuse_hidden(name)
        found = self._touch(name, lambda transaction: transaction.working(name))
        if found is not None and self._transaction is not None and _is_view(found.record, self._transaction.views()):
            raise SchemaError(
                f"{name} is a view: it changes with the arrays that it reads", hint="Write to those, or drop the view"
            )
        return found

    def _touch(self, name: str, open_: Callable[[Transaction], Opened]) -> Opened | None:
        """Do something to an array by name, unless the batch was applied before, as it may turn out only now."""
        self._touched.add(name)
        if self.applied_before:
            self._check_targets({name})
            return None
        if self._transaction is None:
            raise DataError("the batch is not open", hint="Use it as: with db.batch() as b: …")
        found = open_(self._transaction)
        # Another process may have applied the batch while this one waited for the lock.
        if self.id is not None and self._find_earlier():
            self._end()
            self._check_targets(self._touched)
            return None
        return found

    def _known(self, name: str) -> WorkingArray | None:
        """An array as it stands in the batch, if the batch is open and has touched it."""
        if self._transaction is None:
            return None
        if self._transaction.changed and name in {view.name for view in self._views()}:
            self._maintain()
        return self._transaction.known(name)

    def _views(self) -> list[KnownView]:
        return self.opened()[1].views if self.database.catalog.views() else []

    def _done(
        self, working: WorkingArray, operation: str, cells: int = 0, replaced: int = 0, duplicates: int = 0
    ) -> None:
        """Note a change. An insert of no cells leaves the array, and so its version, as it was."""
        self._changes.append(Change(working.record.name, operation, cells, replaced, duplicates))
        if operation != "insert" or cells:
            working.note(operation)

    def array(self, name: str) -> Array:
        """An array as the batch has left it so far."""
        from windrow.api.array import Array
        from windrow.api.views import View

        known = self._known(name)
        record = self.database.catalog.array(name) if known is None else known.record
        kind = View if _is_view(record, self.database.catalog.views()) else Array
        return kind(self.database, name, batch=self)

    def query(self, text: str) -> Any:
        """A select or aggr, as a lazy query that sees what the batch has changed so far."""
        from windrow.api.query import Query
        from windrow.language.parser import parse
        from windrow.plan.statements import Query as Asked

        statement = parse(text)
        if not isinstance(statement, Asked) or statement.into is not None:
            hint = "Use the batch's own methods, or begin … commit in the console's language"
            raise DataError("a batch answers queries only", got=text, hint=hint)
        return Query(self.database, statement.plan, within=self)

    def _claim(self, name: str) -> bool:
        """Whether an array of that name is to be made by this batch: there is none, and nobody else makes one."""
        return bool(self._touch(name, lambda transaction: transaction.claim(name)))

    def create(
        self,
        name: str,
        schema: str | Schema,
        sparse: bool | None = None,
        *,
        labels: Mapping[str, Any] | None = None,
        grid: Mapping[str, object] | Gridding | None = None,
        chunks: Mapping[str, int] | Literal["patched"] | None = None,
        metadata: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        """Make an empty array; see Database.create."""
        self._make(draw_up(name, schema, sparse, labels, grid, chunks, metadata))

    def _make(self, plan: Blueprint) -> None:
        gridding = None if plan.gridding is None else plan.gridding.to_json()
        directory = self.database.warehouse.new_directory(plan.name)
        record = ArrayRecord(0, plan.name, directory, plan.schema.sparse, gridding, plan.metadata)
        self._touch(plan.name, lambda transaction: transaction.create(record, plan.schema, plan.labels))

    def drop(self, name: str, cascade: bool = False) -> None:
        """Remove an array with all its versions; ``cascade`` also removes the views that read it."""
        refuse_hidden(name)
        self._touch(name, lambda transaction: self._drop(transaction, name, cascade))

    def _drop(self, transaction: Transaction, name: str, cascade: bool) -> ArrayRecord:
        readers = self._readers(transaction, name)
        if readers and not cascade:
            raise SchemaError(
                f"{name} is read by {', '.join(readers)}", hint=f"Drop the views first, or: drop {name} cascade"
            )
        for reader in readers:
            if not transaction.is_dropped(reader):
                self._touched.add(reader)
                self._drop(transaction, reader, cascade)
        state = f"{STATE}{name}"
        if transaction.is_made(state) or state in transaction.catalog.array_names():
            transaction.drop(state)
        return transaction.drop(name)

    def _readers(self, transaction: Transaction, name: str) -> list[str]:
        from windrow.views.known import known_views, readers_of

        views = known_views(transaction.warehouse)
        return [view.name for view in readers_of(name, views) if not transaction.is_dropped(view.name)]

    def write(self, array: str, values: Any, at: At = None, labels: Mapping[str, Any] | None = None) -> None:
        """Write a box of values into a dense array; see Array.write."""
        working = self._working(array)
        if working is not None:
            refuse_sparse(working)
            region = region_of(values, working, at, labels or {})
            self._written(working, "write", region)

    def append(self, array: str, values: Any, labels: Mapping[str, Any] | Sequence[Any] | None = None) -> None:
        """Write after the present end of the one growing dimension; see Array.append."""
        working = self._working(array)
        if working is None:
            return
        refuse_sparse(working)
        if len(working.schema.growing) != 1:
            raise DataError(
                f"array {array} needs exactly one growing dimension to append along",
                got=f"{len(working.schema.growing)}",
                hint="Use write() with at=",
            )
        axis = working.schema.growing[0]
        at = [*working.schema.lo]
        at[axis] = working.hi[axis] + 1
        if labels is not None and not isinstance(labels, Mapping):
            labels = {working.schema.dimension_names[axis]: labels}
        region = region_of(values, working, at, labels or {})
        self._written(working, "append", region)

    def _written(self, working: WorkingArray, operation: str, region: Region) -> None:
        done = writing.write(self.database.engine, working, region.source, region.at, region.labels)
        self._changes.append(Change(working.record.name, operation, done.cells, done.replaced, moved=done.moved))
        working.note(operation)

    def insert(self, array: str, cells: Any, on_duplicate: Duplicates | None = None, grid: Grid = None) -> None:
        """Insert cells into a sparse array, or set single cells of a dense one; see Array.insert."""
        from windrow.operations.sparse.insert import insert

        working = self._working(array)
        if working is None:
            return
        engine = self.database.engine
        if not working.record.sparse:
            self._set_cells(working, cells, on_duplicate)
            return
        if isinstance(cells, ComputedCells):
            from windrow.operations.query.sparse_run import insert_computed

            found = insert_computed(engine, working, cells)
            self._done(working, "insert", found.cells, found.replaced, found.duplicates)
            return
        rows = rows_of(cells, engine, ordered=on_duplicate == "last")
        gridding = find_gridding(working, grid)
        if gridding is not None:
            rows = gridded(rows, gridding, working.schema, engine)
        numbered = gridding is not None and working.schema.numbering_name is not None
        if on_duplicate == "keep" and working.schema.numbering_name is None:
            self._add_numbering(working)
        counts = insert(engine, working, rows, on_duplicate or ("keep" if numbered else "error"))
        self._done(working, "insert", counts.cells, counts.replaced, counts.duplicates)

    def _add_numbering(self, working: WorkingArray) -> None:
        """The first insert that keeps duplicates gives the array the dimension that tells them apart."""
        from windrow.operations.sparse.numbering import add_numbering

        name = working.record.name
        readers = [view.name for view in self.opened()[1].views if name in view.held]
        if readers:
            hint = "Drop the views first, or make an array with a numbering dimension and views on it"
            what = f"{name} would get a dimension that numbers duplicates, and views read it as it is"
            raise SchemaError(what, got=", ".join(readers), hint=hint)
        add_numbering(self.database.engine, working)

    def _set_cells(self, working: WorkingArray, cells: Any, on_duplicate: str | None) -> None:
        from windrow.operations.dense.scatter import scatter, scatter_frame

        if on_duplicate not in (None, "error", "last"):
            raise DataError(
                'a dense array takes on_duplicate="error" or "last"', got=repr(on_duplicate), hint="Its cells are fixed"
            )
        rows = rows_of(cells, self.database.engine, ordered=on_duplicate == "last")
        if is_spark_frame(rows):
            count = scatter_frame(self.database.engine, working, rows)
        else:
            count = scatter(self.database.engine, working, as_table(rows), on_duplicate or "error")
        self._done(working, "insert", count)

    def delete(self, array: str, where: str | Node | None = None) -> None:
        """Delete cells of a sparse array; see Array.delete."""
        from windrow.operations.sparse.rewrite import delete

        working = self._working(array)
        if working is not None:
            deleted = delete(self.database.engine, working, bind_where(working, where))
            self._done(working, "delete", deleted)

    def update(self, array: str, set: Mapping[str, Any], where: str | Node | None = None) -> None:
        """Change attributes of cells; see Array.update."""
        from windrow.operations.sparse.rewrite import update
        from windrow.plan.scopes import bind_value

        if not isinstance(set, Mapping):
            raise DataError("update needs a mapping", got=repr(set), hint="As in update({'a': 'a + 1'}, where='a > 3')")
        working = self._working(array)
        if working is not None:
            scope = scope_of(working)
            assignments = {name: bind_value(parse_value(given), scope)[0] for name, given in set.items()}
            touched = update(self.database.engine, working, assignments, bind_where(working, where))
            self._done(working, "update", touched)

    def set_labels(self, array: str, dimension: str, labels: Any) -> None:
        """Give a dimension new coordinate labels."""
        working = self._working(array)
        if working is not None:
            writing.set_labels(working, dimension, labels if isinstance(labels, Labels) else Labels.of(labels))
            self._done(working, "labels")

    def compact(self, array: str, chunks: Mapping[str, int] | None = None) -> None:
        """Store an array anew in good order; see Array.compact."""
        if chunks is not None and not isinstance(chunks, Mapping):
            raise DataError("chunks is a mapping", got=repr(chunks), hint="As in {'i': 100}")
        working = self._touch(array, lambda transaction: transaction.working(array))
        if working is not None:
            compact_array(self.database.engine, working, dict(chunks or {}))
            self._done(working, "compact")


def refuse_hidden(name: str) -> None:
    """Refuse to change what views keep for themselves: they would be patched by it, and be wrong from then on."""
    if isinstance(name, str) and name.startswith(HIDDEN):
        hint = "It changes with its view, and goes when the view is dropped"
        raise SchemaError("that is kept by windrow for a view", got=repr(name), hint=hint)


def _is_view(record: ArrayRecord, views: Iterable[ViewRecord]) -> bool:
    return any(view.array_id == record.id for view in views)
