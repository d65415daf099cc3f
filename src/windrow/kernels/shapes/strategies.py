"""Neighbourhoods by shape by whatever is fastest: the one entry, and the strategies that it chooses from."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.kernels import tiny
from windrow.kernels.choose import AUTO, Choice, Cost, Strategy, choose
from windrow.kernels.contract.outcomes import Outcome
from windrow.kernels.contract.ranks import RankTable
from windrow.kernels.contract.sweeps import Sweep
from windrow.kernels.shapes.problems import Runs, ShapeProblem, shape_problem
from windrow.kernels.windows import choose_windows

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]
ShapeStrategy = Strategy[ShapeProblem]
ShapeChoice = Choice[ShapeProblem]

REMEMBERED, LARGEST_KEY = 64, 2**16
"""Choices that are kept for the next call alike, and bytes of the largest runs and tables among them."""

# Nanoseconds on a core about as fast as that of ``window_costs``; only their ratios matter.
TINY_CALL, TINY_CELL = 1e5, 50.0
ROWS_CALL, ROW_CELL, ROW_PASS = 2e4, 1.4, 0.33  # a cell of a row, and each pass over it
RANKED_CELL, SEARCHED_CELL = 26.0, 0.66
BIT_OUTPUT, BIT_RUN = 40.0, 4.8
NUMBERED_CELL, COUNTED_OUTPUT, COUNTED_MOVE = 5.0, 12.0, 12.0
TREE_MOVE, HEAP_OUTPUT, HEAP_MOVE = 14.0, 60.0, 2.0
NAIVE_OUTPUT, NAIVE_CELL, SORTED_CELL = 60.0, 3.2, 6.0


def _always(problem: ShapeProblem) -> str | None:
    return None


def _if_tiny(problem: ShapeProblem) -> str | None:
    if problem.outputs * int(problem.runs.lengths.sum()) <= tiny.MOST_CELLS:
        return None
    return f"all neighbourhoods together have more than {tiny.MOST_CELLS:,} cells"


def _if_box(problem: ShapeProblem) -> str | None:
    return None if problem.box else "the shape is no window"


def _if_blocks(in_lanes: bool) -> Any:
    def can(problem: ShapeProblem) -> str | None:
        from windrow.kernels.shapes.select import SHORT_RANKS, block_of

        if in_lanes and int(problem.runs.lengths.sum()) > SHORT_RANKS:
            return "neighbourhoods have more cells than there are short ranks"
        return None if block_of(problem, in_lanes) is not None else "the shape reaches further than a block has ranks"

    return can


def _tiny_cost(problem: ShapeProblem) -> Cost:
    return Cost(TINY_CALL + TINY_CELL * problem.outputs * int(problem.runs.lengths.sum()))


def _window_cost(problem: ShapeProblem) -> Cost:
    choice = choose_windows(problem.operation, problem.shape, problem.dtype, problem.sweeps, problem.ranks)
    return Cost(choice.cost.nanoseconds, f"as a window, by {choice.name}")


def _rows_cost(problem: ShapeProblem) -> Cost:
    lengths, runs = len(problem.run_lengths), len(problem.runs.first)
    passes = runs / 2 + math.log2(max(2, int(problem.run_lengths.max(initial=1)))) + lengths
    places = problem.outputs * problem.sweeps[-1].step
    factor = 3.0 if problem.operation == "squares" else 1.0
    return Cost(
        ROWS_CALL + (ROW_CELL + ROW_PASS * passes) * places * factor, f"{lengths} lengths of run, {runs} rows an output"
    )


def _ranking(problem: ShapeProblem, in_lanes: bool) -> float:
    from windrow.kernels.shapes.select import block_cells

    return RANKED_CELL * problem.outputs * block_cells(problem, in_lanes)


def _lanes_cost(problem: ShapeProblem) -> Cost:
    searched = problem.outputs * problem.sweeps[-1].step * SEARCHED_CELL * problem.cells
    return Cost(_ranking(problem, True) + searched)


def _bitset_cost(problem: ShapeProblem) -> Cost:
    moves = problem.sweeps[-1].step * len(problem.runs.first)
    return Cost(_ranking(problem, False) + problem.outputs * (BIT_OUTPUT + BIT_RUN * moves))


def _counters_cost(problem: ShapeProblem) -> Cost:
    numbering = NUMBERED_CELL * problem.inputs * math.log2(max(2, problem.inputs))
    return Cost(numbering + problem.outputs * (COUNTED_OUTPUT + 2 * COUNTED_MOVE * problem.moves))


def _incremental_cost(problem: ShapeProblem) -> Cost:
    if problem.operation in ("select", "distinct", "mode"):
        deep = max(1.0, math.log2(max(2, problem.cells / 8)))
        return Cost(problem.outputs * (HEAP_OUTPUT + TREE_MOVE * deep * problem.moves))
    return Cost(problem.outputs * (HEAP_OUTPUT * len(problem.run_lengths) + HEAP_MOVE * problem.moves))


def _naive_cost(problem: ShapeProblem) -> Cost:
    cell = NAIVE_CELL
    if problem.operation in ("select", "distinct", "mode"):
        cell = SORTED_CELL * math.log2(max(2, problem.cells))
    return Cost(problem.outputs * (NAIVE_OUTPUT + cell * problem.cells))


def _run_tiny(problem: ShapeProblem, values: Array, present: Mask | None, out: Array | None) -> Outcome:
    from windrow.kernels.shapes.tiny import tiny_shapes

    return tiny_shapes(problem, values, present)


def _run_window(problem: ShapeProblem, values: Array, present: Mask | None, out: Array | None) -> Outcome:
    choice = choose_windows(problem.operation, problem.shape, values.dtype, problem.sweeps, problem.ranks)
    outcome: Outcome = choice.run(values, present, out)
    return outcome


def _run_rows(problem: ShapeProblem, values: Array, present: Mask | None, out: Array | None) -> Outcome:
    from windrow.kernels.shapes.scan import scan_shapes

    return scan_shapes(problem, values, present, out)


def _run_lanes(problem: ShapeProblem, values: Array, present: Mask | None, out: Array | None) -> Outcome:
    from windrow.kernels.shapes.select import select_shapes

    return select_shapes(problem, values, present, out, in_lanes=True)


def _run_bitset(problem: ShapeProblem, values: Array, present: Mask | None, out: Array | None) -> Outcome:
    from windrow.kernels.shapes.select import select_shapes

    return select_shapes(problem, values, present, out, in_lanes=False)


def _run_counters(problem: ShapeProblem, values: Array, present: Mask | None, out: Array | None) -> Outcome:
    from windrow.kernels.shapes.counters import counted_shapes

    return counted_shapes(problem, values, present)


def _run_incremental(problem: ShapeProblem, values: Array, present: Mask | None, out: Array | None) -> Outcome:
    from windrow.kernels.shapes.incremental import incremental_shapes

    return incremental_shapes(problem, values, present)


def _run_naive(problem: ShapeProblem, values: Array, present: Mask | None, out: Array | None) -> Outcome:
    from windrow.kernels.shapes.naive import naive_shapes

    return naive_shapes(problem, values, present)


_TINY = Strategy("tiny", "all neighbourhoods as one NumPy table, no compiler", _if_tiny, _tiny_cost, _run_tiny, start=0)
_WINDOW = Strategy("window", "the shape is a window", _if_box, _window_cost, _run_window)
_ROWS = Strategy("rows", "each row's windows of all run lengths, rows merged", _always, _rows_cost, _run_rows)
_LANES = Strategy(
    "lanes", "ranks of a block searched bit by bit, 64 neighbourhoods side by side", _if_blocks(True), _lanes_cost,
    _run_lanes,
)  # fmt: skip
_BITSET = Strategy(
    "bitset",
    "ranks of a block as a set of bits that runs enter and leave",
    _if_blocks(False),
    _bitset_cost,
    _run_bitset,
)
_COUNTERS = Strategy(
    "counters", "values numbered, a counter for each that runs enter and leave", _always, _counters_cost, _run_counters
)
_INCREMENTAL = Strategy("incremental", "runs enter and leave", _always, _incremental_cost, _run_incremental)
_NAIVE = Strategy("naive", "every cell of every neighbourhood", _always, _naive_cost, _run_naive)

CHAINS: dict[str, tuple[ShapeStrategy, ...]] = {
    **dict.fromkeys(("count", "sum", "squares", "min", "max"), (_TINY, _WINDOW, _ROWS, _INCREMENTAL, _NAIVE)),
    **dict.fromkeys(("distinct", "mode"), (_TINY, _WINDOW, _COUNTERS, _INCREMENTAL, _NAIVE)),
    "select": (_TINY, _WINDOW, _LANES, _BITSET, _INCREMENTAL, _NAIVE),
}
"""For each operation, what there is to choose from."""

NAMES = tuple(dict.fromkeys(strategy.name for chain in CHAINS.values() for strategy in chain))

_KNOWN: dict[Hashable, ShapeChoice] = {}


def compute_shapes(
    operation: str,
    values: Array,
    present: Mask | None,
    sweeps: Sequence[Sweep],
    runs: Runs,
    ranks: RankTable | None = None,
    out: Array | None = None,
    strategy: str = AUTO,
) -> Outcome:
    """An operation over every neighbourhood, by the cheapest strategy or the one asked for.

    Outputs stand where ``sweeps`` say; their neighbourhoods hold the cells at the offsets in ``runs``. Results may be
    written into ``out``.
    """
    choice = choose_shapes(operation, values.shape, values.dtype, sweeps, runs, ranks, strategy)
    outcome: Outcome = choice.run(values, present, out)
    return outcome


def choose_shapes(
    operation: str,
    shape: Sequence[int],
    dtype: Any,
    sweeps: Sequence[Sweep],
    runs: Runs,
    ranks: RankTable | None = None,
    strategy: str = AUTO,
) -> ShapeChoice:
    """What ``compute_shapes`` would do, which the next call alike need not find out again."""
    key = _key(operation, shape, dtype, sweeps, runs, ranks, strategy)
    known = None if key is None else _KNOWN.get(key)
    if known is not None:
        return known
    choice = choose(CHAINS[operation], shape_problem(operation, shape, dtype, sweeps, runs, ranks), strategy)
    if key is not None:
        if len(_KNOWN) >= REMEMBERED:
            _KNOWN.clear()
        _KNOWN[key] = choice
    return choice


def _key(
    operation: str, shape: Sequence[int], dtype: Any, sweeps: Sequence[Sweep], runs: Runs, ranks: RankTable | None,
    strategy: str,
) -> Hashable | None:  # fmt: skip
    """What makes two calls alike; None if that would take longer to compare than to find out."""
    arrays: list[Array] = [runs.leading, runs.first, runs.last]
    detail: Hashable = None
    if ranks is not None:
        arrays += [ranks.lower, ranks.upper, ranks.weight]
        detail = ranks.slope, ranks.interpolates
    if sum(array.nbytes for array in arrays) > LARGEST_KEY:
        return None
    stored = tuple(array.tobytes() for array in arrays)
    return operation, tuple(shape), dtype, tuple(sweeps), stored, detail, strategy
