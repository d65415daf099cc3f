"""Several writers and readers at once: one after another for each array, and nobody sees half of anything."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import sqlalchemy as sa

import crash_writer
import windrow as wr
from crash_writer import Plan, Started
from windrow.storage.locks import SILENT_SECONDS
from windrow.storage.rows import now_microseconds
from windrow.storage.tables import locks

Start = Callable[..., Started]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    warehouse = tmp_path / "warehouse"
    with wr.connect(warehouse, engine="local", progress=False) as database:
        crash_writer.create(database)
        database.create("other", "<a: int64> [i=1:4]")
    return warehouse


@pytest.fixture
def start(path: Path) -> Iterator[Start]:
    """Starts processes on the warehouse, and sees to it that none outlives the test."""
    running = []

    def start_process(function: Callable[..., None], *arguments: object) -> Started:
        process = Started(function, path, *arguments)
        running.append(process)
        return process

    yield start_process
    for process in running:
        if process.process.is_alive():
            process.kill()


def connect(path: Path, lock_timeout: float = 60) -> wr.Database:
    return wr.connect(path, engine="local", progress=False, lock_timeout=lock_timeout)


@pytest.mark.parametrize("writers", [2, 4])
def test_no_update_is_lost(path: Path, start: Start, writers: int) -> None:
    times = 8 // writers
    processes = [start(crash_writer.increment, "D", times, own) for own in range(1, writers + 1)]
    for process in processes:
        assert (process.next(), process.next()) == ("ready", "done")
    with connect(path) as database:
        assert (database.array("D").read()["a"].values == writers * times).all()
        assert database.array("D").version == writers * times
        cells = database.array("S").read()
        found = set(zip(cells["x"].to_pylist(), cells["y"].to_pylist(), cells["v"].to_pylist(), strict=True))
        assert found == {(own, step, own) for own in range(1, writers + 1) for step in range(1, times + 1)}


def test_the_second_writer_waits_for_the_first(path: Path, start: Start) -> None:
    first = start(crash_writer.hold, "D")
    assert first.next() == "held"
    second = start(crash_writer.increment, "D", 1, 1)
    assert second.next() == "ready"
    assert not second.channel.poll(1)
    first.channel.send("let go")
    assert first.next() == "released"
    assert second.next() == "done"
    with connect(path) as database:
        assert (database.array("D").read()["a"].values == 2).all()


def test_a_writer_that_will_not_wait_is_told_who_writes(path: Path, start: Start) -> None:
    holder = start(crash_writer.hold, "D")
    holder.next()
    with connect(path, lock_timeout=0.2) as database:
        with pytest.raises(wr.errors.ConflictError) as caught:
            database.array("D").update({"a": 5})
        assert "D" in caught.value.what
        assert f"process {holder.process.pid} on" in str(caught.value.got)
        assert "lock_timeout" in str(caught.value.hint)
        with pytest.raises(wr.errors.ConflictError):
            database.drop("D")
        with pytest.raises(wr.errors.ConflictError):
            database.collect_garbage()
        assert database.array("D").version == 0
        assert (database.array("D").read()["a"].values == 0).all()
    holder.channel.send("let go")
    assert holder.next() == "released"


def test_other_arrays_are_not_locked(path: Path, start: Start) -> None:
    start(crash_writer.hold, "D").next()
    with connect(path, lock_timeout=0) as database:
        database.array("other").write([1, 2, 3, 4])
        database.array("S").insert({"x": [1], "y": [1], "v": [1]})
        assert database.array("other").version == database.array("S").version == 1


def test_a_batch_that_meets_a_lock_changes_none_of_its_arrays(path: Path, start: Start) -> None:
    start(crash_writer.hold, "D").next()
    with connect(path, lock_timeout=0) as database:

        def change_both() -> None:
            with database.batch("night") as batch:
                batch.insert("S", {"x": [1], "y": [1], "v": [1]})
                batch.update("D", {"a": 1})

        with pytest.raises(wr.errors.ConflictError):
            change_both()
        assert database.array("S").version == 0
        assert database.array("S").read().num_rows == 0
        database.array("S").insert({"x": [2], "y": [2], "v": [2]}, batch="night")
        assert database.array("S").read().to_pydict() == {"x": [2], "y": [2], "v": [2]}


def test_a_killed_holder_holds_nothing(path: Path, start: Start) -> None:
    holder = start(crash_writer.hold, "D")
    holder.next()
    holder.kill()
    with connect(path, lock_timeout=0) as database:
        assert (database.array("D").read()["a"].values == 0).all()
        database.array("D").update({"a": "a + 5"})
        assert (database.array("D").read()["a"].values == 5).all()


def move_lock(database: wr.Database, host: str, silent_seconds: float) -> None:
    """Make it look as if the lock that is held were held on another host, last heard of some time ago."""
    heard = now_microseconds() - int(silent_seconds * 1_000_000)
    with database.catalog.writing() as connection:
        moved = connection.execute(sa.update(locks).values(host=host, heartbeat=heard))
    assert moved.rowcount == 1


def test_a_holder_on_another_host_is_respected_until_it_falls_silent(path: Path, start: Start) -> None:
    holder = start(crash_writer.hold, "D")
    holder.next()
    holder.kill()
    with connect(path, lock_timeout=0) as database:
        move_lock(database, "elsewhere", SILENT_SECONDS / 2)
        with pytest.raises(wr.errors.ConflictError, match="on elsewhere"):
            database.array("D").update({"a": 1})
        move_lock(database, "elsewhere", SILENT_SECONDS + 1)
        database.array("D").update({"a": "a + 1"})
        assert (database.array("D").read()["a"].values == 1).all()


def test_a_process_number_that_was_given_again_is_not_the_holder(path: Path, start: Start) -> None:
    """The lock's process is gone and another one, older or newer, has its number now."""
    holder = start(crash_writer.hold, "D")
    holder.next()
    holder.kill()
    other = start(crash_writer.hold, "other")
    other.next()
    with connect(path, lock_timeout=0) as database:
        with database.catalog.writing() as connection:
            mine = sa.update(locks).where(locks.c.process == holder.process.pid)
            connection.execute(mine.values(process=other.process.pid, process_started=locks.c.process_started - 5000))
        database.array("D").update({"a": 1})
        with pytest.raises(wr.errors.ConflictError):
            database.array("other").update({"a": 1})


def test_a_writer_whose_lock_was_taken_over_publishes_nothing(path: Path) -> None:
    """Silent for too long, it may come back to life: the version it built on is not the newest any more."""
    with connect(path) as slow, connect(path, lock_timeout=0) as quick:

        def fall_silent() -> None:
            with slow.batch() as batch:
                batch.update("D", {"a": "a + 100"})
                move_lock(slow, "elsewhere", SILENT_SECONDS + 1)
                quick.array("D").update({"a": "a + 1"})

        with pytest.raises(wr.errors.ConflictError, match="lock on D was lost"):
            fall_silent()
        assert quick.array("D").version == 1
        assert (quick.array("D").read()["a"].values == 1).all()
        quick.array("D").update({"a": "a + 1"})
        assert (quick.array("D").read()["a"].values == 2).all()


def test_readers_see_whole_batches(path: Path, start: Start) -> None:
    plan = Plan(5)
    readers = [start(crash_writer.watch, plan) for _ in range(2)]
    assert [reader.next() for reader in readers] == ["ready", "ready"]
    with connect(path) as database:
        for number in range(1, 13):
            crash_writer.apply(database, plan, number)
    for reader in readers:
        reader.channel.send("enough")
        seen = reader.next()
        assert isinstance(seen, list), seen
        assert len(seen) > 1, "the reader saw no more than one version"


def test_threads_of_one_process_take_turns(path: Path) -> None:
    failures: list[BaseException] = []
    with connect(path) as database:

        def work() -> None:
            try:
                for _ in range(3):
                    database.array("D").update({"a": "a + 1"})
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        assert database.array("D").version == 9
        assert (database.array("D").read()["a"].values == 9).all()


def test_threads_read_while_another_writes(path: Path) -> None:
    failures: list[object] = []
    plan = Plan(6)
    done = threading.Event()
    with connect(path) as database:

        def look() -> None:
            try:
                while not done.is_set():
                    number = database.array("S").version
                    if not crash_writer.same(crash_writer.content(database, number), crash_writer.state(plan, number)):
                        failures.append(number)
            except BaseException as error:
                failures.append(error)

        thread = threading.Thread(target=look)
        thread.start()
        for number in range(1, 7):
            crash_writer.apply(database, plan, number)
        done.set()
        thread.join()
    assert failures == []


def test_a_pinned_reader_outlasts_a_collection(path: Path) -> None:
    plan = Plan(8)
    with connect(path) as database, connect(path) as other:
        for number in range(1, 6):
            crash_writer.apply(database, plan, number)
        dense, sparse = database.array("D@2"), database.array("S@2")
        cells = sparse.batches()
        other.collect_garbage()
        crash_writer.apply(other, plan, 6)
        other.collect_garbage()
        assert (dense.read()["a"].values == crash_writer.state(plan, 2).a).all()
        assert (dense.to_xarray()["a"].values == crash_writer.state(plan, 2).a).all()
        assert sum(table.num_rows for table in cells) == sparse.read().num_rows
        assert crash_writer.same(crash_writer.content(database, 2), crash_writer.state(plan, 2))


def test_a_version_that_was_given_up_is_said_to_be_gone(path: Path) -> None:
    plan = Plan(8)
    with connect(path) as database, connect(path) as other:
        for number in range(1, 6):
            crash_writer.apply(database, plan, number)
        dense, sparse = database.array("D@2"), database.array("S@2")
        other.collect_garbage(keep_versions=2)
        for old in (dense, sparse):
            with pytest.raises(wr.errors.UnknownNameError, match=f"{old.name}@2") as caught:
                old.read()
            assert "versions 4 to 5" in str(caught.value.hint)
        with pytest.raises(wr.errors.UnknownNameError, match="has versions 4 to 5"):
            database.array("D@2")
        for number in (4, 5):
            assert crash_writer.same(crash_writer.content(database, number), crash_writer.state(plan, number))


def test_versions_by_time_while_others_write(path: Path) -> None:
    with connect(path) as database, connect(path) as other:
        database.array("D").update({"a": 1})
        between = datetime.now(UTC)
        other.array("D").update({"a": 2})
        assert database.array("D").at(time=between).version == 1
        assert (database.array("D").at(time=between).read()["a"].values == 1).all()


def test_a_version_of_an_array_that_was_dropped_is_not_one_of_its_namesake(path: Path) -> None:
    with connect(path) as database:
        for step in (1, 2):
            database.array("other").write([step] * 4)
        old = database.array("other@1")
        database.drop("other")
        with pytest.raises(wr.errors.UnknownNameError):
            old.read()
        database.create("other", "<a: int64> [i=1:4]").write([7, 7, 7, 7])
        with pytest.raises(wr.errors.UnknownNameError, match="dropped"):
            old.read()


def test_a_version_given_up_between_two_steps_of_a_read_is_not_read_in_part(path: Path) -> None:
    with connect(path) as database, connect(path) as other:
        sparse = database.array("S")
        for step in (1, 2, 3):
            sparse.insert({"x": [1, 2], "y": [1, step], "v": [step, step]})
        resolved = sparse.at(version=2).versions()[2]
        other.collect_garbage(keep_versions=1)
        with pytest.raises(wr.errors.UnknownNameError, match="given up"):
            database.warehouse.hold([(database.catalog.array("S"), resolved)])
        assert [part.cells for part in database.catalog.parts(sparse.versions()[-1])]
