"""Machines and warehouses that cannot do the work: damaged, full, read-only, of another format, without Java."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xarray as xr

import windrow as wr
from windrow.errors import ConflictError, CorruptionError, DataError, Error, MemoryLimitError, StoreError

DENSE = np.random.default_rng(1).random((32, 32))
ROWS = {"x": np.arange(200) % 20 + 1, "y": np.arange(200) // 20 + 1, "v": np.arange(200) * 7}


def connect(path: Path, **options: Any) -> wr.Database:
    return wr.connect(path, **({"engine": "local", "progress": False} | options))


def fill(path: Path) -> None:
    with connect(path) as database:
        dense = database.create("D", "<a: float64, k: int32 null> [i=1:32:16, j=1:32:16]")
        dense.write({"a": DENSE, "k": np.arange(1024).reshape(32, 32)})
        dense.write({"a": DENSE[:4]}, at=(5, 1))
        sparse = database.create("S", "<v: int64> [x=1:20:5, y=1:10:5]", sparse=True)
        sparse.insert(ROWS)
        sparse.insert({"x": [1, 2], "y": [1, 1], "v": [-1, -2]})


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("original") / "warehouse"
    fill(path)
    return path


@pytest.fixture
def path(original: Path, tmp_path: Path) -> Path:
    """A copy of a small warehouse, to be spoilt."""
    return Path(shutil.copytree(original, tmp_path / "warehouse"))


def values(array: wr.Array) -> list[Any]:
    found = array.read()
    return found.to_pylist() if array.sparse else [found[name].values.tolist() for name in sorted(found.data_vars)]


def contents(path: Path) -> dict[str, Any]:
    with connect(path) as database:
        return {f"{name}@{number}": values(database.array(f"{name}@{number}")) for name in "DS" for number in (1, 2)}


# Not a warehouse, or not one of ours


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(StoreError, match="not a windrow warehouse") as caught:
        connect(tmp_path)
    assert caught.value.hint is not None
    assert [entry.name for entry in tmp_path.iterdir()] == ["notes.txt"]


def test_a_file_is_no_warehouse(tmp_path: Path) -> None:
    file = tmp_path / "warehouse"
    file.write_text("mine")
    with pytest.raises(StoreError, match="a warehouse is a directory"):
        connect(file)
    assert file.read_text() == "mine"


def test_nothing_is_made_where_nothing_was_to_be_made(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no warehouse"):
        connect(tmp_path / "nowhere", create=False)
    assert list(tmp_path.iterdir()) == []


def test_a_newer_format_in_the_marker(path: Path) -> None:
    (path / "windrow.json").write_text(json.dumps({"format": 99}))
    with pytest.raises(StoreError, match=r"newer format.*99.*[Uu]pgrade"):
        connect(path)


def test_a_newer_format_in_the_catalog(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path / "catalog.sqlite")) as catalog:
        catalog.execute("update settings set value = '99' where key = 'format'")
        catalog.commit()
    with pytest.raises(StoreError, match="newer format"):
        connect(path)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"format": "one"}', "{}", "\x00\xff"])
def test_a_damaged_marker(path: Path, text: str) -> None:
    (path / "windrow.json").write_text(text)
    with pytest.raises(StoreError, match=r"marker|format"):
        connect(path)


@pytest.mark.parametrize(
    "options",
    [
        {"engine": "dask"},
        {"engine": None},
        {"memory": "lots"},
        {"memory": -1},
        {"memory": 0},
        {"lock_timeout": -1},
        {"lock_timeout": None},
        {"lock_timeout": float("nan")},
        {"workers": 0},
        {"workers": "2"},
        {"catalog": "nonsense"},
        {"catalog": "nothing://localhost/x"},
    ],
    ids=str,
)
def test_connections_that_cannot_be(tmp_path: Path, options: dict[str, Any]) -> None:
    with pytest.raises(Error) as caught:
        connect(tmp_path / "warehouse", **options)
    assert str(caught.value) != caught.value.what


@pytest.mark.parametrize("place", [None, 5, b"warehouse"])
def test_places_that_are_none(place: Any) -> None:
    with pytest.raises(DataError, match="path"):
        connect(place)


# Damage


def flipped(data: bytes, choose: random.Random) -> bytes:
    spoilt = bytearray(data)
    spoilt[choose.randrange(len(spoilt))] ^= 1 << choose.randrange(8)
    return bytes(spoilt)


def cut(data: bytes, choose: random.Random) -> bytes:
    return data[: choose.randrange(len(data))]


def zeroed(data: bytes, choose: random.Random) -> bytes:
    start = choose.randrange(len(data))
    return data[:start] + bytes(min(64, len(data) - start)) + data[start + 64 :]


Spoil = Callable[[bytes, random.Random], bytes]
KINDS = {
    "chunks": "arrays/D-*/chunks/*",
    "manifests": "arrays/D-*/manifests/*",
    "snapshots": "arrays/D-*/snapshots/*",
    "parts": "arrays/S-*/*.parquet",
    "log": "arrays/S-*/_delta_log/*.json",
}


def check_spoilt(path: Path, before: dict[str, Any], kind: str) -> int:
    """Read everything: each version is as it was, or an error names it. Returns how many were errors."""
    errors = 0
    with connect(path) as database:
        for title, expected in before.items():
            damage = None
            try:
                found = values(database.array(title))
            except CorruptionError as error:
                damage = error
            if damage is None:
                assert found == expected, f"{title} is wrong, and nobody says so"
            else:
                assert f"array {title}" in damage.what
                assert "chunk" in damage.what or kind in ("manifests", "snapshots")  # which say where all chunks are
                assert damage.got is not None
                assert damage.hint is not None
                errors += 1
    return errors


@pytest.mark.parametrize("spoil", [flipped, cut, zeroed])
@pytest.mark.parametrize("kind", KINDS)
def test_damage_is_an_error_or_does_no_harm(original: Path, tmp_path: Path, kind: str, spoil: Spoil) -> None:
    before = contents(original)
    choose = random.Random(f"{kind} {spoil.__name__}")
    errors = 0
    for attempt in range(8):
        path = Path(shutil.copytree(original, tmp_path / str(attempt)))
        file = choose.choice(sorted(path.glob(KINDS[kind])))
        file.write_bytes(spoil(file.read_bytes(), choose))
        errors += check_spoilt(path, before, kind)
        shutil.rmtree(path)
    assert errors or kind in ("log", "snapshots"), "no damage was found at all"


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", KINDS)
def test_every_byte_may_be_damaged(original: Path, tmp_path: Path, kind: str) -> None:
    before = contents(original)
    choose = random.Random(kind)
    files = sorted(original.glob(KINDS[kind]))
    places = [(file, position) for file in files for position in range(file.stat().st_size)]
    for attempt, (file, position) in enumerate(choose.sample(places, min(len(places), 500))):
        path = Path(shutil.copytree(original, tmp_path / str(attempt)))
        spoilt = bytearray(file.read_bytes())
        spoilt[position] ^= 1 << choose.randrange(8)
        (path / file.relative_to(original)).write_bytes(spoilt)
        check_spoilt(path, before, kind)
        shutil.rmtree(path)


@pytest.mark.parametrize("kind", ["chunks", "manifests", "snapshots", "parts"])
def test_lost_files_are_errors(original: Path, tmp_path: Path, kind: str) -> None:
    before = contents(original)
    path = Path(shutil.copytree(original, tmp_path / "warehouse"))
    for file in path.glob(KINDS[kind]):
        file.unlink()
    assert check_spoilt(path, before, kind) == 2


def test_the_chunk_that_is_damaged_is_the_one_named(tmp_path: Path) -> None:
    path = tmp_path / "warehouse"
    with connect(path) as database:
        dense = database.create("D", "<a: float64> [i=1:64:32, j=1:64:32]")
        dense.write(np.random.default_rng(2).random((64, 64)))
        known = set(path.glob("arrays/D-*/chunks/*"))
        dense.write(np.random.default_rng(3).random((32, 32)), at=(33, 1))
        (chunk,) = set(path.glob("arrays/D-*/chunks/*")) - known
    chunk.write_bytes(flipped(chunk.read_bytes(), random.Random(1)))
    with connect(path) as database:
        with pytest.raises(CorruptionError, match=r"array D@2: chunk \(1, 0\) of a, cells \[33:64, 1:32\]"):
            database.array("D").read()
        assert database.array("D").read(i=(1, 32))["a"].shape == (32, 64)
        assert database.array("D@1").read()["a"].shape == (64, 64)


@pytest.mark.parametrize("kind", ["chunks", "manifests"])
def test_damage_is_not_written_into_the_next_version(path: Path, kind: str) -> None:
    """A write to part of a chunk reads the rest of it, and a version inherits all that it does not write."""
    for file in path.glob(KINDS[kind]):
        file.write_bytes(flipped(file.read_bytes(), random.Random(3)))
    with connect(path) as database:
        dense = database.array("D")
        for change in (
            lambda: dense.write({"a": np.ones((2, 2))}, at=(2, 2)),
            lambda: dense.update({"a": "a + 1"}),
            lambda: dense.compact({"i": 8}),
        ):
            with pytest.raises(CorruptionError, match="D@2"):
                change()
        assert dense.version == 2


def test_damaged_parts_are_not_rewritten(path: Path) -> None:
    for file in path.glob(KINDS["parts"]):
        file.write_bytes(flipped(file.read_bytes(), random.Random(4)))
    with connect(path) as database:
        sparse = database.array("S")
        for change in (
            lambda: sparse.insert(ROWS),
            lambda: sparse.update({"v": "v + 1"}),
            lambda: sparse.delete("v > 100"),
            lambda: sparse.compact(),
        ):
            with pytest.raises(CorruptionError, match="S@2"):
                change()
        assert sparse.version == 2


@pytest.mark.parametrize("spoil", [cut, zeroed, lambda data, _: b"not a catalog" * 500], ids=["cut", "zeroed", "other"])
def test_a_damaged_catalog_is_said_to_be_damaged(path: Path, spoil: Spoil) -> None:
    catalog = path / "catalog.sqlite"
    whole = catalog.read_bytes()
    before = contents(path)
    for attempt in range(6):
        for rest in path.glob("catalog.sqlite*"):
            rest.unlink()
        catalog.write_bytes(spoil(whole, random.Random(attempt)))
        with contextlib.suppress(StoreError):
            found = contents(path)
            assert found == before
    for rest in path.glob("catalog.sqlite*"):
        rest.unlink()
    catalog.write_bytes(whole)
    assert contents(path) == before


# No room, no permission


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 16 MB."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(place)]
    mounted = subprocess.run(mount, capture_output=True, text=True) if os.geteuid() == 0 else None
    if mounted is None or mounted.returncode != 0:
        pytest.skip("a small file system can be mounted by root only" if mounted is None else mounted.stderr)
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def fill_disk(place: Path, leave: int) -> Path:
    """Write a file that leaves only so many bytes free."""
    ballast = place / "ballast"
    free = shutil.disk_usage(place).free
    with ballast.open("wb") as file:
        file.write(bytes(max(0, free - leave)))
    return ballast


BIG = np.random.default_rng(5).random((512, 512))
MANY = pa.table(
    {"x": np.arange(200_000) % 1000, "y": np.arange(200_000) // 1000, "v": np.random.default_rng(6).random(200_000)}
)
CHANGES: dict[str, Callable[[wr.Database], object]] = {
    "write": lambda database: database.array("D").write(BIG),
    "insert": lambda database: database.array("S").insert(MANY),
    "update": lambda database: database.array("D").update({"a": "a + i * j / 7"}),
    "create dense": lambda database: database.create("E", "<a: float64> [i=1:4]"),
    "create sparse": lambda database: database.create("E", "<a: float64> [i=1:4]", sparse=True),
    "create as": lambda database: database.query("create array E as select a + 1 as b from D"),
    "store": lambda database: database.query("aggr D sum(a) by window(3,3)").store("E"),
    "import": lambda database: database.import_file(_grid_file(database), "E"),
    "import table": lambda database: database.import_file(_table_file(database), "E", dimensions=["x", "y"]),
    "compact": lambda database: database.array("D").compact({"i": 128, "j": 128}),
    "compact sparse": lambda database: database.array("S").compact({"x": 250, "y": 250}),
}


def _grid_file(database: wr.Database) -> Path:
    """A file beside the small disk, not on it."""
    file = Path(database.path).parent.parent / "grid.zarr"
    if not file.exists():
        xr.Dataset({"a": (("i", "j"), BIG)}).to_zarr(file, consolidated=False)
    return file


def _table_file(database: wr.Database) -> Path:
    file = Path(database.path).parent.parent / "table.parquet"
    if not file.exists():
        pq.write_table(MANY, file)
    return file


@pytest.mark.parametrize(
    ("change", "leave"),
    [
        *((change, leave) for change in ("write", "insert", "update") for leave in (0, 8_000, 40_000, 300_000)),
        ("create dense", 0),
        ("create sparse", 0),
        ("compact sparse", 0),
        *(
            (change, leave)
            for change in ("store", "create as", "import", "import table", "compact")
            for leave in (0, 300_000)
        ),
    ],
)
def test_a_full_disk_changes_nothing(small_disk: Path, change: str, leave: int) -> None:
    with connect(small_disk / "warehouse", lock_timeout=0) as database:
        dense = database.create("D", "<a: float64> [i=1:512:64, j=1:512:64]")
        dense.write(BIG)
        sparse = database.create("S", "<v: float64> [x=0:999:100, y=0:999:100]", sparse=True)
        sparse.insert({"x": [1], "y": [1], "v": [0.5]})
        ballast = fill_disk(small_disk, leave)
        with pytest.raises(StoreError, match="disk is full") as caught:
            CHANGES[change](database)
        assert not isinstance(caught.value, ConflictError)
        assert (dense.version, sparse.version) == (1, 1)
        assert (dense.read()["a"].values == BIG).all()
        assert sparse.read().to_pydict() == {"x": [1], "y": [1], "v": [0.5]}
        ballast.unlink()
        database.collect_garbage()
        CHANGES[change](database)
    with connect(small_disk / "warehouse", lock_timeout=0) as database:
        makes = change in ("store", "import", "import table") or change.startswith("create")
        assert len(database.arrays()) == (3 if makes else 2)
        assert database.array("D").version + database.array("S").version == (2 if makes else 3)
        if change == "insert":
            assert database.array("S").read().num_rows == 200_000


def test_garbage_is_collected_on_a_full_disk(small_disk: Path) -> None:
    """Or an error says that the disk is full, and nothing that is offered is lost."""
    with connect(small_disk / "warehouse", lock_timeout=0) as database:
        dense = database.create("D", "<a: float64> [i=1:512:64, j=1:512:64]")
        sparse = database.create("S", "<v: float64> [x=0:999:100, y=0:999:100]", sparse=True)
        for number in range(2):
            dense.write(BIG + number)
            sparse.insert({"x": [1], "y": [1], "v": [0.5 + number]})
        ballast = fill_disk(small_disk, 0)
        for options in ({}, {"keep_versions": 1}):
            with contextlib.suppress(StoreError):
                database.collect_garbage(**options)
            assert (dense.read()["a"].values == BIG + 1).all()
            assert sparse.read().to_pydict() == {"x": [1], "y": [1], "v": [1.5]}
        ballast.unlink()
        database.collect_garbage(keep_versions=1)
        assert [len(array.versions()) for array in (dense, sparse)] == [1, 1]
        assert (dense.read()["a"].values == BIG + 1).all()
        dense.write(BIG)


def test_no_warehouse_is_made_on_a_full_disk(small_disk: Path) -> None:
    ballast = fill_disk(small_disk, 0)
    with pytest.raises(StoreError, match="disk is full"):
        connect(small_disk / "warehouse")
    ballast.unlink()
    fill(small_disk / "warehouse")


def test_a_read_only_warehouse_can_be_read(original: Path, small_disk: Path) -> None:
    before = contents(original)
    shutil.copytree(original, small_disk / "warehouse")
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    assert contents(small_disk / "warehouse") == before
    with connect(small_disk / "warehouse") as database:
        for change in (
            lambda: database.array("D").write({"a": np.ones((1, 1))}, at=(1, 1)),
            lambda: database.array("S").insert(ROWS),
            lambda: database.create("E", "<a: int8> [i=1:4]"),
            lambda: database.drop("D"),
            lambda: database.collect_garbage(),
        ):
            with pytest.raises(StoreError, match="permission"):
                change()
    assert contents(small_disk / "warehouse") == before


# Too little memory


def test_what_does_not_fit_memory_is_refused_before_any_work(tmp_path: Path) -> None:
    with connect(tmp_path / "warehouse") as database:
        database.create("D", "<a: float64> [i=1:512:512, j=1:512:512]").write(BIG)
        database.create("S", "<v: float64> [x=0:999:100, y=0:999:100]", sparse=True).insert(MANY)
    with connect(tmp_path / "warehouse", memory="1 MiB") as database:
        for change in (
            lambda: database.array("D").read(),
            lambda: database.array("D").write(BIG),
            lambda: database.array("D").update({"a": "a + 1"}),
            lambda: database.array("S").read(),
            lambda: database.array("S").insert(MANY),
            lambda: database.array("S").delete("v > 0.5"),
            lambda: database.array("S").compact(),
            lambda: database.array("S").to_xarray(),
        ):
            with pytest.raises(MemoryLimitError, match=r"MB|GB") as caught:
                change()
            assert caught.value.hint is not None
        assert database.array("D").read(i=(1, 8))["a"].shape == (8, 512)
        assert (database.array("D").version, database.array("S").version) == (1, 1)


# After closing


def test_a_closed_database_says_so(path: Path) -> None:
    database = connect(path)
    dense, batch = database.array("D"), database.batch()
    database.close()
    database.close()

    def write_in_batch() -> None:
        with batch as opened:
            opened.write("D", {"a": np.ones((1, 1))}, (1, 1))

    for use in (
        database.arrays,
        dense.read,
        lambda: dense.version,
        lambda: dense.write({"a": np.ones((1, 1))}, at=(1, 1)),
        write_in_batch,
        lambda: database.create("E", "<a: int8> [i=1:4]"),
        database.collect_garbage,
    ):
        with pytest.raises(StoreError, match="closed"):
            use()
    assert "closed" in repr(database)
    assert "closed" in repr(dense)


# No Java

WITHOUT_JAVA = """
import sys
import windrow as wr
from windrow.execution import java
java.find_java.__defaults__ = (None, ())  # the folders where Java is usually installed are not looked into
with wr.connect(sys.argv[1], engine="auto", progress=False) as database:
    array = database.create("A", "<a: int64> [i=1:4]")
    array.write([1, 2, 3, 4])
    print(array.read()["a"].values.tolist())
with wr.connect(sys.argv[1], engine="spark", progress=False) as database:
    try:
        database.array("A").write([5, 6, 7, 8])
    except wr.errors.MachineError as error:
        print(error)
    print(database.array("A").version)
"""


def test_without_java_small_work_goes_on_and_spark_says_what_to_install(tmp_path: Path) -> None:
    environment = {key: value for key, value in os.environ.items() if key != "JAVA_HOME"}
    environment |= {"PATH": str(tmp_path), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", WITHOUT_JAVA, str(tmp_path / "warehouse")]
    said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.splitlines()
    assert said[0] == "[1, 2, 3, 4]"
    assert "Spark needs Java 17" in said[1]
    assert "no Java at all" in said[1]
    assert "openjdk-17-jre-headless" in said[1]
    assert said[2] == "1"
