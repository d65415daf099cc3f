"""A clock that was set back: Icechunk takes no snapshot that is older than the one before it."""

from __future__ import annotations

import struct
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numcodecs
import numpy as np
import pytest

import windrow as wr
from windrow.errors import CorruptionError, StoreError

_ZSTANDARD = b"\x28\xb5\x2f\xfd"


def date_newest_version(array: wr.Array, later: timedelta) -> None:
    """Let the newest version of a dense array be as one that was written when the clock showed a later time.

    A snapshot's file is compressed; the one number in it that is its time in microseconds is found by its size.
    """
    place = array.location()
    file = Path(place.path, "snapshots", place.version)
    data = file.read_bytes()
    start = data.index(_ZSTANDARD)
    content = bytearray(numcodecs.Zstd().decode(data[start:]))
    written = file.stat().st_mtime * 1e6
    (at,) = (
        at for at in range(0, len(content) - 7, 8) if abs(struct.unpack_from("<Q", content, at)[0] - written) < 10**7
    )
    moved = int((datetime.now(UTC) + later).timestamp() * 1e6)
    struct.pack_into("<Q", content, at, moved)
    file.write_bytes(data[:start] + numcodecs.Zstd().encode(bytes(content)))


@pytest.fixture
def arrays(local: wr.Database) -> tuple[wr.Array, wr.Array]:
    dense = local.create("D", "<a: int64> [t=1:*:2, i=1:2]")
    dense.append(np.array([[1, 2]]), labels=[10.0])
    sparse = local.create("S", "<v: int64> [x=1:9]", sparse=True)
    sparse.insert({"x": [1], "v": [1]})
    return dense, sparse


def change_both(database: wr.Database) -> None:
    with database.batch() as batch:
        batch.insert("S", {"x": [2], "v": [2]})
        batch.update("D", {"a": "a + 1"})


def test_a_clock_far_behind_is_named(local: wr.Database, arrays: tuple[wr.Array, wr.Array]) -> None:
    dense, sparse = arrays
    date_newest_version(dense, timedelta(days=10))
    acts = {
        "append": lambda: dense.append(np.array([[3, 4]]), labels=[11.0]),
        "write": lambda: dense.write(np.array([[3, 4]]), at=(1, 1)),
        "update": lambda: dense.update({"a": "a + 1"}),
        "compact": lambda: dense.compact(),
    }
    for act in acts.values():
        with pytest.raises(StoreError, match="clock of this machine is behind") as caught:
            act()
        assert not isinstance(caught.value, CorruptionError)
    with pytest.raises(StoreError, match="clock"):
        change_both(local)
    assert (dense.version, sparse.version) == (1, 1)
    assert dense.read()["a"].values.tolist() == [[1, 2]]
    # What the hint says: an array of its own begins with today's clock.
    local.query("create array E as select a from D")
    local.array("E").update({"a": "a + 1"})
    assert local.array("E").read()["a"].values.tolist() == [[2, 3]]
    local.collect_garbage()
    assert dense.read()["a"].values.tolist() == [[1, 2]]


def test_a_clock_a_little_behind_is_waited_for(arrays: tuple[wr.Array, wr.Array]) -> None:
    dense, _ = arrays
    date_newest_version(dense, timedelta(seconds=2))
    dense.append(np.array([[3, 4]]), labels=[11.0])
    assert dense.read()["a"].values.tolist() == [[1, 2], [3, 4]]
    dense.update({"a": "a + 1"})
    assert dense.read()["a"].values.tolist() == [[2, 3], [4, 5]]
