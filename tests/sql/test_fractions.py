"""Fractions of quantiles that are columns or expressions, in ``wr.frames`` and in SQL."""

from __future__ import annotations

from typing import Any

import pytest

import windrow as wr
from windrow.api.sql_queries import run_sql
from windrow.sql.reading import SqlError, SqlNameError

pytestmark = pytest.mark.spark

ROWS = 300


@pytest.fixture(scope="module")
def table(spark_session: Any) -> Any:
    frame = spark_session.range(ROWS).selectExpr(
        "id as b", "(id * 7919) % 101 as x", "(id % 11) / 10.0 as q", "cast((id * 31) % 7 as string) as s",
        "cast((id % 11) / 10.0 as float) as f", "date_add(date'2026-01-01', cast((id * 7919) % 101 as int)) as d",
    )  # fmt: skip
    frame.createOrReplaceTempView("varied")
    return frame


@pytest.fixture(scope="module")
def db(spark_session: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    with wr.connect(tmp_path_factory.mktemp("sql"), spark=spark_session, engine="spark", progress=False) as database:
        yield database


def constant_quantiles(table: Any, aggregate: Any) -> list[Any]:
    """The same asked eleven times with one fraction for all rows, and each row's taken from its own."""
    tenths = {f"t{k}": aggregate(k) for k in range(11)}
    found = wr.frames(table).order_by("b").rows(-19, 0).agg(**tenths).orderBy("b").collect()
    return [row[f"t{row['b'] % 11}"] for row in found]


@pytest.mark.parametrize("shuffle", ["auto", "always"])
def test_columns_of_fractions_in_frames(table: Any, shuffle: str) -> None:
    asked = wr.frames(table, shuffle=shuffle, tasks=3).order_by("b").rows(-19, 0)
    found = asked.agg(
        index=wr.quantile("x", "q"), cont=wr.quantile_cont("x", "f"), disc=wr.quantile_disc("s", "q"),
        near=wr.percentile("d", "q * 100"),
    ).orderBy("b").collect()  # fmt: skip
    assert [row["index"] for row in found] == constant_quantiles(table, lambda k: wr.quantile("x", k / 10))
    assert [row["disc"] for row in found] == constant_quantiles(table, lambda k: wr.quantile_disc("s", k / 10))
    assert [row["near"] for row in found] == constant_quantiles(table, lambda k: wr.percentile("d", 10 * k))
    assert [row["cont"] for row in found] == constant_quantiles(table, lambda k: wr.quantile_cont("x", k / 10))


def test_unbounded_frames_take_fractions_too(table: Any) -> None:
    found = wr.frames(table, shuffle="always", tasks=3).order_by("b").agg(m=wr.quantile("x", "q")).collect()
    values = [(b * 7919) % 101 for b in range(ROWS)]
    for row in found:
        b = row["b"]
        assert row["m"] == sorted(values[: b + 1])[(b % 11) * b // 10]


def test_expressions_in_sql(db: Any, table: Any) -> None:
    found = db.sql(
        """select b, quantile(x, q) over w as a, percentile(x, q) over w as c,
                  windrow_percentile(x, 100 * q) over w as n,
                  percentile_disc(q) within group (order by x) over w as d,
                  percentile_disc(q) within group (order by x desc) over w as e,
                  percentile_cont(q) within group (order by x desc) over w as f
           from varied window w as (order by b rows 19 preceding) order by b"""
    ).collect()
    ways = {
        "a": lambda k: wr.quantile("x", k / 10),
        "c": lambda k: wr.quantile_cont("x", k / 10),
        "n": lambda k: wr.percentile("x", 10 * k),
        "d": lambda k: wr.quantile_disc("x", k / 10),
        "e": lambda k: wr.percentile("x", 100 - 10 * k),
        "f": lambda k: wr.quantile_cont("x", (10 - k) / 10),
    }
    for name, way in ways.items():
        assert [row[name] for row in found] == constant_quantiles(table, way), name


def test_the_table_function_takes_a_column(db: Any, table: Any) -> None:
    found = db.sql(
        """select m from windrow_frames(table(select b, x, double(q) as q from varied) with single partition order by b,
             aggregates => 'quantile(x, q) as m', frame => 'rows 19 preceding') order by b"""
    ).collect()
    assert [row["m"] for row in found] == constant_quantiles(table, lambda k: wr.quantile("x", k / 10))


@pytest.mark.parametrize("wrong", ["null", "double('nan')", "-0.1", "1.1"])
def test_a_wrong_fraction_is_named_with_its_row(db: Any, table: Any, wrong: str) -> None:
    with pytest.raises(SqlError, match=r"must be between 0 and 1, got .* in the row with b = 200"):
        db.sql(f"select quantile(x, if(b = 200, {wrong}, 0.5)) over (order by b rows 9 preceding) from varied")
    with pytest.raises(wr.DataError, match=r"m: q must be between 0 and 1, got .* in the row with b = 200"):
        wr.frames(table).order_by("b").rows(-9, 0).agg(m=wr.quantile("x", f"if(b = 200, {wrong}, 0.5)"))


def test_fractions_that_are_no_numbers_or_change_are_refused(db: Any, table: Any) -> None:
    asked = wr.frames(table).order_by("b").rows(-9, 0)
    with pytest.raises(wr.SchemaError, match="the fraction of m must be a number, got s: string"):
        asked.agg(m=wr.quantile("x", "s"))
    with pytest.raises(wr.UnknownNameError, match="no such column in the fraction of m"):
        asked.agg(m=wr.quantile("x", "nothing"))
    with pytest.raises(wr.DataError, match="must give the same value each time"):
        asked.agg(m=wr.quantile("x", "rand()"))
    with pytest.raises(SqlNameError) as caught:
        db.sql("select quantile_indx(x, 0.5) over (order by b) from varied")
    assert "Did you mean 'quantile_index'?" in str(caught.value)


@pytest.mark.parametrize("wrong", ["null", "double('nan')", "-0.1", "1.1"])
def test_a_wrong_fraction_of_a_group_is_said_without_a_trace(db: Any, table: Any, wrong: str) -> None:
    asked = f"select b % 3 as k, quantile(x, max(if(b % 3 = 2, {wrong}, 0.5))) as m from varied group by k"
    with pytest.raises(Exception, match=r"quantile_index: q must be between 0 and 1, got .* in a group") as caught:
        db.sql(asked).collect()
    assert "Traceback" not in str(caught.value)
    result = run_sql(db, asked)
    assert result is not None
    with pytest.raises(wr.DataError, match=r"^quantile_index: q must be between 0 and 1, got .* in a group$"):
        result.head(5)


def test_wrong_numbers_of_arguments_are_told(db: Any, table: Any) -> None:
    for call, got in (("quantile_index(x)", "one argument"), ("quantile_disc(x, 0.5, 3)", "3 arguments")):
        for over in (" over (order by b)", ""):
            with pytest.raises(SqlError, match=rf"{call.split('(')[0]} takes two arguments, got {got}"):
                db.sql(f"select {call}{over} from varied")
    with pytest.raises(SqlError, match=r"there is no quantile\(distinct …\)"):
        db.sql("select quantile(distinct x, 0.5) from varied")


def test_a_sum_that_is_too_large_is_said_without_a_trace(db: Any, table: Any) -> None:
    asked = "select sum(x + 9223372036854775000) over (order by b rows 2 preceding) as m from varied"
    with pytest.raises(Exception, match="an integer sum overflows int64") as caught:
        db.sql(asked).collect()
    assert "Traceback" not in str(caught.value)
    result = run_sql(db, asked)
    assert result is not None
    with pytest.raises(wr.DataError, match=r"^an integer sum overflows int64"):
        result.head(300)
