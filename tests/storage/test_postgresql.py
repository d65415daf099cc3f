"""A catalog in PostgreSQL, which the processes of several machines share: the same promises as in SQLite."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import endurance
import windrow as wr
from postgresql import Server, find_programs, running_server
from windrow.errors import ConflictError, StoreError

from .test_endurance import kill_many, run_accounts
from .test_state_machine import Warehouse, run

PROGRAMS = find_programs()
pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]
numbers = itertools.count()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    if PROGRAMS is None:
        pytest.skip("PostgreSQL is not installed; `make test-slow` installs it where it may")
    with tempfile.TemporaryDirectory() as folder, running_server(PROGRAMS, Path(folder)) as started:
        yield started


@pytest.fixture
def address(server: Server) -> str:
    return server.make_database(f"catalog{next(numbers)}")


def test_a_warehouse_and_its_views(tmp_path: Path, address: str) -> None:
    def connect(**options: Any) -> wr.Database:
        return wr.connect(tmp_path / "w", catalog=address, engine="local", progress=False, **options)

    with connect() as database, connect(lock_timeout=0) as other:
        array = database.create("S", "<v: float64> [x=1:100:10]", sparse=True)
        array.insert({"x": [1, 2, 5], "v": [1.0, 2.0, 3.0]})
        view = database.create_view("V", array.neighbours(wr.Linf(1)).agg(n=wr.count(), s=wr.sum("v")))
        with database.batch("night") as batch:
            batch.insert("S", {"x": [3], "v": [9.0]})
            with pytest.raises(ConflictError):
                other.array("S").delete("x = 1")
        assert other.view("V").read().to_pydict() == {"x": [1, 2, 3, 5], "n": [2, 3, 2, 1], "s": [3.0, 12.0, 11.0, 3.0]}
        assert view.check().ok
        with other.batch("night") as again:
            again.insert("S", {"x": [3], "v": [9.0]})
        assert not again.report.applied
        dense = other.create("D", "<a: int32> [i=1:4:2]")
        dense.write(np.arange(4, dtype=np.int32))
        assert other.collect_garbage(keep_versions=1).versions > 0
    with pytest.raises(StoreError, match="kept elsewhere"):
        wr.connect(tmp_path / "w")
    with connect() as database:
        assert database.array("D").read()["a"].values.tolist() == [0, 1, 2, 3]
        assert database.array("S").read().num_rows == 4


def test_the_state_machine_of_stores(server: Server) -> None:
    run(lambda: Warehouse(catalog=server.make_database(f"catalog{next(numbers)}")), examples=15, steps=30)


def test_writers_and_readers_in_processes_of_their_own(tmp_path: Path, address: str) -> None:
    (tmp_path / "catalog").write_text(address)
    moved, looks = run_accounts(tmp_path, 60, writers=3, readers=3)
    print(f"transfers, refused, longest wait: {moved}; looks: {looks}")
    assert sum(count for count, _, _ in moved) > 0
    assert sum(looks) > 0


def test_kills(tmp_path: Path, address: str) -> None:
    (tmp_path / "catalog").write_text(address)
    print(dict(sorted(kill_many(tmp_path, 40, seed=3).items())))


def test_two_processes_that_make_the_list_of_readers_at_once(tmp_path: Path, address: str) -> None:
    (tmp_path / "catalog").write_text(address)
    with endurance.connect(tmp_path) as one, endurance.connect(tmp_path) as other:
        one.create("S", "<v: int64> [x=1:9]", sparse=True)
        one.warehouse.leases._make_list()
        other.warehouse.leases._make_list()
        assert other.array("S").read().num_rows == 0
