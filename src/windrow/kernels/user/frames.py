"""User-defined aggregates over frames, by the best way that the functions given allow.

With ``remove`` one state slides over the rows, in the order of frames that moves it least; with ``merge`` a segment
tree of states answers any frame; with neither, every frame is added up anew.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.errors import DataError
from windrow.kernels.compiler.jit import compiled, guarded
from windrow.kernels.frames.paths import AS_THEY_COME, best_path
from windrow.kernels.frames.spans import Spans
from windrow.kernels.user.windows import StateFunctions, run_user_loop

Array = npt.NDArray[Any]

_COMPILED: dict[tuple[str, str], Any] = {}


def user_frames(functions: StateFunctions, values: Array, spans: Spans, result: np.dtype[Any], method: str) -> Array:
    """The aggregate in every frame; what stands for an empty one means nothing."""
    way = _way(functions, method)
    if (functions.token, way) not in _COMPILED:
        _COMPILED[functions.token, way] = _LOOPS[way](functions)
    loop = _COMPILED[functions.token, way]
    out = np.zeros(spans.count, result)
    order = best_path(spans).order if way == "remove" and method == "auto" else AS_THEY_COME
    run_user_loop(functions, loop, np.ascontiguousarray(values), spans.begin, spans.end, order, out)
    return out


def _way(functions: StateFunctions, method: str) -> str:
    if method == "segment_tree" and functions.merge is None:
        raise DataError("method segment_tree needs an aggregate with the function merge")
    if method == "naive" or (functions.remove is None and functions.merge is None):
        return "add"
    return "merge" if functions.remove is None or method == "segment_tree" else "remove"


def _callable(*functions: Any) -> list[Any]:
    return [guarded(function) for function in functions]


def _adding(functions: StateFunctions) -> Any:
    empty, add, result = _callable(functions.empty, functions.add, functions.result)

    @compiled
    def loop(values: Array, begin: Array, end: Array, order: Array, out: Array) -> None:
        for k in range(len(out)):
            state = empty()
            found = False
            for r in range(len(begin)):
                for row in range(begin[r, k], end[r, k]):
                    state = add(state, values[row])
                    found = True
            if found:
                out[k] = result(state)

    return loop


def _removing(functions: StateFunctions) -> Any:
    empty, add, result, remove = _callable(functions.empty, functions.add, functions.result, functions.remove)

    @compiled
    def loop(values: Array, begin: Array, end: Array, order: Array, out: Array) -> None:
        ranges = len(begin)
        first, last = np.zeros(ranges, np.int64), np.zeros(ranges, np.int64)
        state = empty()
        for j in range(len(out)):
            k = order[j] if len(order) else j
            size, shared = 0, 0
            for r in range(ranges):
                size += end[r, k] - begin[r, k]
                shared += max(0, min(last[r], end[r, k]) - max(first[r], begin[r, k]))
            if shared == 0:  # a new state has no trace of what was in the old one
                state = empty()
                for r in range(ranges):
                    first[r] = last[r] = begin[r, k]
            # What leaves goes first: a state of bounded size need never hold more than one frame.
            for r in range(ranges):
                lo, hi = begin[r, k], end[r, k]
                for row in range(first[r], min(lo, last[r])):
                    state = remove(state, values[row])
                for row in range(max(hi, first[r]), last[r]):
                    state = remove(state, values[row])
            for r in range(ranges):
                lo, hi = begin[r, k], end[r, k]
                for row in range(max(lo, last[r]), hi):
                    state = add(state, values[row])
                for row in range(lo, min(hi, first[r])):
                    state = add(state, values[row])
                first[r], last[r] = lo, hi
            if size > 0:
                out[k] = result(state)

    return loop


def _merging(functions: StateFunctions) -> Any:
    empty, add, result, merge = _callable(functions.empty, functions.add, functions.result, functions.merge)

    @compiled
    def loop(values: Array, begin: Array, end: Array, order: Array, out: Array) -> None:
        leaves = 1
        while leaves < len(values):
            leaves *= 2
        tree = [empty() for _ in range(2 * leaves)]
        for row in range(len(values)):
            tree[leaves + row] = add(empty(), values[row])
        for node in range(leaves - 1, 0, -1):
            tree[node] = merge(tree[2 * node], tree[2 * node + 1])
        for k in range(len(out)):
            state = empty()
            found = False
            for part in range(len(begin)):
                # The current row, which is the last range, lies between the first two.
                r = part if len(begin) < 3 else (0, 2, 1)[part]
                left, right = begin[r, k] + leaves, end[r, k] + leaves
                found |= left < right
                behind = empty()
                while left < right:
                    if left & 1:
                        state = merge(state, tree[left])
                        left += 1
                    if right & 1:
                        right -= 1
                        behind = merge(tree[right], behind)
                    left, right = left >> 1, right >> 1
                state = merge(state, behind)
            if found:
                out[k] = result(state)

    return loop


_LOOPS = {"add": _adding, "remove": _removing, "merge": _merging}
