"""Transactions: arrays made, changed and dropped, which become visible together, or not at all.

A transaction locks each array it touches, brings its store back to the published version, and hands out a
*working array*: the state that the next change builds on. Stores are committed as changes are made; nobody sees it,
because readers follow the catalog, and the catalog moves only in ``publish``. A new array is a folder and a lock on
its name until then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from windrow.errors import ConflictError, SchemaError, StoreError, UnknownNameError
from windrow.model.labels import Labels
from windrow.model.schema import Schema
from windrow.storage.catalog import Catalog
from windrow.storage.dense.store import DenseStore
from windrow.storage.homes import NewHomes
from windrow.storage.locks import ArrayLock, HeldHereError, name_key
from windrow.storage.publishing import NewArray, News
from windrow.storage.records import (
    ArrayRecord,
    VersionRecord,
)
from windrow.storage.sparse import SparseStore
from windrow.storage.upkeep.sealing import seal
from windrow.storage.view_rows import ViewChange, ViewRecord, component_of
from windrow.storage.warehouse import Warehouse
from windrow.storage.working import WorkingArray, dense_snapshot


class Transaction:
    """A set of working arrays, made, changed or dropped together."""

    def __init__(self, warehouse: Warehouse, lock_timeout: float, batch: str | None = None) -> None:
        self.warehouse = warehouse
        self.batch = batch
        self._lock_timeout = lock_timeout
        self._locks: dict[int, tuple[ArrayLock, str]] = {}
        self._working: dict[str, WorkingArray] = {}
        self._dropped: dict[str, ArrayRecord] = {}
        self._views: list[ViewRecord] | None = None
        self.view_changes: dict[str, ViewChange] = {}
        """What publishing writes about views."""
        self.maintained: set[str] = set()
        """The views that follow what is done to other arrays: a batch is not known by them."""
        self.homes: dict[str, NewHomes] = {}
        """Where publishing says that chunks are at home."""
        self.rates: str | None = None
        """What nodes were measured to take, if they were."""

    @property
    def changed(self) -> dict[str, WorkingArray]:
        """The arrays to which something was done."""
        return {name: working for name, working in self._working.items() if working.changed}

    @property
    def catalog(self) -> Catalog:
        return self.warehouse.catalog

    def working(self, name: str) -> WorkingArray:
        """The array to change, locked and with its store at the published version."""
        if name not in self._working:
            self._check_not_dropped(name)
            found = self.catalog.current(name) if self._locks else None
            # Nobody makes or drops a view, or an array, under a lock that is held.
            if found is None or component_of(found[0].id, self.views()) not in self._locks:
                self._lock_array(name)
                found = self.catalog.current(name)
            self._working[name] = self._open(*found)
        return self._working[name]

    def known(self, name: str) -> WorkingArray | None:
        """The array as it stands in here, if anything was done to it."""
        if name not in self._working:
            self._check_not_dropped(name)
        return self._working.get(name)

    def claim(self, name: str) -> bool:
        """Whether there is no array of that name, and nobody but this transaction can make one."""
        if name in self._working:
            return False
        if name not in self._dropped and name in self.catalog.array_names():
            return False
        self._take(name_key(name), name)
        if name in self._dropped or name not in self.catalog.array_names():
            return True
        self._give_back(name_key(name))  # somebody made it while we waited
        return False

    def create(self, plan: ArrayRecord, schema: Schema, labels: Mapping[str, Labels]) -> WorkingArray:
        """A new array, which nobody sees before it is published, and of which nothing stays if it is not."""
        if not self.claim(plan.name):
            raise SchemaError(
                "an array of that name exists", got=repr(plan.name), hint="Drop it, or choose another name"
            )
        hi = tuple(d.lo - 1 if d.hi is None else d.hi for d in schema.dimensions)
        path = self.warehouse.path(plan.directory)
        checksum, cells = "", 0
        try:
            if schema.sparse:
                pointer = SparseStore(path).create(schema, plan.name)
            else:
                store = DenseStore(path)
                pointer = store.create(schema, hi, labels, plan.metadata)
                checksum, cells = store.checksum(pointer), schema.box(hi).size
        except BaseException:
            self.warehouse.remove(plan.directory)
            raise
        base = VersionRecord(0, 0, pointer, schema, hi, "create", self.batch, datetime.now(UTC), cells, 0, checksum)
        working = WorkingArray(plan, base, path, pointer, schema, hi, dict(labels), made=NewArray(plan, base, labels))
        self._working[plan.name] = working
        return working

    def drop(self, name: str) -> ArrayRecord:
        """Let an array go when this is published; one that was made in here goes at once."""
        working = self._working.pop(name, None)
        if working is None:  # its store is not opened: an array that is damaged can be dropped too
            self._check_not_dropped(name)
            record = self._lock_array(name)
        else:
            record = working.record
        self.warehouse.path(record.directory)  # refused before the array is forgotten if it leads elsewhere
        if working is not None and working.made is not None:
            self.warehouse.remove(record.directory)
        else:
            self._dropped[name] = record
        self.view_changes.pop(name, None)
        self.maintained.discard(name)
        return record

    def revert(self, name: str) -> None:
        """Take back what was done to an array in here; one that was made in here is gone."""
        self.homes.pop(name, None)
        working = self._working.pop(name, None)
        if working is None:
            return
        if working.made is not None:
            self.warehouse.remove(working.record.directory)
        else:
            self._working[name] = self._open(*self.catalog.current(name))

    def is_dropped(self, name: str) -> bool:
        return name in self._dropped

    def is_made(self, name: str) -> bool:
        """Whether the array is one that was made in here."""
        working = self._working.get(name)
        return working is not None and working.made is not None

    def _check_not_dropped(self, name: str) -> None:
        if name in self._dropped:
            raise UnknownNameError("the array was dropped in this batch", got=repr(name), hint="Create it anew")

    def views(self) -> list[ViewRecord]:
        """All views, as the catalog knew them when arrays were last locked in here."""
        if self._views is None:
            self._views = self.catalog.views()
        return self._views

    def _lock_array(self, name: str) -> ArrayRecord:
        while True:
            record, key = self._find(name)
            taken = self._take(key, name)
            self._views = None  # there may be others than before the lock was ours
            with self.catalog.one_moment():
                unmoved = component_of(record.id, self.views()) == key
                unmoved = unmoved and self.catalog.array(name).id == record.id
            if unmoved:
                return record
            if taken:
                self._give_back(key)  # the array was dropped and made anew, or a view was, while we waited

    def _find(self, name: str) -> tuple[ArrayRecord, int]:
        """An array, and under which number it is locked."""
        with self.catalog.one_moment():
            record = self.catalog.array(name)
            return record, self.catalog.lock_key(record.id)

    def lock_all(self, names: Iterable[str]) -> None:
        """Lock several arrays, in the order in which everybody does."""
        records = [self.catalog.array(name) for name in names]
        for record in sorted(records, key=lambda one: self.catalog.lock_key(one.id)):
            self._lock_array(record.name)

    def _take(self, key: int, name: str) -> bool:
        """Take a lock, unless it is held in here already; whether it was taken now.

        Who holds a lock waits for those of larger numbers alone, so that two never wait for each other.
        """
        if key in self._locks:
            return False
        lock = ArrayLock(self.catalog, key)
        waits = key < 0 or key > max(self._locks, default=0)
        # Noted before it is taken: an interrupt in between must not leave a lock that nobody gives back.
        self._locks[key] = lock, name
        try:
            lock.acquire(name, self._lock_timeout if waits else 0.0)
        except ConflictError as error:
            self._give_back(key)
            if waits or self._lock_timeout == 0 or isinstance(error, HeldHereError):
                raise
            hint = f"Touch {name} before {', '.join(held for _, held in self._locks.values())}; nothing was changed"
            raise ConflictError(error.what, got=error.got, hint=hint) from None
        except BaseException:
            self._give_back(key)
            raise
        return True

    def _give_back(self, key: int) -> None:
        self._locks[key][0].release()
        del self._locks[key]

    def _open(self, record: ArrayRecord, version: VersionRecord) -> WorkingArray:
        with self.catalog.one_moment():
            labels = self.catalog.labels(version)
            parts = {part.path: part for part in self.catalog.parts(version)} if record.sparse else {}
        path = self.warehouse.path(record.directory)
        store = SparseStore(path) if record.sparse else DenseStore(path)
        pointer = store.recover(version.pointer)
        if not record.sparse:
            dense_snapshot(self.warehouse, record, version).check()
        return WorkingArray(
            record, version, path, pointer, version.schema, version.hi, labels,
            base_parts=parts, parts=dict(parts), catalog=self.catalog,
        )  # fmt: skip

    def publish(self) -> Mapping[str, VersionRecord]:
        """Make every change visible at once; returns the version at which each array is then."""
        locks = list(self._locks.values())
        with self.catalog.reading() as connection:  # before files are looked for that a collection may have taken
            for lock, name in locks:
                lock.check(connection, name)
        changed = self.changed
        homes = {name: new.at_steps(self._steps(name)) for name, new in self.homes.items()}  # sealing takes steps, too
        for working in changed.values():
            if working.record.sparse:
                seal(working)
            else:
                working.checksum = DenseStore(working.path).checksum(working.pointer)
        news = News(
            locks=locks,
            dropped=tuple(self._dropped.values()),
            created=[working.made for working in self._working.values() if working.made is not None],
            changed={name: working.change() for name, working in changed.items()},
            before={n: working.base.number for n, working in self._working.items() if n not in self.maintained},
            batch=self.batch,
            folders={name: working.record.directory for name, working in self._working.items()},
            views=tuple(self.view_changes.values()),
            maintained=frozenset(self.maintained),
            homes={name: new for name, new in homes.items() if name not in self._dropped},
            rates=self.rates,
        )
        published = self.catalog.publish(news)
        versions = {name: published.get(name, working.base) for name, working in self._working.items()}
        self._working = {name: working for name, working in self._working.items() if working.made is None}
        for record in self._dropped.values():
            self.warehouse.discard(record.directory)
        return versions

    def _steps(self, name: str) -> int:
        working = self._working.get(name)
        return 0 if working is None else working.steps

    @property
    def unchanged(self) -> tuple[str, ...]:
        """The arrays that publishing leaves at the version they have."""
        same = (name for name, working in self._working.items() if not working.changed and working.made is None)
        return tuple(name for name in same if name not in self.maintained)

    def close(self) -> None:
        """Give the locks back. What was not published is garbage that the next writer or a collection removes."""
        try:
            for directory in self._unpublished():
                self.warehouse.remove(directory)
        finally:
            self._working.clear()
            self._release_all()

    def _unpublished(self) -> set[str]:
        """The folders made in here that no array has.

        Ctrl-C, or a server that goes, may come right after the commit that published them: only the catalog knows. If
        it cannot be asked they stay, and a collection removes those that nobody claims.
        """
        made = {working.record.directory for working in self._working.values() if working.made is not None}
        if not made:
            return made
        try:
            return made - {record.directory for record in self.catalog.array_records()}
        except StoreError:
            return set()

    def _release_all(self) -> None:
        """Also if one of them cannot be given back, or somebody presses Ctrl-C meanwhile."""
        try:
            while self._locks:
                self._give_back(next(reversed(self._locks)))
        except BaseException:
            for lock, _ in self._locks.values():
                lock.abandon()
            raise

    def __enter__(self) -> Transaction:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
