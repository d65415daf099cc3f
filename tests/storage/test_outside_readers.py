"""Readers that never heard of windrow find what was published, at the version they were told."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import deltalake
import icechunk
import numpy as np
import polars
import pyarrow as pa
import pytest
import xarray as xr

import windrow as wr

from .contents import abandoned

DENSE = """
import icechunk, xarray
repository = icechunk.Repository.open(icechunk.local_filesystem_storage(path))
data = xarray.open_zarr(repository.readonly_session(snapshot_id=version).store, consolidated=False, chunks=None)
answer = {
    "a": data["a"].values.tolist(), "u": data["u"].values.tolist(), "valid": data["u__valid"].values.tolist(),
    "s": [str(text) for text in data["s"].values.ravel()], "types": {name: str(data[name].dtype) for name in "abu"},
    "b": data["b"].values.tolist(), "t": data["t"].values.astype("M8[us]").astype(str).ravel().tolist(),
    "day": data["day"].values.astype("M8[D]").astype(str).tolist(), "site": [str(site) for site in data["site"].values],
    "units": data["a"].attrs.get("units"), "dims": list(data["a"].dims),
}
"""
POLARS = """
import polars
frame = polars.read_delta(path, version=int(version)).drop("_chunk").sort("x")
answer = {"rows": [[str(value) for value in row] for row in frame.rows()], "types": [str(t) for t in frame.dtypes]}
"""
DUCKDB = """
import deltalake, duckdb
table = deltalake.DeltaTable(path, version=int(version))
cells = deltalake.QueryBuilder().register("cells", table).execute("select * from cells").read_all()
query = "select x, u, v, s from cells where x between 2 and 9 order by x"
answer = {"rows": [[None if value is None else str(value) for value in row] for row in duckdb.sql(query).fetchall()]}
"""


def asked(script: str, location: wr.Location) -> dict[str, Any]:
    """What a fresh process answers that is given the script and the location, and nothing of windrow."""
    program = f"import sys, json\npath, version = sys.argv[1:]\n{script}\nassert 'windrow' not in sys.modules\n"
    program += "print(json.dumps(answer))"
    command = [sys.executable, "-W", "ignore", "-c", program, location.path, location.version]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])  # stores may talk before
    return answer


def test_xarray_opens_a_dense_array(local: wr.Database) -> None:
    array = local.create(
        "A",
        "<a: float32, b: bool, u: uint8 null, s: string, t: datetime> [day=1:*:2, site=0:1]",
        labels={"site": ["Köln", "Rom"]},
        metadata={"a": {"units": "K"}},
    )
    first = {
        "a": np.array([[1, np.nan]], np.float32),
        "b": np.array([[True, False]]),
        "u": np.ma.array([[255, 0]], mask=[[False, True]], dtype=np.uint8),
        "s": np.array([["ä", ""]], object),
        "t": np.array([["2012-01-01T00:00:00.000001", "1969-12-31"]], "M8[us]"),
    }
    array.append(first, labels=np.array(["2012-01-01"], "M8[D]"))
    array.append(first, labels=np.array(["2012-01-02"], "M8[D]"))
    answer = asked(DENSE, array.location(1))
    assert answer["a"][0][0] == 1.0
    assert np.isnan(answer["a"][0][1])
    assert (answer["b"], answer["u"], answer["valid"]) == ([[True, False]], [[255, 0]], [[True, False]])
    assert answer["types"] == {"a": "float32", "b": "bool", "u": "uint8"}
    assert answer["t"] == ["2012-01-01T00:00:00.000001", "1969-12-31T00:00:00.000000"]
    assert (answer["s"], answer["day"], answer["site"]) == (["ä", ""], ["2012-01-01"], ["Köln", "Rom"])
    assert (answer["units"], answer["dims"]) == ("K", ["day", "site"])
    assert asked(DENSE, array.location())["day"] == ["2012-01-01", "2012-01-02"]


@pytest.fixture
def cells(local: wr.Database) -> wr.Array:
    """Three versions of a sparse array; the second is the one to be read."""
    array = local.create("S", "<u: uint64 null, v: float64, s: string, t: datetime, b: bool> [x=0:*:4]", sparse=True)
    moments = np.array(["2012-01-01T06:00:00", "1950-01-01", "2012-01-03"], "M8[us]")
    table = pa.table(
        {
            "x": [1, 9, 4],
            "u": pa.array([2**64 - 1, None, 7], pa.uint64()),
            "v": [1.5, float("nan"), -np.inf],
            "s": ["ä", "", "c"],
            "t": moments,
            "b": [True, False, True],
        }
    )
    array.insert(table)
    array.update({"s": "'d'"}, "x = 4")
    array.delete("x = 1")
    with abandoned(local) as batch:
        batch.insert("S", table)
    return array


def test_polars_reads_a_sparse_array(cells: wr.Array) -> None:
    answer = asked(POLARS, cells.location(2))
    assert [row[:4] + row[5:] for row in answer["rows"]] == [
        ["1", str(2**64 - 1), "1.5", "ä", "True"],
        ["4", "7", "-inf", "d", "True"],
        ["9", "None", "None", "", "False"],
    ]
    assert [row[4][:19] for row in answer["rows"]] == [
        "2012-01-01 06:00:00",
        "2012-01-03 00:00:00",
        "1950-01-01 00:00:00",
    ]
    assert answer["types"][0] == "Int64"
    assert answer["types"][2:4] == ["Float64", "String"]
    assert [row[0] for row in asked(POLARS, cells.location())["rows"]] == ["4", "9"]
    assert asked(POLARS, cells.location(0))["rows"] == []


def test_duckdb_reads_a_sparse_array(cells: wr.Array) -> None:
    assert asked(DUCKDB, cells.location(2))["rows"] == [["4", "7", "-inf", "d"], ["9", None, None, ""]]


@pytest.mark.spark
def test_spark_reads_the_parts_of_a_sparse_array(cells: wr.Array, spark_session: Any) -> None:
    location = cells.location(2)
    table = deltalake.DeltaTable(location.path, version=int(location.version))
    files = [uri.removeprefix("file://") for uri in table.file_uris()]
    rows = spark_session.read.parquet(*files).orderBy("x").select("x", "u", "v", "s", "b").collect()
    assert [tuple(row) for row in rows] == [
        (1, 2**64 - 1, 1.5, "ä", True),
        (4, 7, -np.inf, "d", True),
        (9, None, None, "", False),
    ]


def test_the_location_says_how_to_open_it(local: wr.Database, cells: wr.Array) -> None:
    dense = local.create("D", "<a: float64> [i=1:3]")
    dense.write(np.array([1.0, 2.0, 3.0]))
    known = {"xarray": xr, "icechunk": icechunk, "polars": polars}
    assert eval(dense.location().example, known)["a"].values.tolist() == [1.0, 2.0, 3.0]
    assert eval(cells.location(2).example, known).select("x").collect()["x"].sort().to_list() == [1, 4, 9]
    assert str(cells.location()).startswith("delta:")
