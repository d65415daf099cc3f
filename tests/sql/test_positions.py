"""Functions that Spark has too, over one large partition: as Spark's own and DuckDB's, and in more than one task."""

from __future__ import annotations

import math
import random
import re
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import windrow as wr

pytestmark = pytest.mark.spark

ROWS = 240
FRAMES = (
    "",
    "rows between 5 preceding and 2 following",
    "rows between unbounded preceding and 3 preceding",
    "rows between 2 following and unbounded following",
)
FUNCTIONS = ("sum(x)", "avg(x)", "min(s)", "count(x)", "count(*)")
PICKS = ("first_value(x)", "last_value(s)", "nth_value(x, 3)")
PLACES = (
    "row_number()", "rank()", "dense_rank()", "percent_rank()", "cume_dist()", "ntile(7)", "lag(x)", "lead(s, 3)",
    "lag(x, 2, -1)", "ntile(1000)",
)  # fmt: skip


def table() -> pa.Table:
    chance = random.Random(16)
    some = [chance.choice([None, 1, 2, 7, 100]) for _ in range(ROWS)]
    return pa.table(
        {
            "b": pa.array(chance.sample(range(ROWS), ROWS), pa.int64()),
            "t": pa.array([chance.choice([None, 1, 2, 3]) for _ in range(ROWS)], pa.int64()),
            "x": pa.array(some, pa.int64()),
            "s": pa.array([chance.choice([None, "a", "b", "c"]) for _ in range(ROWS)]),
            "f": pa.array([chance.choice([None, 1.5, -2.0, math.nan, math.inf]) for _ in range(ROWS)]),
        }
    )


@pytest.fixture(scope="module")
def db(spark_session: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    spark_session.createDataFrame(table()).repartition(3).createOrReplaceTempView("placed")
    with wr.connect(tmp_path_factory.mktemp("sql"), spark=spark_session, engine="spark", progress=False) as database:
        yield database


@pytest.fixture(autouse=True)
def several_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows make a task, so that one partition lies in many."""
    monkeypatch.setattr("windrow.dataframes.exact_route.TASK_ROWS", 50)
    monkeypatch.setattr("windrow.dataframes.sampled_route.TASK_ROWS", 50)


def rows(found: Any) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in found]


def assert_same(one: list[tuple[Any, ...]], other: list[tuple[Any, ...]]) -> None:
    assert len(one) == len(other)
    for left, right in zip(one, other, strict=True):
        for a, b in zip(left, right, strict=True):
            nan = isinstance(a, float) and isinstance(b, float) and math.isnan(a) and math.isnan(b)
            assert a == b or nan or (isinstance(a, float) and a == pytest.approx(b, rel=1e-9)), (left, right)


def query(functions: tuple[str, ...], order: str, frame: str) -> str:
    listed = ", ".join(f"{call} over (order by {order} {frame}) as c{k}" for k, call in enumerate(functions))
    return f"select b, {listed} from placed order by b"


@pytest.mark.parametrize("frame", [*FRAMES[:2], *(pytest.param(frame, marks=pytest.mark.slow) for frame in FRAMES[2:])])
def test_aggregates_and_rows_of_frames_are_those_of_spark_and_duckdb(db: Any, spark_session: Any, frame: str) -> None:
    asked = query((*FUNCTIONS, *PICKS), "b", frame)
    found = rows(db.sql(asked).collect())
    assert_same(found, rows(spark_session.sql(asked).collect()))
    placed = table()  # noqa: F841  DuckDB finds it by its name
    assert_same(found, duckdb.sql(asked).fetchall())


def test_places_and_neighbours_are_sparks(db: Any, spark_session: Any) -> None:
    asked = query(PLACES, "b desc", "")
    found, own = db.sql(asked), spark_session.sql(asked)
    assert [kind for _, kind in found.dtypes] == [kind for _, kind in own.dtypes]
    assert_same(rows(found.collect()), rows(own.collect()))


@pytest.mark.parametrize("order", ["t desc nulls first, s", "f"])
def test_ranks_of_ties_are_sparks(db: Any, spark_session: Any, order: str) -> None:
    asked = query(
        ("rank()", "dense_rank()", "percent_rank()", "cume_dist()", "sum(x)", "max(f)", "stddev(x)"), order, ""
    )
    assert_same(rows(db.sql(asked).collect()), rows(spark_session.sql(asked).collect()))


def test_one_partition_runs_in_several_tasks(db: Any) -> None:
    told = db.sql("explain " + query(("sum(x)", "rank()"), "b", "")).collect()[0][0]
    tasks = re.search(r"tasks +(\d+)", told)
    assert tasks is not None
    assert int(tasks[1]) > 1


def test_who_does_what_is_said(db: Any) -> None:
    text = "select sum(x) over (partition by s order by b) as m, median(x) over (order by b) as n from placed"
    told = db.sql(f"explain {text}").collect()[0][0]
    assert "sum(x) over (partition by s order by b), a task for each value of s: which is quick where no value" in told
    assert "windrow_sum divides those too" in told
    alone = "select avg(cast(x as decimal(10, 2))) over (order by b) as m from placed"
    told = db.sql(f"explain {alone}").collect()[0][0]
    assert "in one task" in told
    assert db.sql(alone).dtypes == [("m", "decimal(14,6)")]


def test_explain_is_true_and_readable(db: Any) -> None:
    text = "select corr(x, b) over (order by b) as c, rank() over (order by b) as r from placed"
    told = db.sql(f"explain {text}").collect()[0][0].split("== Physical Plan")[0]
    assert "corr: made of sum, min, max, each the cheapest way for a task's rows" in told
    assert "the rows before all peers  count: from the bounds of frames alone" in told
    assert re.search(r"rank\(\) over \(order by b\) +rank: from the rows before all peers", told)
    assert "__" not in told
    spark = (
        "select lag(x) ignore nulls over (order by b) as l, collect_list(x) over (order by b rows 1 preceding) as a, "
        "max_by(x, b) over w as m from placed window w as (partition by s)"
    )
    told = db.sql(f"explain {spark}").collect()[0][0]
    assert "lag(x) ignore nulls over (order by b), in one task: windrow has no such form of lag" in told
    assert "in one task: windrow has no collect_list" in told
    assert "max_by(x, b) over w, a task for each value of s: windrow has no max_by" in told


def test_a_number_stands_where_there_is_no_such_row(db: Any, spark_session: Any) -> None:
    found = (
        wr.frames(spark_session.table("placed"))
        .order_by("b")
        .agg(n=wr.lead("b", 2, 0), m=wr.lag("b", 1, -1))
        .orderBy("b")
        .collect()
    )
    values = [row["b"] for row in found]
    assert [row["n"] for row in found] == [*values[2:], 0, 0]
    assert [row["m"] for row in found] == [-1, *values[:-1]]


def test_what_spark_alone_can_do_stays_sparks(db: Any, spark_session: Any) -> None:
    for asked in (
        "select b, sum(rank() over (order by b)) over (order by b) as m from placed order by b",
        "select s, sum(count(*)) over (order by s) as m from placed group by all order by s",
        "select b, lag(x) ignore nulls over (order by b) as m from placed order by b",
        "select b, sum(x) over (order by b) as m, m + 1 as n from placed order by b",
        "select max(struct(x, s)) over (order by b) as m from placed order by b",
    ):
        try:
            own = rows(spark_session.sql(asked).collect())
        except Exception:
            continue
        assert rows(db.sql(asked).collect()) == own, asked


def test_in_python(db: Any, spark_session: Any) -> None:
    placed = spark_session.table("placed")
    found = wr.frames(placed).partition_by("s").order_by("b").agg(
        number=wr.row_number(), place=wr.rank(), dense=wr.dense_rank(), share=wr.percent_rank(), up_to=wr.cume_dist(),
        third=wr.ntile(3), before=wr.lag("x"), after=wr.lead("x", 2, "0"), first=wr.first_value("x"),
        last=wr.last_value("x").over(wr.Frame.rows(None, None)), second=wr.nth_value("b", 2), total=wr.sum("x"),
    )  # fmt: skip
    over = "over (partition by s order by b)"
    own = spark_session.sql(
        f"""select *, row_number() {over}, rank() {over}, dense_rank() {over}, percent_rank() {over},
                   cume_dist() {over}, ntile(3) {over}, lag(x) {over}, lead(x, 2, 0) {over}, first_value(x) {over},
                   last_value(x) over (partition by s order by b
                                       rows between unbounded preceding and unbounded following),
                   nth_value(b, 2) {over}, sum(x) {over} from placed order by b"""
    )
    assert_same(rows(found.orderBy("b").collect()), rows(own.collect()))
    with pytest.raises(wr.SchemaError, match="needs rows in an order"):
        wr.frames(placed).agg(r=wr.rank())
    with pytest.raises(wr.DataError, match="must be at least 1"):
        wr.ntile(0)
    with pytest.raises(wr.DataError, match="has no frame"):
        wr.rank().over(wr.Frame.rows(-1, 0))
