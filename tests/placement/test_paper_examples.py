"""Paper 004, appendix B: the three worked examples with the paper's numbers. Nodes X, Y, Z are 0, 1, 2."""

from __future__ import annotations

import numpy as np

from windrow.kernels.placement.batch import make_lists
from windrow.kernels.placement.homes import follow_views
from windrow.placement import NOWHERE, Plan, Problem, charge_senders, evaluate
from windrow.placement.problem import make_chunks, make_pairs, make_views
from windrow.placement.stages import plan_joins, plan_views, unpaired_homes

X, Y, Z = 0, 1, 2
DA4, A1, DA7, DA2, A2, DA3 = range(6)
HOMES = [X, X, X, Y, Y, Z]
TRIPLES = [(DA4, A1), (DA2, A1), (DA2, DA3), (DA7, A2)]
NO_VIEWS = make_views([], [], [])


def joining(pairs: list[tuple[int, int]]) -> Problem:
    chunks = make_chunks([1.0] * 6, HOMES, HOMES)
    return Problem(3, chunks, NO_VIEWS, make_pairs([(p, q, {}) for p, q in pairs]), charge_senders(4.0, 1.0, 1.0))


def loads_of(problem: Problem, joins: list[int]) -> tuple[list[float], list[float]]:
    plan = Plan(np.array(joins, np.int32), problem.chunks.homes, np.zeros(0, np.int32))
    cost = evaluate(problem, plan)
    return cost.sending.tolist(), cost.computing.tolist()


def test_differential_view_computation() -> None:
    """B.1, in the order of the text."""
    first, whole = joining(TRIPLES[:3]), joining(TRIPLES)
    for problem, runs_on, ntwk, cpu in (
        (first, [X, X, Y], [0, 4, 4], [4, 2, 0]),
        (whole, [X, X, Y, Y], [4, 4, 4], [4, 4, 0]),
    ):
        joins, loads = plan_joins(problem, np.arange(len(runs_on)), unpaired_homes(problem), "first")
        assert joins.tolist() == runs_on
        assert (loads[3:6].tolist(), loads[6:].tolist()) == (ntwk, cpu) == loads_of(problem, runs_on)


def test_the_fourth_triple_on_each_server() -> None:
    """opt_now is 8 on X, 4 on Y, 8 on Z."""
    found = [max(max(side) for side in loads_of(joining(TRIPLES), [X, X, Y, last])) for last in (X, Y, Z)]
    assert found == [8, 4, 8]


LOADS = np.array([0, 0, 0, 32, 36, 30, 36, 30, 35], float)


def merging() -> Problem:
    """Three joins whose results, two bytes each, go into V1."""
    chunks = make_chunks([1.0] * 4, [NOWHERE] * 4, [0] * 4)
    pairs = make_pairs([(1, 0, {0: 2.0}), (2, 0, {0: 2.0}), (3, 0, {0: 2.0})])
    return Problem(3, chunks, make_views([0.0], [NOWHERE], [0]), pairs, charge_senders(2.0, 1.0, 1.0))


def test_view_chunk_reassignment() -> None:
    """B.2: V1 goes to Y, where the maximum is 40."""
    loads = LOADS.copy()
    homes = plan_views(merging(), np.array([X, X, Y], np.int32), loads, np.arange(1))
    assert homes.tolist() == [Y]
    assert loads.max() == 40
    assert loads.tolist() == [0, 0, 0, 40, 36, 30, 36, 36, 35]


def test_v1_on_each_server() -> None:
    """opt_now is 42 on X, 40 on Y, 41 on Z; the joins themselves are in the loads already."""
    problem = merging()
    without = Problem(3, problem.chunks, problem.views, problem.pairs, charge_senders(2.0, 0.0, 1.0))
    joins = np.array([X, X, Y], np.int32)
    found = []
    for home in (X, Y, Z):
        cost = evaluate(without, Plan(joins, np.zeros(4, np.int32), np.array([home], np.int32)))
        found.append((LOADS + cost.loads).max())
    assert found == [42, 40, 41]


def test_array_chunk_reassignment() -> None:
    """B.3: A2 goes to Y, A1 to X, A3 to Z; left of the thresholds are 3, 2 and 0."""
    a1, a2, a3 = range(3)
    v1, v2, v3 = range(3)
    chunks = np.array([a2, a1, a1, a2, a3], np.int32)
    views = np.array([v1, v1, v2, v3, v3], np.int32)
    replicas = make_lists(np.ones(3, np.int64))
    replicas.nodes[:], replicas.count[:] = [Z, Z, Y], 1
    quota = np.array([4.0, 3.0, 1.0])
    homes = follow_views(chunks, views, np.array([Y, X, Z]), np.array([X, Y, Z]), replicas, np.ones(3), quota)
    assert homes.tolist() == [X, Y, Z]
    assert quota.tolist() == [3, 2, 0]
