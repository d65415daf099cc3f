"""How fast windows should be, against the best of the peers: sums and extremes, percentiles, missing values."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from windrow.bench.race import Array, Contender, Problem, compiling_seconds, methods, race
from windrow.bench.report import Measurement
from windrow.bench.tables import BEST_PEER, Line, Ratio, Table
from windrow.bench.timing import duration
from windrow.bench.windows.papers import ARRAYS, by
from windrow.bench.windows.peers import Peer, peer_contenders
from windrow.bench.windows.scale import Bench

WIDTHS = (5, 6, 7, 9, 12, 15, 20, 25, 31, 40, 50, 64, 75, 90, 100)
BRIEF_WIDTHS = (5, 15, 40, 100)
EXTREMES = {5: 2.2, 100: 25.0}
"""How many times faster than OpenCV's dilate and erode, by width."""

GROWTH = 2.0
ACCURACY = 1e-12
WITH_MISSING = 1.5
_SPIKE = 10**16


def noise(shape: Sequence[int], seed: int = 7) -> npt.NDArray[np.float64]:
    return np.random.default_rng(seed).standard_normal(shape)


def race_auto(bench: Bench, problem: Problem, case: str, peers: Sequence[Peer], cold: bool = False) -> Line:
    """auto against peers."""
    contenders = [*methods(problem, bench.pace, ("auto",)), *peer_contenders(problem, bench.pace, peers)]
    return Line(case, max(problem.window), race(contenders, bench.pace, cold))


def measure_scans(bench: Bench) -> Iterator[Table | Measurement]:
    """Sums and extremes of 1000² float64 over w×w, against OpenCV and SciPy."""
    values = noise(bench.shrink_shape((1000, 1000)))
    peers = [peer for peer in bench.peers if peer.name in ("OpenCV", "SciPy")]
    for aggregate in ("sum", "avg", "max", "min"):
        table = _over_widths(bench, values, aggregate, peers)
        yield table
        named = f"{aggregate} {by(values.shape)}"
        yield from _box_filter(named, table) if aggregate in ("sum", "avg") else _morphology(named, table)
        first, last = (line.result.seconds["auto"] for line in (table.lines[0], table.lines[-1]))
        what = f"{named}, growth from w = {table.lines[0].width} to {table.lines[-1].width}"
        yield Measurement("scans", what, last / first, "×", GROWTH, "at most", f"{duration(first)}, {duration(last)}")
    yield spike_error(bench)


def _over_widths(bench: Bench, values: Array, aggregate: str, peers: Sequence[Peer]) -> Table:
    widths = BRIEF_WIDTHS if bench.scale.brief else WIDTHS
    out = np.empty_like(values)
    problems = {w: Problem(values, aggregate, (w, w), None, "centred", out) for w in widths if w <= len(values)}
    lines = [race_auto(bench, problem, f"{w}×{w}", peers) for w, problem in problems.items()]
    if not bench.scale.brief:
        ends = (min(problems), max(problems))
        lines += [race_auto(bench, problems[w], f"{w}×{w} cold", peers, cold=True) for w in ends]
    ratios = (Ratio("OpenCV / auto", "OpenCV", "auto"), Ratio("SciPy / auto", "SciPy", "auto"))
    hot = tuple(line for line in lines if not line.case.endswith("cold"))
    note = "Cold, with 256 MB touched before each call: " + "; ".join(
        f"{line.case[:-5]} " + ", ".join(f"{name} {duration(took)}" for name, took in line.result.seconds.items())
        for line in lines[len(hot) :]
    )
    about = note + "." if len(hot) < len(lines) else ""
    return Table("scans", f"{aggregate} on {by(values.shape)} float64", about, hot, ratios)


def _box_filter(named: str, table: Table) -> Iterator[Measurement]:
    what = f"{named} against OpenCV's box filter"
    found = {line.width: ratio for line in table.lines if (ratio := line.ratio(table.ratios[0]))}
    if not found:
        yield _not_measured("scans", what, 1.0, "OpenCV")
        return
    worst = min(found, key=found.__getitem__)
    stretch = "reached" if found[worst] >= 1.5 else "not reached"
    detail = "; ".join(f"w = {width} {ratio:.2f}×" for width, ratio in found.items()) + f"; stretch 1.5×: {stretch}"
    yield Measurement("scans", f"{what}, worst at w = {worst}", found[worst], "×", 1.0, "at least", detail)


def _morphology(named: str, table: Table) -> Iterator[Measurement]:
    filter_ = "dilate" if named.startswith("max") else "erode"
    for line in table.lines:
        if line.width in EXTREMES:
            ratio, target = line.ratio(table.ratios[0]), EXTREMES[line.width]
            what = f"{named} against OpenCV's {filter_} at w = {line.width}"
            yield (
                _not_measured("scans", what, target, "OpenCV")
                if ratio is None
                else Measurement("scans", what, ratio, "×", target, "at least")
            )


def _not_measured(subject: str, what: str, target: float, peer: str) -> Measurement:
    return Measurement(subject, what, math.nan, "×", target, "at least", f"{peer} is not installed")


def spike_error(bench: Bench) -> Measurement:
    """The largest relative error of windows after a value of 1e16 has left them; exact sums are of whole numbers."""
    rows, columns = bench.shrink_shape((1000, 1000))
    width = min(25, rows)
    whole = np.random.default_rng(3).integers(1, 1000, (rows, columns))
    whole[rows // 2, columns // 2] = _SPIKE
    padded = np.zeros((rows + width, columns + width), np.int64)
    padded[1 : rows + 1, 1 : columns + 1] = whole.cumsum(0).cumsum(1)
    padded[rows + 1 :] = padded[rows]
    padded[:, columns + 1 :] = padded[:, columns : columns + 1]
    exact = padded[width:, width:] - padded[:-width, width:] - padded[width:, :-width] + padded[:-width, :-width]
    problem = Problem(whole.astype(np.float64), "sum", (width, width))

    def error(found: Array) -> float:
        return float((np.abs(found - exact) / exact).max())

    detail = f"{width}×{width}, whole numbers up to 999"
    boxes = [peer for peer in bench.peers if peer.name == "OpenCV" and peer.version]
    for peer in boxes:
        action = peer.make(problem)
        assert action is not None
        theirs = np.asarray(action())  # centred: shifted to where the corner's windows are
        inner = (slice(0, rows - width), slice(0, columns - width))
        shifted = theirs[width // 2 :, width // 2 :][: rows - width, : columns - width]
        detail += f"; OpenCV {float((np.abs(shifted - exact[inner]) / exact[inner]).max()):.2g}"
    return Measurement(
        "scans", "sum's error after a spike of 1e16", error(problem.answer()), "", ACCURACY, "at most", detail
    )


def measure_percentiles(bench: Bench) -> Iterator[Table | Measurement]:
    """Percentiles in time, in space and time, and in the plane, against the best peer of each."""
    year = ARRAYS["year"].values(bench.shrink_shape(ARRAYS["year"].shape))
    january = ARRAYS["January"].values(bench.shrink_shape(ARRAYS["January"].shape))
    plane = noise(bench.shrink_shape((1000, 1000)))
    series = ("SciPy", "bottleneck", "polars", "pandas")
    cases = (
        (Problem(year, "percentile", (1, 1, 30), 70, "trailing"), series, 10.0, None),
        (Problem(january, "percentile", (5, 5, 5), 70, "centred"), ("SciPy",), 27.0, 60.0),
        (Problem(plane, "percentile", (25, 25), 70, "centred"), ("SciPy",), 20.0, None),
    )
    ratio = Ratio("best peer / auto", BEST_PEER, "auto")
    for problem, peers, target, stretch in cases:
        name = f"{by(problem.values.shape)} {problem.values.dtype}"
        case = "×".join(map(str, problem.window))
        line = race_auto(bench, problem, case, [peer for peer in bench.peers if peer.name in peers])
        yield Table("percentiles", f"percentile 70 over {case} on {name}", "", (line,), (ratio,))
        what, reached = f"percentile {case} on {name} against the best peer", line.ratio(ratio)
        if reached is None:
            yield _not_measured("percentiles", what, target, " or ".join(peers))
            continue
        detail = f"auto {duration(line.result.seconds['auto'])}"
        if stretch is not None:
            detail += f"; stretch {stretch:g}×: {'reached' if reached >= stretch else 'not reached'}"
        yield Measurement("percentiles", what, reached, "×", target, "at least", detail)


def measure_missing(bench: Bench) -> Iterator[Table | Measurement]:
    """The time with a tenth of the values missing, over the time with none."""
    plane = noise(bench.shrink_shape((1000, 1000)))
    year = ARRAYS["year"].values(bench.shrink_shape(ARRAYS["year"].shape))
    january = ARRAYS["January"].values(bench.shrink_shape(ARRAYS["January"].shape))
    out = np.empty_like(plane)
    problems = (
        *(Problem(plane, aggregate, (25, 25), None, "centred", out) for aggregate in ("sum", "avg", "max")),
        Problem(year, "percentile", (1, 1, 30), 70, "trailing"),
        Problem(january, "percentile", (5, 5, 5), 70, "centred"),
        Problem(plane, "percentile", (25, 25), 70, "centred"),
    )
    lines, rows = [], []
    for problem in problems:
        case = f"{problem.call} over {by(problem.window)} of {by(problem.values.shape)}"
        contenders = []
        for name, each in (("none missing", problem), ("10 % missing", remove_values(problem))):
            contenders.append(Contender(name, each.answer, 1.0, compiling_seconds(each.answer)[0]))
        line = Line(case, max(problem.window), race(contenders, bench.pace))
        lines.append(line)
        ratio = line.result.seconds["10 % missing"] / line.result.seconds["none missing"]
        rows.append(Measurement("missing", f"{case}, 10 % NaN against none", ratio, "×", WITH_MISSING, "at most"))
    ratios = (Ratio("with / without", "10 % missing", "none missing"),)
    yield Table("missing", "A tenth of the values missing, at random", "", tuple(lines), ratios)
    yield from rows


def remove_values(problem: Problem) -> Problem:
    values = problem.values.copy()
    values[np.random.default_rng(5).random(values.shape) < 0.1] = np.nan
    return replace(problem, values=values)
