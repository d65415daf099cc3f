"""The exact optimum: it is what ``evaluate`` says of its plan, and nothing is below it."""

from __future__ import annotations

import importlib.util
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement.problems import problems
from windrow.errors import DataError, MachineError
from windrow.placement import Options, Plan, Problem, evaluate, lower_bound, plan_batch
from windrow.placement.exact import solve_exactly
from windrow.placement.problem import NOWHERE, make_chunks, make_pairs, make_views

FEW = settings(max_examples=12, deadline=None)


@FEW
@given(st.data())
def test_it_agrees_with_the_evaluator_and_bounds_auto(data: st.DataObject) -> None:
    problem = data.draw(problems(most_nodes=3, most_pairs=6))
    best = solve_exactly(problem, 60.0)
    assert best.proven
    assert evaluate(problem, best.plan).objective == pytest.approx(best.objective, abs=1e-5)
    auto = plan_batch(problem, "auto", Options(seconds=np.inf))
    assert auto.cost.objective >= best.objective - 1e-5
    assert best.objective >= lower_bound(problem) - 1e-5


@FEW
@given(st.data())
def test_no_plan_of_all_is_better(data: st.DataObject) -> None:
    """Against every plan, one by one."""
    problem = data.draw(problems(most_nodes=2, most_pairs=3))
    sizes = (len(problem.pairs), problem.group_count, len(problem.views))
    if sum(sizes) > 10:
        return
    lowest = np.inf
    for nodes in itertools.product(range(problem.nodes), repeat=sum(sizes)):
        joins, homes, views = np.split(np.array(nodes, np.int32), np.cumsum(sizes[:2]))
        # A chunk without pairs goes where it is assigned: nothing about it is planned.
        homes = np.where(problem.is_paired, homes[problem.groups], problem.settled)
        alone = np.bincount(problem.groups, problem.is_paired, problem.group_count)[problem.groups] == 0
        if len(problem.chunks) and not alone.any() and len({*zip(problem.groups, homes, strict=True)}) > sizes[1]:
            continue
        lowest = min(lowest, _objective(problem, Plan(joins, homes.astype(np.int32), views)))
    assert solve_exactly(problem, 60.0).objective <= lowest + 1e-5


def _objective(problem: Problem, plan: Plan) -> float:
    try:
        return evaluate(problem, plan).objective
    except DataError:  # old and new cells apart
        return np.inf


def test_too_large_a_problem_is_refused() -> None:
    count = 210
    chunks = make_chunks(np.ones(count), np.full(count, NOWHERE), np.zeros(count))
    pairs = make_pairs([(i, i, {}) for i in range(count)])
    with pytest.raises(DataError, match="too large to be solved exactly, got 21,000 choices"):
        solve_exactly(Problem(100, chunks, make_views([], [], []), pairs))


def test_without_the_solver_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    problem = Problem(1, make_chunks([1.0], [0], [0]), make_views([], [], []), make_pairs([(0, 0, {})]))
    with pytest.raises(MachineError, match=r"pip install 'windrow\[exact\]'"):
        solve_exactly(problem)
