"""What ``on`` says in a join: which left cell a right cell is looked for around, and which pairs are left out."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from windrow.errors import SchemaError
from windrow.expressions.nodes import Binary, Call, Column, Comparison, Node
from windrow.model.coordinates import GridCoordinate, same_coordinates
from windrow.plan.bound import Bound
from windrow.plan.join_terms import AxisMap
from windrow.plan.pairs import PairScope
from windrow.plan.scopes import Along, Scope, constant

_FORMS = "Write k * i + c or i // k + c, with whole numbers k from 1 and c"


@dataclass(frozen=True)
class _Written:
    """One part of the mapping as it is written."""

    right: Along
    left: Along
    place: AxisMap
    by_number: bool
    """Whether ``cell(…)`` says that the numbers of cells are meant, whatever their labels."""


def bind_mapping(
    parts: Sequence[Node], scope: PairScope, right: Bound, names: Sequence[str], exact: Collection[str] = ()
) -> tuple[list[AxisMap | None], list[Node]]:
    """The mapping, for each right dimension in order, and the parts that are conditions on the pairs.

    Without any part that maps a dimension, each is mapped from the left one of the same name; a numbering dimension is
    so in any case. Along ``exact`` dimensions the sides may call their cells by different coordinates.
    """
    written = [_written(part, scope, names) for part in parts]
    mapped = [one for one in written if one is not None] or _identity(scope, right, names)
    found: dict[str, AxisMap] = {}
    for one in mapped:
        name = one.right.column.name
        if name in found:
            raise SchemaError("a right dimension is mapped twice", got=repr(one.right.column.key), hint="Say it once")
        if not one.by_number and name not in exact:
            _check_coordinates(one)
        found[name] = one.place
    for dimension in right.schema.dimensions:
        if dimension.numbering and dimension.name not in found:
            found |= _numbering(dimension.name, scope, names)
    conditions = [part for part, one in zip(parts, written, strict=True) if one is None]
    return [found.get(name) for name in right.schema.dimension_names], conditions


def _check_coordinates(one: _Written) -> None:
    """Refuses sides whose cells of one number are not the same place."""
    if not same_coordinates(one.left.coordinate, one.right.coordinate):
        mine, theirs = one.left.column.key, one.right.column.key
        gridded = any(isinstance(side.coordinate, GridCoordinate) for side in (one.left, one.right))
        hint = f"To match them by the numbers of cells, write cell({theirs}) = cell({mine})"
        what = f"{mine} and {theirs} have different {'griddings' if gridded else 'labels'}"
        raise SchemaError(what, got=f"{_called(one.left)} and {_called(one.right)}", hint=hint)


def _called(side: Along) -> str:
    """What the first cell of a side is called."""
    if side.coordinate is None:
        return "numbers alone"
    if side.span[1] < side.span[0]:
        return "no cells"
    return f"{side.coordinate.values(np.array(side.span[:1]))[0].as_py()} at cell {side.span[0]}"


def _numbering(name: str, scope: PairScope, names: Sequence[str]) -> dict[str, AxisMap]:
    """A numbering dimension of both sides: whatever else is mapped, a cell's own number is its own."""
    for side in names[:-1]:
        schema = scope.sides[side].schema
        if any(dimension.numbering and dimension.name == name for dimension in schema.dimensions):
            return {name: AxisMap(Column(name, side))}
    return {}


def _identity(scope: Scope, right: Bound, names: Sequence[str]) -> list[_Written]:
    """Every right dimension at the left one of its name: that of the first side, where several have it."""
    found = []
    for name in right.dimension_names:
        partner = next((side for side in names[:-1] if f"{side}.{name}" in scope.types), None)
        sides = [] if partner is None else [scope.look_up(Column(name, side)) for side in (names[-1], partner)]
        if len(sides) == 2 and isinstance(sides[0], Along) and isinstance(sides[1], Along):
            found.append(_Written(sides[0], sides[1], AxisMap(sides[1].column), by_number=False))
    if not found:
        known = ", ".join(right.dimension_names)
        hint = f"Say how they are matched, as in on {names[-1]}.{right.dimension_names[0]} = {names[0]}.…"
        raise SchemaError(f"no dimension of {names[-1]} has a namesake on the left side", got=known, hint=hint)
    return found


def _written(part: Node, scope: Scope, names: Sequence[str]) -> _Written | None:
    """A part that equates a right dimension with an expression of left ones; None if it is something else."""
    if not isinstance(part, Comparison) or part.operator != "=":
        return None
    for target, source in ((part.left, part.right), (part.right, part.left)):
        right = _along(target, scope)
        read = [scope.look_up(column) for column in source.columns()]
        left = [one for one in read if isinstance(one, Along) and one.column.qualifier != names[-1]]
        if right is None or right.column.qualifier != names[-1] or not read or len(left) < len(read):
            continue
        place = _linear(source, scope)
        if place is None or place.scale < 1 or place.divisor < 1:
            raise SchemaError("not a way to map dimensions", got=str(part), hint=_FORMS)
        by_number = any(isinstance(node, Call) and node.function == "cell" for node in part.walk())
        return _Written(right, left[0], place, by_number)
    return None


def _along(node: Node, scope: Scope) -> Along | None:
    if isinstance(node, Call) and node.function == "cell" and len(node.arguments) == 1:
        node = node.arguments[0]
    found = scope.look_up(node) if isinstance(node, Column) else None
    return found if isinstance(found, Along) else None


def _linear(node: Node, scope: Scope) -> AxisMap | None:
    """The expression as a multiple or a fraction of one dimension, and a shift."""
    along = _along(node, scope)
    if along is not None:
        return AxisMap(along.column)
    if not isinstance(node, Binary):
        return None
    operator, operand, number = node.operator, node.left, constant(node.right)
    if type(number) is not int and operator in ("+", "*"):
        operand, number = node.right, constant(node.left)
    below = _linear(operand, scope)
    if below is None or type(number) is not int:
        return None
    if operator in ("+", "-"):
        return AxisMap(below.cell, below.scale, below.divisor, below.shift + (number if operator == "+" else -number))
    if operator == "*" and below.divisor == 1:
        return AxisMap(below.cell, below.scale * number, 1, below.shift * number)
    if operator == "//" and below.is_identity:
        return AxisMap(below.cell, 1, number)
    return None
