"""The papers' tables and figures again: what they measured, and the speed-ups that their text or tables state.

Where a paper prints times and no ratio, the ratio of its times is given. Figures survive as captions only: of them
just the numbers in the text are known, and the widths between the stated ends are ours.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from windrow.bench.race import Array, Problem, mean_width, methods, race
from windrow.bench.report import Measurement
from windrow.bench.tables import SPEED_UP, Line, Table
from windrow.bench.windows.peers import peer_contenders
from windrow.bench.windows.scale import Bench
from windrow.samples import temperature_field
from windrow.samples.arrays import HIGHEST, SHAPES

Window = tuple[int, ...]


@dataclass(frozen=True)
class Published:
    """A table or figure: an aggregate of an array over growing windows."""

    paper: str
    place: str
    array: str
    aggregate: str
    windows: tuple[Window, ...]
    speed_ups: tuple[float | None, ...] = ()
    percent: float | None = None
    about: str = ""
    quick: bool = True

    def title(self, shape: tuple[int, ...]) -> str:
        """With the shape that was measured, which a small run makes smaller than the paper's."""
        call = self.aggregate if self.percent is None else f"{self.aggregate} {self.percent:g}"
        return f"Paper {self.paper} {self.place}: {call} on {by(shape)}"

    @property
    def sweeps_alone(self) -> bool:
        """Whether only the last width grows, the one that the papers sweep along."""
        return len({window[:-1] for window in self.windows}) == 1

    def speed_up(self, window: Window) -> float | None:
        return dict(zip(self.windows, self.speed_ups, strict=True)).get(window) if self.speed_ups else None


@dataclass(frozen=True)
class Made:
    """An input: whole numbers up to ``highest``, or temperatures so many times a day."""

    shape: tuple[int, ...]
    highest: int = 0
    per_day: int = 0

    def values(self, shape: tuple[int, ...]) -> Array:
        if self.per_day:
            lon, lat, time = shape
            return temperature_field(lon, lat, time, self.per_day)[0]
        return np.random.default_rng(13).integers(0, self.highest + 1, shape).astype(np.float64)


ARRAYS = {
    "2-D": Made((1000, 1000), 1000),
    "3-D": Made((80, 80, 80), 1000),
    **{name: Made(shape, HIGHEST) for name, shape in SHAPES.items()},
    "year": Made((288, 145, 366), per_day=1),
    "January": Made((288, 145, 124), per_day=4),
}


def by(shape: tuple[int, ...]) -> str:
    return "×".join(f"{length:,}" for length in shape)


def square(*widths: int) -> tuple[Window, ...]:
    return tuple((width, width) for width in widths)


def cube(*widths: int) -> tuple[Window, ...]:
    return tuple((width, width, width) for width in widths)


def _over(naive: tuple[float, ...], incremental: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(slow / fast for slow, fast in zip(naive, incremental, strict=True))


def _write_range(least: int, most: int) -> str:
    return f"The paper's incremental times: {least} to {most} ms."


_LINE = tuple((width,) for width in (100, 500, 1000, 1500, 2000, 2500))
_ONLY_LAST = (None,) * (len(_LINE) - 1)
_SERIES = tuple((1, 1, width) for width in (5, 10, 15, 20, 25, 30))
_COLUMNS = tuple((width, width, 5) for width in (1, 2, 3, 4, 5))
_SQUARES_002 = square(5, 10, 20, 30, 40, 50)
_CUBES_002 = cube(5, 10, 15, 20, 25)
_FIGURE_12 = square(5, 10, 20, 30, 40, 50)
_FIGURE_13 = cube(3, 5, 10, 15, 20)
_FLAT_2D = tuple((40, width) for width in (10, 20, 30, 40, 50, 60, 70))
_FLAT_3D = tuple((20, 20, width) for width in (10, 20, 30, 40, 50, 60))
_PROPORTIONAL = "The paper states no number here, only that the speed-up is proportional to the last width."

PUBLISHED = (
    Published("002", "Table 1", "2-D", "avg", _SQUARES_002,
              _over((590, 1890, 6950, 14930, 26000, 39890), (50, 70, 120, 180, 250, 300))),
    Published("002", "Table 1", "2-D", "max", _SQUARES_002,
              _over((590, 1880, 6980, 14960, 25930, 40040), (260, 320, 390, 470, 550, 630))),
    Published("002", "Table 2", "3-D", "avg", _CUBES_002,
              _over((1240, 7680, 23850, 50540, 88490), (80, 260, 510, 900, 1330))),
    Published("002", "Table 2", "3-D", "max", _CUBES_002,
              _over((1210, 7640, 23320, 50610, 88160), (190, 460, 850, 1400, 2040)), quick=False),
    Published("002", "Table 3", "2-D", "avg", _FLAT_2D, about=_write_range(240, 250)),
    Published("002", "Table 3", "2-D", "max", _FLAT_2D, about=_write_range(550, 570), quick=False),
    Published("002", "Table 4", "3-D", "sum", _FLAT_3D, about=_write_range(900, 940), quick=False),
    Published("002", "Table 4", "3-D", "min", _FLAT_3D, about=_write_range(1350, 1410)),
    Published("000", "Fig. 11", "arr1D", "min", _LINE, (*_ONLY_LAST, 17.9)),
    Published("000", "Fig. 11", "arr1D", "sum", _LINE, (*_ONLY_LAST, 12.5)),
    Published("000", "Fig. 11", "arr1D", "max", _LINE, quick=False),
    Published("000", "Fig. 11", "arr1D", "avg", _LINE, quick=False),
    *(Published("000", "Fig. 12", "arr2D", name, _FIGURE_12, about=_PROPORTIONAL, quick=name == "min")
      for name in ("min", "max", "sum", "avg")),
    *(Published("000", "Fig. 13", "arr3D", name, _FIGURE_13, about=_PROPORTIONAL, quick=name == "min")
      for name in ("min", "max", "sum", "avg")),
    *(Published("000", "Fig. 15", "year", "percentile", _SERIES, (None, None, None, None, None, 10.2), percent,
                quick=percent == 50) for percent in (25, 50, 75)),
    *(Published("000", "Fig. 16", "January", "percentile", _COLUMNS, (), percent, _PROPORTIONAL, quick=percent == 50)
      for percent in (25, 50, 75)),
    Published("001", "Table 1", "year", "percentile", _SERIES, (2.46, 4.78, 7.03, 9.25, 11.71, 13.49), 70),
    Published("001", "Table 2", "January", "percentile", _COLUMNS, (2.41, 2.55, 2.68, 2.56, 2.51), 70),
)  # fmt: skip


def measure_paper(bench: Bench, paper: str) -> Iterator[Table | Measurement]:
    """All tables and figures of one paper, and how proportional the speed-ups are."""
    for published in PUBLISHED:
        if published.paper == paper and (published.quick or not bench.scale.brief):
            table = measure_published(bench, published)
            yield table
            yield from proportionality(published, table, bench.shrink_shape(ARRAYS[published.array].shape)[-1])


def measure_published(bench: Bench, published: Published) -> Table:
    made = ARRAYS[published.array]
    values = made.values(bench.shrink_shape(made.shape))
    lines = []
    for window in bench.choose_cases(_choose_windows(published, values.shape, bench.scale.brief)):
        problem = Problem(values, published.aggregate, window, published.percent)
        contenders = [*methods(problem, bench.pace), *peer_contenders(problem, bench.pace, bench.peers)]
        width = window[-1] if published.sweeps_alone else max(window)
        result = race(contenders, bench.pace)
        lines.append(Line("×".join(map(str, window)), width, result, published.speed_up(window)))
    return Table(f"paper-{published.paper}", published.title(values.shape), published.about, tuple(lines))


def _choose_windows(published: Published, shape: tuple[int, ...], brief: bool) -> list[Window]:
    """The windows no wider than the array; in a brief run not those whose last width is not the one swept."""
    fitting = [w for w in published.windows if all(width <= n for width, n in zip(w, shape, strict=True))]
    if brief and published.sweeps_alone:
        return [window for window in fitting if window[-1] == max(window)]
    return fitting


def proportionality(published: Published, table: Table, length: int) -> Iterator[Measurement]:
    """How flat in the swept width the papers' method is, and how proportional to it its speed-up.

    windrow sweeps along the widest dimension (002 §4.3), so only windows whose last width is the widest count.
    """
    swept = [line for line in table.lines if line.width == max(map(int, line.case.split("×")))]
    if not published.sweeps_alone or len(swept) < 2:
        return
    first, last = swept[0], swept[-1]
    # The search tree costs the logarithm of the window (001 §4.2); lists and heaps should not notice it.
    flat = math.log(last.width) / math.log(first.width) if published.aggregate == "percentile" else 1.25
    subject = f"{published.paper} {published.place}"
    call = published.aggregate if published.percent is None else f"{published.aggregate} {published.percent:g}"
    growth = last.result.seconds["incremental"] / first.result.seconds["incremental"]
    between = f"w = {first.width:,} to {last.width:,}"
    yield Measurement(subject, f"{call}: growth of incremental's time, {between}", growth, "×", flat, "at most")
    gains = (first.ratio(SPEED_UP) or math.nan, last.ratio(SPEED_UP) or math.nan)
    widths = [mean_width(length, line.width) for line in (first, last)]
    share = gains[1] / gains[0] / (widths[1] / widths[0])
    detail = f"over naive {gains[0]:.3g}× at the first width, {gains[1]:.3g}× at the last; 1 is proportional"
    what = f"{call}: speed-up against width, {between}"
    yield Measurement(subject, what, share, "", 0.8, "at least", detail)
