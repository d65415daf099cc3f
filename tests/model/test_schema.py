"""Schemas: what may be, what may not, and what they answer."""

from __future__ import annotations

import pickle

import pytest

from windrow.errors import SchemaError, UnknownNameError
from windrow.model.box import Box
from windrow.model.schema import Attribute, Dimension, Schema, check_name
from windrow.model.types import TYPES

INT, FLOAT = TYPES["int64"], TYPES["float64"]
SCHEMA = Schema(
    (Dimension("i", 1, 10, 4), Dimension("time", 0, None)),
    (Attribute("a", FLOAT), Attribute("n", INT, nullable=True), Attribute("f", FLOAT, nullable=True)),
)


def test_text() -> None:
    assert str(SCHEMA) == "<a: float64, n: int64 null, f: float64 null> [i=1:10:4, time=0:*]"


def test_dimensions() -> None:
    assert SCHEMA.dimension_names == ("i", "time")
    assert (SCHEMA.ndim, SCHEMA.lo, SCHEMA.growing, SCHEMA.axis("time")) == (2, (1, 0), (1,), 1)
    assert [dimension.extent for dimension in SCHEMA.dimensions] == [10, None]
    assert Dimension("i", -3, -3).extent == 1
    assert SCHEMA.box().is_empty
    assert SCHEMA.box((99, 4)) == Box((1, 0), (10, 4))


def test_attributes() -> None:
    assert [(a.can_be_missing, a.has_companion) for a in SCHEMA.attributes] == [(1, 0), (1, 1), (1, 0)]
    assert SCHEMA.attribute("n").companion == "n__valid"
    assert SCHEMA.cell_bytes == 8 + 9 + 8
    assert SCHEMA.select(["f", "a"]).attribute_names == ("f", "a")


def test_chunks() -> None:
    with pytest.raises(SchemaError, match="states no chunk sizes"):
        _ = SCHEMA.grid
    assert SCHEMA.with_chunks().grid.chunk == (4, 8)
    assert SCHEMA.with_chunks({"i": 3, "time": 5}).grid.chunk == (3, 5)
    with pytest.raises(UnknownNameError, match="Did you mean 'time'"):
        SCHEMA.with_chunks({"tim": 5})
    with pytest.raises(SchemaError, match="at least one cell"):
        SCHEMA.with_chunks({"i": 0})
    vast = Schema(tuple(Dimension(name, 0, 2**40, 1) for name in "ij"), (), sparse=True)
    with pytest.raises(SchemaError, match="too many chunks"):
        vast.with_chunks()
    with pytest.raises(SchemaError, match="more than 2"):
        Schema((Dimension("i", 0, 2**50, 2**41),), (), sparse=True).with_chunks()


def test_value_semantics() -> None:
    copy = pickle.loads(pickle.dumps(SCHEMA))
    assert copy == SCHEMA
    assert hash(copy) == hash(SCHEMA)
    assert Schema(SCHEMA.dimensions, SCHEMA.attributes, sparse=True) != SCHEMA


def test_unknown_names() -> None:
    with pytest.raises(UnknownNameError, match=r"no such dimension, got 'tme'. Did you mean 'time'"):
        SCHEMA.dimension("tme")
    with pytest.raises(UnknownNameError, match=r"no such attribute, got 'z'. Known: a, f, n"):
        SCHEMA.attribute("z")
    with pytest.raises(UnknownNameError):
        SCHEMA.select(["z"])


@pytest.mark.parametrize("name", ["", "1a", "a b", "a-b", "é", "a\n", None, 3])
def test_names_that_cannot_be(name: object) -> None:
    with pytest.raises(SchemaError, match="not a valid name"):
        check_name(name, "an array")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["_chunk", "a__valid"])
def test_names_the_stores_use(name: str) -> None:
    with pytest.raises(SchemaError, match="reserved"):
        Attribute(name, INT)


def test_schemas_that_cannot_be() -> None:
    i, a = Dimension("i", 1, 3), Attribute("a", INT)
    with pytest.raises(SchemaError, match="at least one dimension"):
        Schema((), (a,))
    with pytest.raises(SchemaError, match="at least one attribute"):
        Schema((i,), ())
    assert Schema((i,), (), sparse=True).attributes == ()
    with pytest.raises(SchemaError, match="used twice in one schema, got i"):
        Schema((i,), (a, Attribute("i", INT)))
    with pytest.raises(SchemaError, match="used twice in one schema, got a"):
        Schema((i,), (a, a))
    with pytest.raises(SchemaError, match="ends before it starts, got 3:1"):
        Dimension("i", 3, 1)
    with pytest.raises(SchemaError, match="chunk of at least one"):
        Dimension("i", 1, 3, 0)
    for lo, hi in ((-(2**62), 0), (0, 2**62), (2**62, None)):
        with pytest.raises(SchemaError, match=r"beyond 2\^62"):
            Dimension("i", lo, hi)
