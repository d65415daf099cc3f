"""Random labelled datasets imported, appended, overlapped, reordered and exported in random orders, as by xarray."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import windrow as wr

START = np.datetime64("2012-01-01", "us")
NAMES = ("time", "lat", "lon")


@dataclass(frozen=True)
class Piece:
    """Some slices: which, in which order, with which dimensions first, and the way they come in."""

    slices: tuple[int, ...]
    rows: tuple[int, ...]
    order: tuple[str, ...]
    way: str
    number: int


@dataclass(frozen=True)
class Problem:
    kind: str
    lat: tuple[float, ...]
    lon: tuple[float, ...]
    chunks: tuple[int, int, int]
    pieces: tuple[Piece, ...]

    def labels(self, numbers: tuple[int, ...]) -> Any:
        if self.kind == "time":
            return START + np.array(numbers, "m8[D]")
        if self.kind == "float":
            return np.array(numbers, np.float64) * 0.5
        return np.array([f"s{number:02}" for number in numbers], object)

    def dataset(self, piece: Piece) -> xr.Dataset:
        lat = [self.lat[row] for row in piece.rows]
        values = np.random.default_rng(piece.number).integers(0, 100, (len(piece.slices), len(lat), len(self.lon)))
        counts = values.astype(np.int32) * 3
        data = {"t": (NAMES, values + piece.number / 8), "k": (NAMES, counts)}
        coords = {"time": self.labels(piece.slices), "lat": lat, "lon": list(self.lon)}
        return xr.Dataset(data, coords=coords).transpose(*piece.order)


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    lat = draw(st.lists(st.integers(-9, 9), min_size=1, max_size=4, unique=True))
    lon = draw(st.lists(st.integers(0, 9), min_size=1, max_size=3, unique=True))
    pieces = []
    for number in range(draw(st.integers(1, 5))):
        slices = draw(st.lists(st.integers(0, 12), min_size=1, max_size=5, unique=True))
        whole = number == 0 or draw(st.booleans())
        rows = draw(st.permutations(range(len(lat))))
        rows = rows if whole else rows[: draw(st.integers(1, len(lat)))]
        way = draw(st.sampled_from(["xarray", "zarr", "netcdf", "values"]))
        order = draw(st.permutations(NAMES))
        rows = list(range(len(lat))) if number == 0 or way == "values" else rows
        order = list(NAMES) if number == 0 or way == "values" else order
        pieces.append(Piece(tuple(slices), tuple(rows), tuple(order), way, number + 1))
    chunks = draw(st.tuples(st.integers(1, 4), st.integers(1, 3), st.integers(1, 3)))
    kind = draw(st.sampled_from(["time", "float", "text"]))
    return Problem(kind, tuple(map(float, lat)), tuple(map(float, lon)), chunks, tuple(pieces))


def by_xarray(problem: Problem) -> xr.Dataset:
    """The same by xarray alone: each piece over what was there, then in the order of the first labels."""
    whole: xr.Dataset | None = None
    for piece in problem.pieces:
        new = problem.dataset(piece).transpose(*NAMES).astype(float)
        if whole is None:
            whole = new
            continue
        whole = new.combine_first(whole)
    assert whole is not None
    first = problem.labels(problem.pieces[0].slices)
    descends = len(first) > 1 and bool(np.all(first[1:] < first[:-1]))
    known = len(first)
    for piece in problem.pieces[1:]:
        if known > 1:
            break
        labels = problem.labels(piece.slices)
        descends = len(labels) > 1 and bool(np.all(labels[1:] < labels[:-1]))
        known = len(set(first.tolist()) | set(labels.tolist()))
    return whole.sortby("time", ascending=not descends).reindex(lat=list(problem.lat), lon=list(problem.lon))


def by_windrow(problem: Problem, place: Path) -> wr.Database:
    database = wr.connect(place / "warehouse", engine="local", progress=False)
    time, lat, lon = problem.chunks
    fixed = f"lat=1:{len(problem.lat)}:{lat}, lon=-1:{len(problem.lon) - 2}:{lon}"
    schema = f"<t: float64, k: int32 null> [time=0:*:{time}, {fixed}]"
    array = database.create("T", schema, labels={"lat": problem.lat, "lon": problem.lon})
    known: set[int] = set()
    for piece in problem.pieces:
        data, file = problem.dataset(piece), place / f"{piece.number}.{piece.way}"
        if piece.way == "xarray":
            report = array.write(data)
        elif piece.way == "values":
            blocks = {name: data[name].values for name in ("t", "k")}
            report = array.append(blocks, labels={"time": data.time.values})
        else:
            write = data.to_zarr if piece.way == "zarr" else data.to_netcdf
            write(file, **({"consolidated": False} if piece.way == "zarr" else {"engine": "h5netcdf"}))
            report = database.import_file(file, "T", format=piece.way)
        again = len(known & set(piece.slices)) * len(piece.rows) * len(problem.lon)
        assert (report.cells, report.replaced) == (data["t"].size, again)
        known |= set(piece.slices)
    assert array.version == len(problem.pieces)
    return database


def same(found: xr.Dataset, wanted: xr.Dataset, kind: str) -> None:
    times = found.time.values.astype("M8[us]") if kind == "time" else found.time.values
    assert times.tolist() == (wanted.time.values.astype("M8[us]") if kind == "time" else wanted.time.values).tolist()
    assert found.lat.values.tolist() == wanted.lat.values.tolist()
    found = found.transpose(*NAMES)
    np.testing.assert_array_equal(found["t"].values, wanted["t"].values)
    counts = found["k"].values.astype(float)
    if "k__valid" in found:
        counts = np.where(found["k__valid"].values.astype(bool), counts, np.nan)
    np.testing.assert_array_equal(counts, wanted["k"].values)


def check(problem: Problem) -> None:
    wanted = by_xarray(problem)
    with tempfile.TemporaryDirectory() as folder:
        database = by_windrow(problem, Path(folder))
        with database:
            array = database.array("T")
            same(array.read(), wanted, problem.kind)
            same(array.to_xarray().load(), wanted, problem.kind)
            assert int(array.chunks().cells.sum()) <= wanted["t"].size
            label = wanted.time.values[len(wanted.time) // 2]
            chosen = str(label) if problem.kind == "text" else label if problem.kind == "time" else float(label)
            same(array.sel(time=chosen).read(), wanted.sel(time=[label]), problem.kind)
            database.export_file("T", Path(folder) / "whole.zarr")
            database.import_file(Path(folder) / "whole.zarr", "Again", grow="time")
            same(database.array("Again").read(), wanted, problem.kind)


@settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow])
@given(problems())
def test_as_xarray_does_it(problem: Problem) -> None:
    check(problem)


@pytest.mark.slow
@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(problems())
def test_as_xarray_does_it_many_times(problem: Problem) -> None:
    check(problem)
