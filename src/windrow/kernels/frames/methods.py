"""Frames by method: the one entry. Under ``auto`` the cheapest strategy is taken, or the one asked for by name.

Compiled code is loaded only when it is needed: frames so few and short that this would take longer than the work are
laid out in plain NumPy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.errors import DataError
from windrow.kernels.choose import AUTO, choose
from windrow.kernels.contract.outcomes import Outcome
from windrow.kernels.contract.ranks import RankTable
from windrow.kernels.frames.problems import FrameProblem
from windrow.kernels.frames.spans import Spans
from windrow.kernels.frames.strategies import CHAINS, FrameChoice, count_by_paper, fold_by_paper, select_by_paper

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
    operation: str,
    values: Array,
    spans: Spans,
    ranks: RankTable | None = None,
    method: str = "auto",
    tau: float = TAU,
    strategy: str = AUTO,
) -> Outcome:
    """The result of ``operation`` in every frame; what stands for an empty one means nothing."""
    problem = FrameProblem(operation, values, spans, ranks, tau)
    if method == "auto":
        if not len(values) or not spans.count:
            return Outcome(np.zeros(spans.count), np.zeros(spans.count, values.dtype), spans.sizes)
        outcome: Outcome = choose(CHAINS[operation], problem, strategy).run()
        return outcome
    if operation == "select":
        return select_by_paper("replace" if method == "incremental" else method)(problem)
    if operation in ("distinct", "mode"):
        return count_by_paper(method)(problem)
    return fold_by_paper(method)(problem)


def choose_frames(
    operation: str, values: Array, spans: Spans, ranks: RankTable | None = None, strategy: str = AUTO
) -> FrameChoice:
    """What ``frame_outcome`` would do under method auto."""
    return choose(CHAINS[operation], FrameProblem(operation, values, spans, ranks), strategy)
