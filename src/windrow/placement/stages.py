"""The stages of a plan: the baseline's choice, and paper 004's Algorithms 1 and 2 on kernels."""

from __future__ import annotations

from typing import Literal

import numpy as np

from windrow.kernels.placement.batch import FEW_NODES, Batch, Lists, gather_states, make_lists
from windrow.kernels.placement.joins import Rule, place_joins
from windrow.kernels.placement.views import place_views
from windrow.placement.plan import Plan, merging_bound
from windrow.placement.problem import NOWHERE, Float64Array, Int32Array, Int64Array, Problem

Ties = Literal["fewest_bytes", "first"]


def to_batch(problem: Problem) -> Batch:
    """A problem as kernels take it."""
    chunks, views, pairs, rates = problem.chunks, problem.views, problem.pairs, problem.rates
    return Batch(
        int(problem.nodes),
        pairs.left,
        pairs.right,
        pairs.starts,
        pairs.views,
        pairs.states,
        chunks.bytes,
        chunks.homes,
        views.bytes,
        views.most,
        views.homes,
        float(rates.receive),
        float(rates.send),
        float(rates.join),
        float(rates.merge),
    )


def chunk_room(problem: Problem, spare: int) -> Int64Array:
    """How many nodes can need a chunk: one for each of its pairs, and some more."""
    pairs, count = problem.pairs, len(problem.chunks)
    used = np.bincount(pairs.left, minlength=count) + np.bincount(pairs.right, minlength=count)
    room: Int64Array = np.minimum(used, problem.nodes).astype(np.int64) + spare
    return room


def view_room(problem: Problem) -> Int64Array:
    used = np.bincount(problem.pairs.views, minlength=len(problem.views))
    return np.minimum(used, problem.nodes).astype(np.int64)


def plan_baseline(problem: Problem) -> Plan:
    """Section 4.1: every chunk stays or goes where it is assigned, and pairs are joined where the right one is."""
    return Plan(problem.settled[problem.pairs.right], problem.settled, problem.settled_views)


def unpaired_homes(problem: Problem) -> Int32Array:
    """Homes that are decided before joins are planned, if homes may move: only those of chunks without pairs.

    Old cells that are in no pair go where the new cells of their chunk will be at home, which is not known yet.
    """
    joined = np.bincount(problem.groups, problem.is_paired, problem.group_count) > 0
    return np.where(joined[problem.groups], NOWHERE, problem.settled).astype(np.int32)


def plan_joins(
    problem: Problem, order: Int64Array, fixed: Int32Array, ties: Ties = "fewest_bytes", few: int = FEW_NODES
) -> tuple[Int32Array, Float64Array]:
    """Algorithm 1: the node of each pair, and the loads so far.

    Chunks whose home is ``fixed`` have to come there in any case, and can be joined there for nothing. A load that no
    plan can be below does not count where states are made, unless ``ties`` are the paper's own.
    """
    batch, nodes = to_batch(problem), problem.nodes
    holders, loads = make_lists(chunk_room(problem, 2)), np.zeros(3 * nodes)
    sizes, homes = problem.chunks.bytes, problem.chunks.homes
    _list_first(holders, homes)
    coming = (fixed != NOWHERE) & (fixed != homes)
    _list_first(holders, np.where(coming, fixed, NOWHERE))
    loads[:nodes] = problem.rates.receive * np.bincount(fixed[coming], sizes[coming], nodes)
    sent = coming & (homes != NOWHERE)
    loads[nodes : 2 * nodes] = problem.rates.send * np.bincount(homes[sent], sizes[sent], nodes)
    # Pairs that share no state gain nothing by filling one node before the next: small plans become 1 % worse by it.
    literal = ties == "first"
    rule = Rule(few, literal, 0.0 if literal or not len(problem.views) else merging_bound(problem))
    joins: Int32Array = place_joins(batch, order, holders, make_lists(view_room(problem)), loads, rule)
    return joins, loads


def _list_first(holders: Lists, nodes: Int32Array) -> None:
    """Add a node to each list, where there is one."""
    there = np.flatnonzero(nodes != NOWHERE)
    holders.nodes[holders.first[there] + holders.count[there]] = nodes[there]
    holders.count[there] += 1


def plan_views(
    problem: Problem, joins: Int32Array, loads: Float64Array, order: Int64Array, few: int = FEW_NODES
) -> Int32Array:
    """Algorithm 2: the home of each view chunk. ``loads`` are those of the joins, and are brought up to date."""
    batch, made = to_batch(problem), make_lists(view_room(problem))
    gather_states(batch, joins, made)
    homes: Int32Array = place_views(batch, order, made, loads, few)
    return homes
