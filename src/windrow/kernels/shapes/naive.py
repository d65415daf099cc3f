"""Every neighbourhood on its own, cell by cell: the oracle of the faster kernels for shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.errors import DataError
from windrow.kernels.compiler.jit import bare_kernel
from windrow.kernels.contract.outcomes import OPERATIONS, Outcome, RankArrays, prepared, rank_arrays
from windrow.kernels.naive import DEEPEST, Room, reduce_gathered
from windrow.kernels.papers.slide import Results
from windrow.kernels.shapes.layout import Walk, lay_out
from windrow.kernels.shapes.problems import ShapeProblem

Array = npt.NDArray[Any]


def naive_shapes(problem: ShapeProblem, values: Array, present: npt.NDArray[np.bool_] | None) -> Outcome:
    """The result of the problem's operation in every neighbourhood, and how many present values each had."""
    layout = lay_out(problem, *prepared(values, present))
    outcome = [np.zeros(problem.counts, kind) for kind in (np.float64, layout.flat.dtype, np.int64)]
    room = Room(
        np.zeros((1, 1), np.int64),
        np.empty(max(1, int(problem.runs.lengths.sum())), layout.flat.dtype),
        np.zeros((DEEPEST, 2), np.int64),
    )
    results = Results(*(part.reshape(-1) for part in outcome))
    overflowed = _neighbourhoods(
        OPERATIONS[problem.operation], layout.flat, layout.there, layout.walk, layout.starts, problem.runs.lengths,
        rank_arrays(problem.ranks), room, results,
    )  # fmt: skip
    if overflowed:
        raise DataError("an integer sum overflows int64", hint="Cast the attribute to float64 first")
    return Outcome(*outcome)


def _every_neighbourhood(
    operation: int, flat: Array, there: Array, walk: Walk, starts: Array, lengths: Array, tables: RankArrays,
    room: Room, results: Results,
) -> bool:  # fmt: skip
    """Fill in the results; whether an integer sum overflowed."""
    overflowed = False
    output = 0
    for base in walk.bases:
        for k in range(walk.count):
            found = 0
            for run in range(len(starts)):
                begin = base + k * walk.step + starts[run]
                for at in range(begin, begin + lengths[run]):
                    if there[at]:
                        room.window[found] = flat[at]
                        found += 1
            results.counts[output] = found
            if found > 0:
                overflowed |= reduce_gathered(operation, room, found, tables, results, output)
            output += 1
    return overflowed


_neighbourhoods = bare_kernel(_every_neighbourhood, __name__)
