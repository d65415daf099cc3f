"""Window queries over stored arrays: any chunks, windows and types, in process and on Spark, against brute force."""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import window_oracle as oracle
import windrow as wr

Connect = Callable[..., Any]

NUMBERS = {
    "count": wr.count("a"),
    "count_all": wr.count(),
    "sum": wr.sum("a"),
    "avg": wr.avg("a"),
    "var": wr.var("a"),
    "std_pop": wr.std_pop("a"),
    "min": wr.min("a"),
    "max": wr.max("a"),
    "percentile": wr.percentile("a", 70),
    "quantile_disc": wr.quantile_disc("a", 0.3),
    "quantile_cont": wr.quantile_cont("a", 0.7),
    "quantile_index": wr.quantile_index("a", 0.7),
    "median": wr.median("a"),
    "count_distinct": wr.count_distinct("a"),
    "mode": wr.mode("a"),
    "range": wr.range("a"),
    "first": wr.first("a"),
    "last": wr.last("a"),
    "skew": wr.skew("a"),
    "kurtosis": wr.kurtosis("a"),
}
COUNTED = ("count", "count_all", "count_distinct")
PICKED = ("min", "max", "mode", "first", "last", "percentile", "quantile_disc", "quantile_index")
ORDERED = {name: NUMBERS[name] for name in (*COUNTED, *PICKED)}
BY_TYPE = {"string": ORDERED, "datetime": ORDERED}
TYPES = ["float64", "float32", "int64 null", "uint8", "bool", "bool null", "datetime null", "string null"]
ROUNDED = ("sum", "avg", "var", "std_pop", "quantile_cont", "median", "skew", "kurtosis")


@st.composite
def problems(draw: st.DrawFn, most_cells: int) -> dict[str, Any]:
    ndim = draw(st.integers(1, 4))
    side = max(2, int(most_cells ** (1 / ndim)))
    shape = [draw(st.integers(1, side)) for _ in range(ndim)]
    starts = [draw(st.integers(-side, 2)) for _ in range(ndim)]
    return {
        "shape": shape,
        "chunks": [draw(st.integers(1, extent)) for extent in shape],
        "low": [draw(st.integers(-3, 3)) for _ in range(ndim)],
        "extents": [(start, start + draw(st.integers(0, side + 2))) for start in starts],
        "wraps": [draw(st.booleans()) and draw(st.booleans()) for _ in range(ndim)],
        "steps": [draw(st.sampled_from([1, 1, 2, 3])) for _ in range(ndim)],
        "boundary": draw(st.sampled_from(["clip", "clip", "drop"])),
        "min_count": draw(st.sampled_from([0, 0, 1, 3])),
        "type": draw(st.sampled_from(TYPES)),
        "content": draw(st.sampled_from(["ties", "varied", "constant", "missing", "infinite"])),
        "seed": draw(st.integers(0, 2**32)),
        "method": draw(st.sampled_from(["auto", "auto", "incremental", "naive"])),
    }


def content(problem: dict[str, Any]) -> Any:
    """Values, None where missing."""
    random = np.random.default_rng(problem["seed"])
    kind = problem["type"].split()[0]
    shape = tuple(problem["shape"])
    whole = random.integers(0, 2 if kind == "bool" else 5, shape)
    if problem["content"] == "constant":
        whole[:] = 1
    if kind.startswith("float"):
        values = whole + (random.normal(size=shape) if problem["content"] == "varied" else 0)
        objects = values.astype(kind).astype(float).astype(object)
        if problem["content"] == "infinite":
            objects[random.random(shape) < 0.1] = math.inf
            objects[random.random(shape) < 0.05] = -math.inf
    elif kind == "datetime":
        objects = (np.datetime64("2012-01-01", "us") + whole * np.timedelta64(1, "D")).astype(object)
    elif kind == "string":
        objects = np.array(["ä", "b", "", "long text", "b b"], object)[whole]
    else:
        objects = whole.astype(bool).astype(object) if kind == "bool" else whole.astype(object)
    if kind.startswith("float") or "null" in problem["type"]:
        objects[random.random(shape) < (1.0 if problem["content"] == "missing" else 0.2)] = None
    return objects


def stored(db: Any, problem: dict[str, Any], objects: Any) -> Any:
    sides = zip(problem["low"], problem["shape"], problem["chunks"], strict=True)
    named = ", ".join(f"d{k}={lo}:{lo + n - 1}:{chunk}" for k, (lo, n, chunk) in enumerate(sides))
    array = db.create(f"A{uuid.uuid4().hex}", f"<a: {problem['type']}> [{named}]")
    if problem["type"].startswith("float"):
        values = np.where(objects == None, np.nan, objects).astype(problem["type"])  # noqa: E711
    else:
        values = objects
    array.write({"a": values})
    return array


def expected(problem: dict[str, Any], objects: Any, wanted: tuple[str, float | None]) -> oracle.Cells:
    def reach(extent: tuple[int, int], size: int, wraps: bool) -> Callable[[int], list[int]]:
        def covered(position: int) -> list[int]:
            reached = range(position + extent[0], position + extent[1] + 1)
            if wraps:
                return sorted({cell % size for cell in reached})
            return [cell for cell in reached if 0 <= cell < size]

        return covered

    def whole(extent: tuple[int, int], size: int, wraps: bool) -> Callable[[int], bool]:
        return lambda position: wraps or (position + extent[0] >= 0 and position + extent[1] < size)

    per_axis = list(zip(problem["extents"], problem["shape"], problem["wraps"], strict=True))
    return oracle.windows(
        dict(np.ndenumerate(objects)),
        problem["shape"],
        [reach(*axis) for axis in per_axis],
        problem["steps"],
        wanted,
        whole_only=[whole(*axis) for axis in per_axis] if problem["boundary"] == "drop" else None,
        min_count=problem["min_count"],
    )


def query(array: Any, problem: dict[str, Any]) -> tuple[Any, dict[str, wr.Aggregate]]:
    aggregates = BY_TYPE.get(problem["type"].split()[0], NUMBERS)
    extents = {}
    for k, (extent, wraps) in enumerate(zip(problem["extents"], problem["wraps"], strict=True)):
        extents[f"d{k}"] = wr.between(*extent).wrap() if wraps else wr.between(*extent)
    steps = {f"d{k}": step for k, step in enumerate(problem["steps"])}
    window = array.window(extents, step=steps, boundary=problem["boundary"], min_count=problem["min_count"])
    return window.agg(**aggregates, method=problem["method"]), aggregates


def objects_of(values: Any) -> Any:
    return (values.astype("M8[us]") if values.dtype.kind == "M" else values).astype(object)


def check(problem: dict[str, Any], objects: Any, result: Any, aggregates: dict[str, wr.Aggregate]) -> None:
    scale = max([abs(v) for v in objects.reshape(-1) if isinstance(v, float) and math.isfinite(v)], default=1.0)
    for name, aggregate in aggregates.items():
        values = objects_of(result[name].values)
        valid = result[f"{name}__valid"].values if f"{name}__valid" in result else np.ones(values.shape, bool)
        for place, wanted in expected(problem, objects, (name, aggregate.parameter)).items():
            got: Any = values[place]
            if not valid[place] or (isinstance(got, float) and math.isnan(got)):
                got = None
            if isinstance(wanted, float) and math.isnan(wanted):
                wanted = None
            if name in ROUNDED and wanted is not None and got is not None and math.isfinite(wanted):
                assert got == pytest.approx(wanted, rel=1e-9, abs=1e-9 * scale), (name, place)
            else:
                assert got == wanted, (name, place)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(problem=problems(most_cells=150))
def test_windows_equal_brute_force(connect: Connect, problem: dict[str, Any]) -> None:
    objects = content(problem)
    array = stored(connect(), problem, objects)
    asked, aggregates = query(array, problem)
    check(problem, objects, asked.compute(), aggregates)


@pytest.mark.spark
@settings(
    max_examples=10,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # shrinking on Spark takes minutes
)
@given(problem=problems(most_cells=80))
def test_windows_on_spark_equal_brute_force(connect: Connect, spark_session: Any, problem: dict[str, Any]) -> None:
    objects = content(problem)
    db = connect(engine="spark", spark=spark_session)
    array = stored(db, problem, objects)
    asked, aggregates = query(array, problem)
    name = f"R{uuid.uuid4().hex}"
    asked.store(name)
    check(problem, objects, db.array(name).read(), aggregates)


# Label units


@st.composite
def label_problems(draw: st.DrawFn) -> dict[str, Any]:
    gaps = draw(st.lists(st.integers(1, 9), min_size=1, max_size=25))
    return {
        "hours": np.cumsum([0, *gaps]).tolist(),
        "anchor": draw(st.sampled_from(["corner", "centred", "trailing", "within"])),
        "amount": draw(st.integers(1, 30)),
        "decreasing": draw(st.booleans()),
        "boundary": draw(st.sampled_from(["clip", "drop"])),
        "chunk": draw(st.integers(1, 10)),
        "step": draw(st.sampled_from([1, 1, 2])),
        "method": draw(st.sampled_from(["auto", "incremental", "naive"])),
    }


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(problem=label_problems())
def test_windows_in_label_units_see_the_labels_within(connect: Connect, problem: dict[str, Any]) -> None:
    hours = problem["hours"][::-1] if problem["decreasing"] else problem["hours"]
    count, amount = len(hours), problem["amount"]
    db = connect()
    times = [np.datetime64("2012-01-01", "us") + np.timedelta64(h, "h") for h in hours]
    array = db.create(f"A{uuid.uuid4().hex}", f"<a: int64> [time=1:{count}:{problem['chunk']}]", labels={"time": times})
    values = np.random.default_rng(0).integers(0, 50, count)
    array.write({"a": values})
    extent = getattr(wr, problem["anchor"])(f"{amount} hours")
    window = array.window(time=extent, step=problem["step"], boundary=problem["boundary"])
    result = window.agg(n=wr.count(), p=wr.percentile("a", 70), s=wr.sum("a"), method=problem["method"]).compute()

    def sees(distance: int) -> bool:
        return {
            "corner": 0 <= distance < amount,
            "trailing": -amount < distance <= 0,
            "centred": -amount <= 2 * distance < amount,
            "within": abs(distance) <= amount,
        }[problem["anchor"]]

    regular = len(set(np.diff(hours))) == 1
    for index in range(0, count, problem["step"]):
        inside = [values[k].item() for k in range(count) if sees(hours[k] - hours[index])]
        place = index // problem["step"]
        if problem["boundary"] == "drop":
            if regular:
                continue  # counted in cells; the other tests see to that
            before, after = {
                "corner": (0, amount),
                "trailing": (amount, 0),
                "centred": (amount / 2, amount / 2),
                "within": (amount, amount),
            }[problem["anchor"]]
            whole = hours[index] - before >= min(hours) and hours[index] + after <= max(hours)
            assert bool(result["p__valid"].values[place]) == whole
            if not whole:
                continue
        assert result["n"].values[place] == len(inside)
        assert result["p"].values[place] == oracle.aggregate("percentile", 70.0, inside, len(inside))
        assert result["s"].values[place] == sum(inside)


def test_thirty_days_of_daily_data_are_thirty_cells(connect: Connect) -> None:
    days = np.datetime64("2012-01-01") + np.arange(60)
    array = connect().create("T", "<t: float32> [time=1:60]", labels={"time": days})
    array.write({"t": np.arange(60, dtype=np.float32)})
    for by_label, by_cells in (
        (wr.trailing("30 days"), wr.trailing(30)),
        (wr.corner("30 days"), wr.corner(30)),
        (wr.centred("4 days"), wr.centred(4)),
        (wr.centred("5 days"), wr.centred(5)),
        (wr.within("2 days"), wr.between(-2, 2)),
    ):
        left, right = (array.window(time=e).agg(n=wr.count(), s=wr.sum("t")).compute() for e in (by_label, by_cells))
        assert left.equals(right)


# Queries as users meet them


def matrix(db: Any) -> Any:
    array = db.create("A", "<a: int64, b: float64> [i=1:4:2, j=1:5:2]")
    values = np.array([[4, 7, 3, 1, 8], [5, 2, 6, 2, 2], [3, 9, 3, 2, 4], [7, 7, 8, 2, 6]])
    array.write({"a": values, "b": values / 2})
    return array


def test_regrid_makes_blocks_side_by_side(connect: Connect) -> None:
    result = matrix(connect()).regrid(i=2, j=2).agg(m=wr.min("a"), n=wr.count()).compute()
    assert result["m"].values.tolist() == [[2, 1, 2], [3, 2, 4]]
    assert result["n"].values.tolist() == [[4, 4, 2], [4, 4, 2]]
    assert result["i"].values.tolist() == [1, 2]


def test_a_query_reads_the_version_its_array_is_pinned_to(connect: Connect) -> None:
    array = matrix(connect())
    array.update({"a": "0"})
    assert array.at(version=1).window(i=4, j=5).agg(m=wr.max("a")).compute()["m"].values[0, 0] == 9
    assert array.window(i=4, j=5).agg(m=wr.max("a")).compute()["m"].values[0, 0] == 0


def test_a_dimension_may_be_called_like_an_option(connect: Connect) -> None:
    array = connect().create("S", "<a: int64> [step=1:4, method=1:2]")
    array.write({"a": np.arange(8).reshape(4, 2)})
    result = array.window({"step": 2, "method": 2}).agg(m=wr.max("a")).compute()
    assert result["m"].values[:, 0].tolist() == [3, 5, 7, 7]


def test_storing_into_an_array_that_is_there_makes_a_version_of_it(connect: Connect) -> None:
    db = connect()
    array = matrix(db)
    query = array.window(i=2, j=2).agg(m=wr.max("a"))
    assert query.store("B").versions == {"B": 1}
    array.update({"a": "a + 1"})
    assert query.store("B").versions == {"B": 2}
    difference = db.array("B").read()["m"] - db.array("B@1").read()["m"]
    assert (difference == 1).all()


@pytest.mark.parametrize(
    ("ask", "error", "said"),
    [
        (lambda a: a.window(i=0), wr.SchemaError, "at least one cell"),
        (lambda a: a.window(i=-2), wr.SchemaError, "at least one cell"),
        (lambda a: a.window(k=2), wr.UnknownNameError, "no such dimension"),
        (lambda a: a.window(i=2).agg(m=wr.max("c")), wr.UnknownNameError, "no such column"),
        (lambda a: a.window(i=2).agg(m=wr.percentile("a", 140)), wr.DataError, "between 0 and 100"),
        (lambda a: a.window(i=2).agg(), wr.DataError, "nothing to compute"),
        (lambda a: a.window(i=2).agg(m="max(a)"), wr.DataError, "not an aggregate"),
        (lambda a: a.window(i=2).agg(m=wr.max("a"), method="best"), wr.DataError, "method must be"),
        (lambda a: a.window(i=2, boundary="reflect"), wr.SchemaError, "boundary"),
        (lambda a: a.window(i=2, step=0), wr.SchemaError, "step"),
        (lambda a: a.window(i=wr.trailing("3 days")).agg(m=wr.max("a")), wr.SchemaError, "no labels"),
        (lambda a: a.regrid(i=0), wr.SchemaError, "at least one cell"),
    ],
)
def test_mistakes_are_found_before_any_work(connect: Connect, ask: Any, error: type[wr.Error], said: str) -> None:
    with pytest.raises(error, match=said):
        ask(matrix(connect()))


def test_types_an_aggregate_cannot_take_and_wraps_without_an_end(connect: Connect) -> None:
    db = connect()
    words = db.create("W", "<w: string> [i=1:*]")
    with pytest.raises(wr.DataError, match="sum cannot take values of type string"):
        words.window(i=2).agg(s=wr.sum("w"))
    with pytest.raises(wr.SchemaError, match=r"wrap|periodic"):
        words.window(i=wr.centred(3).wrap())


def test_an_overflowing_sum_leaves_nothing_behind(connect: Connect, engine: str, request: Any) -> None:
    session = request.getfixturevalue("spark_session") if engine == "spark" else None
    db = connect(engine=engine, spark=session)
    array = db.create("A", "<a: int64> [i=1:4:1]")
    array.write({"a": np.full(4, 2**62)})
    with pytest.raises(wr.DataError, match="overflows int64"):
        array.window(i=3).agg(s=wr.sum("a")).store("S")
    assert "S" not in db


def test_explain_tells_how(connect: Connect) -> None:
    array = matrix(connect())
    query = array.window(i=2, j=wr.trailing(3)).agg(m=wr.max("a"), p=wr.percentile("b", 70), method="incremental")
    told = query.explain()
    assert told.halo_factor >= 1
    assert told.memory > 0
    assert told.engine == "local"
    strategies = {name: strategy for name, _, strategy in told.strategies}
    assert strategies["m"].sweep == strategies["p"].sweep == 1
    for said in ("heap", "search tree", "sweeps j", "blocks", "halo factor", "memory", "estimate"):
        assert said in str(told)
    assert "block scans" in str(array.window(i=2).agg(m=wr.max("a")).explain())
    assert "every cell of every window" in str(array.window(i=2).agg(m=wr.max("a"), method="naive").explain())


def test_a_long_window_over_a_time_chunked_array_reads_little_more_than_once(connect: Connect) -> None:
    """The normal case: chunks of a few steps in time, a window far longer than a chunk."""
    array = connect(workers=2).create("T", "<t: float32> [lat=1:8:8, time=1:4000:20]")
    told = array.window(time=wr.trailing(120)).agg(p=wr.percentile("t", 70)).explain()
    assert told.halo_factor < 1.25
    assert told.blocks > 2


def test_plots(connect: Connect, tmp_path: Any) -> None:
    query = matrix(connect()).window(i=2, j=2).agg(m=wr.max("a"), p=wr.percentile("b", 70))
    for name, options in {"map": {}, "line": {"kind": "line"}, "bars": {"kind": "histogram", "attribute": "p"}}.items():
        assert query.plot(tmp_path / f"{name}.png", **options).read_bytes().startswith(b"\x89PNG")
    for options, error in (({"kind": "pie"}, wr.DataError), ({"attribute": "q"}, wr.UnknownNameError)):
        with pytest.raises(error):
            query.plot(tmp_path / "bad.png", **options)
    with pytest.raises(wr.DataError):
        query.plot(tmp_path / "bad.nothing")
    with pytest.raises(wr.DataError):
        query.plot(tmp_path / "none" / "bad.png")
    assert not list(tmp_path.glob("bad*"))


# User-defined aggregates


def spread(**functions: Any) -> Any:
    """An aggregate made of some of these functions."""
    usual = {
        "empty": lambda: (np.inf, -np.inf),
        "add": lambda state, x: (min(state[0], x), max(state[1], x)),
        "merge": lambda a, b: (min(a[0], b[0]), max(a[1], b[1])),
        "result": lambda state: state[1] - state[0],
    }
    return wr.aggregate("spread")(type("Spread", (), {**usual, **functions}))


def test_user_aggregates_run_on_stored_arrays(connect: Connect, engine: str, request: Any) -> None:
    session = request.getfixturevalue("spark_session") if engine == "spark" else None
    array = matrix(connect(engine=engine, spark=session))
    window = array.window(i=wr.centred(3), j=2)
    found = window.agg(s=spread()("b"), low=wr.min("b"), high=wr.max("b")).compute()
    assert (found["s"] == found["high"] - found["low"]).all()
    assert "add and merge" in str(window.agg(s=spread()("b")).explain())


@pytest.mark.parametrize(
    "functions",
    [
        {"add": lambda state, x: open("file")},  # noqa: SIM115
        {"result": lambda state: state[0] + undefined_name},  # type: ignore[name-defined]  # noqa: F821
        {"add": lambda state, x: 1 // 0},
        {"result": lambda state: "text"},
    ],
)
def test_user_aggregates_that_cannot_work_fail_before_any_work(connect: Connect, functions: dict[str, Any]) -> None:
    db = connect()
    array = matrix(db)
    with pytest.raises(wr.DataError, match="user-defined aggregate"):
        array.window(i=2).agg(s=spread(**functions)("b"))
    assert [found.name for found in db.arrays()] == ["A"]


def test_a_user_aggregate_that_throws_halfway_leaves_nothing(connect: Connect) -> None:
    def add(state: Any, x: Any) -> Any:
        if x > 4:
            raise ValueError("too large")
        return (state[0], x)

    db = connect()
    array = matrix(db)
    with pytest.raises(wr.DataError, match="too large"):
        array.window(i=2).agg(s=spread(add=add)("b")).store("S")
    assert "S" not in db


def test_windows_on_a_sparse_array(connect: Connect, engine: str, request: Any) -> None:
    session = request.getfixturevalue("spark_session") if engine == "spark" else None
    db = connect(engine=engine, spark=session)
    array = db.create("S", "<v: int64> [x=1:10:3, y=1:10:3]", sparse=True)
    array.insert({"x": [1, 2, 2, 9], "y": [1, 1, 3, 9], "v": [5, 7, 1, 4]})
    query = array.window(x=wr.centred(3), y=wr.centred(3)).agg(n=wr.count(), m=wr.max("v"))
    assert query.compute().to_pydict() == {"x": [1, 2, 2, 9], "y": [1, 1, 3, 9], "n": [2, 2, 1, 1], "m": [7, 7, 1, 4]}
    query.store("N")
    assert db.array("N").sparse
    assert db.array("N").read().equals(query.compute())
    blocks = array.regrid(x=5, y=5).agg(n=wr.count()).compute()
    assert blocks.to_pydict() == {"x": [1, 2], "y": [1, 2], "n": [3, 1]}
    assert "count" in str(query.explain())


@pytest.mark.parametrize("sparse", [False, True])
def test_a_stream_brings_every_result_once(connect: Connect, sparse: bool) -> None:
    db = connect(workers=2)
    array = db.create("A", "<a: int64> [i=1:60:5, j=1:40:5]", sparse=sparse)
    values = np.random.default_rng(0).integers(0, 99, (60, 40))
    if sparse:
        i, j = np.nonzero(values > 50)
        array.insert({"i": i + 1, "j": j + 1, "a": values[i, j]})
    else:
        array.write({"a": values})
    query = array.window(i=3, j=wr.trailing(7)).agg(m=wr.max("a"), p=wr.percentile("a", 30))
    whole, pieces = query.compute(), list(query.stream())
    if sparse:
        joined = pa.concat_tables(pieces).sort_by([("i", "ascending"), ("j", "ascending")])
        assert joined.combine_chunks().equals(whole)
    else:
        assert len(pieces) > 1
        assert sum(piece["m"].size for piece in pieces) == whole["m"].size
        assert all(piece.equals(whole.sel(i=piece.i, j=piece.j)) for piece in pieces)
