"""Folding, merging and netting change no cell: what is known of chunks stays right, and no batch rewrites the array."""

from __future__ import annotations

import importlib
import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from deltalake import DeltaTable, QueryBuilder
from hypothesis import given
from hypothesis import strategies as st

import windrow as wr
from windrow.errors import ConflictError, CorruptionError
from windrow.model.notation import parse_schema
from windrow.storage.chunks.index import decode_index, encode_index, pack_columns, unpack_columns
from windrow.storage.delta.vectors import decode_rows, encode_rows
from windrow.storage.pieces import pieces_of, read_piece
from windrow.storage.records import ChunkStatistics
from windrow.storage.upkeep import tidying

from .contents import check_chunks

Cells = dict[tuple[int, int], int]
SCHEMA = "<v: int64> [x=0:*:7, y=0:19:5]"
GRID = parse_schema("<v: int64> [x=-3:*:7, y=0:19:5]", sparse=True)[1].grid


# What the catalog keeps


integers = st.integers(-(2**62), 2**62)


@given(st.lists(st.tuples(integers, st.integers(0, 3), st.integers(0, 2**40)), max_size=30))
def test_columns_come_back(rows: list[tuple[int, int, int]]) -> None:
    columns = [np.array([row[n] for row in rows], np.int64) for n in range(3)]
    packed = pack_columns(columns)
    assert [column.tolist() for column in unpack_columns(packed)] == [column.tolist() for column in columns]
    for place in range(len(packed)):
        spoilt = bytearray(packed)
        spoilt[place] ^= 1 << place % 8
        with pytest.raises(ValueError, match=r"checksum|unpacked"):
            unpack_columns(bytes(spoilt))
        with pytest.raises(ValueError, match=r"checksum|unpacked"):
            unpack_columns(packed[:place])


chunk = st.tuples(
    st.integers(0, 40),
    st.integers(0, 3),
    st.integers(0, 6),
    st.integers(0, 4),
    st.integers(0, 2**20),
    st.integers(0, 9),
)


@given(st.lists(chunk, min_size=1, max_size=20), st.integers(1, 10**9))
def test_an_index_comes_back(drawn: list[tuple[int, ...]], size: int) -> None:
    found = {GRID.ordinal((row[0], row[1])): row for row in drawn}
    ordinals = np.array(sorted(found), np.int64)
    rows = [found[ordinal] for ordinal in ordinals.tolist()]
    corners = np.array([GRID.box_of(row[:2]).lo for row in rows])
    lo = corners + np.array([[row[2] // 2, row[3] // 2] for row in rows])
    hi = corners + np.array([[row[2], row[3]] for row in rows])
    cells, changed = (np.array([row[n] for row in rows], np.int64) for n in (4, 5))
    index = ChunkStatistics(ordinals, cells, cells, lo, hi, changed)
    back = decode_index(encode_index(index, GRID), GRID, size)
    for name in ("ordinals", "cells", "changed"):
        assert getattr(back, name).tolist() == getattr(index, name).tolist()
    there = cells > 0
    assert back.lo[there].tolist() == lo[there].tolist()
    assert back.hi[there].tolist() == hi[there].tolist()
    assert back.bytes.tolist() == [round(size * n / max(1, int(cells.sum()))) for n in cells.tolist()]


@given(st.sets(st.integers(0, 2**32 - 1) | st.integers(0, 300), max_size=200))
def test_vectors_come_back(rows: set[int]) -> None:
    vector = encode_rows(np.array(sorted(rows), np.uint32))
    assert vector.dead == len(rows)
    assert decode_rows(vector.encoded).tolist() == sorted(rows)


# Random batches against a dictionary


class Twin:
    """The same batches on an array and on plain dictionaries, with every version remembered."""

    def __init__(self, database: wr.Database, seed: int) -> None:
        self.database, self.dice = database, random.Random(seed)
        self.array = database.create("S", SCHEMA, sparse=True)
        self.cells: Cells = {}
        self.changed: dict[tuple[int, int], int] = {}
        self.history: dict[int, tuple[Cells, dict[tuple[int, int], int]]] = {}

    def draw(self, most: int) -> Cells:
        first, width = self.dice.randrange(60), self.dice.choice([3, 20, 60])
        places = [
            (first + self.dice.randrange(width), self.dice.randrange(20)) for _ in range(self.dice.randrange(most))
        ]
        return {at: self.dice.randrange(10**6) for at in places}

    def insert(self, batch: wr.Batch, most: int = 60) -> None:
        cells = self.draw(most)
        batch.insert("S", rows_of(cells))
        self.cells = self.cells | cells

    def delete(self, batch: wr.Batch) -> None:
        lo = self.dice.randrange(60)
        hi = lo + self.dice.choice([0, 2, 30])
        batch.delete("S", f"x between {lo} and {hi} and v % 2 = 0")
        self.cells = {at: v for at, v in self.cells.items() if not (lo <= at[0] <= hi and v % 2 == 0)}

    def update(self, batch: wr.Batch) -> None:
        lo = self.dice.randrange(60)
        batch.update("S", {"v": "v + 1"}, f"x > {lo} and y < 4")
        self.cells = {at: v + 1 if at[0] > lo and at[1] < 4 else v for at, v in self.cells.items()}

    def compact(self, batch: wr.Batch) -> None:
        batch.compact("S")

    def step(self) -> None:
        acts = self.dice.choices(
            [self.insert, self.delete, self.update, self.compact], [6, 3, 2, 1], k=self.dice.choice([1, 1, 1, 3])
        )
        before = self.cells
        with self.database.batch() as batch:
            for act in acts:
                act(batch)
        self.remember(before)

    def remember(self, before: Cells) -> None:
        number = self.array.version
        differing = {at for at in before.keys() | self.cells.keys() if before.get(at) != self.cells.get(at)}
        self.changed = self.changed | {(x // 7, y // 5): number for x, y in differing}
        self.history[number] = (dict(self.cells), dict(self.changed))

    def check(self, number: int) -> None:
        cells, changed = self.history[number]
        array = self.array.at(version=number)
        assert cells_of(array) == cells
        chunks = array.chunks()
        keys = [array.schema.grid.key(int(ordinal)) for ordinal in chunks.ordinals]
        counted: dict[tuple[int, ...], int] = {}
        for x, y in cells:
            counted[x // 7, y // 5] = counted.get((x // 7, y // 5), 0) + 1
        assert dict(zip(keys, chunks.cells.tolist(), strict=True)) == counted
        told = dict(zip(keys, chunks.changed.tolist(), strict=True))
        # An update to the same value, or cells that came and went again, may count as a change; never the other way.
        assert all(changed[key] <= told[key] <= number for key in counted), (told, changed)

    def check_outside(self, number: int) -> None:
        there = self.array.location(number)
        frame = pl.read_delta(there.path, version=int(there.version))
        found = dict(zip(zip(frame["x"], frame["y"], strict=True), frame["v"], strict=True))
        assert found == self.history[number][0]


def rows_of(cells: Cells) -> dict[str, Any]:
    columns = zip(*((x, y, v) for (x, y), v in cells.items()), strict=True) if cells else [[], [], []]
    return dict(zip(("x", "y", "v"), (np.array(list(column), np.int64) for column in columns), strict=True))


def cells_of(array: wr.Array) -> Cells:
    return {(row["x"], row["y"]): row["v"] for row in array.read().to_pylist()}


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Merging of two runs already, and folding of the worst part alone, so that few cells show all of it."""
    monkeypatch.setattr(tidying, "TIER", 2)
    monkeypatch.setattr(tidying, "FOLDS", 1)


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("seed", [1, 2])
def test_every_version_is_as_a_dictionary_says(local: wr.Database, seed: int) -> None:
    run_batches(Twin(local, seed), 25, 4)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(10, 20))
def test_every_version_is_as_a_dictionary_says_at_length(
    local: wr.Database, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    dice = random.Random(seed)
    monkeypatch.setattr(tidying, "TIER", dice.choice([2, 3, 6]))
    monkeypatch.setattr(tidying, "SHARE", dice.choice([0.1, 0.25, 0.8]))
    run_batches(Twin(local, seed), 200, 1)


def run_batches(twin: Twin, batches: int, outside_every: int) -> None:
    for _ in range(batches):
        twin.step()
        twin.check(max(twin.history))
    check_chunks(twin.array)
    for place, number in enumerate(twin.history):
        twin.check(number)
        if place % outside_every == 0:
            twin.check_outside(number)
    twin.database.collect_garbage(keep_versions=5)
    for number in list(twin.history)[-5:]:
        twin.check(number)
        twin.check_outside(number)
    twin.step()
    twin.check(max(twin.history))


# One run, one vectors file, one log entry


def files(array: wr.Array, pattern: str) -> set[str]:
    return {str(file.relative_to(array.location().path)) for file in Path(array.location().path).glob(pattern)}


@pytest.fixture
def wide(local: wr.Database) -> wr.Array:
    """Enough cells that a few changes leave its one base part as it is."""
    array = local.create("S", "<v: int64> [x=0:*:100]", sparse=True)
    array.insert({"x": np.arange(10_000), "v": np.arange(10_000)})
    return array


def test_a_batch_is_one_run_one_vectors_file_and_one_entry(local: wr.Database, wide: wr.Array) -> None:
    before = files(wide, "**/*")
    with local.batch() as batch:
        batch.insert("S", {"x": [5, 20_000], "v": [-5, 1]})
        batch.insert("S", {"x": [5, 6], "v": [-6, -7]})
        batch.update("S", {"v": "v * 2"}, "x = 6")
        batch.delete("S", "x = 20000 or x = 7")
        assert batch.array("S").read(x=(4, 8))["v"].to_pylist() == [4, -6, -14, 8]
    new = files(wide, "**/*") - before
    assert sorted(name.split("/")[0].split("-")[0].split("_")[0] for name in new) == ["", "deletion", "part"]
    assert wide.version == 2
    assert wide.read(x=(4, 8))["v"].to_pylist() == [4, -6, -14, 8]
    assert wide.versions()[-1].cells == 9_999
    log = Path(wide.location().path, "_delta_log", f"{2:020}.json").read_text()
    assert log.count('"protocol"') == 1
    wide.delete("x = 8")
    assert '"protocol"' not in Path(wide.location().path, "_delta_log", f"{3:020}.json").read_text()


def test_an_array_that_only_grows_needs_no_vectors(local: wr.Database) -> None:
    array = local.create("S", "<v: int64> [x=0:*:100]", sparse=True)
    for night in range(12):
        array.insert({"x": np.arange(500) + 1000 * night, "v": np.full(500, night)})
        array.insert({"x": np.arange(20) * 1000 + 700 + night, "v": np.full(20, night)})
    log = Path(array.location().path).glob("_delta_log/*.json")
    assert not any(b"deletionVector" in file.read_bytes() for file in log)
    assert len(array._snapshot().parts) < 20  # type: ignore[union-attr]
    assert DeltaTable(array.location().path).protocol().min_reader_version == 1


def test_no_batch_rewrites_the_array(wide: wr.Array) -> None:
    size = sum(part.bytes for part in wide._snapshot().parts)  # type: ignore[union-attr]
    for number in range(20):
        before = files(wide, "*.parquet")
        wide.insert({"x": np.array([number, 3_000 + number]), "v": np.array([0, 0])})
        written = sum((Path(wide.location().path) / name).stat().st_size for name in files(wide, "*.parquet") - before)
        assert written < size / 4
    assert len(wide._snapshot().parts) < 12  # type: ignore[union-attr]


def test_compaction_folds_all(wide: wr.Array) -> None:
    for number in range(7):
        wide.insert({"x": np.array([number]), "v": np.array([-1])})
    changed = dict(zip(wide.chunks().ordinals.tolist(), wide.chunks().changed.tolist(), strict=True))
    assert changed[0] == 8
    assert changed[1] == 1
    wide.compact()
    (part,) = wide._snapshot().parts  # type: ignore[union-attr]
    assert (part.run, part.vector) == (0, None)
    assert dict(zip(wide.chunks().ordinals.tolist(), wide.chunks().changed.tolist(), strict=True)) == changed


# What views are made from


def test_pieces_tell_what_two_versions_do_not_share(local: wr.Database, wide: wr.Array) -> None:
    before = wide._snapshot()
    with local.batch() as batch:
        batch.insert("S", {"x": [5, 20_000], "v": [-5, 1]})
        batch.delete("S", "x = 9")
    after = wide._snapshot()
    old, new = pieces_of(before), pieces_of(after)  # type: ignore[arg-type]
    assert not old & new
    read = [(snapshot, piece) for snapshot, pieces in ((before, old - new), (after, new - old)) for piece in pieces]
    rows = [row for snapshot, piece in read for row in read_piece(snapshot, piece).to_pylist()]  # type: ignore[arg-type]
    assert len(rows) == 10_000 + 10_000
    wide.insert({"x": [30_000], "v": [3]})
    assert new < pieces_of(wide._snapshot())  # type: ignore[arg-type]


# Damage, and others who write


def test_a_damaged_vector_is_named(wide: wr.Array, connect: Callable[..., wr.Database]) -> None:
    wide.delete("x between 100 and 103")
    (file,) = Path(wide.location().path).glob("deletion_vector_*.bin")
    whole = file.read_bytes()
    for spoilt in (whole[:-1], whole[:9] + bytes([whole[9] ^ 1]) + whole[10:], b""):
        file.write_bytes(spoilt)
        for act in (lambda: wide.read(), lambda: connect().array("S").chunks(), lambda: wide.delete("x = 5")):
            with pytest.raises(CorruptionError, match=rf"S@2.*{file.name}"):
                act()
    file.unlink()
    with pytest.raises(CorruptionError, match=rf"S@2.*{file.name}"):
        wide.read()
    assert len(wide.at(version=1).read()) == 10_000
    file.write_bytes(whole)
    assert len(wide.read()) == 9_996


def test_an_entry_that_another_writer_put_there_first_is_a_conflict(local: wr.Database, wide: wr.Array) -> None:
    foreign = Path(wide.location().path, "_delta_log", f"{2:020}.json")

    def write_beside_another() -> None:
        with local.batch() as batch:
            batch.insert("S", {"x": [1], "v": [1]})
            foreign.write_text('{"commitInfo": {"timestamp": 1}}')

    with pytest.raises(ConflictError, match="another writer"):
        write_beside_another()
    assert wide.version == 1
    assert wide.read(x=1)["v"].to_pylist() == [1]
    wide.insert({"x": [1], "v": [-1]})  # the foreign entry is taken back first
    assert wide.read(x=1)["v"].to_pylist() == [-1]
    there = wide.location()
    assert pl.read_delta(there.path, version=int(there.version)).filter(pl.col("x") == 1)["v"].to_list() == [-1]


def test_an_outside_vacuum_takes_nothing_that_is_offered(wide: wr.Array) -> None:
    for number in range(5):
        wide.insert({"x": np.arange(100 * number, 100 * number + 900), "v": np.zeros(900, int)})
    expected = {version.number: len(wide.at(version=version.number).read()) for version in wide.versions()}
    DeltaTable(wide.location().path).vacuum(dry_run=False)
    assert {number: len(wide.at(version=number).read()) for number in expected} == expected


def test_a_full_disk_while_folding_changes_nothing(wide: wr.Array, monkeypatch: pytest.MonkeyPatch) -> None:
    before = files(wide, "*.parquet")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("windrow.storage.upkeep.moving.PartWriter.close", full)
        patch.setattr(tidying, "SHARE", 0.0)
        with pytest.raises((wr.Error, OSError), match=r"full|No space"):
            wide.delete("x = 5")
    assert files(wide, "*.parquet") == before
    assert len(wide.read()) == 10_000
    wide.delete("x = 5")
    assert len(wide.read()) == 9_999


# Readers outside, along two hundred versions


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[wr.Array, dict[int, Cells]]]:
    dice = random.Random(3)
    with wr.connect(tmp_path_factory.mktemp("long") / "w", engine="local", progress=False) as database:
        array = database.create("S", SCHEMA, sparse=True)
        cells: Cells = {}
        history = {}
        for number in range(1, 201):
            fresh = {(number // 2 + dice.randrange(30), dice.randrange(20)): number for _ in range(6)}
            gone = dice.sample(sorted(cells), min(len(cells), 2))
            with database.batch() as batch:
                if gone:
                    batch.delete("S", " or ".join(f"(x = {x} and y = {y})" for x, y in gone))
                batch.insert("S", rows_of(fresh))
            cells = {at: v for at, v in cells.items() if at not in gone} | fresh
            history[number] = cells
        yield array, history


def by_polars(path: str, version: str) -> list[tuple[int, int, int]]:
    return pl.read_delta(path, version=int(version)).select("x", "y", "v").rows()


def by_query_builder(path: str, version: str) -> list[tuple[int, int, int]]:
    table = DeltaTable(path, version=int(version))
    rows = QueryBuilder().register("cells", table).execute("select x, y, v from cells").read_all()
    return pl.DataFrame(rows).rows()


@pytest.mark.parametrize("reader", [by_polars, by_query_builder])
def test_readers_outside_find_the_same_cells(
    long: tuple[wr.Array, dict[int, Cells]], reader: Callable[[str, str], list[tuple[int, int, int]]]
) -> None:
    array, history = long
    for number in (1, 2, 50, 51, 101, 200):
        there = array.location(number)
        found = reader(there.path, there.version)
        assert {(x, y): v for x, y, v in found} == history[number]
        assert len(found) == len(history[number])
    assert any(
        file.name.endswith(".checkpoint.parquet") for file in Path(array.location().path, "_delta_log").iterdir()
    )


DELTA_SCAN = """
import sys, json, pathlib
import duckdb, duckdb_extension_delta
connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
connection.load_extension(str(next(pathlib.Path(duckdb_extension_delta.__file__).parent.rglob("*.duckdb_extension"))))
path, *versions = sys.argv[1:]
query = "select x, y, v from delta_scan('{}', version => {})"
print(json.dumps({v: connection.sql(query.format(path, v)).fetchall() for v in versions}))
"""


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_duckdb_s_own_reader_of_delta_finds_the_same_cells(
    long: tuple[wr.Array, dict[int, Cells]], tmp_path: Path
) -> None:
    """The extension is for one DuckDB alone, which is installed beside the one that the other tests have."""
    wanted = ["duckdb==1.5.5", "duckdb-extension-delta==1.5.5"]
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(tmp_path), *wanted]
    installed = subprocess.run(install, capture_output=True, text=True, check=False)
    if installed.returncode:
        pytest.skip(f"DuckDB 1.5.5 with its Delta extension cannot be installed: {installed.stderr[-300:]}")
    array, history = long
    places = {array.location(number).version: number for number in (1, 2, 50, 51, 101, 200)}
    command = [sys.executable, "-c", DELTA_SCAN, array.location().path, *places]
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    for version, rows in json.loads(done.stdout.splitlines()[-1]).items():
        found = {(x, y): v for x, y, v in rows}
        assert found == history[places[version]]
        assert len(rows) == len(found)


def test_what_is_collected_is_not_needed(long: tuple[wr.Array, dict[int, Cells]]) -> None:
    array, history = long
    array._database.collect_garbage(keep_versions=10)
    folder = Path(array.location().path)
    assert len([file for file in folder.rglob("*") if file.is_file()]) < 150
    kept = [version.number for version in array.versions()]
    assert kept == list(range(191, 201))
    for number in kept:
        there = array.location(number)
        assert {(x, y): v for x, y, v in by_polars(there.path, there.version)} == history[number]
        assert {(x, y): v for x, y, v in by_query_builder(there.path, there.version)} == history[number]
        assert cells_of(array.at(version=number)) == history[number]
    array.insert({"x": [1], "y": [1], "v": [1]})
    assert cells_of(array) == history[200] | {(1, 1): 1}


# Killed in the middle


def _die_at(path: Path, step: str, act: str) -> None:
    """Do a batch, and die after one step of it."""
    monkeypatch = pytest.MonkeyPatch()
    monkeypatch.setattr(tidying, "TIER", 2)
    owner, _, name = step.rpartition(".")
    module = importlib.import_module(owner)
    original = getattr(module, name)

    def last(*arguments: Any, **options: Any) -> None:
        original(*arguments, **options)
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(module, name, last)
    with wr.connect(path, engine="local", progress=False) as database:
        ACTS[act](database)


def change(database: wr.Database) -> None:
    """A batch that folds and merges."""
    with database.batch() as batch:
        batch.insert("S", {"x": np.arange(0, 9_000, 3), "v": np.full(3_000, -1)})
        batch.delete("S", "x between 40 and 60")


ACTS: dict[str, Callable[[wr.Database], object]] = {
    "change": change,
    "compact": lambda database: database.array("S").compact(),
}
STEPS = {
    "a part is written": ("windrow.storage.upkeep.moving._write", "change"),
    "a part is folded": ("windrow.storage.upkeep.tidying._fold", "change"),
    "runs are merged": ("windrow.storage.upkeep.tidying.merge_runs", "change"),
    "vectors are written": ("windrow.storage.upkeep.sealing._write_vectors", "change"),
    "the log is written": ("windrow.storage.transaction.seal", "change"),
    "all is written anew": ("windrow.operations.sparse.rewrite.write_parts", "compact"),
    "the log of a compaction is written": ("windrow.storage.transaction.seal", "compact"),
}
USUAL = ("a part is folded", "the log is written")


@pytest.mark.parametrize(
    "step", [step if step in USUAL else pytest.param(step, marks=pytest.mark.slow) for step in STEPS]
)
def test_a_writer_killed_in_sealing_leaves_the_version_before(tmp_path: Path, step: str) -> None:
    path = tmp_path / "warehouse"
    before = {x: x for x in range(10_000)} | dict.fromkeys(range(0, 40), 0)
    with wr.connect(path, engine="local", progress=False) as database:
        array = database.create("S", "<v: int64> [x=0:*:100]", sparse=True)
        array.insert({"x": np.arange(10_000), "v": np.arange(10_000)})
        array.insert({"x": np.arange(0, 40), "v": np.zeros(40, int)})
    process = multiprocessing.get_context("spawn").Process(target=_die_at, args=(path, *STEPS[step]))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    with wr.connect(path, engine="local", progress=False, lock_timeout=0) as database:
        array = database.array("S")
        assert array.version == 2
        assert {row["x"]: row["v"] for row in array.read().to_pylist()} == before
        change(database)  # whatever it was that died, the next batch is as good as any
        after = before | dict.fromkeys(range(0, 9_000, 3), -1)
        after = {x: v for x, v in after.items() if not 40 <= x <= 60}
        assert {row["x"]: row["v"] for row in array.read().to_pylist()} == after
        database.collect_garbage()
        for number, cells in ((2, before), (3, after)):
            there = array.location(number)
            frame = pl.read_delta(there.path, version=int(there.version))
            assert dict(zip(frame["x"], frame["v"], strict=True)) == cells
        known = {name for _, name, _, _ in database.catalog.every_part(database.catalog.array("S"))}
        assert {file.name for file in Path(there.path).glob("*.parquet")} == known
