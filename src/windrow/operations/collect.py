"""Garbage: what crashed writers left behind, dropped arrays, and versions that were given up."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from windrow.errors import ConflictError, DataError
from windrow.storage.dense.store import DenseStore
from windrow.storage.locks import locked, locked_array, name_key
from windrow.storage.records import ArrayRecord
from windrow.storage.sparse import SparseStore
from windrow.storage.view_rows import FRESH
from windrow.storage.warehouse import Warehouse

UNFINISHED_SECONDS = 3600
"""A folder that no array has claimed for so long belongs to a creation that will never finish."""


@dataclass(frozen=True)
class Pin:
    """A version that a view reads or has to be brought up to date from, and the bytes that nobody else needs of it."""

    view: str
    array: str
    version: int
    bytes: int


@dataclass(frozen=True)
class Collected:
    """What a collection did."""

    bytes: int
    versions: int
    directories: int
    pins: tuple[Pin, ...] = ()
    """Old versions that were kept because a view that is behind holds for them, or a view's query names them."""


VersionsRead = Callable[[Warehouse, ArrayRecord], Mapping[int, str]]
"""The versions of an array that the queries of views name, each with one such view."""


def collect_garbage(
    warehouse: Warehouse,
    lock_timeout: float,
    versions_read: VersionsRead,
    keep_versions: int | None = None,
    older_than: datetime | None = None,
    drop_pins: bool = False,
) -> Collected:
    """Remove everything that no offered version needs.

    With ``keep_versions`` or ``older_than`` older versions are given up first; the newest always stays, and so do
    those from which a view is to be brought up to date, unless ``drop_pins`` says that it may be rebuilt instead.
    ``versions_read`` stay in any case: such a view could not be rebuilt.
    """
    if keep_versions is not None and (not isinstance(keep_versions, int) or keep_versions < 1):
        raise DataError("keep_versions must be at least 1", got=repr(keep_versions), hint="The newest always stays")
    catalog = warehouse.catalog
    freed = given_up = 0
    pins: list[Pin] = []
    warehouse.leases.forget_idle()
    # Views before what they read, for what a version of one needs may go with it.
    for name in [one.name for one in sorted(catalog.array_records(), key=lambda one: -one.id)]:
        record = catalog.array(name)
        with locked_array(catalog, record.id, name, lock_timeout):
            kept = {**({} if drop_pins else _pinned(warehouse, record)), **versions_read(warehouse, record)}
            given_up += _give_up(warehouse, record, keep_versions, older_than, kept)
            pins += _pins(warehouse, record, kept)
            freed += _collect_array(warehouse, record)
    directories, bytes_ = _remove_directories(warehouse)
    return Collected(freed + bytes_, given_up, directories, tuple(pins))


def _pinned(warehouse: Warehouse, record: ArrayRecord) -> dict[int, str]:
    """The versions of an array that views which are behind hold for, with the name of one such view."""
    behind = [view for view in warehouse.catalog.views() if view.status != FRESH and record.id in view.bases]
    if not behind:
        return {}
    names = {found.id: found.name for found in warehouse.catalog.array_records()}
    return {view.bases[record.id]: names[view.array_id] for view in behind if view.array_id in names}


def _pins(warehouse: Warehouse, record: ArrayRecord, kept: Mapping[int, str]) -> list[Pin]:
    """What each version that is kept for a view holds that no later version has."""
    if not kept:
        return []
    versions = {version.number: version for version in warehouse.catalog.versions(record)}
    newest = versions[max(versions)]
    found = []
    for number, view in kept.items():
        if number in versions and number != newest.number:
            size = 0
            if record.sparse:
                later = {part.path for part in warehouse.catalog.parts(newest)}
                size = sum(part.bytes for part in warehouse.catalog.parts(versions[number]) if part.path not in later)
            found.append(Pin(view, record.name, number, size))
    return found


def _give_up(
    warehouse: Warehouse,
    record: ArrayRecord,
    keep_versions: int | None,
    older_than: datetime | None,
    kept: Container[int],
) -> int:
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
    superseded = [version for version in superseded if version.number not in kept]
    warehouse.catalog.forget_versions(record, [version.number for version in superseded])
    return len(superseded)


def _collect_array(warehouse: Warehouse, record: ArrayRecord) -> int:
    """Remove what neither a version that is offered needs, nor one that somebody still reads."""
    versions = warehouse.catalog.versions(record)
    # After the versions were given up: whoever takes a lease from now on looks and finds that they were.
    read = [held for held in warehouse.leases.alive() if held.array_id == record.id]
    numbers = sorted({version.number for version in versions} | {held.number for held in read})
    path = warehouse.path(record.directory)
    if record.sparse:
        pointers = [version.pointer for version in versions] + [held.pointer for held in read]
        freed = _collect_parts(warehouse, record, path, pointers, numbers)
    else:
        kept = {version.pointer for version in versions} | {held.pointer for held in read}
        freed = DenseStore(path).collect(kept, versions[-1].pointer)
        warehouse.catalog.forget_dense_chunks(record, numbers[0])
    return freed


def _collect_parts(
    warehouse: Warehouse, record: ArrayRecord, path: str, pointers: Sequence[str], numbers: Sequence[int]
) -> int:
    store = SparseStore(path)
    newest = max(pointers, key=_number)
    store.recover(newest)

    def stays(since: int, until: int | None) -> bool:
        return any(since <= number and (until is None or number < until) for number in numbers)

    parts = warehouse.catalog.every_part(record)
    ended = [part_id for part_id, _, since, until in parts if not stays(since, until)]
    kept = {name for _, name, since, until in parts if stays(since, until)}
    kept |= {name for _, name, since, until in warehouse.catalog.every_vector(record) if stays(since, until)}
    freed = store.collect(kept, min(pointers, key=_number))
    warehouse.catalog.forget_parts(ended)
    return freed


def _number(pointer: str) -> int:
    return int(pointer) if pointer.isdecimal() else 0


def _remove_directories(warehouse: Warehouse) -> tuple[int, int]:
    """Remove the folders of dropped arrays, and those that a creation which never finished left long ago."""
    catalog = warehouse.catalog
    count = freed = 0
    for directory in catalog.trash():
        freed += warehouse.discard(directory)
        count += not os.path.exists(warehouse.path(directory))
    for directory in sorted(set(warehouse.store_directories()) - _known_directories(warehouse)):
        if warehouse.idle_seconds(directory) > UNFINISHED_SECONDS:
            size = _remove_unfinished(warehouse, directory)
            freed, count = freed + (size or 0), count + (size is not None)
    return count, freed


def _known_directories(warehouse: Warehouse) -> set[str]:
    catalog = warehouse.catalog
    return {catalog.array(name).directory for name in catalog.array_names()} | set(catalog.trash())


def _remove_unfinished(warehouse: Warehouse, directory: str) -> int | None:
    """Remove a folder that no array claims, unless whoever makes an array of that name is still at it."""
    name = directory.removeprefix("arrays/").rpartition("-")[0]
    try:
        with locked(warehouse.catalog, name_key(name), name, 0.0):
            # Published just now, perhaps; whoever held the lock before and was passed over can publish nothing.
            return None if directory in _known_directories(warehouse) else warehouse.remove(directory)
    except ConflictError:
        return None
