"""A query of a part of an array reads that part: chunks and row groups are counted where they are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from icechunk.store import IcechunkStore

import windrow as wr
from windrow.storage import part_writing

Connect = Callable[..., Any]


@dataclass
class Reads:
    """What was read since it was last cleared: keys of dense chunks, and rows of sparse parts."""

    chunks: list[str] = field(default_factory=list)
    rows: int = 0

    def clear(self) -> None:
        self.chunks, self.rows = [], 0


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    """Counts, and lets everything run as it does."""
    found = Reads()
    get, read_row_groups = IcechunkStore.get, pq.ParquetFile.read_row_groups

    async def counted_get(store: Any, key: str, *arguments: Any, **options: Any) -> Any:
        if "/c/" in key:
            found.chunks.append(key)
        return await get(store, key, *arguments, **options)

    def counted_read(file: Any, *arguments: Any, **options: Any) -> pa.Table:
        table = read_row_groups(file, *arguments, **options)
        found.rows += table.num_rows
        return table

    monkeypatch.setattr(IcechunkStore, "get", counted_get)
    monkeypatch.setattr(pq.ParquetFile, "read_row_groups", counted_read)
    return found


def bytes_read() -> int:
    """What this process asked the system to read, from disk or from its cache."""
    return int(Path("/proc/self/io").read_text().split("rchar:")[1].split()[0])


# The first day is 2000-01-01 on cell 1, so cells 1001 to 1320 are 2002-09-27 to 2003-08-12.
HALVES = [
    "cell(i) between 1001 and 1320 and j between 501 and 820",
    "i between '2002-09-27' and '2003-08-12' and j between 501 and 820",
    "501 <= j and j <= 820 and i > '2002-09-26' and not cell(i) > 1320",
    "(cell(i) = 1001 or cell(i) in (1002, 1320)) and j >= 501 and j < 821",
    "(i = '2002-09-27' or i in ('2002-10-01', '2003-08-12')) and j between 501 and 820",
    "i between '2002-09-27' and '2003-08-12' and j between 501 and 820 and a > 50",
    "date_trunc('day', i) >= '2002-09-27' and year(i) * 1000 + dayofyear(i) <= 2003224 and j between 501 and 820",
]
WHOLE_CHUNKS = [
    "select a from A where {where}",
    "select a + 1 as c, b from A where {where}",
    "aggr A sum(a), median(b) where {where} by i",
    "select c from (select a + 1 as c, a, b from A) where {where}",
    "select max(a) as m from A where {where} regrid (100, 100)",
]


@pytest.fixture(scope="module")
def dense(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Ten million cells in 32 × 32 chunks, with days as labels of the first dimension."""
    database = wr.connect(tmp_path_factory.mktemp("dense"), engine="local", workers=2, progress=False)
    days = np.datetime64("2000-01-01") + np.arange(3200)
    schema = "<a: int8, b: int8> [i=1:3200:100, j=1:3200:100]"
    array = database.create("A", schema, labels={"i": days})
    values = np.random.default_rng(1).integers(0, 100, (3200, 3200), np.int8)
    array.write({"a": values, "b": values[::-1]})
    yield database
    database.close()


def test_a_hundredth_of_a_dense_array_is_read(dense: Any, reads: Reads) -> None:
    """A box of 320 × 320 cells lies in 4 × 4 of the 1024 chunks: each is read once, and no other."""
    for where in HALVES:
        for pattern in WHOLE_CHUNKS:
            query = dense.query(pattern.format(where=where))
            reads.clear()
            query.compute()
            variables = {key.split("/")[0] for key in reads.chunks}
            assert variables <= {"a", "b"}
            assert len(reads.chunks) == len(set(reads.chunks)) == 16 * len(variables), query
            explained = query.explain()
            assert (explained.cells_read, explained.cells_there) == (160_000, 3200**2), query


def test_windows_read_what_they_reach(dense: Any, reads: Reads) -> None:
    """The halo reaches into one more chunk on each side that ends at its border."""
    inside = "select max(a) from A where {where} window (i centred 3, j centred 3)"
    over = "select m from (select max(a) as m from A window (i centred 3, j centred 3)) where {where}"
    for text, chunks in ((inside, 16), (over, 25)):
        query = dense.query(text.format(where=HALVES[0]))
        reads.clear()
        query.compute()
        assert len(set(reads.chunks)) == chunks, query


def test_labels_in_any_order_say_what_is_read(connect: Connect, reads: Reads) -> None:
    """Descending latitudes, and numbers of stations in no order at all: cells 21 to 40, and 21 to 60, of 100."""
    database = connect(workers=2)
    stations = np.arange(100, dtype=float)
    stations[20:60] = stations[20:60][np.random.default_rng(4).permutation(40)]
    labels = {"lat": 90 - 1.5 * np.arange(100), "station": stations}
    array = database.create("A", "<a: int8> [lat=1:100:20, station=1:100:20]", labels=labels)
    values = np.random.default_rng(5).integers(0, 100, (100, 100), np.int8)
    array.write({"a": values})
    for where, chunks, chosen in [
        ("lat <= 60 and lat > 30", 5, (labels["lat"] <= 60) & (labels["lat"] > 30)),
        ("lat between 60 and 31.5", 5, (labels["lat"] <= 60) & (labels["lat"] >= 31.5)),
        ("floor((lat - 0.1) / 30) = 1", 5, (labels["lat"] <= 60) & (labels["lat"] > 30)),
        ("station >= 25 and station < 55", 10, (stations >= 25) & (stations < 55)),
        ("station in (25, 30, 54)", 10, np.isin(stations, (25, 30, 54))),
        ("sqrt(station) >= 5 and station not between 55 and 99", 10, (stations >= 25) & (stations < 55)),
    ]:
        query = database.query(f"select sum(a) as s, count(*) as n from A where {where}")
        reads.clear()
        found = query.compute()
        of = values[chosen] if "lat" in where else values[:, chosen]
        row = found.to_pylist()[0] if isinstance(found, pa.Table) else {k: int(v) for k, v in found.data_vars.items()}
        assert (row["s"], row["n"]) == (int(of.sum(dtype=np.int64)), of.size), where
        assert len(set(reads.chunks)) <= chunks, where


def test_bytes_follow_chunks(dense: Any, reads: Reads) -> None:
    dense.query("select a from A where cell(i) = 1 and j = 1").compute()  # everything is loaded after it
    before = bytes_read()
    dense.query("select a from A where " + HALVES[0]).compute()
    some = bytes_read() - before
    dense.query("select a from A").compute()
    every = bytes_read() - before - some
    assert every > 0.5 * 3200**2
    assert some < 0.02 * every


def fill(array: Any, cells: int) -> None:
    """Cells here and there, each in a piece of the array of its own."""
    side = array.shape[1]
    step = array.box.size // cells
    random = np.random.default_rng(2)
    places = np.arange(cells) * step + random.integers(0, step, cells)
    values = pa.array(random.integers(0, 100, cells), pa.int32())
    array.insert(pa.table({"x": places // side + 1, "y": places % side + 1, "v": values}))


PART_OF_SPARSE = [
    "select v from S where {where}",
    "select v * 2 as w from S where {where} and v > 50",
    "aggr S count(*), median(v) where {where}",
    "aggr S sum(v) where {where} by x",
    "select max(v) from S where {where} window (x centred 5, y centred 5)",
    "select w from (select v + 1 as w, v from S where v > 5) where {where}",
]


def test_about_a_hundredth_of_a_sparse_array_is_read(
    connect: Connect, reads: Reads, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A quarter of a million cells in 40 × 40 chunks, five of them to a row group."""
    monkeypatch.setattr(part_writing, "GROUP_CELLS", 800)
    database = connect(workers=2)
    fill(database.create("S", "<v: int32> [x=1:4000:100, y=1:4000:100]", sparse=True), 250_000)
    for text in PART_OF_SPARSE:
        query = database.query(text.format(where="x between 1001 and 1400 and y between 2101 and 2500"))
        reads.clear()
        query.compute()
        assert 0.01 * 250_000 < reads.rows <= 0.03 * 250_000, text


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_hundredth_of_a_billion_cells_is_read(connect: Connect, reads: Reads) -> None:
    """32,000 × 32,000 cells; a tenth of each side, which begins and ends inside chunks."""
    database = connect(workers=2)
    days = np.datetime64("1950-01-01") + np.arange(32_000)
    array = database.create("A", "<a: int8> [i=1:32000:500, j=1:32000:500]", labels={"i": days})
    stripe = np.random.default_rng(3).integers(0, 4, (4000, 32_000), np.int8)
    for first in range(1, 32_001, 4000):
        array.write({"a": stripe}, at=(first, 1))
    wheres = [
        "cell(i) between 10001 and 13200 and j between 4101 and 7300",
        "i between '1977-05-19' and '1986-02-20' and j between 4101 and 7300",
        "cell(i) between 10001 and 13200 and j between 4101 and 7300 and a > 2",
    ]
    stored = int(array.chunks().bytes.sum())
    for where in wheres:
        for text in ("select a from A where {}", "aggr A sum(a) where {}", "aggr A sum(a) where {} by i"):
            query = database.query(text.format(where))
            query.compute()  # code is loaded the first time
            reads.clear()
            before = bytes_read()
            query.compute()
            assert len(reads.chunks) == len(set(reads.chunks)) == 7 * 7, query
            assert 49 / 64**2 < 0.012
            assert bytes_read() - before < 0.014 * stored, query
            assert query.explain().cells_read == 49 * 500**2


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_hundredth_of_many_sparse_cells_is_read(connect: Connect, reads: Reads) -> None:
    """Ten million cells in 40 × 40 chunks, with row groups as they are."""
    database = connect(workers=2)
    fill(database.create("S", "<v: int32> [x=1:40000:1000, y=1:40000:1000]", sparse=True), 10_000_000)
    query = database.query("aggr S sum(v), count(*) where x between 10001 and 14000 and y between 21001 and 25000")
    reads.clear()
    found = query.compute()
    assert found["count"][0].as_py() == pytest.approx(100_000, rel=0.02)
    assert 100_000 < reads.rows < 0.03 * 10_000_000
