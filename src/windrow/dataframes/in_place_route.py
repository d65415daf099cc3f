"""Rows that are in order already stay where they are; tasks get the rows of their neighbours with the plan."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from windrow.dataframes.blocks import FrameStream, gather_batches
from windrow.dataframes.order import Halo, changed_input
from windrow.dataframes.sessions import functions
from windrow.dataframes.slices import Division, Piece, Share
from windrow.dataframes.spec import PLACE, FrameTask
from windrow.dataframes.table_plan import GATHER_ROWS, Route, TablePlan, map_tasks
from windrow.dataframes.unbounded_states import Carried
from windrow.dataframes.unbounded_summaries import summarise_unseen

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def stays_put(physical: str) -> bool:
    """Whether two readings of a DataFrame with such a plan find the same rows in the same Spark partitions.

    After an exchange Spark chooses partitions as it runs, by the size of what it reads; cached rows stay.
    """
    return "Exchange" not in re.sub(r"InMemoryRelation.*", "", physical, flags=re.DOTALL)


def place_rows(plan: TablePlan) -> DataFrame:
    """The rows with the number of their Spark partition."""
    return plan.rows.withColumn(PLACE, functions().spark_partition_id())


def carries_on(task: FrameTask) -> bool:
    """Whether what unbounded frames need of other Spark partitions is a few numbers, worked out by Spark."""
    return task.carries_numbers and not task.partition


def route_in_place(plan: TablePlan, held: dict[int, Halo]) -> Route:
    """No row is moved; ``held`` are the neighbours' rows of each Spark partition."""
    carried = _summarise_others(plan, held) if plan.task.is_unbounded else {}
    result = map_tasks(plan, place_rows(plan), partial(run_in_place, plan.task, held, carried))
    return Route(
        rows=sum(halo.rows for halo in held.values()),
        tasks=len(held),
        neighbours=sum(halo.neighbours for halo in held.values()),
        largest=max((halo.rows + halo.neighbours for halo in held.values()), default=0),
        whole=plan.task.holds_all,
        result=result,
    )


def _summarise_others(plan: TablePlan, held: dict[int, Halo]) -> Carried:
    """What each Spark partition must know of all others, which are the pieces of the one partition there is."""
    pieces = tuple(Piece(place, halo.rows) for place, halo in sorted(held.items()))
    home = {piece.number: piece.number for piece in pieces}
    shares = tuple(Share(piece.number, piece.number, piece.number + 1, piece.rows) for piece in pieces)
    division = Division(shares, home, home, home, pieces, {0: pieces})
    return summarise_unseen(plan.task, place_rows(plan), division).outside


def run_in_place(
    task: FrameTask, held: dict[int, Halo], carried: Carried, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The function of a task whose rows are in order already."""
    stream, halo, rows = None, None, 0
    for table in gather_batches(batches, GATHER_ROWS):
        if stream is None:
            place = table.column(PLACE)[0].as_py()
            halo = held.get(place)
            stream = FrameStream(task, None if halo is None else halo.before, carried.get(place, ()))
        rows += table.num_rows
        yield from stream.add(table)
    if stream is not None:
        if halo is None or halo.rows != rows:
            raise changed_input(0 if halo is None else halo.rows, rows)
        yield from stream.finish(halo.after)
