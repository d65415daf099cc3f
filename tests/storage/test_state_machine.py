"""Any sequence of changes leaves a dense and a sparse array, and all their versions, as a plain model says."""

from __future__ import annotations

import importlib
import os
import random
import signal
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import icechunk
import numpy as np
import polars as pl
import pytest
import xarray as xr
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import windrow as wr
from windrow.storage.upkeep import tidying

from .contents import check_chunks, contents

FIRST, WIDTH = -1, 7
SCHEMA = f"<a: float64, k: int32 null> [t={FIRST}:*:3, x=0:{WIDTH - 1}:4]"
NAMES = ("D", "S")

Place = tuple[int, int]
Values = tuple[float | None, int | None]

CONDITIONS: dict[str | None, Callable[[int, int, float | None, int | None], bool]] = {
    None: lambda t, x, a, k: True,
    "a > 0": lambda t, x, a, k: a is not None and a > 0,
    "not (a > 0)": lambda t, x, a, k: a is not None and not a > 0,
    "k is null or t < 2": lambda t, x, a, k: k is None or t < 2,
    "x between 2 and 4 and k > -50": lambda t, x, a, k: 2 <= x <= 4 and k is not None and k > -50,
    "a is null and k is null": lambda t, x, a, k: a is None and k is None,
    "t > 1000": lambda t, x, a, k: False,
}


@dataclass
class Model:
    """An array as a dictionary; a dense one also has every cell between that nobody wrote."""

    sparse: bool
    last: int = FIRST - 1
    cells: dict[Place, Values] = field(default_factory=dict)

    def put(self, cells: dict[Place, Values]) -> None:
        self.cells |= cells
        self.last = max([self.last, *(t for t, _ in cells)])

    def everything(self) -> dict[Place, Values]:
        if self.sparse:
            return dict(self.cells)
        places = [(t, x) for t in range(FIRST, self.last + 1) for x in range(WIDTH)]
        return {at: self.cells.get(at, (None, None)) for at in places}

    def update(self, chosen: list[Place], change: Callable[[Place, Values], Values]) -> None:
        for at in chosen:
            self.cells[at] = change(at, self.everything()[at] if at not in self.cells else self.cells[at])

    def matching(self, condition: str | None) -> list[Place]:
        return [(t, x) for (t, x), (a, k) in self.everything().items() if CONDITIONS[condition](t, x, a, k)]

    def copy(self) -> Model:
        return Model(self.sparse, self.last, dict(self.cells))


def drawn(seed: int, places: list[Place]) -> dict[Place, Values]:
    dice = random.Random(seed)
    return {
        at: (
            None if dice.random() < 0.2 else dice.choice([-0.0, float("inf"), dice.uniform(-9, 9)]),
            None if dice.random() < 0.2 else dice.randrange(-99, 99),
        )
        for at in places
    }


def read(array: wr.Array, **selection: Any) -> dict[Place, Values]:
    found = contents(array, **selection)
    return {at: (None if row["a"] is None else float.fromhex(row["a"]), row["k"]) for at, row in found.items()}


def same(found: dict[Place, Values], wanted: dict[Place, Values]) -> bool:
    """Equal, and zeros of equal sign."""
    return found.keys() == wanted.keys() and all(repr(found[at]) == repr(wanted[at]) for at in found)


def read_outside(array: wr.Array) -> dict[Place, Values]:
    """The same without windrow: by Polars, and by xarray from Icechunk."""
    there = array.location()
    if there.format == "delta":
        frame = pl.read_delta(there.path, version=int(there.version))
        return {(t, x): (a, k) for t, x, a, k in frame.select("t", "x", "a", "k").rows()}
    repository = icechunk.Repository.open(icechunk.local_filesystem_storage(there.path))
    store = repository.readonly_session(snapshot_id=there.version).store
    data = xr.open_zarr(store, consolidated=False, chunks=None)
    found = {}
    for (row, x), a in np.ndenumerate(data["a"].values):
        k = int(data["k"].values[row, x]) if data["k__valid"].values[row, x] else None
        found[FIRST + row, x] = (None if np.isnan(a) else float(a), k)
    return found


class Died(BaseException):
    """A writer that goes no further, and clears nothing up."""


STEPS = (
    "windrow.operations.sparse.insert.write_parts",
    "windrow.storage.upkeep.moving._write",
    "windrow.storage.upkeep.tidying._fold",
    "windrow.storage.upkeep.tidying.merge_runs",
    "windrow.storage.upkeep.sealing._write_vectors",
    "windrow.storage.delta.log.DeltaLog.append",
    "windrow.storage.dense.store.DenseStore.checksum",
    "windrow.storage.transaction.seal",
)
"""What is done before a batch is published: it may die after each of these."""

CLEARING = (
    "windrow.storage.upkeep.sealing._discard",
    "windrow.storage.sparse.SparseStore.discard",
    "windrow.storage.part_writing.PartWriter.abandon",
)


@contextmanager
def dying_after(step: str) -> Iterator[None]:
    """Lets a step be the last one of its process, which leaves everything lying."""

    def die(original: Callable[..., Any]) -> Callable[..., Any]:
        def last(*arguments: Any, **options: Any) -> None:
            original(*arguments, **options)
            raise Died

        return last

    with pytest.MonkeyPatch.context() as patch:
        for name in CLEARING:
            patch.setattr(*_found(name), lambda *_: None)
        owner, name = _found(step)
        patch.setattr(owner, name, die(getattr(owner, name)))
        yield


def _found(path: str) -> tuple[Any, str]:
    owner, _, name = path.rpartition(".")
    try:
        return importlib.import_module(owner), name
    except ModuleNotFoundError:
        module, _, kind = owner.rpartition(".")
        return getattr(importlib.import_module(module), kind), name


boxes = st.tuples(st.integers(FIRST, 12), st.integers(0, 5), st.integers(0, WIDTH - 1), st.integers(0, WIDTH - 1)).map(
    lambda b: (b[0], b[0] + b[1], min(b[2], b[3]), max(b[2], b[3]))
)
names = st.sampled_from(NAMES)
seeds = st.integers(0, 2**20)


class Warehouse(RuleBasedStateMachine):
    """One dense and one sparse array in one warehouse."""

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.options: dict[str, Any] = {"engine": "local", "progress": False} | options
        self.directory = tempfile.TemporaryDirectory()
        self.models = {"D": Model(False), "S": Model(True)}
        self.history: dict[str, dict[int, Model]] = {"D": {}, "S": {}}
        # Runs are merged as soon as there are two, so that few changes show all that tidying does.
        self.eager = pytest.MonkeyPatch()
        self.eager.setattr(tidying, "TIER", 2)
        self.connect()

    def connect(self) -> None:
        self.database = wr.connect(f"{self.directory.name}/warehouse", **self.options)

    def teardown(self) -> None:
        try:
            for name in NAMES:
                check_chunks(self.database.array(name))
                for number, model in self.history[name].items():
                    array = self.database.array(f"{name}@{number}")
                    assert same(read(array), model.everything())
                    if model.everything():
                        assert same(read_outside(array), model.everything())
        finally:
            self.eager.undo()
            self.database.close()
            self.directory.cleanup()

    @initialize()
    def create(self) -> None:
        for name in NAMES:
            self.database.create(name, SCHEMA, sparse=name == "S")
            self.remember(name)

    def remember(self, *written: str) -> None:
        for name in written:
            self.history[name][self.database.array(name).version] = self.models[name].copy()

    # How cells get in; ``target`` is a batch

    def put(self, batch: wr.Batch, name: str, box: tuple[int, int, int, int], seed: int) -> None:
        first, last, left, right = box
        places = [(t, x) for t in range(first, last + 1) for x in range(left, right + 1)]
        if name == "S":
            places = random.Random(seed).sample(places, 1 + seed % len(places))
            cells = drawn(seed, places)
            batch.insert("S", rows(cells))
        else:
            cells = drawn(seed, places)
            batch.write("D", blocks(cells, places, (last - first + 1, right - left + 1)), at=(first, left))
        self.models[name].put(cells)

    @rule(name=names, box=boxes, seed=seeds)
    def write(self, name: str, box: tuple[int, int, int, int], seed: int) -> None:
        with self.database.batch() as batch:
            self.put(batch, name, box, seed)
        self.remember(name)

    @rule(box=boxes, seed=seeds)
    def write_one_attribute(self, box: tuple[int, int, int, int], seed: int) -> None:
        first, last, left, right = box
        shape = (last - first + 1, right - left + 1)
        values = np.random.default_rng(seed).integers(-99, 99, shape)
        self.database.array("D").write({"k": values}, at=(first, left))
        model = self.models["D"]
        for (row, column), k in np.ndenumerate(values):
            at = (first + row, left + column)
            model.put({at: (model.cells.get(at, (None, None))[0], int(k))})
        self.remember("D")

    @rule(
        seed=seeds,
        places=st.lists(st.tuples(st.integers(FIRST, 14), st.integers(0, WIDTH - 1)), max_size=6, unique=True),
    )
    def set_cells(self, seed: int, places: list[Place]) -> None:
        cells = drawn(seed, places)
        report = self.database.array("D").insert(rows(cells))
        assert report.cells == len(cells)
        self.models["D"].put(cells)
        self.remember("D")

    @rule(count=st.integers(1, 4), seed=seeds)
    def append(self, count: int, seed: int) -> None:
        first = self.models["D"].last + 1
        places = [(t, x) for t in range(first, first + count) for x in range(WIDTH)]
        cells = drawn(seed, places)
        self.database.array("D").append(blocks(cells, places, (count, WIDTH)))
        self.models["D"].put(cells)
        self.remember("D")

    @rule(condition=st.sampled_from(list(CONDITIONS)))
    def delete(self, condition: str | None) -> None:
        model = self.models["S"]
        chosen = model.matching(condition)
        assert self.database.array("S").delete(condition).cells == len(chosen)
        for at in chosen:
            del model.cells[at]
        self.remember("S")

    @rule(name=names, condition=st.sampled_from(list(CONDITIONS)))
    def update(self, name: str, condition: str | None) -> None:
        model = self.models[name]
        chosen = model.matching(condition)
        report = self.database.array(name).update({"a": "a + k", "k": "t - x"}, condition)
        assert report.cells == len(chosen)
        model.update(chosen, lambda at, old: (_sum(*old), at[0] - at[1]))
        self.remember(name)

    @rule(name=names, condition=st.sampled_from(list(CONDITIONS)))
    def make_missing(self, name: str, condition: str | None) -> None:
        model = self.models[name]
        chosen = model.matching(condition)
        self.database.array(name).update({"k": "null"}, condition)
        model.update(chosen, lambda at, old: (old[0], None))
        self.remember(name)

    @rule(first=boxes, second=boxes, third=boxes, seed=seeds, fails=st.booleans())
    def batch(self, first: Any, second: Any, third: Any, seed: int, fails: bool) -> None:
        before = {name: model.copy() for name, model in self.models.items()}
        try:
            with self.database.batch() as batch:
                self.put(batch, "S", first, seed)
                self.put(batch, "D", second, seed + 1)
                self.put(batch, "S", third, seed + 2)
                chosen = self.models["S"].matching("a > 0")
                batch.delete("S", "a > 0")
                for at in chosen:
                    del self.models["S"].cells[at]
                if fails:
                    raise ZeroDivisionError
        except ZeroDivisionError:
            self.models = before
        else:
            self.remember(*NAMES)

    @rule(step=st.sampled_from(STEPS), first=boxes, second=boxes, seed=seeds)
    def die(self, step: str, first: Any, second: Any, seed: int) -> None:
        """The process ends in the middle of a batch, and the next one finds what was published."""
        before = {name: model.copy() for name, model in self.models.items()}
        try:
            with dying_after(step), self.database.batch() as batch:
                self.put(batch, "S", first, seed)
                self.put(batch, "D", second, seed + 1)
                self.put(batch, "S", second, seed + 2)
        except Died:
            self.models = before
        else:
            self.remember(*NAMES)  # nothing was folded or merged, say
        self.reopen()

    # What must not change anything

    @rule()
    def read_in_a_fork(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # newer Pythons warn of every fork in a process with threads
            process = os.fork()
        if process == 0:
            signal.alarm(60)
            agrees = same(read(self.database.array("S")), self.models["S"].everything())
            os._exit(0 if agrees else 1)
        assert os.waitpid(process, 0)[1] == 0

    @rule(name=names, box=boxes)
    def read_a_box(self, name: str, box: tuple[int, int, int, int]) -> None:
        first, last, left, right = box
        array = self.database.array(name)
        if last > array.box.hi[0]:
            return
        found = read(array, t=(first, last), x=(left, right))
        wanted = self.models[name].everything()
        assert same(found, {at: wanted[at] for at in wanted if first <= at[0] <= last and left <= at[1] <= right})

    @rule(name=names, seed=seeds)
    def travel_back(self, name: str, seed: int) -> None:
        offered = sorted(self.history[name])
        number = offered[seed % len(offered)]
        assert same(read(self.database.array(f"{name}@{number}")), self.history[name][number].everything())

    @rule(name=names, t=st.integers(1, 9), x=st.integers(1, 9))
    def compact(self, name: str, t: int, x: int) -> None:
        self.database.array(name).compact({"t": t, "x": x})
        self.remember(name)

    @rule(name=names)
    def check_metadata(self, name: str) -> None:
        check_chunks(self.database.array(name))

    @rule(keep=st.none() | st.integers(1, 4))
    def collect_garbage(self, keep: int | None) -> None:
        self.database.collect_garbage(keep_versions=keep)
        for name in NAMES:
            for number in sorted(self.history[name])[: 0 if keep is None else -keep]:
                del self.history[name][number]
            offered = [version.number for version in self.database.array(name).versions()]
            assert offered == sorted(self.history[name])

    @rule()
    def reopen(self) -> None:
        self.database.close()
        self.connect()

    @precondition(lambda self: self.history["S"])
    @invariant()
    def contents_agree(self) -> None:
        for name in NAMES:
            assert same(read(self.database.array(name)), self.models[name].everything())


def _sum(a: float | None, k: int | None) -> float | None:
    return None if a is None or k is None else a + k


def rows(cells: dict[Place, Values]) -> dict[str, Any]:
    import pyarrow as pa

    return {
        "t": pa.array([t for t, _ in cells], pa.int64()),
        "x": pa.array([x for _, x in cells], pa.int64()),
        "a": pa.array([a for a, _ in cells.values()], pa.float64()),
        "k": pa.array([k for _, k in cells.values()], pa.int32()),
    }


def blocks(cells: dict[Place, Values], places: list[Place], shape: tuple[int, int]) -> dict[str, Any]:
    a = [np.nan if cells[at][0] is None else cells[at][0] for at in places]
    k = np.ma.array([cells[at][1] or 0 for at in places], mask=[cells[at][1] is None for at in places], dtype=np.int32)
    return {"a": np.reshape(a, shape), "k": k.reshape(shape)}


def run(machine: Callable[[], Warehouse], examples: int, steps: int) -> None:
    slow = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    chosen = settings(max_examples=examples, stateful_step_count=steps, suppress_health_check=slow)
    run_state_machine_as_test(machine, settings=chosen)


def test_in_process() -> None:
    run(Warehouse, examples=6, steps=20)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_in_process_at_length() -> None:
    run(Warehouse, examples=150, steps=60)


@pytest.mark.spark
def test_on_spark(spark_session: Any) -> None:
    run(lambda: Warehouse(engine="spark", spark=spark_session), examples=2, steps=6)
