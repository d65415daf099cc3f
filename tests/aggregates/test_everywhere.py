"""Each aggregate in each place where it can stand, of every type, against one table of textbook answers."""

from __future__ import annotations

import functools
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import xarray as xr

import windrow as wr
from aggregate_oracles import KINDS, TABLE, Data, check, made, wanted_for

ROWS, COLUMNS = 6, 5
SHAPE = (ROWS, COLUMNS)
CELLS = [(i, j) for i in range(ROWS) for j in range(COLUMNS)]
METHODS = ("auto", "incremental", "naive")
UP, DOWN, LEFT, RIGHT = -1, 2, -2, 0

Answers = Iterator[tuple[list[int], dict[str, Any]]]
"""For each neighbourhood the cells in it, by number in coordinate order, and what was found over them."""


def in_window(i: int, j: int) -> list[int]:
    return [k for k, (a, b) in enumerate(CELLS) if i + UP <= a <= i + DOWN and j + LEFT <= b <= j + RIGHT]


def in_block(i: int, j: int) -> list[int]:
    return [k for k, (a, b) in enumerate(CELLS) if (a // 2, b // 3) == (i, j)]


@functools.lru_cache
def stored(db: Any, data: Data, sparse: bool) -> Any:
    """The data as an array, in chunks that windows and blocks reach across."""
    schema = f"<x: {data.kind} null, y: {data.other} null> [i=0:{ROWS - 1}:4, j=0:{COLUMNS - 1}:3]"
    array = db.create(f"A{uuid.uuid4().hex[:8]}", schema, sparse=sparse)
    if not sparse:
        array.write({"x": data.masked("x", SHAPE), "y": data.masked("y", SHAPE)})
        return array
    there = np.flatnonzero(data.cells)
    columns = {name: [data.listed(name)[k] for k in there] for name in ("x", "y")}
    types = {
        name: pa.from_numpy_dtype(getattr(data, name).dtype) if getattr(data, name).dtype.kind != "T" else pa.string()
        for name in ("x", "y")
    }
    array.insert(
        pa.table(
            {
                "i": [CELLS[k][0] for k in there],
                "j": [CELLS[k][1] for k in there],
                **{name: pa.array(values, types[name]) for name, values in columns.items()},
            }
        )
    )
    return array


def rows_of(result: Any, names: list[str]) -> list[dict[str, Any]]:
    """Results as rows with their coordinates, whether they are cells or grids."""
    if isinstance(result, pa.Table):
        return result.to_pylist()
    places = list(np.ndindex(*(result.sizes[name] for name in result.sizes)))
    return [
        {**dict(zip(result.sizes, place, strict=True)), **{name: _value(result, name, place) for name in names}}
        for place in places
    ]


def _value(result: xr.Dataset, name: str, place: tuple[int, ...]) -> Any:
    there = result.get(f"{name}__valid")
    return result[name].values[place] if there is None or there.values[place] else None


def asked(data: Data) -> dict[str, Any]:
    return {name: one.aggregate for name, one in wanted_for(data.kind).items()}


def text_of(data: Data) -> str:
    return ", ".join(f"{aggregate} as {name}" for name, aggregate in asked(data).items())


def gather(rows: list[dict[str, Any]], inside: Callable[..., list[int]], by: tuple[str, ...]) -> Answers:
    for row in rows:
        yield inside(*(row[name] for name in by)), row


def windows(db: Any, data: Data, method: str, min_count: int, sparse: bool) -> Answers:
    array = stored(db, data, sparse)
    window = array.window(i=wr.between(UP, DOWN), j=wr.between(LEFT, RIGHT), min_count=min_count)
    result = window.agg(method=method, **asked(data)).compute()
    return gather(rows_of(result, list(asked(data))), in_window, ("i", "j"))


def windows_in_text(db: Any, data: Data, method: str, min_count: int, sparse: bool) -> Answers:
    array = stored(db, data, sparse)
    result = db.query(
        f"select {text_of(data)} from {array.name} window (i between {UP} and {DOWN}, j trailing {RIGHT - LEFT + 1})"
        f" min count {min_count} method {method}"
    ).compute()
    return gather(rows_of(result, list(asked(data))), in_window, ("i", "j"))


def blocks(db: Any, data: Data, method: str, min_count: int, sparse: bool) -> Answers:
    array = stored(db, data, sparse)
    result = array.regrid(i=2, j=3, min_count=min_count).agg(method=method, **asked(data)).compute()
    return gather(rows_of(result, list(asked(data))), in_block, ("i", "j"))


def blocks_in_text(db: Any, data: Data, method: str, min_count: int, sparse: bool) -> Answers:
    array = stored(db, data, sparse)
    text = f"select {text_of(data)} from {array.name} regrid (i 2, j 3) min count {min_count} method {method}"
    return gather(rows_of(db.query(text).compute(), list(asked(data))), in_block, ("i", "j"))


def totals(db: Any, data: Data, method: str, min_count: int, sparse: bool) -> Answers:
    array = stored(db, data, sparse)
    rows = rows_of(db.query(f"select {text_of(data)} from {array.name}").compute(), list(asked(data)))
    return gather(rows, lambda: list(range(len(CELLS))), ())


def groups(db: Any, data: Data, method: str, min_count: int, sparse: bool) -> Answers:
    array = stored(db, data, sparse)
    rows = rows_of(db.query(f"select {text_of(data)} from {array.name} group by j").compute(), list(asked(data)))
    return gather(rows, lambda j: [k for k, cell in enumerate(CELLS) if cell[1] == j], ("j",))


def sliding(db: Any, data: Data, method: str, min_count: int, sparse: bool) -> Answers:
    x, y = data.masked("x", SHAPE), data.masked("y", SHAPE)
    window = [wr.between(UP, DOWN), wr.between(LEFT, RIGHT)]
    found = {
        name: wr.sliding(x, name, window, min_count=min_count, method=method, second=y if TABLE[name].pairs else None)
        for name in wanted_for(data.kind)
    }
    for cell in CELLS:
        yield in_window(*cell), {name: values[cell] for name, values in found.items()}


def framed(db: Any, data: Data, method: str, min_count: int, sparse: bool) -> Answers:
    x, y = data.masked("x", (-1,)), data.masked("y", (-1,))
    here = np.arange(len(CELLS))
    lo, hi = here - here % 7, here + here % 5 - 1  # of all lengths, some of them none
    found = {
        name: wr.framed(x, name, lo=lo, hi=hi, method=method, second=y if TABLE[name].pairs else None)
        for name in wanted_for(data.kind)
    }
    for k in here:
        yield list(range(lo[k], min(hi[k], len(CELLS)))), {name: values[k] for name, values in found.items()}


def framed_without_peers(db: Any, data: Data, method: str, min_count: int, sparse: bool) -> Answers:
    """Frames with a hole and a filter."""
    x, y = data.masked("x", (-1,)), data.masked("y", (-1,))
    here = np.arange(len(CELLS))
    keep = here % 4 != 1
    group = here - here % 3, here - here % 3 + 3
    found = {
        name: wr.framed(
            x, name, lo=here - 6, hi=here + 5, method=method, exclude="ties", peers=group, where=keep,
            second=y if TABLE[name].pairs else None,
        )
        for name in wanted_for(data.kind)
    }  # fmt: skip
    for k in here:
        frame = [r for r in range(max(0, k - 6), min(len(CELLS), k + 5)) if r // 3 != k // 3 or r == k]
        yield [r for r in frame if keep[r]], {name: values[k] for name, values in found.items()}


def accessor(db: Any, data: Data, method: str, min_count: int, sparse: bool) -> Answers:
    names = wanted_for(data.kind)
    ds = xr.Dataset({name: (("i", "j"), np.ma.getdata(data.masked(name, SHAPE))) for name in ("x", "y")})
    window = ds.windrow.window(i=wr.between(UP, DOWN), j=wr.between(LEFT, RIGHT), min_count=min_count, method=method)
    together = window.agg(**asked(data))
    for cell in CELLS:
        yield in_window(*cell), {name: together[name].values[cell] for name in names}


BOTH = {
    "windows": windows,
    "windows in text": windows_in_text,
    "regrids": blocks,
    "regrids in text": blocks_in_text,
    "totals": totals,
    "groups": groups,
}
DENSE = {"sliding": sliding, "framed": framed, "framed without peers": framed_without_peers, "accessor": accessor}
PLACES: dict[str, tuple[Any, bool]] = {
    **{name: (place, False) for name, place in (BOTH | DENSE).items()},
    **{f"sparse {name}": (place, True) for name, place in BOTH.items()},
}
WITHOUT_METHOD = ("totals", "groups")
WITHOUT_LEAST = ("totals", "groups", "framed", "framed without peers")


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with wr.connect(tmp_path_factory.mktemp("everywhere"), engine="local", progress=False) as database:
        yield database


def attempts() -> list[Any]:
    """Every place with every type and method; numbers of present values and seeds change along."""
    found = []
    for place in PLACES:
        kept = place.removeprefix("sparse ")
        for number, kind in enumerate(KINDS):
            for turn, method in enumerate(METHODS):
                if (kept in WITHOUT_METHOD and turn) or (kept.endswith("text") and turn != number % 3):
                    continue
                least = 0 if kept in WITHOUT_LEAST else (0, 2, 5)[(number + turn) % 3]
                found.append(pytest.param(place, kind, method, least, turn, id=f"{place}-{kind}-{method}"))
    return found


@pytest.mark.parametrize(("place", "kind", "method", "least", "seed"), attempts())
def test_everywhere(db: Any, place: str, kind: str, method: str, least: int, seed: int) -> None:
    run, sparse = PLACES[place]
    data = made(kind, len(CELLS), seed, only_floats=place == "accessor")
    seen = 0
    for cells, found in run(db, data, method, least, sparse):
        inside = [k for k in cells if data.cells[k]] if sparse else cells
        for name in wanted_for(kind):
            check(name, found[name], data.pairs(inside), least, kind)
        seen += 1
    assert seen


@pytest.mark.parametrize("kind", KINDS)
def test_results_have_their_type_and_can_be_put_in_place(kind: str) -> None:
    """Of the type of x where they are values of x; with missing ones as floats or objects, as SPEC's missing is."""
    data = made(kind, len(CELLS))
    for name, one in wanted_for(kind).items():
        second = data.masked("y", SHAPE) if one.pairs else None
        whole = wr.sliding(data.x.reshape(SHAPE), name, (3, 3), second=data.y.reshape(SHAPE) if one.pairs else None)
        missing = wr.sliding(data.masked("x", SHAPE), name, (3, 3), second=second, min_count=7)
        same = data.x.dtype if one.exact else np.dtype(np.float64)
        assert whole.dtype == same, name
        kinds = {"b": np.float64, "i": np.float64, "u": np.float64, "T": object}
        assert missing.dtype == kinds.get(same.kind, same), name
        for found, x, y, least in (
            (whole, data.x.reshape(SHAPE), data.y.reshape(SHAPE), 0),
            (missing, data.masked("x", SHAPE), data.masked("y", SHAPE), 7),
        ):
            out = np.empty(SHAPE, found.dtype)
            put = wr.sliding(x, name, (3, 3), second=y if one.pairs else None, min_count=least, out=out)
            assert put is out, name
            np.testing.assert_array_equal(out, found)
        if same.kind in "biu":
            with pytest.raises(wr.DataError, match="missing results are NaN"):
                wr.sliding(data.masked("x", SHAPE), name, (3, 3), second=second, min_count=7, out=np.empty(SHAPE, same))


def weather() -> tuple[Any, Any, Any, Any]:
    """Values with gaps on a labelled grid, and the labels."""
    random = np.random.default_rng(2)
    lat, lon = np.linspace(-75.0, 75.0, 6), np.linspace(0.0, 288.0, 5)
    t = random.normal(15.0, 8.0, (6, 5))
    t[random.random(t.shape) < 0.2] = np.nan
    return t, random.uniform(1.0, 3.0, t.shape), lat, lon


EXPRESSIONS: dict[str, Callable[..., Any]] = {
    "cos(radians(lat))": lambda lat, lon, u, i: np.cos(np.radians(lat)),
    "label(lat) + 80": lambda lat, lon, u, i: lat + 80,
    "cell(lat)": lambda lat, lon, u, i: i,
    "u * (lon - 100)": lambda lat, lon, u, i: u * (lon - 100),
    "case when lat > 0 then u end": lambda lat, lon, u, i: np.where(lat > 0, u, np.nan),
}


@pytest.mark.parametrize("weight", EXPRESSIONS)
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_weights_and_second_arguments_may_be_expressions(db: Any, weight: str, sparse: bool) -> None:
    """A labelled dimension is its label in windows, blocks, groups and totals alike."""
    t, u, lat, lon = weather()
    name = f"T{uuid.uuid4().hex[:8]}"
    schema = "<t: float64, u: float64> [lat=0:5:4, lon=0:4:3]"
    array = db.create(name, schema, labels={"lat": lat, "lon": lon}, sparse=sparse)
    i, j = np.indices(t.shape)
    if sparse:
        array.insert({"lat": i.reshape(-1), "lon": j.reshape(-1), "t": t.reshape(-1), "u": u.reshape(-1)})
    else:
        array.write({"t": t, "u": u})
    y = np.broadcast_to(EXPRESSIONS[weight](lat[i], lon[j], u, i), t.shape)

    def inside(chosen: Any) -> list[tuple[Any, Any]]:
        return [
            (None if np.isnan(a) else float(a), None if np.isnan(b) else float(b))
            for a, b in zip(t[chosen], y[chosen], strict=True)
        ]

    asked = {"wavg": wr.avg("t", weight=weight), "covar": wr.covar("t", weight), "corr": wr.corr("t", weight)}
    items = ", ".join(f"{found} as {label}" for label, found in asked.items())
    window = array.window(lat=wr.between(-1, 1), lon=wr.trailing(2)).agg(**asked).compute()
    for row in rows_of(window, list(asked)):
        near = (abs(i - row["lat"]) <= 1) & (row["lon"] - 1 <= j) & (j <= row["lon"])
        for label in asked:
            check(label, row[label], inside(near))
    for row in rows_of(array.regrid(lat=3, lon=5).agg(**asked).compute(), list(asked)):
        for label in asked:
            check(label, row[label], inside((i // 3 == row["lat"]) & (j // 5 == row["lon"])))
    for row in rows_of(db.query(f"select {items} from {name} group by lon").compute(), list(asked)):
        for label in asked:
            check(label, row[label], inside(j == row["lon"]))
    for label in asked:
        check(label, rows_of(db.query(f"select {items} from {name}").compute(), list(asked))[0][label], inside(i >= 0))


@pytest.mark.parametrize("weight", ["cos(radians(lat))", "u * (lon - 100)"])
def test_the_accessor_takes_expressions(weight: str) -> None:
    t, u, lat, lon = weather()
    i, j = np.indices(t.shape)
    y = np.broadcast_to(EXPRESSIONS[weight](lat[i], lon[j], u, i), t.shape)
    ds = xr.Dataset({"t": (("lat", "lon"), t), "u": (("lat", "lon"), u)}, {"lat": lat, "lon": lon})
    found = ds.windrow.window(lat=wr.between(-1, 1), lon=wr.trailing(2))
    by_method = found.wavg("t", weight)
    together = found.agg(wavg=wr.avg("t", weight=weight), corr=wr.corr("t", weight))
    np.testing.assert_array_equal(by_method.values, together["wavg"].values)
    for cell in np.ndindex(t.shape):
        near = (abs(i - cell[0]) <= 1) & (cell[1] - 1 <= j) & (j <= cell[1])
        pairs = [(None if np.isnan(a) else float(a), float(b)) for a, b in zip(t[near], y[near], strict=True)]
        for name in ("wavg", "corr"):
            check(name, together[name].values[cell], pairs)
