"""Expressions on tiles mean what they mean on Arrow columns: wherever there is no obstacle, both give the same."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.expressions import tiles
from windrow.expressions.evaluate import evaluate
from windrow.expressions.nodes import (
    And,
    Between,
    Binary,
    Column,
    Comparison,
    IsNull,
    Literal,
    Node,
    Not,
    Or,
    Unary,
)
from windrow.expressions.tiles import compute_block, condition_obstacle, tile_obstacle, tile_truth
from windrow.language.expression import parse_expression
from windrow.model.types import TYPES

TYPES_OF = {
    "f": TYPES["float32"],
    "g": TYPES["float64"],
    "i": TYPES["int32"],
    "u": TYPES["uint64"],
    "k": TYPES["int64"],
}
FLOATS = [0.0, -0.0, 0.1, 1.5, -2.25, 300.1, math.inf, -math.inf, math.nan, 1e38, 16777217.0]
NUMBERS = st.sampled_from([0, 1, -3, 7, 2**53, 0.1, 1.5, 300.1, -2.25, 1e39, -1e-46, 16777217.0])

columns = st.sampled_from([Column(name) for name in TYPES_OF])
literals = NUMBERS.map(Literal)


def values(depth: int = 2) -> st.SearchStrategy[Node]:
    if not depth:
        return columns | literals
    below = values(depth - 1)
    return st.one_of(
        below,
        st.builds(Binary, st.sampled_from(["+", "-", "*", "/"]), below, below),
        st.builds(lambda part: Unary("-", part), columns),
    )


def conditions(depth: int = 2) -> st.SearchStrategy[Node]:
    compared = st.one_of(
        st.builds(Comparison, st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), values(1), values(1)),
        st.builds(Between, values(1), literals, literals, st.booleans()),
        st.builds(IsNull, values(1), st.booleans()),
    )
    if not depth:
        return compared
    below = conditions(depth - 1)
    pairs = st.tuples(below, below)
    return st.one_of(compared, st.builds(And, pairs), st.builds(Or, pairs), st.builds(Not, below))


def blocks(seed: int) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    return {
        "f": random.choice(FLOATS, (3, 4)).astype(np.float32),
        "g": random.choice(FLOATS, (3, 4)),
        "i": random.choice([0, 1, -3, 7, 2**31 - 1], (3, 4)).astype(np.int32),
        "u": random.choice(np.array([0, 1, 2**63, 2**53 + 1], np.uint64), (3, 4)),
        "k": random.choice([0, -3, 2**63 - 1, 2**53 + 1], (3, 4)),
    }


def arrow(held: dict[str, Any]) -> dict[str, pa.Array]:
    return {name: pa.array(block.reshape(-1), from_pandas=True) for name, block in held.items()}


@given(values(), st.integers(0, 2**32))
@settings(max_examples=150, deadline=None)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_values(node: Node, seed: int) -> None:
    if tile_obstacle(node, TYPES_OF) is not None or not node.columns():
        return
    held = blocks(seed)
    expected = evaluate(node, arrow(held), 12).cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    tiles.TILE_CELLS, before = 5, tiles.TILE_CELLS
    try:
        found = compute_block(node, held, (3, 4)).reshape(-1)
    finally:
        tiles.TILE_CELLS = before
    np.testing.assert_array_equal(found, expected)


@given(conditions(), st.integers(0, 2**32))
@settings(max_examples=150, deadline=None)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_conditions(node: Node, seed: int) -> None:
    if condition_obstacle(node, TYPES_OF) is not None:
        return
    held = blocks(seed)
    expected = evaluate(node, arrow(held), 12).to_pylist()
    true, false = (np.broadcast_to(tile_truth(node, held, wanted), (3, 4)).reshape(-1) for wanted in (True, False))
    assert [True if t else False if f else None for t, f in zip(true, false, strict=True)] == expected
    assert not (true & false).any()


@pytest.mark.parametrize(
    "text",
    [
        "i + 1",
        "i * u",
        "f / g",
        "f / 0",
        "f // 2",
        "f % 2",
        "sqrt(f)",
        "cast(i as float64)",
        "-i",
        "case when f > 0 then f end",
    ],
)
def test_what_could_fail_is_left_to_arrow(text: str) -> None:
    assert tile_obstacle(parse_expression(text), TYPES_OF) is not None
    assert condition_obstacle(Comparison(">", parse_expression(text), Literal(1)), TYPES_OF) is not None
