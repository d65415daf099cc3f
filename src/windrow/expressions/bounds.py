"""Where the cells that satisfy a condition can be, so that only the chunks there are read."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from operator import and_, or_

from windrow.errors import Error
from windrow.expressions.nodes import (
    And,
    Between,
    Column,
    Comparison,
    InList,
    IsNull,
    Label,
    Literal,
    Node,
    Not,
    Or,
    Unary,
)
from windrow.model.box import Box

_MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_EXACT = 2**53
_MOST_LABELS = 2**20
"""Cells of a dimension for which a condition on their labels is tried out one by one."""


def box_of(node: Node, dimension_names: Sequence[str], bounds: Box) -> Box:
    """A box in ``bounds`` that holds every cell there for which the condition can be true.

    It is found from comparisons of dimensions with numbers, and by trying conditions on the labels of one dimension;
    whatever else the condition says can only leave out more.
    """
    return _Search(tuple(dimension_names), bounds).where(node, True)


class _Search:
    def __init__(self, names: tuple[str, ...], bounds: Box) -> None:
        self.names = names
        self.bounds = bounds
        self.nothing = Box(bounds.lo, tuple(lo - 1 for lo in bounds.lo))

    def where(self, node: Node, truth: bool) -> Box:
        """A box of the cells where ``node`` can be true, or where it can be false."""
        if isinstance(node, Literal):
            return self.bounds if node.value is truth else self.nothing
        if isinstance(node, Not):
            return self.where(node.operand, not truth)
        if isinstance(node, (And, Or)):
            every = isinstance(node, And) is truth
            return reduce(and_ if every else or_, [self.where(operand, truth) for operand in node.operands])
        if any(isinstance(part, Label) for part in node.walk()):
            return self._find_box(node, truth)
        if isinstance(node, Comparison):
            return self._compare(node.left, node.operator if truth else _OPPOSITE[node.operator], node.right)
        if isinstance(node, Between):
            return self._between(node, truth is not node.negated)
        if isinstance(node, InList) and truth is not node.negated:
            return reduce(or_, [self._compare(node.operand, "=", option) for option in node.options])
        if isinstance(node, IsNull) and self._axis(node.operand) is not None:
            return self.bounds if truth is node.negated else self.nothing
        return self.bounds

    def _find_box(self, node: Node, truth: bool) -> Box:
        """From the first to the last cell of the one dimension that the condition reads which can satisfy it."""
        columns = node.columns()
        axis = self._axis(next(iter(columns))) if len(columns) == 1 else None
        if axis is None or not 0 < self.bounds.shape[axis] <= _MOST_LABELS:
            return self.bounds
        import numpy as np
        import pyarrow as pa

        from windrow.expressions.evaluate import evaluate

        cells = np.arange(self.bounds.lo[axis], self.bounds.hi[axis] + 1)
        try:
            found = evaluate(node, {self.names[axis]: pa.array(cells)}, len(cells))
        except Error:  # some label cannot be computed with, which matters only if its cells are read
            return self.bounds
        chosen = cells[found.fill_null(not truth).to_numpy(zero_copy_only=False) == truth]
        if not len(chosen):
            return self.nothing
        lo, hi = list(self.bounds.lo), list(self.bounds.hi)
        lo[axis], hi[axis] = int(chosen[0]), int(chosen[-1])
        return Box(tuple(lo), tuple(hi))

    def _between(self, node: Between, inside: bool) -> Box:
        low, high = (">=", "<=") if inside else ("<", ">")
        combine: Callable[[Box, Box], Box] = and_ if inside else or_
        return combine(self._compare(node.operand, low, node.low), self._compare(node.operand, high, node.high))

    def _compare(self, left: Node, operator: str, right: Node) -> Box:
        axis = self._axis(left)
        if axis is None:
            axis, operator, right = self._axis(right), _MIRRORED[operator], left
        if isinstance(right, Literal) and right.value is None:
            return self.nothing
        number = _number(right)
        if axis is None or number is None or operator == "<>":
            return self.bounds
        below = math.ceil(number) - 1 if operator == "<" else math.floor(number)
        above = math.floor(number) + 1 if operator == ">" else math.ceil(number)
        lo, hi = list(self.bounds.lo), list(self.bounds.hi)
        if operator in ("=", ">", ">="):
            lo[axis] = max(lo[axis], above)
        if operator in ("=", "<", "<="):
            hi[axis] = min(hi[axis], below)
        return Box(tuple(lo), tuple(hi))

    def _axis(self, node: Node) -> int | None:
        return self.names.index(node.key) if isinstance(node, Column) and node.key in self.names else None


def _number(node: Node) -> int | float | None:
    """A literal number; not a float so large that comparing with it rounds the dimension."""
    if isinstance(node, Unary):
        number = _number(node.operand)
        return None if number is None else -number
    if not isinstance(node, Literal) or type(node.value) not in (int, float):
        return None
    value: int | float = node.value  # type: ignore[assignment]
    return None if isinstance(value, float) and abs(value) >= _EXACT else value
