"""The cells that distinguish two versions of an array."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from windrow.api.selected import as_it_lies
from windrow.errors import DataError, SchemaError
from windrow.operations.query.cellwise import GridCells
from windrow.operations.query.scans import StoredGrid
from windrow.operations.query.stored import stored_scan
from windrow.plan.bound import BoundNamed, BoundScan
from windrow.plan.grouping.positions import BoundRepeated
from windrow.storage.cells import cell_fields
from windrow.views.changes import CellChange, GridChange, find_change, net_tables
from windrow.views.check import tell_apart
from windrow.views.reduced.changes import shown_change
from windrow.views.shown import as_shown, versions_below

if TYPE_CHECKING:
    from windrow.api.database import Database
    from windrow.storage.records import ArrayRecord, VersionRecord


def changes(database: Database, name: str, before: int, after: int) -> pa.Table:
    """What left between two versions, with its old values, and what came, with its new ones."""
    return as_it_lies(*stored_changes(database, name, before, after))


def stored_changes(database: Database, name: str, before: int, after: int) -> tuple[BoundNamed, pa.Table]:
    """The same with all dimensions, also of a view that is one result over all cells, and the later version."""
    for number in (before, after):
        if not isinstance(number, int) or isinstance(number, bool):
            raise DataError("a version is a number", got=repr(number), hint="As in changes(3, 5)")
    catalog = database.catalog
    with catalog.one_moment():
        record = catalog.array(name)
        versions = [(record, catalog.version(record, number)) for number in (before, after)]
        if len({found.schema.dimension_names for _, found in versions}) > 1:
            got = " and ".join(f"[{', '.join(found.schema.dimension_names)}]" for _, found in versions)
            raise SchemaError(f"versions {before} and {after} of {name} differ in dimensions", got=got)
        below = [one for _, found in versions for one in versions_below(database.warehouse, record, found.number)]
    with database.warehouse.hold([*versions, *below]):
        shown = [_shown(database, record, version) for _, version in versions]
        found = _cell_change(database, *shown)
    return shown[-1], tell_apart(found.schema, found.left, found.came)


def _cell_change(database: Database, old: BoundNamed, new: BoundNamed) -> CellChange:
    if isinstance(old, BoundRepeated) and isinstance(new, BoundRepeated):
        return shown_change(database.engine, old, new)
    assert isinstance(old, BoundScan)
    assert isinstance(new, BoundScan)
    found = find_change(old, new)
    return _as_cells(old, new, found) if isinstance(found, GridChange) else found


def _shown(database: Database, record: ArrayRecord, version: VersionRecord) -> BoundNamed:
    scan = stored_scan(database.warehouse, record.name, record, version)
    return as_shown(database.warehouse, record, scan, version.number)


def _as_cells(before: BoundScan, after: BoundScan, change: GridChange) -> CellChange:
    """The cells of a dense array that changed, one by one."""
    schema = replace(after.schema, sparse=True)
    tables = []
    for scan in (before, after):
        cells = GridCells(StoredGrid(scan.snapshot), schema, scan.box, (), None)
        inside = [box & scan.box for box in change.boxes]
        read = [cells.read(box).select(cell_fields(schema).names) for box in inside if not box.is_empty]
        tables.append(pa.concat_tables([cell_fields(schema).empty_table(), *read]))
    return net_tables(schema, *tables)
