"""Each aggregate over frames of a DataFrame and in SQL, of every type that Spark has, against the same table."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import windrow as wr
from aggregate_oracles import TABLE, Data, check, made, wanted_for

pytestmark = pytest.mark.spark

TYPES = {
    "bool": "boolean",
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "float32": "float",
    "float64": "double",
    "datetime": "timestamp",
    "string": "string",
}
WEIGHTS = "int16"
ROWS = 40
CUT = 30  # rows of the first partition; the others are the second
NANS = [None if k % 5 == 0 else math.nan if k in (3, 4, 18, 36) else float(k % 7) for k in range(ROWS)]
"""On tables NaN is a value, larger than all others; only None is missing."""
LEAST = {"covar": 2, "corr": 2, "skew": 3, "kurtosis": 4}
"""How many values make a result, where one does not."""


@pytest.fixture(scope="module")
def data() -> dict[str, Data]:
    return {kind: made(kind, ROWS) for kind in TYPES}


@pytest.fixture(scope="module")
def table(spark_session: Any, data: dict[str, Data]) -> Any:
    """A row for each cell: x_int8 and so on, and the weights y."""
    listed = {f"x_{kind}": one.listed("x") for kind, one in data.items()}
    columns = {"id": list(range(ROWS)), "g": [k >= CUT for k in range(ROWS)], **listed}
    columns |= {"x_nan": NANS, "y": data[WEIGHTS].listed("x")}
    typed = [f"x_{kind} {name}" for kind, name in TYPES.items()]
    schema = ", ".join(["id int", "g boolean", *typed, "x_nan double", f"y {TYPES[WEIGHTS]}"])
    df = spark_session.createDataFrame(list(zip(*columns.values(), strict=True)), schema).repartition(3)
    df.createOrReplaceTempView("everything")
    return df


@pytest.fixture(scope="module")
def db(table: Any, spark_session: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with wr.connect(tmp_path_factory.mktemp("sql"), spark=spark_session, engine="spark", progress=False) as database:
        yield database


def compare(
    rows: list[Any], data: dict[str, Data], inside: Callable[[int, int, int], list[int]], kinds: Any = TYPES
) -> None:
    """Each row's results against the table; ``inside`` has the frame of a row, given where its partition is."""
    assert sorted(row["id"] for row in rows) == list(range(ROWS))
    weights = data[WEIGHTS].listed("x")
    for row in rows:
        first, last = (0, CUT) if row["id"] < CUT else (CUT, ROWS)
        cells = inside(row["id"], first, last)
        for kind in kinds:
            values = data[kind].listed("x")
            for name in wanted_for(kind):
                check(name, row[f"{name}_{kind}"], [(values[k], weights[k]) for k in cells], 0, kind)


def compare_nans(rows: list[Any], weights: list[Any], inside: Callable[[int, int, int], list[int]]) -> None:
    """NaN comes first or last like any other value, and makes NaN of everything that is worked out with it."""
    for row in rows:
        first, last = (0, CUT) if row["id"] < CUT else (CUT, ROWS)
        pairs = [(NANS[k], weights[k]) for k in inside(row["id"], first, last)]
        for name, one in TABLE.items():
            there = [x for x, y in pairs if x is not None and (y is not None or not one.pairs)]
            found = row[f"{name}_nan"]
            if not any(map(math.isnan, there)):
                check(name, found, pairs)
            elif name in ("first", "last"):
                assert repr(found) == repr(there[0 if name == "first" else -1])
            elif len(there) < LEAST.get(name, 1):
                assert found is None, name
            else:
                # Weights that sum to 0 give nothing, whatever they weigh; of other things NaN makes NaN.
                assert found is None or math.isnan(found), name
                nothing = name == "wavg" and sum(y for x, y in pairs if x is not None and y is not None) == 0
                assert (found is None) == nothing, name


FRAMES: dict[str, tuple[Any, Any, str]] = {
    "bounded": (-4, 2, "no others"),
    "from the start": (None, 0, "current row"),
    "to the end": (1, None, "no others"),
    "all": (None, None, "no others"),
}


def within(frame: tuple[Any, Any, str]) -> Callable[[int, int, int], list[int]]:
    start, end, exclude = frame

    def rows(current: int, first: int, last: int) -> list[int]:
        found = range(
            first if start is None else max(first, current + start),
            last if end is None else min(last, current + end + 1),
        )
        return [k for k in found if exclude == "no others" or k != current]

    return rows


@pytest.mark.parametrize("frame", FRAMES)
def test_frames(table: Any, data: dict[str, Data], frame: str) -> None:
    """In several tasks, so that what frames hold of other tasks is joined with what a task sees."""
    start, end, exclude = FRAMES[frame]
    asked = {
        f"{name}_{kind}": one.aggregate.of(f"x_{kind}", "y") for kind in data for name, one in wanted_for(kind).items()
    }
    asked |= {f"{name}_nan": one.aggregate.of("x_nan", "y") for name, one in TABLE.items()}
    framed = wr.frames(table, tasks=4, shuffle="always").partition_by("g").order_by("id").rows(start, end)
    rows = framed.exclude(exclude).agg(**asked).collect()
    compare(rows, data, within(FRAMES[frame]))
    compare_nans(rows, data[WEIGHTS].listed("x"), within(FRAMES[frame]))


@pytest.mark.parametrize("method", ["naive", "incremental"])
def test_methods(table: Any, data: dict[str, Data], method: str) -> None:
    asked = {f"{name}_float64": one.aggregate.of("x_float64", "y") for name, one in TABLE.items()}
    framed = wr.frames(table, method=method, tasks=2).partition_by("g").order_by("id").rows(-4, 2)
    compare(framed.agg(**asked).collect(), data, within((-4, 2, "no others")), ("float64",))


def test_sql(db: Any, data: dict[str, Data]) -> None:
    """By windrow's own names, since Spark means something else by some of them."""
    over = "over (partition by g order by id rows between 4 preceding and 2 following)"
    asked = [
        f"windrow_{name}(x_{kind}{', y' if one.pairs else ''}) {over} as {name}_{kind}"
        for kind in data
        for name, one in wanted_for(kind).items()
    ]
    rows = db.sql(f"select id, {', '.join(asked)} from everything").collect()
    compare(rows, data, within((-4, 2, "no others")))
