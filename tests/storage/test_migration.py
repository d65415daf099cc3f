"""A warehouse that an earlier windrow made (format 1, kept as a file) opens, and reads as it did, inside and out."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path
from typing import Any

import icechunk
import numpy as np
import polars as pl
import pytest
import xarray as xr

import windrow as wr
from windrow.errors import StoreError
from windrow.storage.upkeep import migration

FIXTURE = Path(__file__).with_name("format1.zip")


@pytest.fixture
def old(tmp_path: Path) -> Path:
    with zipfile.ZipFile(FIXTURE) as packed:
        packed.extractall(tmp_path)
    return tmp_path / "warehouse"


@pytest.fixture(scope="module")
def expected() -> dict[str, Any]:
    with zipfile.ZipFile(FIXTURE) as packed:
        told: dict[str, Any] = json.loads(packed.read("expected.json"))
    return told


def connect(path: Path) -> wr.Database:
    return wr.connect(path, engine="local", progress=False)


def rows_of(array: wr.Array) -> list[dict[str, Any]]:
    if array.sparse:
        rows: list[dict[str, Any]] = array.read().to_pylist()
        return rows
    if not array.box.size:
        return []
    flat = array.read().to_dataframe().reset_index()
    values = flat.drop(columns=[name for name in ("time", "lat") if name in flat])
    return list(json.loads(values.to_json(orient="records", double_precision=15)))


def check_inside(database: wr.Database, expected: dict[str, Any]) -> None:
    for title, told in expected.items():
        array = database.array(title)
        assert rows_of(array) == told["rows"], title
        assert str(array.schema) == told["schema"]
        chunks = array.chunks()
        found = {name: getattr(chunks, name).tolist() for name in ("ordinals", "cells", "lo", "hi")}
        assert found == told["chunks"], title
        assert (chunks.changed > 0).all()
        assert (chunks.changed <= array.version).all()
        (version,) = [version for version in array.versions() if version.number == array.version]
        assert (version.cells, version.operation, version.pointer) == (
            told["cells"],
            told["operation"],
            told["pointer"],
        )


def check_outside(database: wr.Database, expected: dict[str, Any]) -> None:
    for title, told in expected.items():
        there = database.array(title).location()
        if there.format == "delta":
            names = list(told["rows"][0]) if told["rows"] else []
            frame = pl.read_delta(there.path, version=int(there.version))
            dimensions = database.array(title).schema.dimension_names
            assert frame.sort(dimensions).select(names or []).rows() == [tuple(row.values()) for row in told["rows"]]
        elif told["rows"]:
            repository = icechunk.Repository.open(icechunk.local_filesystem_storage(there.path))
            session = repository.readonly_session(snapshot_id=there.version)
            data = xr.open_zarr(session.store, consolidated=False, chunks=None)
            values = [row["t"] for row in told["rows"]]
            assert np.allclose(data["t"].values.ravel(), values)


def test_every_version_reads_as_it_did(old: Path, expected: dict[str, Any]) -> None:
    with connect(old) as database:
        check_inside(database, expected)
        check_outside(database, expected)
    assert json.loads((old / "windrow.json").read_text())["format"] == 2
    with connect(old) as database:
        check_inside(database, expected)
    with closing(sqlite3.connect(old / "catalog.sqlite")) as catalog:
        tables = {name for (name,) in catalog.execute("select name from sqlite_master where type = 'table'")}
        assert "chunks" not in tables
        assert catalog.execute("select value from settings where key = 'format'").fetchone() == ("2",)


def test_no_cell_is_rewritten(old: Path) -> None:
    before = {file: file.read_bytes() for file in (old / "arrays").rglob("*") if file.is_file()}
    connect(old).close()
    assert {file: file.read_bytes() for file in (old / "arrays").rglob("*") if file.is_file()} == before


def test_it_is_written_on_and_collected(old: Path, expected: dict[str, Any]) -> None:
    with connect(old) as database:
        array = database.array("S")
        model = {(row["x"], row["y"]): row["v"] for row in array.read().to_pylist()}
        last = array.version
        for number in range(8):
            first = next(iter(model))
            array.insert({"x": [first[0], 200 + number], "y": [first[1], 0], "v": [number, number], "n": [1, 2]})
            model |= {first: float(number), (200 + number, 0): float(number)}
            array.delete(f"x = {100 + number}")
            model = {at: value for at, value in model.items() if at[0] != 100 + number}
        found = {(row["x"], row["y"]): row["v"] for row in array.read().to_pylist()}
        assert found == model
        there = array.location()
        frame = pl.read_delta(there.path, version=int(there.version))
        assert dict(zip(zip(frame["x"], frame["y"], strict=True), frame["v"], strict=True)) == model
        database.array("D").append({"t": np.zeros((1, 6), "f4"), "q": np.zeros((1, 6), "i2")}, labels=["2012-01-08"])
        check_inside(database, expected)
        check_outside(database, expected)
        database.collect_garbage(keep_versions=3)
        assert array.versions()[0].number > last
        assert {(row["x"], row["y"]): row["v"] for row in array.read().to_pylist()} == model
        assert not (Path(there.path) / "_delta_log" / f"{0:020}.json").exists()


def _migrate_until(path: Path, transactions: int) -> None:
    """Die in the middle of a migration, before the transaction of that number commits."""
    original, done = migration._migrate_array, []

    def counted(*arguments: Any) -> None:
        original(*arguments)
        done.append(1)
        if len(done) == transactions:
            os.kill(os.getpid(), signal.SIGKILL)

    migration._migrate_array = counted
    connect(path)


@pytest.mark.parametrize("transactions", [3, 7])
def test_a_killed_migration_goes_on(old: Path, expected: dict[str, Any], transactions: int) -> None:
    process = multiprocessing.get_context("spawn").Process(target=_migrate_until, args=(old, transactions))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert json.loads((old / "windrow.json").read_text())["format"] == 1
    with connect(old) as database:
        check_inside(database, expected)


def test_where_nothing_may_be_written_it_is_refused(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object) -> None:
        raise sqlite3.OperationalError("attempt to write a readonly database")

    monkeypatch.setattr(migration, "_prepare", refuse)
    with pytest.raises(StoreError, match="format of an earlier windrow") as caught:
        connect(old)
    assert "Open it once where it may be written" in str(caught.value)
    monkeypatch.undo()
    connect(old).close()


VIEWS = {
    "near": "select count(*) as n, sum(v) as s from S neighbours Linf(1)",
    "columns": "select max(v) as m from S group by x",
    "pairs": "select L.v - R.v as d from S L similarity join S R with shape L1(1)",
    "gaps": "select count(*) as c from G L similarity join G R with shape L1(2) excluding self group by L.x",
    "moving": "select avg(t) as a from D window (time trailing 3)",
    "mean": "select avg(t) as a, count(q) as c from D",
    "first": "select sum(v) as s from E group by x",
}
"""Of arrays that were made before there were views: sparse, dense, growing, labelled, empty."""


def test_views_are_made_in_it_and_kept(old: Path, expected: dict[str, Any]) -> None:
    with connect(old) as database:
        assert database.views() == []
        for name, query in VIEWS.items():
            database.create_view(name, query)
        database.create_view("late", "select max(n) as m from near", deferred=True)
    with connect(old) as database:
        assert all(view.check().ok for view in database.views())
        cells = database.array("S").read().to_pylist()
        first = cells[0]
        far = 1 + max(row["x"] for row in cells)
        database.array("S").insert({"x": [first["x"], far], "y": [first["y"], 0], "v": [0.5, 1.5], "n": [1, 2]})
        database.array("S").delete(f"x = {cells[-1]['x']}")
        database.array("G").update({"v": "v + 1"})
        database.array("E").insert({"x": [3], "v": [7]})
        database.array("D").append({"t": np.ones((1, 6), "f4"), "q": np.ones((1, 6), "i2")}, labels=["2012-01-08"])
        late = database.view("late")
        assert late.stale
        late.refresh()
        checked = {view.name: view.check() for view in database.views()}
        assert set(checked) == {*VIEWS, "late"}
        assert all(found.ok for found in checked.values()), checked
        assert {row["way"] for row in database.view("near").history().to_pylist()} == {"created", "patched"}
        check_inside(database, expected)
