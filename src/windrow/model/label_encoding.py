"""Coordinate labels as bytes: compressed, with a checksum, the same for equal labels."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.errors import CorruptionError, DataError, StoreError
from windrow.model.label_values import DATETIME, text_array

_MAGIC = b"wlab"
_FORMAT = 1
_HEADER = struct.Struct("<4sBcI")  # magic, format, kind of the dtype, CRC-32 of the body
_DTYPES: dict[bytes, np.dtype[Any]] = {b"i": np.dtype("<i8"), b"f": np.dtype("<f8"), b"M": np.dtype("<i8")}


def encode(values: npt.NDArray[Any], attributes: Mapping[str, str]) -> bytes:
    """Labels in normal form and their attributes as bytes, the same for equal ones."""
    code = values.dtype.kind.encode()
    described = json.dumps(dict(attributes), sort_keys=True).encode()
    if code == b"T":
        texts = [text.encode() for text in values.tolist()]
        content = np.array([len(text) for text in texts], "<u4").tobytes() + b"".join(texts)
    elif code == b"f":
        content = _shuffle(values.astype("<f8"))
    else:
        whole = values.view(np.int64).astype("<i8")
        content = _shuffle(np.diff(whole, prepend=np.int64(0)))  # equal steps become equal numbers
    body = zlib.compress(struct.pack("<IQ", len(described), len(values)) + described + content, 6)
    return _HEADER.pack(_MAGIC, _FORMAT, code, _checksum(code, body)) + body


def _checksum(code: bytes, body: bytes) -> int:
    return zlib.crc32(body, zlib.crc32(code))


def _shuffle(values: npt.NDArray[Any]) -> bytes:
    """First bytes first, second bytes second, …: neighbours are alike, which compresses."""
    return values.view(np.uint8).reshape(-1, 8).T.tobytes()


def decode(data: bytes) -> tuple[npt.NDArray[Any], dict[str, str]]:
    """The labels and attributes that ``encode`` was given."""
    try:
        magic, version, code, checksum = _HEADER.unpack_from(data)
        body = bytes(data[_HEADER.size :])
        if magic == _MAGIC and version > _FORMAT:
            raise StoreError("the labels are of a newer format", got=version, hint="Use a newer windrow")
        if magic != _MAGIC or version != _FORMAT or checksum != _checksum(code, body):
            raise CorruptionError("the stored labels are damaged")
        content = zlib.decompress(body)
        size, count = struct.unpack_from("<IQ", content)
        return _decoded_values(code, content[12 + size :], count), dict(json.loads(content[12 : 12 + size]))
    except (ValueError, KeyError, TypeError, struct.error, zlib.error, DataError) as error:
        raise CorruptionError("the stored labels are damaged", got=f"{len(data)} bytes") from error


def _decoded_values(code: bytes, content: bytes, count: int) -> npt.NDArray[Any]:
    if code == b"T":
        ends = np.cumsum(np.frombuffer(content, "<u4", count), dtype=np.int64)
        texts = content[4 * count :]
        starts = np.concatenate([[0], ends])
        if len(texts) != starts[-1]:
            raise ValueError("wrong length")
        return text_array([texts[a:b].decode() for a, b in zip(starts, ends, strict=False)])
    raw = np.frombuffer(content, np.uint8).reshape(8, count).T.copy().view(_DTYPES[code]).reshape(count)
    if code == b"f":
        return raw.astype(np.float64)
    whole = np.cumsum(raw.astype(np.int64), dtype=np.int64)
    return whole.view(DATETIME) if code == b"M" else whole
