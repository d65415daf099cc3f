"""The aggregates of order, shape and two arguments: one table of what they are by the textbook, and data to try.

Every place where an aggregate can stand is checked against this table.
"""

from __future__ import annotations

import datetime
import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import window_oracle
import windrow as wr

Array = npt.NDArray[Any]
Pairs = Sequence[tuple[Any, Any]]
"""The values of x and y in a neighbourhood, in order; None is missing."""


@dataclass(frozen=True)
class Wanted:
    """One aggregate: how it is asked for, and what it is of the values (or pairs) that are present."""

    aggregate: Any
    answer: Callable[[list[Any]], Any]
    pairs: bool = False
    exact: bool = False
    any_type: bool = False
    """Whether it takes strings and datetimes, too."""

    def of(self, pairs: Pairs, min_count: int = 0) -> Any:
        """The result over a neighbourhood; None if it is missing."""
        there: list[Any] = [p for p in pairs if None not in p] if self.pairs else [x for x, _ in pairs if x is not None]
        return self.answer(there) if there and len(there) >= min_count else None


def _single(name: str) -> Callable[[list[Any]], Any]:
    return lambda values: window_oracle.aggregate(name, None, values, len(values))


def _paired(name: str) -> Callable[[list[Any]], Any]:
    return lambda pairs: window_oracle.of_pairs(name, pairs)


TABLE: Mapping[str, Wanted] = {
    "wavg": Wanted(wr.avg("x", weight="y"), _paired("wavg"), pairs=True),
    "covar": Wanted(wr.covar("x", "y"), _paired("covar"), pairs=True),
    "covar_pop": Wanted(wr.covar_pop("x", "y"), _paired("covar_pop"), pairs=True),
    "corr": Wanted(wr.corr("x", "y"), _paired("corr"), pairs=True),
    "first": Wanted(wr.first("x"), lambda values: values[0], exact=True, any_type=True),
    "last": Wanted(wr.last("x"), lambda values: values[-1], exact=True, any_type=True),
    "range": Wanted(wr.range("x"), _single("range"), exact=True),
    "skew": Wanted(wr.skew("x"), _single("skew")),
    "kurtosis": Wanted(wr.kurtosis("x"), _single("kurtosis")),
}

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
NUMBERS = ("bool", *INTEGERS, "float32", "float64")
KINDS = (*NUMBERS, "datetime", "string")


def wanted_for(kind: str) -> dict[str, Wanted]:
    """The aggregates that take values of a type."""
    return {name: one for name, one in TABLE.items() if kind in NUMBERS or one.any_type}


def values_of(kind: str, count: int, random: np.random.Generator) -> Array:
    """Values with ties, some of them far from the others."""
    few = random.integers(0, 90, count)
    far = np.where(random.random(count) < 0.2, 30, 0)
    if kind == "bool":
        return few % 2 == 0
    if kind == "string":
        return np.array([f"s{k % 7}ä" for k in few], np.dtypes.StringDType())
    if kind == "datetime":
        return np.datetime64("2012-02-28T23:00", "us") + few * np.timedelta64(17, "m")
    if kind in INTEGERS:
        return (few + far - (50 if kind.startswith("int") else 0)).astype(kind)
    return (random.normal(size=count) * (1 + far) + np.round(few / 30)).astype(kind)


@dataclass(frozen=True, eq=False)
class Data:
    """Two columns of equal length with missing values; ``cells`` are those that a sparse array has."""

    kind: str
    other: str
    x: Array
    y: Array
    x_there: Array
    y_there: Array
    cells: Array

    def pairs(self, cells: Iterable[int]) -> list[tuple[Any, Any]]:
        return [(_plain(self.x, self.x_there, k), _plain(self.y, self.y_there, k)) for k in cells]

    def masked(self, name: str, shape: tuple[int, ...]) -> Any:
        """A column as an array, missing values masked; floats have NaN beside."""
        values, there = getattr(self, name), getattr(self, f"{name}_there")
        if values.dtype.kind == "f":
            return np.where(there, values, values.dtype.type(np.nan)).reshape(shape)
        return np.ma.MaskedArray(values.reshape(shape), ~there.reshape(shape))

    def listed(self, name: str) -> list[Any]:
        """A column as Python values, None where missing."""
        values, there = getattr(self, name), getattr(self, f"{name}_there")
        return [_plain(values, there, k) for k in range(len(values))]


def _plain(values: Array, there: Array, k: int) -> Any:
    return values[k].item() if there[k] and values.dtype.kind != "T" else str(values[k]) if there[k] else None


@functools.lru_cache
def made(kind: str, count: int, seed: int = 0, *, only_floats: bool = False) -> Data:
    """Data of a type, with a second argument of some other one; a fifth is missing, or of floats only."""
    random = np.random.default_rng([seed, KINDS.index(kind)])
    numbers = list(NUMBERS)
    other = numbers[(KINDS.index(kind) * 5 + 3 + seed) % len(numbers)]
    x, y = values_of(kind, count, random), values_of(other, count, random)
    there = [random.random(count) >= (0.0 if only_floats and values.dtype.kind != "f" else 0.2) for values in (x, y)]
    return Data(kind, other, x, y, there[0], there[1], random.random(count) < 0.7)


def cleaned(value: Any) -> Any:
    """A result as a Python value; None if it is missing."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.item()
    if isinstance(value, datetime.datetime):
        value = value.replace(tzinfo=None)
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    return value


def check(name: str, found: Any, pairs: Pairs, min_count: int = 0, kind: str = "float64", spread: float = 0.0) -> None:
    """``found`` is what an aggregate gave over these cells. ``spread`` loosens it where values lie far from 0."""
    one = TABLE[name]
    wanted, found = cleaned(one.of(pairs, min_count)), cleaned(found)
    if wanted is None or found is None:
        assert wanted is None, (name, "is missing", wanted, pairs)
        assert found is None, (name, found, "should be missing", pairs)
    elif one.exact and not (name == "range" and kind == "float32"):
        assert found == wanted, (name, pairs)
    else:
        size = [
            abs(float(x)) * (abs(float(y)) if name.startswith("covar") else 1) for x, y in pairs if None not in (x, y)
        ]
        near = 1e-9 * max([1.0, *size]) if one.pairs else 1e-8
        rough = 1e-6 if kind == "float32" and name == "range" else 1e-8
        assert abs(found - wanted) <= max(near, rough * abs(wanted)) + spread, (name, found, wanted, pairs)
