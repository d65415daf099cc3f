"""Dense writes and reads against bare Zarr: same blocks, same chunks, same codecs, same Spark workers."""

from __future__ import annotations

import functools
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.api.array import Array
from windrow.api.database import Database
from windrow.bench.report import Measurement
from windrow.bench.timing import Timings, in_turns
from windrow.execution.executor import Job
from windrow.execution.spark import SparkExecutor
from windrow.model.box import Box
from windrow.model.labels import Labels
from windrow.model.notation import parse_schema
from windrow.model.schema import Schema
from windrow.model.source import Blocks
from windrow.operations.dense.write import BLOCK_BYTES
from windrow.storage.dense.layout import compressors
from windrow.storage.dense.snapshots import DenseSnapshot
from windrow.storage.working import dense_snapshot

LATITUDES, LONGITUDES, STEPS_PER_CHUNK = 145, 288, 24
_PATTERN_STEPS = 768


@functools.lru_cache(maxsize=1)
def pattern() -> npt.NDArray[np.float32]:
    """Weather-like values to two decimals, made once in each process; they compress about as temperatures do."""
    noise = np.random.default_rng(7).standard_normal((_PATTERN_STEPS, LATITUDES, LONGITUDES), np.float32)
    climate = 300 - 60 * np.sin(np.linspace(-np.pi / 2, np.pi / 2, LATITUDES)) ** 2
    season = 8 * np.sin(np.arange(_PATTERN_STEPS) / 60)
    field: npt.NDArray[np.float32] = noise
    field *= 0.3
    field += (climate[:, None] + season[:, None, None]).astype(np.float32)
    return np.round(field, 2, out=field)


@dataclass(frozen=True)
class PatternSource:
    """The pattern, repeated along time, as a GridSource whose boxes cost nothing to read."""

    schema: Schema

    @property
    def labels(self) -> Mapping[str, Labels]:
        return {}

    def read(self, box: Box) -> Blocks:
        return {"t": pattern_of(box)}


def pattern_of(box: Box) -> npt.NDArray[np.float32]:
    steps = box.shape[0]
    start = box.lo[0] % (_PATTERN_STEPS - steps) if steps < _PATTERN_STEPS else 0
    held = pattern()[start : start + steps]
    repeats = -(-steps // len(held))
    values = held if repeats == 1 else np.tile(held, (repeats, 1, 1))[:steps]
    return values[:, box.lo[1] : box.hi[1] + 1, box.lo[2] : box.hi[2] + 1]


def field_schema(steps: int) -> Schema:
    text = (
        f"<t: float32> [time=0:{steps - 1}:{STEPS_PER_CHUNK}, "
        f"lat=0:{LATITUDES - 1}:{LATITUDES}, lon=0:{LONGITUDES - 1}:{LONGITUDES}]"
    )
    return parse_schema(text)[1]


@dataclass(frozen=True)
class BareWrite:
    """A task: write one block into a plain Zarr directory."""

    path: str
    box: Box


@functools.lru_cache(maxsize=4)
def bare_array(path: str) -> Any:
    # Opened once in each worker, as windrow opens a snapshot once.
    import zarr

    return zarr.open_group(path, mode="r+", zarr_format=3)["t"]


def create_bare(path: str, schema: Schema) -> None:
    """An empty Zarr array with the chunks and codecs that windrow gives its own."""
    import zarr

    zarr.open_group(path, mode="w", zarr_format=3).create_array(
        "t",
        shape=schema.box().shape,
        chunks=schema.grid.chunk,
        dtype="float32",
        fill_value=float("nan"),
        compressors=compressors(),
        dimension_names=schema.dimension_names,
    )


def write_bare(task: BareWrite) -> int:
    bare_array(task.path)[task.box.slices((0, 0, 0))] = pattern_of(task.box)
    return task.box.size


def read_bare(task: BareWrite) -> int:
    return int(bare_array(task.path)[task.box.slices((0, 0, 0))].size)


@dataclass(frozen=True)
class SnapshotRead:
    """A task: read one block of a windrow array."""

    snapshot: DenseSnapshot
    box: Box


def read_snapshot(task: SnapshotRead) -> int:
    return int(task.snapshot.read(task.box)["t"].size)


class DenseRounds:
    """One field, written and read by windrow and by bare Zarr, each write into an array of its own."""

    def __init__(self, database: Database, folder: Path, steps: int) -> None:
        self.database = database
        self.executor: SparkExecutor = database.engine.spark()
        self.schema = field_schema(steps)
        self.box = Box((0, 0, 0), (steps - 1, LATITUDES - 1, LONGITUDES - 1))
        self.gigabytes = self.box.size * 4 / 1e9
        share = -(-self.box.size // self.executor.workers)
        self.blocks = self.schema.grid.blocks(self.box, min(BLOCK_BYTES // 4, share))
        self._bare = str(folder / "bare.zarr")
        self._array: Array | None = None

    def prepare(self) -> None:
        """Fresh, empty targets, and a disk with nothing left to write from the round before."""
        if self._array is not None:
            self._array.drop()
        self._array = self.database.create("dense", self.schema)
        shutil.rmtree(self._bare, ignore_errors=True)
        create_bare(self._bare, self.schema)
        os.sync()

    @property
    def array(self) -> Array:
        assert self._array is not None
        return self._array

    def write(self) -> None:
        self.array.write(PatternSource(self.schema))

    def write_bare(self) -> None:
        self.executor.run(Job("bare write", write_bare, [BareWrite(self._bare, box) for box in self.blocks]))

    def read(self) -> None:
        catalog = self.database.catalog
        record = catalog.array("dense")
        snapshot = dense_snapshot(self.database.warehouse, record, catalog.version(record))
        self.executor.run(Job("read", read_snapshot, [SnapshotRead(snapshot, box) for box in self.blocks]))

    def read_bare(self) -> None:
        self.executor.run(Job("bare read", read_bare, [BareWrite(self._bare, box) for box in self.blocks]))


def measure_dense(database: Database, folder: Path, steps: int, rounds: int) -> Iterator[Measurement]:
    """Write and read speed as a share of bare Zarr's."""
    dense = DenseRounds(database, folder, steps)
    written = in_turns({"windrow": dense.write, "bare": dense.write_bare}, rounds, between=dense.prepare)
    yield _share("write speed against bare Zarr", written, 0.6, dense.gigabytes)
    # Each preparation emptied both targets, so the last round left only one of them full.
    dense.prepare()
    dense.write()
    dense.write_bare()
    read = in_turns({"windrow": dense.read, "bare": dense.read_bare}, rounds)
    yield _share("read speed against bare Zarr", read, 0.8, dense.gigabytes)
    dense.array.drop()
    shutil.rmtree(dense._bare, ignore_errors=True)


def _share(what: str, times: Mapping[str, Timings], target: float, gigabytes: float) -> Measurement:
    ours, theirs = times["windrow"], times["bare"]
    detail = (
        f"windrow {ours}, {gigabytes * 1000 / ours.median:,.0f} MB/s; "
        f"Zarr {theirs}, {gigabytes * 1000 / theirs.median:,.0f} MB/s; best to best {theirs.best / ours.best:.2f}×"
    )
    return Measurement("dense", what, theirs.median / ours.median, "×", target, detail=detail)
