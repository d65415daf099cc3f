"""Rows in any order by the exact route: slices along the order are counted, and Spark sorts within tasks.

Each row goes to its own task and to those whose frames reach it; nothing about the rows has to be guessed.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windrow.dataframes.blocks import FrameStream, gather_batches
from windrow.dataframes.cuts import TIE, Cuts, choose_cuts, row_hash
from windrow.dataframes.keys import distances, join_chunks
from windrow.dataframes.order import PartitionLook
from windrow.dataframes.sessions import collect_table, column_named, functions
from windrow.dataframes.slices import Division, Piece, divide
from windrow.dataframes.spec import CARRIED, HOME, PLACE, TARGET, FrameTask
from windrow.dataframes.table_plan import GATHER_ROWS, Route, TablePlan, map_tasks
from windrow.dataframes.unbounded_states import Carried, Received
from windrow.dataframes.unbounded_summaries import summarise_unseen

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

TASK_ROWS = 500_000
"""Rows that make a task when rows are sorted."""
MOST_TASKS = 1000
"""Tasks that are made at most unless more are asked for: each is a branch of the expression that Spark evaluates."""
SLICES = 256
SLICES_PER_TASK = 8


def route_exact(plan: TablePlan, looks: list[PartitionLook]) -> Route:
    """Cut into slices, count them, and send each row to all tasks whose frames may reach its slice."""
    rows = sum(one.rows for one in looks)
    wanted = min(plan.tasks or min(MOST_TASKS, -(-rows // TASK_ROWS)), rows)
    slices = wanted * max(1, min(SLICES_PER_TASK, SLICES // wanted)) if wanted > 1 else 1
    cuts = choose_cuts(plan.task, looks, slices)
    keyed = _add_places(plan, cuts)
    pieces = _count_pieces(plan, keyed)
    division = divide(plan.task, cuts, pieces, wanted)
    carriage = summarise_unseen(plan.task, keyed, division)
    sent = _spread_rows(plan, keyed, division, carriage.rows)
    result = map_tasks(plan, sent, partial(run_sorted, plan.task, carriage.outside))
    sizes = [0] * len(division.shares)
    for piece in division.pieces:
        for number in range(division.lowest[piece.number], division.highest[piece.number] + 1):
            sizes[number] += piece.rows
    return Route(
        rows=rows,
        tasks=len(division.shares),
        neighbours=division.copies,
        largest=max(sizes, default=0),
        whole=plan.task.holds_all,
        result=result,
    )


def _add_places(plan: TablePlan, cuts: Cuts) -> DataFrame:
    """The rows with their hash and their place among the slices."""
    tied = plan.rows.withColumn(TIE, row_hash(plan.kinds))
    return tied.withColumn(PLACE, cuts.piece(plan.kinds))


def _count_pieces(plan: TablePlan, keyed: DataFrame) -> list[Piece]:
    """How many rows each piece of a slice has, and between which keys."""
    f, task = functions(), plan.task
    units = {frame.unit for frame in task.envelopes if not (frame.unit == "range" and _only_peers(frame))}
    wanted: list[Column] = [f.count("*")]
    if "range" in units:
        key = column_named(task.order[0].column)
        unordinary = key.isNull() | (
            f.isnan(key) if plan.kinds[task.order[0].column].typeName() in _FLOATS else f.lit(False)
        )
        plain = f.when(~unordinary, key)
        wanted += [f.min(plain), f.max(plain), f.count(f.when(unordinary, 1))]
    if "groups" in units:
        wanted.append(
            f.count_distinct(f.struct(*(column_named(key.column) for key in task.order))) if task.order else f.lit(1)
        )
    counted = keyed.groupBy(PLACE).agg(*(column.alias(f"c{k}") for k, column in enumerate(wanted)))
    found = collect_table(counted, "counting rows along the order")
    nothing: list[Any] = [None] * found.num_rows
    least, most = _extremes(plan, found) if "range" in units else (nothing, nothing)
    rows = found.column(1).to_pylist()
    unordinary_rows = found.column(4).to_pylist() if "range" in units else [0] * found.num_rows
    peer_groups = found.column(len(wanted)).to_pylist() if "groups" in units else [0] * found.num_rows
    return [
        Piece(*values)
        for values in zip(found.column(0).to_pylist(), rows, least, most, unordinary_rows, peer_groups, strict=True)
    ]


_FLOATS = ("float", "double")


def _only_peers(frame: Any) -> bool:
    return not frame.start.offset and not frame.end.offset


def _extremes(plan: TablePlan, found: pa.Table) -> tuple[list[Any], list[Any]]:
    """The order keys at the two ends of each piece, as numbers that rise along the order."""
    key = plan.task.order[0]
    ends = []
    for side in (2, 3):
        values, plain = distances(join_chunks(found.column(side)), key)
        ends.append([value if plain is None or plain[k] else None for k, value in enumerate(values.tolist())])
    return (ends[1], ends[0]) if key.descending else (ends[0], ends[1])


def _spread_rows(plan: TablePlan, keyed: DataFrame, division: Division, carried_rows: DataFrame | None) -> DataFrame:
    """Each row at its own task and at those whose frames reach it, in order there, after rows that carry values."""
    f, task = functions(), plan.task
    most = max(division.home, default=0)
    own, lowest, highest = (
        f.lit([int(numbers.get(piece, 0)) for piece in range(most + 1)])[column_named(PLACE)]
        for numbers in (division.home, division.lowest, division.highest)
    )
    if division.copies:
        spread = keyed.withColumn(TARGET, f.explode(f.sequence(lowest, highest)))
        home = column_named(TARGET) == own
        kept = {*task.looked_at, TIE, TARGET}
        columns = [
            column_named(name) if name in kept else f.when(home, column_named(name)).alias(name)
            for name in spread.columns
        ]
        spread = spread.select(*columns, home.alias(HOME))
    else:
        spread = keyed.withColumn(TARGET, own).withColumn(HOME, f.lit(True))
    spread = spread.drop(PLACE)
    order = [_sort_expression(key) for key in task.keys]
    if carried_rows is not None:
        spread = spread.unionByName(carried_rows, allowMissingColumns=True)
        order.insert(0, column_named(CARRIED).asc_nulls_last())
    sent = spread.repartitionById(max(1, len(division.shares)), column_named(TARGET))
    return sent.sortWithinPartitions(*order, column_named(TIE)).drop(TIE)


def _sort_expression(key: Any) -> Column:
    column = column_named(key.column)
    ways = {
        (False, True): column.asc_nulls_first,
        (False, False): column.asc_nulls_last,
        (True, True): column.desc_nulls_first,
        (True, False): column.desc_nulls_last,
    }
    return ways[key.descending, key.nulls_first]()


def run_sorted(task: FrameTask, outside: Carried, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The function of a task that was sent its rows, its neighbours' among them."""
    stream, received = FrameStream(task), Received(outside)
    seen = False
    for came in gather_batches(batches, GATHER_ROWS):
        table = received.rows_of(task, came)
        if not table.num_rows:
            continue
        if not stream.outside:
            stream.outside = received.outside(table.column(TARGET)[0].as_py())
        home = np.flatnonzero(join_chunks(table.column(HOME)).to_numpy(zero_copy_only=False))
        first, last = (int(home[0]), int(home[-1]) + 1) if len(home) else (table.num_rows, table.num_rows)
        if not seen and first:
            stream.skip(table.slice(0, first))
        elif first:
            yield from stream.look(table.slice(0, first))
        if last > first:
            seen = True
            yield from stream.add(table.slice(first, last - first))
        if last < table.num_rows:
            yield from stream.look(table.slice(last))
    yield from stream.finish()
