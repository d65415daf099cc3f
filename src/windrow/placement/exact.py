"""The best plan there is, by integer programming with HiGHS: for small problems, to know how far the others are off."""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import dataclass
from typing import Any

import numpy as np

from windrow.errors import DataError, MachineError
from windrow.placement.homes import keep_where_joined
from windrow.placement.plan import Plan
from windrow.placement.problem import NOWHERE, Int32Array, Problem
from windrow.placement.stages import unpaired_homes

MOST_CHOICES = 20_000
"""Pairs and view chunks, times nodes: beyond, no solver comes to an end."""


@dataclass(frozen=True, eq=False)
class Optimum:
    """A plan, its objective as the solver counts it, and whether the solver proved that none is better."""

    plan: Plan
    objective: float
    proven: bool


class _Program:
    """A linear program that grows: columns with their bounds, and rows of factors with theirs."""

    def __init__(self) -> None:
        self.lower: list[float] = []
        self.upper: list[float] = []
        self.whole: list[bool] = []
        self.starts: list[int] = [0]
        self.columns: list[int] = []
        self.factors: list[float] = []
        self.least: list[float] = []
        self.most: list[float] = []

    def variable(self, upper: float, whole: bool = False) -> int:
        self.lower.append(0.0)
        self.upper.append(upper)
        self.whole.append(whole)
        return len(self.lower) - 1

    def choice(self, count: int) -> list[int]:
        """One of so many things."""
        found = [self.variable(1.0, whole=True) for _ in range(count)]
        self.require(dict.fromkeys(found, 1.0), least=1.0, most=1.0)
        return found

    def require(self, factors: dict[int, float], least: float = 0.0, most: float = np.inf) -> None:
        """``least`` ≤ the sum of factors times columns ≤ ``most``."""
        self.columns += factors.keys()
        self.factors += factors.values()
        self.starts.append(len(self.columns))
        self.least.append(least)
        self.most.append(most)


def solve_exactly(problem: Problem, seconds: float = 20.0) -> Optimum:
    """The plan with the smallest objective: joins, view homes, and homes of chunks that grow.

    After ``seconds`` the best plan so far, not proven. A problem without view chunks is that of the joins alone.
    """
    choices = (len(problem.pairs) + len(problem.views)) * problem.nodes
    if choices > MOST_CHOICES:
        raise DataError(
            "the problem is too large to be solved exactly",
            got=f"{choices:,} choices",
            hint=f"Up to {MOST_CHOICES:,} are tried; strategy 'auto' has no such limit",
        )
    solver = _required()
    model = _Model(problem)
    values, objective, proven = _run(solver, model.program, model.objective, seconds)
    return Optimum(model.read(values), objective, proven)


def _required() -> Any:
    if importlib.util.find_spec("highspy") is None:
        raise MachineError(
            "exact plans come from HiGHS, whose package is not installed", hint="pip install 'windrow[exact]'"
        )
    return importlib.import_module("highspy")


class _Model:
    """The objective of ``evaluate`` as a program.

    Loads are sums of columns; column ``objective`` is at least each of them. Where a product stands in the objective,
    of a partial state and of the choice of a home, a column takes its place that must be as large only if the home is
    chosen.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.program = _Program()
        self.loads: list[dict[int, float]] = [{} for _ in range(3 * problem.nodes)]
        self.constants = np.zeros(3 * problem.nodes)
        self.objective = self.program.variable(np.inf)
        self.joins = [self.program.choice(problem.nodes) for _ in range(len(problem.pairs))]
        self.groups = self._choose_groups()
        self._add_joins()
        self._add_chunks()
        self.views = [self.program.choice(problem.nodes) for _ in range(len(problem.views))]
        for view in range(len(problem.views)):
            self._add_view(view)
        for load, constant in zip(self.loads, self.constants, strict=True):
            self.program.require({self.objective: 1.0} | {c: -f for c, f in load.items()}, least=float(constant))

    def read(self, values: list[float]) -> Plan:
        def chosen(choice: list[int]) -> int:
            return int(np.argmax([values[column] for column in choice]))

        problem = self.problem
        joins: Int32Array = np.array([chosen(choice) for choice in self.joins], np.int32)
        homes = keep_where_joined(problem, joins)
        for group, choice in self.groups.items():
            homes[problem.groups == group] = chosen(choice)
        views: Int32Array = np.array([chosen(choice) for choice in self.views], np.int32)
        return Plan(joins, homes, views)

    def _choose_groups(self) -> dict[int, list[int]]:
        """Chunks whose home can cost something: those of old and new cells. Others have one where they are joined."""
        members = np.bincount(self.problem.groups, minlength=self.problem.group_count)
        return {int(group): self.program.choice(self.problem.nodes) for group in np.flatnonzero(members > 1)}

    def _charge(self, load: int, column: int, factor: float) -> None:
        self.loads[load][column] = self.loads[load].get(column, 0.0) + factor

    def _carry(self, start: int, end: int, column: int, size: float) -> None:
        """Bytes travel if the column is 1."""
        problem = self.problem
        self._charge(end, column, problem.rates.receive * size)
        if start != NOWHERE:
            self._charge(problem.nodes + start, column, problem.rates.send * size)

    def _add_joins(self) -> None:
        nodes, rate = self.problem.nodes, self.problem.rates.join
        for choice, size in zip(self.joins, self.problem.joined_bytes.tolist(), strict=True):
            for node, column in enumerate(choice):
                self._charge(2 * nodes + node, column, rate * size)

    def _add_chunks(self) -> None:
        """A chunk comes to a node if a pair of it is joined there, or if it is to be at home there."""
        problem = self.problem
        fixed = unpaired_homes(problem)
        for chunk in range(len(problem.chunks)):
            home, size = int(problem.chunks.homes[chunk]), float(problem.chunks.bytes[chunk])
            group = self.groups.get(int(problem.groups[chunk]))
            of_chunk = np.flatnonzero((problem.pairs.left == chunk) | (problem.pairs.right == chunk))
            for node in range(problem.nodes):
                if node == home:
                    continue
                wanted = [self.joins[pair][node] for pair in of_chunk] + ([group[node]] if group else [])
                if not group and fixed[chunk] == node:
                    self.constants[node] += problem.rates.receive * size
                    if home != NOWHERE:
                        self.constants[problem.nodes + home] += problem.rates.send * size
                elif wanted:
                    comes = self.program.variable(1.0)
                    for column in wanted:
                        self.program.require({comes: 1.0, column: -1.0})
                    self._carry(home, node, comes, size)

    def _add_view(self, view: int) -> None:
        problem, nodes, choice = self.problem, self.problem.nodes, self.views[view]
        entries = np.flatnonzero(problem.pairs.views == view)
        made = float(problem.pairs.states[entries].sum())
        most = min(made, float(problem.views.most[view]))
        partial = [self._partial_state(entries.tolist(), node, made, most) for node in range(nodes)]
        for node in range(nodes):
            everything = self.program.variable(np.inf)
            far = self.program.variable(np.inf)
            sent = self.program.variable(np.inf)
            bound = min(made, nodes * most)
            self.program.require({everything: 1.0, choice[node]: -bound} | dict.fromkeys(partial, -1.0), least=-bound)
            others = [column for other, column in enumerate(partial) if other != node]
            self.program.require({far: 1.0, choice[node]: -bound} | dict.fromkeys(others, -1.0), least=-bound)
            self.program.require({sent: 1.0, partial[node]: -1.0, choice[node]: most})
            self._charge(2 * nodes + node, everything, problem.rates.merge)
            self._charge(node, far, problem.rates.receive)
            self._charge(nodes + node, sent, problem.rates.send)
            before = int(problem.views.homes[view])
            if before not in (NOWHERE, node):
                self._carry(before, node, choice[node], float(problem.views.bytes[view]))

    def _partial_state(self, entries: list[int], node: int, made: float, most: float) -> int:
        """The bytes that a node has of a view chunk: the sum of what its pairs make, or ``most`` if that is less."""
        pairs = self.problem.pairs
        states = {self.joins[int(pairs.of_state[entry])][node]: -float(pairs.states[entry]) for entry in entries}
        size = self.program.variable(np.inf)
        if made <= most:
            self.program.require({size: 1.0} | states)
            return size
        full = self.program.variable(1.0, whole=True)
        self.program.require({size: 1.0, full: made - most} | states)
        self.program.require({size: 1.0, full: -most})
        return size


def _run(solver: Any, program: _Program, objective: int, seconds: float) -> tuple[list[float], float, bool]:
    """Hand the program to HiGHS; values of all columns, the objective, and whether it is proven."""
    model = solver.HighsLp()
    count, rows = len(program.lower), len(program.least)
    model.num_col_, model.num_row_ = count, rows
    costs = np.zeros(count)
    costs[objective] = 1.0
    model.col_cost_ = costs
    model.col_lower_, model.col_upper_ = np.array(program.lower), np.array(program.upper)
    model.row_lower_, model.row_upper_ = np.array(program.least), np.array(program.most)
    model.a_matrix_.format_ = solver.MatrixFormat.kRowwise
    model.a_matrix_.start_ = np.array(program.starts, np.int32)
    model.a_matrix_.index_ = np.array(program.columns, np.int32)
    model.a_matrix_.value_ = np.array(program.factors)
    kinds = (solver.HighsVarType.kContinuous, solver.HighsVarType.kInteger)
    model.integrality_ = [kinds[whole] for whole in program.whole]
    highs = solver.Highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("threads", 1)
    highs.setOptionValue("time_limit", float(seconds))
    highs.setOptionValue("mip_rel_gap", 1e-7)
    highs.passModel(model)
    highs.run()
    status = highs.getModelStatus()
    info = highs.getInfo()
    if info.primal_solution_status != solver.SolutionStatus.kSolutionStatusFeasible:
        raise MachineError("HiGHS found no plan in time", got=f"{seconds} s", hint="Give it more, or a smaller problem")
    values = list(highs.getSolution().col_value)
    return values, float(info.objective_function_value), status == solver.HighsModelStatus.kOptimal
