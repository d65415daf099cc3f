"""The papers' algorithm: a base window moves along one axis, window unit by window unit (000 §3, 001 §3, 002 §3).

Entering units are scanned, leaving ones are forgotten, and the rest is reused: sums in a SUM-list whose total is kept
by two stacks, so that nothing is ever subtracted; minima and maxima in a heap that drops its top once it has left;
percentiles in a balanced search tree; modes and distinct values in a counted hash table. The axis swept is the one
with the widest window (002 §4.3).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.errors import DataError
from windrow.kernels.contract.geometry import most_cells
from windrow.kernels.contract.outcomes import Outcome, centre, prepared, rank_arrays
from windrow.kernels.contract.ranks import RankTable
from windrow.kernels.contract.sweeps import AnySweep
from windrow.kernels.papers.counted_table import empty_table, slide_table
from windrow.kernels.papers.slide import Results, path_of
from windrow.kernels.papers.sum_list import OVERFLOWED, empty_list, slide_sums
from windrow.kernels.papers.tree_select import empty_selection, slide_selection
from windrow.kernels.papers.value_heap import empty_heap, slide_heap

Array = npt.NDArray[Any]


def incremental_windows(
    operation: str,
    values: Array,
    present: npt.NDArray[np.bool_] | None,
    sweeps: Sequence[AnySweep],
    ranks: RankTable | None = None,
    swept: int | None = None,
) -> Outcome:
    """As ``naive_windows``, by the incremental algorithm; ``swept`` forces the axis along which windows move."""
    flat, there = prepared(values, present)
    shape = tuple(sweep.count for sweep in sweeps)
    reals, exact, counts = (np.zeros(shape, kind) for kind in (np.float64, flat.dtype, np.int64))
    path = path_of(values.shape, sweeps, swept)
    cells = max(1, most_cells(values.shape, sweeps))
    units = values.shape[path.axis] + 1
    arguments = (flat, there, path, Results(reals.reshape(-1), exact.reshape(-1), counts.reshape(-1)))
    if operation in ("sum", "squares"):
        middle = centre(flat, there) if operation == "squares" else 0.0
        totals = empty_list(units, flat.dtype, middle, operation == "squares")
        slide_sums(totals, *arguments)
        if totals.state[OVERFLOWED]:
            raise DataError("an integer sum overflows int64", hint="Cast the attribute to float64 first")
    elif operation in ("min", "max", "count"):
        slide_heap(empty_heap(units, flat.dtype, operation == "max"), *arguments)
    elif operation == "select":
        slide_selection(empty_selection(cells, flat.dtype, rank_arrays(ranks)), *arguments)
    else:
        slide_table(empty_table(cells, flat.dtype, operation == "mode"), *arguments)
    return Outcome(reals, exact, counts)
