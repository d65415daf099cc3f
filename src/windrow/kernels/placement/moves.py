"""Moves that make a plan better: all pairs of a chunk to one node, one pair, the home of one view chunk; and the home
of a view chunk with all pairs that change it, where either alone would have to send their states.

A move is tried by making it: what is lifted is put on one candidate after the other, and then where it was best.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy.typing as npt

from windrow.kernels.compiler.jit import bare, bare_kernel, rare
from windrow.kernels.placement.batch import FEW_NODES, MOST_HOLDERS, Batch, Lists
from windrow.kernels.placement.state import State, lift_pair, measure, move_view, put_pair

Array = npt.NDArray[Any]

GAIN = 1e-9
"""A move has to gain more than rounding could make of nothing."""


class Room(NamedTuple):
    """What moves write into: candidates, when each node was last one, and where pairs were."""

    candidates: Array
    seen: Array
    kept: Array


class Listing(NamedTuple):
    """The pairs of each chunk, or of each view chunk: from ``first[c]`` to ``first[c + 1]``."""

    first: Array
    pairs: Array


@bare
def _propose(room: Room, count: int, node: int, stamp: int) -> int:
    """One more candidate, unless it is none or there already; how many there are."""
    if node < 0 or room.seen[node] == stamp or count == len(room.candidates):
        return count
    room.seen[node] = stamp
    room.candidates[count] = node
    return count + 1


@bare
def _propose_holders(room: Room, count: int, lists: Lists, item: int, stamp: int) -> int:
    begin = lists.first[item]
    for place in range(begin, begin + min(MOST_HOLDERS, lists.count[item])):
        count = _propose(room, count, lists.nodes[place], stamp)
    return count


@bare
def _propose_all(room: Room, nodes: int) -> int:
    for node in range(nodes):
        room.candidates[node] = node
    return nodes


def _move_chunks(batch: Batch, state: State, listing: Listing, order: Array, light: Array, room: Room) -> int:
    """Try to join all pairs of a chunk on one node, chunk after chunk; how many moves were made."""
    moved = 0
    for stamp, chunk in enumerate(order):
        pairs = listing.pairs[listing.first[chunk] : listing.first[chunk + 1]]
        if len(pairs) == 0:
            continue
        if batch.nodes <= FEW_NODES:
            count = _propose_all(room, batch.nodes)
        else:
            count = _propose(room, 0, batch.homes[chunk], stamp)
            count = _propose(room, count, light[stamp % len(light)], stamp)
            count = _propose_holders(room, count, state.holders, chunk, stamp)
            for pair in pairs:
                other = batch.left[pair] if batch.right[pair] == chunk else batch.right[pair]
                count = _propose(room, count, batch.homes[other], stamp)
        moved += _try_pairs(batch, state, pairs, room.candidates[:count], room.kept)
    return moved


@rare
def _try_pairs(batch: Batch, state: State, pairs: Array, candidates: Array, kept: Array) -> int:
    """Put pairs, together, where that is best; 1 if it is elsewhere than before."""
    lowest = measure(state) - GAIN
    together = True
    for number, pair in enumerate(pairs):
        kept[number] = state.joins[pair]
        together = together and kept[number] == kept[0]
    for pair in pairs:
        lift_pair(batch, state, pair)
    best = -1
    for node in candidates:
        if together and node == kept[0]:
            continue
        for pair in pairs:
            put_pair(batch, state, pair, node)
        found = measure(state)
        if found < lowest:
            best, lowest = node, found
        for pair in pairs:
            lift_pair(batch, state, pair)
    for number, pair in enumerate(pairs):
        put_pair(batch, state, pair, best if best >= 0 else kept[number])
    return 1 if best >= 0 else 0


def _move_pairs(batch: Batch, state: State, order: Array, light: Array, room: Room) -> int:
    """Try another node for each pair; how many moves were made."""
    moved = 0
    for stamp, pair in enumerate(order):
        if batch.nodes <= FEW_NODES:
            count = _propose_all(room, batch.nodes)
        else:
            count = _propose(room, 0, light[stamp % len(light)], stamp)
            count = _propose_holders(room, count, state.holders, batch.left[pair], stamp)
            count = _propose_holders(room, count, state.holders, batch.right[pair], stamp)
            count = _propose(room, count, batch.homes[batch.left[pair]], stamp)
            count = _propose(room, count, batch.homes[batch.right[pair]], stamp)
        moved += _try_pairs(batch, state, order[stamp : stamp + 1], room.candidates[:count], room.kept)
    return moved


def _move_views(batch: Batch, state: State, order: Array, light: Array, room: Room) -> int:
    """Try another home for each view chunk; how many moves were made."""
    moved = 0
    for stamp, view in enumerate(order):
        if batch.nodes <= FEW_NODES:
            count = _propose_all(room, batch.nodes)
        else:
            count = _propose(room, 0, light[stamp % len(light)], stamp)
            count = _propose(room, count, batch.view_homes[view], stamp)
            count = _propose_holders(room, count, state.made, view, stamp)
        before, lowest = state.view_homes[view], measure(state) - GAIN
        best = before
        for node in room.candidates[:count]:
            if node == before:
                continue
            move_view(batch, state, view, node)
            found = measure(state)
            if found < lowest:
                best, lowest = node, found
        move_view(batch, state, view, best)
        moved += 1 if best != before else 0
    return moved


def _move_clusters(batch: Batch, state: State, listing: Listing, order: Array, light: Array, room: Room) -> int:
    """Try another home for each view chunk, with all pairs that change it joined there; how many moves were made."""
    moved = 0
    for stamp, view in enumerate(order):
        pairs = listing.pairs[listing.first[view] : listing.first[view + 1]]
        if len(pairs) == 0:
            continue
        if batch.nodes <= FEW_NODES:
            count = _propose_all(room, batch.nodes)
        else:
            count = _propose(room, 0, light[stamp % len(light)], stamp)
            count = _propose(room, count, state.view_homes[view], stamp)
            count = _propose(room, count, batch.view_homes[view], stamp)
            count = _propose_holders(room, count, state.made, view, stamp)
        moved += _try_cluster(batch, state, view, pairs, room.candidates[:count], room.kept)
    return moved


@rare
def _try_cluster(batch: Batch, state: State, view: int, pairs: Array, candidates: Array, kept: Array) -> int:
    """Put a view chunk and its pairs on the best of some nodes, or leave them; whether they moved."""
    lowest, before, best = measure(state) - GAIN, state.view_homes[view], -1
    for number, pair in enumerate(pairs):
        kept[number] = state.joins[pair]
        lift_pair(batch, state, pair)
    for node in candidates:
        move_view(batch, state, view, node)
        for pair in pairs:
            put_pair(batch, state, pair, node)
        found = measure(state)
        if found < lowest:
            best, lowest = node, found
        for pair in pairs:
            lift_pair(batch, state, pair)
    move_view(batch, state, view, best if best >= 0 else before)
    for number, pair in enumerate(pairs):
        put_pair(batch, state, pair, best if best >= 0 else kept[number])
    return 1 if best >= 0 else 0


move_chunks = bare_kernel(_move_chunks, __name__)
move_pairs = bare_kernel(_move_pairs, __name__)
move_views = bare_kernel(_move_views, __name__)
move_clusters = bare_kernel(_move_clusters, __name__)
