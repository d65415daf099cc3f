"""Networks of minima and maxima: merging sorted lists without looking at the data.

A network runs the same steps whatever the values are, so a step can work on many windows at once, one per lane.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

LOW, HIGH = 0, 1  # of a compared pair


class Network:
    """A graph of minima and maxima over inputs; equal steps are kept once.

    Nodes 0..inputs-1 are the inputs. Node ``inputs + 2 * k`` is the smaller, ``inputs + 2 * k + 1`` the larger value of
    the k-th compared pair.
    """

    def __init__(self, inputs: int) -> None:
        self.inputs = inputs
        self.pairs: list[tuple[int, int]] = []
        self._known: dict[tuple[int, int], int] = {}

    def compare(self, one: int, other: int) -> tuple[int, int]:
        """The smaller and the larger of two nodes."""
        key = (one, other) if one < other else (other, one)
        place = self._known.get(key)
        if place is None:
            place = self._known[key] = len(self.pairs)
            self.pairs.append(key)
        return self.inputs + 2 * place, self.inputs + 2 * place + 1

    def merge(self, one: Sequence[int], other: Sequence[int]) -> list[int]:
        """Two sorted lists as one, by Batcher's odd-even merge (Knuth 5.3.4, for any lengths)."""
        if not one or not other:
            return [*one, *other]
        if len(one) == len(other) == 1:
            return [*self.compare(one[0], other[0])]
        even, odd = self.merge(one[::2], other[::2]), self.merge(one[1::2], other[1::2])
        merged = [even[0]]
        for low, high in zip(odd, even[1:], strict=False):
            merged += self.compare(low, high)
        paired = min(len(odd), len(even) - 1)
        return [*merged, *odd[paired:], *even[1 + paired :]]

    def merge_ranks(self, one: Sequence[int], other: Sequence[int], first: int, last: int) -> list[int]:
        """Ranks ``first`` to ``last`` (excluded) of two sorted lists together."""
        # What is certainly below or above these ranks need not be looked at.
        skip_one, skip_other = max(0, first - len(other)), max(0, first - len(one))
        one, other = one[skip_one:last], other[skip_other:last]
        first, last = first - skip_one - skip_other, last - skip_one - skip_other
        if last - first <= 2 and one and other and _picking_is_cheaper(len(one), len(other), first, last):
            return [self.pick(one, other, rank) for rank in range(first, last)]
        return self.merge(one, other)[first:last]

    def pick(self, one: Sequence[int], other: Sequence[int], rank: int) -> int:
        """The value of one rank of two sorted lists: the smallest maximum of what rank + 1 values could end with."""
        best = -1
        for taken in range(max(0, rank + 1 - len(other)), min(len(one), rank + 1) + 1):
            rest = rank + 1 - taken
            ends = [one[taken - 1]] * (taken > 0) + [other[rest - 1]] * (rest > 0)
            end = ends[0] if len(ends) == 1 else self.compare(ends[0], ends[1])[HIGH]
            best = end if best < 0 else self.compare(best, end)[LOW]
        return best

    def live(self, outputs: Iterable[int]) -> npt.NDArray[np.bool_]:
        """Which nodes the outputs depend on."""
        used = np.zeros(self.inputs + 2 * len(self.pairs), bool)
        used[list(outputs)] = True
        for place in range(len(self.pairs) - 1, -1, -1):
            node = self.inputs + 2 * place
            if used[node] or used[node + 1]:
                used[list(self.pairs[place])] = True
        return used

    def steps(self, outputs: Iterable[int]) -> int:
        """How many minima and maxima the outputs need."""
        return int(self.live(outputs)[self.inputs :].sum())


@functools.lru_cache(maxsize=4096)
def _picking_is_cheaper(one: int, other: int, first: int, last: int) -> bool:
    lists = range(one), range(one, one + other)
    merging, picking = Network(one + other), Network(one + other)
    merged = merging.merge(*lists)[first:last]
    return picking.steps([picking.pick(*lists, rank) for rank in range(first, last)]) < merging.steps(merged)
