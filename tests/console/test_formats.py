"""CSV, JSON and Arrow hold every cell once, in the order of coordinates, whatever the chunks."""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windrow as wr
from console.runs import done, windrow
from windrow.api import results
from windrow.api.results import row_slabs
from windrow.console.render.formats import write_query
from windrow.model.box import Box

DAYS = np.array(["2012-01-01", "2012-01-02", "2012-01-03"], "datetime64[D]")


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("formats") / "warehouse"
    with wr.connect(place) as db:
        dense = db.create("T", "<t: float64, n: int8 null, s: string> [time=2:4:2, x=0:3:3]", labels={"time": DAYS})
        t = np.arange(12.0).reshape(3, 4)
        t[0, 1], t[1, 1] = np.nan, -np.inf
        valid = np.arange(12).reshape(3, 4) % 5 > 0
        dense.write(
            {
                "t": t,
                "n": np.arange(12, dtype=np.int8).reshape(3, 4),
                "n__valid": valid,
                "s": [["a,b", "", '"', "ü"]] * 3,
            }
        )
        sparse = db.create("S", "<v: float32> [time=1:3, x=1:9:2]", sparse=True, labels={"time": DAYS})
        sparse.insert({"time": [3, 1, 1], "x": [1, 9, 2], "v": [0.5, np.inf, 2.0]})
    return place


def cells(warehouse: Path, name: str) -> list[dict[str, Any]]:
    """The cells of an array one by one, by a way of its own."""
    with wr.connect(warehouse) as db:
        array = db.array(name)
        if array.sparse:
            rows = array.read().to_pylist()
            return [
                {"time": r["time"], "x": r["x"], "time_label": DAYS[r["time"] - 1].item(), "v": r["v"]} for r in rows
            ]
        found = array.read()
        result = []
        for i, x in itertools.product(range(3), range(4)):
            row: dict[str, Any] = {"time": 2 + i, "x": x, "time_label": DAYS[i].item()}
            for attribute in ("t", "n", "s"):
                value = found[attribute].values[i, x]
                there = bool(found["n__valid"].values[i, x]) if attribute == "n" else value == value
                row[attribute] = (value.item() if hasattr(value, "item") else str(value)) if there else None
            result.append(row)
        return result


@pytest.mark.parametrize("name", ["T", "S"])
def test_json_lines(warehouse: Path, name: str) -> None:
    rows = [
        json.loads(line) for line in done("--db", warehouse, "--format", "json", "-e", f"select {name}").splitlines()
    ]
    assert [[*row] for row in rows] == [[*row] for row in cells(warehouse, name)]
    for row, wanted in zip(rows, cells(warehouse, name), strict=True):
        for column, value in wanted.items():
            if isinstance(value, float) and math.isinf(value):
                assert row[column] == ("Infinity" if value > 0 else "-Infinity")
            elif column == "time_label":
                assert datetime.fromisoformat(row[column]).date() == value
            else:
                assert row[column] == value


@pytest.mark.parametrize("name", ["T", "S"])
def test_csv(warehouse: Path, name: str) -> None:
    text = done("--db", warehouse, "--format", "csv", "-e", f"select {name}")
    found = list(csv.DictReader(io.StringIO(text)))
    assert len(found) == len(cells(warehouse, name))
    for row, wanted in zip(found, cells(warehouse, name), strict=True):
        assert [*row] == [*wanted]
        for column, value in wanted.items():
            if isinstance(value, float | int):
                assert float(row[column]) == value
            elif isinstance(value, str):
                assert row[column] == value
            elif value is None:
                assert row[column] == ""
            else:
                assert datetime.fromisoformat(row[column]).date() == value


def test_arrow_streams_follow_one_another(warehouse: Path) -> None:
    ended = windrow("--db", warehouse, "--format", "arrow", "-e", "select T; select S; list")
    assert ended.exit_code == 0
    data = io.BytesIO(ended.stdout_bytes)
    tables = [pa.ipc.open_stream(data).read_all() for _ in range(3)]
    assert data.read() == b""
    assert [table.num_rows for table in tables] == [12, 3, 2]
    plain = [{**row, "time_label": row["time_label"].date()} for row in tables[0].to_pylist()]
    assert plain == cells(warehouse, "T")
    assert tables[2].column("name").to_pylist() == ["S", "T"]


def test_other_statements_in_formats(warehouse: Path) -> None:
    asked = "set timing off; aggr T max(t); aggr S max(x) as m; describe S; explain select S; begin; rollback"
    lines = [json.loads(line) for line in done("--db", warehouse, "--format", "json", "-e", asked).splitlines()]
    assert lines[0] == {"max_t": 11.0}
    assert lines[1] == {"m": 9}
    assert {"fact": "kind", "value": "sparse"} in lines
    assert any("line" in line for line in lines)
    assert not any("batch" in str(line) for line in lines)  # what was done is no result


def test_no_cells(warehouse: Path) -> None:
    nothing = "select v from S where v > 1000 and v < 0"
    assert done("--db", warehouse, "--format", "json", "-e", nothing) == ""
    assert done("--db", warehouse, "--format", "csv", "-e", nothing) == '"time","x","time_label","v"\n'


@given(st.data())
def test_slabs_follow_one_another_in_row_major_order(data: st.DataObject) -> None:
    ndim = data.draw(st.integers(1, 3))
    lo = [data.draw(st.integers(-3, 3)) for _ in range(ndim)]
    shape = [data.draw(st.integers(1, 6)) for _ in range(ndim)]
    chunk = tuple(data.draw(st.integers(1, 6)) for _ in range(ndim))
    box = Box(tuple(lo), tuple(start + extent - 1 for start, extent in zip(lo, shape, strict=True)))
    limit = data.draw(st.integers(1, 40))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(results, "_CELLS_AT_ONCE", limit)
        parts = list(row_slabs(box, chunk))
    assert all(part.size <= limit for part in parts)
    assert [*itertools.chain(*map(_places, parts))] == [*_places(box)]


def _places(box: Box) -> Any:
    return itertools.product(*(range(lo, hi + 1) for lo, hi in zip(box.lo, box.hi, strict=True)))


def test_results_do_not_depend_on_slabs(warehouse: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with wr.connect(warehouse) as db:
        query = db.query("select T")
        whole, parts = io.BytesIO(), io.BytesIO()
        assert write_query(query, "csv", whole) == 12
        monkeypatch.setattr(results, "_CELLS_AT_ONCE", 3)
        assert write_query(query, "csv", parts) == 12
    assert whole.getvalue() == parts.getvalue()
