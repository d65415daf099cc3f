"""A SELECT cut in two: put together again it is what it was, and nothing above the windows names a column."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

from windrow.sql.reading import Reading, SqlError
from windrow.sql.scopes import ScopeReader
from windrow.sql.splits import OWN, Split


def split(text: str, columns: tuple[str, ...] = (), optional: bool = True) -> Split:
    """A query cut in two; ``columns`` are those of its tables. What Spark can do too is left to it if not optional."""
    reading = Reading(text)
    assert isinstance(reading.tree, exp.Select)
    return ScopeReader(reading, reading.tree, lambda name, _tables: name in columns, optional=optional).split()


def restored(text: str, found: Split) -> str:
    """A text of the outer query with what its generated names stand for."""
    return re.sub(rf"{OWN}[gr]\d+", lambda match: f"({found.meanings[match[0]]})", text)


def tree(text: str) -> exp.Expr:
    """A text as a tree without parentheses around anything: these only say what the tree says anyway."""
    read = Reading(f"select {text}").tree
    while (inside := read.find(exp.Paren)) is not None:
        inside.replace(inside.this)
    return read


COLUMNS = st.sampled_from(["a", "t.b", "`my col`", "s.f.g", "arr[1]"])
LITERALS = st.sampled_from(["1", "2.5", "'it''s'", "null", "true", "interval 3 days"])
OVER = st.sampled_from(
    ["()", "(partition by a)", "(order by t.b desc rows 3 preceding)", "(order by a groups 1 preceding)", "w"]
)
WINDOWS = st.builds("median({}) over {}".format, COLUMNS, OVER) | st.builds(
    "count(distinct {}, {}) filter (where {} > 1) over {}".format, COLUMNS, COLUMNS, COLUMNS, OVER
)
SPARKS = st.builds("sum({}) over (partition by c)".format, COLUMNS) | st.just("row_number() over v")
LEAVES = COLUMNS | LITERALS | WINDOWS | SPARKS | st.just("count(*)") | st.just("rand()")


def _larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.builds("(({}) + ({}))".format, inner, inner),
        st.builds("({}) * ({})".format, inner, inner),
        st.builds("round({}, 2)".format, inner),
        st.builds("case when ({}) > ({}) then {} else 'no' end".format, inner, inner, inner),
        st.builds("cast({} as double)".format, inner),
        st.builds("(({}) is not null)".format, inner),
        st.builds("coalesce({}, {}, 0)".format, inner, inner),
        st.builds("-({})".format, inner),
        st.builds("transform(arr, v -> v + 1)[{}]".format, inner),
    )


EXPRESSIONS = st.recursive(LEAVES, _larger, max_leaves=8)


@settings(max_examples=40)
@given(expressions=st.lists(EXPRESSIONS, min_size=1, max_size=3), window=WINDOWS)
def test_the_outer_query_is_the_query_with_names_for_what_is_below(expressions: list[str], window: str) -> None:
    listed = ", ".join(f"{text} as c{number}" for number, text in enumerate([*expressions, window]))
    found = split(f"select {listed} from t where a > 1 window w as (partition by a order by t.b), v as (order by a)")
    for text, item in zip([*expressions, window], found.items, strict=True):
        if item.above is None:
            assert "median(" not in text
            assert "count(distinct" not in text
            continue
        assert tree(restored(item.above, found)) == tree(text)
        named = [column for column in tree(item.above).find_all(exp.Column) if not column.name.startswith(OWN)]
        assert not named, item.above
    below = Reading(found.inner).tree
    assert isinstance(below, exp.Select)
    assert not any("median" in window.sql() for window in below.find_all(exp.Window))
    assert below.args["where"] is not None


def test_items_stay_in_their_places() -> None:
    text = "select /*+ broadcast(u) */ distinct x + 1 as y, median(y) over (), t.*, y from t, u group by 1 having y > 2"
    found = split(text)
    listed = Reading(found.inner).tree.expressions
    assert found.inner.startswith("select /*+ broadcast(u) */ x + 1 as y, null as")
    assert [item.alias_or_name for item in listed[:2]] == ["y", f"{OWN}m1"]
    assert found.distinct
    assert found.inner.endswith("from t, u group by 1 having y > 2")
    inner = ["y", f"{OWN}m1", "p", "q", f"{OWN}m2", "y", f"{OWN}g0"]
    assert found.name_columns(inner)[-1] == f"{OWN}g0"
    outer = Reading(found.write_outer(inner, "z")).tree
    assert [item.alias for item in outer.expressions] == ["y", "median(y) over ()", "p", "q", "y"]
    assert outer.expressions[-1].this.name == f"{OWN}g0"
    assert found.columns_to_drop(inner) == [f"{OWN}i1", f"{OWN}i4", f"{OWN}i5"]


def test_columns_of_a_star_are_carried_once() -> None:
    found = split("select *, median(x) over (order by d) from t")
    inner = ["d", "e", "X", f"{OWN}m0", f"{OWN}m1", f"{OWN}g0", f"{OWN}g1"]
    assert found.columns_to_drop(inner) == [f"{OWN}i0", f"{OWN}i2", f"{OWN}i3", f"{OWN}i4"]
    assert found.write_outer(inner, "z").startswith(
        f"select {OWN}g0 as `d`, {OWN}i1 as `e`, {OWN}g1 as `X`, {OWN}r0 as"
    )


def test_clauses_above() -> None:
    text = """select d, median(x) over w as m, m + 1 as n, sum(x) over v as s from t
        window w as (order by d), v as (partition by k) qualify n > 2 and s < 5 and mode(x) over w = 1
        order by n, t.k + 1, 2 desc nulls last limit 3"""
    found = split(text)
    assert found.inner.rstrip().endswith("window v as (partition by k)")
    assert len(found.sorts) == 1
    assert [column.call.aggregate.name for column in found.sorts[0].columns] == ["median", "mode"]
    where, order, limit = (line.strip() for line in restored(found.above, found).splitlines())
    assert where == "where (((median(x) over w)) + 1) > 2 and (sum(x) over v) < 5 and (mode(x) over w) = 1"
    assert order == "order by n, (t.k + 1), 2 desc nulls last"
    assert limit == "limit 3"


def test_an_alias_is_a_column_if_the_tables_have_one() -> None:
    text = "select median(x) over () as m, m + 1 as n from t"
    assert split(text).items[1].above == f"({OWN}r0) + 1"
    assert split(text, ("m",)).items[1].above is None


def test_windows_of_spark_that_use_windrows_stay_above() -> None:
    text = "select median(x) over () as m, rank() over (order by m, d) as r from t qualify r = 1"
    with pytest.raises(SqlError, match="cannot use the result of another"):  # so that the query is tried again:
        split(text)
    found = split(text, optional=False)
    assert restored(found.items[1].above or "", found) == "rank() over (order by ((median(x) over ())), (d))"
    assert found.above.startswith("qualify")


def test_windows_with_one_order_share_a_sort() -> None:
    found = split(
        "select median(x) over (partition by k order by d rows 1 preceding), mode(y) over (partition by k order by d),"
        " median(x) over (partition by k order by d rows 1 preceding) + 1,"
        " mode(x) over (partition by k order by d desc) from t"
    )
    assert [len(sort.columns) for sort in found.sorts] == [2, 1]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("select median(x) over () from t where mode(x) over () > 1", "WHERE"),
        ("select k, median(x) over () from t group by k having mode(x) over () > 1", "HAVING"),
        ("select k, median(count(*)) over () from t group by all", "GROUP BY ALL"),
        ("select median(mode(x) over ()) over () from t", "cannot use the result of another"),
        ("select mode(x) over () m, median(m) over () from t", "cannot use the result of another"),
        ("select median(x) over (order by rand()) from t", "the same each time"),
    ],
)
def test_refused(text: str, what: str) -> None:
    with pytest.raises(SqlError, match=what):
        split(text)
