"""The tables of paper 003: column a holds one value, a hundred values, or only different ones."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.errors import DataError, UnknownNameError, nearest

Array = npt.NDArray[Any]


TABLES = ("rank1", "rank100", "rank10M")


def rank_table(name: str, rows: int) -> tuple[Array, Array]:
    """Columns a and b of ``rank1``, ``rank100`` or ``rank10M``, in the order in which the table is stored.

    >>> rank_table("rank10M", 3)
    (array([1, 2, 3]), array([1000000, 1000001, 1000002]))
    """
    if name not in TABLES:
        raise UnknownNameError("no such table in the papers", got=repr(name), hint=nearest(name, TABLES))
    b = np.arange(rows, dtype=np.int64)
    if name == "rank1":
        by_hash = np.argsort(b.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15), kind="stable")
        return np.ones(rows, np.int64), b[by_hash]
    if name == "rank100":
        return np.random.default_rng(19).integers(0, 100, rows), b
    return b + 1, b + 1_000_000


def skewed_values(rows: int, domain: int, exponent: float = 1.1) -> Array:
    """Whole numbers below ``domain``, the k-th as often as k to the power of -``exponent`` (Zipf); 0 is no skew.

    >>> skewed_values(8, 1000).tolist()
    [394, 771, 11, 394, 768, 444, 644, 11]
    """
    if domain < 1 or exponent < 0:
        raise DataError("there must be a value, and no negative skew", got=f"domain={domain}, exponent={exponent}")
    random = np.random.default_rng(37)
    if exponent == 0:
        return random.integers(0, domain, rows)
    shares = np.cumsum(np.arange(1, domain + 1, dtype=np.float64) ** -exponent)
    places: Array = np.searchsorted(shares, random.random(rows) * shares[-1])
    # Frequent values lie anywhere among the others, not all at one end.
    if math.gcd(7919, domain) == 1:
        places = (places * 7919 + 11) % domain
    return places
