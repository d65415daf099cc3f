"""Neighbourhoods by shape as a source: any box of it is the same part of the whole, halos, wrap and labels included."""

from __future__ import annotations

import itertools
import math
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shape_oracle
import windrow as wr
from windrow.aggregates.shape_blocks import shape_choice
from windrow.errors import SchemaError
from windrow.model.box import Box
from windrow.model.coordinates import coordinates_of
from windrow.model.labels import Labels
from windrow.model.schema import Attribute, Dimension, Schema
from windrow.model.types import TYPES
from windrow.operations.query.blocks import ComputedSource
from windrow.operations.query.held import HeldGrid
from windrow.operations.query.shapes import ShapeSource
from windrow.plan.windows import neighbourhood_schema

AGGREGATES = (
    ("n", wr.count("v")), ("s", wr.sum("v")), ("m", wr.median("v")), ("f", wr.first("v")), ("z", wr.last("k")),
    ("d", wr.count_distinct("k")), ("c", wr.covar("v", "k")), ("cells", wr.count()),
)  # fmt: skip


class Counted:
    """A source that notes what is read of it."""

    def __init__(self, held: HeldGrid) -> None:
        self.held, self.boxes = held, []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.held, name)

    def read(self, box: Box, attributes: Any = None) -> Any:
        self.boxes.append(box)
        return self.held.read(box, attributes)


def held(values: Any, whole: Any, lo: tuple[int, ...]) -> HeldGrid:
    names = "abc"[: values.ndim]
    dimensions = tuple(
        Dimension(n, low, low + size - 1, 2) for n, low, size in zip(names, lo, values.shape, strict=True)
    )
    attributes = (Attribute("v", TYPES["float64"]), Attribute("k", TYPES["int64"], nullable=True))
    schema = Schema(dimensions, attributes)
    blocks = {"v": values, "k": whole, "k__valid": whole != 2}
    return HeldGrid(schema, schema.box(), (), blocks)


def source_of(
    grid: Any, shape: Any, step: tuple[int, ...], labels: dict[str, Labels], min_count: int = 0
) -> ShapeSource:
    bounds = grid.schema.box()
    bound = shape.bind(grid.schema, bounds, coordinates=coordinates_of(grid.schema, labels))
    results = Box.at(bounds.lo, [-(-n // s) for n, s in zip(bounds.shape, step, strict=True)])
    schema = neighbourhood_schema(grid.schema, results, step, AGGREGATES, min_count)
    return ShapeSource.of(grid, bound, bounds, labels, AGGREGATES, schema, min_count=min_count, step=step)


@st.composite
def arrays(draw: st.DrawFn, ndim: int) -> tuple[Any, Any, tuple[int, ...]]:
    shape = tuple(draw(st.integers(1, 7)) for _ in range(ndim))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    values = rng.integers(-4, 5, shape).astype(float)
    values[rng.random(shape) < 0.2] = np.nan
    return values, rng.integers(0, 4, shape), tuple(draw(st.integers(-3, 3)) for _ in range(ndim))


SHAPES = [
    wr.L1(1), wr.L2(2.5), wr.L1(2).excluding_self(), wr.offsets(a=wr.any_offset) & wr.L1(1, on="b"),
    wr.offsets(b=wr.any_offset).excluding_self(), wr.L2(2).wrap("b"), wr.L1(3).wrap("a", "b"),
    wr.offset_list([(2, -1), (-1, 0)]), wr.offsets(a=(-3, 0)) & wr.L1(1), wr.offsets(a=wr.any_offset, b=wr.any_offset),
    wr.Hamming(1), wr.Linf(1), wr.offset_list([(0, 3), (0, -3), (1, 1)]).wrap("b").excluding_self(),
]  # fmt: skip


@settings(max_examples=80, deadline=None)
@given(arrays(2), st.sampled_from(SHAPES), st.tuples(*[st.integers(1, 3)] * 2), st.sampled_from([0, 2]), st.data())
def test_every_box_is_part_of_the_whole(array: Any, shape: Any, step: Any, min_count: int, data: st.DataObject) -> None:
    values, whole, lo = array
    source = source_of(held(values, whole, lo), shape, step, {}, min_count)
    assert isinstance(source, ComputedSource)
    source = pickle.loads(pickle.dumps(source))
    results = source.schema.box()
    everything = source.read(results)
    low = tuple(data.draw(st.integers(a, b)) for a, b in zip(results.lo, results.hi, strict=True))
    box = Box(low, tuple(data.draw(st.integers(a, b)) for a, b in zip(low, results.hi, strict=True)))
    part = source.read(box)
    assert part.keys() == everything.keys()
    for name, block in part.items():
        # A covariance rounds differently where the mean that is taken off first is another.
        assert np.allclose(block, everything[name][box.slices(results.lo)], 1e-12, 1e-9, equal_nan=True), name
    assert source.task_bytes(box) > 0
    assert 0 < source.cells_decoded(box) <= values.size
    bound = source.request.shape
    for output in itertools.product(*map(range, everything["n"].shape)):
        cell = tuple(k * s for k, s in zip(output, step, strict=True))
        around = [
            other
            for other in itertools.product(*map(range, values.shape))
            if bound.contains(tuple(b - a for a, b in zip(cell, other, strict=True)))
        ]
        there = [values[other] for other in around if values[other] == values[other]]
        assert everything["n"][output] == len(there) or len(there) < min_count
        known = [whole[other] for other in around if whole[other] != 2]
        assert everything["cells"][output] == len(around) or len(around) < min_count
        if len(known) >= max(1, min_count):
            assert everything["z"][output] == known[-1]
        if len(there) >= max(1, min_count):
            assert everything["f"][output] == there[0]
            assert math.isclose(everything["s"][output], math.fsum(there), abs_tol=1e-9)
            assert everything["m"][output] == shape_oracle.aggregate("median", there)


def test_a_box_reads_no_more_than_its_halo() -> None:
    values = np.arange(10000.0).reshape(100, 100)
    grid: Any = Counted(held(values, values.astype(int), (0, 0)))
    source = source_of(grid, wr.L2(3), (1, 1), {})
    source.read(Box((50, 20), (59, 29)), ["s"])
    assert grid.boxes == [Box((47, 17), (62, 32))]
    assert source.keep_whole == (0, 1)
    assert source_of(grid, wr.L1(1, on="b"), (1, 1), {}).keep_whole == (1,)


def test_ranges_in_label_units() -> None:
    """Irregular times: results that reach equally far are evaluated together, each over its own cells."""
    times = np.array([0.0, 1.0, 1.5, 4.0, 4.5, 5.0, 9.0])
    labels = {"a": Labels.of(times, {"units": "m"})}
    rng = np.random.default_rng(3)
    values = rng.integers(0, 9, (7, 6)).astype(float)
    grid = held(values, values.astype(int), (2, 0))
    shape = wr.offsets(a=("-1.2 m", "0.5 m")) & wr.L1(1, on="b")
    for step in ((1, 1), (2, 3)):
        source = source_of(grid, shape, step, labels)
        found = source.read(source.schema.box())
        for i, j in itertools.product(*map(range, found["n"].shape)):
            row, column = i * step[0], j * step[1]
            around = [
                values[a, b]
                for a in range(7)
                for b in range(6)
                if -1.2 <= times[a] - times[row] <= 0.5 and abs(b - column) <= 1
            ]
            assert found["n"][i, j] == len(around)
            assert found["s"][i, j] == sum(around)
            assert found["m"][i, j] == shape_oracle.aggregate("median", around)
        assert source.labels["a"].values.tolist() == times[:: step[0]].tolist()


def test_what_cannot_be_is_refused() -> None:
    grid = held(np.zeros((4, 4)), np.zeros((4, 4), int), (0, 0))
    labelled = wr.offsets(a=("-1 m", 0)).bind(grid.schema, grid.schema.box())
    with pytest.raises(SchemaError, match="has no labels"):
        ShapeSource.of(grid, labelled, grid.schema.box(), {}, AGGREGATES, grid.schema)


def test_what_computes_it_can_be_told() -> None:
    grid = held(np.zeros((400, 400)), np.zeros((400, 400), int), (0, 0))
    request = source_of(grid, wr.L2(5), (1, 1), {}).request
    whole, kind = request.results, np.dtype(np.float64)
    told = {name: shape_choice(request, whole, one, kind) for name, one in AGGREGATES}
    names = {name: None if choice is None else choice.name for name, choice in told.items()}
    assert names == {
        "n": "rows",
        "s": "rows",
        "m": "lanes",
        "f": None,
        "z": None,
        "d": "counters",
        "c": None,
        "cells": None,
    }
    assert "64 neighbourhoods side by side" in str(told["m"])
    wide = source_of(grid, wr.L2(30), (1, 1), {}).request
    assert getattr(shape_choice(wide, whole, wr.median("v"), kind), "name", None) == "bitset"
    window = source_of(grid, wr.Linf(2), (1, 1), {}).request
    assert getattr(shape_choice(window, whole, wr.max("v"), kind), "name", None) == "window"
