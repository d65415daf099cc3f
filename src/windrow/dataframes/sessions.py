"""What work on a user's DataFrames needs of Spark; plain and remote sessions (Spark Connect) are alike here."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from windrow.errors import Error, ExpressionError, MachineError, UnknownNameError, nearest
from windrow.execution.spark import explain_failure

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, StructType


_PHYSICAL = "== Physical Plan =="
_SIZE = re.compile(r"Statistics\(sizeInBytes=([0-9.E+]+) ([KMGTPE]?)i?B")
_UNITS = ("", "K", "M", "G", "T", "P", "E")


def functions() -> Any:
    """Spark's column functions."""
    from pyspark.sql import functions

    return functions


def is_column(given: object) -> bool:
    try:
        from pyspark.sql import Column
    except ImportError:
        return False
    return isinstance(given, Column)


def is_dataframe(given: object) -> bool:
    try:
        from pyspark.sql import DataFrame
    except ImportError:
        raise MachineError("PySpark is not installed", hint="pip install 'pyspark==4.3.*'") from None
    return isinstance(given, DataFrame)


def quote_name(name: str) -> str:
    """A column's name as Spark's expressions take it, whatever is in it."""
    return "`" + name.replace("`", "``") + "`"


def column_named(name: str) -> Column:
    """The column that is called so exactly."""
    column: Column = functions().col(quote_name(name))
    return column


def collect_rows(frame: DataFrame, label: str) -> list[Any]:
    """A small DataFrame's rows; what fails there is told as windrow's own error."""
    try:
        rows: list[Any] = frame.collect()
    except Exception as failure:
        raise explain_failure(label, failure) from failure
    return rows


def collect_table(frame: DataFrame, label: str) -> pa.Table:
    """The same as an Arrow table, in which points in time are what they are."""
    try:
        return frame.toArrow()
    except Exception as failure:
        raise explain_failure(label, failure) from failure


def check_schema(frame: DataFrame, columns: list[Column], what: str) -> StructType:
    """The schema of columns of a frame; those that Spark cannot work out are refused here, before anything runs."""
    from pyspark.errors import PySparkException

    try:
        return frame.select(*columns).schema
    except PySparkException as failure:
        raise _refusal(frame, what, failure) from failure


def _refusal(frame: DataFrame, what: str, failure: Any) -> Error:
    condition = str(failure.getCondition() or "")
    if condition.startswith("UNRESOLVED_COLUMN"):
        name = str((failure.getMessageParameters() or {}).get("objectName", "")).strip("`")
        return UnknownNameError(f"no such column in {what}", got=repr(name), hint=nearest(name, frame.columns))
    lines = [line.strip() for line in str(failure).splitlines() if line.strip()]
    return ExpressionError(f"Spark cannot work out {what}", got=lines[0][:300] if lines else type(failure).__name__)


def extend_schema(schema: StructType, added: Mapping[str, pa.DataType]) -> StructType:
    """A schema with more columns, given by their Arrow types."""
    from pyspark.sql.pandas.types import from_arrow_type
    from pyspark.sql.types import StructField, StructType

    fields = [StructField(name, from_arrow_type(kind), True) for name, kind in added.items()]
    return StructType([*schema.fields, *fields])


def arrow_type(data_type: DataType) -> pa.DataType:
    """The Arrow type of a column."""
    from pyspark.sql.pandas.types import to_arrow_type

    return to_arrow_type(data_type, timezone="UTC")


class SparkPlan(NamedTuple):
    """Spark's physical plan as text, and how many bytes it expects, if it says so."""

    physical: str
    size: int | None


def spark_plan(frame: DataFrame) -> SparkPlan:
    """What Spark will do, and its estimate of the result."""
    # The public way to a plan, for plain and remote sessions alike, is to have it printed.
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        frame.explain(mode="cost")
    logical, _, physical = printed.getvalue().partition(_PHYSICAL)
    found = _SIZE.search(logical)
    return SparkPlan(physical, None if found is None else int(float(found[1]) * 1024 ** _UNITS.index(found[2])))


def physical_plan(frame: DataFrame) -> str:
    """Spark's plan as text."""
    return spark_plan(frame).physical
