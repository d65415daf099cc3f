"""Small DataFrames, which are read whole: the same results as by way of Spark's workers, whatever the types."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import windrow as wr
from windrow.tables import small

COUNT = 90


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ("Statistics(sizeInBytes=133.5 KiB)", 133.5 * 2**10),
        ("Statistics(sizeInBytes=24.0 B, rowCount=3)", 24),
        ("Statistics(sizeInBytes=8.0 EiB)\nStatistics(sizeInBytes=1.0 B)", 2**63),
        ("Statistics(sizeInBytes=6.0E+3 B)", 6000),
        ("nothing of the kind", float("inf")),
    ],
)
def test_estimates_are_read(said: str, wanted: float) -> None:
    assert small.estimated_bytes(said) == wanted


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows of all types, not in order, with equal keys and NULL."""
    path = tmp_path_factory.mktemp("small") / "rows.parquet"
    moment = datetime.datetime(2026, 3, 29, 0, 30)
    zoned = moment.replace(tzinfo=datetime.UTC)
    hours = [datetime.timedelta(hours=k) for k in range(COUNT)]
    columns = {
        "id": pa.array([(7 * k) % COUNT for k in range(COUNT)]),
        "g": pa.array([None if k % 11 == 0 else "aäb"[k % 3] for k in range(COUNT)]),
        "k": pa.array([None if k % 13 == 0 else float(k % 5) if k % 4 else float("nan") for k in range(COUNT)]),
        "v": pa.array([k * k % 17 for k in range(COUNT)], pa.int32()),
        "day": pa.array([(moment + 24 * hour).date() for hour in hours]),
        "moment": pa.array([zoned + hour for hour in hours], pa.timestamp("us", "UTC")),
        "plain": pa.array([moment + hour for hour in hours], pa.timestamp("us")),
        "price": pa.array([k % 7 for k in range(COUNT)], pa.int64())
        .cast(pa.decimal128(19, 0))
        .cast(pa.decimal128(9, 2)),
        "data": pa.array([bytes([k]) for k in range(COUNT)]),
        "flag": pa.array([k % 3 == 0 for k in range(COUNT)]),
    }
    pq.write_table(pa.table(columns), path)
    return path


@pytest.fixture
def zone(spark_session: Any) -> Iterator[None]:
    """A time zone whose clocks are changed within the rows."""
    name = "spark.sql.session.timeZone"
    before = spark_session.conf.get(name)
    spark_session.conf.set(name, "Europe/Berlin")
    yield
    spark_session.conf.set(name, before)


def asked(query: Any) -> Any:
    """Aggregates of all types over all kinds of frames."""
    return query.agg(
        n=wr.count().over(wr.Frame.rows(-3, 2)),
        m=wr.median("v").over(wr.Frame.rows(-20, 0)),
        s=wr.mode("g").over(wr.Frame.groups(-1, 1)),
        d=wr.max("day").over(wr.Frame.range(None, 0)),
        t=wr.min("moment").over(wr.Frame.rows(None, None)),
        p=wr.max("plain").over(wr.Frame.rows(-1, None)),
        e=wr.sum("price").over(wr.Frame.rows(-5, 5)),
    )


@pytest.mark.spark
@pytest.mark.usefixtures("zone")
def test_results_are_those_of_many_tasks(spark_session: Any, table: Path) -> None:
    df = spark_session.read.parquet(str(table))
    few, cut = (
        asked(wr.frames(df, tasks=tasks).partition_by("g").order_by("k desc", "id").rows(-2, 0)) for tasks in (None, 3)
    )
    assert few.schema == cut.schema
    assert shown(few) == shown(cut)
    # Without a total order rows with equal keys go by their hash in both.
    few, cut = (wr.frames(df, tasks=tasks).order_by("k").rows(-4, 0).agg(x=wr.median("v")) for tasks in (None, 3))
    assert shown(few) == shown(cut)


def shown(frame: Any) -> list[str]:
    """Rows as texts, in which NaN is equal to itself."""
    return sorted(map(repr, frame.collect()))


@pytest.mark.spark
def test_few_rows_are_read_once_and_by_no_worker(spark_session: Any, table: Path) -> None:
    df = spark_session.read.parquet(str(table))
    query = wr.frames(df).order_by("id").rows(-2, 0)
    assert "rows are few" in query.explain(x=wr.median("v"))
    plan = plan_of(query.agg(x=wr.median("v")))
    assert "LocalTableScan" in plan
    assert "Python" not in plan
    assert "rows are few" not in wr.frames(df, tasks=1).order_by("id").explain(x=wr.median("v"))


@pytest.mark.spark
def test_rows_that_were_taken_for_few_go_another_way(spark_session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    df = spark_session.range(0, COUNT, 1, 4)
    monkeypatch.setattr(small, "SMALL_ROWS", COUNT - 1)
    assert "in order already" in wr.frames(df).order_by("id").rows(-2, 0).explain(n=wr.count())
    monkeypatch.setattr(small, "SMALL_ROWS", COUNT)
    assert "rows are few" in wr.frames(df).order_by("id").rows(-2, 0).explain(n=wr.count())


@pytest.mark.spark
def test_the_order_of_many_partitions_is_kept(spark_session: Any) -> None:
    """No order was asked for, so that frames go along the rows as they are."""
    df = spark_session.range(0, COUNT, 1, 7)
    result = wr.frames(df).rows(-1, 0).agg(least=wr.min("id"))
    assert [(row["id"], row["least"]) for row in result.collect()] == [(k, max(k - 1, 0)) for k in range(COUNT)]


def plan_of(frame: Any) -> str:
    from windrow.tables.dataframes import physical_plan

    return physical_plan(frame)
