"""What is to be done with a DataFrame's rows, and what comes out of choosing how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from windrow.dataframes.spec import FrameTask

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from windrow.kernels.choose import Choice

GATHER_ROWS = 1 << 16
"""Rows that are handed on at a time."""
HALO_BYTES = 16 * 2**20
"""Neighbours' rows of all tasks together that may travel with the plan."""

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
