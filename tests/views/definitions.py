"""Random definitions of views, of every kind and aggregate, over sparse and dense arrays, and views."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import join_problems
from join_oracle import Between, Measure, Norm, Shape
from join_problems import EXPRESSIONS, MEASURES, Expression

from .oracle import Around, Chosen, Coupled, Grouped, Later, Operated, Scan, Step, Taken, Windowed
from .plugins import OWN

SPARSE = ("S", "T")
DENSE = "D"
GROWING = "E"
"""A sparse array that grows."""
NUMBERED = "N"
"""A sparse array of which several cells may share all coordinates but a number."""
SKY = ("G", "H")
"""Points on the sphere, each array gridded in its own way."""
STORED_SHAPE = "Z"
"""An array whose cells are a shape's offsets."""
SCHEMAS = {
    "S": "<x: float64, c: int64 null, m: int32, s: string null> [i=0:5:3, j=-2:3:2]",
    "T": "<x: float64, c: int64 null, m: int32, s: string null> [i=0:5:4, j=-2:3:3]",
    "D": "<x: float64, c: int64 null, m: int32> [t=1:*:3, y=0:2:2]",
    "E": "<x: float64, c: int64 null, m: int32, s: string null> [t=1:*:3, j=-2:3:2]",
    "N": "<x: float64, c: int64 null, m: int32, s: string null> [i=0:2:2, j=-1:1:2, n=0:19:4]",
    "G": "<x: float64, c: int64 null, m: int32, s: string null> [ra, dec]",
    "H": "<x: float64, c: int64 null, m: int32, s: string null> [ra, dec]",
    "Z": "<flag: bool> [i=-2:2, j=-2:2]",
}
GRIDS = {"G": 30, "H": 20}
"""The size of a cell in degrees."""
CHUNKS = {"ra": 5, "dec": 2, "n": 2}
DIMENSIONS = {
    "S": ("i", "j"), "T": ("i", "j"), "D": ("t", "y"), "E": ("t", "j"), "N": ("i", "j"), "G": ("ra", "dec"),
    "H": ("ra", "dec"),
}  # fmt: skip
"""But for the dimension that numbers cells, which definitions seldom name."""
NUMBERS = {"N": "n", "G": "n", "H": "n"}
SHAPES = (
    "L1", "L2", "Linf", "Lp", "Hamming", "list", "range", "norm and range", "any", "wrap", "excluding self",
    "wrap excluding self", "larger",
)  # fmt: skip


@dataclass(frozen=True)
class Own(Taken):
    """A user's aggregate, by the name of the one that it equals."""

    def measure(self) -> Measure:
        _, equals, parameter = OWN[self.aggregate]
        return Measure(equals, tuple(argument.of for argument in self.arguments), parameter)


TAKEN: dict[str, tuple[Taken, ...]] = {
    group: tuple(
        Taken(one.name, one.aggregate, tuple(EXPRESSIONS[name] for name in one.arguments), one.parameter)
        for one in measures
    )
    for group, measures in MEASURES.items()
    if measures
} | {"own": tuple(Own(name, name, (EXPRESSIONS[of],)) for name, (of, _, _) in OWN.items())}
STATELESS = {"mode", "count_distinct", "views_spread", "views_middle"}
"""Aggregates whose results are computed anew where they are touched."""
RARE = {"wavg", "covar", "covar_pop", "corr", "skew", "kurtosis", "views_total"}
"""Aggregates that views on views do not take."""

FILTERS: dict[str, Expression] = {
    name: Expression(written, meaning)
    for name, written, meaning in (
        ("m", "{R}.m > -1", lambda left, right, far: None if right["m"] is None else right["m"] > -1),
        ("c", "{R}.c > 1", lambda left, right, far: None if right["c"] is None else right["c"] > 1),
        ("x", "{R}.x is not null", lambda left, right, far: right["x"] is not None),
        ("none", "{R}.c is null", lambda left, right, far: right["c"] is None),
    )
}


BOXES: dict[str, list[tuple[int, int]]] = {
    "S": [(-1, 2), (-2, 0), (1, 3)],
    "T": [(0, 2), (-2, 1)],
    "D": [(0, 1), (1, 2)],
    "E": [(-1, 2), (-2, 0)],
    "N": [(0, 1), (-1, 0)],
}
"""Ranges of each array's second dimension."""
COUNT = Taken("count_all", "count_all")


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
        """Up to three aggregates; more often than not all of them have states, else the query is computed anew."""
        known: dict[str, list[Taken]] = {}
        for name, group in TAKEN.items():
            for one in group:
                # Around a cell, a plain name is the neighbour's: there is no expression of both.
                if not (around and name == "expressions") and not (array == DENSE and one.name.endswith("_s")):
                    known.setdefault(one.aggregate, []).append(one)
        kept = [name for name in known if name not in STATELESS]
        names = kept + [name for name in kept if name in RARE]
        chosen = [self.one_of(names) for _ in range(int(self.one_of([1, 2, 3, 3])))]
        if self.random.random() < 0.4:
            chosen[0] = self.one_of([name for name in known if name in STATELESS])
        found = {one.name: one for one in (self.one_of(known[name]) for name in chosen)}
        return tuple(found[name] for name in sorted(found))

    def array(self) -> str:
        return str(self.one_of(("S", "T", "D", "E", "N")))

    def input(self, array: str) -> Step:
        """An array, or now and then some of its cells, by what they hold or by where they are."""
        if self.random.random() < 0.7:
            return Scan(array)
        return self.chosen(array)

    def chosen(self, array: str) -> Chosen:
        if self.random.random() < 0.4:
            return Chosen(Scan(array), box={DIMENSIONS[array][1]: self.one_of(BOXES[array])})
        return Chosen(Scan(array), self.one_of(list(FILTERS.values())))

    def shape(self, names: tuple[str, ...]) -> tuple[str, Shape]:
        # What grows cannot wrap.
        kinds = [kind for kind in SHAPES if names[0] != "t" or not kind.startswith("wrap")]
        _, text, held = join_problems.make_shape(None, self.one_of(kinds), self.random, names, whole=True)
        return text, held

    def shape_without(self, names: tuple[str, ...]) -> tuple[str, Shape]:
        """A shape for which one dimension, or both, make no difference."""
        free = self.one_of([names[:1], names[:1], names[1:], names])
        reach = int(self.one_of([0, 1, 2]))
        near = tuple(name for name in names if name not in free)
        text = [f"{name} any" for name in free] + ([f"Linf({reach}) on ({', '.join(near)})"] if near else [])
        terms = (*(Between(name, None, None) for name in free), *([Norm("Linf", reach, near)] if near else []))
        return ", ".join(text), Shape(terms)

    def window(self, input: Step, names: tuple[str, ...], taken: tuple[Taken, ...], plain: bool) -> Windowed:
        extents = {}
        for name in names:
            start = int(self.one_of([0, 0, -1, -1, -2, 1, -4]))
            extents[name] = (start, start + int(self.one_of([0, 1, 2, 2, 4])))
        steps = {name: int(self.one_of([1, 2, 3])) for name in names} if self.random.random() < 0.2 else {}
        wraps = frozenset(names[1:]) if plain and self.random.random() < 0.2 else frozenset()
        boundary = "drop" if plain and self.random.random() < 0.2 else "clip"
        return Windowed(input, extents, taken, steps, wraps, boundary, int(self.one_of([0, 0, 0, 2])))


WHOLE = {
    "count_all", "sum_c", "sum_d", "sum_m", "sum_total", "count_c", "count_x", "d", "max_d", "count", "max", "sum", "m",
    "c", "total", "q", "min", "first", "last", "range", "mode", "count_distinct",
    "min_c", "max_c", "first_c", "last_c", "range_c", "mode_c", "count_distinct_x", "count_distinct_c", "views_total",
    "quantile_disc_c", "quantile_index_c",
}  # fmt: skip
"""Names of columns of whole numbers, which views may stand on."""


def stands(name: str, step: Step, below: Sequence[Below]) -> Below | None:
    """A view as others may stand on it, if it has a column of whole numbers and dimensions; ``below`` are others."""
    known = {one.name: one for one in below}
    if isinstance(step, Chosen):
        columns = list(step.columns) if step.columns is not None else []
        source = step.input
        if step.columns is None and isinstance(source, Scan):
            columns = ["m"] if source.name in DIMENSIONS else [known[source.name].column]
    elif isinstance(step, Operated):
        columns = ["total"]
    elif isinstance(step, Later):
        columns = ["m"]
    else:
        columns = [one.name for one in getattr(step, "taken", ())]
    whole = [column for column in columns if column in WHOLE]
    dimensions = _dimensions(step, known)
    return Below(name, dimensions, whole[0]) if whole and dimensions else None


def every_dimension(array: str) -> tuple[str, ...]:
    return DIMENSIONS[array] + ((NUMBERS[array],) if array in NUMBERS else ())


def _dimensions(step: Step, known: Mapping[str, Below]) -> tuple[str, ...]:
    if isinstance(step, Scan):
        return every_dimension(step.name) if step.name in DIMENSIONS else known[step.name].dimensions
    if isinstance(step, Operated):
        return DIMENSIONS[DENSE]
    if isinstance(step, Later):
        return DIMENSIONS[step.array]
    if isinstance(step, (Grouped, Coupled)):
        return step.by
    assert isinstance(step, (Chosen, Windowed, Around))
    return _dimensions(step.input, known)


def kinds_of_aggregates(step: Step) -> set[str]:
    """The aggregates that a definition takes, itself and below."""
    found = {one.aggregate for one in getattr(step, "taken", ())}
    input = getattr(step, "input", None)
    return found | (kinds_of_aggregates(input) if input is not None else set())


UNPATCHED = {
    "percentile", "quantile_disc", "quantile_cont", "quantile_index", "median", "mode", "count_distinct",
    "views_spread", "views_middle",
}  # fmt: skip
"""Aggregates of which one value that leaves may make all others be looked at again."""


def must_be_strict(step: Step) -> bool | None:
    """Whether a strict view may be had of a definition; None if that is not said."""
    while isinstance(step, Chosen):
        step = step.input
    if isinstance(step, Coupled) and not step.by and not step.is_anti and step.columns is None:
        return None
    shapes = [step.shape] if isinstance(step, Around) else []
    shapes += [partner.shape for partner in step.partners] if isinstance(step, Coupled) else []
    if any(_is_everything(shape) for shape in shapes):
        return False
    if isinstance(step, Grouped) and not step.by:
        return not any(one.aggregate in UNPATCHED for one in step.taken)
    return True


PLANE = ("i", "j")


def _is_everything(shape: Shape) -> bool:
    """Whether all cells of a plane are near all others."""
    free = {term.name for term in shape.terms if isinstance(term, Between) and term.first is None}
    for term in shape.terms:
        on = getattr(term, "on", None) or PLANE
        if isinstance(term, Norm) and term.kind == "Hamming" and term.radius >= len(on):
            free |= set(on)  # so many coordinates may differ as there are
    return len(free) == 2
