"""Every window function over random tables: windrow's answers are DuckDB's and Spark's own, in more than one task."""

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

ROWS = 150
TOTAL = "order by k nulls first, b"
"""An order without ties, in which picking a row means something."""
TIED = "order by k nulls first"

PLACES = (
    "windrow_row_number()", "windrow_rank()", "windrow_dense_rank()", "windrow_percent_rank()", "windrow_cume_dist()",
    "windrow_ntile(7)", "windrow_lag(x)", "windrow_lead(s, 3)", "windrow_lag(f, 2, 0.5)",
)  # fmt: skip
PLACES_OF_TIES = ("windrow_rank()", "windrow_dense_rank()", "windrow_percent_rank()", "windrow_cume_dist()")
AGGREGATES = (
    "windrow_sum(x)", "windrow_sum(f)", "windrow_avg(f)", "windrow_min(f)", "windrow_max(s)", "windrow_count(x)",
    "windrow_count(*)", "windrow_count(f) filter (where x > 1)",
)  # fmt: skip
MOMENTS = (
    "windrow_avg(x)", "windrow_stddev(x)", "windrow_stddev_pop(x)", "windrow_variance(x)", "windrow_var_pop(x)",
    "windrow_covar_pop(x, b)", "windrow_covar_samp(x, b)", "windrow_first(b)", "windrow_last(b)", "windrow_min(s)",
)  # fmt: skip
HOLISTIC = ("median(x)", "count(distinct s)", "percentile_cont(0.3) within group (order by x)", "quantile_disc(x, 0.7)")
"""Of numbers without NaN: Spark and DuckDB put it at different ends."""
PICKS = ("windrow_first_value(x)", "windrow_last_value(s)", "windrow_nth_value(x, 3)")
PICKS_OF_TIES = ("windrow_first_value(k)", "windrow_last_value(k)", "windrow_nth_value(k, 2)")
"""Of the order key itself, which is the same in all rows that are peers."""

ROWS_FRAMES = (
    "rows between 5 preceding and 2 following",
    "rows between unbounded preceding and 3 preceding",
    "rows between 2 following and unbounded following",
    "rows between current row and 4 following",
)
RANGE_FRAMES = (
    "range between 2 preceding and 1 following",
    "range between unbounded preceding and current row",
    "range between current row and unbounded following",
    "range between 3 preceding and 2 preceding",
)
GROUPS_FRAMES = (
    "groups between 1 preceding and 1 following",
    "groups between unbounded preceding and current row",
    "groups between 2 following and 3 following",
)
VARYING_FRAMES = (
    "rows between unbounded preceding and mod(b, 3) preceding",
    "rows between mod(b, 4) preceding and 2 following",
    "rows between mod(b, 3) following and unbounded following",
)
EXCLUSIONS = ("exclude current row", "exclude group", "exclude ties", "exclude no others")


def table(seed: int) -> pa.Table:
    """NULL, NaN, ties; a huge partition, some of one row, and one whose key is NULL."""
    chance = random.Random(seed)
    few = [chance.choice([None, -1, 0, 1, 2, 7, 100]) for _ in range(ROWS)]
    numbers = [chance.choice([None, 1.5, -2.0, 0.25, math.nan, 8.0]) for _ in range(ROWS)]
    parts = [0 if chance.random() < 0.7 else chance.choice([None, 1, 2, 1000 + row]) for row in range(ROWS)]
    return pa.table(
        {
            "b": pa.array(chance.sample(range(ROWS), ROWS), pa.int64()),
            "k": pa.array([chance.choice([None, *range(12)]) for _ in range(ROWS)], pa.int64()),
            "p": pa.array(parts, pa.int64()),
            "x": pa.array(few, pa.int64()),
            "f": pa.array(numbers, pa.float64()),
            "s": pa.array([chance.choice([None, "a", "b", "c", ""]) for _ in range(ROWS)]),
        }
    )


@pytest.fixture(scope="module")
def db(spark_session: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    with wr.connect(tmp_path_factory.mktemp("sql"), spark=spark_session, engine="spark", progress=False) as database:
        yield database


@pytest.fixture(autouse=True)
def several_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows make a task, so that one partition lies in many."""
    monkeypatch.setattr("windrow.dataframes.exact_route.TASK_ROWS", 50)
    monkeypatch.setattr("windrow.dataframes.sampled_route.TASK_ROWS", 50)


Windows = list[tuple[str, str]]


def query(windows: Windows) -> str:
    listed = ", ".join(f"{call} over ({over}) as c{number}" for number, (call, over) in enumerate(windows))
    return f"select b, {listed} from random_rows order by b"


def plain(text: str) -> str:
    return text.replace("windrow_", "")


def for_duckdb(text: str) -> str:
    """DuckDB has the ordered-set aggregates over frames under its own names alone."""
    return re.sub(r"percentile_cont\((.*?)\) within group \(order by (\w+)\)", r"quantile_cont(\2, \1)", plain(text))


def compare(db: Any, session: Any, rows: pa.Table, windows: Windows, *, spark: bool) -> None:
    session.createDataFrame(rows).repartition(3).createOrReplaceTempView("random_rows")
    asked = query(windows)
    found = [tuple(row) for row in db.sql(asked).collect()]
    random_rows = rows  # noqa: F841  DuckDB finds it by its name
    check(found, duckdb.sql(for_duckdb(asked)).fetchall(), windows, "DuckDB")
    if spark:
        check(found, [tuple(row) for row in session.sql(plain(asked)).collect()], windows, "Spark")


def check(found: list[tuple[Any, ...]], wanted: list[tuple[Any, ...]], windows: Windows, whose: str) -> None:
    assert [row[0] for row in found] == [row[0] for row in wanted]
    for got, other in zip(found, wanted, strict=True):
        for number, (call, over) in enumerate(windows):
            one, two = got[number + 1], other[number + 1]
            same = one == two or (isinstance(one, float) and two is not None and _close(one, float(two)))
            assert same, f"{call} over ({over}) at b = {got[0]}: {one}, {whose} {two}"


def _close(one: float, other: float) -> bool:
    return (math.isnan(one) and math.isnan(other)) or one == pytest.approx(other, rel=1e-9, abs=1e-12)


QUICK = [(1, "")]
WIDE = [(seed, part) for seed in range(1, 5) for part in ("", "partition by p ") if (seed, part) not in QUICK]
RUNS = pytest.mark.parametrize(
    ("seed", "part"), [*QUICK, *(pytest.param(*run, marks=pytest.mark.slow) for run in WIDE)]
)
"""One pass over one order in each run of the tests; partitions and other tables are slow tests."""


@RUNS
def test_places_and_neighbours(db: Any, spark_session: Any, seed: int, part: str) -> None:
    compare(db, spark_session, table(seed), [(call, part + TOTAL) for call in PLACES], spark=True)


@RUNS
def test_places_among_ties(db: Any, spark_session: Any, seed: int, part: str) -> None:
    compare(db, spark_session, table(seed), [(call, part + TIED) for call in PLACES_OF_TIES], spark=True)


@RUNS
def test_rows_frames(db: Any, spark_session: Any, seed: int, part: str) -> None:
    windows = [(call, f"{part}{TOTAL} {frame}") for frame in ROWS_FRAMES for call in AGGREGATES]
    windows += [(call, f"{part}{TOTAL} {frame}") for frame in ROWS_FRAMES for call in PICKS]
    compare(db, spark_session, table(seed), windows, spark=True)


@RUNS
def test_range_frames(db: Any, spark_session: Any, seed: int, part: str) -> None:
    windows = [(call, f"{part}{TIED} {frame}") for frame in RANGE_FRAMES for call in AGGREGATES]
    windows += [(call, f"{part}{TIED} {frame}") for frame in RANGE_FRAMES for call in PICKS_OF_TIES]
    compare(db, spark_session, table(seed), windows, spark=True)


@RUNS
def test_deviations_pairs_and_outermost_values(db: Any, spark_session: Any, seed: int, part: str) -> None:
    windows = [(call, f"{part}{TOTAL} {frame}") for frame in ROWS_FRAMES[:2] for call in MOMENTS]
    compare(db, spark_session, table(seed), windows, spark=True)


@RUNS
def test_rows_of_frames_that_spark_lacks(db: Any, spark_session: Any, seed: int, part: str) -> None:
    """The first, last and n-th rows, NULL or not, under GROUPS, EXCLUDE and bounds that vary."""
    frames = (*GROUPS_FRAMES, RANGE_FRAMES[0], *ROWS_FRAMES[::2])
    windows = [
        (call, f"{part}{TIED} {frame} {exclusion}")
        for frame in frames
        for exclusion in EXCLUSIONS[:3]
        for call in PICKS_OF_TIES
        if not frame.startswith("rows")
    ]
    windows += [
        (call, f"{part}{TOTAL} {frame} {exclusion}")
        for frame in frames
        for exclusion in EXCLUSIONS[:1]
        for call in PICKS
        if not frame.startswith("range")
    ]
    windows += [(call, f"{part}{TOTAL} {frame}") for frame in VARYING_FRAMES for call in (*PICKS, *AGGREGATES[:2])]
    compare(db, spark_session, table(seed), windows, spark=False)


@RUNS
def test_groups_frames_and_exclusions(db: Any, spark_session: Any, seed: int, part: str) -> None:
    """Which Spark does not have."""
    windows = [
        (call, f"{part}{TIED} {frame} {exclusion}")
        for frame in (*GROUPS_FRAMES, *RANGE_FRAMES[:1])
        for exclusion in EXCLUSIONS
        for call in (*AGGREGATES[::3], *HOLISTIC)
    ]
    compare(db, spark_session, table(seed), windows, spark=False)


@RUNS
def test_rows_frames_with_exclusions(db: Any, spark_session: Any, seed: int, part: str) -> None:
    windows = [
        (call, f"{part}{TOTAL} {frame} {exclusion}")
        for frame in ROWS_FRAMES[::3]
        for exclusion in EXCLUSIONS
        for call in (*AGGREGATES[::3], *HOLISTIC)
    ]
    compare(db, spark_session, table(seed), windows, spark=False)


def test_a_table_without_rows_and_one_with_a_single_row(db: Any, spark_session: Any) -> None:
    windows = [(call, TOTAL) for call in PLACES] + [(call, f"{TOTAL} {ROWS_FRAMES[0]}") for call in AGGREGATES]
    for rows in (0, 1):
        compare(db, spark_session, table(3).slice(0, rows), windows, spark=True)


@pytest.mark.parametrize(
    "over",
    [
        TOTAL,
        pytest.param(f"{TIED} {RANGE_FRAMES[0]}", marks=pytest.mark.slow),
        pytest.param(f"partition by p {TOTAL}", marks=pytest.mark.slow),
    ],
)
def test_a_large_partition_lies_in_several_tasks(db: Any, spark_session: Any, over: str) -> None:
    spark_session.createDataFrame(table(1)).repartition(3).createOrReplaceTempView("random_rows")
    calls = (*AGGREGATES, *MOMENTS, *HOLISTIC, *(PICKS_OF_TIES if "range" in over else (*PLACES, *PICKS)))
    told = db.sql("explain " + query([(call, over) for call in calls]).partition(" order by b")[0]).collect()[0][0]
    tasks = [int(number) for number in re.findall(r"tasks +(\d+)", told)]
    assert tasks
    assert min(tasks) > 1
    assert "SinglePartition" not in told
