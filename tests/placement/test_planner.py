"""Plans of random instances: complete, never below the bound, never worse than the baseline where that is promised."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement.problems import count_objective, plans, problems
from windrow.errors import DataError, UnknownNameError
from windrow.placement import STRATEGIES, Options, Plan, Problem, charge_both, evaluate, lower_bound, plan_batch
from windrow.placement.homes import keep_near_views, keep_where_joined, remember, weigh
from windrow.placement.improvement import Effort, Improvement, improve
from windrow.placement.plan import merging_bound
from windrow.placement.problem import NOWHERE, charge_receivers, charge_senders, make_chunks, make_pairs, make_views
from windrow.placement.stages import plan_baseline, plan_joins, plan_views, unpaired_homes

EASY = settings(max_examples=40, deadline=None)
PATIENT = Options(seconds=np.inf)


@EASY
@given(st.data())
def test_evaluate_equals_its_definition(data: st.DataObject) -> None:
    problem = data.draw(problems())
    plan = data.draw(plans(problem))
    assert evaluate(problem, plan).objective == pytest.approx(count_objective(problem, plan))


@EASY
@given(st.data(), st.sampled_from(sorted(STRATEGIES)), st.integers(0, 3))
def test_every_strategy_gives_a_whole_plan(data: st.DataObject, strategy: str, seed: int) -> None:
    """``evaluate`` refuses plans that leave out a pair, a chunk or a view chunk."""
    problem = data.draw(problems(most_nodes=20))
    decision = plan_batch(problem, strategy, Options(seed=seed, sweeps=2, seconds=np.inf))
    assert len(decision.plan.joins) == len(problem.pairs)
    assert decision.cost.objective == pytest.approx(count_objective(problem, decision.plan))
    assert decision.cost.objective >= decision.bound * (1 - 1e-12)
    assert decision.bound == lower_bound(problem) <= merging_bound(problem)
    assert decision.cost.objective >= merging_bound(problem) * (1 - 1e-12)
    if strategy in ("auto", "baseline"):
        assert decision.cost.rank <= decision.baseline.rank
    assert str(decision).startswith(strategy)


@EASY
@given(st.data(), st.sampled_from([0, 100]), st.sampled_from(["fewest_bytes", "first"]))
def test_stages_know_their_loads(data: st.DataObject, few: int, ties: str) -> None:
    """Greedy loads, over all nodes and over candidates, are those of the evaluator, with fixed homes and without."""
    problem = data.draw(problems())
    order = np.array(data.draw(st.permutations(range(len(problem.pairs)))), np.int64)
    no_merging = Problem(
        problem.nodes,
        problem.chunks,
        make_views([], [], []),
        make_pairs([(int(p), int(q), {}) for p, q in zip(problem.pairs.left, problem.pairs.right, strict=True)]),
        problem.rates,
    )
    joins, loads = plan_joins(problem, order, problem.settled, ties, few)
    plan = Plan(joins, problem.settled, np.zeros(0, np.int32))
    np.testing.assert_allclose(loads, evaluate(no_merging, plan).loads, atol=1e-9)
    views = plan_views(problem, joins, loads, np.random.default_rng(0).permutation(len(problem.views)), few)
    np.testing.assert_allclose(loads, evaluate(problem, Plan(joins, problem.settled, views)).loads, atol=1e-9)


def test_of_equal_nodes_a_pair_goes_where_its_state_is_made() -> None:
    """No load counts that no plan can be below, and nothing but the states of a view chunk draws its pairs together."""
    count, nodes = 12, 3
    chunks = make_chunks([1.0] * 2 * count, [NOWHERE] * 2 * count, [0] * 2 * count)
    views = make_views([0.0] * nodes, [NOWHERE] * nodes, [0] * nodes)
    pairs = make_pairs([(2 * i, 2 * i + 1, {i % nodes: 5.0}) for i in range(count)])
    problem = Problem(nodes, chunks, views, pairs, charge_receivers(1.0, 1.0, 1.0))
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(count)
        joins, _ = plan_joins(problem, order, problem.chunks.homes)
        made = {(i % nodes, int(node)) for i, node in enumerate(joins)}
        literal, _ = plan_joins(problem, order, problem.chunks.homes, "first")
        assert len(made) == nodes < len({(i % nodes, int(node)) for i, node in enumerate(literal)})


@EASY
@given(st.data(), st.sampled_from([3, 40]))
def test_the_pass_knows_its_loads_and_never_worsens(data: st.DataObject, most_nodes: int) -> None:
    problem = data.draw(problems(most_nodes=most_nodes))
    start = plan_baseline(problem)
    found = improve(
        problem, (start.joins, start.view_homes), problem.settled, np.random.default_rng(1), Effort(3, np.inf)
    )
    cost = evaluate(problem, Plan(found.joins, problem.settled, found.view_homes))
    np.testing.assert_allclose(found.loads, cost.loads, atol=1e-9)
    assert cost.objective <= evaluate(problem, start).objective * (1 + 1e-9)


def test_old_cells_without_pairs_follow_the_new_ones() -> None:
    """They are one chunk: nothing is charged to a home that the other part may leave."""
    chunks = make_chunks([1.0, 1.0, 1.0], [NOWHERE] * 3, [0, 0, 1], keys=[4, 4, 5])
    problem = Problem(2, chunks, make_views([], [], []), make_pairs([(1, 1, {})]), charge_receivers(1.0, 0.0, 0.0))
    assert unpaired_homes(problem).tolist() == [NOWHERE, NOWHERE, 1]


def test_a_view_chunk_moves_with_its_pairs() -> None:
    """Links are busy and states are large: a pair that moves alone sends its state, and a home that moves alone all."""
    count, each = 8, 3
    size = [1.0] * (2 * count * each)
    chunks = make_chunks([*size, 170.0, 170.0], [*(0 for _ in size), NOWHERE, NOWHERE], [*(0 for _ in size), 0, 1])
    views = make_views([0.0] * count, [0] * count, [0] * count)
    pairs = make_pairs([(2 * i, 2 * i + 1, {i // each: 27.0}) for i in range(count * each)])
    problem = Problem(2, chunks, views, pairs, charge_receivers(1.0, 4.0, 0.0))
    start = plan_baseline(problem)
    assert evaluate(problem, start).objective == 192.0
    found = improve(
        problem, (start.joins, start.view_homes), unpaired_homes(problem), np.random.default_rng(0), Effort(1, np.inf)
    )
    assert found.loads.max() < 190.0
    assert (found.view_homes[problem.pairs.views] == found.joins).all()


@EASY
@given(st.data())
def test_every_slice_of_the_pass_leaves_a_true_state(data: st.DataObject) -> None:
    """So that it may stop anywhere when its time is over."""
    problem = data.draw(problems())
    start = plan_baseline(problem)
    work = Improvement(problem, start.joins, start.view_homes, unpaired_homes(problem))
    if work.objective <= 0:
        return
    random = np.random.default_rng(2)
    for _ in itertools.chain(work.sweep(random, 1), work.sweep(random, 2)):
        now = work.keep(0)
        homes = keep_where_joined(problem, now.joins)
        # Homes that are decided afterwards may add what the pass does not know of, never take away.
        assert (evaluate(problem, Plan(now.joins, homes, now.view_homes)).loads >= now.loads - 1e-9).all()


@EASY
@given(st.data())
def test_homes_are_where_the_larger_part_is(data: st.DataObject) -> None:
    problem = data.draw(problems())
    plan = data.draw(plans(problem))
    homes = keep_where_joined(problem, plan.joins)
    for group in range(problem.group_count):
        members = np.flatnonzero(problem.groups == group)
        assert len(set(homes[members].tolist())) == 1
        home = homes[members[0]]
        users = {
            int(node)
            for pair, node in enumerate(plan.joins)
            if {int(problem.pairs.left[pair]), int(problem.pairs.right[pair])} & set(members.tolist())
        }
        assert home in users | {problem.settled[members[0]]}


def test_a_home_is_kept_unless_another_node_joins_clearly_more() -> None:
    chunks = make_chunks([1.0] * 12, [0] + [NOWHERE] * 11, [0] * 12)
    pairs = make_pairs([(other, 0, {}) for other in range(1, 12)])
    problem = Problem(2, chunks, make_views([], [], []), pairs)

    def home(there: int) -> int:
        return int(keep_where_joined(problem, np.array([1] * there + [0] * (11 - there), np.int32))[0])

    assert [home(there) for there in (5, 6, 7, 11)] == [0, 0, 1, 1]


def test_history_counts_by_its_weight() -> None:
    """A chunk that was joined for one view chunk again and again stays with it, if past batches count."""
    chunks = make_chunks([4.0, 4.0, 4.0], [0, NOWHERE, NOWHERE], [0, 0, 0])
    views = make_views([1.0, 1.0], [0, 1], [0, 1])
    past = Problem(2, chunks, views, make_pairs([(1, 0, {0: 1.0}), (2, 0, {0: 1.0})]))
    now = Problem(2, chunks, views, make_pairs([(1, 0, {1: 1.0}), (2, 0, {0: 0.5, 1: 1.0})]))
    joins, view_homes = np.array([0, 1], np.int32), np.array([0, 1], np.int32)

    def home(decay: float) -> int:
        weighed = weigh([remember(now), remember(past), remember(past)], decay)
        return int(keep_near_views(now, joins, view_homes, weighed)[0])

    assert home(0.0) == 1
    assert home(1.0) == 0


def test_one_node_reads_what_it_lacks() -> None:
    chunks = make_chunks([3.0, 5.0], [0, NOWHERE], [0, 0])
    problem = Problem(
        1, chunks, make_views([], [], []), make_pairs([(1, 0, {}), (1, 1, {})]), charge_receivers(1, 0.1, 0)
    )
    for strategy in STRATEGIES:
        assert plan_batch(problem, strategy).cost.receiving.tolist() == [5.0]


def test_more_nodes_than_chunks_and_chunks_of_no_size() -> None:
    chunks = make_chunks([0.0, 0.0], [NOWHERE, 77], [5, 6])
    problem = Problem(100, chunks, make_views([0.0], [NOWHERE], [3]), make_pairs([(0, 1, {0: 0.0})]))
    for strategy in STRATEGIES:
        decision = plan_batch(problem, strategy)
        assert decision.cost.objective == 0.0
        assert "1.00×" in str(decision)


def test_a_batch_without_pairs_needs_only_homes() -> None:
    chunks = make_chunks([2.0, 3.0], [NOWHERE, NOWHERE], [1, 0])
    problem = Problem(2, chunks, make_views([], [], []), make_pairs([]))
    for strategy in STRATEGIES:
        assert plan_batch(problem, strategy).plan.homes.tolist() == [1, 0]


def test_an_empty_batch() -> None:
    problem = Problem(3, make_chunks([], [], []), make_views([], [], []), make_pairs([]))
    for strategy in STRATEGIES:
        assert plan_batch(problem, strategy).cost.objective == 0.0


def test_the_baseline_is_taken_where_it_is_cheaper() -> None:
    """Everything is at home already and nothing has to move: no plan is better, and the planner says so."""
    chunks = make_chunks([1.0] * 4, [0, 0, 1, 1], [0, 0, 1, 1])
    views = make_views([9.0, 9.0], [0, 1], [0, 1])
    pairs = make_pairs([(0, 1, {0: 1.0}), (2, 3, {1: 1.0})])
    decision = plan_batch(Problem(2, chunks, views, pairs, charge_both(1.0, 0.0, 0.0)), "auto")
    assert decision.cost.objective == 0.0
    bad = plan_batch(Problem(2, chunks, views, pairs, charge_senders(1.0, 1.0, 0.0)), "auto", Options(sweeps=0))
    assert bad.cost.rank <= bad.baseline.rank


@given(st.data())
@settings(max_examples=8, deadline=None)
def test_the_same_seed_gives_the_same_plan(data: st.DataObject) -> None:
    problem = data.draw(problems())
    first, second = (plan_batch(problem, "auto", PATIENT).plan for _ in range(2))
    for one, other in ((first.joins, second.joins), (first.homes, second.homes), (first.view_homes, second.view_homes)):
        np.testing.assert_array_equal(one, other)


GOOD = (make_chunks([1.0, 1.0], [0, 1], [0, 0]), make_views([1.0], [0], [0]), make_pairs([(0, 1, {0: 1.0})]))


@pytest.mark.parametrize(
    ("nodes", "parts", "error", "says"),
    [
        (0, {}, DataError, "at least one node"),
        (-3, {}, DataError, "at least one node"),
        (1, {}, UnknownNameError, "chunk 1 is at home on a node that is not there, got 1"),
        (2, {"chunks": make_chunks([1, 1], [0, 1], [0, 2])}, UnknownNameError, "assigned to a node"),
        (2, {"chunks": make_chunks([1, -1], [0, 1], [0, 0])}, DataError, "size of a chunk must be 0 or more"),
        (2, {"chunks": make_chunks([1, np.nan], [0, 1], [0, 0])}, DataError, "size of a chunk must be 0 or more"),
        (2, {"chunks": make_chunks([1, 1], [0], [0, 0])}, DataError, "needs a key, a size, a home"),
        (2, {"views": make_views([1.0], [9], [0])}, UnknownNameError, "view chunk 0 is at home on a node"),
        (2, {"pairs": make_pairs([(0, 5, {})])}, UnknownNameError, "a chunk that is not there"),
        (2, {"pairs": make_pairs([(0, 1, {3: 1.0})])}, UnknownNameError, "a view chunk that is not there"),
        (2, {"pairs": make_pairs([(0, 1, {}), (1, 0, {})])}, DataError, "a pair is listed twice"),
        (2, {"pairs": make_pairs([(0, 1, {0: -1.0})])}, DataError, "partial state"),
    ],
)
def test_bad_problems_are_refused(nodes: int, parts: dict, error: type[Exception], says: str) -> None:
    chunks, views, pairs = GOOD
    with pytest.raises(error, match=says):
        Problem(nodes, **({"chunks": chunks, "views": views, "pairs": pairs} | parts))


def test_bad_plans_and_options_are_refused() -> None:
    problem = Problem(2, *GOOD)
    good = plan_baseline(problem)
    with pytest.raises(DataError, match="of another problem"):
        evaluate(problem, Plan(good.joins[:0], good.homes, good.view_homes))
    with pytest.raises(DataError, match="pair 0 is planned for a node that is not there"):
        evaluate(problem, Plan(good.joins + 5, good.homes, good.view_homes))
    twins = Problem(2, make_chunks([1.0, 1.0], [0, NOWHERE], [0, 0], keys=[4, 4]), *GOOD[1:])
    with pytest.raises(DataError, match="different homes"):
        evaluate(twins, Plan(good.joins, np.array([0, 1], np.int32), good.view_homes))
    with pytest.raises(UnknownNameError, match="Did you mean 'reassign'"):
        plan_batch(problem, "reasign")
    for wrong in ({"window": -1}, {"decay": 1.5}, {"sweeps": -1}, {"seconds": np.nan}):
        with pytest.raises(DataError):
            Options(**wrong)
    with pytest.raises(UnknownNameError, match="rule for ties"):
        Options(ties="last")
