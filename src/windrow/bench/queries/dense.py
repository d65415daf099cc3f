"""Questions about a dense field, against xarray with Dask on the same chunks."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.api.array import Array
from windrow.api.database import Database, connect
from windrow.bench.queries.race import OURS, Contender, Question, gains, path_of, race, ratios
from windrow.bench.queries.scale import THREADS, QueriesBench
from windrow.bench.report import Measurement
from windrow.bench.tables import Table
from windrow.bench.timing import duration, fresh_process, in_turns, time_call

DASK = "xarray + Dask"
FLOAT32_MEANS, EXACTLY = 1e-4, 0.0
"""Dask adds float32 values as float32, so that its means are off by this much."""
DECODING, DECODE_SHARE, MOST_MEMORY = "bare decode", 0.6, 150
YEAR_STEPS = 0.5


def make_field(shape: tuple[int, int, int]) -> npt.NDArray[np.float32]:
    """Weather-like values to two decimals: longitude, latitude, time."""
    longitudes, latitudes, steps = shape
    noise = np.random.default_rng(7).standard_normal((longitudes, latitudes, steps), np.float32)
    climate = 300 - 60 * np.sin(np.linspace(-np.pi / 2, np.pi / 2, latitudes)) ** 2
    season = 8 * np.sin(np.arange(steps) / 60)
    noise *= 0.3
    noise += (climate[:, None] + season).astype(np.float32)
    return np.round(noise, 2, out=noise)


@contextmanager
def stored_field(bench: QueriesBench) -> Iterator[tuple[Database, Array]]:
    scale = bench.scale
    sides = [f"{name}=0:{extent - 1}:{chunk}" for name, extent, chunk in _sides(bench)]
    days = -(-scale.field[2] // scale.steps_a_day)
    steps = np.timedelta64(24 // scale.steps_a_day, "h")
    times = np.datetime64("2022-01-01") + np.arange(days * scale.steps_a_day)[: scale.field[2]] * steps
    with connect(bench.folder / "dense", engine="local", progress=False, workers=THREADS) as database:
        if "T" not in database:
            array = database.create("T", f"<t: float32> [{', '.join(sides)}]", labels={"time": times})
            array.write({"t": make_field(scale.field)})
        yield database, database.array("T")


def _sides(bench: QueriesBench) -> list[tuple[str, int, int]]:
    return list(zip(("lon", "lat", "time"), bench.scale.field, bench.scale.chunk, strict=True))


def measure_dense(bench: QueriesBench) -> Iterator[Table | Measurement]:
    """Every question, and the bare decode of all chunks, which no question over all of them can beat."""
    with stored_field(bench) as (database, array):
        lines, found = [], []
        for question in _questions(bench, database, array):
            line = race(question, bench.scale.rounds, bench.scale.field[2])
            lines.append(line)
            found += gains("dense", question, line)
        cells = "×".join(map(str, bench.scale.field))
        about = f"Medians by the clock, {THREADS} threads each, the same chunks, warm files."
        yield Table("dense", f"A field of {cells} float32", about, tuple(lines), ratios(DASK), across="steps")
        yield from found
        yield _decoding(bench, database, array)


def _questions(bench: QueriesBench, database: Database, array: Array) -> Iterator[Question]:
    asked = _Asked(bench, database, array)
    year = int(bench.scale.field[2] * YEAR_STEPS) - 1
    yield asked.of("mean of all", "select avg(t) as r from T", lambda t: t.mean(), 2.0, FLOAT32_MEANS)
    yield asked.of("mean over time", "select avg(t) as r from T group by lon, lat", _mean_over_time, 2.0, FLOAT32_MEANS)
    yield asked.of("max over time", "select max(t) as r from T group by lon, lat", lambda t: t.max("time"), 1.6)
    yield asked.of("median over time", "select median(t) as r from T group by lon, lat", _median, 1.8, FLOAT32_MEANS)
    yield asked.of("count where", "select count(*) as r from T where t > 300", lambda t: (t > 300).sum(), 2.0)
    yield asked.of(
        "expression of a year",
        f"select t * 1.8 - 459.67 as r from T where cell(time) between 0 and {year}",
        lambda t: t.isel(time=slice(0, year + 1)) * np.float64(1.8) - 459.67,
        1.7,
        FLOAT32_MEANS,
    )
    yield asked.of(
        "expression of all", "select t * 1.8 - 459.67 as r from T", lambda t: t * np.float64(1.8) - 459.67, 2.5,
        FLOAT32_MEANS,
    )  # fmt: skip
    months = "select avg(t) as r from T group by lon, lat, month(time)"
    yield asked.in_groups("mean by month", months, lambda t: t.groupby("time.month").mean(), 2.5)
    days = "select avg(t) as r from T group by lon, lat, dayofyear(time)"
    yield asked.in_groups("mean by day of year", days, lambda t: t.groupby("time.dayofyear").mean(), 3.0)
    anomaly = "select t - avg(t) over (lon, lat, month(time)) as r from T"
    yield asked.in_groups("anomaly from the month's mean", anomaly, _anomaly, 5.0)
    place = "cell(lon) = 40 and cell(lat) = 20"
    yield asked.of("one series", f"select t as r from T where {place}", lambda t: t.isel(lon=40, lat=20), 1.2)
    yield asked.of("one map", "select t as r from T where cell(time) = 100", lambda t: t.isel(time=100), 1.5)


def _mean_over_time(t: Any) -> Any:
    return t.mean("time")


def _median(t: Any) -> Any:
    return t.chunk({"time": -1}).median("time")


def _anomaly(t: Any) -> Any:
    groups = t.groupby("time.month")
    return groups - groups.mean()


class _Asked:
    """Questions to windrow and to xarray."""

    def __init__(self, bench: QueriesBench, database: Database, array: Array) -> None:
        self._database, self._flox = database, bench.has("flox")
        self._theirs = None
        if bench.has(DASK):
            chunks = {name: chunk for name, _, chunk in _sides(bench)}
            self._theirs = array.to_xarray()["t"].chunk(chunks)

    def of(
        self, name: str, text: str, theirs: Callable[[Any], Any], target: float, nearness: float = EXACTLY
    ) -> Question:
        query = self._database.query(text)
        contenders = {OURS: Contender(query.compute, _values)}
        if self._theirs is not None:
            lazy = theirs(self._theirs)
            contenders[DASK] = Contender(
                functools.partial(_compute, lazy),
                lambda found: _in_order(found.transpose(*[d for d in _ORDER if d in found.dims])),
            )
        return Question(name, contenders, {DASK: target}, path_of(query), nearness)

    def in_groups(self, name: str, text: str, theirs: Callable[[Any], Any], target: float) -> Question:
        """Against the faster of xarray's two ways to group, tried beforehand: its own, and with flox."""
        if self._theirs is None or not self._flox:
            return self.of(name, text, theirs, target, FLOAT32_MEANS)

        def group(flox: bool) -> Any:
            with importlib.import_module("xarray").set_options(use_flox=flox):
                return theirs(self._theirs)

        tried = {flox: time_call(functools.partial(_compute, group(flox))) for flox in (True, False)}
        flox = tried[True] < tried[False]
        how = f"xarray {'with' if flox else 'without'} flox, its faster way"
        return self.of(f"{name} ({how})", text, lambda _: group(flox), target, FLOAT32_MEANS)


def _compute(lazy: Any) -> Any:
    return lazy.compute(scheduler="threads", num_workers=THREADS)


_ORDER = ("lon", "lat", "time", "month", "dayofyear")


def _values(found: Any) -> npt.NDArray[Any]:
    if hasattr(found, "column_names"):
        return np.asarray(found.column("r").to_numpy(), np.float64)
    return _in_order(found["r"])


def _in_order(found: Any) -> npt.NDArray[Any]:
    """Plain numbers; a dimension of one cell, which one side keeps and the other drops, is no difference."""
    return np.asarray(found.values, np.float64).reshape(-1)


def _decoding(bench: QueriesBench, database: Database, array: Array) -> Measurement:
    """The mean of all against reading every chunk and doing nothing with it."""
    query = database.query("select avg(t) as r from T")
    decode = importlib.import_module("windrow.bench.queries.decoding").decoder(array, THREADS)
    found = in_turns({OURS: query.compute, DECODING: decode}, bench.scale.rounds)
    ours, bare = found[OURS].median, found[DECODING].median
    detail = f"windrow {duration(ours)}, every chunk decoded {duration(bare)}"
    return Measurement("dense", "mean of all against the bare decode", bare / ours, "×", DECODE_SHARE, detail=detail)


_PEAK = """
import json, re, sys
import windrow as wr

def peak():  # of this program alone: what getrusage tells includes the process that started it
    return int(re.search(r"VmHWM:\\s+([0-9]+) kB", open("/proc/self/status").read())[1])

with wr.connect(sys.argv[1], engine="local", progress=False, workers=2) as database:
    database.query("select avg(t) as r from T where cell(time) < 92 group by lon, lat").compute()
    before = peak()
    database.query("select avg(t) as r from T group by lon, lat").compute()
    print(json.dumps({"before": before, "after": peak()}))
"""


def measure_memory(bench: QueriesBench) -> Iterator[Measurement]:
    """The most memory that the mean over time takes in a process that has answered a small question before."""
    with stored_field(bench):
        pass
    found = fresh_process(_PEAK, [str(bench.folder / "dense")])
    value = (found["after"] - found["before"]) / 1024
    detail = f"{found['before'] / 1024:,.0f} MB before"
    yield Measurement("memory", "mean over time, above a warm start", value, "MB", MOST_MEMORY, "at most", detail)
