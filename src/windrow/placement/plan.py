"""What the planner gives, and what that costs: one evaluator for all strategies, the exact optimum and tests."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from windrow.errors import DataError
from windrow.placement.problem import NOWHERE, Float64Array, Int32Array, Int64Array, Problem


@dataclass(frozen=True, eq=False)
class Plan:
    """Where each pair is joined, and where each chunk and view chunk is at home after the batch."""

    joins: Int32Array
    homes: Int32Array
    view_homes: Int32Array


@dataclass(frozen=True, eq=False)
class Cost:
    """Seconds of each node under a plan, and the bytes that it has to receive."""

    receiving: Float64Array
    sending: Float64Array
    computing: Float64Array
    bytes_received: Float64Array

    @property
    def objective(self) -> float:
        """The time of the busiest node; receiving, sending and computing overlap."""
        return float(np.max([self.receiving, self.sending, self.computing]))

    @property
    def moving(self) -> float:
        """Seconds of all links together: of two plans with the same objective the one that moves less is better."""
        return float(self.receiving.sum() + self.sending.sum())

    @property
    def rank(self) -> tuple[float, float]:
        return self.objective, self.moving

    @property
    def loads(self) -> Float64Array:
        """Receiving, sending and computing of all nodes, one after the other."""
        return np.concatenate([self.receiving, self.sending, self.computing])


def evaluate(problem: Problem, plan: Plan) -> Cost:
    """What a plan costs.

    A chunk has to come to every node that joins it and to its new home, once, unless that node has it already. A node
    merges its own partial states of a view chunk before it sends them. A view chunk whose home moves has to travel.
    """
    _check(problem, plan)
    nodes, rates = problem.nodes, problem.rates
    inward, outward = np.zeros(nodes), np.zeros(nodes)
    computed = np.zeros(nodes)
    computed += rates.join * np.bincount(plan.joins, problem.joined_bytes, nodes)

    chunk, node = chunk_needs(problem, plan)
    away = problem.chunks.homes[chunk] != node
    _move(inward, outward, problem.chunks.homes[chunk[away]], node[away], problem.chunks.bytes[chunk[away]])

    view, node, size = merged_states(problem, plan.joins)
    home = plan.view_homes[view]
    computed += rates.merge * np.bincount(home, size, nodes)
    away = home != node
    _move(inward, outward, node[away], home[away], size[away])

    before = problem.views.homes
    away = (before != NOWHERE) & (before != plan.view_homes)
    _move(inward, outward, before[away], plan.view_homes[away], problem.views.bytes[away])
    return Cost(rates.receive * inward, rates.send * outward, computed, inward)


def chunk_needs(problem: Problem, plan: Plan) -> tuple[Int64Array, Int64Array]:
    """Every chunk with each node that needs it, once: those that join it, and its new home."""
    pairs = problem.pairs
    chunk = np.concatenate([pairs.left, pairs.right, np.arange(len(problem.chunks))]).astype(np.int64)
    node = np.concatenate([plan.joins, plan.joins, plan.homes])
    found = np.divmod(np.unique(chunk * problem.nodes + node), problem.nodes)
    return found[0], found[1]


def merged_states(problem: Problem, joins: Int32Array) -> tuple[Int64Array, Int64Array, Float64Array]:
    """View chunk, node, and bytes of the partial state that the node has of it, for all that have one."""
    pairs = problem.pairs
    key = pairs.views.astype(np.int64) * problem.nodes + joins[pairs.of_state]
    keys, place = np.unique(key, return_inverse=True)
    view, node = np.divmod(keys, problem.nodes)
    size = np.minimum(np.bincount(place, pairs.states, len(keys)), problem.views.most[view])
    return view, node, size


def lower_bound(problem: Problem) -> float:
    """No plan costs less: all has to be joined somewhere, and what no node has must be read somewhere."""
    new = problem.chunks.bytes[problem.chunks.homes == NOWHERE].sum()
    joining = problem.rates.join * problem.joined_bytes.sum()
    return float(max(joining, problem.rates.receive * new) / problem.nodes)


def merging_bound(problem: Problem) -> float:
    """No plan costs less, either: states have to be merged somewhere, too, those of a view chunk once at least."""
    made = np.bincount(problem.pairs.views, problem.pairs.states, len(problem.views))
    merging = problem.rates.merge * np.minimum(made, problem.views.most).sum()
    joining = problem.rates.join * problem.joined_bytes.sum()
    return max(lower_bound(problem), float(joining + merging) / problem.nodes)


def _move(inward: Float64Array, outward: Float64Array, start: Int32Array, end: Int32Array, size: Float64Array) -> None:
    """Add bytes that travel to both ends; what comes from the store has only one."""
    inward += np.bincount(end, size, len(inward))
    sent = start != NOWHERE
    outward += np.bincount(start[sent], size[sent], len(outward))


def _check(problem: Problem, plan: Plan) -> None:
    """Every pair, chunk and view chunk has a node, and old and new cells of one chunk the same."""
    wanted = (len(problem.pairs), len(problem.chunks), len(problem.views))
    given = (len(plan.joins), len(plan.homes), len(plan.view_homes))
    if given != wanted:
        raise DataError("the plan is one of another problem", got=f"{given} instead of {wanted} entries")
    for what, nodes in (("pair", plan.joins), ("chunk", plan.homes), ("view chunk", plan.view_homes)):
        wrong = np.flatnonzero((nodes < 0) | (nodes >= problem.nodes))
        if len(wrong):
            raise DataError(f"{what} {wrong[0]} is planned for a node that is not there", got=int(nodes[wrong[0]]))
    first: Int32Array = np.zeros(problem.group_count, np.int32)
    first[problem.groups] = plan.homes
    if (first[problem.groups] != plan.homes).any():
        raise DataError("old and new cells of one chunk are planned for different homes")
