"""The cells that distinguish two versions of an array."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from windrow.errors import DataError
from windrow.operations.query.cellwise import GridCells
from windrow.operations.query.scans import StoredGrid
from windrow.operations.query.stored import stored_scan
from windrow.storage.cells import cell_fields
from windrow.views.changes import CellChange, GridChange, find_change, net_tables
from windrow.views.check import tell_apart

if TYPE_CHECKING:
    from windrow.api.database import Database
    from windrow.plan.bound import BoundScan


def changes(database: Database, name: str, before: int, after: int) -> pa.Table:
    """What left between two versions, with its old values, and what came, with its new ones."""
    for number in (before, after):
        if not isinstance(number, int) or isinstance(number, bool):
            raise DataError("a version is a number", got=repr(number), hint="As in changes(3, 5)")
    catalog = database.catalog
    with catalog.one_moment():
        record = catalog.array(name)
        versions = [(record, catalog.version(record, number)) for number in (before, after)]
    with database.warehouse.hold(versions):
        old, new = (stored_scan(database.warehouse, name, *version) for version in versions)
        found = find_change(old, new)
        if isinstance(found, GridChange):
            found = _as_cells(old, new, found)
    return tell_apart(found.schema, found.left, found.came)


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
