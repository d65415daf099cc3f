"""Unbounded frames of partitions that lie in several tasks: what is carried from task to task instead of rows.

Counts, sums, extremes and variances of the rows that a task does not see are joined with those of the rows it sees.
Quantiles, modes and distinct counts begin with the counted values of the rows that it does not see.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from windrow.aggregates.aggregate import Aggregate
from windrow.errors import DataError
from windrow.kernels.growing import growing_counts, growing_ranks
from windrow.tables.dataframes import functions, named
from windrow.tables.keys import numbers, ordinals
from windrow.tables.spec import SortKey, TableAggregate, TableFrame

if TYPE_CHECKING:
    from pyspark.sql import Column

Array = npt.NDArray[Any]

MERGED = ("count", "sum", "avg", "var", "std", "var_pop", "std_pop", "min", "max")
COUNTED = ("count_distinct", "mode", "median", "percentile", "quantile_disc", "quantile_cont", "quantile_index")


def can_carry(item: TableAggregate, frame: TableFrame, kind: str) -> bool:
    """Whether an aggregate over an unbounded frame can do without the rows of other tasks."""
    if frame.is_bounded:
        return True
    plain = not kind.startswith("decimal")
    if item.aggregate.name in MERGED:
        return plain or item.aggregate.name == "count"
    return item.aggregate.name in COUNTED and plain and frame.exclude == "no others"


@dataclass(frozen=True)
class Part:
    """What is known of rows elsewhere: a state for merged aggregates, values and how often for counted ones."""

    rows: int = 0  # the values that are present
    total: Any = None
    mean: float = 0.0
    squares: float = 0.0  # the sum of squared distances from the mean
    extreme: Any = None
    values: pa.Array | None = None
    times: Array | None = None


@dataclass(frozen=True)
class Outside:
    """The rows of the first and of the last partition of a task which lie in earlier and in later tasks."""

    before: Part | None = None
    after: Part | None = None


def state_columns(item: TableAggregate) -> list[Column]:
    """What Spark works out for the rows of each piece: rows, total, variance, mean and extreme."""
    f = functions()
    name, column = item.aggregate.name, item.aggregate.attribute
    value = f.lit(1) if column is None else named(column)
    kept = value if item.keep is None else f.when(named(item.keep), value)
    nothing = f.lit(None).cast("double")
    number = kept.cast("double") if name not in ("count", "min", "max") else nothing
    exact = kept.cast("decimal(38,0)") if name == "sum" and pa.types.is_int64(item.result) else number
    extremes = {"min": f.min(kept), "max": f.max(kept)}
    return [f.count(kept), f.sum(exact), f.avg(number), f.var_pop(number), extremes.get(name, nothing)]


def state_of(row: Sequence[Any]) -> Part:
    rows, total, mean, variance, extreme = row
    return Part(rows, total, float(mean or 0.0), float(variance or 0.0) * rows, extreme)


def outside_parts(
    pieces: Mapping[int, Part], before: Sequence[int], after: Sequence[int], item: TableAggregate
) -> Outside:
    """The parts of the pieces before and after those that a task sees."""
    sides = []
    for side in (before, after):
        parts = [pieces[number] for number in side if number in pieces]
        counted = item.aggregate.name in COUNTED
        sides.append((_counted(parts) if counted else joined(parts, item)) if parts else None)
    return Outside(*sides)


def _counted(parts: Sequence[Part]) -> Part:
    table = pa.table(
        {
            "value": pa.concat_arrays([part.values for part in parts]),
            "times": np.concatenate([part.times for part in parts if part.times is not None]),
        }
    )
    whole = table.group_by("value").aggregate([("times", "sum")])
    values = whole.column("value").combine_chunks()
    times = whole.column("times_sum").to_numpy()
    return Part(int(times.sum()), values=values, times=times)


def joined(parts: Sequence[Part], item: TableAggregate) -> Part:
    """Several parts as one."""
    some = [part for part in parts if part.rows]
    rows = sum(part.rows for part in some)
    if not rows:
        return Part()
    name = item.aggregate.name
    totals = [part.total for part in some if part.total is not None]
    total = None if not totals else sum(map(int, totals)) if pa.types.is_int64(item.result) else _summed(totals)
    mean = _summed([part.mean * part.rows for part in some]) / rows
    away = [part.mean - mean for part in some]
    squares = _summed([part.squares + part.rows * far * far for part, far in zip(some, away, strict=True)])
    extreme = _outermost([part.extreme for part in some], name) if name in ("min", "max") else None
    return Part(rows, total, mean, squares, extreme)


def _summed(values: Sequence[float]) -> float:
    if all(math.isfinite(value) for value in values):
        return math.fsum(values)
    with np.errstate(invalid="ignore"):
        return float(np.sum(np.array(values, float)))


def _outermost(values: Sequence[Any], name: str) -> Any:
    ordered = sorted(values, key=lambda value: (value != value, value if value == value else 0))
    return ordered[0] if name == "min" else ordered[-1]


def merge(item: TableAggregate, found: pa.Array, seen: Mapping[str, Array], outside: Part) -> pa.Array:
    """Results of the rows seen, joined with the part of the others; ``seen`` has the rows' counts and more."""
    if not outside.rows:
        return found
    name = item.aggregate.name
    if name == "count":
        return pc.add(found, outside.rows)
    if name in ("min", "max"):
        return _with_extreme(found, outside.extreme, name)
    rows = seen["count"] + outside.rows
    if name == "sum":
        return _with_total(found, outside.total)
    if name == "avg":
        with np.errstate(invalid="ignore"):
            return pa.array((seen["avg"] * seen["count"] + outside.total) / rows)
    mean = seen["avg"]
    squares = seen["var_pop"] * seen["count"] + outside.squares
    with np.errstate(invalid="ignore"):
        squares = squares + (mean - outside.mean) ** 2 * seen["count"] * outside.rows / rows
    divisor = rows - (1 if name in ("var", "std") else 0)
    variance = squares / np.maximum(divisor, 1)
    result = np.sqrt(variance) if name.startswith("std") else variance
    return pa.array(result, mask=divisor < 1)


def _with_total(found: pa.Array, total: Any) -> pa.Array:
    if not pa.types.is_int64(found.type):
        return pc.add(pc.fill_null(found, 0.0), float(total))
    values = pc.fill_null(found, 0).to_numpy()
    least, most = (int(values.min()) + total, int(values.max()) + total) if len(values) else (0, 0)
    if least < -(2**63) or most >= 2**63:
        raise DataError("an integer sum overflows int64", hint="Cast the column to double or decimal first")
    # The total alone may be too large for int64 where sums are not.
    return (
        pa.array([int(value) + total for value in values], pa.int64())
        if abs(total) >= 2**62
        else pa.array(values + total)
    )


def _with_extreme(found: pa.Array, extreme: Any, name: str) -> pa.Array:
    other = pa.scalar(extreme, found.type)
    if pa.types.is_floating(found.type):
        values = found.to_numpy(zero_copy_only=False).astype(np.float64)
        least = np.fmin(values, float(extreme))
        known = found.is_valid().to_numpy(zero_copy_only=False)
        most = np.where(np.isnan(values) | (extreme != extreme), np.nan, np.maximum(values, float(extreme)))
        chosen = least if name == "min" else most
        return pa.array(np.where(known, chosen, float(extreme))).cast(found.type)
    pick = pc.less if name == "min" else pc.greater
    return pc.if_else(pc.fill_null(pick(found, other), False), found, other)


@dataclass(frozen=True, eq=False)
class Growth:
    """Frames that all begin (``backwards``: end) with the rows elsewhere: ``stop`` is how many rows seen they hold."""

    column: pa.Array
    keep: Array | None
    stop: npt.NDArray[np.int64]
    outside: Sequence[Part]

    def result(self, aggregate: Aggregate, kind: pa.DataType) -> pa.Array:
        """A distinct count, a mode or a quantile in each frame."""
        parts = [(part.values, part.times) for part in self.outside if part.values is not None]
        values = pa.concat_arrays([self.column, *(held.cast(self.column.type) for held, _ in parts)])
        if pa.types.is_floating(values.type):
            values = pc.add(values, pa.scalar(0, values.type))  # makes -0.0 a 0.0
        codes = ordinals(values, SortKey("x"))
        ordered = _by_code(values, codes)
        here = codes[: len(self.column)].copy()
        if self.keep is not None:
            here[~self.keep] = -1
        counts = np.zeros(len(ordered), np.int64)
        if parts:
            np.add.at(counts, codes[len(self.column) :], np.concatenate([times for _, times in parts]))
        order = np.argsort(self.stop, kind="stable")
        out = np.zeros((2, len(self.stop)), np.int64)
        if aggregate.name in ("mode", "count_distinct"):
            growing_counts(here, counts, order, self.stop, out)
            return pa.array(out[1]) if aggregate.name == "count_distinct" else _picked(ordered, out[0], kind)
        present = np.concatenate([[0], np.cumsum(here >= 0)])[self.stop] + int(counts.sum())
        lower, upper, weight = ranks_of(aggregate, present)
        growing_ranks(here, counts, order, self.stop, np.stack([lower, upper]), out)
        if aggregate.name not in ("median", "quantile_cont"):
            return _picked(ordered, np.where(present > 0, out[0], -1), kind)
        return _interpolated(ordered, out, weight, present)


def _by_code(values: pa.Array, codes: Array) -> pa.Array:
    """The distinct values in order."""
    there = codes >= 0
    found, first = np.unique(codes[there], return_index=True)
    assert len(found) == 0 or found[-1] == len(found) - 1
    return values.take(pa.array(np.flatnonzero(there)[first]))


def _picked(ordered: pa.Array, codes: Array, kind: pa.DataType) -> pa.Array:
    picked = ordered.take(pa.array(np.maximum(codes, 0), mask=codes < 0))
    return picked if picked.type == kind else picked.cast(kind)


def _interpolated(ordered: pa.Array, out: Array, weight: Array, present: Array) -> pa.Array:
    if not len(ordered):
        return pa.nulls(len(weight), pa.float64())
    values = numbers(ordered)
    assert values is not None
    values = values.astype(np.float64)
    low, high = values[out[0]], values[out[1]]
    with np.errstate(invalid="ignore", over="ignore"):
        distance = high - low
        moved = np.where(np.isfinite(distance), low + weight * distance, low * (1 - weight) + high * weight)
    return pa.array(np.where((weight == 0) | (low == high), low, moved), mask=present == 0)


def ranks_of(aggregate: Aggregate, present: Array) -> tuple[Array, Array, Array]:
    """Which ranks answer an order statistic of so many values, and how far between them; -1 for no values.

    The same as ``aggregate.ranks``, which is a table for all numbers of values up to the largest.
    """
    share = Fraction(repr(float(0.5 if aggregate.parameter is None else aggregate.parameter)))
    if aggregate.name == "percentile":
        share /= 100
    wide = max(share.numerator * int(present.max(initial=0)), share.denominator) >= 2**53
    count: Any = present.astype(object) if wide else present
    weight = np.zeros(len(present))
    if aggregate.name == "percentile":
        lower = np.minimum(count * share.numerator // share.denominator, count - 1)
    elif aggregate.name == "quantile_disc":
        lower = np.maximum(-(-count * share.numerator // share.denominator) - 1, 0)
    else:
        place = np.maximum(count - 1, 0) * share.numerator
        lower, rest = place // share.denominator, place % share.denominator
        if aggregate.name != "quantile_index":
            weight = (rest / share.denominator).astype(np.float64)
    upper = lower + (weight > 0)
    none = present == 0
    return np.where(none, -1, lower).astype(np.int64), np.where(none, -1, upper).astype(np.int64), weight
