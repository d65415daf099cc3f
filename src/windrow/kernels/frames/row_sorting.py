"""Sorting rows by keys of 64 bits: digit by digit, and only those digits in which keys differ."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiler.jit import kernel

Codes = npt.NDArray[np.uint64]
Order = npt.NDArray[np.int64]

DIGIT = 11
"""Bits of a digit: 2,048 counters fit into the first-level cache."""


def sort_rows(codes: list[Codes], count: int) -> Order:
    """The order of rows by several codes, the most significant first; rows that are equal in all keep their order."""
    order = np.arange(count, dtype=np.int64)
    for code in reversed(codes):
        sort_by(code, order)
    return order


@kernel
def sort_by(codes: Codes, order: Order) -> None:
    """Sort ``order`` by the codes of its rows; rows with equal codes keep their order."""
    rows = len(order)
    if rows < 2:
        return
    keys = np.empty(rows, np.uint64)
    first = codes[order[0]]
    differing = np.uint64(0)
    rises = True
    for k in range(rows):
        key = codes[order[k]]
        keys[k] = key
        differing |= key ^ first
        rises &= k == 0 or keys[k - 1] <= key
    if rises:
        return
    other_keys, other_order = np.empty(rows, np.uint64), np.empty(rows, np.int64)
    begins = np.empty(1 << DIGIT, np.int64)
    mask = np.uint64((1 << DIGIT) - 1)
    shift = np.uint64(0)
    while shift < np.uint64(64) and (differing >> shift) != np.uint64(0):
        if (differing >> shift) & np.uint64(1) == np.uint64(0):
            shift += np.uint64(1)
            continue
        begins[:] = 0
        for k in range(rows):
            begins[np.int64((keys[k] >> shift) & mask)] += 1
        total = np.int64(0)
        for digit in range(len(begins)):
            held = begins[digit]
            begins[digit] = total
            total += held
        for k in range(rows):
            digit = np.int64((keys[k] >> shift) & mask)
            place = begins[digit]
            begins[digit] = place + 1
            other_keys[place] = keys[k]
            other_order[place] = order[k]
        keys, other_keys = other_keys, keys
        order[:] = other_order
        shift += np.uint64(DIGIT)


@kernel
def mark_equal(codes: Codes, order: Order, equal: npt.NDArray[Any]) -> None:
    """Take the mark from rows whose code is another than that of the row before them in an order."""
    for k in range(1, len(order)):
        equal[k] &= codes[order[k]] == codes[order[k - 1]]
