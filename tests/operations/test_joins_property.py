"""Joins and neighbourhoods of random arrays against brute force: all pairs of what can vary, and random ones."""

from __future__ import annotations

import math
import uuid
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

import join_oracle as oracle
import windrow as wr
from covering import Row, covering_rows, pairs_of, possible_pairs
from join_oracle import Between, Held, Listed, Measure, Norm, Place, Shape, Step
from join_problems import (
    CHUNKS,
    CONDITIONS,
    GROUPINGS,
    KINDS,
    MAPPINGS,
    MEASURES,
    PLACES,
    RULES,
    SHAPES,
    SIDES,
    Problem,
    ask,
    make,
    make_shape,
    same,
    stored,
    table_cells,
)
from windrow.aggregates.registry import DEFINITIONS

FACTORS: dict[str, tuple[Any, ...]] = {
    "shape": SHAPES,
    "measures": tuple(MEASURES),
    "mapping": MAPPINGS,
    "kind": KINDS,
    "grouping": GROUPINGS,
    "condition": tuple(CONDITIONS),
    "place": PLACES,
    "chunks": CHUNKS,
    "sides": SIDES,
    "ndim": (1, 2, 3),
    "text": (False, True),
    "min_count": (0, 2),
}
PARTS = 8
OFTEN, SOMETIMES = (
    settings(
        max_examples=count,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
    )
    for count in (30, 12)
)
SEEDS = st.integers(0, 2**32 - 1)


# Joins


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return covering_rows(FACTORS, RULES)


def problem_of(row: Row, number: int) -> Problem:
    return Problem(**row, seed=number)


def test_all_pairs_of_levels_are_covered(rows: list[Row]) -> None:
    """How all pairs are counted: of every two levels of different factors, those that no rule forbids are in some row.

    The engine is one more factor: all rows are asked in this process, and on Spark enough of them to have every level.
    """
    wanted = possible_pairs(FACTORS, RULES)
    assert set().union(*map(pairs_of, rows)) == wanted
    assert all(problem_of(row, 0).is_possible for row in rows)
    sizes = [len(levels) for levels in FACTORS.values()]
    every = (sum(sizes) ** 2 - sum(size**2 for size in sizes)) // 2
    # What lacks are pairs that cannot be: pairs with aggregates, anti with groups, one dimension with parts of it.
    assert (len(rows), len(wanted), every) == (202, 2_166, 2_210)
    # The groups of aggregates hold all of them, so that each meets every level with its group.
    named = {one.aggregate for group in MEASURES.values() for one in group} - {"count_all"}
    synonyms = {"quantile"}  # of quantile_index
    assert {name for name in DEFINITIONS if "." not in name} - synonyms == named


@pytest.mark.parametrize("part", range(PARTS))
def test_every_pair_of_levels_equals_brute_force(rows: list[Row], part: int, local: Any) -> None:
    for number in range(part, len(rows), PARTS):
        ask(local, problem_of(rows[number], number))


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    row = {name: draw(st.sampled_from(levels)) for name, levels in FACTORS.items() if name != "measures"}
    kinds = ["none"] if row["grouping"] == "pairs" else [name for name in MEASURES if name != "none"]
    problem = Problem(**row, measures=draw(st.sampled_from(kinds)), seed=draw(SEEDS))
    assume(problem.is_possible)
    return problem


@OFTEN
@given(problem=problems())
def test_random_joins_equal_brute_force(local: Any, problem: Problem) -> None:
    ask(local, problem)


def choose_rows(rows: list[Row]) -> list[int]:
    """Few of the rows, in which every level of every factor is: each is the one that has most of what lacks still."""
    lacking = {(name, level) for name, levels in FACTORS.items() for level in levels}
    chosen = []
    while lacking:
        chosen.append(max(range(len(rows)), key=lambda number: len(lacking & rows[number].items())))
        assert lacking & rows[chosen[-1]].items(), f"no row has {lacking}"
        lacking -= rows[chosen[-1]].items()
    return chosen


@pytest.mark.spark
def test_joins_on_spark_equal_brute_force(connect: Any, spark_session: Any, rows: list[Row]) -> None:
    """Every level of every factor on Spark: the pairs that the engine, as one more factor, makes with all others."""
    database = connect(engine="spark", spark=spark_session)
    for number in choose_rows(rows):
        ask(database, problem_of(rows[number], number))


# Neighbours


def around(database: Any, seed: int, sides: str, kind: str, chunks: str, ndim: int) -> Any:
    random = np.random.default_rng(seed)
    longest = {1: 12, 2: 6, 3: 4}[ndim]
    boxes = {}
    for name in ("i", "j", "k")[:ndim]:
        low = int(random.integers(-4, 3))
        boxes[name] = (low, low + int(random.integers(0, longest)))
    array, held = stored(database, Problem(chunks=chunks), random, boxes, sides)
    return array, held, *make_shape(database, kind, random, tuple(boxes), whole=True)


@OFTEN
@given(
    seed=SEEDS,
    sides=st.sampled_from(["dense", "dense", "sparse", "twins"]),
    kind=st.sampled_from(SHAPES),
    chunks=st.sampled_from(CHUNKS),
    ndim=st.integers(1, 3),
    measures=st.sampled_from([name for name in MEASURES if name not in ("none", "expressions")]),
    min_count=st.sampled_from([0, 0, 1, 3]),
    method=st.sampled_from(["auto", "auto", "naive", "incremental"]),
    text=st.booleans(),
)
def test_neighbours_equal_brute_force(
    local: Any, seed: int, sides: str, kind: str, chunks: str, ndim: int, measures: str, min_count: int, method: str,
    text: bool,
) -> None:  # fmt: skip
    array, held, shape, written, by_hand = around(local, seed, sides, kind, chunks, ndim)
    asked = MEASURES[measures]
    if text:
        items = ", ".join(f"{one.text('', '')} as {one.name}" for one in asked)
        settled = (f" min count {min_count}" if min_count else "") + f" method {method}"
        query = local.query(f"select {items} from {array.name} neighbours {written}{settled}")
    else:
        aggregates = {one.name: one.python("", "") for one in asked}
        query = array.neighbours(shape, min_count=min_count).agg(**aggregates, method=method)
    compare(query.compute(), held, by_hand, {one.name: one.by_hand() for one in asked}, min_count)


def compare(result: Any, held: Held, shape: Shape, measures: dict[str, Measure], min_count: int = 0) -> None:
    wanted, groups = oracle.neighbours(held, shape, measures, min_count)
    names = [dimension.name for dimension in held.dimensions]
    found = table_cells(result, names, [dimension.lo for dimension in held.dimensions])
    assert set(found) == set(wanted)
    for cell, values in wanted.items():
        for name, measure in measures.items():
            same(found[cell][name], values[name], measure, groups[cell].values.get(name, []), (cell, name))


@SOMETIMES
@given(
    seed=SEEDS,
    kind=st.sampled_from(["L1", "Linf", "L2", "range", "wrap", "larger"]),
    chunks=st.sampled_from(CHUNKS),
    ndim=st.integers(1, 3),
    step=st.integers(1, 3),
)
def test_steps_evaluate_every_so_many_cells(
    local: Any, seed: int, kind: str, chunks: str, ndim: int, step: int
) -> None:
    """Of a dense array: positions are numbered one by one from the same first cell."""
    array, held, shape, _, by_hand = around(local, seed, "dense", kind, chunks, ndim)
    result = array.neighbours(shape, step=step).agg(n=wr.count(), t=wr.sum("c")).compute()
    measures = {"n": Measure("count_all"), "t": Measure("sum", (lambda sides, far: sides[-1]["c"],))}
    wanted, _ = oracle.neighbours(held, by_hand, measures)
    lows = [dimension.lo for dimension in held.dimensions]
    found = table_cells(result, [dimension.name for dimension in held.dimensions], lows)
    kept = {
        tuple(lo + (c - lo) // step for c, lo in zip(cell, lows, strict=True)): values
        for cell, values in wanted.items()
        if all((c - lo) % step == 0 for c, lo in zip(cell, lows, strict=True))
    }
    assert found == kept


@SOMETIMES
@given(seed=SEEDS, sides=st.sampled_from(["dense", "sparse"]), chunks=st.sampled_from(CHUNKS))
def test_a_window_is_a_shape(local: Any, seed: int, sides: str, chunks: str) -> None:
    random = np.random.default_rng(seed)
    boxes = {"i": (-2, int(random.integers(-2, 5))), "j": (1, int(random.integers(1, 6)))}
    array, held = stored(local, Problem(chunks=chunks), random, boxes, sides)
    ends = {name: sorted(int(end) for end in random.integers(-3, 4, 2)) for name in boxes}
    aggregates = {"n": wr.count(), "t": wr.sum("c"), "best": wr.max("x"), "middle": wr.median("c")}
    windows = array.window({name: wr.between(*pair) for name, pair in ends.items()}).agg(**aggregates).compute()
    shape = wr.offsets(**{name: tuple(pair) for name, pair in ends.items()})
    shapes = array.neighbours(shape).agg(**aggregates).compute()
    if isinstance(windows, pa.Table):
        key = [(name, "ascending") for name in boxes]
        assert windows.sort_by(key).to_pylist() == shapes.sort_by(key).to_pylist()
    else:
        assert windows.identical(shapes)
    by_hand = Shape(tuple(Between(name, *pair) for name, pair in ends.items()))
    compare(shapes, held, by_hand, {"n": Measure("count_all")})


@SOMETIMES
@given(
    gaps=st.lists(st.integers(1, 9), min_size=1, max_size=15),
    before=st.integers(0, 20),
    after=st.integers(0, 20),
    sparse=st.booleans(),
    seed=SEEDS,
)
def test_shapes_in_label_units(local: Any, gaps: list[int], before: int, after: int, sparse: bool, seed: int) -> None:
    """Irregular steps: neighbours are those whose labels are near."""
    days = np.cumsum([0, *gaps])
    labels = np.datetime64("2012-01-01") + days
    schema = f"<c: int64> [time=0:{len(days) - 1}:3, lat=0:2:2]"
    array = local.create(f"A{uuid.uuid4().hex[:12]}", schema, sparse=sparse, labels={"time": labels})
    random = np.random.default_rng(seed)
    values = random.integers(0, 9, (len(days), 3))
    there = random.random(values.shape) < (0.6 if sparse else 1.1)
    there[0, 0] = True
    if sparse:
        time, lat = np.nonzero(there)
        array.insert(pa.table({"time": time, "lat": lat, "c": values[there]}))
    else:
        array.write({"c": values})
    cells = {(int(t), int(j)): {"c": int(values[t, j])} for t, j in zip(*np.nonzero(there), strict=True)}
    dimensions = (
        oracle.Dimension("time", 0, len(days) - 1, labels=dict(enumerate(days.tolist()))),
        oracle.Dimension("lat", 0, 2),
    )
    by_hand = Shape((Between("time", -before, after, by_label=True), Norm("Linf", 1, ("lat",))))
    shape = wr.offsets(time=(f"-{before} days", f"{after} days")) & wr.Linf(1, on="lat")
    measures = {"n": Measure("count_all"), "t": Measure("sum", (lambda sides, far: sides[-1]["c"],))}
    held = Held(dimensions, cells)
    compare(array.neighbours(shape).agg(n=wr.count(), t=wr.sum("c")).compute(), held, by_hand, measures)
    ends = f"'-{before} days' and '{after} days'"
    text = f"select count(*) as n, sum(c) as t from {array.name} neighbours time between {ends}, Linf(1) on (lat)"
    compare(local.query(text).compute(), held, by_hand, measures)


# What stands on a join, and joins on joins


@SOMETIMES
@given(seed=SEEDS, kinds=st.tuples(*[st.sampled_from(["dense", "sparse"])] * 3), chunks=st.sampled_from(CHUNKS))
def test_chains_of_three(local: Any, seed: int, kinds: tuple[str, str, str], chunks: str) -> None:
    random = np.random.default_rng(seed)
    boxes = {"i": (-2, int(random.integers(-1, 2))), "j": (1, int(random.integers(2, 5)))}
    made = [stored(local, Problem(chunks=chunks), random, boxes, kind) for kind in kinds]
    (one, first), (two, second), (three, third) = made
    shift = int(random.integers(-1, 2))
    text = (
        f"select count(*) as n, sum(A.m + B.m * C.m) as t from {one.name} A"
        f" similarity join {two.name} B on A.m <= B.m with shape L1(1)"
        f" similarity join {three.name} C on C.i = B.i + {shift} and C.j = A.j and B.m + C.m > A.m"
        " with shape Linf(1) on (j)"
    ).replace("+ -", "- ")
    above = oracle.join(
        first,
        Step(second, Shape((Norm("L1", 1),)), oracle.identity(first, second), lambda s, far: s[0]["m"] <= s[1]["m"]),
        Step(
            third,
            Shape((Norm("Linf", 1, ("j",)),)),
            {"i": Place("i", shift=shift, side=1), "j": Place("j", side=0)},
            lambda s, far: s[1]["m"] + s[2]["m"] > s[0]["m"],
        ),
    )
    measures = {
        "n": Measure("count_all"),
        "t": Measure("sum", (lambda s, far: s[0]["m"] + s[1]["m"] * s[2]["m"],)),
    }
    for by in ([(0, "i"), (0, "j")], [(0, "j")], [(1, "i")], []):
        groups = ", ".join(f"{'AB'[side]}.{name}" for side, name in by)
        asked = local.query(text + (f" group by {groups}" if by else ""))
        assert table_cells_of(asked, [name for _, name in by]) == oracle.aggregated(above, by, measures)


def table_cells_of(query: Any, names: list[str]) -> dict[tuple[int, ...], dict[str, Any]]:
    found = table_cells(query.compute(), names)
    return {key: {name: row[name] for name in ("n", "t")} for key, row in found.items()}


@SOMETIMES
@given(seed=SEEDS, sides=st.sampled_from(["sparse", "dense"]), chunks=st.sampled_from(CHUNKS))
def test_filters_regrids_and_windows_stand_on_joins(local: Any, seed: int, sides: str, chunks: str) -> None:
    random = np.random.default_rng(seed)
    boxes = {"i": (0, 5), "j": (-1, 4)}
    array, held = stored(local, Problem(chunks=chunks), random, boxes, sides)
    counted = f"select count(*) as n, sum(R.m) as t from {array.name} L similarity join {array.name} R"
    counted += " on L.m <= R.m with shape L1(1) group by L.i, L.j"
    step = Step(held, Shape((Norm("L1", 1),)), oracle.identity(held, held), lambda s, far: s[0]["m"] <= s[1]["m"])
    measures = {"n": Measure("count_all"), "t": Measure("sum", (lambda s, far: s[1]["m"],))}
    by_hand = oracle.aggregated(oracle.join(held, step), [(0, "i"), (0, "j")], measures)
    # A filter and a projection, groups that were counted, blocks, and a window over the counts.
    found = table_cells(local.query(f"select n * 2 as d from ({counted}) where n > 1").compute(), ["i", "j"])
    assert {cell: row["d"] for cell, row in found.items()} == {
        cell: 2 * row["n"] for cell, row in by_hand.items() if row["n"] > 1
    }
    found = table_cells(local.query(f"{counted} having n > 1").compute(), ["i", "j"])
    assert set(found) == {cell for cell, row in by_hand.items() if row["n"] > 1}
    blocks: dict[tuple[int, int], int] = {}
    for (i, j), row in by_hand.items():
        block = (i // 2, (j + 1) // 3 - 1)
        blocks[block] = blocks.get(block, 0) + row["n"]
    found = table_cells(local.query(f"select sum(n) as n from ({counted}) regrid (2, 3)").compute(), ["i", "j"])
    assert {cell: row["n"] for cell, row in found.items()} == blocks
    text = f"select max(n) as n from ({counted}) window (i centred 3, j trailing 2)"
    wanted = {
        (i, j): max(row["n"] for (a, b), row in by_hand.items() if abs(a - i) <= 1 and j - 1 <= b <= j)
        for i, j in by_hand
    }
    found = table_cells(local.query(text).compute(), ["i", "j"])
    assert {cell: row["n"] for cell, row in found.items()} == wanted


@SOMETIMES
@given(problem=problems())
def test_results_are_stored_as_they_are_computed(local: Any, problem: Problem) -> None:
    assume(problem.grouping != "none" and not (problem.grouping == "pairs" and problem.kind.startswith("left")))
    asked = make(local, problem)
    assume(asked.can_meet() and not asked.leaves_out_several())
    name = f"K{uuid.uuid4().hex[:12]}"
    asked.query(local).store(name)
    kept = local.array(name).read()
    asked.check(kept)


# Users' own aggregates


@wr.aggregate("test_joins_spread", result="float64")
class Spread:
    def empty():  # type: ignore[misc]
        return (math.inf, -math.inf)

    def add(state, x):  # type: ignore[misc]  # noqa: N805
        return (min(state[0], x), max(state[1], x))

    def merge(a, b):  # type: ignore[misc]  # noqa: N805
        return (min(a[0], b[0]), max(a[1], b[1]))

    def result(state):  # type: ignore[misc]  # noqa: N805
        return state[1] - state[0]


@SOMETIMES
@given(seed=SEEDS, sides=st.sampled_from(["dense", "sparse", "twins"]), kind=st.sampled_from(["L1", "any", "wrap"]))
def test_users_aggregates_join(local: Any, seed: int, sides: str, kind: str) -> None:
    array, held, _, written, by_hand = around(local, seed, sides, kind, "small", 2)
    measures = {"w": Measure("range", (lambda s, far: s[-1]["m"],))}
    text = f"select test_joins_spread(m) as w from {array.name} neighbours {written}"
    compare(local.query(text).compute(), held, by_hand, measures)
    names = [dimension.name for dimension in held.dimensions]
    text = f"select test_joins_spread(L.m + R.m) as w from {array.name} L similarity join {array.name} R"
    found = local.query(f"{text} with shape {written} group by L.i").compute()
    pairs = oracle.join(held, Step(held, by_hand, oracle.identity(held, held)))
    summed = {"w": Measure("range", (lambda s, far: s[0]["m"] + s[1]["m"],))}
    wanted = oracle.aggregated(pairs, [(0, "i")], summed)
    assert {key: row["w"] for key, row in table_cells(found, names[:1]).items()} == {
        key: float(row["w"]) for key, row in wanted.items()
    }


# Nothing at all


def test_empty_arrays_have_no_pairs(local: Any) -> None:
    local.query("create sparse array E <m: int64> [i=1:9:3]")
    local.query("create sparse array F <m: int64> [i=1:9:3]")
    local.query("insert into F values (1: 5), (2: 7)")
    assert local.query("select count(*) as n from E neighbours L1(1)").compute().num_rows == 0
    inner = "select count(*) as n from F L similarity join E R with shape L1(1) group by L.i"
    assert local.query(inner).compute().num_rows == 0
    left = "select count(*) as n, sum(R.m) as t from F L left similarity join E R with shape L1(1) group by L.i"
    assert local.query(left).compute().to_pylist() == [{"i": 1, "n": 0, "t": None}, {"i": 2, "n": 0, "t": None}]
    total = "select count(*) as n, sum(R.m) as t from E L similarity join F R with shape L1(1)"
    assert [(row["n"], row["t"]) for row in local.query(total).compute().to_pylist()] == [(0, None)]


def test_listed_offsets_are_those(local: Any) -> None:
    """The oracle's own check: a list is not its hull."""
    held = Held((oracle.Dimension("i", 0, 9),), {(i,): {} for i in range(10)})
    wanted, _ = oracle.neighbours(held, Shape((Listed(((-2,), (3,)), ("i",)),)), {"n": Measure("count_all")})
    assert [wanted[(i,)]["n"] for i in range(10)] == [1, 1, 2, 2, 2, 2, 2, 1, 1, 1]
