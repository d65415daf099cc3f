"""Which kernel computes an operation over frames, by method.

Compiled code is loaded only when it is needed: frames so few and short that this would take longer than the work are
laid out in plain NumPy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.errors import DataError
from windrow.kernels.frame_spans import Spans
from windrow.kernels.frame_sums import squares, summed
from windrow.kernels.frame_tiny import is_tiny, tiny_frames
from windrow.kernels.ranks import RankTable
from windrow.kernels.results import NO_VALUES, Outcome

Array = npt.NDArray[Any]

METHODS = ("auto", "naive", "incremental", "reuse", "replace", "segment_tree")
TAU = 0.25
"""The share of values in use at which incremental hash tables are flushed (003 §6.4)."""

_FOLDS = ("sum", "squares", "min", "max")
_KNOWN = {
    "naive": (*_FOLDS, "select", "distinct", "mode", "user"),
    "incremental": (*_FOLDS, "select", "distinct", "mode", "user"),
    "segment_tree": (*_FOLDS, "user"),
    "reuse": ("select",),
    "replace": ("select",),
}
_TAKES = {
    "segment_tree": "sums, averages, variances, minima, maxima and user-defined aggregates with merge",
    "reuse": "quantiles",
    "replace": "quantiles",
}


def check_method(method: str, operation: str) -> None:
    """Refuse a method that an operation does not have."""
    if method not in METHODS:
        raise DataError("method must be one of " + ", ".join(METHODS), got=repr(method))
    if method != "auto" and operation not in _KNOWN[method]:
        raise DataError(f"method {method} is for {_TAKES[method]} only", hint="auto, naive and incremental do all")


def frame_outcome(
    operation: str, values: Array, spans: Spans, ranks: RankTable | None, method: str, tau: float
) -> Outcome:
    """The result of ``operation`` in every frame, by ``method``."""
    if method == "auto" and is_tiny(spans):
        return tiny_frames(operation, values, spans, ranks)
    if operation == "sum":
        return summed(values, spans, lambda numbers: _folds("sum", numbers, spans, method))
    if operation == "squares":
        return squares(values, spans, lambda numbers: _folds("sum", numbers, spans, method))
    if operation in ("min", "max"):
        return Outcome(NO_VALUES, _folds(operation, values, spans, method), spans.sizes)
    if method == "auto":
        from windrow.kernels.frame_auto import compute_frames

        found = compute_frames(operation, values, spans, ranks)
        return Outcome(found, found, None)
    if operation == "select":
        from windrow.kernels.frame_quantile import quantile_frames

        assert ranks is not None
        return quantile_frames(values, spans, ranks, "replace" if method == "incremental" else method)
    from windrow.kernels.frame_counts import counted_frames

    return counted_frames(operation, values, spans, tau, reuses=method == "incremental")


def _folds(operation: str, values: Array, spans: Spans, method: str) -> Array:
    if method == "auto":
        from windrow.kernels.frame_auto import compute_frames

        return compute_frames(operation, values, spans)
    from windrow.kernels.frame_fold import fold

    return fold(operation, np.ascontiguousarray(values), spans, method)
