"""What tasks with unbounded frames must know of rows that they do not get, computed by Spark."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from windrow.dataframes.rank_bands import find_bands
from windrow.dataframes.sessions import collect_table, column_named, functions
from windrow.dataframes.slices import Division
from windrow.dataframes.spec import CARRIED, HOME, PLACE, TARGET, TIMES, FrameTask, TableAggregate, is_bounded
from windrow.dataframes.unbounded_states import Carried, Outside, Part, outside_parts, state_columns, state_of
from windrow.dataframes.unseen_pieces import SIDE, VALUE, Sent, find_elsewhere, pieces_around, tasks_sharing
from windrow.dataframes.value_counts import find_matches

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CARRIED_VALUES = 1_000_000
"""Counted values of all pieces, and of all tasks, that travel with the plan at most; more of them travel as rows."""


@dataclass(frozen=True, eq=False)
class Carriage:
    """What travels with the plan, and what travels as rows beside those of the table."""

    outside: Carried
    rows: DataFrame | None = None


def summarise_unseen(task: FrameTask, keyed: DataFrame, division: Division) -> Carriage:
    """What each task needs to know of rows that it does not see."""
    items = [(number, item) for number, item in enumerate(task.aggregates) if not is_bounded(task.frames[item.frame])]
    spread = list(division.spread())
    if task.loads_all or not items or not spread:
        return Carriage({})
    pieces = [piece.number for group in spread for piece in division.crossed[group]]
    rows = keyed if len(pieces) == len(division.pieces) else keyed.where(column_named(PLACE).isin(pieces))
    parts: dict[int, dict[int, Part]] = {}
    sent: dict[int, Sent] = {}
    for number, item in items:
        if item.counts_rows:  # the pieces have been counted
            names = item.aggregate.parts()
            parts[number] = {
                piece.number: Part(piece.rows, dict.fromkeys(names, piece.rows)) for piece in division.pieces
            }
    merged = [one for one in items if not one[1].aggregate.definition.tallies and not one[1].counts_rows]
    if merged:
        parts.update(_compute_states(rows, merged))
    places = {number: find_elsewhere(division, task.frames[item.frame]) for number, item in items}
    counted = {number: item for number, item in items if item.aggregate.definition.tallies and places[number]}
    many = _find_too_many(rows, counted, division)
    for number, item in counted.items():
        found = None if number in many else _count_values(rows, item, len(division.shares))
        if found is None:
            choose = find_matches if item.aggregate.definition.counts_values else find_bands
            sent[number] = choose(rows, item, division, places[number])
        else:
            parts[number] = found
    return _combine(task, _assign_to_tasks(task, division, spread, parts), sent)


def _combine(task: FrameTask, outside: Carried, sent: dict[int, Sent]) -> Carriage:
    """What travels with the plan and what travels as rows, for all aggregates."""
    f = functions()
    held = {share: list(parts) for share, parts in outside.items()}
    rows = []
    for number, one in sent.items():
        for (share, after), part in one.parts.items():
            known = held.setdefault(share, [None] * len(task.aggregates))
            known[number] = _join_sides(known[number], Outside(None, part) if after else Outside(part))
        if one.rows is not None:
            column = task.aggregates[number].aggregate.attribute
            value = column_named(VALUE).alias(str(column))
            code = (column_named(SIDE) + 2 * number).alias(CARRIED)
            rows.append(one.rows.select(TARGET, code, TIMES, value, f.lit(False).alias(HOME)))
    together = reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), rows) if rows else None
    return Carriage({share: tuple(parts) for share, parts in held.items()}, together)


def _compute_states(rows: DataFrame, merged: list[tuple[int, TableAggregate]]) -> dict[int, dict[int, Part]]:
    columns = [
        column.alias(f"s{number}_{k}") for number, item in merged for k, column in enumerate(state_columns(item))
    ]
    found = collect_table(rows.groupBy(PLACE).agg(*columns), "working out what frames carry").to_pylist()
    return {
        number: {
            row[PLACE]: state_of(item, [row[f"s{number}_{k}"] for k in range(len(item.aggregate.parts()))])
            for row in found
        }
        for number, item in merged
    }


def _find_too_many(rows: DataFrame, counted: dict[int, TableAggregate], division: Division) -> set[int]:
    """The aggregates that have more different values than may travel with the plan."""
    f = functions()
    if not counted or sum(piece.rows for piece in division.pieces) <= CARRIED_VALUES:
        return set()
    numbers = [
        f.approx_count_distinct(column_named(str(item.aggregate.attribute))).alias(str(number))
        for number, item in counted.items()
    ]
    found = collect_table(rows.agg(*numbers), "estimating what frames carry").to_pylist()[0]
    # Spark's estimate is usually wrong by up to a twentieth.
    return {number for number in counted if found[str(number)] * len(division.shares) > 1.2 * CARRIED_VALUES}


def _count_values(rows: DataFrame, item: TableAggregate, tasks: int) -> dict[int, Part] | None:
    """The values of each piece and how often they are there."""
    f = functions()
    column = item.aggregate.attribute
    assert column is not None
    kept = rows if item.keep is None else rows.where(column_named(item.keep))
    counted = kept.where(column_named(column).isNotNull()).groupBy(
        column_named(PLACE).alias("place"), column_named(column).alias("value")
    )
    limited = counted.agg(f.count("*").alias("times")).limit(CARRIED_VALUES + 1)
    found = collect_table(limited, "counting what frames carry").combine_chunks()
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


def _assign_to_tasks(
    task: FrameTask, division: Division, spread: Iterable[int], parts: dict[int, dict[int, Part]]
) -> Carried:
    carried: dict[int, list[Outside | None]] = {}
    for group in spread:
        for share in tasks_sharing(division, group):
            before, _, after = pieces_around(division, group, share)
            held = carried.setdefault(share, [None] * len(task.aggregates))
            for number, pieces in parts.items():
                held[number] = _join_sides(held[number], outside_parts(pieces, before, after, task.aggregates[number]))
    return {share: tuple(held) for share, held in carried.items()}


def _join_sides(known: Outside | None, found: Outside) -> Outside:
    """A task's first partition may go on before it, and its last one after it."""
    if known is None:
        return found
    return Outside(known.before or found.before, known.after or found.after)
