"""Shapes as runs, and their differences, against a test of every pair of cells."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shape_twin import Offset, are_neighbours, cells_of
from windrow.errors import SchemaError
from windrow.model.bound_shape import BoundShape
from windrow.model.box import Box
from windrow.model.halo import UNLIMITED
from windrow.model.notation import parse_schema
from windrow.model.offset_runs import KeyRuns
from windrow.model.shape import (
    L1,
    L2,
    Hamming,
    Linf,
    Lp,
    Shape,
    any_offset,
    offset_list,
    offsets,
)

NAMES = ("i", "j", "k")
PTF = ("time", "ra", "dec")
Case = tuple[Shape, tuple[str, ...], Box]


@st.composite
def shapes(draw: st.DrawFn, names: tuple[str, ...]) -> Shape:
    some = st.none() | st.lists(st.sampled_from(names), min_size=1, unique=True).map(tuple)
    pairs = st.tuples(st.integers(-9, 9), st.integers(0, 9)).map(lambda p: (p[0], p[0] + p[1]))
    result: Shape | None = None
    kinds = ["L1", "L2", "Linf", "Lp", "Hamming", "list", "range", "range", "any", "any"]
    for kind in draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=4)):
        on, name = draw(some), draw(st.sampled_from(names))
        radius = draw(st.integers(0, 7) | st.sampled_from([1.5, 2.3]))
        if kind == "range":
            term = offsets(**{name: draw(pairs)})
        elif kind == "any":
            term = offsets(**{name: any_offset})
        elif kind == "Hamming":
            term = Hamming(draw(st.integers(0, 3)), on)
        elif kind == "Lp":
            term = Lp(draw(st.sampled_from([1.5, 3])), radius, on)
        elif kind == "list":
            row = st.tuples(*[st.integers(-7, 7)] * (len(names) if on is None else len(on)))
            term = offset_list(draw(st.lists(row, max_size=6)), on)
        else:
            term = {"L1": L1, "L2": L2, "Linf": Linf}[kind](radius, on)
        result = term if result is None else result & term
    assert result is not None
    return result.excluding_self() if draw(st.booleans()) else result


@st.composite
def cases(draw: st.DrawFn, most: int = 3) -> Case:
    names = NAMES[: draw(st.integers(1, most))]
    longest = 6 if len(names) < 3 else 3
    bounds = Box.at([draw(st.integers(-2, 2)) for _ in names], [draw(st.integers(1, longest)) for _ in names])
    wrapped = draw(st.lists(st.sampled_from(names), unique=True))
    return draw(shapes(names)).wrap(*wrapped), names, bounds


def differences(bounds: Box) -> list[Offset]:
    """How far apart cells of an array can be."""
    return list(itertools.product(*(range(1 - n, n) for n in bounds.shape)))


def with_self(shape: Shape) -> Shape:
    return Shape(shape.terms, shape.wraps)


class Walk:
    """How many of the runs' offsets lead from a cell to another."""

    def __init__(self, runs: KeyRuns, bound: BoundShape) -> None:
        self.axes = runs.axes
        self.moduli = [bound.moduli[axis] for axis in runs.axes]
        self.counts = Counter(self._residue(offset) for offset in runs.offsets().tolist())

    def _residue(self, offset: Sequence[int]) -> Offset:
        return tuple(o % n if n else o for o, n in zip(offset, self.moduli, strict=True))

    def count(self, apart: Offset) -> int:
        return self.counts[self._residue([apart[axis] for axis in self.axes])]


def check_sorted(runs: KeyRuns, ndim: int) -> None:
    assert runs.leading.shape == (len(runs.first), max(0, len(runs.axes) - 1))
    assert {part.dtype for part in (runs.leading, runs.first, runs.last)} == {np.dtype(np.int64)}
    assert len(set(runs.axes)) == len(runs.axes)
    assert all(0 <= axis < ndim for axis in runs.axes)
    assert (runs.first <= runs.last).all()
    rows = [(*row, first) for row, first in zip(runs.leading.tolist(), runs.first.tolist(), strict=True)]
    assert rows == sorted(rows)
    ends = [(*row, last) for row, last in zip(runs.leading.tolist(), runs.last.tolist(), strict=True)]
    for end, row in zip(ends, rows[1:], strict=False):  # neighbouring runs that touch would be one
        assert end[:-1] != row[:-1] or end[-1] + 1 < row[-1]


@settings(max_examples=100, deadline=None)
@given(cases())
def test_key_runs_hold_every_neighbour_once(case: Case) -> None:
    shape, names, bounds = case
    bound = shape.bind(names, bounds)
    runs = bound.key_runs()
    check_sorted(runs, len(names))
    assert not any(bound.free[axis] for axis in runs.axes)
    assert runs.size == len(runs.offsets())
    walk = Walk(runs, bound)
    for apart in differences(bounds):
        assert walk.count(apart) == are_neighbours(with_self(shape), names, bounds, apart)
    for (lo, hi), column in zip(runs.bounds(), runs.offsets().T, strict=True):
        assert not len(column) or (lo, hi) == (column.min(), column.max())


@settings(max_examples=20, deadline=None)
@given(cases())
def test_free_dimensions_take_any_offset(case: Case) -> None:
    shape, names, bounds = case
    bound = shape.bind(names, bounds)
    for axis, free in enumerate(bound.free):
        seen = set()
        for apart in differences(bounds)[:: 1 + len(names)]:
            moved = [tuple(o + move * (d == axis) for d, o in enumerate(apart)) for move in (0, 1, 2, 7)]
            moved = [one for one in moved if free or is_possible(shape, names, bounds, one)]
            found = [are_neighbours(with_self(shape), names, bounds, one, 25) for one in moved]
            assert bound.mask(list(np.array(moved).T)).tolist() == [
                good and not (shape.excludes_self and is_self(bound, one))
                for good, one in zip(found, moved, strict=True)
            ]
            seen.add(len(set(found)))
        assert not free or seen == {1}


def is_possible(shape: Shape, names: tuple[str, ...], bounds: Box, apart: Offset) -> bool:
    """Whether two cells of the array can be so far apart: Hamming, which knows no length, ends where the array does."""
    return all(abs(o) < n or name in shape.wraps for o, n, name in zip(apart, bounds.shape, names, strict=True))


def is_self(bound: BoundShape, apart: Offset) -> bool:
    return all(o % n == 0 if n else o == 0 for o, n in zip(apart, bound.moduli, strict=True))


@settings(max_examples=100, deadline=None)
@given(cases(2), st.data())
def test_differences_hold_what_is_in_one_alone(case: Case, data: st.DataObject) -> None:
    shape, names, bounds = case
    second = data.draw(shapes(names)).wrap(*shape.wraps)
    one, other = shape.bind(names, bounds), second.bind(names, bounds)
    both = one.difference(other), other.difference(one)
    for runs, inside, outside in ((both[0], shape, second), (both[1], second, shape)):
        check_sorted(runs, len(names))
        walk = Walk(limited_to(runs, bounds), one)
        for apart in differences(bounds):
            expected = are_neighbours(with_self(inside), names, bounds, apart) and not are_neighbours(
                with_self(outside), names, bounds, apart
            )
            assert walk.count(apart) == expected


def limited_to(runs: KeyRuns, bounds: Box) -> KeyRuns:
    """The runs without what is further than the array is long, so that they can be listed."""
    if not runs.axes:
        return runs
    furthest = bounds.shape[runs.axes[-1]] + 10
    first, last = np.maximum(runs.first, -furthest), np.minimum(runs.last, furthest)
    kept = first <= last
    return KeyRuns(runs.axes, runs.leading[kept], first[kept], last[kept])


@settings(max_examples=40, deadline=None)
@given(cases(2), st.integers(-9, 9), st.integers(1, 3))
def test_centres_outside_the_array(case: Case, shift: int, count: int) -> None:
    shape, names, bounds = case
    centres = Box.at([lo + shift for lo in bounds.lo], [count] * len(names))
    bound = shape.bind(names, bounds, centres=centres)
    walk = Walk(bound.key_runs(), bound)
    boxes = bound.partner_boxes(centres, bounds)
    for centre in cells_of(centres):
        for other in cells_of(bounds):
            apart = tuple(o - c for c, o in zip(centre, other, strict=True))
            expected = are_neighbours(with_self(shape), names, bounds, apart, 30)
            assert walk.count(apart) == expected
            assert sum(other in box for box in boxes) == 1 or not expected


def test_wide_ranges_are_one_run_whatever_the_order() -> None:
    for names in itertools.permutations(PTF):
        shape = L1(1, on=("ra", "dec")) & offsets(time=(-22400, 0))
        bounds = Box((1, 1, 1), tuple({"time": 153_064, "ra": 100_000, "dec": 50_000}[name] for name in names))
        five = shape.bind(names, bounds).key_runs()
        assert names[five.axes[-1]] == "time"
        assert len(five.first) == 5
        assert (set(five.first), set(five.last)) == ({-22400}, {0})
        wide = (Linf(2, on=("ra", "dec")) & offsets(time=any_offset)).bind(names, bounds)
        twenty_five = wide.key_runs()
        assert [names[axis] for axis in twenty_five.axes] == [name for name in names if name != "time"]
        assert (len(twenty_five.first), twenty_five.size) == (5, 25)
        assert wide.free == tuple(name == "time" for name in names)
    assert Linf(2, on=("ra", "dec")).bind(PTF).key_runs().axes == (0, 1, 2)


def test_differences_keep_ranges() -> None:
    bounds = Box((1, 1, 1), (153_064, 100_000, 50_000))
    large = (Linf(2, on=("ra", "dec")) & offsets(time=any_offset)).bind(PTF, bounds)
    small = (L1(1, on=("ra", "dec")) & offsets(time=any_offset)).bind(PTF, bounds)
    started = time.process_time()
    more, less = large.difference(small), small.difference(large)
    spent = time.process_time() - started
    assert (more.axes, more.size, len(more.first)) == ((1, 2), 20, 8)
    assert (less.size, less.leading.shape) == (0, (0, 1))
    assert spent < 20, "nothing may be listed along time"
    limited = (Linf(2, on=("ra", "dec")) & offsets(time=(-200, 0))).bind(PTF, bounds)
    beyond = large.difference(limited)
    assert beyond.axes == (1, 2, 0)
    assert set(zip(beyond.first.tolist(), beyond.last.tolist(), strict=True)) == {(-UNLIMITED, -201), (1, UNLIMITED)}
    assert len(beyond.first) == 50
    assert limited.difference(large).size == 0


def test_two_wide_ranges() -> None:
    bound = offsets(i=(-1000, 0), j=(-(10**9), 0)).bind(("j", "i"))
    runs = bound.key_runs()
    assert (runs.axes, len(runs.first), runs.size) == ((1, 0), 1001, 1001 * (10**9 + 1))
    for shape in (
        offsets(i=(0, 10**8), j=(0, 10**8)),
        Lp(3, 10**5, on=("i", "j", "k")),
        Hamming(2),
        Linf(5000) & Hamming(2),
    ):
        with pytest.raises(SchemaError, match="too many offsets"):
            shape.bind(NAMES, Box((1, 1, 1), (10**9, 10**9, 10**9))).key_runs()
    far = offset_list([(0, 0), (10**9, 5)], on=("i", "j")) & offsets(k=(-200, 0))
    assert (far.bind(NAMES).key_runs().axes, len(far.bind(NAMES).key_runs().first)) == ((0, 1, 2), 2)


def test_periodic_dimensions_of_even_and_odd_extents() -> None:
    for extent in range(1, 9):
        for radius in range(12):
            bound = Linf(radius).wrap("i").bind(("i",), Box((0,), (extent - 1,)))
            assert bound.size == min(extent, 2 * radius + 1)
            assert bound.free == (2 * radius + 1 >= extent,)
            runs = bound.key_runs()
            assert runs.size == (1 if bound.free[0] else 2 * radius + 1)
    half = (L1(4).wrap("i", "j")).bind(("i", "j"), Box((0, 0), (3, 4)))
    assert half.free == (True, True)
    assert half.size == 20
    assert L1(3).wrap("i").bind(("i", "j"), Box((0, 0), (3, 99))).free == (False, False)


def test_nothing_and_everything() -> None:
    everything = offsets(i=any_offset, j=any_offset).bind(("i", "j"))
    assert [part.tolist() for part in everything.key_runs()[1:]] == [[[]], [0], [0]]
    assert everything.key_runs().axes == ()
    assert everything.key_runs().leading.shape == (1, 0)
    assert Hamming(2).bind(("i", "j")) == everything
    nothing = (L1(1) & offsets(i=(5, 6))).bind(("i", "j"))
    assert nothing.key_runs().leading.shape == (0, 1)
    assert nothing.key_runs().size == 0
    assert everything.difference(everything).size == 0
    assert nothing.difference(everything).size == 0
    assert everything.difference(nothing).axes == ()
    assert everything.difference(nothing).size == 1


def test_the_numbering_dimension_is_any_unless_named() -> None:
    schema = parse_schema("sparse A [x=1:9, y=1:9, n=0:* numbering]")[1]
    plain = parse_schema("sparse A [x=1:9, y=1:9, n=0:*]")[1]
    box = Box((1, 1, 0), (9, 9, 3))
    bound = L1(1).bind(schema, box)
    assert bound == (L1(1, on=("x", "y")) & offsets(n=any_offset)).bind(plain, box)
    assert bound.free == (False, False, True)
    assert bound.key_runs().axes == (0, 1)
    assert bound.key_runs().size == 5
    assert (L1(1, on=("x", "y")) & offsets(n=(0, 0))).bind(schema, box).free == (False, False, False)
    assert L1(1, on=("x", "n")).bind(schema, box).key_runs().axes == (0, 1, 2)
    assert L1(1).bind(plain, box).key_runs().size == 7
    assert offset_list([(0, 1)]).bind(schema, box).free[2]
    assert not offset_list([(0, 1, 0)]).bind(schema, box).free[2]
    itself = L1(1).excluding_self().bind(schema, box)
    assert not itself.contains((0, 0, 0))
    assert itself.contains((0, 0, 2))


def test_shapes_that_cannot_be_compared() -> None:
    bounds = Box((0, 0), (4, 4))
    one = L1(1).bind(("i", "j"), bounds)
    for other, message in (
        (L1(1).bind(("i",)), "different dimensions"),
        (L1(1).wrap("i").bind(("i", "j"), bounds), "periodic"),
        (offsets(i=("-2 days", 0)).bind(("i", "j"), bounds), "label units"),
    ):
        with pytest.raises(SchemaError, match=message):
            one.difference(other)
