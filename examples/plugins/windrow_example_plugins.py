"""Plug-ins in a package of their own: ``pip install examples/plugins`` makes them known to windrow everywhere.

The aggregate is paper 000's: a percentile by a search tree whose nodes know how often their value is there, and how
many values lie at and below them. The operator smooths an array along its last dimension.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import windrow as wr

ROOM = 4096
"""Different values that one window may have; nodes whose value is gone are used again."""
PERCENT = 70


@wr.aggregate("tree_percentile", result="float64")
class TreePercentile:
    """The 70th percentile: of N values the n-th smallest, n = min(N, floor(0.7 N + 1))."""

    def empty() -> Any:  # type: ignore[misc]
        # Of each node its left and right child, how often its value is there, and how many are at and below it.
        # Node 0 stands for none: its left is the first of the free nodes, its right the root.
        nodes = np.zeros((ROOM + 1, 4), np.int64)
        nodes[:, 0] = np.arange(1, ROOM + 2)
        return np.zeros(ROOM + 1), nodes

    def add(state: Any, x: float) -> Any:  # noqa: N805
        values, nodes = state
        above, side, node = 0, 1, nodes[0, 1]
        while node > 0 and values[node] != x:
            nodes[node, 3] += 1
            above, side = node, 0 if x < values[node] else 1
            node = nodes[above, side]
        if node == 0:
            node = nodes[0, 0]
            values[node] = x  # beyond the last node windrow says that there is no room
            nodes[0, 0] = nodes[node, 0]
            nodes[node, :] = 0
            nodes[above, side] = node
        nodes[node, 2:] += 1
        return state

    def remove(state: Any, x: float) -> Any:  # noqa: N805
        values, nodes = state
        above, side, node = 0, 1, nodes[0, 1]
        while values[node] != x:
            nodes[node, 3] -= 1
            above, side = node, 0 if x < values[node] else 1
            node = nodes[above, side]
        nodes[node, 2:] -= 1
        if nodes[node, 2] > 0:
            return state
        if nodes[node, 0] > 0 and nodes[node, 1] > 0:  # the next larger value moves here, and its own node goes
            following = nodes[node, 1]
            while nodes[following, 0] > 0:
                following = nodes[following, 0]
            values[node], nodes[node, 2] = values[following], nodes[following, 2]
            above, side, node = node, 1, nodes[node, 1]
            while node != following:
                nodes[node, 3] -= nodes[following, 2]
                above, side, node = node, 0, nodes[node, 0]
        nodes[above, side] = nodes[node, 0] + nodes[node, 1]  # at most one of them is not 0
        nodes[node, 0], nodes[0, 0] = nodes[0, 0], node
        return state

    def result(state: Any) -> float:  # noqa: N805
        values, nodes = state
        node = nodes[0, 1]
        rank = min(nodes[node, 3], nodes[node, 3] * PERCENT // 100 + 1) - 1
        while True:
            below = nodes[nodes[node, 0], 3]
            if rank < below:
                node = nodes[node, 0]
            elif rank < below + nodes[node, 2]:
                return values[node]
            else:
                rank -= below + nodes[node, 2]
                node = nodes[node, 1]


def _as_floats(schema: Any, width: int) -> str:
    """Averages of whole numbers are none: each attribute becomes a float."""
    return f"<{', '.join(f'{name}: float64' for name in schema.attribute_names)}>"


@wr.operator("smooth", halo=lambda width: width // 2, result=_as_floats)
def smooth(block: dict[str, np.ndarray], width: int) -> dict[str, np.ndarray]:
    """the moving average of each attribute along the last dimension"""
    found = {}
    for name in block:
        if not name.endswith("__valid"):  # which says where a whole number is missing
            values = np.where(block.get(f"{name}__valid", True), block[name], np.nan)
            found[name] = _smooth_values(values, width // 2)
    return found


def _smooth_values(values: np.ndarray, reach: int) -> np.ndarray:
    total, cells = np.zeros(values.shape), np.zeros(values.shape)
    length = values.shape[-1]
    for shift in range(-reach, reach + 1):
        target = slice(max(0, -shift), length - max(0, shift))
        source = slice(max(0, shift), length + min(0, shift))
        total[..., target] += values[..., source]
        cells[..., target] += 1
    return total / cells
