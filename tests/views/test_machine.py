"""Any sequence of changes leaves every view as its definition says, evaluated from scratch by the oracle."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import xarray as xr
from hypothesis import HealthCheck, Phase, settings
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
from join_oracle import Held
from join_problems import ROUNDED
from windrow.views import cost

from .checking import assert_answer, assert_way, contents, held
from .definitions import STORED_SHAPE, TAKEN, Below, Maker, kinds_of_aggregates, stands
from .kinds import KINDS
from .oracle import Answer, Step
from .worlds import BOX, CONDITIONS, SETS, WIDTH, World, blocks, create, drawn, labels, table

seeds = st.integers(0, 2**32 - 1)
names = st.sampled_from(("S", "T"))
every_name = st.sampled_from(("S", "T", "D"))
conditions = st.sampled_from((None, *CONDITIONS))
MOST_VIEWS = 7
CHANGES = (
    "insert", "insert the same", "import", "delete", "delete all", "update", "dense write", "one attribute", "append",
    "late slice", "relabel", "compact", "rechunk", "collect", "batch", "failing batch", "come and go", "into", "shape",
    "reopen", "refresh", "refresh full", "seen before", "create view", "drop view",
)  # fmt: skip


@dataclass
class Kept:
    """A view that is watched: what it is, and what it must hold until it is refreshed, if it is deferred."""

    kind: str
    step: Step
    below: Below | None
    """How others may stand on it."""
    deferred: bool = False
    answer: Answer | None = None
    version: int = -1
    before: Held | None = None
    """The version it had last, and what it held then."""


@dataclass
class Tally:
    """How often each kind of view, aggregate and change was met."""

    kinds: Counter[str]
    aggregates: Counter[str]
    changes: Counter[str]
    steps: int = 0

    def least(self) -> float:
        """The share of the rarest."""
        shares = []
        for counted, all_of in ((self.kinds, KINDS), (self.aggregates, AGGREGATES), (self.changes, CHANGES)):
            total = sum(counted.values())
            shares += [counted[name] / max(1, total) for name in all_of]
        return min(shares)

    def __str__(self) -> str:
        lines = [f"{self.steps} steps"]
        for title, counted in (("views", self.kinds), ("aggregates", self.aggregates), ("changes", self.changes)):
            total = sum(counted.values())
            parts = (f"{name} {100 * count / total:.1f} %" for name, count in counted.most_common())
            lines.append(f"{title}: {', '.join(parts)}")
        return "\n".join(lines)


AGGREGATES = {one.aggregate for group in TAKEN.values() for one in group}


def new_tally() -> Tally:
    return Tally(Counter(), Counter(), Counter())


class Views(RuleBasedStateMachine):
    """A warehouse with views on two sparse arrays and a growing dense one, and on one another."""

    tally = new_tally()

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.options: dict[str, Any] = {"engine": "local", "progress": False} | options
        self.directory = tempfile.TemporaryDirectory()
        self.world = World()
        self.kept: dict[str, Kept] = {}
        self.made = 0
        self.batches: list[tuple[str, str]] = []
        self.connect()

    def connect(self) -> None:
        self.database: Any = wr.connect(f"{self.directory.name}/warehouse", **self.options)

    def teardown(self) -> None:
        self.database.close()
        self.directory.cleanup()

    @initialize(seed=seeds, kinds=st.lists(st.sampled_from(list(KINDS)), min_size=3, max_size=4, unique=True))
    def begin(self, seed: int, kinds: list[str]) -> None:
        create(self.database, self.world, np.random.default_rng(seed))
        for number, kind in enumerate([*kinds, "on a view", "on a view", "diamond"]):
            self.add_view(kind, seed + number, deferred=False)

    def done(self, change: str) -> None:
        self.tally.changes[change] += 1

    # Views

    def add_view(self, kind: str, seed: int, deferred: bool) -> None:
        below = [kept.below for kept in self.kept.values() if kept.below is not None]
        maker = Maker(np.random.default_rng(seed), below)
        step = KINDS[kind](maker)
        self.made += 1
        name = f"V{self.made}"
        maintain = maker.one_of(["auto", "auto", "incremental", "full"])
        self.database.create_view(name, step.text(), deferred=deferred, maintain=maintain)
        kept = self.kept[name] = Kept(kind, step, stands(name, step, below), deferred)
        if deferred:
            kept.answer = self.answer(kept)

    @precondition(lambda self: len(self.kept) < MOST_VIEWS)
    @rule(kind=st.sampled_from(list(KINDS)), seed=seeds, deferred=st.booleans())
    def create_view(self, kind: str, seed: int, deferred: bool) -> None:
        self.add_view(kind, seed, deferred)
        self.done("create view")

    @precondition(lambda self: len(self.kept) > 3)
    @rule(seed=seeds)
    def drop_view(self, seed: int) -> None:
        """One that no view stands on."""
        used = frozenset[str]().union(*(kept.step.bases() for kept in self.kept.values()))
        free = sorted(set(self.kept) - used)
        name = free[seed % len(free)]
        self.database.drop_view(name)
        del self.kept[name]
        self.done("drop view")

    @rule(full=st.booleans())
    def refresh(self, full: bool) -> None:
        for name, kept in self.kept.items():
            if kept.deferred or full:
                self.database.view(name).refresh(full=full)
                assert not self.database.view(name).stale
                kept.version = -1
            if kept.deferred:
                kept.answer = self.answer(kept)
        self.done("refresh full" if full else "refresh")

    def answer(self, kept: Kept) -> Answer:
        """By the oracle; views that it stands on as they are stored, which were compared before."""
        return self.answer_in(kept, self.database.view)

    def answer_in(self, kept: Kept, opened: Callable[[str], Any]) -> Answer:
        arrays = self.world.held()
        arrays |= {name: held(opened(name)) for name in kept.step.bases() if name not in arrays}
        return kept.step.of(arrays)

    # Changes of sparse arrays

    def some(self, random: np.random.Generator, most: int = 8) -> dict[Any, Any]:
        count = int(random.integers(1, most))
        return {BOX[k]: drawn(random) for k in sorted(random.permutation(len(BOX))[:count])}

    @rule(name=names, seed=seeds)
    def insert(self, name: str, seed: int) -> None:
        cells = self.some(np.random.default_rng(seed))
        self.database.array(name).insert(table(cells))
        self.world.sparse[name] |= cells
        self.done("insert")

    @rule(name=names)
    def insert_the_same(self, name: str) -> None:
        cells = dict(list(self.world.sparse[name].items())[::2])
        versions = {view: self.database.view(view).version for view in self.kept}
        if cells:
            self.database.array(name).insert(table(cells))
        for view, version in versions.items():
            assert self.database.view(view).version == version, view
        self.done("insert the same")

    @rule(name=names, seed=seeds)
    def insert_a_file(self, name: str, seed: int) -> None:
        cells = self.some(np.random.default_rng(seed))
        path = Path(self.directory.name, "cells.parquet")
        pq.write_table(table(cells), path)
        self.database.query(f"insert into {name} from '{path}'")
        self.world.sparse[name] |= cells
        self.done("import")

    @rule(name=names, condition=conditions)
    def delete(self, name: str, condition: str | None) -> None:
        self.database.array(name).delete(condition)
        self.world.delete(name, condition)
        self.done("delete all" if condition is None else "delete")

    @rule(name=every_name, sets=st.sampled_from(list(SETS)), condition=conditions)
    def update(self, name: str, sets: Any, condition: str | None) -> None:
        self.database.array(name).update(dict(sets), condition)
        self.world.update(name, sets, condition)
        self.done("update")

    @rule(name=names, seed=seeds)
    def come_and_go(self, name: str, seed: int) -> None:
        """What came and went inside a batch was never there; what was replaced twice is replaced once."""
        random = np.random.default_rng(seed)
        cells, last = self.some(random, 4), {}
        with self.database.batch() as batch:
            batch.insert(name, table(cells))
            for place in cells:
                batch.delete(name, f"i = {place[0]} and j = {place[1]}")
            if random.random() < 0.5:
                last = {place: drawn(random) for place in list(cells)[:2]}
                batch.insert(name, table(last))
        for place in cells:
            self.world.sparse[name].pop(place, None)
        self.world.sparse[name] |= last
        self.done("come and go")

    @rule(seed=seeds, fails=st.booleans(), condition=conditions, looks=st.booleans())
    def batch(self, seed: int, fails: bool, condition: str | None, looks: bool) -> None:
        """Several arrays in one batch, queries inside it, and batches that come to nothing."""
        random = np.random.default_rng(seed)
        before = self.world.copy()
        try:
            with self.database.batch() as batch:
                for name in ("S", "T", "S"):
                    cells = self.some(random, 5)
                    batch.insert(name, table(cells))
                    self.world.sparse[name] |= cells
                if looks:
                    found = batch.query("select count(*) as n from S group by i").compute().to_pylist()
                    assert {row["i"]: row["n"] for row in found} == Counter(i for i, _ in self.world.sparse["S"])
                    self.look_inside(batch)
                batch.delete("T", condition)
                self.world.delete("T", condition)
                batch.update("D", {"m": "-m"}, "m > 1")
                self.world.update("D", (("m", "-m"),), "m > 1")
                if fails:
                    raise ZeroDivisionError
        except ZeroDivisionError:
            self.world = before
        self.done("failing batch" if fails else "batch")

    def look_inside(self, batch: Any) -> None:
        """Views show a batch what it changed so far."""
        for name, kept in self.kept.items():
            if not kept.deferred:
                assert_answer(batch.array(name), self.answer_in(kept, batch.array), kept.step.text())

    @rule(name=names, seed=seeds)
    def seen_before(self, name: str, seed: int) -> None:
        """A batch id that was applied already changes nothing."""
        if self.batches:
            id_, name = self.batches[seed % len(self.batches)]
            self.database.array(name).insert(table(self.some(np.random.default_rng(seed))), batch=id_)
        else:
            cells = self.some(np.random.default_rng(seed))
            self.database.array(name).insert(table(cells), batch="night")
            self.batches.append(("night", name))
            self.world.sparse[name] |= cells
        self.done("seen before")

    @rule(name=names, condition=st.sampled_from(list(CONDITIONS)))
    def store_into(self, name: str, condition: str) -> None:
        """``into`` replaces all that an array holds."""
        self.database.query(f"select * from {name} where not ({condition}) into {name}")
        kept = {}
        for place, row in self.world.sparse[name].items():
            unknown = ("c >" in condition and row["c"] is None) or ("x" in condition and row["x"] is None)
            if "c >" in condition and row["m"] % 2 != 0:
                unknown = False  # false and unknown is false
            if not unknown and not CONDITIONS[condition](row):
                kept[place] = row
        self.world.sparse[name] = kept
        self.done("into")

    @rule(seed=seeds)
    def change_the_shape(self, seed: int) -> None:
        """An offset of the array that is a shape comes or goes."""
        random = np.random.default_rng(seed)
        place = int(random.integers(-2, 3)), int(random.integers(-2, 3))
        array = self.database.array(STORED_SHAPE)
        if place in self.world.offsets:
            array.delete(f"i = {place[0]} and j = {place[1]}")
        else:
            array.insert({"i": [place[0]], "j": [place[1]], "flag": [True]})
        self.world.offsets ^= {place}
        self.done("shape")

    # Changes of the dense array

    @rule(seed=seeds, one=st.booleans())
    def write(self, seed: int, one: bool) -> None:
        random = np.random.default_rng(seed)
        first = int(random.integers(0, len(self.world.days)))
        last = int(random.integers(first, len(self.world.days)))
        left = int(random.integers(0, WIDTH))
        rows = [[drawn(random, True) for _ in range(left, WIDTH)] for _ in range(first, last + 1)]
        values = blocks(rows)
        if one:
            values = {"c": values["c"]}
        self.database.array("D").write(values, at=(first + 1, left))
        for t, row in enumerate(rows, first):
            for y, cell in enumerate(row, left):
                old = self.world.slices[t][y]
                self.world.slices[t][y] = old | ({"c": cell["c"]} if one else cell)
        self.done("one attribute" if one else "dense write")

    @precondition(lambda self: len(self.world.days) < 9)
    @rule(seed=seeds, gaps=st.lists(st.integers(1, 4), min_size=1, max_size=2))
    def append(self, seed: int, gaps: list[int]) -> None:
        random = np.random.default_rng(seed)
        days = [int(day) for day in self.world.days[-1] + np.cumsum(gaps)]
        rows = [[drawn(random, True) for _ in range(WIDTH)] for _ in days]
        self.database.array("D").append(blocks(rows), labels={"t": labels(days)})
        for day, row in zip(days, rows, strict=True):
            self.world.put_slice(day, row)
        self.done("append")

    @precondition(lambda self: len(self.world.days) < 9)
    @rule(seed=seeds)
    def late_slice(self, seed: int) -> None:
        """A day that is there is replaced, one that comes late goes where it belongs."""
        random = np.random.default_rng(seed)
        day = int(random.integers(self.world.days[0], self.world.days[-1] + 1))
        row = [drawn(random, True) for _ in range(WIDTH)]
        values = blocks([row])
        valid = ~values["c"].mask
        data = xr.Dataset(
            {
                "x": (("t", "y"), values["x"]),
                "c": (("t", "y"), values["c"].filled(0)),
                "c__valid": (("t", "y"), np.broadcast_to(valid, values["x"].shape)),
                "m": (("t", "y"), values["m"]),
            },
            coords={"t": labels([day]).astype("M8[ns]"), "y": np.arange(WIDTH)},
        )
        self.database.array("D").write(data)
        self.world.put_slice(day, row)
        for kept in self.kept.values():
            kept.version = -1
        self.done("late slice")

    @rule(seed=seeds)
    def relabel(self, seed: int) -> None:
        gaps = np.random.default_rng(seed).integers(1, 5, len(self.world.days))
        self.world.days = [int(day) for day in np.cumsum(gaps)]
        self.database.array("D").set_labels("t", labels(self.world.days))
        for kept in self.kept.values():
            kept.version = -1  # the labels of a result are part of it
        self.done("relabel")

    # What changes no value

    @rule(name=every_name, chunk=st.none() | st.integers(1, 4))
    def compact(self, name: str, chunk: int | None) -> None:
        first = "t" if name == "D" else "i"
        versions = {view: self.database.view(view).version for view in self.kept}
        self.database.array(name).compact(None if chunk is None else {first: chunk})
        assert versions == {view: self.database.view(view).version for view in self.kept}
        self.done("compact" if chunk is None else "rechunk")

    @rule(seed=seeds)
    def compact_a_view(self, seed: int) -> None:
        stored = [name for name in self.kept if self.database.view(name).schema.dimensions]
        if stored:
            self.database.view(stored[seed % len(stored)]).compact()
            for kept in self.kept.values():
                kept.version = -1
        self.done("compact")

    @rule(keep=st.none() | st.integers(1, 3))
    def collect(self, keep: int | None) -> None:
        self.database.collect_garbage(keep_versions=keep)
        self.done("collect")

    @rule()
    def reopen(self) -> None:
        self.database.close()
        self.connect()
        self.done("reopen")

    # What holds after every step

    @invariant()
    def views_agree(self) -> None:
        if not self.world.days:
            return
        self.tally.steps += 1
        arrays = self.world.held()
        for name in arrays:
            assert contents(self.database.array(name)) == dict(arrays[name].cells), name
        for name, kept in self.kept.items():
            self.check_view(name, kept)

    def check_view(self, name: str, kept: Kept) -> None:
        view = self.database.view(name)
        now = self.answer(kept)
        expected = now if kept.answer is None else kept.answer
        assert_answer(view, expected, kept.step.text())
        if kept.deferred:
            if dict(now.cells) != dict(expected.cells):
                assert view.stale
        else:
            self.check_version(view, kept, now)
        assert_way(view)
        self.tally.kinds[kept.kind] += 1
        self.tally.aggregates.update(kinds_of_aggregates(kept.step))

    def check_version(self, view: Any, kept: Kept, now: Answer) -> None:
        """What changes nothing makes no version; of what is rounded only the oracle's numbers are the same."""
        rounded = any(measure.aggregate in ROUNDED for measure in now.measures.values())
        version = view.version
        # An array that grew makes a version of views that grow with it, even if no cell came to them.
        if kept.version >= 0 and not rounded and kept.before == now.held:
            assert version == kept.version, (view.name, kept.step.text(), view.history().to_pylist()[-1])
        kept.version = version
        kept.before = now.held


@pytest.fixture(autouse=True)
def fixed_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small views are rebuilt too if a batch touches most of them, and no measured time has a say in it."""
    monkeypatch.setattr(cost, "FIXED_CELLS", 8.0)
    monkeypatch.setattr(cost, "FURTHEST", 1.0)


PHASES = (Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink)


def run(machine: Callable[[], Views], examples: int, steps: int) -> Tally:
    Views.tally = new_tally()
    chosen = settings(
        max_examples=examples,
        stateful_step_count=steps,
        suppress_health_check=list(HealthCheck),
        deadline=None,
        phases=PHASES,
        report_multiple_bugs=False,
    )
    run_state_machine_as_test(machine, settings=chosen)
    print(Views.tally)
    return Views.tally


@pytest.mark.timeout(1200)
def test_in_process() -> None:
    run(Views, examples=3, steps=6)


@pytest.mark.slow
@pytest.mark.timeout(24 * 3600)
def test_ten_thousand_batches_through_the_store() -> None:
    tally = run(Views, examples=320, steps=40)
    assert tally.steps >= 10_000
    assert tally.least() >= 0.01, str(tally)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(4 * 3600)
def test_three_hundred_batches_on_spark(spark_session: Any) -> None:
    tally = run(lambda: Views(engine="spark", spark=spark_session), examples=25, steps=14)
    assert tally.steps >= 300
