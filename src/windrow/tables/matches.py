"""Modes and distinct counts over unbounded frames: tasks get the counts elsewhere of those values that they see.

A frame only grows, so that a value which the task does not see matters in one case: if it is the most frequent one
elsewhere. Of all others it is enough to know how many there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from windrow.tables.carry import Part
from windrow.tables.dataframes import collected_table, functions, named
from windrow.tables.elsewhere import GROUP, SIDE, VALUE, Elsewhere, Sent, by_piece, groups_of, valued
from windrow.tables.keys import flat, ordinals
from windrow.tables.slices import Division
from windrow.tables.spec import PLACE, TARGET, TIMES, SortKey, TableAggregate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

UP_TO = "__windrow_up_to"


def matches(rows: DataFrame, item: TableAggregate, division: Division, places: Sequence[Elsewhere]) -> Sent:
    """For each task the values that it sees and others have too."""
    from pyspark.sql import Window

    f = functions()
    values = valued(rows, item).where(named(VALUE).isNotNull())
    counted = values.groupBy(PLACE, VALUE).agg(f.count("*").alias(TIMES))
    counted = counted.withColumn(GROUP, by_piece(groups_of(division)))
    backwards = any(place.after and not place.whole for place in places)
    along = Window.partitionBy(GROUP, VALUE).orderBy(named(PLACE).desc() if backwards else named(PLACE))
    so_far = f.sum(TIMES).over(along.rowsBetween(Window.unboundedPreceding, Window.currentRow))
    running = counted.withColumn(UP_TO, so_far)
    summary = _summary(running)
    parts = {(place.share, place.after): summary.part(place, item) for place in places}
    return Sent(parts, None if all(place.whole for place in places) else _sent(running, division, backwards))


class _Summary:
    """For each piece how many values it has, how many of them are new, and the most frequent one so far."""

    def __init__(self, found: pa.Table) -> None:
        self.rows, self.new, self.times = (found.column(name).to_pylist() for name in ("rows", "new", "times"))
        self.row = {piece: row for row, piece in enumerate(found.column(PLACE).to_pylist())}
        self.best = flat(found.column("best"))
        self.rank = ordinals(self.best, SortKey("best")).tolist()

    def part(self, place: Elsewhere, item: TableAggregate) -> Part:
        found = [self.row[piece] for piece in place.outside if piece in self.row]
        rows, distinct = (sum(values[row] for row in found) for values in (self.rows, self.new))
        if item.aggregate.name != "mode" or not found:
            return Part(rows, distinct=distinct, has_seen=place.whole)
        top = min(found, key=lambda row: (-self.times[row], self.rank[row]))
        return Part(
            rows, distinct=distinct, best=self.best.slice(top, 1), best_times=self.times[top], has_seen=place.whole
        )


def _summary(running: DataFrame) -> _Summary:
    f = functions()
    best = f.min(f.struct((-named(UP_TO)).alias("less"), named(VALUE).alias("value")))
    new = f.count(f.when(named(UP_TO) == named(TIMES), 1))
    pieces = running.groupBy(PLACE).agg(f.sum(TIMES).alias("rows"), new.alias("new"), best.alias("top"))
    chosen = pieces.select(PLACE, "rows", "new", (-f.col("top.less")).alias("times"), f.col("top.value").alias("best"))
    return _Summary(collected_table(chosen, "counting what frames carry"))


def _sent(running: DataFrame, division: Division, backwards: bool) -> DataFrame:
    f = functions()
    lowest, highest = by_piece(division.lowest), by_piece(division.highest)
    seen = running.withColumn(TARGET, f.explode(f.sequence(lowest, highest)))
    # Where a task first sees a value, what came before is all elsewhere.
    before = f.min(named(UP_TO) - named(TIMES)).alias(TIMES)
    found = seen.groupBy(TARGET, GROUP, VALUE).agg(before).where(named(TIMES) > 0)
    return found.select(TARGET, f.lit(int(backwards)).alias(SIDE), VALUE, TIMES)
