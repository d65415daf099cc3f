"""Frames by brute force in plain Python: SQL's rules row by row, aggregates by the textbook."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import window_oracle

Rows = list[int]


def frame_rows(lo: Sequence[int], hi: Sequence[int], rows: int) -> list[Rows]:
    """The rows of each frame ``lo <= row < hi``."""
    return [[row for row in range(rows) if first <= row < last] for first, last in zip(lo, hi, strict=True)]


def without(frames: list[Rows], exclude: str, peers: Sequence[Any]) -> list[Rows]:
    """What EXCLUDE leaves; ``peers`` has a key for each row, and equal keys are peers."""
    left = []
    for current, frame in enumerate(frames):
        group = {row for row in range(len(peers)) if peers[row] == peers[current]}
        gone = {
            "no others": set(),
            "current row": {current},
            "group": group,
            "ties": group - {current},
        }[exclude]
        left.append([row for row in frame if row not in gone])
    return left


def evaluate(
    values: Sequence[Any],
    frames: list[Rows],
    wanted: tuple[str, float | None],
    *,
    keep: Sequence[bool] | None = None,
    nan_is_value: bool = False,
) -> list[Any]:
    """An aggregate in every frame; None is missing, in and out."""
    name, parameter = wanted
    results = []
    for frame in frames:
        kept = [row for row in frame if keep is None or keep[row]]
        present = [values[row] for row in kept if _present(values[row], nan_is_value)]
        results.append(_aggregate(name, parameter, present, len(kept)))
    return results


def _present(value: Any, nan_is_value: bool) -> bool:
    return value is not None and (nan_is_value or value == value)


def _aggregate(name: str, parameter: float | None, present: list[Any], rows: int) -> Any:
    nans = [value for value in present if value != value]
    if present and name == "sum" and isinstance(present[0], Decimal):
        return sum(Fraction(value) for value in present)
    if not nans:
        return window_oracle.aggregate(name, parameter, present, rows)
    # NaN is larger than all numbers and equal to itself.
    numbers = sorted(value for value in present if value == value)
    if name in ("count", "count_all"):
        return window_oracle.aggregate(name, parameter, present, rows)
    if name == "count_distinct":
        return len(set(numbers)) + 1
    if name in ("min", "max"):
        return numbers[0] if name == "min" and numbers else math.nan
    if name == "mode":
        times = {value: numbers.count(value) for value in numbers}
        most = max([*times.values(), len(nans)])
        return min([value for value, count in times.items() if count == most], default=math.nan)
    if name in ("percentile", "quantile_disc", "quantile_index", "quantile_cont", "median"):
        ranks = window_oracle.aggregate(name, parameter, list(range(len(present))), rows)
        ordered = numbers + nans
        low, high = ordered[math.floor(ranks)], ordered[math.ceil(ranks)]
        weight = ranks - math.floor(ranks)
        if low == high or math.isfinite(high - low):
            return low if low == high else low + weight * (high - low)
        # From an infinity it is infinitely far to any number, so that what lies between is the infinity.
        return low if weight == 0 else low * (1 - weight) + high * weight
    return None if len(present) < 2 and name in ("var", "std") else math.nan


def range_rows(
    keys: Sequence[Any],
    start: Callable[[int], Any],
    end: Callable[[int], Any],
    descending: bool,
    moved: Callable[[Any, Any], Any],
) -> list[Rows]:
    """RANGE frames over one key; ``start`` and ``end`` give a row's signed offset, None if it is unbounded."""
    frames = []
    for current, key in enumerate(keys):
        frame = []
        for row, other in enumerate(keys):
            after = _reaches(key, other, start(current), descending, moved, row, current, True)
            before = _reaches(key, other, end(current), descending, moved, row, current, False)
            if after and before:
                frame.append(row)
        frames.append(frame)
    return frames


def _reaches(
    key: Any, other: Any, offset: Any, descending: bool, moved: Callable[[Any, Any], Any], row: int, current: int,
    is_start: bool,
) -> bool:  # fmt: skip
    """Whether a row is not before a frame's start, or not behind its end."""
    if offset is None:
        return True
    special, other_special = key is None or key != key, other is None or other != other
    if special or other_special:
        same = (key is None) == (other is None) and special and other_special
        if same:
            return True
        return row > current if is_start else row < current
    bound = moved(key, -offset if descending else offset)
    if is_start:
        return bool(other <= bound) if descending else bool(other >= bound)
    return bool(other >= bound) if descending else bool(other <= bound)


def add_exactly(key: Any, offset: Any) -> Any:
    """A key and a distance without rounding."""
    if isinstance(key, (int, float)) and math.isfinite(key):
        return Fraction(key) + Fraction(offset)
    if isinstance(key, Decimal):
        return key + Decimal(offset)
    return key + offset


def add_months(moment: datetime.datetime, months: int) -> datetime.datetime:
    """The same day so many months later, or the last day of that month."""
    number = moment.year * 12 + moment.month - 1 + months
    year, month = divmod(number, 12)
    following = datetime.date(year + (month == 11), (month + 1) % 12 + 1, 1)
    last = (following - datetime.timedelta(days=1)).day
    return moment.replace(year=year, month=month + 1, day=min(moment.day, last))
