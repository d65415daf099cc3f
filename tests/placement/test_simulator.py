"""The modelled cluster: its problems are what the batches say, and its sums are the same for the same seed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from windrow.errors import DataError, UnknownNameError
from windrow.placement import NOWHERE, Options, evaluate, plan_batch
from windrow.placement.simulator import workloads
from windrow.placement.simulator.chunks import ChunkSet, concatenate, draw_bounds
from windrow.placement.simulator.instances import draw_instance
from windrow.placement.simulator.run import SHAPES, Cluster, Setting, simulate, workload_of
from windrow.placement.simulator.stock import Stock, ViewShape, assign_stock, hold, pose, settle, to_paper_model
from windrow.placement.simulator.workloads import Workload, cut_stream, spread_workload, survey_stream

NODES = 4


def small_survey(nights: int = 6, seed: int = 0) -> Workload:
    drawn = workloads.draw_survey(12, 0, seed)
    half = 12 - nights
    return Workload(
        "small", concatenate(drawn[:half]), tuple(concatenate(drawn[i : i + 2]) for i in range(half, 12, 2))
    )


def pairs_by_hand(stock: Stock, new: ChunkSet, shape: ViewShape) -> set[tuple[int, int, bool]]:
    """Every two chunks are compared: keys of both, and whether the right one is new."""
    reach = np.maximum(shape.back, shape.ahead)
    found = set()
    for i, key in enumerate(new.keys.tolist()):
        for other, is_new in ((stock.chunks, False), (new, True)):
            meets = ((new.low[i] - reach <= other.high) & (new.high[i] + reach >= other.low)).all(axis=1)
            for j in np.flatnonzero(meets):
                if not is_new or i <= j:
                    found.add((key, int(other.keys[j]), is_new))
    return found


@pytest.mark.parametrize("view", ["PTF-5", "PTF-25"])
def test_pairs_are_those_whose_bounds_meet(view: str) -> None:
    workload = small_survey()
    again = ChunkSet(*(getattr(workload.base.take(slice(0, 40)), name) for name in ("numbers", "low", "high", "bytes")))
    shape = SHAPES[view]
    stock = assign_stock(workload.base, shape, "round_robin", NODES)
    for new in (workload.batches[0], again):
        step = pose(stock, new, shape, "round_robin", NODES, Cluster().receivers)
        problem = step.problem
        keys, old = problem.chunks.keys, len(step.old)
        found = {
            (int(keys[left]), int(keys[right]), bool(right >= old))
            for left, right in zip(problem.pairs.left, problem.pairs.right, strict=True)
        }
        assert found == pairs_by_hand(stock, new, shape)
        assert (problem.chunks.homes[old:] == NOWHERE).all()
        # Results of a chunk change only where it is one of the pair.
        for pair, view_chunk in zip(problem.pairs.of_state, problem.pairs.views, strict=True):
            sides = {keys[problem.pairs.left[pair]], keys[problem.pairs.right[pair]]}
            assert problem.views.keys[view_chunk] in sides


def test_a_view_that_looks_back_changes_the_later_chunk_alone() -> None:
    numbers = np.array([[0, 5, 5], [3, 5, 5]])
    both = ChunkSet(
        numbers, *draw_bounds(np.random.default_rng(0), numbers, (112, 100, 50), 0.0), np.array([48.0, 96.0])
    )
    shape = SHAPES["PTF-5"]
    stock = assign_stock(both.take(slice(0, 1)), shape, "tiles", 1)
    problem = pose(stock, both.take(slice(1, 2)), shape, "tiles", 1, Cluster(1).receivers).problem
    assert len(problem.pairs) == 2
    assert problem.views.keys.tolist() == both.keys[1:].tolist()


def test_chunks_grow_and_keep_the_home_of_the_plan() -> None:
    workload = small_survey()
    shape = SHAPES["PTF-25"]
    stock = assign_stock(workload.base, shape, "round_robin", NODES)
    new = concatenate([workload.base.take(slice(0, 5)), workload.batches[0]])
    step = pose(stock, new, shape, "round_robin", NODES, Cluster(NODES).receivers)
    plan = plan_batch(step.problem, "auto", Options(sweeps=1)).plan
    after, held = settle(stock, new, step, plan), hold(stock, new, step, plan)
    assert after.chunks.bytes.sum() == pytest.approx(stock.chunks.bytes.sum() + new.bytes.sum())
    assert len(after.chunks) == len(stock.chunks) + len(workload.batches[0])
    assert held.chunks.bytes.sum() == stock.chunks.bytes.sum()
    place = after.find(step.problem.chunks.keys)
    np.testing.assert_array_equal(after.homes[place], plan.homes)
    np.testing.assert_array_equal(after.view_homes[after.find(step.problem.views.keys)], plan.view_homes)
    assert len(np.unique(after.chunks.keys)) == len(after.chunks)


def test_the_papers_model_of_the_same_batch() -> None:
    workload = small_survey()
    shape = SHAPES["PTF-5"]
    stock = assign_stock(workload.base, shape, "round_robin", NODES)
    own = pose(stock, workload.batches[0], shape, "round_robin", NODES, Cluster(NODES).receivers).problem
    paper = to_paper_model(own, Cluster(NODES).senders)
    assert (paper.chunks.homes >= 0).all()
    decision = plan_batch(paper, "baseline")
    assert decision.cost.receiving.sum() == 0.0
    assert decision.cost.sending.sum() > 0.0
    # A pair's result is as large as the pair: merging takes at least as long as joining.
    joining = paper.rates.join * paper.joined_bytes.sum()
    assert decision.cost.computing.sum() >= 2 * joining * (1 - 1e-9)


@pytest.mark.parametrize("base", ["growing", "held"])
@pytest.mark.parametrize("model", ["windrow", "paper"])
def test_runs_are_the_same_for_the_same_seed(model: str, base: str) -> None:
    workload = small_survey()
    setting = Setting("auto", cluster=Cluster(NODES), model=model, base=base, options=Options(sweeps=1, seconds=np.inf))
    first, second = (simulate("PTF-25", workload, setting) for _ in range(2))
    assert [replace(result, planning=0.0) for result in first] == [replace(result, planning=0.0) for result in second]
    for result in first:
        assert result.bound * (1 - 1e-9) <= result.objective <= result.baseline * (1 + 1e-9)
        assert result.old_bytes_moved <= result.bytes_received + 1e-6


def test_patterns_repeat_chunks_with_new_cells() -> None:
    real = workload_of("PTF-5", "real", 3, 1)
    periodic = workload_of("PTF-5", "periodic", 4, 1)
    correlated = workload_of("PTF-5", "correlated", 2, 1)
    assert all(600 <= len(batch) <= 2_600 for batch in real.batches)
    np.testing.assert_array_equal(periodic.batches[2].keys, periodic.batches[3].keys)
    np.testing.assert_array_equal(correlated.batches[0].keys, correlated.batches[1].keys)
    assert not np.array_equal(correlated.batches[0].bytes, correlated.batches[1].bytes)
    np.testing.assert_array_equal(real.batches[0].bytes, correlated.batches[0].bytes)


def test_places_are_drawn_once() -> None:
    drawn = workload_of("GEO", "random", 3, 0)
    keys = np.concatenate([drawn.base.keys, *(batch.keys for batch in drawn.batches)])
    assert len(np.unique(keys)) == len(keys)


def test_streams_and_spreads() -> None:
    _, nights = survey_stream(20, 0)
    assert [len(batch) for batch in cut_stream(nights, (50, 100, 200))] == [50, 100, 200]
    with pytest.raises(DataError, match="too few chunks"):
        cut_stream(nights, (10**6,))
    narrow = spread_workload(10, 50, 3, 0)
    for batch in (narrow.base, *narrow.batches):
        assert np.ptp(batch.numbers[:, 1:], axis=0).max() < 10
        assert len(np.unique(batch.keys)) == len(batch)


@pytest.mark.parametrize(("pairs", "nodes"), [(12, 3), (600, 8), (5_000, 1_000)])
def test_instances_of_any_size(pairs: int, nodes: int) -> None:
    problem = draw_instance(pairs, nodes, 0)
    assert 0.5 * pairs <= len(problem.pairs) <= 1.1 * pairs
    decision = plan_batch(problem, "auto", Options(sweeps=1, seconds=np.inf))
    assert decision.bound <= decision.cost.objective <= decision.baseline.objective
    assert len(draw_instance(pairs, nodes, 0, merging=False).views) == 0
    assert evaluate(problem, decision.plan).objective == decision.cost.objective


def test_unknown_views_and_patterns() -> None:
    with pytest.raises(UnknownNameError, match="no such view"):
        workload_of("PTF-6", "real", 1, 0)
    with pytest.raises(UnknownNameError, match="no such pattern"):
        workload_of("GEO", "real", 1, 0)
