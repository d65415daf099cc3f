"""Stores and catalogs that are damaged, locked, or of another windrow: an act succeeds, or is an error of windrow's."""

from __future__ import annotations

import contextlib
import random
import shutil
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import sqlalchemy as sa

import windrow as wr
from windrow.errors import CorruptionError, Error, StoreError
from windrow.storage import publishing
from windrow.storage.delta.log import CHECKPOINT_ENTRIES
from windrow.storage.locks import is_alive

VALUES = np.random.default_rng(7).random(2000)


def connect(path: Path) -> wr.Database:
    return wr.connect(path, engine="local", progress=False, create=False, lock_timeout=0)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("damage") / "warehouse"
    with wr.connect(path, engine="local", progress=False) as database:
        dense = database.create("D", "<a: float64> [time=1:*:500]")
        sparse = database.create("S", "<v: float64> [x=1:5000:100]", sparse=True)
        for start in (0, 1000):
            dense.append(VALUES[start : start + 1000], labels=np.arange(start, start + 1000.0))
            sparse.insert({"x": np.arange(1 + start, 1001 + start), "v": VALUES[start : start + 1000]})
    return path


@pytest.fixture
def path(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "warehouse"))


ACTS: dict[str, Callable[[wr.Database], object]] = {
    "read D": lambda db: db.array("D").read(),
    "read D@1": lambda db: db.array("D@1").read(),
    "read S": lambda db: db.array("S").read(),
    "window D": lambda db: db.query("aggr D sum(a) by window(3)").compute(),
    "window S": lambda db: db.query("aggr S sum(v) by window(3)").compute(),
    "lazy D": lambda db: db.array("D").to_xarray().a.sum().item(),
    "describe": lambda db: [str(array.describe()) for array in db.arrays()],
    "versions": lambda db: [array.versions() for array in db.arrays()],
    "append D": lambda db: db.array("D").append(np.ones(10), labels=np.arange(2000.0, 2010)),
    "write D": lambda db: db.array("D").write(np.ones(10), at=(5,)),
    "insert S": lambda db: db.array("S").insert({"x": [5, 4000], "v": [5.0, 6.0]}),
    "delete S": lambda db: db.array("S").delete("x > 900"),
    "update S": lambda db: db.array("S").update({"v": "v + 1"}),
    "compact D": lambda db: db.array("D").compact(),
    "compact S": lambda db: db.array("S").compact(),
    "collect": lambda db: db.collect_garbage(),
    "collect more": lambda db: db.collect_garbage(keep_versions=1),
    "drop D": lambda db: db.drop("D"),
    "drop S": lambda db: db.drop("S"),
}


def try_everything(path: Path) -> dict[str, Error]:
    """The errors of every act; anything that is no Error goes to whoever runs the tests."""
    errors: dict[str, Error] = {}
    for name, act in ACTS.items():
        try:
            with connect(path) as database:
                act(database)
        except Error as error:
            errors[name] = error
        except BaseException as error:
            raise AssertionError(f"{name}: {type(error).__name__}: {error}") from error
    return errors


# Stores


def newest(path: Path, pattern: str) -> Path:
    return max(path.glob(pattern), key=lambda file: (file.stat().st_mtime_ns, file.name))


DAMAGE: dict[str, Callable[[Path], object]] = {
    "log gone": lambda path: shutil.rmtree(newest(path, "arrays/S-*/_delta_log")),
    "last entry of the log gone": lambda path: newest(path, "arrays/S-*/_delta_log/*.json").unlink(),
    "first entry of the log gone": lambda path: min(path.glob("arrays/S-*/_delta_log/*.json")).unlink(),
    "last entry of the log empty": lambda path: newest(path, "arrays/S-*/_delta_log/*.json").write_text(""),
    "last entry of the log nonsense": lambda path: newest(path, "arrays/S-*/_delta_log/*.json").write_text("{}{"),
    "first entry of the log nonsense": lambda path: min(path.glob("arrays/S-*/_delta_log/*.json")).write_text("\0"),
    "entry ahead nonsense": lambda path: Path(newest(path, "arrays/S-*/_delta_log"), f"{3:020}.json").write_text(
        "nonsense"
    ),
    "middle entry of the log gone": lambda path: middle_entry(path).unlink(),
    "middle entry of the log empty": lambda path: middle_entry(path).write_text(""),
    "middle entry of the log cut short": lambda path: middle_entry(path).write_text(
        middle_entry(path).read_text()[:-9]
    ),
    "part gone": lambda path: newest(path, "arrays/S-*/*.parquet").unlink(),
    "part empty": lambda path: newest(path, "arrays/S-*/*.parquet").write_bytes(b""),
    "part nonsense": lambda path: newest(path, "arrays/S-*/*.parquet").write_bytes(b"PAR1" * 100),
    "part spoilt within": lambda path: spoil_within(newest(path, "arrays/S-*/*.parquet")),
    "folder of S gone": lambda path: shutil.rmtree(newest(path, "arrays/S-*")),
    "folder of D gone": lambda path: shutil.rmtree(newest(path, "arrays/D-*")),
    "chunk gone": lambda path: newest(path, "arrays/D-*/chunks/*").unlink(),
    "chunk spoilt": lambda path: spoil_within(newest(path, "arrays/D-*/chunks/*")),
    "manifests gone": lambda path: shutil.rmtree(newest(path, "arrays/D-*/manifests")),
    "snapshots gone": lambda path: shutil.rmtree(newest(path, "arrays/D-*/snapshots")),
    "snapshot empty": lambda path: newest(path, "arrays/D-*/snapshots/*").write_bytes(b""),
    "snapshot spoilt": lambda path: spoil_within(newest(path, "arrays/D-*/snapshots/*")),
    "branch gone": lambda path: shutil.rmtree(newest(path, "arrays/D-*/refs")),
    "branch nonsense": lambda path: newest(path, "arrays/D-*/refs/branch.main/*").write_text("nonsense"),
    "branch empty": lambda path: newest(path, "arrays/D-*/refs/branch.main/*").write_text(""),
    "branch to nowhere": lambda path: newest(path, "arrays/D-*/refs/branch.main/*").write_text(
        '{"snapshot":"AAAAAAAAAAAAAAAAAAA0"}'
    ),
}


def middle_entry(path: Path) -> Path:
    """Neither the first nor the newest, and not in a checkpoint."""
    return sorted(path.glob("arrays/S-*/_delta_log/*.json"))[1]


def spoil_within(file: Path) -> None:
    data = bytearray(file.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 16] = bytes(255 - byte for byte in data[middle : middle + 16])
    file.write_bytes(data)


USUAL = ("last entry of the log nonsense", "middle entry of the log gone", "part gone", "snapshot spoilt")
WRITING = ("insert S", "delete S", "update S", "compact S", "collect", "collect more")


@pytest.mark.parametrize(
    "damage", [name if name in USUAL else pytest.param(name, marks=pytest.mark.slow) for name in DAMAGE]
)
def test_damaged_stores(path: Path, damage: str) -> None:
    DAMAGE[damage](path)
    errors = try_everything(path)
    assert all(isinstance(error, StoreError) or "no such array" in str(error) for error in errors.values()), errors
    if "entry of the log" in damage:
        # Nobody outside could open what is written then, so nothing is.
        assert {name for name in WRITING if isinstance(errors.get(name), CorruptionError)} == set(WRITING), errors
        assert all("entry" in str(errors[name]) or "last entries" in str(errors[name]) for name in WRITING), errors
        assert not {"read S", "window S", "describe", "versions"} & errors.keys()
    if damage.startswith("branch"):
        assert errors == {}  # all that it says the catalog knows


BRANCHES = [damage for damage in DAMAGE if damage.startswith("branch")]


@pytest.mark.parametrize("damage", BRANCHES)
@pytest.mark.parametrize("first", ["read D@1", "lazy D", "append D", "write D", "compact D", "collect more"])
def test_a_branch_that_was_lost_is_made_anew(path: Path, damage: str, first: str) -> None:
    """Whoever comes first, and whatever version it asks for, what is written next builds on the newest one."""
    DAMAGE[damage](path)
    with connect(path) as database:
        ACTS[first](database)
    with connect(path) as database:
        array = database.array("D")
        array.write([7.0], at=(1500,))
        ACTS["collect more"](database)
        found = array.read().a.values
        assert found[1499] == 7.0
        assert found[1500:2000].tolist() == VALUES[1500:].tolist()


def test_a_branch_is_not_made_where_its_snapshot_is_gone_too(path: Path) -> None:
    DAMAGE["branch gone"](path)
    shutil.rmtree(newest(path, "arrays/D-*/snapshots"))
    with connect(path) as database:
        for name in ("read D", "append D", "collect"):
            with pytest.raises(CorruptionError):
                ACTS[name](database)
    assert not list(path.glob("arrays/D-*/refs"))


def test_entries_before_a_checkpoint_are_not_needed(path: Path) -> None:
    with connect(path) as database:
        array = database.array("S")
        for number in range(CHECKPOINT_ENTRIES):
            array.insert({"x": [3000 + number], "v": [1.0]})
        log = Path(array.location().path, "_delta_log")
        assert list(log.glob("*.checkpoint.parquet"))
        (log / f"{1:020}.json").unlink()
        array.insert({"x": [4000], "v": [1.0]})
        location = array.location()
        assert pl.read_delta(location.path, version=int(location.version)).height == 2051
        newest = sorted(log.glob("*.json"))[-2]
        newest.unlink()
        with pytest.raises(CorruptionError, match=f"entry {int(newest.stem)}"):
            array.insert({"x": [4001], "v": [1.0]})


def test_a_lazy_read_names_the_damaged_chunk(path: Path) -> None:
    for chunk in path.glob("arrays/D-*/chunks/*"):
        spoil_within(chunk)
    with connect(path) as database, pytest.raises(CorruptionError, match=r"array D@2: chunk \(\d\) of") as caught:
        database.array("D").to_xarray().a.sum().item()
    assert "older version" in str(caught.value)


# Catalogs


def delete_one(database: wr.Database) -> None:
    with database.batch("delete") as batch:
        batch.delete("S", "x = 1")


MORE_ACTS: dict[str, Callable[[wr.Database], object]] = {
    "read V": lambda db: db.array("V").read(),
    "history": lambda db: db.query("show history V"),
    "refresh": lambda db: db.query("refresh V full"),
    "delete again": delete_one,
    **{name: ACTS[name] for name in ("read D", "read S", "describe", "versions", "delete S", "insert S", "collect")},
}
"""One after the other, on a warehouse with a view, with vectors and with a batch that is known by its id."""


@pytest.fixture
def rich_path(path: Path) -> Path:
    with connect(path) as database:
        delete_one(database)
        database.query("create view V as select sum(v) as s from S window (3)")
    return path


NONSENSE = ["", "{", "[1,", b"\xff\xfe", -1, 2**62, 1.5, "null", '{"a": 1}', "[1e400]", "a" * 1000]


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 20))])
def test_a_catalog_with_nonsense_in_it(rich_path: Path, seed: int) -> None:
    """One column of the catalog after the other holds nonsense."""
    with contextlib.closing(sqlite3.connect(rich_path / "catalog.sqlite")) as catalog:
        named = "select name from sqlite_master where type = 'table' and name not like 'sqlite_%' order by name"
        tables = [name for (name,) in catalog.execute(named)]
        columns = [(table, row[1]) for table in tables for row in catalog.execute(f"pragma table_info({table})")]
    choose = random.Random(seed)
    for table, column in columns if seed else choose.sample(columns, 8):
        nonsense = choose.choice(NONSENSE)
        copy = Path(shutil.copytree(rich_path, rich_path.parent / f"{table}-{column}"))
        with contextlib.closing(sqlite3.connect(copy / "catalog.sqlite")) as catalog:
            try:
                catalog.execute(f'update {table} set "{column}" = ?', [nonsense])
                catalog.commit()
            except sqlite3.IntegrityError:
                continue
        try:
            with connect(copy) as database:
                for act in MORE_ACTS.values():
                    with contextlib.suppress(Error):
                        act(database)
        except Error:
            pass  # not even opened
        except BaseException as error:
            raise AssertionError(f"{table}.{column} = {nonsense!r}: {type(error).__name__}: {error}") from error
        shutil.rmtree(copy)


ROWS = {
    "vectors.length": [2**62, -1],
    "batches.report": ["{", "-1", '{"versions": {}}'],
    "views.array_id": [-1],
    "views.settings": ["-1", '{"a": 1}'],
    "views.state": [""],
    "views.status": ["", "[1e400]"],
    "views.facts": ["-1"],
    "views.learned": ["-1"],
    "view_history.entry": ["-1", '{"a": 1}'],
}


def test_rows_that_were_once_a_traceback(rich_path: Path) -> None:
    for place, spoilt in ROWS.items():
        table, _, column = place.partition(".")
        for value in spoilt:
            copy = Path(shutil.copytree(rich_path, rich_path.parent / "copy"))
            with contextlib.closing(sqlite3.connect(copy / "catalog.sqlite")) as catalog:
                catalog.execute(f"update {table} set {column} = ?", [value])
                catalog.commit()
            errors = []
            with connect(copy) as database:
                for act in MORE_ACTS.values():
                    try:
                        act(database)
                    except Error as error:
                        errors.append(error)
            assert any(isinstance(error, CorruptionError) for error in errors), (place, value, errors)
            shutil.rmtree(copy)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 40))])
def test_a_catalog_with_spoilt_pages(path: Path, seed: int) -> None:
    choose = random.Random(seed)
    file = path / "catalog.sqlite"
    data = bytearray(file.read_bytes())
    for _ in range(20):
        at = choose.randrange(len(data))
        data[at : at + 32] = choose.randbytes(len(data[at : at + 32]))
    file.write_bytes(data)
    for error in try_everything(path).values():
        assert isinstance(error, Error)


@pytest.mark.parametrize("text", [b"", b"nonsense", b"SQLite format 3\0" + bytes(100)])
def test_a_catalog_that_is_none(path: Path, text: bytes) -> None:
    (path / "catalog.sqlite").write_bytes(text)
    with pytest.raises(StoreError):
        connect(path)


def test_a_catalog_that_stays_locked(path: Path) -> None:
    with connect(path) as database, contextlib.closing(sqlite3.connect(path / "catalog.sqlite")) as other:
        for engine in (database.catalog._reader,):
            sa.event.listen(engine, "connect", lambda connection, _: connection.execute("pragma busy_timeout=100"))
            engine.dispose()
        other.execute("begin immediate")
        with pytest.raises(StoreError, match="stayed locked"):
            database.array("S").insert({"x": [7], "v": [7.0]})
        assert len(database.array("S").read()) == 2000
        other.execute("rollback")
        database.array("S").insert({"x": [7], "v": [7.0]})


# Other windrows, other clocks, other processes


def test_a_windrow_of_another_version_at_the_same_time(path: Path) -> None:
    """A newer one changes the format while this one has the warehouse open: from then on this one writes nothing."""
    with connect(path) as database:
        before = database.array("S").version
        with contextlib.closing(sqlite3.connect(path / "catalog.sqlite")) as newer:
            newer.execute("update settings set value = '99' where key = 'format'")
            newer.commit()
        for name in ("insert S", "append D", "compact S", "drop D", "collect"):
            with pytest.raises(StoreError, match="format was changed by another windrow"):
                ACTS[name](database)
        assert database.array("S").version == before
    with pytest.raises(StoreError, match="newer format"):
        connect(path)


def test_a_clock_that_was_set_back(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The times of versions go on, so that "as of" finds what it found before and the newest comes last."""
    with connect(path) as database:
        array = database.array("S")
        last = array.versions()[-1].created
        earlier = int((last - timedelta(days=400)).timestamp() * 1e6)
        monkeypatch.setattr(publishing, "now_microseconds", lambda: earlier)
        array.insert({"x": [7], "v": [7.0]})
        array.delete("x = 7")
        times = [version.created for version in array.versions()]
        assert times == sorted(set(times))
        assert array.at(time=last).version == 2
        assert array.at(time=datetime.now(UTC) + timedelta(days=1)).version == 4


def test_a_process_that_ended_and_was_not_asked_after_holds_nothing() -> None:
    """A zombie, as a worker is until its parent looks."""
    process = subprocess.Popen([sys.executable, "-c", "pass"])
    try:
        while Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z":
            time.sleep(0.01)
        assert not is_alive(socket.gethostname(), process.pid, int(time.time() * 100), 0)
    finally:
        process.wait()
