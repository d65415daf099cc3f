"""What the doctor looks at in a warehouse: that it opens, and that stores and catalog agree."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from windrow.api.array import Array
from windrow.api.database import Database, connect
from windrow.api.describe import counted
from windrow.api.doctor.findings import Finding, State
from windrow.errors import Error
from windrow.operations.dense.repair import is_disordered, put_in_order
from windrow.storage import tables
from windrow.storage.delta.log import DeltaLog
from windrow.storage.dense.repository import branch_damage, has_snapshot
from windrow.storage.dense.snapshots import DenseSnapshot, open_store
from windrow.storage.dense.store import DenseStore
from windrow.storage.locks import is_alive
from windrow.storage.warehouse import FORMAT

SUBJECT = "warehouse"
_RESTORE = "Read an older version, or restore the warehouse from a copy"


def check_warehouse(path: str) -> Iterator[Finding]:
    place = Path(path).expanduser().absolute()
    if not place.exists() or (place.is_dir() and not any(place.iterdir())):
        yield Finding(SUBJECT, State.OK, f"none yet at {place}; the first array makes it")
        return
    try:
        database = _connect(path)
    except Exception as error:
        yield _failure("does not open", error, "Check the path given as --db")
        return
    with database:
        try:
            yield Finding(SUBJECT, State.OK, f"{place} opens, format {database.catalog.setting('format')} of {FORMAT}")
            yield from _check_arrays(database)
            yield from _check_folders(database)
            yield from _check_locks(database)
        except Exception as error:
            yield _failure("the catalog cannot be read", error, _RESTORE)


def _connect(path: str) -> Database:
    """A catalog elsewhere is named where the console finds it too: in the environment."""
    return connect(path, engine="local", create=False, catalog=os.environ.get("WINDROW_CATALOG") or None)


def repair_warehouse(path: str) -> Iterator[Finding]:
    """Make lost branches of dense arrays anew, and mend what an earlier windrow stored wrongly, in new versions."""
    try:
        database = _connect(path)
    except Exception:  # the check that follows says so
        return
    with database:
        for array in database.arrays():
            try:
                remade, mended = _mend_branch(database, array), _mend(database, array)
            except Exception as error:
                yield _failure(f"{array.name}: it cannot be mended", error, _RESTORE)
                continue
            if remade:
                yield Finding(SUBJECT, State.OK, f"{array.name}: the branch of its store was {remade} and is made anew")
            if mended:
                ordered = f"the slices of {', '.join(mended)} were put in order; it is version {array.version} now"
                yield Finding(SUBJECT, State.OK, f"{array.name}: {ordered}")


def _mend_branch(database: Database, array: Array) -> str | None:
    """What was wrong with the branch of a dense array's store: whoever begins to write makes it anew."""
    damage = _lost_branch(array)
    if damage is not None:
        with database.batch() as batch:
            batch._working(array.name)
    return damage


def _lost_branch(array: Array) -> str | None:
    """What is wrong with the branch of a dense array's store, although the snapshot is there that it should name."""
    place = array.location()
    return branch_damage(place.path) if not array.sparse and has_snapshot(place.path, place.version) else None


def _mend(database: Database, array: Array) -> list[str]:
    """The dimensions whose slices were put in order."""
    if not _disordered(array):
        return []
    with database.batch() as batch:
        working = batch._working(array.name)
        assert working is not None
        mended = put_in_order(database.engine, working)
        batch._done(working, "repair")
    return mended


def _disordered(array: Array) -> list[str]:
    """The growing dimensions whose slices are not in the order of their labels."""
    if array.sparse:
        return []
    names = [array.schema.dimension_names[axis] for axis in array.schema.growing]
    labels = array.labels
    return [name for name in names if name in labels and is_disordered(labels[name])]


def _failure(what: str, error: Exception, mend: str) -> Finding:
    lines = str(error).splitlines() or [type(error).__name__]
    if isinstance(error, Error):
        lines = [error.what if error.got is None else f"{error.what}, got {error.got}"]
        mend = error.hint or mend
    return Finding(SUBJECT, State.PROBLEM, f"{what}: {lines[0][:300]}", mend)


def _check_arrays(database: Database) -> Iterator[Finding]:
    arrays = database.arrays()
    behind = 0
    for array in arrays:
        findings = list(_check_array(array))
        behind += bool(findings)
        yield from findings
    sound = len(arrays) - behind
    yield Finding(SUBJECT, State.OK, f"{counted(len(arrays), 'array')}, {sound} with store and catalog in step")


def _check_array(array: Array) -> Iterator[Finding]:
    """Nothing if the newest version is there and its store has nothing beyond it."""
    path = array.location().path
    published = array.location().version
    if not Path(path).is_dir():
        yield Finding(SUBJECT, State.PROBLEM, f"{array.name}: its folder {path} is gone", _RESTORE)
        return
    try:
        lost = _lost_branch(array)  # before anything is read: a reader makes it anew
        if lost is not None:
            mend = "Nothing is lost; the next read or write makes it anew, and so does: windrow doctor --repair"
            yield Finding(SUBJECT, State.WARNING, f"{array.name}: the branch of its store is {lost}", mend)
            return
        missing = _missing(array)
        if array.sparse:
            DeltaLog(path).check(int(published))
        head = _sparse_head(path) if array.sparse else DenseStore(path).head()
    except Exception as error:
        yield _failure(f"{array.name}: its store cannot be read", error, _RESTORE)
        return
    if missing:
        text = f"{array.name}: {counted(len(missing), 'file')} of its newest version gone or cut short: {missing[0]}"
        yield Finding(SUBJECT, State.PROBLEM, text, _RESTORE)
    for name in _disordered(array):
        text = f"{array.name}: slices of {name} are out of order or twice there, left so by an earlier windrow"
        yield Finding(SUBJECT, State.WARNING, text, "Run: windrow doctor --repair")
    if head != published:
        text = f"{array.name}: its store is at {head}, the catalog at {published}; a writer is busy, or did not finish"
        yield Finding(SUBJECT, State.WARNING, text, "Nothing is lost; the next write or collect-garbage puts it right")


def _missing(array: Array) -> list[str]:
    """Files of the newest version that are not as the catalog knows them."""
    array, _lease = array._held()
    snapshot = array._snapshot()
    if isinstance(snapshot, DenseSnapshot):
        open_store(snapshot.path, snapshot.pointer)
        return []
    found = []
    for part in snapshot.parts:
        file = Path(snapshot.path, part.path)
        if not file.is_file() or file.stat().st_size != part.bytes:
            found.append(part.path)
    vectors = {part.vector.file for part in snapshot.parts if part.vector is not None}
    found += sorted(name for name in vectors if not Path(snapshot.path, name).is_file())
    return found


def _sparse_head(path: str) -> str:
    """The newest entry of the table's log, whose files are named by their version."""
    numbers = [int(entry.stem) for entry in Path(path, "_delta_log").glob("*.json") if entry.stem.isdigit()]
    return str(max(numbers, default=-1))


def _check_folders(database: Database) -> Iterator[Finding]:
    catalog, warehouse = database.catalog, database.warehouse
    trash = set(catalog.trash())
    known = {catalog.array(name).directory for name in catalog.array_names()}
    orphans = set(warehouse.store_directories()) - known - trash
    if trash:
        text = f"{counted(len(trash), 'dropped array')} not yet removed from disk"
        yield Finding(SUBJECT, State.WARNING, text, "Run: windrow collect-garbage")
    if orphans:
        text = f"{counted(len(orphans), 'folder')} that no array claims, such as {min(orphans)}"
        mend = "Left by a creation that did not finish; windrow collect-garbage removes it after an hour"
        yield Finding(SUBJECT, State.WARNING, text, mend)


def _check_locks(database: Database) -> Iterator[Finding]:
    names = {array._record().id: array.name for array in database.arrays()}
    with database.catalog.reading() as connection:
        held = connection.execute(tables.locks.select()).all()
    for lock in held:
        gone = "an array that is being made" if lock.array_id < 0 else f"array {lock.array_id}, since dropped,"
        name = names.get(lock.array_id, gone)
        holder = f"process {lock.process} on {lock.host}"
        if is_alive(lock.host, lock.process, lock.process_started, lock.heartbeat):
            yield Finding(SUBJECT, State.OK, f"{name} is being written by {holder}")
        else:
            mend = "The next writer passes it over; nothing needs to be done"
            yield Finding(SUBJECT, State.WARNING, f"{name} has a lock of {holder}, which is gone", mend)
