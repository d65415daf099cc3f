"""Windows by brute force in plain Python: cells gathered one by one, aggregated by the textbook."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

Cells = dict[tuple[int, ...], Any]
"""Position to value; None is a missing value, an absent position is no cell."""


def aggregate(name: str, parameter: float | None, values: Sequence[Any], cells: int) -> Any:
    """An aggregate of the present values of a window of ``cells`` cells; None if there is no result."""
    if name == "count":
        return len(values)
    if name == "count_all":
        return cells
    if name == "count_distinct":
        return len(set(values))
    if not values:
        return None
    if name in ("first", "last"):
        return values[0 if name == "first" else -1]
    return _OF_PRESENT[name](sorted(values), parameter)


def _sum(values: list[Any], _: Any) -> Any:
    if all(isinstance(value, int) for value in values):
        return sum(int(value) for value in values)
    finite = [value for value in values if math.isfinite(value)]
    if len(finite) < len(values):
        return sum(value for value in values if not math.isfinite(value))
    return float(sum(Fraction(value) for value in finite))


def _average(values: list[Any], _: Any) -> Any:
    total = _sum(values, None)
    return total / len(values) if not isinstance(total, int) else float(Fraction(total, len(values)))


def _variance(sample: bool, root: bool) -> Callable[[list[Any], Any], Any]:
    def of(values: list[Any], _: Any) -> Any:
        divisor = len(values) - 1 if sample else len(values)
        if divisor == 0:
            return None
        if not all(math.isfinite(value) for value in values):
            return math.nan
        mean = sum(Fraction(value) for value in values) / len(values)
        variance = float(sum((Fraction(value) - mean) ** 2 for value in values) / divisor)
        return math.sqrt(variance) if root else variance

    return of


def _range(values: list[Any], _: Any) -> Any:
    low, high = values[0], values[-1]
    return high != low if isinstance(low, bool) else high - low


def central(values: Sequence[Any], degree: int) -> Fraction:
    """The sum of powers of the distances from the mean, exactly."""
    mean = sum(Fraction(value) for value in values) / len(values)
    return sum(((Fraction(value) - mean) ** degree for value in values), Fraction(0))


def _has_shape(values: list[Any], least: int) -> bool:
    varies = len(values) >= least and values[0] != values[-1]
    return varies and all(math.isfinite(value) for value in values)


def _skew(values: list[Any], _: Any) -> Any:
    if not _has_shape(values, 3):
        return None
    n = len(values)
    return n * math.sqrt(n - 1) / (n - 2) * float(central(values, 3)) / float(central(values, 2)) ** 1.5


def _kurtosis(values: list[Any], _: Any) -> Any:
    if not _has_shape(values, 4):
        return None
    n = len(values)
    ratio = float(central(values, 4) / central(values, 2) ** 2)
    return n * (n + 1) * (n - 1) / ((n - 2) * (n - 3)) * ratio - 3 * (n - 1) ** 2 / ((n - 2) * (n - 3))


def of_pairs(name: str, pairs: Sequence[tuple[Any, Any]]) -> Any:
    """An aggregate of two arguments, of those pairs that have both; None if there is no result."""
    if not pairs:
        return None
    xs, ys = [x for x, _ in pairs], [y for _, y in pairs]
    if not all(math.isfinite(value) for value in (*xs, *ys)):
        # An infinity outweighs everything but another of the other sign, or a weight of 0.
        return sum(x * y for x, y in pairs) / sum(ys) if name == "wavg" and sum(ys) != 0 else None
    exact = [(Fraction(x), Fraction(y)) for x, y in pairs]
    if name == "wavg":
        weights = sum(y for _, y in exact)
        return None if weights == 0 else float(sum(x * y for x, y in exact) / weights)
    mean_x, mean_y = (sum(side) / len(pairs) for side in zip(*exact, strict=True))
    across = sum((x - mean_x) * (y - mean_y) for x, y in exact)
    if name == "corr":
        if len(set(xs)) < 2 or len(set(ys)) < 2:
            return None
        return float(across) / math.sqrt(float(central(xs, 2)) * float(central(ys, 2)))
    divisor = len(pairs) - (name == "covar")
    return None if divisor == 0 else float(across / divisor)


def _typed(number: float) -> Fraction:
    """0.3 means three tenths."""
    return Fraction(repr(number))


def _percentile(values: list[Any], percent: float) -> Any:
    rank = min(len(values), math.floor(_typed(percent) * len(values) / 100 + 1))
    return values[rank - 1]


def _disc(values: list[Any], quantile: float) -> Any:
    return values[max(1, math.ceil(_typed(quantile) * len(values))) - 1]


def _cont(values: list[Any], quantile: float | None) -> Any:
    place = _typed(0.5 if quantile is None else quantile) * (len(values) - 1)
    low, high = values[math.floor(place)], values[math.ceil(place)]
    if low == high:
        return float(low)
    if not (math.isfinite(low) and math.isfinite(high)):
        # Any share of an infinity is one; two that disagree are NaN.
        return low + high
    return float(Fraction(low) + (place - math.floor(place)) * (Fraction(high) - Fraction(low)))


def _mode(values: list[Any], _: Any) -> Any:
    counted = Counter(values)
    most = max(counted.values())
    return min(value for value, times in counted.items() if times == most)


_OF_PRESENT: dict[str, Callable[[list[Any], Any], Any]] = {
    "sum": _sum,
    "avg": _average,
    "var": _variance(True, False),
    "std": _variance(True, True),
    "var_pop": _variance(False, False),
    "std_pop": _variance(False, True),
    "min": lambda values, _: values[0],
    "max": lambda values, _: values[-1],
    "percentile": _percentile,
    "quantile_disc": _disc,
    "quantile_cont": _cont,
    "median": _cont,
    "quantile_index": lambda values, quantile: values[math.floor(_typed(quantile) * (len(values) - 1))],
    "mode": _mode,
    "range": _range,
    "skew": _skew,
    "kurtosis": _kurtosis,
}


def windows(
    cells: Cells,
    shape: Sequence[int],
    reaches: Sequence[Callable[[int], Sequence[int]]],
    steps: Sequence[int],
    wanted: tuple[str, float | None],
    *,
    whole_only: Sequence[Callable[[int], bool]] | None = None,
    min_count: int = 0,
) -> Cells:
    """The results, by result position counted from 0.

    ``reaches`` gives, for each axis and position, the positions that the window covers there, clipped to the array;
    ``whole_only`` whether it left the array nowhere.
    """
    name, parameter = wanted
    results: Cells = {}
    for result in itertools.product(*(range(-(-extent // step)) for extent, step in zip(shape, steps, strict=True))):
        position = tuple(index * step for index, step in zip(result, steps, strict=True))
        axes = [reach(p) for reach, p in zip(reaches, position, strict=True)]
        inside = sorted(cell for cell in itertools.product(*axes) if cell in cells)
        values = [cells[cell] for cell in inside if cells[cell] is not None]
        found = aggregate(name, parameter, values, len(inside))
        present = len(inside) if name == "count_all" else len(values)
        if present < min_count or (whole_only and not all(f(p) for f, p in zip(whole_only, position, strict=True))):
            found = None
        results[result] = found
    return results
