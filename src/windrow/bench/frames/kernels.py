"""``wr.framed`` against DuckDB on one thread: trailing and pseudo-random frames, few values and unique ones."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from windrow.bench.frames.peers import frame_peers
from windrow.bench.frames.race import AUTO, Array, FrameProblem, Spread, frame_methods, race_by_clock
from windrow.bench.frames.scale import FramesBench
from windrow.bench.report import Measurement
from windrow.bench.tables import Line, Ratio, Table
from windrow.bench.timing import duration

PRIME = 7919
DUCKDB = Ratio("DuckDB / auto", "DuckDB", "auto")
POLARS = Ratio("polars / auto", "polars", "auto")
FEW, UNIQUE = "values 0..99", "unique values"


@dataclass(frozen=True)
class Series:
    """One aggregate of one kind of values over growing frames, and how many times faster than DuckDB it should be."""

    aggregate: str
    values: str
    target: float
    random: bool = False

    @property
    def title(self) -> str:
        frames = "pseudo-random frames" if self.random else "the last W rows"
        return f"{self.aggregate} of {self.values} over {frames}"

    def problem(self, values: Array, width: int) -> FrameProblem:
        return FrameProblem(values, self.aggregate, width, Spread(PRIME, width) if self.random else None)


SERIES = (
    Series("count_distinct", FEW, 100),
    Series("count_distinct", UNIQUE, 20),
    Series("median", FEW, 50),
    Series("median", UNIQUE, 20),
    Series("mode", FEW, 20),
    *(Series(aggregate, FEW, 30, random=True) for aggregate in ("count_distinct", "median", "mode")),
)


def table_values(kind: str, rows: int) -> Array:
    random = np.random.default_rng(17)
    return random.integers(0, 100, rows) if kind == FEW else random.permutation(rows)


def measure_kernels(bench: FramesBench) -> Iterator[Table | Measurement]:
    """Every series at every width, and its targets at each."""
    rows = bench.scale.kernel_rows
    for series in SERIES:
        values = table_values(series.values, rows)
        lines, clocks = [], []
        for width in bench.scale.widths:
            problem, pace = series.problem(values, width), bench.scale.kernel_pace
            contenders = [*frame_methods(problem, pace, (AUTO,)), *frame_peers(problem, pace, bench.peers)]
            result, clock = race_by_clock(contenders, pace)
            lines.append(Line(f"W = {width:,}", width, result))
            clocks.append(clock)
        about = "Processor time of one thread; by the clock: " + _describe(lines, clocks)
        title = f"{series.title}, {rows:,} rows"
        yield Table("kernels", title, about, tuple(lines), (DUCKDB, POLARS))
        yield worst_ratio(series, rows, lines, clocks)


def _describe(lines: list[Line], clocks: list[dict[str, float]]) -> str:
    each = (
        f"{line.case} " + ", ".join(f"{name} {duration(took)}" for name, took in clock.items())
        for line, clock in zip(lines, clocks, strict=True)
    )
    return "; ".join(each) + "."


def worst_ratio(series: Series, rows: int, lines: list[Line], clocks: list[dict[str, float]]) -> Measurement:
    """The smallest of the ratios of processor times, with those of all widths by processor and by the clock."""
    what = f"{series.title} against DuckDB, {rows:,} rows"
    ratios = {line.case: ratio for line in lines if (ratio := line.ratio(DUCKDB))}
    if not ratios:
        return Measurement("kernels", what, math.nan, "×", series.target, "at least", "DuckDB is not installed")
    worst = min(ratios, key=ratios.__getitem__)
    detail = "; ".join(
        f"{line.case} {ratios[line.case]:.3g}× (by the clock {_by_clock(clock):.3g}×)"
        for line, clock in zip(lines, clocks, strict=True)
    )
    return Measurement("kernels", f"{what}, worst at {worst}", ratios[worst], "×", series.target, "at least", detail)


def _by_clock(clock: Mapping[str, float]) -> float:
    return clock["DuckDB"] / clock["auto"]
