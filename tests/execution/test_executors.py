"""One suite over both executors. Functions are closures, which Spark sends to its workers by value."""

from __future__ import annotations

import errno
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import windrow as wr
from windrow.errors import CancelledError, DataError, MachineError, MemoryLimitError
from windrow.execution.executor import Cancellation, Executor, Job
from windrow.execution.local import LocalExecutor

MEMORY = 2**30


class Run:
    """An executor, and what it told about its progress."""

    def __init__(self, engine: str, request: pytest.FixtureRequest) -> None:
        self.told: list[tuple[str, int, int]] = []
        self.cancellation = Cancellation()

        def tell(label: str, done: int, total: int) -> None:
            self.told.append((label, done, total))

        self.executor: Executor
        if engine == "local":
            self.executor = LocalExecutor(2, MEMORY, tell, self.cancellation)
        else:
            from windrow.execution.spark import SparkExecutor

            session = request.getfixturevalue("spark_session")
            self.executor = SparkExecutor(session, MEMORY, tell, self.cancellation)


@pytest.fixture
def run(engine: str, request: pytest.FixtureRequest) -> Run:
    return Run(engine, request)


def attempts(notes: Path) -> int:
    return len(notes.read_text()) if notes.exists() else 0


def noting(notes: Path, then: Callable[[int], Any]) -> Callable[[int], Any]:
    """A function that leaves a mark each time it is called."""
    path = str(notes)

    def function(task: int) -> Any:
        with open(path, "a") as file:
            file.write("x")
        return then(task)

    return function


def test_receipts_come_in_the_order_of_tasks(run: Run) -> None:
    def slow_first(task: int) -> tuple[int, int]:
        time.sleep(0.2 if task == 0 else 0)
        return task, task**2

    tasks = list(range(12))
    assert run.executor.run(Job("squares", slow_first, tasks)) == [(task, task**2) for task in tasks]
    assert run.executor.run(Job("one", slow_first, [3])) == [(3, 9)]
    assert run.executor.run(Job("none", slow_first, [])) == []


def test_a_windrow_error_comes_through_at_once(run: Run, tmp_path: Path) -> None:
    def refuse(task: int) -> int:
        raise DataError("values do not fit", got=task, hint="Use others")

    with pytest.raises(DataError) as caught:
        run.executor.run(Job("refusing", noting(tmp_path / "notes", refuse), [7]))
    assert (caught.value.what, caught.value.got, caught.value.hint) == ("values do not fit", "7", "Use others")
    assert attempts(tmp_path / "notes") == 1


def test_a_passing_failure_is_tried_again(run: Run, tmp_path: Path) -> None:
    flag = str(tmp_path / "failed once")
    busy = errno.EBUSY

    def recovers(task: int) -> int:
        import os

        if task == 1 and not os.path.exists(flag):
            with open(flag, "w"):
                pass
            raise OSError(busy, "busy")
        return task

    notes = tmp_path / "notes"
    assert run.executor.run(Job("recovering", noting(notes, recovers), [0, 1, 2])) == [0, 1, 2]
    assert attempts(notes) == 4


def test_a_lasting_failure_ends_the_job(run: Run, tmp_path: Path) -> None:
    def fails(task: int) -> int:
        raise OSError(5, "input/output error")

    with pytest.raises((OSError, MachineError), match="input/output error"):
        run.executor.run(Job("failing", noting(tmp_path / "notes", fails), [1]))
    assert attempts(tmp_path / "notes") == 4
    assert run.executor.run(Job("after", abs, [-1])) == [1]


def test_too_large_a_task_is_refused_before_it_runs(run: Run, tmp_path: Path) -> None:
    with pytest.raises(MemoryLimitError, match="hungry job"):
        run.executor.run(Job("hungry job", noting(tmp_path / "notes", abs), [1], task_bytes=MEMORY + 1))
    assert attempts(tmp_path / "notes") == 0
    assert run.executor.run(Job("modest job", abs, [-1], task_bytes=MEMORY // 4)) == [1]


def test_running_out_of_memory_is_said(run: Run) -> None:
    def devours(task: int) -> int:
        raise MemoryError

    with pytest.raises(MemoryLimitError):
        run.executor.run(Job("devouring", devours, [1, 2]))


def test_progress_only_moves_forward(run: Run) -> None:
    def nap(task: int) -> int:
        time.sleep(0.15)
        return task

    run.executor.run(Job("napping", nap, list(range(8))))
    assert {label for label, _, _ in run.told} == {"napping"}
    assert {total for _, _, total in run.told} == {8}
    done = [count for _, count, _ in run.told]
    assert done == sorted(done)
    assert 0 <= done[0] <= done[-1] <= 8
    assert run.executor.name == "spark" or done[-1] == 8


def test_cancellation_stops_what_runs_and_nothing_later(run: Run, tmp_path: Path) -> None:
    notes = tmp_path / "notes"

    def nap(task: int) -> int:
        time.sleep(0.1)
        return task

    def cancel_when_started() -> None:
        while not attempts(notes):
            time.sleep(0.01)
        run.cancellation.cancel()

    other = threading.Thread(target=cancel_when_started, daemon=True)
    other.start()
    with pytest.raises(CancelledError, match="long job was cancelled"):
        run.executor.run(Job("long job", noting(notes, nap), list(range(100))))
    other.join()
    assert attempts(notes) < 100
    assert run.executor.run(Job("later job", abs, [-1, -2])) == [1, 2]


def test_an_operation_is_cancelled_between_its_jobs(run: Run) -> None:
    run.cancellation.begin()
    run.executor.run(Job("first", abs, [-1]))
    run.cancellation.cancel()
    with pytest.raises(CancelledError):
        run.executor.run(Job("second", abs, [-1, -2, -3]))
    run.cancellation.end()
    assert run.executor.run(Job("third", abs, [-1])) == [1]


def test_sorted_ranges_never_part_equal_keys(run: Run, request: pytest.FixtureRequest) -> None:
    random = np.random.default_rng(3)
    rows = 450_000
    table = pa.table(
        {
            "_chunk": random.integers(0, 4, rows),
            "x": random.integers(0, 3, rows),
            "v": np.arange(rows),
        }
    )

    def summary(batches: Iterator[pa.RecordBatch]) -> tuple[list[int], list[str], bool, int]:
        listed = list(batches)
        if not listed:
            return [], [], True, 0
        whole = pa.Table.from_batches(listed)
        x, v = whole["x"].to_numpy(), whole["v"].to_numpy()
        keys = chunk_of[v] * 10 + x
        return np.unique(keys).tolist(), whole.column_names, bool((np.diff(keys) >= 0).all()), int(v.sum())

    chunk_of = table["_chunk"].to_numpy()
    given: Any = table
    if run.executor.name == "spark":
        given = request.getfixturevalue("spark_session").createDataFrame(table)
    receipts = run.executor.map_sorted("sorting", given, ["_chunk", "x"], summary)
    met = [receipt for receipt in receipts if receipt[0]]
    assert len(met) > 1
    keys = [key for receipt in met for key in receipt[0]]
    assert len(keys) == len(set(keys)) == 12
    assert all(columns == ["x", "v"] and ordered for _, columns, ordered, _ in met)
    assert sum(total for *_, total in met) == rows * (rows - 1) // 2


def test_errors_of_sorted_ranges_come_through(run: Run, request: pytest.FixtureRequest) -> None:
    def refuse(batches: Iterator[pa.RecordBatch]) -> int:
        for _ in batches:
            raise DataError("these rows are wrong", hint="Mend them")
        return 0

    given: Any = pa.table({"x": [1, 2, 3]})
    if run.executor.name == "spark":
        given = request.getfixturevalue("spark_session").createDataFrame(given)
    with pytest.raises(DataError, match=r"these rows are wrong\. Mend them"):
        run.executor.map_sorted("sorting", given, ["x"], refuse)


class SlowSource:
    """Values that take their time, so that there is a moment to cancel in."""

    def __init__(self, started: threading.Event) -> None:
        from windrow.model.notation import parse_schema

        self.schema = parse_schema("<a: float64> [i=0:39:1]")[1]
        self.labels: dict[str, Any] = {}
        self.started = started

    def read(self, box: wr.Box) -> dict[str, Any]:
        self.started.set()
        time.sleep(0.05)
        return {"a": np.ones(box.shape)}


def test_a_cancelled_write_publishes_nothing(connect: Callable[..., wr.Database]) -> None:
    database = connect(workers=2)
    array = database.create("A", "<a: float64> [i=0:39:1]")
    started = threading.Event()
    slow = SlowSource(started)
    cut = threading.Thread(target=lambda: (started.wait(60), database.cancel()), daemon=True)
    cut.start()

    def write_much() -> None:
        with database.batch() as batch:
            for _ in range(40):
                batch.write("A", slow)

    with pytest.raises(CancelledError):
        write_much()
    cut.join()
    assert array.version == 0
    assert np.isnan(array.read()["a"].values).all()
    array.write(np.zeros(40))
    assert array.read()["a"].values.tolist() == [0.0] * 40


@pytest.mark.spark
def test_a_cancelled_insert_on_spark_publishes_nothing(connect: Callable[..., wr.Database], spark_session: Any) -> None:
    database = connect(spark=spark_session)
    array = database.create("S", "<v: float64> [x=0:*]", sparse=True)

    def dawdle(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            time.sleep(20)
            yield batch

    cells = spark_session.range(0, 100).selectExpr("id as x", "cast(id as double) as v")
    slow = cells.mapInArrow(dawdle, cells.schema)
    cut = threading.Timer(2, database.cancel)
    cut.start()
    with pytest.raises(CancelledError):
        array.insert(slow)
    assert array.version == 0
    assert array.insert(cells).cells == 100
    assert array.read().num_rows == 100
