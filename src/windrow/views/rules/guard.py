"""A watch over states: none has fewer rows than none, and nothing leaves a result that is not in it.

Either means that what is kept is not that of the rows, be it damaged or wrongly patched before. It costs one look at
the smallest count that was touched, and is always on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from windrow.aggregates.states.layout import Layout
from windrow.aggregates.states.rule import AbsentError, State
from windrow.errors import CorruptionError

Int64Array = npt.NDArray[np.int64]
Places = Sequence[Int64Array]


@dataclass(frozen=True)
class Guard:
    """Looks at the states of one view, whose results lie along ``dimensions``."""

    view: str
    dimensions: tuple[str, ...]
    layout: Layout

    def follow(self, places: Places, change: Callable[[Int64Array], State]) -> State:
        """What ``change`` makes of all places; it takes the numbers of some of them."""
        every = np.arange(len(places[0]))
        try:
            return change(every)
        except AbsentError as error:
            number = _first_failing(every, change)
            raise self._error(places, number, error.what) from error

    def check(self, places: Places, state: State) -> None:
        """Stop where a state counts fewer rows or values than none."""
        for name in self.layout.counts:
            counts = state[name]
            if counts.min(initial=0) < 0:
                number = int(np.argmin(counts))
                raise self._error(places, number, f"it counts {int(counts[number])} rows")

    def _error(self, places: Places, number: int, what: str) -> CorruptionError:
        at = ", ".join(f"{name} = {int(column[number])}" for name, column in zip(self.dimensions, places, strict=True))
        return CorruptionError(
            f"what is kept of the view {self.view} at {at} is not that of its rows: {what}",
            hint=f"Compute it anew: refresh {self.view} full",
        )


def _first_failing(numbers: Int64Array, change: Callable[[Int64Array], State]) -> int:
    """A place that fails by itself: each is looked at alone, so that one half or the other fails."""
    while len(numbers) > 1:
        half = numbers[: len(numbers) // 2]
        try:
            change(half)
            numbers = numbers[len(half) :]
        except AbsentError:
            numbers = half
    return int(numbers[0])
