"""How far apart two right results may lie: sums taken in another order are not the same to the last digit.

What is allowed is measured by the rows of a result itself, never by those of another: for sums and averages by those of
absolute values, for variances by mean squares. Two results are compared, each of which may be off by what SPEC allows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Float64Array = npt.NDArray[np.float64]

OF_SUMS = 4e-12
OF_SQUARES = 4e-9
OF_RATIOS = 1e-6
OF_USERS = 1e-9


@dataclass(frozen=True)
class Size:
    """An aggregate that says how large the values of a result are: of products of their absolute values.

    ``powers`` has how often each argument is a factor. Where ``signed``, values are taken as they are.
    """

    aggregate: str
    powers: tuple[int, ...] = (1,)
    signed: bool = False


@dataclass(frozen=True)
class Rounding:
    """How far an aggregate's results may be off, given the results and their ``sizes``."""

    sizes: tuple[Size, ...]
    allow: Callable[[Float64Array, Sequence[Float64Array]], Float64Array]


def _of_size(share: float) -> Callable[[Float64Array, Sequence[Float64Array]], Float64Array]:
    return lambda _, sizes: share * sizes[0]


def _root(values: Float64Array, sizes: Sequence[Float64Array]) -> Float64Array:
    """What a square may be off, told of its root."""
    squares = OF_SQUARES * sizes[0]
    return np.asarray(squares / np.maximum(np.abs(values), np.sqrt(squares)))


def _product(_: Float64Array, sizes: Sequence[Float64Array]) -> Float64Array:
    return np.asarray(OF_SQUARES * np.sqrt(sizes[0]) * np.sqrt(sizes[1]))


def _quotient(values: Float64Array, sizes: Sequence[Float64Array]) -> Float64Array:
    """Both the weighted sum and the sum of weights may be off."""
    products, weights, total = sizes
    return np.asarray(OF_SUMS * (products + np.abs(values) * weights) / np.abs(total))


def _own(share: float, least: float) -> Callable[[Float64Array, Sequence[Float64Array]], Float64Array]:
    return lambda values, _: np.asarray(share * np.maximum(np.abs(values), least))


SUM = Rounding((Size("sum"),), _of_size(OF_SUMS))
AVERAGE = Rounding((Size("avg"),), _of_size(OF_SUMS))
VARIANCE = Rounding((Size("avg", (2,)),), _of_size(OF_SQUARES))
DEVIATION = Rounding((Size("avg", (2,)),), _root)
COVARIANCE = Rounding((Size("avg", (2, 0)), Size("avg", (0, 2))), _product)
WEIGHTED = Rounding((Size("avg", (1, 1)), Size("avg", (0, 1)), Size("avg", (0, 1), signed=True)), _quotient)
RATIO = Rounding((), _own(OF_RATIOS, 1.0))
"""Correlations and the like have no unit: 1 is much."""
OF_USER = Rounding((), _own(OF_USERS, 0.0))
"""What a user's function rounds is not known, but for what comes out."""
