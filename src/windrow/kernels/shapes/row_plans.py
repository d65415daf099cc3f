"""How the windows of all run lengths of a row are built from shorter ones, and which rows meet in an output."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from windrow.kernels.shapes.problems import Int64Array


class Build(NamedTuple):
    """Windows of a row from shorter ones: at every place those of level ``one``, merged with those of level ``other``,
    and perhaps of a third, some cells further on, become those of level ``to``. Level 0 has the cells themselves.
    """

    steps: Int64Array  # rows of (to, one, other, cells further on, third or -1, cells further on, width of the new)
    levels: int
    level_of: dict[int, int]  # by the length of the run


@lru_cache(maxsize=256)
def plan_build(lengths: tuple[int, ...], overlapping: bool) -> Build:
    """Windows of these widths; if cells may count twice, as for extremes, windows may overlap."""
    level_of = {1: 0}
    steps: list[tuple[int, ...]] = []

    def merge(one: int, other: int, width: int) -> None:
        level_of[width] = len(level_of)
        steps.append((level_of[width], level_of[one], level_of[other], width - other, -1, 0, width))

    def merge_three(one: int, other: int, third: int) -> None:
        width = one + other + third
        level_of[width] = len(level_of)
        levels = level_of[one], level_of[other], one, level_of[third], one + other
        steps.append((level_of[width], *levels, width))

    def build(width: int) -> None:
        if width in level_of:
            return
        pairs = [(one, width - one) for one in level_of if width - one in level_of]
        triples = [
            (one, other, width - one - other)
            for one in level_of
            for other in level_of
            if width - one - other in level_of
        ]
        longest = max(one for one in level_of if one < width)
        if pairs:
            merge(*max(pairs), width)
        elif triples:
            merge_three(*max(triples))
        elif width > 2 * longest:
            merge(longest, longest, 2 * longest)
            build(width)
        elif overlapping:
            merge(longest, longest, width)
        else:
            build(width - longest)
            merge(longest, width - longest, width)

    for length in sorted(lengths):
        build(length)
    return Build(np.array(steps, np.int64).reshape(-1, 7), len(level_of), level_of)
