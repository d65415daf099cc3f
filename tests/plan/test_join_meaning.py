"""What a bound join means is what its query says: conditions that were moved to a side or past a step change no pair.

Queries of one join and of two are carried out by their definition, condition by condition in the order of the
language, and once more from the bound join. The two share no code.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import windrow as wr
from windrow.expressions.evaluate import evaluate
from windrow.expressions.nodes import Node
from windrow.plan.bound import (
    DISTANCE,
    Bound,
    BoundColumns,
    BoundFilter,
    BoundJoin,
    BoundPairs,
    BoundScan,
    BoundSelection,
    makes_pairs,
    side_name,
)

NAMES = ("P", "Q", "R")
SHAPES = {
    "L1(1)": lambda i, j: abs(i) + abs(j) <= 1,
    "Linf(1), excluding self": lambda i, j: max(abs(i), abs(j)) <= 1 and (i, j) != (0, 0),
    "i between -1 and 0, j any": lambda i, j: -1 <= i <= 0,
    "L2(2)": lambda i, j: i * i + j * j <= 4,
}
Row = dict[str, int]
Rows = tuple["Row | None", ...]
Means = Callable[[Rows, float | None], bool | None]


@dataclass(frozen=True)
class Said:
    """A condition as it is written, and what it means: None where something that it reads is missing."""

    text: str
    means: Means
    distant: bool = False


@dataclass(frozen=True)
class Join:
    """One more side: how it is joined to those before it."""

    kind: str
    shape: str
    mapping: tuple[tuple[str, str, str, Callable[[int], int]], ...]  # right dimension, side and dimension, arithmetic
    on: tuple[Said, ...]
    nearest: str  # "", "1", "2", "mutual"
    by: bool


@dataclass(frozen=True)
class Asked:
    joins: tuple[Join, ...]
    where: tuple[Said, ...]
    tables: tuple[tuple[Row, ...], ...] = field(repr=False)

    @property
    def text(self) -> str:
        words = ["select * from P"]
        for number, join in enumerate(self.joins, 1):
            parts = [f"{NAMES[number]}.{name} = {source}" for name, source, *_ in written(join)]
            parts += [one.text for one in join.on]
            kind = "" if join.kind == "inner" else f"{join.kind} "
            kept = {"": "", "mutual": " mutual nearest"}.get(join.nearest, f" nearest {join.nearest}")
            kept += f" by {by_text(number)}" if join.by and join.nearest else ""
            on = f" on {' and '.join(parts)}" if parts else ""
            words.append(f"{kind}similarity join {NAMES[number]}{on} with shape {join.shape}{kept}")
        if self.where:
            words.append(f"where {' and '.join(one.text for one in self.where)}")
        return " ".join(words)


def written(join: Join) -> list[tuple[str, str]]:
    return [(name, arithmetic) for name, _, arithmetic, _ in join.mapping]


def by_text(number: int) -> str:
    return f"abs(P.r - {NAMES[number]}.s)"


def reading(text: str, names: Sequence[str], means: Callable[..., bool]) -> Said:
    """A condition over the rows of some sides."""

    def ask(rows: Rows, _: float | None) -> bool | None:
        found = [rows[NAMES.index(name)] for name in names]
        return None if any(row is None for row in found) else means(*found)

    return Said(text, ask)


@st.composite
def conditions(draw: st.DrawFn, sides: int) -> Said:
    x, y = (draw(st.sampled_from(NAMES[:sides])) for _ in range(2))
    number = draw(st.integers(0, 3))
    return draw(
        st.sampled_from(
            [
                reading(f"{x}.r < {y}.s", (x, y), lambda a, b: a["r"] < b["s"]),
                reading(f"{x}.s > {number}", (x,), lambda a: a["s"] > number),
                reading(f"{x}.i <= {number}", (x,), lambda a: a["i"] <= number),
                reading(f"({x}.r + {y}.j <> {number})", (x, y), lambda a, b: a["r"] + b["j"] != number),
                Said(f"distance() <= {number}", lambda _, far: None if far is None else far <= number, distant=True),
            ]
        )
    )


@st.composite
def joins(draw: st.DrawFn, number: int, last: bool) -> Join:
    kinds = ["inner", "left", *(["anti"] if number == 1 and last else [])]
    shape = draw(st.sampled_from(sorted(SHAPES)))
    mapping = []
    if draw(st.booleans()):
        for name in ("i", "j"):
            side, source = draw(st.sampled_from(NAMES[:number])), draw(st.sampled_from(["i", "j"]))
            text, place = draw(
                st.sampled_from([("", lambda c: c), (" + 1", lambda c: c + 1), (" // 2", lambda c: c // 2)])
            )
            mapping.append((name, f"{side}.{source}", f"{side}.{source}{text}", place))
    on = tuple(draw(st.lists(conditions(number + 1), max_size=2)))
    nearest = draw(st.sampled_from(["", "1", "2", "mutual"]))
    return Join(draw(st.sampled_from(kinds)), shape, tuple(mapping), on, nearest, draw(st.booleans()))


@st.composite
def questions(draw: st.DrawFn) -> Asked:
    count = draw(st.integers(1, 2))
    made = tuple(draw(joins(number, number == count)) for number in range(1, count + 1))
    anti = made[-1].kind == "anti"
    where = draw(st.lists(conditions(1 if anti else count + 1), min_size=1, max_size=2))
    where = [one for one in where if not (anti and one.distant)]
    tables = []
    for _ in range(count + 1):
        places = draw(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), unique=True, max_size=9))
        values = st.integers(0, 3)
        tables.append(tuple({"i": i, "j": j, "r": draw(values), "s": draw(values)} for i, j in sorted(places)))
    return Asked(made, tuple(where), tuple(tables))


# By definition


def defined(asked: Asked) -> list[Any]:
    found: list[tuple[Rows, float | None]] = [((row,), None) for row in asked.tables[0]]
    for number, join in enumerate(asked.joins, 1):
        found = joined(join, number, [rows for rows, _ in found], asked.tables[number])
        if join.kind == "anti":
            found = [(rows[:1], None) for rows, _ in found]
    kept = [rows for rows, far in found if all(one.means(rows, far) for one in asked.where)]
    return sorted(map(places, kept))


def joined(join: Join, number: int, left: Sequence[Rows], right: Sequence[Row]) -> list[tuple[Rows, float | None]]:
    pairs: list[tuple[Rows, Row, float]] = []
    for rows, row in itertools.product(left, right):
        offset = offset_of(join, rows, row)
        if offset is None or not SHAPES[join.shape](*offset):
            continue
        far = math.hypot(*offset)
        if all(one.means((*rows, row), far) for one in join.on):
            pairs.append((rows, row, far))
    if join.nearest:
        pairs = nearest(join, pairs)
    found: list[tuple[Rows, float | None]] = []
    for rows in left:
        own = [((*rows, row), far) for mine, row, far in pairs if mine is rows]
        if join.kind != "anti":
            found += own
        if not own and join.kind != "inner":
            found.append(((*rows, None), None))
    return found


def offset_of(join: Join, rows: Rows, row: Row) -> tuple[int, int] | None:
    stated = join.mapping or tuple((name, f"P.{name}", "", lambda c: c) for name in ("i", "j"))
    offset = []
    for name, source, _, place in stated:
        side = rows[NAMES.index(source[0])]
        if side is None:
            return None
        offset.append(row[name] - place(side[source[2]]))
    return offset[0], offset[1]


def nearest(join: Join, pairs: list[tuple[Rows, Row, float]]) -> list[tuple[Rows, Row, float]]:
    def order(pair: tuple[Rows, Row, float]) -> float:
        rows, row, far = pair
        first = rows[0]
        assert first is not None
        return abs(first["r"] - row["s"]) if join.by else far

    def best(of: Callable[[Any], Any], count: int) -> list[Any]:
        ordered = sorted(pairs, key=lambda pair: (order(pair), places(pair[0]), place(pair[1])))
        groups: dict[Any, list[Any]] = {}
        for pair in ordered:
            groups.setdefault(of(pair), []).append(pair)
        return [pair for group in groups.values() for pair in group[:count]]

    if join.nearest != "mutual":
        return best(lambda pair: places(pair[0]), int(join.nearest))
    first = best(lambda pair: places(pair[0]), 1)
    return [pair for pair in best(lambda pair: place(pair[1]), 1) if any(pair is other for other in first)]


def place(row: Row | None) -> tuple[int, ...]:
    return (-1, -1) if row is None else (row["i"], row["j"])


def places(rows: Rows) -> tuple[tuple[int, ...], ...]:
    return tuple(map(place, rows))


# From the bound join


def carried_out(bound: Bound, tables: dict[str, tuple[Row, ...]]) -> list[Any]:
    if isinstance(bound, BoundPairs):
        return sorted(places(rows) for rows, _ in pairs_of(bound.source, tables))
    return sorted(places((row,)) for row in cells_of(bound, tables))


def cells_of(bound: Bound, tables: dict[str, tuple[Row, ...]]) -> list[Row]:
    if isinstance(bound, BoundScan):
        return list(tables[bound.name])
    if isinstance(bound, BoundJoin):
        assert bound.kind == "anti"
        return [row for (row, _), _ in pairs_of(bound, tables) if row is not None]
    assert isinstance(bound, (BoundSelection, BoundFilter, BoundColumns))
    below = cells_of(bound.source, tables)
    if isinstance(bound, BoundFilter):
        return [row for row in below if value(bound.condition, row)]
    inside = zip(bound.schema.dimension_names, bound.box.lo, bound.box.hi, strict=True)
    limits = list(inside)
    return [row for row in below if all(lo <= row[name] <= hi for name, lo, hi in limits)]


def pairs_of(join: BoundJoin, tables: dict[str, tuple[Row, ...]]) -> list[tuple[Rows, float | None]]:
    left: list[Rows] = (
        [rows for rows, _ in pairs_of(join.left, tables)]
        if makes_pairs(join.left)
        else [(row,) for row in cells_of(join.left, tables)]
    )
    pairs: list[tuple[Rows, Row, float]] = []
    for rows, row in itertools.product(left, cells_of(join.right, tables)):
        offset = centred(join, rows, row)
        if offset is None or not join.offsets.contains(offset):
            continue
        far = math.hypot(*(offset[axis] for axis in join.distance_axes))
        if join.condition is None or value(join.condition, columns((*rows, row), far)):
            pairs.append((rows, row, far))
    pairs = chosen(join, pairs)
    found: list[tuple[Rows, float | None]] = []
    for rows in left:
        own: list[tuple[Rows, float | None]] = [((*rows, row), far) for mine, row, far in pairs if mine is rows]
        found += own if join.kind != "anti" else []
        if not own and join.kind != "inner":
            found.append(((*rows, None), None))
    return [(rows, far) for rows, far in found if join.where is None or value(join.where, columns(rows, far))]


def centred(join: BoundJoin, rows: Rows, row: Row) -> list[int] | None:
    offset = []
    for name, one in zip(join.right.schema.dimension_names, join.mapping, strict=True):
        assert one is not None
        side = columns(rows, None)
        cell = side[one.cell.key]
        if cell is None:
            return None
        offset.append(row[name] - one.at(cell))
    return offset


def chosen(join: BoundJoin, pairs: list[tuple[Rows, Row, float]]) -> list[tuple[Rows, Row, float]]:
    kept = join.nearest
    if kept is None:
        return pairs
    keys = [far if kept.by is None else value(kept.by, columns((*rows, row), far)) for rows, row, far in pairs]
    order = sorted(range(len(pairs)), key=lambda k: (keys[k], places(pairs[k][0]), place(pairs[k][1])))
    of_left: dict[Any, list[int]] = {}
    of_right: dict[Any, list[int]] = {}
    for k in order:
        of_left.setdefault(places(pairs[k][0]), []).append(k)
        of_right.setdefault(place(pairs[k][1]), []).append(k)
    found = {k for group in of_left.values() for k in group[: kept.count]}
    if kept.mutual:
        found &= {group[0] for group in of_right.values()}
    return [pairs[k] for k in sorted(found)]


def columns(rows: Rows, far: float | None) -> dict[str, Any]:
    found: dict[str, Any] = {DISTANCE.key: far}
    for number, row in enumerate(rows, 1):
        for name in ("i", "j", "r", "s"):
            found[f"{side_name(number)}.{name}"] = None if row is None else row[name]
    return found


def value(node: Node, row: dict[str, Any]) -> Any:
    kinds = {key: pa.float64() if key == DISTANCE.key else pa.int64() for key in row}
    read = {key: pa.array([row[key]], kinds[key]) for key in row}
    return evaluate(node, read, 1)[0].as_py()


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    opened = wr.connect(tmp_path_factory.mktemp("meaning"), engine="local", progress=False)
    for name in NAMES:
        opened.query(f"create sparse array {name} <r: int, s: int> [i=0:2, j=0:2]")
    yield opened
    opened.close()


@settings(max_examples=400)
@given(asked=questions())
def test_binding_leaves_the_meaning(database: Any, asked: Asked) -> None:
    tables = dict(zip(NAMES, asked.tables, strict=False))
    assert carried_out(database.query(asked.text).bind().bound, tables) == defined(asked), asked.text


@pytest.mark.slow
@settings(max_examples=3000)
@given(asked=questions())
def test_binding_leaves_the_meaning_of_many(database: Any, asked: Asked) -> None:
    tables = dict(zip(NAMES, asked.tables, strict=False))
    assert carried_out(database.query(asked.text).bind().bound, tables) == defined(asked), asked.text
