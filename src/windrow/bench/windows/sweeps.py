"""Paper 002 section 4.3: windows of 500×50×5 swept along the first dimension and along the last, dense and sparse."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from windrow.aggregates.aggregate import Aggregate
from windrow.api.database import connect
from windrow.api.sliding import sliding
from windrow.bench.race import Contender, compiling_seconds, race
from windrow.bench.report import Measurement
from windrow.bench.tables import Line, Ratio, Table
from windrow.bench.timing import Action
from windrow.bench.windows.scale import Bench
from windrow.errors import DataError
from windrow.model.window import corner

SHAPE, WINDOW = (520, 54, 10), (500, 50, 5)
"""Little larger than a window, so that the wrong axis takes seconds and not hours."""

SHARE = 0.1
"""Of the cells, how many the sparse array has."""

NAMES = ("i", "j", "k")
GAIN = 5.0
"""By how much the right axis must win; the paper's 100 counts cells, and what a step costs besides is not in it."""


def measure_sweeps(bench: Bench) -> Iterator[Table | Measurement]:
    """The section's example both ways."""
    shape = bench.shrink_shape(SHAPE)
    window = tuple(min(pair) for pair in zip(bench.shrink_shape(WINDOW), shape, strict=True))
    values = np.random.default_rng(17).integers(0, 1001, shape).astype(np.float64)
    lines = []
    for aggregate in ("sum", "max"):
        ways = {axis: functools.partial(sliding, values, aggregate, window, sweep=axis) for axis in (0, 2)}
        _check(f"dense {aggregate}", np.array_equal(ways[0](), ways[2]()))
        lines.append(_line(bench, f"dense {aggregate}", window, ways))
    with connect(bench.folder / "sweeps", progress=False) as database:
        spans = ", ".join(f"{name}=0:{length - 1}" for name, length in zip(NAMES, shape, strict=True))
        array = database.create("S", f"<v: float64> [{spans}]", sparse=True)
        at = np.nonzero(np.random.default_rng(18).random(shape) < SHARE)
        array.insert({**dict(zip(NAMES, at, strict=True)), "v": values[at]})
        extents: dict[str, Any] = {name: corner(width) for name, width in zip(NAMES, window, strict=True)}
        for aggregate in ("sum", "max"):
            asked = array.window(**extents)
            queries = {axis: asked.agg(v=Aggregate(aggregate, "v"), sweep=NAMES[axis]) for axis in (0, 2)}
            _check(f"sparse {aggregate}", queries[0].compute().equals(queries[2].compute()))
            lines.append(_line(bench, f"sparse {aggregate}", window, {n: q.compute for n, q in queries.items()}))
    sizes = "×".join(map(str, window))
    ratio = Ratio("last / first", "sweeping k", "sweeping i")
    about = (
        "A step along i brings 250 cells, a step along k 25,000: the paper expects a hundredfold. Windows are clipped."
    )
    yield Table("paper-002", f"Paper 002 section 4.3: windows of {sizes}", about, tuple(lines), (ratio,))
    for line in lines:
        gain = line.ratio(ratio) or math.nan
        what = f"{line.case} over {sizes}: sweeping the widest dimension, over the last"
        yield Measurement("002 §4.3", what, gain, "×", GAIN, "at least")


def _line(bench: Bench, case: str, window: tuple[int, ...], ways: Mapping[int, Action]) -> Line:
    contenders = []
    for axis, action in ways.items():
        compiling, _ = compiling_seconds(action)
        contenders.append(Contender(f"sweeping {NAMES[axis]}", action, 1.0, compiling))
    return Line(case, max(window), race(contenders, bench.pace), 100.0)


def _check(case: str, same: bool) -> None:
    if not same:
        raise DataError(f"{case}: the two sweeps disagree", hint="This is a bug")
