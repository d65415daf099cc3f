"""What small batches cost on a sparse array: processor time and bytes against a bare Parquet file of the same cells."""

from __future__ import annotations

import contextlib
import functools
import sqlite3
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from windrow.api.array import Array
from windrow.api.database import Database, connect
from windrow.bench.report import Bound, Measurement
from windrow.model.schema import CHUNK_COLUMN
from windrow.storage.cells import to_stored
from windrow.storage.parts import GROUP_CELLS, part_options
from windrow.storage.places import directory_bytes
from windrow.storage.records import Part
from windrow.storage.sparse import SparseSnapshot
from windrow.storage.upkeep.tidying import base_parts

SCHEMA = "<mag: float32, flux: float32> [time=1:153064:112, ra=1:100000:100, dec=1:50000:50]"
FIELDS, FIELDS_A_ROW, FIELD_STEP = 200, 20, 4_900
FIELDS_A_NIGHT, FIELD_CELLS = 20, 2_500
NIGHT = FIELDS_A_NIGHT * FIELD_CELLS
ROUNDS = 3
Cells = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class Batches:
    """How much is measured: the cells an array has before, and how many batches change it."""

    cells: int
    batches: int


class Sky:
    """Nights of detections in a few of many fields, each a small patch of the sky."""

    def __init__(self, seed: int = 1) -> None:
        self.dice = np.random.default_rng(seed)
        numbers = np.arange(FIELDS)
        self.corners = 1 + FIELD_STEP * np.stack([numbers % FIELDS_A_ROW, numbers // FIELDS_A_ROW], axis=1)
        self.nights = 0

    @property
    def fields(self) -> npt.NDArray[np.int64]:
        """The fields of the next night."""
        return (self.nights * FIELDS_A_NIGHT + np.arange(FIELDS_A_NIGHT)) % FIELDS

    def night(self, cells: int = NIGHT) -> Cells:
        """New cells: the next night, in the next fields."""
        fields = self.fields
        self.nights += 1
        each = cells // FIELDS_A_NIGHT
        places = np.concatenate([self.dice.choice(700 * 400, each, replace=False) for _ in fields])
        corner = np.repeat(self.corners[fields], each, axis=0)
        return self.with_values(
            {
                "time": np.full(len(places), 1 + 30 * self.nights, np.int64),
                "ra": corner[:, 0] + places // 400,
                "dec": corner[:, 1] + places % 400,
            }
        )

    def with_values(self, places: Cells) -> Cells:
        count = len(places["time"])
        values = {name: np.round(self.dice.normal(20, 2, count), 3).astype(np.float32) for name in ("mag", "flux")}
        return places | values


class Stored:
    """The places of the cells that an array had at the beginning, to draw from."""

    def __init__(self, array: Array, dice: np.random.Generator) -> None:
        table = array.read([])
        self.places = {name: table.column(name).to_numpy() for name in ("time", "ra", "dec")}
        self.dice = dice
        fields = (self.places["ra"] - 1) // FIELD_STEP + (self.places["dec"] - 1) // FIELD_STEP * FIELDS_A_ROW
        order = np.argsort(fields, kind="stable")
        self._by_field = np.split(order, np.searchsorted(fields[order], np.arange(1, FIELDS)))

    def pick(self, count: int, fields: npt.NDArray[np.int64] | None = None) -> Cells:
        """Some places, of all cells or of those in some fields, over all nights."""
        among: Any = len(self.places["time"])
        if fields is not None:
            among = np.concatenate([self._by_field[field] for field in fields])
        chosen = np.sort(self.dice.choice(among, count, replace=False))
        return {name: column[chosen] for name, column in self.places.items()}


def join_cells(*pieces: Cells) -> Cells:
    return {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}


@dataclass(frozen=True)
class Cost:
    """Processor seconds and bytes written."""

    seconds: float
    bytes: int


def measure_cost(action: Callable[[], object], folder: Path) -> Cost:
    before, start = directory_bytes(folder), time.process_time()
    action()
    return Cost(time.process_time() - start, directory_bytes(folder) - before)


def write_bare(array: Array, cells: Cells, path: Path) -> Cost:
    """The same cells as one Parquet file, sorted alike and with the same settings."""
    schema = array.schema
    table = pa.table({name: pa.array(cells[name]) for name in (*schema.dimension_names, *schema.attribute_names)})
    ordinals = schema.grid.ordinals([cells[name] for name in schema.dimension_names])
    order = np.lexsort([*(cells[name] for name in schema.dimension_names[::-1]), ordinals])
    stored = to_stored(table.take(pa.array(order)), ordinals[order], schema)
    assert stored.column_names[0] == CHUNK_COLUMN
    write = functools.partial(pq.write_table, stored, path, row_group_size=GROUP_CELLS, **part_options(schema))
    seconds = min(_timed(write) for _ in range(ROUNDS))
    return Cost(seconds, path.stat().st_size)


def _timed(action: Callable[[], object]) -> float:
    start = time.process_time()
    action()
    return time.process_time() - start


def build(database: Database, name: str, sky: Sky, cells: int) -> Array:
    """An array of that many cells, compacted, as it is before the changes that are measured."""
    array = database.create(name, SCHEMA, sparse=True)
    nights = [sky.night() for _ in range(cells // NIGHT)]
    for start in range(0, len(nights), 20):
        array.insert(join_cells(*nights[start : start + 20]))
    array.compact()
    return array


def measure_batches(folder: Path, scale: Batches) -> Iterator[Measurement]:
    """Single batches of each kind, and then many in a row."""
    with connect(folder / "batches", engine="local", progress=False) as database:
        sky = Sky()
        array = build(database, "detections", sky, scale.cells)
        stored = Stored(array, sky.dice)
        yield from measure_single(array, sky, stored, folder)
        yield from measure_many(array, sky, stored, folder, scale.batches)


def measure_single(array: Array, sky: Sky, stored: Stored, folder: Path) -> Iterator[Measurement]:
    percent = array.versions()[-1].cells // 100
    upserts = min(NIGHT, percent * 2)

    def clustered() -> Cells:
        old = stored.pick(upserts // 10, sky.fields)
        return join_cells(sky.night(upserts - upserts // 10), sky.with_values(old))

    def in_few_fields() -> Cells:
        return sky.with_values(stored.pick(percent, sky.fields))

    kinds: dict[str, tuple[Callable[[], Cells], float, float]] = {
        "a night of new cells": (sky.night, 1.2, 6),
        "upserts, a tenth replacing": (clustered, 2.5, 15),
        "1 % replaced at random": (lambda: sky.with_values(stored.pick(percent)), 2.5, 60),
        "1 % replaced in few fields": (in_few_fields, 4, 20),
    }
    for what, (make, most_bytes, most_time) in kinds.items():
        costs, bare = _measure_rounds(array, make, folder)
        size = statistics.median(cost.bytes / other.bytes for cost, other in zip(costs, bare, strict=True))
        fastest, bare_seconds = min(cost.seconds for cost in costs), min(cost.seconds for cost in bare)
        detail = f"bare {bare[0].bytes / 1e6:.2f} MB; {len(costs)} batches in which no tidying was due"
        yield _line(f"{what}: bytes", size, "×", most_bytes, detail)
        detail = f"{fastest * 1000:.0f} ms against {bare_seconds * 1000:.0f} ms"
        yield _line(f"{what}: processor time", fastest / max(bare_seconds, 1e-4), "×", most_time, detail)
    condition = "mag between 19.97 and 19.99"
    cost = measure_cost(lambda: array.delete(condition), Path(array.location().path))
    yield _line("about 1 % deleted: written", cost.bytes / 1e6, "MB", 1.5, f"{cost.seconds:.2f} s")


def _measure_rounds(array: Array, make: Callable[[], Cells], folder: Path) -> tuple[list[Cost], list[Cost]]:
    """Batches of one kind, and bare files of their cells; those in which tidying fell due are not counted."""
    path = Path(array.location().path)
    costs: list[Cost] = []
    bare: list[Cost] = []
    for number in range(4 * ROUNDS):
        cells, before = make(), len(list(path.glob("*.parquet")))
        file = write_bare(array, cells, folder / f"bare-{number}.parquet")
        cost = measure_cost(functools.partial(array.insert, cells), path)
        if len(list(path.glob("*.parquet"))) == before + 1 or number == 4 * ROUNDS - 1:
            costs, bare = [*costs, cost], [*bare, file]
        if len(costs) == ROUNDS:
            break
    return costs, bare


def _line(what: str, value: float, unit: str, target: float, detail: str, bound: Bound = "at most") -> Measurement:
    return Measurement("batches", what, value, unit, target, bound, detail)


def measure_many(array: Array, sky: Sky, stored: Stored, folder: Path, batches: int) -> Iterator[Measurement]:
    """Many batches in a row: half new, half replaced cells, and some deleted."""
    path = Path(array.location().path)
    catalog = folder / "batches" / "catalog.sqlite"
    before_catalog, before_log = _catalog_bytes(catalog), directory_bytes(path / "_delta_log")
    files = sum(1 for _ in path.rglob("*"))
    costs, ratios = [], []
    for _ in range(batches):
        old = stored.pick(4_400, sky.fields)
        cells = join_cells(sky.night(5_000), sky.with_values(old))
        bare = write_bare(array, cells, folder / "bare.parquet")
        gone = int(old["time"][0]), int(old["ra"][0])

        def change(cells: Cells = cells, gone: tuple[int, int] = gone) -> None:
            with array._database.batch() as batch:
                batch.insert(array.name, cells)
                batch.delete(array.name, f"time = {gone[0]} and ra between {gone[1]} and {gone[1] + 30}")

        costs.append(measure_cost(change, path))
        ratios.append(costs[-1].bytes / bare.bytes)
    seconds = [cost.seconds for cost in costs]
    tenth = max(1, batches // 10)
    early, late = statistics.median(seconds[:tenth]), statistics.median(seconds[-tenth:])
    yield _line(f"{batches:,} batches: mean bytes", statistics.mean(ratios), "×", 15, "against bare, tidying included")
    yield _line(
        "last tenth against the first, medians", late / early, "×", 1.3, f"{early * 1e3:.0f}, {late * 1e3:.0f} ms"
    )
    worst = float(np.quantile(seconds, 0.99))
    yield _line("99th percentile against the median", worst / statistics.median(seconds), "×", 15, f"{worst:.2f} s")
    yield _line("slowest batch", max(seconds), "s", 3, f"{sum(seconds):.1f} s in all")
    growth = (_catalog_bytes(catalog) - before_catalog) / batches
    yield _line("catalog, besides 10 bytes a chunk written", growth / 1e3, "KB", 4, "a batch")
    grown = (directory_bytes(path / "_delta_log") - before_log) / batches
    yield _line("Delta log", grown / 1e3, "KB", 20, "a batch")
    yield _line("files", (sum(1 for _ in path.rglob("*")) - files) / batches, "", 4, "a batch, versions all kept")
    yield from measure_reads(array)
    yield from measure_collection(array, path)


def _catalog_bytes(catalog: Path) -> int:
    """What it takes besides ten bytes for every chunk of a part, without the log beside it, which comes and goes."""
    with contextlib.closing(sqlite3.connect(catalog)) as connection:
        connection.execute("pragma wal_checkpoint(truncate)")
        size = connection.execute("select page_count * page_size from pragma_page_count, pragma_page_size").fetchone()
        chunks = connection.execute("select coalesce(sum(chunks), 0) from part_chunks").fetchone()
    return int(size[0]) - 10 * int(chunks[0])


def measure_reads(array: Array) -> Iterator[Measurement]:
    """Reading after many batches against reading the same cells freshly compacted."""
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
    before = {what: min(_timed(read) for _ in range(5)) for what, (read, _) in reads.items()}
    array.compact()
    after = {what: min(_timed(read) for _ in range(5)) for what, (read, _) in reads.items()}
    for what, (_, most) in reads.items():
        detail = f"{before[what] * 1e3:.1f} against {after[what] * 1e3:.1f} ms compacted"
        yield _line(f"{what} afterwards", before[what] / max(after[what], 1e-4), "×", most, detail)
    compacted = sum(part.bytes for part in _parts(array))
    detail = f"{len(parts)} parts, {over} of them over others"
    yield _line("stored bytes afterwards", stored / compacted, "×", 1.15, detail)


def _parts(array: Array) -> Sequence[Part]:
    snapshot = array._snapshot()
    assert isinstance(snapshot, SparseSnapshot)
    return snapshot.parts


def measure_collection(array: Array, path: Path) -> Iterator[Measurement]:
    seconds = _timed(lambda: array._database.collect_garbage(keep_versions=10))
    files = sum(file.is_file() for file in path.rglob("*"))
    yield _line("files after giving up all but 10 versions", files, "", 150, f"collected in {seconds:.2f} s")
