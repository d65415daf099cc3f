"""Sparse arrays and a growing dense one as plain dictionaries, changed in step with those of a warehouse."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from join_oracle import Dimension, Held

from .definitions import (
    CHUNKS,
    DIMENSIONS,
    GRIDS,
    GROWING,
    NUMBERED,
    NUMBERS,
    SCHEMAS,
    SKY,
    SPARSE,
    STORED_SHAPE,
    every_dimension,
)

Place = tuple[int, ...]
Values = dict[str, Any]
TYPES = {"x": pa.float64(), "c": pa.int64(), "m": pa.int32(), "s": pa.string()}
EVERY_SPARSE = (*SPARSE, GROWING, NUMBERED, *SKY)
BOX = [(i, j) for i in range(6) for j in range(-2, 4)]
NUMBERED_BOX = [(i, j) for i in range(3) for j in range(-1, 2)]
LAST_NUMBER = 19
LONGEST = 12
"""How far the sparse array grows."""
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


def table(cells: dict[Place, Values], name: str = "S") -> pa.Table:
    """Cells by their places in an array."""
    names = every_dimension(name)
    return as_table([dict(zip(names, place, strict=True)) | row for place, row in cells.items()], names)


def as_table(rows: Sequence[Values], names: Sequence[str], type: pa.DataType | None = None) -> pa.Table:
    """Rows whose coordinates are integers, or of another type."""
    fields = [(name, type or pa.int64()) for name in names] + list(TYPES.items())
    return pa.Table.from_pylist(list(rows), pa.schema(fields))


def drawn_points(random: np.random.Generator, most: int = 8) -> list[Values]:
    """Around a pole, across 0 degrees or anywhere, and never on the border of two cells."""
    found = []
    for _ in range(int(random.integers(1, most))):
        ra, dec = random.normal(0, 15) % 360, random.normal(0, 10)
        kind = random.random()
        if kind < 0.35:
            ra, dec = random.uniform(0, 360), 90 - random.exponential(8)
        elif kind < 0.5:
            ra, dec = random.uniform(0, 360), random.uniform(-89, 89)
        found.append({"ra": int(ra * 100 % 36000) / 100 + 0.001, "dec": int(dec * 100) / 100 - 0.001} | drawn(random))
    return found


def drawn_twins(random: np.random.Generator, most: int = 8) -> list[Values]:
    """Several may lie at one place."""
    places = [NUMBERED_BOX[int(random.integers(len(NUMBERED_BOX)))] for _ in range(int(random.integers(1, most)))]
    return [{"i": i, "j": j} | drawn(random) for i, j in places]


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

    sparse: dict[str, dict[Place, Values]] = field(default_factory=lambda: {name: {} for name in EVERY_SPARSE})
    reach: dict[str, int] = field(default_factory=lambda: {GROWING: 0} | dict.fromkeys(SKY, -1))
    """How far what grows has grown, which it does not take back."""
    days: list[int] = field(default_factory=list)
    """The labels of the dense array's slices."""
    slices: list[list[Values]] = field(default_factory=list)
    offsets: set[Place] = field(default_factory=set)
    """The cells of the array that is a shape."""

    def copy(self) -> World:
        return World(
            {name: dict(cells) for name, cells in self.sparse.items()},
            dict(self.reach),
            list(self.days),
            [list(row) for row in self.slices],
            set(self.offsets),
        )

    def held(self) -> dict[str, Held]:
        """As the oracle takes them."""
        plane = (Dimension("i", 0, 5), Dimension("j", -2, 3))
        dimensions = dict.fromkeys(SPARSE, plane) | {
            GROWING: (Dimension("t", 1, self.reach[GROWING]), plane[1]),
            NUMBERED: (Dimension("i", 0, 2), Dimension("j", -1, 1), Dimension("n", 0, LAST_NUMBER, numbering=True)),
        }
        for name in SKY:
            ends = (("ra", 360 // GRIDS[name]), ("dec", 180 // GRIDS[name]))
            placed = tuple(Dimension(axis, 1, hi) for axis, hi in ends)
            dimensions[name] = (*placed, Dimension("n", 0, self.reach[name], numbering=True))
        times = {t: EPOCH + timedelta(day) for t, day in enumerate(self.days, 1)}
        field_ = (Dimension("t", 1, len(self.days), labels=times), Dimension("y", 0, WIDTH - 1))
        dense = {(t, y): one for t, row in enumerate(self.slices, 1) for y, one in enumerate(row)}
        around = (Dimension("i", -2, 2), Dimension("j", -2, 2))
        offsets = {place: {"flag": True} for place in sorted(self.offsets)}
        found = {name: Held(dimensions[name], cells) for name, cells in self.sparse.items()}
        return found | {"D": Held(field_, dense), STORED_SHAPE: Held(around, offsets)}

    def put(self, name: str, cells: dict[Place, Values]) -> None:
        """Cells come to a sparse array, in the place of those that are there."""
        self.sparse[name] = self.sparse[name] | cells
        if name in self.reach and cells:
            axis = every_dimension(name).index(NUMBERS.get(name, "t"))
            self.reach[name] = max(self.reach[name], *(place[axis] for place in cells))

    def keep(self, name: str, rows: Sequence[Values]) -> None:
        """Cells come beside those that are there: each gets the number after the last at its place."""
        for row in rows:
            values = {key: value for key, value in row.items() if key in TYPES}
            place = tuple(row[axis] for axis in DIMENSIONS[name])
            if name in SKY:
                values |= {"ra_exact": row["ra"], "dec_exact": row["dec"]}
                place = int(row["ra"] // GRIDS[name]) + 1, int((row["dec"] + 90) // GRIDS[name]) + 1
            self.put(name, {(*place, self.next_number(name, place)): values})

    def next_number(self, name: str, place: Place) -> int:
        return 1 + max((cell[-1] for cell in self.sparse[name] if cell[:-1] == place), default=-1)

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
    for name in SPARSE:
        database.create(name, SCHEMAS[name], sparse=True)
        world.put(name, {place: drawn(random) for place in BOX if random.random() < 0.4})
        if world.sparse[name]:
            database.array(name).insert(table(world.sparse[name]))
    database.create("D", SCHEMAS["D"])
    world.days = [0, 1, 4]
    world.slices = [[drawn(random, True) for _ in range(WIDTH)] for _ in world.days]
    database.array("D").append(blocks(world.slices), labels={"t": labels(world.days)})
    database.create(GROWING, SCHEMAS[GROWING], sparse=True)
    world.put(GROWING, {(t, j): drawn(random) for t, j in BOX if 0 < t < 4 and random.random() < 0.4})
    if world.sparse[GROWING]:
        database.array(GROWING).insert(table(world.sparse[GROWING], GROWING))
    _create_numbered(database, world, random)
    world.offsets = {(0, 0), (1, -1)}
    database.create(STORED_SHAPE, SCHEMAS[STORED_SHAPE], sparse=True)
    database.array(STORED_SHAPE).insert({"i": [0, 1], "j": [0, -1], "flag": [True, True]})


def _create_numbered(database: Any, world: World, random: np.random.Generator) -> None:
    database.create(NUMBERED, SCHEMAS[NUMBERED], sparse=True)
    twins = drawn_twins(random)
    database.array(NUMBERED).insert(as_table(twins, DIMENSIONS[NUMBERED]), on_duplicate="keep")
    world.keep(NUMBERED, twins)
    for name in SKY:
        step = f"{GRIDS[name]} deg"
        database.create(name, SCHEMAS[name], grid={"ra": (0, 360, step), "dec": (-90, 90, step)}, chunks=CHUNKS)
        points = drawn_points(random)
        database.array(name).insert(as_table(points, DIMENSIONS[name], pa.float64()))
        world.keep(name, points)
