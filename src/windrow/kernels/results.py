"""What window kernels take and give: values in a type that compiled code has one version of, and three arrays back."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import types
from numba.extending import overload

from windrow.kernels.ranks import RankTable

Array = npt.NDArray[Any]

OPERATIONS = {"count": 2, "sum": 0, "squares": 1, "min": 2, "max": 3, "select": 4, "distinct": 5, "mode": 6}


class Outcome(NamedTuple):
    """Results of one operation, of which the aggregate takes what it needs.

    ``reals`` holds sums, squares, interpolated values and numbers of distinct values, ``exact`` whole sums and picked
    values. ``counts`` says how many present values each window had; a kernel that did not count leaves it None and
    says in ``empty`` where there were none (None: nowhere). Where nothing is present the values mean nothing.
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


def rank_arrays(ranks: RankTable | None) -> RankArrays:
    if ranks is None:
        return RankArrays(np.zeros(1, np.int32), np.zeros(1, np.int32), np.zeros(1))
    return RankArrays(ranks.lower, ranks.upper, ranks.weight)


def sum_overflows(before: Any, added: Any) -> bool:
    """Whether a sum of two numbers leaves int64; floats never do. Compiled code has a version for each kind below."""
    return not isinstance(before, float) and not -(2**63) <= int(before) + int(added) < 2**63


@overload(sum_overflows)
def _sum_overflows(before: Any, added: Any) -> Any:
    def of_floats(before: Any, added: Any) -> bool:
        return False

    def of_signed(before: Any, added: Any) -> bool:
        # Half of the sum is looked at, for that cannot overflow itself.
        half = (before >> 1) + (added >> 1) + (before & added & 1)
        return half >= 4611686018427387904 or half < -4611686018427387904

    def of_unsigned(before: Any, added: Any) -> bool:
        one = np.uint64(1)
        return (before >> one) + (added >> one) + (before & added & one) >= np.uint64(4611686018427387904)

    kind: Any = before
    if not isinstance(kind, types.Integer):
        return of_floats
    return of_signed if kind.signed else of_unsigned  # type: ignore[attr-defined]


def prepared(values: Array, present: npt.NDArray[np.bool_] | None) -> tuple[Array, npt.NDArray[np.bool_]]:
    """Values as one flat float64, int64 or uint64 array, which holds each type exactly, and where they are present."""
    kind = values.dtype.kind
    if kind == "f":
        flat = np.ascontiguousarray(values, np.float64).reshape(-1)
        there = ~np.isnan(flat)
        return flat, there if present is None else there & present.reshape(-1)
    if kind == "M":
        values = values.view(np.int64)
    wide = np.uint64 if values.dtype == np.uint64 else np.int64
    flat = np.ascontiguousarray(values, wide).reshape(-1)
    return flat, np.ones(len(flat), bool) if present is None else np.ascontiguousarray(present).reshape(-1)
