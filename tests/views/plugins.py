"""What users add, as the views of the random search use it: aggregates of every sort, and an operator."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import windrow as wr

ROOM = 64
"""More different values than any array here has cells."""


@wr.aggregate("views_spread", result="float64")
class Spread:
    """A user's aggregate that can only be added to."""

    def empty():  # type: ignore[misc]
        return (math.inf, -math.inf)

    def add(state, x):  # type: ignore[misc]  # noqa: N805
        return (min(state[0], x), max(state[1], x))

    def merge(a, b):  # type: ignore[misc]  # noqa: N805
        return (min(a[0], b[0]), max(a[1], b[1]))

    def result(state):  # type: ignore[misc]  # noqa: N805
        return state[1] - state[0]


@wr.aggregate("views_total", result="int64", exact_remove=True)
class Total:
    """A user's aggregate whose ``remove`` undoes ``add``."""

    def empty():  # type: ignore[misc]
        return (0,)

    def add(state, x):  # type: ignore[misc]  # noqa: N805
        return (state[0] + int(x),)

    def remove(state, x):  # type: ignore[misc]  # noqa: N805
        return (state[0] - int(x),)

    def merge(a, b):  # type: ignore[misc]  # noqa: N805
        return (a[0] + b[0],)

    def result(state):  # type: ignore[misc]  # noqa: N805
        return state[0]


@wr.aggregate("views_middle", result="float64")
class Middle:
    """A user's aggregate whose state is a structure: different values in order, and how often each is there."""

    def empty():  # type: ignore[misc]
        return np.zeros(ROOM), np.zeros(ROOM, np.int64), np.zeros(1, np.int64)

    def add(state, x):  # type: ignore[misc]  # noqa: N805
        values, counts, used = state
        place = 0
        while place < used[0] and values[place] < x:
            place += 1
        if place == used[0] or values[place] != x:
            for k in range(used[0], place, -1):
                values[k], counts[k] = values[k - 1], counts[k - 1]
            values[place], counts[place] = x, 0
            used[0] += 1
        counts[place] += 1
        return state

    def remove(state, x):  # type: ignore[misc]  # noqa: N805
        values, counts, used = state
        place = 0
        while values[place] != x:
            place += 1
        counts[place] -= 1
        if counts[place] == 0:
            for k in range(place, used[0] - 1):
                values[k], counts[k] = values[k + 1], counts[k + 1]
            used[0] -= 1
        return state

    def result(state):  # type: ignore[misc]  # noqa: N805
        values, counts, used = state
        total = 0
        for k in range(used[0]):
            total += counts[k]
        rank, place = (total - 1) // 2, 0
        while rank >= counts[place]:
            rank -= counts[place]
            place += 1
        return values[place]


OWN: dict[str, tuple[str, str, float | None]] = {
    "views_spread": ("m", "range", None),
    "views_total": ("m", "sum", None),
    "views_middle": ("x", "quantile_index", 0.5),
}
"""Users' aggregates: what each is taken of, and the one that it equals, with its parameter."""


@wr.operator("views_blur", halo=1, result="<total: int64, top: float64>")
def blur(block: Any, factor: int) -> Any:
    """Of the nine cells around each: a multiple of the sum of m, and the largest x."""
    whole, x = np.pad(block["m"].astype(np.int64), 1), np.pad(block["x"], 1, constant_values=np.nan)
    rows, columns = block["m"].shape
    total, top = np.zeros((rows, columns), np.int64), np.full((rows, columns), np.nan)
    for down in range(3):
        for right in range(3):
            at = slice(down, down + rows), slice(right, right + columns)
            total += whole[at]
            top = np.fmax(top, x[at])
    return {"total": total * factor, "top": top}
