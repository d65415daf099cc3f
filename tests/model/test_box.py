"""Boxes against sets of cells."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.errors import SchemaError
from windrow.model.box import Box, hull

small = st.integers(-4, 4)
pairs = st.integers(1, 3).flatmap(lambda n: st.tuples(*[st.tuples(*[st.tuples(small, st.integers(-1, 4))] * n)] * 2))


def box_of(sides: tuple[tuple[int, int], ...]) -> Box:
    return Box(tuple(lo for lo, _ in sides), tuple(lo + length for lo, length in sides))


def cells_of(box: Box) -> set[tuple[int, ...]]:
    return set(itertools.product(*(range(lo, hi + 1) for lo, hi in zip(box.lo, box.hi, strict=True))))


@settings(deadline=None)
@given(pairs)
def test_two_boxes(sides: tuple[tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]]) -> None:
    one, two = map(box_of, sides)
    assert cells_of(one & two) == cells_of(one) & cells_of(two)
    assert one.overlaps(two) == bool(cells_of(one) & cells_of(two))
    assert (two in one) == (cells_of(two) <= cells_of(one))
    both = cells_of(one) | cells_of(two)
    if both:
        columns = list(zip(*both, strict=True))
        smallest = Box(tuple(map(min, columns)), tuple(map(max, columns)))
        assert one | two == smallest
        assert hull([one, two, one]) == smallest
    else:
        assert (one | two).is_empty


@settings(deadline=None)
@given(pairs)
def test_one_box(sides: tuple[tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]]) -> None:
    box = box_of(sides[0])
    assert box.size == len(cells_of(box))
    assert box.is_empty == (not cells_of(box))
    around = itertools.product(*(range(lo - 1, hi + 2) for lo, hi in zip(box.lo, box.hi, strict=True)))
    inside = cells_of(box)
    assert all((cell in box) == (cell in inside) for cell in around)
    assert cells_of(Box.at(box.lo, box.shape)) == cells_of(box)
    offset = [length for _, length in sides[1]]
    assert cells_of(box.shift(offset)) == {tuple(np.add(cell, offset).tolist()) for cell in cells_of(box)}
    assert pickle.loads(pickle.dumps(box)) == box


@settings(deadline=None)
@given(pairs)
def test_slices(sides: tuple[tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]]) -> None:
    box = box_of(sides[0])
    origin = (-6,) * box.ndim
    marked = np.zeros((16,) * box.ndim, bool)
    marked[box.slices(origin)] = True
    assert {tuple((at + origin).tolist()) for at in np.argwhere(marked)} == cells_of(box)


def test_dilate() -> None:
    assert Box((0, 0), (3, 4)).dilate((1, 0), (2, 3)) == Box((-1, 0), (5, 7))
    assert Box((0,), (3,)).dilate((-2,), (-2,)).is_empty
    assert str(Box((0, -1), (3, 4))) == "[0:3, -1:4]"


def test_boxes_that_cannot_be() -> None:
    assert hull([]) is None
    with pytest.raises(SchemaError, match="got 1 and 2"):
        Box((1,), (1, 2))
    for mix in (Box.__and__, Box.__or__, Box.overlaps, Box.__contains__):
        with pytest.raises(SchemaError, match="different numbers of dimensions"):
            mix(Box((1,), (2,)), Box((1, 1), (2, 2)))
