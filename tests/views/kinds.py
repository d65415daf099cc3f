"""Views of every kind, made at random."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from join_oracle import Between, Nearest, Norm, Place, Shape, Sided, Sky
from join_problems import BY, CONDITIONS, EXPRESSIONS, Expression

from .definitions import (
    COUNT,
    DENSE,
    DIMENSIONS,
    GROWING,
    NUMBERED,
    SPARSE,
    STORED_SHAPE,
    Below,
    Maker,
    every_dimension,
)
from .oracle import (
    Around,
    Chosen,
    Column,
    Coupled,
    Grouped,
    Later,
    Operated,
    Partnered,
    Said,
    Scan,
    Step,
    Taken,
    Windowed,
)

Make = Callable[[Maker], Step]
BREAKING = 100
"""A value of m that breaks the views that are fragile, with either sign."""


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


def _shared(make: Maker) -> Step:
    """Results that do not depend on a dimension, which are stored without it."""
    array = make.one_of(("S", "T", GROWING, NUMBERED))
    text, shape = make.shape_without(DIMENSIONS[array])
    taken = (COUNT, *(one for one in make.taken(array, True) if one.name != "count_all"))
    if make.random.random() < 0.5:
        found: Step = Around(make.input(array), shape, text, taken, int(make.one_of([0, 0, 2])))
    else:
        text, shape = make.shape_without(("i", "j"))
        condition = make.one_of([None, None, CONDITIONS["right"]])
        right = make.input(make.one_of(SPARSE))
        partner = Partnered(right, shape, text, condition=condition, kind=_kind_of(make))
        found = Coupled(make.input("S"), (partner,), ("i", "j"), taken)
    some, double = Column("count_all", "{} > 2", lambda n: n > 2), Column("count_all", "{} * 2", lambda n: n * 2)
    return make.one_of([found, found, found, Chosen(found, some), Chosen(found, None, {"d": double})])  # type: ignore[no-any-return]


def _labelled(make: Maker) -> Step:
    before, after = int(make.one_of([0, 2, 5])), int(make.one_of([0, 0, 3]))
    shape = Shape((Between("t", timedelta(-before), timedelta(after), by_label=True), Norm("Linf", 1, ("y",))))
    text = f"t between '-{before} days' and '{after} days', Linf(1) on (y)"
    return Around(Scan(DENSE), shape, text, make.taken(DENSE, True))


def _labelled_window(make: Maker) -> Step:
    before = int(make.one_of([1, 2, 5]))
    after = before if make.random.random() < 0.5 else 0
    extents = {"t": (timedelta(-before), timedelta(after)), "y": (0, 1)}
    return Windowed(Scan(DENSE), extents, make.taken(DENSE))


def _stored_shape(make: Maker) -> Step:
    """The offsets are the cells of an array, which changes, too."""
    return Around(Scan(make.one_of(SPARSE)), Shape(()), STORED_SHAPE, make.taken("S", True), stored=STORED_SHAPE)


def _sampled(make: Maker) -> Step:
    array = make.array()
    text, shape = make.shape(DIMENSIONS[array])
    steps = {name: int(make.one_of([1, 2, 3])) for name in DIMENSIONS[array]}
    return Around(Scan(array), shape, text, make.taken(array, True), steps=steps)


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
    joined = Coupled(make.input("S"), (_partner(make, kind, **options),), by, make.taken("S"), where=where)
    return replace(joined, min_count=int(make.one_of([0, 0, 2])) if by else 0)


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


def _grid_join(make: Maker) -> Step:
    """The dense array on one side, or on both."""
    text, shape = make.shape(("t", "y"))
    left = make.one_of(("D", "D", "S"))
    names = DIMENSIONS[left]
    mapping = {"t": Place(names[0], shift=1 if left == "S" else 0), "y": Place(names[1])}
    partner = Partnered(Scan(DENSE), shape, text, mapping, make.one_of([None, CONDITIONS["both"]]), _kind_of(make))
    by = make.one_of([names, names, names[:1], ()])
    return Coupled(Scan(left), (partner,), by, make.taken(DENSE))


def _kind_of(make: Maker) -> str:
    return str(make.one_of(["inner", "left"]))


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
    return make.chosen(make.array())


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


WHOLE_OF_WHOLE = ("sum", "max", "count", "min", "first", "last", "range", "mode", "count_distinct")
OTHERS_OF_WHOLE: dict[str, float | None] = {
    "median": None, "avg": None, "var": None, "std": None, "var_pop": None, "std_pop": None, "percentile": 70,
    "quantile_disc": 0.3, "quantile_cont": 0.7, "quantile_index": 0.7,
}  # fmt: skip
"""Aggregates of whole numbers, with their parameters; the results of those above are whole numbers, too."""


def _on_a_view(make: Maker) -> Step:
    if not make.below:
        return _group(make)
    below: Below = make.one_of(make.below)
    chosen = {make.one_of(WHOLE_OF_WHOLE), *(make.one_of([*WHOLE_OF_WHOLE, *OTHERS_OF_WHOLE]) for _ in range(2))}
    taken = tuple(Taken(name, name, (Column(below.column),), OTHERS_OF_WHOLE.get(name)) for name in sorted(chosen))
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


def _mutual_groups(make: Maker) -> Step:
    return _joined(make, "inner", nearest=Nearest(mutual=True))


def _growing_join(make: Maker) -> Step:
    """A sparse array that grows, with itself or with one that does not."""
    left, right = make.one_of([(GROWING, GROWING), (GROWING, GROWING), (GROWING, "S"), ("S", GROWING)])
    text, shape = make.shape(DIMENSIONS[right])
    mapping = None
    if left != right:
        mapping = {name: Place(other) for name, other in zip(DIMENSIONS[right], DIMENSIONS[left], strict=True)}
    condition = make.one_of([None, None, CONDITIONS["both"], CONDITIONS["right"]])
    nearest = make.one_of([None, None, Nearest(1), Nearest(mutual=True)])
    kind = "inner" if nearest is not None and nearest.mutual else _kind_of(make)
    partner = Partnered(Scan(right), shape, text, mapping, condition, kind, nearest)
    if kind == "inner" and make.random.random() < 0.25:
        return Coupled(Scan(left), (partner,), columns={"f": EXPRESSIONS["product"], "g": EXPRESSIONS["x"]})
    names = DIMENSIONS[left]
    return Coupled(Scan(left), (partner,), make.one_of([names, names, names[:1], ()]), make.taken("S"))


def _numbered_join(make: Maker) -> Step:
    """Cells that share their place, each with its number."""
    text, shape = make.shape(("i", "j"))
    left = NUMBERED if shape.excludes_self else make.one_of((NUMBERED, NUMBERED, "S"))
    nearest = make.one_of([None, None, Nearest(2), Nearest(mutual=True)])
    condition = make.one_of([None, None, CONDITIONS["both"]])
    partner = Partnered(Scan(NUMBERED), shape, text, condition=condition, nearest=nearest)
    if make.random.random() < 0.25:
        return Coupled(Scan(left), (partner,), columns={"f": EXPRESSIONS["product"], "g": EXPRESSIONS["x"]})
    names = every_dimension(left)
    return Coupled(Scan(left), (partner,), make.one_of([names, names, names[:2], names[:1], ()]), make.taken("S"))


def _sky(make: Maker, excluding: str = "") -> tuple[str, Shape]:
    radius = int(make.one_of([5, 15, 40]))
    return f"Sky('{radius} deg') on (ra, dec){excluding}", Shape((Sky(radius),), excludes_self=bool(excluding))


def _sky_join(make: Maker) -> Step:
    """Points near one another on the sphere, in one array or in two that are gridded differently."""
    left, right = make.one_of([("G", "G"), ("G", "H"), ("H", "G")])
    text, shape = _sky(make, ", excluding self" if left == right and make.random.random() < 0.5 else "")
    if left == right and make.random.random() < 0.5:
        return Around(Scan(left), shape, text, make.taken("S", True))
    condition = make.one_of([None, CONDITIONS["both"], NEAR])
    partner = Partnered(Scan(right), shape, text, condition=condition, kind=_kind_of(make))
    return Coupled(Scan(left), (partner,), _sky_groups(make, left), make.taken("S"))


def _sky_nearest(make: Maker) -> Step:
    """Cross-matches of two catalogues."""
    left, right = make.one_of([("G", "H"), ("H", "G")])
    text, shape = _sky(make)
    nearest = make.one_of([Nearest(1), Nearest(2), Nearest(mutual=True), Nearest(mutual=True)])
    partner = Partnered(Scan(right), shape, text, nearest=nearest)
    if make.random.random() < 0.25:
        return Coupled(Scan(left), (partner,), columns={"f": EXPRESSIONS["product"], "g": EXPRESSIONS["x"]})
    return Coupled(Scan(left), (partner,), _sky_groups(make, left), make.taken("S"))


def _sky_groups(make: Maker, left: str) -> tuple[str, ...]:
    names = every_dimension(left)
    return make.one_of([names, names, names[:2], names[:1], ()])  # type: ignore[no-any-return]


def _operator(make: Maker) -> Step:
    made = Operated(DENSE, int(make.one_of([1, 2, -3])))
    if make.random.random() < 0.6:
        return made
    return Chosen(made, Column("total", "{} > 0", lambda n: n > 0), {"d": Column("total"), "top": Column("top")})


def _on_an_operator(make: Maker) -> Step:
    made = Operated(DENSE, int(make.one_of([1, 2, -3])))
    taken = (
        Taken("sum_total", "sum", (Column("total"),)), Taken("max_top", "max", (Column("top"),)),
        Taken("median_total", "median", (Column("total"),)),
    )  # fmt: skip
    kind = make.one_of(["group", "total", "window", "regrid", "neighbours"])
    if kind == "window":
        return make.window(made, ("t", "y"), taken, False)
    if kind == "regrid":
        return Windowed.regrid(made, {"t": 2, "y": 2}, taken)
    if kind == "neighbours":
        return Around(made, Shape((Norm("Linf", 1),)), "Linf(1)", taken)
    return Grouped(made, ("t",) if kind == "group" else (), taken)


def _later(make: Maker) -> Step:
    """What comes after some cell of an array that grows, or after some label, which may move."""
    array = make.one_of((DENSE, DENSE, GROWING))
    first: Any = int(make.one_of([2, 3, 5]))
    last: Any = make.one_of([None, None, first + 2])
    if array == DENSE and make.random.random() < 0.7:
        first = datetime(2012, 1, int(make.one_of([2, 4, 9])))
        last = None if last is None else first + timedelta(int(make.one_of([0, 3, 6])))
    later = Later(array, first, last)
    kind = make.one_of(["cells", "window", "regrid", "neighbours", "group", "total"])
    taken = make.taken(array, kind == "neighbours")
    if kind == "window":
        return make.window(later, DIMENSIONS[array], taken, False)
    if kind == "regrid":
        return Windowed.regrid(later, dict.fromkeys(DIMENSIONS[array], 2), taken)
    if kind == "neighbours":
        return Around(later, Shape((Norm("Linf", 1),)), "Linf(1)", taken)
    return later if kind == "cells" else Grouped(later, DIMENSIONS[array][:1] if kind == "group" else (), taken)


def _fragile(make: Maker) -> Step:
    """A value that cannot be computed of cells that break it, which one change brings and takes away."""
    array = make.one_of(SPARSE)
    value = Column("m", "{0} // (abs({0}) - 100)", lambda m: m // (abs(m) - BREAKING))
    if make.random.random() < 0.5:
        return Chosen(Scan(array), None, {"q": value, "c": Column("c")})
    return Grouped(Scan(array), make.one_of([("i",), ("j",), ()]), (Taken("q", "sum", (value,)), COUNT))


NEAR = Expression("distance() <= 10", lambda left, right, far: far <= 10)


KINDS: dict[str, Make] = {
    "window": _window,
    "regrid": _regrid,
    "total": _total,
    "group by": _group,
    "having": _having,
    "neighbours": _neighbours,
    "shared results": _shared,
    "neighbours by label": _labelled,
    "window by label": _labelled_window,
    "stored shape": _stored_shape,
    "sampled": _sampled,
    "grid join": _grid_join,
    "inner join": lambda make: _joined(make, "inner"),
    "left join": lambda make: _joined(make, "left"),
    "join where": _where_joined,
    "anti join": _anti,
    "nearest": lambda make: _joined(make, make.one_of(["inner", "left"]), nearest=Nearest(int(make.one_of([1, 2])))),
    "nearest by": lambda make: _joined(make, "inner", nearest=Nearest(2, BY.of), nearest_by=BY),
    "nearest pairs": _nearest_pairs,
    "mutual nearest": _mutual,
    "mutual groups": _mutual_groups,
    "growing join": _growing_join,
    "numbered join": _numbered_join,
    "sky join": _sky_join,
    "sky nearest": _sky_nearest,
    "operator": _operator,
    "on an operator": _on_an_operator,
    "later": _later,
    "fragile": _fragile,
    "pairs": _pairs,
    "chain": _chain,
    "filter": _filter,
    "projection": _projection,
    "stacked": _stacked,
    "on a view": _on_a_view,
    "diamond": _diamond,
}
