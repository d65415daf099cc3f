"""``wr.frames`` on Spark: results against brute force, errors before anything runs, and Spark Connect.

One Spark job answers many cases: each case is a partition of its own, or a column of its own.
"""

from __future__ import annotations

import datetime
import os
import random
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import frame_tables_twin as twin
import windrow as wr
from windrow.model.frame import parse_interval

pytestmark = pytest.mark.spark

ROOT = Path(__file__).resolve().parents[2]
NAN = float("nan")
COLUMNS = "id int, g string, k double, v bigint, w double, s string"
FIELDS = ("id", "g", "k", "v", "w", "s")

AGGREGATES: dict[str, tuple[Any, tuple[str, str | None, float | None]]] = {
    "n": (wr.count(), ("count", None, None)),
    "total": (wr.sum("v"), ("sum", "v", None)),
    "spread": (wr.std("v"), ("std", "v", None)),
    "top": (wr.max("w"), ("max", "w", None)),
    "middle": (wr.median("v"), ("median", "v", None)),
    "tenth": (wr.percentile("w", 10), ("percentile", "w", 10.0)),
    "kinds": (wr.count_distinct("s"), ("count_distinct", "s", None)),
    "usual": (wr.mode("s"), ("mode", "s", None)),
}


def made_rows(count: int, seed: int) -> list[dict[str, Any]]:
    """Rows with ties, NULL, NaN and -0.0; most of them in one partition."""
    draw = random.Random(seed)
    return [
        {
            "id": k,
            "g": draw.choice(["a", "a", "a", "a", "b", None]),
            "k": draw.choice([None, NAN, -0.0, 0.0, *[float(n) for n in range(20)]]),
            "v": draw.choice([None, *range(-5, 6)]),
            "w": draw.choice([None, NAN, -0.0, 0.0, 1.5, -2.0]),
            "s": draw.choice([None, "", "ä", "b", "a'`\\"]),
        }
        for k in range(count)
    ]


def check(got: list[Any], wanted: dict[str, dict[int, Any]]) -> None:
    assert sorted(row["id"] for row in got) == sorted(next(iter(wanted.values())))
    for name, answers in wanted.items():
        wrong = {r["id"]: (r[name], answers[r["id"]]) for r in got if not twin.same(r[name], answers[r["id"]])}
        assert not wrong, name


def answers(
    rows: list[dict[str, Any]], order: list[twin.Order], frame: tuple[Any, ...], names: list[str]
) -> dict[str, dict[int, Any]]:
    return {name: twin.aggregate(rows, ("g",), order, "id", frame, AGGREGATES[name][1]) for name in names}


FRAMES: list[tuple[str, Any, Any, str]] = [
    ("rows", -30, 2, "current row"),
    ("range", -2, 3, "ties"),
    ("groups", -1, 4, "group"),
    ("rows", None, -3, "no others"),
    ("range", 1, None, "no others"),
    ("groups", None, None, "no others"),
]


@pytest.mark.parametrize(
    ("tasks", "names"),
    [
        pytest.param(1, ["n", "middle"], marks=pytest.mark.slow),
        (5, list(AGGREGATES)),
        pytest.param(50, ["total", "usual"], marks=pytest.mark.slow),
    ],
)
def test_results_do_not_depend_on_the_number_of_tasks(spark_session: Any, tasks: int, names: list[str]) -> None:
    rows = made_rows(100 if tasks < 50 else 60, seed=tasks)
    df = spark_session.createDataFrame([tuple(r[f] for f in FIELDS) for r in rows], COLUMNS).repartition(3)
    asked, wanted = {}, {}
    order = [twin.Order("k", descending=True, nulls_first=True)]
    # Rows frames have one answer only where the order is total; peers are those of the first column.
    for unit, start, end, exclude in FRAMES:
        if unit == "rows":
            continue
        frame = wr.Frame(unit, start, end).exclude(exclude)
        for name, answer in answers(rows, order, (unit, start, end, exclude), names).items():
            asked[f"{name}_{unit}_{end}"] = AGGREGATES[name][0].over(frame)
            wanted[f"{name}_{unit}_{end}"] = answer
    got = wr.frames(df, tasks=tasks).partition_by("g").order_by("k desc nulls first").agg(**asked)
    check(got.collect(), wanted)
    asked, wanted = {}, {}
    order = [twin.Order("k"), twin.Order("id", descending=True)]
    for unit, start, end, exclude in FRAMES:
        if unit == "rows":
            frame = wr.Frame(unit, start, end).exclude(exclude)
            for name, answer in answers(rows, order, (unit, start, end, exclude), names).items():
                asked[f"{name}_{end}"] = AGGREGATES[name][0].over(frame)
                wanted[f"{name}_{end}"] = answer
    from pyspark.sql import functions as sf

    ordered = wr.frames(df, tasks=tasks).partition_by("g").order_by("k", sf.col("id").desc())
    check(ordered.agg(**asked).collect(), wanted)


def in_order(spark: Any, rows: list[dict[str, Any]], partitions: int) -> Any:
    """The rows in so many Spark partitions, which stay where they are."""
    from pyspark.sql import functions as sf

    columns = [
        sf.expr(f"array({','.join(literal(row[name]) for row in rows)})[cast(id as int)]").alias(name)
        for name in ("g", "k", "v", "w", "s")
    ]
    return spark.range(0, len(rows), 1, partitions).select(sf.col("id").cast("int").alias("id"), *columns)


def literal(value: Any) -> str:
    if isinstance(value, str):
        return f"cast(X'{value.encode().hex()}' as string)"
    return "null" if value is None else f"double('{value}')" if isinstance(value, float) else str(value)


@pytest.mark.parametrize(
    ("partitions", "names"),
    [(1, ["n"]), (7, list(AGGREGATES)), pytest.param(50, ["top", "kinds"], marks=pytest.mark.slow)],
)
def test_rows_in_order_are_not_shuffled(spark_session: Any, partitions: int, names: list[str]) -> None:
    parts = twin.partitions(made_rows(40, seed=partitions), ("g",), [twin.Order("k")], None)
    parts.sort(key=lambda part: twin.Order("g").sorting(part[0]))
    rows = [{**row, "id": number} for number, row in enumerate(row for part in parts for row in part)]
    query = wr.frames(in_order(spark_session, rows, partitions)).partition_by("g").order_by("k")
    asked, wanted = {}, {}
    for unit, start, end, exclude in FRAMES[:3]:
        frame = wr.Frame(unit, start, end).exclude(exclude)
        for name, answer in answers(rows, [twin.Order("k")], (unit, start, end, exclude), names).items():
            asked[f"{name}_{unit}"] = AGGREGATES[name][0].over(frame)
            wanted[f"{name}_{unit}"] = answer
    result = query.agg(**asked)
    assert "Exchange" not in plan_of(result)
    check(result.coalesce(1).collect(), wanted)
    if partitions == 7:
        assert "in order already" in query.explain(m=wr.median("v").over(wr.Frame.rows(-2, 0)))


def plan_of(frame: Any) -> str:
    from windrow.dataframes.sessions import physical_plan

    return physical_plan(frame)


def test_spark_says_how_many_bytes_it_expects(spark_session: Any) -> None:
    from windrow.dataframes.sessions import spark_plan

    found = spark_plan(spark_session.range(1000).where("id % 7 = 1"))
    assert found.size is not None
    assert 7_900 <= found.size <= 8_100  # it says 7.8 KiB
    assert found.physical.lstrip().startswith("*(1) Filter")
    assert spark_plan(spark_session.range(10**14)).size >= 8 * 10**14 - 10**12


@pytest.mark.parametrize("small", [True, False], ids=["looked at as a whole", "the first rows before all"])
def test_tables_are_looked_at_whatever_their_size(
    spark_session: Any, monkeypatch: pytest.MonkeyPatch, small: bool
) -> None:
    from windrow.dataframes import routes

    if not small:
        monkeypatch.setattr(routes, "SMALL_BYTES", -1)
    for column, said in (("id", "in order already"), ("-id as id", "rows are not in order")):
        frames = wr.frames(spark_session.range(300).selectExpr(column)).order_by("id").rows(-2, 0)
        assert said in frames.explain(m=wr.median("id"))
        assert [row["m"] for row in frames.agg(m=wr.count("id")).orderBy("id").collect()] == [1, 2] + [3] * 298


def test_bounds_of_each_row_and_filters(spark_session: Any) -> None:
    from pyspark.sql import functions as sf

    rows = [{**row, "k": float(row["id"]), "g": "a", "keep": (row["v"] or 0) > 0} for row in made_rows(80, seed=3)]
    df = spark_session.createDataFrame([tuple(r[f] for f in FIELDS) for r in rows], COLUMNS)
    query = wr.frames(df, tasks=4).order_by("id")
    got = query.agg(
        a=wr.mode("v").over(
            wr.Frame.rows(wr.preceding("mod(id * 7919, 5)"), sf.lit(10) - sf.expr("mod(id * 7919, 5)"))
        ),
        b=wr.median(sf.col("v") * 2).where("v > 0").over(wr.Frame.rows(-6, 0)),
        c=wr.count("v + w").where(sf.col("v") > 0).over(wr.Frame.range(sf.expr("-id / 4.0"), 3)),
    ).collect()
    order = [twin.Order("id")]
    for row in rows:
        row["doubled"] = None if row["v"] is None else 2 * row["v"]
        row["sum"] = None if row["v"] is None or row["w"] is None else row["v"] + row["w"]
    rows_a = ("rows", lambda r: -(r["id"] * 7919 % 5), lambda r: 10 - r["id"] * 7919 % 5, "no others")
    check(
        got,
        {
            "a": twin.aggregate(rows, (), order, None, rows_a, ("mode", "v", None)),
            "b": twin.aggregate(
                rows, (), order, None, ("rows", -6, 0, "no others"), ("median", "doubled", None), "keep"
            ),
            "c": twin.aggregate(
                rows,
                (),
                order,
                None,
                ("range", lambda r: -r["id"] / 4.0, 3, "no others"),
                ("count", "sum", None),
                "keep",
            ),
        },
    )


@wr.aggregate("frames_test_width", result="float64")
class Width:
    """The distance between the extremes."""

    def empty():  # type: ignore[no-untyped-def]
        return (np.inf, -np.inf)

    def add(state, x):  # type: ignore[no-untyped-def] # noqa: N805
        return (min(state[0], x), max(state[1], x))

    def result(state):  # type: ignore[no-untyped-def] # noqa: N805
        return state[1] - state[0]


def test_types_go_through(spark_session: Any) -> None:
    """Dates, times, decimals, booleans, binary, and columns that frames have no use for."""
    day, moment = datetime.date(2024, 1, 30), datetime.datetime(2024, 1, 30, 12, 30)
    rows = [
        (k, day + datetime.timedelta(days=k), moment + datetime.timedelta(hours=5 * k), Decimal(k * k) / 4, k % 3 == 0,
         bytes([k % 4]), [k], {"a": k}, float(k))
        for k in range(40)
    ]  # fmt: skip
    kinds = (
        "id int, d date, t timestamp, c decimal(20,2), b boolean, y binary, l array<int>, m map<string,int>, x double"
    )
    df = spark_session.createDataFrame(rows, kinds)
    found = (
        wr.frames(df, tasks=3)
        .order_by("d")
        .range("-1 month", 0)
        .agg(
            n=wr.count(), c_sum=wr.sum("c"), c_mode=wr.mode("c"), c_mid=wr.median("c"), t_max=wr.max("t"),
            d_low=wr.percentile("d", 0), b_mode=wr.mode("b"), y_max=wr.max("y"), lists=wr.count("l"),
            width=Width("x").over(wr.Frame.rows(-3, 0)), widest=Width("x").over(wr.Frame.rows(None, 0)),
        )
    )  # fmt: skip
    assert found.columns[:9] == df.columns
    assert dict(found.dtypes)["c_sum"] == "decimal(30,2)"
    assert dict(found.dtypes)["d_low"] == "date"
    for row in found.collect():
        first = next(k for k in range(40) if _month_before(rows[row["id"]][1]) <= rows[k][1])
        held = rows[first : row["id"] + 1]
        assert row["n"] == row["lists"] == len(held)
        assert row["c_sum"] == sum(r[3] for r in held)
        assert row["c_mode"] == held[0][3]
        assert row["c_mid"] == pytest.approx(float(np.median([float(r[3]) for r in held])))
        assert (row["t_max"], row["d_low"]) == (held[-1][2], held[0][1])
        assert row["b_mode"] is (sum(r[4] for r in held) * 2 > len(held))
        assert bytes(row["y_max"]) == max(r[5] for r in held)
        assert (row["width"], row["widest"]) == (min(3, row["id"]), row["id"])
        assert (row["l"], row["m"]) == ([row["id"]], {"a": row["id"]})


def _month_before(day: datetime.date) -> datetime.date:
    import frame_oracle

    return frame_oracle.add_months(datetime.datetime(day.year, day.month, day.day), -1).date()


def test_what_is_wrong_is_refused_before_anything_runs(spark_session: Any) -> None:
    from pyspark.sql import functions as sf

    df = spark_session.createDataFrame([(1, 2.0, "a", {"k": 1})], "i int, x double, s string, m map<string,int>")
    ready = wr.frames(df).order_by("i")
    cases: list[tuple[Callable[[], Any], type[wr.Error], str]] = [
        (lambda: ready.rows(-1, 0).agg(a=wr.median("y")), wr.UnknownNameError, "'y'"),
        (lambda: ready.rows(-1, 0).agg(a=wr.median("y + 1")), wr.UnknownNameError, "y"),
        (lambda: wr.frames(df).order_by("j").rows(-1, 0).agg(a=wr.count()), wr.UnknownNameError, "order_by"),
        (lambda: wr.frames(df).order_by("m").rows(-1, 0).agg(a=wr.count()), wr.SchemaError, "map<string,int>"),
        (lambda: wr.frames(df).partition_by("m").agg(a=wr.count()), wr.SchemaError, "cannot sort"),
        (lambda: ready.order_by("i", "x").range(-1, 0).agg(a=wr.count()), wr.SchemaError, "exactly one order"),
        (lambda: ready.order_by("s").range(-1, 0).agg(a=wr.count()), wr.SchemaError, "Use rows or groups"),
        (lambda: ready.range(wr.preceding(-1), 0).agg(a=wr.count()), wr.DataError, "must not be negative"),
        (lambda: ready.range(wr.preceding("i - 5"), 0).agg(a=wr.count()), wr.DataError, "must not be negative"),
        (lambda: ready.range("-7 days", 0).agg(a=wr.count()), wr.SchemaError, "must be a number"),
        (lambda: ready.rows(sf.rand(), 0).agg(a=wr.count()), wr.DataError, "same value each time"),
        (lambda: ready.rows("cast(rand() * 5 as int)", 0).agg(a=wr.count()), wr.DataError, "same value each time"),
        (lambda: ready.rows(-1.5, 0).agg(a=wr.count()), wr.SchemaError, "whole numbers"),
        (lambda: ready.rows(sf.col("x"), 0).agg(a=wr.count()), wr.SchemaError, "whole numbers"),
        (lambda: ready.rows(sf.expr("nullif(i, 1)"), 0).agg(a=wr.count()), wr.DataError, "NULL"),
        (lambda: ready.rows(-1, 0).agg(a=wr.median("s")), wr.DataError, "median cannot take"),
        (lambda: ready.rows(-1, 0).agg(x=wr.median("i")), wr.SchemaError, "already"),
        (lambda: ready.rows(-1, 0).agg(X=wr.median("i")), wr.SchemaError, "already"),
        (lambda: ready.rows(-1, 0).agg(a=wr.sum("i").where("x")), wr.SchemaError, "must be boolean"),
        (lambda: ready.rows(-1, 0).agg(a="median"), wr.DataError, "must be an aggregate"),
        (lambda: ready.rows(-1, 0).agg(), wr.DataError, "at least one"),
        (lambda: ready.exclude("tie"), wr.SchemaError, "ties"),
        (lambda: wr.frames(df, method="quick"), wr.DataError, "method"),
        (lambda: wr.frames([1]), wr.DataError, "Spark DataFrame"),
        (lambda: ready.rows(-1, 0).agg(a=wr.quantile_cont("x", 1.5)), wr.DataError, "between 0 and 1"),
    ]
    for ask, kind, text in cases:
        with pytest.raises(kind) as caught:
            ask()
        assert text in str(caught.value)


def test_an_overflow_on_a_worker_says_so(spark_session: Any) -> None:
    df = spark_session.createDataFrame([(k, 2**62) for k in range(4)], "i int, v bigint")
    result = wr.frames(df).order_by("i").rows(-2, 0).agg(a=wr.sum("v"))
    with pytest.raises(Exception, match="an integer sum overflows int64"):
        result.collect()


def test_methods_agree_and_nothing_is_left_of_no_rows(spark_session: Any) -> None:
    df = spark_session.createDataFrame([(k, k * k % 7) for k in range(50)], "i int, v int")
    found = [
        [row["m"] for row in sorted(result.collect())]
        for method in ("naive", "incremental", "auto")
        for result in [wr.frames(df, method=method, tau=0.1).order_by("i").rows(-9, 3).agg(m=wr.count_distinct("v"))]
    ]
    assert found[0] == found[1] == found[2]
    nothing = wr.frames(df.where("i < 0"), shuffle="always").order_by("i")
    assert nothing.rows(-1, 0).agg(m=wr.mode("v"), n=wr.count().over(wr.Frame.rows(None, 0))).collect() == []
    assert "rows between 9 preceding and current row" in repr(wr.frames(df).order_by("i").rows(-9, 0))


def test_intervals_are_read() -> None:
    from windrow.model.frame import Interval

    assert parse_interval("7 days") == Interval(0, 7 * 86_400_000_000)
    assert parse_interval("-1 year 2 months") == Interval(-14, 0)
    assert parse_interval("interval '90' minutes") == Interval(0, 5_400_000_000)
    assert parse_interval("a + 1") is None
    assert parse_interval("") is None


REMOTE = """
import sys

import numpy as np
from pyspark.sql import SparkSession, functions as F
import windrow as wr

spark = SparkSession.builder.remote("local[2]").getOrCreate()
df = spark.range(0, 300, 1, 3).select(F.col("id"), (F.col("id") * 7 % 11).alias("v"))
one = wr.frames(df).order_by("id").rows(-9, 0)
assert "in order already" in one.explain(m=wr.median("v"))
two = wr.frames(df, tasks=3).order_by(F.col("id").desc()).rows(0, 9)
asked = dict(m=wr.median("v"), c=wr.count_distinct("v").over(wr.Frame.rows(None, 0)))
first = one.agg(m=wr.median("v")).orderBy("id").collect()
second = two.agg(**asked).orderBy("id").collect()
assert [r.m for r in first] == [r.m for r in second], "routes differ"
assert first[9].m == (5 + 6) / 2, first[9]
assert second[0].c == 11
try:
    wr.frames(df).order_by("idd").rows(-1, 0).agg(n=wr.count())
except wr.UnknownNameError as error:
    assert "'id'" in str(error)
df.createOrReplaceTempView("t")
over = "over (order by id rows 9 preceding)"
db = wr.connect(sys.argv[1], spark=spark)
third = db.sql(f"select id, median(v) {over} as m from t order by id").collect()
assert [r.m for r in third] == [r.m for r in first], "SQL differs"
called = "windrow_frames(table(t) with single partition order by id, aggregates => 'median(v) as m', "
fourth = db.sql(f"select * from {called} frame => 'rows between 9 preceding and current row')").orderBy("id")
assert [r.m for r in fourth.collect()] == [r.m for r in first], "the table function differs"
db.create("A", "<v: float64> [x=0:9:5]").write({"v": np.arange(10.0)})
assert db.sql("select x, median(v) over (order by x rows 2 preceding) as m from A order by x").collect()[9].m == 8
assert db.array("A").window(x=3).agg(s=wr.sum("v")).compute()["s"][0] == 3
try:
    wr.connect(sys.argv[1], spark=spark, engine="spark").array("A").window(x=3).agg(s=wr.sum("v")).compute()
except wr.MachineError as error:
    assert "through Spark Connect" in str(error)
print("remote sessions work:", type(df).__module__)
spark.stop()
"""


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_spark_connect(tmp_path: Path) -> None:
    """Against PySpark's own server, in a process of its own: one process has remote sessions or plain ones."""
    pytest.importorskip("grpc")
    from windrow.execution.java import find_java

    environment = {
        **os.environ, "PYTHONPATH": str(ROOT / "src"), "JAVA_HOME": str(find_java().path),
        "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_HOSTNAME": "localhost",
    }  # fmt: skip
    script = tmp_path / "remote.py"
    script.write_text(REMOTE)
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "store")],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=380,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "pyspark.sql.connect" in done.stdout
