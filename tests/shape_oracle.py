"""Neighbourhoods by shape by their definition: loops over offsets in plain Python, for any aggregate."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

Cell = tuple[int, ...]
Member = Callable[[Cell], bool]
"""Whether an offset is in a shape."""


def neighbours(
    shape: Sequence[int], cell: Cell, member: Member, wraps: Sequence[bool], excluding: bool = False
) -> Iterator[Cell]:
    """The cells of an array, in their order, to which some offset in the shape leads; round periodic axes too."""
    for other in itertools.product(*(range(n) for n in shape)):
        if excluding and other == cell:
            continue
        turns = [range(-3, 4) if wrap else (0,) for wrap in wraps]
        ways = itertools.product(*turns)
        if any(
            member(tuple(b - a + turn * n for a, b, turn, n in zip(cell, other, way, shape, strict=True)))
            for way in ways
        ):
            yield other


def aggregate(name: str, found: list[Any]) -> Any:
    """One aggregate of the present values of a neighbourhood, None for missing."""
    ordered, size = sorted(found), len(found)
    if name == "count":
        return size
    if name == "count_distinct":
        return len(set(found))
    if not found:
        return None
    if name in ("sum", "avg"):
        total = math.fsum(found) if all(map(math.isfinite, found)) else sum(found)
        return total if name == "sum" else total / size
    if name in ("min", "max"):
        return ordered[0 if name == "min" else -1]
    if name in ("first", "last"):
        return found[0 if name == "first" else -1]
    if name == "range":
        return ordered[-1] - ordered[0]
    if name == "median":
        low, high = ordered[(size - 1) // 2], ordered[size // 2]
        return low if low == high else low / 2 + high / 2
    if name == "mode":
        counts = Counter(found)
        return min(value for value in counts if counts[value] == max(counts.values()))
    assert name == "var"
    if size < 2 or not all(map(math.isfinite, found)):
        return None
    mean = math.fsum(found) / size
    return math.fsum((value - mean) ** 2 for value in found) / (size - 1)
