"""Random expression trees: any at all, for printing and parsing, and well-typed ones, for evaluating."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from hypothesis import strategies as st

from windrow.expressions.nodes import (
    ARITHMETIC,
    COMPARISONS,
    And,
    Between,
    Binary,
    Call,
    Case,
    Cast,
    Column,
    Comparison,
    InList,
    IsNull,
    Literal,
    Node,
    Not,
    Or,
    Unary,
)
from windrow.model.types import TYPES

names = st.sampled_from(["a", "i", "A1", "date", "timestamp", "end", "NOT", "a b", 'q"q', "日本", "1x", "'", "left"])
values: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**64 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=["Cs"])),
    st.datetimes(),
)
leaves = st.one_of(st.builds(Literal, values), st.builds(Column, names, st.none() | names))


def _grown(inner: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    several = st.lists(inner, min_size=2, max_size=3).map(tuple)
    return st.one_of(
        st.builds(Unary, st.just("-"), inner),
        st.builds(Binary, st.sampled_from(sorted(ARITHMETIC)), inner, inner),
        st.builds(Comparison, st.sampled_from(COMPARISONS), inner, inner),
        st.builds(And, several),
        st.builds(Or, several),
        st.builds(Not, inner),
        st.builds(Between, inner, inner, inner, st.booleans()),
        st.builds(InList, inner, several, st.booleans()),
        st.builds(IsNull, inner, st.booleans()),
        st.builds(Case, st.lists(st.tuples(inner, inner), min_size=1, max_size=2).map(tuple), st.none() | inner),
        st.builds(Call, st.sampled_from(["abs", "If", "pi"]), st.lists(inner, max_size=3).map(tuple)),
        st.builds(Cast, inner, st.sampled_from(list(TYPES.values()))),
    )


any_tree = st.recursive(leaves, _grown, max_leaves=12)

COLUMNS = {"int": ["n", "m", "tiny"], "float": ["x", "y"], "bool": ["p", "q"], "string": ["s", "r"], "datetime": ["t"]}
INTEGERS = st.integers(-5, 5) | st.sampled_from([2**62, 2**63 - 1, -(2**63)])
FLOATS = st.floats(-4, 4) | st.sampled_from([0.0, 0.5, -1.5, 1e308, -1e308])
TEXTS = st.text("aBc é%", max_size=4)
INSTANTS = st.datetimes(datetime(1960, 1, 1), datetime(2040, 1, 1))
_CONSTANTS: dict[str, st.SearchStrategy[Any]] = {
    "int": INTEGERS,
    "float": FLOATS,
    "bool": st.booleans(),
    "string": TEXTS,
    "datetime": INSTANTS,
}
_CALLS = {
    "int": ["abs", "sign", "floor", "ceil", "trunc"],
    "float": ["abs", "sign", "floor", "ceil", "trunc", "sqrt", "ln"],
    "string": ["lower", "upper", "trim", "ltrim", "rtrim"],
}
_PARTS = ["year", "month", "day", "hour", "minute", "second", "dayofyear", "dayofweek", "week", "quarter"]


@st.composite
def typed_tree(draw: st.DrawFn, kind: str, depth: int) -> Node:
    """A tree of the kind of values asked for, over the columns above."""

    def another(of: str = kind) -> Node:
        return draw(typed_tree(of, depth - 1))

    if depth == 0 or draw(st.integers(0, 5)) == 0:
        if draw(st.booleans()):
            return Column(draw(st.sampled_from(COLUMNS[kind])))
        return Literal(draw(st.none() | _CONSTANTS[kind]))
    shape = draw(st.integers(0, 5))
    if shape == 0:
        otherwise = another() if draw(st.booleans()) else None
        return Case(((another("bool"), another()), (another("bool"), another()))[: draw(st.integers(1, 2))], otherwise)
    if shape == 1:
        general = ["coalesce", "nullif", *([] if kind == "bool" else ["least", "greatest"])]
        return Call(draw(st.sampled_from(general)), (another(), another()))
    if shape == 2 and kind in _CALLS:
        return Call(draw(st.sampled_from(_CALLS[kind])), (another(),))
    return _special(draw, kind, another)


def _special(draw: st.DrawFn, kind: str, another: Any) -> Node:
    if kind == "bool":
        return _condition(draw, another)
    if kind == "datetime":
        unit = draw(st.sampled_from(["year", "month", "week", "day", "hour", "minute"]))
        return Call("date_trunc", (Literal(unit), another()))
    if kind == "string":
        if draw(st.booleans()):
            return Binary("||", another(), another())
        return Call("substr", (another(), Literal(draw(st.integers(1, 4))), Literal(draw(st.integers(0, 4)))))
    if kind == "int":
        choice = draw(st.integers(0, 6))
        if choice == 0:
            return Call("length", (another("string"),))
        if choice == 1:
            return Call(draw(st.sampled_from(_PARTS)), (another("datetime"),))
        return _arithmetic(draw, ["+", "-", "*", "//", "%"], another(), another())
    other = another("int") if draw(st.booleans()) else another()
    return _arithmetic(draw, ["+", "-", "*", "/", "//", "%"], another(), other)


def _arithmetic(draw: st.DrawFn, operators: list[str], left: Node, right: Node) -> Node:
    operator = draw(st.sampled_from([*operators, "negative"]))
    return Unary("-", left) if operator == "negative" else Binary(operator, left, right)


def _condition(draw: st.DrawFn, another: Any) -> Node:
    kind = draw(st.sampled_from(["int", "float", "bool", "string", "datetime"]))
    mixed = "int" if kind == "float" and draw(st.booleans()) else kind
    negated = draw(st.booleans())
    shapes: list[Callable[[], Node]] = [
        lambda: And((another(), another(), another())),
        lambda: Or((another(), another())),
        lambda: Not(another()),
        lambda: Comparison(draw(st.sampled_from(COMPARISONS)), another(kind), another(mixed)),
        lambda: Between(another(kind), another(mixed), another(kind), negated),
        lambda: InList(another(kind), (another(mixed), another(kind)), negated),
        lambda: IsNull(another(kind), negated),
        lambda: Call("contains", (another("string"), Literal(draw(TEXTS)))),
        lambda: Call("ends_with", (another("string"), Literal(draw(TEXTS)))),
        lambda: Call("starts_with", (another("string"), Literal(draw(TEXTS)))),
    ]
    return draw(st.sampled_from(shapes))()
