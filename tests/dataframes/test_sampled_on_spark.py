"""Frames of unordered rows on Spark: the route by a sample against the exact one, and what is told about the choice."""

from __future__ import annotations

import datetime
import random
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import frame_tables_twin as twin
import windrow as wr
from windrow.dataframes import sampled_cuts, sampled_route
from windrow.dataframes.row_order import can_hash, hash_rows
from windrow.dataframes.sessions import physical_plan

pytestmark = pytest.mark.spark

NAN = float("nan")
FIELDS = {
    "id": "int", "g": "string", "k": "double", "t": "timestamp", "d": "date", "c": "decimal(12,3)", "s": "string",
    "v": "bigint", "f": "float", "b": "boolean", "y": "binary", "h": "smallint",
}  # fmt: skip
SCHEMA = ", ".join(f"{name} {kind}" for name, kind in FIELDS.items())
DAY, MOMENT = datetime.date(2024, 2, 27), datetime.datetime(2024, 2, 27, 23, 30)


def made_rows(count: int, seed: int) -> list[dict[str, Any]]:
    """Rows in no order with ties, NULL, NaN and -0.0; nearly all of them in one partition."""
    draw = random.Random(seed)
    text = ["", "a", "ä'`\\", "x" * 31, "y" * 32, "z" * 77, None]
    return [
        {
            "id": k, "g": draw.choice(["a"] * 12 + ["b", None]),
            "k": draw.choice([None, NAN, -0.0, 0.0, *[n / 2 for n in range(30)]]),
            "t": None if k % 9 == 0 else (MOMENT + datetime.timedelta(hours=draw.randrange(200), microseconds=k)),
            "d": None if k % 7 == 0 else DAY + datetime.timedelta(days=draw.randrange(40)),
            "c": None if k % 5 == 0 else Decimal(draw.randrange(-9999, 9999)) / 1000,
            "s": draw.choice(text), "v": draw.choice([None, *range(-5, 6)]), "f": draw.choice([None, NAN, -0.0, 1.5]),
            "b": draw.choice([None, True, False]), "y": draw.choice([None, b"", b"\x00\xff", bytes(range(70))]),
            "h": draw.choice([None, -7, 300]),
        }
        for k in range(count)
    ]  # fmt: skip


def frame_of(session: Any, rows: list[dict[str, Any]]) -> Any:
    return session.createDataFrame([tuple(row[name] for name in FIELDS) for row in rows], SCHEMA).repartition(3)


def test_tasks_hash_rows_as_spark_does(spark_session: Any) -> None:
    from pyspark.sql import functions as sf

    df = frame_of(spark_session, made_rows(60, 1)).coalesce(1)
    assert all(can_hash(field.dataType) for field in df.schema.fields)
    table = df.withColumn("hash", sf.xxhash64(*FIELDS)).toArrow()
    assert hash_rows(table, list(FIELDS)).tolist() == table.column("hash").to_pylist()
    part = table.slice(7, 20)
    assert hash_rows(part, ["y", "s"]).tolist() == hash_rows(table, ["y", "s"])[7:27].tolist()
    wide = table.set_column(6, "s", table.column("s").cast(pa.large_string()))
    assert np.array_equal(hash_rows(wide, ["s"]), hash_rows(table, ["s"]))


ORDERS = [
    ("k desc nulls first", (-2, 1.5), "ties"),
    ("t nulls last", ("-9 hours", "3 hours"), "group"),
    pytest.param("d desc", (0, "4 days"), "current row", marks=pytest.mark.slow),
    pytest.param("c", (-1.25, 1), "no others", marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("order", "span", "exclude"), ORDERS)
def test_the_route_by_a_sample_gives_what_the_exact_one_gives(
    spark_session: Any, monkeypatch: pytest.MonkeyPatch, order: str, span: tuple[Any, Any], exclude: str
) -> None:
    """Ties are broken by the same hash, so that even frames of rows are the same."""
    monkeypatch.setattr(sampled_route, "SAMPLE_ROWS", 150)
    df = frame_of(spark_session, made_rows(400, len(order)))
    frames = {
        "rows": wr.Frame.rows(-7, 3).exclude(exclude),
        "late": wr.Frame.rows(2, 5),
        "near": wr.Frame.range(*span).exclude(exclude),
        "groups": wr.Frame.groups(-2, 1).exclude(exclude),
    }
    asked = {
        f"{name}_{unit}": aggregate.over(frame)
        for unit, frame in frames.items()
        for name, aggregate in {"total": wr.sum("v"), "usual": wr.mode("s"), "first": wr.first("id")}.items()
    }
    found = {
        route: wr.frames(df, tasks=4, shuffle=route).partition_by("g").order_by(order).agg(**asked)
        for route in ("sampled", "exact")
    }
    plan = physical_plan(found["sampled"])
    assert plan.count("Exchange") == 1
    assert "Sort" not in plan
    got = {route: sorted(result.coalesce(1).collect(), key=lambda row: row["id"]) for route, result in found.items()}
    assert [repr(row) for row in got["sampled"]] == [repr(row) for row in got["exact"]]


def test_results_are_those_of_the_twin(spark_session: Any) -> None:
    rows = made_rows(200, 5)
    query = wr.frames(frame_of(spark_session, rows), tasks=5).partition_by("g").order_by("s desc nulls last", "id")
    found = query.agg(
        m=wr.median("v").over(wr.Frame.rows(-20, 2)), n=wr.count("v").over(wr.Frame.groups(-3, 0).exclude("group"))
    )
    order = [twin.Order("s", descending=True, nulls_first=False), twin.Order("id")]
    wanted = {
        "m": twin.aggregate(rows, ("g",), order, None, ("rows", -20, 2, "no others"), ("median", "v", None)),
        "n": twin.aggregate(rows, ("g",), order, None, ("groups", -3, 0, "group"), ("count", "v", None)),
    }
    got = found.collect()
    assert len(got) == len(rows)
    for name, answers in wanted.items():
        wrong = {row["id"]: row[name] for row in got if not twin.same(row[name], answers[row["id"]])}
        assert not wrong, name


def test_too_short_a_halo_makes_the_exact_route_run(spark_session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    df = spark_session.range(0, 3000, 1, 2).selectExpr("id * 7919 % 3000 as k", "id")
    query = wr.frames(df, tasks=4).order_by("k").rows(-100, 0)
    monkeypatch.setattr(sampled_route, "SAMPLE_ROWS", 300)
    told = query.explain(m=wr.sum("id"))
    assert "route       sampled, the cheapest of 2" in told
    assert "in place  cannot" in told
    assert "rows are not in order" in told
    monkeypatch.setattr(sampled_cuts, "DEVIATIONS", -3.0)
    told = query.explain(m=wr.sum("id"))
    assert "route       exact, the only one that can" in told
    assert "the sample is misleading" in told
    with pytest.raises(wr.DataError, match="sampled cannot do these frames: the sample is misleading"):
        wr.frames(df, tasks=4, shuffle="sampled").order_by("k").rows(-100, 0).agg(m=wr.sum("id"))
    ids = {k * 7919 % 3000: k for k in range(3000)}
    for row in query.agg(m=wr.sum("id")).collect():
        assert row["m"] == sum(ids[k] for k in range(max(0, row["k"] - 100), row["k"] + 1))


def test_large_halos_and_values_of_unbounded_frames_take_the_exact_route(
    spark_session: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    df = spark_session.range(0, 2000, 1, 2).selectExpr("id * 7919 % 2000 as k", "id")
    query = wr.frames(df, tasks=3).order_by("k")
    assert "more of other tasks than a few numbers" in query.explain(m=wr.median("id").over(wr.Frame.rows(None, 0)))
    assert "some reach rows of other tasks" in query.explain(m=wr.sum("id").over(wr.Frame.rows(None, -1)))
    monkeypatch.setattr(sampled_route, "TASK_ROWS", 900)
    assert "has about 2,000 rows" in wr.frames(df, tasks=3).partition_by("k div 2000").order_by("k").explain(
        m=wr.median("id").over(wr.Frame.rows(None, 0))
    )
    assert "has about 2,000 rows" in wr.frames(df, tasks=3).order_by("k div 2000").explain(r=wr.rank())
    monkeypatch.setattr(sampled_route, "HALO_BYTES", 1000)
    told = query.explain(m=wr.sum("id").over(wr.Frame.rows(-200, 0)))
    assert "rows beyond their tasks" in told


def test_rows_that_only_spark_can_hash_take_their_hash_along(spark_session: Any) -> None:
    """One key for all rows: cuts go through it by the hash, and lists are among the columns."""
    df = spark_session.range(0, 500, 1, 2).selectExpr("1 as k", "id", "array(id, 3) as l", "map('a', id) as m")
    found = {
        route: {
            row["id"]: (row["s"], row["n"], row["l"], row["m"])
            for row in wr.frames(df, tasks=3, shuffle=route)
            .order_by("k")
            .agg(s=wr.sum("id").over(wr.Frame.rows(-9, 0)), n=wr.count().over(wr.Frame.range(0, 0)))
            .collect()
        }
        for route in ("sampled", "exact")
    }
    assert found["sampled"] == found["exact"]
    assert {n for _, n, _, _ in found["sampled"].values()} == {500}
