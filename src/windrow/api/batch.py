"""Batches: changes to one or several arrays that become visible together."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from windrow.errors import DataError, ExpressionError
from windrow.model.gridding import Gridding
from windrow.model.labels import Labels
from windrow.model.schema import NUMBERING
from windrow.model.source import ComputedCells
from windrow.operations import write as writing
from windrow.operations.arguments import as_table, gridded, is_spark_frame, region_of, rows_of
from windrow.storage.transaction import Transaction, WorkingArray

if TYPE_CHECKING:
    from windrow.api.database import Database
    from windrow.execution.engine import Engine
    from windrow.expressions.nodes import Node
    from windrow.operations.cell_tasks import Duplicates

Grid = Mapping[str, object] | Gridding | bool | None


@dataclass(frozen=True)
class Change:
    """One step of a batch."""

    array: str
    operation: str
    cells: int
    replaced: int = 0
    duplicates: int = 0


@dataclass(frozen=True)
class Report:
    """What a write did, or that its batch id had been applied before.

    ``versions`` says at which version each array is now; ``unchanged`` names those that nothing was done to, which
    have the version they had.
    """

    batch: str | None
    applied: bool
    versions: Mapping[str, int]
    changes: tuple[Change, ...] = ()
    seconds: float = 0.0
    unchanged: tuple[str, ...] = ()

    @property
    def version(self) -> int:
        """The version of the array, when one was written."""
        if len(self.versions) != 1:
            raise DataError("the batch wrote several arrays", got=", ".join(self.versions), hint="Use .versions")
        return next(iter(self.versions.values()))

    @property
    def cells(self) -> int:
        return sum(change.cells for change in self.changes)

    @property
    def replaced(self) -> int:
        return sum(change.replaced for change in self.changes)

    @property
    def duplicates(self) -> int:
        return sum(change.duplicates for change in self.changes)

    def __str__(self) -> str:
        same = dict.fromkeys(self.unchanged, " as before")
        versions = ", ".join(f"{name}@{number}{same.get(name, '')}" for name, number in self.versions.items())
        if not self.applied:
            return f"batch {self.batch!r} was applied before ({versions}); nothing was done"
        steps = "; ".join(_described(change) for change in self.changes) or "nothing"
        return f"{steps} -> {versions or 'no version'} in {self.seconds:.2f} s"


def _described(change: Change) -> str:
    extra = [f"{change.replaced:,} replaced"] if change.replaced else []
    extra += [f"{change.duplicates:,} duplicates"] if change.duplicates else []
    return f"{change.operation} {change.array}: {change.cells:,} cells" + (f" ({', '.join(extra)})" if extra else "")


@dataclass
class Batch:
    """Collects changes; leaving its ``with`` block publishes all of them, an exception none.

    Inside a batch whose id was applied before, every change is passed over.
    """

    database: Database
    id: str | None = None
    report: Report | None = None
    _transaction: Transaction | None = None
    _changes: list[Change] = field(default_factory=list)
    _started: float = 0.0

    def __enter__(self) -> Batch:
        self._started = time.perf_counter()
        if self.id is not None and (not isinstance(self.id, str) or not self.id or len(self.id) > 255):
            raise DataError("a batch id is a text of 1 to 255 characters", got=repr(self.id), hint="As in 'night42'")
        earlier = None if self.id is None else self.database.catalog.batch_report(self.id)
        if earlier is not None:
            self.report = Report(self.id, False, json.loads(earlier or "{}"))
        else:
            self._transaction = Transaction(self.database.warehouse, self.database.lock_timeout, self.id)
            self.database.engine.cancellation.begin()
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if self._transaction is None:
            return
        try:
            if kind is None:
                published = self._transaction.publish()
                versions = {name: version.number for name, version in published.items()}
                took = time.perf_counter() - self._started
                self.report = Report(self.id, True, versions, tuple(self._changes), took, self._transaction.unchanged)
        finally:
            self.database.engine.cancellation.end()
            self._transaction.close()
            self._transaction = None

    @property
    def applied_before(self) -> bool:
        return self.report is not None and not self.report.applied

    def _working(self, name: str) -> WorkingArray | None:
        if self.applied_before:
            return None
        if self._transaction is None:
            raise DataError("the batch is not open", hint="Use it as: with db.batch() as b: …")
        return self._transaction.working(name)

    def _done(
        self, working: WorkingArray, operation: str, cells: int = 0, replaced: int = 0, duplicates: int = 0
    ) -> None:
        """Note a change. An insert of no cells leaves the array, and so its version, as it was."""
        self._changes.append(Change(working.record.name, operation, cells, replaced, duplicates))
        if operation != "insert" or cells:
            working.note(operation)

    def write(
        self, array: str, values: Any, at: Sequence[int] | None = None, labels: Mapping[str, Any] | None = None
    ) -> None:
        """Write a box of values into a dense array; see Array.write."""
        working = self._working(array)
        if working is not None:
            _refuse_sparse(working)
            region = region_of(values, working, at, labels or {})
            cells = writing.write(self.database.engine, working, region.source, region.at, region.labels)
            self._done(working, "write", cells)

    def append(self, array: str, values: Any, labels: Mapping[str, Any] | Sequence[Any] | None = None) -> None:
        """Write after the present end of the one growing dimension; see Array.append."""
        working = self._working(array)
        if working is None:
            return
        _refuse_sparse(working)
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
        cells = writing.write(self.database.engine, working, region.source, region.at, region.labels)
        self._done(working, "append", cells)

    def insert(self, array: str, cells: Any, on_duplicate: Duplicates | None = None, grid: Grid = None) -> None:
        """Insert cells into a sparse array, or set single cells of a dense one; see Array.insert."""
        from windrow.operations.insert import insert

        working = self._working(array)
        if working is None:
            return
        engine = self.database.engine
        if not working.record.sparse:
            self._set_cells(working, cells, on_duplicate)
            return
        if isinstance(cells, ComputedCells):
            from windrow.operations.computed_cells import insert_computed

            found = insert_computed(engine, working, cells)
            self._done(working, "insert", found.cells, found.replaced, found.duplicates)
            return
        rows = rows_of(cells, engine, ordered=on_duplicate == "last")
        gridding = _gridding(working, grid)
        if gridding is not None:
            rows = gridded(rows, gridding, working.schema, engine)
        numbered = gridding is not None and NUMBERING in working.schema.dimension_names
        counts = insert(engine, working, rows, on_duplicate or ("keep" if numbered else "error"))
        self._done(working, "insert", counts.cells, counts.replaced, counts.duplicates)

    def _set_cells(self, working: WorkingArray, cells: Any, on_duplicate: str | None) -> None:
        from windrow.operations.scatter import scatter, scatter_frame

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
        from windrow.operations.rewrite import delete

        working = self._working(array)
        if working is not None:
            deleted = delete(self.database.engine, working, _parsed(where))
            self._done(working, "delete", deleted)

    def update(self, array: str, set: Mapping[str, Any], where: str | Node | None = None) -> None:
        """Change attributes of cells; see Array.update."""
        from windrow.operations.rewrite import update

        if not isinstance(set, Mapping):
            raise DataError("update needs a mapping", got=repr(set), hint="As in update({'a': 'a + 1'}, where='a > 3')")
        working = self._working(array)
        if working is not None:
            assignments = {name: _value(expression) for name, expression in set.items()}
            touched = update(self.database.engine, working, assignments, _parsed(where))
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
        working = self._working(array)
        if working is not None:
            _compact(self.database.engine, working, dict(chunks or {}))
            self._done(working, "compact")


def _refuse_sparse(working: WorkingArray) -> None:
    if working.record.sparse:
        raise DataError(
            f"array {working.record.name} is sparse", got="a box of values", hint="Use insert() with a table of cells"
        )


def _gridding(working: WorkingArray, grid: Grid) -> Gridding | None:
    if grid is False:
        return None
    if isinstance(grid, Gridding):
        return grid
    if isinstance(grid, Mapping):
        return Gridding.of(grid)
    return None if working.record.gridding is None else Gridding.from_json(working.record.gridding)


def _compact(engine: Engine, working: WorkingArray, chunks: dict[str, int]) -> None:
    if working.record.sparse:
        from windrow.operations.rewrite import compact_sparse

        compact_sparse(engine, working, chunks)
    else:
        writing.compact_dense(engine, working, chunks)


def _parsed(text: str | Node | None) -> Node | None:
    from windrow.expressions.nodes import Node
    from windrow.language.expression import parse_expression

    if text is None or isinstance(text, Node):
        return text
    if not isinstance(text, str):
        raise ExpressionError("a condition is a text", got=repr(text), hint="As in 'a > 3 and i <= 10'")
    return parse_expression(text)


def _value(expression: Any) -> Node:
    """An assignment's right side: text is an expression, anything else a constant."""
    from windrow.expressions.nodes import Literal, Node

    if isinstance(expression, Node):
        return expression
    parsed = _parsed(expression) if isinstance(expression, str) else Literal(expression)
    assert parsed is not None
    return parsed


def fill_array(
    database: Database, name: str, created: bool, batch: str | None, fill: Callable[[Batch], None]
) -> Report:
    """Fill an array in a batch of its own; one that was created for it goes again if nothing came of it."""
    applied = False
    try:
        with database.batch(batch) as change:
            fill(change)
        assert change.report is not None
        applied = change.report.applied
        return change.report
    finally:
        if created and not applied:
            database.drop(name)
