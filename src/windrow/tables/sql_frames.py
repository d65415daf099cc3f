"""The windows of one sort as aggregates of ``wr.frames``."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from windrow.aggregates.aggregate import FramedAggregate
from windrow.errors import DataError, Error, ExpressionError, SchemaError, UnknownNameError
from windrow.language.sql_frames import BoundText
from windrow.language.sql_reading import Reading
from windrow.language.sql_splits import OWN, Column, Sort
from windrow.tables.frames import Frame, following, frames, preceding

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from windrow.tables.frames import TableFrames

_FLOATS = ("float", "double")


class SortedWindows:
    """What ``wr.frames`` is asked for one sort; mistakes it finds are shown at the window they are in."""

    def __init__(self, rows: DataFrame, sort: Sort, reading: Reading, named: Callable[[str], str]) -> None:
        self.sort = sort
        self.reading = reading
        self.named = named
        self._frames: dict[tuple[Any, ...], Frame] = {}
        self.rows = _with_pairs(rows, sort)
        ordered = [_direction(*order) for order in sort.order]
        self.builder: TableFrames = frames(self.rows).partition_by(*sort.partition).order_by(*ordered)
        self.aggregates = {column.result: self._aggregate(column) for column in sort.columns}

    def result(self) -> DataFrame:
        """The rows with the results."""
        result: DataFrame = self._asked(lambda: self.builder.agg(**self.aggregates))
        return result

    def explained(self) -> str:
        """What is computed, and how."""
        sorts = ", ".join(f"{name}{' desc' if descending else ''}" for name, descending, _ in self.sort.order)
        by = f"partition by {', '.join(self.sort.partition)} " if self.sort.partition else ""
        lines = [f"one sort: {by}{f'order by {sorts}' if sorts else 'in any order'}"]
        lines += [f"  {column.result}" for column in self.sort.columns]
        told = self._asked(lambda: self.builder.explain(**self.aggregates))
        return self.named("\n".join([*lines, *told.splitlines()[1:]]))

    def _asked(self, ask: Callable[[], Any]) -> Any:
        try:
            return ask()
        except (DataError, ExpressionError, SchemaError, UnknownNameError) as error:
            raise self._shown(error) from None

    def _shown(self, error: Error) -> Error:
        told = f"{error.what} {error.got}"
        blamed = [column for column in self.sort.columns if re.search(rf"\b{column.result}\b", told)]
        blamed += [column for column in self.sort.columns if error.what.startswith(column.call.aggregate.name)]
        window = (blamed or self.sort.columns)[0].call.node
        got = None if error.got is None else self.named(error.got)
        return self.reading.error(self.named(error.what), window, got=got, hint=error.hint)

    def _aggregate(self, column: Column) -> FramedAggregate:
        aggregate = column.call.aggregate
        if column.arguments:
            aggregate = aggregate.of(column.value)
        return FramedAggregate(aggregate, self._frame(column), column.condition)

    def _frame(self, column: Column) -> Frame:
        """Equal frames are one, whose bounds are looked for once."""
        frame = column.call.frame
        start, end = (bound if isinstance(bound, str) else str(bound) for bound in column.bounds)
        key = (frame.unit, start, end, frame.exclude)
        if key not in self._frames:
            first, last = _bound(column.bounds[0], frame.start), _bound(column.bounds[1], frame.end)
            self._frames[key] = Frame(frame.unit, first, last, frame.exclude or "no others")
        return self._frames[key]


def _bound(given: BoundText | str, written: BoundText) -> Any:
    if written.amount is None:
        return None
    if written.is_current_row:
        return 0
    amount = given if isinstance(given, str) else given.amount
    return preceding(amount) if written.side == "preceding" else following(amount)


def _direction(name: str, descending: bool, nulls_first: bool) -> str:
    return f"{name} {'desc' if descending else 'asc'} nulls {'first' if nulls_first else 'last'}"


def _with_pairs(rows: DataFrame, sort: Sort) -> DataFrame:
    """Columns that are counted together as one text each; NULL where one of them is NULL, as in SQL."""
    kinds = dict(rows.dtypes)
    for column in sort.columns:
        if len(column.arguments) < 2 or column.value in rows.columns:
            continue
        # -0.0 and 0.0 are one value, but two texts.
        parts = [f"{name} + 0" if kinds[name] in _FLOATS else name for name in column.arguments]
        fields = ", ".join(f"{part} as {OWN}p{number}" for number, part in enumerate(parts))
        whole = " and ".join(f"{name} is not null" for name in column.arguments)
        rows = rows.selectExpr("*", f"if({whole}, to_json(struct({fields})), null) as {column.value}")
    return rows
