"""A size-balanced search tree with subtree counts, in flat arrays (000 §3.4, 001 §3).

A node holds one value and how often it occurs; ``size`` counts all occurrences below it, which finds the value of a
given rank by descending once. Balance is kept by the number of nodes in each subtree (weights 3 and 2, after Adams).
Node 0 is "nothing".
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from windrow.kernels.jit import inner, kernel

Array = npt.NDArray[Any]

_DEEPEST = 128


class Tree(NamedTuple):
    """Room for some nodes, each in one cache line; ``state`` is [root, number of free nodes]."""

    value: Array
    node: npt.NDArray[np.int64]  # (nodes, fields)
    free: npt.NDArray[np.int64]
    path: npt.NDArray[np.int64]
    state: npt.NDArray[np.int64]


LEFT, RIGHT, WEIGHT, SIZE, TIMES, FIELDS = 0, 1, 2, 3, 4, 8


def empty_tree(capacity: int, dtype: Any) -> Tree:
    rooms = capacity + 1
    fields = np.zeros((rooms, FIELDS), np.int64)
    free, path, state = (np.zeros(size, np.int64) for size in (rooms, _DEEPEST, 2))
    tree = Tree(np.zeros(rooms, dtype), fields, free, path, state)
    clear(tree)
    return tree


@kernel
def clear(tree: Tree) -> None:
    rooms = len(tree.value)
    for node in range(1, rooms):
        tree.free[node - 1] = rooms - node
    tree.state[0] = 0
    tree.state[1] = rooms - 1


@inner
def insert(tree: Tree, value: Any) -> None:
    depth = 0
    node = tree.state[0]
    while node != 0:
        tree.path[depth] = node
        depth += 1
        tree.node[node, SIZE] += 1
        if value == tree.value[node]:
            tree.node[node, TIMES] += 1
            return
        node = tree.node[node, LEFT] if value < tree.value[node] else tree.node[node, RIGHT]
    tree.state[1] -= 1
    node = tree.free[tree.state[1]]
    tree.value[node] = value
    tree.node[node, TIMES] = tree.node[node, SIZE] = tree.node[node, WEIGHT] = 1
    tree.node[node, LEFT] = tree.node[node, RIGHT] = 0
    if depth == 0:
        tree.state[0] = node
        return
    parent = tree.path[depth - 1]
    if value < tree.value[parent]:
        tree.node[parent, LEFT] = node
    else:
        tree.node[parent, RIGHT] = node
    _rebalance(tree, depth)


@inner
def remove(tree: Tree, value: Any) -> None:
    """Take away one occurrence of a value that is there."""
    depth = 0
    node = tree.state[0]
    while value != tree.value[node]:
        tree.path[depth] = node
        depth += 1
        tree.node[node, SIZE] -= 1
        node = tree.node[node, LEFT] if value < tree.value[node] else tree.node[node, RIGHT]
    tree.node[node, SIZE] -= 1
    tree.node[node, TIMES] -= 1
    if tree.node[node, TIMES] > 0:
        return
    if tree.node[node, LEFT] != 0 and tree.node[node, RIGHT] != 0:
        # The next larger value moves here, and its own node, which has no left child, goes instead.
        tree.path[depth] = node
        depth += 1
        heir = tree.node[node, RIGHT]
        while tree.node[heir, LEFT] != 0:
            tree.path[depth] = heir
            depth += 1
            heir = tree.node[heir, LEFT]
        tree.value[node] = tree.value[heir]
        tree.node[node, TIMES] = tree.node[heir, TIMES]
        above = depth - 1
        while tree.path[above] != node:
            tree.node[tree.path[above], SIZE] -= tree.node[heir, TIMES]
            above -= 1
        node = heir
    _unlink(tree, node, depth)
    _rebalance(tree, depth)


@inner
def _unlink(tree: Tree, node: int, depth: int) -> None:
    """Put a node's only child in its place."""
    child = tree.node[node, LEFT] if tree.node[node, LEFT] != 0 else tree.node[node, RIGHT]
    if depth == 0:
        tree.state[0] = child
    elif tree.node[tree.path[depth - 1], LEFT] == node:
        tree.node[tree.path[depth - 1], LEFT] = child
    else:
        tree.node[tree.path[depth - 1], RIGHT] = child
    tree.free[tree.state[1]] = node
    tree.state[1] += 1


@inner
def select(tree: Tree, rank: int) -> Any:
    """The value of a rank, counted from 0."""
    node = tree.state[0]
    while True:
        below = tree.node[tree.node[node, LEFT], SIZE]
        if rank < below:
            node = tree.node[node, LEFT]
        elif rank < below + tree.node[node, TIMES]:
            return tree.value[node]
        else:
            rank -= below + tree.node[node, TIMES]
            node = tree.node[node, RIGHT]


@inner
def _count(tree: Tree, node: int) -> None:
    left, right = tree.node[node, LEFT], tree.node[node, RIGHT]
    tree.node[node, WEIGHT] = 1 + tree.node[left, WEIGHT] + tree.node[right, WEIGHT]
    tree.node[node, SIZE] = tree.node[node, TIMES] + tree.node[left, SIZE] + tree.node[right, SIZE]


@inner
def _rotate_left(tree: Tree, node: int) -> int:
    up = tree.node[node, RIGHT]
    tree.node[node, RIGHT] = tree.node[up, LEFT]
    tree.node[up, LEFT] = node
    _count(tree, node)
    _count(tree, up)
    return up


@inner
def _rotate_right(tree: Tree, node: int) -> int:
    up = tree.node[node, LEFT]
    tree.node[node, LEFT] = tree.node[up, RIGHT]
    tree.node[up, RIGHT] = node
    _count(tree, node)
    _count(tree, up)
    return up


@inner
def _balanced(tree: Tree, node: int) -> int:
    """The root of a node's subtree after at most two rotations."""
    left, right = tree.node[node, LEFT], tree.node[node, RIGHT]
    light, heavy = tree.node[left, WEIGHT] + 1, tree.node[right, WEIGHT] + 1
    if heavy > 3 * light:
        if tree.node[tree.node[right, LEFT], WEIGHT] + 1 >= 2 * (tree.node[tree.node[right, RIGHT], WEIGHT] + 1):
            tree.node[node, RIGHT] = _rotate_right(tree, right)
        return _rotate_left(tree, node)
    if light > 3 * heavy:
        if tree.node[tree.node[left, RIGHT], WEIGHT] + 1 >= 2 * (tree.node[tree.node[left, LEFT], WEIGHT] + 1):
            tree.node[node, LEFT] = _rotate_left(tree, left)
        return _rotate_right(tree, node)
    return node


@inner
def _rebalance(tree: Tree, depth: int) -> None:
    """Recount and rebalance the subtrees along the path, from the deepest up."""
    for level in range(depth - 1, -1, -1):
        node = tree.path[level]
        _count(tree, node)
        root = _balanced(tree, node)
        if level == 0:
            tree.state[0] = root
        elif tree.node[tree.path[level - 1], LEFT] == node:
            tree.node[tree.path[level - 1], LEFT] = root
        else:
            tree.node[tree.path[level - 1], RIGHT] = root
