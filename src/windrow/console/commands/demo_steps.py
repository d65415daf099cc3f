"""What the demos have in common: steps that say how long they took, and arrays that are theirs to replace."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import click

from windrow.api.database import Database
from windrow.errors import SchemaError

MAKER = "windrow demo"


@dataclass
class Step:
    """What a step says of itself when it is done."""

    text: str = ""
    bytes: int = 0


@dataclass
class Steps:
    """Prints each step when it is done."""

    number: int = 0

    @contextmanager
    def timed(self, did: str) -> Iterator[Step]:
        step = Step()
        began = time.perf_counter()
        yield step
        took = time.perf_counter() - began
        self.number += 1
        speed = f", {step.bytes / 1e6 / took:,.0f} MB/s" if step.bytes else ""
        click.echo(f"{self.number}. {did:<15} {step.text}  [{took:.2f} s{speed}]")


def clear(db: Database, array: str, view: str) -> None:
    """Remove the array and the view that an earlier demo made, and nothing else."""
    for name in (array, view):
        if name in db and not _is_ours(db, name, array):
            raise SchemaError(
                f"the demo stores an array {name}, and the warehouse has one that is not the demo's",
                got=repr(db.array(name)),
                hint="Give the demo a warehouse of its own, as in --db demo-warehouse",
            )
    if view in db:
        db.drop_view(view) if view in {known.name for known in db.views()} else db.drop(view)
    if array in db:
        db.drop(array)


def _is_ours(db: Database, name: str, array: str) -> bool:
    if any(known.name == name for known in db.views()):
        return set(db.view(name).bases) == {array} and _is_ours(db, array, array)
    return any(of.get("source") == MAKER for of in db.array(name).metadata.values())
