"""Pairs of chunks against a comparison of every box with every chunk."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.kernels.sparse import chunk_pairs as module
from windrow.kernels.sparse.chunk_pairs import Chunks, Grid, chunk_pairs

Box = tuple[tuple[int, int], ...]


def vectors(boxes: list[Box], ndim: int, side: int) -> list[Any]:
    return [np.array([box[axis][side] for box in boxes], np.int64) for axis in range(ndim)]


@st.composite
def problems(draw: st.DrawFn) -> tuple[list[Box], list[Box], list[Box], Grid]:
    """Boxes, chunks' bounds inside their chunks of the grid, and the chunks' numbers."""
    ndim = draw(st.integers(1, 3))
    base = draw(st.sampled_from([0, -5, 2**61, -(2**61)]))
    grid = Grid(
        tuple(draw(st.integers(-3, 3)) + base for _ in range(ndim)), tuple(draw(st.integers(1, 5)) for _ in range(ndim))
    )
    chunks, numbers = [], []
    for _ in range(draw(st.integers(0, 30))):
        bounds, number = [], []
        for origin, length in zip(*grid, strict=True):
            chunk = draw(st.one_of(st.integers(-3, 6), st.just(40)))
            low = draw(st.integers(0, length - 1))
            bounds.append((origin + chunk * length + low, origin + chunk * length + draw(st.integers(low, length - 1))))
            number.append((chunk, chunk))
        chunks.append(tuple(bounds))
        numbers.append(tuple(number))
    boxes = []
    for _ in range(draw(st.integers(0, 8))):
        sides = []
        for _ in range(ndim):
            low = draw(st.one_of(st.integers(-20, 40), st.just(-300))) + base
            sides.append((low, low + draw(st.sampled_from([0, 1, 4, 12, 1000]))))
        boxes.append(tuple(sides))
    return boxes, chunks, numbers, grid


@pytest.mark.parametrize("most_rows", [module._MOST_ROWS, 2])
@given(problem=problems())
def test_pairs_are_those_whose_bounds_meet(
    most_rows: int, problem: tuple[list[Box], list[Box], list[Box], Grid]
) -> None:
    boxes, chunks, numbers, grid = problem
    ndim = len(grid.origin)
    held = Chunks(vectors(numbers, ndim, 0), vectors(chunks, ndim, 0), vectors(chunks, ndim, 1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_MOST_ROWS", most_rows)
        box, chunk = chunk_pairs(vectors(boxes, ndim, 0), vectors(boxes, ndim, 1), held, grid)
    wanted = [
        (n, k)
        for n, one in enumerate(boxes)
        for k, other in enumerate(chunks)
        if all(a <= d and c <= b for (a, b), (c, d) in zip(one, other, strict=True))
    ]
    assert sorted(zip(box.tolist(), chunk.tolist(), strict=True)) == wanted
    assert box.tolist() == sorted(box.tolist())


def test_dimensions_too_long_for_keys_are_left_to_the_bounds() -> None:
    ends = np.array([-(2**62), 2**62 - 1])
    held = Chunks([ends, ends], [ends, ends], [ends, ends])
    box, chunk = chunk_pairs([ends - 1, ends], [ends, ends + 1], held, Grid((0, 0), (1, 1)))
    assert (box.tolist(), chunk.tolist()) == ([0, 1], [0, 1])
