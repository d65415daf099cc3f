"""Ranks, neighbouring rows and rows of frames, made of aggregates over frames: one partition may lie in many tasks.

A row's number is a count of the rows up to it, its rank a count of those before its peers, and so on. What needs the
value of one row of a whole partition, its first or its tenth, is a second step: by then each row has its number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any, cast

from windrow.aggregates.aggregate import Aggregate, FramedAggregate, count, max, sum
from windrow.aggregates.positions import Position
from windrow.dataframes.sessions import column_named, functions, is_column
from windrow.errors import DataError, SchemaError
from windrow.model.frame import Frame, Offset

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from windrow.dataframes.frames import TableFrames

HELPER = "__position_"
ALL = Frame.rows(None, None)
SO_FAR = Frame.rows(None, 0)
NO_OTHERS = "no others"


def has_positions(aggregates: Mapping[str, Any]) -> bool:
    return any(isinstance(one, Position) for one in aggregates.values())


@dataclass
class Steps:
    """The aggregates that positions are made of, in one pass and a second, and what is made of them at last."""

    query: TableFrames
    first: dict[str, Any] = field(default_factory=dict)
    second: dict[str, Any] = field(default_factory=dict)
    results: dict[str, Callable[[], Column]] = field(default_factory=dict)
    words: dict[str, str] = field(default_factory=dict)
    _known: dict[tuple[Any, ...], str] = field(default_factory=dict)
    _using: list[str] = field(default_factory=list)
    _used: dict[str, list[str]] = field(default_factory=dict)  # the helpers of each position, as they are asked for

    def add(self, name: str, asked: Any) -> None:
        """A column that is asked for."""
        if not isinstance(asked, Position):
            self.first[name] = asked
            self.results[name] = lambda: column_named(name)
            return
        if not self.query.order:
            raise SchemaError(f"{asked.name} needs rows in an order", hint='As in order_by("day")')
        told = f"{name:<10}  {asked.name}"
        self._used[told] = self._using = []
        self.results[name] = _MAKE[asked.name](self, asked)

    def describe(self) -> list[str]:
        """What each position is made of."""
        return [f"  {told}: from {', '.join(dict.fromkeys(used))}" for told, used in self._used.items()]

    def run(self) -> DataFrame:
        """The rows with all columns that were asked for."""
        made = self.query.with_rows(self.query.df).plain_agg(self.first)
        if self.second:
            made = self.query.with_rows(made).plain_agg(self.second)
        own = [column_named(name) for name in self.query.df.columns]
        return made.select(*own, *(make().alias(name) for name, make in self.results.items()))

    def _helper(self, step: dict[str, Any], key: tuple[Any, ...], make: Callable[[], FramedAggregate]) -> Column:
        if key not in self._known:
            self._known[key] = f"{HELPER}{len(self._known)}"
            step[self._known[key]] = make()
            self.words[self._known[key]] = _word(key) + (" in a second pass" if step is self.second else "")
        self._using.append(self.words[self._known[key]])
        return column_named(self._known[key])

    def number(self) -> Column:
        """Each row's number."""
        return self._helper(self.first, ("number",), lambda: count().over(SO_FAR))

    def rows(self) -> Column:
        """The rows of the partition."""
        return self._helper(self.first, ("rows",), lambda: count().over(ALL))

    def before(self) -> Column:
        """The rows before all peers."""
        return self._helper(self.first, ("before",), lambda: count().over(Frame.range(None, 0).exclude("group")))

    def up_to_peers(self) -> Column:
        return self._helper(self.first, ("peers",), lambda: count().over(Frame.range(None, 0)))

    def counted(self, frame: Frame[Any]) -> Column:
        return self._helper(self.first, ("counted", str(frame)), lambda: count().over(frame))

    def row_of(self, value: Column, frame: Frame[Any], number: int) -> Column:
        """The value of a frame's n-th row, from its end if negative; NULL if it is NULL or there is no such row."""
        key = ("picked", str(value), number, str(frame))
        return self._helper(self.first, key, lambda: Aggregate("row_value", cast(Any, value), number).over(frame))

    def absolute(self, value: Column, number: Callable[[], Column], key: Any) -> Column:
        """The value of the row of a partition that has a number."""
        row = self.number()
        wanted = number()
        return self._helper(
            self.second, ("row", str(value), key), lambda: max(functions().when(row == wanted, value)).over(ALL)
        )


def _word(key: tuple[Any, ...]) -> str:
    """What a helper is, for readers."""
    kind, *rest = key
    plain = {
        "number": "the row's number",
        "rows": "the rows of the partition",
        "before": "the rows before all peers",
        "peers": "the rows up to the last peer",
        "groups": "the groups of peers",
    }
    if kind in plain:
        return plain[kind]
    if kind == "row":
        return f"the {'last value' if rest[-1] == 'last' else f'value of row {rest[-1]}'} of the partition"
    if kind == "counted":
        return f"the number of {rest[-1]}"
    return f"{'the last row' if rest[1] < 0 else f'row {rest[1]}'} of {rest[-1]}"


def _value(given: Any, frame: DataFrame) -> Column:
    if is_column(given):
        column: Column = given
        return column
    if isinstance(given, str) and given in frame.columns:
        return column_named(given)
    if isinstance(given, str):
        found: Column = functions().expr(given)
        return found
    raise DataError("a column's name, a Column or SQL text is expected", got=repr(given))


def _default(asked: Position, frame: DataFrame) -> Column:
    """What stands where there is no such row: a text is a column or SQL, a number or a date is itself."""
    if isinstance(asked.default, bool | int | float | Decimal | date):
        constant: Column = functions().lit(asked.default)
        return constant
    return _value(asked.default, frame)


def _row_number(steps: Steps, _asked: Position) -> Callable[[], Column]:
    number = steps.number()
    return lambda: number.cast("int")


def _rank(steps: Steps, _asked: Position) -> Callable[[], Column]:
    before = steps.before()
    return lambda: (before + 1).cast("int")


def _dense_rank(steps: Steps, _asked: Position) -> Callable[[], Column]:
    """The first row of each group of peers is the one whose number is its rank."""
    begins: Any = (steps.number() == steps.before() + 1).cast("int")
    groups = steps._helper(steps.second, ("groups",), lambda: sum(begins).over(Frame.range(None, 0)))
    return lambda: groups.cast("int")


def _percent_rank(steps: Steps, _asked: Position) -> Callable[[], Column]:
    before, rows = steps.before(), steps.rows()
    return lambda: functions().when(rows > 1, before / (rows - 1)).otherwise(0.0)


def _cume_dist(steps: Steps, _asked: Position) -> Callable[[], Column]:
    peers, rows = steps.up_to_peers(), steps.rows()
    return lambda: peers / rows


def _ntile(steps: Steps, asked: Position) -> Callable[[], Column]:
    number, rows = steps.number(), steps.rows()

    def make() -> Column:
        f = functions()
        size, larger = f.floor(rows / asked.number), rows % asked.number
        edge = larger * (size + 1)  # the last row of the buckets that have one row more
        behind = larger + f.floor((number - edge - 1) / f.when(size > 0, size)) + 1
        column: Column = f.when(number <= edge, f.floor((number - 1) / (size + 1)) + 1).otherwise(behind)
        return column.cast("int")

    return make


def _shift(steps: Steps, asked: Position) -> Callable[[], Column]:
    rows = -asked.number if asked.name == "lag" else asked.number
    frame = Frame.rows(rows, rows)
    found = steps.row_of(_value(asked.attribute, steps.query.df), frame, 1)
    if asked.default is None:
        return lambda: found
    inside, default = steps.counted(frame), _default(asked, steps.query.df)
    return lambda: functions().when(inside == 0, default).otherwise(found)


def _first_value(steps: Steps, asked: Position) -> Callable[[], Column]:
    return _nth_value(steps, replace(asked, number=1))


def _nth_value(steps: Steps, asked: Position) -> Callable[[], Column]:
    frame, value = _frame(steps, asked), _value(asked.attribute, steps.query.df)
    if frame.start is None and frame.exclusion == NO_OTHERS:
        return _nth_of_all(steps, value, frame, asked.number)
    found = steps.row_of(value, _without_end(frame, asked.number), asked.number)
    return lambda: found


def _last_value(steps: Steps, asked: Position) -> Callable[[], Column]:
    frame, value = _frame(steps, asked), _value(asked.attribute, steps.query.df)
    if frame.end is None and frame.exclusion == NO_OTHERS:
        inside, whole = steps.counted(frame), steps.absolute(value, steps.rows, "last")
        return lambda: functions().when(inside > 0, whole)
    found = steps.row_of(value, _without_start(frame), -1)
    return lambda: found


def _without_end(frame: Frame[Any], number: int) -> Frame[Any]:
    """A frame with the same first rows that is bounded, if it can be told: then a task needs no more than these."""
    start = _offset(frame.start)
    if frame.end is not None or frame.exclusion != NO_OTHERS or start is None:
        return frame
    if frame.unit == "rows":  # also where it is cut off at the partition's first row
        return replace(frame, end=(start if start > 0 else 0) + number - 1)
    return replace(frame, end=0) if number == 1 and start <= 0 else frame


def _without_start(frame: Frame[Any]) -> Frame[Any]:
    """A frame with the same last row that is bounded, if it can be told."""
    end = _offset(frame.end)
    if frame.start is not None or frame.exclusion != NO_OTHERS or end is None:
        return frame
    if frame.unit == "rows":
        return replace(frame, start=end if end < 0 else 0)
    return replace(frame, start=0) if end >= 0 else frame


def _nth_of_all(steps: Steps, value: Column, frame: Frame[Any], number: int) -> Callable[[], Column]:
    """The partition's n-th row, where the frame has so many."""
    inside, found = steps.counted(frame), steps.absolute(value, lambda: functions().lit(number), number)
    return lambda: functions().when(inside >= number, found)


def _frame(steps: Steps, asked: Position) -> Frame[Any]:
    return asked.frame or steps.query.default_frame


def _offset(bound: Any) -> int | None:
    """A bound that is one whole number for all rows."""
    amount = bound.amount if isinstance(bound, Offset) else bound
    if isinstance(amount, bool) or not isinstance(amount, int):
        return None
    return -amount if isinstance(bound, Offset) and bound.before else amount


_MAKE: Mapping[str, Callable[[Steps, Position], Callable[[], Column]]] = {
    "row_number": _row_number,
    "rank": _rank,
    "dense_rank": _dense_rank,
    "percent_rank": _percent_rank,
    "cume_dist": _cume_dist,
    "ntile": _ntile,
    "lag": _shift,
    "lead": _shift,
    "first_value": _first_value,
    "last_value": _last_value,
    "nth_value": _nth_value,
}
