"""Frames on tables by brute force: rows are sorted and framed in plain Python, partition by partition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import frame_oracle

Row = dict[str, Any]


@dataclass(frozen=True)
class Order:
    """A column to sort by."""

    column: str
    descending: bool = False
    nulls_first: bool = True

    def sorting(self, row: Row) -> tuple[int, int, Any]:
        """NULL at its end, NaN above all numbers."""
        value = row[self.column]
        if value is None:
            return (0 if self.nulls_first else 2, 0, 0)
        nan = int(value != value)
        place: Any = 0 if nan else value + 0.0 if isinstance(value, float) else value  # -0.0 is 0.0
        return (1, -nan, _Falling(place)) if self.descending else (1, nan, place)


@dataclass(frozen=True)
class _Falling:
    value: Any

    def __lt__(self, other: _Falling) -> bool:
        return bool(other.value < self.value)


def partitions(rows: Sequence[Row], by: Sequence[str], order: Sequence[Order], tie: str | None) -> list[list[Row]]:
    """The rows of each partition in order."""
    held: dict[Any, list[Row]] = {}
    for row in rows:
        held.setdefault(tuple(repr(row[name]) for name in by), []).append(row)

    def sorting(row: Row) -> tuple[Any, ...]:
        return (*(key.sorting(row) for key in order), row[tie] if tie is not None else 0)

    return [sorted(part, key=sorting) for part in held.values()]


def frames(
    part: Sequence[Row], order: Sequence[Order], unit: str, start: Any, end: Any, exclude: str
) -> list[list[int]]:
    """Which rows of a partition each row's frame holds; bounds are numbers, None, or functions of the row."""
    first, last = _offsets(part, start), _offsets(part, end)
    peers = [tuple((*key.sorting(row)[:2], repr(key.sorting(row)[2])) for key in order) for row in part]
    if unit == "range" and not (start in (0, None) and end in (0, None)):
        keys = [row[order[0].column] for row in part]
        found = frame_oracle.range_rows(
            keys, lambda k: first[k], lambda k: last[k], order[0].descending, frame_oracle.add_exactly
        )
    else:
        numbers = list(range(len(part)))
        if unit != "rows":
            distinct = list(dict.fromkeys(peers))
            numbers = [distinct.index(peer) for peer in peers]
        found = [
            [
                row
                for row in range(len(part))
                if (first[k] is None or numbers[row] >= numbers[k] + first[k])
                and (last[k] is None or numbers[row] <= numbers[k] + last[k])
            ]
            for k in range(len(part))
        ]
    return frame_oracle.without(found, exclude, peers)


def _offsets(part: Sequence[Row], bound: Any) -> list[Any]:
    return [bound(row) if callable(bound) else bound for row in part]


def aggregate(
    rows: Sequence[Row], by: Sequence[str], order: Sequence[Order], tie: str | None, frame: tuple[Any, ...],
    wanted: tuple[str, str | None, float | None], keep: str | None = None,
) -> dict[int, Any]:  # fmt: skip
    """An aggregate for each row, by the row's ``id``; ``wanted`` is its name, column and parameter."""
    name, column, parameter = wanted
    results = {}
    for part in partitions(rows, by, order, tie):
        held = frames(part, order, *frame)
        values = [1 if column is None else row[column] for row in part]
        kept = None if keep is None else [bool(row[keep]) for row in part]
        found = frame_oracle.evaluate(values, held, (name, parameter), keep=kept, nan_is_value=True)
        results.update({row["id"]: value for row, value in zip(part, found, strict=True)})
    return results


def same(got: Any, wanted: Any) -> bool:
    """Whether a result is right: counts and picked values exactly, others but for rounding."""
    if got is None or wanted is None:
        return got is None and wanted is None
    if isinstance(got, float) or isinstance(wanted, float):
        if got == wanted or got != got or wanted != wanted:
            return bool(got == wanted or (got != got and wanted != wanted))
        return abs(got - wanted) <= 1e-9 * max(1.0, abs(float(wanted)))
    return bool(got == wanted)
