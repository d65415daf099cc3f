"""PTF-5 and PTF-25 patched, against rebuilding them: whole batches, with the store."""

from __future__ import annotations

from collections.abc import Iterator

from windrow.bench.race import Result
from windrow.bench.report import Measurement
from windrow.bench.tables import Line, Ratio, Table
from windrow.bench.timing import duration
from windrow.bench.views.scale import ViewsBench
from windrow.bench.views.survey import ANYWHERE, LATEST, PATCH, REBUILD, Batches, patch_and_rebuild, survey

PTF_25_GAIN = 25.0
GROWTH = 6.0
GAIN = Ratio("rebuild / batch", REBUILD, PATCH)
ABOUT = (
    "Processor time of whole batches: the batch with its view, stored and published, and a full refresh of the view. "
    "Results without a state, which come with the first batch that touches them, "
    "are computed from their partners."
)


def measure_ptf5(bench: ViewsBench) -> Iterator[Table | Measurement]:
    """Batches of the latest nights and from anywhere, into surveys of three sizes."""
    scale, lines = bench.scale, dict[tuple[str, int], Line]()
    for size in (scale.few, scale.many, scale.most):
        for where in (LATEST, ANYWHERE):
            lines[where, size] = _line(bench, "PTF5", where, size)
    yield Table("ptf5", f"PTF-5, batches of {scale.batch:,} cells", ABOUT, tuple(lines.values()), (GAIN,))
    for (where, size), line in lines.items():
        if size > scale.few:
            yield _gain("ptf5", f"{scale.batch:,} cells, {where}, into {size:,}", line, None)
    small, large = (lines[LATEST, size].result.seconds[PATCH] for size in (scale.few, scale.most))
    what = f"growth of the batch from {scale.few:,} to {scale.most:,} cells"
    yield Measurement("ptf5", what, large / small, "×", GROWTH, "at most", f"{duration(small)} to {duration(large)}")


def measure_ptf25(bench: ViewsBench) -> Iterator[Table | Measurement]:
    """The latest nights into the largest survey, where all of time is near."""
    line = _line(bench, "PTF25", LATEST, bench.scale.most)
    yield Table("ptf25", f"PTF-25, batches of {bench.scale.batch:,} cells", ABOUT, (line,), (GAIN,))
    what = f"{bench.scale.batch:,} cells, {LATEST}, into {bench.scale.most:,}"
    yield _gain("ptf25", what, line, PTF_25_GAIN)


def _line(bench: ViewsBench, view: str, where: str, size: int) -> Line:
    batches = Batches.of(where, size, bench.scale.batch, bench.scale.rounds + 1)
    folder = f"{view}-{where}-{size}".replace(" ", "-")
    with survey(bench, folder, batches.stored, [view]) as (database, array):
        found = patch_and_rebuild(bench, array, [database.view(view)], batches)
    return Line(f"{where}, {size:,} cells", size, Result(found))


def _gain(subject: str, what: str, line: Line, target: float | None) -> Measurement:
    patch, rebuild = (line.result.seconds[name] for name in (PATCH, REBUILD))
    detail = f"batch {duration(patch)}, rebuild {duration(rebuild)}"
    return Measurement(subject, what, rebuild / patch, "×", target, detail=detail)
