"""A plan that can be changed move by move, with the loads of all nodes kept up to date.

The descent does not look at the busiest node alone, which most moves leave as it is: it lowers the sum of the eighth
powers of all loads, which the busiest ones dominate, and a little of what the links carry.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy.typing as npt

from windrow.kernels.compiler.jit import bare, bare_kernel, rare
from windrow.kernels.placement.batch import Batch, Lists, append, find, joined_bytes, remove
from windrow.kernels.placement.views import state_size

Array = npt.NDArray[Any]

LINKS = 0.1
"""What the links carry in all, beside the eighth powers."""


class State(NamedTuple):
    """Where pairs are joined and view chunks are at home; who needs which chunk and has which partial states; loads.

    ``loads`` are receiving, sending and computing, node after node. ``meter`` has the sum of eighth powers, the sum of
    what the links carry, and the load that counts as 1.
    """

    joins: Array
    view_homes: Array
    holders: Lists
    made: Lists
    loads: Array
    meter: Array


@bare
def measure(state: State) -> float:
    return state.meter[0] + LINKS * state.meter[1] / state.meter[2]


@bare
def _eighth(load: float) -> float:
    square = load * load
    fourth = square * square
    return fourth * fourth


def _set_scale(state: State, scale: float) -> None:
    """Let a load count as 1, and add up anew."""
    state.meter[0], state.meter[1], state.meter[2] = 0.0, 0.0, scale
    links = 2 * (len(state.loads) // 3)
    for index in range(len(state.loads)):
        state.meter[0] += _eighth(state.loads[index] / scale)
        if index < links:
            state.meter[1] += state.loads[index]


@bare
def _charge(state: State, index: int, seconds: float) -> None:
    load, scale = state.loads[index], state.meter[2]
    state.loads[index] = load + seconds
    state.meter[0] += _eighth((load + seconds) / scale) - _eighth(load / scale)


@bare
def _carry(batch: Batch, state: State, start: int, end: int, size: float) -> None:
    """Bytes travel from one node (-1: the store) to another; fewer than none takes that back."""
    if batch.receive > 0.0:
        _charge(state, end, batch.receive * size)
        state.meter[1] += batch.receive * size
    if batch.send > 0.0 and start >= 0:
        _charge(state, batch.nodes + start, batch.send * size)
        state.meter[1] += batch.send * size


@bare
def need_chunk(batch: Batch, state: State, chunk: int, node: int) -> None:
    place = find(state.holders, chunk, node)
    if place < 0:
        place = append(state.holders, chunk, node)
        if batch.homes[chunk] != node:
            _carry(batch, state, batch.homes[chunk], node, batch.sizes[chunk])
    state.holders.uses[place] += 1


@bare
def _spare_chunk(batch: Batch, state: State, chunk: int, node: int) -> None:
    place = find(state.holders, chunk, node)
    state.holders.uses[place] -= 1
    if state.holders.uses[place] == 0:
        remove(state.holders, chunk, place)
        if batch.homes[chunk] != node:
            _carry(batch, state, batch.homes[chunk], node, -batch.sizes[chunk])


@bare
def _merge(batch: Batch, state: State, view: int, node: int, size: float) -> None:
    """A partial state on a node grows by so many bytes, or shrinks."""
    home = state.view_homes[view]
    if size == 0.0:
        return
    if batch.merge > 0.0:
        _charge(state, 2 * batch.nodes + home, batch.merge * size)
    if home != node:
        _carry(batch, state, node, home, size)


@bare
def _make_state(batch: Batch, state: State, view: int, node: int, size: float) -> None:
    place = find(state.made, view, node)
    if place < 0:
        place = append(state.made, view, node)
    before = state_size(batch, view, state.made, place)
    state.made.uses[place] += 1
    state.made.amounts[place] += size
    _merge(batch, state, view, node, state_size(batch, view, state.made, place) - before)


@bare
def _unmake_state(batch: Batch, state: State, view: int, node: int, size: float) -> None:
    place = find(state.made, view, node)
    before = state_size(batch, view, state.made, place)
    state.made.uses[place] -= 1
    if state.made.uses[place] == 0:
        remove(state.made, view, place)
        _merge(batch, state, view, node, -before)
        return
    state.made.amounts[place] -= size
    _merge(batch, state, view, node, state_size(batch, view, state.made, place) - before)


@rare
def put_pair(batch: Batch, state: State, pair: int, node: int) -> None:
    """Join a pair on a node."""
    left, right = batch.left[pair], batch.right[pair]
    state.joins[pair] = node
    _charge(state, 2 * batch.nodes + node, batch.join * joined_bytes(batch, pair))
    need_chunk(batch, state, left, node)
    if right != left:
        need_chunk(batch, state, right, node)
    for entry in range(batch.starts[pair], batch.starts[pair + 1]):
        _make_state(batch, state, batch.views[entry], node, batch.states[entry])


@rare
def lift_pair(batch: Batch, state: State, pair: int) -> None:
    """Take a pair from its node; it has to be put somewhere next."""
    left, right, node = batch.left[pair], batch.right[pair], state.joins[pair]
    _charge(state, 2 * batch.nodes + node, -batch.join * joined_bytes(batch, pair))
    _spare_chunk(batch, state, left, node)
    if right != left:
        _spare_chunk(batch, state, right, node)
    for entry in range(batch.starts[pair], batch.starts[pair + 1]):
        _unmake_state(batch, state, batch.views[entry], node, batch.states[entry])


@bare
def _count_home(batch: Batch, state: State, view: int, sign: float) -> None:
    """Charge all that the home of a view chunk costs, or take it back."""
    home, before, made = state.view_homes[view], batch.view_homes[view], state.made
    for place in range(made.first[view], made.first[view] + made.count[view]):
        _merge(batch, state, view, made.nodes[place], sign * state_size(batch, view, made, place))
    if before >= 0 and before != home:
        _carry(batch, state, before, home, sign * batch.view_sizes[view])


@rare
def move_view(batch: Batch, state: State, view: int, home: int) -> None:
    _count_home(batch, state, view, -1.0)
    state.view_homes[view] = home
    _count_home(batch, state, view, 1.0)


def _fill_state(batch: Batch, state: State, fixed: Array) -> None:
    """Charge a plan from the beginning: ``state`` has its joins and view homes, and nothing else yet.

    ``fixed`` are homes of chunks that are decided (-1: not yet), to which these have to come in any case.
    """
    for chunk in range(len(fixed)):
        if fixed[chunk] >= 0:
            need_chunk(batch, state, chunk, fixed[chunk])
    for view in range(len(state.view_homes)):
        _count_home(batch, state, view, 1.0)
    for pair in range(len(state.joins)):
        put_pair(batch, state, pair, state.joins[pair])


set_scale = bare_kernel(_set_scale, __name__)
fill_state = bare_kernel(_fill_state, __name__)
