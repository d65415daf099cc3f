"""Which components of an offset a norm allows, and which a list of offsets does: whole numbers throughout.

Whole numbers add up the same in whatever order, so that testing one offset and listing all of them agree exactly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from windrow.model.halo import UNLIMITED
from windrow.model.shape_terms import Norm

Int64Array = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

UNIT = 2**50
"""What ``(|x| / radius) ** power`` is counted in where powers of whole numbers would leave int64."""

SLACK = 1e-12
"""How much more than 1 such shares may add up to: so that roots, which doubles hold inexactly, mean themselves."""

LARGEST_COST = 2**62


@dataclass(frozen=True, slots=True)
class Distance:
    """The components on ``axes`` cost at most ``limit`` together: |x| in L1, x² in L2, 1 if not 0 in Hamming.

    In Lp a component costs ``|x| ** power`` or, where that is no whole number or too large a one, the share
    ``(|x| / radius) ** power`` in units of 2^-50. A ``radius`` of 0 stands for the former.
    """

    kind: str
    limit: int
    axes: tuple[int, ...]
    power: float = 1.0
    radius: float = 0.0

    def cost(self, component: Int64Array) -> Int64Array:
        if self.kind == "Hamming":
            return np.asarray(component != 0, np.int64)
        length: Int64Array = np.abs(component)
        if self.kind == "L1":
            return length
        if self.kind == "L2":
            return length * length
        if not self.radius:
            powers: Int64Array = length ** np.int64(self.power)
            return powers
        return np.rint((length / self.radius) ** self.power * UNIT).astype(np.int64)

    def width(self, budget: Int64Array) -> Int64Array:
        """The longest component that costs at most ``budget``, or -1 if none does."""
        if self.kind == "L1":
            return np.maximum(budget, -1)
        if self.kind == "Hamming":
            return np.where(budget >= 1, UNLIMITED, np.where(budget == 0, 0, -1))
        if self.kind == "Lp":
            return self._searched_width(budget)
        root = np.sqrt(np.maximum(budget, 0)).astype(np.int64)
        root -= root * root > budget
        root += (root + 1) * (root + 1) <= budget
        return np.where(budget < 0, -1, root)

    def _searched_width(self, budget: Int64Array) -> Int64Array:
        """Bisection between what surely fits and what surely does not."""
        longest = round(self.limit ** (1 / self.power)) + 1 if not self.radius else int(self.radius * 1.01) + 1
        fits, fails = np.zeros(budget.shape, np.int64), np.full(budget.shape, longest, np.int64)
        for _ in range(longest.bit_length()):
            middle = (fits + fails) // 2
            good = self.cost(middle) <= budget
            fits, fails = np.where(good, middle, fits), np.where(good, fails, middle)
        return np.where(budget < 0, -1, fits)


def distance_of(norm: Norm, axes: tuple[int, ...]) -> Distance:
    """The bound that a norm (but Linf, which bounds every component by itself) puts on the components together."""
    if norm.kind != "Lp" or norm.power is None:
        return Distance(norm.kind, _largest_power(norm.radius, 2 if norm.kind == "L2" else 1), axes)
    power = norm.power
    if power == int(power) and (int(norm.radius) + 1) ** int(power) * len(axes) < LARGEST_COST:
        return Distance("Lp", _largest_power(norm.radius, int(power)), axes, power)
    return Distance("Lp", int(UNIT * (1 + SLACK)), axes, power, norm.radius)


def longest_component(norm: Norm) -> int:
    """The longest component that a norm allows."""
    if norm.kind != "Lp" or norm.radius == 0:
        return math.floor(norm.radius)
    distance = distance_of(norm, (0,))
    if distance.radius:
        return math.floor(norm.radius * (1 + SLACK))
    return int(distance.width(np.asarray(distance.limit)))  # a radius that stands for the root above it reaches there


def _largest_power(radius: float, power: int) -> int:
    """The largest whole number that is at most ``radius ** power``.

    ``math.sqrt(3)`` lies a little below the root of 3 and still means it: a radius that is the root of the next
    whole number, as doubles go (two units in the last place, for a square root none), is taken for it.
    """
    if radius == int(radius):
        whole: int = int(radius) ** power
        return whole
    whole = math.floor(Fraction(radius) ** power)
    if power == 1:
        return whole
    if power == 2:
        return whole + 1 if math.sqrt(whole + 1) == radius else whole
    widest = Fraction(radius) + 2 * Fraction(math.ulp(radius))
    return whole + 1 if widest**power >= whole + 1 else whole


@dataclass(frozen=True, slots=True)
class Listed:
    """The components on ``axes``, ascending, are one of the sorted ``rows``."""

    rows: tuple[tuple[int, ...], ...]
    axes: tuple[int, ...]

    def column(self, axis: int) -> Int64Array:
        return np.array([row[self.axes.index(axis)] for row in self.rows], np.int64)

    def mask(self, axes: Sequence[int], components: Sequence[Int64Array]) -> BoolArray:
        """Where the components on ``axes``, some or all of the list's, are those of a row."""
        shape = np.broadcast_shapes(*(c.shape for c in components))
        found = np.full(shape, bool(self.rows))
        codes, listed = np.zeros(shape, np.int64), np.zeros(len(self.rows), np.int64)
        for axis, component in zip(axes, components, strict=True):
            if not self.rows:
                break
            # Numbering the listed values, then the pairs met so far, keeps codes small however far offsets reach.
            values, ranks = np.unique(self.column(axis), return_inverse=True)
            place = np.minimum(np.searchsorted(values, component), len(values) - 1)
            found &= values[place] == component
            pairs, listed = np.unique(listed * len(values) + ranks, return_inverse=True)
            wanted = codes * len(values) + place
            codes = np.minimum(np.searchsorted(pairs, wanted), len(pairs) - 1)
            found &= pairs[codes] == wanted
        return found

    def reflect(self) -> Listed:
        return Listed(tuple(sorted(tuple(-o for o in row) for row in self.rows)), self.axes)
