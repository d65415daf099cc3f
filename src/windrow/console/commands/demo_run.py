"""What the demo does, step by step, each with how long it took."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
import numpy as np
import numpy.typing as npt

import windrow as wr
from windrow.api.array import Array
from windrow.api.checksums import block_checksums
from windrow.api.database import Database
from windrow.api.describe import counted, human_bytes
from windrow.api.plotting import require_matplotlib
from windrow.api.work import find_java, start_workers
from windrow.console.commands.demo_figure import Course, draw
from windrow.console.commands.demo_steps import MAKER, Steps, clear
from windrow.console.commands.settings import Settings
from windrow.errors import CorruptionError
from windrow.samples import METADATA, TemperatureSource, temperature_field

if TYPE_CHECKING:
    import xarray as xr

FIELD, WINDOWS = "T", "T30"
DAYS = 30
PLACES = ((13.75, 52.5), (140.0, 35.0), (151.25, -33.75))
MAP_DAY = 195  # mid-July of a leap year

Float32Array = npt.NDArray[np.float32]


def run_demo(settings: Settings, out: Path, lon: int, lat: int, days: int) -> None:
    began = time.perf_counter()
    require_matplotlib()
    find_java()
    steps = Steps()
    with settings.connect(create=True) as db:
        clear(db, FIELD, WINDOWS)
        with steps.timed("made a field") as step:
            field, labels = temperature_field(lon, lat, days + 1)
            values = np.ascontiguousarray(field[:, :, :days])  # the last day comes later
            step.bytes = values.nbytes
            step.text = f"{lon} × {lat} × {days} temperatures, {human_bytes(values.nbytes)}"
        array = _store(db, steps, values)
    with settings.connect(engine="spark") as db:
        _start_spark(db, steps)
        _read_back(db, steps, array.name, values)
        _windows(db, steps, values)
    with settings.connect() as db:
        _append_day(db, steps, field, labels["time"][days:])
        with steps.timed("drew a picture") as step:
            _draw(db, out)
            step.text = f"{out}, {human_bytes(out.stat().st_size)}"
    took = time.perf_counter() - began
    click.echo(f"done in {took:.1f} s; the array and the view are in {settings.db}. Now try:")
    click.echo(f"  windrow list --db {settings.db}")
    click.echo(f"  windrow describe {WINDOWS} --db {settings.db}")
    click.echo(f"  windrow export {FIELD} july.csv --select time=2012-07 --select lat=52.5 --db {settings.db}")


def _store(db: Database, steps: Steps, values: Float32Array) -> Array:
    source = TemperatureSource(*values.shape)
    with steps.timed("stored it") as step:
        described = {"t": {**METADATA["t"], "source": MAKER}}
        *places, days = source.schema.dimensions
        growing = replace(source.schema, dimensions=(*places, replace(days, hi=None)))
        fixed = {name: source.labels[name] for name in ("lon", "lat")}
        array = db.create(FIELD, growing, labels=fixed, metadata=described)
        array.write({"t": values}, labels={"time": source.labels["time"]})
        step.bytes = values.nbytes
        size = human_bytes(array.versions()[-1].bytes)
        step.text = f"{FIELD}@{array.version}, dense, {counted(len(array.chunks()), 'chunk')}, {size} on disk"
    return array


def _start_spark(db: Database, steps: Steps) -> None:
    with steps.timed("started Spark") as step:
        # With the workers' Python, which would make the next step look slow.
        step.text = f"{counted(start_workers(db), 'worker')}, each with its own Python"


def _read_back(db: Database, steps: Steps, name: str, values: Float32Array) -> None:
    array = db.array(name)
    with steps.timed("read it back") as step:
        blocks = block_checksums(array, "t")
        step.bytes = values.nbytes
        mean = sum(block.total for block in blocks) / values.size
        step.text = f"on Spark, {counted(len(blocks), 'task')}, every block as it was made, mean {mean:.2f} K"
    for block in blocks:
        if not block.matches(values[block.box.slices(array.schema.lo)]):
            raise CorruptionError(f"array {FIELD}@{array.version}: the cells {block.box} are not those written")


def _windows(db: Database, steps: Steps, values: Float32Array) -> None:
    query = (
        db.array(FIELD)
        .window(time=wr.trailing(DAYS))
        .agg(avg=wr.avg("t"), p10=wr.percentile("t", 10), p90=wr.percentile("t", 90))
    )
    with steps.timed("moved windows") as step:
        view = db.create_view(WINDOWS, query)
        step.bytes = values.nbytes
        text = f"on Spark, mean and percentiles of each day with the {DAYS - 1} before it"
        step.text = f"{text}, into the view {WINDOWS}@{view.version}"
    last = values.shape[0]
    _check(view.isel(lon=last).to_xarray(), values[-1], f"view {WINDOWS}@{view.version}, lon={last}")


def _append_day(db: Database, steps: Steps, field: Float32Array, label: npt.NDArray[np.datetime64]) -> None:
    """One day more: the view follows in the same version, and only what the day reaches is computed."""
    array, view = db.array(FIELD), db.view(WINDOWS)
    with steps.timed("appended a day") as step:
        report = array.append({"t": field[:, :, -1:]}, {"time": label})
        done = view.history().to_pylist()[-1]
        step.text = (
            f"{FIELD}@{report.version}; the view {WINDOWS}@{view.version} was {done['way']}: "
            f"{done['cells']:,} of {view.box.size:,} cells"
        )
    last = field.shape[0]
    _check(view.isel(lon=last).to_xarray(), field[-1], f"view {WINDOWS}@{view.version}, lon={last}")


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
    courses = []
    for east, north in PLACES:
        field, windowed = (array.sel(lon=east, lat=north, nearest=True) for array in (temperatures, windows))
        values, moving = field.to_xarray()["t"], windowed.to_xarray()
        courses.append(Course(float(values.lon[0]), float(values.lat[0]), values[0, 0], moving.isel(lon=0, lat=0)))
    day = temperatures.isel(time=min(MAP_DAY, temperatures.shape[2])).to_xarray()["t"]
    draw(day, courses, DAYS, out)
