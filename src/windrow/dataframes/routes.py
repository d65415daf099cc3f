"""Frames on a DataFrame: one sort, one pass, any number of tasks.

Rows that are in order already stay where they are, and tasks get the few rows of their neighbours that frames reach by
way of the driver. All others are cut into slices along the order, and each row goes to its own task and to those whose
frames reach it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windrow.dataframes.blocks import BLOCK_ROWS, FrameStream, gather_batches
from windrow.dataframes.cuts import TIE, Cuts, choose_cuts, row_hash
from windrow.dataframes.keys import distances, join_chunks
from windrow.dataframes.order import Halo, PartitionLook, are_in_order, halos, look, open_looks
from windrow.dataframes.sessions import collect_rows, collect_table, column_named, functions, physical_plan
from windrow.dataframes.slices import Division, Piece, divide
from windrow.dataframes.spec import CARRIED, HOME, PLACE, TARGET, FrameTask, TableAggregate
from windrow.dataframes.unbounded_states import Carried, Received
from windrow.dataframes.unbounded_summaries import summarise_unseen
from windrow.errors import DataError
from windrow.kernels.choose import AUTO
from windrow.kernels.frames.strategies import CHAINS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

HALO_BYTES = 16 * 2**20
"""Neighbours' rows of all tasks together that may travel with the plan."""
TASK_ROWS = 500_000
"""Rows that make a task when rows are sorted."""
MOST_TASKS = 1000
"""Tasks that are made at most unless more are asked for: each is a branch of the expression that Spark evaluates."""
SLICES = 256
SLICES_PER_TASK = 8
GATHER_ROWS = 1 << 16


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

    kind: str  # in place or sorted
    rows: int
    tasks: int
    neighbours: int  # rows that tasks look at which are other tasks' own
    largest: int  # rows that one task looks at
    whole: bool  # whether a task holds all of these until it has seen them
    result: DataFrame


def plan_route(plan: TablePlan) -> Route:
    """Look at the keys, and choose; the result is worked out when it is read."""
    # What unbounded frames carry from task to task is worked out along slices.
    stays = plan.shuffle == "auto" and not plan.task.holds_all and _stays_put(plan.rows)
    placed = plan.rows.withColumn(PLACE, functions().spark_partition_id())
    wanted = plan.task.needed if stays else [PLACE, *(key.column for key in plan.task.keys)]
    seen = placed.select([column_named(name) for name in dict.fromkeys(wanted)])
    rows = collect_rows(
        seen.mapInArrow(partial(look, plan.task, stays), "seen binary"), "looking at the order of the rows"
    )
    looks = [one for one in open_looks(rows) if one.rows]
    if not looks:
        return _route_in_place(plan, placed, {})
    # Spark numbers all partitions of a small local table alike.
    stays = stays and len({one.place for one in looks}) == len(looks)
    if stays and are_in_order(plan.task, looks) and not any(one.too_long for one in looks):
        held = halos(plan.task, looks)
        if sum(halo.size for halo in held.values()) <= HALO_BYTES:
            return _route_in_place(plan, placed, held)
    return _route_sorted(plan, looks)


def _stays_put(rows: DataFrame) -> bool:
    """Whether two readings of a DataFrame find the same rows in the same Spark partitions.

    After an exchange Spark chooses partitions as it runs, by the size of what it reads; cached rows stay.
    """
    return "Exchange" not in re.sub(r"InMemoryRelation.*", "", physical_plan(rows), flags=re.DOTALL)


def _route_in_place(plan: TablePlan, placed: DataFrame, held: dict[int, Halo]) -> Route:
    result = placed.mapInArrow(partial(run_in_place, plan.task, held), plan.result)
    return Route(
        kind="in place",
        rows=sum(halo.rows for halo in held.values()),
        tasks=len(held),
        neighbours=sum(halo.neighbours for halo in held.values()),
        largest=max((halo.rows + halo.neighbours for halo in held.values()), default=0),
        whole=False,
        result=result,
    )


def run_in_place(task: FrameTask, held: dict[int, Halo], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The function of a task whose rows are in order already."""
    stream, halo, rows = None, None, 0
    for table in gather_batches(batches, GATHER_ROWS):
        if stream is None:
            halo = held.get(table.column(PLACE)[0].as_py())
            stream = FrameStream(task, None if halo is None else halo.before)
        rows += table.num_rows
        yield from stream.add(table)
    if stream is not None:
        if halo is None or halo.rows != rows:
            raise DataError(
                "the input changed since its order was looked at",
                got=f"{rows} rows in a partition that had {0 if halo is None else halo.rows}",
                hint="Make the result anew, or cache the input first",
            )
        yield from stream.finish(halo.after)


def _route_sorted(plan: TablePlan, looks: list[PartitionLook]) -> Route:
    rows = sum(one.rows for one in looks)
    wanted = min(plan.tasks or min(MOST_TASKS, -(-rows // TASK_ROWS)), rows)
    slices = wanted * max(1, min(SLICES_PER_TASK, SLICES // wanted)) if wanted > 1 else 1
    cuts = choose_cuts(plan.task, looks, slices)
    keyed = _add_places(plan, cuts)
    pieces = _count_pieces(plan, keyed)
    division = divide(plan.task, cuts, pieces, wanted)
    carriage = summarise_unseen(plan.task, keyed, division)
    sent = _spread_rows(plan, keyed, division, carriage.rows)
    result = sent.mapInArrow(partial(run_sorted, plan.task, carriage.outside), plan.result)
    sizes = [0] * len(division.shares)
    for piece in division.pieces:
        for number in range(division.lowest[piece.number], division.highest[piece.number] + 1):
            sizes[number] += piece.rows
    return Route(
        kind="sorted",
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


_TYPE_BYTES = {"boolean": 1, "tinyint": 1, "smallint": 2, "int": 4, "float": 4, "date": 4, "string": 40, "binary": 40}
"""Of a value in a row; those of no fixed length are guessed, and all others are taken to have eight."""
_OWN_BYTES = 4 * 8
"""Of what windrow adds to a row on its way."""


def estimate_memory(route: Route) -> int:
    """About how many bytes a task needs: rows as they came, sorted, and as they go."""
    width = sum(_TYPE_BYTES.get(field.dataType.simpleString(), 8) for field in route.result.schema.fields)
    rows = route.largest if route.whole else min(route.largest, 2 * BLOCK_ROWS + route.neighbours)
    return 3 * (width + _OWN_BYTES) * rows


_ROUTES = {
    "in place": "rows are in order already, and stay where they are",
    "sorted": "rows are cut along the order, sent to their tasks and sorted there",
}


def describe_route(plan: TablePlan, route: Route, frame: str) -> str:
    """A route in words, and what tasks will choose from."""
    lines = [
        f"Frames of {route.rows:,} rows: {frame}",
        f"  route       {_ROUTES[route.kind]}",
        f"  tasks       {route.tasks:,}",
        f"  neighbours  {route.neighbours:,} rows that tasks look at beside their own",
        f"  memory      about {estimate_memory(route) / 2**20:,.0f} MB a task beside Spark's own",
    ]
    lines += [f"  {item.output:<10}  {_strategies(item)}" for item in plan.task.aggregates]
    return "\n".join(lines)


def _strategies(item: TableAggregate) -> str:
    """What an aggregate is computed by: tasks choose once they see their rows."""
    aggregate = f"{item.aggregate.name}: "
    operation = item.aggregate.definition.operation
    if item.method != AUTO:
        return f"{aggregate}method {item.method}, as asked"
    if operation not in CHAINS:
        return aggregate + ("from the bounds alone" if operation is None else "by the functions that it has")
    if item.strategy != AUTO:
        return f"{aggregate}{item.strategy}, as asked"
    names = ", ".join(strategy.name for strategy in CHAINS[operation])
    return f"{aggregate}the cheapest for a task's rows of {names}"
