"""The chunks that partners can lie in, against every cell of every shape."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windrow as wr
from windrow.model.box import Box
from windrow.model.grid import ChunkGrid
from windrow.operations.join import near
from windrow.operations.join.near import partner_chunks


class Diamonds:
    """As much of a bound shape as is asked for: an offset range for each dimension, of which some are free."""

    def __init__(self, start: tuple[int, ...], stop: tuple[int, ...], free: tuple[bool, ...]) -> None:
        self.start, self.stop, self.free, self.wraps = start, stop, free, (False,) * len(start)


@st.composite
def problems(draw: st.DrawFn) -> Any:
    ndim = draw(st.integers(1, 3))
    chunk = tuple(draw(st.integers(1, 4)) for _ in range(ndim))
    lo = tuple(draw(st.integers(-5, 3)) for _ in range(ndim))
    hi = tuple(first + draw(st.integers(0, 25)) for first in lo)
    start = tuple(draw(st.integers(-4, 2)) for _ in range(ndim))
    stop = tuple(first + draw(st.integers(0, 4)) for first in start)
    free = tuple(draw(st.booleans()) for _ in range(ndim))
    rows = draw(st.lists(st.tuples(*(st.integers(a - 6, b + 6) for a, b in zip(lo, hi, strict=True))), min_size=1))
    unbound = draw(st.sets(st.integers(0, ndim - 1)))
    return chunk, Box(lo, hi), Diamonds(start, stop, free), rows, unbound


@given(problems())
def test_no_chunk_of_a_partner_is_left_out(problem: Any) -> None:
    chunk, box, shape, rows, unbound = problem
    grid = ChunkGrid(box.lo, box.hi, chunk)
    centres = [None if axis in unbound else np.array([row[axis] for row in rows]) for axis in range(len(chunk))]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(near, "offset_spans", lambda one: tuple(zip(one.start, one.stop, strict=True)))
        found = partner_chunks(shape, centres, grid, box)
    if found is None:
        return
    reached = set()
    for row in rows:
        sides = []
        for axis in range(len(chunk)):
            whole = range(box.lo[axis], box.hi[axis] + 1)
            if axis in unbound or shape.free[axis]:
                sides.append(whole)
            else:
                sides.append(range(*_clip(row[axis] + shape.start[axis], row[axis] + shape.stop[axis] + 1, whole)))
        keys = [sorted({(cell - box.lo[axis]) // chunk[axis] for cell in side}) for axis, side in enumerate(sides)]
        reached |= {grid.ordinal(key) for key in itertools.product(*keys)}
    assert reached <= set(found.tolist())
    assert (np.diff(found) > 0).all()
    assert len(found) * near.WORTH <= grid.key_box(box).size


def _clip(first: int, stop: int, whole: range) -> tuple[int, int]:
    first, stop = max(first, whole.start), min(stop, whole.stop)
    return (first, max(first, stop))


def test_new_cells_in_far_fields_read_no_field_between(connect: Callable[..., Any], monkeypatch: Any) -> None:
    """Two fields get new cells; the view is patched without the cells of the hundred fields between them."""
    database = connect()
    array = database.create("S", "<m: float64> [t=0:*:4, x=0:999:10, y=0:9:10]", sparse=True)
    everywhere = np.arange(0, 1000, 5)
    array.insert({"t": np.zeros(200, int), "x": everywhere, "y": np.full(200, 3), "m": everywhere / 8})
    shape = wr.Linf(2, on=("x", "y")) & wr.offsets(t=wr.any_offset)
    query = array.neighbours(shape).agg(n=wr.count(), s=wr.sum("m"))
    view = database.create_view("V", query, maintain="incremental")
    asked: list[Any] = []
    original = near.partner_chunks

    def watch(*arguments: Any) -> Any:
        asked.append(original(*arguments))
        return asked[-1]

    monkeypatch.setattr("windrow.operations.join.reader.partner_chunks", watch)
    array.insert({"t": [1, 1], "x": [6, 991], "y": [4, 4], "m": [0.5, 0.25]})
    assert [chunks for chunks in asked if chunks is not None], "nothing was left out"
    assert all(len(chunks) <= 4 for chunks in asked if chunks is not None)
    assert view.check().ok
    expected = query.compute()
    assert pa.table(view.read()).sort_by([("t", "ascending"), ("x", "ascending")]) == expected.sort_by(
        [("t", "ascending"), ("x", "ascending")]
    )
