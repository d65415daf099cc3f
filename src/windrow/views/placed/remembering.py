"""What past batches joined, as bytes for the catalog: the strategy ``reassign`` may look at it."""

from __future__ import annotations

import numpy as np

from windrow.placement.homes import Correlations
from windrow.storage.chunks.index import pack_columns, unpack_columns


def pack_correlations(found: Correlations) -> bytes:
    return pack_columns([found.chunks, found.views, np.round(found.scores).astype(np.int64)])


def unpack_correlations(packed: bytes) -> Correlations:
    chunks, views, scores = unpack_columns(packed)
    return Correlations(chunks, views, scores.astype(np.float64))
