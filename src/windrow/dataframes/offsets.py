"""Offsets of frames as users give them: numbers, intervals, columns and texts."""

from __future__ import annotations

import datetime
import math
import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from windrow.dataframes.sessions import check_schema, collect_rows, functions, is_column
from windrow.dataframes.spec import FrameBound
from windrow.errors import DataError, SchemaError
from windrow.model.frame import DAY, Interval, Offset, parse_interval

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_CHANGING = re.compile(
    r"\b(rand|randn|random|randstr|uniform|uuid|shuffle|monotonically_increasing_id|spark_partition_id)\s*\(",
    re.IGNORECASE,
)

WHOLE = ("tinyint", "smallint", "int", "bigint")
MOMENTS = ("timestamp", "timestamp_ntz")


def refuse_changing(given: Any, what: str) -> None:
    """Refuse expressions that give another value each time."""
    match = _CHANGING.search(str(given))
    if match is not None:
        raise DataError(
            f"{what} must give the same value each time it is worked out",
            got=f"{match[1].lower()}()",
            hint="Write it to a column of a table first",
        )


@dataclass
class BoundReader:
    """Bounds of one query's frames; those that stand in columns are added to the rows."""

    frame: DataFrame
    order: list[tuple[str, str]]  # the names and Spark's types of the order columns
    added: dict[str, Column]
    checks: dict[str, str]  # of those that must not be negative: whether they are preceding or following

    def read(self, given: Any, unit: str) -> FrameBound:
        """A bound as it was given for a frame."""
        before = None
        if isinstance(given, Offset):
            given, before = given.amount, given.before
        if given is None:
            return FrameBound(None)
        if isinstance(given, str):
            interval = parse_interval(given) if unit == "range" else None
            given = functions().expr(given) if interval is None else interval
        if is_column(given):
            return self._column(given, unit, before)
        offset = self._constant(given, unit)
        if before is not None:
            self._refuse_negative(offset, before)
            offset = -offset if before else offset
        return FrameBound(offset)

    def _refuse_negative(self, offset: Any, before: bool) -> None:
        negative = offset.is_negative if isinstance(offset, Interval) else offset < 0
        if negative:
            other = "following" if before else "preceding"
            raise DataError(
                "the offset of preceding and following must not be negative", got=offset, hint=f"Use {other}"
            )

    def _constant(self, given: Any, unit: str) -> Any:
        if isinstance(given, bool):
            raise SchemaError("a frame's offset must be a number", got=repr(given))
        if unit != "range":
            if not isinstance(given, (int, np.integer)):
                raise SchemaError(
                    f"the offsets of a {unit} frame must be whole numbers",
                    got=repr(given),
                    hint="Use range for distances",
                )
            return int(given)
        if isinstance(given, (int, np.integer)) and given == 0:
            return 0
        kind = self.range_key()
        if isinstance(given, datetime.timedelta):
            given = Interval(0, given // datetime.timedelta(microseconds=1))
        elif isinstance(given, np.timedelta64):
            given = Interval(0, int(given.astype("m8[us]").astype(np.int64)))
        if isinstance(given, Interval):
            if kind != "date" and kind not in MOMENTS:
                raise SchemaError(f"the offset of a range frame over {kind} must be a number", got=given)
            return given if given.months else given.microseconds
        if not isinstance(given, (int, float, Decimal, np.integer, np.floating)) or not math.isfinite(given):
            raise SchemaError("the offset of a range frame must be a finite number or an interval", got=repr(given))
        return self._number(given, kind)

    def _number(self, given: Any, kind: str) -> Any:
        if kind in MOMENTS:
            raise SchemaError(
                f"the offset of a range frame over {kind} must be an interval", got=given, hint="As in '7 days'"
            )
        if kind == "date":
            if given != int(given):
                raise SchemaError("dates lie whole days apart", got=given, hint="Use an interval, as in '12 hours'")
            return int(given) * DAY
        if kind.startswith("decimal"):
            scaled = Fraction(str(given)) * 10 ** _scale(kind)
            return int(scaled) if scaled.denominator == 1 else float(scaled)
        return int(given) if isinstance(given, (int, np.integer)) else float(given)

    def range_key(self) -> str:
        """The type of the one column that distances are measured along."""
        if len(self.order) != 1:
            got = f"{len(self.order)} order columns" if self.order else "no order column"
            raise SchemaError(
                "a range frame with an offset needs exactly one order column", got=got, hint="Use rows or groups"
            )
        kind = self.order[0][1]
        small = kind.startswith("decimal") and int(kind[8:].split(",")[0]) <= 18
        if kind not in (*WHOLE, "float", "double", "date", *MOMENTS) and not small:
            raise SchemaError(
                "a range frame with an offset needs numbers, dates or times to order by",
                got=kind,
                hint="Use rows or groups",
            )
        return kind

    def _column(self, given: Column, unit: str, before: bool | None) -> FrameBound:
        refuse_changing(given, "a frame's bound")
        kind = check_schema(self.frame, [given.alias("bound")], "a frame's bound").fields[0].dataType.simpleString()
        amount = _amount(given, kind, unit, self.range_key() if unit == "range" else "bigint")
        name = f"__windrow_bound{len(self.added)}"
        self.added[name] = -amount if before else amount
        if before is not None:
            self.checks[name] = "preceding" if before else "following"
        return FrameBound(None, name)


def _amount(given: Column, kind: str, unit: str, key: str) -> Column:
    """A column of offsets in what the order key counts in."""
    whole = kind in WHOLE or (kind.startswith("decimal") and _scale(kind) == 0)
    if unit != "range":
        if not whole:
            raise SchemaError(f"the bounds of a {unit} frame must be whole numbers", got=kind, hint="Cast to bigint")
        return given.cast("bigint")
    if kind.startswith("interval day") or kind.startswith(("interval hour", "interval minute", "interval second")):
        if key != "date" and key not in MOMENTS:
            raise SchemaError(f"the offset of a range frame over {key} must be a number", got=kind)
        return given
    number = whole or kind in ("float", "double") or kind.startswith("decimal")
    if not number or key in MOMENTS or (key == "date" and not whole):
        wanted = "an interval of days and less" if key in MOMENTS else "whole days" if key == "date" else "a number"
        raise SchemaError(f"the bounds of a range frame over {key} must be {wanted}", got=kind)
    if key == "date":
        return given.cast("bigint") * DAY
    scale = 10 ** _scale(key) if key.startswith("decimal") else 1
    exact = whole and key not in ("float", "double")
    return given.cast("bigint") * scale if exact else given.cast("double") * float(scale)


def _scale(kind: str) -> int:
    return int(kind.rstrip(")").split(",")[1])


def measure_reach(rows: DataFrame, bounds: dict[str, Column], checks: dict[str, str]) -> dict[str, Any]:
    """How far the bounds that stand in columns reach: one look at all rows."""
    if not bounds:
        return {}
    f = functions()
    wanted = []
    for name in bounds:
        column = f.col(name)
        wanted += [f.min(column), f.max(column), f.count(f.when(column.isNull(), 1))]
    found = collect_rows(rows.agg(*wanted), "looking at the bounds of frames")[0]
    reach = {}
    for number, name in enumerate(bounds):
        least, most, nulls = (found[3 * number + k] for k in range(3))
        if nulls:
            raise DataError("a frame's bound must not be NULL", got=f"{nulls:,} rows with NULL")
        least, most = (_plain(value) for value in (least, most))
        _check(name, least, most, checks)
        reach[name] = (least, most)
    return reach


def _plain(value: Any) -> Any:
    if isinstance(value, datetime.timedelta):
        return value // datetime.timedelta(microseconds=1)
    return 0 if value is None else value


def _check(name: str, least: Any, most: Any, checks: dict[str, str]) -> None:
    if isinstance(most, float) and not (math.isfinite(least) and math.isfinite(most)):
        raise DataError("a frame's bound must be finite", got=f"{least} to {most}")
    if name in checks:
        side = checks[name]
        worst = most if side == "preceding" else -least
        if worst > 0:
            other = "following" if side == "preceding" else "preceding"
            raise DataError(f"the offset of {side} must not be negative", got=-worst, hint=f"Use {other}")
