"""Aggregates made of several primitives: the range, the first and last values, and weighted averages."""

from __future__ import annotations

import numpy as np

from windrow.aggregates.definition import Array, Compose, Computed, Join, Parts, Primitives
from windrow.errors import DataError
from windrow.model.types import DataType, data_type_of


def range_of(primitives: Primitives) -> Computed:
    """The largest value less the smallest, in the values' own type."""
    found = primitives.type_of(0)
    lowest, highest = (primitives.extremes(0, operation) for operation in ("min", "max"))
    return Computed(_difference(highest, lowest, found, primitives.counts() > 0))


def distance(highest: Array, lowest: Array, there: Array) -> Array:
    """The largest values less the smallest, where there are any."""
    return _difference(highest, lowest, data_type_of(highest.dtype), there)


def _difference(highest: Array, lowest: Array, found: DataType, there: Array) -> Array:
    if found.name == "bool":
        return np.asarray(highest != lowest)
    if found.is_float:
        with np.errstate(invalid="ignore", over="ignore"):
            return np.asarray(highest - lowest)
    # Unsigned arithmetic wraps to the right distance, however far apart the two are.
    apart = highest.astype(np.int64).view(np.uint64) - lowest.astype(np.int64).view(np.uint64)
    if highest.dtype == np.uint64:
        apart = highest - lowest
    if bool((apart > np.uint64(np.iinfo(found.dtype).max)).any(where=there)):
        raise DataError(f"a range overflows {found}", hint="Cast the values to a wider type first")
    return apart.astype(found.dtype)


def join_ranges(parts: Parts) -> Computed:
    """From the smallest and largest values of parts."""
    lowest, highest = parts.extreme("min", "min"), parts.extreme("max", "max")
    return Computed(distance(highest, lowest, parts.total("count") > 0))


def outermost(operation: str) -> Compose:
    """The value at the first or the last cell that has one."""

    def compose(primitives: Primitives) -> Computed:
        return Computed(primitives.outermost(0, operation))

    return compose


def place_of(operation: str) -> Compose:
    """A hidden aggregate: where the first or the last value is."""

    def compose(primitives: Primitives) -> Computed:
        return Computed(primitives.places(operation))

    return compose


def join_outermost(name: str, operation: str) -> Join:
    """The value of the part that has the first or the last cell."""

    def join(parts: Parts) -> Computed:
        return Computed(parts.pick(name, f"place_{operation}", operation))

    return join


def weighted_average(primitives: Primitives) -> Computed:
    """Sums of products over sums of weights; missing where the weights sum to 0."""
    values, weights = primitives.reals(0), primitives.reals(1)
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        products = primitives.sums("0 times 1", lambda: values * weights)
        total = primitives.sums("1", lambda: weights)
        return _share_out(products, total)


def _share_out(products: Array, total: Array) -> Computed:
    nothing = total == 0
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        return Computed(products / np.where(nothing, 1.0, total), nothing if nothing.any() else None)


def weighted_sum(primitives: Primitives) -> Computed:
    """A part of a weighted average: the sum of products."""
    values, weights = primitives.reals(0), primitives.reals(1)
    with np.errstate(invalid="ignore", over="ignore"):
        return Computed(primitives.sums("0 times 1", lambda: values * weights))


def sum_of_weights(primitives: Primitives) -> Computed:
    """A part of a weighted average: the weights of the values that are present."""
    weights = primitives.reals(1)
    return Computed(primitives.sums("1", lambda: weights))


def join_weighted(parts: Parts) -> Computed:
    return _share_out(parts.total("weighted_sum"), parts.total("weights_sum"))
