"""Windows against enumeration, cell by cell, on small boxes."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.errors import SchemaError, UnknownNameError
from windrow.model.box import Box
from windrow.model.halo import Reach
from windrow.model.notation import parse_schema
from windrow.model.window import Extent, LabelExtent, Window, between, centred, corner, regrid, trailing, within

SCHEMA = parse_schema("T <t: float> [lon=0:287, lat=0:144, time=1:*]")[1]


def cells_of(box: Box) -> Iterator[tuple[int, ...]]:
    return itertools.product(*(range(lo, hi + 1) for lo, hi in zip(box.lo, box.hi, strict=True)))


@st.composite
def windows(draw: st.DrawFn) -> tuple[Window, Box, Box]:
    """A window of one or two dimensions, the bounds of an array, and a box that may stick out of it."""
    ndim = draw(st.integers(1, 2))
    extents, lo, shape, box_lo, box_hi = [], [], [], [], []
    for _ in range(ndim):
        start = draw(st.integers(-7, 4))
        extents.append(Extent(start, start + draw(st.integers(0, 9)), draw(st.booleans())))
        lo.append(draw(st.integers(-3, 3)))
        shape.append(draw(st.integers(1, 6)))
        box_lo.append(lo[-1] + draw(st.integers(-1, 6)))
        box_hi.append(box_lo[-1] + draw(st.integers(-1, 5)))
    step = tuple(draw(st.integers(1, 3)) for _ in range(ndim))
    window = Window(tuple("ij"[:ndim]), tuple(extents), step, draw(st.sampled_from(["clip", "drop"])))
    return window, Box.at(lo, shape), Box(tuple(box_lo), tuple(box_hi))


def positions(window: Window, bounds: Box) -> dict[tuple[int, ...], tuple[int, ...]]:
    """Each result and its position, by counting every step-th cell."""
    axes = [
        list(enumerate(range(lo, hi + 1, step), start=lo))
        for lo, hi, step in zip(bounds.lo, bounds.hi, window.step, strict=True)
    ]
    return {tuple(r for r, _ in pairs): tuple(p for _, p in pairs) for pairs in itertools.product(*axes)}


@settings(deadline=None)
@given(windows())
def test_results_and_positions(case: tuple[Window, Box, Box]) -> None:
    window, bounds, box = case
    known = positions(window, bounds)
    assert set(cells_of(window.output_bounds(bounds))) == set(known)
    for result, position in known.items():
        assert window.input_cell(result, bounds) == position
    chosen = [position for result, position in known.items() if result in box]
    inputs = window.input_box(box, bounds)
    assert inputs.is_empty if not chosen else (inputs.lo, inputs.hi) == (min(chosen), max(chosen))


def test_anchors() -> None:
    # The definitions of SPEC section 2, and SciPy's even windows.
    assert (corner(3), centred(3), trailing(3)) == (between(0, 2), between(-1, 1), between(-2, 0))
    assert (corner(4), centred(4), trailing(4)) == (between(0, 3), between(-2, 1), between(-3, 0))
    assert corner(1) == centred(1) == trailing(1) == Extent(0, 0)
    assert corner(np.int64(2)) == Extent(0, 1)
    assert between(1, 3).width == between(-5, -3).width == 3
    assert corner(3) != corner(3).wrap()


def test_of_fills_in_what_is_not_named() -> None:
    window = Window.of(SCHEMA, {"time": trailing(30), "lat": 3}, step=2, boundary="drop", min_count=5)
    assert window.dimensions == ("lon", "lat", "time")
    assert window.extents == (Extent(0, 0), Extent(0, 2), Extent(-29, 0))
    assert window.step == (1, 2, 2)
    assert Window.of(SCHEMA, {"time": 4, "lat": 3}, step=(5, 6)).step == (1, 6, 5)
    assert Window.of(SCHEMA, {"time": 4}, step={"lon": 7}).step == (7, 1, 1)
    assert pickle.loads(pickle.dumps(window)) == window
    assert hash(window) == hash(pickle.loads(pickle.dumps(window)))


def test_regrid_cuts_side_by_side() -> None:
    blocks = regrid(SCHEMA, {"lon": 100, "time": 2})
    bounds = SCHEMA.box((0, 0, 5))
    assert blocks == Window.of(SCHEMA, {"lon": 100, "time": 2}, step={"lon": 100, "time": 2})
    assert blocks.output_bounds(bounds) == Box((0, 0, 1), (2, 144, 3))
    assert blocks.input_box(Box((1, 0, 2), (2, 0, 3)), bounds) == Box((100, 0, 3), (200, 0, 5))


def test_text() -> None:
    extents = {"lon": centred(3).wrap(), "lat": centred(3), "time": trailing(30)}
    window = Window.of(SCHEMA, extents, step=(1, 2, 1), boundary="drop", min_count=5)
    expected = "window (lon centred 3 wrap, lat centred 3, time trailing 30) step (1, 2, 1) boundary drop min count 5"
    assert str(window) == expected
    plain = parse_schema("<a> [i=1:9, j=1:9]")[1]
    assert str(Window.of(plain, {"i": between(-1, 2), "j": 3})) == "window (i between -1 and 2, j 3)"
    assert str(Window.of(plain, {"i": between(-5, -2)})) == "window (i between -5 and -2, j 1)"


def test_extents_in_label_units_are_kept() -> None:
    window = Window.of(SCHEMA, {"time": trailing("30 days"), "lat": within("2.50 degrees"), "lon": corner("5°").wrap()})
    assert window.extents[2] == LabelExtent("trailing", 30, "days")
    assert str(window) == "window (lon '5 °' wrap, lat within '2.5 degrees', time trailing '30 days')"
    assert not window.in_cells
    assert Window.of(SCHEMA, {"time": 3}).in_cells
    assert Window.of(SCHEMA, {"time": "30 days"}).extents[2] == corner("30days")
    assert str(centred("0.0000001")) == "centred '0.0000001'"


@pytest.mark.parametrize(
    ("extents", "options", "message"),
    [
        ({"lat": 0}, {}, "at least one cell along lat, got 0"),
        ({"lat": -3}, {}, "at least one cell along lat, got -3"),
        ({"lat": 2.5}, {}, "must be an integer along lat, got 2.5"),
        ({"lat": True}, {}, "must be an integer"),
        ({"lat": None}, {}, "must be an integer"),
        ({"lat": "days"}, {}, "30 days"),
        ({"lat": "0 days"}, {}, "positive number"),
        ({"lat": "9" * 400 + " days"}, {}, "positive number"),
        ({"lat": 2}, {"step": 0}, "step along lat must be at least 1, got 0"),
        ({"lat": 2}, {"step": "2"}, "must be an integer"),
        ({"lat": 2}, {"step": (1, 2)}, "expected 1 steps"),
        ({"lat": 2}, {"step": {"lat": -1}}, "at least 1"),
        ({"lat": 2}, {"boundary": "dorp"}, "Did you mean 'drop'"),
        ({"lat": 2}, {"boundary": None}, "boundary"),
        ({"lat": 2}, {"min_count": -1}, "min_count"),
        ({"time": trailing(3).wrap()}, {}, "growing dimension cannot wrap, got time"),
        ({"time": trailing("3 days").wrap()}, {}, "growing dimension cannot wrap, got time"),
    ],
)
def test_windows_that_cannot_be(extents: dict[str, object], options: dict[str, object], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        Window.of(SCHEMA, extents, **options)  # type: ignore[arg-type]


def test_more_that_cannot_be() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'lat'"):
        Window.of(SCHEMA, {"latt": 2})
    with pytest.raises(UnknownNameError, match="Did you mean 'lat'"):
        Window.of(SCHEMA, {"lat": 2}, step={"latt": 2})
    with pytest.raises(SchemaError, match="ends before it starts, got 2 to 1"):
        between(2, 1)
    with pytest.raises(SchemaError, match="beyond"):
        corner(2**70)
    with pytest.raises(SchemaError, match="for each dimension"):
        Window(("i",), (), ())
    with pytest.raises(SchemaError, match="1 dimensions"):
        Reach((0,), (0,), (False,)).halo(Box((0, 0), (1, 1)), Box((0, 0), (1, 1)))


def test_empty_arrays_need_nothing() -> None:
    window = Window.of(SCHEMA, {"time": trailing(3), "lon": centred(3).wrap()}, step=2)
    nothing = SCHEMA.box()
    assert window.output_bounds(nothing).is_empty
    assert window.input_box(Box((0, 0, 1), (9, 9, 9)), nothing).is_empty


def test_a_pair_is_a_range_of_offsets() -> None:
    schema = parse_schema("<a: int64> [i=1:5, j=1:5]")[1]
    assert Window.of(schema, {"i": (-1, 2)}) == Window.of(schema, {"i": between(-1, 2)})
    with pytest.raises(SchemaError, match="along i"):
        Window.of(schema, {"i": (2, -1)})


def test_going_round_is_said_of_dimensions() -> None:
    with pytest.raises(SchemaError, match="single dimensions") as caught:
        Window.of(parse_schema("<a: int64> [i=1:5]")[1], {"i": 2}, boundary="wrap")
    assert "wrap()" in str(caught.value.hint)
