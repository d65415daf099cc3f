"""Checksums of what the stores leave unchecked.

Chunks and Parquet pages carry their own. The files that say where those are (Icechunk's snapshots and manifests, a
part's footer) do not: a flipped bit there would give other cells, or none, without a word, so the catalog keeps
checksums of them.
"""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from collections.abc import Sequence
from typing import Any

import icechunk
from zarr.core.buffer import default_buffer_prototype
from zarr.core.sync import sync

_TRAILER = 8
"""A Parquet file ends in its footer, the footer's length in four bytes, and the four bytes "PAR1"."""


def snapshot_checksum(repository: icechunk.Repository, path: str, pointer: str) -> str:
    """A digest of everything that decides which chunk is read for which cell.

    Taken of a snapshot's content and not of its file, which a garbage collection rewrites to name another parent.
    """
    content = json.loads(repository.inspect_snapshot(pointer))
    store = repository.readonly_session(snapshot_id=pointer).store
    digest = hashlib.blake2b(digest_size=16)
    nodes = sorted(content["nodes"], key=lambda node: str(node["path"]))
    documents = sync(_zarr_metadata(store, [node["path"] for node in nodes]))
    for node, document in zip(nodes, documents, strict=True):
        digest.update(json.dumps(node, sort_keys=True).encode())
        digest.update(document)
    for manifest in sorted(content["manifests"], key=lambda manifest: str(manifest["id"])):
        digest.update(json.dumps(manifest, sort_keys=True).encode())
        with open(os.path.join(path, "manifests", manifest["id"]), "rb") as file:
            digest.update(file.read())
    return digest.hexdigest()


async def _zarr_metadata(store: Any, nodes: Sequence[str]) -> list[bytes]:
    """The documents that describe Zarr's groups and arrays, in one turn of Zarr's event loop."""
    found = [await store.get(f"{node}/zarr.json".lstrip("/"), default_buffer_prototype()) for node in nodes]
    return [b"" if document is None else bytes(document.to_bytes()) for document in found]


def footer_checksum(path: str) -> int:
    """The CRC-32 of a Parquet file's footer; a file too short to have one is an OSError."""
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        if size < _TRAILER:
            raise OSError(f"a file of {size} bytes has no footer")
        file.seek(size - _TRAILER)
        length = int.from_bytes(file.read(4), "little") + _TRAILER
        if length > size:
            raise OSError(f"a footer of {length} bytes does not fit a file of {size}")
        file.seek(size - length)
        return zlib.crc32(file.read(length))
