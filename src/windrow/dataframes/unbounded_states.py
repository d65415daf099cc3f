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

from windrow.aggregates.aggregate import Aggregate
from windrow.aggregates.columns import Column as NumericColumn
from windrow.aggregates.definition import Definition
from windrow.aggregates.parts import COUNTS, join_parts
from windrow.dataframes.keys import join_chunks
from windrow.dataframes.sessions import functions
from windrow.dataframes.spec import CARRIED, TIMES, BoundFrame, FrameTask, TableAggregate, is_bounded
from windrow.errors import DataError

if TYPE_CHECKING:
    from pyspark.sql import Column

Array = npt.NDArray[Any]


def can_carry(item: TableAggregate, frame: BoundFrame) -> bool:
    """Whether an aggregate over an unbounded frame can do without the rows of other tasks."""
    definition = item.aggregate.definition
    parts = item.aggregate.parts().values()
    joins = definition.join is not None and all(part.definition.in_spark is not None for part in parts)
    if is_bounded(frame) or joins:
        return True
    return definition.tallies and frame.exclusion == "no others" and not item.aggregate.varies


def joins_parts(aggregate: Aggregate) -> bool:
    """Whether results are joined from parts that are floats; plain sums and extremes keep their own types."""
    return not aggregate.definition.sums and not aggregate.definition.picks


@dataclass(frozen=True)
class Part:
    """What is known of rows elsewhere: a state for merged aggregates, values and how often for counted ones."""

    rows: int = 0  # the values that are present
    known: Mapping[str, Any] = field(default_factory=dict)  # the aggregates of which results are joined
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
                part = replace(part, values=join_chunks(values.column("value")), times=values.column(TIMES).to_numpy())
            known[code // 2] = replace(held, after=part) if code % 2 else replace(held, before=part)
        return known


def state_columns(item: TableAggregate) -> list[Column]:
    """What Spark works out for the rows of each piece: the parts of which results are joined."""
    f = functions()
    aggregate = item.aggregate
    columns = [_kept_values(item, name) for name in aggregate.attributes] or [_kept_values(item, None)]
    if aggregate.definition.sums and not pa.types.is_floating(item.result):
        columns = [
            f"cast({column} as decimal(38,0))" if pa.types.is_int64(item.result) else column for column in columns
        ]
    elif joins_parts(aggregate) and aggregate.attribute is not None and aggregate.definition.least:
        columns = [f"cast({column} as double)" for column in columns]
    return [f.expr(str(part.definition.in_spark).format(*columns)) for part in aggregate.parts().values()]


def _kept_values(item: TableAggregate, name: str | None) -> str:
    """Spark SQL for a column's values in the rows that count."""
    value = "1" if name is None else _quote(name)
    return value if item.keep is None else f"if({_quote(item.keep)}, {value}, null)"


def _quote(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def state_of(item: TableAggregate, row: Sequence[Any]) -> Part:
    """A piece's parts as Spark gave them."""
    known = dict(zip(item.aggregate.parts(), row, strict=True))
    counted = next((known[name] for name in COUNTS if name in known), None)
    if counted is None:  # an extreme counts its values by being there
        counted = int(any(value is not None for value in row))
    return Part(int(counted), known)


def outside_parts(
    pieces: Mapping[int, Part], before: Sequence[int], after: Sequence[int], item: TableAggregate
) -> Outside:
    """The parts of the pieces before and after those that a task sees."""
    sides = []
    for side in (before, after):
        parts = [pieces[number] for number in side if number in pieces]
        tallied = item.aggregate.definition.tallies
        sides.append((_join_counts(parts) if tallied else unite_parts(parts, item)) if parts else None)
    return Outside(*sides)


def _join_counts(parts: Sequence[Part]) -> Part:
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


def unite_parts(parts: Sequence[Part], item: TableAggregate) -> Part:
    """Several parts as one."""
    some = [part for part in parts if part.rows]
    rows = sum(part.rows for part in some)
    if not rows:
        return Part()
    definition = item.aggregate.definition
    if definition.sums:
        return Part(rows, {definition.name: _total([part.known[definition.name] for part in some], item.result)})
    if definition.picks:
        return Part(
            rows, {definition.name: _take_outermost([part.known[definition.name] for part in some], definition)}
        )
    columns = {name: _stack([part.known[name] for part in some]) for name in some[0].known}
    starts = np.array([0, len(some)])
    merged = {}
    for name, part in item.aggregate.parts().items():
        own = {needed: columns[needed] for needed in part.parts()}
        found = join_parts(part, own, starts)
        merged[name] = None if found.missing is not None and found.missing[0] else found.values[0]
    return Part(rows, merged)


def _stack(values: Sequence[Any]) -> NumericColumn:
    there = np.array([value is not None for value in values])
    numbers = [0 if value is None else value for value in values]
    whole = all(isinstance(value, (int, np.integer)) for value in numbers)
    return NumericColumn(np.array(numbers, np.int64 if whole else np.float64), None if there.all() else there)


def _total(values: Sequence[Any], kind: pa.DataType) -> Any:
    if pa.types.is_int64(kind):
        return sum(map(int, values))
    if pa.types.is_decimal(kind):
        with localcontext(prec=100):
            return sum(values, Decimal(0))
    return _sum_exactly(values)


def _sum_exactly(values: Sequence[float]) -> float:
    if all(math.isfinite(value) for value in values):
        return math.fsum(values)
    with np.errstate(invalid="ignore"):
        return float(np.sum(np.array(values, float)))


def _take_outermost(values: Sequence[Any], definition: Definition) -> Any:
    ordered = sorted(values, key=lambda value: (value != value, value if value == value else 0))
    return ordered[-1] if definition.largest else ordered[0]


def merge(item: TableAggregate, found: pa.Array, seen: Mapping[str, NumericColumn], outside: Part) -> pa.Array:
    """Results of the rows seen, joined with the part of the others; ``seen`` has the rows' own parts."""
    if not outside.rows:
        return found
    definition = item.aggregate.definition
    if definition.sums:
        return _add_total(found, outside.known[definition.name])
    if definition.picks:
        return _merge_extreme(found, outside.known[definition.name], definition)
    columns = {name: _append_part(column, outside.known[name]) for name, column in seen.items()}
    result = join_parts(item.aggregate, columns, np.arange(0, 2 * len(found) + 1, 2))
    return pa.array(result.values, mask=result.missing)


def _append_part(column: NumericColumn, other: Any) -> NumericColumn:
    """Each row's part, and after it the part of the rows that are not seen."""
    rows = len(column.values)
    whole = column.values.dtype.kind == "i" and isinstance(other, (int, np.integer))
    values = np.empty(2 * rows, np.int64 if whole else np.float64)
    there = np.ones(2 * rows, bool)
    values[::2], values[1::2] = column.values, 0 if other is None else other
    there[::2], there[1::2] = True if column.present is None else column.present, other is not None
    return NumericColumn(values, None if there.all() else there)


def _add_total(found: pa.Array, total: Any) -> pa.Array:
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


def _merge_extreme(found: pa.Array, extreme: Any, definition: Definition) -> pa.Array:
    other = pa.scalar(extreme, found.type)
    if pa.types.is_floating(found.type):
        values = found.to_numpy(zero_copy_only=False).astype(np.float64)
        least = np.fmin(values, float(extreme))
        known = found.is_valid().to_numpy(zero_copy_only=False)
        most = np.where(np.isnan(values) | (extreme != extreme), np.nan, np.maximum(values, float(extreme)))
        chosen = most if definition.largest else least
        return pa.array(np.where(known, chosen, float(extreme))).cast(found.type)
    pick = pc.greater if definition.largest else pc.less
    return pc.if_else(pc.fill_null(pick(found, other), False), found, other)
