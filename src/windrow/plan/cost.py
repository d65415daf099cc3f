"""How an aggregate over windows will be computed, and about how long that takes on one core.

Kernels choose among strategies by estimates of their own, and what they would choose is what is told here. The figures
are rounded measurements, good enough to choose an engine and to tell a second from an hour.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from windrow.aggregates.aggregate import Aggregate
from windrow.kernels.choose import AUTO
from windrow.kernels.contract.problems import WindowProblem, window_problem
from windrow.kernels.contract.sweeps import AnySweep
from windrow.kernels.windows import WindowChoice, choose_windows
from windrow.model.window import Extent
from windrow.plan.sparse_axes import cell_axes, swept_dimension
from windrow.plan.windows import WindowPlan

FOUND_ROW = 10.0  # nanoseconds to find a row of a window among sparse cells
USER_CELL = 3.0  # a call of a user's function


@dataclass(frozen=True)
class Estimate:
    """How one aggregate is computed over the windows of a block."""

    text: str
    sweep: int | None  # the axis along which a window reuses the one before; None: all axes alike
    nanoseconds: float
    choice: WindowChoice | None = None
    """What there was to choose from, if there was anything."""

    @property
    def candidates(self) -> list[str]:
        """A line for each strategy: what it would take, or why it cannot."""
        return [] if self.choice is None else self.choice.lines()


def _composed(
    aggregate: Aggregate, asked: Asked, shape: Sequence[int], dtype: Any, sweeps: Sequence[AnySweep]
) -> Estimate:
    """An aggregate that is made of several primitives takes their time together."""
    made_of = aggregate.definition.made_of
    found = [estimate(Aggregate(name, aggregate.attribute), asked, shape, dtype, sweeps) for name in made_of]
    names = ", ".join(dict.fromkeys(made_of))
    return Estimate(f"made of {names}: {found[0].text}", found[0].sweep, sum(one.nanoseconds for one in found))


@dataclass(frozen=True)
class Asked:
    """What is asked of kernels: by which method, and which strategy under method auto."""

    method: str = "auto"
    strategy: str = AUTO
    swept: int | None = None


def estimate(
    aggregate: Aggregate, asked: Asked, shape: Sequence[int], dtype: Any, sweeps: Sequence[AnySweep]
) -> Estimate:
    """What ``Evaluation.result`` will do for one aggregate."""
    operation = aggregate.definition.kernel_operation
    problem = window_problem(operation, shape, dtype or "bool", sweeps, forced=asked.swept)
    if aggregate.attribute is None:
        return Estimate("the number of cells follows from the window", None, problem.outputs * 1.0)
    if aggregate.definition.compose is not None:
        return _composed(aggregate, asked, shape, dtype, sweeps)
    if operation == "user":
        return _user(aggregate, asked.method, problem)
    ranks = aggregate.ranks(problem.cells)
    forced = asked.strategy if asked.method == "auto" else asked.method
    choice = choose_windows(operation, shape, dtype, sweeps, ranks, forced, asked.swept)
    cost = choice.cost
    return Estimate(f"{choice.name}, {choice.reason}", cost.sweep, cost.nanoseconds, choice)


def cell_estimate(plan: WindowPlan, cells: int) -> Estimate:
    """What will be done for an aggregate over the windows of a sparse array that has ``cells`` cells."""
    swept = swept_dimension(cell_axes(plan, plan.results), plan.swept)
    whole = [isinstance(extent, Extent) and extent.is_any for extent in plan.resolved.extents]
    widths = [extent.width if isinstance(extent, Extent) else 1 for extent in plan.resolved.extents]
    others = [1 if whole[axis] else width for axis, width in enumerate(widths) if axis != swept]
    rows, method = math.prod(others), plan.method
    order = "coordinates" if swept == len(widths) - 1 else f"coordinates with {plan.window.dimensions[swept]} last"
    text = f"at existing cells, found in {rows:,} rows of the window in the order of {order}"
    if method == "auto":
        text += ", or on a grid where cells lie close"
    return Estimate(f"{text} ({method})", swept, cells * rows * FOUND_ROW)


def _user(aggregate: Aggregate, method: str, problem: WindowProblem) -> Estimate:
    functions = aggregate.user.functions
    if method == "naive" or (functions.remove is None and functions.merge is None):
        return Estimate("user-defined: add, every cell of every window", None, problem.covered * USER_CELL)
    calls = "add and remove" if functions.remove is not None else "add and merge, by two stacks"
    return Estimate(f"user-defined: {calls}", problem.swept, 2 * problem.entering * USER_CELL)
