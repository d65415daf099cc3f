"""Shapes against a test of every single offset or pair of cells."""

from __future__ import annotations

import itertools
import math
import pickle
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shape_twin import Offset, are_neighbours, cells_of, has_offset
from windrow.errors import SchemaError, UnknownNameError
from windrow.model.box import Box
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
)

NAMES = ("i", "j", "k")
PTF = parse_schema("sparse PTF [ra=1:1000, dec=1:500, time=1:*]")[1]


@st.composite
def shapes(draw: st.DrawFn, names: tuple[str, ...], finite: bool = False, wraps: bool = False) -> Shape:
    some = st.none() | st.lists(st.sampled_from(names), min_size=1, unique=True).map(tuple)
    pairs = st.tuples(st.integers(-5, 5), st.integers(0, 5)).map(lambda p: (p[0], p[0] + p[1]))
    kinds = ["L1", "L2", "Linf", "Lp", "range", "list"] + ([] if finite else ["Hamming", "any"])
    result: Shape | None = None
    for kind in draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=3)):
        on = draw(some)
        if kind == "range":
            term = offsets(**{draw(st.sampled_from(names)): draw(pairs)})
        elif kind == "any":
            term = offsets(**{draw(st.sampled_from(names)): any_offset})
        elif kind == "Hamming":
            term = Hamming(draw(st.integers(0, 3)), on)
        elif kind == "list":
            width = len(names) if on is None else len(on)
            row = st.tuples(*[st.integers(-3, 3)] * width)
            term = offset_list(draw(st.lists(row, max_size=6)), on)
        else:
            radius = draw(
                st.integers(0, 4) | st.sampled_from([0.5, 1.5, math.sqrt(2), math.sqrt(3), 9 ** (1 / 3), 2.3])
            )
            power = draw(st.sampled_from([1.5, 3, 4, 7.25, 40])) if kind == "Lp" else 0
            term = Lp(power, radius, on) if power else {"L1": L1, "L2": L2, "Linf": Linf}[kind](radius, on)
        result = term if result is None else result & term
    assert result is not None
    if wraps:
        result = result.wrap(*draw(st.lists(st.sampled_from(names), unique=True)))
    return result.excluding_self() if draw(st.booleans()) else result


def rows_as_offsets(leading: np.ndarray, first: np.ndarray, last: np.ndarray) -> list[Offset]:
    return [
        (*map(int, prefix), value)
        for prefix, lo, hi in zip(leading, first, last, strict=True)
        for value in range(lo, hi + 1)
    ]


def tuples(listed: np.ndarray) -> list[Offset]:
    return [tuple(map(int, row)) for row in listed]


@settings(max_examples=70, deadline=None)
@given(st.integers(1, 3).flatmap(lambda n: shapes(NAMES[:n], finite=True).map(lambda s: (s, NAMES[:n]))))
def test_offsets_of_finite_shapes(case: tuple[Shape, tuple[str, ...]]) -> None:
    shape, names = case
    every = list(itertools.product(range(-11, 12), repeat=len(names)))
    bound = shape.bind(names)
    inside = np.array([has_offset(shape, names, offset) for offset in every])
    if shape.excludes_self:
        inside &= np.array([any(offset) for offset in every])
    expected = [offset for offset, good in zip(every, inside, strict=True) if good]
    assert bound.mask(list(np.array(every).T)).tolist() == inside.tolist()
    listed = bound.offsets()
    assert listed.dtype == np.int64
    assert listed.shape == (len(expected), len(names))
    assert tuples(listed) == expected
    assert rows_as_offsets(*bound.rows()) == expected
    assert bound.size == len(expected)
    if expected:
        for (lo, hi), column in zip(bound.bounds(), zip(*expected, strict=True), strict=True):
            assert lo <= min(column)
            assert max(column) <= hi
    assert tuples(bound.reflect().offsets()) == sorted(tuple(-o for o in offset) for offset in expected)
    assert shape.reflect().bind(names) == bound.reflect()


def test_bounds_of_norms_are_tight() -> None:
    for shape in (L1(3), L2(2.5), Linf(2), L1(4) & offsets(i=(2, 9)), L2(3, on=("i", "j")) & offsets(j=(-9, -2))):
        bound = shape.bind(("i", "j"))
        listed = bound.offsets()
        assert bound.bounds() == tuple(zip(listed.min(axis=0).tolist(), listed.max(axis=0).tolist(), strict=True))


@st.composite
def placed(draw: st.DrawFn) -> tuple[Shape, tuple[str, ...], Box, Box]:
    names = NAMES[: draw(st.integers(1, 2))]
    lo = [draw(st.integers(-2, 2)) for _ in names]
    bounds = Box.at(lo, [draw(st.integers(1, 5)) for _ in names])
    corner = [start + draw(st.integers(-1, 4)) for start in lo]
    box = Box.at(corner, [draw(st.integers(0, 3)) for _ in names])
    return draw(shapes(names, wraps=True)), names, bounds, box


@settings(max_examples=200, deadline=None)
@given(placed())
def test_neighbours_on_an_array(case: tuple[Shape, tuple[str, ...], Box, Box]) -> None:
    shape, names, bounds, box = case
    bound = shape.bind(names, bounds)
    listed = bound.offsets()
    reached: dict[Offset, set[Offset]] = {}
    known: dict[Offset, bool] = {}  # whether cells are neighbours depends on where they lie to one another alone
    for cell in cells_of(bounds):
        expected = set()
        for other in cells_of(bounds):
            apart = tuple(o - c for c, o in zip(cell, other, strict=True))
            if apart not in known:
                known[apart] = are_neighbours(shape, names, bounds, apart)
            if known[apart]:
                expected.add(other)
        differences = np.array([np.subtract(other, cell) for other in cells_of(bounds)])
        masked = [o for o, good in zip(cells_of(bounds), bound.mask(list(differences.T)), strict=True) if good]
        assert set(masked) == expected
        assert all(bound.contains(np.subtract(other, cell).tolist()) for other in expected)
        walked = []
        for offset in tuples(listed):
            target = [
                lo + (c + o - lo) % n if name in shape.wraps else c + o
                for c, o, lo, n, name in zip(cell, offset, bounds.lo, bounds.shape, names, strict=True)
            ]
            walked.append(tuple(target))
        assert len(set(walked)) == len(walked)
        assert {cell for cell in walked if cell in bounds} == expected
        reached[cell] = expected
    assert rows_as_offsets(*bound.rows()) == tuples(listed)
    needed = {other for cell, others in reached.items() if cell in box for other in others}
    touched = {cell for cell, others in reached.items() if any(other in box for other in others)}
    inside = box & bounds
    around, back = (one.partner_boxes(inside, bounds) for one in (bound, bound.reflect()))
    for found, pieces in ((needed, around), (touched, back)):
        covered = [cell for piece in pieces for cell in cells_of(piece)]
        assert len(covered) == len(set(covered))
        assert found <= set(covered) <= set(cells_of(bounds))
    reached_box = set(cells_of(bound.halo(box, bounds)))
    assert needed <= reached_box <= set(cells_of(bounds))


def test_the_known_shapes() -> None:
    assert tuples(L1(1).bind(("i", "j")).offsets()) == [(-1, 0), (0, -1), (0, 0), (0, 1), (1, 0)]
    assert L1(1, on=("i", "j")).excluding_self().bind(NAMES).size == 4
    assert Linf(2).bind(NAMES).size == 125
    assert L2(1.5).bind(("i", "j")).size == 9
    assert L2(math.sqrt(3)).bind(NAMES).size == 27
    assert Hamming(1).bind(("i", "j"), Box((1, 1), (4, 3))).size == 7 + 5 - 1
    wide = (L1(1, on=("ra", "dec")) & offsets(time=(-200, 0))).bind(PTF, PTF.box((0, 0, 9)))
    assert wide.size == 5 * 201
    assert wide.bounds() == ((-1, 1), (-1, 1), (-200, 0))
    assert (L1(1, on="ra") & offsets(time=any_offset)).bind(PTF, PTF.box((0, 0, 9))).bounds()[2] == (-8, 8)


def test_a_huge_hamming_shape_is_listed_without_its_box() -> None:
    bound = Hamming(1).bind(NAMES, Box((1, 1, 1), (100_000, 50_000, 153_064)))
    assert bound.size == 2 * (99_999 + 49_999 + 153_063) + 1
    assert len(bound.offsets()) == bound.size


def test_rows_of_unlimited_shapes_stay_small() -> None:
    leading, first, last = (L1(1, on=("ra", "dec")) & offsets(time=any_offset)).bind(PTF.dimension_names).rows()
    assert tuples(leading) == [(-1, 0), (0, -1), (0, 0), (0, 1), (1, 0)]
    assert set(first) == {-(2**62)}
    assert set(last) == {2**62}
    with pytest.raises(SchemaError, match="too many offsets"):
        Hamming(2).bind(PTF.dimension_names).offsets()
    with pytest.raises(SchemaError, match="too many offsets"):
        Linf(5000).bind(NAMES).offsets()


def test_large_radii_are_exact() -> None:
    bound = L2(2**28).bind(("i", "j"))
    assert bound.contains((2**28, 0))
    assert not bound.contains((2**28, 1))
    assert not bound.contains((2**62, 2**62))
    assert not L1(3).bind(("i", "j")).contains((2**62, -(2**62)))


def test_far_lists_and_small_periods() -> None:
    bound = offset_list([(10**9,), (5,)], on=("i",)).wrap("i").bind(("i",), Box((0,), (2,)))
    assert [o for o in range(3) if bound.contains((o,))] == [10**9 % 3, 5 % 3]
    assert L1(10**8).wrap("i").bind(("i",), Box((0,), (2,))).size == 3
    assert L1(10**8).wrap("i").excluding_self().bind(("i",), Box((0,), (2,))).size == 2
    assert L1(1).wrap("i").excluding_self().bind(("i",), Box((0,), (0,))).size == 0


def test_equality_is_by_value() -> None:
    one = L1(1, on=("ra", "dec")) & offsets(time=(-200, 0))
    two = offsets(time=[-200, 0]) & L1(1.0, on=["dec", "ra"])  # type: ignore[arg-type]
    assert one == two
    assert hash(one) == hash(two)
    assert one.bind(PTF) == two.bind(PTF)
    assert one != one.excluding_self()
    assert one != one.wrap("ra")
    assert L1(1) != L2(1)
    assert L1(1) != "L1(1)"
    assert L1(1) & L1(1) == L1(1)
    assert offset_list([(1, 2), (0, 3), (1, 2)], on=("i", "j")) == offset_list([(3, 0), (2, 1)], on=("j", "i"))
    bound = one.wrap("ra").bind(PTF)
    assert pickle.loads(pickle.dumps(one)) == one
    assert pickle.loads(pickle.dumps(bound)) == bound
    assert hash(pickle.loads(pickle.dumps(bound))) == hash(bound)


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        (L1(1, on=("ra", "dec")) & offsets(time=(-200, 0)), "L1(1) on (ra, dec), time between -200 and 0"),
        (L2(1.5).excluding_self(), "L2(1.5), excluding self"),
        (Linf(2.0, on="lon").wrap("lon"), "Linf(2) on (lon), wrap (lon)"),
        (Hamming(1) & offsets(time=any_offset), "Hamming(1), time any"),
        (offset_list([(1, 0), (0, 1)], on=("i", "j")), "offsets ((0, 1), (1, 0)) on (i, j)"),
    ],
)
def test_text(shape: Shape, text: str) -> None:
    assert str(shape) == text


@pytest.mark.parametrize("radius", [-1, math.nan, math.inf, "2", None, True, 2**29])
def test_radii_that_cannot_be(radius: object) -> None:
    for make in (L1, L2, Linf):
        with pytest.raises(SchemaError, match="radius"):
            make(radius)  # type: ignore[arg-type]


def test_shapes_that_cannot_be() -> None:
    cases: list[tuple[Callable[[], object], str]] = [
        (lambda: Hamming(-1), "negative"),
        (lambda: Hamming(1.5), "integer"),  # type: ignore[arg-type]
        (lambda: offsets(), "at least one dimension"),
        (lambda: offsets(time=5), r"As in offsets\(time="),  # type: ignore[arg-type]
        (lambda: offsets(time=(None, 0)), "integer"),  # type: ignore[arg-type]
        (lambda: offsets(time=(2, 1)), "end before they start, got 2 to 1"),
        (lambda: offsets(time=(0, 2**63)), "beyond"),
        (lambda: offset_list([(1, 2), (1,)]), "one component for each"),
        (lambda: offset_list([(1, 2)], on="i"), "one component for each"),
        (lambda: offset_list([(2**62,)]), "beyond"),
        (lambda: offset_list([(1, 2)]).bind(NAMES), "need 3 components"),
        (lambda: L1(1, on=()), "each of its dimensions once, got none"),
        (lambda: L1(1, on=("i", "i")), "each of its dimensions once, got i, i"),
        (lambda: L1(1, on=("i j",)), "not a valid name"),
        (lambda: L1(1).wrap("time").bind(PTF), "growing dimension cannot wrap, got time"),
        (lambda: L1(1).wrap("i").bind(NAMES), "needs the array's bounds"),
        (lambda: L1(1).bind(NAMES, Box((1,), (2,))), "3 dimensions"),
        (lambda: L1(1).bind(NAMES).contains((1, 2)), "3 components"),
        (lambda: L1(1).bind(NAMES).difference(L1(1).bind(("i",))), "different dimensions"),
    ]
    for make, message in cases:
        with pytest.raises(SchemaError, match=message):
            make()
    for misspelt in (L1(1, on="rra"), offsets(rra=(0, 1)), L1(1).wrap("rra")):
        with pytest.raises(UnknownNameError, match="Did you mean 'ra'"):
            misspelt.bind(PTF)


def test_a_bounded_schema_gives_the_bounds() -> None:
    schema = parse_schema("<a> [lon=0:359, lat=0:179]")[1]
    bound = (L1(2) & Hamming(1)).wrap("lon").bind(schema)
    assert bound == (L1(2) & Hamming(1)).wrap("lon").bind(schema, schema.box())
    assert bound.contains((359, 0))
    assert not bound.contains((0, 179))
    assert bound.partner_boxes(Box((0, 0), (0, 0)), schema.box()) == [Box((358, 0), (359, 2)), Box((0, 0), (2, 2))]
    assert Norm("L1", 2, None) in L1(2).terms


def test_an_impossible_shape_is_empty() -> None:
    bounds = Box((0, 0), (9, 9))
    for shape in (L1(1) & offsets(i=(5, 6)), L1(3) & offsets(i=(2, 6), j=(2, 6)), offset_list([])):
        bound = shape.bind(("i", "j"), bounds)
        assert bound.offsets().shape == (0, 2)
        assert bound.size == 0
        assert not bound.contains((5, 0))
        assert bound.halo(bounds, bounds).is_empty
        assert bound.reflect().partner_boxes(bounds, bounds) == []
