"""Queries answered from views: the same results by all ways, random views and queries."""

from __future__ import annotations

import uuid
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import windrow as wr
from windrow.views.answering.candidates import holds

SCHEMA = "<x: float64, c: int64 null, m: int32> [i=0:15:5{wrap}, j=-4:11:4]"
SHAPES = (
    wr.L1(1),
    wr.L1(2),
    wr.L1(3),
    wr.Linf(1),
    wr.Linf(2),
    wr.L2(2),
    wr.Hamming(1),
    wr.Linf(1, on=["i"]),
    wr.Linf(1, on=["j"]),
    wr.offsets(i=(0, 2), j=(-1, 0)),
    wr.offsets(i=(-9, 9), j=(0, 3)),
    wr.offsets(i=(1, 2), j=(1, 2)),
)
MEASURES = {
    "n": "count(*)",
    "nx": "count({}x)",
    "nc": "count({}c)",
    "nm": "count({}m)",
    "sx": "sum({}x)",
    "sc": "sum({}c)",
    "sm": "sum({}m)",
    "ax": "avg({}x)",
    "ac": "avg({}c)",
    "am": "avg({}m)",
    "lx": "min({}x)",
    "hx": "max({}x)",
    "lc": "min({}c)",
    "hm": "max({}m)",
    "vx": "var({}x)",
    "dc": "median({}c)",
    "fm": "first({}m)",
    "rm": "range({}m)",
    "ee": "sum({}m * 2 + 1)",
}
FLOATS = (0.0, 1.5, -2.25, 1e3, np.nan, np.inf, -np.inf, 1e-9)


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[wr.Database]:
    with wr.connect(tmp_path_factory.mktemp("answers"), engine="local") as database:
        yield database


def make_array(db: wr.Database, seed: int, wraps: bool = False) -> wr.Array:
    random = np.random.default_rng(seed)
    array = db.create(f"A{uuid.uuid4().hex[:10]}", SCHEMA.replace("{wrap}", " wrap" if wraps else ""), sparse=True)
    count = int(random.integers(0, 90))
    places = random.choice(256, count, replace=False)
    missing = random.random(count) < 0.3
    array.insert(
        pa.table(
            {
                "i": places // 16,
                "j": places % 16 - 4,
                "x": random.choice(FLOATS, count, p=[0.2, 0.2, 0.2, 0.15, 0.15, 0.03, 0.03, 0.04]),
                "c": pa.array(random.integers(-9, 9, count), mask=missing),
                "m": random.integers(-9, 9, count).astype(np.int32),
            }
        )
    )
    return array


def select(names: list[str], side: str = "") -> str:
    return ", ".join(f"{MEASURES[name].format(side)} as {name}" for name in names)


def same(one: pa.Table, other: pa.Table) -> None:
    """Whole numbers and extremes to the bit, floats that were added in another order nearly."""
    assert one.schema == other.schema
    assert one.num_rows == other.num_rows
    for name in one.column_names:
        left, right = (table.column(name).to_pylist() for table in (one, other))
        if pa.types.is_floating(one.schema.field(name).type) and not name.startswith(("l", "h", "d")):
            left, right = (np.array([np.nan if v is None else v for v in values]) for values in (left, right))
            np.testing.assert_allclose(left, right, rtol=1e-9, atol=1e-9)
        else:
            assert repr(left) == repr(right)


def check(db: wr.Database, text: str, view: str) -> None:
    """The answer by all ways; what can serve does if it has to."""
    query = db.query(text)
    direct = query.using_views("off").compute()
    for use in ("always", "auto"):
        same(direct, query.using_views(use).compute())
        same(
            direct,
            pa.concat_tables([*query.using_views(use).stream(), direct.slice(0, 0)]).sort_by(
                [(name, "ascending") for name in direct.column_names if name in ("i", "j")]
                or [(direct.column_names[0], "ascending")]
            ),
        )
    (note,) = (note for note in query.using_views("always").explain().considered if note.view == view)
    assert note.taken or note.direct is None


names = st.lists(st.sampled_from(sorted(MEASURES)), min_size=1, max_size=5, unique=True)
FEW = settings(
    max_examples=15, deadline=None, phases=[Phase.generate], suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@FEW
@given(
    st.integers(0, 10**6),
    st.booleans(),
    st.sampled_from(SHAPES),
    st.sampled_from(SHAPES),
    names,
    names,
    st.booleans(),
    st.sampled_from(["", " where i between 3 and 9", " where i < 8 and j > 0"]),
)
def test_neighbours(
    db: wr.Database,
    seed: int,
    wraps: bool,
    kept: Any,
    asked: Any,
    more: list[str],
    wanted: list[str],
    alone: bool,
    where: str,
) -> None:
    array = make_array(db, seed, wraps)
    has = list(dict.fromkeys([*more, *wanted, "n", "nx", "nc", "sc"]))
    self_out = ", excluding self" if alone else ""
    db.query(f"create array view V{array.name} as select {select(has)} from {array.name} neighbours {kept}{self_out}")
    inner = f"select {select(wanted)} from {array.name} neighbours {asked}{self_out}"
    check(db, f"select * from ({inner}){where}" if where else inner, f"V{array.name}")
    db.drop(array.name, cascade=True)


@FEW
@given(
    st.integers(0, 10**6),
    st.sampled_from(SHAPES),
    st.sampled_from(SHAPES),
    names,
    names,
    st.sampled_from(["", "left "]),
    st.sampled_from(["", " and A2.m >= A1.m"]),
    st.sampled_from([("A1.i, A1.j"), ("A1.j")]),
    st.sampled_from(["", " where A1.i < 9"]),
    st.sampled_from([0, 2]),
)
def test_joins(
    db: wr.Database,
    seed: int,
    kept: Any,
    asked: Any,
    more: list[str],
    wanted: list[str],
    kind: str,
    on: str,
    by: str,
    where: str,
    shift: int,
) -> None:
    array, other = make_array(db, seed), make_array(db, seed + 1)
    has = list(dict.fromkeys([*more, *wanted, "n", "nc", "sc"]))

    def text(columns: list[str], shape: Any, where: str) -> str:
        return (
            f"select {select(columns, 'A2.')} from {array.name} A1 {kind}similarity join {other.name} A2 "
            f"on A2.i = A1.i + {shift} and A2.j = A1.j{on} with shape {shape}{where} group by {by}"
        )

    db.query(f"create array view V{array.name} as {text(has, kept, '')}")
    check(db, text(wanted, asked, where), f"V{array.name}")
    db.drop(array.name, cascade=True)


@FEW
@given(
    st.integers(0, 10**6),
    names,
    names,
    st.sampled_from([(), ("i",), ("j",), ("i", "j"), ("j", "i")]),
    st.sampled_from(["", " where m > 0"]),
    st.sampled_from(["", "i < 7", "j between 0 and 5", "i > 3 and j < 4"]),
)
def test_totals(
    db: wr.Database, seed: int, more: list[str], wanted: list[str], by: tuple[str, ...], where: str, dimensions: str
) -> None:
    array = make_array(db, seed)
    has = list(dict.fromkeys([*more, *wanted, "n", "nx", "nc", "sx"]))
    db.query(f"create array view V{array.name} as select {select(has)} from {array.name}{where} group by i, j")
    said = " and ".join(part for part in (where.removeprefix(" where "), dimensions) if part)
    grouped = f" group by {', '.join(by)}" if by else ""
    check(db, f"select {select(wanted)} from {array.name}{' where ' + said if said else ''}{grouped}", f"V{array.name}")
    db.drop(array.name, cascade=True)


WAYS = {
    "select count(*) as n, max(x) as h from {A} neighbours L1(1)": "it has these results",
    "select count(*) as n, sum(c) as sc, count(c) as nc, max(x) as hx from {A} neighbours L1(1)": "it is this query",
    "select count(*) as n, avg(c) as a, max(x) as h from {A} neighbours Linf(1)": "its results plus 4 runs",
    "select avg(c) as a from {A} neighbours i between 0 and 1, j between 0 and 0": "its results less 3 runs",
    "select sum(c) as s from {A} neighbours i between 0 and 1, j between 0 and 1": "its results plus 1 run less 2 runs",
    "select i, sum(m) as s from {A} where i > 3 group by i": "it has these results",
    "select sum(m) as s, avg(m) as a, max(m) as h from {A}": "its groups are joined to these",
}
REASONS = {
    "select max(x) as h from {A} neighbours i between 0 and 0": "pairs that are too many cannot be taken out of h, max",
    "select sum(x) as s from {A} neighbours Linf(1)": "s is joined from parts, and it has no count of what s is of",
    "select median(c) as d from {A} neighbours Linf(1)": "d, median, cannot be joined from results of parts",
    "select count(*) as n from {A} where m > 0 group by i": "it is over other cells",
    "select count(*) as n from {A} neighbours L1(1) method naive": "the query asks for a method of computing",
}


@pytest.fixture
def viewed(db: wr.Database) -> Iterator[str]:
    array = make_array(db, 5)
    db.query(
        "create array view near as select count(*) as n, sum(c) as sc, count(c) as nc, max(x) as hx "
        f"from {array.name} neighbours L1(1)"
    )
    db.query(
        f"create array view rows as select i, count(*) as n, sum(m) as s, max(m) as h from {array.name} group by i"
    )
    yield array.name
    db.drop(array.name, cascade=True)


@pytest.mark.parametrize(("text", "why"), [*WAYS.items(), *REASONS.items()])
def test_how_a_view_serves_or_why_it_does_not(db: wr.Database, viewed: str, text: str, why: str) -> None:
    query = db.query(text.format(A=viewed))
    direct = query.using_views("off")
    assert not direct.explain().considered
    said = query.using_views("always").explain().considered
    assert why in {note.why for note in said}
    assert any(note.taken for note in said) == (text in WAYS)
    same(direct.compute(), query.using_views("always").compute())
    assert f"view      {said[0].view}: " in str(query.using_views("always").explain())


def test_a_stale_view_serves_only_if_asked(db: wr.Database) -> None:
    array = make_array(db, 6)
    db.create_view("late", f"select i, count(*) as n from {array.name} group by i", deferred=True)
    query = db.query(f"select i, count(*) as n from {array.name} group by i")
    before = query.compute()
    array.delete("i > 2")
    (note,) = query.using_views("always").explain().considered
    assert not note.taken
    assert note.why.startswith("it is stale")
    assert query.using_views("always").compute().num_rows < before.num_rows
    with pytest.warns(wr.StaleViewWarning, match="late"):
        same(query.using_views("stale").compute(), before)
    db.drop(array.name, cascade=True)


def test_an_old_version_is_served_by_the_view_version_that_holds_for_it(db: wr.Database) -> None:
    array = make_array(db, 7)
    db.create_view("held", f"select i, count(*) as n from {array.name} group by i")
    old = array.version
    array.delete("i > 2")
    for version in (old, array.version):
        query = db.query(f"select i, count(*) as n from {array.name}@{version} group by i")
        (note,) = query.using_views("always").explain().considered
        assert note.taken
        same(query.using_views("off").compute(), query.using_views("always").compute())
    db.drop(array.name, cascade=True)


def test_versions_between_count_only_for_views_that_were_never_behind() -> None:
    one, two = {1: (3, 7)}, {1: (3, 7), 2: (4, 5)}
    assert holds(one, {1: 3}, kept_up=False)
    assert holds(one, {1: 7}, kept_up=False)
    assert not holds(one, {1: 5}, kept_up=False)
    assert holds(one, {1: 5}, kept_up=True)
    assert holds(two, {1: 7, 2: 5}, kept_up=True)
    assert not holds(two, {1: 3, 2: 5}, kept_up=True)


def test_inside_a_batch_its_own_changes_are_seen(db: wr.Database) -> None:
    array = make_array(db, 8)
    db.create_view("batched", f"select i, count(*) as n from {array.name} group by i")
    with db.batch() as batch:
        batch.delete(array.name, "i > 2")
        found = batch.query(f"select i, count(*) as n from {array.name} group by i").using_views("always").compute()
        assert max(found.column("i").to_pylist(), default=0) <= 2
    db.drop(array.name, cascade=True)


def test_sums_that_are_too_large_in_part_are_right_in_all(db: wr.Database) -> None:
    array = db.create(f"A{uuid.uuid4().hex[:10]}", "<c: int64> [i=0:9:5]", sparse=True)
    large = 2**62
    array.insert({"i": range(6), "c": [-large, -large, large - 1, large - 1, large - 1, -large]})
    db.create_view("large", f"select count(*) as n, sum(c) as s from {array.name} neighbours i between -1 and 0")
    query = db.query(f"select sum(c) as s from {array.name} neighbours i between -1 and 3")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        same(query.using_views("off").compute(), query.using_views("always").compute())
    db.drop(array.name, cascade=True)


def test_dense_windows_and_settings(db: wr.Database) -> None:
    array = db.create(f"A{uuid.uuid4().hex[:10]}", "<v: float32> [i=0:19:7, j=0:9:4]")
    array.write(np.random.default_rng(3).normal(size=(20, 10)).astype("f4"))
    db.create_view("smooth", array.window(i=3, j=3).agg(m=wr.max("v"), p=wr.median("v")))
    query = db.query(f"select * from (aggr {array.name} median(v) as q by window(3, 3)) where i between 4 and 9")
    assert query.using_views("off").compute().equals(query.using_views("always").compute())
    assert "smooth: used, it has these results" in str(query.explain())
    db.query("set views = off")
    assert "smooth" not in str(query.explain())
    db.query("set views = auto")
    with pytest.raises(wr.DataError, match="one of"):
        db.query("set views = sometimes")
    with pytest.raises(wr.DataError, match="these ways"):
        query.using_views("sometimes")
    db.drop(array.name, cascade=True)
