"""Many small batches in a row: what they write, how their time grows, how the array reads, and what is left of them."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import psutil

from windrow.api.array import Array
from windrow.api.database import connect
from windrow.bench.report import Measurement
from windrow.bench.storage.peers import count_outside
from windrow.bench.storage.sky import (
    Cells,
    Cost,
    Sky,
    Stored,
    join_cells,
    line,
    measure_cost,
    processor_seconds,
    write_bare,
)
from windrow.errors import CorruptionError
from windrow.storage.places import directory_bytes
from windrow.storage.records import Part
from windrow.storage.sparse import SparseSnapshot
from windrow.storage.upkeep.tidying import base_parts

NEW, REPLACED = 5_000, 4_400
EARLY = slice(10, 110)
LATE = 100
KEPT = 10
REST_SECONDS = 15


@dataclass
class Course:
    """What batches did so far."""

    costs: list[Cost] = field(default_factory=list)
    bare: list[Cost] = field(default_factory=list)
    threads: int = 0
    """The most that there were up to batch ten: those of stores stay for some seconds after their work."""

    def note(self, cost: Cost, bare: Cost) -> None:
        self.costs.append(cost)
        self.bare.append(bare)
        if len(self.costs) <= KEPT:
            self.threads = max(self.threads, psutil.Process().num_threads())


def measure_many(
    array: Array, sky: Sky, stored: Stored, folder: Path, length: tuple[int, Sequence[int]]
) -> Iterator[Measurement]:
    """Batches of new, replaced and deleted cells in a row; after some of them the array is read."""
    batches, marks = length
    path, catalog = Path(array.location().path), folder / "batches" / "catalog.sqlite"
    before = _catalog_size(catalog), directory_bytes(path / "_delta_log"), _count(path)
    course = Course()
    for number in range(1, batches + 1):
        old = stored.pick(REPLACED, sky.fields)
        cells = join_cells(sky.night(NEW), sky.with_values(old))
        bare = write_bare(array, cells, folder / "bare.parquet")
        course.note(measure_cost(_change(array, cells, old), path), bare)
        if number in marks:
            yield from _measure_reads(folder, array.name, number)
    yield from _measure_course(course)
    yield from _measure_catalog(before[0], _catalog_size(catalog), batches)
    grown = (directory_bytes(path / "_delta_log") - before[1]) / batches
    yield line("Delta log", grown / 1e3, "KB", 20, "a batch")
    yield line("files", (_count(path) - before[2]) / batches, "", 4, "a batch, versions all kept")
    time.sleep(REST_SECONDS)
    threads = psutil.Process().num_threads()
    detail = f"after {REST_SECONDS} s of rest, against {course.threads} up to batch {min(KEPT, batches)}"
    yield line("threads", threads, "", max(1, course.threads), detail)
    yield from _measure_collection(array, path)


def _change(array: Array, cells: Cells, old: Cells) -> Callable[[], None]:
    """One batch: cells that come or are replaced, and a strip of others that go."""
    day, strip = int(old["time"][0]), int(old["ra"][0])

    def change() -> None:
        with array._database.batch() as batch:
            batch.insert(array.name, cells)
            batch.delete(array.name, f"time = {day} and ra between {strip} and {strip + 30}")

    return change


def _measure_course(course: Course) -> Iterator[Measurement]:
    ratios = [cost.bytes / bare.bytes for cost, bare in zip(course.costs, course.bare, strict=True)]
    seconds = [cost.seconds for cost in course.costs]
    yield line(f"{len(ratios):,} batches: mean bytes", statistics.mean(ratios), "×", 15, "of bare, tidying included")
    early = statistics.median(seconds[EARLY] if len(seconds) > EARLY.stop else seconds[: len(seconds) // 2 + 1])
    late = statistics.median(seconds[-min(LATE, len(seconds) // 2 + 1) :])
    detail = f"medians {early * 1e3:.0f}, {late * 1e3:.0f} ms"
    yield line("time of late batches against early ones", late / early, "×", 1.3, detail)
    worst = float(np.quantile(seconds, 0.99))
    yield line("99th percentile against the median", worst / statistics.median(seconds), "×", 15, f"{worst:.2f} s")
    yield line("slowest batch", max(seconds), "s", 3, f"{sum(seconds):.1f} s in all")


def _count(path: Path) -> int:
    return sum(file.is_file() for file in path.rglob("*"))


@dataclass(frozen=True)
class CatalogSize:
    """The bytes of a catalog, those among them that it has for single chunks, and how many chunks parts have."""

    bytes: int
    for_chunks: int
    chunks: int


def _catalog_size(catalog: Path) -> CatalogSize:
    """Without the log beside it, which comes and goes."""
    with contextlib.closing(sqlite3.connect(catalog)) as connection:
        connection.execute("pragma wal_checkpoint(truncate)")
        size = connection.execute("select page_count * page_size from pragma_page_count, pragma_page_size").fetchone()
        told = "select coalesce(sum(length(encoded)), 0), coalesce(sum(chunks), 0) from part_chunks"
        indexes, chunks = connection.execute(told).fetchone()
        (marks,) = connection.execute("select coalesce(sum(length(marked)), 0) from vectors").fetchone()
    return CatalogSize(int(size[0]), int(indexes) + int(marks), int(chunks))


def _measure_catalog(before: CatalogSize, after: CatalogSize, batches: int) -> Iterator[Measurement]:
    for_chunks, chunks = after.for_chunks - before.for_chunks, after.chunks - before.chunks
    rest = after.bytes - before.bytes - for_chunks
    yield line("catalog, besides what it says of chunks", rest / batches / 1e3, "KB", 4, "a batch")
    detail = f"{chunks / batches:,.0f} chunks a batch, tidying included"
    yield line("catalog, for every chunk written", for_chunks / max(1, chunks), "bytes", 10, detail)


def _measure_reads(folder: Path, name: str, number: int) -> Iterator[Measurement]:
    """Reading after many batches against reading the same cells compacted, in a copy: the array itself goes on."""
    copied = folder / "copied"
    shutil.copytree(folder / "batches", copied)
    try:
        with connect(copied, engine="local", progress=False) as database:
            yield from measure_reads(database.array(name), f"after {number:,}")
    finally:
        shutil.rmtree(copied)


def measure_reads(array: Array, when: str) -> Iterator[Measurement]:
    box = {"time": (1, 700), "ra": (1, 350), "dec": (1, 400)}
    cells = array.read(["mag"], **box).num_rows
    reads: dict[str, tuple[Callable[[], object], float]] = {
        "full scan": (lambda: sum(table.num_rows for table in array.batches()), 1.5),
        f"box of {cells:,} cells": (lambda: array.read(**box), 2.5),
        "one chunk": (lambda: array.read(time=(1, 112), ra=(1, 100), dec=(1, 50)), 7),
    }
    parts = _parts(array)
    stored = sum(part.bytes for part in parts)
    over = len(parts) - len(base_parts(parts))
    before = {what: min(processor_seconds(read) for _ in range(5)) for what, (read, _) in reads.items()}
    array.compact()
    after = {what: min(processor_seconds(read) for _ in range(5)) for what, (read, _) in reads.items()}
    for what, (_, most) in reads.items():
        detail = f"{before[what] * 1e3:.1f} against {after[what] * 1e3:.1f} ms compacted"
        yield line(f"{what} {when}", before[what] / max(after[what], 1e-4), "×", most, detail)
    compacted = sum(part.bytes for part in _parts(array))
    detail = f"{len(parts)} parts, {over} of them over others"
    yield line(f"stored bytes {when}", stored / compacted, "×", 1.15, detail)


def _parts(array: Array) -> Sequence[Part]:
    snapshot = array._snapshot()
    assert isinstance(snapshot, SparseSnapshot)
    return snapshot.parts


def _measure_collection(array: Array, path: Path) -> Iterator[Measurement]:
    seconds = processor_seconds(lambda: array._database.collect_garbage(keep_versions=KEPT))
    kept = array.versions()
    for version in kept:
        if (found := count_outside(array.location(version.number))) != version.cells:
            got = f"{found} instead of {version.cells} cells"
            raise CorruptionError(f"{array.name}@{version.number} is not the same outside after collecting", got=got)
    detail = f"collected in {seconds:.2f} s; {len(kept)} versions as large outside as inside"
    yield line(f"files after giving up all but {KEPT} versions", _count(path), "", 150, detail)
