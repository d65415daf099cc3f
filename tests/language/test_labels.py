"""In expressions a labelled dimension is its label: random labels and conditions, against plain Python."""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from windrow.errors import Error
from windrow.model.coordinates import LabelCoordinate
from windrow.model.labels import Labels

Connect = Callable[..., Any]
Row = dict[str, Any]

EPOCH = datetime(2012, 1, 30)
OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def written(value: Any) -> str:
    if isinstance(value, datetime):
        return f"timestamp '{value.isoformat(' ')}'"
    return f"'{value}'" if isinstance(value, str) else repr(value)


@st.composite
def problems(draw: st.DrawFn) -> dict[str, Any]:
    kind = draw(st.sampled_from(["float", "int", "datetime", "string"]))
    size = draw(st.integers(1, 9))
    numbers = draw(st.lists(st.integers(-12, 12), min_size=size, max_size=size, unique=draw(st.booleans())))
    order = draw(st.sampled_from(["up", "down", "none"]))
    numbers = numbers if order == "none" else sorted(numbers, reverse=order == "down")
    make: dict[str, Callable[[int], Any]] = {
        "float": lambda n: n / 2,
        "int": lambda n: n,
        "datetime": lambda n: EPOCH + timedelta(hours=7 * n),
        "string": lambda n: f"s{n + 12:02}",
    }
    return {
        "kind": kind,
        "labels": [make[kind](n) for n in numbers],
        "wanted": [make[kind](n) for n in draw(st.lists(st.integers(-12, 12), min_size=2, max_size=3))],
        "there": [make[kind](n) for n in draw(st.lists(st.sampled_from(numbers), min_size=1, max_size=3))],
        "low": draw(st.integers(-3, 3)),
        "chunk": draw(st.integers(1, size)),
        "sparse": draw(st.booleans()),
        "seed": draw(st.integers(0, 2**32)),
    }


def stored(database: Any, problem: dict[str, Any]) -> tuple[str, list[Row]]:
    """An array with labels along d and none along e, and its cells one by one."""
    labels, low, size = problem["labels"], problem["low"], len(problem["labels"])
    schema = f"<a: int64> [d={low}:{low + size - 1}:{problem['chunk']}, e=0:2:2]"
    name = f"A{uuid.uuid4().hex}"
    array = database.create(name, schema, sparse=problem["sparse"], labels={"d": labels})
    random = np.random.default_rng(problem["seed"])
    values = random.integers(-5, 6, (size, 3))
    there = random.random((size, 3)) < (0.6 if problem["sparse"] else 2)
    rows = [
        {"d": low + k, "e": e, "a": int(values[k, e]), "label": labels[k]}
        for k in range(size)
        for e in range(3)
        if there[k, e]
    ]
    if not problem["sparse"]:
        array.write({"a": values})
    elif rows:
        array.insert(pa.table({key: [row[key] for row in rows] for key in ("d", "e", "a")}))
    return name, rows


def conditions(problem: dict[str, Any]) -> dict[str, Callable[[Row], bool]]:
    """Conditions as text, and what they mean."""
    x, y, *_ = problem["wanted"]
    there = problem["there"]
    found: dict[str, Callable[[Row], bool]] = {}
    for operator, compare in OPERATORS.items():
        if operator in ("=", "<>"):
            found[f"d {operator} {written(there[0])}"] = lambda row, c=compare: c(row["label"], there[0])
            continue
        found[f"d {operator} {written(x)}"] = lambda row, c=compare: c(row["label"], x)
        found[f"not ({written(x)} {operator} label(d)) and e < 2"] = lambda row, c=compare: (
            not c(x, row["label"]) and row["e"] < 2
        )
    low, high = sorted([x, y])
    found[f"d between {written(low)} and {written(high)}"] = lambda row: low <= row["label"] <= high
    found[f"d not between {written(low)} and {written(high)} or a > 2"] = lambda row: (
        not low <= row["label"] <= high or row["a"] > 2
    )
    listed = ", ".join(map(written, there))
    found[f"d in ({listed})"] = lambda row: row["label"] in there
    found[f"d not in ({listed}) and cell(d) > {problem['low']}"] = lambda row: (
        row["label"] not in there and row["d"] > problem["low"]
    )
    if problem["kind"] in ("float", "int"):
        found["d * 2 - 1 > a"] = lambda row: row["label"] * 2 - 1 > row["a"]
        found["abs(d) <= 2 and e = 1"] = lambda row: abs(row["label"]) <= 2 and row["e"] == 1
        found["cell(d) % 2 = 0 and d < e"] = lambda row: row["d"] % 2 == 0 and row["label"] < row["e"]
    if problem["kind"] == "datetime":
        found["day(d) = 30 and month(d) = 1"] = lambda row: (row["label"].day, row["label"].month) == (30, 1)
        found["d >= '2012-01-31' and d < '2012-02'"] = lambda row: row["label"].date() == datetime(2012, 1, 31).date()
        found["d > '2012-01' or hour(d) > 20"] = lambda row: row["label"].month > 1 or row["label"].hour > 20
    if problem["kind"] == "string":
        found["ends_with(d, '2') or d || 'x' > 's11x'"] = lambda row: (
            row["label"].endswith("2") or row["label"] + "x" > "s11x"
        )
    return found


def places(found: Any) -> list[tuple[int, int]]:
    if isinstance(found, pa.Table):
        return sorted(zip(found["d"].to_pylist(), found["e"].to_pylist(), strict=True))
    # Coordinates of a Dataset are labels, which may be the same: cells are known by what was computed.
    return sorted((int(d), int(e)) for d, e in zip(found["dn"].values.ravel(), found["en"].values.ravel(), strict=True))


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(problem=problems())
def test_conditions_on_labels_choose_the_cells_that_have_them(connect: Connect, problem: dict[str, Any]) -> None:
    database = connect(workers=2)
    name, rows = stored(database, problem)
    for text, holds in conditions(problem).items():
        wanted = sorted((row["d"], row["e"]) for row in rows if holds(row))
        query = database.query(f"select cell(d) as dn, e as en from {name} where {text}")
        assert places(query.compute()) == wanted, text
        total = database.query(f"select count(*) as n, max(d) as m from {name} where {text}").compute()
        n, m = (total[key][0].as_py() if isinstance(total, pa.Table) else total[key].values.item() for key in "nm")
        assert n == len(wanted), text
        if wanted and problem["kind"] != "datetime":
            assert m == max(row["label"] for row in rows if holds(row)), text


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(problem=problems(), data=st.data())
def test_changes_reach_the_same_cells(connect: Connect, problem: dict[str, Any], data: st.DataObject) -> None:
    database = connect(workers=2)
    name, rows = stored(database, problem)
    text, holds = data.draw(st.sampled_from(sorted(conditions(problem).items(), key=lambda item: item[0])))
    array = database.array(name)
    value = "cell(d) * 100 + e" if problem["kind"] in ("datetime", "string") else "cast(floor(d) as int64) * 100 + e"
    report = array.update({"a": value}, where=text)
    assert report.cells == sum(map(holds, rows))
    for row in rows:
        if holds(row):
            whole = row["d"] if problem["kind"] in ("datetime", "string") else math.floor(row["label"])
            row["a"] = whole * 100 + row["e"]
    found = database.query(f"select a, cell(d) as dn, e as en from {name}").compute()
    if problem["sparse"]:
        got = {(row["d"], row["e"]): row["a"] for row in found.to_pylist()}
    else:
        cells = zip(*(found[key].values.ravel().tolist() for key in ("dn", "en", "a")), strict=True)
        got = {(d, e): a for d, e, a in cells}
    assert got == {(row["d"], row["e"]): row["a"] for row in rows}
    if problem["sparse"]:
        again = [row for row in rows if conditions(problem)[text](row)]
        assert array.delete(text).cells == len(again)
        assert array.read().num_rows == len(rows) - len(again)


@settings(max_examples=200, deadline=None)
@given(problem=problems())
def test_runs_hold_exactly_the_labels_that_compare_so(problem: dict[str, Any]) -> None:
    labels, low = problem["labels"], problem["low"]
    coordinate = LabelCoordinate("d", low, Labels.of(labels))
    span = (low + 1, low + len(labels) - 1)
    for operator, compare in OPERATORS.items():
        if operator in ("=", "<>") and problem["wanted"][0] not in labels:
            with pytest.raises(Error, match="no such label"):
                coordinate.where(operator, problem["wanted"][0], span)
            continue
        runs = coordinate.where(operator, problem["wanted"][0], span)
        assert all(first <= last for first, last in runs)
        got = [cell for first, last in runs for cell in range(first, last + 1)]
        inside = range(span[0], span[1] + 1)
        assert got == [cell for cell in inside if compare(labels[cell - low], problem["wanted"][0])]


@pytest.mark.spark
@pytest.mark.parametrize("sparse", [False, True])
def test_labels_are_labels_on_spark_too(connect: Connect, spark_session: Any, sparse: bool) -> None:
    database = connect(engine="spark", spark=spark_session)
    for kind, labels in {
        "float": [2.5, 1.0, -3.0, 4.5],
        "datetime": [EPOCH + timedelta(days=k) for k in (3, 1, 2, 0)],
        "string": ["b", "d", "a", "c"],
    }.items():
        problem = {"labels": labels, "low": -1, "chunk": 2, "sparse": sparse, "seed": 5, "kind": kind}
        name, rows = stored(database, problem)
        wanted = sorted(labels)[1:3]
        where = f"d between {written(wanted[0])} and {written(wanted[1])} and a < 99"
        found = database.query(f"select d as label, cell(d) as dn, e as en from {name} where {where}").compute()
        got = sorted((row["dn"], row["en"], row["label"]) for row in found.to_pylist())
        assert got == sorted((r["d"], r["e"], r["label"]) for r in rows if wanted[0] <= r["label"] <= wanted[1])


def test_cells_without_a_label_yet_have_none(connect: Connect) -> None:
    database = connect()
    array = database.create("S", "<a: int64> [i=0:*:4]", sparse=True)
    array.insert(pa.table({"i": [0, 1], "a": [1, 2]}))
    array.set_labels("i", [10.0, 20.0])
    array.insert(pa.table({"i": [2], "a": [3]}))
    found = database.query("select i as x, a from S").compute().to_pylist()
    assert [row["x"] for row in found] == [10.0, 20.0, None]
    assert database.query("select count(*) as n from S where i > 5").compute()["n"][0].as_py() == 2


def test_gridded_dimensions_are_their_coordinates(connect: Connect) -> None:
    database = connect()
    grid = {"ra": (0, 360, "1 degree"), "time": ("2024-01-01", None, "1 day")}
    sky = database.create("sky", "<m: float64> [ra, time]", grid=grid)
    sky.insert({"ra": [10.2, 150.7, 359.9], "time": ["2024-01-01", "2024-01-02", "2024-02-01"], "m": [1.0, 2.0, 3.0]})
    select = "select ra as x, cell(ra) as k, time as t from sky where "
    for where, wanted in {
        "ra > 100": [150.5, 359.5],
        "ra >= 150.2 and ra < 200": [150.5],
        "cell(ra) = 11": [10.5],
        "ra = 150": [150.5],
        "time < '2024-02'": [10.5, 150.5],
        "cos(radians(ra)) > 0.9 and month(time) = 1": [10.5],
        "ra not between 100 and 200": [10.5, 359.5],
    }.items():
        found = database.query(select + where).compute()
        assert found["x"].to_pylist() == wanted, where
        assert found["k"].to_pylist() == [math.ceil(x) for x in wanted]
    assert found["t"].to_pylist()[0] == datetime(2024, 1, 1, 12)
    with pytest.raises(Error, match=r"the label of time is a moment, got 62.*cell\(time\)"):
        sky.delete("time = 62")
    assert sky.delete("ra > 100 and time = '2024-01-02'").cells == 1


@pytest.mark.parametrize("sparse", [False, True])
def test_an_expression_of_a_latitude_means_the_latitude(connect: Connect, sparse: bool) -> None:
    """As the same comparison without arithmetic does; area means came out plausible and wrong by cell numbers."""
    lat, t = np.arange(60.0, -61.0, -15.0), np.arange(18.0).reshape(2, 9)
    database = connect()
    array = database.create("T", "<t: float64> [time=1:2, lat=1:9:4]", sparse=sparse, labels={"lat": lat})
    rows, columns = np.mgrid[1:3, 1:10].reshape(2, -1)
    array.insert(pa.table({"time": rows, "lat": columns, "t": t.ravel()})) if sparse else array.write(t)

    def ask(text: str) -> list[float]:
        return np.asarray(database.query(text).compute()["x"]).ravel().tolist()

    (mean,) = ask("select wavg(t, cos(radians(lat))) as x from T")
    assert mean == pytest.approx(np.average(t.mean(axis=0), weights=np.cos(np.radians(lat))), rel=1e-12)
    wanted = t[:, lat > 30.0].ravel().tolist()
    for where in ("lat > 30.0", "lat*1.0 > 30.0", "30.0 < lat + 0", "cos(radians(lat)) < 0.8 and lat > 0"):
        assert sorted(ask(f"select t as x from T where {where}")) == wanted, where
    assert ask("select sum(t) as x from T where lat*1.0 > 30.0") == [sum(wanted)]
