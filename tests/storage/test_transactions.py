"""Transactions: locks, recovery of stores that ran ahead, and what publishing writes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import numpy as np
import pytest
from deltalake import DeltaTable

import windrow as wr
from windrow.errors import ConflictError, DataError, UnknownNameError
from windrow.storage.dense.store import DenseStore
from windrow.storage.transaction import Transaction


@pytest.fixture
def arrays(local: wr.Database) -> tuple[wr.Array, wr.Array]:
    dense = local.create("D", "<a: float64> [i=0:*:4]")
    sparse = local.create("S", "<v: int64> [x=0:9:4]", sparse=True)
    dense.append(np.arange(3.0))
    sparse.insert({"x": [1, 2], "v": [10, 20]})
    return dense, sparse


def test_a_second_writer_is_told_who_writes(
    local: wr.Database, connect: Callable[..., wr.Database], arrays: tuple[wr.Array, wr.Array]
) -> None:
    impatient = connect(lock_timeout=0)
    with local.batch() as batch:
        batch.append("D", np.ones(2))
        for change in (lambda: impatient.array("D").append(np.ones(1)), lambda: impatient.drop("D")):
            with pytest.raises(ConflictError, match="process"):
                change()
        impatient.array("S").insert({"x": [3], "v": [30]})  # other arrays are free
        assert impatient.array("D").shape == (3,)
    impatient.array("D").append(np.ones(1))
    assert local.array("D").shape == (6,)


def test_a_change_beside_ones_own_batch_is_refused_at_once(
    local: wr.Database, connect: Callable[..., wr.Database], arrays: tuple[wr.Array, wr.Array]
) -> None:
    """It would wait for itself: with a lock_timeout of years this test would not end."""
    dense, sparse = arrays
    patient = connect(lock_timeout=1e8)
    query = patient.query("select v + 1 as v from S")
    beside: dict[str, Callable[[], object]] = {
        "insert": lambda: patient.array("S").insert({"x": [4], "v": [40]}),
        "drop": lambda: patient.drop("S"),
        "store": lambda: query.store("S"),
        "view": lambda: patient.create_view("V", query),
    }
    patient.query("begin 'n1'")
    patient.query("insert into S values (3: 30)")
    for change in beside.values():
        with pytest.raises(ConflictError, match="batch of this process") as caught:
            change()
        assert "Commit" in str(caught.value)
    patient.query("commit")
    with patient.batch() as batch:
        batch.append("D", np.ones(1))
        batch.insert("S", {"x": [5], "v": [50]})
        for change in beside.values():
            with pytest.raises(ConflictError, match="batch of this process"):
                change()
        with patient.batch() as other:
            other.create("N", "<a: int64> [i=1:2]")
            with pytest.raises(ConflictError, match="Commit the batch first"):
                other.append("D", np.ones(1))
    assert sparse.read().to_pydict()["x"] == [1, 2, 3, 5]
    assert dense.shape == (4,)
    beside["insert"]()


def test_threads_of_one_process_wait_for_each_other(
    local: wr.Database, connect: Callable[..., wr.Database], arrays: tuple[wr.Array, wr.Array]
) -> None:
    other, taken, tried = connect(lock_timeout=60), threading.Event(), threading.Event()

    def write_slowly() -> None:
        with other.batch() as batch:
            batch.insert("S", {"x": [3], "v": [30]})
            taken.set()
            tried.wait(60)

    with ThreadPoolExecutor(2) as pool:
        slow = pool.submit(write_slowly)
        assert taken.wait(60)
        with pytest.raises(ConflictError, match="another process"):
            connect(lock_timeout=0).array("S").insert({"x": [4], "v": [40]})
        waiting = pool.submit(lambda: connect(lock_timeout=60).array("S").insert({"x": [4], "v": [40]}))
        tried.set()
        slow.result(60)
        waiting.result(60)
    assert local.array("S").read().to_pydict()["x"] == [1, 2, 3, 4]


def test_stores_that_ran_ahead_are_brought_back(
    local: wr.Database, arrays: tuple[wr.Array, wr.Array], monkeypatch: pytest.MonkeyPatch
) -> None:
    dense, sparse = arrays

    def fail(_: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patch, suppress(ZeroDivisionError), local.batch() as batch:
        patch.setattr(local.catalog, "publish", fail)  # after all stores were written
        batch.append("D", np.full(5, 9.0))
        batch.insert("S", {"x": [1, 9], "v": [0, 0]})
        batch.compact("S", {"x": 2})
    assert DenseStore(dense.location().path).head() != dense.location().version
    assert DeltaTable(sparse.location().path).version() != int(sparse.location().version)
    dense.append(np.array([3.0]))
    sparse.insert({"x": [2], "v": [21]})
    assert dense.read()["a"].values.tolist() == [0.0, 1.0, 2.0, 3.0]
    assert sparse.read().to_pydict() == {"x": [1, 2], "v": [10, 21]}
    assert [d.chunk for d in sparse.schema.dimensions] == [4]
    assert DenseStore(dense.location().path).head() == dense.location().version
    assert DeltaTable(sparse.location().path).version() == int(sparse.location().version)


def test_a_transaction_shows_its_own_changes_only_to_itself(
    local: wr.Database, arrays: tuple[wr.Array, wr.Array]
) -> None:
    _, sparse = arrays
    with local.batch() as batch:
        batch.insert("S", {"x": [2, 5], "v": [-20, -50]})
        batch.update("S", {"v": "v - 1"}, "v < 0")
        batch.delete("S", "x = 1")
        assert sparse.read().num_rows == 2
    assert sparse.read().to_pydict() == {"x": [2, 5], "v": [-21, -51]}
    assert sparse.version == 2
    assert sparse.versions()[-1].operation == "batch"


def test_a_transaction_that_is_closed_gives_its_locks_back(
    local: wr.Database, arrays: tuple[wr.Array, wr.Array]
) -> None:
    with Transaction(local.warehouse, 0.0) as transaction:
        transaction.working("D")
        transaction.working("D")
        with pytest.raises(ConflictError):
            Transaction(local.warehouse, 0.0).working("D")
        with pytest.raises(UnknownNameError):
            transaction.working("E")
    with Transaction(local.warehouse, 0.0) as transaction:
        assert transaction.working("D").base.number == 1


def test_a_batch_works_only_while_it_is_open(local: wr.Database, arrays: tuple[wr.Array, wr.Array]) -> None:
    batch = local.batch()
    with pytest.raises(DataError, match="not open"):
        batch.append("D", np.ones(1))
    with batch:
        batch.append("D", np.ones(1))
    with pytest.raises(DataError, match="not open"):
        batch.append("D", np.ones(1))
    with pytest.raises(DataError, match="batch id"), local.batch(""):
        pass


def test_a_step_that_fails_inside_a_batch_can_be_left_out(
    local: wr.Database, arrays: tuple[wr.Array, wr.Array]
) -> None:
    dense, sparse = arrays
    with local.batch() as batch:
        batch.append("D", np.array([7.0]))
        with pytest.raises(DataError):
            batch.insert("S", {"x": [99], "v": [1]})
        with pytest.raises(DataError):
            batch.append("D", np.array(["x"]))
        batch.append("D", np.array([8.0]))
    assert dense.read()["a"].values.tolist() == [0.0, 1.0, 2.0, 7.0, 8.0]
    assert sparse.read().num_rows == 2
