"""Unbounded frames of partitions that lie in several tasks: what is carried from task to task instead of rows.

Counts, sums, extremes and variances of the rows that a task does not see are joined with those of the rows it sees.
Quantiles, modes and distinct counts begin with the counted values of the rows that it does not see.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal, localcontext
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from windrow.errors import DataError
from windrow.tables.dataframes import functions, named
from windrow.tables.keys import flat
from windrow.tables.spec import CARRIED, TIMES, FrameTask, TableAggregate, TableFrame

if TYPE_CHECKING:
    from pyspark.sql import Column

Array = npt.NDArray[Any]

MERGED = ("count", "sum", "avg", "var", "std", "var_pop", "std_pop", "min", "max")
COUNTED = ("count_distinct", "mode", "median", "percentile", "quantile_disc", "quantile_cont", "quantile_index")


def can_carry(item: TableAggregate, frame: TableFrame) -> bool:
    """Whether an aggregate over an unbounded frame can do without the rows of other tasks."""
    if frame.is_bounded or item.aggregate.name in MERGED:
        return True
    return item.aggregate.name in COUNTED and frame.exclude == "no others"


@dataclass(frozen=True)
class Part:
    """What is known of rows elsewhere: a state for merged aggregates, values and how often for counted ones."""

    rows: int = 0  # the values that are present
    total: Any = None
    mean: float = 0.0
    squares: float = 0.0  # the sum of squared distances from the mean
    extreme: Any = None
    values: pa.Array | None = None  # all values, or those that matter to a task
    times: Array | None = None
    below: int = 0  # rows whose values are smaller than those given
    distinct: int | None = None  # different values, where not all are given
    best: pa.Array | None = None  # the most frequent value, where not all are given
    best_times: int = 0
    has_seen: bool = False  # whether the rows that the task sees are among these


@dataclass(frozen=True)
class Outside:
    """The rows of the first and of the last partition of a task which lie in earlier and in later tasks."""

    before: Part | None = None
    after: Part | None = None


Carried = Mapping[int, Sequence[Outside | None]]
"""For each task and aggregate, what is known of the rows that it does not see."""


@dataclass
class Received:
    """What a task knows of rows elsewhere: part came with the plan, values may come as rows before its own."""

    carried: Carried
    _values: dict[int, list[pa.Table]] = field(default_factory=dict)

    def rows_of(self, task: FrameTask, table: pa.Table) -> pa.Table:
        """The task's own rows of those that came; the values that others bring are kept."""
        if CARRIED not in table.column_names or table.column(CARRIED).null_count == table.num_rows:
            return table
        codes = table.column(CARRIED)
        for code in codes.unique().drop_null().to_pylist():
            column = task.aggregates[code // 2].aggregate.attribute
            brought = table.select([column, TIMES]).filter(pc.equal(codes, code))
            self._values.setdefault(code, []).append(brought.rename_columns(["value", TIMES]))
        return table.filter(codes.is_null())

    def outside(self, share: int) -> Sequence[Outside | None]:
        """For each aggregate what is known, once all values are here."""
        if not self._values:
            return self.carried.get(share, ())
        known = list(self.carried.get(share, ()))
        for code in [code for code in self._values if code // 2 < len(known)]:
            values = pa.concat_tables(self._values.pop(code)).combine_chunks()
            held = known[code // 2] or Outside()
            part = held.after if code % 2 else held.before
            if part is not None:
                part = replace(part, values=flat(values.column("value")), times=values.column(TIMES).to_numpy())
            known[code // 2] = replace(held, after=part) if code % 2 else replace(held, before=part)
        return known


def state_columns(item: TableAggregate) -> list[Column]:
    """What Spark works out for the rows of each piece: rows, total, variance, mean and extreme."""
    f = functions()
    name, column = item.aggregate.name, item.aggregate.attribute
    value = f.lit(1) if column is None else named(column)
    kept = value if item.keep is None else f.when(named(item.keep), value)
    nothing = f.lit(None).cast("double")
    number = kept.cast("double") if name not in ("count", "min", "max") else nothing
    exact = number
    if name == "sum" and not pa.types.is_floating(item.result):
        exact = kept.cast("decimal(38,0)") if pa.types.is_int64(item.result) else kept
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
    total = _total(totals, item.result) if totals else None
    mean = _summed([part.mean * part.rows for part in some]) / rows
    away = [part.mean - mean for part in some]
    squares = _summed([part.squares + part.rows * far * far for part, far in zip(some, away, strict=True)])
    extreme = _outermost([part.extreme for part in some], name) if name in ("min", "max") else None
    return Part(rows, total, mean, squares, extreme)


def _total(values: Sequence[Any], kind: pa.DataType) -> Any:
    if pa.types.is_int64(kind):
        return sum(map(int, values))
    if pa.types.is_decimal(kind):
        with localcontext(prec=100):
            return sum(values, Decimal(0))
    return _summed(values)


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
    if pa.types.is_decimal(found.type):
        roomy = pa.decimal256(60, found.type.scale)
        values = pc.fill_null(found.cast(roomy), pa.scalar(Decimal(0), roomy))
        return pc.add(values, pa.scalar(total, roomy)).cast(found.type)
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
