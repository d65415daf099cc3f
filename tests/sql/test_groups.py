"""GROUP BY in ``db.sql`` knows windrow's functions, and they mean there what they mean over a window."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import windrow as wr
from windrow.sql.reading import SqlError, SqlNameError

pytestmark = pytest.mark.spark


@wr.aggregate("breadth", result="float64")
class Breadth:
    """The largest value less the smallest."""

    def empty() -> Any:  # type: ignore[misc]
        return (np.inf, -np.inf)

    def add(state: Any, x: Any) -> Any:  # type: ignore[misc]  # noqa: N805
        return (min(state[0], x), max(state[1], x))

    def result(state: Any) -> Any:  # type: ignore[misc]  # noqa: N805
        return state[1] - state[0]


CALLS = (
    "mode(x)", "mode(s)", "mode(x) filter (where x > 3)", "quantile(x, 0.3)", "quantile_index(s, 0.5)", "mode(y)",
    "quantile_disc(d, 0.9)", "quantile_cont(x, 0.3)", "windrow_percentile(x, 70)", "breadth(x)", "windrow_max(y)",
    "percentile_disc(0.4) within group (order by s)", "windrow_sum(x)", "wavg(x, y)", "covar(x, y)", "skew(x)",
    "count_distinct(s)", "median(x)",
)  # fmt: skip


@pytest.fixture(scope="module")
def db(spark_session: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    spark_session.range(400).selectExpr(
        "id % 4 as k", "if(id % 9 = 0, null, (id * 31) % 12) as x", "cast((id * 7) % 5 as string) as s",
        "date_add(date'2026-01-01', cast(id % 50 as int)) as d", "if(id % 40 = 3, double('nan'), double(id % 3)) as y",
    ).createOrReplaceTempView("grouped")  # fmt: skip
    with wr.connect(tmp_path_factory.mktemp("sql"), spark=spark_session, engine="spark", progress=False) as database:
        database.create("A", "<a: float64> [i=1:4]").write({"a": np.array([2.0, 1.0, 2.0, 1.0])})
        yield database


def test_groups_give_what_windows_over_whole_partitions_give(db: Any) -> None:
    listed = ", ".join(f"{call} as c{number}" for number, call in enumerate(CALLS))
    over = ", ".join(f"{call} over (partition by k) as c{number}" for number, call in enumerate(CALLS))
    grouped = db.sql(f"select k, count(*) as n, {listed} from grouped group by k order by k").collect()
    windowed = db.sql(
        f"select distinct k, count(*) over (partition by k) as n, {over} from grouped order by k"
    ).collect()
    assert len(grouped) == 4
    for one, other in zip(grouped, windowed, strict=True):
        assert one.asDict().keys() == other.asDict().keys()
        for name, value in one.asDict().items():
            same = other[name]
            assert type(value) is type(same), name
            assert value == same or (value != value and same != same) or value == pytest.approx(same, rel=1e-12), name


def test_wherever_an_aggregate_can_stand(db: Any) -> None:
    found = db.sql(
        """with g as (select k, mode(s) as m from grouped group by k)
           select k, mode(x), 2 * quantile(x, 0.5) from grouped join g using (k)
           group by k having mode(x) is not null order by mode(x), k limit 2"""
    )
    assert found.columns == ["k", "mode(x)", "2 * quantile(x, 0.5)"]
    assert len(found.collect()) == 2
    assert db.sql("select mode(a) as m from A").collect()[0]["m"] == 1.0
    above = "select k, median(mode(x)) over (order by k) as m from grouped group by k order by k"
    assert len(db.sql(above).collect()) == 4
    shares = "select k, quantile(x, k / 4) as q from grouped group by k order by k"
    assert db.sql(shares).collect()[0]["q"] == 0
    told = db.sql("explain select k, mode(x) as m from grouped group by k").collect()[0][0]
    assert "windrow  mode(x), from the values of each group" in told


def test_mistakes_are_pointed_at(db: Any, spark_session: Any) -> None:
    with pytest.raises(SqlNameError, match="no such column"):
        db.sql("select mode(nothing) from grouped")
    with pytest.raises(SqlError, match=r"between 0 and 1, got 1\.5"):
        db.sql("select quantile(x, 1.5) from grouped")
    with pytest.raises(SqlError, match="covar cannot take values of type string"):
        db.sql("select covar(s, y) from grouped")
    with pytest.raises(SqlError, match="needs an order of rows"):
        db.sql("select windrow_first(x) from grouped")
    spark_session.range(3).createOrReplaceTempView("A")
    try:
        with pytest.raises(SqlError, match="both an array's and a view's"):
            db.sql("select * from A")
    finally:
        spark_session.catalog.dropTempView("A")
