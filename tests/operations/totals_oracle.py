"""Totals worked out cell by cell in plain Python: slow, and nothing of windrow's in it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

Cell = Mapping[str, Any]
"""Coordinates and values by name; None is missing."""


@dataclass(frozen=True)
class Asked:
    """One aggregate: its name in a query, the values it is of, and a fraction if it has one."""

    text: str
    values: Callable[[Cell], Any]
    kind: str
    exact: bool = False
    """Whether the result is one of the values, or a number that no order of additions changes."""


def group_cells(cells: Iterable[Cell], keys: Iterable[str]) -> dict[tuple[int, ...], list[Cell]]:
    names = tuple(keys)
    groups: dict[tuple[int, ...], list[Cell]] = {}
    for cell in cells:
        groups.setdefault(tuple(cell[name] for name in names), []).append(cell)
    return groups


def compute(asked: Asked, cells: list[Cell]) -> tuple[Any, float]:
    """The result, None if it is missing, and how far another one may be from it."""
    if asked.kind == "cells":
        return len(cells), 0.0
    values = [value for value in map(asked.values, cells) if value is not None and value == value]
    if asked.kind == "count":
        return len(values), 0.0
    if len(values) < (2 if asked.kind == "var" else 1):
        return None, 0.0
    if asked.kind in ("min", "max"):
        return (min if asked.kind == "min" else max)(values), 0.0
    if asked.kind == "median":
        return _median(values), 0.0
    if any(isinstance(value, float) and math.isinf(value) for value in values):
        signs = {value for value in values if isinstance(value, float) and math.isinf(value)}
        return (signs.pop() if len(signs) == 1 and asked.kind != "var" else math.nan), 0.0
    return _of_sums(asked, values)


def _of_sums(asked: Asked, values: list[Any]) -> tuple[Any, float]:
    exact = [Fraction(value) for value in values]
    total, size = sum(exact), float(sum(map(abs, exact)))
    if asked.kind == "sum":
        if all(isinstance(value, int) for value in values):
            return int(total), 0.0
        return float(total), 1e-12 * size
    mean = total / len(values)
    if asked.kind == "avg":
        return float(mean), 1e-12 * size / len(values)
    assert asked.kind == "var"
    squares = sum((value - mean) ** 2 for value in exact)
    return float(squares / (len(values) - 1)), 1e-11 * float(max(map(abs, exact))) ** 2


def _median(values: list[Any]) -> float:
    ordered = sorted(values)
    low, high = float(ordered[(len(ordered) - 1) // 2]), float(ordered[len(ordered) // 2])
    if low == high:
        return low
    if math.isinf(high - low):
        return low * 0.5 + high * 0.5
    return low + 0.5 * (high - low)


def agrees(found: Any, expected: Any, within: float) -> bool:
    if expected is None or (isinstance(expected, float) and math.isnan(expected)):
        return found is None or found != found
    if found is None or found != found:
        return False
    if isinstance(expected, float) and math.isinf(expected):
        return bool(found == expected)
    return bool(abs(Fraction(found) - Fraction(expected)) <= Fraction(within)) or found == expected
