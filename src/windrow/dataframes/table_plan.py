"""What is to be done with a DataFrame's rows, and what comes out of choosing how."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from windrow.dataframes.sessions import arrow_type, extend_schema
from windrow.dataframes.spec import FrameTask, TableAggregate
from windrow.errors import Error
from windrow.execution.spark import tell_failure

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from windrow.kernels.choose import Choice

GATHER_ROWS = 1 << 16
"""Rows that are handed on at a time."""
HALO_BYTES = 16 * 2**20
"""Neighbours' rows of all tasks together that may travel with the plan."""

FAILURE = "__windrow_failure"
"""The column that hands on what a task refuses."""

TaskFunction = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

_TYPE_BYTES = {"boolean": 1, "tinyint": 1, "smallint": 2, "int": 4, "float": 4, "date": 4, "string": 40, "binary": 40}
"""Of a value in a row; those of no fixed length are guessed, and all others are taken to have eight."""


@dataclass(frozen=True, eq=False)
class TablePlan:
    """A DataFrame with all columns that frames need, what is to be done with it, and how."""

    rows: DataFrame
    task: FrameTask
    result: Any  # the schema of the result
    kinds: Mapping[str, Any]  # Spark's types of the columns of ``rows``
    tasks: int | None = None
    shuffle: str = "auto"


@dataclass(frozen=True, eq=False)
class Route:
    """How frames of a DataFrame are worked out."""

    rows: int
    tasks: int
    neighbours: int  # rows that tasks look at which are other tasks' own
    largest: int  # rows that one task looks at
    whole: bool  # whether a task holds all of these until it has seen them
    result: DataFrame
    choice: Choice[Any] | None = None


def row_bytes(schema: Any) -> int:
    """About how many bytes a row has."""
    return sum(_TYPE_BYTES.get(field.dataType.simpleString(), 8) for field in schema.fields)


def map_tasks(plan: TablePlan, rows: DataFrame, function: TaskFunction) -> DataFrame:
    """The result that tasks make of the rows they were sent.

    What values themselves may make impossible is refused by Spark in windrow's words, and not in a worker's trace: a
    task hands the error on in a column of its own, which costs a little, and so only where there may be one.
    """
    if not any(_can_fail(item) for item in plan.task.aggregates):
        return rows.mapInArrow(function, plan.result)
    schema = extend_schema(plan.result, {FAILURE: pa.string()})
    kinds = pa.schema([(field.name, arrow_type(field.dataType)) for field in plan.result.fields])
    made = rows.mapInArrow(partial(_hand_on_failure, function, kinds), schema)
    return made.where(f"if({FAILURE} is null, true, raise_error({FAILURE}))").drop(FAILURE)


def _can_fail(item: TableAggregate) -> bool:
    """Whether values that are right by themselves may be wrong together: whole numbers whose sum is too large."""
    return item.aggregate.user is not None or (item.aggregate.definition.sums and pa.types.is_integer(item.result))


def _hand_on_failure(
    function: TaskFunction, kinds: pa.Schema, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    came: dict[str, pa.Array] = {}

    def remember(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.num_rows and not came:
                came.update(zip(batch.schema.names, batch.slice(0, 1).columns, strict=True))
            yield batch

    try:
        for batch in function(remember(batches)):
            yield batch.append_column(FAILURE, pa.nulls(batch.num_rows, pa.string()))
    except Error as error:
        # Columns that went through may have none but present values, and Spark looks at them before it raises this.
        columns = [came.get(field.name, pa.nulls(1, field.type)) for field in kinds]
        yield pa.record_batch([*columns, pa.array([tell_failure(error)])], names=[*kinds.names, FAILURE])
