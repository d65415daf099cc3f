"""Tables as users have them: Arrow, pandas, polars, structured arrays, dicts and lists of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.errors import DataError


def as_table(values: Any) -> pa.Table:
    """Arrow, pandas, polars, structured arrays, dicts and lists of rows as an Arrow table."""
    table = _tabled(values.collect() if _is_lazy(values) else values)
    twice = sorted({name for name in table.column_names if table.column_names.count(name) > 1})
    if twice:
        raise DataError("a column of the cells occurs twice", got=", ".join(twice), hint="Leave one of them out")
    for index, field in enumerate(table.schema):
        # Polars hands over views, which Arrow itself can neither take nor sort.
        if field.type in _VIEWS:
            table = table.set_column(index, field.name, table.column(index).cast(_VIEWS[field.type]))
    return table


def _is_lazy(values: Any) -> bool:
    return type(values).__module__.startswith("polars") and type(values).__name__ == "LazyFrame"


_VIEWS = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}


_TABLES = (
    "Give Arrow, pandas, polars, a structured array, a dict of columns, a list of dicts, "
    "a Spark DataFrame or a file name"
)


def _tabled(values: Any) -> pa.Table:
    if isinstance(values, pa.Table):
        return values
    try:
        if isinstance(values, pa.RecordBatch):
            return pa.Table.from_batches([values])
        if isinstance(values, Mapping):
            return pa.table({name: _column(column) for name, column in values.items()})
        if type(values).__module__.split(".")[0] == "pandas":
            return _from_pandas(values)
        if isinstance(values, np.ndarray) and values.dtype.names:
            return pa.table({name: _column(_native(values[name])) for name in values.dtype.names})
        if type(values).__module__.startswith("astropy.table"):
            return _from_pandas(values.to_pandas())
        if hasattr(values, "__arrow_c_stream__"):
            return pa.table(values)
        if isinstance(values, Sequence) and not isinstance(values, (str, bytes)):
            return pa.Table.from_pylist(list(values))
    except (pa.ArrowException, TypeError, ValueError, OverflowError, AttributeError) as error:
        raise DataError("the cells cannot be read as a table", got=error, hint=_TABLES) from None
    raise DataError(
        "cells must be a table",
        got=type(values).__name__,
        hint=_TABLES,
    )


def _from_pandas(frame: Any) -> pa.Table:
    """A pandas table; levels of its index that have names are columns too."""
    named = [name for name in frame.index.names if name is not None and name not in frame.columns]
    return pa.Table.from_pandas(frame.reset_index(named) if named else frame, preserve_index=False)


def _native(values: Any) -> Any:
    """A field of a structured array, in this machine's order of bytes: those of FITS files are in the other."""
    return np.ascontiguousarray(values, values.dtype.newbyteorder("="))


def _column(values: Any) -> pa.Array:
    if isinstance(values, np.ndarray) and values.dtype.kind == "T":
        return pa.array(values.tolist(), pa.string())
    return values if isinstance(values, (pa.Array, pa.ChunkedArray)) else pa.array(values)
