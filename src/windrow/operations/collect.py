"""Garbage: what crashed writers left behind, dropped arrays, and versions that were given up."""

from __future__ import annotations

import itertools
import os
import time
from dataclasses import dataclass
from datetime import datetime

from windrow.errors import DataError
from windrow.storage.dense_store import DenseStore
from windrow.storage.locks import ArrayLock
from windrow.storage.records import ArrayRecord
from windrow.storage.sparse import SparseStore
from windrow.storage.warehouse import Warehouse

UNFINISHED_SECONDS = 3600
"""A folder that no array has claimed for so long belongs to a creation that will never finish."""


@dataclass(frozen=True)
class Collected:
    """What a collection did."""

    bytes: int
    versions: int
    directories: int


def collect_garbage(
    warehouse: Warehouse, lock_timeout: float, keep_versions: int | None = None, older_than: datetime | None = None
) -> Collected:
    """Remove everything that no offered version needs.

    With ``keep_versions`` or ``older_than`` older versions are given up first; the newest always stays.
    """
    if keep_versions is not None and (not isinstance(keep_versions, int) or keep_versions < 1):
        raise DataError("keep_versions must be at least 1", got=repr(keep_versions), hint="The newest always stays")
    freed = given_up = 0
    for name in warehouse.catalog.array_names():
        record = warehouse.catalog.array(name)
        lock = ArrayLock(warehouse.catalog, record.id).acquire(name, lock_timeout)
        try:
            given_up += _give_up(warehouse, record, keep_versions, older_than)
            freed += _collect_array(warehouse, record)
        finally:
            lock.release()
    directories, bytes_ = _remove_directories(warehouse)
    return Collected(freed + bytes_, given_up, directories)


def _give_up(warehouse: Warehouse, record: ArrayRecord, keep_versions: int | None, older_than: datetime | None) -> int:
    versions = warehouse.catalog.versions(record)
    superseded = versions[:-1]
    if keep_versions is None and older_than is None:
        return 0
    if keep_versions is not None:
        superseded = superseded[: max(0, len(versions) - keep_versions)]
    if older_than is not None:
        # A version was current until the next one came: it is old only if that happened before the moment.
        ended = {old.number: new.created for old, new in itertools.pairwise(versions)}
        superseded = [version for version in superseded if ended[version.number] < older_than]
    warehouse.catalog.forget_versions(record, [version.number for version in superseded])
    return len(superseded)


def _collect_array(warehouse: Warehouse, record: ArrayRecord) -> int:
    versions = warehouse.catalog.versions(record)
    path = warehouse.path(record.directory)
    if not record.sparse:
        pointers = [version.pointer for version in versions]
        return DenseStore(path).collect(pointers, pointers[-1])
    SparseStore(path).recover(versions[-1].pointer)
    numbers = [version.number for version in versions]
    kept: set[str] = set()
    ended: list[int] = []
    for part_id, name, since, until in warehouse.catalog.every_part(record):
        if any(since <= number and (until is None or number < until) for number in numbers):
            kept.add(name)
        else:
            ended.append(part_id)
    freed = SparseStore(path).collect(kept)
    warehouse.catalog.forget_parts(ended)
    return freed


def _remove_directories(warehouse: Warehouse) -> tuple[int, int]:
    """Remove the folders of dropped arrays, and those that a creation which never finished left long ago."""
    catalog = warehouse.catalog
    count = freed = 0
    for directory in catalog.trash():
        freed += warehouse.remove(directory)
        catalog.empty_trash(directory)
        count += 1
    known = {catalog.array(name).directory for name in catalog.array_names()}
    for directory in set(warehouse.store_directories()) - known:
        if time.time() - os.stat(warehouse.path(directory)).st_mtime > UNFINISHED_SECONDS:
            freed += warehouse.remove(directory)
            count += 1
    return count, freed
