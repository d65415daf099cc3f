"""The same block scans through somebody else's merge: states of several numbers, merged by a Numba function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numba import njit
from numba.core import types
from numba.extending import overload
from numpy.typing import NDArray

from windrow.kernels.scan_axes import clipped
from windrow.kernels.sweep import Sweep

STRIP = 256  # columns whose blocks are scanned together
# Not kept on disk: Numba cannot tell one merge function from another there.
compiled = njit(nogil=True)


def merge_scan(
    states: Sequence[NDArray[Any]],
    sweeps: Sequence[Sweep],
    merge: Callable[[tuple[Any, ...], tuple[Any, ...]], tuple[Any, ...]],
    identity: Sequence[Any],
) -> tuple[NDArray[Any], ...]:
    """Merge the states of each window's cells; ``merge`` is compiled by Numba, associative, and blind to order.

    A state is one number from each of the equally shaped arrays ``states``; ``identity`` is the state of no cells.
    """
    current = tuple(np.ascontiguousarray(state) for state in states)
    empty = tuple(state.dtype.type(number) for state, number in zip(current, identity, strict=True))
    counts = [sweep.count for sweep in sweeps]
    axes = [clipped(cells, sweep) for cells, sweep in zip(current[0].shape, sweeps, strict=True)]
    if not current[0].size or min(axis.width for axis in axes) <= 0:
        return tuple(np.full(counts, number) for number in empty)
    for at, axis in enumerate(axes):
        if axis.plain:
            continue
        shape = current[0].shape
        outer, columns = int(np.prod(shape[:at])), int(np.prod(shape[at + 1 :]))
        merged = tuple(np.empty((outer, axis.count, columns), state.dtype) for state in current)
        cubes = tuple(state.reshape(outer, axis.cells, columns) for state in current)
        if merged[0].size:
            strip = min(STRIP, columns)
            ring = tuple(np.empty((1, axis.width + 1, strip), state.dtype) for state in current)
            _scan_states(cubes, merged, ring, axis.down, merge, empty)
        current = tuple(state.reshape(*shape[:at], axis.count, *shape[at + 1 :]) for state in merged)
    return current


def _get(arrays: Any, i: int, j: int, k: int) -> Any:
    """The state at a place: one number from each array."""
    return tuple(array[i, j, k] for array in arrays)


def _put(arrays: Any, i: int, j: int, k: int, state: Any) -> None:
    for array, number in zip(arrays, state, strict=True):
        array[i, j, k] = number


# Arrays of several types have no common loop in Numba: one line per array. Not strict, as annotations would differ.
@overload(_get, strict=False)
def _overload_get(arrays: types.BaseTuple, i: Any, j: Any, k: Any) -> Callable[..., Any]:
    items = "".join(f"arrays[{n}][i, j, k], " for n in range(len(arrays)))
    return _defined(f"def get(arrays, i, j, k):\n    return ({items})\n", "get")


@overload(_put, strict=False)
def _overload_put(arrays: types.BaseTuple, i: Any, j: Any, k: Any, state: Any) -> Callable[..., Any]:
    lines = "".join(f"    arrays[{n}][i, j, k] = state[{n}]\n" for n in range(len(arrays)))
    return _defined(f"def put(arrays, i, j, k, state):\n{lines}", "put")


def _defined(source: str, name: str) -> Callable[..., Any]:
    names: dict[str, Any] = {}
    exec(source, names)
    function: Callable[..., Any] = names[name]
    return function


@compiled
def _scan_states(source: Any, out: Any, ring: Any, down: Any, merge: Any, identity: Any) -> None:
    outer, _, columns = source[0].shape
    strip = ring[0].shape[2]
    for index in range(outer):
        for left in range(0, columns, strip):
            _scan_columns(source, out, ring, down, merge, identity, index, left, min(strip, columns - left))


@compiled
def _scan_columns(
    source: Any, out: Any, ring: Any, down: Any, merge: Any, identity: Any, index: int, left: int, cells: int
) -> None:
    """A window is the suffix of one block of rows and a prefix of the next; the ring's last row is the prefix."""
    rows = source[0].shape[1]
    low, count, height, pace = down
    top = max(low, 0)
    bottom = min(rows, low + (count - 1) * pace + height)
    block = low
    suffix_first = suffix_end = 0
    k = 0
    while k < count:
        start = low + k * pace
        if start >= block + height:
            block = start
            suffix_end = suffix_first
        first = max(block, top)
        end = max(min(block + height, bottom), first)
        row = first
        for column in range(cells):
            _put(ring, 0, height, column, identity)
        while k < count and start <= block:
            last = min(start + height, end)
            for new in range(row, last):
                for column in range(cells):
                    total = merge(_get(ring, 0, height, column), _get(source, index, new, left + column))
                    _put(ring, 0, height, column, total)
            row = max(row, last)
            suffix = max(start, suffix_first)
            for column in range(cells):
                total = _get(ring, 0, height, column)
                if start < block and suffix < suffix_end:
                    total = merge(_get(ring, 0, suffix - block + height, column), total)
                _put(out, index, k, left + column, total)
            k += 1
            start = low + k * pace
        if k < count and start < block + height:
            for upper in range(end - 1, first - 1, -1):
                for column in range(cells):
                    total = _get(source, index, upper, left + column)
                    if upper < end - 1:
                        total = merge(total, _get(ring, 0, upper + 1 - block, column))
                    _put(ring, 0, upper - block, column, total)
        suffix_first = first
        suffix_end = end
        block += height
