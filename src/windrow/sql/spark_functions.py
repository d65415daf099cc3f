"""Table functions of Spark SQL that take and give Arrow batches, and say at analysis which columns they give."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql.types import StructField, StructType
from pyspark.sql.udtf import AnalyzeResult, UserDefinedTableFunction
from pyspark.util import PythonEvalType

from windrow.execution.session import is_remote


@dataclass
class Analysed(AnalyzeResult):
    """The columns that a call gives, and what its tasks need to know."""

    task: Any = None


def answer_analysis(schema: StructType, task: Any) -> AnalyzeResult:
    """The answer of an ``analyze``; all columns may hold NULL, since workers' batches do and Spark wants them alike."""
    fields = [StructField(field.name, field.dataType, True, field.metadata) for field in schema.fields]
    return Analysed(schema=StructType(fields), task=task)


def register_table_function(session: SparkSession, name: str, handler: type) -> None:
    """Make a table function known to a session.

    PySpark's ``arrow_udtf`` refuses handlers that have an ``analyze``, but Spark itself runs them: its planner asks
    ``analyze`` and its workers pass the answer to the handler, whatever the batches are.
    """
    # PySpark has one class for plain sessions and one for remote ones, which no session there is without.
    made: Any = UserDefinedTableFunction
    if is_remote(session):
        made = sys.modules["pyspark.sql.connect.udtf"].UserDefinedTableFunction
    kind = PythonEvalType.SQL_ARROW_UDTF
    session.udtf.register(name, made(handler, returnType=None, name=name, evalType=kind, deterministic=True))


def is_one_of_several_tasks() -> bool:
    """Whether a handler is made for a part of a table that was not divided by PARTITION BY.

    Spark tells handlers nothing of the sort, but with PARTITION BY it makes them in a wrapper of its own.
    """
    frame: Any = sys._getframe(1)
    for _ in range(6):
        if frame is None:
            break
        if "WithPartition" in frame.f_code.co_qualname:
            return False
        frame = frame.f_back
    context = TaskContext.get()
    return context is not None and context.partitionId() > 0
