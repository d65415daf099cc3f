"""Fractions of quantiles and percentiles that stand in columns: each row's own, looked at before anything runs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from windrow.dataframes.keys import join_chunks
from windrow.dataframes.sessions import collect_rows, column_named
from windrow.dataframes.spec import TableAggregate
from windrow.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from pyspark.sql import DataFrame

SHOWN = 4
"""Columns that tell a row from others in an error, where rows are not ordered."""


def check_fractions(rows: DataFrame, aggregates: Sequence[TableAggregate], keys: Sequence[str]) -> None:
    """Refuse fractions that are missing or out of range, naming one row that has such: one look at all rows."""
    varying = [item for item in aggregates if item.fraction is not None]
    if not varying:
        return
    wrong = reduce(or_, (_is_wrong(item) for item in varying))
    named = list(dict.fromkeys(keys)) or rows.columns[:SHOWN]
    columns = [column_named(name) for name in (*named, *(str(item.fraction) for item in varying))]
    for row in collect_rows(rows.where(wrong).select(*columns).limit(1), "looking at fractions"):
        for item, value in zip(varying, row[len(named) :], strict=True):
            limit = _limit(item)
            if value is None or not 0 <= value <= limit:
                told = "NULL" if value is None else value
                place = ", ".join(f"{name} = {key}" for name, key in zip(named, row, strict=False))
                what = f"{item.output}: {item.aggregate.definition.parameter} must be between 0 and {limit}"
                raise DataError(what, got=f"{told} in the row with {place}")


def _is_wrong(item: TableAggregate) -> Any:
    # NaN is larger than everything to Spark.
    fraction = column_named(str(item.fraction))
    return fraction.isNull() | ~fraction.between(0, _limit(item))


def _limit(item: TableAggregate) -> int:
    rule = item.aggregate.definition.ranks
    assert rule is not None
    return rule.limit


def fractions_of(table: pa.Table, name: str, begin: int, end: int) -> npt.NDArray[np.float64]:
    """The fractions of some rows."""
    found: npt.NDArray[np.float64] = join_chunks(table.column(name)).slice(begin, end - begin).to_numpy()
    return found
