"""Views brought up to date by several nodes, which are folders here: as those kept in one place, whatever happens."""

from __future__ import annotations

import os
import sqlite3
import warnings
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import windrow as wr
from windrow.storage.chunks.cache import CacheWarning, ChunkCache, ChunkKey
from windrow.storage.chunks.index import pack_columns

from .checking import assert_same_result, damage_states, read
from .folders import FolderCluster, use_folders

VIEWS = {
    "plain": "select count(*) as n, sum(x) as s, avg(x) as a from A neighbours L1(2)",
    "near": "select count(*) as n, sum(x) as s, avg(x) as a, max(v) as top from A neighbours L1(2)",
    "others": "select count(*) as n, min(x) as low, median(v) as m from A neighbours Linf(1) excluding self",
    "pairs": "select sum(L.v * R.v) as f, avg(R.x) as a from A L similarity join B R on L.v <= R.v with shape Linf(2) "
    "group by L.i, L.j",
    "kept": "select count(*) as n, sum(R.x) as s from A L left similarity join B R with shape L1(1) group by L.i, L.j",
    "chosen": "select n, a * 2 as twice from (select count(*) as n, avg(x) as a from A where v > 2 neighbours L1(1)) "
    "where n > 1",
    "rows": "select count(*) as n, var(x) as spread from A neighbours i between -1 and 0, j between -20 and 20",
}
SIZE = 24


def cells(random: np.random.Generator, count: int, odd: bool = False) -> pa.Table:
    places = np.sort(random.permutation(SIZE * SIZE)[:count])
    values = random.normal(0, 100, count)
    if odd:
        values[random.random(count) < 0.1] = np.inf
        values[random.random(count) < 0.1] = np.nan
    columns = {"i": places // SIZE + 1, "j": places % SIZE + 1, "v": random.integers(0, 6, count), "x": values}
    return pa.table(columns)


def create(path: Path, names: list[str], options: dict[str, Any] | None = None) -> wr.Database:
    database = wr.connect(path, engine="local", progress=False)
    random = np.random.default_rng(3)
    for name in ("A", "B"):
        array = database.create(name, f"<v: int64, x: float64> [i=1:{SIZE}:5, j=1:{SIZE}:7]", sparse=True)
        array.insert(cells(random, 90))
    for name in names:
        database.create_view(name, VIEWS[name], maintain="incremental", **(options or {}))
    return database


def change(database: wr.Database, seed: int, kind: str) -> None:
    random = np.random.default_rng(seed)
    with database.batch() as batch:
        if kind != "deletes":
            batch.insert("A", cells(random, int(random.integers(1, 40)), odd=kind == "odd"))
        if kind in ("both", "deletes"):
            batch.delete("A", f"v = {seed % 6}")
            batch.insert("B", cells(random, 9))
        if kind == "updates":
            batch.update("A", {"x": "x + 1"}, where=f"v = {seed % 6}")


def placements(view: wr.View) -> list[str | None]:
    return [row["strategy"] for row in view.history().to_pylist()[1:]]


@pytest.mark.parametrize("name", ["near", *(pytest.param(name, marks=pytest.mark.slow) for name in list(VIEWS)[2:])])
def test_as_kept_in_one_place(name: str, tmp_path: Path) -> None:
    with create(tmp_path / "here", [name]) as here, create(tmp_path / "nodes", [name]) as placed:
        use_folders(placed, tmp_path / "folders")
        for seed, kind in enumerate(("inserts", "both", "updates", "odd", "deletes", "inserts")):
            for database in (here, placed):
                change(database, seed, kind)
            view, twin = placed.view(name), here.view(name)
            found = read(view)
            assert_same_result(found, read(twin), ["i", "j"])
        assert view.check().ok
        assert set(placements(view)) - {None}, "nodes took no part"


@pytest.mark.slow
@settings(max_examples=6)
@given(
    name=st.sampled_from(list(VIEWS)),
    strategy=st.sampled_from(["auto", "baseline", "differential", "reassign"]),
    steps=st.lists(
        st.tuples(st.sampled_from(["inserts", "both", "updates", "odd", "deletes"]), st.integers(1, 4)),
        min_size=2,
        max_size=4,
    ),
    seed=st.integers(0, 99),
)
def test_nodes_come_and_go(
    name: str, strategy: str, steps: list[tuple[str, int]], seed: int, tmp_path_factory: Any
) -> None:
    """With one node the view is kept in one place, and the homes it had are found again."""
    root = tmp_path_factory.mktemp("nodes")
    with create(root / "w", [name], {"strategy": strategy, "placement": {"window": 2, "decay": 0.5, "seed": seed,
                                                                        "budget": 0.1}}) as database:  # fmt: skip
        cluster = use_folders(database, root / "folders")
        for number, (kind, nodes) in enumerate(steps):
            cluster.names = [str(node) for node in range(number % 2, nodes + number % 2)]
            change(database, seed + number, kind)
            assert database.view(name).check().ok


@pytest.fixture
def placed(tmp_path: Path) -> Any:
    """A database whose view was brought up to date by nodes once: chunks are at home, states are complete."""
    with create(tmp_path / "w", ["plain"], {"strategy": "baseline"}) as database:
        cluster = use_folders(database, tmp_path / "folders")
        for seed in (1, 2):
            insert(database, seed)
        yield database, cluster


def insert(database: wr.Database, seed: int) -> list[dict[str, Any]]:
    database.array("A").insert(cells(np.random.default_rng(seed), 30))
    return database.view("plain").loads().to_pylist()


def total(loads: list[dict[str, Any]], what: str) -> int:
    return sum(load[what] for load in loads)


def caches(cluster: FolderCluster) -> list[Path]:
    return sorted(cluster.root.glob("*/chunks.sqlite"))


def test_chunks_at_home_are_not_read_from_the_store(placed: Any, tmp_path: Path) -> None:
    """With the baseline's plan old chunks are read at their homes alone: with the store away, from there."""
    database, cluster = placed
    exchange = cluster.exchange

    def hidden(work: Any) -> Any:
        files = list((tmp_path / "w").glob("arrays/*/*.parquet"))
        for file in files:
            file.rename(file.with_suffix(".hidden"))
        try:
            return exchange(work)
        finally:
            for file in files:
                file.with_suffix(".hidden").rename(file)

    cluster.exchange = hidden
    loads = insert(database, 3)
    assert total(loads, "misses") == 0
    assert total(loads, "hits") > 20
    assert database.view("plain").check().ok


def test_an_older_entry_is_not_used(placed: Any) -> None:
    """Entries with other cells, whole as far as anybody can tell, under the version before."""
    database, cluster = placed
    for path in caches(cluster):
        with sqlite3.connect(path) as connection:
            rows = connection.execute("select rowid, cells from chunks").fetchall()
            for number, encoded in rows:
                table = pa.ipc.open_stream(encoded).read_all().slice(1)
                wrong = pa.BufferOutputStream()
                with pa.ipc.new_stream(wrong, table.schema) as writer:
                    writer.write_table(table)
                data = bytes(wrong.getvalue())
                changed = (data, zlib.crc32(data), number)
                connection.execute(
                    "update chunks set cells = ?, checksum = ?, version = version - 1 where rowid = ?", changed
                )
    loads = insert(database, 3)
    assert total(loads, "hits") == 0
    assert total(loads, "misses") > 20
    assert database.view("plain").check().ok


def test_a_batch_that_failed_leaves_nothing_that_is_used(placed: Any) -> None:
    """Its nodes kept chunks under the number of a version that another batch gets."""
    database, _ = placed

    def fail() -> None:
        with database.batch() as batch:
            batch.insert("A", cells(np.random.default_rng(7), 30))
            batch.opened()[1].run()
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError):
        fail()
    insert(database, 3)
    insert(database, 4)
    assert database.view("plain").check().ok


@pytest.mark.parametrize("damage", ["garbage", "bits", "file"])
def test_a_damaged_cache_is_a_warning(placed: Any, damage: str) -> None:
    database, cluster = placed
    for path in caches(cluster):
        if damage == "garbage":
            path.write_bytes(b"no database at all" * 1000)
        elif damage == "bits":
            with sqlite3.connect(path) as connection:
                connection.execute("update chunks set cells = zeroblob(length(cells))")
        else:
            path.unlink()
            path.parent.rmdir()
            path.parent.write_text("a file where a folder should be")
    with pytest.warns(CacheWarning):
        insert(database, 3)
    assert database.view("plain").check().ok


def test_a_state_from_which_more_leaves_than_it_has_stops_the_batch(placed: Any) -> None:
    """Nodes look at the counts, too, and say where."""
    database, cluster = placed
    damage_states(database, "plain", {"__windrow_pairs": "0"})
    before = database.array("A").version
    with pytest.raises(wr.CorruptionError, match=r"the view plain at i = \d+, j = \d+ is not that of its rows"):
        database.array("A").delete("v = 1")
    assert cluster.exchanges
    assert database.array("A").version == before
    database.view("plain").refresh(full=True)
    database.array("A").delete("v = 1")
    assert database.view("plain").check().ok


@pytest.mark.skipif(not Path("/sys/kernel").exists(), reason="there is no folder that even root cannot write to")
def test_a_cache_that_cannot_be_written_is_a_warning(placed: Any) -> None:
    """Tests may run as root, who may write everywhere but here."""
    database, cluster = placed
    cluster.root = Path("/sys/kernel")
    for seed in (3, 4):
        with pytest.warns(CacheWarning, match="read from the store"):
            loads = insert(database, seed)
        assert total(loads, "hits") == 0
    assert database.view("plain").check().ok


def test_a_read_only_cache_still_gives_what_it_has(tmp_path: Path) -> None:
    folder, key, table = tmp_path / "cache", ChunkKey("A", 0, 1, "x"), pa.table({"i": [1, 2]})
    ChunkCache(folder).write([(key, table)])
    with read_only(folder):
        with pytest.warns(CacheWarning, match="read from the store"):
            ChunkCache(folder).write([(ChunkKey("A", 1, 1, "x"), table)])
        with warnings.catch_warnings(record=True):
            warnings.simplefilter("always", CacheWarning)
            assert ChunkCache(folder).read([key]).get(key, table).equals(table)
    assert ChunkCache(folder).read([key])[key].equals(table)


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """A folder in which nothing can be written: for root, by being somebody else meanwhile."""
    user, above = os.geteuid(), [place for place in folder.parents if os.stat(place).st_uid == os.geteuid()]
    modes = {place: place.stat().st_mode for place in (*above, folder, *folder.iterdir())}
    for place, mode in modes.items():
        place.chmod(mode | 0o555 if place in above else 0o555 if place.is_dir() else 0o444)
    os.seteuid(65534 if user == 0 else user)
    try:
        yield
    finally:
        os.seteuid(user)
        for place, mode in modes.items():
            place.chmod(mode)


# What the catalog says and the store does not bear out


def homes_of(path: Path) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path / "catalog.sqlite")) as catalog:
        return catalog.execute("select * from homes order by id").fetchall()


def put_homes(path: Path, rows: list[tuple[Any, ...]]) -> None:
    with closing(sqlite3.connect(path / "catalog.sqlite")) as catalog, catalog:
        catalog.execute("delete from homes")
        marks = ", ".join("?" * len(rows[0]))
        catalog.executemany(f"insert into homes values ({marks})", rows)


@pytest.mark.parametrize("name", ["plain", "pairs", "kept", "chosen"])
def test_homes_of_states_that_are_not_there(name: str, tmp_path: Path) -> None:
    """A chunk that has a home has all its states; the catalog says so of chunks that have none."""
    with create(tmp_path / "w", [name]) as database:
        use_folders(database, tmp_path / "folders")
        for seed in (1, 2):
            change(database, seed, "both")
        told = homes_of(tmp_path / "w")
        assert told
        database.view(name).refresh(full=True)  # which forgets states and homes
        put_homes(tmp_path / "w", told)
        for seed in (3, 4):
            change(database, seed, "both")
            assert database.view(name).check().ok
        assert placements(database.view(name))[-1] is not None


def test_homes_of_chunks_and_on_nodes_that_are_not_there(placed: Any, tmp_path: Path) -> None:
    database, _ = placed
    rows = homes_of(tmp_path / "w")
    with closing(sqlite3.connect(tmp_path / "w" / "catalog.sqlite")) as catalog:
        names = [row[1] for row in catalog.execute("pragma table_info(homes)")]
    encoded, nodes = names.index("encoded"), names.index("nodes")
    strange = pack_columns([np.array([3, 10**6]), np.array([0, 1])])
    changed = [
        tuple(strange if k == encoded else '["nobody", "nowhere"]' if k == nodes else one for k, one in enumerate(row))
        for row in rows
    ]
    put_homes(tmp_path / "w", changed)
    for seed in (3, 4):
        insert(database, seed)
        assert database.view("plain").check().ok


def test_homes_that_cannot_be_read_are_a_clear_error(placed: Any, tmp_path: Path) -> None:
    database, _ = placed
    before = (database.array("A").version, database.view("plain").version)
    with closing(sqlite3.connect(tmp_path / "w" / "catalog.sqlite")) as catalog, catalog:
        catalog.execute("update homes set encoded = x'00ff'")
    with pytest.raises(wr.CorruptionError, match="the homes of chunks cannot be read"):
        insert(database, 3)
    assert (database.array("A").version, database.view("plain").version) == before


def test_a_cache_of_limited_size_lets_chunks_go(tmp_path: Path) -> None:
    cache = ChunkCache(tmp_path, limit=20_000)
    table = pa.table({"i": np.arange(500)})
    keys = [ChunkKey("A", ordinal, 1, "x") for ordinal in range(8)]
    for key in keys:
        cache.write([(key, table)])
        cache.read(keys[:1])  # the first is used again and again
    assert cache.size() <= 20_000
    found = cache.read(keys)
    assert keys[0] in found
    assert keys[-1] in found
    assert keys[1] not in found
    assert found[keys[0]].equals(table)
    assert not cache.read([ChunkKey("A", 0, 1, "y"), ChunkKey("A", 0, 2, "x"), ChunkKey("B", 0, 1, "x")])


def test_a_full_disk_is_a_warning(tmp_path: Path) -> None:
    cache = ChunkCache(Path("/dev/full/cache"))
    with pytest.warns(CacheWarning, match="read from the store"):
        cache.write([(ChunkKey("A", 0, 1, "x"), pa.table({"i": [1]}))])


def test_tasks_that_run_elsewhere_read_more_and_compute_the_same(placed: Any) -> None:
    database, cluster = placed
    cluster.strays = {"0": "1", "1": "2"}
    loads = insert(database, 3)
    assert total(loads, "strayed") == 4
    assert total(loads, "misses") > 0
    assert database.view("plain").check().ok


def test_homes_of_nodes_that_are_gone_are_planned_anew(placed: Any) -> None:
    database, cluster = placed
    cluster.names = ["1", "7"]
    loads = insert(database, 3)
    assert [load["node"] for load in loads] == ["1", "7"]
    assert database.view("plain").check().ok
    loads = insert(database, 4)
    assert total(loads, "hits") > total(loads, "misses")


def test_a_session_may_plan_in_its_own_way(placed: Any) -> None:
    database, _ = placed
    database.plan_maintenance(strategy="reassign", window=2)
    insert(database, 3)
    database.plan_maintenance()
    insert(database, 4)
    assert placements(database.view("plain"))[-2:] == ["reassign", "baseline"]
    with pytest.raises(wr.DataError, match="no such setting of placement"):
        database.plan_maintenance(widow=2)


def test_rebuilt_states_are_complete_no_more(placed: Any) -> None:
    database, _ = placed
    database.view("plain").refresh(full=True)
    insert(database, 3)
    assert database.view("plain").check().ok


def test_two_views_and_a_query_inside_a_batch(tmp_path: Path) -> None:
    """Views of one batch share what nodes keep of an array; what was seen on the way is not kept for later."""
    with create(tmp_path / "w", ["near", "others"]) as database:
        use_folders(database, tmp_path / "folders")
        for seed in range(3):
            with database.batch() as batch:
                batch.insert("A", cells(np.random.default_rng(seed), 25))
                batch.opened()[1].run()
                batch.delete("A", f"v = {seed}")
            for name in ("near", "others"):
                assert database.view(name).check().ok


def test_explain_says_who_keeps_a_view(placed: Any) -> None:
    database, _ = placed
    shared = database.explain_view(VIEWS["near"], strategy="reassign", placement={"window": 3})
    assert "built, kept and asked where a plan says; strategy = reassign, window = 3, decay = 0.5" in str(shared)
    for query in ("select count(*) as n from A group by i", "select sum(v) as s from A window (i centred 3, j 2)"):
        assert "not planned, because nothing is joined; what is large is cut" in str(database.explain_view(query))
    grouped = "select sum(R.v) as s from A L similarity join B R with shape Linf(1) group by L.j"
    assert "because a group's pairs may be on every node" in str(database.explain_view(grouped))
    other = database.explain_view(VIEWS["near"], chunks={"i": 3, "j": 3})
    assert "its chunks are not those of the array on its left" in str(other)


def test_loads_are_drawn(placed: Any, tmp_path: Path) -> None:
    database, _ = placed
    assert database.view("plain").plot_loads(tmp_path / "loads.png").stat().st_size > 1000
