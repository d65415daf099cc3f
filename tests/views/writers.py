"""Processes that write to arrays with views on them, for tests that run several at once or kill them.

Every batch is a pure function of a seed and its number, so that whoever looks afterwards knows what each version holds.
"""

from __future__ import annotations

import random
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import windrow as wr
from crash_writer import Started

SIDE = 12
Line = dict[int, int]
ALL = "all"

VIEWS = {
    "V": "select count(*) as n, sum(R.v) as t from A L similarity join B R with shape Linf(1) group by L.i",
    "W": "select count(*) as n, sum(v) as t from A neighbours Linf(2)",
    "X": "select max(t) as m from W group by i",
    "Z": "select count(*) as n, sum(v) as t from B",
}


def connect(path: Path, lock_timeout: float = 120) -> Any:
    return wr.connect(path, engine="local", progress=False, lock_timeout=lock_timeout)


def create(database: Any) -> None:
    for name in ("A", "B"):
        database.create(name, f"<v: int64> [i=0:{SIDE - 1}:4]", sparse=True)
    for name, text in VIEWS.items():
        database.create_view(name, text)


def after(seed: int, number: int) -> tuple[Line, Line]:
    """Both arrays after a batch."""
    a: Line = {}
    b: Line = {}
    for k in range(1, number + 1):
        gone, new_a, new_b = change(seed, k)
        a = {i: v for i, v in a.items() if i % 4 != gone} | new_a
        b = {i: v for i, v in b.items() if i % 3 != gone} | new_b
    return a, b


def change(seed: int, number: int) -> tuple[int, Line, Line]:
    """What batch ``number`` deletes, and what it puts into both arrays; a mark at 0 says which batch was last."""
    choose = random.Random(f"{seed}/{number}")
    new_a = {i: choose.randrange(100) for i in choose.sample(range(1, SIDE), 4)}
    new_b = {i: choose.randrange(100) for i in choose.sample(range(1, SIDE), 4)}
    return choose.randrange(1, 4), new_a | {0: number}, new_b | {0: number}


def apply(database: Any, seed: int, number: int) -> None:
    gone, new_a, new_b = change(seed, number)
    with database.batch(f"batch-{number}") as batch:
        batch.delete("A", f"i % 4 = {gone}")
        batch.insert("A", {"i": list(new_a), "v": list(new_a.values())})
        batch.delete("B", f"i % 3 = {gone}")
        batch.insert("B", {"i": list(new_b), "v": list(new_b.values())})


def expected(seed: int, number: int) -> dict[str, dict[Any, Any]]:
    """Arrays and views after a batch, worked out without windrow."""
    a, b = after(seed, number)
    near = {i: [v for j, v in b.items() if abs(i - j) <= 1] for i in a}
    own = {i: [v for j, v in a.items() if abs(i - j) <= 2] for i in a}
    return {
        "A": a,
        "B": b,
        "V": {i: (len(found), sum(found)) for i, found in near.items() if found},
        "W": {i: (len(found), sum(found)) for i, found in own.items()},
        "X": {i: sum(found) for i, found in own.items()},
        "Z": {ALL: (len(b), sum(b.values()) if b else None)},
    }


def found(database: Any) -> dict[str, dict[Any, Any]]:
    """Arrays and views as windrow has them."""
    result: dict[str, dict[Any, Any]] = {}
    for name in ("A", "B", *VIEWS):
        array = database.view(name) if name in VIEWS else database.array(name)
        result[name] = by_cell(array.read())
    result["Z"] = {ALL: only(result["Z"])}
    return result


def only(cells: dict[Any, Any]) -> Any:
    """The one row of a grand total."""
    (row,) = cells.values()
    return row


def by_cell(table: Any) -> dict[Any, Any]:
    rows = table.to_pylist()
    values = [[value for name, value in row.items() if name != "i"] for row in rows]
    return {
        row.get("i"): value[0] if len(value) == 1 else tuple(value) for row, value in zip(rows, values, strict=True)
    }


def write_for_ever(channel: Connection, path: Path, seed: int) -> None:
    """Write batch after batch, saying of each that it begins, until killed."""
    database = connect(path)
    marks = by_cell(database.array("A").read())
    number = marks.get(0, 0)
    while True:
        number += 1
        channel.send(number)
        apply(database, seed, number)


def kill_inside_a_batch(path: Path, seed: int, choose: random.Random) -> int:
    """Start a writer and kill it at a random moment of a random batch; returns the number of that batch."""
    writer = Started(write_for_ever, path, seed)
    current: int = writer.next()
    for _ in range(choose.randrange(1, 3)):
        began = time.monotonic()
        current = writer.next()
    time.sleep((time.monotonic() - began) * choose.uniform(0, 1.2))
    writer.kill()
    while writer.channel.poll():
        try:
            current = writer.channel.recv()
        except EOFError:
            break
    return current


def insert_again_and_again(channel: Connection, path: Path, name: str, rounds: int) -> None:
    """In each round one cell, at the same place as the other writer's, when told to."""
    with connect(path) as database:
        channel.send("ready")
        for number in range(rounds):
            channel.recv()
            database.array(name).insert({"i": [number % SIDE], "v": [number]})
            channel.send(number)


def watch(channel: Connection, path: Path) -> None:
    """Join a base with its views again and again; report how many versions were seen, or what did not fit."""
    seen: set[int] = set()
    text = "select max(L.v) as v, max(R.n) as n, max(R.t) as t from A L similarity join W R with shape Linf(0)"
    text += " group by L.i"
    with connect(path) as database:
        query = database.query(text)
        channel.send("ready")
        while not channel.poll():
            rows = query.compute().to_pylist()
            cells = {row["i"]: row["v"] for row in rows}
            for row in rows:
                near = [v for j, v in cells.items() if abs(row["i"] - j) <= 2]
                if (row["n"], row["t"]) != (len(near), sum(near)):
                    channel.send(f"{row} does not fit {cells}")
                    return
            seen.add(cells.get(0, 0))
    channel.send(sorted(seen))
