"""Schema strings: every notation the papers use, one canonical form, and errors that point at the place."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.errors import SchemaError
from windrow.model.notation import parse_schema
from windrow.model.schema import Attribute, Dimension, Schema
from windrow.model.types import TYPES

FLOAT = TYPES["float64"]
INT = TYPES["int64"]

NOTATIONS = [
    ("<a: float64> [i=1:1000:250, j=1:1000:250]", None, "<a: float64> [i=1:1000:250, j=1:1000:250]"),
    ("A <double a,double b> [i=1:3]", "A", "<a: float64, b: float64> [i=1:3]"),
    ("create A [i=1:3,j=1:3] <double a,double b>", "A", "<a: float64, b: float64> [i=1:3, j=1:3]"),
    ("A [ i=1:3 j=1:3 ] < double a,double b >", "A", "<a: float64, b: float64> [i=1:3, j=1:3]"),
    ("A[i = 1:5, j = 1:5] <int a>", "A", "<a: int64> [i=1:5, j=1:5]"),
    ("create array A<r:int,s:int>[i=1,6,2;j=1,8,2]", "A", "<r: int64, s: int64> [i=1:6:2, j=1:8:2]"),
    ("A<r:int,s:int>[i=1,6,2,j=1,8,2]", "A", "<r: int64, s: int64> [i=1:6:2, j=1:8:2]"),
    ("A<r:int>[i=1,6,j=1,8]", "A", "<r: int64> [i=1:6, j=1:8]"),
    ("catalog<bright,mag>[ra,dec,time]", "catalog", "<bright: float64, mag: float64> [ra=1:*, dec=1:*, time=1:*]"),
    ("A<a:double NULL>[i=0:*]", "A", "<a: float64 null> [i=0:*]"),
    ("<a: int not null, string b null, int64 c NOT NULL, d null>[i=-5,*,3]", None,
     "<a: int64, b: string null, c: int64, d: float64 null> [i=-5:*:3]"),
    ("\n A\n<a\n:\tFLOAT>\r\n[ i = - 7 : -3 ]\n", "A", "<a: float32> [i=-7:-3]"),
    ("CREATE ARRAY a <null: int, int not> [double]", "a", "<null: int64, not: int64> [double=1:*]"),
    ("array sparse <a> [i]", "sparse", "<a: float64> [i=1:*]"),
    ("array <a> [i]", None, "<a: float64> [i=1:*]"),
]  # fmt: skip


def write_schema(name: str | None, schema: Schema) -> str:
    """A text that says all of it, also where the name is a word of the notation."""
    words = ["sparse"] if schema.sparse else []
    return " ".join([*words, "array", *([name] if name else []), str(schema)])


@pytest.mark.parametrize(("text", "name", "schema"), NOTATIONS)
def test_every_notation_is_read(text: str, name: str | None, schema: str) -> None:
    found, parsed = parse_schema(text)
    assert (found, str(parsed), parsed.sparse) == (name, schema, False)
    assert parse_schema(write_schema(found, parsed)) == (found, parsed)


def test_sparse_comes_from_the_text_or_the_caller() -> None:
    text = "PTF <bright:float> [time=1:153064:112, ra=1:100000:100, dec=1:50000:50]"
    assert not parse_schema(text)[1].sparse
    assert parse_schema(text, sparse=True)[1].sparse
    assert parse_schema("create SPARSE array " + text)[1] == parse_schema("sparse " + text)[1]
    assert parse_schema("create sparse " + text, sparse=True) == parse_schema(text, sparse=True)
    with pytest.raises(SchemaError, match="says sparse"):
        parse_schema("create sparse " + text, sparse=False)


@pytest.mark.parametrize("text", ["PTF[time=1,153064;ra=1,100000;dec=1,50000]", "PTF <> [time=1,9]"])
def test_only_sparse_arrays_go_without_attributes(text: str) -> None:
    name, schema = parse_schema(text, sparse=True)
    assert name == "PTF"
    assert schema.attributes == ()
    assert parse_schema("create sparse array " + text)[1] == schema
    with pytest.raises(SchemaError, match="needs at least one attribute"):
        parse_schema(text)


MISTAKES = [
    ("<a: flaot> [i=1:3]", "unknown type, got 'flaot'", "Did you mean 'float'?", "flaot"),
    ("<dubble a> [i=1:3]", "unknown type, got 'dubble'", "Did you mean 'double'?", "dubble"),
    ("<a double> [i]", "expected a type before the name", "Write a: double", "a"),
    ("<a> [i=0:9,5,0]", "expected a dimension, got '5'", "i=1:10:5", "5"),
    ("<a> [i=5:1]", "dimension i ends before it starts, got 5:1", "", "i"),
    ("<a> [i=1:5:0]", "chunk of at least one cell", "", "i"),
    ("<a> [i=1:99999999999999999999]", "beyond 2^62", "", "i"),
    ("<a> [i=1:999999999999999999999]", "too large", "", "999999999999999999999"),
    ("<a, a> [i]", "used twice", "", None),
    ("<a> [i, i]", "used twice", "", None),
    ("<x: int, i> [i]", "used twice", "", None),
    ("<int> [i]", "needs a name, got 'int'", "a: int", "int"),
    ("<a: > [i]", "expected a type, got '>'", "float64", ">"),
    ("<a: int not> [i]", "expected 'null' after 'not'", "", ">"),
    ("<a b c> [i]", "expected ',' or '>', got 'c'", "", "c"),
    ("<a; b> [i]", "expected ',' or '>', got ';'", "", ";"),
    ("<a,> [i]", "expected an attribute, got '>'", "", ">"),
    ("<a> [i=x]", "the first cell as an integer, got 'x'", "", "x"),
    ("<a> [i=1]", "expected ':' or ',', got ']'", "", "]"),
    ("<a> [i=1:2,]", "expected a dimension, got ']'", "", "]"),
    ("<a> [i=1:2:]", "the chunk size as an integer", "", "]"),
    ("<a> []", "at least one dimension", "", None),
    ("<a> [i=1.5:3]", "expected ':' or ','", "", "."),
    ("<a>", "expected [dimensions], got the end", "", None),
    ("", "expected <attributes> or [dimensions]", "", None),
    ("A B <a> [i]", "expected <attributes> or [dimensions], got 'B'", "", "B"),
    ("<a> [i] <b>", "expected the end of the schema", "", None),
    ("a__valid <a> [i]", "reserved", "", "a__valid"),
    ("<a__valid> [i]", "reserved", "", "a__valid"),
    ("<é> [i]", "expected an attribute, got 'é'", "", "é"),
]


@pytest.mark.parametrize(("text", "message", "advice", "marked"), MISTAKES)
def test_mistakes_are_pointed_at(text: str, message: str, advice: str, marked: str | None) -> None:
    with pytest.raises(SchemaError) as caught:
        parse_schema(text)
    shown = str(caught.value)
    assert message in shown
    assert advice in shown
    *_, line, caret = shown.split("\n")
    assert line == f"    {text}"
    assert set(caret) == {" ", "^"}
    if marked is not None:
        assert line[caret.index("^") : caret.rindex("^") + 1] == marked


def test_the_second_use_of_a_name_is_marked() -> None:
    with pytest.raises(SchemaError) as caught:
        parse_schema("<a, b,\n a> [i]")
    assert str(caught.value).endswith("\n     a> [i]\n     ^")


def test_long_texts_are_cut_around_the_mistake() -> None:
    text = "<" + ", ".join(f"a{k}" for k in range(500)) + ", 7" + ", b" * 500 + "> [i]"
    with pytest.raises(SchemaError) as caught:
        parse_schema(text)
    *_, line, caret = str(caught.value).split("\n")
    assert len(line) < 120
    assert line[caret.index("^")] == "7"
    assert line.startswith("    …")
    assert line.endswith("…")


@pytest.mark.parametrize("text", [None, 3, b"<a> [i]"])
def test_text_is_needed(text: object) -> None:
    with pytest.raises(SchemaError, match="must be text"):
        parse_schema(text)  # type: ignore[arg-type]


names = st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,6}", fullmatch=True).filter(lambda name: not name.endswith("__valid"))
words = names | st.sampled_from(["create", "Sparse", "array", "null", "not", "int", "double", "datetime"])
bounds = st.integers(-(2**61), 2**61)


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    used = draw(st.lists(words, min_size=2, max_size=8, unique=True))
    cut = draw(st.integers(1, len(used) - 1))
    dimensions = []
    for name in used[:cut]:
        lo = draw(bounds)
        hi = draw(st.none() | st.integers(lo, 2**61))
        dimensions.append(Dimension(name, lo, hi, draw(st.none() | st.integers(1, 10**6))))
    attributes = [Attribute(n, draw(st.sampled_from(list(TYPES.values()))), draw(st.booleans())) for n in used[cut:]]
    sparse = draw(st.booleans())
    return Schema(tuple(dimensions), () if sparse and draw(st.booleans()) else tuple(attributes), sparse)


@settings(max_examples=100, deadline=None)
@given(st.none() | words, schemas())
def test_what_is_printed_is_read_back(name: str | None, schema: Schema) -> None:
    assert parse_schema(write_schema(name, schema)) == (name, schema)


def attempt(text: str) -> None:
    """Read a text; only SchemaError may come of it, and what is read prints and reads again."""
    try:
        name, schema = parse_schema(text)
    except SchemaError as error:
        message = str(error)
    else:
        assert parse_schema(write_schema(name, schema)) == (name, schema)
        return
    assert "^" in message


@settings(max_examples=2000, deadline=None)
@given(st.text(max_size=60) | st.text(alphabet="<>[]:=,;*-19ab \n", max_size=40))
def test_no_text_breaks_the_parser(text: str) -> None:
    attempt(text)


@settings(max_examples=2000, deadline=None)
@given(st.sampled_from([text for text, _, _ in NOTATIONS]), st.data())
def test_no_damage_to_a_schema_breaks_the_parser(text: str, data: st.DataObject) -> None:
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text)))
        end = min(len(text), at + data.draw(st.integers(0, 4)))
        text = text[:at] + data.draw(st.text(alphabet="<>[]:=,;*-09ai \n\0é", max_size=3)) + text[end:]
    attempt(text)


HUGE = 200_000


@pytest.mark.parametrize(
    "text",
    ["<" * HUGE, "[" * HUGE, "[i=" * HUGE, " " * HUGE, "-" + " " * HUGE, "- " * HUGE, "9" * HUGE, "x" * HUGE,
     "a " * HUGE, "<a:" + "t" * HUGE + ">[i]", "<a>[i=1:" + "9" * HUGE + "]", "<a>[i=1,-" + " " * HUGE,
     "<" + "a " * HUGE + ">[i]"],
    ids=lambda text: text[:9],
)  # fmt: skip
def test_huge_nonsense_is_refused_quickly(text: str) -> None:
    start = time.perf_counter()
    with pytest.raises(SchemaError) as caught:
        parse_schema(text)
    assert len(str(caught.value)) < 600
    assert time.perf_counter() - start < 5


def test_huge_schemas_are_read() -> None:
    text = "<" + ",".join(f"a{k}:int" for k in range(20_000)) + ">[" + ";".join(f"i{k}" for k in range(20_000)) + "]"
    start = time.perf_counter()
    _, schema = parse_schema(text)
    assert (len(schema.attributes), schema.ndim) == (20_000, 20_000)
    assert time.perf_counter() - start < 5
