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
