"""The Delta log of a sparse array, which says to everybody else what the catalog says to windrow.

Entries are windrow's own, because deltalake cannot write vectors: a temporary file, linked to its number, so that there
is never half an entry and never two of one number. Checkpoints and restoring are deltalake's.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import pyarrow as pa

from windrow.errors import ConflictError, CorruptionError
from windrow.model.schema import CHUNK_COLUMN, Schema
from windrow.storage.cells import stored_fields
from windrow.storage.delta.vectors import describe_for_log
from windrow.storage.places import place_inside
from windrow.storage.records import Part
from windrow.storage.runtimes import use_runtime

if TYPE_CHECKING:
    from deltalake import DeltaTable

PACKAGE = "deltalake"
CHECKPOINT_ENTRIES = 50
FEW_ENTRIES = 20
"""Fewer old entries take less than the checkpoint that would have to stand for them."""
_LOG = "_delta_log"
_ENDS = 16
"""Bytes at the end of an entry in which it is seen whether it was cut short; behind it there may be spaces."""
_HINT = "Restore the warehouse from a copy"
_WITH_VECTORS = {
    "minReaderVersion": 3,
    "minWriterVersion": 7,
    "readerFeatures": ["deletionVectors"],
    "writerFeatures": ["deletionVectors", "appendOnly", "invariants"],
}
"""What readers need to know of a table with vectors; tables that have none keep the protocol they were made with."""


@dataclass(frozen=True)
class Entry:
    """What one log entry says: parts that come, parts that go, each with the vector that it has or had."""

    added: Sequence[Part]
    removed: Sequence[Part]
    message: str
    raises_protocol: bool = False
    reshapes: bool = False
    """Whether rows have other columns from here on."""


class DeltaLog:
    """The log in one array's folder. Whoever writes it holds the array's lock."""

    def __init__(self, path: str) -> None:
        self.path = path

    @property
    def _folder(self) -> Path:
        return Path(place_inside(self.path, _LOG))

    def _entry(self, number: int) -> Path:
        return self._folder / f"{number:020}.json"

    def open(self, version: int | None = None) -> DeltaTable:
        from deltalake import DeltaTable  # here, because only writers of sparse arrays need it

        use_runtime(PACKAGE)
        place_inside(self.path, _LOG)
        return DeltaTable(self.path, version=version)

    def recover(self, published: int) -> int:
        """Make the log's head say what the published version says: a writer that died may have left it ahead.

        Returns the entry to build on.
        """
        head = self._head(published)
        if head < published:
            raise CorruptionError(
                f"the log of the array's store {self.path} lacks its last entries",
                got=f"version {head} instead of {published}",
                hint=_HINT,
            )
        self.check(published)
        if head > published:
            self.open().restore(published)
            return self._head(head)
        if published - self._last_checkpoint() >= CHECKPOINT_ENTRIES:
            # Of a published version only: what a checkpoint says cannot be taken back by restoring.
            self.open(published).create_checkpoint()
        return published

    def append(self, schema: Schema, after: int, entry: Entry) -> int:
        """Write the entry that follows ``after``; returns its number."""
        number = after + 1
        actions = [*_actions(schema, entry), *([self._columns(schema, after)] if entry.reshapes else [])]
        lines = "\n".join(map(json.dumps, actions))
        temporary = self._folder / f".{uuid.uuid4().hex}.json.tmp"
        try:
            with open(temporary, "x", encoding="utf-8") as file:
                file.write(lines)
            os.link(temporary, self._entry(number))
        except FileExistsError:
            raise ConflictError(
                f"another writer put an entry into the log of the array's store {self.path}",
                got=f"entry {number}",
                hint="Write again; nothing but windrow may write into its tables",
            ) from None
        finally:
            temporary.unlink(missing_ok=True)
        return number

    def _columns(self, schema: Schema, after: int) -> dict[str, Any]:
        """The action that gives the table the columns of a schema; all else that is known of it stays."""
        from deltalake import Schema as DeltaSchema

        known = self.open(after).metadata()
        return {
            "metaData": {
                "id": str(known.id),
                "name": known.name,
                "format": {"provider": "parquet", "options": {}},
                "schemaString": DeltaSchema.from_arrow(stored_fields(schema)).to_json(),
                "partitionColumns": [],
                "configuration": known.configuration,
                "createdTime": known.created_time,
            }
        }

    def _head(self, known: int) -> int:
        """The log's last version, looked for from a known one on: opening the table again would list all its parts."""
        if not self._entry(known).exists():
            return self.open().version()
        while self._entry(known + 1).exists():
            known += 1
        return known

    def check(self, published: int) -> None:
        """Refuse to build on a log that readers outside could not read.

        They need every entry since the last checkpoint, which are few. The newest is read, for it may have been cut
        short by whatever ended the last writer; of the others it is seen whether they are there and whole.
        """
        for number in range(published, -1, -1):
            if self._has_checkpoint(number):
                return
            if not self._entry(number).exists():
                raise self._damaged(number, "no such file")
            try:
                with open(self._entry(number), "rb") as file:
                    sound = _has_actions(file) if number == published else _looks_whole(file)
            except (ValueError, OSError) as error:
                raise self._damaged(number, error) from error
            if not sound:
                raise self._damaged(number, "no actions")

    def _has_checkpoint(self, number: int) -> bool:
        try:
            return self._checkpoint(number).stat().st_size > 0
        except OSError:
            return False

    def _checkpoint(self, number: int) -> Path:
        return self._folder / f"{number:020}.checkpoint.parquet"

    def _damaged(self, number: int, what: object) -> CorruptionError:
        where = f"entry {number} of the log of the array's store {self.path}"
        return CorruptionError(f"{where} is damaged", got=str(what)[:200], hint=_HINT)

    def _last_checkpoint(self) -> int:
        try:
            return int(json.loads((self._folder / "_last_checkpoint").read_text())["version"])
        except (OSError, ValueError, KeyError, TypeError):
            return 0

    def collect(self, oldest: int) -> int:
        """Remove what no version from ``oldest`` on needs; returns the bytes freed."""
        folder = self._folder
        freed = _remove(folder.glob(".*.json.tmp"))
        before = [file for file in folder.iterdir() if (number := _number(file)) is not None and number < oldest]
        entries = sum(file.suffix == ".json" for file in before)
        checkpoint = self._checkpoint(oldest)
        if entries >= FEW_ENTRIES or (entries and checkpoint.exists()):
            if not checkpoint.exists():
                self.open(oldest).create_checkpoint()
            self._forget_gone(checkpoint)
            freed += _remove(before)
        return freed

    def _forget_gone(self, checkpoint: Path) -> None:
        """Leave the parts out of a checkpoint that were removed from the table and are removed from disk too.

        They would be carried on for as long as Delta's own clean-up must not take what the catalog offers.
        """
        import pyarrow.parquet as pq

        table = pq.read_table(checkpoint)
        there = set(os.listdir(self.path))
        paths = pa.compute.struct_field(table.column("remove").combine_chunks(), "path").to_pylist()
        kept = np.array([path is None or path in there for path in paths], bool)
        if not kept.all():
            temporary = checkpoint.with_name(f".{uuid.uuid4().hex}.json.tmp")
            pq.write_table(table.filter(pa.array(kept)), temporary)
            temporary.replace(checkpoint)
            self._note_checkpoint(checkpoint, int(kept.sum()))

    def _note_checkpoint(self, checkpoint: Path, rows: int) -> None:
        """Let the note of the last checkpoint say what it has now, if it is this one."""
        note = self._folder / "_last_checkpoint"
        with suppress(OSError, ValueError):
            known = json.loads(note.read_text())
            if known["version"] == _number(checkpoint):
                temporary = self._folder / f".{uuid.uuid4().hex}.json.tmp"
                changed = {"version": known["version"], "size": rows, "sizeInBytes": checkpoint.stat().st_size}
                temporary.write_text(json.dumps(changed))
                temporary.replace(note)


def _number(file: Path) -> int | None:
    """The version that a file of the log is about."""
    stem = file.name.partition(".")[0]
    return int(stem) if stem.isdigit() and len(stem) == 20 else None


def _has_actions(file: BinaryIO) -> bool:
    lines = [json.loads(line) for line in file.read().splitlines()]
    return bool(lines) and all(isinstance(line, dict) for line in lines)


def _looks_whole(file: BinaryIO) -> bool:
    """The same by the first and the last byte alone."""
    begin = file.read(1)
    file.seek(-min(_ENDS, os.fstat(file.fileno()).st_size), os.SEEK_END)
    return begin == b"{" and file.read().rstrip().endswith(b"}")


def _remove(files: Iterable[Path]) -> int:
    freed = 0
    for file in list(files):
        freed += file.lstat().st_size
        file.unlink()
    return freed


def _actions(schema: Schema, entry: Entry) -> Iterator[dict[str, Any]]:
    now = time.time_ns() // 1_000_000
    yield {
        "commitInfo": {
            "timestamp": now,
            "operation": "WRITE",
            "operationParameters": {"mode": "Append"},
            "windrow": entry.message,
        }
    }
    if entry.raises_protocol:
        yield {"protocol": _WITH_VECTORS}
    yield from ({"remove": _removal(part, now)} for part in entry.removed)
    yield from ({"add": _addition(part, schema, now)} for part in entry.added)


def _addition(part: Part, schema: Schema, now: int) -> dict[str, Any]:
    names = (CHUNK_COLUMN, *schema.dimension_names)
    statistics = {
        "numRecords": part.cells,
        "tightBounds": part.vector is None,
        "minValues": dict(zip(names, (part.first, *part.box.lo), strict=True)),
        "maxValues": dict(zip(names, (part.last, *part.box.hi), strict=True)),
        "nullCount": dict.fromkeys(names, 0),
    }
    added = {
        "path": part.path,
        "partitionValues": {},
        "size": part.bytes,
        "modificationTime": now,
        "dataChange": True,
        "stats": json.dumps(statistics),
    }
    return added if part.vector is None else added | {"deletionVector": describe_for_log(part.vector)}


def _removal(part: Part, now: int) -> dict[str, Any]:
    removed = {
        "path": part.path,
        "deletionTimestamp": now,
        "dataChange": True,
        "extendedFileMetadata": True,
        "partitionValues": {},
        "size": part.bytes,
    }
    return removed if part.vector is None else removed | {"deletionVector": describe_for_log(part.vector)}
