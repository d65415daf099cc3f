"""Numeric expressions on tiles: NumPy blocks so small that they stay in the processor's cache between two steps.

What is here means exactly what ``evaluate`` means by it, with NaN for null. What could fail (whole numbers that
overflow, division by what may be 0, casts), texts, times and functions are left to ``evaluate``; ``tile_obstacle``
says so. A condition has three values, so that there are two questions: where it is true, and where it is false.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

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
from windrow.model.schema import VALID_SUFFIX
from windrow.model.types import TYPES, DataType

Array = npt.NDArray[Any]
Types = Mapping[str, DataType]
Tiles = Mapping[str, Array]

_ARITHMETIC: dict[str, Callable[..., Array]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
}
_COMPARE: dict[str, Callable[..., Array]] = {
    "=": np.equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}
_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<>": "<>"}
_EXACT = 2**53
TILE_CELLS = 131_072
"""Cells whose intermediate values stay in the processor's cache."""


def tile_obstacle(node: Node, types: Types) -> str | None:
    """Why the value of an expression cannot be computed on tiles, None if it can: then it is a column or float64.

    ``types`` has the columns that carry their missing values themselves, and none else; for conditions also numbers
    that have ``<name>__valid`` beside them, since a comparison can look at that.
    """
    if isinstance(node, Column) and type(node) is Column:
        return None if node.key in types and types[node.key].is_number else f"{node} is no number, or may be missing"
    if isinstance(node, Literal):
        return None if _is_number(node) else f"{node} is no plain number"
    if isinstance(node, Unary):
        return _inexact(node, types) or tile_obstacle(node.operand, types)
    if isinstance(node, Binary) and node.operator in _ARITHMETIC:
        if node.operator == "/" and not (isinstance(node.right, Literal) and node.right.value):
            return f"{node} may divide by 0"
        return _inexact(node, types) or tile_obstacle(node.left, types) or tile_obstacle(node.right, types)
    return f"{node} is not computed on tiles"


def condition_obstacle(node: Node, types: Types) -> str | None:
    """The same for a condition."""
    if isinstance(node, (And, Or)):
        return next(filter(None, (condition_obstacle(part, types) for part in node.operands)), None)
    if isinstance(node, Not):
        return condition_obstacle(node.operand, types)
    if isinstance(node, Between) and not _is_float(node.operand, types):
        # Three whole numbers are compared as such, but as floats if one of them is a float.
        ends = {_is_float(end, types) for end in (node.low, node.high)}
        if len(ends) > 1:
            return f"{node} compares whole numbers with others"
    if isinstance(node, (Comparison, Between, IsNull)):
        return next(filter(None, (tile_obstacle(part, types) for part in node.children())), None)
    return f"{node} is not compared on tiles"


def _is_number(node: Node) -> bool:
    if not isinstance(node, Literal) or type(node.value) not in (int, float):
        return False
    return type(node.value) is float or abs(node.value) <= _EXACT  # type: ignore[arg-type]


def _inexact(node: Node, types: Types) -> str | None:
    """Arithmetic on whole numbers alone is whole, and may overflow."""
    return None if _is_float(node, types) else f"{node} is computed in whole numbers, which may overflow"


def _is_float(node: Node, types: Types) -> bool:
    if isinstance(node, Column):
        return node.key in types and types[node.key].is_float
    if isinstance(node, Literal):
        return type(node.value) is float
    if isinstance(node, Binary) and node.operator == "/":
        return True
    return any(_is_float(part, types) for part in node.children())


def tile_type(node: Node, types: Types) -> DataType:
    """The type of what ``tile_values`` gives."""
    return types[node.key] if isinstance(node, Column) else TYPES["float64"]


def tile_values(node: Node, tiles: Tiles, room: Array | None = None) -> Any:
    """The value of an expression at each cell, NaN for null; of a literal, the number.

    What is computed last may be computed in ``room``, which is returned then.
    """
    if isinstance(node, Column):
        return tiles[node.key]
    if isinstance(node, Literal):
        return node.value
    with np.errstate(invalid="ignore", over="ignore"):
        if isinstance(node, Unary):
            return np.negative(tile_values(node.operand, tiles), out=room, dtype=np.float64)
        assert isinstance(node, Binary)
        left, right = tile_values(node.left, tiles), tile_values(node.right, tiles)
        return _ARITHMETIC[node.operator](left, right, out=room, dtype=np.float64)


def compute_block(
    node: Node, blocks: Tiles, shape: tuple[int, ...], room: npt.NDArray[np.float64] | None = None
) -> npt.NDArray[np.float64]:
    """The value of an expression at each cell of whole blocks, tile by tile, in ``room`` if given; NaN is null."""
    found = np.empty(shape, np.float64) if room is None else room
    step = max(1, TILE_CELLS // max(1, math.prod(shape[1:])))
    for start in range(0, shape[0], step):
        tile = {name: block[start : start + step] for name, block in blocks.items()}
        target = found[start : start + step]
        values = tile_values(node, tile, target)
        if values is not target:
            target[...] = values
    return found


def tile_truth(node: Node, tiles: Tiles, wanted: bool = True) -> Any:
    """Where a condition is true, or where it is false; where it is null, neither."""
    if isinstance(node, Not):
        return tile_truth(node.operand, tiles, not wanted)
    if isinstance(node, (And, Or)):
        together = np.logical_and if isinstance(node, And) == wanted else np.logical_or
        found = tile_truth(node.operands[0], tiles, wanted)
        for part in node.operands[1:]:
            found = together(found, tile_truth(part, tiles, wanted))
        return found
    if isinstance(node, IsNull):
        values, there = tile_values(node.operand, tiles), _there(node, tiles)
        present = values == values if there is None else np.logical_and(values == values, there)
        return np.logical_not(present) if wanted != node.negated else present
    if isinstance(node, Between):
        inside = And((Comparison("<=", node.low, node.operand), Comparison("<=", node.operand, node.high)))
        return tile_truth(inside, tiles, wanted != node.negated)
    assert isinstance(node, Comparison)
    return _compare(node, tiles, wanted)


def _compare(node: Comparison, tiles: Tiles, wanted: bool) -> Any:
    left, right, operator = tile_values(node.left, tiles), tile_values(node.right, tiles), node.operator
    if not isinstance(left, np.ndarray) and isinstance(right, np.ndarray):
        left, right, operator = right, left, _TURNED[operator]
    if operator == "<>":
        operator, wanted = "=", not wanted
    if not wanted and operator != "=":
        operator, wanted = _OPPOSITE[operator], True
    if not isinstance(left, np.ndarray):  # no column on either side
        return np.bool_(_COMPARE[operator](left, right)) if wanted else np.bool_(left != right)
    found, present = _against(operator, left, right), _there(node, tiles)
    if wanted:
        return found if present is None else np.logical_and(found, present)
    there = (left == left) & (right == right)
    there = there if present is None else np.logical_and(there, present)
    return np.logical_and(np.logical_not(found), there, out=found if isinstance(found, np.ndarray) else None)


def _there(node: Node, tiles: Tiles) -> Any:
    """Where all columns are present that have beside them whether they are; None if there is none of these."""
    found = None
    if not any(name.endswith(VALID_SUFFIX) for name in tiles):  # most often; every tile asks
        return found
    for column in node.columns():
        present = tiles.get(column.key + VALID_SUFFIX)
        if present is not None:
            found = present if found is None else np.logical_and(found, present)
    return found


def _against(operator: str, left: Array, right: Any) -> Any:
    """A comparison in float64 wherever a side is a float, without making float64 of a whole tile of float32."""
    if left.dtype == np.float32 and not isinstance(right, np.ndarray):
        return _against_number(operator, left, float(right))
    if isinstance(right, np.ndarray) and left.dtype != right.dtype and "f" in (left.dtype.kind, right.dtype.kind):
        left, right = left.astype(np.float64, copy=False), right.astype(np.float64, copy=False)
    elif isinstance(right, float) and left.dtype.kind in "iu":
        left = left.astype(np.float64)
    return _COMPARE[operator](left, right)


def _against_number(operator: str, left: Array, number: float) -> Any:
    """float32 against a number that it may not have: against the next one that it has, on the right side."""
    with np.errstate(over="ignore"):
        nearest = np.float32(number)
    if float(nearest) == number:
        return _COMPARE[operator](left, nearest)
    if operator == "=":
        return np.zeros(left.shape, bool)
    if operator in (">", ">="):
        above = nearest if float(nearest) > number else np.nextafter(nearest, np.float32(math.inf))
        return left >= above
    below = nearest if float(nearest) < number else np.nextafter(nearest, np.float32(-math.inf))
    return left <= below
