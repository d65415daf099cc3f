"""Queries taken apart, so that two of them can be compared: rows of an array, and aggregates over them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from windrow.aggregates.aggregate import Aggregate
from windrow.expressions.nodes import Column, Node
from windrow.model.box import Box
from windrow.plan.bound import (
    Bound,
    BoundColumns,
    BoundFilter,
    BoundJoined,
    BoundSelection,
    BoundTotals,
    BoundWindow,
    side_name,
)
from windrow.plan.conditions import parts_of
from windrow.plan.substitution import replaced_columns

AggregateStep = BoundWindow | BoundTotals | BoundJoined


@dataclass(frozen=True)
class RowForm:
    """Steps that look at one cell at a time, as one: the cells of ``base`` in ``box`` where all ``conditions`` hold."""

    base: Bound
    box: Box
    conditions: tuple[Node, ...]
    outputs: Mapping[str, Node]
    """What each attribute is, in terms of those of the base."""

    def same_rows(self, other: RowForm) -> bool:
        return self.box == other.box and self.same_but_box(other)

    def same_but_box(self, other: RowForm) -> bool:
        return self.base == other.base and not self.without(other) and not other.without(self)

    def without(self, other: RowForm) -> list[Node]:
        """The conditions that another has not."""
        return [part for part in self.conditions if part not in other.conditions]


def row_form(bound: Bound) -> RowForm:
    """What a step is, looked at so; a step of another kind is its own base."""
    if isinstance(bound, BoundSelection):
        below = row_form(bound.source)
        return replace(below, box=below.box & bound.box)
    if isinstance(bound, BoundFilter):
        below = row_form(bound.source)
        condition = replaced_columns(bound.condition, dict(below.outputs))
        return replace(below, conditions=(*below.conditions, *parts_of(condition)))
    if isinstance(bound, BoundColumns):
        below = row_form(bound.source)
        known = dict(below.outputs)
        return replace(below, outputs={name: replaced_columns(node, known) for name, node in bound.outputs})
    return RowForm(bound, bound.box, (), {name: Column(name) for name in bound.schema.attribute_names})


@dataclass(frozen=True)
class Measured:
    """An aggregate, whatever its arguments are called, of these expressions."""

    aggregate: Aggregate
    nodes: tuple[Node, ...]

    @classmethod
    def of(cls, aggregate: Aggregate, nodes: Mapping[str, Node]) -> Measured:
        plain = replace(
            aggregate,
            attribute=None if aggregate.attribute is None else "x",
            second=None if aggregate.second is None else "y",
        )
        return cls(plain, tuple(nodes[name] for name in aggregate.attributes))


@dataclass(frozen=True)
class Core:
    """A step that aggregates, and what it aggregates."""

    step: AggregateStep
    rows: RowForm
    """Of what is aggregated; of the left side of a join."""
    nodes: Mapping[str, Node]
    """The arguments of the aggregates by name."""
    certain: frozenset[str]
    """The arguments that are never missing, so that counting them is counting rows."""

    @property
    def aggregates(self) -> tuple[tuple[str, Aggregate], ...]:
        return self.step.plan.aggregates if isinstance(self.step, BoundWindow) else self.step.aggregates

    def find(self, wanted: Measured) -> str | None:
        """The attribute that has an aggregate, if there is one."""
        for name, aggregate in self.aggregates:
            if Measured.of(aggregate, self.nodes) == wanted:
                return name
        return None


def core_of(bound: Bound) -> Core | None:
    """The step as one that aggregates, if it is one."""
    if isinstance(bound, (BoundWindow, BoundTotals)):
        rows = row_form(bound.source)
        sure = [a.name for a in bound.source.schema.attributes if not a.can_be_missing]
        return Core(bound, rows, rows.outputs, frozenset(sure))
    if isinstance(bound, BoundJoined):
        nodes = dict(bound.arguments)
        return Core(bound, row_form(bound.source.left), nodes, frozenset(_sure_arguments(bound)))
    return None


def _sure_arguments(bound: BoundJoined) -> list[str]:
    sides = {side_name(number): side for number, side in enumerate(bound.source.sides, 1)}
    optional = {side_name(number) for number in bound.source.optional_sides[:-1]}
    found = []
    for name, node in bound.arguments:
        side = sides.get(str(node.qualifier)) if isinstance(node, Column) else None
        if side is not None and isinstance(node, Column) and node.qualifier not in optional:
            is_cell = node.name in side.dimension_names
            if is_cell or not side.schema.attribute(node.name).can_be_missing:
                found.append(name)
    return found


@dataclass(frozen=True)
class Topped:
    """An aggregating step under steps that leave its results where they are."""

    core: Core
    columns: Mapping[str, str]
    """The final name of each result that is still there as it was."""
    box: Box


def topped_core(bound: Bound) -> Topped | None:
    """A query as such, if it is one and leaves no result out but by a box."""
    form = row_form(bound)
    core = core_of(form.base)
    if core is None or form.conditions:
        return None
    columns = {node.name: name for name, node in form.outputs.items() if isinstance(node, Column)}
    return Topped(core, columns, bound.box)
