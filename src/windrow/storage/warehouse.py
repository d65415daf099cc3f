"""The warehouse directory: its marker, its catalog, and a folder for each array's store."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import sqlalchemy as sa

from windrow.errors import StoreError
from windrow.storage.catalog import Catalog
from windrow.storage.connection import open_engine
from windrow.storage.failures import store_failures
from windrow.storage.leases import Held, Lease, Leases
from windrow.storage.marker import read_marker, write_marker
from windrow.storage.places import check_directory, directory_bytes, place_inside
from windrow.storage.records import ArrayRecord, Versioned, VersionRecord
from windrow.storage.upkeep.migration import migrate

FORMAT = 2
"""The layout of a warehouse. A windrow that finds a larger number refuses to touch it."""

REMOVALS, REMOVAL_PAUSE = 40, 0.05
"""How often, and after how many seconds again, a folder is removed into which something is still being written."""

_MARKER = "windrow.json"


class Warehouse:
    """A directory that holds arrays, and the catalog that knows them."""

    def __init__(self, root: Path, catalog: Catalog) -> None:
        self.root = root
        self.catalog = catalog
        self.leases = Leases(catalog.engine)
        catalog.stores = root
        catalog.format = _check_format(catalog.setting("format"), root)
        catalog.look_for_views()

    @classmethod
    def open(cls, path: str | os.PathLike[str], catalog_url: str | None = None, create: bool = True) -> Warehouse:
        """Open a warehouse, or make one where there is nothing yet."""
        if re.match("[A-Za-z][A-Za-z0-9+.-]*://", os.fspath(path)):
            raise StoreError(
                "a warehouse is a directory, and not yet a place in an object store",
                got=os.fspath(path),
                hint="Give the path of a directory, which may lie on a file system that several machines share",
            )
        root = Path(path).expanduser().absolute()
        if root.exists() and not root.is_dir():
            raise StoreError("a warehouse is a directory", got=f"a file: {root}")
        if re.search("%[0-9A-Fa-f]{2}", str(root)):  # the Delta reader would take it for an encoded character
            raise StoreError("a warehouse's path cannot hold a percent sign and two digits", got=str(root))
        marker = root / _MARKER
        if not os.path.lexists(marker):
            _check_can_create(root, create)
            with store_failures(f"the warehouse {root}"), _made_folders(root / "arrays"):
                catalog = _catalog(root, catalog_url)
                catalog.create_tables({"format": str(FORMAT)})
                write_marker(marker, FORMAT, catalog_url)
            return cls(root, catalog)
        stated = read_marker(marker)
        number = _check_format(stated.format, root)
        if catalog_url is None and stated.catalog is not None:
            raise StoreError(
                f"the catalog of the warehouse {root} is kept elsewhere",
                got=stated.catalog,
                hint="Say where, as in connect(path, catalog=…): windrow opens nothing that only a marker names",
            )
        catalog = _catalog(root, catalog_url)
        _migrate(catalog, root)
        opened = cls(root, catalog)
        if number != str(FORMAT) or (catalog_url is not None and stated.is_old):
            with contextlib.suppress(OSError):  # a warehouse that may only be read stays as it is
                write_marker(marker, FORMAT, catalog_url)
        return opened

    def new_directory(self, name: str) -> str:
        """A fresh folder for an array's store, unique even if the name is used again."""
        return f"arrays/{name}-{uuid.uuid4().hex[:12]}"

    def path(self, directory: str) -> str:
        """Where an array's store is, which lies inside the warehouse whatever the catalog says."""
        return place_inside(self.root, check_directory(directory))

    def store_directories(self) -> list[str]:
        """All folders under arrays/, known to the catalog or not; links are not ours to follow or to remove."""
        with os.scandir(place_inside(self.root, "arrays")) as entries:
            return sorted(f"arrays/{entry.name}" for entry in entries if entry.is_dir(follow_symlinks=False))

    def idle_seconds(self, directory: str) -> float:
        """For how long nothing was written into a store folder: a folder's own time is not that of its files."""
        path = self.path(directory)
        times = [os.stat(path).st_mtime]
        for folder, _, files in os.walk(path):
            # A file may be gone again: whoever writes here is at work.
            with suppress(FileNotFoundError):
                times += [os.stat(os.path.join(folder, name)).st_mtime for name in (*files, ".")]
        return time.time() - max(times)

    def remove(self, directory: str) -> int:
        """Delete a store folder; returns the bytes freed."""
        size = directory_bytes(self.path(directory))
        path = self.path(directory)  # looked at again: counting takes a while, and what is removed does not come back
        with store_failures(f"the folder {path}"):
            _remove_tree(path)
        return size

    def hold(self, versions: Iterable[Versioned]) -> Lease:
        """A lease on versions that are to be read, which are still offered now that they are held."""
        wanted = tuple(versions)

        def check() -> None:
            self.check_offered(wanted)

        try:
            lease = Lease(self.leases.hold([_held(*version) for version in wanted]), check, wanted)
        except StoreError:  # nothing can be written here, or the disk is full; that must not keep anybody from reading
            lease = Lease(check=check, versions=wanted)
        try:
            check()
        except BaseException:
            lease.release()
            raise
        return lease

    def promise(self, versions: Iterable[Versioned]) -> None:
        """Keep versions that are held now for a stated time: for processes that hold no lease."""
        with suppress(StoreError):  # as in ``hold``
            self.leases.promise([_held(*version) for version in versions])

    def check_offered(self, versions: Iterable[Versioned]) -> None:
        """Refuse versions that were given up, or whose array was dropped."""
        for record, version in versions:
            self.catalog.check_offered(record, version)

    def discard(self, directory: str) -> int:
        """Delete the folder of a dropped array, now or, if it is still being read, at a later collection."""
        self.leases.forget_idle()
        if any(held.directory == directory for held in self.leases.alive()):
            return 0
        freed = self.remove(directory)
        self.catalog.empty_trash(directory)
        return freed

    def close(self) -> None:
        self.leases.close()
        self.catalog.close()


def _remove_tree(path: str) -> None:
    """Remove a folder, also while chunks of a write that failed are still on their way into it.

    Zarr reports the first chunk that cannot be written, and lets those go on that it has begun.
    """
    for _ in range(REMOVALS):
        try:
            if os.path.lexists(path):
                shutil.rmtree(path)  # which follows no links
            return
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.ENOENT):
                raise
            time.sleep(REMOVAL_PAUSE)
    shutil.rmtree(path)


def _held(record: ArrayRecord, version: VersionRecord) -> Held:
    created = int(version.created.timestamp() * 1_000_000)
    return Held(version.array_id, version.number, record.directory, version.pointer, created)


def _check_can_create(root: Path, create: bool) -> None:
    if root.exists() and any(root.iterdir()) and not _is_half_made(root):
        raise StoreError(
            "the directory is not a windrow warehouse", got=str(root), hint="Choose an empty or a new directory"
        )
    if not create:
        raise StoreError("there is no warehouse", got=str(root), hint="Check the path, or create an array there first")


@contextlib.contextmanager
def _made_folders(path: Path) -> Iterator[None]:
    """Make a folder and those around it; those that were not there go again if what follows fails."""
    new = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        with contextlib.suppress(OSError):  # somebody may have put something there
            for folder in new:
                folder.rmdir()
        raise


def _is_half_made(root: Path) -> bool:
    """Whether a process died while making this warehouse: the marker is written last."""
    known = {"arrays", "catalog.sqlite", "catalog.sqlite-wal", "catalog.sqlite-shm", f"{_MARKER}.new"}
    return {entry.name for entry in root.iterdir()} <= known and not any((root / "arrays").glob("*"))


def _catalog(root: Path, url: str | None) -> Catalog:
    return Catalog(open_engine(url or _catalog_file(root)))


def _migrate(catalog: Catalog, root: Path) -> None:
    """Bring a catalog of an earlier format to this one: a moment's work, in which no cell is touched."""
    if int(_check_format(catalog.setting("format"), root)) < FORMAT:
        try:
            migrate(catalog)
        except StoreError as error:
            raise StoreError(
                f"the warehouse {root} has the format of an earlier windrow, and cannot be brought to format {FORMAT}",
                got=str(error),
                hint="Open it once where it may be written",
            ) from error


def _catalog_file(root: Path) -> sa.URL:
    file, log, _ = (Path(place_inside(root, f"catalog.sqlite{suffix}")) for suffix in ("", "-wal", "-shm"))
    # SQLite writes a log beside its file even to read. Where it may not, it must be told that nobody else will write;
    # that is safe when no log was left behind.
    if file.exists() and not os.access(file.parent, os.W_OK) and not (log.exists() and log.stat().st_size):
        return sa.URL.create("sqlite", database=f"file:{quote(str(file))}", query={"immutable": "1", "uri": "true"})
    return sa.URL.create("sqlite", database=str(file))


def _check_format(stated: object, root: Path) -> str:
    try:
        number = int(str(stated))
    except ValueError:
        raise StoreError("the warehouse's format is not a number", got=f"{stated!r} in {root}") from None
    if number < 1:
        what = f"the warehouse {root} has a format that no windrow ever wrote"
        raise StoreError(what, got=number, hint="Restore its marker, windrow.json, from a copy")
    if number > FORMAT:
        raise StoreError(
            f"the warehouse {root} has a newer format than this windrow knows ({FORMAT})",
            got=number,
            hint="Upgrade windrow: pip install --upgrade windrow",
        )
    return str(stated)
