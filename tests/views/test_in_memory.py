"""Rules and states alone, without a store: any sequence of changes leaves results as the oracle says."""

from __future__ import annotations

import os
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import windrow as wr
from windrow.views.definition import Definition

from .checking import assert_answer
from .definitions import STATELESS, TAKEN, Maker, kinds_of_aggregates
from .kinds import KINDS
from .memory import MemoryView
from .oracle import Step, Taken
from .worlds import BOX, CONDITIONS, SETS, World, drawn

BATCHES = int(os.environ.get("WINDROW_MEMORY_BATCHES", "100000"))
"""How many batches the slow test runs."""
KEPT = ("total", "group by", "having", "neighbours", "inner join", "left join", "join where", "stacked")
"""Kinds of views of which some have states."""
RUN = 25
"""Batches on one view."""
CHANGES = ("insert", "replace", "delete", "delete all", "update", "the same", "two arrays", "come and go")


def change(world: World, random: np.random.Generator) -> str:
    """One batch on the sparse arrays, by its name."""
    kind = str(random.choice(CHANGES, p=[0.3, 0.15, 0.15, 0.05, 0.15, 0.05, 0.1, 0.05]))
    name = str(random.choice(["S", "T"]))
    cells = world.sparse[name]
    condition = str(random.choice(list(CONDITIONS)))
    if kind in ("insert", "come and go", "two arrays"):
        for array in ("S", "T") if kind == "two arrays" else (name,):
            new = {BOX[k]: drawn(random) for k in random.permutation(len(BOX))[: random.integers(1, 8)]}
            gone = list(new)[:2] if kind == "come and go" else []
            world.sparse[array] = {
                place: row for place, row in (world.sparse[array] | new).items() if place not in gone
            }
    elif kind == "replace":
        world.sparse[name] = cells | {place: drawn(random) for place in list(cells)[:: int(random.integers(1, 4))]}
    elif kind == "update":
        world.update(name, list(SETS)[int(random.integers(len(SETS)))], condition)
    elif kind != "the same":
        world.delete(name, None if kind == "delete all" else condition)
    return kind


class KeptMaker(Maker):
    """Takes any aggregates that have a state, as often as one another."""

    def taken(self, array: str, around: bool = False) -> tuple[Taken, ...]:
        every = [one for name, group in TAKEN.items() if not (around and name == "expressions") for one in group]
        kept = {one.aggregate: [] for one in every if one.aggregate not in STATELESS}
        for one in every:
            if one.aggregate in kept:
                kept[one.aggregate].append(one)
        chosen = self.random.permutation(sorted(kept))[: int(self.random.integers(1, 4))]
        return tuple(self.one_of(kept[name]) for name in chosen)


def draw_view(random: np.random.Generator, engine: Any, world: World) -> tuple[str, Step, MemoryView]:
    """A view of the sparse arrays whose results are patched."""
    while True:
        kind = str(random.choice(KEPT))
        step = KINDS[kind](KeptMaker(random))
        if step.bases() <= {"S", "T"}:
            view = MemoryView(engine, Definition.of(step.text()), kind)
            with suppress(wr.SchemaError):  # a shape and a mapping that leave no pair possible
                if view.begin(world):
                    return kind, step, view


def run(engine: Any, batches: int, seed: int) -> dict[str, Counter[str]]:
    tallies: dict[str, Counter[str]] = {name: Counter() for name in ("views", "aggregates", "changes")}
    for number in range(-(-batches // RUN)):
        random = np.random.default_rng([seed, number])
        world = World()
        for name in ("S", "T"):
            world.sparse[name] = {place: drawn(random) for place in BOX if random.random() < 0.4}
        kind, step, view = draw_view(random, engine, world)
        for _ in range(RUN):
            tallies["changes"][change(world, random)] += 1
            tallies["views"][kind] += 1
            tallies["aggregates"].update(kinds_of_aggregates(step))
            view.follow(world)
            assert_answer(view, step.of(world.held()), (seed, number, step.text()))
    return tallies


def show(tallies: dict[str, Counter[str]]) -> None:
    for title, counted in tallies.items():
        total = sum(counted.values())
        parts = (f"{name} {100 * count / total:.1f} %" for name, count in counted.most_common())
        print(f"{title}: {', '.join(parts)}")


@pytest.fixture
def engine(tmp_path: Path) -> Any:
    with wr.connect(tmp_path / "warehouse", engine="local", progress=False) as database:
        yield database.engine


def test_rules_and_states(engine: Any) -> None:
    run(engine, 150, seed=1)


@pytest.mark.slow
@pytest.mark.timeout(12 * 3600)
def test_a_hundred_thousand_batches(engine: Any) -> None:
    tallies = run(engine, BATCHES, seed=2)
    print(f"{sum(tallies['changes'].values())} batches")
    show(tallies)
    if BATCHES >= 10_000:
        for counted in tallies.values():
            total = sum(counted.values())
            assert min(counted.values()) >= 0.01 * total, counted
        assert set(tallies["changes"]) == set(CHANGES)
        assert set(tallies["views"]) == set(KEPT)
