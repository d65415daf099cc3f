"""Boxes of values into a dense array's chunks: read where a part of them stays, encoded and handed to the store.

The same bytes as zarr's, which compares every chunk with its fill value in memory made for that, and passes each step
of each chunk through an event loop and a thread. Other layouts than windrow's own are left to zarr.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Coroutine, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

import google_crc32c
import numpy as np
import zarr
from numcodecs import blosc
from zarr.core.buffer import default_buffer_prototype
from zarr.core.sync import _get_loop

from windrow.model.box import Box
from windrow.model.grid import ChunkGrid
from windrow.storage.dense.chunks import CHECKSUM, Array, ChunkKey, decode, get_chunk

AHEAD = 4
"""How many chunks are on their way from or to the store while one is worked on."""


def write_chunks(stored: zarr.Array[Any], grid: ChunkGrid, bounds: Box, box: Box, values: Array) -> None:
    """Put ``values`` into a box of an array that ends with ``bounds``."""
    _BoxWrite(stored, grid, bounds, box, values).run()


class _BoxWrite:
    def __init__(self, stored: zarr.Array[Any], grid: ChunkGrid, bounds: Box, box: Box, values: Array) -> None:
        self._stored, self._grid, self._bounds, self._box, self._values = stored, grid, bounds, box, values
        self._buffer: Array | None = None
        self._reading: deque[Future[Any] | None] = deque()
        self._writing: deque[Future[Any]] = deque()

    def run(self) -> None:
        keys = list(self._grid.keys_touching(self._box))
        try:
            for number, key in enumerate(keys):
                self._read_ahead(keys, number)
                self._put(key, self._encoded(key, self._reading.popleft()))
            while self._writing:
                self._writing.popleft().result()
        finally:
            self._settle()

    def _read_ahead(self, keys: Sequence[ChunkKey], number: int) -> None:
        """Ask for what is stored of the next chunks, if any of it stays."""
        while len(self._reading) <= AHEAD and number + len(self._reading) < len(keys):
            key = keys[number + len(self._reading)]
            there = self._grid.box_of(key) & self._bounds
            self._reading.append(None if there in self._box else get_chunk(self._stored, key))

    def _encoded(self, key: ChunkKey, waiting: Future[Any] | None) -> bytes | None:
        """The bytes of a chunk with the box's values in it; None if it is all fill, and so is not stored."""
        chunk = self._whole(key)
        inside = chunk & self._box
        new = self._values[inside.slices(self._box.lo)]
        if new.shape == chunk.shape and new.flags.c_contiguous and new.dtype == self._stored.dtype:
            held = new
        else:
            held = self._held()
            if waiting is not None:
                decode(self._stored, waiting.result(), held)
            elif inside != chunk:
                held[...] = self._stored.fill_value
            held[inside.slices(chunk.lo)] = new
        return None if _is_fill(held, self._stored.fill_value) else _encode(self._stored, held)

    def _whole(self, key: ChunkKey) -> Box:
        """A chunk as it is stored, also where it reaches over the array's end."""
        return Box.at(self._grid.box_of(key).lo, self._grid.chunk)

    def _held(self) -> Array:
        if self._buffer is None:
            self._buffer = np.empty(self._stored.chunks, self._stored.dtype)
        return self._buffer

    def _put(self, key: ChunkKey, encoded: bytes | None) -> None:
        metadata: Any = self._stored.metadata
        name = f"{self._stored.path}/{metadata.encode_chunk_key(key)}"
        if encoded is None:
            self._writing.append(_begin(self._stored.store.delete(name)))
        else:
            buffer = default_buffer_prototype().buffer.from_bytes(encoded)
            self._writing.append(_begin(self._stored.store.set(name, buffer)))
        while len(self._writing) > AHEAD:
            self._writing.popleft().result()

    def _settle(self) -> None:
        """After a failure nothing is under way that the store's session could still take."""
        for waiting in (*self._reading, *self._writing):
            if waiting is not None:
                waiting.cancel()
                with suppress(Exception, asyncio.CancelledError):
                    waiting.exception()


def _begin(work: Coroutine[Any, Any, Any]) -> Future[Any]:
    return asyncio.run_coroutine_threadsafe(work, _get_loop())


def _is_fill(chunk: Array, fill: Any) -> bool:
    """Whether zarr would not store a chunk, since all of it is its fill value, to the bit where that is a zero."""
    first = chunk[(0,) * chunk.ndim]
    if first != fill and not (first != first and fill != fill):  # as of most, and cheaper than to look at all
        return False
    return bool(default_buffer_prototype().nd_buffer.from_numpy_array(chunk).all_equal(fill))


def _encode(stored: zarr.Array[Any], chunk: Array) -> bytes:
    """Compressed as the array's metadata says, with the checksum behind."""
    codec: Any = stored.metadata.codecs[1]  # type: ignore[union-attr]
    shuffle = {"noshuffle": blosc.NOSHUFFLE, "shuffle": blosc.SHUFFLE, "bitshuffle": blosc.BITSHUFFLE}
    body: bytes = blosc.compress(
        np.ascontiguousarray(chunk).reshape(-1).view(np.uint8),
        codec.cname.value.encode(),
        codec.clevel,
        shuffle[codec.shuffle.value],
        codec.blocksize,
        codec.typesize,
    )
    return body + int(google_crc32c.value(body)).to_bytes(CHECKSUM, "little")
