"""How much a run of the window benchmark measures, and with whom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from windrow.bench.peers import Run
from windrow.bench.race import Pace
from windrow.bench.windows.peers import Peer

Item = TypeVar("Item")


@dataclass(frozen=True)
class Scale:
    """Sizes and patience. ``brief`` measures the ends of each series of widths and leaves twins of a series out."""

    pace: Pace
    brief: bool = False
    shrink: int = 1
    """By how much every array is shorter along each dimension."""
    steps: int = 2_928
    """Times of the field that goes from store to store."""
    rounds: int = 5
    decades: int = 29_220
    """Times of the long field; 0 leaves it out."""
    disk_bytes: int = 16 * 10**9


FULL = Scale(Pace(rounds=15, patience=1.5, sample=1.5))
QUICK = Scale(Pace(rounds=5, patience=0.1, sample=0.03), brief=True, steps=732, rounds=2, decades=0, disk_bytes=10**9)


class Bench(Run[Scale, Peer]):
    """One run of windows."""

    @property
    def pace(self) -> Pace:
        return self.scale.pace

    def shrink_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return tuple(max(1, length // self.scale.shrink) for length in shape)

    def choose_cases(self, cases: Sequence[Item]) -> list[Item]:
        """All cases, or in a brief run the first and the last."""
        return [*cases[:1], *cases[1:][-1:]] if self.scale.brief else list(cases)
