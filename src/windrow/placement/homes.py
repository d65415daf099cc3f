"""Homes of array chunks after a batch: paper 004's Algorithm 3 with what it remembers, and ours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from windrow.kernels.placement.batch import Lists, make_lists
from windrow.kernels.placement.homes import follow_joins, follow_views
from windrow.placement.problem import NOWHERE, Float64Array, Int32Array, Int64Array, Problem

LOYALTY = 1.2
"""A chunk moves only to a node that joined so many times as many bytes of it as its home did."""
QUOTA = 1.1
"""Algorithm 3 fills no node beyond so many times the average of joined bytes."""


@dataclass(frozen=True, eq=False)
class Correlations:
    """How many bytes of each chunk a batch joined for each view chunk: what Algorithm 3 remembers of past batches."""

    chunks: Int64Array
    """Keys, as everywhere here: they mean the same in every batch."""
    views: Int64Array
    scores: Float64Array


def remember(problem: Problem) -> Correlations:
    """What a batch leaves for the plans of later ones."""
    pairs = problem.pairs
    left, right = pairs.left[pairs.of_state], pairs.right[pairs.of_state]
    both = left != right
    chunk = np.concatenate([left, right[both]])
    view = problem.views.keys[np.concatenate([pairs.views, pairs.views[both]])]
    return _add_up(problem.chunks.keys[chunk], view, problem.chunks.bytes[chunk])


def _add_up(chunks: Int64Array, views: Int64Array, scores: Float64Array) -> Correlations:
    """Each pair of keys once."""
    order = np.lexsort([views, chunks])
    chunks, views, scores = chunks[order], views[order], scores[order]
    new = np.ones(len(chunks), bool)
    new[1:] = (np.diff(chunks) != 0) | (np.diff(views) != 0)
    total = np.add.reduceat(scores, np.flatnonzero(new)) if len(scores) else scores
    return Correlations(chunks[new], views[new], total)


def weigh(batches: Sequence[Correlations], decay: float) -> Correlations:
    """Correlations of several batches, the latest first; each counts ``decay`` times as much as the one after it."""
    return _add_up(
        np.concatenate([batch.chunks for batch in batches]),
        np.concatenate([batch.views for batch in batches]),
        np.concatenate([batch.scores * decay**age for age, batch in enumerate(batches)]),
    )


def keep_near_views(problem: Problem, joins: Int32Array, view_homes: Int32Array, weighed: Correlations) -> Int32Array:
    """Algorithm 3: the home of each chunk, at the view chunk with which it is joined most, where it is already.

    A new chunk that finds no room goes to its best view chunk all the same, or where it is assigned.
    """
    chunk_keys, of_group = np.unique(problem.chunks.keys, return_index=True)
    view_order = np.argsort(problem.views.keys)
    group = np.searchsorted(chunk_keys, weighed.chunks)
    view = np.searchsorted(problem.views.keys[view_order], weighed.views)
    known = np.zeros(len(weighed.scores), bool)
    inside = (group < len(chunk_keys)) & (view < len(view_order))
    known[inside] = (chunk_keys[group[inside]] == weighed.chunks[inside]) & (
        problem.views.keys[view_order[view[inside]]] == weighed.views[inside]
    )
    group, view = group[known], view_order[view[known]]
    order = np.lexsort([view, group, -weighed.scores[known]])
    group, view = group[order].astype(np.int32), view[order].astype(np.int32)
    holders, weights = group_holders(problem, joins)
    quota = np.full(problem.nodes, QUOTA * problem.joined_bytes.sum() / problem.nodes)
    before = problem.group_homes
    found: Int32Array = follow_views(group, view, view_homes, before, holders, weights, quota)
    best: Int32Array = np.full(problem.group_count, NOWHERE, np.int32)
    best[group[::-1]] = view_homes[view[::-1]]
    found = np.where(found == NOWHERE, before, found)
    found = np.where(found == NOWHERE, best, found)
    return _spread(problem, np.where(found == NOWHERE, problem.settled[of_group], found))


def keep_where_joined(problem: Problem, joins: Int32Array) -> Int32Array:
    """The home of each chunk where most bytes of it were joined, of the nodes that have it now."""
    holders, _ = group_holders(problem, joins)
    found: Int32Array = follow_joins(problem.group_homes, holders, LOYALTY)
    return _spread(problem, np.where(found == NOWHERE, problem.settled[_first_of_groups(problem)], found))


def _first_of_groups(problem: Problem) -> Int64Array:
    return np.unique(problem.chunks.keys, return_index=True)[1].astype(np.int64)


def _spread(problem: Problem, homes: Int32Array) -> Int32Array:
    """Homes of chunks with old and new cells together, for each of the two."""
    return homes[problem.groups].astype(np.int32)


def group_holders(problem: Problem, joins: Int32Array) -> tuple[Lists, Float64Array]:
    """The nodes that join each chunk, old and new cells together, if they have its larger part; and its joined bytes.

    Half of a pair's bytes count for either chunk, so that all add up to what is joined.
    """
    count, groups, pairs = problem.group_count, problem.groups, problem.pairs
    chunk = np.concatenate([pairs.left, pairs.right])
    node = np.concatenate([joins, joins]).astype(np.int64)
    share = np.concatenate([problem.joined_bytes, problem.joined_bytes]) / 2
    key, place = np.unique(groups[chunk] * problem.nodes + node, return_inverse=True)
    amount = np.bincount(place, share, len(key))
    has_larger = np.zeros(len(key), bool)
    has_larger[place[_is_larger_part(problem)[chunk]]] = True
    group, at = np.divmod(key, problem.nodes)
    weights: Float64Array = np.bincount(group, amount, count).astype(np.float64)
    group, at, amount = group[has_larger], at[has_larger], amount[has_larger]
    lists = make_lists(np.bincount(group, minlength=count))
    lists.count[:] = np.bincount(group, minlength=count)
    lists.nodes[:], lists.amounts[:] = at, amount
    return lists, weights


def _is_larger_part(problem: Problem) -> npt.NDArray[np.bool_]:
    """Whether a chunk has at least as many bytes as the other entry of the same key."""
    most = np.zeros(problem.group_count)
    np.maximum.at(most, problem.groups, problem.chunks.bytes)
    larger: npt.NDArray[np.bool_] = problem.chunks.bytes == most[problem.groups]
    return larger
