"""Frames so few and short that loading a compiler would take longer than the work: plain NumPy, nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.kernels.contract.outcomes import Outcome
from windrow.kernels.contract.ranks import RankTable
from windrow.kernels.contract.sweeps import Sweep
from windrow.kernels.frames.spans import Spans
from windrow.kernels.tiny import tiny_windows

Array = npt.NDArray[Any]


def tiny_frames(operation: str, values: Array, spans: Spans, ranks: RankTable | None = None) -> Outcome:
    """The result of ``operation`` in every frame: each frame is laid out as a row of one table."""
    most = max(1, spans.most)
    place = np.zeros((spans.count, most), np.int64)
    inside = np.zeros((spans.count, most), bool)
    column = np.arange(most)
    filled = np.zeros(spans.count, np.int64)
    for begin, end in zip(spans.begin, spans.end, strict=True):
        there = (column >= filled[:, None]) & (column < (filled + end - begin)[:, None])
        place[there] = ((begin - filled)[:, None] + column)[there]
        inside |= there
        filled += end - begin
    cells = values[place] if len(values) else np.zeros(place.shape, values.dtype)
    sweeps = [Sweep(0, spans.count, 0, 0), Sweep(0, 1, 0, most - 1)]
    found = tiny_windows(operation, cells, inside, sweeps, ranks)
    return Outcome(*(array.reshape(-1) if array is not None else None for array in found[:3]))
