"""What the loops of placement are given: a batch as vectors, and lists of nodes by chunk."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiler.jit import bare, kernel

Array = npt.NDArray[Any]

FEW_NODES = 16
"""Up to so many nodes, every one is tried for every pair; beyond, those that hold a part of it."""
MOST_HOLDERS = 8
"""How many of the nodes that hold a part are tried."""


class Batch(NamedTuple):
    """Pairs of chunks, the partial states they make, sizes, homes (-1: none) and seconds a byte."""

    nodes: int
    left: Array
    right: Array
    starts: Array
    views: Array
    states: Array
    sizes: Array
    homes: Array
    view_sizes: Array
    view_most: Array
    view_homes: Array
    receive: float
    send: float
    join: float
    merge: float


class Lists(NamedTuple):
    """A list of nodes for each chunk, in room that was made beforehand: from ``first[c]`` on, ``count[c]`` of them.

    ``uses`` says how many pairs of the chunk a node joins, ``amounts`` how many bytes of partial state it has.
    """

    first: Array
    count: Array
    nodes: Array
    uses: Array
    amounts: Array


def make_lists(room: Array) -> Lists:
    """Empty lists with room for so many nodes each."""
    first = np.concatenate([[0], np.cumsum(room)]).astype(np.int64)
    total = int(first[-1])
    return Lists(
        first, np.zeros(len(room), np.int32), np.zeros(total, np.int32), np.zeros(total, np.int32), np.zeros(total)
    )


@bare
def find(lists: Lists, item: int, node: int) -> int:
    """Where a node stands in a list, or -1. Lists are short: a chunk is joined in few places."""
    begin = lists.first[item]
    for place in range(begin, begin + lists.count[item]):
        if lists.nodes[place] == node:
            return place
    return -1


@bare
def append(lists: Lists, item: int, node: int) -> int:
    place = lists.first[item] + lists.count[item]
    lists.nodes[place], lists.uses[place], lists.amounts[place] = node, 0, 0.0
    lists.count[item] += 1
    return place


@bare
def remove(lists: Lists, item: int, place: int) -> None:
    """The last of the list takes the place."""
    lists.count[item] -= 1
    last = lists.first[item] + lists.count[item]
    lists.nodes[place] = lists.nodes[last]
    lists.uses[place] = lists.uses[last]
    lists.amounts[place] = lists.amounts[last]


@bare
def joined_bytes(batch: Batch, pair: int) -> float:
    left, right = batch.left[pair], batch.right[pair]
    return batch.sizes[left] + (batch.sizes[right] if left != right else 0.0)


@bare
def load_of(loads: Array, nodes: int, node: int) -> float:
    """The time of a node: receiving, sending and computing overlap."""
    return max(loads[node], loads[nodes + node], loads[2 * nodes + node])


@kernel
def gather_states(batch: Batch, joins: Array, lists: Lists) -> None:
    """List, for each view chunk, the nodes that make partial states of it, and how many bytes; no bound is applied."""
    for pair in range(len(joins)):
        for entry in range(batch.starts[pair], batch.starts[pair + 1]):
            view = batch.views[entry]
            place = find(lists, view, joins[pair])
            if place < 0:
                place = append(lists, view, joins[pair])
            lists.uses[place] += 1
            lists.amounts[place] += batch.states[entry]
