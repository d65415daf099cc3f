"""The views of a warehouse as a transaction knows them, each after those that it reads."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

from windrow.errors import StaleViewWarning, UnknownNameError
from windrow.operations.query.stored import stored_scan
from windrow.plan.bound import BoundNamed
from windrow.plan.nodes import Plan, Scan
from windrow.storage.failures import damaged_rows
from windrow.storage.records import ArrayRecord, VersionRecord
from windrow.storage.view_rows import FRESH, ViewRecord
from windrow.storage.warehouse import Warehouse
from windrow.views.definition import Definition, Settings
from windrow.views.shown import as_shown, held_at


@dataclass(frozen=True)
class KnownView:
    """A view: its array, what the catalog knows of it, and the names of the arrays that it reads."""

    array: ArrayRecord
    record: ViewRecord
    held: Mapping[str, int]
    """The version of each base that it holds for."""

    @property
    def name(self) -> str:
        return self.array.name

    @property
    def is_fresh(self) -> bool:
        return self.record.status == FRESH

    @property
    def scalar(self) -> bool:
        """Whether it is one result over all cells."""
        return bool(self.record.facts.get("scalar"))

    @property
    def reduced(self) -> tuple[str, ...]:
        """The dimensions without which its results are stored."""
        return tuple(self.record.facts.get("reduced", ()))

    @cached_property
    def definition(self) -> Definition:
        return Definition.of(self.record.definition)

    @cached_property
    def settings(self) -> Settings:
        with damaged_rows("the settings of a view"):
            return Settings.stored(self.record.settings)


def known_views(warehouse: Warehouse) -> list[KnownView]:
    """All views, each after those that it reads: a view is made after its bases."""
    catalog = warehouse.catalog
    with catalog.one_moment():
        records = catalog.views()
        if not records:
            return []
        arrays = {record.id: record for record in catalog.array_records()}
    found = []
    with damaged_rows("a view"):
        for record in records:
            bases = {arrays[base].name: held for base, held in record.bases.items() if base in arrays}
            found.append(KnownView(arrays[record.array_id], record, bases))
    return found


def readers_of(name: str, views: Sequence[KnownView]) -> Iterator[KnownView]:
    """The views that read an array themselves, as it is or an old version of it."""
    return (view for view in views if name in view.held or name in view.definition.pinned_names)


def stale_because(view: KnownView, views: Mapping[str, KnownView]) -> str | None:
    """Why a view does not hold for the present state of the arrays, if so: it is behind, or one that it reads is."""
    if not view.is_fresh:
        return view.record.reason or view.record.status
    for name in view.held:
        base = views.get(name)
        if base is not None and (reason := stale_because(base, views)) is not None:
            return f"it reads {name}, which is stale: {reason}"
    return None


def warn_of_stale(warehouse: Warehouse, plan: Plan) -> None:
    """Say which of the views that a query reads are behind; an old version of one is what it is."""
    if not warehouse.catalog.views():
        return
    views = {view.name: view for view in known_views(warehouse)}
    names = (step.array for step in plan.walk() if isinstance(step, Scan) and step.version is None)
    for name in dict.fromkeys(names):
        reason = stale_because(views[name], views) if name in views else None
        if reason is not None:
            warnings.warn(f"view {name} is stale: {reason}", StaleViewWarning, stacklevel=4)


def pinned_scans(warehouse: Warehouse, definition: Definition) -> dict[Scan, BoundNamed]:
    """The old versions that a view reads."""
    found: dict[Scan, BoundNamed] = {}
    for scan in definition.pinned:
        record, version = _pinned_version(warehouse, scan)
        shown = stored_scan(warehouse, f"{record.name}@{version.number}", record, version)
        found[scan] = as_shown(warehouse, record, shown, version.number)
    return found


def versions_read(warehouse: Warehouse, record: ArrayRecord) -> dict[int, str]:
    """The versions of an array that views cannot be read without, each with one such view.

    They are those that queries of views name, and those at whose cells versions of views are shown.
    """
    found: dict[int, str] = {}
    for view in known_views(warehouse):
        if view.reduced and record.name in view.held:
            for version in warehouse.catalog.versions(view.array):
                found[held_at(warehouse, view.record, view.array, version.number)[record.id]] = view.name
        for scan in view.definition.pinned:
            if scan.array == record.name:
                with suppress(UnknownNameError):  # given up by a windrow that did not look
                    found[_pinned_version(warehouse, scan)[1].number] = view.name
    return found


def _pinned_version(warehouse: Warehouse, scan: Scan) -> tuple[ArrayRecord, VersionRecord]:
    record = warehouse.catalog.array(scan.array)
    return record, warehouse.catalog.version(record, scan.version, scan.as_of)
