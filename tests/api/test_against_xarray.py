"""Random labelled datasets imported, appended, overlapped, reordered and exported in random orders, as by xarray."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
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
    exported: str | None = None
    """The format in which all that is there then goes out, to come in again as another array."""


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
        if self.kind == "year":
            return np.array(numbers, np.float32) + np.float32(1990.5)
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
        exported = draw(st.sampled_from([None, None, "zarr", "netcdf"]))
        pieces.append(Piece(tuple(slices), tuple(rows), tuple(order), way, number + 1, exported))
    chunks = draw(st.tuples(st.integers(1, 4), st.integers(1, 3), st.integers(1, 3)))
    kind = draw(st.sampled_from(["time", "float", "text", "year"]))
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
        if piece.exported is not None:
            _send_around(problem, piece, database, place)
    assert array.version == len(problem.pieces)
    return database


def _send_around(problem: Problem, piece: Piece, database: wr.Database, place: Path) -> None:
    """Export all that is there so far, and import it as an array of its own."""
    assert piece.exported is not None
    file, name = place / f"out{piece.number}.{piece.exported}", f"Out{piece.number}"
    database.export_file("T", file, format=piece.exported)
    database.import_file(file, name, format=piece.exported, grow="time")
    so_far = replace(problem, pieces=problem.pieces[: piece.number])
    same(database.array(name).read(), by_xarray(so_far), problem.kind)


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


@settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow])
@given(problems())
def test_as_xarray_does_it(problem: Problem) -> None:
    check(problem)


@pytest.mark.slow
@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(problems())
def test_as_xarray_does_it_many_times(problem: Problem) -> None:
    check(problem)


# Sparse


@dataclass(frozen=True)
class Rows:
    """Some cells: where, with the columns in which order, the way they come in, and the way all of them go out."""

    cells: tuple[tuple[int, int], ...]
    columns: tuple[str, ...]
    way: str
    number: int
    exported: str | None

    def table(self) -> pa.Table:
        values = np.random.default_rng(self.number).integers(0, 100, len(self.cells))
        found = {
            "x": [x for x, _ in self.cells],
            "y": [y for _, y in self.cells],
            "t": values + self.number / 8,
            "k": pa.array([None if value % 5 == 0 else int(value) for value in values], pa.int32()),
        }
        return pa.table(found).select(list(self.columns))

    def dataset(self) -> xr.Dataset:
        """The same cells on the whole box, with NaN where there is none; whether there is one is a value of its own."""
        whole = {name: np.full((WIDE, HIGH), np.nan) for name in ("t", "k", "there")}
        for row in self.table().to_pylist():
            at = (row["x"], row["y"] + 2)
            whole["t"][at], whole["there"][at] = row["t"], 1.0
            whole["k"][at] = -1.0 if row["k"] is None else row["k"]
        return xr.Dataset({name: (("x", "y"), values) for name, values in whole.items()})


WIDE, HIGH = 6, 5
PANDAS: dict[pa.DataType, Any] = {pa.int32(): pd.Int32Dtype()}
"""Its own integers have no missing value."""


@st.composite
def sparse_pieces(draw: st.DrawFn) -> list[Rows]:
    cells = st.tuples(st.integers(0, WIDE - 1), st.integers(-2, HIGH - 3))
    pieces = []
    for number in range(draw(st.integers(1, 5))):
        chosen = draw(st.lists(cells, min_size=1, max_size=12, unique=True))
        columns = draw(st.permutations(["x", "y", "t", "k"]))
        way = draw(st.sampled_from(["arrow", "pandas", "parquet", "csv"]))
        exported = draw(st.sampled_from([None, "parquet", "csv"]))
        pieces.append(Rows(tuple(chosen), tuple(columns), way, number + 1, exported))
    return pieces


def rows_of(dataset: xr.Dataset) -> set[tuple[Any, ...]]:
    frame = dataset.to_dataframe().reset_index()
    there = frame[frame.there == 1.0]
    return {(int(row.x), int(row.y) - 2, row.t, None if row.k == -1.0 else int(row.k)) for row in there.itertuples()}


def check_sparse(pieces: list[Rows], chunks: tuple[int, int]) -> None:
    whole: xr.Dataset | None = None
    with tempfile.TemporaryDirectory() as folder, wr.connect(f"{folder}/w", engine="local", progress=False) as database:
        schema = f"<t: float64, k: int32 null> [x=0:*:{chunks[0]}, y=-2:{HIGH - 3}:{chunks[1]}]"
        array = database.create("S", schema, sparse=True)
        for piece in pieces:
            table, file = piece.table(), Path(folder) / f"{piece.number}.{piece.way}"
            if piece.way in ("arrow", "pandas"):
                report = array.insert(table if piece.way == "arrow" else table.to_pandas(types_mapper=PANDAS.get))
            else:
                pq.write_table(table, file) if piece.way == "parquet" else pa.csv.write_csv(table, file)
                report = database.import_file(file, "S")
            before = whole
            whole = piece.dataset() if whole is None else piece.dataset().combine_first(whole)
            replaced = 0 if before is None else int((piece.dataset().there * before.there).sum())
            assert (report.cells, report.replaced) == (len(piece.cells), replaced)
            wanted = rows_of(whole)
            assert set(map(tuple, (row.values() for row in array.read().to_pylist()))) == wanted
            if piece.exported is not None:
                out, name = Path(folder) / f"out{piece.number}.{piece.exported}", f"Out{piece.number}"
                database.export_file("S", out)
                database.import_file(out, name, dimensions=["x", "y"])
                found = database.array(name).read().select(["x", "y", "t", "k"])
                assert set(map(tuple, (row.values() for row in found.to_pylist()))) == wanted


@settings(max_examples=6, suppress_health_check=[HealthCheck.too_slow])
@given(sparse_pieces(), st.tuples(st.integers(1, 4), st.integers(1, 5)))
def test_sparse_cells_as_xarray_lays_them(pieces: list[Rows], chunks: tuple[int, int]) -> None:
    check_sparse(pieces, chunks)


@pytest.mark.slow
@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(sparse_pieces(), st.tuples(st.integers(1, 4), st.integers(1, 5)))
def test_sparse_cells_as_xarray_lays_them_many_times(pieces: list[Rows], chunks: tuple[int, int]) -> None:
    check_sparse(pieces, chunks)
