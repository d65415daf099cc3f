"""The choice of a path: what explain says of it, what is refused, damage that is named, and where tasks run."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import windrow as wr
from windrow.execution.local import LocalExecutor
from windrow.model.arrow import arrow_to_block
from windrow.operations.query import bound_query, cellwise, sparse_windows
from windrow.operations.query.fused import sparse_fold

CELLS = 90_000


@pytest.fixture
def database(tmp_path: Path) -> Iterator[wr.Database]:
    with wr.connect(tmp_path / "w", engine="local", progress=False, workers=2) as opened:
        yield opened


def dense(database: wr.Database) -> wr.Array:
    array = database.create("A", "<a: float64, b: int32 null> [i=0:299:100, j=0:299:100]")
    values = np.random.default_rng(5).normal(0, 1, (300, 300))
    array.write({"a": values, "b": np.ones((300, 300), np.int32), "b__valid": values > 0})
    return array


def sparse(database: wr.Database) -> wr.Array:
    array = database.create("S", "<a: float64> [i=0:299:100, j=0:299:100]", sparse=True)
    places = np.random.default_rng(5).permutation(CELLS)[:40_000]
    array.insert(pa.table({"i": places // 300, "j": places % 300, "a": places / 7}))
    return array


def test_explain_names_the_path_and_what_decided(database: wr.Database) -> None:
    dense(database)
    sparse(database)
    for text, path in {
        "select avg(a) as r from A": "fused",
        "select range(a) as r, count(b) as n from A where a > 0.5 group by j": "fused",
        "select median(a) as r from A group by i": "ranks",
        "select median(b) as r from A group by i": "blocks",
        "select corr(a, b) as r from A": "blocks",
        "select avg(a) as r from A where i < 2 and j < 2": "blocks",
        "select std(a) as r from S group by i": "fused",
        "select avg(a) as r from S where sqrt(a) > 2": "blocks",
        "select avg(a) as r from A where a > 0 and b = 1": "fused",
        "select count(*) as n from A": "catalog",
        "select a from A": "stored",
        "select a * 2 as r from A": "tiles",
        "select b * 2 as r from A": "arrow",
        "select a * 2 as r from A where a > 0": "arrow",
        "select a - avg(a) over (i) as r from A": "tiles, fused",
        "select a * 2 as r from S where a > 3": "rows",
        "select floor(a) as r from S": "rows",
        "select a - avg(a) over (i) as r from S": "arrow, fused",
        "select a from S order by a desc limit 3": "arrow",
        "select avg(a) as r from S regrid (i 10, j 10)": "fused",
        "select avg(a) as r from S where a > 3 regrid (i 10, j 10)": "fused",
        "select median(a) as r from S regrid (i 10, j 10)": "kernels",
        "select max(a) as r from A window (i 3)": "kernels",
        "select r from (select max(a) as r from A window (i 3)) where r > 0": "kernels",
    }.items():
        explained = database.query(text).explain()
        assert explained.path == path, text
        for name in path.split(", "):
            assert f"  path      {name}: " in str(explained) or text.endswith("window (i 3)")


def test_explain_says_why_no_other_path_is_taken(database: wr.Database) -> None:
    dense(database)
    sparse(database)
    few = "there are too few cells: its code takes longer to load than they take"
    for text, why in {
        "select avg(a) as r from S where sqrt(a) > 2": "not fused: sqrt(a) is not computed on tiles",
        "select avg(a) as r from A where i < 2 and j < 2": f"not fused: {few} as blocks",
        "select avg(a) as r from S regrid (i 10, j 10) min count 3": "not fused: it has a min count or a boundary",
        "select median(a) as r from S regrid (i 10, j 10)": "not fused: median(a) is not made of counts",
        "select avg(a) as r from S where i < 9 and j < 9 regrid (i 3, j 3)": f"not fused: {few}",
        "select b * 2.0 as r from A": "not tiles: b is no number, or may be missing",
        "select b * 2 as r from A": "not tiles: b * 2 is computed in whole numbers, which may overflow",
        "select floor(a) as r from S": "not tiles: floor(a) is not computed on tiles",
        "select a from A where a > 0": "not tiles: conditions choose cells of a dense array",
    }.items():
        assert f"  path      {why}" in str(database.query(text).explain()), text


def test_what_explain_names_is_what_runs(database: wr.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    dense(database)
    sparse(database)
    ran: list[str] = []

    def watch(module: Any, name: str, path: str) -> None:
        function = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *given: (ran.append(path), function(*given))[1])

    watch(bound_query, "compute_rows", "rows")
    watch(cellwise, "compute_block", "tiles")
    watch(sparse_fold, "fold_sparse", "fused")
    watch(sparse_windows.CellWindowSource, "read", "kernels")
    for text in (
        "select a * 2 as r from A",
        "select a * 2 as r from S where a > 3",
        "select avg(a) as r from S regrid (i 10, j 10)",
        "select median(a) as r from S regrid (i 100, j 100)",
        "select avg(a) as r from S group by i",
    ):
        ran.clear()
        query = database.query(text)
        query.compute()
        assert set(ran) == {query.explain().path}, text


def test_a_path_can_be_forced_and_says_what_it_cannot(database: wr.Database) -> None:
    dense(database)
    database.engine.path = "fused"
    with pytest.raises(wr.DataError, match="strategy fused cannot do median"):
        database.query("select median(a) as r from A").compute()
    database.engine.path = "blocks"
    assert database.query("select avg(a) as r from A").explain().path == "blocks"


def test_sums_repeat_bit_by_bit_whatever_the_threads(database: wr.Database) -> None:
    dense(database)
    sparse(database)
    engine = database.engine
    for text in (
        "select sum(a) as s, var(a) as v from A",
        "select sum(a) as s from A where a > -0.3 group by j",
        "select avg(a * 3 - 1) as s from A group by i",
        "select sum(a) as s, var(a) as v from S group by j",
    ):
        found = set()
        for workers in (1, 2, 4, 2):
            engine.local = LocalExecutor(workers, engine.memory, lambda *_: None, engine.cancellation)
            result = database.query(text).compute()
            columns = result["s"] if isinstance(result, pa.Table) else pa.array(result["s"].values.reshape(-1))
            found.add(arrow_to_block(columns)[0].tobytes())
        assert len(found) == 1, text


def test_sums_lose_nothing_to_large_values_that_cancel(database: wr.Database) -> None:
    array = database.create("A", "<a: float64> [i=0:99999:5000]")
    values = np.full(100_000, 0.1)
    values[0], values[50_000], values[-1] = 1e16, 1.0, -1e16
    array.write({"a": values})
    found = float(database.query("select sum(a) as s from A").compute()["s"])
    assert database.query("select sum(a) as s from A").explain().path == "fused"
    assert abs(found - (99_997 * 0.1 + 1)) <= 1e-12 * 2e16


def test_a_damaged_chunk_is_named(database: wr.Database, tmp_path: Path) -> None:
    dense(database)
    chunks = sorted((tmp_path / "w").rglob("chunks/*"), key=lambda file: file.stat().st_size)
    spoilt = bytearray(chunks[-1].read_bytes())
    spoilt[len(spoilt) // 2] ^= 0x40
    chunks[-1].write_bytes(spoilt)
    for path, text in (("fused", "avg(a)"), ("ranks", "median(a)"), ("blocks", "avg(a)")):
        database.engine.path = path
        with pytest.raises(wr.CorruptionError, match=r"array A@\d+: chunk \(\d, \d\) of a, cells .* is damaged"):
            database.query(f"select {text} as r from A group by i").compute()


def test_a_damaged_page_is_named(database: wr.Database, tmp_path: Path) -> None:
    sparse(database)
    query = database.query("select avg(a) as r from S")
    query.compute()
    part = next((tmp_path / "w").rglob("part-*.parquet"))
    spoilt = bytearray(part.read_bytes())
    for place in range(len(spoilt) // 3, len(spoilt) // 3 + 40_000, 500):
        spoilt[place] ^= 0x40
    part.write_bytes(spoilt)
    with pytest.raises(wr.CorruptionError, match=f"damaged in {re.escape(part.name)}"):
        query.compute()


@pytest.mark.spark
def test_spark_folds_the_same(database: wr.Database, tmp_path: Path) -> None:
    dense(database)
    sparse(database)
    texts = (
        "select avg(a) as r, max(b) as m from A where a > 0 group by j",
        "select median(a) as r from A group by i",
        "select sum(a) as r from S group by i",
    )
    expected = [database.query(text).compute() for text in texts]
    with wr.connect(tmp_path / "w", engine="spark", progress=False) as on_spark:
        for text, here in zip(texts, expected, strict=True):
            query = on_spark.query(text)
            assert query.explain().path in ("fused", "ranks")
            there = query.compute()
            if isinstance(here, pa.Table):
                assert there.column_names == here.column_names
                np.testing.assert_allclose(there["r"].to_numpy(), here["r"].to_numpy(), rtol=1e-13)
            else:
                np.testing.assert_allclose(there["r"].values, here["r"].values, rtol=1e-13)


def test_a_first_answer_imports_neither_dask_nor_numbagg(tmp_path: Path) -> None:
    code = """
import sys
import windrow as wr
with wr.connect(sys.argv[1], engine="local", progress=False) as database:
    array = database.create("A", "<a: float64> [i=0:2:3, j=0:2:3]")
    array.write({"a": [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]]})
    print(float(database.query("select sum(a) as s from A").compute()["s"]))
    print(array.window(i=3, j=3).agg(m=wr.max("a")).compute()["m"].values.max())
print(sorted(name for name in ("dask", "numbagg") if name in sys.modules))
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "x")], capture_output=True, text=True, check=False
    )
    assert done.stdout.split("\n")[:3] == ["45.0", "9.0", "[]"], done.stdout + done.stderr
