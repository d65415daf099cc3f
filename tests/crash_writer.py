"""Processes that write, for tests that kill them or run several at once.

Every batch is a pure function of a seed and its number, so that whoever looks afterwards knows what each version
holds: ``state(seed, k)`` is both arrays after batch ``k``, which is also their version.
"""

from __future__ import annotations

import functools
import itertools
import multiprocessing
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Literal

import numcodecs.blosc
import numpy as np
import pyarrow as pa
import sqlalchemy as sa

import windrow as wr

USED = [
    "windrow.api.database",
    "windrow.api.transfer",
    "windrow.api.saving",
    "windrow.api.session.statements",
    "windrow.language.parser",
    "windrow.operations.collect",
    "windrow.operations.join.build",
    "windrow.operations.sparse.insert",
    "windrow.operations.sparse.rewrite",
    "windrow.formats.netcdf",
    "windrow.formats.parquet",
    "windrow.kernels.sparse.bands",
    "windrow.views.known",
    "deltalake",
    "sqlite3",
    "xarray",
]
"""What writers and readers would otherwise import one after the other, each of a thousand."""

# Made when it is first used; the processes forked from one that has it do not each leave one behind when killed.
numcodecs.blosc.get_mutex()

SIDE = 16
DENSE = f"<a: int64, b: int32 null> [i=1:{SIDE}:4, j=1:{SIDE}:4]"
SPARSE = f"<v: int64> [x=1:{SIDE}:3, y=1:{SIDE}:3]"

Heavy = Literal["dense", "sparse", "mixed"]


@dataclass(frozen=True)
class State:
    """The contents of the dense array ``D`` and of the sparse array ``S``, whose empty cells hold None."""

    a: Any
    b: Any
    v: Any


@dataclass(frozen=True)
class Plan:
    """What batches do: the seed of their choices, and which array gets most of the work."""

    seed: int
    heavy: Heavy = "mixed"

    def choices(self, number: int) -> random.Random:
        return random.Random(f"{self.seed}/{number}")

    def kind(self, number: int) -> str:
        return self.choices(number).choices(["write", "update", "delete", "compact"], [8, 2, 2, 1])[0]

    def box(self, number: int, heavy: Heavy) -> tuple[int, int, int, int]:
        """First and last row and column of what a batch writes: nearly all of the array that is heavy."""
        choose = self.choices(number)
        largest = 3 if self.heavy in (heavy, "mixed") else SIDE - 5
        top, left = choose.randrange(1, 4), choose.randrange(1, 4)
        return top, SIDE - choose.randrange(largest), left, SIDE - choose.randrange(largest)


def create(database: wr.Database) -> None:
    database.create("D", DENSE)
    database.create("S", SPARSE, sparse=True)


def apply(database: wr.Database, plan: Plan, number: int) -> None:
    """Do batch ``number``: one change to each array, under the batch's own id."""
    kind = plan.kind(number)
    with database.batch(f"batch-{number}") as batch:
        top, bottom, left, right = plan.box(number, "dense")
        if kind == "compact":
            batch.compact("D")
            batch.compact("S")
            return
        if kind == "update":
            batch.update("D", {"a": "a + 1000", "b": "null"}, where=f"i >= {top} and j <= {right}")
            batch.update("S", {"v": "v + 1000"}, where=f"x >= {top} and y <= {right}")
            return
        shape = (bottom - top + 1, right - left + 1)
        batch.write("D", {"a": np.full(shape, number), "b": np.full(shape, -number)}, at=(top, left))
        if kind == "delete":
            batch.delete("S", where=f"x <= {bottom} and y >= {left}")
        else:
            batch.insert("S", cells(plan.box(number, "sparse"), number))


def cells(box: tuple[int, int, int, int], value: int) -> pa.Table:
    x, y = np.mgrid[box[0] : box[1] + 1, box[2] : box[3] + 1].reshape(2, -1)
    return pa.table({"x": x, "y": y, "v": np.full(len(x), value)})


@functools.cache
def state(plan: Plan, number: int) -> State:
    """What the arrays hold after batch ``number``, worked out without windrow."""
    empty = np.full((SIDE, SIDE), None)
    if number == 0:
        return State(np.zeros((SIDE, SIDE), np.int64), empty, empty)
    before = state(plan, number - 1)
    a, b, v = before.a.copy(), before.b.copy(), before.v.copy()
    kind = plan.kind(number)
    top, bottom, left, right = plan.box(number, "dense")
    rows, columns = np.mgrid[1 : SIDE + 1, 1 : SIDE + 1]
    if kind == "update":
        chosen = (rows >= top) & (columns <= right)
        a[chosen] += 1000
        b[chosen] = None
        chosen &= v != None  # noqa: E711 - element by element
        v[chosen] += 1000
    elif kind != "compact":
        a[top - 1 : bottom, left - 1 : right] = number
        b[top - 1 : bottom, left - 1 : right] = -number
        if kind == "delete":
            v[(rows <= bottom) & (columns >= left)] = None
        else:
            up, down, first, last = plan.box(number, "sparse")
            v[up - 1 : down, first - 1 : last] = number
    return State(a, b, v)


def content(database: wr.Database, number: int | None = None) -> State:
    """What windrow says the arrays hold, now or at a version."""
    suffix = "" if number is None else f"@{number}"
    dense = database.array(f"D{suffix}").read()
    b = dense["b"].values.astype(object)
    b[~dense["b__valid"].values] = None
    v = np.full((SIDE, SIDE), None)
    table = database.array(f"S{suffix}").read()
    v[table["x"].to_numpy() - 1, table["y"].to_numpy() - 1] = table["v"].to_pylist()
    return State(dense["a"].values, b, v)


def write_for_ever(channel: Connection, path: Path, plan: Plan, engine: str) -> None:
    """Write batch after batch, saying of each that it begins, until killed."""
    database = wr.connect(path, engine=engine, workers=2, progress=False)
    number = database.array("D").version
    while True:
        number += 1
        channel.send(number)
        apply(database, plan, number)


def die_at_commit(channel: Connection, path: Path, plan: Plan, number: int, commit: int) -> None:
    """Do batch ``number``, and die just before the catalog commits for the ``commit``-th time."""
    database = wr.connect(path, engine="local", progress=False)
    left = itertools.count(commit, -1)

    def count_down(_: object) -> None:
        if next(left) == 1:
            os.kill(os.getpid(), signal.SIGKILL)

    sa.event.listen(database.catalog._writer, "commit", count_down)
    apply(database, plan, number)
    channel.send("survived")


def increment(channel: Connection, path: Path, array: str, times: int, own: int) -> None:
    """Add 1 to every cell of ``array`` some times; into the sparse array ``S`` insert a cell each time."""
    with wr.connect(path, engine="local", progress=False, lock_timeout=120) as database:
        channel.send("ready")
        for step in range(times):
            with database.batch() as batch:
                batch.update(array, {"a": "a + 1"})
                batch.insert("S", {"x": [own], "y": [step + 1], "v": [own]})
    channel.send("done")


def hold(channel: Connection, path: Path, array: str) -> None:
    """Hold the lock of ``array`` until told to let go, after writing what must not be seen."""
    with wr.connect(path, engine="local", progress=False) as database, database.batch() as batch:
        batch.update(array, {"a": "a + 1"})
        channel.send("held")
        channel.recv()
    channel.send("released")


def watch(channel: Connection, path: Path, plan: Plan) -> None:
    """Read both arrays as of one moment again and again; report how often, or what did not fit."""
    seen: set[int] = set()
    with wr.connect(path, engine="local", progress=False) as database:
        channel.send("ready")
        while not channel.poll():
            number = database.array("D").version
            other = database.array("S").version
            if other < number:
                channel.send(f"D is at version {number}, and S, asked later, at {other}")
                return
            if not same(content(database, number), state(plan, number)):
                channel.send(f"version {number} does not hold what its batch wrote")
                return
            seen.add(number)
    channel.send(sorted(seen))


def same(one: State, other: State) -> bool:
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in ("a", "b", "v"))


context = multiprocessing.get_context("forkserver")


@functools.cache
def start_server() -> None:
    """Start the process from which the others are forked, which has imported everything and used nothing.

    Forked from it they begin in milliseconds. It finds its modules by ``PYTHONPATH`` alone.
    """
    context.set_forkserver_preload([__name__, *USED])
    stated = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    try:
        forkserver.ensure_running()
    finally:
        os.environ.pop("PYTHONPATH")
        if stated is not None:
            os.environ["PYTHONPATH"] = stated


class Started:
    """A process of its own that runs one of the functions above, with a channel to it."""

    def __init__(self, function: Callable[..., None], *arguments: object) -> None:
        start_server()
        self.channel, theirs = context.Pipe()
        self.process = context.Process(target=function, args=(theirs, *arguments), daemon=True)
        self.process.start()
        theirs.close()

    def kill(self) -> None:
        """SIGKILL: no handler runs, nothing is tidied up."""
        pid = self.process.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        self.process.join()

    def next(self, seconds: float = 120) -> Any:
        """What the process says next."""
        if not self.channel.poll(seconds):
            raise AssertionError(f"the process said nothing for {seconds} s")
        return self.channel.recv()


def kill_inside_a_batch(path: Path, plan: Plan, choose: random.Random, engine: str = "local") -> int:
    """Start a writer and kill it at a random moment of a random batch; returns the number of that batch.

    The moment is drawn from the time that the batch before it took, so that most kills land inside a write.
    """
    writer = Started(write_for_ever, path, plan, engine)
    first = writer.next()
    current = first
    for _ in range(choose.randrange(1, 3)):
        began = time.monotonic()
        current = writer.next()
    usual = time.monotonic() - began
    time.sleep(usual * choose.uniform(0, 1.2))
    writer.kill()
    while writer.channel.poll():
        try:
            current = writer.channel.recv()
        except EOFError:
            break
    return current


def read_lazily(channel: Connection, path: Path, dense: str, sparse: str) -> None:
    """Open arrays, and read them only when told to."""
    with wr.connect(path, engine="local", progress=False) as database:
        values, cells = database.array(dense).to_xarray(), database.array(sparse).batches()
        channel.send("held")
        channel.recv()
        read = [value for table in cells for value in table["v"].to_pylist()]
        channel.send([values["a"].values.tolist(), read])
        channel.recv()


def make_for_ever(channel: Connection, path: Path) -> None:
    """Make and fill an array, and never publish it."""
    with wr.connect(path, engine="local", progress=False) as database, database.batch() as batch:
        batch.create("B", "<b: int64> [i=1:2]")
        batch.write("B", [1, 2])
        channel.send("made")
        channel.recv()
