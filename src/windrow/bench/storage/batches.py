"""What small batches cost on a sparse array: processor time and bytes against a bare Parquet file of the same cells."""

from __future__ import annotations

import functools
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from windrow.api.array import Array
from windrow.api.database import connect
from windrow.bench.report import Measurement
from windrow.bench.storage.many import measure_many
from windrow.bench.storage.peers import Given, measure_peers
from windrow.bench.storage.sky import (
    NIGHT,
    ROUNDS,
    Cells,
    Cost,
    Sky,
    Stored,
    build,
    grow,
    join_cells,
    line,
    measure_cost,
    write_bare,
)

_DELETED = "mag between 19.97 and 19.99"
"""About one cell of a hundred."""


@dataclass(frozen=True)
class Batches:
    """How much is measured: the cells an array has when some are replaced, those it has when some come, and how many
    batches change it in between; ``marks`` are those after which it is read."""

    replaced: int
    grown: int
    batches: int
    upserts: int
    marks: tuple[int, ...]


def measure_batches(folder: Path, scale: Batches) -> Iterator[Measurement]:
    """Single batches of each kind, and many in a row."""
    with connect(folder / "batches", engine="local", progress=False) as database:
        sky = Sky()
        array = build(database, "detections", sky, scale.replaced)
        stored = Stored(array, sky.dice)
        given = Given(array.read())
        yield from _measure_replaced(array, sky, stored, folder, given)
        array.compact()
        yield from measure_many(array, sky, stored, folder, (scale.batches, scale.marks))
        grow(array, sky, scale.grown)
        yield from _measure_new(array, sky, folder)
        yield from _measure_upserts(array, sky, stored, folder, scale)
    # Last, for peers have threads and memory of their own.
    yield from measure_peers(given, _DELETED, folder)


def _measure_replaced(array: Array, sky: Sky, stored: Stored, folder: Path, given: Given) -> Iterator[Measurement]:
    percent = array.versions()[-1].cells // 100
    kinds: dict[str, tuple[Callable[[], Cells], float, float]] = {
        "1 % replaced at random": (lambda: sky.with_values(stored.pick(percent)), 2.5, 60),
        "1 % replaced in few fields": (lambda: sky.with_values(stored.pick(percent, sky.fields)), 4, 20),
    }
    for what, (make, most_bytes, most_time) in kinds.items():
        ours, bare = _measure_rounds(array, make, folder)
        yield from _against_bare(what, ours, bare, most_bytes, most_time)
        given.changes[what] = make(), _cheapest(ours)
    cost = measure_cost(lambda: array.delete(_DELETED), Path(array.location().path))
    yield line("about 1 % deleted: written", cost.bytes / 1e6, "MB", 1.5, f"{cost.seconds:.2f} s")


def _cheapest(costs: list[Cost]) -> Cost:
    """The least time, and the bytes in the middle."""
    return Cost(min(cost.seconds for cost in costs), int(statistics.median(cost.bytes for cost in costs)))


def _against_bare(
    what: str, ours: list[Cost], bare: list[Cost], most_bytes: float, most_time: float
) -> Iterator[Measurement]:
    size = statistics.median(cost.bytes / other.bytes for cost, other in zip(ours, bare, strict=True))
    fastest, bare_seconds = _cheapest(ours).seconds, _cheapest(bare).seconds
    detail = f"bare {bare[0].bytes / 1e6:.2f} MB; {len(ours)} batches in which no tidying was due"
    yield line(f"{what}: bytes", size, "×", most_bytes, detail)
    detail = f"{fastest * 1000:.0f} ms against {bare_seconds * 1000:.1f} ms"
    yield line(f"{what}: processor time", fastest / max(bare_seconds, 1e-4), "×", most_time, detail)


def _measure_rounds(array: Array, make: Callable[[], Cells], folder: Path) -> tuple[list[Cost], list[Cost]]:
    """Batches of one kind, and bare files of their cells; those in which tidying fell due are not counted."""
    path = Path(array.location().path)
    costs: list[Cost] = []
    bare: list[Cost] = []
    for number in range(4 * ROUNDS):
        cells, before = make(), len(list(path.glob("*.parquet")))
        file = write_bare(array, cells, folder / "bare.parquet")
        cost = measure_cost(functools.partial(array.insert, cells), path)
        if len(list(path.glob("*.parquet"))) == before + 1 or number == 4 * ROUNDS - 1:
            costs, bare = [*costs, cost], [*bare, file]
        if len(costs) == ROUNDS:
            break
    return costs, bare


def _measure_new(array: Array, sky: Sky, folder: Path) -> Iterator[Measurement]:
    ours, bare = _measure_rounds(array, sky.night, folder)
    yield from _against_bare("a night of new cells", ours, bare, 1.2, 6)


def _measure_upserts(array: Array, sky: Sky, stored: Stored, folder: Path, scale: Batches) -> Iterator[Measurement]:
    """New cells and a tenth that replace others, in the same fields; tidying included, so that medians count."""
    count = min(NIGHT, scale.grown // 50)
    ours, bare = [], []
    for _ in range(scale.upserts):
        old = sky.with_values(stored.pick(count // 10, sky.fields))
        cells = join_cells(sky.night(count - count // 10), old)
        bare.append(write_bare(array, cells, folder / "bare.parquet"))
        ours.append(measure_cost(functools.partial(array.insert, cells), Path(array.location().path)))
    pairs = list(zip(ours, bare, strict=True))
    size = statistics.median(cost.bytes / other.bytes for cost, other in pairs)
    what = f"{count:,} upserts, a tenth replacing"
    yield line(f"{what}: bytes", size, "×", 2.5, f"median of {len(pairs)} batches")
    fastest = statistics.median(other.seconds for other in bare)
    usual = statistics.median(cost.seconds for cost in ours)
    detail = f"medians of {len(pairs)} batches, {usual * 1000:.0f} ms against {fastest * 1000:.1f} ms"
    yield line(f"{what}: processor time", usual / max(fastest, 1e-4), "×", 15, detail)
