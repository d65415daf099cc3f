"""Any sequence of changes leaves every view as its definition says, evaluated from scratch by the oracle."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
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
from join_problems import RATIOS, ROUNDED
from windrow.views import cost

from .changes import CHANGES, ON_SPARK, Change, Changes, seeds
from .checking import assert_answer, assert_way, contents, held
from .definitions import DIMENSIONS, STORED_SHAPE, TAKEN, Below, Maker, kinds_of_aggregates, must_be_strict, stands
from .kinds import KINDS
from .oracle import Answer, Step
from .worlds import World, create

STEPS = int(os.environ.get("WINDROW_MACHINE_STEPS", "10000"))
"""How many steps the slow test takes through the store."""
ENOUGH = 5_000
"""Of so many steps nothing may be rare; of fewer it may be, by chance."""
REBUILD = {"refresh full"}
"""What rebuilds a view that is patched otherwise: nothing but asking for it."""
MOVED = "its results lie elsewhere now"
"""Why a view of what is chosen by labels is rebuilt: before the first of them came it lay nowhere."""


@dataclass
class Kept:
    """A view that is watched: what it is, and what it must hold until it is refreshed, if it is left behind."""

    kind: str
    step: Step
    below: Below | None
    """How others may stand on it."""
    deferred: bool = False
    maintain: str = "auto"
    on_failure: str = "refuse"
    answer: Answer | None = None
    """What it holds, if it is deferred or a batch broke it."""
    version: int = -1
    before: Held | None = None
    """The version it had last, and what it held then."""
    lines: int = 0
    """Of its history, those that were looked at."""


AGGREGATES = {one.aggregate for group in TAKEN.values() for one in group}
ARRAYS = (*DIMENSIONS, STORED_SHAPE)
SETTINGS = ("auto", "incremental", "strict", "full", "refuse", "stale", "deferred")


@dataclass
class Tally:
    """How often each kind of view, aggregate and change was met, and each array and setting."""

    views: Counter[str] = field(default_factory=Counter)
    aggregates: Counter[str] = field(default_factory=Counter)
    changes: Counter[str] = field(default_factory=Counter)
    arrays: Counter[str] = field(default_factory=Counter)
    settings: Counter[str] = field(default_factory=Counter)
    steps: int = 0

    def shares(self, without: Iterable[str] = ()) -> dict[str, float]:
        """Of all that there is, those that never came among them."""
        expected: Mapping[str, Iterable[str]] = {
            "views": KINDS, "aggregates": AGGREGATES, "changes": CHANGES, "arrays": ARRAYS, "settings": SETTINGS,
        }  # fmt: skip
        found = {}
        for title, every in expected.items():
            counted: Counter[str] = getattr(self, title)
            total = max(1, sum(counted.values()))
            found |= {f"{title}: {name}": counted[name] / total for name in every if name not in without}
        return found

    def least(self, without: Iterable[str] = ()) -> float:
        """The share of the rarest."""
        return min(self.shares(without).values())

    def __str__(self) -> str:
        lines = [f"{self.steps} steps"]
        for title in ("views", "aggregates", "changes", "arrays", "settings"):
            counted: Counter[str] = getattr(self, title)
            total = sum(counted.values())
            parts = (f"{name} {100 * count / total:.1f} %" for name, count in counted.most_common())
            lines.append(f"{title}: {', '.join(parts)}")
        return "\n".join(lines)


class Machine(Changes, RuleBasedStateMachine):
    """A warehouse with views on sparse and dense arrays, and on one another. Subclasses say what is done to it."""

    tally = Tally()

    def __init__(self, first: tuple[str, ...] = (), **options: Any) -> None:
        super().__init__()
        self.first = first
        """Kinds of views to begin with; without them they are drawn."""
        self.options: dict[str, Any] = {"engine": "local", "progress": False} | options
        self.session = options.get("spark")
        self.directory = tempfile.TemporaryDirectory()
        self.world = World()
        self.kept: dict[str, Kept] = {}
        self.made = self.streams = 0
        self.batches: list[tuple[str, str]] = []
        self.last = ""
        self.connect()

    def connect(self) -> None:
        self.database: Any = wr.connect(f"{self.directory.name}/warehouse", **self.options)

    def teardown(self) -> None:
        self.database.close()
        self.directory.cleanup()

    @initialize(seed=seeds, kinds=st.lists(st.sampled_from(list(KINDS)), min_size=3, max_size=4, unique=True))
    def begin(self, seed: int, kinds: list[str]) -> None:
        create(self.database, self.world, np.random.default_rng(seed))
        for number, kind in enumerate([*(self.first or kinds), "on a view", "on a view", "diamond"]):
            self.add_view(kind, seed + number, deferred=number == seed % 10)

    def carry_out(self, change: Change, given: dict[str, Any]) -> None:
        self.last = change.name
        getattr(self, change.method)(**given)
        self.tally.changes[change.name] += 1

    # Views

    def add_view(self, kind: str, seed: int, deferred: bool) -> None:
        below = [kept.below for kept in self.kept.values() if kept.below is not None]
        maker = Maker(np.random.default_rng(seed), below)
        self.made += 1
        name = f"V{self.made}"
        while True:
            kept = Kept(kind, KINDS[kind](maker), None, deferred)
            kept.maintain = maker.one_of(["auto", "auto", "incremental", "strict", "full"])
            kept.on_failure = maker.one_of(["refuse", "stale"])
            try:
                if not self.make(name, kept):
                    return
                break
            except wr.SchemaError as error:  # a shape and a mapping that leave no pair possible
                if "comes near" not in str(error):
                    raise
        kept.below = stands(name, kept.step, below)
        self.kept[name] = kept
        if deferred:
            kept.answer = self.answer(kept)

    def make(self, name: str, kept: Kept) -> bool:
        """Whether the view was made: one that is broken from the start is not.

        A strict view is refused if one cell could make all its results be computed again.
        """
        options = {"deferred": kept.deferred, "on_failure": kept.on_failure}
        text, may = kept.step.text(), must_be_strict(kept.step)
        if kept.kind == "fragile" and self.is_broken(kept):
            with pytest.raises(wr.Error, match="zero"):
                self.database.create_view(name, text, **options)
            return False
        if kept.maintain == "strict" and may is None:
            with suppress(wr.SchemaError):
                self.database.create_view(name, text, maintain="strict", **options)
                return True
        if kept.maintain == "strict" and may is False:
            with pytest.raises(wr.SchemaError, match="strict"):
                self.database.create_view(name, text, maintain="strict", **options)
        kept.maintain = "incremental" if kept.maintain == "strict" and may is not True else kept.maintain
        self.database.create_view(name, text, maintain=kept.maintain, **options)
        return True

    def answer(self, kept: Kept) -> Answer:
        """By the oracle; views that it stands on as they are stored, which were compared before."""
        return self.answer_in(kept, self.database.view)

    def answer_in(self, kept: Kept, opened: Callable[[str], Any]) -> Answer:
        arrays = self.world.held()
        arrays |= {name: held(opened(name)) for name in kept.step.bases() if name not in arrays}
        return kept.step.of(arrays)

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
        broken = kept.kind == "fragile" and self.is_broken(kept)
        now = None if broken else self.answer(kept)
        expected = now if kept.answer is None else kept.answer
        assert expected is not None
        assert_answer(view, expected, kept.step.text())
        if kept.answer is not None:
            if now is None or dict(now.cells) != dict(expected.cells):
                assert view.stale
        else:
            assert now is not None
            assert not view.stale or self.stands_on_stale(kept), (name, kept.step.text())
            self.check_version(view, kept, now)
        assert_way(view)
        self.check_history(view, kept)
        self.count(kept)

    def stands_on_stale(self, kept: Kept) -> bool:
        below = [self.kept[name] for name in kept.step.bases() if name in self.kept]
        return any(one.answer is not None or self.stands_on_stale(one) for one in below)

    def check_version(self, view: Any, kept: Kept, now: Answer) -> None:
        """What changes nothing makes no version; of what is rounded only the oracle's numbers are the same."""
        rounded = any(measure.aggregate in ROUNDED | RATIOS for measure in now.measures.values())
        version = view.version
        # An array that grew makes a version of views that grow with it, even if no cell came to them.
        if kept.version >= 0 and not rounded and kept.before == now.held:
            assert version == kept.version, (view.name, kept.step.text(), view.history().to_pylist()[-1])
        kept.version = version
        kept.before = now.held

    def check_history(self, view: Any, kept: Kept) -> None:
        """What is to be patched is patched."""
        rows = view.history().to_pylist()
        for row in rows[kept.lines :]:
            if kept.maintain in ("incremental", "strict") and row["planned"] == "rebuild":
                assert self.last in REBUILD or row["why"] == MOVED, (kept.step.text(), self.last, row)
        kept.lines = len(rows)

    def count(self, kept: Kept) -> None:
        self.tally.views[kept.kind] += 1
        self.tally.aggregates.update(kinds_of_aggregates(kept.step))
        self.tally.arrays.update(name for name in kept.step.bases() if name in ARRAYS)
        self.tally.settings.update([kept.maintain, kept.on_failure, *(["deferred"] if kept.deferred else [])])


class Views(Machine):
    """Changes as Hypothesis draws them: each is a rule."""


def _rule_of(change: Change) -> Any:
    def step(self: Machine, **given: Any) -> None:
        self.carry_out(change, given)

    step.__name__ = change.name.replace(" ", "_")
    return precondition(change.possible)(rule(**change.arguments)(step))


for _change in CHANGES.values():
    setattr(Views, f"do_{_change.name.replace(' ', '_')}", _rule_of(_change))


class Dealt(Machine):
    """Changes one after the other, so that none is rare in a short run; their arguments are drawn."""

    def __init__(self, place: int, **options: Any) -> None:
        super().__init__(**options)
        self.place = place
        """Where in the list of changes it begins."""

    @rule(data=st.data())
    def deal(self, data: Any) -> None:
        every = list(CHANGES.values())
        while not every[self.place % len(every)].possible(self):
            self.place += 1
        change = every[self.place % len(every)]
        self.place += 1
        self.carry_out(change, {name: data.draw(drawn, name) for name, drawn in change.arguments.items()})


@pytest.fixture(autouse=True)
def fixed_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small views are rebuilt too if a batch touches most of them, and no measured time has a say in it."""
    monkeypatch.setattr(cost, "FIXED_CELLS", 8.0)
    monkeypatch.setattr(cost, "FURTHEST", 1.0)


PHASES = (Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink)
TOGETHER = 4
"""Kinds of views to begin with."""


def run(machine: Callable[[], Machine], examples: int, steps: int) -> None:
    chosen = settings(
        max_examples=examples,
        stateful_step_count=steps,
        suppress_health_check=list(HealthCheck),
        deadline=None,
        phases=PHASES,
        report_multiple_bugs=False,
    )
    run_state_machine_as_test(machine, settings=chosen)


def run_every_kind(machine: Callable[[int, tuple[str, ...]], Machine], examples: int, steps: int) -> Tally:
    """Begin with some kinds of views after the other, so that all have the same share; a machine knows its number."""
    Machine.tally = Tally()
    kinds = list(KINDS)
    for number, start in enumerate(range(0, len(kinds), TOGETHER)):
        first = tuple((kinds + kinds)[start : start + TOGETHER])
        run(lambda number=number, first=first: machine(number, first), examples, steps)  # type: ignore[misc]
    print(Machine.tally)
    return Machine.tally


ROUNDS = -(-len(KINDS) // TOGETHER)


@pytest.mark.timeout(1200)
def test_in_process() -> None:
    Machine.tally = Tally()
    run(Views, examples=3, steps=6)
    print(Machine.tally)


@pytest.mark.slow
@pytest.mark.timeout(24 * 3600)
def test_ten_thousand_batches_through_the_store() -> None:
    examples = -(-STEPS * 5 // (4 * 40 * ROUNDS))  # Hypothesis ends some of them early
    tally = run_every_kind(lambda number, first: Views(first), examples, 40)
    assert tally.steps >= STEPS
    if STEPS >= ENOUGH:
        assert tally.least(ON_SPARK) >= 0.01, tally.shares(ON_SPARK)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(4 * 3600)
def test_three_hundred_batches_on_spark(spark_session: Any) -> None:
    options = {"engine": "spark", "spark": spark_session}
    tally = run_every_kind(lambda number, first: Dealt(10 * number, first=first, **options), examples=4, steps=10)
    assert tally.steps >= 300
    assert tally.least() >= 0.01, tally.shares()
