"""What changes the gain: Fig. 10's batch sizes, numbers of batches and spread, and what is remembered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from windrow.bench.placement.models import PAPERS, RATIOS, total
from windrow.bench.placement.scale import PlacementBench
from windrow.bench.race import Result
from windrow.bench.report import Measurement
from windrow.bench.tables import Line, Ratio, Table
from windrow.placement.simulator.run import simulate
from windrow.placement.simulator.workloads import Workload, cut_stream, spread_workload, survey_stream

VIEW = "PTF-25"
NIGHTS = 140
WINDOW = 5
WORTH = 1.02
"""History is used if it is better by so much."""


def measure_sensitivity(bench: PlacementBench) -> Iterator[Table | Measurement]:
    base, nights = survey_stream(NIGHTS, 0)
    about = f"{VIEW}, real updates, windrow's model, round robin: {bench.cluster}."
    sizes = bench.scale.batch_sizes
    growing = _run(bench, Workload("growing", base, cut_stream(nights, sizes)))
    lines = [
        Line(f"{size:,} chunks", size, Result({name: run[number] for name, run in growing.items()}))
        for number, size in enumerate(sizes)
    ]
    yield Table("sensitivity", "Size of a batch (Fig. 10a)", about, tuple(lines), RATIOS[1:], "chunks")
    lines = []
    whole = 2 * max(sizes)
    for count in bench.scale.batch_counts:
        runs = _run(bench, Workload("cut", base, cut_stream(nights, [whole // count] * count)))
        lines.append(Line(f"{count} batches", count, Result({name: sum(run) for name, run in runs.items()})))
    said = f" {whole:,} chunks in all; a batch has no fixed cost here."
    yield Table("sensitivity", "Number of batches (Fig. 10b)", about + said, tuple(lines), RATIOS[1:], "batches")
    lines = []
    for spread in bench.scale.spreads:
        runs = _run(bench, spread_workload(spread, bench.scale.spread_chunks, bench.scale.batches, 0))
        lines.append(Line(f"{spread}×{spread} chunks", spread, Result({name: sum(run) for name, run in runs.items()})))
    said = f" {bench.scale.batches} batches of {bench.scale.spread_chunks} chunks."
    yield Table("sensitivity", "Spread of updates (Fig. 10c)", about + said, tuple(lines), RATIOS[1:], "spread")


def _run(bench: PlacementBench, workload: Workload) -> dict[str, list[float]]:
    """The objective of each batch by strategy."""
    return {
        name: [result.objective for result in simulate(VIEW, workload, bench.setting(name))]
        for name in (*PAPERS, "auto")
    }


def measure_history(bench: PlacementBench) -> Iterator[Table | Measurement]:
    """Whether Algorithm 3 gains by past batches."""
    names = {"window 0": 0, f"window {WINDOW}": WINDOW}
    lines = []
    for view, pattern in bench.scale.cases:
        seconds = {}
        for name, window in names.items():
            options = replace(bench.options, window=window)
            seconds[name] = total(bench.results(view, pattern, 0, bench.setting("reassign", options=options)))
        lines.append(Line(f"{view} {pattern}", 1, Result(seconds)))
    ratio = Ratio(f"window 0 / {WINDOW}", *names)
    about = "reassign, windrow's model; each batch counts half as much as the one after it. The default is window 0."
    yield Table("history", "Past batches that count", about, tuple(lines), (ratio,), "batch")
    best = max(line.ratio(ratio) or 0.0 for line in lines)
    what = f"gain by a window of {WINDOW}, best case"
    yield Measurement("history", what, best, "×", WORTH, "at most", "at most this: history is not worth keeping")
