"""Text to trees and back, and what is said about text that is no expression."""

from __future__ import annotations

import contextlib
import pickle
import string

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from windrow.errors import Error, ExpressionError
from windrow.expressions.functions import FUNCTIONS
from windrow.expressions.nodes import Binary, Call, Column, Comparison, Literal, Node, Unary
from windrow.expressions.written import RESERVED
from windrow.language.expression import LONGEST, ExpressionSyntaxError, parse_expression
from windrow.language.pointing import caret
from windrow.plan.names import KEYWORDS

from .trees import any_tree


@settings(max_examples=400)
@given(any_tree)
@example(Unary("-", Literal(1)))
@example(Unary("-", Literal(-1)))
@example(Unary("-", Unary("-", Literal(2**63))))
@example(Binary("-", Literal(-1), Literal(-0.0)))
def test_printed_trees_parse_back(node: Node) -> None:
    text = str(node)
    assert parse_expression(text, functions=["abs", "if", "pi"]) == node
    assert pickle.loads(pickle.dumps(node)) == node


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("a>3 AND i BETWEEN 1 and 2", "a > 3 and i between 1 and 2"),
        ("a == 1 or b != 2", "a = 1 or b <> 2"),
        ("not (a = 1 and b = 2)", "not (a = 1 and b = 2)"),
        ("(a = 1 and b = 2) or c", "a = 1 and b = 2 or c"),
        ("a - (b - c) - d", "a - (b - c) - d"),
        ("((a * b)) + c / d", "a * b + c / d"),
        ("- - a", "-(-a)"),
        ("+1", "1"),
        ("-1", "-1"),
        ("-(1)", "-(1)"),
        (".5e1", "5.0"),
        ("0xfF", "255"),
        ("'it''s'", "'it''s'"),
        ('A1.i + "end" + "a b"', 'A1.i + "end" + "a b"'),
        ("date '2012-01-01'", "timestamp '2012-01-01 00:00:00'"),
        ("date + timestamp", "date + timestamp"),
        ("TimeStamp'2012-01-01T00:00:00.5+01:00'", "timestamp '2011-12-31 23:00:00.500000'"),
        ("a not  in (1,2)", "a not in (1, 2)"),
        ("a IS NOT NULL", "a is not null"),
        ("android > organ", "android > organ"),
        ("ABS(x)", "abs(x)"),
        ("cast(a as Double)", "cast(a as float64)"),
        ("case a when 1 then 'x' else null end", "case when a = 1 then 'x' else null end"),
        ("a\n\t+\u00a0b", "a + b"),
    ],
)
def test_text_and_its_normal_form(text: str, printed: str) -> None:
    node = parse_expression(text)
    assert str(node) == printed
    assert parse_expression(printed) == node


def test_literals_differ_by_type() -> None:
    assert Literal(1) != Literal(1.0)
    assert Literal(1) != Literal(True)
    assert len({Literal(1), Literal(1.0), Literal(True), Literal(1)}) == 3


def test_columns_are_collected() -> None:
    node = parse_expression("case when left.m > a then abs(b) else 1 end in (c, a)")
    assert node.columns() == {Column("m", "left"), Column("a"), Column("b"), Column("c")}
    assert {column.key for column in node.columns()} == {"left.m", "a", "b", "c"}


@pytest.mark.parametrize(
    ("text", "words", "column"),
    [
        ("a +", "ends where a value", 3),
        ("", "ends where a value", 0),
        ("a > 3 4", "expected an operator or the end, got '4'", 6),
        ("(a", "ends where.*'\\)'", 2),
        ("a = = b", "expected a value.*got '='", 4),
        ("a < b < c", "expected", 6),
        ("abss(a)", "no such function, got 'abss'", 0),
        ("i betwen 1 and 2", "got 'betwen'", 2),
        ("1 + and", "got 'and'", 4),
        ("A.end", "got 'end'", 2),
        ("cast(a as flot)", "unknown type, got 'flot'", 10),
        ("a > 'x", "quote is never closed", 4),
        ('a > "x', "quote is never closed", 4),
        ("a = timestamp 'x'", "not a date or time", 4),
        ("日本", "no meaning here", 0),
        ("a \x00", "U\\+0000", 2),
        ("'\ud800'", "half a character", 0),
        ("a + 1e999", "too large for float64", 4),
        ("99999999999999999999", "does not fit 64 bits", 0),
        ("9" * 5000, "5000 digits", 0),
        ('""', "needs a name", 0),
    ],
)
def test_mistakes_are_shown_under_a_caret(text: str, words: str, column: int) -> None:
    with pytest.raises(ExpressionSyntaxError, match=words) as caught:
        parse_expression(text)
    assert caught.value.position == column
    copy = pickle.loads(pickle.dumps(caught.value))
    assert str(copy) == str(caught.value)
    assert isinstance(copy, ExpressionError)


def test_the_whole_message() -> None:
    with pytest.raises(ExpressionSyntaxError) as caught:
        parse_expression("a > 1 and\n  日 = 1 or sqr(b) < 2".replace("日", '"日"'))
    lines = str(caught.value).splitlines()
    assert lines[0] == "no such function, got 'sqr'"
    assert lines[1] == '    "日" = 1 or sqr(b) < 2'
    assert lines[2] == " " * 16 + "^"  # one more than the characters, since 日 is two columns wide
    assert lines[3] == "Did you mean 'sqrt'?"


def test_long_lines_are_cut_around_the_caret() -> None:
    shown, mark = caret("x" * 500 + "!" + "y" * 500, 500).splitlines()
    assert len(shown) < 120
    assert shown[mark.index("^")] == "!"


@pytest.mark.parametrize(
    "text",
    [
        "(" * 10_000 + "a" + ")" * 10_000,
        "(" * 10_000,
        "-" * 10_000 + "a",
        "not " * 10_000 + "a",
        "a" + "+a" * 10_000,
        "abs(" * 5_000 + "a" + ")" * 5_000,
        "case when " * 5_000,
        "a" * 1_000_000,
        "'" * (LONGEST - 1),
        "'" + "a" * (LONGEST - 1),
    ],
    ids=range(10),
)
def test_monsters_are_refused(text: str) -> None:
    with pytest.raises(ExpressionError):
        parse_expression(text)


def test_what_is_no_text_is_refused() -> None:
    with pytest.raises(ExpressionError, match="a text, got a int"):
        parse_expression(3)  # type: ignore[arg-type]


def test_long_flat_expressions_are_fine() -> None:
    assert len(parse_expression(f"a in ({', '.join(map(str, range(2000)))})").options) == 2000  # type: ignore
    assert parse_expression(" or ".join(["a = 1"] * 1000)).depth == 3


words = st.sampled_from(
    [*sorted(RESERVED), *FUNCTIONS, *"()=<>+-*/%,.'\"", "||", "a", "1", "1.5", "'x'", "date", " ", "é"]
)
noise = st.one_of(st.text(), st.text(string.printable), st.lists(words, max_size=12).map(" ".join))


@settings(max_examples=500)
@given(noise)
def test_any_text_parses_or_is_refused(text: str) -> None:
    try:
        node = parse_expression(text)
    except Error as error:
        str(error).encode("utf-8")
    else:
        assert parse_expression(str(node)) == node


@given(any_tree, st.data())
def test_damaged_text_parses_or_is_refused(node: Node, data: st.DataObject) -> None:
    text = str(node)
    place = data.draw(st.integers(0, len(text)))
    damaged = text[:place] + data.draw(st.sampled_from(["", "'", "(", "and", '"', "\0", "9"])) + text[place + 1 :]
    with contextlib.suppress(Error):
        parse_expression(damaged)


def test_reserved_words_are_the_grammar_s() -> None:
    for word in RESERVED:
        assert str(Column(word)) == f'"{word}"'
        with pytest.raises(ExpressionSyntaxError, match=f"got '{word}'"):
            parse_expression(f"A.{word}")


@given(st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True) | st.sampled_from(sorted(KEYWORDS | RESERVED)))
def test_names_need_no_parser_and_mean_the_same(name: str) -> None:
    """A name alone is not given to the parser; in parentheses it is."""
    for text in (name, name.upper()):
        try:
            wanted = parse_expression(f"({text})")
        except ExpressionError:
            with pytest.raises(ExpressionError):
                parse_expression(text)
        else:
            assert parse_expression(text) == wanted


def test_nodes_refuse_what_cannot_be() -> None:
    for build in (
        lambda: Literal(float("nan")),
        lambda: Literal(2**64),
        lambda: Literal(object()),  # type: ignore[arg-type]
        lambda: Column(""),
        lambda: Call("a b"),
        lambda: Comparison("~", Literal(1), Literal(2)),
    ):
        with pytest.raises(ExpressionError):
            build()
