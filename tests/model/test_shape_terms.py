"""Label units, stored arrays, Lp, circles on the sky: what they mean, how they read, and what is refused."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import windrow as wr
from shape_twin import lp_share
from windrow.errors import Error, SchemaError, UnknownNameError
from windrow.model.box import Box
from windrow.model.coordinates import coordinates_of
from windrow.model.gridding import Gridding
from windrow.model.labelled_range import LabelledRange
from windrow.model.labels import Labels
from windrow.model.notation import parse_schema
from windrow.model.shape import (
    L1,
    L2,
    Hamming,
    Linf,
    Lp,
    Norm,
    Shape,
    any_offset,
    offset_list,
    offsets,
    sky,
    stored_shape,
)

DAYS = np.timedelta64(1, "D")
SCHEMA = parse_schema("sparse A [time=5:*, x=1:9]")[1]


def days(*numbers: float) -> Labels:
    start = np.datetime64("2020-01-01", "us")
    return Labels(np.array([start + np.timedelta64(round(number * 86400e6), "us") for number in numbers]))


# Label units


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.integers(0, 40), min_size=1, max_size=12, unique=True),
    st.tuples(st.integers(-15, 15), st.integers(-15, 15)).map(sorted),
    st.booleans(),
    st.booleans(),
)
def test_labels_decide_which_cells_are_near(numbers: list[int], ends: list[int], down: bool, floats: bool) -> None:
    numbers.sort(reverse=down)
    labels = Labels(np.array(numbers, np.float64) / 4) if floats else days(*numbers)
    unit = "" if floats else " days"
    scale = 4 if floats else 1
    start, stop = (0 if not end else f"{end / scale:g}{unit}" for end in ends)
    shape = offsets(time=(start, stop))
    box = Box((5, 1), (4 + len(numbers), 9))
    centres = np.arange(3, 7 + len(numbers))
    expected = [
        [k + 5 for k, other in enumerate(numbers) if ends[0] <= other - numbers[centre - 5] <= ends[1]]
        if 5 <= centre < 5 + len(numbers)
        else []
        for centre in centres.tolist()
    ]
    unbound = shape.bind(SCHEMA, box)
    if (start, stop) != (0, 0):
        found = near_cells(unbound.labelled[0], centres, labels, (5, 4 + len(numbers)))
        assert found == expected
        reflected = near_cells(unbound.reflect().labelled[0], centres, labels, (5, 4 + len(numbers)))
        for cell, near in zip(centres.tolist(), reflected, strict=True):
            assert near == [other for other, its in zip(centres.tolist(), expected, strict=True) if cell in its]
    bound = shape.bind(SCHEMA, box, coordinates=coordinates_of(SCHEMA, {"time": labels}))
    for centre, near in zip(centres.tolist(), expected, strict=True):
        for cell in near:
            assert bound.start[0] <= cell - centre <= bound.stop[0]
    runs = bound.key_runs()
    assert runs.axes[-1] == 0 or not bound.labelled
    if not bound.labelled:  # at equal steps, or the cell alone
        for centre in range(5, 5 + len(numbers)):
            within = [cell for cell in range(5, 5 + len(numbers)) if bound.contains((cell - centre, 0))]
            assert within == expected[centre - 3]


def near_cells(one: LabelledRange, centres: Any, labels: Labels, bounds: tuple[int, int]) -> list[list[int]]:
    lo, hi = one.ranges(centres, labels, bounds)
    assert (np.diff(lo) >= 0).all()
    assert (np.diff(hi) >= 0).all()
    return [list(range(first, last + 1)) for first, last in zip(lo.tolist(), hi.tolist(), strict=True)]


def test_the_cases_of_views_by_labels() -> None:
    one = offsets(time=("-5 days", 0)).bind(SCHEMA).labelled[0]
    for labels, counts in ((days(1, 2, 10), [1, 2, 1]), (days(1, 2, 6), [1, 2, 3])):
        lo, hi = one.ranges([5, 6, 7], labels, (5, 7))
        assert (hi - lo + 1).tolist() == counts


def test_equal_steps_become_cells() -> None:
    shape = L1(1, on=("ra", "dec")) & offsets(time=("-200 days", 0))
    schema = parse_schema("sparse A [time=1:*, ra=1:360, dec=1:180, n=0:* numbering]")[1]
    grid = Gridding.of({"time": ("2020-01-01", None, "3 days"), "ra": (0, 360, 1), "dec": (-90, 90, 1)})
    gridded = shape.bind(schema, Box((1, 1, 1, 0), (9, 360, 180, 4)), coordinates=coordinates_of(schema, {}, grid))
    cells = L1(1, on=("ra", "dec")) & offsets(time=(-66, 0))
    assert gridded == cells.bind(schema, Box((1, 1, 1, 0), (9, 360, 180, 4)))
    assert len(gridded.key_runs().first) == 5
    daily = coordinates_of(schema, {"time": days(*range(9))})
    assert shape.bind(schema, coordinates=daily).start[0] == -200
    down = coordinates_of(schema, {"time": days(*range(9, 0, -1))})
    assert shape.bind(schema, coordinates=down).stop[0] == 200


def test_key_runs_of_label_units() -> None:
    schema = parse_schema("sparse A [time=1:9, run=1:9, ra=1:9, dec=1:9]")[1]
    shape = L1(1, on=("ra", "dec")) & offsets(time=("-2 days", "2 days"))
    bound = shape.bind(schema)
    runs = bound.key_runs()
    assert (runs.axes, len(runs.first), set(runs.first), set(runs.last)) == ((1, 2, 3, 0), 5, {0}, {0})
    assert bound.checked == ()
    two = (shape & offsets(run=("-1 hours", 0))).bind(schema)
    assert (two.key_runs().axes, [one.axis for one in two.checked]) == ((2, 3, 0), [1])
    tied = (shape & offsets(time=(-3, 3))).bind(schema)
    assert tied.searched is None
    assert [one.axis for one in tied.checked] == [0]
    assert (tied.key_runs().axes, set(tied.key_runs().first)) == ((1, 2, 3, 0), {-3})
    larger = (Linf(1, on=("ra", "dec")) & offsets(time=("-2 days", "2 days"))).bind(schema)
    assert larger.difference(bound).size == 4
    assert larger.difference(bound).axes == (1, 2, 3, 0)
    everything = (offsets(run=any_offset, ra=any_offset, dec=any_offset, time=("-2 days", 0))).bind(schema)
    assert everything.key_runs().axes == (0,)
    assert everything.key_runs().leading.shape == (1, 0)


def test_units_are_those_of_the_labels() -> None:
    pressure = coordinates_of(SCHEMA, {"time": Labels(np.array([1000.0, 900, 500]), {"units": "hPa"})})
    assert offsets(time=("-100 hPa", 0)).bind(SCHEMA, coordinates=pressure).labelled[0].axis == 0
    named = coordinates_of(SCHEMA, {"time": Labels.of(["a", "b"])})
    cases: list[tuple[Shape, Any]] = [
        (offsets(time=("-5 days", 0)), pressure),
        (offsets(time=("-5 arcsec", 0)), coordinates_of(SCHEMA, {"time": days(1, 2, 4)})),
        (offsets(time=("-5 days", 0)), named),
        (offsets(x=("-5 days", 0)), pressure),
        (offsets(x=("-5 days", 0)), {}),
        (offsets(time=("2 days", "1 hours")), coordinates_of(SCHEMA, {"time": days(1, 2, 4)})),
        (offsets(time=("2 days", "1 hours")), coordinates_of(SCHEMA, {"time": days(1, 2, 3)})),
    ]
    for shape, coordinates in cases:
        with pytest.raises(Error):
            shape.bind(SCHEMA, Box((5, 1), (7, 9)), coordinates=coordinates)
    fixed = parse_schema("sparse A [time=1:3]")[1]
    irregular = coordinates_of(fixed, {"time": days(1, 2, 9)})
    with pytest.raises(SchemaError, match="cannot wrap"):
        offsets(time=("-5 days", 0)).wrap("time").bind(fixed, coordinates=irregular)


# Stored arrays


def test_stored_arrays_become_lists() -> None:
    shape = stored_shape("S") & offsets(time=any_offset)
    assert (shape.stored, L1(1).stored) == (("S",), ())
    assert stored_shape("S@3").stored == ("S@3",)
    cells = np.array([[0, 1], [0, 1], [-2, 0]])
    assert stored_shape("S").with_offsets({"S": cells}) == offset_list(cells.tolist())
    assert stored_shape("S", on=("i", "j")).with_offsets({"S": cells}) == offset_list(cells.tolist(), on=("i", "j"))
    assert stored_shape("S").reflect().with_offsets({"S": cells}) == offset_list((-cells).tolist())
    assert stored_shape("S").with_offsets({"T": cells}) == stored_shape("S")
    assert stored_shape("S").with_offsets({"S": np.zeros((0, 2))}).bind(("i", "j")).is_empty
    for wrong in ([[0.5, 1]], [1, 2]):
        with pytest.raises(SchemaError, match="whole numbers"):
            stored_shape("S").with_offsets({"S": wrong})
    with pytest.raises(SchemaError, match="one component for each"):
        stored_shape("S", on="i").with_offsets({"S": cells})
    with pytest.raises(SchemaError, match="not read, got S"):
        shape.bind(("i", "j", "time"))


def test_arrays_in_hand_are_shapes(tmp_path: Any) -> None:
    with wr.connect(tmp_path / "w", engine="local") as db:
        array = db.create("S", "<a: int64> [i=-9:9, j=-9:9]", sparse=True)
        assert wr.shape(array) == wr.shape("S")
        assert wr.shape(array.at(version=0)).stored == ("S@0",)


# Lp


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from([1.25, 1.5, 3.0, 4.0, 5.0, 9.5, 60.0]),
    st.integers(0, 12) | st.floats(0, 12) | st.integers(1, 2000).map(lambda k: k ** (1 / 3)),
)
@example(3.0, math.nextafter(math.nextafter(math.nextafter(12, 0), 0), 0))
@example(3.0, math.nextafter(math.nextafter(12, 0), 0))
@example(9.5, math.nextafter(12, 0))
@example(3.0, math.nextafter(5, 0))
@example(3.0, 5e-324)
@example(60.0, 2.2e-308)
@example(1.25, 1e-200)
def test_lp_by_its_definition(power: float, radius: float) -> None:
    bound = Lp(power, radius).bind(("i", "j"))
    norm = Norm("Lp", float(radius), None, power)
    shares = {(i, j): lp_share(norm, (j, i)) for i in range(15) for j in range(i + 1)}
    # Where doubles cannot tell on which side of the slack a sum lies, either answer is right.
    assume(all(not slack or abs(share - 1 - slack) > slack / 10**3 for share, slack in shares.values()))
    inside = {pair for pair, (share, slack) in shares.items() if share <= 1 + slack}
    reach = range(-14, 15)
    expected = {(i, j) for i in reach for j in reach if (max(abs(i), abs(j)), min(abs(i), abs(j))) in inside}
    assert {(i, j) for i in reach for j in reach if bound.contains((i, j))} == expected
    assert set(map(tuple, bound.offsets().tolist())) == expected
    assert set(map(tuple, bound.key_runs().offsets().tolist())) == expected


def test_lp_is_exact_where_it_can_be() -> None:
    cube = Lp(3, 9 ** (1 / 3)).bind(("i", "j"))
    assert cube.contains((1, 2))
    assert not cube.contains((2, 2))
    taxicab = Lp(3, 12).bind(("i", "j"))  # 9³ + 10³ = 12³ + 1³
    assert not taxicab.contains((9, 10))
    assert not taxicab.contains((12, 1))
    large = Lp(3, 150_000).bind(("i", "j"))
    assert large.contains((150_000, 0))
    assert not large.contains((150_000, 1))
    assert Lp(40, 3).bind(("i", "j")).size == 25 + 4 * 3
    assert Lp(1000, 10).bind(("i", "j")).contains((10, 9))
    assert Lp(1, 2) == L1(2)
    assert Lp(2.0, 2) == L2(2)
    assert Lp(math.inf, 2) == Linf(2)
    assert Lp(3, 0).bind(("i", "j")).size == 1
    assert Lp(1.5, 0).bind(("i", "j")).size == 1


# Sky


def test_circles_on_the_sky() -> None:
    bound = (sky("10 arcsec") & offsets(time=(-3, 0))).bind(("ra", "dec", "time"))
    assert bound.sky is not None
    assert bound.sky.radius == pytest.approx(10 / 3600, rel=1e-15)
    assert bound.sky.axes == (0, 1)
    assert bound.free == (True, True, False)
    assert bound.key_runs().axes == (2,)
    assert sky("10 arcsec") == sky(" 10   arcseconds ") == sky("10 arcsec", on=["ra", "dec"])
    assert hash(sky("60 arcsec")) == hash(sky("1 arcmin"))
    assert sky("60 arcsec") == sky("1 arcmin")
    assert sky("1 deg") == sky(1)
    assert sky("1 deg", on=("dec", "ra")) != sky(1)
    assert sky("1 deg").reflect() == sky(1)
    turned = sky("1 deg", on=("lon", "lat")).bind(("t", "lat", "lon"))
    assert turned.sky is not None
    assert turned.sky.axes == (2, 1)
    with pytest.raises(SchemaError, match="one circle"):
        (sky("1 deg") & sky("2 deg")).bind(("ra", "dec"))


@pytest.mark.parametrize(
    "term",
    [
        L1(0),
        Linf(0, on="ra"),
        Hamming(1, on="dec"),
        offsets(ra=(0, 0)),
        offsets(dec=("-1 deg", 0)),
        offset_list([(0, 0)]),
    ],
)
def test_offsets_in_cells_along_the_sky_are_refused(term: Shape) -> None:
    for shape in (sky("1 deg") & term, term & sky("1 deg")):
        with pytest.raises(SchemaError, match="sky and offsets in cells"):
            shape.bind(("ra", "dec"))
    assert (sky("1 deg") & offsets(ra=any_offset) & L1(2, on="t")).bind(("t", "ra", "dec")).free == (False, True, True)


# Text, equality, refusals


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        (Lp(3, 2.5, on=("x", "y")), "Lp(3, 2.5) on (x, y)"),
        (Lp(1.5, 2), "Lp(1.5, 2)"),
        (offsets(time=("-200 days", 0)), "time between '-200 days' and 0"),
        (offsets(time=(" -2.5  days", "+1 h")), "time between '-2.5 days' and '+1 h'"),
        (offsets(time=("-200days", "0 days")), "time between '-200 days' and 0"),
        (stored_shape("S").wrap("i"), "S, wrap (i)"),
        (stored_shape("S@3", on="i"), "S@3 on (i)"),
        (sky("10 arcsec"), "Sky('10 arcsec') on (ra, dec)"),
        (sky(0.5, on=("lon", "lat")), "Sky('0.5 degrees') on (lon, lat)"),
    ],
)
def test_text(shape: Shape, text: str) -> None:
    assert str(shape) == text
    assert pickle.loads(pickle.dumps(shape)) == shape
    assert shape.reflect().reflect() == shape or "+" in text


REFUSED: list[tuple[Callable[[], object], str]] = [
    (lambda: Lp(0, 1), "power of Lp must be a number from 1"),
    (lambda: Lp(0.5, 1), "power of Lp"),
    (lambda: Lp(-1, 1), "power of Lp"),
    (lambda: Lp(math.nan, 1), "power of Lp"),
    (lambda: Lp(True, 1), "power of Lp"),
    (lambda: Lp("3", 1), "power of Lp"),  # type: ignore[arg-type]
    (lambda: Lp(5000, 1), "as good as Linf"),
    (lambda: Lp(3, -1), "radius of Lp"),
    (lambda: Lp(1, -1), "radius of L1"),
    (lambda: Lp(3, 2**29), "radius of Lp"),
    (lambda: sky("200 degrees"), "below 180 degrees, got '200 degrees'"),
    (lambda: sky("180 deg"), "below 180"),
    (lambda: sky(0), "above 0"),
    (lambda: sky("-1 arcsec"), "above 0"),
    (lambda: sky("10 days"), "is an angle"),
    (lambda: sky("ten arcsec"), "is an angle"),
    (lambda: sky("10 arcsek"), "is an angle"),
    (lambda: sky(None), "is an angle"),  # type: ignore[arg-type]
    (lambda: sky("10 arcsec", on=("ra",)), "longitude and the latitude"),
    (lambda: sky("10 arcsec", on="ra"), "longitude and the latitude"),
    (lambda: sky("10 arcsec", on=("ra", "ra")), "each of its dimensions once"),
    (lambda: offsets(time=("-200 days", 5)), "in label units, the other in cells"),
    (lambda: offsets(time=("-200 days", None)), "in label units, the other in cells"),  # type: ignore[arg-type]
    (lambda: offsets(time=("-200 days", False)), "in label units, the other in cells"),
    (lambda: offsets(time=("soon", 0)), "need numbers and a unit"),
    (lambda: offsets(time=("2 days", "1 days")), "end before they start"),
    (lambda: offsets(time=("2 days", 0)), "end before they start"),
    (lambda: offsets(time=(0, "-2 days")), "end before they start"),
    (lambda: stored_shape(5), "an array or the name of one"),
    (lambda: stored_shape("a b"), "not a valid name"),
    (lambda: stored_shape("S@x"), "a version is a number"),
]


@pytest.mark.parametrize(("make", "message"), REFUSED)
def test_shapes_that_cannot_be(make: Callable[[], object], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        make()


def test_unknown_dimensions() -> None:
    for shape in (sky("1 deg"), offsets(rra=("-1 days", 0)), Lp(3, 1, on="rra")):
        with pytest.raises(UnknownNameError, match="no such dimension"):
            shape.bind(("dec", "time"))
