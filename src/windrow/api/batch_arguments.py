"""What a batch is given, worked out for the array that it is for: griddings, conditions, values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from windrow.errors import DataError, ExpressionError
from windrow.model.gridding import Gridding
from windrow.operations.dense import write as writing
from windrow.storage.working import WorkingArray

if TYPE_CHECKING:
    from windrow.execution.engine import Engine
    from windrow.expressions.nodes import Node
    from windrow.plan.scopes import CellScope

Grid = Mapping[str, object] | Gridding | bool | None


def refuse_sparse(working: WorkingArray) -> None:
    if working.record.sparse:
        raise DataError(
            f"array {working.record.name} is sparse", got="a box of values", hint="Use insert() with a table of cells"
        )


def find_gridding(working: WorkingArray, grid: Grid) -> Gridding | None:
    if grid is False:
        return None
    if isinstance(grid, Gridding):
        return grid
    if isinstance(grid, Mapping):
        return Gridding.of(grid)
    known = None if working.record.gridding is None else Gridding.from_json(working.record.gridding)
    # Results that were stored lie on a grid, too; what takes points also keeps their exact coordinates.
    if known is None or not {a.name for a in known.exact_attributes()} <= set(working.schema.attribute_names):
        return None
    return known


def compact_array(engine: Engine, working: WorkingArray, chunks: dict[str, int]) -> None:
    if working.record.sparse:
        from windrow.operations.sparse.rewrite import compact_sparse

        compact_sparse(engine, working, chunks)
    else:
        writing.compact_dense(engine, working, chunks)


def scope_of(working: WorkingArray) -> CellScope:
    """Where expressions over an array's cells look names up: a labelled dimension is its label."""
    from windrow.model.coordinates import coordinates_of
    from windrow.plan.scopes import CellScope

    gridding = None if working.record.gridding is None else Gridding.from_json(working.record.gridding)
    coordinates = coordinates_of(working.schema, working.labels, gridding)
    dimensions = working.schema.dimension_names
    return CellScope(working.schema, working.box, coordinates, dimensions, (working.record.name,))


def bind_where(working: WorkingArray, where: str | Node | None) -> Node | None:
    from windrow.plan.scopes import bind_condition

    parsed = _parse(where)
    return None if parsed is None else bind_condition(parsed, scope_of(working))


def _parse(text: str | Node | None) -> Node | None:
    from windrow.expressions.nodes import Node
    from windrow.language.expression import parse_expression

    if text is None or isinstance(text, Node):
        return text
    if not isinstance(text, str):
        raise ExpressionError("a condition is a text", got=repr(text), hint="As in 'a > 3 and i <= 10'")
    return parse_expression(text)


def parse_value(expression: Any) -> Node:
    """An assignment's right side: text is an expression, anything else a constant."""
    from windrow.expressions.nodes import Literal, Node

    if isinstance(expression, Node):
        return expression
    parsed = _parse(expression) if isinstance(expression, str) else Literal(expression)
    assert parsed is not None
    return parsed
