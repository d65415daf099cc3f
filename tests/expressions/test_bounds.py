"""The box of a condition holds every cell that satisfies it, and is as small as plain ranges allow."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.expressions.bounds import box_of
from windrow.expressions.nodes import (
    COMPARISONS,
    And,
    Between,
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
from windrow.language.expression import parse_expression
from windrow.model.box import Box

from . import twin

BOUNDS = Box((-2, 0), (4, 5))
numbers = st.one_of(
    st.integers(-4, 7).map(Literal),
    st.sampled_from([-2.5, 0.5, 3.0, 1e300]).map(Literal),
    st.integers(0, 3).map(lambda n: Unary("-", Literal(n))),
    st.just(Literal(None)),
)
operands = st.sampled_from([Column("i"), Column("j"), Column("a")])
either = operands | numbers
simple: st.SearchStrategy[Node] = st.one_of(
    st.builds(Comparison, st.sampled_from(COMPARISONS), operands, either),
    st.builds(Comparison, st.sampled_from(COMPARISONS), numbers, operands),
    st.builds(Between, operands, either, either, st.booleans()),
    st.builds(InList, operands, st.lists(either, min_size=1, max_size=3).map(tuple), st.booleans()),
    st.builds(IsNull, operands, st.booleans()),
    st.sampled_from([Literal(True), Literal(False), Literal(None)]),
)


def _joined(inner: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    several: st.SearchStrategy[Any] = st.lists(inner, min_size=2, max_size=3).map(tuple)
    return st.one_of(st.builds(And, several), st.builds(Or, several), st.builds(Not, inner))


@settings(max_examples=200)
@given(st.recursive(simple, _joined, max_leaves=6), st.sampled_from([None, -3, 0, 3]))
def test_every_satisfying_cell_is_in_the_box(node: Node, attribute: int | None) -> None:
    box = box_of(node, ("i", "j"), BOUNDS)
    assert box in BOUNDS
    for i, j in product(range(-2, 5), range(0, 6)):
        if twin.value(node, {"i": i, "j": j, "a": attribute}) is True:
            assert (i, j) in box


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("i between 1 and 2 and a > 3", "[1:2, 0:5]"),
        ("i > 1.5 and j <= 2.5", "[2:4, 0:2]"),
        ("3 > i and 2 = j", "[-2:2, 2:2]"),
        ("i = 1 or i = 3", "[1:3, 0:5]"),
        ("i in (3, 1) and j not between 2 and 9", "[1:3, 0:1]"),
        ("not (i < 1 or j > 3)", "[1:4, 0:3]"),
        ("i = -1", "[-1:-1, 0:5]"),
        ("a = 1 or i = 1", "[-2:4, 0:5]"),
        ("left.i = 1", "[-2:4, 0:5]"),
        ("i < 9223372036854775807.0", "[-2:4, 0:5]"),
    ],
)
def test_boxes_of_plain_ranges(text: str, expected: str) -> None:
    assert str(box_of(parse_expression(text), ("i", "j"), BOUNDS)) == expected


@pytest.mark.parametrize("text", ["false", "null", "i = 9", "i is null", "i = 1 and i = 2", "i = 1.5", "i > null"])
def test_conditions_that_no_cell_satisfies(text: str) -> None:
    assert box_of(parse_expression(text), ("i", "j"), BOUNDS).is_empty


def test_rounded_comparisons_do_not_lose_cells() -> None:
    far = 2**53 + 1  # equals 2.0**53 when compared as float64, as evaluate does
    box = box_of(parse_expression("i = 9007199254740992.0"), ("i",), Box((0,), (2**54,)))
    assert (far,) in box


def test_qualified_dimensions() -> None:
    assert box_of(parse_expression("A1.i = 1"), ("A1.i", "A1.j"), BOUNDS) == Box((1, 0), (1, 5))
