"""Arrays as the lowest steps of queries: a published version, or the state inside a transaction."""

from __future__ import annotations

import functools

from windrow.model.gridding import Gridding
from windrow.plan.bound import BoundScan
from windrow.storage.catalog import Catalog
from windrow.storage.records import ArrayRecord, VersionRecord
from windrow.storage.warehouse import Warehouse
from windrow.storage.working import WorkingArray, dense_snapshot, sparse_snapshot


def stored_scan(warehouse: Warehouse, name: str, record: ArrayRecord, version: VersionRecord) -> BoundScan:
    """A version of an array, under the name that the query has for it."""
    catalog = warehouse.catalog
    return BoundScan(
        schema=version.schema,
        box=version.box,
        labels=tuple(sorted(catalog.labels(version).items())),
        gridding=_gridding(record),
        name=name,
        snapshot=(sparse_snapshot if record.sparse else dense_snapshot)(warehouse, record, version),
        cells=version.cells,
        metadata=record.metadata,
        chunks=functools.partial(catalog.chunks, version),
    )


def working_scan(catalog: Catalog, working: WorkingArray) -> BoundScan:
    """An array as a transaction has left it so far."""
    record, version = working.record, working.version()
    return BoundScan(
        schema=version.schema,
        box=version.box,
        labels=tuple(sorted(working.labels.items())),
        gridding=_gridding(record),
        name=record.name,
        snapshot=working.sparse() if record.sparse else working.dense(),
        cells=version.cells,
        metadata=record.metadata,
        chunks=functools.partial(working.chunks, catalog),
    )


def _gridding(record: ArrayRecord) -> Gridding | None:
    return None if record.gridding is None else Gridding.from_json(record.gridding)
