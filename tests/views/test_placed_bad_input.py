"""What can be wrong around nodes: too many of them, nothing to join, rates and caches that are no good."""

from __future__ import annotations

import resource
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import windrow as wr
from windrow.storage.chunks.cache import CacheWarning
from windrow.storage.homes import RATES
from windrow.views.placed.rates import FIRST, read_rates

from .checking import read
from .folders import use_folders
from .test_placed import VIEWS, caches, cells, insert, placed, total

__all__ = ["placed"]


def test_more_nodes_than_chunks_and_chunks_without_cells(tmp_path: Path) -> None:
    """Three cells on twelve nodes; then none, in chunks that were there, and some again."""
    with wr.connect(tmp_path / "w", engine="local", progress=False) as database:
        use_folders(database, tmp_path / "folders", nodes=12)
        array = database.create("A", "<v: int64, x: float64> [i=1:24:5, j=1:24:7]", sparse=True)
        array.insert(cells(np.random.default_rng(0), 3))
        view = database.create_view("plain", VIEWS["plain"], maintain="incremental")
        assert view.check().ok
        array.delete("v >= 0")
        assert len(read(view)["i"]) == 0
        assert view.check().ok
        array.insert(cells(np.random.default_rng(1), 4))
        assert len(read(view)["i"]) == 4
        assert view.check().ok
        view.refresh(full=True)
        assert view.check().ok
        assert view.history().to_pylist()[-1]["strategy"] is not None


RATE = '{{"receive": {0}, "join": 1e-9, "merge": 1e-9}}'


@pytest.mark.parametrize(
    "stated", ["", "no numbers", "[1, 2]", "{}", *(RATE.format(n) for n in ("-1", "NaN", "Infinity", '"fast"', "null"))]
)
def test_rates_that_are_none_count_as_not_measured(stated: str) -> None:
    assert read_rates(stated) == FIRST


def test_a_warehouse_with_rates_that_are_none(placed: Any, tmp_path: Path) -> None:
    database, _ = placed
    with closing(sqlite3.connect(tmp_path / "w" / "catalog.sqlite")) as catalog, catalog:
        changed = catalog.execute("update settings set value = ? where key = ?", (RATE.format("-3"), RATES))
        assert changed.rowcount == 1
    insert(database, 3)
    assert database.view("plain").check().ok


@contextmanager
def small_files(size: int) -> Iterator[None]:
    """No file of this process grows beyond a size: the system refuses to write, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_disk_that_fills_while_chunks_are_kept_is_a_warning(placed: Any) -> None:
    """Only the cache is short of room: the exchange writes little else, and the store has what it needs."""
    database, cluster = placed
    exchange = cluster.exchange
    largest = max(path.stat().st_size for path in caches(cluster))

    def short(work: Any) -> Any:
        with small_files(largest):
            return exchange(work)

    cluster.exchange = short
    with pytest.warns(CacheWarning, match="cannot be written"):
        database.array("A").insert(cells(np.random.default_rng(3), 300))
    assert database.view("plain").check().ok
    cluster.exchange = exchange
    insert(database, 6)
    assert database.view("plain").check().ok


def test_caches_that_vanish_between_joining_and_merging(placed: Any) -> None:
    database, cluster = placed
    exchange = cluster.exchange

    def vanish(work: Any) -> Any:
        receive = work.receive

        def lose(*given: Any) -> Any:
            shutil.rmtree(cluster.root, ignore_errors=True)
            return receive(*given)

        return exchange(type(work)(work.label, work.nodes, work.first, work.send, work.second, lose))

    cluster.exchange = vanish
    insert(database, 3)
    cluster.exchange = exchange
    assert total(insert(database, 4), "misses") > 0
    assert database.view("plain").check().ok


def test_a_cache_that_somebody_else_holds_is_a_warning(placed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    database, cluster = placed
    monkeypatch.setattr("windrow.storage.chunks.cache._WAIT_SECONDS", 0.05)
    with closing(sqlite3.connect(caches(cluster)[0])) as other:
        other.execute("begin exclusive")
        with pytest.warns(CacheWarning, match="locked"):
            insert(database, 3)
    assert database.view("plain").check().ok
