"""Numbers of about 32 digits with a bound on their error: pairs of doubles, whole arrays at a time.

A pair's value is the unrounded sum of its two doubles. Sums and products of doubles are exact in it (Knuth, Dekker);
everything else is off by no more than the bound says.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Float64Array = npt.NDArray[np.float64]

_SPLIT = 2.0**27 + 1
_HALF_UNIT = 2.0**-103
"""What a sum of two pairs is off by, of both together; a product is off by twice as much."""
TINY = 2.0**-1060
"""What a product may lose because doubles do not become any smaller."""


class Bounded(NamedTuple):
    """``high + low``, off by at most ``error``."""

    high: Float64Array
    low: Float64Array
    error: Float64Array

    @property
    def is_zero(self) -> npt.NDArray[np.bool_]:
        return np.asarray((self.high == 0) & (self.low == 0))

    def plus(self, other: Bounded) -> Bounded:
        total, rest = two_sum(self.high, other.high)
        high, low = two_sum(total, rest + (self.low + other.low))
        lost = np.where(self.is_zero | other.is_zero, 0.0, _HALF_UNIT * (np.abs(self.high) + np.abs(other.high)))
        return Bounded(high, low, self.error + other.error + lost)

    def minus(self, other: Bounded) -> Bounded:
        return self.plus(Bounded(-other.high, -other.low, other.error))

    def times(self, other: Bounded) -> Bounded:
        product, rest = two_product(self.high, other.high)
        high, low = two_sum(product, rest + (self.high * other.low + self.low * other.high))
        size, most = np.abs(self.high), np.abs(other.high)
        own = size * other.error + most * self.error + self.error * other.error
        return Bounded(high, low, own + 2 * _HALF_UNIT * np.abs(product) + TINY)

    def over(self, divisor: Float64Array) -> Bounded:
        """Divided by doubles that are exact, such as counts."""
        quotient = self.high / divisor
        product, rest = two_product(quotient, divisor)
        left = ((self.high - product) - rest + self.low) / divisor
        high, low = two_sum(quotient, left)
        return Bounded(high, low, self.error / np.abs(divisor) + 4 * _HALF_UNIT * np.abs(high) + TINY)


def exactly(values: Float64Array) -> Bounded:
    """Doubles as they are."""
    nothing = np.zeros_like(values)
    return Bounded(values, nothing, nothing)


def two_sum(a: Float64Array, b: Float64Array) -> tuple[Float64Array, Float64Array]:
    """The sum of two doubles, and what rounding took from it."""
    total = a + b
    back = total - a
    return total, (a - (total - back)) + (b - back)


def two_product(a: Float64Array, b: Float64Array) -> tuple[Float64Array, Float64Array]:
    """The product of two doubles, and what rounding took from it."""
    product = a * b
    a_high, a_low = _halves(a)
    b_high, b_low = _halves(b)
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def _halves(a: Float64Array) -> tuple[Float64Array, Float64Array]:
    """A double as the sum of two of 26 bits each."""
    wide = _SPLIT * a
    high = wide - (wide - a)
    return high, a - high
