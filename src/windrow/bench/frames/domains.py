"""Values of many kinds: domains of 10 to 10 M, evenly drawn and with skew, and a fraction for each row."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import numpy as np

from windrow.api.framed import framed
from windrow.bench.frames.kernels import DUCKDB, POLARS
from windrow.bench.frames.peers import frame_peers
from windrow.bench.frames.race import AUTO, FrameProblem, frame_methods
from windrow.bench.frames.scale import FramesBench
from windrow.bench.race import Contender, compiling_seconds, race
from windrow.bench.report import Measurement
from windrow.bench.tables import Line, Ratio, Table
from windrow.errors import DataError
from windrow.samples import skewed_values

DOMAINS = (10, 1_000, 100_000, 10_000_000)
SKEWS = {"even": 0.0, "Zipf": 1.1}
FRACTIONS_SHARE = 1.5
"""A fraction for each row may take so many times as long as one for all."""


def measure_domains(bench: FramesBench) -> Iterator[Table | Measurement]:
    """Count distinct, median and mode by how many values there are and how they are spread; then fractions."""
    rows, pace = bench.scale.kernel_rows, bench.scale.kernel_pace
    width = min(bench.scale.spark_width, rows)
    tables = {
        (skew, domain): skewed_values(rows, domain, exponent) for skew, exponent in SKEWS.items() for domain in DOMAINS
    }
    for aggregate in ("count_distinct", "median", "mode"):
        lines = []
        for (skew, domain), values in tables.items():
            problem = FrameProblem(values, aggregate, width)
            contenders = [*frame_methods(problem, pace, (AUTO,)), *frame_peers(problem, pace, bench.peers)]
            lines.append(Line(f"{skew}, {domain:,} values", domain, race(contenders, pace)))
        title = f"{aggregate} over the last {width:,} of {rows:,} rows, by the values there are"
        yield Table("domains", title, "", tuple(lines), (DUCKDB, POLARS), across="values")
    yield from measure_fractions(bench)


def measure_fractions(bench: FramesBench) -> Iterator[Table | Measurement]:
    """A quantile whose fraction is another one in each row, against 0.3 in all rows."""
    rows, pace = bench.scale.kernel_rows, bench.scale.kernel_pace
    row, fraction = np.arange(rows), np.random.default_rng(29).random(rows)
    ratio = Ratio("each / one", "a fraction for each row", "one for all")
    found = []
    for kind, domain in (("values 0..99", 100), ("unique values", 0)):
        values = skewed_values(rows, domain, 0.0) if domain else np.random.default_rng(31).permutation(rows) * 1.5
        lines = []
        for width in bench.scale.widths:
            ask = functools.partial(framed, values, lo=row - width + 1, hi=row + 1)
            actions = {
                "one for all": functools.partial(ask, "quantile_disc(0.3)"),
                "a fraction for each row": functools.partial(ask, "quantile_disc", fraction=fraction),
            }
            same = ask("quantile_disc", fraction=np.full(rows, 0.3))
            if not np.array_equal(same, actions["one for all"]()):
                raise DataError("a fraction for each row and the same for all disagree", hint="This is a bug")
            entered = [Contender(name, action, 1.0, compiling_seconds(action)[0]) for name, action in actions.items()]
            lines.append(Line(f"W = {width:,}", width, race(entered, pace)))
        title = f"quantile_disc of {kind}, {rows:,} rows, random fractions"
        yield Table("domains", title, "", tuple(lines), (ratio,))
        for line in lines:
            what = f"a fraction for each row, {kind}, {line.case}: time against one for all"
            found.append(Measurement("domains", what, line.ratio(ratio) or 0.0, "×", FRACTIONS_SHARE, "at most"))
    yield from found
