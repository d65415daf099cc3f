"""Paper 004's Algorithm 1: pair after pair goes to the node where the busiest node then has least to do.

Loads only grow, so the maximum after a step is the greater of the maximum so far and of the loads that the step
changes: a candidate costs a few comparisons. Most steps leave the maximum as it is wherever the pair goes, so that the
rule for such ties decides: where fewest bytes have to come, chunks as well as partial states that go elsewhere else.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiler.jit import bare, bare_kernel, rare
from windrow.kernels.placement.batch import MOST_HOLDERS, Batch, Lists, append, find, joined_bytes, load_of
from windrow.kernels.placement.heap import build, sink

Array = npt.NDArray[Any]


class Rule(NamedTuple):
    """How nodes are compared.

    With more than ``few`` nodes, only holders of the pair's chunks and the least loaded node are candidates.
    ``first_wins`` is the paper's rule for ties, as it is printed; it is far worse than ours. No plan can be below the
    ``floor``: loads up to it are equal.
    """

    few: int
    first_wins: bool
    floor: float


class Room(NamedTuple):
    """What the loop writes into: nodes by load, candidates, which nodes hold the chunks of the pair at hand, and those
    that have partial states of its view chunks, with the bytes that would stay there."""

    heap: Array
    places: Array
    keys: Array
    candidates: Array
    left_has: Array
    right_has: Array
    makes: Array
    staying: Array


def place_joins(batch: Batch, order: Array, holders: Lists, made: Lists, loads: Array, rule: Rule) -> Array:
    """The node of each pair. ``holders``, the nodes that make states, and ``loads`` are brought up to date."""
    nodes = batch.nodes
    room = Room(
        np.zeros(nodes, np.int32),
        np.zeros(nodes, np.int32),
        loads.reshape(3, nodes).max(axis=0),
        np.zeros(max(nodes, 2 * MOST_HOLDERS + 1), np.int32),
        np.full(nodes, -1, np.int64),
        np.full(nodes, -1, np.int64),
        np.full(nodes, -1, np.int64),
        np.zeros(nodes),
    )
    joins = np.zeros(len(order), np.int32)
    _place(batch, order, holders, made, loads, room, rule, joins)
    return joins


def _place_each(
    batch: Batch, order: Array, holders: Lists, made: Lists, loads: Array, room: Room, rule: Rule, joins: Array
) -> None:
    build(room.heap, room.places, room.keys)
    running = rule.floor
    for key in room.keys:
        running = max(running, key)
    for pair in order:
        left, right = batch.left[pair], batch.right[pair]
        _mark(holders, left, pair, room.left_has)
        _mark(holders, right, pair, room.right_has)
        if not rule.first_wins:
            _mark_makers(batch, pair, made, room)
        count = _candidates(batch, pair, holders, room.heap, rule.few, room.candidates)
        best = _choose(batch, pair, loads, running, room, count, rule.first_wins)
        joins[pair] = best
        if not rule.first_wins:
            _make_states(batch, pair, best, made)
        _bring(batch, left, best, room.left_has[best] == pair, holders, loads)
        if right != left:
            _bring(batch, right, best, room.right_has[best] == pair, holders, loads)
        loads[2 * batch.nodes + best] += batch.join * joined_bytes(batch, pair)
        running = max(running, _refresh(loads, room, best))
        if batch.send > 0.0:
            running = max(running, _refresh(loads, room, batch.homes[left]))
            running = max(running, _refresh(loads, room, batch.homes[right]))


@bare
def _refresh(loads: Array, room: Room, node: int) -> float:
    """Bring the heap up to date for a node, if it is one; its load."""
    if node < 0:
        return 0.0
    room.keys[node] = load_of(loads, len(room.heap), node)
    sink(room.heap, room.places, room.keys, node)
    return room.keys[node]


@bare
def _mark(holders: Lists, chunk: int, pair: int, has: Array) -> None:
    begin = holders.first[chunk]
    for place in range(begin, begin + holders.count[chunk]):
        has[holders.nodes[place]] = pair


@bare
def _mark_makers(batch: Batch, pair: int, made: Lists, room: Room) -> None:
    """What a pair adds to a state that a node makes already goes no further than that state."""
    for entry in range(batch.starts[pair], batch.starts[pair + 1]):
        begin = made.first[batch.views[entry]]
        for place in range(begin, begin + made.count[batch.views[entry]]):
            node = made.nodes[place]
            if room.makes[node] != pair:
                room.makes[node], room.staying[node] = pair, 0.0
            room.staying[node] += batch.states[entry]


@bare
def _make_states(batch: Batch, pair: int, node: int, made: Lists) -> None:
    for entry in range(batch.starts[pair], batch.starts[pair + 1]):
        if find(made, batch.views[entry], node) < 0:
            append(made, batch.views[entry], node)


@bare
def _candidates(batch: Batch, pair: int, holders: Lists, heap: Array, few: int, out: Array) -> int:
    """The nodes to try; one may be named twice, which changes nothing."""
    if batch.nodes <= few:
        for node in range(batch.nodes):
            out[node] = node
        return batch.nodes
    count = 0
    for chunk in (batch.left[pair], batch.right[pair]):
        begin = holders.first[chunk]
        for place in range(begin, begin + min(MOST_HOLDERS, holders.count[chunk])):
            out[count] = holders.nodes[place]
            count += 1
    out[count] = heap[0]
    return count + 1


@rare
def _choose(
    batch: Batch,
    pair: int,
    loads: Array,
    running: float,
    room: Room,
    count: int,
    first_wins: bool,
) -> int:
    """The candidate with the smallest maximum; of equals the one that moves fewest bytes, then the least loaded.

    Nothing is charged for states here: where they go is decided after all pairs.
    """
    nodes, left, right = batch.nodes, batch.left[pair], batch.right[pair]
    left_home, right_home = batch.homes[left], batch.homes[right]
    joining = batch.join * joined_bytes(batch, pair)
    best, best_now, best_moved, best_load = -1, np.inf, np.inf, np.inf
    for node in room.candidates[:count]:
        moved_left = 0.0 if room.left_has[node] == pair else batch.sizes[left]
        moved_right = 0.0 if room.right_has[node] == pair or left == right else batch.sizes[right]
        moved = moved_left + moved_right
        now = max(running, loads[node] + batch.receive * moved, loads[2 * nodes + node] + joining)
        if left_home >= 0:
            sent = moved_left + (moved_right if right_home == left_home else 0.0)
            now = max(now, loads[nodes + left_home] + batch.send * sent)
        if right_home >= 0 and right_home != left_home:
            now = max(now, loads[nodes + right_home] + batch.send * moved_right)
        load = load_of(loads, nodes, node)
        if room.makes[node] == pair:
            moved -= room.staying[node]
        if first_wins or now != best_now:
            better = now < best_now
        elif moved != best_moved:
            better = moved < best_moved
        elif load != best_load:
            better = load < best_load
        else:
            better = node < best
        if better:
            best, best_now, best_moved, best_load = node, now, moved, load
    return best


@bare
def _bring(batch: Batch, chunk: int, node: int, there: bool, holders: Lists, loads: Array) -> None:
    """Let a chunk come to a node that lacks it."""
    if there:
        return
    append(holders, chunk, node)
    loads[node] += batch.receive * batch.sizes[chunk]
    if batch.homes[chunk] >= 0:
        loads[batch.nodes + batch.homes[chunk]] += batch.send * batch.sizes[chunk]


_place = bare_kernel(_place_each, __name__)
