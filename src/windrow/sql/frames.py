"""The windows of one sort as aggregates of ``wr.frames``."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from windrow.aggregates.aggregate import FramedAggregate
from windrow.aggregates.positions import Position
from windrow.dataframes.frames import frames
from windrow.errors import DataError, Error, ExpressionError, SchemaError, UnknownNameError
from windrow.model.frame import Frame
from windrow.sql.reading import Reading
from windrow.sql.splits import OWN, Column, Sort

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from windrow.dataframes.frames import TableFrames

_FLOATS = ("float", "double")


class SortedWindows:
    """What ``wr.frames`` is asked for one sort; mistakes it finds are shown at the window they are in."""

    def __init__(self, rows: DataFrame, sort: Sort, reading: Reading, named: Callable[[str], str]) -> None:
        self.sort = sort
        self.reading = reading
        self.named = named
        self._frames: dict[str, Frame[Any]] = {}
        self.rows = _with_pairs(rows, sort)
        self.builder: TableFrames = frames(self.rows).partition_by(*sort.partition).order_by(*sort.order)
        self.aggregates: dict[str, Any] = {column.result: self._build_aggregate(column) for column in sort.columns}

    def result(self) -> DataFrame:
        """The rows with the results."""
        result: DataFrame = self._ask(lambda: self.builder.agg(**self.aggregates))
        return result

    def explain(self) -> str:
        """What is computed, and how."""
        sorts = ", ".join(map(str, self.sort.order))
        by = f"partition by {', '.join(self.sort.partition)} " if self.sort.partition else ""
        lines = [f"one sort: {by}{f'order by {sorts}' if sorts else 'in any order'}"]
        lines += [f"  {column.result}" for column in self.sort.columns]
        told = self._ask(lambda: self.builder.explain(**self.aggregates))
        return self.named("\n".join([*lines, *told.splitlines()[1:]]))

    def _refuse_other_types(self, column: Column) -> None:
        """Leave to Spark what it gives in other types: averages of decimals are decimals there."""
        found = column.call.aggregate.definition
        kinds = dict(self.rows.dtypes)
        decimal = any(kinds[name].startswith("decimal") for name in column.arguments)
        if column.call.optional and decimal and not (found.sums or found.picks or not found.least):
            raise self.reading.error(f"Spark gives {found.name} of decimals as a decimal", column.call.node)

    def _ask(self, ask: Callable[[], Any]) -> Any:
        try:
            return ask()
        except (DataError, ExpressionError, SchemaError, UnknownNameError) as error:
            raise self._point_out(error) from None

    def _point_out(self, error: Error) -> Error:
        told = f"{error.what} {error.got}"
        blamed = [column for column in self.sort.columns if re.search(rf"\b{column.result}\b", told)]
        blamed += [column for column in self.sort.columns if error.what.startswith(column.call.aggregate.name)]
        window = (blamed or self.sort.columns)[0].call.node
        got = None if error.got is None else self.named(error.got)
        return self.reading.error(self.named(error.what), window, got=got, hint=error.hint)

    def _build_aggregate(self, column: Column) -> FramedAggregate | Position:
        aggregate = column.call.aggregate
        position = column.call.position
        if position is not None:
            value, default = (*column.arguments, None, None)[:2]
            frame = None if position.is_frameless else column.frame
            return replace(position, attribute=value, default=default, frame=frame)
        self._refuse_other_types(column)
        if column.arguments:
            aggregate = aggregate.of(column.value, *column.arguments[1:2])
        if column.fraction is not None:
            aggregate = replace(aggregate, parameter=column.fraction)
        # Equal frames are one, whose bounds are looked for once.
        frame = self._frames.setdefault(str(column.frame), column.frame)
        return FramedAggregate(aggregate, frame, column.condition)


def _with_pairs(rows: DataFrame, sort: Sort) -> DataFrame:
    """Columns that are counted together as one text each; NULL where one of them is NULL, as in SQL."""
    kinds = dict(rows.dtypes)
    for column in sort.columns:
        if not column.arguments or column.call.position is not None or column.value in rows.columns:
            continue
        # -0.0 and 0.0 are one value, but two texts.
        parts = [f"{name} + 0" if kinds[name] in _FLOATS else name for name in column.arguments]
        fields = ", ".join(f"{part} as {OWN}p{number}" for number, part in enumerate(parts))
        whole = " and ".join(f"{name} is not null" for name in column.arguments)
        rows = rows.selectExpr("*", f"if({whole}, to_json(struct({fields})), null) as {column.value}")
    return rows
