"""Random plans and statements, built from nodes and not from text."""

from __future__ import annotations

from functools import partial
from typing import Any

from hypothesis import strategies as st

from expressions.trees import any_tree
from windrow.aggregates.registry import DEFINITIONS
from windrow.expressions.nodes import Binary, Call, Column, Literal, Node, Over
from windrow.model import shape as shapes
from windrow.model.schema import Attribute, Dimension, Schema
from windrow.model.shape import Shape
from windrow.model.types import TYPES
from windrow.model.window import Extent, LabelExtent
from windrow.plan import nodes, specs, statements
from windrow.plan.grouping.label_parts import PARTS, label_part
from windrow.plan.grouping.ordering import Ordered, OrderKey
from windrow.plan.names import KEYWORDS

WORDS = ["A", "B1", "time", "lat", "_x", "Window", "count", "sum", "min", "if", "exists", "date", "timestamp", "l1"]
names = st.sampled_from([*WORDS, *sorted(KEYWORDS)])
several_names = st.lists(names, min_size=1, max_size=3, unique=True)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
whole_numbers = st.integers(-(2**63), 2**64 - 1)
values: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    whole_numbers,
    st.floats(allow_nan=False, allow_infinity=False),
    texts,
    st.datetimes(),
)
ends = values.filter(lambda value: not isinstance(value, bool))
expressions = any_tree.filter(lambda tree: not any(isinstance(n, Call) and n.function == "pi" for n in tree.walk()))
offsets = st.integers(-(2**61), 2**61)


def tuples(strategy: st.SearchStrategy[Any], least: int = 1, most: int = 3) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(strategy, min_size=least, max_size=most).map(tuple)


@st.composite
def extents(draw: st.DrawFn) -> Extent | LabelExtent:
    extent: Extent | LabelExtent
    if draw(st.booleans()):
        start, stop = sorted(draw(st.tuples(offsets, offsets) | st.tuples(st.integers(-4, 4), st.integers(-4, 4))))
        extent = Extent(start, stop)
    else:
        anchor = draw(st.sampled_from(["corner", "centred", "trailing", "within"]))
        extent = LabelExtent(anchor, draw(st.floats(1e-6, 1e6)), draw(st.sampled_from(["", "days", "degrees"])))
    return extent.wrap() if draw(st.booleans()) else extent


@st.composite
def dimensions(draw: st.DrawFn) -> list[str | None]:
    """All by name, or all by place."""
    return draw(several_names) if draw(st.booleans()) else [None] * draw(st.integers(1, 3))


@st.composite
def windows(draw: st.DrawFn) -> specs.WindowSpec:
    steps = st.just(1) | st.integers(1, 2**40)
    axes = tuple(specs.WindowAxis(name, draw(extents()), draw(steps)) for name in draw(dimensions()))
    return specs.WindowSpec(axes, draw(st.sampled_from(["clip", "drop"])), draw(st.integers(0, 5)))


@st.composite
def regrids(draw: st.DrawFn) -> specs.RegridSpec:
    blocks = tuple(specs.Block(name, draw(st.integers(1, 2**40))) for name in draw(dimensions()))
    return specs.RegridSpec(blocks, draw(st.sampled_from(["clip", "drop"])), draw(st.integers(0, 5)))


@st.composite
def terms(draw: st.DrawFn) -> Shape:
    kind = draw(st.integers(0, 6))
    on = draw(st.none() | several_names)
    if kind == 0:
        norm = draw(st.sampled_from([shapes.L1, shapes.L2, shapes.Linf, partial(shapes.Lp, draw(st.floats(1, 1024)))]))
        return norm(draw(st.floats(0, 2**28) | st.integers(0, 9)), on)
    if kind == 1:
        return shapes.Hamming(draw(st.integers(0, 9)), on)
    if kind == 2:
        width = draw(st.integers(1, 3)) if on is None else len(on)
        return shapes.offset_list(draw(st.lists(st.tuples(*[offsets] * width), max_size=3)), on)
    if kind == 3:
        version = draw(st.sampled_from(["", "@0", "@12"]))
        stored = shapes.stored_shape(draw(names) + version, on)
        return stored.reflect() if draw(st.booleans()) else stored
    if kind == 4:
        unit = draw(st.sampled_from(["arcsec", "degrees", "mas"]))
        return shapes.sky(
            f"{draw(st.integers(1, 9))} {unit}", draw(st.lists(names, min_size=2, max_size=2, unique=True))
        )
    if kind == 5:
        pair = draw(st.sampled_from([("-200 days", 0), (0, "1.5 h"), ("-3", "4"), ("-1 h", "2 days")]))
        return shapes.offsets(**{draw(names): pair})
    pair = draw(st.just(shapes.any_offset) | st.tuples(offsets, offsets).map(lambda pair: tuple(sorted(pair))))
    return shapes.offsets(**{draw(names): pair})  # type: ignore[arg-type]


@st.composite
def any_shape(draw: st.DrawFn) -> Shape:
    first, *rest = draw(st.lists(terms(), min_size=1, max_size=3))
    for term in rest:
        first = first & term
    first = first.wrap(*draw(several_names)) if draw(st.booleans()) else first
    return first.excluding_self() if draw(st.booleans()) else first


@st.composite
def measures(draw: st.DrawFn) -> tuple[specs.Measure, ...]:
    made = []
    for name in draw(several_names):
        found = draw(st.sampled_from(sorted(DEFINITIONS.values(), key=lambda one: one.name)))
        arguments = [] if found.bare and draw(st.booleans()) else [draw(expressions) for _ in found.takes]
        argument, second = (*arguments, None, None)[:2]
        parameter = draw(st.floats(allow_nan=False, allow_infinity=False) | st.integers(0, 100))
        given = None if found.parameter is None else parameter
        made.append(specs.Measure(name, found.name, argument, given, second))
    return tuple(made)


@st.composite
def overs(draw: st.DrawFn) -> Over:
    """Aggregates over the groups of cells."""
    found = draw(st.sampled_from(sorted(DEFINITIONS.values(), key=lambda one: one.name)))
    arguments = [] if found.bare and draw(st.booleans()) else [draw(expressions) for _ in found.takes]
    parameter = [] if found.parameter is None else [Literal(draw(st.integers(0, 100) | st.floats(0, 1)))]
    plain = st.builds(Column, names, st.none() | names)
    keys = st.lists(plain | st.builds(label_part, st.sampled_from(sorted(PARTS)), plain), max_size=3)
    return Over(Call(found.name, (*arguments, *parameter)), tuple(draw(keys)))


@st.composite
def outputs(draw: st.DrawFn) -> tuple[specs.Output, ...]:
    plain = st.builds(Column, names, st.none() | names)
    over = overs() | st.builds(Binary, st.just("-"), plain, overs())
    return tuple(specs.Output(name, draw(expressions | plain | over)) for name in draw(several_names))


@st.composite
def ranges(draw: st.DrawFn) -> tuple[specs.Range, ...]:
    made = []
    for name in draw(dimensions()):
        low, high = draw(ends), draw(ends)
        made.append(specs.Range(name, 0 if name is not None and low is None and high is None else low, high))
    return tuple(made)


@st.composite
def scans(draw: st.DrawFn) -> nodes.Scan:
    version = draw(st.none() | st.integers(0, 2**63))
    as_of = draw(st.none() | st.datetimes()) if version is None else None
    return nodes.Scan(draw(names), version, as_of)


nearests = st.one_of(
    st.builds(nodes.Nearest, st.integers(1, 2**40), st.none() | expressions),
    st.builds(nodes.Nearest, st.just(1), st.none() | expressions, st.just(True)),
)


@st.composite
def steps(draw: st.DrawFn) -> int | tuple[specs.Block, ...]:
    if draw(st.booleans()):
        return draw(st.integers(1, 2**40))
    return tuple(specs.Block(name, draw(st.integers(1, 2**40))) for name in draw(dimensions()))


@st.composite
def joins(draw: st.DrawFn, inner: st.SearchStrategy[nodes.Plan]) -> nodes.Plan:
    first, *rest = draw(st.lists(names, min_size=2, max_size=3, unique=True))
    joined: nodes.Plan = nodes.Scan(first) if draw(st.booleans()) else nodes.Alias(draw(inner), first)
    for name in rest:
        right = nodes.Scan(name) if draw(st.booleans()) else nodes.Alias(draw(inner), name)
        kind = draw(
            st.sampled_from(["inner", "left"] if len(nodes.joined_names(joined)) > 1 else ["inner", "left", "anti"])
        )
        near = draw(st.none() | nearests)
        joined = nodes.SimilarityJoin(joined, right, draw(any_shape()), draw(st.none() | expressions), kind, near)
    return joined


def _grown(inner: st.SearchStrategy[nodes.Plan]) -> st.SearchStrategy[nodes.Plan]:
    methods = st.sampled_from(nodes.METHODS)
    any_name = names | st.sampled_from(['q"q', "a b", "日本"])
    plain = st.builds(Column, any_name, st.none() | any_name)
    parts = st.builds(label_part, st.sampled_from(sorted(PARTS)), plain)
    columns = st.lists(plain | parts, max_size=3, unique=True).map(tuple)
    return st.one_of(
        st.builds(nodes.Alias, inner, names),
        st.builds(nodes.Selection, inner, ranges()),
        st.builds(nodes.Filter, inner, expressions),
        st.builds(nodes.Project, inner, outputs()),
        st.builds(nodes.Apply, inner, outputs()),
        st.builds(nodes.Windowed, inner, windows(), measures(), methods),
        st.builds(nodes.Windowed, inner, windows(), measures(), st.sampled_from(["auto", "incremental"]), sweep=names),
        st.builds(nodes.Regrid, inner, regrids(), measures(), methods),
        st.builds(nodes.Neighbours, inner, any_shape(), measures(), st.integers(0, 5), methods, steps()),
        st.builds(nodes.GroupBy, inner, columns, measures()),
        st.builds(Ordered, inner, tuples(order_keys), st.none() | st.integers(0, 2**40)),
        st.builds(Ordered, inner, st.just(()), st.integers(0, 2**40)),
        joins(inner),
    )


order_keys = st.builds(OrderKey, expressions.filter(lambda node: not isinstance(node, Literal)), st.booleans())
versions = st.integers(0, 2**63)
changes = st.builds(nodes.Changes, names, versions, versions)
plans: st.SearchStrategy[nodes.Plan] = st.recursive(scans() | changes, _grown, max_leaves=4)


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    sparse = draw(st.booleans())
    used = draw(st.lists(names, min_size=2, max_size=5, unique=True))
    count = draw(st.integers(1, len(used) - 1))
    extents_ = st.tuples(st.integers(-9, 9), st.none() | st.integers(0, 99), st.none() | st.integers(1, 9))
    drawn = [(name, *draw(extents_)) for name in used[:count]]
    axes = [Dimension(name, lo, None if more is None else lo + more, chunk) for name, lo, more, chunk in drawn]
    kinds = st.sampled_from(list(TYPES.values()))
    attributes = [Attribute(name, draw(kinds), draw(st.booleans())) for name in used[count:]]
    return Schema(tuple(axes), tuple(attributes), sparse)


def _assignments() -> st.SearchStrategy[Any]:
    return st.dictionaries(names, expressions, min_size=1, max_size=3).map(lambda found: tuple(found.items()))


settings = st.dictionaries(names, values, max_size=2).map(lambda found: tuple(found.items()))
created_views = st.builds(statements.CreateView, names, plans, st.booleans(), settings)
cells = st.builds(statements.Cell, tuples(values), tuples(values, least=0))
any_statement: st.SearchStrategy[statements.Statement] = st.one_of(
    st.builds(statements.Query, plans, st.none() | names),
    st.builds(statements.CreateArray, names, schemas()),
    st.builds(statements.CreateFrom, names, plans),
    created_views,
    st.builds(statements.ExplainView, created_views),
    st.builds(statements.Load, names, tuples(tuples(values), least=0)),
    st.builds(statements.LoadFile, names, texts, settings),
    st.builds(statements.ImportFiles, tuples(texts), names, settings),
    st.builds(statements.InsertCells, names, tuples(cells), settings),
    st.builds(statements.InsertFile, names, texts, settings),
    st.builds(statements.InsertQuery, names, plans),
    st.builds(statements.Delete, names, st.none() | expressions),
    st.builds(statements.Update, names, _assignments(), st.none() | expressions),
    st.builds(statements.Describe, scans()),
    st.builds(statements.Explain, plans, st.booleans()),
    st.builds(statements.List, st.sampled_from(["aggregates", "arrays", "functions", "views"])),
    st.builds(statements.List, st.just("versions"), names),
    st.builds(statements.ShowHistory, names),
    st.builds(statements.Refresh, names, st.booleans()),
    st.builds(statements.CheckView, names),
    st.builds(statements.Drop, names, st.sampled_from([None, "array", "view"]), st.booleans(), st.booleans()),
    st.builds(statements.Save, plans, texts, settings),
    st.builds(
        statements.Plot,
        plans,
        st.none() | texts,
        st.sampled_from([None, *statements.PLOTTED]),
        settings,
    ),
    st.builds(statements.Begin, st.none() | texts),
    st.just(statements.Commit()),
    st.just(statements.Rollback()),
    st.builds(statements.SetOption, names, values),
)


def every_node(plan: nodes.Plan) -> set[type[nodes.Plan] | type[Node]]:
    """The kinds of nodes in a plan."""
    return {type(node) for node in plan.walk()}
