"""A size-balanced search tree with subtree counts, whose leaves hold up to 32 values each (000 §3.4, 001 §3.3).

A node says how many values lie to its left, which finds the value of a given rank by descending once. Balance is kept
by the number of leaves in each subtree (weights 3 and 2, after Adams). Leaves are split when they are full and dropped
when they are empty, so most changes touch one leaf and the counts above it. Equal values lie in one leaf, which may
hold any number of them if it holds nothing else.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiler.jit import bare, rare
from windrow.kernels.compiler.leaves import LEAF, exchange_values, insert_value, limits, remove_value
from windrow.kernels.compiler.vectors import aligned

Array = npt.NDArray[Any]
Int32Array = npt.NDArray[np.int32]

ROOT, NODES, FREE_NODES, LEAVES, FREE_LEAVES = 0, 1, 2, 3, 4
_DEEPEST = 128


class Tree(NamedTuple):
    """Room for nodes and leaves by number; a leaf below a node is the complement of its number, so below 0.

    ``state`` is [root, nodes ever used, nodes given back, leaves ever used, leaves given back].
    """

    key: Array  # the least value of a node's right side
    below: Int32Array  # how many values its left side has
    weight: Int32Array  # how many leaves it has
    child: Int32Array  # (nodes, left or right)
    value: Array  # the values of leaves, 32 places each
    held: Int32Array  # how many values each leaf has
    free: Int32Array  # (nodes or leaves, given back)
    path: Int32Array
    highest: Array
    state: npt.NDArray[np.int64]


def empty_tree(most_values: int, dtype: Any) -> Tree:
    """Room for so many values, of which only what is used takes memory."""
    rooms = most_values + 2
    key, below, weight, held = (np.empty(rooms, kind) for kind in (dtype, np.int32, np.int32, np.int32))
    child, free = np.empty((rooms, 2), np.int32), np.empty((2, rooms), np.int32)
    highest = np.array([limits(dtype)[1]], dtype)
    value = aligned(rooms * LEAF, dtype)
    value[:LEAF] = highest
    held[0] = 0
    state = np.array([~0, 0, 0, 1, 0])
    return Tree(key, below, weight, child, value, held, free, np.empty(_DEEPEST, np.int32), highest, state)


@bare
def clear(tree: Tree) -> None:
    tree.state[:] = 0
    tree.state[ROOT] = ~_new_leaf(tree)


@bare
def insert(tree: Tree, value: Any) -> None:
    node = tree.state[ROOT]
    while node >= 0:
        side = _side(tree, node, value)
        tree.below[node] += np.int32(1) - side
        node = np.int64(tree.child[node, side])
    _insert_into(tree, ~node, value)


@bare
def remove(tree: Tree, value: Any) -> None:
    """Take away one occurrence of a value that is there."""
    node = tree.state[ROOT]
    while node >= 0:
        side = _side(tree, node, value)
        tree.below[node] -= np.int32(1) - side
        node = np.int64(tree.child[node, side])
    _remove_from(tree, ~node, value)
    if tree.held[~node] == 0 and tree.state[ROOT] >= 0:
        _unlink(tree, value)


@bare
def exchange(tree: Tree, gone: Any, value: Any) -> None:
    """Remove one value and insert another: two descents side by side take hardly longer than one."""
    one = two = tree.state[ROOT]
    while one >= 0 and two >= 0:
        first, second = _side(tree, one, gone), _side(tree, two, value)
        tree.below[one] -= np.int32(1) - first
        tree.below[two] += np.int32(1) - second
        one, two = np.int64(tree.child[one, first]), np.int64(tree.child[two, second])
    while one >= 0:
        first = _side(tree, one, gone)
        tree.below[one] -= np.int32(1) - first
        one = np.int64(tree.child[one, first])
    while two >= 0:
        second = _side(tree, two, value)
        tree.below[two] += np.int32(1) - second
        two = np.int64(tree.child[two, second])
    if one == two and tree.held[~one] <= LEAF:
        exchange_values(tree.value, ~one * LEAF, gone, value)
        return
    _remove_from(tree, ~one, gone)
    _insert_into(tree, ~two, value)
    if tree.held[~one] == 0 and tree.state[ROOT] >= 0:
        _unlink(tree, gone)


@bare
def select(tree: Tree, rank: int) -> Any:
    """The value of a rank, counted from 0."""
    node = tree.state[ROOT]
    while node >= 0:
        below = np.int64(tree.below[node])
        side = np.int64(rank >= below)
        rank -= below * side
        node = np.int64(tree.child[node, side])
    return tree.value[~node * LEAF + min(rank, LEAF - 1)]


@bare
def _side(tree: Tree, node: int, value: Any) -> Any:
    return np.int32(value >= tree.key[node])


@bare
def _insert_into(tree: Tree, leaf: int, value: Any) -> None:
    if tree.held[leaf] < LEAF:
        insert_value(tree.value, leaf * LEAF, value)
        tree.held[leaf] += 1
    else:
        _overflow(tree, leaf, value)


@bare
def _remove_from(tree: Tree, leaf: int, value: Any) -> None:
    if tree.held[leaf] <= LEAF:
        remove_value(tree.value, leaf * LEAF, value)
    tree.held[leaf] -= 1


@rare
def _overflow(tree: Tree, leaf: int, value: Any) -> None:
    """Insert into a full leaf: split it, unless it holds nothing but copies of this value."""
    first, last = tree.value[leaf * LEAF], tree.value[leaf * LEAF + LEAF - 1]
    if first == last == value:
        tree.held[leaf] += 1
        return
    depth = _path_to(tree, value)
    node, other = _new_node(tree), _new_leaf(tree)
    left, right = leaf, other
    if first < last:
        tree.key[node] = _split(tree, leaf, other)
    else:
        tree.key[node] = max(first, value)
        if value < first:
            left, right = other, leaf
    target = left if value < tree.key[node] else right
    insert_value(tree.value, target * LEAF, value)
    tree.held[target] += 1
    tree.child[node, 0], tree.child[node, 1] = ~left, ~right
    tree.below[node], tree.weight[node] = tree.held[left], 2
    _replace(tree, depth, ~leaf, node)
    _rebalance(tree, depth)


@bare
def _split(tree: Tree, leaf: int, other: int) -> Any:
    """Move about half of a leaf's values to another, equal ones together; the least of them."""
    start, cut, away = leaf * LEAF, LEAF // 2, 0
    while tree.value[start + cut - 1] == tree.value[start + cut]:
        away = -away if away > 0 else 1 - away
        cut = LEAF // 2 + away
    least = tree.value[start + cut]
    for place in range(cut, LEAF):
        tree.value[other * LEAF + place - cut] = tree.value[start + place]
        tree.value[start + place] = tree.highest[0]
    tree.held[leaf], tree.held[other] = cut, LEAF - cut
    return least


@rare
def _unlink(tree: Tree, value: Any) -> None:
    """Drop the empty leaf where a value was, and its parent: its sibling moves up."""
    depth = _path_to(tree, value) - 1
    parent = np.int64(tree.path[depth])
    side = _side(tree, parent, value)
    tree.free[0, tree.state[FREE_NODES]] = parent
    tree.free[1, tree.state[FREE_LEAVES]] = ~tree.child[parent, side]
    tree.state[FREE_NODES] += 1
    tree.state[FREE_LEAVES] += 1
    _replace(tree, depth, parent, np.int64(tree.child[parent, 1 - side]))
    _rebalance(tree, depth)


@bare
def _path_to(tree: Tree, value: Any) -> int:
    """Note the nodes above a value's leaf; how many there are."""
    depth = 0
    node = tree.state[ROOT]
    while node >= 0:
        tree.path[depth] = node
        depth += 1
        node = np.int64(tree.child[node, _side(tree, node, value)])
    return depth


@bare
def _new_node(tree: Tree) -> Any:
    if tree.state[FREE_NODES] > 0:
        tree.state[FREE_NODES] -= 1
        return np.int64(tree.free[0, tree.state[FREE_NODES]])
    tree.state[NODES] += 1
    return tree.state[NODES] - 1


@bare
def _new_leaf(tree: Tree) -> Any:
    if tree.state[FREE_LEAVES] > 0:
        tree.state[FREE_LEAVES] -= 1
        leaf = np.int64(tree.free[1, tree.state[FREE_LEAVES]])
    else:
        leaf = tree.state[LEAVES]
        tree.state[LEAVES] += 1
    tree.held[leaf] = 0
    for place in range(leaf * LEAF, leaf * LEAF + LEAF):
        tree.value[place] = tree.highest[0]
    return leaf


@bare
def _replace(tree: Tree, depth: int, old: int, new: int) -> None:
    """Put ``new`` where ``old`` was, below the last of so many noted nodes."""
    if depth == 0:
        tree.state[ROOT] = new
    else:
        parent = np.int64(tree.path[depth - 1])
        tree.child[parent, np.int64(tree.child[parent, 0] != old)] = new


@bare
def _weight(tree: Tree, node: int, side: int) -> Any:
    child = np.int64(tree.child[node, side])
    return np.int64(tree.weight[child]) if child >= 0 else np.int64(1)


@bare
def _raise(tree: Tree, node: int, side: int) -> Any:
    """Rotate a node's child up into its place."""
    up = np.int64(tree.child[node, side])
    tree.child[node, side] = tree.child[up, 1 - side]
    tree.child[up, 1 - side] = node
    if side == 1:
        tree.below[up] += tree.below[node]
    else:
        tree.below[node] -= tree.below[up]
    tree.weight[node] = _weight(tree, node, 0) + _weight(tree, node, 1)
    tree.weight[up] = _weight(tree, up, 0) + _weight(tree, up, 1)
    return up


@bare
def _rebalance(tree: Tree, depth: int) -> None:
    """Weigh and rebalance the noted nodes, from the deepest up."""
    for level in range(depth - 1, -1, -1):
        node = np.int64(tree.path[level])
        left, right = _weight(tree, node, 0), _weight(tree, node, 1)
        tree.weight[node] = left + right
        side = np.int64(right > left)
        if max(left, right) > 3 * min(left, right):
            heavy = np.int64(tree.child[node, side])
            if _weight(tree, heavy, 1 - side) >= 2 * _weight(tree, heavy, side):
                tree.child[node, side] = _raise(tree, heavy, 1 - side)
            _replace(tree, level, node, _raise(tree, node, side))
