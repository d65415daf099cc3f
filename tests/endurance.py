"""Processes for tests that go on for minutes: writers that are killed at any moment, and readers beside them.

``World`` is what a warehouse should hold, worked out without windrow: the arrays D and S always hold one value in all
their cells, the same in both, the array G has slices that each hold their label, and every other array holds one value
in all of its own.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import windrow as wr
from windrow.errors import ConflictError, UnknownNameError

CELLS = 24
ACROSS = 3
"""Cells of a slice of G."""
MOST_SLICES = 80
MOST_OTHERS = 10
PAUSE = 0.2
"""Seconds between two looks of a reader, so that those who write get on with it."""
KINDS = {
    "write": 6,
    "delete": 3,
    "update": 3,
    "append": 2,
    "late slice": 2,
    "compact": 1,
    "collect": 2,
    "create as": 3,
    "store": 2,
    "import": 3,
    "import table": 2,
    "again": 2,
    "drop": 3,
}
JOINED = "select D.a as a, S.v as v from D similarity join S on D.i = S.x with shape L1(0)"


@dataclass(frozen=True)
class World:
    """The value of D and S, and of each other array, and the labels of G's slices."""

    value: int = 0
    others: dict[str, int] = field(default_factory=dict)
    slices: tuple[int, ...] = (0,)

    def after(self, kind: str, number: int, name: str) -> World:
        """What there is after a piece of work on the array of a name; a slice is named by its label."""
        if kind in ("write", "delete"):
            return replace(self, value=number)
        if kind in ("append", "late slice"):
            return replace(self, slices=tuple(sorted((*self.slices, int(name)))))
        if kind == "update":
            return replace(self, value=self.value + 1000)
        if kind == "drop":
            return replace(self, others={key: value for key, value in self.others.items() if key != name})
        if kind in ("create as", "store"):
            return replace(self, others={**self.others, name: self.value})
        if kind in ("import", "import table", "again"):
            return replace(self, others={**self.others, name: 7})
        return self


def connect(path: Path, **options: Any) -> wr.Database:
    """The warehouse beside which a file may say where its catalog is."""
    address = path / "catalog"
    catalog = address.read_text() if address.exists() else None
    return wr.connect(path / "w", engine="local", progress=False, catalog=catalog, **options)


def prepare(path: Path) -> None:
    with connect(path) as database:
        with database.batch() as batch:
            batch.create("D", f"<a: int64> [i=1:{CELLS}:5]")
            batch.create("S", f"<v: int64> [x=1:{CELLS}:5]", sparse=True)
            batch.create("F", f"<a: int64> [i=1:{CELLS}:5]")
            batch.create("G", f"<a: int64> [t=1:*:4, i=1:{ACROSS}:2]")
            batch.append("G", np.zeros((1, ACROSS), np.int64), labels=[0])
            batch.write("F", np.full(CELLS, 7))
            batch.insert("S", {"x": np.arange(1, CELLS + 1), "v": np.zeros(CELLS, np.int64)})
        database.export_file("F", path / "seven.nc")
        database.drop("F")
    pq.write_table(pa.table({"i": np.arange(1, CELLS + 1), "a": np.full(CELLS, 7)}), path / "seven.parquet")


def look(database: wr.Database) -> World:
    """What a warehouse holds; an AssertionError if anything is seen in part."""
    for _ in range(50):
        try:
            cells = database.query(JOINED).compute()
            values = set(cells["a"].to_pylist()) | set(cells["v"].to_pylist())
            assert len(values) == 1, values
            assert cells.num_rows == CELLS, cells.num_rows
            others = {}
            for array in database.arrays():
                if array.name not in ("D", "S", "G"):
                    cells = np.asarray(array.read()["a"])
                    found = np.unique(cells)
                    assert (len(found), cells.size) == (1, CELLS), (array.name, found, cells.size)
                    assert array.version == 1 or array.name.startswith("I"), (array.name, array.version)
                    others[array.name] = int(found[0])
            return World(values.pop(), others, look_at_slices(database))
        except UnknownNameError:  # dropped while we looked
            continue
    raise AssertionError("arrays are dropped faster than they can be read")


def look_at_slices(database: wr.Database) -> tuple[int, ...]:
    """The labels of G, in their order, each in all cells of its slice."""
    found = database.array("G").read()["a"]
    labels = [int(label) for label in found["t"].values]
    assert found.values.tolist() == [[label] * ACROSS for label in labels], found
    assert labels == sorted(labels), labels
    return tuple(labels)


def work(database: wr.Database, path: Path, kind: str, number: int, name: str) -> None:
    """One piece of work."""
    if kind == "write":
        with database.batch(f"batch {number}") as batch:
            batch.write("D", np.full(CELLS, number))
            batch.insert("S", {"x": np.arange(1, CELLS + 1), "v": np.full(CELLS, number)})
    elif kind == "delete":
        with database.batch(f"batch {number}") as batch:
            batch.delete("S", "x % 2 = 0 or x > 20")
            batch.write("D", np.full(CELLS, number))
            batch.insert("S", {"x": np.arange(1, CELLS + 1), "v": np.full(CELLS, number)})
            batch.delete("S", "v < 0")
    elif kind in ("append", "late slice"):
        values = np.full((1, ACROSS), int(name))
        database.array("G").append(values, labels=[int(name)], batch=f"batch {number}")
    elif kind == "update":
        with database.batch(f"batch {number}") as batch:
            batch.update("D", {"a": "a + 1000"})
            batch.update("S", {"v": "v + 1000"})
    elif kind == "compact":
        with database.batch() as batch:
            batch.compact("D")
            batch.compact("S")
    elif kind == "collect":
        database.collect_garbage(keep_versions=2)
    elif kind == "create as":
        database.query(f"create array {name} as select a from D")
    elif kind == "store":
        database.array("D").window(i=1).agg(a=wr.max("a")).store(name)
    elif kind == "import table":
        database.import_file(path / "seven.parquet", name, dimensions=["i"])
    elif kind in ("import", "again"):
        database.import_file(path / "seven.nc", name)
    else:
        database.drop(name)


def choose(world: World, choices: random.Random, number: int) -> tuple[str, str]:
    """What to do next, and to which other array."""
    kind = choices.choices(list(KINDS), list(KINDS.values()))[0]
    imported = [name for name in world.others if name.startswith("I")]
    if kind == "again" and not imported:
        kind = "import"
    if kind == "drop" and len(world.others) < 3:
        kind = "store"
    if kind in ("create as", "store", "import", "import table") and len(world.others) >= MOST_OTHERS:
        kind = "drop"  # every look reads all of them
    if kind in ("append", "late slice") and len(world.slices) >= MOST_SLICES:  # what is late moves all behind it
        kind = "write"
    if kind == "append":
        return kind, str(2 * number)  # even, and larger than those before
    if kind == "late slice":
        return kind, str(late_label(world.slices, choices, number))
    if kind == "again":
        return kind, choices.choice(imported)
    if kind == "drop":
        return kind, choices.choice(sorted(world.others))
    return kind, f"{'I' if kind == 'import' else 'T' if kind == 'import table' else 'C'}{number}"


def late_label(slices: tuple[int, ...], choices: random.Random, number: int) -> int:
    """A label between two of G's slices, or before all of them."""
    between = choices.choice(slices) + 1
    return between if between not in slices and between < slices[-1] else -number


def write_until_killed(channel: Connection, path: Path, world: World, seed: str, number: int) -> None:
    """Do one piece of work after the other, saying what is begun and what is done."""
    choices = random.Random(seed)
    with connect(path) as database:
        while True:
            kind, name = choose(world, choices, number)
            channel.send(("begun", kind, number, name))
            work(database, path, kind, number, name)
            world = world.after(kind, number, name)
            channel.send(("done", kind, number, name))
            number += 1


def watch(channel: Connection, path: Path) -> None:
    """Look again and again, until told to stop; say how often, or what was wrong."""
    looks = 0
    try:
        with connect(path) as database:
            channel.send("ready")
            while not channel.poll(PAUSE):
                look(database)
                looks += 1
        channel.send(looks)
    except BaseException as error:
        channel.send(f"after {looks} looks: {type(error).__name__}: {error}")


# Four writers and four readers


ACCOUNTS = ("A", "B", "C")
TOTAL = 3 * 1000 * CELLS
ALL = (
    "select sum(A.v + B.v + C.v) as total, count(*) as n from A similarity join B on A.x = B.x with shape L1(0) "
    "similarity join C on A.x = C.x with shape L1(0)"
)


def open_accounts(path: Path) -> None:
    with connect(path) as database, database.batch() as batch:
        for name in ACCOUNTS:
            batch.create(name, f"<v: int64> [x=1:{CELLS}:5]", sparse=name != "B")
            cells = {"x": np.arange(1, CELLS + 1), "v": np.full(CELLS, 1000)}
            batch.insert(name, cells)


def transfer_until(channel: Connection, path: Path, seed: int, seconds: float, timeout: float) -> None:
    """Move amounts between arrays, two at a time, in any order; say how many, how many not, and the longest wait."""
    choices = random.Random(seed)
    moved = refused = 0
    longest = 0.0
    try:
        with connect(path, lock_timeout=timeout) as database:
            channel.send("ready")
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                began = time.monotonic()
                try:
                    if choices.random() < 0.05:
                        database.collect_garbage(keep_versions=3)
                    else:
                        transfer(database, choices, f"{seed}/{moved + refused}")
                    moved += 1
                except ConflictError:
                    refused += 1
                longest = max(longest, time.monotonic() - began)
        channel.send((moved, refused, longest))
    except BaseException as error:
        channel.send(f"after {moved} transfers: {type(error).__name__}: {error}")


def transfer(database: wr.Database, choices: random.Random, identity: str) -> None:
    one, other = choices.sample(ACCOUNTS, 2)
    amount, cell = choices.randrange(1, 50), choices.randrange(1, CELLS + 1)
    with database.batch(identity) as batch:
        batch.update(one, {"v": f"v - {amount}"}, where=f"x = {cell}")
        batch.update(other, {"v": f"v + {amount}"}, where=f"x = {cell}")


def audit(channel: Connection, path: Path) -> None:
    """Add everything up again and again, until told to stop; say how often, or what was wrong."""
    looks = 0
    try:
        with connect(path) as database:
            channel.send("ready")
            while not channel.poll():
                found: Any = database.query(ALL).compute()
                assert (found["total"].to_pylist(), found["n"].to_pylist()) == ([TOTAL], [CELLS]), found
                looks += 1
        channel.send(looks)
    except BaseException as error:
        channel.send(f"after {looks} looks: {type(error).__name__}: {error}")
