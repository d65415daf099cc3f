"""A dense source in memory, and arrays of every type to fill it with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st

from windrow.model.box import Box
from windrow.model.labels import Labels
from windrow.model.schema import Attribute, Dimension, Schema
from windrow.model.types import TYPES

TEXT = st.text(st.characters(exclude_characters="\x00", exclude_categories=("Cs",)), max_size=5)
MICROSECONDS = st.integers(-(10**15), 10**15)


@dataclass(frozen=True)
class MemorySource:
    schema: Schema
    cells: Mapping[str, Any]
    labels: Mapping[str, Labels] = field(default_factory=dict)
    metadata: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    reads: list[Box] = field(default_factory=list)

    def read(self, box: Box) -> Mapping[str, Any]:
        self.reads.append(box)
        return {name: values[box.slices(self.schema.lo)] for name, values in self.cells.items()}


def element(type_name: str) -> st.SearchStrategy[Any]:
    """Values of a type, extremes likely."""
    dtype = TYPES[type_name].dtype
    if type_name == "bool":
        return st.booleans()
    if type_name == "string":
        return TEXT
    if type_name == "datetime":
        return MICROSECONDS
    if dtype.kind == "f":
        return st.floats(width=dtype.itemsize * 8)
    limits = np.iinfo(dtype)
    low, high = int(limits.min), int(limits.max)
    return st.sampled_from([low, high, 0, 1]) | st.integers(low, high)


def labels_of(draw: st.DrawFn, size: int) -> Labels | None:
    kind = draw(st.sampled_from(["none", "number", "datetime", "string", "integer"]))
    units = {"units": "m", "long_name": "where é"}
    if kind == "number":
        floats = st.floats(-1e6, 1e6)
        return Labels.of(np.array(draw(st.lists(floats, min_size=size, max_size=size, unique=True))), units)
    if kind == "integer":
        numbers = draw(st.lists(st.integers(-(2**60), 2**60), min_size=size, max_size=size, unique=True))
        return Labels.of(np.array(numbers, np.int64), units)
    if kind == "datetime":
        moments = draw(st.lists(MICROSECONDS, min_size=size, max_size=size, unique=True))
        return Labels.of(np.array(moments, "datetime64[us]"), {"long_name": "when"})
    if kind == "string":
        names = draw(st.lists(TEXT, min_size=size, max_size=size, unique=True))
        return Labels.of(np.array(names, np.dtypes.StringDType()))
    return None


@st.composite
def sources(draw: st.DrawFn, type_names: tuple[str, ...] = tuple(TYPES)) -> MemorySource:
    """Small dense sources: 1 to 3 dimensions, any first cell, chunks, types, missing values and labels."""
    extents = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    dimensions, labels = [], {}
    for name, size in zip("ijk", extents, strict=False):
        lo = draw(st.integers(-5, 5))
        dimensions.append(Dimension(name, lo, lo + size - 1, draw(st.integers(1, 5))))
        found = labels_of(draw, size)
        if found is not None:
            labels[name] = found
    attributes, cells = [], {}
    for number, type_name in enumerate(draw(st.lists(st.sampled_from(type_names), min_size=1, max_size=3))):
        count = int(np.prod(extents))
        values = np.empty(count, TYPES[type_name].dtype)
        values[:] = np.array(
            draw(st.lists(element(type_name), min_size=count, max_size=count)),
            dtype=np.int64 if type_name == "datetime" else TYPES[type_name].dtype,
        ).astype(TYPES[type_name].dtype)
        nullable = type_name not in ("float32", "float64") and draw(st.booleans())
        attribute = Attribute(f"a{number}", TYPES[type_name], nullable)
        if nullable:
            valid = np.array(draw(st.lists(st.booleans(), min_size=count, max_size=count)), bool)
            values[~valid] = TYPES[type_name].fill
            cells[attribute.companion] = valid.reshape(extents)
        cells[attribute.name] = values.reshape(extents)
        attributes.append(attribute)
    metadata = {"a0": {"long_name": "first"}, "": {"title": "test"}}
    return MemorySource(Schema(tuple(dimensions), tuple(attributes)), cells, labels, metadata)


def assert_same(got: Any, expected: MemorySource) -> None:
    """The same cells, missing values, types, labels and metadata; chunk sizes may differ."""
    mine, theirs = expected.schema, got.schema
    assert [(d.name, d.lo, d.hi) for d in theirs.dimensions] == [(d.name, d.lo, d.hi) for d in mine.dimensions]
    assert theirs.attributes == mine.attributes
    assert dict(got.labels) == dict(expected.labels)
    assert got.metadata == expected.metadata
    blocks = got.read(theirs.box())
    assert set(blocks) == set(expected.cells)
    for name, values in expected.cells.items():
        assert blocks[name].dtype == values.dtype
        np.testing.assert_array_equal(blocks[name], values, strict=True)
