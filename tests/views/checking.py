"""Views held against their definitions: by windrow from scratch, by ``check``, and by the oracle."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest

import windrow as wr
from join_oracle import Cell, Dimension, Held, Values
from join_problems import _plain, same, table_cells
from windrow.api import batch

from .oracle import Answer

WAYS = {"patch": ("patched", "unchanged"), "rebuild": ("rebuilt", "unchanged")}
"""What may come of what was planned."""


def read(view: Any) -> Any:
    """What a view holds, stale or not."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", wr.StaleViewWarning)
        return view.read()


def damage_states(database: Any, view: str, changes: Mapping[str, Any], where: str | None = None) -> None:
    """Change what is kept for patching a view, which windrow lets nobody do."""
    with pytest.MonkeyPatch.context() as unguarded:
        unguarded.setattr(batch, "refuse_hidden", lambda name: None)
        wr.Array(database, f"__windrow_state_{view}").update(changes, where)


def dimension_names(array: Any, result: Any) -> tuple[str, ...]:
    """The dimensions of an array or query that its result shows; of a grand total there is none."""
    shown = result.column_names if isinstance(result, pa.Table) else result.dims
    return tuple(name for name in array.schema.dimension_names if name in shown)


def lows(array: Any, names: Sequence[str]) -> list[int]:
    return [dimension.lo for dimension in array.schema.dimensions if dimension.name in names]


def cells_of(result: Any, names: Sequence[str], lo: Sequence[int]) -> dict[Cell, Values]:
    """The attributes of each cell by name, None where missing; without names the one row of a grand total."""
    if not names and not isinstance(result, pa.Table):
        result = result.squeeze(drop=True)
    found = table_cells(result, names, lo)
    return {
        cell: {name: _plain(value) for name, value in row.items() if name not in names} for cell, row in found.items()
    }


def contents(array: Any) -> dict[Cell, Values]:
    """What an array or view holds, by cell."""
    found = read(array)
    names = dimension_names(array, found)
    return cells_of(found, names, lows(array, names))


def total(view: Any) -> Values:
    """The one row of a grand total."""
    (row,) = contents(view).values()
    return row


def held(array: Any) -> Held:
    """An array as the oracle takes it, its growing dimensions as long as they are now, labels among them."""
    box = array.box
    dimensions = tuple(
        Dimension(d.name, lo, hi, d.numbering, _labels(array, d.name, lo))
        for d, lo, hi in zip(array.schema.dimensions, box.lo, box.hi, strict=True)
    )
    return Held(dimensions, contents(array))


def _labels(array: Any, name: str, lo: int) -> Mapping[int, Any] | None:
    labels = array.labels.get(name)
    return None if labels is None else {lo + k: value for k, value in enumerate(labels.values.tolist())}


def assert_same_result(stored: Any, computed: Any, names: Sequence[str]) -> None:
    """Equal in columns, types and rows; floats within the accuracy of sums, checked closer by the oracle."""
    if isinstance(computed, pa.Table):
        assert isinstance(stored, pa.Table), type(stored)
        # A grand total is stored as one cell of one dimension.
        stored = stored if names else stored.select(computed.column_names)
        assert {f.name: f.type for f in stored.schema} == {f.name: f.type for f in computed.schema}
        found, wanted = (table_cells(result, names) for result in (stored, computed))
    else:
        stored = stored if names else stored.squeeze(drop=True)
        assert set(stored.data_vars) == set(computed.data_vars)
        for name in computed.data_vars:
            assert stored[name].dtype == computed[name].dtype, name
            assert stored[name].dims == computed[name].dims, name
        for name in computed.coords:
            assert stored[name].values.tolist() == computed[name].values.tolist(), name
        found, wanted = (table_cells(result, names) for result in (stored, computed))
    assert found.keys() == wanted.keys()
    for cell, row in wanted.items():
        for name, value in row.items():
            assert _alike(_plain(found[cell][name]), _plain(value)), (cell, name, found[cell][name], value)


def _alike(found: Any, wanted: Any) -> bool:
    if isinstance(found, float) and isinstance(wanted, float) and found != wanted:
        return abs(found - wanted) <= 1e-9 * max(1.0, abs(found), abs(wanted))
    return bool(found == wanted)


def assert_answer(view: Any, answer: Answer, where: object = "") -> None:
    """A view equals what the oracle says, as near as SPEC section 1 asks of sums, averages and variances."""
    found = cells_of(read(view), answer.names, answer.lows)
    assert found.keys() == set(answer.cells), (view.name, where, sorted(found.keys() ^ set(answer.cells)))
    for cell, row in answer.cells.items():
        for name, wanted in row.items():
            got = found[cell][name]
            if name in answer.measures:
                values = answer.groups[cell].values.get(name, [])
                same(got, wanted, answer.measures[name], values, (view.name, where, cell, name))
            else:
                assert _alike(got, _plain(wanted)), (view.name, where, cell, name, got, wanted)


def assert_way(view: Any) -> None:
    """The way taken last is the one that the plan announced."""
    rows = view.history().to_pylist()
    assert rows, view.name
    last = rows[-1]
    if last["planned"] is not None and last["way"] in ("patched", "rebuilt", "unchanged"):
        assert last["way"] in WAYS[last["planned"]], last


class Watched:
    """A database whose views are compared with their definitions from scratch after every statement."""

    def __init__(self, database: Any) -> None:
        self.database = database
        self.views: dict[str, Any] = {}
        self.shown: dict[str, tuple[str, ...]] = {}
        """The dimensions of each view's results."""

    def view(self, name: str, query: Any, **settings: Any) -> Any:
        """Make a view, and watch it from now on."""
        made = self.database.create_view(name, query, **settings)
        self.watch(name, query)
        self.check()
        return made

    def watch(self, name: str, query: Any) -> None:
        asked = self.database.query(query) if isinstance(query, str) else query
        self.views[name], self.shown[name] = query, dimension_names(asked, asked.compute())

    def run(self, *statements: str) -> None:
        for statement in statements:
            self.database.query(statement)
            self.check()

    def check(self) -> None:
        for name, query in self.views.items():
            view = self.database.view(name)
            if view.stale:
                continue
            checked = view.check()
            assert checked.ok, f"{name}: {checked}"
            asked = self.database.query(query) if isinstance(query, str) else query
            computed = asked.compute()
            assert_same_result(view.read(), computed, dimension_names(asked, computed))
            assert_way(view)

    def cells(self, name: str, column: str | None = None) -> dict[Any, Any]:
        """What a view holds: a single coordinate or column stands for itself."""
        view, names = self.database.view(name), self.shown[name]
        attributes = view.schema.attribute_names
        found = {
            cell: {key: value for key, value in row.items() if key in attributes}
            for cell, row in cells_of(read(view), names, lows(view, names)).items()
        }
        columns = {cell: row if column is None else row[column] for cell, row in found.items()}
        columns = {
            cell: next(iter(row.values())) if isinstance(row, dict) and len(row) == 1 else row
            for cell, row in columns.items()
        }
        return {cell[0] if len(cell) == 1 else cell: row for cell, row in columns.items()}
