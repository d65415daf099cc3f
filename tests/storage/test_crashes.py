"""Writers that are killed: what they leave is a version before or after, never anything between."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import icechunk
import pytest
import sqlalchemy as sa

import crash_writer
import windrow as wr
from crash_writer import Heavy, Plan
from windrow.storage.tables import locks

KILLS = 5
"""In one test; with three seeds for each of two kinds of batches there are 30 in all."""


def new_warehouse(path: Path) -> None:
    with wr.connect(path, engine="local", progress=False) as database:
        crash_writer.create(database)


def check_after_kill(path: Path, plan: Plan, killed: int, choose: random.Random) -> None:
    """Look at the warehouse as the next user would find it, and write to it.

    With a lock_timeout of 0 a lock that stayed would be a ConflictError.
    """
    with wr.connect(path, engine="local", progress=False, lock_timeout=0) as database:
        version = database.array("D").version
        assert version in (killed - 1, killed)
        assert database.array("S").version == version
        assert crash_writer.same(crash_writer.content(database), crash_writer.state(plan, version))
        earlier = choose.randrange(version + 1)
        assert crash_writer.same(crash_writer.content(database, earlier), crash_writer.state(plan, earlier))
        # The batch is tried again under its id: whether it was published or not, it is there once.
        crash_writer.apply(database, plan, killed)
        assert database.array("D").version == database.array("S").version == killed
        assert crash_writer.same(crash_writer.content(database), crash_writer.state(plan, killed))
        crash_writer.apply(database, plan, killed + 1)
        assert crash_writer.same(crash_writer.content(database), crash_writer.state(plan, killed + 1))
        with database.catalog.reading() as connection:
            assert connection.execute(sa.select(locks)).all() == []


def ancestors(array: wr.Array) -> set[str]:
    """The snapshots that lead to an array's newest version."""
    repository = icechunk.Repository.open(icechunk.local_filesystem_storage(array.location().path))
    return {found.id for found in repository.ancestry(snapshot_id=array.location().version)}


def check_after_collection(path: Path, plan: Plan) -> None:
    """No version is lost by a collection, and nothing but versions is left."""
    with wr.connect(path, engine="local", progress=False, lock_timeout=0) as database:
        newest = database.array("D").version
        database.collect_garbage()
        for number in range(newest + 1):
            assert crash_writer.same(crash_writer.content(database, number), crash_writer.state(plan, number))
        dense, sparse = database.array("D"), database.array("S")
        snapshots = set(os.listdir(Path(dense.location().path, "snapshots")))
        # Between two versions there may be states that were only steps of a batch; nothing else is left.
        assert snapshots == ancestors(dense)
        assert {version.pointer for version in dense.versions()} <= snapshots
        parts = {file.name for file in Path(sparse.location().path).glob("*.parquet")}
        known = {path for _, path, _, _ in database.catalog.every_part(database.catalog.array("S"))}
        assert parts == known


def kill_again_and_again(path: Path, plan: Plan, kills: int, engine: str = "local") -> None:
    new_warehouse(path)
    choose = random.Random(plan.seed)
    outcomes = []
    print(f"{plan}, {kills} kills on engine {engine}")
    for _ in range(kills):
        killed = crash_writer.kill_inside_a_batch(path, plan, choose, engine)
        with wr.connect(path, engine="local", progress=False) as database:
            outcomes.append((killed, plan.kind(killed), database.array("D").version == killed))
        check_after_kill(path, plan, killed, choose)
    check_after_collection(path, plan)
    print(f"killed in {[(number, kind, 'after' if done else 'before') for number, kind, done in outcomes]}")


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow), pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.parametrize("heavy", ["dense", "sparse"])
def test_a_killed_writer_leaves_a_version_before_or_after_its_batch(tmp_path: Path, seed: int, heavy: Heavy) -> None:
    kill_again_and_again(tmp_path / "warehouse", Plan(seed, heavy), KILLS)


def test_the_catalog_s_commit_is_the_one_moment_that_decides(tmp_path: Path) -> None:
    """A batch commits to the catalog when it takes each lock, when it publishes, and when it gives each lock back."""
    path, plan = tmp_path / "warehouse", Plan(7)
    new_warehouse(path)
    published = []
    for commit in (1, 2, 3, 4, 5):
        number = 2 * commit - 1
        writer = crash_writer.Started(crash_writer.die_at_commit, path, plan, number, commit)
        with pytest.raises(EOFError):
            writer.next()
        writer.process.join()
        with wr.connect(path, engine="local", progress=False) as database:
            published.append(database.array("S").version == number)
        check_after_kill(path, plan, number, random.Random(number))
    assert published == [False, False, False, True, True]
    check_after_collection(path, plan)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(101, 111))
def test_many_kills(tmp_path: Path, seed: int) -> None:
    kill_again_and_again(tmp_path / "warehouse", Plan(seed, "mixed"), 20)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(3600)
def test_kills_of_a_driver_whose_work_runs_on_spark(tmp_path: Path) -> None:
    kill_again_and_again(tmp_path / "warehouse", Plan(201, "mixed"), 20, "spark")


def test_a_writer_killed_while_making_the_warehouse_is_no_obstacle(tmp_path: Path) -> None:
    """The marker is written last: what is there without one is made anew."""
    new_warehouse(tmp_path / "other")
    half_made = tmp_path / "warehouse"
    (half_made / "arrays").mkdir(parents=True)
    (half_made / "catalog.sqlite").write_bytes((tmp_path / "other" / "catalog.sqlite").read_bytes()[:0])
    new_warehouse(half_made)
    with wr.connect(half_made, engine="local", progress=False) as database:
        crash_writer.apply(database, Plan(1), 1)
        assert crash_writer.same(crash_writer.content(database), crash_writer.state(Plan(1), 1))


@pytest.mark.spark
@pytest.mark.timeout(600)
@pytest.mark.parametrize("work", ["writes and windows", pytest.param("all", marks=pytest.mark.slow)])
def test_a_killed_spark_worker_changes_nothing_in_the_result(tmp_path: Path, work: str) -> None:
    """Workers die after they have written and before they have said so: what they wrote must not show."""
    script = Path(crash_writer.__file__).with_name("crash_spark.py")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, str(script), str(tmp_path), work]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=580)
    assert ended.returncode == 0, ended.stderr[-2000:]
    said = ended.stdout.splitlines()
    assert said[-1] == "all right"
    assert len(list((tmp_path / "deaths").iterdir())) == said.count("a worker died") >= 3
