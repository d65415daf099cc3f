"""Bringing stale views up to date, and comparing views with their definitions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from windrow.errors import UnknownNameError
from windrow.operations.query.stored import stored_scan
from windrow.storage.view_rows import STATE
from windrow.views.check import count_damaged_states, find_differences
from windrow.views.known import KnownView, known_views, pinned_scans
from windrow.views.maintain import fresh
from windrow.views.reduced.form import stored_form
from windrow.views.shown import as_shown, versions_below

if TYPE_CHECKING:
    from windrow.api.batch import Batch
    from windrow.api.database import Database
    from windrow.api.reports import Report
    from windrow.plan.bound import BoundNamed


ASKED = "a full refresh was asked for"


@dataclass(frozen=True)
class Check:
    """A view compared with its definition: ``differences`` has the cells it should not have, and those it lacks."""

    view: str
    cells: int
    differences: pa.Table
    damaged_states: int = 0
    """How many of the states that patching builds on are wrong, though the results they belong to may be right."""

    @property
    def ok(self) -> bool:
        return not self.differences.num_rows and not self.damaged_states

    def __str__(self) -> str:
        mend = f"To mend it: refresh {self.view} full"
        if not self.differences.num_rows and self.damaged_states:
            return (
                f"view {self.view} holds the right cells, but {self.damaged_states:,} hidden states are damaged. {mend}"
            )
        if self.ok:
            return f"view {self.view} is what its definition says: {self.cells:,} cells"
        return (
            f"view {self.view} differs from its definition in {self.differences.num_rows:,} rows, the first being "
            f"{self.differences.slice(0, 1).to_pylist()[0]}. {mend}"
        )


def refresh(database: Database, name: str, full: bool) -> Report:
    """Bring a view up to date, after the stale ones that it reads; views on it follow in the same version."""
    with database.batch() as batch:
        transaction, maintenance = batch.opened()
        transaction.lock_all([name])
        views = {view.name: view for view in maintenance.views}
        if name not in views:
            raise UnknownNameError("no such view", got=repr(name))
        behind = _behind(views[name], views)
        for view in behind:
            _bring(batch, view, ASKED if full and view.name == name else "")
        if full and views[name] not in behind:
            _bring(batch, views[name], ASKED)
    assert batch.report is not None
    return batch.report


def _behind(view: KnownView, views: dict[str, KnownView]) -> list[KnownView]:
    """A view, if it is stale, after the stale ones that it is made of; what reads one of them follows it."""
    found: list[KnownView] = []
    for base in view.held:
        if base in views:
            found += [one for one in _behind(views[base], views) if one not in found]
    return found if view.is_fresh and not found else [*found, view]


def _bring(batch: Batch, view: KnownView, anew: str) -> None:
    transaction, maintenance = batch.opened()
    moments = {}
    for base, held in view.held.items():
        now = _scan(batch, base) if transaction.known(base) is None else maintenance.now(base)
        try:
            moments[base] = (_scan(batch, base, held), now)
        except UnknownNameError:  # the version that it holds for was given up
            moments[base], anew = (now, now), anew or f"the version of {base} that it holds for was given up"
    brought = maintenance.bring(view, moments, anew)
    transaction.maintained.discard(view.name)
    transaction.view_changes[view.name] = fresh(view, brought)


def _scan(batch: Batch, name: str, number: int | None = None) -> BoundNamed:
    warehouse = batch.database.warehouse
    record = warehouse.catalog.array(name)
    version = warehouse.catalog.version(record, number)
    return as_shown(warehouse, record, stored_scan(warehouse, name, record, version), version.number)


def check(database: Database, name: str) -> Check:
    """Evaluate a view's definition on the versions that it holds for, and compare."""
    warehouse, catalog = database.warehouse, database.catalog
    with catalog.one_moment():
        views = {view.name: view for view in known_views(warehouse)}
        if name not in views:
            raise UnknownNameError("no such view", got=repr(name))
        view = views[name]
        record, version = catalog.current(name)
        bases = {base: (catalog.array(base), held) for base, held in view.held.items()}
        versions = [(array, catalog.version(array, held)) for array, held in bases.values()]
        stored = as_shown(warehouse, record, stored_scan(warehouse, name, record, version), version.number)
        kept = f"{STATE}{name}" if f"{STATE}{name}" in catalog.array_names() else None
        states = None if kept is None else stored_scan(warehouse, kept, *catalog.current(kept))
        scans = ((a, found, stored_scan(warehouse, a.name, a, found)) for a, found in versions)
        moment = {a.name: as_shown(warehouse, a, scan, found.number) for a, found, scan in scans}
        below = [one for a, found in versions for one in versions_below(warehouse, a, found.number)]
        pinned = pinned_scans(warehouse, view.definition)
    with warehouse.hold([*versions, *below, (record, version)]):
        expected = view.definition.bind(moment, pinned)
        cells, differences = find_differences(database.engine, stored, expected)
        results = stored_form(expected, view.reduced)
        damaged = 0 if states is None else count_damaged_states(database.engine, states, results)
    return Check(name, cells, differences, damaged)
