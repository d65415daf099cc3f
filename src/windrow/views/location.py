"""Where readers outside windrow find arrays and views."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from windrow.model.schema import CHUNK_COLUMN
from windrow.operations.query.stored import stored_scan
from windrow.plan.bound import BoundScan
from windrow.plan.grouping.positions import BoundRepeated
from windrow.views.answering.cores import row_form
from windrow.views.shown import Versions, as_shown, versions_below

if TYPE_CHECKING:
    from windrow.storage.records import ArrayRecord, VersionRecord
    from windrow.storage.warehouse import Warehouse


@dataclass(frozen=True)
class Location:
    """Where readers outside windrow find a version: ``format`` is "icechunk" or "delta"."""

    format: str
    path: str
    version: str

    @property
    def example(self) -> str:
        """Python that opens it without windrow."""
        if self.format == "delta":
            return f"polars.scan_delta({self.path!r}, version={self.version})"
        return (
            f"xarray.open_zarr(icechunk.Repository.open(icechunk.local_filesystem_storage({self.path!r}))"
            f".readonly_session(snapshot_id={self.version!r}).store, consolidated=False)"
        )

    def __str__(self) -> str:
        return f"{self.format}:{self.path}@{self.version}"


@dataclass(frozen=True)
class RepeatedLocation(Location):
    """Where the results of a view are that is stored by position, and the cells that it is shown at."""

    cells: Location
    names: tuple[str, ...]
    """All dimensions."""
    shared: tuple[str, ...]
    """Those that tell positions apart."""
    conditions: tuple[str, ...] = ()
    """What chooses among the cells."""

    @property
    def example(self) -> str:
        """Python that opens it without windrow: results joined with the cells that lie at their positions."""
        others = [CHUNK_COLUMN, *(name for name in self.names if name not in self.shared)]
        chosen = "".join(f".filter(polars.sql_expr({text!r}))" for text in self.conditions)
        cells = f"{self.cells.example}{chosen}.select({list(self.names)!r})"
        how = f"on={list(self.shared)!r}" if self.shared else "how='cross'"
        return f"{cells}.join({super().example}.drop({others!r}), {how})"


def location_of(warehouse: Warehouse, record: ArrayRecord, version: VersionRecord) -> Location:
    """Where a version is; of a view that is stored by position, where its cells are, too."""
    path = warehouse.path(record.directory)
    here = Location("delta" if record.sparse else "icechunk", path, version.pointer)
    if not record.sparse:
        return here
    view = as_shown(warehouse, record, stored_scan(warehouse, record.name, record, version), version.number)
    if not isinstance(view, BoundRepeated):
        return here
    form = row_form(view.source)
    scan = form.base
    assert isinstance(scan, BoundScan)
    base, found = _version_of(warehouse, scan.name, versions_below(warehouse, record, version.number))
    names = view.schema.dimension_names
    shared = tuple(name for axis, name in enumerate(names) if axis not in view.axes)
    ends = zip(names, form.box.lo, form.box.hi, scan.box.lo, scan.box.hi, strict=True)
    ranges = tuple(f"{name} between {lo} and {hi}" for name, lo, hi, first, last in ends if (lo, hi) != (first, last))
    cells = Location("delta", warehouse.path(base.directory), found.pointer)
    return RepeatedLocation(
        here.format, path, here.version, cells, names, shared, (*ranges, *map(str, form.conditions))
    )


def _version_of(warehouse: Warehouse, name: str, below: Versions) -> tuple[ArrayRecord, VersionRecord]:
    """The version of an array that a view reads: the one it holds for, or an old one that its query names."""
    array, _, number = name.partition("@")
    if number:
        record = warehouse.catalog.array(array)
        return record, warehouse.catalog.version(record, int(number))
    return next((record, version) for record, version in below if record.name == array)
