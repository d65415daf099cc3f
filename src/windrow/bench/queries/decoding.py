"""The bare decode of all chunks of a dense array: what any question that reads all of them has to pay."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import zarr

from windrow.api.array import Array
from windrow.storage.dense.snapshots import open_store
from windrow.storage.working import dense_snapshot


def decoder(array: Array, threads: int) -> Callable[[], None]:
    """Reads every chunk of the attribute ``t`` and drops it, on so many threads."""
    catalog = array._database.catalog
    record = catalog.array(array.name)
    snapshot = dense_snapshot(array._database.warehouse, record, catalog.version(record))
    store = open_store(snapshot.path, snapshot.pointer, snapshot.checksum)
    stored: Any = zarr.open_group(store, mode="r", zarr_format=3)["t"]
    grid, box = snapshot.schema.grid, snapshot.box
    boxes = [grid.box_of(key) & box for key in grid.keys_touching(box)]

    def decode() -> None:
        with ThreadPoolExecutor(threads) as pool:
            for _ in pool.map(lambda one: stored[one.slices(box.lo)].size, boxes):
                pass

    return decode
