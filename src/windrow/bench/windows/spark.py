"""Windows from stored array to stored array through Spark: one worker and two, against plain Zarr, and 20 years."""

from __future__ import annotations

import functools
import math
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from windrow.aggregates.aggregate import percentile
from windrow.api.array import Array
from windrow.api.database import Database
from windrow.bench.engines import spark_database
from windrow.bench.race import Result
from windrow.bench.report import Measurement
from windrow.bench.storage.dense import bare_array, create_bare
from windrow.bench.tables import Line, Ratio, Table
from windrow.bench.timing import Action, duration, in_turns, time_call
from windrow.bench.windows.memory import WorkerMemory
from windrow.bench.windows.scale import Bench
from windrow.execution.executor import Job
from windrow.model.box import Box
from windrow.model.schema import Schema
from windrow.model.window import trailing
from windrow.operations.dense.write import BLOCK_BYTES
from windrow.samples import TemperatureSource

LON, LAT, PER_DAY = 288, 145, 4
STEPS = 120
PERCENT = 70
MAP_STEPS = 24
WORKERS = 2
STORE_RATIO = 2.5
WORKER_GIGABYTES = 1.5
WORKERS_GAIN = 1.3
"""How many times the speed of one worker two must have; the paper's nine nodes have 53 % of nine."""
PAPER_001_TABLE_3 = {1: 4.68, 2: 5.00, 3: 4.90, 4: 4.81, 5: 4.75}
"""Nine nodes over one, by the width in longitude and latitude; the width in time is 5."""


def field(bench: Bench, steps: int) -> TemperatureSource:
    lon, lat = bench.shrink_shape((LON, LAT))
    return TemperatureSource(lon, lat, steps, PER_DAY)


def store(array: Array, widths: Mapping[str, int], method: str = "auto") -> None:
    """The percentile over trailing windows, stored as array P, which must not be there."""
    extents: dict[str, Any] = {name: trailing(width) for name, width in widths.items()}
    array.window(**extents).agg(p=percentile("t", PERCENT), method=method).store("P")


def drop_result(database: Database) -> None:
    if "P" in database:
        database.array("P").drop()


def measure_workers(bench: Bench) -> Iterator[Table | Measurement]:
    """Paper 001 Table 3: the papers' method from store to store, on one worker and on two."""
    cases = [1, 3, 5] if bench.scale.brief else [1, 2, 3, 4, 5]
    best: dict[tuple[str, int, int], float] = {}
    source = field(bench, 124)
    for workers in (1, 2):
        with spark_database(bench.folder / f"workers-{workers}", workers) as database:
            array = database.create("T", source.schema)
            array.write(source)
            for method in ("incremental", "auto"):
                for width in cases:
                    widths = {"lon": width, "lat": width, "time": 5}
                    action = functools.partial(store, array, widths, method)
                    rounds = 1 if method == "incremental" else bench.scale.rounds
                    times = in_turns({"": action}, rounds, between=functools.partial(drop_result, database))
                    best[method, workers, width] = times[""].best
            drop_result(database)
    for method in ("incremental", "auto"):
        lines = []
        for width in cases:
            seconds = {name: best[method, n, width] for n, name in ((1, "1 worker"), (2, "2 workers"))}
            lines.append(Line(f"{width}×{width}×5", width, Result(seconds), PAPER_001_TABLE_3[width]))
        about = "The paper's is nine nodes over one. Times are those of whole queries, reading and writing included."
        title = f"Paper 001 Table 3: percentile {PERCENT}, {method}, on {_text(source)}"
        ratio = Ratio("1 worker / 2 workers", "1 worker", "2 workers")
        yield Table("workers", title, about, tuple(lines), (ratio,))
        for line in lines if method == "incremental" else ():
            what = f"Table 3: percentile over {line.case}, speed of 2 workers over that of 1"
            detail = f"the paper: 9 nodes {line.paper}×"
            yield Measurement("001", what, line.ratio(ratio) or math.nan, "×", WORKERS_GAIN, "at least", detail)


def measure_store_to_store(bench: Bench) -> Iterator[Table | Measurement]:
    """The 30-day percentile of two years, against plain Zarr that reads the input and writes as much."""
    source = field(bench, bench.scale.steps)
    maps = source.schema.with_chunks({"lon": source.lon, "lat": source.lat, "time": min(MAP_STEPS, source.time)})
    layouts = {"series": source.schema} if bench.scale.brief else {"series": source.schema, "maps": maps}
    lines, rows = [], []
    for name, schema in layouts.items():
        place = bench.folder / name
        with spark_database(place, WORKERS) as database:
            rounds = StoreRounds(database, place, source, schema)
            rounds.fill()
            with WorkerMemory() as memory:
                actions: dict[str, Action] = {"windrow": rounds.store, "plain Zarr": rounds.copy}
                times = in_turns(actions, bench.scale.rounds, between=rounds.prepare)
        shutil.rmtree(place, ignore_errors=True)
        ours, theirs = times["windrow"], times["plain Zarr"]
        chunks = "×".join(map(str, schema.grid.chunk))
        case = f"chunks of {chunks}"
        lines.append(Line(case, STEPS, Result({"windrow": ours.best, "plain Zarr": theirs.best})))
        detail = f"{case}: windrow {ours}, Zarr {theirs}; {memory}"
        what = f"percentile over {STEPS} steps of {_text(source)}, {name} in a chunk, against plain Zarr"
        rows.append(Measurement("spark", what, ours.best / theirs.best, "×", STORE_RATIO, "at most", detail))
    ratios = (Ratio("windrow / plain Zarr", "windrow", "plain Zarr"),)
    title = f"Percentile {PERCENT} over {STEPS} steps of {_text(source)}, store to store, {WORKERS} workers"
    yield Table("store-to-store", title, "Wall time, best of several rounds in turns.", tuple(lines), ratios)
    yield from rows


def measure_decades(bench: Bench) -> Iterator[Table | Measurement]:
    """20 years, more than a worker could hold."""
    if not bench.scale.decades:
        return
    source = field(bench, bench.scale.decades)
    place = bench.folder / "decades"
    with spark_database(place, WORKERS) as database:
        array = database.create("T", source.schema)
        filled = time_call(functools.partial(array.write, source))
    # New workers, whose memory has not seen the making of the field.
    with spark_database(place, WORKERS) as database, WorkerMemory() as memory:
        array = database.array("T")
        took = time_call(functools.partial(store, array, {"time": STEPS}))
    shutil.rmtree(place, ignore_errors=True)
    size = source.lon * source.lat * source.time * 4 / 1e9
    detail = f"{size:.1f} GB in {duration(took)} (the field was made in {duration(filled)}); {memory}"
    what = f"percentile over {STEPS} steps of {_text(source)}, peak memory of a worker"
    yield Measurement("spark", what, memory.peak / 1e9, "GB", WORKER_GIGABYTES, "at most", detail)


def _text(source: TemperatureSource) -> str:
    return f"{source.lon}×{source.lat}×{source.time:,} float32"


@dataclass(frozen=True)
class BareCopy:
    """A task: read a block of one plain Zarr array and write it to another."""

    source: str
    target: str
    box: Box
    lo: tuple[int, ...]


def copy_bare(task: BareCopy) -> int:
    where = task.box.slices(task.lo)
    bare_array(task.target)[where] = bare_array(task.source)[where]
    return task.box.size


@dataclass(frozen=True)
class BareFill:
    """A task: make a block of the field and write it to a plain Zarr array."""

    field: TemperatureSource
    target: str
    box: Box


def fill_bare(task: BareFill) -> int:
    bare_array(task.target)[task.box.slices(task.field.schema.lo)] = task.field.read(task.box)["t"]
    return task.box.size


class StoreRounds:
    """One field, stored by windrow and as plain Zarr in the same chunks: windows of one, a copy of the other."""

    def __init__(self, database: Database, folder: Path, source: TemperatureSource, schema: Schema) -> None:
        self.database = database
        self.executor = database.engine.spark()
        self.source, self.schema = source, schema
        self.input, self.output = str(folder / "input.zarr"), str(folder / "output.zarr")
        box = schema.box()
        share = -(-box.size // self.executor.workers)
        self.blocks = schema.grid.blocks(box, min(BLOCK_BYTES // 4, share))

    def fill(self) -> None:
        self.database.create("T", self.schema).write(self.source)
        create_bare(self.input, self.schema)
        tasks = [BareFill(self.source, self.input, box) for box in self.blocks]
        self.executor.run(Job("filling plain Zarr", fill_bare, tasks))

    def prepare(self) -> None:
        """No results, and a disk with nothing left to write from the round before."""
        drop_result(self.database)
        shutil.rmtree(self.output, ignore_errors=True)
        create_bare(self.output, self.schema)
        os.sync()

    def store(self) -> None:
        store(self.database.array("T"), {"time": STEPS})

    def copy(self) -> None:
        tasks = [BareCopy(self.input, self.output, box, self.schema.lo) for box in self.blocks]
        self.executor.run(Job("copying plain Zarr", copy_bare, tasks))
