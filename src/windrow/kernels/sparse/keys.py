"""One whole number per cell, such that a run of offsets is one interval of differences everywhere.

The key of a cell is its coordinates as the digits of one number. Digits have room for the coordinates of the cells that
are searched and, on both sides, for as far as a shape reaches: a neighbour beyond the edge then never has the key of a
cell in the next row. Cells further away than that are moved to the outermost digit, from where no offset leads to a
cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiler.jit import kernel

Array = npt.NDArray[Any]
Int64Array = npt.NDArray[np.int64]

_MOST_BITS = 62  # of a key, so that adding differences to it stays inside int64
_SMALLEST, _LARGEST = -(2**63), 2**63 - 1


class KeySpace(NamedTuple):
    """Where keys come from: a coordinate is clipped to ``lo`` .. ``hi`` and counts in steps of its stride.

    ``bits`` says how many bits the largest key may take.
    """

    lo: tuple[int, ...]
    hi: tuple[int, ...]
    strides: tuple[int, ...]
    bits: int

    def keys(self, columns: Sequence[Array], cells: int | None = None) -> Int64Array:
        """The keys of cells; how many ``cells`` there are must be said where there are no columns.

        Clipping may change the order of cells outside the guard bands, so keys of sorted cells are sorted again.
        """
        count = len(columns[0]) if cells is None else cells
        keys = np.zeros(count, np.int64)
        for column, lo, hi, stride in zip(columns, self.lo, self.hi, self.strides, strict=True):
            _add_digit(np.ascontiguousarray(column, np.int64), lo, hi, stride, keys)
        return keys

    def differences(self, leading: Int64Array, first: Int64Array, last: Int64Array) -> tuple[Int64Array, Int64Array]:
        """Runs of offsets as intervals of key differences: offsets of all axes but the last, and ranges along it."""
        steps = np.array(self.strides[:-1], np.int64)
        base = np.asarray(leading, np.int64) @ steps if len(steps) else np.zeros(len(first), np.int64)
        return base + first, base + last


def key_space(
    lo: Sequence[int], hi: Sequence[int], reach_before: Sequence[int], reach_after: Sequence[int]
) -> KeySpace | None:
    """Keys for searching among cells from ``lo`` to ``hi`` by offsets from ``-reach_before`` to ``reach_after``.

    None if they do not fit into int64.
    """
    outer_lo = [int(low) - max(int(after), 0) - 1 for low, after in zip(lo, reach_after, strict=True)]
    outer_hi = [int(high) + max(int(before), 0) + 1 for high, before in zip(hi, reach_before, strict=True)]
    if any(low < _SMALLEST for low in outer_lo) or any(high > _LARGEST for high in outer_hi):
        return None
    widths = [high - low + 1 for low, high in zip(outer_lo, outer_hi, strict=True)]
    # Powers of two keep each dimension in bits of its own, so that sorting can leave out those that are in order.
    whole = [1 << (width - 1).bit_length() for width in widths]
    digits = whole if _product(whole) <= 1 << _MOST_BITS else widths
    if _product(digits) > 1 << _MOST_BITS:
        return None
    strides = tuple(_product(digits[axis + 1 :]) for axis in range(len(digits)))
    return KeySpace(tuple(outer_lo), tuple(outer_hi), strides, (_product(digits) - 1).bit_length())


def unique_keys(ordered: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Each of some sorted keys once, and where its cells begin; after the last of them, where they end."""
    new = np.empty(len(ordered), bool)
    new[:1] = True
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    starts = np.flatnonzero(new).astype(np.int64, copy=False)
    return ordered[starts], np.append(starts, len(ordered))


def _product(factors: Sequence[int]) -> int:
    result = 1
    for factor in factors:
        result *= factor
    return result


@kernel
def _add_digit(column: Array, lo: int, hi: int, stride: int, keys: Array) -> None:
    for cell in range(len(column)):
        keys[cell] += (min(max(column[cell], lo), hi) - lo) * stride
