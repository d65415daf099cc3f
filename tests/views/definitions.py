"""Random definitions of views, of every kind and aggregate, over two sparse arrays, a growing dense one, and views."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np

import join_problems
import windrow as wr
from join_oracle import Between, Measure, Nearest, Norm, Place, Shape, Sided
from join_problems import BY, CONDITIONS, EXPRESSIONS, MEASURES, Expression

from .oracle import Around, Chosen, Column, Coupled, Grouped, Partnered, Said, Scan, Step, Taken, Windowed

SPARSE = ("S", "T")
DENSE = "D"
SCHEMAS = {
    "S": "<x: float64, c: int64 null, m: int32, s: string null> [i=0:5:3, j=-2:3:2]",
    "T": "<x: float64, c: int64 null, m: int32, s: string null> [i=0:5:4, j=-2:3:3]",
    "D": "<x: float64, c: int64 null, m: int32> [t=1:*:3, y=0:2:2]",
}
DIMENSIONS = {"S": ("i", "j"), "T": ("i", "j"), "D": ("t", "y")}
SHAPES = (
    "L1", "L2", "Linf", "Lp", "Hamming", "list", "range", "norm and range", "any", "wrap", "excluding self",
    "wrap excluding self", "larger",
)  # fmt: skip


@wr.aggregate("views_spread", result="float64")
class Spread:
    """A user's aggregate that can only be added to."""

    def empty():  # type: ignore[misc]
        return (math.inf, -math.inf)

    def add(state, x):  # type: ignore[misc]  # noqa: N805
        return (min(state[0], x), max(state[1], x))

    def merge(a, b):  # type: ignore[misc]  # noqa: N805
        return (min(a[0], b[0]), max(a[1], b[1]))

    def result(state):  # type: ignore[misc]  # noqa: N805
        return state[1] - state[0]


@wr.aggregate("views_total", result="int64", exact_remove=True)
class Total:
    """A user's aggregate whose ``remove`` undoes ``add``."""

    def empty():  # type: ignore[misc]
        return (0,)

    def add(state, x):  # type: ignore[misc]  # noqa: N805
        return (state[0] + int(x),)

    def remove(state, x):  # type: ignore[misc]  # noqa: N805
        return (state[0] - int(x),)

    def merge(a, b):  # type: ignore[misc]  # noqa: N805
        return (a[0] + b[0],)

    def result(state):  # type: ignore[misc]  # noqa: N805
        return state[0]


OWN = {"views_spread": "range", "views_total": "sum"}
"""Users' aggregates, and those they equal."""


@dataclass(frozen=True)
class Own(Taken):
    def measure(self) -> Measure:
        return Measure(OWN[self.aggregate], tuple(argument.of for argument in self.arguments), self.parameter)


TAKEN: dict[str, tuple[Taken, ...]] = {
    group: tuple(
        Taken(one.name, one.aggregate, tuple(EXPRESSIONS[name] for name in one.arguments), one.parameter)
        for one in measures
    )
    for group, measures in MEASURES.items()
    if measures
} | {"own": tuple(Own(name, name, (EXPRESSIONS["m"],)) for name in OWN)}
EXACT = {"counts", "extremes", "kinds", "one count", "one maximum", "one sum", "own", "expressions"}
"""Groups whose results have no rounding."""

FILTERS: dict[str, Expression] = {
    name: Expression(written, meaning)
    for name, written, meaning in (
        ("m", "{R}.m > -1", lambda left, right, far: None if right["m"] is None else right["m"] > -1),
        ("c", "{R}.c > 1", lambda left, right, far: None if right["c"] is None else right["c"] > 1),
        ("x", "{R}.x is not null", lambda left, right, far: right["x"] is not None),
        ("none", "{R}.c is null", lambda left, right, far: right["c"] is None),
    )
}


@dataclass(frozen=True)
class Below:
    """A view that others may stand on: its dimensions, and a column of whole numbers."""

    name: str
    dimensions: tuple[str, ...]
    column: str


@dataclass(frozen=True)
class Maker:
    """What a definition is made with."""

    random: np.random.Generator
    below: Sequence[Below] = ()

    def one_of(self, choices: Sequence[Any]) -> Any:
        return choices[int(self.random.integers(len(choices)))]

    def taken(self, array: str, around: bool = False) -> tuple[Taken, ...]:
        # Around a cell, a plain name is the neighbour's: there is no expression of both.
        group = TAKEN[self.one_of([name for name in TAKEN if not (around and name == "expressions")])]
        if array == DENSE:
            group = tuple(one for one in group if not one.name.endswith("_s"))
        return tuple(group[k] for k in sorted(self.random.permutation(len(group))[:3]))

    def array(self) -> str:
        return str(self.one_of(("S", "T", "D")))

    def input(self, array: str) -> Step:
        """An array, or now and then some of its cells."""
        if self.random.random() < 0.75:
            return Scan(array)
        return Chosen(Scan(array), self.one_of(list(FILTERS.values())))

    def shape(self, names: tuple[str, ...]) -> tuple[str, Shape]:
        # What grows cannot wrap.
        kinds = [kind for kind in SHAPES if names[0] != "t" or not kind.startswith("wrap")]
        _, text, held = join_problems.make_shape(None, self.one_of(kinds), self.random, names, whole=True)
        return text, held

    def window(self, input: Step, names: tuple[str, ...], taken: tuple[Taken, ...], plain: bool) -> Windowed:
        extents = {}
        for name in names:
            start = int(self.one_of([0, 0, -1, -1, -2, 1, -4]))
            extents[name] = (start, start + int(self.one_of([0, 1, 2, 2, 4])))
        steps = {name: int(self.one_of([1, 2, 3])) for name in names} if self.random.random() < 0.2 else {}
        wraps = frozenset(names[1:]) if plain and self.random.random() < 0.2 else frozenset()
        boundary = "drop" if plain and self.random.random() < 0.2 else "clip"
        return Windowed(input, extents, taken, steps, wraps, boundary, int(self.one_of([0, 0, 0, 2])))


Make = Callable[[Maker], Step]


def _window(make: Maker) -> Step:
    array = make.array()
    input = make.input(array)
    return make.window(input, DIMENSIONS[array], make.taken(array), isinstance(input, Scan))


def _regrid(make: Maker) -> Step:
    array = make.array()
    sizes = {name: int(make.one_of([2, 3, 4])) for name in DIMENSIONS[array]}
    return Windowed.regrid(make.input(array), sizes, make.taken(array))


def _total(make: Maker) -> Step:
    array = make.array()
    return Grouped(make.input(array), (), make.taken(array))


def _group(make: Maker) -> Step:
    array = make.array()
    return Grouped(make.input(array), (make.one_of(DIMENSIONS[array]),), make.taken(array))


COUNT = Taken("count_all", "count_all")


def _having(make: Maker) -> Step:
    array = make.array()
    least = int(make.one_of([2, 3, 5]))
    condition = Column("count_all", f"{{}} > {least}", lambda n: n > least)
    taken = tuple(one for one in make.taken(array) if one.name != "count_all")
    return Grouped(make.input(array), (make.one_of(DIMENSIONS[array]),), (COUNT, *taken), condition)


def _neighbours(make: Maker) -> Step:
    array = make.array()
    text, shape = make.shape(DIMENSIONS[array])
    return Around(make.input(array), shape, text, make.taken(array, True), int(make.one_of([0, 0, 0, 2])))


def _labelled(make: Maker) -> Step:
    before, after = int(make.one_of([0, 2, 5])), int(make.one_of([0, 0, 3]))
    shape = Shape((Between("t", timedelta(-before), timedelta(after), by_label=True), Norm("Linf", 1, ("y",))))
    text = f"t between '-{before} days' and '{after} days', Linf(1) on (y)"
    return Around(Scan(DENSE), shape, text, make.taken(DENSE, True))


def _mapping(make: Maker) -> dict[str, Place] | None:
    if make.random.random() < 0.5:
        return None
    found = {}
    for name in ("i", "j"):
        shift, factor = int(make.one_of([-1, 0, 1])), int(make.one_of([1, 2]))
        kind = make.one_of(["shift", "scale", "floor"])
        found[name] = {
            "shift": Place(name, shift=shift), "scale": Place(name, scale=factor, shift=shift),
            "floor": Place(name, divisor=factor, shift=shift),
        }[kind]  # fmt: skip
    return found


def _partner(make: Maker, kind: str = "inner", **options: Any) -> Partnered:
    text, shape = make.shape(("i", "j"))
    mapping = None if shape.excludes_self else _mapping(make)
    condition = make.one_of([None, None, *(CONDITIONS[name] for name in ("both", "missing", "left", "right"))])
    options = {"condition": condition, "mapping": mapping} | options
    return Partnered(make.input(make.one_of(SPARSE)), shape, text, kind=kind, **options)


def _joined(make: Maker, kind: str, where: Said | None = None, **options: Any) -> Step:
    by = make.one_of([("i", "j"), ("i", "j"), ("i",), ("j",), ()])
    return Coupled(make.input("S"), (_partner(make, kind, **options),), by, make.taken("S"), where=where)


def _pairs(make: Maker) -> Step:
    columns = {"f": EXPRESSIONS["product"], "g": EXPRESSIONS["x"]}
    return Coupled(make.input("S"), (_partner(make),), columns=columns)


def _anti(make: Maker) -> Step:
    return Coupled(make.input("S"), (_partner(make, "anti"),))


def _mutual(make: Maker) -> Step:
    partner = _partner(make, nearest=Nearest(mutual=True))
    return Coupled(Scan("S"), (partner,), columns={"f": EXPRESSIONS["product"]})


def _nearest_pairs(make: Maker) -> Step:
    partner = _partner(make, nearest=Nearest(int(make.one_of([1, 2, 3]))))
    return Coupled(Scan("S"), (partner,), columns={"g": EXPRESSIONS["x"]})


def _chain(make: Maker) -> Step:
    one = Partnered(Scan("T"), Shape((Norm("L1", 1),)), "L1(1)", condition=CONDITIONS["both"])
    other = Partnered(
        Scan(make.one_of(SPARSE)),
        Shape((Norm("Linf", 1, ("j",)),)),
        "Linf(1) on (j)",
        {"i": Place("i", side=1), "j": Place("j", side=0)},
    )
    taken = (COUNT, Taken("sum_m", "sum", (EXPRESSIONS["m"],)), Taken("max_x", "max", (EXPRESSIONS["x"],)))
    return Coupled(Scan("S"), (one, other), make.one_of([("i", "j"), ("i",)]), taken)


def _filter(make: Maker) -> Step:
    array = make.array()
    return Chosen(Scan(array), make.one_of(list(FILTERS.values())))


def _projection(make: Maker) -> Step:
    array = make.array()
    columns: Mapping[str, Said] = {"d": Column("m", "{} * 2", lambda m: m * 2), "c": Column("c")}
    return Chosen(make.input(array), None, columns)


def _stacked(make: Maker) -> Step:
    """A filter and a projection of counts, blocks or windows of counts: all in one definition."""
    text, shape = make.shape(("i", "j"))
    counted = Around(Scan("S"), shape, text, (COUNT,))
    some = Chosen(counted, Column("count_all", "{} > 1", lambda n: n > 1), {"d": Column("count_all")})
    kind = make.one_of(["top", "regrid", "window", "group"])
    taken = (Taken("sum_d", "sum", (Column("d"),)), Taken("max_d", "max", (Column("d"),)))
    if kind == "top":
        return some
    if kind == "regrid":
        return Windowed.regrid(some, {"i": 2, "j": 3}, taken)
    return make.window(some, ("i", "j"), taken, False) if kind == "window" else Grouped(some, ("i",), taken)


def _on_a_view(make: Maker) -> Step:
    if not make.below:
        return _group(make)
    below: Below = make.one_of(make.below)
    taken = tuple(
        Taken(name, name, (Column(below.column),), parameter)
        for name, parameter in (("sum", None), ("max", None), ("median", None), ("count", None))
    )
    kind = make.one_of(["group", "total", "window", "neighbours", "filter"])
    if kind == "window":
        return make.window(Scan(below.name), below.dimensions, taken, False)
    if kind == "neighbours":
        return Around(Scan(below.name), Shape((Norm("Linf", 1),)), "Linf(1)", taken)
    if kind == "filter":
        return Chosen(Scan(below.name), Column(below.column, "{} > 2", lambda n: n > 2))
    return Grouped(Scan(below.name), below.dimensions[:1] if kind == "group" else (), taken)


def _diamond(make: Maker) -> Step:
    """Two views, often on one array, and a view on both."""
    plane = [below for below in make.below if below.dimensions == ("i", "j")]
    if not plane:
        return _joined(make, "inner")
    left, right = make.one_of(plane), make.one_of(plane)
    taken = (COUNT, Taken("sum", "sum", (_Product(left.column, right.column),)))
    partner = Partnered(Scan(right.name), Shape((Norm("L1", 1),)), "L1(1)")
    return Coupled(Scan(left.name), (partner,), ("i", "j"), taken)


@dataclass(frozen=True)
class _Product:
    left: str
    right: str

    def text(self, left: str, right: str) -> str:
        return f"{left}.{self.left} * {right}.{self.right}"

    def of(self, sides: Sided, far: float) -> Any:
        one, other = sides[0][self.left], sides[-1][self.right]
        return None if one is None or other is None else one * other


def _where_joined(make: Maker) -> Step:
    where = make.one_of([CONDITIONS["both"], CONDITIONS["left"], CONDITIONS["right"]])
    return _joined(make, make.one_of(["inner", "left"]), where, condition=None)


KINDS: dict[str, Make] = {
    "window": _window,
    "regrid": _regrid,
    "total": _total,
    "group by": _group,
    "having": _having,
    "neighbours": _neighbours,
    "neighbours by label": _labelled,
    "inner join": lambda make: _joined(make, "inner"),
    "left join": lambda make: _joined(make, "left"),
    "join where": _where_joined,
    "anti join": _anti,
    "nearest": lambda make: _joined(make, make.one_of(["inner", "left"]), nearest=Nearest(int(make.one_of([1, 2])))),
    "nearest by": lambda make: _joined(make, "inner", nearest=Nearest(2, BY.of), nearest_by=BY),
    "nearest pairs": _nearest_pairs,
    "mutual nearest": _mutual,
    "pairs": _pairs,
    "chain": _chain,
    "filter": _filter,
    "projection": _projection,
    "stacked": _stacked,
    "on a view": _on_a_view,
    "diamond": _diamond,
}
WHOLE = {"count_all", "sum_c", "sum_d", "sum_m", "count_c", "count_x", "d", "max_d", "count", "max", "sum", "m", "c"}
"""Names of columns of whole numbers, which views may stand on."""


def stands(name: str, step: Step) -> Below | None:
    """A view as others may stand on it, if it has a column of whole numbers and dimensions."""
    if isinstance(step, Chosen):
        columns = list(step.columns) if step.columns is not None else []
        below = step.input
        if step.columns is None and isinstance(below, Scan):
            columns = ["m"] if below.name in DIMENSIONS else []
    else:
        columns = [one.name for one in getattr(step, "taken", ())]
    whole = [column for column in columns if column in WHOLE]
    dimensions = _dimensions(step)
    return Below(name, dimensions, whole[0]) if whole and dimensions else None


def _dimensions(step: Step) -> tuple[str, ...]:
    if isinstance(step, Scan):
        return DIMENSIONS.get(step.name, ())
    if isinstance(step, (Grouped, Coupled)):
        return step.by
    assert isinstance(step, (Chosen, Windowed, Around))
    return _dimensions(step.input)


def kinds_of_aggregates(step: Step) -> set[str]:
    """The aggregates that a definition takes, itself and below."""
    found = {one.aggregate for one in getattr(step, "taken", ())}
    input = getattr(step, "input", None)
    return found | (kinds_of_aggregates(input) if input is not None else set())
