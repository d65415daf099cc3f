"""The tables of paper 003: column a holds one value, a hundred values, or only different ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def rank_table(name: str, rows: int) -> tuple[Array, Array]:
    """Columns a and b of ``rank1``, ``rank100`` or ``rank10M``, in the order in which the table is stored.

    >>> rank_table("rank10M", 3)
    (array([1, 2, 3]), array([1000000, 1000001, 1000002]))
    """
    b = np.arange(rows, dtype=np.int64)
    if name == "rank1":
        by_hash = np.argsort(b.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15), kind="stable")
        return np.ones(rows, np.int64), b[by_hash]
    if name == "rank100":
        return np.random.default_rng(19).integers(0, 100, rows), b
    return b + 1, b + 1_000_000
