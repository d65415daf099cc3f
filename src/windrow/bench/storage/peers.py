"""The same changes made by others: deltalake's own merge and delete, and Lance's upsert, each on the same cells."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.bench.report import Measurement
from windrow.bench.storage.sky import ROUNDS, Cells, Cost, line, measure_cost
from windrow.views.location import Location

Change = Callable[[pa.Table], object]
_KEY = "key"
"""Lance finds rows by one column: the cell's place as one number."""


@dataclass(frozen=True)
class Given:
    """What peers are given: all cells, and for each kind of change those that are replaced, with windrow's cost."""

    stored: pa.Table
    changes: dict[str, tuple[Cells, Cost]] = field(default_factory=dict)


def measure_peers(given: Given, condition: str, folder: Path) -> Iterator[Measurement]:
    """The same changes by others; windrow is held against Lance, deltalake is only shown."""
    stored = given.stored
    for what, (cells, ours) in given.changes.items():
        table = pa.table({name: pa.array(cells[name]) for name in stored.column_names})
        cost = _measure(folder / "merged", lambda path: _delta_merge(path, stored), table)
        detail = f"{cost.bytes / 1e6:.1f} MB; windrow {ours.seconds:.2f} s, {ours.bytes / 1e6:.1f} MB"
        yield line(f"{what} by deltalake's merge", cost.seconds, "s", None, detail)
        yield from _against_lance(what, stored, table, ours, folder)
    cost = _measure(folder / "deleted", lambda path: _delta_delete(path, stored, condition), stored.slice(0, 0))
    yield line("about 1 % deleted by deltalake's delete", cost.seconds, "s", None, f"{cost.bytes / 1e6:.1f} MB")


def _against_lance(what: str, stored: pa.Table, table: pa.Table, ours: Cost, folder: Path) -> Iterator[Measurement]:
    most = {"processor time": 3.0, "bytes": 1.0}
    if importlib.util.find_spec("lance") is None:
        for measured, target in most.items():
            yield line(f"{what}: {measured} against Lance", float("nan"), "×", target, "pip install 'windrow[lance]'")
        return
    theirs = _measure(folder / "upserted", lambda path: _lance_upsert(path, stored), table)
    detail = f"Lance {theirs.seconds:.2f} s, {theirs.bytes / 1e6:.2f} MB"
    ratios = {"processor time": ours.seconds / theirs.seconds, "bytes": ours.bytes / theirs.bytes}
    for measured, target in most.items():
        yield line(f"{what}: {measured} against Lance", ratios[measured], "×", target, detail)


def _measure(path: Path, prepare: Callable[[Path], Change], table: pa.Table) -> Cost:
    """The least time of several rounds, each on a table made anew, for a change leaves it larger."""
    costs = []
    for _ in range(ROUNDS):
        change = prepare(path)
        costs.append(measure_cost(functools.partial(change, table), path))
        shutil.rmtree(path)
    return min(costs, key=lambda cost: cost.seconds)


def _delta_merge(path: Path, stored: pa.Table) -> Change:
    delta = _delta_table(path, stored)
    same = " and ".join(f"old.{name} = new.{name}" for name in ("time", "ra", "dec"))

    def merge(table: pa.Table) -> object:
        merger = delta.merge(table, same, source_alias="new", target_alias="old")
        return merger.when_matched_update_all().when_not_matched_insert_all().execute()

    return merge


def _delta_delete(path: Path, stored: pa.Table, condition: str) -> Change:
    delta = _delta_table(path, stored)
    return lambda _: delta.delete(condition)


def _delta_table(path: Path, stored: pa.Table) -> Any:
    deltalake = importlib.import_module("deltalake")
    deltalake.write_deltalake(path, stored)
    return deltalake.DeltaTable(path)


def _lance_upsert(path: Path, stored: pa.Table) -> Change:
    lance = importlib.import_module("lance")
    dataset = lance.write_dataset(_with_key(stored), path)

    def upsert(table: pa.Table) -> object:
        merger = dataset.merge_insert(_KEY).when_matched_update_all().when_not_matched_insert_all()
        return merger.execute(_with_key(table))

    return upsert


def _with_key(cells: pa.Table) -> pa.Table:
    time, ra, dec = (cells.column(name).to_numpy().astype(np.int64) for name in ("time", "ra", "dec"))
    return cells.append_column(_KEY, pa.array((time * 100_001 + ra) * 50_001 + dec))


def count_outside(location: Location) -> int:
    """How many cells deltalake finds at a version, without windrow."""
    deltalake = importlib.import_module("deltalake")
    table = deltalake.DeltaTable(location.path, version=int(location.version))
    query = "select count(*) as cells from cells"
    found = deltalake.QueryBuilder().register("cells", table).execute(query).read_all()
    return int(pa.table(found).column("cells")[0].as_py())
