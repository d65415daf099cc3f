"""Which of Zarr's codecs windrow lets decode a file from somebody else.

A Zarr array names the codecs that decode it, and whatever is installed under that name runs: ``pickle`` runs any code
that the file holds. So only codecs that turn bytes into bytes or numbers are let through, by name, before Zarr sees the
file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

from windrow.errors import FileFormatError

_NUMCODECS = {
    "adler32", "astype", "base64", "bitround", "blosc", "bz2", "categorize", "crc32", "crc32c", "delta",
    "fixedscaleoffset", "fletcher32", "gzip", "jenkins_lookup3", "lz4", "lzma", "packbits", "quantize", "shuffle",
    "zlib", "zstd",
}  # fmt: skip
_VERSION_2 = _NUMCODECS | {"json2", "vlen-array", "vlen-bytes", "vlen-utf8"}
_VERSION_3 = {
    "blosc", "bytes", "crc32c", "endian", "gzip", "sharding_indexed", "transpose", "vlen-bytes", "vlen-utf8", "zstd"
}  # fmt: skip
ALLOWED = _VERSION_2 | _VERSION_3 | {f"numcodecs.{name}" for name in _NUMCODECS}

_DOCUMENTS = ("zarr.json", ".zarray", ".zmetadata")
_CODECS = ("codecs", "index_codecs", "filters", "compressor", "compressors", "serializer")
_LARGEST_DOCUMENT = 64 * 2**20


def check_codecs(path: str) -> None:
    """Refuse a Zarr group that names a codec which is not known to be harmless, also inside shards."""
    for folder in [path, *_folders(path)]:
        for name in _DOCUMENTS:
            document = os.path.join(folder, name)
            if os.path.isfile(document):
                for codec in _codecs_in(_read(document)):
                    _check(codec, document)


def _folders(path: str) -> list[str]:
    with os.scandir(path) as entries:
        return sorted(entry.path for entry in entries if entry.is_dir())


def _read(document: str) -> Any:
    if os.path.getsize(document) > _LARGEST_DOCUMENT:
        raise FileFormatError("Zarr's metadata is too large", got=f"{os.path.getsize(document):,} bytes in {document}")
    try:
        with open(document, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError, RecursionError) as error:
        raise FileFormatError(f"cannot read {document}", got=str(error)[:200]) from error


def _codecs_in(content: Any) -> Iterator[Any]:
    """Whatever stands where Zarr looks for codecs, at any depth; attributes are the user's own."""
    if isinstance(content, list):
        for item in content:
            yield from _codecs_in(item)
    elif isinstance(content, dict):
        for key, value in content.items():
            if key in _CODECS:
                yield from value if isinstance(value, list) else [value]
            if key not in ("attributes", ".zattrs"):
                yield from _codecs_in(value)


def _check(codec: Any, document: str) -> None:
    if codec is None:
        return
    # Versions 2 and 3 look under different keys: both must be harmless.
    names = [codec[key] for key in ("id", "name") if key in codec] if isinstance(codec, dict) else [codec]
    for name in names or [codec]:
        if not isinstance(name, str) or name not in ALLOWED:
            raise FileFormatError(
                f"{document} names a codec that windrow does not run",
                got=repr(name)[:100],
                hint=f"Rewrite the data with one of {', '.join(sorted(_VERSION_3))}",
            )
