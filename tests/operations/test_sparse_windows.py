"""Windows and regrids of sparse arrays against a dictionary of cells and plain Python."""

from __future__ import annotations

import math
import pickle
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import windrow as wr
from windrow.aggregates import sparse_windows as cells
from windrow.aggregates.aggregate import Aggregate
from windrow.errors import DataError, Error
from windrow.model.box import Box
from windrow.model.labels import Labels
from windrow.model.notation import parse_schema
from windrow.model.schema import Attribute, Dimension, Schema
from windrow.model.types import TYPES
from windrow.model.window import Extent, Window, between, centred, regrid, trailing
from windrow.operations.query import sparse_results as cell_results
from windrow.operations.query import sparse_run as computed_cells
from windrow.operations.query.sparse_windows import CellWindowSource
from windrow.plan.windows import WindowPlan
from windrow.storage.cells import cell_fields

Cell = tuple[int, ...]
Values = dict[str, Any]

ATTRIBUTES = (
    Attribute("x", TYPES["float64"]),
    Attribute("i", TYPES["int16"], nullable=True),
    Attribute("s", TYPES["string"], nullable=True),
    Attribute("b", TYPES["uint64"]),
)
AGGREGATES: dict[str, Aggregate] = {
    "cells": wr.count(),
    "x_count": wr.count("x"),
    "x_sum": wr.sum("x"),
    "x_avg": wr.avg("x"),
    "x_var": wr.var("x"),
    "x_std": wr.std_pop("x"),
    "x_max": wr.max("x"),
    "x_percentile": wr.percentile("x", 70),
    "x_median": wr.median("x"),
    "i_count": wr.count("i"),
    "i_sum": wr.sum("i"),
    "i_min": wr.min("i"),
    "i_distinct": wr.count_distinct("i"),
    "i_mode": wr.mode("i"),
    "i_quantile": wr.quantile_disc("i", 0.25),
    "s_count": wr.count("s"),
    "s_min": wr.min("s"),
    "s_max": wr.max("s"),
    "s_distinct": wr.count_distinct("s"),
    "s_mode": wr.mode("s"),
    "b_sum": wr.sum("b"),
    "b_max": wr.max("b"),
}


@dataclass(frozen=True)
class HeldCells:
    """Cells in a dictionary, as a source."""

    schema: Schema
    cells: dict[Cell, Values]
    labels: Any = None

    @property
    def box(self) -> Box:
        return self.schema.box(tuple(max([d.lo - 1, *(c[k] for c in self.cells)]) for k, d in self._dimensions()))

    def _dimensions(self) -> Iterable[tuple[int, Dimension]]:
        return enumerate(self.schema.dimensions)

    def read(self, box: Box | None = None, attributes: Iterable[str] | None = None) -> pa.Table:
        chosen = self.schema if attributes is None else self.schema.select(attributes)
        inside = [c for c in sorted(self.cells) if box is None or c in box]
        columns = {name: [c[k] for c in inside] for k, name in enumerate(chosen.dimension_names)}
        columns |= {name: [self.cells[c][name] for c in inside] for name in chosen.attribute_names}
        return pa.table(columns, schema=cell_fields(chosen))

    def cells_in(self, box: Box) -> int:
        return sum(c in box for c in self.cells)


def inside(window: Window, bounds: Box, position: Cell, other: Cell) -> bool:
    """Whether a cell lies in the window at a position."""
    for axis, extent in enumerate(window.extents):
        assert isinstance(extent, Extent)
        beyond = other[axis] - position[axis] - extent.start
        if extent.wraps:
            beyond %= bounds.shape[axis]
        if not 0 <= beyond <= extent.stop - extent.start:
            return False
    return True


def is_whole(window: Window, bounds: Box, position: Cell) -> bool:
    ranges = zip(position, window.extents, bounds.lo, bounds.hi, strict=True)
    return all(e.wraps or (lo <= p + e.start and p + e.stop <= hi) for p, e, lo, hi in ranges)  # type: ignore[union-attr]


def aggregated(aggregate: Aggregate, neighbours: list[Values]) -> tuple[int, Any]:
    """How many values are present, and the aggregate of them, None if it is missing."""
    if aggregate.attribute is None:
        return len(neighbours), len(neighbours)
    found = sorted(v[aggregate.attribute] for v in neighbours if v[aggregate.attribute] is not None)
    n, times = len(found), Counter(found)
    name = aggregate.name
    if name in ("count", "count_distinct"):
        return n, n if name == "count" else len(times)
    if n < (2 if name == "var" else 1):
        return n, None
    if name in ("sum", "avg"):
        return n, sum(map(Fraction, found)) / (n if name == "avg" else 1)
    if name in ("var", "std_pop"):
        mean = sum(map(Fraction, found)) / n
        squares = sum((Fraction(v) - mean) ** 2 for v in found)
        return n, squares / (n - 1) if name == "var" else math.sqrt(squares / n)
    ranked = {
        "min": 0,
        "max": n - 1,
        "percentile": min(n, math.floor(Fraction(7, 10) * n + 1)) - 1,
        "quantile_disc": math.ceil(Fraction(1, 4) * n) - 1,
    }
    if name in ranked:
        return n, found[ranked[name]]
    if name == "median":
        return n, (Fraction(found[(n - 1) // 2]) + Fraction(found[n // 2])) / 2
    assert name == "mode"
    return n, min(v for v in times if times[v] == max(times.values()))


def expected(source: HeldCells, window: Window, blocks: bool) -> dict[Cell, tuple[list[Values], bool]]:
    """For each result the cells it is made of, and whether its window is whole."""
    bounds = source.box
    results: dict[Cell, tuple[list[Values], bool]] = {}
    for cell in source.cells:
        numbers = [(c - lo) // step for c, lo, step in zip(cell, bounds.lo, window.step, strict=True)]
        result = tuple(lo + number for lo, number in zip(bounds.lo, numbers, strict=True))
        position = tuple(lo + n * step for lo, n, step in zip(bounds.lo, numbers, window.step, strict=True))
        if position == cell or blocks:
            found = [values for other, values in source.cells.items() if inside(window, bounds, position, other)]
            results[result] = found, is_whole(window, bounds, position)
    return results


def check(
    source: HeldCells,
    window: Window,
    method: str,
    pieces: Sequence[Box],
    blocks: bool = False,
    swept: int | None = None,
) -> None:
    aggregates = tuple(AGGREGATES.items())
    plan = WindowPlan(source.schema, source.box, window, aggregates, (), method, swept=swept)
    computed = pickle.loads(pickle.dumps(CellWindowSource(source, plan)))
    wanted = expected(source, window, blocks)
    rows = [row for piece in pieces for row in computed.read(piece).to_pylist()]
    names = source.schema.dimension_names
    got = {tuple(row[name] for name in names): row for row in rows}
    assert len(got) == len(rows)
    assert sorted(got) == sorted(wanted)
    for cell, (neighbours, whole) in wanted.items():
        for name, aggregate in AGGREGATES.items():
            present, value = aggregated(aggregate, neighbours)
            if present < window.min_count or (window.boundary == "drop" and not whole):
                value = None
            compare(aggregate, neighbours, got[cell][name], value, f"{name} at {cell}")


def compare(aggregate: Aggregate, neighbours: list[Values], got: Any, wanted: Any, where: str) -> None:
    if wanted is None or aggregate.attribute != "x" or aggregate.name not in ("sum", "avg", "var", "std_pop", "median"):
        assert got == wanted, where
        return
    values = [Fraction(v["x"]) for v in neighbours if v["x"] is not None]
    if aggregate.name in ("sum", "avg", "median"):
        allowed = sum(map(abs, values)) * Fraction(1, 10**12)
        assert abs(Fraction(got) - wanted) <= allowed, where
    else:
        square = float(sum(v * v for v in values) / len(values))
        close = got if aggregate.name == "var" else got * got
        exact = float(wanted) if aggregate.name == "var" else float(wanted) ** 2
        assert abs(close - exact) <= 1e-9 * square * 2, where


@st.composite
def sources(draw: st.DrawFn) -> HeldCells:
    ndim = draw(st.integers(1, 4))
    longest = {1: 14, 2: 7, 3: 4, 4: 3}[ndim]
    dimensions = []
    for axis in range(ndim):
        lo, length = draw(st.integers(-3, 3)), draw(st.integers(1, longest))
        dimensions.append(Dimension(f"d{axis}", lo, lo + length - 1, draw(st.integers(1, 5))))
    schema = Schema(tuple(dimensions), ATTRIBUTES, sparse=True).with_chunks()
    places = st.tuples(*(st.integers(d.lo, d.hi) for d in dimensions))
    values = st.fixed_dictionaries(
        {
            "x": st.sampled_from([None, 0.0, 1.5, -2.25, 3.0, 1e9]),
            "i": st.sampled_from([None, -2, 0, 1, 7]),
            "s": st.sampled_from([None, "", "alpha", "β", "z"]),
            "b": st.sampled_from([0, 3, 2**53 + 1]),
        }
    )
    return HeldCells(schema, draw(st.dictionaries(places, values, max_size=24)))


@st.composite
def windows(draw: st.DrawFn, schema: Schema) -> Window:
    extents = {}
    for dimension in schema.dimensions:
        start = draw(st.sampled_from([0, 0, -1, -1, -2, 1, 3, -7]))
        extent = between(start, start + draw(st.sampled_from([0, 1, 2, 2, 4, 20])))
        extents[dimension.name] = extent.wrap() if draw(st.integers(0, 3)) == 0 else extent
    step = [draw(st.sampled_from([1, 1, 1, 2, 3])) for _ in extents]
    boundary, least = draw(st.sampled_from(["clip", "clip", "drop"])), draw(st.sampled_from([0, 0, 1, 3]))
    return Window.of(schema, extents, step=step, boundary=boundary, min_count=least)


@st.composite
def pieces(draw: st.DrawFn, source: HeldCells, window: Window) -> list[Box]:
    """The results in one box, or in boxes cut somewhere."""
    results = window.output_bounds(source.box)
    axis = draw(st.integers(0, results.ndim - 1))
    cut = draw(st.integers(results.lo[axis], results.hi[axis]))
    hi, lo = list(results.hi), list(results.lo)
    hi[axis], lo[axis] = cut - 1, cut
    return [Box(results.lo, tuple(hi)), Box(tuple(lo), results.hi)]


each_example_patches_alike = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)


@pytest.fixture(params=["naive", "incremental", "auto", "rows"])
def method(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The three methods, a few neighbours at a time; ``auto`` also where cells never lie densely enough for a grid."""
    monkeypatch.setattr(cells, "LISTED_AT_ONCE", 7)
    if request.param == "rows":
        monkeypatch.setattr(cell_results, "MOST_POSITIONS_PER_CELL", 0)
        return "auto"
    name: str = request.param
    return name


def is_regrid(window: Window) -> bool:
    return all(
        isinstance(e, Extent) and not e.wraps and (e.start, e.stop) == (0, step - 1)
        for e, step in zip(window.extents, window.step, strict=True)
    )


@each_example_patches_alike
@given(data=st.data())
def test_windows_hold_the_cells_that_are_there(method: str, data: st.DataObject) -> None:
    source = data.draw(sources())
    window = data.draw(windows(source.schema))
    check(source, window, method, data.draw(pieces(source, window)), blocks=is_regrid(window))


@settings(max_examples=60)
@given(data=st.data())
def test_windows_slide_along_the_dimension_that_is_asked_for(data: st.DataObject) -> None:
    source = data.draw(sources())
    window = data.draw(windows(source.schema).filter(lambda drawn: not is_regrid(drawn)))
    swept = data.draw(st.integers(0, source.schema.ndim - 1))
    check(source, window, "incremental", data.draw(pieces(source, window)), swept=swept)


@each_example_patches_alike
@given(data=st.data())
def test_a_block_of_a_regrid_exists_if_it_holds_a_cell(method: str, data: st.DataObject) -> None:
    source = data.draw(sources())
    sizes = {name: data.draw(st.integers(1, 6)) for name in source.schema.dimension_names}
    least, boundary = data.draw(st.sampled_from([0, 2])), data.draw(st.sampled_from(["clip", "drop"]))
    window = regrid(source.schema, sizes, boundary=boundary, min_count=least)
    check(source, window, method, data.draw(pieces(source, window)), blocks=True)


def held(schema: str, values: dict[Cell, Values]) -> HeldCells:
    return HeldCells(parse_schema(schema, sparse=True)[1].with_chunks(), values)


def read(source: HeldCells, window: Window, box: Box | None = None, **aggregates: Aggregate) -> list[dict[str, Any]]:
    plan = WindowPlan(source.schema, source.box, window, tuple(aggregates.items()))
    rows: list[dict[str, Any]] = CellWindowSource(source, plan).read(box).to_pylist()
    return rows


def test_windows_in_label_units_hold_the_cells_whose_labels_are_near(method: str) -> None:
    days = np.array(["2020-01-01", "2020-01-02", "2020-01-07", "2020-01-08", "2020-02-01"], "M8[us]")
    source = held("<v: int64> [t=1:5:2]", {(1,): {"v": 1}, (2,): {"v": 2}, (4,): {"v": 8}, (5,): {"v": 16}})
    labels = (("t", Labels(days)),)
    for boundary, sums in (("clip", [1, 3, 10, 16]), ("drop", [None, None, 10, 16])):
        window = Window.of(source.schema, {"t": trailing("7 days")}, boundary=boundary)
        plan = WindowPlan(source.schema, source.box, window, (("s", wr.sum("v")),), labels, method)
        computed = CellWindowSource(source, plan)
        pieces = [computed.read(Box((1,), (2,))), computed.read(Box((3,), (5,)))]
        rows = [tuple(row.values()) for piece in pieces for row in piece.to_pylist()]
        assert rows == list(zip([1, 2, 4, 5], sums, strict=True))


def test_dimensions_may_be_longer_than_any_memory() -> None:
    far, top = 2**59, 2**40
    corners = {(-far, 0): {"v": 1}, (-far, 2): {"v": 2}, (0, top): {"v": 4}, (far, top): {"v": 8}}
    source = held(f"<v: int64> [x={-far}:{far}:{2**20}, y=0:{top}:{2**20}]", corners)
    everything = Window.of(source.schema, {"x": between(-(2**62), 2**62), "y": between(-(2**62), 2**62)})
    assert [row["s"] for row in read(source, everything, s=wr.sum("v"))] == [15] * 4
    round_the_border = Window.of(source.schema, {"x": between(0, 1).wrap(), "y": between(-2, 0).wrap()})
    assert [row["s"] for row in read(source, round_the_border, s=wr.sum("v"))] == [1, 3, 4, 8]
    blocks = regrid(source.schema, {"x": far, "y": 2**39})
    assert [row["n"] for row in read(source, blocks, n=wr.count())] == [2, 1, 1]


def test_a_growing_array_has_no_windows_before_it_has_cells() -> None:
    source = held("<v: int64> [t=0:*:4, x=0:3:2]", {})
    plan = WindowPlan(source.schema, source.box, Window.of(source.schema, {"t": 3}), (("n", wr.count()),))
    computed = CellWindowSource(source, plan)
    assert computed.read().num_rows == 0
    assert str(computed.schema) == "<n: int64> [t=0:*:4, x=0:3:2]"
    assert computed.schema.sparse


def test_an_array_without_attributes_can_be_counted() -> None:
    source = HeldCells(Schema((Dimension("x", 0, 9, 4),), (), sparse=True), {(1,): {}, (2,): {}, (7,): {}})
    assert [row["n"] for row in read(source, Window.of(source.schema, {"x": 3}), n=wr.count())] == [2, 1, 1]


Span = wr.aggregate("test_cells_span", result="float64")(
    type(
        "Span",
        (),
        {
            "empty": lambda: (np.inf, -np.inf),
            "add": lambda state, x: (min(state[0], x), max(state[1], x)),
            "merge": lambda a, b: (min(a[0], b[0]), max(a[1], b[1])),
            "result": lambda state: state[1] - state[0],
        },
    )
)


def test_aggregates_of_users_work_at_cells(method: str) -> None:
    spread = {(k * k % 23, k % 5): {"v": float(k) if k % 4 else None} for k in range(17)}
    source = held("<v: float64> [x=0:22:5, y=0:4:2]", spread)
    window = Window.of(source.schema, {"x": centred(7), "y": centred(3)})
    aggregates = (("span", Span("v")), ("lo", wr.min("v")), ("hi", wr.max("v")))
    rows = CellWindowSource(source, WindowPlan(source.schema, source.box, window, aggregates, (), method)).read()
    for row in rows.to_pylist():
        assert row["span"] == (None if row["lo"] is None else row["hi"] - row["lo"])


def test_an_integer_sum_that_overflows_is_an_error(method: str) -> None:
    source = held("<v: int64> [x=0:99:10]", {(1,): {"v": 2**62}, (40,): {"v": 2**62}, (41,): {"v": 1}})
    plan = WindowPlan(source.schema, source.box, Window.of(source.schema, {"x": 50}), (("s", wr.sum("v")),), (), method)
    with pytest.raises(DataError, match="overflows"):
        CellWindowSource(source, plan).read()


def test_a_sweep_can_be_asked_for_and_is_explained(local: Any) -> None:
    array = local.create("A", "<v: int64> [i=0:99:50, j=0:99:50]", sparse=True)
    array.insert({"i": [3, 5, 40], "j": [7, 8, 8], "v": [1, 2, 3]})
    window = array.window(i=trailing(30), j=trailing(3))
    widest = window.agg(m=wr.max("v"))
    assert "[sweeps i]" in str(widest.explain())
    for name in ("i", "j"):
        asked = window.agg(m=wr.max("v"), sweep=name)
        told = str(asked.explain())
        assert f"(incremental) [sweeps {name}]" in told
        assert asked.compute().equals(widest.compute())
        text = f"select max(v) as m from A window (i trailing 30, j trailing 3) sweep {name}"
        assert told.splitlines()[0] == text
        assert str(local.query(text).explain()) == told
    for refused, error in (
        ({"sweep": "k"}, "no such dimension, got 'k'"),
        ({"sweep": "i", "method": "naive"}, "only the incremental method sweeps"),
    ):
        with pytest.raises(Error, match=error):
            window.agg(m=wr.max("v"), **refused).compute()
    with pytest.raises(DataError, match="share no cells"):
        array.regrid(i=2, j=2).agg(m=wr.max("v"), sweep="i").compute()


def scattered(count: int) -> pa.Table:
    numbers = np.arange(count, dtype=np.int64)
    places = numbers * 2_654_435_761 % (300 * 200)
    names = np.array(["north", "south", "east"])[numbers % 3]
    return pa.table({"x": places // 200, "y": places % 200, "v": numbers % 17 * 0.5, "s": names})


def counted(table: pa.Table, radius: int) -> dict[Cell, int]:
    places = set(zip(table["x"].to_pylist(), table["y"].to_pylist(), strict=True))
    around = range(-radius, radius + 1)
    return {(x, y): sum((x + i, y + j) in places for i in around for j in around) for x, y in places}


def test_stored_cells_are_computed_task_by_task_and_stored(local: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(computed_cells, "SMALLEST_TASK", 100)
    rows = scattered(2_000)
    array = local.create("A", "<v: float64, s: string> [x=0:299:40, y=0:199:30]", sparse=True)
    array.insert(rows)
    query = array.window(x=wr.centred(5), y=wr.centred(5)).agg(n=wr.count(), top=wr.max("v"), word=wr.mode("s"))
    table = query.compute()
    wanted = counted(rows, 2)
    assert list(zip(table["x"].to_pylist(), table["y"].to_pylist(), strict=True)) == sorted(wanted)
    assert table["n"].to_pylist() == [wanted[cell] for cell in sorted(wanted)]
    pieces = list(query.stream())
    assert len(pieces) > 1
    assert pa.concat_tables(pieces).sort_by([("x", "ascending"), ("y", "ascending")]).equals(table)
    report = query.store("N")
    stored = local.array("N")
    assert report.cells == 2_000
    assert stored.sparse
    assert stored.read().equals(table)
    again = query.store("N")
    assert (again.cells, again.replaced) == (2_000, 2_000)
    assert stored.read().equals(table)
    blocks = array.regrid(x=60, y=50).agg(n=wr.count())
    assert sum(blocks.compute()["n"].to_pylist()) == 2_000
    assert blocks.store("R").cells == 20


@pytest.mark.spark
def test_spark_computes_and_stores_the_same(connect: Any, spark_session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(computed_cells, "SMALLEST_TASK", 1_000)
    here = connect()
    array = here.create("A", "<v: float64, s: string> [x=0:299:100, y=0:199:100]", sparse=True)
    array.insert(scattered(2_000))
    there = connect(engine="spark", spark=spark_session)
    tables = []
    for database in (here, there):
        query = database.array("A").window(x=wr.centred(5), y=wr.centred(5)).agg(n=wr.count(), top=wr.max("v"))
        assert query.store(f"N_{database.engine.name}").cells == 2_000
        tables += [query.compute(), database.array(f"N_{database.engine.name}").read()]
    assert all(table.equals(tables[0]) for table in tables)


def test_tasks_are_cut_where_the_cells_are(local: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(computed_cells, "SMALLEST_TASK", 100)
    array = local.create("A", f"<v: int64> [x=0:{10**12}:{10**6}, y=0:{10**12}:{10**6}]", sparse=True)
    places = np.arange(1_000, dtype=np.int64)
    array.insert(pa.table({"x": places * 10**6, "y": places * 10**6, "v": places}))
    query = array.window(x=3, y=3).agg(n=wr.count())
    source = query.bind().source
    assert isinstance(source, CellWindowSource)
    blocks = computed_cells.cell_blocks(source, source.schema.grid, source.box, local.engine.local)
    assert 2 <= len(blocks) <= 100
    assert query.compute().num_rows == 1_000


def test_results_that_do_not_fit_their_array_are_refused_before_any_work(local: Any) -> None:
    array = local.create("A", "<v: int64> [x=0:9:5]", sparse=True)
    array.insert(pa.table({"x": [1, 2], "v": [3, 4]}))
    refused = {
        "<other: int64> [x=0:9:5]": "other attributes",
        "<n: string> [x=0:9:5]": "of type string",
        "<n: int64> [x=0:8:5]": "do not hold the result",
    }
    for number, (schema, reason) in enumerate(refused.items()):
        local.create(f"B{number}", schema, sparse=True)
        with pytest.raises(Error, match=reason):
            array.window(x=3).agg(n=wr.count()).store(f"B{number}")
        assert local.array(f"B{number}").version == 0
