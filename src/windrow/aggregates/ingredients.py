"""What definitions of aggregates are made of: arguments and types of results, outcomes to results, parts to wholes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.aggregates.definition import Array, Computed, Finish, Join
from windrow.errors import DataError
from windrow.kernels.contract.outcomes import Outcome
from windrow.model.types import TYPES, DataType

NUMBER, ORDERED, ANY = ("number",), ("ordered",), ("any",)
PAIR = ("number", "number")


def same(found: DataType) -> DataType:
    return found


def always_int64(_found: DataType) -> DataType:
    return TYPES["int64"]


def always_float64(_found: DataType) -> DataType:
    return TYPES["float64"]


def sum_type(found: DataType) -> DataType:
    return TYPES["float64"] if found.is_float else TYPES["int64"]


# From a primitive's outcome to results


def give_counts(outcome: Outcome, _found: DataType) -> Array:
    assert outcome.counts is not None
    return outcome.counts


def give_sum(outcome: Outcome, found: DataType) -> Array:
    if found.is_float:
        return outcome.reals
    return whole_sums(outcome.exact)


def whole_sums(exact: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Sums of whole numbers as int64, which must hold them."""
    if exact.dtype != np.uint64:
        return exact
    if (exact > np.uint64(2**63 - 1)).any():
        raise DataError("an integer sum overflows int64", hint="Cast the attribute to float64 first")
    return exact.astype(np.int64)


def give_average(outcome: Outcome, _found: DataType) -> Array:
    assert outcome.counts is not None
    return outcome.reals / np.maximum(outcome.counts, 1)


def give_picked(outcome: Outcome, found: DataType) -> Array:
    return outcome.exact.astype(found.dtype, copy=False) if found.dtype.kind != "T" else outcome.exact


def give_reals(outcome: Outcome, _found: DataType) -> Array:
    return outcome.reals


def give_distinct(outcome: Outcome, _found: DataType) -> Array:
    distinct = outcome.reals.astype(np.int64, copy=False)
    if outcome.counts is None:  # somebody knows that nothing is empty
        return distinct
    there = outcome.counts > 0
    return distinct if there.all() else np.where(there, distinct, 0)


def give_variance(sample: int, root: bool) -> Finish:
    def finish(outcome: Outcome, _found: DataType) -> Array:
        assert outcome.counts is not None
        variance = outcome.reals / np.maximum(outcome.counts - sample, 1)
        return np.sqrt(variance) if root else variance

    return finish


# From the results of parts to those of the whole


def join_total(part: str) -> Join:
    return lambda parts: Computed(parts.total(part))


def join_extreme(part: str, operation: str) -> Join:
    return lambda parts: Computed(parts.extreme(part, operation))
