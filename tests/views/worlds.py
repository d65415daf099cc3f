"""Two sparse arrays and a growing dense one as plain dictionaries, changed in step with those of a warehouse."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from join_oracle import Dimension, Held

from .definitions import SCHEMAS, STORED_SHAPE

Place = tuple[int, int]
Values = dict[str, Any]
FIELDS = pa.schema(
    [
        ("i", pa.int64()),
        ("j", pa.int64()),
        ("x", pa.float64()),
        ("c", pa.int64()),
        ("m", pa.int32()),
        ("s", pa.string()),
    ]
)
BOX = [(i, j) for i in range(6) for j in range(-2, 4)]
WIDTH = 3
EPOCH = datetime(2012, 1, 1)
WORDS = ("ä", "b", "", "b b")
CONDITIONS: dict[str, Callable[[Values], bool]] = {
    "m > 1": lambda row: row["m"] > 1,
    "c is null": lambda row: row["c"] is None,
    "x > 1": lambda row: row["x"] is not None and row["x"] > 1,
    "m % 2 = 0 and c > 0": lambda row: row["m"] % 2 == 0 and row["c"] is not None and row["c"] > 0,
    "m > 1000": lambda row: False,
}
"""Over attributes that all arrays have."""
SETS: dict[tuple[tuple[str, str], ...], Callable[[Values], Values]] = {
    (("m", "-m"),): lambda row: {"m": -row["m"]},
    (("c", "c + 1"),): lambda row: {"c": None if row["c"] is None else row["c"] + 1},
    (("c", "null"), ("x", "x * 2")): lambda row: {"c": None, "x": None if row["x"] is None else row["x"] * 2},
    (("x", "null"),): lambda row: {"x": None},
    (("m", "m"),): lambda row: {},
}


def drawn(random: np.random.Generator, dense: bool = False) -> Values:
    """A cell's attributes: ties, missing ones, infinities and spikes among them."""
    x: float | None = float(random.choice([0.1, 0.2, 1.5, -2.25, 3.0, 1e9]))
    if random.random() < 0.15:
        x = float(random.choice([math.inf, -math.inf, math.nan, 1e16, -1e16, 1e30]))
    found: Values = {
        "x": None if x != x else x,
        "c": None if random.random() < 0.2 else int(random.integers(-3, 6)),
        "m": int(random.integers(-3, 4)),
    }
    return found if dense else found | {"s": None if random.random() < 0.2 else str(random.choice(WORDS))}


def table(cells: dict[Place, Values]) -> pa.Table:
    return pa.Table.from_pylist([{"i": i, "j": j, **row} for (i, j), row in cells.items()], FIELDS)


def blocks(rows: Sequence[Sequence[Values]]) -> dict[str, Any]:
    flat = [one for row in rows for one in row]
    shape = (len(rows), len(rows[0]))
    return {
        "x": np.array([math.nan if one["x"] is None else one["x"] for one in flat]).reshape(shape),
        "c": np.ma.array(
            [one["c"] or 0 for one in flat], mask=[one["c"] is None for one in flat], dtype=np.int64
        ).reshape(shape),
        "m": np.array([one["m"] for one in flat], np.int32).reshape(shape),
    }


def labels(days: Sequence[int]) -> Any:
    return np.array([np.datetime64("2012-01-01") + day for day in days], "M8[us]")


@dataclass
class World:
    """What the arrays hold."""

    sparse: dict[str, dict[Place, Values]] = field(default_factory=lambda: {"S": {}, "T": {}})
    days: list[int] = field(default_factory=list)
    """The labels of the dense array's slices."""
    slices: list[list[Values]] = field(default_factory=list)
    offsets: set[Place] = field(default_factory=set)
    """The cells of the array that is a shape."""

    def copy(self) -> World:
        return World(
            {name: dict(cells) for name, cells in self.sparse.items()},
            list(self.days),
            [list(row) for row in self.slices],
            set(self.offsets),
        )

    def held(self) -> dict[str, Held]:
        """As the oracle takes them."""
        plane = (Dimension("i", 0, 5), Dimension("j", -2, 3))
        times = {t: EPOCH + timedelta(day) for t, day in enumerate(self.days, 1)}
        field_ = (Dimension("t", 1, len(self.days), labels=times), Dimension("y", 0, WIDTH - 1))
        dense = {(t, y): one for t, row in enumerate(self.slices, 1) for y, one in enumerate(row)}
        around = (Dimension("i", -2, 2), Dimension("j", -2, 2))
        offsets = {place: {"flag": True} for place in sorted(self.offsets)}
        found = {name: Held(plane, cells) for name, cells in self.sparse.items()}
        return found | {"D": Held(field_, dense), STORED_SHAPE: Held(around, offsets)}

    def update(self, name: str, sets: tuple[tuple[str, str], ...], condition: str | None) -> None:
        """Rows are made anew, never changed: answers that were worked out before hold some of them."""

        def changed(row: Values) -> Values:
            return row | SETS[sets](row) if condition is None or CONDITIONS[condition](row) else row

        if name == "D":
            self.slices = [[changed(one) for one in row] for row in self.slices]
        else:
            self.sparse[name] = {place: changed(row) for place, row in self.sparse[name].items()}

    def delete(self, name: str, condition: str | None) -> None:
        kept = {} if condition is None else {p: r for p, r in self.sparse[name].items() if not CONDITIONS[condition](r)}
        self.sparse[name] = kept

    def put_slice(self, day: int, row: list[Values]) -> None:
        """Where it belongs by its label, in the place of one that has the same."""
        if day in self.days:
            self.slices[self.days.index(day)] = row
            return
        place = sum(known < day for known in self.days)
        self.days.insert(place, day)
        self.slices.insert(place, row)


def create(database: Any, world: World, random: np.random.Generator) -> None:
    for name in ("S", "T"):
        database.create(name, SCHEMAS[name], sparse=True)
        world.sparse[name] = {place: drawn(random) for place in BOX if random.random() < 0.4}
        if world.sparse[name]:
            database.array(name).insert(table(world.sparse[name]))
    database.create("D", SCHEMAS["D"])
    world.days = [0, 1, 4]
    world.slices = [[drawn(random, True) for _ in range(WIDTH)] for _ in world.days]
    database.array("D").append(blocks(world.slices), labels={"t": labels(world.days)})
    world.offsets = {(0, 0), (1, -1)}
    database.create(STORED_SHAPE, SCHEMAS[STORED_SHAPE], sparse=True)
    database.array(STORED_SHAPE).insert({"i": [0, 1], "j": [0, -1], "flag": [True, True]})
