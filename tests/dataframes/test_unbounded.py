"""Unbounded frames of partitions in several tasks on Spark: values that travel as rows, against brute force."""

from __future__ import annotations

import itertools
import random
from decimal import Decimal
from typing import Any

import pytest

import frame_tables_twin as twin
import windrow as wr
from windrow.dataframes import exact_route, sampled_route
from windrow.dataframes import unbounded_summaries as carrying
from windrow.dataframes.blocks import BLOCK_ROWS
from windrow.dataframes.sessions import physical_plan

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


GROWING = {
    "total": (wr.sum("v"), "sum(v)", ("rows", None, 0)),
    "mean": (wr.avg("w"), "avg(w)", ("rows", None, 0)),
    "least": (wr.min("w").where("v > 5"), "min(w) filter (where v > 5)", ("rows", None, 0)),
    "spread": (wr.var("w"), "var_samp(w)", ("rows", 0, None)),
    "most": (wr.max("v"), "max(v)", ("range", None, 0)),
    "all": (wr.sum("w"), "sum(w)", ("rows", None, None)),
    "several": (wr.count("w"), "count(w)", ("groups", None, None)),
}
BOUNDS = {
    ("rows", None, 0): "rows between unbounded preceding and current row",
    ("rows", 0, None): "rows between current row and unbounded following",
    ("range", None, 0): "range between unbounded preceding and current row",
    ("rows", None, None): "rows between unbounded preceding and unbounded following",
    ("groups", None, None): "rows between unbounded preceding and unbounded following",
}
NUMBERED = {"n": "row_number", "r": "rank", "d": "dense_rank", "p": "percent_rank", "c": "cume_dist"}


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("id", "in order already"),
        ("id div 4", "in order already"),
        ("id div 3", "some reach single rows of neighbours"),
    ],
    ids=["no peers", "peers within partitions", "peers in several"],
)
def test_rows_in_order_stay_under_unbounded_frames(spark_session: Any, key: str, said: str) -> None:
    """As Spark has them; partitions have 100 rows, and values are wanting now and then."""
    df = spark_session.range(0, 500, 1, 5).selectExpr(
        "id", f"{key} as k", "pmod(id * 7919, 61) as v", "if(id % 7 = 0, null, pmod(id * 104729, 37) / 4.0D) as w"
    )
    query = wr.frames(df).order_by("k")
    asked = {name: one.over(wr.Frame(*frame)) for name, (one, _, frame) in GROWING.items()}
    if key != "id":  # whose turn it is among peers is nobody's to say
        asked = {
            name: one
            for name, one in asked.items()
            if GROWING[name][2][0] != "rows" or GROWING[name][2][1:] == (None, None)
        }
    ranks = {name: getattr(wr, call)() for name, call in NUMBERED.items() if key == "id" or call != "row_number"}
    assert said in query.explain(**asked)
    got = query.agg(**asked, **ranks).orderBy("id").collect()
    calls = [f"{GROWING[name][1]} over (order by k {BOUNDS[GROWING[name][2]]}) as {name}" for name in asked]
    calls += [f"{NUMBERED[name]}() over (order by k) as {name}" for name in ranks]
    wanted = df.selectExpr("id", *calls).orderBy("id").collect()
    for mine, theirs in zip(got, wanted, strict=True):
        for name in (*asked, *ranks):
            near = None if theirs[name] is None else pytest.approx(theirs[name], rel=1e-12)
            assert mine[name] == near, (mine["id"], name)


KEYS = {
    "no peers": "id",
    "peers": "id div 7",
    "peers, NULL and NaN": "if(id % 50 = 0, null, if(id % 49 = 0, double('nan'), id % 40 * -0.5D))",
}
GROUPS = {"one partition": "0", "partitions": "id div 90", "small partitions": "id % 150"}


@pytest.mark.parametrize(("key", "group"), [*itertools.product(KEYS, GROUPS)])
@pytest.mark.parametrize("way", ["desc nulls last", pytest.param("asc nulls first", marks=pytest.mark.slow)])
def test_rows_in_no_order_go_through_one_exchange(
    spark_session: Any, monkeypatch: pytest.MonkeyPatch, key: str, group: str, way: str
) -> None:
    """Ranks and growing frames as Spark has them, cut by a sample of every fifth row."""
    monkeypatch.setattr(sampled_route, "SAMPLE_ROWS", 120)
    df = spark_session.range(0, 600, 1, 3).selectExpr("pmod(id * 7919, 601) as id").selectExpr(
        "id", f"{GROUPS[group]} as g", f"{KEYS[key]} as k",
        "pmod(id * 7919, 61) as v", "if(id % 7 = 0, null, pmod(id * 104729, 37) / 4.0D) as w",
    )  # fmt: skip
    by = () if group == "one partition" else ("g",)
    query = wr.frames(df, tasks=4, shuffle="sampled").partition_by(*by).order_by(f"k {way}")
    whole = (None, None)
    asked = {
        name: one.over(wr.Frame(*frame))
        for name, (one, _, frame) in GROWING.items()
        if key == "no peers" or frame[0] != "rows" or frame[1:] == whole  # the turn among peers is nobody's to say
    }
    ranks = {name: getattr(wr, call)() for name, call in NUMBERED.items() if key == "no peers" or name != "n"}
    if not by:
        del ranks["d"]  # that counts different values
    found = query.agg(**asked, **ranks)
    plan = physical_plan(found)
    assert (plan.count("Exchange"), "Sort" in plan) == (1 + ("d" in ranks), False)  # dense_rank takes a step before
    over = f"partition by {', '.join(by)} order by k {way}" if by else f"order by k {way}"
    calls = [f"{GROWING[name][1]} over ({over} {BOUNDS[GROWING[name][2]]}) as {name}" for name in asked]
    calls += [f"{NUMBERED[name]}() over ({over}) as {name}" for name in ranks]
    wanted = df.selectExpr("id", *calls).orderBy("id").collect()
    got = found.orderBy("id").collect()
    assert len(got) == 600
    for mine, theirs in zip(got, wanted, strict=True):
        for name in (*asked, *ranks):
            near = None if theirs[name] is None else pytest.approx(theirs[name], rel=1e-12)
            assert mine[name] == near, (mine["id"], name)


@pytest.mark.parametrize("key", ["id div 2", "id"], ids=["peers", "no peers"])
def test_ranks_of_long_partitions_keep_no_more_than_a_block(spark_session: Any, key: str) -> None:
    """Partitions are longer than what tasks work out at a time, so that only the number of rows before is kept."""
    rows = 3 * BLOCK_ROWS
    df = spark_session.range(0, 2 * rows, 1, 2).selectExpr("id", f"{key} as k")
    query = wr.frames(df).order_by("k")
    ranks = {"r": wr.rank(), "c": wr.count().over(wr.Frame.range(None, 0))}
    if key == "id":
        ranks["n"] = wr.row_number()
    assert "in order already" in query.explain(**ranks)
    peers = 2 if key != "id" else 1
    first = f"{peers} * (id div {peers}) + 1"
    wanted = {"r": first, "c": f"{first} + {peers - 1}", "n": "id + 1"}
    wrong = query.agg(**ranks).where(" or ".join(f"{name} is distinct from {wanted[name]}" for name in ranks))
    assert wrong.count() == 0
