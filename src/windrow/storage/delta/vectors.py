"""Deletion vectors: which rows of a part are dead, as Delta stores them.

A vector is a set of row numbers in portable 64-bit Roaring form behind a magic number. All vectors of a batch lie in
one file, each between its length and its CRC-32. Vectors never change, so those found whole are kept per process.
"""

from __future__ import annotations

import base64
import functools
import os
import struct
import uuid
import zlib
from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.storage.places import check_no_link
from windrow.storage.records import Vector

Rows = npt.NDArray[np.uint32]

VECTORS_KEPT = 512
"""How many vectors a process keeps as row numbers."""

_VERSION = b"\x01"
_MAGIC = 1681511377
_HEAD = struct.Struct("<IQI")  # the magic number, then one block of 2^32 rows, and its number
_SIZE = struct.Struct(">I")
_PREFIX, _SUFFIX = "deletion_vector_", ".bin"
_B85 = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_Z85 = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
NONE: Rows = np.empty(0, np.uint32)


def encode_rows(rows: npt.NDArray[Any]) -> Vector:
    """A vector of these row numbers that is in no file yet."""
    from pyroaring import BitMap

    found = BitMap(array("I", np.ascontiguousarray(rows, np.uint32).tobytes()))  # of a NumPy array it takes one by one
    found.run_optimize()
    return Vector(len(found), encoded=_HEAD.pack(_MAGIC, 1, 0) + found.serialize())


def decode_rows(encoded: bytes) -> Rows:
    """The row numbers of a vector, ascending; a ValueError if it is none."""
    from pyroaring import BitMap

    magic, blocks, number = _HEAD.unpack_from(encoded)
    if (magic, blocks, number) != (_MAGIC, 1, 0):
        raise ValueError("this is no vector of windrow's")
    rows: Rows = np.frombuffer(BitMap.deserialize(encoded[_HEAD.size :]).to_array(), np.uint32)
    rows.flags.writeable = False
    return rows


def write_vectors(directory: str, vectors: Sequence[Vector]) -> list[Vector]:
    """Write vectors into one file, and say where each is."""
    name = f"{_PREFIX}{uuid.uuid4()}{_SUFFIX}"
    written, start = [], len(_VERSION)
    path = os.path.join(directory, name)
    try:
        with open(path, "xb") as file:
            file.write(_VERSION)
            for vector in vectors:
                data = vector.encoded
                file.write(_SIZE.pack(len(data)) + data + _SIZE.pack(zlib.crc32(data)))
                written.append(Vector(vector.dead, name, start, len(data)))
                start += len(data) + 2 * _SIZE.size
    except BaseException:
        if os.path.lexists(path):
            os.unlink(path)
        raise
    return written


def read_rows(directory: str, vector: Vector | None) -> Rows:
    """The dead rows of a part, ascending; an OSError if the vector is not the one that was written."""
    if vector is None:
        return NONE
    if not vector.file:
        return _decode_checked(vector.encoded)
    path = os.path.join(directory, vector.file)
    status = check_no_link(path)
    return _read_checked(path, vector, status.st_size, status.st_mtime_ns)


@functools.lru_cache(64)
def _decode_checked(encoded: bytes) -> Rows:
    return decode_rows(encoded)


@functools.lru_cache(VECTORS_KEPT)
def _read_checked(path: str, vector: Vector, file_size: int, _modified: int) -> Rows:
    if not 0 <= vector.length <= file_size:  # before memory is taken for it
        raise OSError(f"the vector is said to have {vector.length} bytes, its file has {file_size}")
    with open(path, "rb") as file:
        file.seek(vector.start)
        framed = file.read(vector.length + 2 * _SIZE.size)
    data, size = framed[_SIZE.size : -_SIZE.size], _SIZE.size
    whole = len(framed) == vector.length + 2 * size and _SIZE.unpack_from(framed)[0] == vector.length
    if not whole or _SIZE.unpack(framed[-size:])[0] != zlib.crc32(data):
        raise OSError("the vector's checksum is not that of what was written")
    try:
        rows = decode_rows(data)
    except (ValueError, struct.error) as error:
        raise OSError(f"the vector cannot be read: {error}") from None
    if len(rows) != vector.dead:
        raise OSError(f"the vector has {len(rows)} rows instead of {vector.dead}")
    return rows


def is_vectors_file(name: str) -> bool:
    return name.startswith(_PREFIX) and name.endswith(_SUFFIX)


def describe_for_log(vector: Vector) -> dict[str, Any]:
    """How a log entry names a vector: by its file's number, written in 20 characters."""
    number = uuid.UUID(vector.file.removeprefix(_PREFIX).removesuffix(_SUFFIX))
    shortened = base64.b85encode(number.bytes).translate(bytes.maketrans(_B85, _Z85)).decode()
    return {
        "storageType": "u",
        "pathOrInlineDv": shortened,
        "offset": vector.start,
        "sizeInBytes": vector.length,
        "cardinality": vector.dead,
    }
