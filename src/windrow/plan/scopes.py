"""What names mean in an expression: attributes, and dimensions, whose name is their label wherever they have labels.

``bind_expression`` turns the names of a text into what is evaluated. ``lat > 30`` on a labelled dimension becomes a
range of cells, ``cos(radians(lat))`` the cosine of the label, and ``cell(lat)`` the number of the cell.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from datetime import date
from typing import Any, Protocol

from windrow.errors import DataError, ExpressionError, UnknownNameError, nearest
from windrow.expressions.nodes import (
    Around,
    Between,
    Call,
    Cell,
    Column,
    Comparison,
    InList,
    Label,
    Literal,
    Node,
    Or,
    Unary,
)
from windrow.expressions.types import check, check_condition
from windrow.model.box import Box
from windrow.model.coordinates import Coordinate, Span, other_runs
from windrow.model.schema import Schema
from windrow.model.types import TYPES, DataType

_MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
MOST_RUNS = 16
"""Ranges of cells that a condition may become; where labels are in no order, more cells are listed one by one."""


@dataclass(frozen=True)
class Along:
    """A dimension that an expression names: the column of its cell numbers, where they lie, and their labels."""

    column: Column
    span: Span
    coordinate: Coordinate | None = None

    @property
    def number(self) -> Column:
        """The number of the cell."""
        return self.column if self.coordinate is None else Cell(self.column.name, self.column.qualifier)

    @property
    def label(self) -> Node:
        """What the name alone means."""
        number = self.number
        return Label(number, self.coordinate) if isinstance(number, Cell) and self.coordinate is not None else number


class Scope(Protocol):
    """Where names are looked up."""

    @property
    def types(self) -> Mapping[str, DataType]:
        """The type of every column of a bound expression, by its key."""
        ...

    def look_up(self, column: Column) -> Along | Column:
        """What a column of a text is: a dimension, or else the column to be read."""
        ...


@dataclass(frozen=True)
class CellScope:
    """The cells of one array or step; ``names`` may stand before a point."""

    schema: Schema
    box: Box
    coordinates: Mapping[str, Coordinate]
    dimension_names: tuple[str, ...]
    names: Collection[str] = ()

    @property
    def types(self) -> Mapping[str, DataType]:
        dimensions = dict.fromkeys(self.dimension_names, TYPES["int64"])
        return dimensions | {attribute.name: attribute.type for attribute in self.schema.attributes}

    def look_up(self, column: Column) -> Along | Column:
        if column.qualifier is not None and column.qualifier not in self.names:
            hint = nearest(column.qualifier, self.names) if self.names else "Leave the qualifier out"
            raise UnknownNameError("no array of that name is read here", got=repr(column.qualifier), hint=hint)
        found = Column(column.name)
        if column.name not in self.dimension_names:
            return found
        axis = self.schema.axis(column.name)
        return Along(found, (self.box.lo[axis], self.box.hi[axis]), self.coordinates.get(column.name))


def bind_condition(node: Node, scope: Scope) -> Node:
    """A condition of a text as it is evaluated."""
    bound = bind_expression(node, scope)
    with _pointing_to_cells(bound):
        check_condition(bound, scope.types)
    return bound


def bind_value(node: Node, scope: Scope) -> tuple[Node, DataType]:
    """An expression of a text as it is evaluated, and its type."""
    bound = bind_expression(node, scope)
    with _pointing_to_cells(bound):
        return bound, check(bound, scope.types)


@contextmanager
def _pointing_to_cells(node: Node) -> Iterator[None]:
    """Says, where a type does not fit, that the number of a cell has another name than its label."""
    try:
        yield
    except ExpressionError as error:
        odd = [part for part in node.walk() if isinstance(part, Label) and not part.coordinate.type.is_number]
        if not odd:
            raise
        name, kind = str(odd[0]), odd[0].coordinate.type
        hint = f"{name} is its label here, a {kind}; the number of its cell is cell({name})"
        raise ExpressionError(error.what, got=error.got, hint=hint) from None


def bind_expression(node: Node, scope: Scope) -> Node:
    """The expression with all names looked up; types are not checked."""
    if isinstance(node, (Cell, Label)):
        return node
    if isinstance(node, Column):
        found = scope.look_up(node)
        return found.label if isinstance(found, Along) else found
    if isinstance(node, Call) and node.function in ("cell", "label") and len(node.arguments) == 1:
        found = _dimension(node, scope)
        return found.number if node.function == "cell" else found.label
    return _ranges(node, scope) or _rebuilt(node, scope)


def _rebuilt(node: Node, scope: Scope) -> Node:
    def change(part: Any) -> Any:
        if isinstance(part, Node):
            return bind_expression(part, scope)
        return tuple(map(change, part)) if isinstance(part, tuple) else part

    parts = {part.name: getattr(node, part.name) for part in fields(node) if part.init}
    changed = {name: change(value) for name, value in parts.items()}
    return node if all(changed[name] is parts[name] for name in parts) else replace(node, **changed)


def _dimension(call: Call, scope: Scope) -> Along:
    argument = call.arguments[0]
    found = scope.look_up(argument) if isinstance(argument, Column) else None
    if not isinstance(found, Along):
        hint = f"As in {call.function}(time)"
        raise ExpressionError(f"{call.function} takes the name of a dimension", got=argument, hint=hint)
    return found


# Labels compared with constants


def _ranges(node: Node, scope: Scope) -> Node | None:
    """What compares a dimension's label with constants, as ranges of its cells; None if the node does not."""
    if isinstance(node, Comparison):
        sides = ((node.left, node.operator, node.right), (node.right, _MIRRORED[node.operator], node.left))
        for left, operator, right in sides:
            found = _labelled(left, [right], scope)
            if found is not None:
                along, coordinate = found
                return _cells(along, coordinate.where(operator, constant(right), along.span))
    if isinstance(node, Between):
        found = _labelled(node.operand, [node.low, node.high], scope)
        if found is not None:
            along, coordinate = found
            runs = coordinate.between(constant(node.low), constant(node.high), along.span)
            return _cells(along, other_runs(sorted(runs), along.span) if node.negated else runs)
    if isinstance(node, InList):
        found = _labelled(node.operand, node.options, scope)
        if found is not None:
            along, coordinate = found
            several = [run for one in node.options for run in coordinate.where("=", constant(one), along.span)]
            runs = _merged(several)
            return _cells(along, other_runs(runs, along.span) if node.negated else runs)
    return None


def _labelled(node: Node, values: Sequence[Node], scope: Scope) -> tuple[Along, Coordinate] | None:
    """The dimension and its labels, if it is named alone, and all that it is compared with are constants."""
    if isinstance(node, Call) and node.function == "label" and len(node.arguments) == 1:
        node = node.arguments[0]
    if not isinstance(node, Column) or any(constant(value) is None for value in values):
        return None
    found = scope.look_up(node)
    if not isinstance(found, Along):
        return None
    if found.coordinate is None:
        for value in map(constant, values):
            if isinstance(value, (str, date)):
                first, last = found.span
                present = "There are no cells yet" if last < first else f"The cells go from {first} to {last}"
                what = f"dimension {node.name} has no labels to select by"
                raise DataError(what, got=repr(value), hint=f"Select by index. {present}")
        return None
    return found, found.coordinate


def constant(node: Node) -> Any:
    """The value of a literal, with its sign; None if it is no literal."""
    if isinstance(node, Unary):
        value = constant(node.operand)
        return -value if type(value) in (int, float) else None
    return node.value if isinstance(node, Literal) else None


def _cells(along: Along, runs: Sequence[Span]) -> Node:
    """The condition that a cell lies in one of the runs."""
    nowhere = (along.span[0], along.span[0] - 1)
    ranges = [Between(along.number, Literal(first), Literal(last)) for first, last in runs or [nowhere]]
    if len(ranges) == 1:
        return ranges[0]
    if len(ranges) == 2 and runs[0] > runs[1]:
        return Around(tuple(ranges))
    if len(ranges) <= MOST_RUNS:
        return Or(tuple(ranges))
    return InList(along.number, tuple(Literal(cell) for first, last in runs for cell in range(first, last + 1)))


def _merged(runs: Sequence[Span]) -> list[Span]:
    """The same cells in runs that are in order and do not touch."""
    found: list[Span] = []
    for first, last in sorted(runs):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(last, found[-1][1]))
        else:
            found.append((first, last))
    return found
