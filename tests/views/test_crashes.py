"""A batch that ends between any two of its steps leaves arrays and views as they were, or all of it is there."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from windrow.operations.sparse import insert
from windrow.operations.sparse import patch as patching
from windrow.storage import catalog, transaction
from windrow.storage.dense.store import DenseStore
from windrow.storage.part_writing import PartWriter
from windrow.storage.sparse import SparseStore
from windrow.storage.transaction import Transaction
from windrow.views import maintain

from .kinds import KINDS
from .test_machine import Views
from .worlds import table

CRASHES = int(os.environ.get("WINDROW_VIEW_CRASHES", "500"))
STEPS: tuple[tuple[Any, str], ...] = (
    (Transaction, "working"),
    (insert, "write_parts"),
    (patching, "write_parts"),
    (patching, "mark_rows"),
    (PartWriter, "close"),
    (maintain, "bring"),
    (maintain, "find_change"),
    (transaction, "seal"),
    (SparseStore, "commit"),
    (DenseStore, "checksum"),
    (catalog, "publish_one"),
    (catalog, "enter_views"),
    (catalog.Catalog, "publish"),
)
"""What a batch does one after the other; it may die before and after each."""


class Died(BaseException):
    """The end of a process, as far as one test can play it: nothing that comes after is tidied up."""


@dataclass
class Fate:
    """At which step it ends, 0 being right after publishing; and whether the batch was published by then."""

    at: int
    steps: int = 0
    published: bool = False

    def wrap(self, step: Callable[..., Any], publishes: bool) -> Callable[..., Any]:
        def wrapped(*given: Any, **named: Any) -> Any:
            self._pass()
            found = step(*given, **named)
            self.published = self.published or publishes
            if publishes and self.at == 0:
                raise Died
            self._pass()
            return found

        return wrapped

    def _pass(self) -> None:
        self.steps += 1
        if self.steps == self.at:
            raise Died


@contextmanager
def dying(fate: Fate) -> Iterator[None]:
    with ExitStack() as stack:
        for owner, name in STEPS:
            publishes = owner is catalog.Catalog
            stack.enter_context(patch.object(owner, name, fate.wrap(getattr(owner, name), publishes)))
        # Files stay where they are; only the lock goes, as that of a dead process does.
        stack.enter_context(patch.object(Transaction, "close", Transaction._release_all))
        stack.enter_context(patch.object(SparseStore, "discard", lambda self, parts: None))
        stack.enter_context(patch.object(PartWriter, "abandon", lambda self: None))
        yield


class Crashing(Views):
    """Views whose writers die."""

    def crash(self, seed: int, at: int) -> bool:
        """A batch on three arrays that dies at a step; whether it did. Afterwards the database is opened anew."""
        random, before, fate = np.random.default_rng(seed), self.world.copy(), Fate(at)
        try:
            with dying(fate), self.database.batch() as batch:
                for name in ("S", "T"):
                    cells = self.some(random)
                    batch.insert(name, table(cells))
                    self.world.put(name, cells)
                batch.delete("T", "m > 1")
                self.world.delete("T", "m > 1")
                batch.update("D", {"m": "-m"}, "m > 1")
                self.world.update("D", (("m", "-m"),), "m > 1")
        except Died:
            if not fate.published:
                self.world = before
            self.reopen()
            return True
        return False


def run(crashes: int, seed: int) -> tuple[int, int]:
    """Crashes at random steps, on views of random kinds; how many there were, and how many after publishing."""
    done = after = 0
    while done < crashes:
        random = np.random.default_rng([seed, done])
        machine = Crashing()
        try:
            kinds = [str(kind) for kind in random.choice(list(KINDS), 3, replace=False)]
            machine.begin(int(random.integers(2**32)), kinds)
            machine.views_agree()
            for _ in range(min(10, crashes - done)):
                before = machine.world
                at = 0 if random.random() < 0.1 else int(random.integers(1, 160))
                if machine.crash(int(random.integers(2**32)), at):
                    done += 1
                    after += machine.world is before
                machine.views_agree()
        finally:
            machine.teardown()
    return done, after


def test_a_batch_dies_between_two_steps() -> None:
    assert run(2, seed=1)[0] == 2


def test_what_was_published_is_there_after_a_crash() -> None:
    machine = Crashing()
    try:
        machine.begin(7, ["neighbours", "group by", "left join"])
        world = machine.world
        assert machine.crash(8, at=0)
        assert machine.world is world
        machine.views_agree()
    finally:
        machine.teardown()


@pytest.mark.slow
@pytest.mark.timeout(6 * 3600)
def test_five_hundred_crashes() -> None:
    done, after = run(CRASHES, seed=2)
    print(f"{done} crashes, of which {after} after the batch was published")
