"""Connections: opening, listing, and what a user sees of them."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import windrow as wr
from windrow.errors import DataError, MemoryLimitError, SchemaError, StoreError, UnknownNameError


def test_arrays_are_listed_and_found(local: wr.Database) -> None:
    assert local.arrays() == []
    for name in ("B", "A"):
        local.create(name, "<v: int64> [x=0:9]")
    assert [array.name for array in local.arrays()] == ["A", "B"]
    assert "A" in local
    assert "C" not in local
    assert "2 arrays: A, B" in repr(local)
    with pytest.raises(UnknownNameError, match="Did you mean"):
        local.array("AA")
    with pytest.raises(UnknownNameError):
        local.array("A@7")


def test_a_closed_connection_leaves_everything_to_the_next(tmp_path: Path) -> None:
    with wr.connect(tmp_path / "w", engine="local") as database:
        database.create("A", "<v: int64> [x=0:2]", labels={"x": ["p", "q", "r"]}).write(np.arange(3))
    with wr.connect(tmp_path / "w", engine="local", create=False) as database:
        assert database.array("A").read(x="q")["v"].values.tolist() == [1]
    with pytest.raises(StoreError, match="no warehouse"):
        wr.connect(tmp_path / "elsewhere", create=False)


@pytest.mark.parametrize("directory", ["year=2020", "with space", "ünïcode", "a#b?c", "10%"])
def test_any_directory_may_hold_a_warehouse(tmp_path: Path, directory: str) -> None:
    with wr.connect(tmp_path / directory / "w", engine="local") as database:
        dense = database.create("D", "<v: int64> [x=0:*:2]")
        dense.append(np.arange(3))
        dense.append(np.arange(3))
        sparse = database.create("S", "<v: int64> [x=0:9:2]", sparse=True)
        sparse.insert({"x": [1, 5], "v": [1, 2]})
        sparse.insert({"x": [5, 6], "v": [3, 4]})
        for array in (dense, sparse):
            array.update({"v": "v + 1"})
            array.compact()
        database.collect_garbage(keep_versions=1)
    with wr.connect(tmp_path / directory / "w", engine="local") as database:
        assert database.array("D").read()["v"].values.tolist() == [1, 2, 3, 1, 2, 3]
        assert database.array("S").read().to_pydict() == {"x": [1, 5, 6], "v": [2, 4, 5]}


def test_too_large_a_read_is_refused(connect: Callable[..., wr.Database]) -> None:
    database = connect(memory="4 MB")
    array = database.create("A", "<v: float64> [x=0:999999:1000]")
    with pytest.raises(MemoryLimitError, match="reading this from A"):
        array.read()
    assert array.read(x=(0, 999)).sizes == {"x": 1000}


def test_what_cannot_be_created(local: wr.Database) -> None:
    for name, schema in (("A B", "<v: int64> [x=0:9]"), ("A", "<v: int63> [x=0:9]"), ("A", "B <v: int64> [x=0:9]")):
        with pytest.raises(SchemaError):
            local.create(name, schema)
    with pytest.raises(SchemaError, match="10 cells"):
        local.create("A", "<v: int64> [x=0:9]", labels={"x": [1.0]})
    with pytest.raises(SchemaError, match="grows"):
        local.create("A", "<v: int64> [x=0:*]", labels={"x": [1.0]})
    with pytest.raises(UnknownNameError):
        local.create("A", "<v: int64> [x=0:9]", chunks={"y": 3})
    assert local.arrays() == []


@pytest.mark.parametrize("options", [{"engine": "warp"}, {"memory": "much"}, {"lock_timeout": -1}])
def test_what_cannot_be_connected(tmp_path: Path, options: dict[str, object]) -> None:
    with pytest.raises(DataError):
        wr.connect(tmp_path / "w", **options)  # type: ignore[arg-type]
    assert not (tmp_path / "w").exists()


@pytest.mark.parametrize("catalog", ["http://foo", "no address", "sqlite:////nowhere/at/all/catalog.sqlite"])
def test_a_catalog_that_cannot_be_opened_leaves_nothing(tmp_path: Path, catalog: str) -> None:
    with pytest.raises(StoreError):
        wr.connect(tmp_path / "new" / "w3", catalog=catalog)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "there").mkdir()
    with pytest.raises(StoreError):
        wr.connect(tmp_path / "there", catalog=catalog)
    assert [path.name for path in tmp_path.rglob("*")] == ["there"]


def test_small_work_never_starts_spark(tmp_path: Path) -> None:
    program = """
import sys, numpy as np, windrow as wr
with wr.connect(sys.argv[1]) as database:
    array = database.create("A", "<v: int64> [x=0:2]")
    array.write(np.arange(3))
    database.create("S", "<v: int64> [x=0:2]", sparse=True).insert({"x": [1], "v": [2]})
    assert array.read()["v"].values.tolist() == [0, 1, 2]
assert "pyspark" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "w")], check=True)


IDLE = {
    "pyspark",
    "py4j",
    "numba",
    "llvmlite",
    "dask",
    "numbagg",
    "scipy",
    "matplotlib",
    "sqlglot",
    "lark",
    "deltalake",
}
"""What windrow may use, and a first small query does not."""
ROOMS = (
    *(f"windrow.{room}" for room in ("sql", "dataframes", "formats", "bench", "console", "samples")),
    *("windrow.operations.sparse.", "windrow.plan.statements", "windrow.expressions.evaluate"),
)


def test_a_first_call_imports_only_what_it_uses(tmp_path: Path) -> None:
    program = f"""
import sys, numpy as np, windrow as wr
with wr.connect(sys.argv[1]) as database:
    array = database.create("A", "<a: float64> [i=1:3, j=1:3]")
    array.write(np.arange(9.0).reshape(3, 3))
    assert array.window(i=2, j=2).agg(m=wr.max("a")).compute()["m"].values[0, 0] == 4.0
    assert array.read()["a"].values[2, 2] == 8.0
packages = {{name.partition(".")[0] for name in sys.modules}}
print(sorted(packages & {IDLE!r}))
print([name for name in sys.modules if name.startswith({ROOMS!r})])
"""
    said = subprocess.run([sys.executable, "-c", program, str(tmp_path / "w")], capture_output=True, text=True)
    assert said.stdout.splitlines() == ["[]", "[]"], said.stdout + said.stderr


def test_databases_arrays_and_queries_go_to_other_processes(connect: Callable[..., wr.Database]) -> None:
    database = connect()
    array = database.create("A", "<a: float64> [i=1:4, j=1:3]")
    array.write(np.arange(12.0).reshape(4, 3))
    query = array.window(i=2).agg(m=wr.sum("a"))
    moved = pickle.loads(pickle.dumps((database, array, array.at(version=0), query, array.isel(i=2))))
    try:
        assert (moved[0].path, moved[0].lock_timeout) == (database.path, database.lock_timeout)
        assert moved[1].version == 1
        assert np.isnan(moved[2].read().a.values).all()
        assert moved[3].compute().equals(query.compute())
        assert moved[4].read().equals(array.read(i=2))
    finally:
        moved[0].close()
    with database.batch() as batch:
        seen = batch.query("select A")
        with pytest.raises(wr.DataError, match="stays in its process"):
            pickle.dumps(seen)


def test_what_statements_did_names_the_version(connect: Callable[..., wr.Database]) -> None:
    database = connect()
    assert database.query("create A <a: float64> [i=1:3]").version == 0
    assert database.query("load A 1 2 3").version == 1
    assert database.query("create array view V as select sum(a) as s from A").version == 1
    assert database.query("drop view V").version is None
    assert database["A"].name == "A"
    with pytest.raises(UnknownNameError):
        database["B"]


def test_arrays_and_views_are_drawn_as_queries_are(connect: Callable[..., wr.Database], tmp_path: Path) -> None:
    database = connect()
    array = database.create("A", "<a: float64> [i=1:4, j=1:3]")
    array.write(np.arange(12.0).reshape(4, 3))
    database.create_view("V", array.window(i=2).agg(m=wr.sum("a")))
    for drawn in (array, database.view("V")):
        assert drawn.plot(tmp_path / f"{drawn.name}.png").read_bytes()[:4] == b"\x89PNG"
