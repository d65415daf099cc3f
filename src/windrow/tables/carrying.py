"""Working out with Spark what unbounded frames carry from task to task."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from windrow.tables.carry import COUNTED, Outside, Part, outside_parts, state_columns, state_of
from windrow.tables.dataframes import collected_table, functions, named
from windrow.tables.slices import Division
from windrow.tables.spec import PLACE, FrameTask, TableAggregate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Carried = dict[int, tuple[Outside | None, ...]]
"""For each task and aggregate, what is known of the rows that it does not see."""

CARRIED_VALUES = 1_000_000
"""Counted values of all pieces, and of all tasks, that are carried at most."""


def carried(task: FrameTask, keyed: DataFrame, division: Division) -> Carried | None:
    """What each task needs to know of rows that it does not see; None if that is too much."""
    items = [(number, item) for number, item in enumerate(task.aggregates) if not task.frames[item.frame].is_bounded]
    spread = list(division.spread())
    if task.loads_all or not items or not spread:
        return {}
    pieces = [piece.number for group in spread for piece in division.crossed[group]]
    rows = keyed.where(named(PLACE).isin(pieces))
    parts: dict[int, dict[int, Part]] = {}
    merged = [(number, item) for number, item in items if item.aggregate.name not in COUNTED]
    if merged:
        parts.update(_states(rows, merged))
    for number, item in items:
        if item.aggregate.name in COUNTED:
            found = _counts(rows, item, len(division.shares))
            if found is None:
                return None
            parts[number] = found
    return _by_task(task, division, spread, parts)


def _states(rows: DataFrame, merged: list[tuple[int, TableAggregate]]) -> dict[int, dict[int, Part]]:
    columns = [
        column.alias(f"s{number}_{k}") for number, item in merged for k, column in enumerate(state_columns(item))
    ]
    found = collected_table(rows.groupBy(PLACE).agg(*columns), "working out what frames carry").to_pylist()
    return {
        number: {row[PLACE]: state_of([row[f"s{number}_{k}"] for k in range(5)]) for row in found}
        for number, _ in merged
    }


def _counts(rows: DataFrame, item: TableAggregate, tasks: int) -> dict[int, Part] | None:
    """The values of each piece and how often they are there."""
    f = functions()
    column = item.aggregate.attribute
    assert column is not None
    kept = rows if item.keep is None else rows.where(named(item.keep))
    counted = kept.where(named(column).isNotNull()).groupBy(named(PLACE).alias("place"), named(column).alias("value"))
    limited = counted.agg(f.count("*").alias("times")).limit(CARRIED_VALUES + 1)
    found = collected_table(limited, "counting what frames carry").combine_chunks()
    values = found.column("value")
    if found.num_rows > CARRIED_VALUES or len(values.unique()) * tasks > CARRIED_VALUES:
        return None
    places, times = found.column("place").to_numpy(), found.column("times").to_numpy()
    order = np.argsort(places, kind="stable")
    edges = np.flatnonzero(np.diff(places[order], prepend=-1, append=-1))
    parts = {}
    for begin, end in pairwise(edges):
        chosen = order[begin:end]
        taken = values.take(pa.array(chosen))
        flat = taken.combine_chunks() if isinstance(taken, pa.ChunkedArray) else taken
        parts[int(places[chosen[0]])] = Part(int(times[chosen].sum()), values=flat, times=times[chosen])
    return parts


def _by_task(task: FrameTask, division: Division, spread: Iterable[int], parts: dict[int, dict[int, Part]]) -> Carried:
    carried: dict[int, list[Outside | None]] = {}
    for group in spread:
        members = [piece.number for piece in division.crossed[group]]
        for share in {division.home[number] for number in members}:
            seen = [number for number in members if division.lowest[number] <= share <= division.highest[number]]
            before = members[: members.index(seen[0])]
            after = members[members.index(seen[-1]) + 1 :]
            held = carried.setdefault(share, [None] * len(task.aggregates))
            for number, pieces in parts.items():
                held[number] = _both(held[number], outside_parts(pieces, before, after, task.aggregates[number]))
    return {share: tuple(held) for share, held in carried.items()}


def _both(known: Outside | None, found: Outside) -> Outside:
    """A task's first partition may go on before it, and its last one after it."""
    if known is None:
        return found
    return Outside(known.before or found.before, known.after or found.after)
