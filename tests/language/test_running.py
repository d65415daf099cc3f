"""Random statements carried out on small arrays: they are answered, or refused with an error of windrow's."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import windrow as wr
from windrow.aggregates.registry import DEFINITIONS
from windrow.expressions.functions import FUNCTIONS
from windrow.language.parser import parse
from windrow.plan import statements
from windrow.plan.printing import to_text

from .answers import answer
from .examples import ALL

COLUMNS = [*"anstbij" * 4, "X.a", "missing"]
LITERALS = ["0", "1", "-1", "2.5", "0.0", "null", "true", "'x'", "''", "date '2012-01-31'", "'2012-01-31'", "1e308"]
LARGE = ["9223372036854775807", "-9223372036854775808", "18446744073709551615", "127", "1e-320", "'\u202e日'"]
SOURCES = [*"APTG" * 3, "A@1", "P@0", "A X", "(select *, i + 1 as k from A) X", "between(A, 1, 1, 2, 2)", "No"]
SCHEMAS = {
    "A": "<a: float64, n: int64 null, s: string, t: datetime null, b: bool> [i=1:4:3, j=1:3:2]",
    "G": "<a: int8, n: uint64, s: string null, t: datetime, b: bool null> [i=1:*, j=1:2]",
    "T": "<a: float32, n: int16, s: string, t: datetime null, b: bool> [i=1:5:2, j=1:3]",
}
SPARSE = "create sparse array P <a: int32 null, n: uint8, s: string null, t: datetime null, b: bool> [i=1:*:3, j=1:5:2]"
CELLS = "(1, 2: 5, 1, 'x', null, true), (3, 3: null, 255, 'y', '2012-01-31', false), (4, 1: -7, 0, null, null, true)"
CHANGES = [
    "update A set n = {0} where {1}",
    "update P set a = {0}, s = {1}",
    "delete from P where {0}",
    "insert into P select {0} as a, 1 as n, s, t, b from A where {1}",
    "insert into A select a, {0} as n, s, t, b from A where {1}",
    "insert into P values (2, 3: 1, 2, 'x', null, true)",
    "select {0} as c from A where {1} into K",
    "create array L as select {0} as c from P",
    "drop array if exists L",
    "drop K",
    "explain select {0} as c from T where {1}",
]


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder: Path = tmp_path_factory.mktemp("running")
    with wr.connect(folder / "warehouse", engine="local", progress=False, workers=1) as found, contextlib.chdir(folder):
        labels = {"i": np.datetime64("2012-01-01") + np.arange(5) * 30, "j": [10.0, 0.0, -10.0]}
        for name, schema in SCHEMAS.items():
            found.create(name, schema, labels=labels if name == "T" else None)
        values = np.array([[1.0, np.nan, -2.5], [0.0, np.inf, 3.0], [7.0, 8.0, 9.0], [1e300, -np.inf, 0.5]])
        whole = np.array([[2**63 - 1, None, 0], [1, 2, 3], [-(2**63), 4, 5], [6, None, 7]], object)
        texts = np.array([["x", "", "y"], ["日", "it's", "x"], ["2012-01-31", "1", "z"], ["x", "y", "z"]])
        found.array("A").write({"a": values, "n": whole, "s": texts, "b": values > 1})
        found.query(SPARSE)
        found.query(f"insert into P values {CELLS}")
        yield found


atoms = st.sampled_from(COLUMNS) | st.sampled_from(LITERALS) | st.sampled_from(LARGE)
# What leaves the arrays as they are, or makes new ones.
OTHERS = [
    text
    for text in ALL
    if not isinstance(parse(text), statements.Drop | statements.Begin | statements.Load | statements.SetOption)
]
signs = st.sampled_from(["+", "-", "*", "/", "//", "%", "||", "=", "<>", "<", ">=", "and", "or"])


@st.composite
def calls(draw: st.DrawFn, inner: st.SearchStrategy[str]) -> str:
    name = draw(st.sampled_from(sorted(FUNCTIONS)))
    fewest, most = FUNCTIONS[name].fewest, FUNCTIONS[name].most
    right = st.lists(inner, min_size=fewest, max_size=fewest + 1 if most is None else most)
    arguments = draw(st.lists(inner, max_size=3) if draw(st.integers(0, 9)) == 0 else right)
    return f"{name}({', '.join(arguments)})"


def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    kinds = st.sampled_from(["int8", "uint64", "float32", "string", "datetime", "bool"])
    return st.one_of(
        st.tuples(inner, signs, inner).map(lambda parts: f"({' '.join(parts)})"),
        calls(inner),
        st.tuples(inner, inner, inner).map(lambda parts: "case when {} then {} else {} end".format(*parts)),
        st.tuples(inner, kinds).map(lambda parts: "cast({} as {})".format(*parts)),
        st.tuples(inner, inner, inner).map(lambda parts: "({} between {} and {})".format(*parts)),
        st.tuples(inner, inner).map(lambda parts: "({} in ({}, 1))".format(*parts)),
        inner.map(lambda part: f"(not {part})"),
        inner.map(lambda part: f"({part} is null)"),
    )


expressions = st.recursive(atoms, larger, max_leaves=6)
conditions = expressions | st.sampled_from(["i > 1", "i = '2012-01-31'", "j <= 0.0", "a > 0 and i between 1 and 2"])


@st.composite
def aggregates(draw: st.DrawFn) -> str:
    found = draw(st.sampled_from(sorted(DEFINITIONS.values(), key=lambda one: one.name)))
    values = st.sampled_from(COLUMNS[:7]) | expressions
    inside = ["*"] if found.bare and draw(st.booleans()) else [draw(values) for _ in found.takes]
    if found.parameter is not None:
        inside.append(draw(st.sampled_from(["0", "0.5", "1", "70", "101", "-1"])))
    return f"{found.name}({', '.join(inside)})"


extents = st.sampled_from(["2", "trailing 3", "centred 2", "between -1 and 1", "between 1 and 2", "2 wrap"])
by_label = st.sampled_from(["trailing '30 days'", "within '10'", "centred '1 hour'", "'2 degrees'", "between 5 and 9"])


@st.composite
def groupings(draw: st.DrawFn) -> str:
    kind = draw(st.integers(0, 4))
    i, j = draw(extents | by_label), draw(extents | by_label)
    options = draw(st.sampled_from(["", " step (2, 1)", " boundary drop", " min count 2", " method naive", " step 2"]))
    if kind == 0:
        return ""
    if kind == 1:
        return f" group by {draw(st.sampled_from(['i', 'j', 'j, i', 'a']))}"
    if kind == 2:
        return f" regrid ({draw(st.integers(1, 3))}, {draw(st.integers(1, 9))})"
    return f" window (i {i}, j {j}){options}" if kind == 3 else f" window ({i}, {j})"


@st.composite
def queries(draw: st.DrawFn) -> str:
    source = draw(st.sampled_from(SOURCES))
    where = f" where {draw(conditions)}" if draw(st.booleans()) else ""
    if draw(st.booleans()):
        return f"select {draw(expressions)} as c, {draw(expressions)} as d from {source}{where}"
    having = f" having {draw(st.sampled_from(['m > 0', 'm is null', 'i > 1']))}" if draw(st.booleans()) else ""
    measures = f"{draw(aggregates())} as m, {draw(aggregates())} as k"
    return f"select {measures} from {source}{where}{draw(groupings())}{having}"


@st.composite
def changes(draw: st.DrawFn) -> str:
    return draw(st.sampled_from(CHANGES)).format(draw(expressions), draw(conditions))


def carried_out(database: Any, text: str) -> None:
    """Whatever it is, windrow answers or says why not; what it read prints and reads the same."""
    arrays = {array.name: array.version for array in database.arrays()}
    found = answer(database, text)
    if found.startswith("error: "):
        assert {array.name: array.version for array in database.arrays()} == arrays
    with contextlib.suppress(wr.Error):
        statement = parse(text)
        assert parse(to_text(statement)) == statement


@settings(max_examples=120)
@given(text=queries())
def test_queries_are_answered_or_refused(database: Any, text: str) -> None:
    carried_out(database, text)


@settings(max_examples=40)
@given(text=changes() | st.sampled_from(OTHERS))
def test_changes_are_made_or_refused(database: Any, text: str) -> None:
    carried_out(database, text)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@settings(max_examples=3_000)
@given(text=queries() | changes() | st.sampled_from(OTHERS))
def test_many_statements_are_carried_out_or_refused(database: Any, text: str) -> None:
    carried_out(database, text)


def test_many_queries_that_are_drawn_have_an_answer(database: Any) -> None:
    """The strategies would find nothing if all they drew were refused at once."""
    answers: list[str] = []

    @settings(max_examples=100, database=None)
    @given(queries())
    def ask(text: str) -> None:
        answers.append(answer(database, text))

    ask()
    assert sum(not found.startswith("error: ") for found in answers) >= 5


HAVING = {
    "select sum(v) as s from S group by i having sum(v) > 3": "select sum(v) as s from S group by i having s > 3",
    "select sum(v) as s from S group by i having count(*) > 1 and s > 0 order by sum(v) desc": (
        "select s from (select sum(v) as s, count(*) as n from S group by i) where n > 1 and s > 0 order by s desc"
    ),
    "select max(v) - min(v) as d from S group by i having max(v) > 2": (
        "select d from (select max(v) - min(v) as d, max(v) as m from S group by i) where m > 2"
    ),
    "select count(*) from S group by i having max(v) + 1 > count(*) and i > 1": (
        "select count from (select count(*) as count, max(v) as m from S group by i) where m + 1 > count and i > 1"
    ),
    "select sum(v) as s from S regrid (2, 2) having count(*) = 2": (
        "select s from (select sum(v) as s, count(*) as n from S regrid (2, 2)) where n = 2"
    ),
}


@pytest.mark.parametrize("text", HAVING)
def test_having_takes_aggregates_as_in_sql(connect: Any, text: str) -> None:
    database = connect()
    cells = [{"i": i, "j": j, "v": float(i * j % 5)} for i in range(1, 7) for j in range(1, 5) if (i + j) % 3]
    database.create("S", "<v: float64> [i=1:6, j=1:4]", sparse=True).insert(cells)
    found, expected = database.query(text).compute(), database.query(HAVING[text]).compute()
    assert found.to_pylist() == expected.to_pylist()
    assert 0 < found.num_rows < 6


def test_having_without_groups_takes_no_aggregates(connect: Any) -> None:
    database = connect()
    database.create("A", "<a: float64> [i=1:3]")
    with pytest.raises(wr.LanguageError, match="cannot stand in having"):
        database.query("select a from A having max(a) > 1")
