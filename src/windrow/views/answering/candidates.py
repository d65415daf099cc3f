"""The views that might serve a query: those whose bases are among the arrays that it reads, in the same versions."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from windrow.errors import Error
from windrow.operations.query.stored import stored_scan
from windrow.plan.bound import Bound, BoundNamed
from windrow.plan.nodes import Scan
from windrow.storage.records import ArrayRecord, Versioned, VersionRecord
from windrow.storage.view_rows import HIDDEN
from windrow.storage.warehouse import Warehouse
from windrow.views.answering.cores import Topped, topped_core
from windrow.views.known import KnownView, known_views
from windrow.views.shown import as_shown, versions_below


@dataclass(frozen=True)
class Read:
    """An array that the query reads: the step of the plan, what it was bound to, and which version that is."""

    scan: Scan
    bound: BoundNamed
    record: ArrayRecord
    version: VersionRecord


@dataclass(frozen=True)
class Candidate:
    """A view that holds for what the query reads: its query on the same arrays, and its results as they are stored."""

    name: str
    query: Bound
    stored: BoundNamed
    versions: tuple[Versioned, ...]
    """What reading it reads."""
    stale: str | None = None
    """Why it does not hold for the versions that the query reads; it then serves as it is, if that was asked for."""

    @functools.cached_property
    def topped(self) -> Topped | None:
        return topped_core(self.query)


def find_candidates(
    warehouse: Warehouse, reads: Sequence[Read], stale_too: bool
) -> tuple[list[Candidate], dict[str, str]]:
    """The views that hold for what is read, and of others that read no other arrays why they do not."""
    found, refused = list[Candidate](), dict[str, str]()
    for view in known_views(warehouse):
        if view.name.startswith(HIDDEN) or not view.held or not _reads_no_more(view, reads):
            continue
        moment, number = _version_for(warehouse, view, reads)
        stale = None
        if number is None:
            stale = view.record.reason or "it holds for other versions of what it reads"
            if not stale_too:
                refused[view.name] = stale if view.is_fresh else f"it is {view.record.status}: {stale}"
                continue
            number = warehouse.catalog.current(view.name)[1].number
        try:
            found.append(_candidate(warehouse, view, moment, number, stale))
        except Error as error:
            refused[view.name] = f"its query cannot be read here: {error.what}"
    return found, refused


def _reads_no_more(view: KnownView, reads: Sequence[Read]) -> bool:
    names = {read.record.name for read in reads}
    return set(view.held) <= names


def _version_for(warehouse: Warehouse, view: KnownView, reads: Sequence[Read]) -> tuple[dict[str, Read], int | None]:
    """The arrays at versions for which one of the view's versions holds, and that version's number."""
    listed = [[read for read in reads if read.record.name == name] for name in view.held]
    moments = [dict(zip(view.held, chosen, strict=True)) for chosen in itertools.product(*listed)]
    if view.is_fresh:
        for moment in moments:
            if all(moment[name].version.number == held for name, held in view.held.items()):
                return moment, warehouse.catalog.current(view.name)[1].number
    kept_up = not view.settings.deferred and view.settings.on_failure == "refuse"
    for number, spans in sorted(warehouse.catalog.view_versions(view.array).items(), reverse=True):
        for moment in moments:
            at = {read.record.id: read.version.number for read in moment.values()}
            if spans.keys() == at.keys() and holds(spans, at, kept_up):
                return moment, number
    return moments[0], None


def holds(spans: Mapping[int, tuple[int, int]], at: Mapping[int, int], kept_up: bool) -> bool:
    """Whether a version of a view that holds for these versions of its bases, from and to, is sure to hold at some.

    It was true when the version was made, and when it was last looked at. In between it is if the view was never
    behind, and one base alone changed: two changes that leave it as it is need not do so in another order.
    """
    if any(all(at[base] == span[end] for base, span in spans.items()) for end in (0, 1)):
        return True
    moved = [base for base, (first, last) in spans.items() if first != last]
    return kept_up and len(moved) <= 1 and all(first <= at[base] <= last for base, (first, last) in spans.items())


def _candidate(
    warehouse: Warehouse, view: KnownView, moment: Mapping[str, Read], number: int, stale: str | None
) -> Candidate:
    catalog = warehouse.catalog
    version = catalog.version(view.array, number, None)
    present = catalog.current(view.name)[1].number == number
    shown = view.name if present else f"{view.name}@{number}"
    pinned = {scan: _pinned(warehouse, scan, moment) for scan in view.definition.pinned}
    query = view.definition.bind({name: read.bound for name, read in moment.items()}, pinned)
    stored = as_shown(warehouse, view.array, stored_scan(warehouse, shown, view.array, version), number)
    versions = ((view.array, version), *versions_below(warehouse, view.array, number))
    return Candidate(view.name, query, stored, versions, stale)


def _pinned(warehouse: Warehouse, scan: Scan, moment: Mapping[str, Read]) -> BoundNamed:
    """An old version that the view reads: the one that the query reads, too, if it does."""
    record = warehouse.catalog.array(scan.array)
    version = warehouse.catalog.version(record, scan.version, scan.as_of)
    for read in moment.values():
        if (read.record.id, read.version.number) == (record.id, version.number):
            return read.bound
    shown = stored_scan(warehouse, f"{record.name}@{version.number}", record, version)
    return as_shown(warehouse, record, shown, version.number)
