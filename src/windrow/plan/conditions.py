"""Conditions taken apart: ranges of dimensions become boxes, and the other parts stay conditions."""

from __future__ import annotations

from collections.abc import Sequence

from windrow.expressions.bounds import box_of
from windrow.expressions.nodes import And, Between, Column, Comparison, Node
from windrow.model.box import Box
from windrow.plan.bound import Bound
from windrow.plan.scopes import constant

_EXACT = 2**53
"""Floats beyond it do not compare with cell numbers exactly."""


def split(condition: Node, place: Bound) -> tuple[Box, list[Node]]:
    """The box that the ranges of dimensions among the parts of a condition make, and the other parts."""
    parts = parts_of(condition)
    ranges = [part for part in parts if _is_range(part, place.schema.dimension_names)]
    box = place.box
    for part in ranges:
        box = box_of(part, place.schema.dimension_names, box)
    return box, [part for part in parts if part not in ranges]


def parts_of(condition: Node) -> list[Node]:
    """The conditions that all have to hold."""
    if not isinstance(condition, And):
        return [condition]
    return [part for operand in condition.operands for part in parts_of(operand)]


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
