"""Joins and neighbourhoods of small random arrays, each asked of windrow by Python or by text, and of the oracle."""

from __future__ import annotations

import itertools
import math
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

import join_oracle as oracle
import windrow as wr
from covering import Rule
from join_oracle import Between, Held, Listed, Measure, Norm, Place, Shape, Sided

NAMES = ("i", "j", "k")
EXTRA_LEFT, EXTRA_RIGHT = "t", "u"
SCHEMA = "<x: float64, c: int64 null, m: int32, s: string null>"
WORDS = ("ä", "b", "", "long text", "b b")


@dataclass(frozen=True)
class Measured:
    """An aggregate as Python and text ask for it, of an expression over both sides that the oracle computes."""

    aggregate: str
    arguments: tuple[str, ...]
    parameter: float | None = None

    @property
    def name(self) -> str:
        return "_".join([self.aggregate, *(name for name in self.arguments)])

    def text(self, left: str, right: str) -> str:
        """As a call in a query's text."""
        if self.aggregate == "count_all":
            return "count(*)"
        parts = [EXPRESSIONS[argument].text(left, right) for argument in self.arguments]
        return f"{self.aggregate}({', '.join(parts + ([] if self.parameter is None else [f'{self.parameter:g}']))})"

    def python(self, left: str, right: str) -> wr.Aggregate:
        if self.aggregate == "count_all":
            return wr.count()
        parts: list[Any] = [EXPRESSIONS[argument].text(left, right) for argument in self.arguments]
        if self.aggregate == "wavg":
            return wr.avg(parts[0], weight=parts[1])
        return getattr(wr, self.aggregate)(*parts, *([] if self.parameter is None else [self.parameter]))

    def by_hand(self) -> Measure:
        return Measure(self.aggregate, tuple(EXPRESSIONS[name].of for name in self.arguments), self.parameter)


@dataclass(frozen=True)
class Expression:
    """Text in which {L} and {R} stand for the sides, and what it means."""

    written: str
    meaning: Callable[..., Any]

    def text(self, left: str, right: str) -> str:
        # Neighbours have one side alone, whose columns are named plainly.
        return self.written.replace("{L}.", f"{left}." if left else "").replace("{R}.", f"{right}." if right else "")

    def of(self, sides: Sided, far: float) -> Any:
        return self.meaning(sides[0], sides[-1], far)


def _both(function: Callable[..., Any], *values: Any) -> Any:
    """SQL's rule: what is missing makes the whole missing."""
    return None if any(value is None for value in values) else function(*values)


EXPRESSIONS = {
    "x": Expression("{R}.x", lambda left, right, far: right["x"]),
    "c": Expression("{R}.c", lambda left, right, far: right["c"]),
    "m": Expression("{R}.m", lambda left, right, far: right["m"]),
    "s": Expression("{R}.s", lambda left, right, far: right["s"]),
    "weight": Expression("abs({R}.m)", lambda left, right, far: _both(abs, right["m"])),
    "product": Expression("{L}.m * {R}.c", lambda left, right, far: _both(lambda a, b: a * b, left["m"], right["c"])),
    "left": Expression("{L}.x", lambda left, right, far: left["x"]),
}
CONDITIONS = {
    "none": Expression("", lambda left, right, far: True),
    "both": Expression(
        "abs({L}.m - {R}.m) < 3", lambda left, right, far: _both(lambda a, b: abs(a - b) < 3, left["m"], right["m"])
    ),
    "missing": Expression("{L}.c <= {R}.c", lambda left, right, far: _both(lambda a, b: a <= b, left["c"], right["c"])),
    "left": Expression("{L}.m > -1", lambda left, right, far: _both(lambda a: a > -1, left["m"])),
    "right": Expression("{R}.c > 1", lambda left, right, far: _both(lambda a: a > 1, right["c"])),
    "cells": Expression("{L}.i <= {R}.i", lambda left, right, far: _both(lambda a, b: a <= b, left["i"], right["i"])),
    "distance": Expression("distance() <= 1", lambda left, right, far: far <= 1),
}
BY = Expression("abs({L}.m - {R}.m)", lambda left, right, far: _both(lambda a, b: abs(a - b), left["m"], right["m"]))

MEASURES: dict[str, tuple[Measured, ...]] = {
    "counts": (Measured("count_all", ()), Measured("count", ("c",)), Measured("count", ("x",))),
    "sums": (Measured("sum", ("x",)), Measured("sum", ("c",)), Measured("avg", ("x",)), Measured("avg", ("c",))),
    "variances": tuple(Measured(name, ("x",)) for name in ("var", "std", "var_pop", "std_pop")),
    "extremes": (
        *(Measured(name, (of,)) for name in ("min", "max", "first", "last") for of in ("x", "c", "s")),
        *(Measured("range", (of,)) for of in ("x", "c")),
    ),
    "ranks": (
        Measured("percentile", ("x",), 70),
        Measured("quantile_disc", ("c",), 0.3),
        Measured("quantile_cont", ("x",), 0.7),
        Measured("quantile_index", ("c",), 0.7),
        Measured("median", ("c",)),
    ),
    "kinds": (*(Measured(name, (of,)) for name in ("count_distinct", "mode") for of in ("x", "c", "s")),),
    "pairs": (
        Measured("wavg", ("x", "weight")),
        *(Measured(name, ("x", "c")) for name in ("covar", "covar_pop", "corr")),
    ),
    "moments": (Measured("skew", ("x",)), Measured("kurtosis", ("c",))),
    "expressions": (Measured("sum", ("product",)), Measured("max", ("left",)), Measured("count", ("product",))),
    "one sum": (Measured("sum", ("c",)),),
    "one maximum": (Measured("max", ("x",)),),
    "one count": (Measured("count_all", ()),),
    "one median": (Measured("median", ("x",)),),
    "none": (),
}
SHAPES = (
    "L1", "L2", "Linf", "Lp", "Hamming", "list", "range", "norm and range", "any", "wrap", "excluding self",
    "wrap excluding self", "larger", "stored",
)  # fmt: skip
MAPPINGS = ("identity", "shift", "scale", "floor", "dropped", "added")
KINDS = ("inner", "left", "anti", "nearest", "nearest by", "left nearest", "mutual")
GROUPINGS = ("all", "some", "none", "pairs")
CHUNKS = ("whole", "small", "odd")
SIDES = ("sparse", "dense", "dense sparse", "sparse dense", "sparse itself", "dense itself", "twins")
PLACES = ("on", "where")
"""Where a condition stands: on the pairs, or on the joined rows."""


@dataclass(frozen=True)
class Problem:
    """One join by the levels of all that can vary, and a seed for the rest."""

    shape: str = "Linf"
    measures: str = "counts"
    mapping: str = "identity"
    kind: str = "inner"
    grouping: str = "all"
    condition: str = "none"
    place: str = "on"
    chunks: str = "small"
    sides: str = "sparse"
    text: bool = False
    min_count: int = 0
    ndim: int = 2
    seed: int = 0

    @property
    def is_possible(self) -> bool:
        """Whether these levels can be had together."""
        return all(rule.holds(vars(self)) for rule in RULES)

    @property
    def in_text(self) -> bool:
        """Whether only text can say it."""
        return self.text or self.place == "where" or self.kind == "anti"


RULES = (
    # Pairs are not aggregated, and what anti keeps are cells.
    Rule(("measures", "grouping"), lambda measures, grouping: (measures == "none") == (grouping == "pairs")),
    Rule(("kind", "grouping"), lambda kind, grouping: kind != "anti" or grouping == "pairs"),
    Rule(("kind", "measures"), lambda kind, measures: kind != "anti" or measures == "none"),
    # Without a second dimension there is none to leave out, and none to group by in part.
    Rule(("ndim", "mapping"), lambda ndim, mapping: ndim > 1 or mapping not in ("dropped", "added")),
    Rule(("ndim", "grouping"), lambda ndim, grouping: ndim > 1 or grouping != "some"),
    Rule(("place", "condition"), lambda place, condition: place == "on" or condition not in ("none", "distance")),
    # Where a right dimension is not mapped, no one cell is the cell itself.
    Rule(("shape", "mapping"), lambda shape, mapping: not (shape.endswith("excluding self") and mapping == "added")),
    Rule(
        ("shape", "mapping", "sides"),
        lambda shape, mapping, sides: (
            not (
                shape.endswith("excluding self")
                and mapping == "dropped"
                and sides in ("sparse itself", "dense itself", "twins")
            )
        ),
    ),
    # Only groups have a least number of values.
    Rule(("min_count", "grouping"), lambda min_count, grouping: not min_count or grouping in ("all", "some")),
    Rule(("min_count", "measures"), lambda min_count, measures: not min_count or measures != "none"),
    Rule(("min_count", "kind"), lambda min_count, kind: not min_count or kind != "anti"),
    # Under anti there is no right side left to speak of.
    Rule(("kind", "place"), lambda kind, place: kind != "anti" or place == "on"),
)


@dataclass(frozen=True)
class Asked:
    """A problem made real: arrays in a warehouse, their twins, shape and mapping in both languages."""

    problem: Problem
    left: Any
    right: Any
    left_held: Held
    right_held: Held
    shape: Any
    shape_text: str
    shape_held: Shape
    mapping: Mapping[str, Place]
    explicit: bool

    @property
    def said(self) -> dict[str, Place]:
        """What the question says of the mapping; of the numbering dimension nothing needs to be said."""
        return {name: place for name, place in self.mapping.items() if self.explicit and name != "n"}

    # Questions

    def query(self, database: Any) -> Any:
        return database.query(self.text()) if self.problem.in_text else self.python()

    def text(self) -> str:
        problem = self.problem
        condition = CONDITIONS[problem.condition].text("L", "R")
        parts = [f"R.{name} = {_placed(place, 'L.')}" for name, place in self.said.items()]
        parts += [condition] if condition and problem.place == "on" else []
        word = {"left": "left ", "left nearest": "left ", "anti": "anti "}.get(problem.kind, "")
        source = f"from {self.left.name} L {word}similarity join {self.right.name} R"
        source += f" on {' and '.join(parts)}" if parts else ""
        source += f" with shape {self.shape_text}"
        source += {
            "nearest": " nearest 2", "left nearest": " nearest 1", "mutual": " mutual nearest",
            "nearest by": f" nearest 2 by {BY.text('L', 'R')}",
        }.get(problem.kind, "")  # fmt: skip
        source += f" where {condition}" if condition and problem.place == "where" else ""
        if problem.kind == "anti":
            return f"select * {source}"
        if problem.grouping == "pairs":
            return f"select L.m * R.c as f, R.x as g {source}"
        items = [f"{one.text('L', 'R')} as {one.name}" for one in MEASURES[problem.measures]]
        groups = ", ".join(f"L.{name}" for name in self.group_names)
        least = f" min count {problem.min_count}" if problem.min_count else ""
        return f"select {', '.join(items)} {source}" + (f" group by {groups}{least}" if groups else "")

    def python(self) -> Any:
        problem = self.problem
        on = {name: _placed(place, "") for name, place in self.said.items()} or None
        nearest = {
            "nearest": 2, "left nearest": 1, "mutual": "mutual", "nearest by": (2, BY.text("left", "right")),
        }.get(problem.kind)  # fmt: skip
        joined = self.left.join(
            self.right,
            shape=self.shape,
            on=on,
            where=CONDITIONS[problem.condition].text("left", "right") or None,
            how="left" if problem.kind.startswith("left") else "inner",
            nearest=nearest,
            min_count=problem.min_count,
        )
        if problem.grouping == "pairs":
            return joined.select(f="left.m * right.c", g="right.x")
        aggregates = {one.name: one.python("left", "right") for one in MEASURES[problem.measures]}
        if problem.grouping == "all":
            return joined.agg(**aggregates)
        return joined.groupby(*self.group_names).agg(**aggregates)

    @property
    def group_names(self) -> list[str]:
        names = [dimension.name for dimension in self.left_held.dimensions]
        return {"all": names, "some": names[:1], "none": [], "pairs": names}[self.problem.grouping]

    # Answers

    def leaves_out_several(self) -> bool:
        """Whether the cell itself is left out, and along some dimension it is not said which cell that is."""
        return self.shape_held.excludes_self and any(d.name not in self.mapping for d in self.right_held.dimensions)

    def can_meet(self) -> bool:
        """Whether any cell of the left array's box could have a partner in the right one's."""
        boxes = []
        for held in (self.left_held, self.right_held):
            sides = [range(d.lo, d.hi + 1) if not d.numbering else [0] for d in held.dimensions]
            boxes.append(Held(held.dimensions, {cell: {} for cell in itertools.product(*sides)}))
        return bool(oracle.join(boxes[0], oracle.Step(boxes[1], self.shape_held, self.mapping)).rows)

    def joined(self) -> oracle.Joined:
        problem = self.problem
        condition = CONDITIONS[problem.condition].of
        nearest = {
            "nearest": oracle.Nearest(2), "left nearest": oracle.Nearest(1), "mutual": oracle.Nearest(mutual=True),
            "nearest by": oracle.Nearest(2, BY.of),
        }.get(problem.kind)  # fmt: skip
        kind = {"left nearest": "left"}.get(problem.kind, problem.kind)
        step = oracle.Step(
            self.right_held,
            self.shape_held,
            self.mapping,
            condition if problem.place == "on" else None,
            kind if kind in ("left", "anti") else "inner",
            nearest,
        )
        found = oracle.join(self.left_held, step)
        return found if problem.place == "on" else found.where(condition)

    def check(self, result: Any) -> None:
        """Hold what windrow gave against the oracle."""
        problem, joined = self.problem, self.joined()
        if problem.kind == "anti":
            self._check_anti(result, joined)
        elif problem.grouping == "pairs":
            self._check_pairs(result, joined)
        else:
            measures = {one.name: one.by_hand() for one in MEASURES[problem.measures]}
            by = [(0, name) for name in self.group_names]
            groups = oracle.grouped(joined, by, measures)
            found = table_cells(result, self.group_names)
            assert set(found) == set(groups), self
            for key, group in groups.items():
                for name, measure in measures.items():
                    wanted = group.result(name, measure, problem.min_count)
                    same(found[key][name], wanted, measure, group.values.get(name, []), (key, name))

    def _check_anti(self, result: Any, joined: oracle.Joined) -> None:
        names = [dimension.name for dimension in self.left_held.dimensions]
        found = table_cells(result, names)
        assert set(found) == {row[0] for row, _ in joined.rows}, self
        for (cell, _), _ in joined.rows:
            assert cell is not None
            values = self.left_held.values(cell)
            for name in ("x", "c", "m", "s"):
                assert _plain(found[cell][name]) == values[name]

    def _check_pairs(self, result: Any, joined: oracle.Joined) -> None:
        names = self._pair_names()
        found = {tuple(row[name] for name in names): row for row in result.to_pylist()}
        assert len(found) == result.num_rows, "a pair comes twice"
        lacking = (None,) * len(self.right_held.dimensions)
        wanted = {
            tuple(left) + tuple(right if right is not None else lacking): (left, right)
            for (left, right), _ in joined.rows
        }  # type: ignore[arg-type, misc]
        assert set(found) == set(wanted), self
        for key, row in wanted.items():
            values = joined.values(row)
            product = EXPRESSIONS["product"].of(values, 0.0)
            assert _plain(found[key]["f"]) == product
            assert _plain(found[key]["g"]) == values[-1]["x"]

    def _pair_names(self) -> list[str]:
        prefixes = ("L", "R") if self.problem.in_text else ("left", "right")
        sides = [[d.name for d in held.dimensions] for held in (self.left_held, self.right_held)]
        every = [*sides[0], *sides[1]]
        return [
            name if every.count(name) == 1 else f"{prefix}_{name}"
            for prefix, names in zip(prefixes, sides, strict=True)
            for name in names
        ]


def ask(database: Any, problem: Problem) -> None:
    """Ask windrow and the oracle, and compare."""
    asked = make(database, problem)
    try:
        result = asked.query(database).compute()
    except wr.Error:
        # A mapping under which nothing can ever meet is refused, and to leave a cell out that is not one alone.
        assert asked.leaves_out_several() or not asked.can_meet(), asked.text()
        return
    asked.check(result)


# Making them


def make(database: Any, problem: Problem) -> Asked:
    random = np.random.default_rng(problem.seed)
    names = NAMES[: problem.ndim]
    itself = problem.sides in ("sparse itself", "dense itself", "twins")
    left_names, right_names = list(names), list(names)
    if not itself:
        left_names += [EXTRA_LEFT] if problem.mapping == "dropped" else []
        right_names += [EXTRA_RIGHT] if problem.mapping == "added" else []
    lows = {name: int(random.integers(-4, 3)) for name in (*names, EXTRA_LEFT, EXTRA_RIGHT)}
    longest = {1: 14, 2: 6, 3: 4}[problem.ndim]
    extents = {name: int(random.integers(1, longest + 1)) for name in lows}
    left_kind, right_kind = {
        "sparse": ("sparse", "sparse"), "dense": ("dense", "dense"), "dense sparse": ("dense", "sparse"),
        "sparse dense": ("sparse", "dense"), "sparse itself": ("sparse", ""), "dense itself": ("dense", ""),
        "twins": ("twins", ""),
    }[problem.sides]  # fmt: skip
    boxes = {name: (lows[name], lows[name] + extents[name] - 1) for name in lows}
    left, left_held = stored(database, problem, random, {name: boxes[name] for name in left_names}, left_kind)
    if itself:
        right, right_held = left, left_held
    else:
        moved = {name: boxes[name] for name in right_names}
        right, right_held = stored(database, problem, random, moved, right_kind)
    partial = itself and problem.mapping in ("dropped", "added")
    mapped = names[:1] if partial else names
    mapping = _mapping(problem, random, mapped)
    explicit = partial or problem.mapping not in ("identity", "dropped", "added") or bool(random.integers(2))
    if problem.sides == "twins":
        mapping["n"] = Place("n")
    if not explicit:
        mapping = oracle.identity(left_held, right_held)
    shape, text, held = make_shape(
        database, problem.shape, random, mapped, whole=not partial and problem.mapping != "added"
    )
    return Asked(problem, left, right, left_held, right_held, shape, text, held, mapping, explicit)


def stored(
    database: Any,
    problem: Problem,
    random: np.random.Generator,
    boxes: Mapping[str, tuple[int, int]],
    kind: str,
) -> tuple[Any, Held]:
    """An array of random cells: dense, sparse, or sparse with several detections in a cell."""
    sizes = {name: hi - lo + 1 for name, (lo, hi) in boxes.items()}
    chunks = {
        name: {"whole": size, "small": min(2, size), "odd": int(random.integers(1, size + 1))}[problem.chunks]
        for name, size in sizes.items()
    }
    named = ", ".join(f"{name}={lo}:{hi}:{chunks[name]}" for name, (lo, hi) in boxes.items())
    named += ", n=0:*" if kind == "twins" else ""
    array = database.create(f"A{uuid.uuid4().hex[:12]}", f"{SCHEMA} [{named}]", sparse=kind != "dense")
    places = list(itertools.product(*(range(lo, hi + 1) for lo, hi in boxes.values())))
    if kind != "dense":
        share = random.choice([0.15, 0.5, 0.9])
        places = [place for place in places if random.random() < share] or places[:1]
    if kind == "twins":
        # At least one cell holds two: the first insert that keeps duplicates makes n the numbering dimension.
        places += [places[0], *(place for place in places if random.random() < 0.4)]
    contents = [_values(random) for _ in places]
    dimensions = tuple(oracle.Dimension(name, lo, hi) for name, (lo, hi) in boxes.items())
    if kind == "dense":
        shape = tuple(sizes.values())
        columns = {name: np.array([one[name] for one in contents], object).reshape(shape) for name in "xcms"}
        columns["x"] = columns["x"].astype(np.float64)
        columns["m"] = columns["m"].astype(np.int32)
        array.write(columns)
        return array, Held(dimensions, dict(zip(places, contents, strict=True)))
    table = {name: [place[k] for place in places] for k, name in enumerate(boxes)}
    filled: dict[str, Any] = {name: pa.array(column, pa.int64()) for name, column in table.items()}
    types = {"x": pa.float64(), "c": pa.int64(), "m": pa.int32(), "s": pa.string()}
    filled |= {name: pa.array([one[name] for one in contents], types[name]) for name in types}
    array.insert(pa.table(filled), on_duplicate="keep" if kind == "twins" else None)
    if kind == "twins":
        dimensions += (oracle.Dimension("n", 0, len(places), numbering=True),)
    rows = array.read().to_pylist()
    keys = [dimension.name for dimension in dimensions]
    return array, Held(dimensions, {tuple(row[k] for k in keys): {n: row[n] for n in "xcms"} for row in rows})


def _values(random: np.random.Generator) -> dict[str, Any]:
    x: float | None = float(random.choice([0.1, 0.2, 1.5, -2.25, 1e9, 3.0]))
    if random.random() < 0.1:
        x = float(random.choice([math.inf, -math.inf, math.nan]))
    return {
        "x": x,
        "c": None if random.random() < 0.2 else int(random.integers(-3, 6)),
        "m": int(random.integers(-3, 4)),
        "s": None if random.random() < 0.2 else str(random.choice(WORDS)),
    }


def _mapping(problem: Problem, random: np.random.Generator, names: Sequence[str]) -> dict[str, Place]:
    found = {}
    for name in names:
        shift, factor = int(random.integers(-2, 3)), int(random.integers(2, 4))
        found[name] = {
            "shift": Place(name, shift=shift), "scale": Place(name, scale=factor, shift=shift),
            "floor": Place(name, divisor=factor, shift=shift),
        }.get(problem.mapping, Place(name))  # fmt: skip
    return found


def _placed(place: Place, prefix: str) -> str:
    text = f"{prefix}{place.dimension}"
    text = (
        f"{place.scale} * {text}" if place.scale != 1 else f"{text} // {place.divisor}" if place.divisor != 1 else text
    )
    return text if place.shift == 0 else f"{text} {'+' if place.shift > 0 else '-'} {abs(place.shift)}"


@dataclass
class _Terms:
    """Terms of a shape in all three forms."""

    python: list[Any] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    held: list[Any] = field(default_factory=list)

    def norm(self, kind: str, radius: float, on: tuple[str, ...] | None, power: float | None = None) -> None:
        made = wr.Lp(power, radius, on=on) if power is not None else getattr(wr, kind)(radius, on=on)
        self.python.append(made)
        inside = f"{radius:g}" if power is None else f"{power:g}, {radius:g}"
        self.text.append(f"{kind}({inside})" + ("" if on is None else f" on ({', '.join(on)})"))
        self.held.append(Norm(kind, radius, on, power))

    def between(self, name: str, first: int | None, last: int | None) -> None:
        self.python.append(wr.offsets(**{name: wr.any_offset if first is None else (first, last)}))
        self.text.append(f"{name} any" if first is None else f"{name} between {first} and {last}")
        self.held.append(Between(name, first, last))

    def listed(self, offsets: Sequence[tuple[int, ...]], on: tuple[str, ...]) -> None:
        self.python.append(wr.offset_list(offsets, on=on))
        inside = ", ".join("(" + ", ".join(map(str, offset)) + ")" for offset in offsets)
        self.text.append(f"offsets ({inside}) on ({', '.join(on)})")
        self.held.append(Listed(tuple(offsets), on))


def make_shape(
    database: Any, kind: str, random: np.random.Generator, names: Sequence[str], whole: bool
) -> tuple[Any, str, Shape]:
    """A shape of a kind on these dimensions; ``whole`` says that they are all there are, so that a norm may not say."""
    terms, on = _Terms(), tuple(names)
    unsaid = None if whole and random.random() < 0.5 else on
    first, rest = on[0], on[1:]
    if kind in ("L1", "Linf"):
        terms.norm(kind, int(random.integers(0, 4)), unsaid)
    elif kind == "L2":
        terms.norm(kind, float(random.choice([1, 1.5, 2, 2.5])), unsaid)
    elif kind == "Lp":
        terms.norm(kind, float(random.choice([1, 2, 2.5])), unsaid, float(random.choice([3, 1.5])))
    elif kind == "Hamming":
        terms.norm(kind, int(random.integers(0, len(on) + 1)), unsaid)
    elif kind == "larger":
        terms.norm("Linf", 50, unsaid)
    elif kind in ("list", "stored"):
        offsets = sorted({tuple(int(o) for o in random.integers(-2, 3, len(on))) for _ in range(5)})
        if kind == "list":
            terms.listed(offsets, on)
        else:
            return _stored_shape(database, offsets, on)
    elif kind in ("range", "norm and range", "any"):
        ends = sorted(int(o) for o in random.integers(-4, 3, 2))
        terms.between(first, *((None, None) if kind == "any" else ends))
        if rest and kind != "range":
            terms.norm("L1", 1, rest)
    else:
        terms.norm(str(random.choice(["Linf", "L1"])), int(random.integers(0, 4)), unsaid)
    wraps = frozenset(on if kind.startswith("wrap") and random.random() < 0.3 else on[:1])
    wraps = wraps if kind.startswith("wrap") else frozenset()
    excludes = kind.endswith("excluding self")
    shape = terms.python[0]
    for other in terms.python[1:]:
        shape = shape & other
    shape = shape.wrap(*wraps) if wraps else shape
    text = terms.text + ([f"wrap ({', '.join(sorted(wraps))})"] if wraps else [])
    shape, text = (shape.excluding_self(), [*text, "excluding self"]) if excludes else (shape, text)
    return shape, ", ".join(text), Shape(tuple(terms.held), wraps, excludes)


def _stored_shape(database: Any, offsets: Sequence[tuple[int, ...]], on: tuple[str, ...]) -> tuple[Any, str, Shape]:
    name = f"S{uuid.uuid4().hex[:12]}"
    array = database.create(name, f"<flag: bool> [{', '.join(f'{d}=-9:9' for d in on)}]", sparse=True)
    columns: dict[str, Any] = {d: [offset[k] for offset in offsets] for k, d in enumerate(on)}
    array.insert(pa.table(columns | {"flag": [True] * len(offsets)}))
    return wr.shape(name), name, Shape((Listed(tuple(offsets), on),))


# Comparing


def table_cells(result: Any, names: Sequence[str], lows: Sequence[int] = ()) -> dict[tuple[int, ...], dict[str, Any]]:
    """A result by its coordinates, whether it is a table or a dataset whose dimensions begin at ``lows``."""
    if isinstance(result, pa.Table):
        rows = result.to_pylist()
        found = {tuple(row[name] for name in names): row for row in rows}
        assert len(found) == len(rows), "a cell comes twice"
        return found
    shape = tuple(result.sizes[name] for name in names)
    values = {}
    for name, variable in result.data_vars.items():
        if not name.endswith("__valid"):
            objects = variable.transpose(*names).values.astype(object)
            valid = result.get(f"{name}__valid")
            values[name] = objects if valid is None else np.where(valid.transpose(*names).values, objects, None)
    starts = lows or (0,) * len(names)
    return {
        tuple(a + b for a, b in zip(place, starts, strict=True)): {name: values[name][place] for name in values}
        for place in np.ndindex(shape)
    }


def _plain(value: Any) -> Any:
    return None if value is None or value != value else value


ROUNDED = {"sum", "avg", "var", "std", "var_pop", "std_pop", "quantile_cont", "median", "wavg", "covar", "covar_pop"}
RATIOS = {"skew", "kurtosis", "corr"}
"""Of rounded sums: rounded, too, by more than others."""


def same(found: Any, wanted: Any, measure: Measure, values: Sequence[tuple[Any, ...]], where: Any) -> None:
    """Equal, or as near as SPEC section 1 asks of sums, averages and variances."""
    found, wanted = _plain(found), _plain(wanted)
    said = f"{where}: {measure.aggregate} gave {found!r}, not {wanted!r}"
    if found is None or wanted is None:
        assert found is None, said
        assert wanted is None, said
        return
    if isinstance(wanted, float) and math.isfinite(wanted):
        kind = measure.aggregate
        lengths = [abs(float(part)) for value in values for part in value if isinstance(part, (int, float))]
        largest = max([length for length in lengths if math.isfinite(length)], default=0.0)
        slack = {"sum": 1e-12 * len(values) * largest, "avg": 1e-12 * largest, "wavg": 1e-11 * largest}
        if kind in RATIOS:
            assert math.isclose(found, wanted, rel_tol=1e-6, abs_tol=1e-6), said
            return
        if kind in ROUNDED:
            square = 1e-9 * largest**2
            allowed = slack.get(kind, 1e-12 * largest if kind in ("median", "quantile_cont") else square)
            allowed = 4e-5 * largest if kind.startswith("std") and wanted < 1e-4 * largest else allowed
            allowed = max(allowed, 1e-9 * abs(wanted) if kind.startswith("std") else 0.0)
            assert abs(found - wanted) <= allowed, said
            return
    assert found == wanted, said
