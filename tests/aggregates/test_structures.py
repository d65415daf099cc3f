"""Users' aggregates whose state is a structure of bounded size: the search tree with counts of paper 000."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import windrow as wr

ROOM = 256


@wr.aggregate("tree_middle", result="float64")
class TreeMiddle:
    """The middle value, from a search tree whose nodes know how often their value is there and what lies below."""

    def empty() -> Any:  # type: ignore[misc]
        # Of each node its left and right child, how often its value is there, and how many are at and below it.
        # Node 0 stands for none: its left is the first of the free nodes, its right the root.
        nodes = np.zeros((ROOM + 1, 4), np.int64)
        nodes[:, 0] = np.arange(1, ROOM + 2)
        return np.zeros(ROOM + 1), nodes

    def add(state: Any, x: Any) -> Any:  # type: ignore[misc]  # noqa: N805
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

    def remove(state: Any, x: Any) -> Any:  # type: ignore[misc]  # noqa: N805
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

    def result(state: Any) -> Any:  # type: ignore[misc]  # noqa: N805
        values, nodes = state
        node = nodes[0, 1]
        rank = (nodes[node, 3] - 1) // 2
        while True:
            below = nodes[nodes[node, 0], 3]
            if rank < below:
                node = nodes[node, 0]
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


def test_nodes_are_used_again_so_that_the_room_is_what_one_window_holds() -> None:
    values = np.random.default_rng(0).random(20_000)
    for given in (values, np.sort(values), np.sort(values)[::-1]):
        found = wr.sliding(given, "tree_middle", window=3)
        np.testing.assert_array_equal(found, wr.sliding(given, "quantile(0.5)", window=3))
    row = np.arange(2000)
    found = wr.framed(values[:2000], "tree_middle", row - (ROOM - 1), row)
    np.testing.assert_array_equal(found, wr.framed(values[:2000], "quantile(0.5)", row - (ROOM - 1), row))


FILLED = """
import numpy as np
import windrow as wr

@wr.aggregate("forgetful", result="float64")
class Forgetful:
    def empty():
        return np.zeros(8), np.zeros(1, np.int64)
    def add(state, x):
        values, used = state
        values[used[0]] = x
        used[0] += 1
        return state
    def {also}
        return state
    def result(state):
        return state[0][state[1][0] - 1]

values, row = np.random.default_rng(0).random(5000), np.arange(5000)
attempts = {{
    "windows": lambda: wr.sliding(values, "forgetful", window=20),
    "shapes": lambda: wr.sliding(values.reshape(50, 100), "forgetful", shape=wr.L2(3)),
    "frames": lambda: wr.framed(values, "forgetful", row - 20, row),
}}
for name, attempt in attempts.items():
    try:
        attempt()
    except wr.DataError as error:
        print(name, error)
"""


@pytest.mark.parametrize("also", ["remove(state, x):", "other(state):"])
def test_an_index_beyond_the_state_is_refused(also: str) -> None:
    """In a process of its own, since without bounds checks it would write over somebody's memory."""
    script = FILLED.format(also=also)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    told = done.stdout.strip().splitlines()
    for name in ("windows", "shapes", "frames"):
        what = f"{name} the user-defined aggregate forgetful reached beyond an array of its state"
        assert any(line.startswith(what) for line in told), done.stdout


def test_the_examples_of_plug_ins_hold_many_values_and_average_whole_numbers(local: Any) -> None:
    place = Path(__file__).parents[2] / "examples" / "plugins" / "windrow_example_plugins.py"
    specification = importlib.util.spec_from_file_location("windrow_example_plugins", place)
    assert specification is not None
    assert specification.loader is not None
    plugins = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(plugins)
    values = np.random.default_rng(1).random(10_000)
    found = wr.sliding(values, plugins.TreePercentile("x"), window=5)
    np.testing.assert_array_equal(found, wr.sliding(values, "percentile(70)", window=5))
    local.create("W", "<n: int32 null> [i=0:5]").write({"n": np.array([1, 2, 4, 7, 7, 7], np.int32)})
    smoothed = plugins.smooth(local.array("W"), 3).compute()["n"].values
    np.testing.assert_allclose(smoothed, [1.5, 7 / 3, 13 / 3, 6, 7, 7])
