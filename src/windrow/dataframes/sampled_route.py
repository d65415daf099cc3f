"""Rows in any order: one exchange, and each task sorts the rows that it got.

A sample of the keys says where to cut. The rows around the cuts, which two tasks need, come to the driver and travel
with the plan, so that a row goes through the exchange once, with no column but its own. Unbounded frames are cut where
no row is needed of a neighbour: between partitions; or between groups of peers, and then what frames carry from task to
task is worked out by Spark before the exchange.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from windrow.dataframes.blocks import FrameStream
from windrow.dataframes.cuts import TIE, hashed_columns, row_hash
from windrow.dataframes.keys import join_chunks
from windrow.dataframes.order import Halo, changed_input
from windrow.dataframes.row_order import can_hash, encode_key, has_ties, match_types, sort_table
from windrow.dataframes.sampled_cuts import (
    Border,
    KeySample,
    choose_borders,
    choose_clean_borders,
    cuts_through,
    estimate_neighbours,
    estimate_tasks,
    share_out,
    write_reached,
    write_task,
)
from windrow.dataframes.sessions import collect_rows, collect_table, column_named, functions
from windrow.dataframes.slices import divide_as_cut
from windrow.dataframes.spec import PLACE, FrameTask
from windrow.dataframes.table_plan import GATHER_ROWS, HALO_BYTES, Route, TablePlan, map_tasks, row_bytes
from windrow.dataframes.unbounded_states import Carried, Outside
from windrow.dataframes.unbounded_summaries import summarise_unseen
from windrow.kernels.frames.row_sorting import sort_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SAMPLE_ROWS = 100_000
SEED = 17
_SAMPLING = "sampling the order of the rows"
TASK_ROWS, TASK_BYTES = 1_250_000, 48 * 2**20
"""What a task holds at most: few large tasks are quicker than many small ones, but all of one must fit into memory."""
UNEVEN = 2
"""How many times as many rows a task may have where it has to be cut between partitions or groups of peers."""
SMALL_ROWS, SPREAD_TASKS = 100_000, 8
"""Rows below which another task would cost more than it gains, and tasks that keep the cores of one machine busy."""


@dataclass(frozen=True, eq=False)
class Sampled:
    """Everything that was found out before the exchange; ``obstacle`` says why it cannot be."""

    sample: KeySample
    borders: tuple[Border, ...] = ()
    halos: Mapping[int, Halo] | None = None
    carried: Carried = field(default_factory=dict)
    obstacle: str | None = None


def needs_others(task: FrameTask) -> str | None:
    """Why unbounded frames cannot be cut by a sample, whatever the rows are."""
    if not task.is_unbounded or task.partition:
        return None
    if not task.keys:
        return "rows have no order to be cut along"
    if not task.carries_numbers:
        return "frames are unbounded, and need more of other tasks than a few numbers"
    return None if task.looks_at_peers_only else "some frames are unbounded, and some reach rows of other tasks"


def count_tasks(plan: TablePlan, rows: int) -> int:
    """Into how many tasks rows are cut."""
    if plan.tasks is not None:
        return max(1, min(plan.tasks, rows))
    return max(1, -(-rows // _most_rows(plan)), min(SPREAD_TASKS, rows // SMALL_ROWS))


def _most_rows(plan: TablePlan) -> int:
    """The rows that a task should hold at most."""
    return min(TASK_ROWS, max(1, TASK_BYTES // row_bytes(plan.rows.schema)))


def prepare_sampled(plan: TablePlan, rows: int) -> Sampled:
    """Cut, and collect the rows around the cuts."""
    tasks = count_tasks(plan, rows)
    if tasks == 1:
        return Sampled(KeySample(pa.table({}), rows, plan.task.partition, plan.task.order), halos={})
    if plan.task.is_unbounded:
        return _prepare_unbounded(plan, rows, tasks)
    sample = _take_sample(plan, rows)
    borders = choose_borders(plan.task, sample, tasks)
    names = [name for name in plan.task.needed if name != PLACE]
    width = row_bytes(plan.rows.select([column_named(name) for name in names]).schema)
    guessed = estimate_neighbours(sample, borders)
    if guessed * width > HALO_BYTES:
        return Sampled(sample, obstacle=_describe_size(guessed, guessed * width))
    near = _collect_near(plan, sample, borders, names)
    if near.nbytes > HALO_BYTES:
        return Sampled(sample, obstacle=_describe_size(near.num_rows, near.nbytes))
    shares = share_out(plan.task, sample, borders, near)
    return Sampled(sample, borders, shares.halos, obstacle=shares.obstacle)


def _prepare_unbounded(plan: TablePlan, rows: int, tasks: int) -> Sampled:
    """Cut where no row is needed of a neighbour, and work out what is carried across."""
    task = plan.task
    drawn = _draw(plan, rows).select([column_named(name) for name in dict.fromkeys(key.column for key in task.keys)])
    keys = collect_table(drawn, _SAMPLING).combine_chunks()
    sample = KeySample(sort_table(keys, task.keys, ()), rows, task.partition, task.order)
    most = UNEVEN * max(_most_rows(plan), -(-rows // tasks))
    if task.partition:
        borders = choose_clean_borders(sample, tasks, through=False)
        largest = max(estimate_tasks(sample, borders))
        if largest <= most:
            return Sampled(sample, borders, {})
        if not (task.carries_numbers and task.looks_at_peers_only):
            return Sampled(sample, obstacle=f"a partition has about {largest:,} rows, and must not be cut here")
    borders = choose_clean_borders(sample, tasks, through=True)
    largest = max(estimate_tasks(sample, borders))
    if largest > most:
        return Sampled(sample, obstacle=f"a group of peers has about {largest:,} rows, and must not be cut here")
    cuts = cuts_through(sample, borders)
    placed = plan.rows.withColumn(PLACE, cuts.piece(plan.kinds))
    found = collect_table(placed.groupBy(PLACE).count(), "counting rows along the order").to_pylist()
    division = divide_as_cut(cuts, {row[PLACE]: row["count"] for row in found})
    halos = {share.number: Halo(share.rows, None, None) for share in division.shares}
    return Sampled(sample, borders, halos, summarise_unseen(task, placed, division).outside)


def _describe_size(rows: int, size: int) -> str:
    most = HALO_BYTES // 2**20
    return f"frames reach {rows:,} rows beyond their tasks, {size / 2**20:,.0f} MB; {most} MB may travel with the plan"


def _draw(plan: TablePlan, rows: int) -> DataFrame:
    return plan.rows if rows <= SAMPLE_ROWS else plan.rows.sample(fraction=SAMPLE_ROWS / rows, seed=SEED)


def _take_sample(plan: TablePlan, rows: int) -> KeySample:
    task = plan.task
    keys = _collect(plan, _draw(plan, rows), list(dict.fromkeys(key.column for key in task.keys)), _SAMPLING)
    groups = 1
    if any(frame.unit == "groups" for frame in task.envelopes):
        f = functions()
        counted = f.approx_count_distinct(f.struct(*(column_named(key.column) for key in task.keys)))
        groups = int(collect_rows(plan.rows.agg(counted if task.keys else f.lit(1)), "counting groups of peers")[0][0])
    return KeySample(sort_table(keys, task.keys, ()), rows, task.partition, task.order, groups)


def _collect(plan: TablePlan, rows: DataFrame, names: Sequence[str], label: str) -> pa.Table:
    """Some columns of a few rows, and their hashes if rows with equal keys are among them."""
    keys = plan.task.keys
    columns = [column_named(name) for name in names]
    if columns:
        found = collect_table(rows.select(*columns), label).combine_chunks()
        codes = [code for key in keys for code in encode_key(join_chunks(found.column(key.column)), key)]
        if not has_ties(codes, sort_rows(codes, found.num_rows)):
            return found
    # The hash is of all columns, and reads them all.
    return collect_table(rows.select(*columns, row_hash(plan.kinds).alias(TIE)), label).combine_chunks()


def _collect_near(plan: TablePlan, sample: KeySample, borders: Sequence[Border], names: Sequence[str]) -> pa.Table:
    near = plan.rows.where(functions().expr(write_reached(sample, borders, plan.kinds)))
    label = "looking at the rows around the cuts"
    if TIE in sample.keys.column_names:
        columns = [column_named(name) for name in names]
        return collect_table(near.select(*columns, row_hash(plan.kinds).alias(TIE)), label).combine_chunks()
    return _collect(plan, near, names, label)


def route_sampled(plan: TablePlan, rows: int, found: Sampled) -> Route:
    """One exchange to the tasks between the cuts."""
    halos, tasks = found.halos or {}, len(found.borders) + 1
    sent = plan.rows
    if not all(can_hash(plan.kinds[name]) for name in hashed_columns(plan.kinds)):
        sent = sent.withColumn(TIE, row_hash(plan.kinds))
    number = _task_number(plan, found.sample, found.borders)
    placed = sent.repartitionById(tasks, number).withColumn(PLACE, functions().spark_partition_id())
    run = partial(run_sampled, plan.task, hashed_columns(plan.kinds), dict(halos), dict(found.carried))
    return Route(
        rows=rows,
        tasks=tasks,
        neighbours=sum(halo.neighbours for halo in halos.values()),
        largest=-(-rows // tasks) + max((halo.neighbours for halo in halos.values()), default=0),
        whole=True,
        result=map_tasks(plan, placed, run),
    )


def _task_number(plan: TablePlan, sample: KeySample, borders: Sequence[Border]) -> Any:
    return functions().expr(f"cast({write_task(sample, borders, plan.kinds)} as int)")


def run_sampled(
    task: FrameTask,
    hashed: Sequence[str],
    halos: Mapping[int, Halo],
    carried: Mapping[int, Sequence[Outside | None]],
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """The function of a task that was sent its own rows in any order."""
    held = [batch for batch in batches if batch.num_rows]
    if not held:
        return
    table = pa.Table.from_batches(held)
    held.clear()
    place = table.column(PLACE)[0].as_py()
    halo = halos.get(place, Halo(0, None, None))
    if place in carried and halo.rows != table.num_rows:
        raise changed_input(halo.rows, table.num_rows)
    kinds = {field.name: field.type for field in table.schema}
    before, after = (None if side is None else match_types(side, kinds) for side in (halo.before, halo.after))
    table = sort_table(table, task.keys, hashed)
    stream = FrameStream(task, before, carried.get(place, ()))
    for begin in range(0, table.num_rows, GATHER_ROWS):
        yield from stream.add(table.slice(begin, GATHER_ROWS))
    yield from stream.finish(after)
