"""Decoded indexes of parts, kept per connection: they never change, and every small write asks for them."""

from __future__ import annotations

import threading
from collections import OrderedDict

from windrow.storage.records import ChunkStatistics

CHUNKS_KEPT = 4_000_000
"""Of how many chunks the metadata is kept, some tens of bytes each."""


class Indexes:
    """The indexes that were used last, by the paths of their parts."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, ChunkStatistics] = OrderedDict()
        self._chunks = 0
        self._lock = threading.Lock()

    def find(self, path: str) -> ChunkStatistics | None:
        with self._lock:
            if path in self._kept:
                self._kept.move_to_end(path)
            return self._kept.get(path)

    def keep(self, path: str, chunks: ChunkStatistics) -> None:
        with self._lock:
            known = self._kept.pop(path, None)
            self._chunks += len(chunks) - (0 if known is None else len(known))
            self._kept[path] = chunks
            while self._chunks > CHUNKS_KEPT and len(self._kept) > 1:
                self._chunks -= len(self._kept.popitem(last=False)[1])
