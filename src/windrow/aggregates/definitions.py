"""The built-in aggregates of windows, shapes, frames and views.

A definition says which primitive operation an aggregate needs (count, sum, squares, min, max, select, distinct, mode)
and how its result follows from the primitive's outcome. ``mergeable`` and ``removable`` say whether partial states can
be joined and whether values can be taken out again; what is absent decides how an aggregate can run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.errors import DataError, UnknownNameError, nearest
from windrow.kernels.ranks import RankTable, cont_ranks, disc_ranks, index_ranks, percentile_ranks
from windrow.kernels.results import Outcome
from windrow.model.types import TYPES, DataType

Array = npt.NDArray[Any]
Ranks = Callable[[float, int], RankTable]
Finish = Callable[[Outcome, DataType], Array]


@dataclass(frozen=True)
class Definition:
    """One aggregate: its name, what it accepts and gives, and how it is computed."""

    name: str
    operation: str | None  # None: the count of present values is all it needs
    accepts: str  # number, ordered (numbers, booleans, datetimes, strings) or any
    result: Callable[[DataType], DataType]
    finish: Finish
    ranks: Ranks | None = None
    parameter: str | None = None
    divides: bool = False  # whether the result is made with the number of present values
    least: int = 1  # how many present values make a result; 0 for counts, which are never missing
    mergeable: bool = False
    removable: bool = False

    def check_type(self, found: DataType) -> None:
        """Refuse attributes of types the aggregate cannot take."""
        number = found.is_number or found.name == "bool"
        orderable = number or found.name in ("datetime", "string")
        fits = {"number": number, "ordered": orderable, "ranked": number or found.name == "datetime", "any": True}
        if not fits[self.accepts]:
            raise DataError(f"{self.name} cannot take values of type {found}", hint=f"It takes {_TAKES[self.accepts]}")


_TAKES = {
    "number": "numbers and booleans",
    "ranked": "numbers, booleans and datetimes",
    "ordered": "numbers, booleans, datetimes and strings",
}


def _same(found: DataType) -> DataType:
    return found


def _int64(_found: DataType) -> DataType:
    return TYPES["int64"]


def _float64(_found: DataType) -> DataType:
    return TYPES["float64"]


def _sum_type(found: DataType) -> DataType:
    return TYPES["float64"] if found.is_float else TYPES["int64"]


def _counts(outcome: Outcome, _found: DataType) -> Array:
    assert outcome.counts is not None
    return outcome.counts


def _sum(outcome: Outcome, found: DataType) -> Array:
    if found.is_float:
        return outcome.reals
    if outcome.exact.dtype == np.uint64:
        if (outcome.exact > np.uint64(2**63 - 1)).any():
            raise DataError("an integer sum overflows int64", hint="Cast the attribute to float64 first")
        return outcome.exact.astype(np.int64)
    return outcome.exact


def _average(outcome: Outcome, _found: DataType) -> Array:
    assert outcome.counts is not None
    return outcome.reals / np.maximum(outcome.counts, 1)


def _picked(outcome: Outcome, found: DataType) -> Array:
    return outcome.exact.astype(found.dtype, copy=False) if found.dtype.kind != "T" else outcome.exact


def _interpolated(outcome: Outcome, _found: DataType) -> Array:
    return outcome.reals


def _distinct(outcome: Outcome, _found: DataType) -> Array:
    assert outcome.counts is not None
    return np.where(outcome.counts > 0, outcome.reals, 0).astype(np.int64)


def _variance(root: bool, sample: bool) -> Finish:
    def finish(outcome: Outcome, _found: DataType) -> Array:
        assert outcome.counts is not None
        divisor = np.maximum(outcome.counts - (1 if sample else 0), 1)
        variance = outcome.reals / divisor
        return np.sqrt(variance) if root else variance

    return finish


DEFINITIONS: Mapping[str, Definition] = {
    definition.name: definition
    for definition in (
        Definition("count", None, "any", _int64, _counts, divides=True, least=0, mergeable=True, removable=True),
        Definition("sum", "sum", "number", _sum_type, _sum, mergeable=True, removable=True),
        Definition("avg", "sum", "number", _float64, _average, divides=True, mergeable=True, removable=True),
        Definition("var", "squares", "number", _float64, _variance(False, True), divides=True, least=2, mergeable=True),
        Definition("std", "squares", "number", _float64, _variance(True, True), divides=True, least=2, mergeable=True),
        Definition("var_pop", "squares", "number", _float64, _variance(False, False), divides=True, mergeable=True),
        Definition("std_pop", "squares", "number", _float64, _variance(True, False), divides=True, mergeable=True),
        Definition("min", "min", "ordered", _same, _picked, mergeable=True),
        Definition("max", "max", "ordered", _same, _picked, mergeable=True),
        Definition("percentile", "select", "ranked", _same, _picked, percentile_ranks, "P"),
        Definition("quantile_disc", "select", "ranked", _same, _picked, disc_ranks, "q"),
        Definition("quantile_cont", "select", "number", _float64, _interpolated, cont_ranks, "q"),
        Definition("quantile_index", "select", "ranked", _same, _picked, index_ranks, "q"),
        Definition("median", "select", "number", _float64, _interpolated, cont_ranks),
        Definition("count_distinct", "distinct", "ordered", _int64, _distinct, divides=True, least=0),
        Definition("mode", "mode", "ordered", _same, _picked),
    )
}


def definition(name: str) -> Definition:
    """The built-in aggregate of that name."""
    found = DEFINITIONS.get(name.lower())
    if found is None:
        raise UnknownNameError("no such aggregate", got=repr(name), hint=nearest(name.lower(), DEFINITIONS))
    return found
