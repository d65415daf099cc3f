"""Joins with their names looked up: equal joins are equal queries, and all that a query says of one is kept."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import windrow as wr
from windrow.errors import Error
from windrow.expressions.nodes import Column
from windrow.plan.bound import BoundJoin, BoundJoined, BoundPairs, BoundTotals
from windrow.plan.join_terms import AxisMap

SELF = "from A A1 similarity join A A2"
OTHER = "from A similarity join B"
GROUPED = "group by A1.i, A1.j"

SAME: list[list[str]] = [
    # Names of sides, the order of conditions, and what is the default anyway change nothing.
    [
        f"select count(*) as n {SELF} with shape L1(1) {GROUPED}",
        "select count(*) as n from A X similarity join A Y with shape L1(1) group by X.i, X.j",
        f"select count(*) as n {SELF} on A1.i = A2.i and A1.j = A2.j with shape L1(1) {GROUPED}",
        f"select count(*) as n {SELF} on (A2.j = A1.j) and (A2.i = A1.i) with shape L1(1) {GROUPED}",
        f"select count(*) as n {SELF} on cell(A2.i) = A1.i + 0 and A2.j = 1 * A1.j"
        f" with shape L1(1) on (j, i) {GROUPED}",
        f"select count(*) as n {SELF} with shape L1(1) where true {GROUPED}",
    ],
    [f"select count(*) as n {SELF} with shape L1(1), excluding self {GROUPED}"],
    [f"select count(*) as n {SELF} with shape Linf(1) {GROUPED}"],
    [f"select count(*) as m {SELF} with shape L1(1) {GROUPED}"],
    [f"select count(*) as n {SELF} with shape L1(1) group by A1.j, A1.i"],
    [f"select count(*) as n {SELF} with shape L1(1) group by A1.i"],
    [f"select count(*) as n {SELF} with shape L1(1)"],
    [f"select count(*) as n {SELF} on A1.i = A2.i with shape L1(1) on (i) {GROUPED}"],
    [f"select count(*) as n {SELF} on A1.i = A2.j and A1.j = A2.i with shape L1(1) {GROUPED}"],
    [
        f"select count(*) as n {SELF} on A2.i = A1.i + 3 and A2.j = A1.j with shape L1(1) {GROUPED}",
        f"select count(*) as n {SELF} on A2.j = A1.j and 3 + A1.i = A2.i with shape L1(1) {GROUPED}",
        f"select count(*) as n {SELF} on A2.j = A1.j and A1.i - 2 + 5 = A2.i with shape L1(1) {GROUPED}",
    ],
    [f"select count(*) as n {SELF} on A2.i = A1.i - 3 and A2.j = A1.j with shape L1(1) {GROUPED}"],
    [
        f"select count(*) as n {SELF} on A2.i = 2 * A1.i + 2 and A2.j = A1.j with shape L1(1) {GROUPED}",
        f"select count(*) as n {SELF} on A2.i = (A1.i + 1) * 2 and A2.j = A1.j with shape L1(1) {GROUPED}",
    ],
    [f"select count(*) as n {SELF} on A2.i = A1.i // 2 + 2 and A2.j = A1.j with shape L1(1) {GROUPED}"],
    # A condition on the pairs of an inner join may stand in either place; on one side, it is a filter of that side.
    [
        f"select count(*) as n {SELF} with shape L1(1) where A1.r < A2.s and A1.r > 1 {GROUPED}",
        f"select count(*) as n {SELF} on A1.r > 1 and A1.r < A2.s with shape L1(1) {GROUPED}",
        f"select count(*) as n {SELF} on A1.r < A2.s with shape L1(1) where A1.r > 1 {GROUPED}",
        "select count(*) as n from (select * from A where r > 1) A1 similarity join A A2"
        f" on A1.r < A2.s with shape L1(1) {GROUPED}",
    ],
    [
        f"select count(*) as n {SELF} with shape L1(1) where A1.i > 2 and A1.r < 9 and A1.r > 1 {GROUPED}",
        f"select count(*) as n {SELF} on A1.r > 1 with shape L1(1) where A1.r < 9 and A1.i > 2 {GROUPED}",
        f"select count(*) as n {SELF} on A1.i > 2 and A1.r > 1 and A1.r < 9 with shape L1(1) {GROUPED}",
    ],
    [f"select count(*) as n {SELF} with shape L1(1) where A1.r < A2.s and A2.r > 1 {GROUPED}"],
    [f"select count(*) as n {SELF} with shape L1(1) where A1.r < A2.s {GROUPED}"],
    [f"select count(*) as n {SELF} with shape L1(1) where A2.r < A1.s {GROUPED}"],
    # Aggregates, their sides and their parameters.
    [f"select sum(A1.r) as n {SELF} with shape L1(1) {GROUPED}"],
    [f"select sum(A2.r) as n {SELF} with shape L1(1) {GROUPED}"],
    [f"select sum(A2.s) as n {SELF} with shape L1(1) {GROUPED}"],
    [f"select max(A2.s) as n {SELF} with shape L1(1) {GROUPED}"],
    [f"select percentile(A2.s, 70) as n {SELF} with shape L1(1) {GROUPED}"],
    [f"select percentile(A2.s, 71) as n {SELF} with shape L1(1) {GROUPED}"],
    [f"select sum(A1.r * A2.s) as n {SELF} with shape L1(1) {GROUPED}"],
    [f"select sum(A1.r * A2.s) as n, count(*) as c {SELF} with shape L1(1) {GROUPED}"],
    # Pairs, under the names of the query.
    [f"select A1.r * A2.s as f {SELF} with shape L1(1)"],
    [f"select A2.r * A1.s as f {SELF} with shape L1(1)"],
    ["select X.r * Y.s as f from A X similarity join A Y with shape L1(1)"],
    [f"select * {SELF} with shape L1(1)"],
    [f"select *, A1.r as f {SELF} with shape L1(1)"],
    # Left joins: where on and where differ, and neighbours, which are left joins.
    [
        "select count(*) as n from S neighbours L1(1)",
        "select count(*) as n from S A1 left similarity join S A2 with shape L1(1) group by A1.i, A1.j",
        "select count(*) as n from S A1 left similarity join S A2 on A2.i = A1.i and A2.j = A1.j"
        " with shape L1(1) on (i, j) group by A1.i, A1.j",
    ],
    ["select count(*) as n from S A1 similarity join S A2 with shape L1(1) group by A1.i, A1.j"],
    ["select count(*) as n from A neighbours L1(1)"],
    ["select count(*) as n from S neighbours L1(1) min count 2"],
    ["select count(*) as n from S neighbours L1(1) method naive"],
    [
        "select sum(s) as n from S neighbours L1(1)",
        "select sum(A2.s) as n from S A1 left similarity join S A2 with shape L1(1) group by A1.i, A1.j",
    ],
    ["select sum(A1.s) as n from S A1 left similarity join S A2 with shape L1(1) group by A1.i, A1.j"],
    [
        "select count(*) as n from S left similarity join B on S.r < B.r with shape L1(1) group by S.i",
        "select count(*) as n from S X left similarity join B Y on X.r < Y.r with shape L1(1) group by X.i",
    ],
    ["select count(*) as n from S left similarity join B with shape L1(1) where S.r < B.r group by S.i"],
    [
        "select count(*) as n from S left similarity join B on B.r > 1 with shape L1(1) group by S.i",
        "select count(*) as n from S left similarity join (select * from B where r > 1) B with shape L1(1)"
        " group by S.i",
    ],
    ["select count(*) as n from S left similarity join B with shape L1(1) where B.r > 1 group by S.i"],
    [
        "select count(*) as n from S left similarity join B with shape L1(1) where S.r > 1 group by S.i",
        "select count(*) as n from (select * from S where r > 1) S left similarity join B with shape L1(1)"
        " group by S.i",
    ],
    ["select count(*) as n from S left similarity join B on S.r > 1 with shape L1(1) group by S.i"],
    # Chains.
    [
        f"select count(*) as n {SELF} with shape L1(1) similarity join A A3 on A2.i = A3.i"
        f" with shape L1(1) on (i) {GROUPED}",
        "select count(*) as n from A X similarity join A Y with shape L1(1) similarity join A Z"
        " on Y.i = Z.i with shape L1(1) on (i) group by X.i, X.j",
    ],
    [
        f"select count(*) as n {SELF} with shape L1(1) similarity join A A3 on A1.i = A3.i with shape L1(1) on (i)"
        " group by A1.i, A1.j"
    ],
    [
        f"select count(*) as n {SELF} with shape L1(1) similarity join A A3 on A2.i = A3.i with shape L1(1) on (i)"
        " where A2.r > 1 group by A1.i",
        "select count(*) as n from A A1 similarity join (select * from A where r > 1) A2 with shape L1(1)"
        " similarity join A A3 on A2.i = A3.i with shape L1(1) on (i) group by A1.i",
    ],
    # Nearest: how many, by what, and that conditions of on come before it and those of where after it.
    [
        f"select count(*) as n {SELF} with shape L2(3) nearest 2 {GROUPED}",
        f"select count(*) as n {SELF} with shape L2(3) nearest 2 by distance() {GROUPED}",
        f"select count(*) as n {SELF} with shape L2(3) on (i, j) nearest 2 where true {GROUPED}",
    ],
    [f"select count(*) as n {SELF} with shape L2(3) nearest 3 {GROUPED}"],
    [f"select count(*) as n {SELF} with shape L2(3) mutual nearest {GROUPED}"],
    [f"select count(*) as n {SELF} with shape L2(3) nearest 1 {GROUPED}"],
    [
        f"select count(*) as n {SELF} with shape L2(3) nearest 2 by abs(A1.r - A2.r) {GROUPED}",
        "select count(*) as n from A X similarity join A Y with shape L2(3) nearest 2 by abs(X.r - Y.r)"
        " group by X.i, X.j",
    ],
    [f"select count(*) as n {SELF} with shape L2(3) nearest 2 by abs(A2.r - A1.r) {GROUPED}"],
    [f"select count(*) as n {SELF} with shape L2(3), excluding self nearest 2 {GROUPED}"],
    [
        f"select count(*) as n {SELF} on A2.r > 1 with shape L2(3) nearest 2 {GROUPED}",
        "select count(*) as n from A A1 similarity join (select * from A where r > 1) A2"
        f" with shape L2(3) nearest 2 {GROUPED}",
    ],
    [f"select count(*) as n {SELF} with shape L2(3) nearest 2 where A2.r > 1 {GROUPED}"],
    [
        f"select count(*) as n {SELF} with shape L2(3) nearest 2 where A1.r > 1 {GROUPED}",
        f"select count(*) as n {SELF} on A1.r > 1 with shape L2(3) nearest 2 {GROUPED}",
    ],
    [f"select count(*) as n {SELF} on A1.r > 1 with shape L2(3) mutual nearest {GROUPED}"],
    [f"select count(*) as n {SELF} with shape L2(3) mutual nearest where A1.r > 1 {GROUPED}"],
    [f"select count(*) as n {SELF} on A1.r < A2.r with shape L2(3) nearest 2 {GROUPED}"],
    [f"select count(*) as n {SELF} with shape L2(3) nearest 2 where A1.r < A2.r {GROUPED}"],
    # Distances: along which dimensions matters where somebody asks for them.
    [f"select sum(distance()) as n {SELF} with shape L2(3), j between -9 and 9 {GROUPED}"],
    [f"select sum(distance()) as n {SELF} with shape L2(3) on (i), j between -9 and 9 {GROUPED}"],
    [
        f"select count(*) as n {SELF} with shape i between -1 and 1, j between -2 and 2 {GROUPED}",
        f"select count(*) as n {SELF} with shape Linf(1) on (i), j between -2 and 2 {GROUPED}",
    ],
    [
        f"select count(*) as n {SELF} on distance() < 2 with shape Linf(1) on (i), j between -2 and 2 {GROUPED}",
        f"select count(*) as n {SELF} with shape j between -2 and 2, Linf(1) on (i) where distance() < 2 {GROUPED}",
    ],
    [f"select count(*) as n {SELF} on distance() < 2 with shape Linf(2) {GROUPED}"],
    # Shapes: powers, stored arrays, which are the offsets that they hold, and label units.
    [f"select count(*) as n {SELF} with shape Lp(3, 2.5) {GROUPED}"],
    [
        f"select count(*) as n {SELF} with shape L2(2.5) {GROUPED}",
        f"select count(*) as n {SELF} with shape Lp(2, 2.5) {GROUPED}",
    ],
    [
        f"select count(*) as n {SELF} with shape K {GROUPED}",
        f"select count(*) as n {SELF} with shape K on (i, j) {GROUPED}",
        f"select count(*) as n {SELF} with shape offsets ((0, 2), (-1, 0)) {GROUPED}",
        f"select count(*) as n {SELF} with shape K@1 {GROUPED}",
    ],
    [
        f"select count(*) as n {SELF} with shape reflected(K) {GROUPED}",
        f"select count(*) as n {SELF} with shape offsets ((0, -2), (1, 0)) on (i, j) {GROUPED}",
    ],
    [f"select count(*) as n {SELF} with shape K on (j, i) {GROUPED}"],
    ["select count(*) as n from T neighbours time between '-2 days' and 0"],
    ["select count(*) as n from I neighbours time between '-2 days' and 0"],
    ["select count(*) as n from I neighbours time between '-3 days' and 0"],
    # Neighbours at some positions alone.
    [
        "select count(*) as n from A neighbours L1(1) step 2",
        "select count(*) as n from A neighbours L1(1) step (2, 2)",
        "select count(*) as n from A neighbours L1(1) step (j 2, i 2)",
    ],
    ["select count(*) as n from A neighbours L1(1) step (i 2)"],
    # The kinds.
    [
        "select r from A anti similarity join B on A.r < B.r with shape L1(1)",
        "select X.r from A X anti similarity join B Y on X.r < Y.r with shape L1(1) on (i, j) nearest 2",
    ],
    ["select r from A anti similarity join B on A.r < B.r with shape L1(1) mutual nearest"],
    [
        "select r from A anti similarity join B with shape L1(1) where s > 1",
        "select r from (select * from A where s > 1) A anti similarity join B with shape L1(1)",
    ],
    ["select r from A anti similarity join B on A.s > 1 with shape L1(1)"],
    ["select S.r as f from S left similarity join B with shape L1(1)"],
    ["select S.r as f from S similarity join B with shape L1(1)"],
    # Sky.
    [
        "select count(*) as n from G similarity join H with shape Sky('10 arcsec') on (ra, dec) group by G.ra",
        "select count(*) as n from G X similarity join H Y with shape Sky('10 arcseconds') on (ra, dec), n any"
        " group by X.ra",
    ],
    ["select count(*) as n from G similarity join H with shape Sky('11 arcsec') on (ra, dec) group by G.ra"],
    ["select count(*) as n from G similarity join H with shape Linf(1) on (ra, dec) group by G.ra"],
    [
        "select avg(distance('arcsec')) as n from G similarity join H with shape Sky('10 arcsec') on (ra, dec)",
        "select avg(distance() * 3600.0) as n from G similarity join H with shape Sky('10 arcsec') on (ra, dec)",
    ],
    # The number of a detection in its cell is any, and its own where the cell itself is left out.
    [
        "select count(*) as n from G A1 similarity join G A2 with shape L1(1), excluding self group by A1.ra",
        "select count(*) as n from G A1 similarity join G A2 on A1.ra = A2.ra and A1.dec = A2.dec"
        " with shape L1(1) on (ra, dec), excluding self group by A1.ra",
    ],
    ["select count(*) as n from G A1 similarity join G A2 with shape L1(1), n between 0 and 0 group by A1.ra"],
]


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    opened = wr.connect(tmp_path_factory.mktemp("joins"), engine="local", progress=False)
    opened.query("create array A <r: int, s: int> [i=1:6:2, j=1:8:2]")
    opened.query("create array B <r: int> [i=1:6:2, j=1:8:2]")
    opened.query("create sparse array S <r: int, s: int> [i=1:6:2, j=1:8:2]")
    days, later = (np.datetime64(day) + np.arange(4) for day in ("2012-01-01", "2013-01-01"))
    opened.create("T", "<t: float64> [time=1:4, lat=1:2]", labels={"time": days, "lat": [60.0, 30.0]})
    opened.create("U", "<t: float64> [time=1:4, lat=1:2]", labels={"time": later, "lat": [60.0, 30.0]})
    opened.create("I", "<t: float64> [time=1:4]", labels={"time": np.datetime64("2012-01-01") + np.array([0, 1, 3, 9])})
    opened.query("create sparse array K <w: int> [i=-2:2, j=-2:2]")
    opened.query("insert into K values (0, 2: 1), (-1, 0: 1)")
    grid = {"ra": (0, 360, "1 arcsec"), "dec": (-90, 90, "1 arcsec")}
    opened.create("G", "<m: float64> [ra, dec]", grid=grid)
    opened.create("H", "<m: float64> [ra, dec]", grid=grid)
    opened.create("C", "<m: float64> [ra, dec]", grid={"ra": (0, 360, "10 arcsec"), "dec": (-90, 90, "10 arcsec")})
    opened.create("P", "<m: float64> [ra, dec]", grid={"ra": (0, 1000, 1), "dec": (-100, 100, 1)})
    yield opened
    opened.close()


def test_equal_joins_are_equal_queries_and_no_others(database: Any) -> None:
    bound = [(k, text, database.query(text).bind().bound) for k, texts in enumerate(SAME) for text in texts]
    wrong = [
        f"{'different' if k == m else 'the same'}: {one}\n{other}"
        for (k, one, left), (m, other, right) in itertools.combinations(bound, 2)
        if (left == right) is not (k == m)
    ]
    assert wrong == [], "\n\n".join(wrong)


def joined(database: Any, text: str) -> Any:
    return database.query(text).bind().bound


def test_what_on_says_is_split(database: Any) -> None:
    found = joined(
        database,
        f"select sum(A1.r + B.r) as t from A A1 similarity join B on B.i = 2 * A1.i - 1 and A1.j // 4 + 1 = B.j"
        f" and abs(A1.r - B.r) < 3 and B.r > 1 with shape Linf(2) {GROUPED}",
    )
    assert isinstance(found, BoundJoined)
    join = found.source
    i, j = Column("i", "side1"), Column("j", "side1")
    assert join.mapping == (AxisMap(i, 2, 1, -1), AxisMap(j, 1, 4, 1))
    assert str(join.condition) == "abs(side1.r - side2.r) < 3"
    assert (join.kind, join.where, found.groups, found.schema.dimension_names) == ("inner", None, (i, j), ("i", "j"))
    assert [(name, str(node)) for name, node in found.arguments] == [("argument_1", "side1.r + side2.r")]
    assert [(name, str(aggregate)) for name, aggregate in found.aggregates] == [("t", "sum(argument_1)")]


def test_dimensions_that_nothing_maps_have_no_partner(database: Any) -> None:
    found = joined(database, f"select count(*) {SELF} on A2.j = A1.j with shape L1(1) on (j) group by A1.i")
    assert found.source.mapping == (None, AxisMap(Column("j", "side1")))


def test_pairs_lie_at_the_coordinates_of_all_sides(database: Any) -> None:
    pairs = joined(database, f"select * {SELF} with shape L1(1)")
    assert isinstance(pairs, BoundPairs)
    assert pairs.schema.dimension_names == ("A1_i", "A1_j", "A2_i", "A2_j")
    assert pairs.schema.attribute_names == ("A1_r", "A1_s", "A2_r", "A2_s")
    total = joined(database, f"select count(*) {SELF} with shape L1(1)")
    assert total.scalar
    assert total.groups == ()


def test_neighbours_keep_density_counts_and_method(database: Any) -> None:
    found = joined(database, "select sum(r) as t from A neighbours L1(1), excluding self min count 3 method naive")
    assert (found.min_count, found.method, found.schema.sparse) == (3, "naive", False)
    assert found.schema.attribute("t").nullable
    assert joined(database, "select count(*) from S neighbours L1(1)").schema.sparse
    assert isinstance(found.source, BoundJoin)


def test_labels_on_pairs_are_labels_and_numbers_in_the_mapping(database: Any) -> None:
    text = "select avg(A.t - B.t) as d from T A similarity join T B on B.time = A.time - 1 and B.lat = A.lat"
    text += " and B.time >= '2012-01-02' and cos(radians(A.lat)) < abs(B.lat) with shape L1(0) group by A.time"
    found = joined(database, text)
    assert found.source.mapping[0] == AxisMap(Column("time", "side1"), 1, 1, -1)
    assert str(found.source.condition) == "cos(radians(side1.lat)) < abs(side2.lat)"
    assert found.source.right.box.lo == (2, 1)
    assert dict(found.labels)["time"].values[0] == np.datetime64("2012-01-01")


WRONG = [
    ("select count(*) from T similarity join U with shape L1(1)", "T.time and U.time have different labels"),
    (
        "select count(*) from T similarity join U on T.time = U.time and T.lat = U.lat with shape L1(1)",
        r"different labels, got 2012-01-01 .* write cell\(U.time\) = cell\(T.time\)",
    ),
    (f"select count(*) {SELF} with shape L1(1) group by A2.i", "dimensions of the left side, got 'A2.i'"),
    (f"select count(*) {SELF} with shape L1(1) group by A1.r", "grouped by dimensions, and this is none, got 'A1.r'"),
    (f"select count(*) {SELF} with shape L1(1) group by i", "several sides of the join have this column.*A1.i or A2.i"),
    (f"select sum(r) {SELF} with shape L1(1)", "several sides of the join have this column"),
    (
        f"select sum(A3.r) {SELF} with shape L1(1)",
        "no side of the join has that name, got 'A3.r'. The sides are A1 and A2",
    ),
    (f"select sum(A1.x) {SELF} with shape L1(1)", "no such column, got 'A1.x'"),
    (f"select count(*) {SELF} on A2.i = -1 * A1.i with shape L1(1)", "not a way to map dimensions"),
    (f"select count(*) {SELF} on A2.i = A1.i + A1.j with shape L1(1)", "not a way to map dimensions"),
    (f"select count(*) {SELF} on A2.i = (A1.i + 1) // 2 with shape L1(1)", "not a way to map dimensions"),
    (f"select count(*) {SELF} on A2.i = A1.i and A2.i = A1.j with shape L1(1)", "mapped twice, got 'A2.i'"),
    ("select count(*) from A similarity join T with shape L1(1)", "no dimension of T has a namesake"),
    (f"select count(*) {SELF} on A1.r with shape L1(1)", "must be true or false"),
    (f"select A1.r {SELF} with shape L1(1) window (i 2)", "expected an aggregate|have to be aggregated"),
    # Shapes
    (f"select count(*) {SELF} with shape L1(1) on (x)", "no such dimension, got 'x'.*i, j"),
    ("select count(*) from A neighbours L1(1), time any", "no such dimension, got 'time'"),
    ("select count(*) from A neighbours M", "no such array, got .M."),
    ("select count(*) from A neighbours L1", r"a norm needs its radius, got 'L1'. As in L1\(1\)"),
    ("select count(*) from A neighbours B", "a shape is stored as a sparse array, got B, which is dense"),
    (
        "select count(*) from A neighbours K on (i)",
        r"the shape K has 2 dimensions, got on \(i\). Its dimensions are i, j",
    ),
    ("select count(*) from G neighbours K@7", "no such version"),
    ("select count(*) from I neighbours K", "are others than the array's, got i, j. .*the array has time"),
    ("select count(*) from A neighbours i between '-2 days' and 0", "dimension i has no labels"),
    ("select count(*) from I neighbours time between '-2 arcsec' and 0", "a length of time is needed"),
    (
        f"select count(*) {SELF} on A1.i = A2.i with shape L1(1) on (j)",
        r"no offset along j can be measured, for nothing is mapped to it, got L1\(1\) on \(j\). Map it, as in on A2.j",
    ),
    (
        f"select count(*) {SELF} on A1.i = A2.i with shape L1(1), excluding self",
        "excluding self needs the one cell at offset 0, and no cell of j is mapped to.* as in on A2.j = …",
    ),
    ("select count(*) from A neighbours L1(1) step (1, 2, 3)", "expected 2 sizes"),
    ("select count(*) from A neighbours L1(1) step (k 2)", "no such dimension, got 'k'"),
    # Mappings that lead nowhere
    (f"select count(*) {SELF} on A2.x = A1.i with shape L1(1)", "no such column, got 'A2.x'"),
    (f"select count(*) {SELF} on A3.i = A1.i with shape L1(1)", "no side of the join has that name, got 'A3.i'"),
    (
        f"select count(*) {SELF} on A2.i = A1.i + 8 and A2.j = A1.j with shape L1(1)",
        "no cell of A1 comes near A2 along i, got cells mapped to 9 to 14, with offsets from -1 to 1."
        " A2 has i from 1 to 6. Check the mapping",
    ),
    (f"select count(*) {SELF} on A2.i = A1.i - 9 and A2.j = A1.j with shape L1(1)", "cells mapped to -8 to -3"),
    (f"select count(*) {SELF} on A2.i = 20 * A1.i and A2.j = A1.j with shape L1(1)", "cells mapped to 20 to 120"),
    # Nearest and distance
    (
        f"select count(*) {SELF} with shape L2(3) nearest 0",
        "nearest keeps at least one partner, got 0",
    ),
    (f"select count(*) {SELF} with shape L2(3) nearest -1", "at least one partner, got -1"),
    (f"select count(*) {SELF} with shape L2(3) nearest 2 by C.r", "no side of the join has that name, got 'C.r'"),
    (f"select count(*) {SELF} with shape L2(3) nearest 2 by max(A1.r)", "max is an aggregate and cannot stand in near"),
    ("select distance() from A", "only the cells of a pair have a distance"),
    ("select r from A where distance() < 1", "only the cells of a pair have a distance"),
    (f"select sum(distance('arcsec')) {SELF} with shape L2(3)", "measured in cells here, got 'arcsec'. Leave the unit"),
    (f"select sum(distance(3)) {SELF} with shape L2(3)", "distance takes a unit at most, got 3"),
    (
        "select avg(distance('days')) from G similarity join H with shape Sky('1 arcsec') on (ra, dec)",
        "distances on the sky are angles, got 'days'",
    ),
    # Conditions and values
    (f"select count(*) {SELF} on A1.r + A2.r with shape L1(1)", "must be true or false"),
    (f"select count(*) {SELF} with shape L1(1) where A1.r", "must be true or false"),
    (f"select avg('x') {SELF} with shape L1(1)", "avg"),
    (f"select A1.r + 'x' as f {SELF} with shape L1(1)", "arithmetic needs numbers"),
    (f"select null as f {SELF} with shape L1(1)", "the type of f is not known"),
    # Kinds
    ("select B.r from A anti similarity join B with shape L1(1)", "no array of that name is read here, got 'B'"),
    (
        f"select count(*) {SELF} with shape L1(1) anti similarity join B with shape L1(1)",
        "an anti join has one array on its left, got A1, A2",
    ),
    (
        "select sum(r) from (select S.r from S left similarity join B with shape L1(1)) window (S_i 3)",
        "a left join without group by is a table, which has no neighbourhoods",
    ),
    (
        "select count(*) from (select S.r from S left similarity join B with shape L1(1)) X similarity join B"
        " on B.i = X.S_i with shape L1(1) on (i)",
        "a table, which cannot be joined, got X",
    ),
    (
        "select count(*) from S left similarity join B with shape L1(1) similarity join A on A.i = B.i and A.j = B.j"
        " with shape L1(1) group by B.i",
        "pairs are grouped by dimensions that each of them has, got 'B.i'",
    ),
    (
        "select count(*) from (select sum(r) from A) X similarity join B on B.i = X.i with shape L1(1) on (i)",
        "one result",
    ),
    # Sky
    ("select count(*) from A neighbours Sky('1 arcsec') on (i, j)", "Sky needs angles along i, and the array has none"),
    ("select count(*) from G neighbours Sky('200 degrees') on (ra, dec)", "below 180 degrees, got '200 degrees'"),
    ("select count(*) from G neighbours Sky('3 days') on (ra, dec)", "the radius of Sky is an angle, got '3 days'"),
    (
        "select count(*) from P neighbours Sky('1 arcsec') on (ra, dec)",
        "in one turn of 360 degrees along ra, got 0 to 1000",
    ),
    ("select count(*) from G neighbours Sky('1 arcsec') on (dec, ra)", "angles from -90 to 90 degrees along ra"),
    ("select count(*) from G neighbours Sky('1 arcsec') on (ra, x)", "no such dimension, got 'x'"),
    (
        "select count(*) from (select m from G) X similarity join H with shape Sky('1 arcsec') on (ra, dec)",
        "the exact coordinates along ra are not there, got m. Select ra_exact too",
    ),
    (
        "select count(*) from G similarity join H on H.ra = G.ra + 1 and H.dec = G.dec with shape Sky('1 arcsec')"
        " on (ra, dec)",
        "Sky pairs by exact coordinates, and ra is mapped to other cells",
    ),
    (
        "select count(*) from G similarity join C with shape Linf(1) on (ra, dec)",
        "G.ra and C.ra have different griddings",
    ),
]


@pytest.mark.parametrize(("text", "words"), WRONG, ids=[text for text, _ in WRONG])
def test_what_cannot_be_joined_is_said(database: Any, text: str, words: str) -> None:
    with pytest.raises(Error, match=words):
        database.query(text)


def test_numbers_of_cells_match_sides_of_other_labels(database: Any) -> None:
    text = "select count(*) from T similarity join U on cell(T.time) = cell(U.time) and T.lat = U.lat with shape L1(1)"
    assert joined(database, text).source.mapping[0] == AxisMap(Column("time", "side1"))


def test_the_order_of_what_is_said_of_pairs_is_kept(database: Any) -> None:
    text = "select sum(A.r) as t from A left similarity join B on A.r < B.r and B.r > 1 and A.s > 2 with shape L2(3)"
    found = joined(
        database, f"{text} nearest 2 by abs(A.r - B.r) where A.r + B.r > 3 and A.s < 9 and B.r < 7 group by A.i"
    )
    join = found.source
    assert str(join.condition) == "side1.r < side2.r and side1.s > 2"
    assert str(join.where) == "side1.r + side2.r > 3 and side2.r < 7"
    assert join.nearest is not None
    assert (join.nearest.count, str(join.nearest.by), join.nearest.mutual) == (2, "abs(side1.r - side2.r)", False)
    assert str(join.right.condition) == "r > 1"
    assert str(join.left.condition) == "s < 9"


def test_an_anti_join_is_an_array_of_left_cells(database: Any) -> None:
    found = joined(database, "select * from A anti similarity join B on A.r < B.r with shape L1(1)")
    assert isinstance(found, BoundJoin)
    assert (found.kind, found.schema.dimension_names, found.schema.attribute_names) == ("anti", ("i", "j"), ("r", "s"))
    assert found.schema.sparse
    for text in (
        "select max(A.r) as m from A anti similarity join B with shape L1(1) window (i 3)",
        "select count(*) as n from A anti similarity join B with shape L1(1) group by A.i",
        "select count(*) as n from A anti similarity join B with shape L1(1) similarity join B C with shape L1(1)",
    ):
        assert any(isinstance(step, BoundJoin) and step.kind == "anti" for step in joined(database, text).walk())
    total = joined(database, "select count(*) as n from A anti similarity join B with shape L1(1)")
    assert total.scalar
    assert isinstance(total, BoundTotals)


def test_a_left_join_without_groups_is_a_table(database: Any) -> None:
    found = joined(database, "select S.r, B.r as b from S left similarity join B with shape L1(1)")
    assert found.is_table
    assert found.schema.dimension_names == ("S_i", "S_j")
    assert [str(a) for a in found.schema.attributes] == [
        "B_i: int64 null",
        "B_j: int64 null",
        "r: int64 null",
        "b: int64 null",
    ]
    kept = joined(
        database, "select r from (select S.r from S left similarity join B with shape L1(1)) where B_i is null"
    )
    assert kept.is_table
    with pytest.raises(Error, match="is a table, which no array can hold"):
        database.query("select S.r from S left similarity join B with shape L1(1)").store("T9")
    with pytest.raises(Error, match="is a table, which no array can hold"):
        database.query("insert into S select S.r, B.r as s from S left similarity join B with shape L1(1)")
    assert "T9" not in database


def test_distances_are_measured_where_the_norms_are(database: Any) -> None:
    def axes(shape: str) -> tuple[int, ...]:
        found: tuple[int, ...] = joined(
            database, f"select distance() as d {SELF} with shape {shape}"
        ).source.distance_axes
        return found

    assert axes("L1(1)") == axes("K") == axes("i any, j between 0 and 1") == axes("Hamming(1)") == (0, 1)
    assert axes("Linf(1) on (j), i any") == (1,)
    assert axes("Linf(1) on (j), Lp(3, 2) on (i)") == (0, 1)
    numbered = joined(database, "select distance() as d from G A1 similarity join G A2 with shape K on (ra, dec)")
    assert numbered.source.distance_axes == (0, 1)
    assert joined(database, f"select A1.r as d {SELF} with shape L1(1)").source.distance_axes == ()


def test_sky_reads_the_exact_coordinates(database: Any) -> None:
    text = "select avg(distance('arcsec')) as d from G similarity join {} with shape Sky('36 arcsec') on (ra, dec)"
    join = joined(database, text.format("H")).source
    sky = join.sky
    assert (sky.radius, sky.axes) == (0.01, (0, 1))
    exact = (sky.left_ra, sky.left_dec, sky.right_ra, sky.right_dec)
    assert list(map(str, exact)) == ["side1.ra_exact", "side1.dec_exact", "side2.ra_exact", "side2.dec_exact"]
    assert [place is not None for place in join.mapping] == [True, True, True]
    assert join.offsets.free == (True, True, True)
    # Cells of another grid are no reason to refuse: coordinates count.
    assert [place is not None for place in joined(database, text.format("C")).source.mapping] == [False, False, True]
    found = joined(database, text.format("H"))
    assert [str(node) for _, node in found.arguments] == ["pair.distance * 3600.0"]


def test_label_units_are_measured_by_the_labels_of_both_sides(database: Any) -> None:
    text = "select count(*) as n from I A similarity join I B on B.time >= '2012-01-02' with shape"
    join = joined(database, f"{text} time between '-3 days' and '2 days' group by A.time").source
    assert join.right.box.lo == (2,)
    assert [(one.axis, one.first, len(one.labels)) for one in join.axis_labels] == [(0, 1, 4)]
    assert len(join.offsets.labelled) == 1
    regular = joined(database, "select count(*) as n from T neighbours time between '-2 days' and '36 hours'").source
    assert (regular.offsets.start, regular.offsets.stop, regular.axis_labels) == ((-2, 0), (1, 0), ())


def test_steps_number_the_positions(database: Any) -> None:
    found = joined(database, "select count(*) as n from T neighbours L1(1) step (time 3)")
    assert found.step == (3, 1)
    assert (found.box.lo, found.box.hi) == ((1, 1), (2, 2))
    assert dict(found.labels)["time"].values.astype("M8[D]").astype(str).tolist() == ["2012-01-01", "2012-01-04"]
    assert joined(database, "select count(*) as n from T neighbours L1(1) step 1").step == ()


def test_numbered_cells_are_neighbours_of_one_another(database: Any) -> None:
    join = joined(database, "select count(*) as c from G neighbours L1(1), excluding self").source
    assert (join.offsets.free, join.offsets.excludes_self) == ((False, False, True), True)
    assert join.mapping == tuple(AxisMap(Column(name, "side1")) for name in ("ra", "dec", "n"))


def test_chains_keep_each_join(database: Any) -> None:
    text = f"select A1.r + B.r + A3.r as f {SELF} on A1.r < A2.r with shape L1(1) nearest 2 left similarity join B"
    text += " on B.i = A2.i and B.j = A1.j with shape Linf(2) similarity join A A3 on A3.i = A1.i and A3.j = A2.j"
    found = joined(database, f"{text} and A3.r > B.r with shape L1(0)")
    outer = found.source
    middle, inner = outer.left, outer.left.left
    assert [join.kind for join in (outer, middle, inner)] == ["inner", "left", "inner"]
    assert str(outer.condition) == "side3.r < side4.r" or str(outer.condition) == "side4.r > side3.r"
    assert [str(place.cell) for place in middle.mapping] == ["side2.i", "side1.j"]
    assert inner.nearest.count == 2
    assert found.schema.dimension_names == ("A1_i", "A1_j", "A2_i", "A2_j", "A3_i", "A3_j")
    assert found.schema.attribute_names == ("B_i", "B_j", "f")


ON_TOP = [
    f"select max(f) as m from (select A1.r * A2.s as f {SELF} with shape L1(1)) window (A1_i 3, A2_j centred 3)",
    f"select max(f) as m from (select A1.r * A2.s as f {SELF} with shape L1(1)) X regrid (2, 2, 2, 2)",
    f"select avg(f) as m from (select A1.r * A2.s as f {SELF} with shape L1(1)) group by A1_i",
    f"select f + 1 as g from (select A1.r * A2.s as f {SELF} with shape L1(1)) where f > 3 and A1_i > 2",
    f"select avg(n) as m from (select count(*) as n {SELF} with shape L1(1) {GROUPED}) window (i 3, j 3)",
    f"select count(*) as n, sum(A2.r) as t {SELF} with shape L1(1) {GROUPED} having n > 2",
    f"select sum(A2.r) / count(*) as m {SELF} with shape L1(1) {GROUPED}",
    f"select max(n) as m from (select count(*) as n {SELF} with shape L1(1) {GROUPED}) regrid (2, 2)",
    f"select count(*) from (select count(*) as n {SELF} with shape L1(1) {GROUPED}) neighbours L1(1)",
    "select max(n) as m from (select count(*) as n from A neighbours L1(1)) window (2, 2)",
    "select count(*) from (select r from A anti similarity join B with shape L1(1)) X similarity join B with shape K",
]


@pytest.mark.parametrize("text", ON_TOP, ids=ON_TOP)
def test_other_steps_stand_on_joins(database: Any, text: str) -> None:
    assert any(isinstance(step, BoundJoin) for step in joined(database, text).walk())


EXPLAINED: list[tuple[str, Callable[[str], bool] | str]] = [
    (
        f"select sum(A1.r) as t {SELF} on A2.i = 2 * A1.i + 1 and A2.j = A1.j // 2 - 3 and A1.r < A2.s"
        f" with shape L1(1) {GROUPED}",
        "totals of pairs by A1.i, A1.j: sum(A1.r) as t\n"
        "similarity join on A2.i = 2 * A1.i + 1 and A2.j = A1.j // 2 - 3 and A1.r < A2.s with shape L1(1)",
    ),
    (
        "select count(*) as n from S left similarity join B on B.i = S.i with shape Linf(1) on (i) where S.r < B.r",
        "totals of pairs: count(*) as n\n"
        "left similarity join on B.i = S.i and any B.j with shape Linf(1) on (i) where S.r < B.r",
    ),
    (
        "select avg(r * 2) as m from A neighbours L2(2) min count 3 method naive",
        "neighbours L2(2): avg(r * 2) as m min count 3 method naive",
    ),
    (f"select A1.r + A2.r as c {SELF} with shape L1(1)", "pairs: A1.r + A2.r as c"),
    (
        f"select distance() * 2 as c {SELF} on distance() > 1 with shape K nearest 3 by A1.r - A2.r",
        "pairs: distance() * 2 as c\n"
        "similarity join on A2.i = A1.i and A2.j = A1.j and distance() > 1 with shape K nearest 3 by A1.r - A2.r",
    ),
    ("select count(*) as n from A neighbours L1(1) step (i 2)", "neighbours L1(1) step (2, 1): count(*) as n"),
]


@pytest.mark.parametrize(("text", "lines"), EXPLAINED, ids=[text for text, _ in EXPLAINED])
def test_joins_are_explained_in_the_words_of_the_query(database: Any, text: str, lines: str) -> None:
    said = [step.text for step in database.query(text).explain().steps]
    assert said[: len(lines.split("\n"))] == lines.split("\n")
