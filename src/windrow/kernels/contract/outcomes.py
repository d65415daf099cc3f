"""What window kernels take and give: values in a type that compiled code has one version of, and three arrays back."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from windrow.kernels.contract.ranks import RankTable

Array = npt.NDArray[Any]

OPERATIONS = {"count": 2, "sum": 0, "squares": 1, "min": 2, "max": 3, "select": 4, "distinct": 5, "mode": 6}


class Outcome(NamedTuple):
    """Results of one operation, of which the aggregate takes what it needs.

    ``reals`` holds sums, squares, interpolated values and numbers of distinct values, ``exact`` whole sums and picked
    values. ``counts`` says how many present values each window had; a kernel that did not count leaves it None and
    says in ``empty`` where there were none (None: nowhere, or where NaN stands). Where nothing is present other values
    mean nothing.
    """

    reals: Array
    exact: Array
    counts: npt.NDArray[np.int64] | None
    empty: npt.NDArray[np.bool_] | None = None


NO_VALUES: Array = np.zeros(0)


class RankArrays(NamedTuple):
    """A rank table as compiled loops read it."""

    lower: npt.NDArray[np.int32]
    upper: npt.NDArray[np.int32]
    weight: npt.NDArray[np.float64]
    each: bool  # whether there is an entry for each frame, rather than for each number of values


def rank_arrays(ranks: RankTable | None) -> RankArrays:
    if ranks is None:
        return RankArrays(np.zeros(1, np.int32), np.zeros(1, np.int32), np.zeros(1), False)
    return RankArrays(ranks.lower, ranks.upper, ranks.weight, ranks.each)


def prepared(values: Array, present: npt.NDArray[np.bool_] | None) -> tuple[Array, npt.NDArray[np.bool_]]:
    """Values as one flat float64, int64 or uint64 array, which holds each type exactly, and where they are present."""
    kind = values.dtype.kind
    if kind == "f":
        # Adding 0.0 makes -0.0 a 0.0, or which of two equal zeros is found would be chance.
        flat = np.add(values, 0.0, dtype=np.float64).reshape(-1)
        there = ~np.isnan(flat)
        return flat, there if present is None else there & present.reshape(-1)
    if kind == "M":
        dated = ~np.isnat(values)
        present = dated if present is None else dated & present
        values = values.view(np.int64)
    wide = np.uint64 if values.dtype == np.uint64 else np.int64
    flat = np.ascontiguousarray(values, wide).reshape(-1)
    return flat, np.ones(len(flat), bool) if present is None else np.ascontiguousarray(present).reshape(-1)


def centre(values: Array, there: npt.NDArray[np.bool_]) -> float:
    """What to take from values before squaring them, so that the difference of large squares does not lose digits.

    Their mean, unless some are much closer to 0 than that: windows of those alone would lose digits by it. An error
    then stays below 1e-11 of any window's mean square.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        sizes = np.abs(values.astype(np.float64, copy=False))
        known = there & np.isfinite(sizes)
        mean = float(values.mean(where=known, dtype=np.float64)) if known.any() else 0.0
        smallest = float(sizes.min(where=known, initial=np.inf))
    return mean if np.isfinite(mean) and smallest >= abs(mean) / 100 else 0.0
