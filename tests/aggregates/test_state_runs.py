"""States folded from runs of cells are those of the rows that the runs stand for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.aggregates.aggregate import Aggregate
from windrow.aggregates.bands import BandNeighbours
from windrow.aggregates.columns import PLACES, Column
from windrow.aggregates.states.layout import Layout, state_layout
from windrow.aggregates.states.rule import State
from windrow.aggregates.states.runs import Runs
from windrow.errors import DataError
from windrow.kernels.sparse.places import Bands
from windrow.model.types import TYPES

MEASURES = ("count", "sum", "avg", "var", "min", "max", "range", "median", "first", "last")
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "float64": st.sampled_from([0.0, -0.0, 1.5, -2.25, 1e30, -1e30, 1e308, np.inf, -np.inf, np.nan, 1e-310]),
    "float32": st.sampled_from([0.0, 1.5, -2.25, np.inf, np.nan]),
    "int64": st.integers(-(2**62), 2**62),
    "uint64": st.integers(0, 2**63),
}


def layout_of(kind: str) -> Layout:
    asked = [("rows", Aggregate("count", None)), *((name, Aggregate(name, "x")) for name in MEASURES)]
    return state_layout(tuple(asked), {"x": TYPES[kind]})


@st.composite
def neighbourhoods(draw: st.DrawFn) -> Runs:
    """Cells on a line, and around some places one or two intervals of them, with or without the place itself."""
    cells = np.array(sorted(draw(st.lists(st.integers(0, 40), max_size=60))), np.int64)
    centres = np.array(sorted(draw(st.lists(st.integers(-5, 45), min_size=1, max_size=12))), np.int64)
    runs = draw(st.sampled_from([[(-3, 3)], [(-9, -5), (0, 2)], [(-30, 30)], [(-40, -1), (1, 40)]]))
    first, last = (np.array(ends, np.int64) for ends in zip(*runs, strict=True))
    skip = np.zeros(0, np.int64)
    if draw(st.booleans()):
        skip = np.array([draw(st.integers(-1, len(cells) - 1)) for _ in centres], np.int64)
    groups = draw(st.lists(st.integers(0, len(centres) - 1), max_size=20))
    return Runs(BandNeighbours(cells, Bands(centres, centres, first, last, skip)), np.array(groups, np.int64))


def listed(runs: Runs) -> tuple[np.ndarray, np.ndarray]:
    """The places of each group's cells, one by one."""
    cells, bands = runs.neighbours.cells, runs.neighbours.bands
    found, starts = [], [0]
    for number in runs.numbers:
        for place, key in enumerate(cells):
            step = key - bands.near[number]
            inside = any(lo <= step <= hi for lo, hi in zip(bands.first, bands.last, strict=True))
            if inside and not (len(bands.skip) and bands.skip[number] == place):
                found.append(place)
        starts.append(len(found))
    return np.array(found, np.int64), np.array(starts, np.int64)


def _finish(layout: Layout, state: State) -> Any:
    """Its results, None if a sum overflows."""
    try:
        return layout.finish(state)
    except DataError:
        return None


def same_results(layout: Layout, one: State, other: State) -> None:
    """What both finish to is the same, up to what sums may be off by."""
    first, second = (_finish(layout, state) for state in (one, other))
    if first is None or second is None:
        assert first is second
        return
    for measure in layout.measures:
        mine, theirs = first[measure.name], second[measure.name]
        assert mine.missing.tolist() == theirs.missing.tolist(), measure.name
        assert mine.recompute.tolist() == theirs.recompute.tolist(), measure.name
        sure = ~mine.missing & ~mine.recompute
        assert np.allclose(mine.values[sure], theirs.values[sure], rtol=1e-12, atol=0, equal_nan=True), measure.name


def same_numbers(one: State, other: State) -> None:
    """Bit for bit the same."""
    assert list(one) == list(other)
    for name, part in one.items():
        assert part.tobytes() == other[name].tobytes(), name


@pytest.mark.parametrize("kind", VALUES)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_states_are_entered_where_they_are(kind: str, data: st.DataObject) -> None:
    """``enter`` with places is ``enter`` of what ``take`` gives for them, and -1 is a group without rows."""
    runs, layout = data.draw(neighbourhoods()), layout_of(kind)
    if data.draw(st.booleans()):
        runs = Runs(runs.neighbours, np.arange(runs.neighbours.bands.cells))
    count, groups = len(runs.neighbours.cells), len(runs.numbers)
    values = np.array(data.draw(st.lists(VALUES[kind], min_size=count, max_size=count)), TYPES[kind].dtype)
    present = np.array(data.draw(st.lists(st.booleans(), min_size=count, max_size=count)), bool)
    cells = {"x": Column(values, None if data.draw(st.booleans()) else present), PLACES: Column(np.arange(count))}
    at = np.array(data.draw(st.lists(st.integers(-1, 2), min_size=groups, max_size=groups)), np.int64)
    before = {"x": Column(np.arange(5).astype(TYPES[kind].dtype)), PLACES: Column(np.arange(5) - 9)}
    with np.errstate(all="ignore"):
        held = layout.reduce(before, np.array([0, 1, 4, 5]))
        if data.draw(st.booleans()):
            for part in held.values():
                part.flags.writeable = False  # as what is read from the store
        same_numbers(layout.enter(held, cells, runs, at=at), layout.enter(layout.take(held, at), cells, runs))


@pytest.mark.parametrize("long", [False, True])
def test_rows_that_enter_are_merged_one_by_one(long: bool) -> None:
    """Of short groups the state is bit for bit that of merging; of long ones it is the same number, well bounded."""
    random = np.random.default_rng(7)
    layout = state_layout((("s", Aggregate("sum", "x")),), {"x": TYPES["float64"]})
    rule = layout.units[0].rule
    cells = np.arange(400)
    special = np.array([np.nan, np.inf, -np.inf, 1e30, -0.0, 1e-310])
    for _ in range(20):
        values = random.normal(0, 1, 400)
        spikes = random.random(400) < 0.05
        values[spikes] = random.choice(special, int(spikes.sum()))
        centres = np.sort(random.integers(0, 400, 50))
        reach = np.array([20 if long else 5])
        runs = Runs(BandNeighbours(cells, Bands(centres, centres, -reach, reach)), np.arange(50))
        held = rule.of_values([random.normal(0, 1, 60)])
        at = random.integers(-1, 60, 50)
        found = rule.enter(held, runs.rows((values,), None), at)
        expected = {name: np.zeros(50, part.dtype) for name, part in held.items()}
        for name, part in held.items():
            expected[name][at >= 0] = part[at[at >= 0]]
        for step in range(-int(reach[0]), int(reach[0]) + 1):
            inside = (centres + step >= 0) & (centres + step < 400)
            value = np.where(inside, values[np.clip(centres + step, 0, 399)], 0.0)
            merged = rule.merge(expected, rule.of_values([value], inside))
            expected = {name: np.where(inside, merged[name], expected[name]) for name in expected}
        if long:
            assert np.array_equal(found["count"], expected["count"])
            one, other = rule.finish(found), rule.finish(expected)
            assert np.allclose(one.values, other.values, rtol=1e-13, atol=1e-12, equal_nan=True)
            assert np.array_equal(one.recompute, other.recompute)
        else:
            same_numbers({name: found[name] for name in expected}, expected)


def test_few_groups_of_many_cells_are_reduced_as_many_groups_are() -> None:
    """Nothing is done to all cells beforehand, and NaN and what is not present are still no values."""
    random = np.random.default_rng(11)
    cells, layout = np.arange(3_000), layout_of("float64")
    values = random.normal(0, 1, 3_000)
    values[random.random(3_000) < 0.01] = np.nan
    values[random.random(3_000) < 0.01] = np.inf
    for present in (None, random.random(3_000) < 0.9):
        for reach in (3, 300):
            centres, wide = np.sort(random.integers(0, 3_000, 40)), np.array([reach])
            columns = {"x": Column(values, present), PLACES: Column(cells)}
            few = Runs(BandNeighbours(cells, Bands(centres, centres, -wide, wide)), np.arange(40))
            assert few.rows((values,), present).few
            places, starts = listed(few)
            rows = {
                n: Column(c.values[places], None if c.present is None else c.present[places])
                for n, c in columns.items()
            }
            same_results(layout, layout.reduce(columns, few), layout.reduce(rows, starts))


def test_states_of_bands_without_runs_stay() -> None:
    layout, none = layout_of("float64"), np.zeros(0, np.int64)
    held = layout.reduce({"x": Column(np.ones(2)), PLACES: Column(np.arange(2))}, np.array([0, 1, 2]))
    runs = Runs(BandNeighbours(np.arange(9), Bands(np.arange(2), np.arange(2), none, none)), np.arange(2))
    same_numbers(layout.enter(held, {"x": Column(np.ones(9)), PLACES: Column(np.arange(9))}, runs), held)


@pytest.mark.parametrize("kind", VALUES)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_runs_are_folded_as_their_rows_are(kind: str, data: st.DataObject) -> None:
    runs, layout = data.draw(neighbourhoods()), layout_of(kind)
    count = len(runs.neighbours.cells)
    values = np.array(data.draw(st.lists(VALUES[kind], min_size=count, max_size=count)), TYPES[kind].dtype)
    present = np.array(data.draw(st.lists(st.booleans(), min_size=count, max_size=count)), bool)
    places, starts = listed(runs)
    cells = {"x": Column(values, None if present.all() else present), PLACES: Column(np.arange(count))}
    rows = {
        name: Column(c.values[places], None if c.present is None else c.present[places]) for name, c in cells.items()
    }
    with np.errstate(all="ignore"):
        folded, expected = layout.reduce(cells, runs), layout.reduce(rows, starts)
        same_results(layout, folded, expected)
        both = layout.enter(expected, cells, runs)
        same_results(layout, both, layout.enter(expected, rows, starts))
        assert layout.is_empty(layout.leave(folded, cells, runs)).all()
