"""What the ways to compute windows cost, as estimates in nanoseconds from the sizes of a problem alone.

Measured on one core of a 2.4 GHz Zen 3 server; only their ratios matter. Order statistics by networks and sets of bits
have estimates of their own, beside their kernels.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from windrow.kernels.choose import Cost
from windrow.kernels.contract.problems import WindowProblem


class Rate(NamedTuple):
    """Nanoseconds a call, an output and a cell."""

    call: float
    output: float
    cell: float

    def of(self, outputs: float, cells: float) -> float:
        return self.call + outputs * self.output + cells * self.cell


TINY = {
    "select": Rate(1e5, 60.0, 45.0),
    "distinct": Rate(1.2e5, 80.0, 60.0),
    "mode": Rate(1.2e5, 80.0, 60.0),
}
TINY_OTHERS = Rate(8e4, 40.0, 25.0)
SCAN_CALL, SCAN_INPUT, SCAN_OUTPUT = 2e4, 0.8, 0.6  # an output and windowed axis of a block scan
SCANS = {"squares": 4.0, "avg": 1.5}  # what an operation takes beside a sum
NAIVE = {"distinct": Rate(1e4, 40.0, 30.0), "mode": Rate(1e4, 40.0, 22.0), "squares": Rate(1e4, 60.0, 4.5)}
NAIVE_OTHERS = Rate(1e4, 60.0, 3.2)
SORTED = Rate(1e4, 40.0, 6.0)  # a cell and each doubling of the window
UNITS = {"distinct": Rate(1e4, 20.0, 30.0), "mode": Rate(1e4, 30.0, 32.0)}
UNITS_OTHERS, UNIT = Rate(1e4, 30.0, 1.8), 30.0  # beside its cells, a unit that comes and goes
TREE, LEAF = Rate(1e4, 25.0, 6.0), 8  # a cell that comes or goes, and each doubling of the tree beyond a leaf
COUNTED = {"distinct": Rate(2e4, 8.0, 6.0), "mode": Rate(2e4, 12.0, 12.0)}
NUMBERED_CELL = 5.0  # a cell, and each doubling of the input, to number its values

STRUCTURES = {
    "select": "balanced search tree",
    "sum": "SUM-list",
    "avg": "SUM-list",
    "squares": "SUM-list",
    "min": "heap",
    "max": "heap",
    "count": "heap",
    "distinct": "counted hash table",
    "mode": "counted hash table",
}


def tiny_cost(problem: WindowProblem) -> Cost:
    rate = TINY.get(problem.operation, TINY_OTHERS)
    return Cost(rate.of(problem.outputs, problem.outputs * problem.cells))


def scan_cost(problem: WindowProblem) -> Cost:
    work = SCAN_INPUT * problem.inputs + SCAN_OUTPUT * problem.windowed_axes * problem.outputs
    return Cost(SCAN_CALL + work * SCANS.get(problem.operation, 1.0))


def naive_cost(problem: WindowProblem) -> Cost:
    if problem.operation == "select":
        return Cost(SORTED.of(problem.outputs, problem.covered * _doublings(problem.cells)))
    return Cost(NAIVE.get(problem.operation, NAIVE_OTHERS).of(problem.outputs, problem.covered))


def incremental_cost(problem: WindowProblem) -> Cost:
    cells = "one cell" if problem.section == 1 else f"{problem.section:,} cells"
    detail = f"units of {cells} into a {STRUCTURES[problem.operation]}"
    if problem.operation == "select":
        work = TREE.of(problem.outputs, 2 * problem.entering * _doublings(problem.cells // LEAF))
    elif problem.operation in UNITS:
        work = UNITS[problem.operation].of(problem.outputs, problem.entering)
    else:
        work = UNITS_OTHERS.of(problem.outputs, problem.entering) + UNIT * problem.entering / problem.section
    return Cost(work, detail, sweep=problem.swept)


def counters_cost(problem: WindowProblem) -> Cost:
    numbering = problem.inputs * _doublings(problem.inputs) * NUMBERED_CELL
    work = COUNTED[problem.operation].of(problem.outputs, 2 * problem.entering)
    return Cost(numbering + work, sweep=problem.swept)


def _doublings(count: int) -> float:
    return max(1.0, math.log2(max(2, count)))
