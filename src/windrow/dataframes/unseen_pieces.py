"""Partitions that lie in several tasks: which rows belong to a task's unbounded frames although it never gets them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from windrow.dataframes.sessions import column_named, functions
from windrow.dataframes.slices import Division
from windrow.dataframes.spec import PLACE, BoundFrame, TableAggregate
from windrow.dataframes.unbounded_states import Part

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

GROUP, VALUE, SIDE = "__windrow_group", "__windrow_value", "__windrow_side"


@dataclass(frozen=True)
class Elsewhere:
    """A task, and a partition of which it gets some pieces; ``outside`` are the others that its frames hold."""

    share: int
    group: int
    seen: Sequence[int]
    outside: Sequence[int]
    after: bool  # whether this is about the task's last partition, not its first

    @property
    def whole(self) -> bool:
        return not self.seen


@dataclass(frozen=True, eq=False)
class Sent:
    """What tasks learn of rows elsewhere: a part for each task and side, and rows of values and how often they are."""

    parts: Mapping[tuple[int, bool], Part]
    rows: DataFrame | None  # with the columns TARGET, SIDE (1 if it is after), VALUE and TIMES


def pieces_around(division: Division, group: int, share: int) -> tuple[list[int], list[int], list[int]]:
    """The pieces of a partition before those that a task sees, those, and the ones after."""
    members = [piece.number for piece in division.crossed[group]]
    seen = [number for number in members if division.lowest[number] <= share <= division.highest[number]]
    first, last = members.index(seen[0]), members.index(seen[-1])
    return members[:first], members[first : last + 1], members[last + 1 :]


def tasks_sharing(division: Division, group: int) -> list[int]:
    """The tasks that have rows of a partition."""
    return sorted({division.home[piece.number] for piece in division.crossed[group]})


def find_elsewhere(division: Division, frame: BoundFrame) -> list[Elsewhere]:
    """All tasks whose frames hold rows that they do not see."""
    found = []
    for group in division.spread():
        for share in tasks_sharing(division, group):
            before, seen, after = pieces_around(division, group, share)
            if frame.start.is_unbounded and frame.end.is_unbounded:
                if before or after:
                    found.append(Elsewhere(share, group, (), [*before, *seen, *after], not before))
            elif frame.start.is_unbounded and before:
                found.append(Elsewhere(share, group, seen, before, False))
            elif frame.end.is_unbounded and after:
                found.append(Elsewhere(share, group, seen, after, True))
    return found


def by_piece(numbers: Mapping[int, int]) -> Column:
    """A number that each row's piece has."""
    column: Column = functions().lit([int(numbers.get(piece, 0)) for piece in range(max(numbers) + 1)])[
        column_named(PLACE)
    ]
    return column


def groups_of(division: Division) -> dict[int, int]:
    """The partition of each piece, where cuts go through it."""
    return {piece.number: group for group, pieces in division.crossed.items() for piece in pieces}


def select_values(rows: DataFrame, item: TableAggregate) -> DataFrame:
    """The values that an aggregate counts with their pieces; NULL where a row does not count."""
    column = item.aggregate.attribute
    assert column is not None
    value = (
        column_named(column) if item.keep is None else functions().when(column_named(item.keep), column_named(column))
    )
    return rows.select(column_named(PLACE), value.alias(VALUE))
