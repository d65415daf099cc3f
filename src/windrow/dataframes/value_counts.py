"""Modes and distinct counts over unbounded frames: for the values in its rows, a task gets the counts in other tasks.

A frame only grows, so that a value which the task does not see matters in one case: if it is the most frequent one
elsewhere. Of all others it is enough to know how many there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from windrow.dataframes.keys import join_chunks, ordinals
from windrow.dataframes.sessions import collect_table, column_named, functions
from windrow.dataframes.slices import Division
from windrow.dataframes.spec import PLACE, TARGET, TIMES, TableAggregate
from windrow.dataframes.unbounded_states import Part
from windrow.dataframes.unseen_pieces import GROUP, SIDE, VALUE, Elsewhere, Sent, by_piece, groups_of, select_values
from windrow.model.frame import SortKey

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

UP_TO = "__windrow_up_to"


def find_matches(rows: DataFrame, item: TableAggregate, division: Division, places: Sequence[Elsewhere]) -> Sent:
    """For each task the values that it sees and others have too."""
    from pyspark.sql import Window

    f = functions()
    values = select_values(rows, item).where(column_named(VALUE).isNotNull())
    counted = values.groupBy(PLACE, VALUE).agg(f.count("*").alias(TIMES))
    counted = counted.withColumn(GROUP, by_piece(groups_of(division)))
    backwards = any(place.after and not place.whole for place in places)
    along = Window.partitionBy(GROUP, VALUE).orderBy(column_named(PLACE).desc() if backwards else column_named(PLACE))
    so_far = f.sum(TIMES).over(along.rowsBetween(Window.unboundedPreceding, Window.currentRow))
    running = counted.withColumn(UP_TO, so_far)
    summary = _summary(running)
    parts = {(place.share, place.after): summary.part(place, item) for place in places}
    return Sent(parts, None if all(place.whole for place in places) else _send_counts(running, division, backwards))


class _Summary:
    """For each piece how many values it has, how many of them are new, and the most frequent one so far."""

    def __init__(self, found: pa.Table) -> None:
        self.rows, self.new, self.times = (found.column(name).to_pylist() for name in ("rows", "new", "times"))
        self.row = {piece: row for row, piece in enumerate(found.column(PLACE).to_pylist())}
        self.best = join_chunks(found.column("best"))
        self.rank = ordinals(self.best, SortKey("best")).tolist()

    def part(self, place: Elsewhere, item: TableAggregate) -> Part:
        found = [self.row[piece] for piece in place.outside if piece in self.row]
        rows, distinct = (sum(values[row] for row in found) for values in (self.rows, self.new))
        if not item.aggregate.definition.picks or not found:
            return Part(rows, distinct=distinct, has_seen=place.whole)
        top = min(found, key=lambda row: (-self.times[row], self.rank[row]))
        return Part(
            rows, distinct=distinct, best=self.best.slice(top, 1), best_times=self.times[top], has_seen=place.whole
        )


def _summary(running: DataFrame) -> _Summary:
    f = functions()
    best = f.min(f.struct((-column_named(UP_TO)).alias("less"), column_named(VALUE).alias("value")))
    new = f.count(f.when(column_named(UP_TO) == column_named(TIMES), 1))
    pieces = running.groupBy(PLACE).agg(f.sum(TIMES).alias("rows"), new.alias("new"), best.alias("top"))
    chosen = pieces.select(PLACE, "rows", "new", (-f.col("top.less")).alias("times"), f.col("top.value").alias("best"))
    return _Summary(collect_table(chosen, "counting what frames carry"))


def _send_counts(running: DataFrame, division: Division, backwards: bool) -> DataFrame:
    f = functions()
    lowest, highest = by_piece(division.lowest), by_piece(division.highest)
    seen = running.withColumn(TARGET, f.explode(f.sequence(lowest, highest)))
    # At the first row of a task with a value, all rows counted so far belong to other tasks.
    before = f.min(column_named(UP_TO) - column_named(TIMES)).alias(TIMES)
    found = seen.groupBy(TARGET, GROUP, VALUE).agg(before).where(column_named(TIMES) > 0)
    return found.select(TARGET, f.lit(int(backwards)).alias(SIDE), VALUE, TIMES)
