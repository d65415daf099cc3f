"""Chunks of a dense array straight from its store: checked, decoded into memory that is used again, read ahead.

zarr makes a new array for every chunk, copies it into the one that was asked for, and passes each call through an event
loop several times. This reads chunks of windrow's own layout and no other; ``layout_obstacle`` says what is different.
"""

from __future__ import annotations

import asyncio
import functools
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import Any, Protocol

import google_crc32c
import numpy as np
import numpy.typing as npt
import zarr
from numcodecs import blosc
from zarr.codecs import BloscCodec, BytesCodec, Crc32cCodec
from zarr.core.buffer import default_buffer_prototype
from zarr.core.chunk_grids import RegularChunkGrid
from zarr.core.sync import _get_loop

from windrow.errors import Error, MachineError
from windrow.model.box import Box
from windrow.model.grid import ChunkGrid

Array = npt.NDArray[Any]
ChunkKey = tuple[int, ...]
Variables = Mapping[str, zarr.Array[Any]]
"""The Zarr arrays of one store that are read together, by name; all have the same chunks."""

AHEAD = 3
"""How many chunks are asked for before they are needed, by each thread."""
WORTH_THREADS = 2**20
"""Bytes of a box from which its chunks are decoded on several threads."""
CHECKSUM = 4
"""Bytes of a checksum behind a chunk."""
WRONG_CHECKSUM = "the chunk's checksum is not that of what was written"


def layout_obstacle(stored: zarr.Array[Any], chunk: tuple[int, ...]) -> str | None:
    """Why the chunks of a Zarr array cannot be read here; None if they can. ``chunk`` is the shape they should have."""
    if stored.dtype.kind not in "biuf":
        return f"values of type {stored.dtype} are read by zarr"
    if sys.byteorder != "little":
        return "this machine's bytes are in the other order"
    metadata: Any = stored.metadata
    if tuple(type(codec) for codec in metadata.codecs) != (BytesCodec, BloscCodec, Crc32cCodec):
        return f"chunks of {stored.basename} have other codecs than windrow gives them"
    endian = getattr(metadata.codecs[0].endian, "value", None)
    if endian not in (None, "little") or not isinstance(metadata.chunk_grid, RegularChunkGrid):
        return f"chunks of {stored.basename} are laid out otherwise than windrow does"
    if metadata.chunk_grid.chunk_shape != chunk:
        return f"chunks of {stored.basename} are not those of the schema"
    return None


class Destinations(Protocol):
    """Where decoded chunks go."""

    def place(self, variable: str, stored: zarr.Array[Any]) -> Array:
        """Memory, in one piece, for a chunk of this variable."""
        ...


class ChunkRequests:
    """The encoded chunks of some variables, in the order of ``sequence``, each asked for before it is taken.

    Threads may share it, each taking the chunks of a part of the sequence. ``damage`` makes the error of a chunk that
    cannot be decoded.
    """

    def __init__(
        self, variables: Variables, sequence: Sequence[ChunkKey], damage: Callable[[str, ChunkKey, Exception], Error]
    ) -> None:
        self._stored, self._sequence, self._damage = variables, sequence, damage
        self._waiting: dict[int, list[Future[Any]]] = {}
        self._asked = bytearray(len(sequence))  # also those that are taken: a slower thread asks for them once more
        self._lock = Lock()

    def ask(self, start: int, stop: int) -> None:
        """Ask for the chunks at these places of the sequence that nobody asked for yet."""
        with self._lock:
            for place in range(max(start, 0), min(stop, len(self._sequence))):
                if not self._asked[place]:
                    self._asked[place] = 1
                    self._waiting[place] = self._get(place)

    def take(self, place: int, destinations: Destinations) -> dict[str, Array]:
        """The values of the chunk at a place, decoded to where they should go."""
        self.ask(place, place + 1)
        with self._lock:
            waiting = self._waiting.pop(place, None)
        if waiting is None:  # forgotten after the failure of another thread, which is what is to be told
            waiting = self._get(place)
        found = {}
        for (variable, stored), answer in zip(self._stored.items(), waiting, strict=True):
            try:
                found[variable] = decode(stored, answer.result(), destinations.place(variable, stored))
            except MachineError:
                raise
            except Exception as error:
                raise self._damage(variable, self._sequence[place], error) from error
        return found

    def _get(self, place: int) -> list[Future[Any]]:
        return [get_chunk(stored, self._sequence[place]) for stored in self._stored.values()]

    def forget(self) -> None:
        """Drop what nobody will take, after a failure."""
        with self._lock:
            for answers in self._waiting.values():
                for answer in answers:
                    answer.cancel()
            self._waiting.clear()


def get_chunk(stored: zarr.Array[Any], key: ChunkKey) -> Future[Any]:
    """Ask for a chunk as it is stored."""
    metadata: Any = stored.metadata
    name = f"{stored.path}/{metadata.encode_chunk_key(key)}"
    return asyncio.run_coroutine_threadsafe(stored.store.get(name, default_buffer_prototype()), _get_loop())


def has_right_checksum(encoded: Array) -> bool:
    """Whether the bytes of a chunk end in the checksum of those before it."""
    found = google_crc32c.value(encoded[:-CHECKSUM])
    return bool(found == int.from_bytes(encoded[-CHECKSUM:].tobytes(), "little"))


def decode(stored: zarr.Array[Any], encoded: Any, into: Array) -> Array:
    """The values of a chunk, into memory of its shape that is in one piece."""
    if encoded is None:  # never written
        into[...] = stored.fill_value
        return into
    body = encoded.as_numpy_array()
    if not has_right_checksum(body):
        raise ValueError(WRONG_CHECKSUM)
    blosc.decompress(body[:-CHECKSUM], into)
    return into


class ChunkBuffers:
    """One thread's memory for decoded chunks: one for each variable, used again and again."""

    def __init__(self) -> None:
        self._held: dict[str, Array] = {}

    def place(self, variable: str, stored: zarr.Array[Any]) -> Array:
        buffer = self._held.get(variable)
        if buffer is None or buffer.dtype != stored.dtype or buffer.shape != stored.chunks:
            buffer = self._held[variable] = np.empty(stored.chunks, stored.dtype)
        return buffer


def read_box(
    variables: Variables, grid: ChunkGrid, box: Box, damage: Callable[[str, ChunkKey, Exception], Error]
) -> dict[str, Array]:
    """The values in ``box``. A chunk whose place in the result is in one piece is decoded right there."""
    found = {name: np.empty(box.shape, stored.dtype) for name, stored in variables.items()}
    keys = list(grid.keys_touching(box))
    work = _BoxRead(ChunkRequests(variables, keys, damage), grid, box, keys, found)
    threads = min(len(keys), _CORES) if sum(values.nbytes for values in found.values()) >= WORTH_THREADS else 1
    try:
        if threads > 1:
            list(_decoders().map(work.run, (range(start, len(keys), threads) for start in range(threads))))
        else:
            work.run(range(len(keys)))
    finally:
        work.requests.forget()
    return found


_CORES = os.cpu_count() or 1


@functools.cache
def _decoders() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_CORES, thread_name_prefix="windrow-decode")


class _BoxRead:
    """What the threads that read a box share."""

    def __init__(
        self, requests: ChunkRequests, grid: ChunkGrid, box: Box, keys: Sequence[ChunkKey], found: Mapping[str, Array]
    ) -> None:
        self.requests, self._grid, self._box, self._keys, self._found = requests, grid, box, keys, found

    def run(self, places: range) -> None:
        """Read the chunks at some places of the sequence."""
        buffers = ChunkBuffers()
        for place in places:
            self.requests.ask(place, place + AHEAD * places.step + 1)
            chunk = self._grid.box_of(self._keys[place])
            inside = chunk & self._box
            targets = _Targets(self._found, inside.slices(self._box.lo), buffers)
            for variable, values in self.requests.take(place, targets).items():
                if variable not in targets.direct:
                    self._found[variable][targets.where] = values[inside.slices(chunk.lo)]


class _Targets:
    """Memory for one chunk: its place in the result where that is in one piece, or else a buffer."""

    def __init__(self, found: Mapping[str, Array], where: tuple[slice, ...], buffers: ChunkBuffers) -> None:
        self.where, self.direct = where, set[str]()
        self._found, self._buffers = found, buffers

    def place(self, variable: str, stored: zarr.Array[Any]) -> Array:
        target = self._found[variable][self.where]
        if target.shape == stored.chunks and target.flags.c_contiguous:
            self.direct.add(variable)
            return target
        return self._buffers.place(variable, stored)
