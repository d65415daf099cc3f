"""Paper 004's Algorithm 2: the home of each view chunk, from where its partial states are made."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiler.jit import bare, kernel, rare
from windrow.kernels.placement.batch import MOST_HOLDERS, Batch, Lists, load_of

Array = npt.NDArray[Any]


@kernel
def place_views(batch: Batch, order: Array, made: Lists, loads: Array, few: int) -> Array:
    """The home of each view chunk; ``loads`` are brought up to date.

    With more than ``few`` nodes, those that made most of the first states, the present home and the least loaded node
    are candidates.
    """
    homes = np.zeros(len(order), np.int32)
    candidates = np.empty(max(batch.nodes, MOST_HOLDERS + 2), np.int32)
    least = 0
    running = loads.max()
    for view in order:
        if batch.nodes > few:
            least = _lighter(loads, batch.nodes, least)
        count = _candidates(batch, view, made, least, few, candidates)
        home = _choose(batch, view, made, loads, running, candidates[:count])
        homes[view] = home
        running = max(running, _settle(batch, view, made, loads, home))
    return homes


@bare
def _lighter(loads: Array, nodes: int, node: int) -> int:
    """A little loaded node: the better of the last one and some that follow it."""
    best = node
    for step in range(1, 9):
        other = (node + step) % nodes
        if load_of(loads, nodes, other) < load_of(loads, nodes, best):
            best = other
    return best


@bare
def _candidates(batch: Batch, view: int, made: Lists, least: int, few: int, out: Array) -> int:
    if batch.nodes <= few:
        for node in range(batch.nodes):
            out[node] = node
        return batch.nodes
    count = min(MOST_HOLDERS, made.count[view])
    begin = made.first[view]
    for number in range(count):
        out[number] = made.nodes[begin + number]
    out[count] = least
    if batch.view_homes[view] < 0:
        return count + 1
    out[count + 1] = batch.view_homes[view]
    return count + 2


@bare
def state_size(batch: Batch, view: int, made: Lists, place: int) -> float:
    """Bytes of what one node has of a view chunk, merged."""
    return min(batch.view_most[view], made.amounts[place])


@rare
def _choose(batch: Batch, view: int, made: Lists, loads: Array, running: float, candidates: Array) -> int:
    """As for joins. The two nodes that would send most are remembered, for a home that is one of them sends nothing."""
    nodes, before = batch.nodes, batch.view_homes[view]
    begin, end = made.first[view], made.first[view] + made.count[view]
    total, first, second, sender = 0.0, 0.0, 0.0, -1
    held = 0.0
    for place in range(begin, end):
        size = state_size(batch, view, made, place)
        total += size
        node = made.nodes[place]
        if node == before:
            held = size
            continue
        load = loads[nodes + node] + batch.send * size
        if load > first:
            first, second, sender = load, first, node
        elif load > second:
            second = load
    if before >= 0:
        load = loads[nodes + before] + batch.send * (held + batch.view_sizes[view])
        if load > first:
            first, second, sender = load, first, before
        elif load > second:
            second = load
    best, best_now, best_moved, best_load = -1, np.inf, np.inf, np.inf
    for node in candidates:
        moved = total
        for place in range(begin, end):
            if made.nodes[place] == node:
                moved -= state_size(batch, view, made, place)
        if before >= 0 and before != node:
            moved += batch.view_sizes[view]
        now = max(running, loads[node] + batch.receive * moved, loads[2 * nodes + node] + batch.merge * total)
        now = max(now, second if node == sender else first)
        load = load_of(loads, nodes, node)
        better = now < best_now or (
            now == best_now
            and (
                moved < best_moved
                or (moved == best_moved and (load < best_load or (load == best_load and node < best)))
            )
        )
        if better:
            best, best_now, best_moved, best_load = node, now, moved, load
    return best


@rare
def _settle(batch: Batch, view: int, made: Lists, loads: Array, home: int) -> float:
    """Charge what the home of a view chunk costs; the greatest load that this makes."""
    nodes, before, greatest = batch.nodes, batch.view_homes[view], 0.0
    for place in range(made.first[view], made.first[view] + made.count[view]):
        size, node = state_size(batch, view, made, place), made.nodes[place]
        loads[2 * nodes + home] += batch.merge * size
        if node != home:
            loads[home] += batch.receive * size
            loads[nodes + node] += batch.send * size
            greatest = max(greatest, loads[nodes + node])
    if before >= 0 and before != home:
        loads[home] += batch.receive * batch.view_sizes[view]
        loads[nodes + before] += batch.send * batch.view_sizes[view]
        greatest = max(greatest, loads[nodes + before])
    return max(greatest, load_of(loads, nodes, home))
