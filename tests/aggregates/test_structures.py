"""Users' aggregates whose state is a structure of bounded size: the search tree with counts of paper 000."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import windrow as wr

ROOM = 256


@wr.aggregate("tree_middle", result="float64")
class TreeMiddle:
    """The middle value, from a search tree whose nodes know how often their value is there and what lies below."""

    def empty() -> Any:  # type: ignore[misc]
        return np.zeros(ROOM), np.zeros((ROOM, 4), np.int64), np.zeros(1, np.int64)

    def add(state: Any, x: Any) -> Any:  # type: ignore[misc]  # noqa: N805
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

    def remove(state: Any, x: Any) -> Any:  # type: ignore[misc]  # noqa: N805
        values, nodes, used = state
        node = 0
        while values[node] != x:
            nodes[node, 3] -= 1
            node = nodes[node, 0 if x < values[node] else 1]
        nodes[node, 2] -= 1
        nodes[node, 3] -= 1
        if nodes[0, 3] == 0:
            used[0] = 0
        return state

    def result(state: Any) -> Any:  # type: ignore[misc]  # noqa: N805
        values, nodes, _ = state
        rank, node = (nodes[0, 3] - 1) // 2, 0
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


@pytest.mark.parametrize("method", ["auto", "naive"])
def test_windows_and_frames_are_those_of_the_built_in_quantile(method: str) -> None:
    chance = np.random.default_rng(3)
    field = chance.integers(0, 40, (12, 25)).astype(np.float64)
    field[3, 4] = np.nan
    found = wr.sliding(field, TreeMiddle("x"), window=(3, 4), method=method)
    np.testing.assert_array_equal(found, wr.sliding(field, "quantile(0.5)", window=(3, 4)))
    row, values = np.arange(200), chance.integers(0, 90, 200).astype(np.float64)
    found = wr.framed(values, TreeMiddle("x"), row - 15, row + 1, method=method)
    np.testing.assert_array_equal(found, wr.framed(values, "quantile(0.5)", row - 15, row + 1))
