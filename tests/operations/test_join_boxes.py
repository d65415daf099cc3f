"""Pairs box by box: what is read and held falls with the box, along every side, and the pairs stay the same."""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import windrow as wr
from windrow.errors import MemoryLimitError, StoreError
from windrow.model.box import Box
from windrow.operations.join.sources import PairCells
from windrow.operations.query import sparse_run
from windrow.operations.query.cellwise import CellColumns
from windrow.operations.query.sparse_run import cell_blocks

SIDES = "from A L similarity join B R"
THREE = "select L.m as a, R.m as b, T.m as c from A L similarity join B R {} similarity join A T {}"
QUERIES = [
    f"select L.m as a, R.m as b {SIDES} with shape L1(2)",
    f"select L.m as a, R.m as b {SIDES} with shape Linf(1), j any",
    f"select L.m as a, R.m as b {SIDES} with shape i any, j any, excluding self",
    f"select L.m as a, R.m as b {SIDES} on L.i = R.j + 2 and L.m < R.m with shape Linf(2)",
    f"select L.m as a, R.m as b {SIDES} on R.i = L.i // 2 and R.j = L.j with shape L2(2) wrap (j)",
    f"select L.m as a, R.m as b {SIDES} with shape Linf(3) nearest 2",
    f"select L.m as a, R.m as b {SIDES} with shape Linf(3) mutual nearest",
    THREE.format("with shape L1(1)", "on T.i = R.i and T.j = L.j with shape L1(1)"),
    THREE.format("with shape Linf(2) nearest 1", "on T.i = R.i and T.j = L.j with shape L1(2)"),
    THREE.format("with shape L1(1)", "on T.i = R.i and T.j = R.j with shape Linf(2) mutual nearest"),
    f"select L.m as a {SIDES.replace('similarity', 'anti similarity')} with shape L1(1)",
]


@pytest.fixture
def arrays(local: Any) -> Any:
    random = np.random.default_rng(5)
    for name, cells in (("A", 30), ("B", 40)):
        places = random.choice(80, cells, replace=False)
        array = local.create(name, "<m: int64> [i=1:8:4, j=1:10:3]", sparse=True)
        array.insert({"i": 1 + places // 10, "j": 1 + places % 10, "m": random.integers(0, 100, cells)})
    return local


def pairs_of(query: Any) -> PairCells:
    source = query.bind().as_cells()
    source = source.source if isinstance(source, CellColumns) else source
    assert isinstance(source, PairCells)
    return source


def inside(table: pa.Table, names: tuple[str, ...], box: Box) -> pa.Table:
    for name, lo, hi in zip(names, box.lo, box.hi, strict=True):
        table = table.filter(pc.and_(pc.greater_equal(table[name], lo), pc.less_equal(table[name], hi)))
    return table


@pytest.mark.parametrize("text", QUERIES)
def test_a_box_of_pairs_has_those_pairs_that_lie_in_it(arrays: Any, text: str) -> None:
    source = pairs_of(arrays.query(text))
    every, names = source.read(), source.schema.dimension_names
    assert every.num_rows
    random = np.random.default_rng(1)
    for number in range(40):
        corners = [sorted(random.integers(lo, hi + 1, 2)) for lo, hi in zip(source.box.lo, source.box.hi, strict=True)]
        if number % 2:  # only some of the dimensions are cut
            whole = random.random(len(corners)) < 0.7
            ends = zip(source.box.lo, source.box.hi, strict=True)
            corners = [end if keep else own for end, own, keep in zip(ends, corners, whole, strict=True)]
        box = Box(tuple(int(lo) for lo, _ in corners), tuple(int(hi) for _, hi in corners))
        wanted = inside(every, names, box)
        assert source.read(box).equals(wanted)
        assert source.within(box).read(box).equals(wanted)
        assert source.cells_in(box) or not wanted.num_rows
        assert source.task_bytes(box) <= source.task_bytes(source.box)


def test_pairs_on_the_sky_box_by_box(local: Any) -> None:
    random = np.random.default_rng(2)
    for name in "AB":
        array = local.create(name, "<m: int64> [ra, dec]", grid={"ra": (0, 360, "10 deg"), "dec": (-90, 90, "10 deg")})
        array.insert({"ra": random.uniform(0, 360, 60), "dec": random.uniform(-90, 90, 60), "m": np.arange(60)})
    source = pairs_of(local.array("A").join(local.array("B"), shape=wr.sky("12 deg")).select(a="left.m", b="right.m"))
    every, names = source.read(), source.schema.dimension_names
    assert every.num_rows > 60
    axis = names.index("right_ra")
    for first, last in itertools.pairwise([1, 2, 9, 20, 37]):
        lo, hi = list(source.box.lo), list(source.box.hi)
        lo[axis], hi[axis] = first, last - 1
        box = Box(tuple(lo), tuple(hi))
        assert source.within(box).read(box).equals(inside(every, names, box))


# Memory


def largest(source: PairCells, database: Any) -> tuple[int, int]:
    """How many tasks a result is stored by, and what the largest needs, in bytes."""
    blocks = cell_blocks(source, source.schema.grid, source.box, database.engine.local)
    assert sum(block.size for block in blocks) <= source.box.size
    return len(blocks), max(map(source.task_bytes, blocks))


def test_a_cell_with_a_million_partners(tmp_path: Path) -> None:
    count = 10**6
    with wr.connect(tmp_path, engine="local", memory="256 MB", progress=False) as database:
        one = database.create("One", "<m: int64> [i=1:1000]", sparse=True)
        one.insert({"i": [1], "m": [1]})
        lots = database.create("Lots", "<m: int64> [i=1:1000, k=1:1000000:1000000]", sparse=True)
        lots.insert({"i": np.ones(count, int), "k": np.arange(1, count + 1), "m": np.arange(count)})
        query = one.join(lots, shape=wr.L1(0, on="i"), on={"i": "i"}).select(f="left.m + right.m")
        tasks, needed = largest(pairs_of(query), database)
        assert 2 <= tasks <= 16
        assert needed <= database.engine.local.worker_memory
        assert "about 1,000,000 pairs" in str(query.explain())
        query.store("Pairs")
        total = database.query("select count(*) as k, sum(f) as s, max(k) as last from Pairs").compute()
        assert total.select(["k", "s", "last"]).to_pylist() == [
            {"k": count, "s": count * (count + 1) // 2, "last": count}
        ]


def test_a_result_larger_than_memory_in_a_single_chunk(tmp_path: Path) -> None:
    with wr.connect(tmp_path, engine="local", memory="16 MB", progress=False) as database:
        array = database.create("A", "<m: int64> [i=1:1200:1200]", sparse=True)
        array.insert({"i": np.arange(1, 1201), "m": np.arange(1200)})
        query = array.join(array, shape=wr.offsets(i=wr.any_offset)).select()
        source = pairs_of(query)
        assert database.engine.memory < 1_440_000 * 32
        tasks, needed = largest(source, database)
        assert tasks > 10
        assert needed <= database.engine.local.worker_memory
        (told,) = [line for line in str(query.explain()).splitlines() if line.strip().startswith("memory")]
        whole = f"about {source.task_bytes(source.box) / 2**20:,.0f} MB for all of it at once"
        assert f"{whole}, cut into tasks of up to " in told
        assert float(told.split("up to ")[1].split(" MB")[0]) <= database.engine.local.worker_memory / 2**20
        with pytest.raises(MemoryLimitError):
            query.compute()
        query.store("Pairs")
        total = database.query("select count(*) as n, sum(left_m * right_m) as s from Pairs").compute()
        assert total.select(["n", "s"]).to_pylist() == [{"n": 1_440_000, "s": (1199 * 1200 // 2) ** 2}]
        part = database.query(
            "select left_m, right_m from Pairs where left_i between 5 and 6 and right_i <= 3"
        ).compute()
        assert part["left_i"].to_pylist() == [5, 5, 5, 6, 6, 6]
        assert part["right_i"].to_pylist() == [1, 2, 3, 1, 2, 3]


def test_groups_that_must_be_whole_are_not_cut_within_a_chunk(tmp_path: Path) -> None:
    with wr.connect(tmp_path, engine="local", memory="4 MB", progress=False) as database:
        array = database.create("A", "<m: int64> [i=1:300:300]", sparse=True)
        array.insert({"i": np.arange(1, 301), "m": np.arange(300)})
        joined = array.join(array, shape=wr.offsets(i=wr.any_offset))
        total = database.query("select median(L.m + R.m) as m from A L similarity join A R with shape i any")
        assert "; one task needs about" in str(total.explain())
        with pytest.raises(MemoryLimitError, match="in one task"):
            total.compute()
        by_left = database.query("select median(R.m) as m from A L similarity join A R with shape i any group by L.i")
        assert "cut into tasks of up to" in str(by_left.explain()) or "all of it at once\n" in str(by_left.explain())
        assert set(by_left.compute()["m"].to_pylist()) == {149.5}
        by_cell = joined.agg(m=wr.median("left.m + right.m")).compute()
        assert by_cell["m"].to_pylist() == [cell + 149.5 for cell in range(300)]


def test_tasks_that_cannot_be_made_smaller_are_told_of(tmp_path: Path) -> None:
    """All right cells are needed to tell the nearest."""
    with wr.connect(tmp_path, engine="local", progress=False) as database:
        array = database.create("A", "<m: int64> [i=1:200000:200000]", sparse=True)
        array.insert({"i": np.arange(1, 200_001), "m": np.arange(200_000)})
    with wr.connect(tmp_path, engine="local", memory="8 MB", progress=False) as database:
        array = database.array("A")
        query = array.join(array, shape=wr.offsets(i=wr.any_offset), nearest=1).select()
        (told,) = [line for line in str(query.explain()).splitlines() if line.strip().startswith("memory")]
        assert "; one task needs about" in told
        assert "and a worker has" in told
        with pytest.raises(MemoryLimitError, match="in one task"):
            query.store("Pairs")
        assert "Pairs" not in database


# The disk


def test_what_cannot_fit_on_the_disk_is_refused_before_any_work(local: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    huge = local.create("H", "<v: int8> [i=1:100000:1000, j=1:100000:1000]")
    everything = huge.join(huge, shape=wr.Linf(50_000))
    with pytest.raises(StoreError, match="does not fit on the disk"):
        everything.select().store("R")
    small = local.create("S", "<v: int64> [i=1:1000:10]", sparse=True)
    small.insert({"i": np.arange(1, 1001), "v": np.arange(1000)})
    pairs = small.join(small, shape=wr.offsets(i=wr.any_offset))
    usage = type(shutil.disk_usage("/"))
    monkeypatch.setattr(sparse_run.shutil, "disk_usage", lambda _: usage(10**9, 10**9, 10**6))
    with pytest.raises(StoreError, match="does not fit on the disk"):
        pairs.select().store("R")
    assert "R" not in local
    # What conditions leave is not known, and aggregates are few.
    small.join(small, shape=wr.offsets(i=wr.any_offset), where="left.v + right.v < 2").select().store("R")
    assert local.query("select count(*) as k from R").compute()["k"].to_pylist() == [3]
    pairs.agg(c=wr.count()).store("C")


def test_more_tasks_than_anybody_waits_for_are_refused(local: Any) -> None:
    huge = local.create("H", "<v: int8> [i=1:100000:1000, j=1:100000:1000]")
    query = huge.join(huge, shape=wr.Linf(50_000), where="left.v < right.v").select()
    with pytest.raises(MemoryLimitError, match="tasks that fit into memory"):
        query.store("R")
    assert "R" not in local
