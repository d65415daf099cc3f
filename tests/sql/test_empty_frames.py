"""Frames that end before they start are empty: DuckDB says the same where it has them, Spark refuses them."""

from __future__ import annotations

from typing import Any

import pytest

import windrow as wr
from windrow.sql.frame_clauses import read_frame
from windrow.sql.reading import Reading

REVERSED = [
    "rows between 1 preceding and 2 preceding",
    "rows between 2 following and 1 following",
    "range between 1 preceding and 2 preceding",
    "range between 3 following and 1 following",
    "groups between 1 preceding and 2 preceding",
    "groups between 2 following and 1 following",
]
AGGREGATES = ("sum(x)", "count(x)", "count(*)", "max(x)", "median(x)", "count(distinct x)", "mode(x)")
ROWS = [(1, 3), (1, 1), (2, None), (3, 5), (7, 5)]


@pytest.fixture(scope="module")
def db(spark_session: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    spark_session.createDataFrame(ROWS, "i bigint, x bigint").createOrReplaceTempView("few")
    with wr.connect(tmp_path_factory.mktemp("few"), spark=spark_session, engine="spark", progress=False) as database:
        yield database


def _in_duckdb(text: str) -> list[tuple[Any, ...]]:
    import duckdb

    with duckdb.connect() as connection:
        connection.execute("create table few (i bigint, x bigint)")
        connection.executemany("insert into few values (?, ?)", ROWS)
        return connection.execute(text).fetchall()


@pytest.mark.spark
@pytest.mark.parametrize("frame", REVERSED)
def test_empty_frames_in_sql(db: Any, frame: str) -> None:
    listed = ", ".join(f"{aggregate} over (order by i {frame})" for aggregate in AGGREGATES)
    found = [tuple(row) for row in db.sql(f"select {listed} from few").collect()]
    assert found == [(None, 0, 0, None, None, 0, None)] * len(ROWS)
    assert found == _in_duckdb(f"select {listed} from few")
    with pytest.raises(Exception, match=r"(?i)lower bound|GROUPS|PARSE_SYNTAX_ERROR"):
        db.engine.spark().session.sql(f"select sum(x) over (order by i {frame}) from few").collect()


@pytest.mark.spark
@pytest.mark.parametrize(
    "frame", ["rows between current row and 1 preceding", "groups between 1 following and current row"]
)
def test_frames_that_others_refuse_are_empty_too(db: Any, frame: str) -> None:
    found = db.sql(f"select sum(x) over (order by i {frame}), count(x) over (order by i {frame}) from few").collect()
    assert [tuple(row) for row in found] == [(None, 0)] * len(ROWS)


@pytest.mark.spark
@pytest.mark.parametrize(
    "frame",
    [
        wr.Frame.rows(-1, -2),
        wr.Frame.rows(2, 1),
        wr.Frame.rows(wr.preceding(1), wr.preceding(2)),
        wr.Frame.range(-1, -2),
        wr.Frame.range(3, 1),
        wr.Frame.groups(2, -1),
        wr.Frame.rows(-1, -2).exclude("current row"),
        wr.Frame.groups(1, 0).exclude("group"),
    ],
)
def test_empty_frames_on_dataframes(db: Any, frame: wr.Frame) -> None:
    rows = wr.frames(db.engine.spark().session.table("few")).order_by("i")
    found = rows.agg(m=wr.median("x").over(frame), n=wr.count("x").over(frame), s=wr.sum("x").over(frame))
    assert [tuple(row)[2:] for row in found.collect()] == [(None, 0, None)] * len(ROWS)


@pytest.mark.parametrize(
    ("frame", "is_reversed"),
    [
        ("rows between 1 preceding and 2 preceding", True),
        ("rows between 2 preceding and 2 preceding", False),
        ("rows between current row and 1 preceding", True),
        ("rows between x preceding and 1 preceding", False),
        ("rows between unbounded preceding and 1 preceding", False),
        ("range between interval 1 day preceding and interval 36 hours preceding", True),
        ("range between interval 1 month preceding and interval 2 months preceding", True),
        ("range between interval 2 months preceding and interval 1 month preceding", False),
        # Whether a month is longer than 30 days depends on the month.
        ("range between interval 1 month preceding and interval 30 days preceding", False),
    ],
)
def test_which_frames_end_before_they_start(frame: str, is_reversed: bool) -> None:
    reading = Reading(f"select sum(x) over (order by i {frame}) from few")
    window = reading.tree.expressions[0]
    assert read_frame(reading, window, window.args["spec"], True).is_reversed is is_reversed
