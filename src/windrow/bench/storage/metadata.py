"""How long it takes to know the chunks of a large sparse array: all, those of a box, and those that a night meets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from windrow.api.array import Array
from windrow.api.database import Database, connect
from windrow.bench.report import Measurement
from windrow.bench.storage.sky import FIELDS_A_NIGHT, SCHEMA, Cells, Sky, join_cells, processor_seconds
from windrow.kernels.sparse.chunk_pairs import ChunkIndex, Chunks, Grid
from windrow.model.box import Box
from windrow.storage.records import ChunkStatistics

NIGHT_CELLS = 140 * FIELDS_A_NIGHT
"""About two in each of the chunks of a night's fields."""

NIGHT_CHUNKS = 1_030
DAY = 112
DAYS_BEFORE = 200
ROUNDS = 5
NIGHTS_AT_ONCE = 200


def measure_metadata(folder: Path, chunks: int) -> Iterator[Measurement]:
    """Processor time of each question on a connection that was never asked before, so that decoding counts."""
    place = folder / "metadata"
    with connect(place, engine="local", progress=False) as database:
        nights = _build(database, chunks // NIGHT_CHUNKS)
    asked: dict[str, tuple[Callable[[Array], int], float]] = {
        "all of it": (lambda array: len(array.chunks()), 0.5),
        "chunks of a box": (lambda array: _count_in_box(array, nights // 2), 0.1),
        "pairs of a night's chunks": (lambda array: _count_pairs(array, nights), 0.2),
    }
    for what, (ask, most) in asked.items():
        answers = [_ask_afresh(place, ask) for _ in range(ROUNDS + 1)]  # the first one warms the process up
        seconds = min(seconds for seconds, _ in answers[1:])
        yield Measurement("metadata", what, seconds, "s", most, "at most", f"{answers[0][1]:,} found")


def _ask_afresh(place: Path, ask: Callable[[Array], int]) -> tuple[float, int]:
    with connect(place, engine="local", progress=False) as database:
        array = database.array("nights")
        counts: list[int] = []
        seconds = processor_seconds(lambda: counts.append(ask(array)))
        return seconds, counts[0]


def _build(database: Database, nights: int) -> int:
    """An array of nights, each in chunks of its own."""
    array, sky = database.create("nights", SCHEMA, sparse=True), Sky()
    for start in range(0, nights, NIGHTS_AT_ONCE):
        days = range(start, min(nights, start + NIGHTS_AT_ONCE))
        array.insert(join_cells(*(_night(sky, day) for day in days)))
    array.compact()
    return nights


def _night(sky: Sky, day: int) -> Cells:
    cells = sky.night(NIGHT_CELLS)
    return cells | {"time": np.full(NIGHT_CELLS, 1 + DAY * day, np.int64)}


def _count_in_box(array: Array, day: int) -> int:
    """A field over ten days."""
    box = Box((1 + DAY * day, 1, 1), (DAY * (day + 10), 5_000, 5_000))
    return int(array.chunks().touching(box).sum())


def _count_pairs(array: Array, nights: int) -> int:
    """The chunks of the last night, and those up to 200 days before that lie within one cell of them."""
    told, grid = array.chunks(), array.schema.grid
    new = told.take(np.flatnonzero(told.lo[:, 0] > DAY * (nights - 1)))
    lo, hi = (list(np.ascontiguousarray(side.T)) for side in (new.lo, new.hi))
    before, around = (DAYS_BEFORE * DAY, 1, 1), (0, 1, 1)
    boxes = (
        [side - reach for side, reach in zip(lo, before, strict=True)],
        [side + reach for side, reach in zip(hi, around, strict=True)],
    )
    index = ChunkIndex(_as_chunks(told, grid.strides, grid.radix), Grid(grid.lo, grid.chunk))
    return len(index.meet(*boxes)[0])


def _as_chunks(told: ChunkStatistics, strides: tuple[int, ...], radix: tuple[int, ...]) -> Chunks:
    numbers = [told.ordinals // stride % count for stride, count in zip(strides, radix, strict=True)]
    return Chunks(numbers, *(list(np.ascontiguousarray(side.T)) for side in (told.lo, told.hi)))
