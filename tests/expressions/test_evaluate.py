"""Evaluation equals the slow twin on random trees, and every kind of wrong input has its error."""

from __future__ import annotations

import contextlib
import inspect
import math
import pickle
import sys
from datetime import datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.errors import DataError, Error, ExpressionError, UnknownNameError
from windrow.expressions.evaluate import evaluate
from windrow.expressions.nodes import DEEPEST, And, Cast, Column, Node, Unary
from windrow.expressions.types import NULL, check, check_condition
from windrow.language.expression import parse_expression
from windrow.model.arrow import arrow_type, data_type_from_arrow
from windrow.model.types import TYPES

from . import trees, twin

ARROW = {
    "n": pa.int64(), "m": pa.int64(), "tiny": pa.int8(), "x": pa.float64(), "y": pa.float64(), "p": pa.bool_(),
    "q": pa.bool_(), "s": pa.string(), "r": pa.string(), "t": pa.timestamp("us"),
}  # fmt: skip
VALUES = {
    "n": trees.INTEGERS, "m": trees.INTEGERS, "tiny": st.integers(-128, 127), "x": trees.FLOATS | st.just(math.inf),
    "y": trees.FLOATS, "p": st.booleans(), "q": st.booleans(), "s": trees.TEXTS, "r": trees.TEXTS, "t": trees.INSTANTS,
}  # fmt: skip
rows = st.lists(st.fixed_dictionaries({name: st.none() | some for name, some in VALUES.items()}), max_size=6)
kinds = st.sampled_from(["int", "float", "bool", "bool", "string", "datetime"])


def columns_of(table: list[dict[str, Any]]) -> dict[str, pa.Array]:
    return {name: pa.array([row[name] for row in table], kind) for name, kind in ARROW.items()}


@settings(max_examples=250)
@given(kinds.flatmap(lambda kind: trees.typed_tree(kind, 4)), rows)
def test_evaluation_equals_the_slow_twin(node: Node, table: list[dict[str, Any]]) -> None:
    columns = columns_of(table)
    kind = check(node, {name: data_type_from_arrow(arrow) for name, arrow in ARROW.items()})
    try:
        expected = [twin.value(node, row) for row in table]
    except twin.WrongError:
        with pytest.raises(ExpressionError):
            evaluate(node, columns, len(table))
        return
    result = evaluate(node, columns, len(table))
    assert result.type == (pa.null() if kind == NULL else arrow_type(kind))
    assert result.to_pylist() == expected


@given(kinds.flatmap(lambda kind: trees.typed_tree(kind, 3)), rows, st.integers(0, 6))
def test_each_row_is_computed_for_itself(node: Node, table: list[dict[str, Any]], cut: int) -> None:
    def run(part: list[dict[str, Any]]) -> list[Any]:
        return list(evaluate(node, columns_of(part), len(part)).to_pylist())

    try:
        whole = run(table)
    except ExpressionError:
        return
    assert whole == run(table[:cut]) + run(table[cut:])


DATA = {
    "a": pa.array([1, None, 3], pa.int8()),
    "b": pa.array([0, 1, 2], pa.int64()),
    "x": pa.array([1.5, math.nan, -2.5], pa.float32()),
    "s": pa.array([" Ab", "b", None]),
    "t": pa.array([datetime(1969, 12, 31, 23, 59, 59), None, datetime(2012, 2, 29, 12)], pa.timestamp("us")),
    "u": pa.array([2**63, 1, 2], pa.uint64()),
    "f": pa.array([True, None, False]),
    "left.m": pa.chunked_array([[1, 2], [3]]),
}
KNOWN = {name: data_type_from_arrow(values.type) for name, values in DATA.items()}


def answer(text: str) -> list[Any]:
    result = evaluate(parse_expression(text), DATA, 3)
    kind = check(parse_expression(text), KNOWN)
    assert result.type == (pa.null() if kind == NULL else arrow_type(kind))
    return list(result.to_pylist())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", [1, None, 3]),
        ("a + 1", [2, None, 4]),
        ("a / 2", [0.5, None, 1.5]),
        ("1 / 4", [0.25] * 3),
        ("-7 // 2", [-4] * 3),
        ("-7 % 3", [2] * 3),
        ("7 % -3", [-2] * 3),
        ("mod(-7.5, 2)", [0.5] * 3),
        ("x", [1.5, None, -2.5]),
        ("x is null", [False, True, False]),
        ("isnan(x)", [False, True, False]),
        ("isfinite(x)", [True, False, True]),
        ("isfinite(exp(1000 + x))", [False, False, False]),
        ("sqrt(x - x - 1)", [None] * 3),
        ("ln(-1)", [None] * 3),
        ("null / 0", [None] * 3),
        ("case when b <> 0 then a / b end", [None, None, 1.5]),
        ("b <> 0 and a / b > 1", [False, None, True]),
        ("b = 0 or 1 / b >= 1", [True, True, False]),
        ("if(b = 0, 0, 6 // b)", [0, 6, 3]),
        ("coalesce(b, 1 / 0)", [0.0, 1.0, 2.0]),
        ("case b when 0 then 'zero' when 1 then 'one' end", ["zero", "one", None]),
        ("case when f then null end", [None] * 3),
        ("f and null", [None, None, False]),
        ("f or null", [True, None, None]),
        ("a in (1, null)", [True, None, None]),
        ("a not in (1, null)", [False, None, None]),
        ("a not in (1, 2)", [False, None, True]),
        ("-0.0 in (0.0)", [True] * 3),
        ("null in (1)", [None] * 3),
        ("null = null", [None] * 3),
        ("abs(null)", [None] * 3),
        ("round(null, 2)", [None] * 3),
        ("round(x)", [2.0, None, -3.0]),
        ("trunc(x) + trunc(b)", [1.0, None, 0.0]),
        ("round(1234.567, 1)", [1234.6] * 3),
        ("round(1250, -2)", [1300] * 3),
        ("sign(x)", [1.0, None, -1.0]),
        ("power(b, 2)", [0.0, 1.0, 4.0]),
        ("log2(8) + log10(100)", [5.0] * 3),
        ("degrees(radians(180))", [180.0] * 3),
        ("atan2(0, 1) + sin(0) + cos(0) + tan(0) + asin(0) + acos(1) + atan(0)", [1.0] * 3),
        ("least(a, 2.5, x)", [1.0, 2.5, -2.5]),
        ("greatest('a', s)", ["a", "b", "a"]),
        ("s || '-' || upper(s)", [" Ab- AB", "b-B", None]),
        ("concat(trim(s), lower(s))", ["Ab ab", "bb", None]),
        ("ltrim(s) || '|' || rtrim(s)", ["Ab| Ab", "b|b", None]),
        ("ends_with(s, 'Ab')", [True, False, None]),
        ("replace(s, 'b', 'cc')", [" Acc", "cc", None]),
        ("substr(s, 2)", ["Ab", "", None]),
        ("substr('日本語', 2, 1)", ["本"] * 3),
        ("t >= '2012-01'", [False, None, True]),
        ("t between '1969' and date '1970-01-01'", [True, None, False]),
        ("t in ('2012-02-29T12:00Z', '2013')", [False, None, True]),
        ("second(t)", [59, None, 0]),
        ("dayofyear(t)", [365, None, 60]),
        ("dayofweek(t) * 1000 + week(t) * 10 + quarter(t)", [3014, None, 3091]),
        ("year('2012-03-01')", [2012] * 3),
        ("date_trunc('Month', t)", [datetime(1969, 12, 1), None, datetime(2012, 2, 1)]),
        ("cast(x as int8)", [1, None, -2]),
        ("cast(' 12 ' as uint8)", [12] * 3),
        ("cast('2012-01' as datetime)", [datetime(2012, 1, 1)] * 3),
        ("cast(a as string)", ["1", None, "3"]),
        ("cast(b as bool)", [False, True, True]),
        ("cast(f as float)", [1.0, None, 0.0]),
        ("cast('nan' as float64)", [None] * 3),
        ("cast(0.1 as float32) = 0.1", [False] * 3),
        ("cast(null as int8)", [None] * 3),
        ("u + 1", [2**63 + 1, 2, 3]),
        ("u > -1", [True] * 3),
        ("u = 9223372036854775808", [True, False, False]),
        ("u in (-1, 9223372036854775808)", [True, False, False]),
        ("abs(u)", [2**63, 1, 2]),
        ("-9223372036854775808", [-(2**63)] * 3),
        ("left.m * 2", [2, 4, 6]),
        ("0x10", [16] * 3),
    ],
)
def test_what_expressions_mean(text: str, expected: list[Any]) -> None:
    assert answer(text) == expected


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("a / b", ExpressionError, "division by zero, got a / b"),
        ("1 // b", ExpressionError, "division by zero"),
        ("1.5 % (b - 1)", ExpressionError, "division by zero"),
        ("9223372036854775807 + b", ExpressionError, "integer overflow"),
        ("(-9223372036854775807 - 1) // -b", ExpressionError, "division by zero|integer overflow"),
        ("-9223372036854775808 // -1", ExpressionError, "integer overflow"),
        ("abs(-9223372036854775808)", ExpressionError, r"abs\(-9223372036854775808\)"),
        ("u - 5", ExpressionError, "integer overflow"),
        ("u + a", ExpressionError, "does not fit int64"),
        ("cast(300 as int8)", ExpressionError, "int8"),
        ("cast(1e300 as int64)", ExpressionError, "int64, got 1e\\+300"),
        ("cast('x' as int64)", ExpressionError, "cannot be cast"),
        ("cast('x' as datetime)", ExpressionError, "not a date or time, got 'x'"),
        ("t > 'yesterday'", ExpressionError, "not a date or time, got 'yesterday'"),
        ("a > 'x'", ExpressionError, "int8 and string do not go together"),
        ("t > s", ExpressionError, r"cast\(… as datetime\)"),
        ("t + 1", ExpressionError, "arithmetic needs numbers"),
        ("not a", ExpressionError, "must be true or false, got a of type int8"),
        ("a and f", ExpressionError, "operand of and"),
        ("case when a then 1 end", ExpressionError, "follows when"),
        ("case when f then 1 else 'x' end", ExpressionError, "do not go together"),
        ("abs(s)", ExpressionError, "abs needs a number"),
        ("lower(a)", ExpressionError, "lower needs a string"),
        ("abs(1, 2)", ExpressionError, "abs takes 1 argument, got 2"),
        ("round()", ExpressionError, "round takes 1 or 2 arguments, got 0"),
        ("round(a, b)", ExpressionError, "whole number written out"),
        ("round(a, 30)", ExpressionError, "-18 to 18"),
        ("substr(s, 0)", ExpressionError, "start from 1"),
        ("date_trunc('moth', t)", ExpressionError, "Did you mean 'month'"),
        ("least(f, true)", ExpressionError, "least needs"),
        ("cast(t as int)", ExpressionError, "datetime cannot be cast to int64"),
        ("lefft.m", UnknownNameError, "Did you mean 'left.m'"),
    ],
)
def test_what_is_wrong_is_said(text: str, error: type[Error], words: str) -> None:
    with pytest.raises(error, match=words):
        evaluate(parse_expression(text), DATA, 3)


def test_types_are_checked_before_data_is_touched() -> None:
    with pytest.raises(UnknownNameError):
        evaluate(parse_expression("1 / 0 > nowhere"), DATA, 3)
    with pytest.raises(ExpressionError, match="no such function"):
        check(parse_expression("median(a)", functions=["median"]), KNOWN)
    assert check(parse_expression("null"), {}) == NULL
    check_condition(parse_expression("a > 1"), KNOWN)
    with pytest.raises(ExpressionError, match="a condition"):
        check_condition(parse_expression("a + 1"), KNOWN)


@pytest.mark.parametrize(
    ("text", "name"),
    [("a", "int8"), ("a + a", "int64"), ("x + x", "float64"), ("x", "float32"), ("a / a", "float64"),
     ("u * u", "uint64"), ("u + a", "int64"), ("coalesce(x, x)", "float32"), ("coalesce(a, 0)", "int64"),
     ("length(s)", "int64")],
)  # fmt: skip
def test_result_types(text: str, name: str) -> None:
    assert check(parse_expression(text), KNOWN) == TYPES[name]


def test_a_column_of_another_length_or_layout() -> None:
    with pytest.raises(DataError, match="must have 2 rows, got 3"):
        evaluate(parse_expression("a"), DATA, 2)
    layouts = {
        "d": pa.array(["x", "y"]).dictionary_encode(),
        "l": pa.array(["x", None], pa.large_string()),
        "ns": pa.array([1_500, None], pa.timestamp("ns", tz="UTC")),
        "nested": pa.array([[1], [2]]),
    }
    assert evaluate(parse_expression("d = l"), layouts, 2).to_pylist() == [True, None]
    assert evaluate(parse_expression("ns > '1970-01-01'"), layouts, 2).to_pylist() == [True, None]
    assert evaluate(parse_expression("d"), layouts, 2).to_pylist() == ["x", "y"]


def test_the_deepest_trees_are_evaluated_and_travel() -> None:
    deep: Node = Column("b")
    for _ in range(DEEPEST - 2):
        deep = Unary("-", deep)
    deep = Cast(deep, TYPES["int8"])
    assert evaluate(deep, DATA, 3).to_pylist() == [0, 1, 2]
    conditions: Node = Column("f")
    while conditions.depth < DEEPEST - 1:
        conditions = And((conditions, parse_expression("f")))
    text = "if(f, " * (DEEPEST - 1) + "1" + ", 2)" * (DEEPEST - 1)
    for node in (deep, conditions, parse_expression(text)):
        copy = pickle.loads(pickle.dumps(node))
        assert copy == node
        assert hash(copy) == hash(node)
        assert len(evaluate(copy, DATA, 3)) == 3
        assert repr(copy) == repr(node)


@pytest.mark.parametrize("shape", ["if(f, {}, b)", "coalesce({}, b)", "least({}, b)", "case when f then {} end"])
def test_the_deepest_trees_need_few_frames(shape: str) -> None:
    text = "b"
    for _ in range(DEEPEST - 1):
        text = shape.format(text)
    node = parse_expression(text)
    assert node.depth == DEEPEST
    twins = pickle.loads(pickle.dumps(node)), node
    used, limit = len(inspect.stack(0)), sys.getrecursionlimit()
    sys.setrecursionlimit(used + 650)
    try:
        assert evaluate(node, DATA, 3).type == pa.int64()
        assert pickle.loads(pickle.dumps(node)).depth == DEEPEST
        assert twins[0] == twins[1]
        assert str(twins[0]) == str(node)
    finally:
        sys.setrecursionlimit(limit)


@settings(max_examples=50)
@given(trees.any_tree)
def test_any_tree_at_all_is_computed_or_refused(node: Node) -> None:
    with contextlib.suppress(Error):
        evaluate(node, DATA, 3)
