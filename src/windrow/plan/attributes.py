"""The attributes that steps of a query make: of which type, and whether their values can be missing."""

from __future__ import annotations

from dataclasses import replace

from windrow.aggregates.aggregate import Aggregate
from windrow.expressions.nodes import (
    And,
    Around,
    Between,
    Binary,
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
from windrow.model.coordinates import GridCoordinate
from windrow.model.schema import Attribute, Schema
from windrow.model.types import TYPES, DataType
from windrow.plan.bound import Bound

_TOTAL = (And, Around, Between, Binary, Column, Comparison, InList, IsNull, Literal, Not, Or, Unary)
"""What gives a value wherever its operands have one; other expressions, such as a case, may not."""


def computed_attribute(name: str, kind: DataType, node: Node, schema: Schema) -> Attribute:
    """The attribute that an expression gives."""
    if kind.is_float:
        return Attribute(name, kind)
    certain = all(_is_certain(part, schema) for part in node.walk())
    return Attribute(name, kind, nullable=not certain)


def _is_certain(node: Node, schema: Schema) -> bool:
    if isinstance(node, Column):
        return node.key in schema.dimension_names or not schema.attribute(node.key).can_be_missing
    if isinstance(node, Label):  # cells of a sparse array may lie beyond those that have labels
        grows = schema.sparse and schema.dimension(node.cell.name).growing
        return isinstance(node.coordinate, GridCoordinate) or not grows
    if isinstance(node, Literal):
        return node.value is not None and node.value == node.value
    return isinstance(node, _TOTAL)


def aggregated_attribute(name: str, aggregate: Aggregate, source: Bound, occupied: bool) -> Attribute:
    """The attribute that an aggregate gives; ``occupied`` says that it is never of no cells at all."""
    definition = aggregate.definition
    given = None if aggregate.attribute is None else source.schema.attribute(aggregate.attribute)
    kind = definition.result(TYPES["int64"] if given is None else given.type)
    cells = occupied or not (source.schema.sparse or source.box.is_empty)
    there = (
        cells
        and given is not None
        and not any(source.schema.attribute(one).can_be_missing for one in aggregate.attributes)
    )
    certain = definition.least == 0 or (there and definition.least == 1)
    return Attribute(name, kind, nullable=not certain and not kind.is_float)


def optional_attribute(attribute: Attribute, aggregate: Aggregate) -> Attribute:
    """The same where a group may have no cells at all: counts are 0 then, and other results missing."""
    certain = aggregate.definition.least == 0 or attribute.type.is_float
    return attribute if certain else replace(attribute, nullable=True)


def paired_attribute(name: str, aggregate: Aggregate, given: DataType, min_count: int = 0) -> Attribute:
    """The attribute that an aggregate over pairs gives, of which a cell may have none."""
    definition = aggregate.definition
    kind = definition.result(given)
    return Attribute(name, kind, nullable=not kind.is_float and (definition.least > 0 or min_count > 0))
