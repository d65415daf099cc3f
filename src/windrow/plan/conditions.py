"""Conditions on dimensions: labels become cell numbers, and ranges become boxes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from datetime import date
from typing import Any

from windrow.expressions.bounds import box_of
from windrow.expressions.nodes import And, Between, Column, Comparison, InList, Literal, Node, Not, Or, Unary
from windrow.model.box import Box
from windrow.model.selection import resolve
from windrow.plan.bound import Bound

_MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_EXACT = 2**53
"""Floats beyond it do not compare with cell numbers exactly."""


def in_cell_numbers(node: Node, place: Bound) -> Node:
    """The expression with labels that dimensions are compared with turned into numbers of cells."""
    if isinstance(node, Comparison):
        sides = ((node.left, node.operator, node.right), (node.right, _MIRRORED[node.operator], node.left))
        for left, operator, right in sides:
            name = _labelled(left, [right], place)
            if name is not None:
                return _compared(name, operator, constant(right), place)
    if isinstance(node, Between):
        name = _labelled(node.operand, [node.low, node.high], place)
        if name is not None:
            inside = _range(name, constant(node.low), constant(node.high), place)
            return Not(inside) if node.negated else inside
    if isinstance(node, InList):
        name = _labelled(node.operand, list(node.options), place)
        if name is not None:
            found = [_one(name, constant(option), place) for option in node.options]
            either = found[0] if len(found) == 1 else Or(tuple(found))
            return Not(either) if node.negated else either
    return _rebuilt(node, place)


def _rebuilt(node: Node, place: Bound) -> Node:
    def change(part: Any) -> Any:
        if isinstance(part, Node):
            return in_cell_numbers(part, place)
        return tuple(map(change, part)) if isinstance(part, tuple) else part

    parts = {part.name: getattr(node, part.name) for part in fields(node) if part.init}
    changed = {name: change(value) for name, value in parts.items()}
    return node if all(changed[name] is parts[name] for name in parts) else replace(node, **changed)


def constant(node: Node) -> Any:
    """The value of a literal, with its sign; None if it is no literal."""
    if isinstance(node, Unary):
        value = constant(node.operand)
        return -value if type(value) in (int, float) else None
    return node.value if isinstance(node, Literal) else None


def _labelled(column: Node, values: Sequence[Node], place: Bound) -> str | None:
    """The dimension, if it is compared with labels: texts, moments, and numbers with a point where it has labels."""
    if not isinstance(column, Column) or column.key not in place.schema.dimension_names:
        return None
    gridded = place.gridding is not None and column.key in place.gridding.names
    named = gridded or column.key in dict(place.labels)
    found = [constant(value) for value in values]
    labels = [isinstance(value, (str, date)) or (named and type(value) is float) for value in found]
    return column.key if any(labels) and all(value is not None for value in found) else None


def _ends(name: str, wanted: object, place: Bound) -> tuple[int, int]:
    box = resolve(place.schema, place.box, dict(place.labels), {name: wanted}, place.gridding)
    axis = place.schema.axis(name)
    return box.lo[axis], box.hi[axis]


def _between(name: str, lo: int, hi: int) -> Node:
    return Between(Column(name), Literal(lo), Literal(hi))


def _range(name: str, low: object, high: object, place: Bound) -> Node:
    return _between(name, *_ends(name, (low, high), place))


def _one(name: str, value: object, place: Bound) -> Node:
    return _between(name, *_ends(name, value, place))


def _compared(name: str, operator: str, value: object, place: Bound) -> Node:
    if operator in ("=", "<>"):
        found = _one(name, value, place)
        return found if operator == "=" else Not(found)
    if operator in (">=", "<="):
        low, high = (value, None) if operator == ">=" else (None, value)
        return _range(name, low, high, place)
    axis = place.schema.axis(name)
    lo, hi = place.box.lo[axis], place.box.hi[axis]
    first, last = _ends(name, (None, value) if operator == ">" else (value, None), place)
    if last < first:
        return _between(name, lo, hi)
    if first == lo:
        return _between(name, last + 1, hi)
    return _between(name, lo, first - 1) if last == hi else Not(_between(name, first, last))


def split(condition: Node, place: Bound) -> tuple[Box, list[Node]]:
    """The box that the ranges of dimensions among the parts of a condition make, and the other parts."""
    parts = _parts(condition)
    ranges = [part for part in parts if _is_range(part, place.schema.dimension_names)]
    box = place.box
    for part in ranges:
        box = box_of(part, place.schema.dimension_names, box)
    return box, [part for part in parts if part not in ranges]


def _parts(condition: Node) -> list[Node]:
    if not isinstance(condition, And):
        return [condition]
    return [part for operand in condition.operands for part in _parts(operand)]


def _is_range(node: Node, names: Sequence[str]) -> bool:
    if isinstance(node, Between):
        return not node.negated and _is_dimension(node.operand, names) and _is_place(node.low) and _is_place(node.high)
    if isinstance(node, Comparison) and node.operator != "<>":
        return (_is_dimension(node.left, names) and _is_place(node.right)) or (
            _is_dimension(node.right, names) and _is_place(node.left)
        )
    return False


def _is_dimension(node: Node, names: Sequence[str]) -> bool:
    return isinstance(node, Column) and node.key in names


def _is_place(node: Node) -> bool:
    value = constant(node)
    return type(value) is int or (type(value) is float and abs(value) < _EXACT)


def joined(parts: Sequence[Node]) -> Node:
    """All of the parts."""
    return parts[0] if len(parts) == 1 else And(tuple(parts))
