"""``db.sql`` and ``windrow_frames`` on Spark: the queries of paper 003, what Spark does beside windrow, mistakes."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import frame_oracle
import windrow as wr
from windrow.sql.reading import SqlError, SqlNameError
from windrow.sql.table_function import Call

pytestmark = pytest.mark.spark

ROWS = 120
WIDTH = 10
P1, P2 = 7919, 5
ORDER = list(range(ROWS))
AGGREGATES = {
    "sum(a)": ("sum", None),
    "count(distinct a)": ("count_distinct", None),
    "mode(a)": ("mode", None),
    "median(a)": ("median", None),
    "percentile_disc(0.3) within group (order by a)": ("quantile_disc", 0.3),
    "quantile_index(a, 0.5)": ("quantile_index", 0.5),
}
"""What the paper puts in the place of ``agg``, and what it is to the oracle."""

FIXED = f"order by b asc\n  rows between {WIDTH}-1 preceding and current row "
VARIABLE = f"""
  order by b asc
  rows between mod( b * {P1}, {P2} ) preceding
  and {WIDTH} - mod( b * {P1}, {P2} ) following """


def rank_tables() -> dict[str, list[int]]:
    """Column a of the paper's tables, by b from 0: one value, a hundred of them, all different."""
    chance = random.Random(3)
    return {
        "rank1": [1] * ROWS,
        "rank100": [chance.randrange(100) for _ in ORDER],
        "rank10M": [b + 1000 for b in ORDER],
    }


@pytest.fixture(scope="module")
def session(spark_session: Any) -> Any:
    for name, values in rank_tables().items():
        rows = list(zip(values, ORDER, strict=True))
        if name == "rank1":
            random.Random(1).shuffle(rows)  # the paper's is sorted on a hash
        spark_session.createDataFrame(rows, "a bigint, b bigint").createOrReplaceTempView(name)
    days = "array('2026-01-01', '2026-01-02', '2026-01-05', '2026-01-05', null, '2026-02-01')"
    spark_session.sql(
        f"""create or replace temp view flights as
        select pos as id, cast(day as date) as day, element_at(array('a', 'b'), pos % 2 + 1) as state,
               cast(element_at(array(3, 1, null, 7, 5, 1), pos + 1) as int) as delay, pos % 3 as kind
        from (select posexplode({days}) as (pos, day))"""
    )
    spark_session.sql(
        "create or replace temp view states as select * from values ('a', 'Ada'), ('b', 'Bel') as s(state, name)"
    )
    return spark_session


@pytest.fixture(scope="module")
def db(session: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    with wr.connect(tmp_path_factory.mktemp("sql"), spark=session, engine="spark", progress=False) as database:
        yield database


def rows(frame: Any) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in frame.collect()]


# Paper 003


@pytest.mark.parametrize("frame", [FIXED, VARIABLE], ids=["fixed", "variable"])
def test_paper_003_aggregates_over_rank100(db: Any, frame: str) -> None:
    """Sections 6.2 to 6.5: all aggregates under consideration, beside the oracle and beside DuckDB."""
    over = [f"{agg} over ({frame})" for agg in AGGREGATES]
    found = sorted(rows(db.sql(f"select b, {', '.join(over)}\nfrom rank100")))
    values = rank_tables()["rank100"]
    if frame == FIXED:
        low, high = [b - WIDTH + 1 for b in ORDER], [b + 1 for b in ORDER]
    else:
        low = [b - b * P1 % P2 for b in ORDER]
        high = [b + WIDTH - b * P1 % P2 + 1 for b in ORDER]
    frames = frame_oracle.frame_rows(low, high, ROWS)
    for number, wanted in enumerate(AGGREGATES.values()):
        assert [row[number + 1] for row in found] == frame_oracle.evaluate(values, frames, wanted), wanted
    theirs = _duckdb([over[0], over[1], over[3]], values)
    assert [(row[1], row[2], row[4]) for row in found] == theirs


def _duckdb(columns: list[str], values: list[int]) -> list[tuple[Any, ...]]:
    import duckdb
    import pyarrow as pa

    connection = duckdb.connect()
    connection.register("rank100", pa.table({"a": values, "b": ORDER}))
    found = connection.execute(f"select {', '.join(columns)} from rank100 order by b").fetchall()
    connection.close()
    return [(int(total), distinct, middle) for total, distinct, middle in found]


def test_paper_003_flushing_threshold(db: Any) -> None:
    """Section 6.4: the ordering column itself, where every value leaves and none comes back."""
    query = "select {} over (order by b asc rows\n between {}-1 preceding and current row )\nfrom rank100"
    distinct = sorted(rows(db.sql(query.format("count(distinct b)", WIDTH))))
    assert distinct == sorted((min(b + 1, WIDTH),) for b in ORDER)
    mode = sorted(rows(db.sql(query.format("mode(b)", WIDTH))))
    assert mode == sorted((max(0, b - WIDTH + 1),) for b in ORDER)


@pytest.mark.parametrize("table", ["rank1", "rank100", "rank10M"])
def test_paper_003_rank(db: Any, table: str) -> None:
    """Section 6.2, first query: Spark's own, and it goes to Spark."""
    found = db.sql(f"select rank()\n  over (partition by a order by b desc)\nfrom {table}")
    values = rank_tables()[table]
    expected = sorted(sum(values[c] == a and c >= b for c in ORDER) for b, a in enumerate(values))
    assert sorted(row[0] for row in rows(found)) == expected


def test_paper_003_examples_in_the_text(db: Any) -> None:
    """Section 2.1: a rank, and a moving average around each row; beside it what the paper is about."""
    found = rows(
        db.sql(
            """select id, rank() over (partition by state order by delay desc) as place,
               avg(delay) over (partition by state order by id rows between 3 preceding and 3 following) as moving,
               median(delay) over (partition by state order by id rows between 3 preceding and 3 following) as middle
               from flights order by id"""
        )
    )
    expected = [
        (0, 2, 4.0, 4.0),
        (1, 2, 3.0, 1.0),
        (2, 3, 4.0, 4.0),
        (3, 1, 3.0, 1.0),
        (4, 1, 4.0, 4.0),
        (5, 2, 3.0, 1.0),
    ]
    assert found == expected


# Together with what Spark does


def test_joins_groups_aliases_and_qualify(db: Any) -> None:
    found = db.sql(
        """with known as (select f.*, s.name from flights f join states s using (state) where id < 6)
           select name, sum(delay) as total, median(sum(delay)) over w as middle, middle * 2 as twice,
                  rank() over w as place, case when middle > 9 then 'late' else name end as word
           from known group by name having count(*) > 1
           window w as (order by name)
           qualify twice > 1 and place < 3
           order by middle desc, sum(delay) limit 5"""
    )
    assert found.columns == ["name", "total", "middle", "twice", "place", "word"]
    # Delays: Ada 3, null, 5 = 8; Bel 1, 7, 1 = 9.
    assert rows(found) == [("Bel", 9, 8.5, 17.0, 2, "Bel"), ("Ada", 8, 8.0, 16.0, 1, "Ada")]


def test_nested_queries_set_operations_and_stars(db: Any) -> None:
    found = db.sql(
        """select * from (
             select *, count(distinct kind, state) over (partition by state) as kinds from flights) x
           where delay >= (select max(m) from (select median(delay) over (partition by state) m from flights) y)
           union all
           select distinct null, null, state, mode(delay) over (partition by state), null, null from flights
           order by id nulls last, state"""
    )
    assert found.columns == ["id", "day", "state", "delay", "kind", "kinds"]
    shown = [(row[0], row[2], row[3], row[5]) for row in rows(found)]
    assert shown == [(3, "b", 7, 3), (4, "a", 5, 3), (None, "a", 3, None), (None, "b", 1, None)]


def test_frames_that_spark_lacks(db: Any) -> None:
    found = rows(
        db.sql(
            """select id,
                 median(delay) over (order by day range interval 3 days preceding) as range_median,
                 sum(delay) over (order by day groups between 1 preceding and current row exclude ties) as group_sum,
                 count(*) filter (where delay > 1) over (order by id rows kind preceding) as late,
                 percentile_disc(0.5) within group (order by delay desc) over (order by id rows 2 preceding) as disc,
                 avg(delay) over (order by id rows between current row and 1 following exclude current row) as next,
                 '{braces}' as braces
               from flights order by id"""
        )
    )
    # By day: null 5 | 01-01 3 | 01-02 1 | 01-05 null and 7 | 02-01 1. NULL has only itself at any distance.
    assert [row[1] for row in found] == [3.0, 2.0, 4.0, 4.0, 5.0, 1.0]
    assert [row[2] for row in found] == [8, 4, 1, 8, 5, 8]
    assert [row[3] for row in found] == [1, 1, 1, 1, 2, 2]
    assert [row[4] for row in found] == [3, 3, 3, 7, 7, 5]
    assert [row[5] for row in found] == [1.0, None, 7.0, 5.0, 1.0, None]
    assert found[0][6] == "{braces}"


def test_arrays_are_tables(db: Any) -> None:
    grid = db.create("grid", "<t: float64> [i=1:2, j=1:3]")
    grid.write({"t": np.array([[1.0, 5.0, np.nan], [2.0, 2.0, 9.0]])})
    found = db.sql(
        "select i, j, median(t) over (partition by grid.i order by j rows 1 preceding) from grid order by i, j"
    )
    assert [row[2] for row in rows(found)] == [1.0, 3.0, 5.0, 2.0, 2.0, 5.5]
    assert rows(db.sql("select max(g.t) from `grid@1` g join states on state = 'a'")) == [(9.0,)]
    with pytest.raises(SqlError, match="does not change arrays"):
        db.sql("insert into grid values (1, 1, 1.0)")


def test_own_aggregates_files_and_views(db: Any, session: Any, tmp_path: Path) -> None:
    @wr.aggregate("sql_range", result="float64")
    class Range:
        def empty() -> tuple[float, float]:  # type: ignore[misc]
            return (1e300, -1e300)

        def add(state, x):  # type: ignore[no-untyped-def]  # noqa: N805
            return (min(state[0], x), max(state[1], x))

        def result(state):  # type: ignore[no-untyped-def]  # noqa: N805
            return state[1] - state[0]

    path = tmp_path / "flights"
    session.table("flights").write.parquet(str(path))
    query = f"select id, sql_range(delay) over (order by id rows 1 preceding) r from parquet.`{path}`"
    db.sql(f"create or replace temp view ranges as {query}")
    assert sorted(rows(session.sql("select id, r from ranges"))) == [
        (0, 0.0),
        (1, 2.0),
        (2, 0.0),
        (3, 0.0),
        (4, 2.0),
        (5, 4.0),
    ]
    session.catalog.dropTempView("ranges")
    with pytest.raises(SqlError, match="a stored view cannot hold"):
        db.sql("create view kept as select median(delay) over () from flights")


def test_explain_says_who_does_what(db: Any) -> None:
    text = "explain select id, median(delay) over (partition by state) m, rank() over (order by id) from flights"
    ((told,),) = rows(db.sql(text))
    lines = told.splitlines()
    assert any(line.startswith("spark") and "rank() over (order by id)" in line for line in lines)
    assert "one sort: partition by state" in told
    assert "median(delay) over (partition by state)" in told
    assert "Physical Plan" in told
    assert "Physical Plan" in rows(db.sql("explain select 1"))[0][0]


# Mistakes


@pytest.mark.parametrize(
    ("text", "kind", "what", "at"),
    [
        ("select median(dely) over () from flights", SqlNameError, "no such column, got 'dely'.*'delay'", "dely"),
        ("select median(delay) over () from flight", SqlNameError, "got 'flight'.*'flights'", "flight"),
        ("select medain(delay) over () from flights", SqlNameError, "no such function.*'median'", "medain"),
        ("select median(delay) over (order by id rows 1 precding) from flights", SqlError, "expecting", "precding"),
        ("select id from flights where mode(delay) over () > 1", SqlError, "cannot stand in WHERE", "mode"),
        (
            "select quantile_cont(delay, 1.5) over () from flights",
            SqlError,
            "between 0 and 1, got 1.5",
            "quantile_cont",
        ),
        ("select id, median(state) over () from flights", SqlError, "median cannot take values of type", "median"),
        ("select mode(id) over (order by state range 1 preceding) from flights", SqlError, "got string", "mode"),
        ("select mode(id) over (order by id rows id - 3 preceding) from flights", SqlError, "not be negative", "mode"),
        ("select mode(median(id) over ()) over () from flights", SqlError, "cannot use the result", "mode"),
        ("select state, median(count(*)) over () from flights group by all", SqlError, "GROUP BY ALL", "select"),
        ("select id frm flights where", SqlError, "syntax error", "flights"),
        ("from flights |> select median(id) over ()", SqlError, "begins with its columns", "from"),
    ],
)
def test_mistakes_are_shown_before_anything_runs(db: Any, text: str, kind: type[SqlError], what: str, at: str) -> None:
    with pytest.raises(kind) as caught:
        db.sql(text)
    told = str(caught.value).replace("\n", " ")
    assert re.search(what, told), told
    assert text[caught.value.position :].startswith(at) or at == "from"
    assert "__sql_" not in told


@pytest.mark.parametrize("text", ["", "  ", None, 3])
def test_no_text(db: Any, text: Any) -> None:
    with pytest.raises(wr.LanguageError, match="the text of one query"):
        db.sql(text)


# The table function


def test_table_function(session: Any) -> None:
    wr.register(session)
    call = """select id, m, k, s from windrow_frames(table(flights) partition by state order by id,
        aggregates => 'median(delay) as m, count(distinct kind) k, sum(delay) as s',
        frame => 'rows between 1 preceding and current row') order by id"""
    expected = [(0, 3.0, 1, 3), (1, 1.0, 1, 1), (2, 3.0, 2, 3), (3, 4.0, 2, 8), (4, 5.0, 2, 5), (5, 4.0, 2, 8)]
    assert rows(session.sql(call)) == expected
    ordered = """select id, m from windrow_frames(table(flights) with single partition order by day desc,
        aggregates => 'max(id) as m', frame => 'groups between 1 preceding and kind following exclude current row',
        order_by => 'day desc') order by id"""
    # By day: 02-01 5 | 01-05 2, 3 | 01-02 1 | 01-01 0 | null 4.
    assert rows(session.sql(ordered)) == [(0, 1), (1, 3), (2, 5), (3, 5), (4, 0), (5, 3)]


def test_a_mistake_in_a_call_of_the_table_function(db: Any) -> None:
    call = "table(flights) partition by state, aggregates => 'median(dely) as m', frame => 'rows 1 preceding'"
    with pytest.raises(SqlError, match=r"no such column, got 'dely'.*'delay'"):
        db.sql(f"select * from windrow_frames({call})")


@pytest.mark.slow
def test_a_table_in_pieces_is_refused(session: Any) -> None:
    wr.register(session)
    pieces = "table(select /*+ repartition(3) */ * from rank100)"
    call = f"select * from windrow_frames({pieces}, aggregates => 'median(a) as m', frame => 'rows 1 preceding')"
    with pytest.raises(Exception, match="must be divided by PARTITION BY or be a single partition"):
        session.sql(call).collect()


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("median(delay)",), "the frame is missing"),
        ((None, "rows 1 preceding"), "aggregates are missing"),
        (("median(delay) as kind", "rows 1 preceding"), "a column of that name already"),
        (("mode(kind), mode(kind)", "rows 1 preceding"), "a column of that name already"),
        (("mode(kind)", "groups 1 preceding"), "which rows are peers"),
        (("mode(kind)", "rows 1 preceding exclude ties"), "which rows are peers"),
        (("mode(kind)", "range 1 preceding", "state"), "got string"),
        (("mode(kind)", "rows delay + 1 preceding"), "a column's name is expected"),
        (("mode(kind)", "rows state preceding"), "whole numbers"),
        (("mode(kind) filter (where kind)", "rows 1 preceding"), "must be a boolean column"),
        (("median(state)", "rows 1 preceding"), "median cannot take values"),
        (("kind", "rows 1 preceding"), "calls, separated by commas"),
        (("first(kind)", "rows 1 preceding"), "no such aggregate"),
        (("mode(kind)", "rows 1 preceding", "map"), "cannot be sorted by"),
    ],
)
def test_calls_that_are_refused(arguments: tuple[str, ...], what: str) -> None:
    from pyspark.sql.types import StructType
    from pyspark.sql.udtf import AnalyzeArgument

    schema = StructType.fromDDL("state string, delay int, kind bigint, map map<int, int>")
    table = AnalyzeArgument(dataType=schema, value=None, isTable=True, isConstantExpression=False)
    with pytest.raises(wr.Error, match=what):
        Call(*arguments).plan(table)
