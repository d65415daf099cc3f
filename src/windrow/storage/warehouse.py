"""The warehouse directory: its marker, its catalog, and a folder for each array's store."""

from __future__ import annotations

import json
import os
import re
import shutil
import uuid
from pathlib import Path
from urllib.parse import quote

import sqlalchemy as sa

from windrow.errors import StoreError
from windrow.storage.catalog import Catalog
from windrow.storage.connection import open_engine
from windrow.storage.failures import store_failures

FORMAT = 1
"""The layout of a warehouse. A windrow that finds a larger number refuses to touch it."""

_MARKER = "windrow.json"


class Warehouse:
    """A directory that holds arrays, and the catalog that knows them."""

    def __init__(self, root: Path, catalog: Catalog) -> None:
        self.root = root
        self.catalog = catalog

    @classmethod
    def open(cls, path: str | os.PathLike[str], catalog_url: str | None = None, create: bool = True) -> Warehouse:
        """Open a warehouse, or make one where there is nothing yet."""
        root = Path(path).expanduser().absolute()
        if root.exists() and not root.is_dir():
            raise StoreError("a warehouse is a directory", got=f"a file: {root}")
        if re.search("%[0-9A-Fa-f]{2}", str(root)):  # the Delta reader would take it for an encoded character
            raise StoreError("a warehouse's path cannot hold a percent sign and two digits", got=str(root))
        marker = root / _MARKER
        if not marker.exists():
            _check_can_create(root, create)
            with store_failures(f"the warehouse {root}"):
                (root / "arrays").mkdir(parents=True, exist_ok=True)
                catalog = _catalog(root, catalog_url)
                catalog.create_tables({"format": str(FORMAT)})
                _check_format(catalog.setting("format"), root)
                _write_marker(marker, catalog_url)
            return cls(root, catalog)
        stated = _read_marker(marker)
        catalog = _catalog(root, catalog_url or stated.get("catalog"))
        _check_format(catalog.setting("format"), root)
        return cls(root, catalog)

    def new_directory(self, name: str) -> str:
        """A fresh folder for an array's store, unique even if the name is used again."""
        return f"arrays/{name}-{uuid.uuid4().hex[:12]}"

    def path(self, directory: str) -> str:
        return str(self.root / directory)

    def store_directories(self) -> list[str]:
        """All folders under arrays/, known to the catalog or not."""
        return sorted(f"arrays/{entry.name}" for entry in (self.root / "arrays").iterdir() if entry.is_dir())

    def remove(self, directory: str) -> int:
        """Delete a store folder; returns the bytes freed."""
        path = self.root / directory
        size = directory_bytes(path)
        shutil.rmtree(path, ignore_errors=False) if path.exists() else None
        return size

    def close(self) -> None:
        self.catalog.close()


def directory_bytes(path: Path) -> int:
    return sum(entry.stat().st_size for entry in path.rglob("*") if entry.is_file())


def _check_can_create(root: Path, create: bool) -> None:
    if root.exists() and any(root.iterdir()) and not _is_half_made(root):
        raise StoreError(
            "the directory is not a windrow warehouse", got=str(root), hint="Choose an empty or a new directory"
        )
    if not create:
        raise StoreError("there is no warehouse", got=str(root), hint="Check the path, or create an array there first")


def _is_half_made(root: Path) -> bool:
    """Whether a process died while making this warehouse: the marker is written last."""
    known = {"arrays", "catalog.sqlite", "catalog.sqlite-wal", "catalog.sqlite-shm", f"{_MARKER}.new"}
    return {entry.name for entry in root.iterdir()} <= known and not any((root / "arrays").glob("*"))


def _catalog(root: Path, url: str | None) -> Catalog:
    return Catalog(open_engine(url or _catalog_file(root / "catalog.sqlite")))


def _catalog_file(file: Path) -> sa.URL:
    log = file.with_name(f"{file.name}-wal")
    # SQLite writes a log beside its file even to read. Where it may not, it must be told that nobody else will write;
    # that is safe when no log was left behind.
    if file.exists() and not os.access(file.parent, os.W_OK) and not (log.exists() and log.stat().st_size):
        return sa.URL.create("sqlite", database=f"file:{quote(str(file))}", query={"immutable": "1", "uri": "true"})
    return sa.URL.create("sqlite", database=str(file))


def _write_marker(marker: Path, catalog_url: str | None) -> None:
    content: dict[str, object] = {"format": FORMAT}
    if catalog_url is not None:
        content["catalog"] = catalog_url
    temporary = marker.with_name(marker.name + ".new")
    temporary.write_text(json.dumps(content) + "\n")
    temporary.replace(marker)


def _read_marker(marker: Path) -> dict[str, str]:
    try:
        content = json.loads(marker.read_text())
        stated = content["format"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError("the warehouse's marker cannot be read", got=f"{marker}: {error}") from None
    _check_format(stated, marker.parent)
    return {key: value for key, value in content.items() if isinstance(value, str)}


def _check_format(stated: object, root: Path) -> None:
    try:
        number = int(str(stated))
    except ValueError:
        raise StoreError("the warehouse's format is not a number", got=f"{stated!r} in {root}") from None
    if number > FORMAT:
        raise StoreError(
            f"the warehouse {root} has a newer format than this windrow knows ({FORMAT})",
            got=number,
            hint="Upgrade windrow: pip install --upgrade windrow",
        )
