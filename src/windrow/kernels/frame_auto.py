"""The fastest way known to each operation over frames, whatever the frames are."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.kernels.fast import fast_windows
from windrow.kernels.frame_distinct import distinct_frames
from windrow.kernels.frame_family import family_of
from windrow.kernels.frame_mode import mode_frames
from windrow.kernels.frame_ranges import fold_ranges
from windrow.kernels.frame_select import select_frames
from windrow.kernels.frame_spans import Spans
from windrow.kernels.frame_sums import may_overflow
from windrow.kernels.ranks import RankTable
from windrow.kernels.results import NO_VALUES
from windrow.kernels.sweep import Sweep

Array = npt.NDArray[Any]

NEAR = 4
"""Rows that frames which slide as they come are moved by."""


def compute_frames(operation: str, values: Array, spans: Spans, ranks: RankTable | None = None) -> Array:
    """One value for each frame; what stands for an empty one means nothing, and sums of whole numbers may wrap.

    ``operation`` is sum, min, max, distinct, mode or select.
    """
    if not len(values) or not spans.count:
        return _nothing(operation, values, spans, ranks)
    if operation in ("sum", "min", "max"):
        return _folded(operation, values, spans)
    family = None if spans.survey.shifted <= NEAR * spans.count else family_of(spans)
    windows = spans if family is None else family.windows
    found = _holistic(operation, values, windows, ranks)
    return found if family is None else family.results(found)


def _nothing(operation: str, values: Array, spans: Spans, ranks: RankTable | None) -> Array:
    kind: Any = np.int64 if operation == "distinct" else values.dtype
    return np.zeros(spans.count, np.float64 if ranks is not None and ranks.interpolates else kind)


def _holistic(operation: str, values: Array, spans: Spans, ranks: RankTable | None) -> Array:
    if operation == "distinct":
        return distinct_frames(values, spans)
    if operation == "mode":
        return mode_frames(values, spans)
    assert ranks is not None
    return select_frames(values, spans, ranks)


def _folded(operation: str, values: Array, spans: Spans) -> Array:
    offsets = spans.offsets
    if offsets is None or (operation == "sum" and values.dtype.kind != "f" and may_overflow(values, spans)):
        return fold_ranges(operation, values, spans)
    outcome = fast_windows(operation, values, None, [Sweep(0, spans.count, *offsets)])
    return outcome.exact if outcome.exact is not NO_VALUES else outcome.reals
