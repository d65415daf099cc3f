"""Readers and writers at once, and writers that die: arrays and their views are always of one version."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from crash_writer import Started

from . import writers
from .writers import SIDE, VIEWS

Start = Callable[..., Started]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    warehouse = tmp_path / "warehouse"
    with writers.connect(warehouse) as database:
        writers.create(database)
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


def check_views(database: Any) -> None:
    for name in VIEWS:
        checked = database.view(name).check()
        assert checked.ok, f"{name}: {checked}"


# Readers


@pytest.mark.parametrize("batches", [15, pytest.param(300, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])])
def test_a_reader_that_joins_base_and_view_sees_whole_batches(path: Path, start: Start, batches: int) -> None:
    readers = [start(writers.watch) for _ in range(2)]
    assert [reader.next() for reader in readers] == ["ready", "ready"]
    with writers.connect(path) as database:
        for number in range(1, batches + 1):
            writers.apply(database, 1, number)
    for reader in readers:
        reader.channel.send("enough")
        seen = reader.next()
        assert isinstance(seen, list), seen
        assert len(seen) > 1, "the reader saw no more than one version"


def test_a_batch_sees_its_own_changes_in_views_and_others_do_not(path: Path) -> None:
    with writers.connect(path) as mine, writers.connect(path) as other:
        writers.apply(mine, 2, 1)
        with mine.batch() as batch:
            batch.insert("A", {"i": [0, 5], "v": [1000, 2000]})
            inside = batch.query("select * from W").compute().to_pylist()
            outside = other.view("W").read().to_pylist()
        a = writers.after(2, 1)[0] | {0: 1000, 5: 2000}
        near = {i: [v for j, v in a.items() if abs(i - j) <= 2] for i in a}
        assert {row["i"]: (row["n"], row["t"]) for row in inside} == {i: (len(f), sum(f)) for i, f in near.items()}
        assert {row["i"]: (row["n"], row["t"]) for row in outside} == writers.expected(2, 1)["W"]
        assert writers.by_cell(other.view("W").read()) == {i: (len(f), sum(f)) for i, f in near.items()}
        check_views(other)


# Writers


@pytest.mark.parametrize("rounds", [20, pytest.param(1000, marks=[pytest.mark.slow, pytest.mark.timeout(2 * 3600)])])
def test_two_writers_on_the_two_sides_of_a_view_lose_no_pair(path: Path, start: Start, rounds: int) -> None:
    """Both insert at the same moment, one into A and one into B, at places that pair."""
    processes = [start(writers.insert_again_and_again, name, rounds) for name in ("A", "B")]
    assert [process.next() for process in processes] == ["ready", "ready"]
    with writers.connect(path) as database:
        a: dict[int, int] = {}
        for number in range(rounds):
            for process in processes:
                process.channel.send("go")
            assert [process.next() for process in processes] == [number, number]
            a[number % SIDE] = number
            near = {i: [v for j, v in a.items() if abs(i - j) <= 1] for i in a}
            found = writers.by_cell(database.view("V").read())
            assert found == {i: (len(values), sum(values)) for i, values in near.items()}, number
        check_views(database)
        assert database.array("A").version == database.array("B").version == rounds


def test_writers_of_arrays_that_no_view_joins_do_not_wait(path: Path) -> None:
    with writers.connect(path) as database:
        database.create("other", "<v: int64> [i=0:9]", sparse=True)
        database.create_view("O", "select sum(v) as t from other")
    with writers.connect(path) as one, writers.connect(path, lock_timeout=0) as other, one.batch() as batch:
        batch.insert("A", {"i": [1], "v": [1]})
        other.array("other").insert({"i": [1], "v": [7]})
        assert writers.only(writers.by_cell(other.view("O").read())) == 7


def test_a_writer_on_the_other_side_of_a_view_is_told_who_writes(path: Path) -> None:
    from windrow.errors import ConflictError

    with writers.connect(path) as one, writers.connect(path, lock_timeout=0) as other:
        with one.batch() as batch:
            batch.insert("A", {"i": [1], "v": [1]})
            with pytest.raises(ConflictError):
                other.array("B").insert({"i": [1], "v": [1]})
        other.array("B").insert({"i": [1], "v": [10]})
        assert writers.by_cell(other.view("V").read()) == {1: (1, 10)}
        check_views(other)


# Writers that die


def kill_again_and_again(path: Path, seed: int, kills: int) -> None:
    choose = random.Random(seed)
    outcomes = []
    for _ in range(kills):
        killed = writers.kill_inside_a_batch(path, seed, choose)
        with writers.connect(path, lock_timeout=0) as database:
            left = writers.found(database)
            done = left["A"].get(0, 0)
            assert done in (killed - 1, killed)
            assert left == writers.expected(seed, done)
            check_views(database)
            outcomes.append(done == killed)
            # Tried again under its id, the batch is there once, and the next one fits onto it.
            for number in (killed, killed + 1):
                writers.apply(database, seed, number)
                assert writers.found(database) == writers.expected(seed, number)
    with writers.connect(path, lock_timeout=0) as database:
        database.collect_garbage()
        check_views(database)
    print(f"{kills} kills, of which {sum(outcomes)} after the batch was published")


def test_a_killed_writer_leaves_base_and_views_at_one_version(path: Path) -> None:
    kill_again_and_again(path, 3, 3)


@pytest.mark.slow
@pytest.mark.timeout(2 * 3600)
@pytest.mark.parametrize("seed", range(11, 21))
def test_two_hundred_kills(path: Path, seed: int) -> None:
    kill_again_and_again(path, seed, 20)
