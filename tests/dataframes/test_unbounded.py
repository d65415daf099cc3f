"""Unbounded frames of partitions in several tasks on Spark: values that travel as rows, against brute force."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import pytest

import frame_tables_twin as twin
import windrow as wr
from windrow.dataframes import exact_route
from windrow.dataframes import unbounded_summaries as carrying

pytestmark = pytest.mark.spark

NAN = float("nan")
COLUMNS = "id int, g string, k double, v bigint, w double, s string, keep boolean, c decimal(20,2)"
FIELDS = ("id", "g", "k", "v", "w", "s", "keep", "c")
UNIQUE, TIED = [twin.Order("k"), twin.Order("id")], [twin.Order("k")]

Asked = tuple[Any, tuple[str, str | None, float | None], tuple[str, Any, Any]]
ROWS: dict[str, Asked] = {
    "median": (wr.median("w"), ("median", "w", None), ("rows", None, 0)),
    "kinds": (wr.count_distinct("w"), ("count_distinct", "w", None), ("rows", None, 0)),
    "usual": (wr.mode("v"), ("mode", "v", None), ("rows", 3, None)),
}
PEERS: dict[str, Asked] = {
    "price": (wr.percentile("c", 30), ("percentile", "c", 30.0), ("range", None, -1)),
    "total": (wr.sum("c"), ("sum", "c", None), ("range", None, -1)),
    "usual": (wr.mode("s"), ("mode", "s", None), ("groups", None, None)),
}
OTHERS: dict[str, Asked] = {
    "late": (wr.percentile("v", 90), ("percentile", "v", 90.0), ("groups", 1, None)),
    "kinds": (wr.count_distinct("s"), ("count_distinct", "s", None), ("range", 1, None)),
    "usual": (wr.mode("w"), ("mode", "w", None), ("range", None, 0)),
    "middle": (wr.median("c"), ("median", "c", None), ("groups", None, None)),
}


def made_rows(count: int, seed: int) -> list[dict[str, Any]]:
    """Rows with ties, NULL, NaN and -0.0; most of them in one of three partitions."""
    draw = random.Random(seed)
    return [
        {
            "id": k,
            "g": draw.choice(["a", "b", "b", "b", "b", "b", "c"]),
            "k": draw.choice([None, NAN, -0.0, 0.0, *[float(n) for n in range(30)]]),
            "v": draw.choice([None, *range(-30, 30)]),
            "w": draw.choice([None, NAN, -0.0, 0.0, *[n / 4 for n in range(-20, 20)]]),
            "s": draw.choice([None, "", "ä", *"bcdefghijklmnop"]),
            "keep": draw.choice([True, True, True, False, None]),
            "c": draw.choice([None, *[Decimal(n) / 4 for n in range(-50, 50)]]),
        }
        for k in range(count)
    ]


@pytest.mark.parametrize(
    ("tasks", "by", "asked", "order"),
    [
        (3, (), PEERS, TIED),
        (9, ("g",), ROWS, UNIQUE),
        pytest.param(5, ("g",), OTHERS, TIED, marks=pytest.mark.slow),
        pytest.param(50, (), ROWS, UNIQUE, marks=pytest.mark.slow),
    ],
)
def test_values_travel_as_rows(
    spark_session: Any, monkeypatch: pytest.MonkeyPatch, tasks: int, by: tuple[str, ...],
    asked: dict[str, Asked], order: list[twin.Order],
) -> None:  # fmt: skip
    monkeypatch.setattr(carrying, "CARRIED_VALUES", 0)
    monkeypatch.setattr(exact_route, "SLICES_PER_TASK", 2)
    rows = made_rows(90, seed=tasks)
    df = spark_session.createDataFrame([tuple(r[f] for f in FIELDS) for r in rows], COLUMNS).repartition(2)
    filtered = {name: number % 2 == 0 for number, name in enumerate(asked)}
    wanted, aggregates = {}, {}
    for name, (aggregate, twin_of, frame) in asked.items():
        keep = "keep" if filtered[name] else None
        chosen = aggregate.where("keep") if filtered[name] else aggregate
        aggregates[f"{name}_out"] = chosen.over(wr.Frame(*frame))
        wanted[f"{name}_out"] = twin.aggregate(rows, by, order, "id", (*frame, "no others"), twin_of, keep)
    query = wr.frames(df, tasks=tasks).partition_by(*by).order_by(*(key.column for key in order))
    got = query.agg(**aggregates).collect()
    assert sorted(row["id"] for row in got) == list(range(90))
    for name, answers in wanted.items():
        wrong = {r["id"]: (r[name], answers[r["id"]]) for r in got if not twin.same(r[name], answers[r["id"]])}
        assert not wrong, name
