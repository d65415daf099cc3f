"""What statements mean: the plans they build, and that they print as text of the same meaning."""

from __future__ import annotations

from datetime import datetime

import pytest

from parsing import parse_query
from windrow.errors import LanguageError
from windrow.expressions.nodes import Column, Node
from windrow.language.expression import parse_expression
from windrow.language.parser import is_complete, parse
from windrow.model.notation import parse_schema
from windrow.model.shape import L1, L2, Hamming, any_offset, offset_list, offsets
from windrow.model.window import between, centred, corner, trailing, within
from windrow.plan import statements as st
from windrow.plan.nodes import (
    Alias,
    Apply,
    Changes,
    Filter,
    GroupBy,
    Neighbours,
    Plan,
    Project,
    Regrid,
    Scan,
    Selection,
    SimilarityJoin,
    Windowed,
)
from windrow.plan.printing import to_text
from windrow.plan.specs import Block, Measure, Output, Range, RegridSpec, WindowAxis, WindowSpec

from .examples import ALL
from .scripts import parse_script

A = Scan("A")


def e(text: str) -> Node:
    return parse_expression(text)


def a_column(name: str) -> Output:
    return Output(name, Column(name))


def window(*axes: WindowAxis, boundary: str = "clip", min_count: int = 0) -> WindowSpec:
    return WindowSpec(axes, boundary, min_count)


@pytest.mark.parametrize("text", ALL)
def test_examples_parse_and_print_as_the_same(text: str) -> None:
    statement = parse(text)
    assert parse(to_text(statement)) == statement


def test_keywords_have_no_case() -> None:
    assert parse("SELECT Max(a) FROM A Window (i CENTRED 3) Into B") == parse(
        "select max(a) from A window (i centred 3) into B"
    )


QUERIES: list[tuple[str, Plan]] = [
    ("select A", A),
    ("select * from A", A),
    ("select A@3", Scan("A", version=3)),
    ("select A as of '2026-01-31'", Scan("A", as_of=datetime(2026, 1, 31))),
    ("select A <b>", Project(A, (a_column("b"),))),
    ('select A <a, "from"> where c > 3', Project(Filter(A, e("c > 3")), (a_column("a"), a_column("from")))),
    ("select A where a > 3", Filter(A, e("a > 3"))),
    (
        "select a + b as c, a from A where b > 3",
        Project(Filter(A, e("b > 3")), (Output("c", e("a + b")), a_column("a"))),
    ),
    ("select a < b, c > d from A", Project(A, (Output("column_1", e("a < b")), Output("column_2", e("c > d"))))),
    ("select a, X.a from A X", Project(Alias(A, "X"), (a_column("a"), Output("a_2", e("X.a"))))),
    ("select *, a as b from A", Apply(A, (Output("b", e("a")),))),
    ("aggr A avg(a)", GroupBy(A, (), (Measure("avg_a", "avg", e("a")),))),
    (
        "select count(*), count(a) from A",
        GroupBy(A, (), (Measure("count", "count"), Measure("count_a", "count", e("a")))),
    ),
    (
        "aggr A max(a), max(a) by i, j",
        GroupBy(A, (Column("i"), Column("j")), (Measure("max_a", "max", e("a")), Measure("max_a_2", "max", e("a")))),
    ),
    ("select i, max(a) from A group by i", GroupBy(A, (Column("i"),), (Measure("max_a", "max", e("a")),))),
    (
        "aggr A min(a) by regrid(2,2)",
        Regrid(A, RegridSpec((Block(None, 2), Block(None, 2))), (Measure("min_a", "min", e("a")),)),
    ),
    (
        "aggr A sum(b) where a > 1 by window(2, 3)",
        Windowed(
            Filter(A, e("a > 1")),
            window(WindowAxis(None, corner(2)), WindowAxis(None, corner(3))),
            (Measure("sum_b", "sum", e("b")),),
        ),
    ),
    (
        "select percentile(t, 70) as p, percentile(t, 99.5) from T"
        " window (lon centred 3 wrap, lat between -1 and 2, time trailing 30) method naive",
        Windowed(
            Scan("T"),
            window(
                WindowAxis("lon", centred(3).wrap()),
                WindowAxis("lat", between(-1, 2)),
                WindowAxis("time", trailing(30)),
            ),
            (Measure("p", "percentile", e("t"), 70.0), Measure("percentile_t_99_5", "percentile", e("t"), 99.5)),
            "naive",
        ),
    ),
    (
        "select max(a) from A window (i 3, j '2 days', k within '1.5 degrees')"
        " step (1, 2, 4) min count 5 boundary drop",
        Windowed(
            A,
            window(
                WindowAxis("i", corner(3)),
                WindowAxis("j", corner("2 days"), 2),
                WindowAxis("k", within("1.5 degrees"), 4),
                boundary="drop",
                min_count=5,
            ),
            (Measure("max_a", "max", e("a")),),
        ),
    ),
    (
        "select max(a) from A window (i 3) step 2",
        Windowed(A, window(WindowAxis("i", corner(3), 2)), (Measure("max_a", "max", e("a")),)),
    ),
    (
        "select max(a) from A window (i 3, k 2) step (j 5, i 2)",
        Windowed(
            A,
            window(WindowAxis("i", corner(3), 2), WindowAxis("k", corner(2)), WindowAxis("j", corner(1), 5)),
            (Measure("max_a", "max", e("a")),),
        ),
    ),
    (
        "select sum(a*b)/sum(b) as w, sum(b) as s from A regrid (i 2)",
        Project(
            Regrid(
                A,
                RegridSpec((Block("i", 2),)),
                (Measure("sum", "sum", e("a * b")), Measure("sum_b", "sum", e("b")), Measure("s", "sum", e("b"))),
            ),
            (Output("w", e("sum / sum_b")), a_column("s")),
        ),
    ),
    (
        "select max(a) as m from A group by i having m > 3",
        Filter(GroupBy(A, (Column("i"),), (Measure("m", "max", e("a")),)), e("m > 3")),
    ),
    (
        "select count(*) from A neighbours L1(1) on (ra, dec), time between -200 and 0 wrap, excluding self"
        " min count 2",
        Neighbours(
            A,
            (L1(1, on=("ra", "dec")) & offsets(time=(-200, 0))).wrap("time").excluding_self(),
            (Measure("count", "count"),),
            min_count=2,
        ),
    ),
    (
        "select count(*) from A neighbors offsets ((0, 1), (-1, 0)), k any, hamming(2) on (l)",
        Neighbours(
            A,
            offset_list([(0, 1), (-1, 0)]) & offsets(k=any_offset) & Hamming(2, on="l"),
            (Measure("count", "count"),),
        ),
    ),
    (
        "select count(*) as cnt from A A1 similarity join A A2 on (A1.i = A2.i) and (A1.j = A2.j)"
        " with shape L1(1) group by A1.i, A1.j",
        GroupBy(
            SimilarityJoin(Alias(A, "A1"), Alias(A, "A2"), L1(1), e("A1.i = A2.i and A1.j = A2.j")),
            (Column("i", "A1"), Column("j", "A1")),
            (Measure("cnt", "count"),),
        ),
    ),
    (
        "select max(B.b) as m from A similarity join B with shape L1(1) group by A.i min count 2",
        GroupBy(SimilarityJoin(A, Scan("B"), L1(1)), (Column("i", "A"),), (Measure("m", "max", e("B.b")),), 2),
    ),
    (
        "select * from A left similarity join (select B where b > 1) X with shape L2(1.5) similarity join C"
        " on C.i = X.i with shape L1(0)",
        SimilarityJoin(
            SimilarityJoin(A, Alias(Filter(Scan("B"), e("b > 1")), "X"), L2(1.5), kind="left"),
            Scan("C"),
            L1(0),
            e("C.i = X.i"),
        ),
    ),
    (
        "window(A, 1, 1, 0, 0, max(v) as m, count(*))",
        Windowed(
            A,
            window(WindowAxis(None, between(-1, 1)), WindowAxis(None, corner(1))),
            (Measure("m", "max", e("v")), Measure("count", "count")),
        ),
    ),
    ("regrid(A, 2, avg(v))", Regrid(A, RegridSpec((Block(None, 2),)), (Measure("avg_v", "avg", e("v")),))),
    ("between(A, 1, null, '2012', 4)", Selection(A, (Range(None, 1, "2012"), Range(None, None, 4)))),
    (
        "between(A, i between 1 and 2, t >= '2012', 5 >= k, l = 3.5)",
        Selection(
            A,
            (Range("i", 1, 2), Range("t", "2012", None), Range("k", None, 5), Range("l", 3.5, 3.5)),
        ),
    ),
    (
        "project(filter(apply(A, c, a + b), c > 3), c, c * 2 as d)",
        Project(Filter(Apply(A, (Output("c", e("a + b")),)), e("c > 3")), (a_column("c"), Output("d", e("c * 2")))),
    ),
    ("apply(A, a + b as c)", Apply(A, (Output("c", e("a + b")),))),
    ("select * from changes(A, 3, 5)", Changes("A", 3, 5)),
    ("changes(A, 0, 1)", Changes("A", 0, 1)),
    (
        "select count(*) from changes(A, 3, 5) X where X.change = 'left' group by i",
        GroupBy(
            Filter(Alias(Changes("A", 3, 5), "X"), e("X.change = 'left'")), (Column("i"),), (Measure("count", "count"),)
        ),
    ),
    ("aggregate(A, max(v) as m, i)", GroupBy(A, (Column("i"),), (Measure("m", "max", e("v")),))),
]


@pytest.mark.parametrize(("text", "plan"), QUERIES, ids=[text for text, _ in QUERIES])
def test_queries_build_these_plans(text: str, plan: Plan) -> None:
    assert parse_query(text) == plan


STATEMENTS: list[tuple[str, st.Statement]] = [
    ("create A [i=1:3] <double a>", st.CreateArray("A", parse_schema("<a: float64> [i=1:3]")[1])),
    ("create sparse array A <a:int>[i=1:*]", st.CreateArray("A", parse_schema("<a: int64> [i=1:*]", sparse=True)[1])),
    ("create array B as select A", st.CreateFrom("B", A)),
    ("select A into B", st.Query(A, "B")),
    ("select a into B from A", st.Query(Project(A, (a_column("a"),)), "B")),
    ("filter(A, a > 1) into B", st.Query(Filter(A, e("a > 1")), "B")),
    ("create view V as select A", st.CreateView("V", A)),
    ("create array view V as select A deferred", st.CreateView("V", A, deferred=True)),
    (
        "create view V deferred with (strategy = 'baseline') as select A",
        st.CreateView("V", A, True, (("strategy", "baseline"),)),
    ),
    (
        "create array view V with (maintain = Incremental, chunks = 'i=3', on_failure = stale) as select A",
        st.CreateView("V", A, False, (("maintain", "Incremental"), ("chunks", "i=3"), ("on_failure", "stale"))),
    ),
    (
        "explain create view V deferred with (store = cells) as select A",
        st.ExplainView(st.CreateView("V", A, True, (("store", "cells"),))),
    ),
    ("refresh V full", st.Refresh("V", full=True)),
    ("refresh full", st.Refresh("full")),
    ("refresh view full FULL", st.Refresh("full", full=True)),
    ("check view V", st.CheckView("V")),
    ("check V", st.CheckView("V")),
    ("drop A cascade", st.Drop("A", cascade=True)),
    ("drop cascade", st.Drop("cascade")),
    ("drop view if exists V cascade", st.Drop("V", "view", if_exists=True, cascade=True)),
    ("delete from A", st.Delete("A")),
    ("load A", st.Load("A")),
    ("load A\n1 -2 'x\ny' null\n\n3, nan, true", st.Load("A", ((1, -2, "x\ny", None), (3, None, True)))),
    (
        "load A from 'x.csv' with (delimiter = ';', rows = 3)",
        st.LoadFile("A", "x.csv", (("delimiter", ";"), ("rows", 3))),
    ),
    ("import 'a.nc', 'b.nc' into T", st.ImportFiles(("a.nc", "b.nc"), "T")),
    (
        "insert into A values (1, 2: 2.5, null), (date '2012-01-01')",
        st.InsertCells("A", (st.Cell((1, 2), (2.5, None)), st.Cell((datetime(2012, 1, 1),)))),
    ),
    ("insert into A from 'x.parquet'", st.InsertFile("A", "x.parquet")),
    ("delete from A where true", st.Delete("A", e("true"))),
    ("update A set a = a + 1, b = null where a > 3", st.Update("A", (("a", e("a + 1")), ("b", e("null"))), e("a > 3"))),
    ("describe A@2", st.Describe(Scan("A", version=2))),
    ("explain analyse select A", st.Explain(A, analyze=True)),
    ("list", st.List("arrays")),
    ("list versions A", st.List("versions", "A")),
    ("show history V", st.ShowHistory("V")),
    ("refresh view V", st.Refresh("V")),
    ("drop view if exists V", st.Drop("V", "view", if_exists=True)),
    ("save A to 'it''s.nc'", st.Save(A, "it's.nc")),
    ("plot A", st.Plot(A)),
    ("plot select a from A to 'x.png' as  Line", st.Plot(Project(A, (a_column("a"),)), "x.png", "line")),
    ("begin", st.Begin()),
    ("begin 'night42'", st.Begin("night42")),
    ("commit", st.Commit()),
    ("rollback", st.Rollback()),
    ("set timing ON", st.SetOption("timing", "on")),
    ("set format = csv", st.SetOption("format", "csv")),
    ("set threads to 4", st.SetOption("threads", 4)),
]


@pytest.mark.parametrize(("text", "statement"), STATEMENTS, ids=[text for text, _ in STATEMENTS])
def test_statements_are_these(text: str, statement: st.Statement) -> None:
    assert parse(text) == statement


def test_keywords_are_names_where_they_can_be_nothing_else() -> None:
    texts = ["create array window <a: int64> [select=1:2]", "select step, min, count from list", "drop from"]
    assert [type(parse(text)) for text in texts] == [st.CreateArray, st.Query, st.Drop]
    assert parse_query("select max(left) from A where right > 1 group by time") == GroupBy(
        Filter(A, e("right > 1")), (Column("time"),), (Measure("max_left", "max", e("left")),)
    )


def test_scripts_are_cut_at_semicolons_and_keep_their_lines() -> None:
    script = (
        "-- a comment; not a statement\ncreate array A<r:int>[i=1,6,2;j=1,8,2];\n\n"
        "select 'a;b' as x # ';'\n  from A;;\nload A 1 2\n3 4;"
    )
    parsed = parse_script(script)
    assert [one.source.line for one in parsed] == [2, 4, 6]
    assert [script[one.source.start] for one in parsed] == ["c", "s", "l"]
    assert parsed[2].statement == st.Load("A", ((1, 2), (3, 4)))
    assert parse_script(" ; \n-- nothing") == []


def test_mistakes_in_scripts_name_their_line() -> None:
    with pytest.raises(LanguageError) as caught:
        parse_script("select A;\n\nselect B;\n  selct C;")
    assert caught.value.line == 4  # type: ignore[attr-defined]
    assert str(caught.value).splitlines()[1:3] == ["    selct C;", "    ^"]


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("select A;", True),
        ("select A; -- done", True),
        ("select A", False),
        ("select A; select", False),
        ("select 'a;", False),
        ("create A [i=1,6;", True),
        ("", False),
    ],
)
def test_whether_a_statement_is_complete(text: str, complete: bool) -> None:
    assert is_complete(text) is complete


def test_a_shape_of_neighbours_may_be_introduced_as_that_of_a_join() -> None:
    for shape in ("S", "L1(1) on (i), j between 0 and 1", "S@2 excluding self"):
        assert parse(f"select count(*) from A neighbours with shape {shape}") == parse(
            f"select count(*) from A neighbours {shape}"
        )
