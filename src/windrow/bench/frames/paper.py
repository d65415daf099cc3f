"""Paper 003's Figs. 2 to 7 again: its tables, its frames, its methods, and how their times grow.

The figures survive as captions only, so what its text states stands beside the first ratio of a table: more than 2×
for incremental counts at a frame of 10, more than 10× for replace and 6× for reuse at 10,000, and 1.5× for reuse when
frames start anywhere.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from windrow.aggregates.frames import TAU
from windrow.api.framed import framed
from windrow.bench.engines import duckdb_connection, load_table
from windrow.bench.frames.peers import frame_peers
from windrow.bench.frames.race import (
    AUTO,
    Array,
    FrameProblem,
    Spread,
    Way,
    frame_methods,
)
from windrow.bench.frames.scale import FramesBench
from windrow.bench.race import Contender, compiling_seconds, mean_width, race
from windrow.bench.report import Measurement
from windrow.bench.tables import Line, Ratio, Table
from windrow.bench.timing import Action
from windrow.errors import DataError
from windrow.samples import rank_table

RANKS = {"rank1": 1, "rank100": 100, "rank10M": 0}
"""The paper's tables, and how many partitions each has; 0: as many as rows."""
LARGE = 1_000_000
UNFLUSHED = (
    "tau 0 never forgets a value, so that its time for modes grows with the square of the rows: "
    "where it is marked ~, all rows would take longer still."
)
TAUS = (0.0, 0.1, TAU, 0.5, 0.75, 0.9)
FLAT = 1.25
PROPORTIONAL = 0.8
JUDGED_FROM = 100
"""Up to here the table of counts is flushed: a frame of 10 holds a tenth of rank100's 100 values."""


@dataclass(frozen=True)
class Figure:
    """An aggregate of rank100's column a by several methods; ``stated`` is what the text says of the first ratio."""

    number: int
    aggregate: str
    methods: tuple[str, ...]
    variable: bool = False
    stated: Mapping[int, float] = field(default_factory=dict)

    @property
    def subject(self) -> str:
        return f"003 Fig. {self.number}"

    @property
    def frames(self) -> str:
        return "variable frames" if self.variable else "fixed frames"

    @property
    def ratios(self) -> tuple[Ratio, ...]:
        quicker = [*self.methods[1:], "auto"]
        own = [Ratio(f"naive / {name}", "naive", name) for name in quicker if self.methods[0] == "naive"]
        return (*own, Ratio("DuckDB / auto", "DuckDB", "auto"))

    def problem(self, values: Array, width: int) -> FrameProblem:
        modulus = prime_below(width // 2)
        spread = Spread(multiplier(modulus), modulus) if self.variable else None
        return FrameProblem(values, self.aggregate, width, spread)


FIGURES = (
    Figure(3, "sum", ("naive", "incremental", "segment_tree")),
    Figure(3, "sum", ("segment_tree",), variable=True),
    Figure(4, "count_distinct", ("naive", "incremental"), stated={10: 2.0}),
    Figure(4, "count_distinct", ("naive", "incremental"), variable=True),
    Figure(5, "mode", ("naive", "incremental"), stated={10: 2.0}),
    Figure(5, "mode", ("naive", "incremental"), variable=True),
    Figure(7, "median", ("naive", "replace", "reuse"), stated={10_000: 10.0}),
    Figure(7, "median", ("naive", "reuse"), variable=True, stated={10_000: 1.5}),
)


def is_prime(number: int) -> bool:
    return number > 1 and all(number % divisor for divisor in range(2, int(number**0.5) + 1))


def prime_below(most: int) -> int:
    """The largest prime up to a number; 1 if there is none."""
    return next(filter(is_prime, range(most, 1, -1)), 1)


@functools.cache
def multiplier(modulus: int) -> int:
    """A prime much larger than the modulus that takes each frame's start far from the one before."""
    far = (n for n in itertools.count(LARGE) if modulus < 5 or 0.35 < n % modulus / modulus < 0.65)
    return next(filter(is_prime, far))


def measure_paper(bench: FramesBench) -> Iterator[Table | Measurement]:
    """Figs. 2 to 7 in their order."""
    yield measure_ranks(bench)
    values, order = rank_table("rank100", bench.scale.paper_rows)
    for number in (3, 4, 5, 6, 7):
        for figure in FIGURES:
            if figure.number == number:
                table = measure_figure(bench, figure, values)
                yield table
                yield from shape(figure, table, len(values))
        if number == 6:
            yield from measure_taus(bench, order)


def measure_figure(bench: FramesBench, figure: Figure, values: Array) -> Table:
    lines, pace = [], bench.scale.paper_pace
    ways = [*(Way(name, name) for name in figure.methods), AUTO]
    for width in bench.scale.paper_widths:
        problem = figure.problem(values, width)
        contenders = [*frame_methods(problem, pace, ways), *frame_peers(problem, pace, bench.peers)]
        lines.append(Line(f"W = {width:,}", width, race(contenders, pace), figure.stated.get(width)))
    title = f"Paper 003 Fig. {figure.number}: {figure.aggregate} of rank100, {len(values):,} rows, {figure.frames}"
    return Table("paper", title, "", tuple(lines), figure.ratios)


def shape(figure: Figure, table: Table, rows: int) -> Iterator[Measurement]:
    """What the paper says of fixed frames: hash tables do not notice the size, and all gains grow with it."""
    if figure.variable:
        return
    lines = [line for line in table.lines if line.width >= JUDGED_FROM]
    if len(lines) < 2:
        return
    quick = figure.methods[1]
    between = f"W = {lines[0].width:,} to {lines[-1].width:,}"
    if quick == "incremental":
        growth = lines[-1].result.seconds[quick] / lines[0].result.seconds[quick]
        what = f"{figure.aggregate}: growth of {quick}'s time, {between}"
        yield Measurement(figure.subject, what, growth, "×", FLAT, "at most")
        yield _proportion(figure, lines, rows, between)
    for name in figure.methods[1:]:
        gains = [_gain(line, name) for line in lines]
        least = min(later / earlier for earlier, later in itertools.pairwise(gains))
        detail = ", ".join(f"{line.case} {gain:.3g}×" for line, gain in zip(lines, gains, strict=True))
        what = f"{figure.aggregate}: {name}'s lead over naive grows at every step, {between}"
        yield Measurement(figure.subject, what, least, "×", 1.0, "at least", detail)


def _proportion(figure: Figure, lines: Sequence[Line], rows: int, between: str) -> Measurement:
    gains = [_gain(line, figure.methods[1]) for line in (lines[0], lines[-1])]
    widths = [mean_width(rows, line.width) for line in (lines[0], lines[-1])]
    share = gains[1] / gains[0] / (widths[1] / widths[0])
    detail = f"over naive {gains[0]:.3g}× at the first size, {gains[1]:.3g}× at the last; 1 is proportional"
    what = f"{figure.aggregate}: speed-up against frame size, {between}"
    return Measurement(figure.subject, what, share, "", PROPORTIONAL, "at least", detail)


def _gain(line: Line, name: str) -> float:
    return line.result.seconds["naive"] / line.result.seconds[name]


def measure_taus(bench: FramesBench, order: Array) -> Iterator[Table | Measurement]:
    """Fig. 6: counts of the unique column b, which leave empty buckets behind, by the threshold that flushes them."""
    ways = [Way(f"tau {tau:g}", "incremental", tau) for tau in TAUS]
    pace = bench.scale.paper_pace
    chosen = f"tau {TAU:g}"
    for aggregate in ("count_distinct", "mode"):
        lines = []
        for width in bench.scale.paper_widths:
            contenders = frame_methods(FrameProblem(order, aggregate, width), pace, ways)
            lines.append(Line(f"W = {width:,}", width, race(contenders, pace)))
        title = f"Paper 003 Fig. 6: {aggregate} of b, incremental by tau, {len(order):,} rows"
        ratios = (Ratio(f"tau 0.9 / {chosen}", "tau 0.9", chosen), Ratio(f"tau 0 / {chosen}", "tau 0", chosen))
        yield Table("paper", title, UNFLUSHED, tuple(lines), ratios)
        over = {line.case: line.result.seconds[chosen] / min(line.result.seconds.values()) for line in lines}
        worst = max(over, key=over.__getitem__)
        what = f"{aggregate}: {chosen} against the best tau, worst at {worst}"
        yield Measurement("003 Fig. 6", what, over[worst], "×")


def measure_ranks(bench: FramesBench) -> Table:
    """Fig. 2: rank() over (partition by a order by b desc); sorting included, on one thread."""
    lines, pace, rows = [], bench.scale.paper_pace, bench.scale.paper_rows
    there = any(peer.name == "DuckDB" and peer.version for peer in bench.peers)
    for name, partitions in RANKS.items():
        a, b = rank_table(name, rows)
        actions: dict[str, Action] = {"auto": functools.partial(ranks, a, b)}
        if there:
            actions["DuckDB"] = _duckdb_ranks(a, b)
        entered = [Contender(who, action, 1.0, compiling_seconds(action)[0]) for who, action in actions.items()]
        lines.append(Line(name, partitions or rows, race(entered, pace)))
    about = "Rows a second: " + "; ".join(
        f"{line.case} " + ", ".join(f"{who} {rows / took / 1e6:.3g} M" for who, took in line.result.seconds.items())
        for line in lines
    )
    title = f"Paper 003 Fig. 2: rank() over (partition by a order by b desc), {rows:,} rows, one thread, sort included"
    return Table("paper", title, about + ".", tuple(lines), (Ratio("DuckDB / auto", "DuckDB", "auto"),))


def ranks(a: Array, b: Array) -> Array:
    """The rank of each row of the sorted table: one more than the rows of its partition before it, if b is unique."""
    order = np.lexsort((-b, a))
    parts = a[order]
    starts = np.flatnonzero(np.r_[True, parts[1:] != parts[:-1]])
    first = np.repeat(starts, np.diff(np.r_[starts, len(parts)]))
    found: Array = framed(b[order], "count", lo=first, hi=np.arange(1, len(parts) + 1))
    return found


def _duckdb_ranks(a: Array, b: Array) -> Action:
    connection = duckdb_connection(1)
    load_table(connection, {"a": a, "b": b})
    query = "select sum(x) from (select rank() over (partition by a order by b desc) as x from t)"

    def run() -> int:
        return int(connection.execute(query).fetchall()[0][0])

    if run() != int(ranks(a, b).sum()):
        raise DataError("ranks and DuckDB's disagree", hint="This is a bug")
    return run
