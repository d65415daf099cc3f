"""Plug-ins in a package of their own: ``pip install examples/plugins`` makes them known to windrow everywhere.

The aggregate is paper 000's: a percentile by a search tree whose nodes know how often their value is there, and how
many values lie at and below them. The operator smooths an array along its last dimension.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import windrow as wr

ROOM = 4096
"""Different values that one window may meet while it slides."""
PERCENT = 70


@wr.aggregate("tree_percentile", result="float64")
class TreePercentile:
    """The 70th percentile: of N values the n-th smallest, n = min(N, floor(0.7 N + 1))."""

    def empty() -> Any:  # type: ignore[misc]
        """Values; for each node its left and right child, its count, and the count of its subtree; nodes in use."""
        return np.zeros(ROOM), np.zeros((ROOM, 4), np.int64), np.zeros(1, np.int64)

    def add(state: Any, x: float) -> Any:  # noqa: N805
        values, nodes, used = state
        node = 0
        while True:
            if node == used[0]:
                values[node] = x
                nodes[node, :2], nodes[node, 2:] = -1, 0
                used[0] += 1
            nodes[node, 3] += 1
            if values[node] == x:
                nodes[node, 2] += 1
                return state
            side = 0 if x < values[node] else 1
            if nodes[node, side] < 0:
                nodes[node, side] = used[0]
            node = nodes[node, side]

    def remove(state: Any, x: float) -> Any:  # noqa: N805
        values, nodes, used = state
        node = 0
        while values[node] != x:
            nodes[node, 3] -= 1
            node = nodes[node, 0 if x < values[node] else 1]
        nodes[node, 2:] -= 1
        if nodes[0, 3] == 0:
            used[0] = 0
        return state

    def result(state: Any) -> float:  # noqa: N805
        values, nodes, _ = state
        count = nodes[0, 3]
        rank, node = min(count, count * PERCENT // 100 + 1) - 1, 0
        while True:
            left = nodes[node, 0]
            below = nodes[left, 3] if left >= 0 else 0
            if rank < below:
                node = left
            elif rank < below + nodes[node, 2]:
                return values[node]
            else:
                rank -= below + nodes[node, 2]
                node = nodes[node, 1]


@wr.operator("smooth", halo=lambda width: width // 2)
def smooth(block: dict[str, np.ndarray], width: int) -> dict[str, np.ndarray]:
    """the moving average of each attribute along the last dimension"""
    return {name: _smooth_values(values, width // 2) for name, values in block.items()}


def _smooth_values(values: np.ndarray, reach: int) -> np.ndarray:
    total, cells = np.zeros(values.shape), np.zeros(values.shape)
    length = values.shape[-1]
    for shift in range(-reach, reach + 1):
        target = slice(max(0, -shift), length - max(0, shift))
        source = slice(max(0, shift), length + min(0, shift))
        total[..., target] += values[..., source]
        cells[..., target] += 1
    return total / cells
