"""What the demo does, step by step, each with how long it took."""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click
import numpy as np
import numpy.typing as npt

import windrow as wr
from windrow.api.array import Array
from windrow.api.database import Database
from windrow.api.describe import counted, human_bytes
from windrow.api.plotting import require_matplotlib
from windrow.bench.fields import METADATA, TemperatureSource, temperature_field
from windrow.console.demo_figure import Course, draw
from windrow.console.settings import Settings
from windrow.errors import CorruptionError, SchemaError
from windrow.execution.executor import Job
from windrow.execution.java import find_java
from windrow.model.box import Box
from windrow.storage.dense import DenseSnapshot

if TYPE_CHECKING:
    import xarray as xr

FIELD, WINDOWS = "T", "T30"
DAYS = 30
MAKER = "windrow demo"
PLACES = ((13.75, 52.5), (140.0, 35.0), (151.25, -33.75))
MAP_DAY = 195  # mid-July of a leap year

Float32Array = npt.NDArray[np.float32]


def run_demo(settings: Settings, out: Path, lon: int, lat: int, days: int) -> None:
    began = time.perf_counter()
    require_matplotlib()
    find_java()
    steps = _Steps()
    with settings.connect(create=True) as db:
        _clear(db)
        with steps.timed("made a field") as step:
            values, _ = temperature_field(lon, lat, days)
            step.bytes = values.nbytes
            step.text = f"{lon} × {lat} × {days} temperatures, {human_bytes(values.nbytes)}"
        array = _store(db, steps, values)
    with settings.connect(engine="spark") as db:
        _start_spark(db, steps)
        _read_back(db, steps, array.name, values)
        _windows(db, steps, values)
        with steps.timed("drew a picture") as step:
            _draw(db, out)
            step.text = f"{out}, {human_bytes(out.stat().st_size)}"
    click.echo(f"done in {time.perf_counter() - began:.1f} s; both arrays are in {settings.db}. Now try:")
    click.echo(f"  windrow list --db {settings.db}")
    click.echo(f"  windrow describe {WINDOWS} --db {settings.db}")
    click.echo(f"  windrow export {FIELD} july.csv --select time=2012-07 --select lat=52.5 --db {settings.db}")


@dataclass
class _Step:
    text: str = ""
    bytes: int = 0


@dataclass
class _Steps:
    """Prints each step when it is done."""

    number: int = 0

    @contextmanager
    def timed(self, did: str) -> Iterator[_Step]:
        step = _Step()
        began = time.perf_counter()
        yield step
        took = time.perf_counter() - began
        self.number += 1
        speed = f", {step.bytes / 1e6 / took:,.0f} MB/s" if step.bytes else ""
        click.echo(f"{self.number}. {did:<15} {step.text}  [{took:.2f} s{speed}]")


def _clear(db: Database) -> None:
    """Remove what an earlier demo stored, and nothing else."""
    for name in (FIELD, WINDOWS):
        if name in db and not any(of.get("source") == MAKER for of in db.array(name)._record().metadata.values()):
            raise SchemaError(
                f"the demo stores an array {name}, and the warehouse has one that is not the demo's",
                got=repr(db.array(name)),
                hint="Give the demo a warehouse of its own: windrow demo --db demo-warehouse",
            )
    for name in (FIELD, WINDOWS):
        if name in db:
            db.drop(name)


def _store(db: Database, steps: _Steps, values: Float32Array) -> Array:
    source = TemperatureSource(*values.shape)
    with steps.timed("stored it") as step:
        described = {"t": {**METADATA["t"], "source": MAKER}}
        array = db.create(FIELD, source.schema, labels=source.labels, metadata=described)
        array.write({"t": values})
        step.bytes = values.nbytes
        size = human_bytes(array.versions()[-1].bytes)
        step.text = f"{FIELD}@{array.version}, dense, {counted(len(array.chunks()), 'chunk')}, {size} on disk"
    return array


def _start_spark(db: Database, steps: _Steps) -> None:
    with steps.timed("started Spark") as step:
        executor = db.engine.spark()
        # The first job also starts the workers' Python, which would make the next step look slow.
        executor.run(Job("a first job", abs, list(range(executor.workers))))
        step.text = f"{counted(executor.workers, 'worker')}, each with its own Python"


@dataclass(frozen=True)
class _BlockCheck:
    """A task: read a block on a worker."""

    snapshot: DenseSnapshot
    box: Box


def check_block(task: _BlockCheck) -> tuple[int, float]:
    """The checksum and the sum of a block, as a worker reads it."""
    values = task.snapshot.read(task.box)["t"]
    return zlib.crc32(np.ascontiguousarray(values).data), float(values.sum(dtype=np.float64))


def _read_back(db: Database, steps: _Steps, name: str, values: Float32Array) -> None:
    array = db.array(name)
    snapshot = array._snapshot()
    assert isinstance(snapshot, DenseSnapshot)
    executor = db.engine.spark()
    blocks = snapshot.schema.grid.blocks(snapshot.box, snapshot.box.size // (2 * executor.workers))
    tasks = [_BlockCheck(snapshot, box) for box in blocks]
    with steps.timed("read it back") as step:
        largest = max(box.size for box in blocks) * values.itemsize
        receipts = executor.run(Job(f"reading {FIELD}", check_block, tasks, 3 * largest))
        step.bytes = values.nbytes
        mean = sum(total for _, total in receipts) / snapshot.box.size
        step.text = f"on Spark, {counted(len(blocks), 'task')}, every block as it was made, mean {mean:.2f} K"
    for box, (checksum, _) in zip(blocks, receipts, strict=True):
        if checksum != zlib.crc32(np.ascontiguousarray(values[box.slices(snapshot.schema.lo)]).data):
            raise CorruptionError(f"array {FIELD}@{array.version}: the cells {box} are not those written")


def _windows(db: Database, steps: _Steps, values: Float32Array) -> None:
    query = (
        db.array(FIELD)
        .window(time=wr.trailing(DAYS))
        .agg(avg=wr.avg("t"), p10=wr.percentile("t", 10), p90=wr.percentile("t", 90))
    )
    with steps.timed("moved windows") as step:
        meanings = {"avg": "mean", "p10": "10th percentile", "p90": "90th percentile"}
        described = {
            name: {"units": "K", "long_name": f"{meaning} of the last {DAYS} days", "source": MAKER}
            for name, meaning in meanings.items()
        }
        array = db.create(WINDOWS, query.schema, labels=db.array(FIELD).labels, metadata=described)
        query.store(WINDOWS)
        step.bytes = values.nbytes
        text = f"on Spark, mean and percentiles of each day with the {DAYS - 1} before it"
        step.text = f"{text}, into {WINDOWS}@{array.version}"
    last = values.shape[0]
    _check(array.read(lon=last), values[-1], f"array {WINDOWS}@{array.version}, lon={last}")


def _check(stored: xr.Dataset, values: Float32Array, where: str) -> None:
    """Compare one longitude with windows cut out one by one."""
    for end in range(values.shape[1]):
        window = np.sort(values[:, max(0, end + 1 - DAYS) : end + 1], axis=1)
        count = window.shape[1]
        wanted = {f"p{percent}": window[:, min(count, percent * count // 100 + 1) - 1] for percent in (10, 90)}
        same = all(np.array_equal(stored[name].values[0, :, end], column) for name, column in wanted.items())
        means = window.mean(axis=1, dtype=np.float64)
        if not same or not np.allclose(stored["avg"].values[0, :, end], means, rtol=1e-12, atol=0):
            raise CorruptionError(f"{where}: day {end + 1} is not what its window says")


def _draw(db: Database, out: Path) -> None:
    temperatures, windows = db.array(FIELD), db.array(WINDOWS)
    labels = temperatures.labels
    courses = []
    for east, north in PLACES:
        lon, lat = (int(np.abs(labels[n].values - at).argmin()) + 1 for n, at in (("lon", east), ("lat", north)))
        chosen = {"lon": lon, "lat": lat}
        values, moving = temperatures.read(**chosen)["t"], windows.read(**chosen)
        courses.append(Course(float(values.lon[0]), float(values.lat[0]), values[0, 0], moving.isel(lon=0, lat=0)))
    day = temperatures.read(time=min(MAP_DAY, temperatures.shape[2]))["t"]
    draw(day, courses, DAYS, out)
