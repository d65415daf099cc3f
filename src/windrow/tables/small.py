"""Small DataFrames: one job reads all rows, and frames are evaluated here rather than by Spark's workers.

Spark needs longer to start a job than these take, so that one job is better than a look at the order and a job that
follows from it. The result is a local table of Spark's.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from windrow.errors import Error
from windrow.tables.blocks import FrameStream
from windrow.tables.cuts import TIE, row_hash
from windrow.tables.dataframes import collected_table, functions
from windrow.tables.keys import flat, sorted_order
from windrow.tables.rows import SortedRows
from windrow.tables.spec import PLACE, FrameTask, SortKey

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from windrow.tables.routes import TablePlan

SMALL_BYTES = 4 * 2**20
"""What Spark estimates at most of a DataFrame that is read whole."""
SMALL_ROWS = 1 << 15
"""Rows that it then has at most: estimates may be far off."""

_SIZE = re.compile(r"Statistics\(sizeInBytes=(?P<amount>[\d.]+(?:E[+-]?\d+)?) (?P<unit>[KMGTPE]?)i?B")
_PLAIN = re.compile(r"(boolean|tinyint|smallint|int|bigint|float|double|string|binary|date|timestamp(_ntz)?)$|decimal")


def estimated_bytes(text: str) -> float:
    """The size of a DataFrame as Spark's plan states it, for which it was asked with costs; infinite if it does not."""
    found = _SIZE.search(text)
    if found is None:
        return float("inf")
    return float(found["amount"]) * 1024.0 ** " KMGTPE".index(found["unit"] or " ")


def small_rows(plan: TablePlan, text: str, keeps_order: bool) -> pa.Table | None:
    """All rows of a small DataFrame in order; None if there are none or too many.

    With ``keeps_order`` rows that are in order already stay as they are; others with equal keys go by their hash, as
    they do in large DataFrames.
    """
    if estimated_bytes(text) > SMALL_BYTES or not all(
        _PLAIN.match(kind.simpleString()) for kind in plan.kinds.values()
    ):
        return None
    position = functions().monotonically_increasing_id().alias(PLACE)
    few = plan.rows.select("*", row_hash(plan.kinds).alias(TIE), position).limit(SMALL_ROWS + 1)
    try:
        found = collected_table(few, "reading the rows").combine_chunks()
    except Error:  # which the other routes may never come upon, or else tell in their own words
        return None
    if not 0 < found.num_rows <= SMALL_ROWS:
        return None
    return _ordered(plan.task, found, keeps_order)


def _ordered(task: FrameTask, found: pa.Table, keeps_order: bool) -> pa.Table:
    positions = flat(found.column(PLACE)).to_numpy()
    if (positions[1:] < positions[:-1]).any():
        found = found.take(np.argsort(positions))
    if keeps_order and SortedRows(found, task.partition, task.order).in_order:
        return found
    return found.take(sorted_order(found, [*task.keys, SortKey(TIE)]))


def evaluated(plan: TablePlan, rows: pa.Table) -> DataFrame:
    """The result for all rows at once, as a local table of Spark's."""
    stream = FrameStream(plan.task)
    given = [*stream.add(rows), *stream.finish()]
    return plan.rows.sparkSession.createDataFrame(pa.Table.from_batches(given), plan.result)
