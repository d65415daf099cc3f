"""Views computed from the beginning by several nodes: as computed in one place, and the next batch finds all of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import windrow as wr
from windrow.views import cost

from .checking import assert_same_result, damage_states, read
from .folders import FolderCluster, use_folders
from .test_placed import VIEWS, change, create


def built(path: Path, folders: Path, name: str, **settings: Any) -> tuple[wr.Database, FolderCluster]:
    """A database with one view, made while nodes were there."""
    database = create(path, [])
    cluster = use_folders(database, folders)
    database.create_view(name, VIEWS[name], **{"maintain": "incremental", **settings})
    return database, cluster


def strategies(view: wr.View) -> list[str | None]:
    return [row["strategy"] for row in view.history().to_pylist()]


SOME = ("plain", "kept")


@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name in SOME else pytest.mark.slow) for name in VIEWS])
def test_built_as_in_one_place_and_kept_from_there(name: str, tmp_path: Path) -> None:
    """All states are there at once: the batch after it does no chunk whole, and what it needs is at home."""
    placed, cluster = built(tmp_path / "nodes", tmp_path / "folders", name)
    with placed, create(tmp_path / "here", [name]) as here:
        assert strategies(placed.view(name)) == ["auto"]
        assert len(cluster.exchanges) == 1
        assert_same_result(read(placed.view(name)), read(here.view(name)), ["i", "j"])
        for seed, kind in enumerate(("both", "updates", "deletes")):
            for database in (here, placed):
                change(database, seed, kind)
            assert_same_result(read(placed.view(name)), read(here.view(name)), ["i", "j"])
            assert placed.view(name).check().ok
        first = cluster.exchanges[1]
        known = {int(o) for task in cluster.exchanges[0].second for o in task.left}
        assert not any(task.whole & known for task in first.first)
        assert sum(load["hits"] for load in placed.view(name).loads().to_pylist()) > 0


def test_cells_without_partners_have_results(tmp_path: Path) -> None:
    """In a left join, chunks that are in no pair of chunks are counted all the same."""
    with create(tmp_path / "w", []) as database:
        database.array("B").delete("i > 3")
        use_folders(database, tmp_path / "folders")
        view = database.create_view("kept", VIEWS["kept"])
        assert len(read(view)["i"]) == len(read(database.array("A"))["i"])
        assert view.check().ok
        assert strategies(view) == ["auto"]


@pytest.mark.parametrize("strategy", ["baseline", "differential", "reassign"])
def test_every_strategy_builds(strategy: str, tmp_path: Path) -> None:
    database, _ = built(tmp_path / "w", tmp_path / "folders", "plain", strategy=strategy)
    with database:
        assert strategies(database.view("plain")) == [strategy]
        assert database.view("plain").check().ok


def test_a_full_refresh_is_built_by_nodes_and_trusts_nothing(tmp_path: Path) -> None:
    database, cluster = built(tmp_path / "w", tmp_path / "folders", "plain")
    with database:
        change(database, 1, "both")
        damage_states(database, "plain", {"__windrow_pairs": "0"})
        for file in (tmp_path / "w").glob("arrays/plain*/*.parquet"):
            file.write_bytes(file.read_bytes()[:40])
        before = len(cluster.exchanges)
        database.view("plain").refresh(full=True)
        assert len(cluster.exchanges) == before + 1
        assert database.view("plain").check().ok
        change(database, 2, "both")
        assert database.view("plain").check().ok
        assert strategies(database.view("plain"))[-2:] == ["auto", "auto"]


def test_a_rebuild_writes_what_is_not_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where rebuilding is cheaper than patching, nodes compare; results whose cells are gone go with them."""
    monkeypatch.setattr(cost, "FIXED_CELLS", 0)
    database, _ = built(tmp_path / "w", tmp_path / "folders", "plain", maintain="auto")
    with database:
        database.array("A").delete("i > 2")
        view = database.view("plain")
        last = view.history().to_pylist()[-1]
        assert (last["planned"], last["strategy"]) == ("rebuild", "auto")
        assert view.check().ok
        before = view.version
        view.refresh()
        assert view.version == before


def test_what_nodes_cannot_hold_is_done_in_rounds(tmp_path: Path) -> None:
    database, cluster = built(tmp_path / "w", tmp_path / "folders", "near")
    with database:
        database.engine.placement["round"] = 2_000
        cluster.exchanges.clear()
        database.view("near").refresh(full=True)
        assert len(cluster.exchanges) > 2
        done = [o for work in cluster.exchanges for task in work.second for o in task.left]
        assert len(done) == len({*done})
        assert database.view("near").check().ok
        cluster.exchanges.clear()
        change(database, 1, "both")
        assert len(cluster.exchanges) > 2
        assert database.view("near").check().ok


def test_rounds_that_fail_leave_nothing(tmp_path: Path) -> None:
    database, cluster = built(tmp_path / "w", tmp_path / "folders", "near")
    with database:
        database.engine.placement["round"] = 2_000
        files = {*(tmp_path / "w").rglob("*.parquet")}
        before, exchange, done = database.view("near").version, cluster.exchange, []

        def fail(work: Any) -> Any:
            if len(done) == 2:
                raise wr.MemoryLimitError("a Spark worker ran out of memory")
            done.append(exchange(work))
            return done[-1]

        cluster.exchange = fail
        with pytest.raises(wr.MemoryLimitError):
            database.view("near").refresh(full=True)
        assert database.view("near").version == before
        assert {*(tmp_path / "w").rglob("*.parquet")} == files
        cluster.exchange = exchange
        assert database.view("near").check().ok


def test_nodes_do_not_build_what_is_always_computed_again(tmp_path: Path) -> None:
    """States would be kept for nothing."""
    database, cluster = built(tmp_path / "w", tmp_path / "folders", "plain", maintain="full")
    with database:
        assert not cluster.exchanges
        said = str(database.explain_view(VIEWS["plain"], maintain="full"))
        assert "not planned, because all of it is computed again at every batch" in said


def test_an_empty_array_has_an_empty_view(tmp_path: Path) -> None:
    with wr.connect(tmp_path / "w", engine="local", progress=False) as database:
        use_folders(database, tmp_path / "folders")
        database.create("A", "<v: int64, x: float64> [i=1:24:5, j=1:24:7]", sparse=True)
        view = database.create_view("plain", VIEWS["plain"])
        assert len(read(view)["i"]) == 0
        assert view.check().ok
