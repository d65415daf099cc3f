"""How a stored view looks to those who read it. Every query asks: nothing that parses or patches is imported here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from windrow.errors import UnknownNameError
from windrow.plan.bound import BoundNamed, BoundScan
from windrow.storage.records import ArrayRecord, VersionRecord
from windrow.storage.view_rows import ViewRecord
from windrow.storage.warehouse import Warehouse

Versions = list[tuple[ArrayRecord, VersionRecord]]


def as_shown(warehouse: Warehouse, record: ArrayRecord, scan: BoundScan, number: int) -> BoundNamed:
    """A version of an array as queries see it.

    A view that is one result over all cells lies nowhere, as its query's result does. One whose results are stored by
    position has them at all cells.
    """
    if not scan.schema.sparse and scan.box.size != 1:
        return scan
    view = warehouse.catalog.view(record)
    if view is None:
        return scan
    if view.facts.get("scalar") and scan.box.size == 1:
        return replace(scan, scalar=True)
    if not view.facts.get("reduced"):
        return scan
    from windrow.views.reduced.reading import show

    return show(warehouse, record, scan, number)


def versions_below(warehouse: Warehouse, record: ArrayRecord, number: int) -> Versions:
    """The versions of other arrays that are read where a version of a view is: those at whose cells it is shown."""
    view = warehouse.catalog.view(record)
    if view is None or not view.facts.get("reduced"):
        return []
    arrays = {found.id: found for found in warehouse.catalog.array_records()}
    held = held_at(warehouse, view, record, number)
    return [(arrays[base], _version(warehouse, arrays[base], at)) for base, at in held.items()]


def held_at(warehouse: Warehouse, view: ViewRecord, record: ArrayRecord, number: int) -> Mapping[int, int]:
    """The version of each base that a version of a view holds for, the newest of several."""
    known = warehouse.catalog.view_versions(record)
    # A version that only stores a view anew, as compaction does, holds for what the one before it does.
    earlier = [one for one in known if one <= number]
    if not earlier or set(known[max(earlier)]) != set(view.bases):
        return view.bases
    return {base: last for base, (_, last) in known[max(earlier)].items()}


def _version(warehouse: Warehouse, record: ArrayRecord, number: int) -> VersionRecord:
    """That version, or the newest if it was given up: of arrays whose cells are not shown, any will do."""
    try:
        return warehouse.catalog.version(record, number)
    except UnknownNameError:
        return warehouse.catalog.version(record)
