"""Names that WITH defines, beside tables and arrays of the same name: windrow's windows find what Spark's would."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import windrow as wr
from windrow.sql.reading import SqlError

NAMES = ("t", "u", "grid")
"""A view, a name that only WITH gives, and an array; the latter is a view to Spark."""
OVER = "over (order by i rows between 1 preceding and current row)"
COUNTING = "select 1 as i union all select i + 1 from r where i < 4"


@pytest.fixture(scope="module")
def db(spark_session: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    spark_session.range(1, 4).selectExpr("id as i", "id * 10 as x").createOrReplaceTempView("t")
    with wr.connect(tmp_path_factory.mktemp("with"), spark=spark_session, engine="spark", progress=False) as database:
        database.create("grid", "<x: int64> [i=1:3]").write({"x": np.array([7, 14, 21])})
        yield database


def check(db: Any, text: str) -> None:
    """Spark's own sums and windrow's are of the same rows."""
    session = db.engine.spark().session
    # Only here: a temporary view of an array's name is refused.
    session.range(1, 4).selectExpr("id as i", "id * 7 as x").createOrReplaceTempView("grid")
    expected = session.sql(text.replace("SUM", "sum"))
    session.catalog.dropTempView("grid")
    found = db.sql(text.replace("SUM", "windrow_sum"))
    assert found.columns == [name.replace("sum", "windrow_sum") for name in expected.columns]
    assert sorted(map(tuple, found.collect())) == sorted(map(tuple, expected.collect()))


@pytest.mark.spark
@pytest.mark.parametrize(
    "text",
    [
        f"select * from (with t as (select i, x + 1 as x from t) select i, SUM(x) {OVER} m from t) q",
        f"with grid as (select i, x * 100 as x from grid) select i, SUM(x) {OVER} m from grid",
        f"select q.m, grid.x from (with grid as (select i, x from t) select i, SUM(x) {OVER} m from grid) q"
        " join grid on q.i = grid.i",
        f"with GRID as (select i, x from t) select i, SUM(grid.x) {OVER} m from Grid",
        f"with u as (select i, x from t), w as (with u as (select i, x * 2 as x from u) select i, SUM(x) {OVER} m"
        " from u) select w.m, u.x from w join u using (i)",
        f"with u as (with u as (select i, x from t) select i, SUM(x) {OVER} x from u)"
        f" select i, SUM(u.x) {OVER} m from u",
        f"select i, SUM(x) {OVER} m from grid where i in (with grid as (select 1 as i) select i from grid)",
        f"with v as (select i from grid), grid as (select 1 as i, 2 as x) select SUM(x) {OVER} m from grid"
        " union all select i from v",
        "with u(k, v) as (select i, x from grid) select k as i, SUM(v) over (order by k rows 1 preceding) m from u",
        f"with recursive r as ({COUNTING}) select i, SUM(i) {OVER} m from r",
        f"with recursive r as ({COUNTING})"
        " select * from (with r as (select i, i as x from r), t as (select i, x from t) select r.i, SUM(t.x)"
        " over (order by r.i rows 1 preceding) m from r join t using (i)) q",
    ],
)
def test_a_name_means_the_nearest_definition(db: Any, text: str) -> None:
    check(db, text)


@st.composite
def queries(draw: st.DrawFn, known: tuple[str, ...] = ("t", "grid"), depth: int = 0) -> str:
    """A query over names that it knows, with definitions and windows here and there; its columns are i and x."""
    clause = ""
    for name in draw(st.lists(st.sampled_from(NAMES), max_size=2 - depth, unique=True)):
        inner = draw(queries(known, depth + 1)) if depth < 2 else f"select i, x + 1 as x from {known[0]}"
        clause += f"{', ' if clause else 'with '}{name} as ({inner})"
        known = (*known, name)
    source = draw(st.sampled_from(known))
    if depth < 2 and draw(st.booleans()):
        source = f"({draw(queries(known, depth + 1))}) q"
    value = draw(st.sampled_from([f"SUM(x) {OVER}", "x", "x * 2"]))
    return f"{clause} select i, {value} as x from {source}"


@pytest.mark.spark
@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(text=queries())
def test_definitions_within_definitions(db: Any, text: str) -> None:
    check(db, text)


@pytest.mark.spark
def test_what_a_recursive_query_finds_has_no_frames_while_it_looks(db: Any) -> None:
    text = (
        "with recursive r as (select 1 as i union all select max(m) from (select median(i) over () m from r))"
        " select * from r"
    )
    with pytest.raises(SqlError, match="a window cannot stand in the recursive part") as caught:
        db.sql(text)
    assert "^" in str(caught.value)
