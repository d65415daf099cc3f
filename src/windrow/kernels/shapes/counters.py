"""Distinct values and modes of shapes: values are numbered once, then runs enter and leave plain counters."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiler.jit import bare_kernel
from windrow.kernels.contract.outcomes import Outcome
from windrow.kernels.counting.counters import Tournament, empty_tournament, number_values
from windrow.kernels.papers.slide import Results
from windrow.kernels.shapes.incremental import groups_of, slide_runs
from windrow.kernels.shapes.layout import lay_out
from windrow.kernels.shapes.problems import ShapeProblem

Array = npt.NDArray[Any]

_STRUCTURE = Tournament
_slide_tournament = bare_kernel(slide_runs, __name__)


def counted_shapes(problem: ShapeProblem, values: Array, present: npt.NDArray[np.bool_] | None) -> Outcome:
    """``distinct`` or ``mode`` in every neighbourhood."""
    ordered, numbered, there = number_values(values, present)
    layout = lay_out(problem, numbered, there)
    reals, winners, counts = (np.zeros(problem.counts, kind) for kind in (np.float64, np.int32, np.int64))
    results = Results(reals.reshape(-1), winners.reshape(-1), counts.reshape(-1))
    tournament = empty_tournament(len(ordered), problem.operation == "mode")
    _slide_tournament(tournament, layout.flat, layout.there, layout.walk, groups_of(problem, layout), results)
    exact = ordered[winners] if len(ordered) else np.zeros(problem.counts, ordered.dtype)
    return Outcome(reals, exact, counts)
