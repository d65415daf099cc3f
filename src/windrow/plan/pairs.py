"""Names in expressions over the pairs of a join: those of the query, and those of the bound join."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from windrow.errors import DataError, ExpressionError, SchemaError, UnknownNameError, nearest
from windrow.expressions.nodes import Binary, Call, Column, Literal, Node
from windrow.expressions.rebuilding import rebuild
from windrow.model.types import TYPES, DataType
from windrow.model.units import UNITS, unit
from windrow.plan.bound import DISTANCE, Bound, BoundJoin, side_name
from windrow.plan.scopes import Along, Scope, bind_condition, bind_value

Qualifiers = Mapping[str | None, str | None]
"""What to put in the place of the names before the points."""


@dataclass(frozen=True)
class PairScope:
    """The pairs of a join: columns are named by side, or plainly where only one side has the name."""

    sides: Mapping[str, Bound]

    @property
    def types(self) -> Mapping[str, DataType]:
        found: dict[str, DataType] = {}
        for name, side in self.sides.items():
            found |= {f"{name}.{column}": kind for column, kind in side.types.items()}
        return found

    def look_up(self, column: Column) -> Along | Column:
        name, side = self._side(column)
        found = Column(column.name, name)
        if column.name not in side.dimension_names:
            return found
        axis = side.schema.axis(column.name)
        return Along(found, (side.box.lo[axis], side.box.hi[axis]), side.coordinates.get(column.name))

    def _side(self, column: Column) -> tuple[str, Bound]:
        if column.qualifier is not None and column.qualifier not in self.sides:
            hint = f"The sides are {' and '.join(self.sides)}"
            raise UnknownNameError("no side of the join has that name", got=repr(column.key), hint=hint)
        asked = self.sides if column.qualifier is None else [column.qualifier]
        holding = [name for name in asked if name in self.sides and column.name in self.sides[name].types]
        if len(holding) > 1:
            said = " or ".join(f"{name}.{column.name}" for name in holding)
            raise SchemaError("several sides of the join have this column", got=repr(column.name), hint=f"Say {said}")
        if not holding:
            raise UnknownNameError("no such column", got=repr(column.key), hint=nearest(column.key, self.types))
        return holding[0], self.sides[holding[0]]


_MEASURED = Column("distance", "distance()")
"""The distance while names are looked up: no side of a query can be called so."""


@dataclass(frozen=True)
class WithDistance:
    """Names of another scope, and the distance of a pair's cells."""

    scope: Scope

    @property
    def types(self) -> Mapping[str, DataType]:
        return {**self.scope.types, _MEASURED.key: TYPES["float64"]}

    def look_up(self, column: Column) -> Along | Column:
        return column if column == _MEASURED else self.scope.look_up(column)


def scope_of(join: BoundJoin) -> PairScope:
    """Where expressions of the query over the pairs look names up."""
    return PairScope(dict(zip(join.names, join.sides, strict=True)))


def paired_condition(node: Node, join: BoundJoin) -> Node:
    """A condition of the query on pairs as it is evaluated."""
    return sided(bind_condition(_measured(node, join), WithDistance(scope_of(join))), join)


def paired_value(node: Node, join: BoundJoin) -> tuple[Node, DataType]:
    """An expression of the query over pairs as it is evaluated, and its type."""
    found, kind = bind_value(_measured(node, join), WithDistance(scope_of(join)))
    return sided(found, join), kind


def neighbour_value(node: Node, join: BoundJoin, scope: Scope) -> tuple[Node, DataType]:
    """The same over the neighbours of a cell, whose columns need no names before them."""
    found, kind = bind_value(_measured(node, join), WithDistance(scope))
    return requalified(found, {None: side_name(2), _MEASURED.qualifier: DISTANCE.qualifier}), kind


def sided(node: Node, join: BoundJoin) -> Node:
    """An expression over the pairs, in which the sides are called by their numbers."""
    names: dict[str | None, str | None] = {name: side_name(number) for number, name in enumerate(join.names, 1)}

    def noted(part: Node) -> Node | None:
        named = isinstance(part, Column) and part.qualifier in names
        return replace(part, said=part.qualifier) if isinstance(part, Column) and named else None

    return requalified(rebuild(node, noted), {**names, _MEASURED.qualifier: DISTANCE.qualifier})


def sided_cell(cell: Column, names: Sequence[str]) -> Column:
    """A dimension of one of the sides of these names, which is called by its number."""
    return Column(cell.name, side_name(1 + names.index(str(cell.qualifier))))


def requalified(node: Node, names: Qualifiers) -> Node:
    """The expression with other qualifiers before its columns."""

    def changed(part: Node) -> Node | None:
        return replace(part, qualifier=names.get(part.qualifier, part.qualifier)) if isinstance(part, Column) else None

    return rebuild(node, changed)


def _measured(node: Node, join: BoundJoin) -> Node:
    """The expression with the column that it stands for in the place of ``distance()``."""

    def changed(part: Node) -> Node | None:
        asked = isinstance(part, Call) and part.function == "distance"
        return _distance(part.arguments, join) if isinstance(part, Call) and asked else None

    return rebuild(node, changed)


def _distance(arguments: tuple[Node, ...], join: BoundJoin) -> Node:
    if not arguments:
        return _MEASURED
    given = arguments[0]
    if len(arguments) > 1 or not isinstance(given, Literal) or not isinstance(given.value, str):
        got = ", ".join(map(str, arguments))
        raise ExpressionError("distance takes a unit at most", got=got, hint="As in distance('arcsec')")
    if join.sky is None:
        hint = "Leave the unit out; with shape Sky(…) distances are angles"
        raise ExpressionError("distances are measured in cells here", got=repr(given.value), hint=hint)
    kind, degrees = unit(given.value)
    if kind != "angle":
        angles = [name for name, (kind, _) in UNITS.items() if kind == "angle"]
        raise DataError("distances on the sky are angles", got=repr(given.value), hint=nearest(given.value, angles))
    return _MEASURED if degrees == 1 else Binary("*", _MEASURED, Literal(float(1 / degrees)))


def sided_types(join: BoundJoin) -> dict[str, DataType]:
    """The type of every column that expressions over the pairs may read."""
    found: dict[str, DataType] = {DISTANCE.key: TYPES["float64"]}
    for number, side in enumerate(join.sides, 1):
        found |= {f"{side_name(number)}.{column}": kind for column, kind in side.types.items()}
    return found
