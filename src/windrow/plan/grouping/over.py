"""Aggregates over the group that a cell belongs to, given back to the cell: ``t - avg(t) over (lat, month(time))``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any

from windrow.expressions.nodes import Call, Column, Node, Over
from windrow.model.schema import Schema
from windrow.plan.bound import Bound, BoundSpread, NamedAggregates
from windrow.plan.grouping.label_parts import BoundParted, GroupKey
from windrow.plan.grouping.totals import bind_totals
from windrow.plan.grouping.values import ValuePart, Values
from windrow.plan.scopes import Scope
from windrow.plan.specs import Measure, Output
from windrow.plan.steps import ended

Measured = Callable[[Sequence[Measure], Sequence[GroupKey]], tuple[Bound, NamedAggregates]]
"""Binds aggregates to the cells that are selected from, with a column for each argument that has to be computed, and
for each key that is an attribute."""


def spread_groups(
    outputs: Sequence[Output], source: Bound, scope: Scope, measured: Measured, values: Values
) -> tuple[Bound, tuple[Output, ...]]:
    """The cells with the results of their groups as further attributes, and the columns that read these.

    Aggregates over the same groups are computed in one pass.
    """
    found = list(dict.fromkeys(part for one in outputs for part in one.expression.walk() if isinstance(part, Over)))
    if not found:
        return source, tuple(outputs)
    names: dict[Over, str] = {}
    bound = source
    for groups in dict.fromkeys(over.groups for over in found):
        together = [over for over in found if over.groups == groups]
        for over in together:
            names[over] = _free_name(len(names) + 1, source)
        below, aggregates = measured([Measure.of_call(names[over], over.call) for over in together], _keys(groups))
        totals = bind_totals(_keys(groups), below, aggregates, scope, values)
        bound = _spread(bound, totals, ", ".join(f"{over} as {names[over]}" for over in together))
    return bound, tuple(Output(one.name, _read(one.expression, names)) for one in outputs)


def _keys(groups: Sequence[Node]) -> tuple[GroupKey, ...]:
    return tuple(key for key in groups if isinstance(key, (Column, Call)))


def _free_name(number: int, source: Bound) -> str:
    name = f"over_{number}"
    while name in source.types:
        name += "_"
    return name


def _spread(source: Bound, totals: Any, words: str) -> BoundSpread:
    base = source.schema if source.schema.sparse else ended(source.schema, source.box)
    parts = totals.parts if isinstance(totals, BoundParted) else (None,) * len(totals.axes)
    added = totals.schema.attributes
    if any(
        isinstance(part, ValuePart) and part.can_be_missing for part in parts
    ):  # and what is in no group has nothing
        added = tuple(one if one.type.is_float else replace(one, nullable=True) for one in added)
    attributes = (*base.attributes, *added)
    return BoundSpread(
        schema=Schema(base.dimensions, attributes, base.sparse).with_chunks(),
        box=source.box,
        labels=source.labels,
        gridding=source.gridding,
        scalar=source.scalar,
        source=source,
        totals=totals,
        axes=totals.axes,
        parts=parts,
        words=words,
    )


def _read(node: Node, names: dict[Over, str]) -> Node:
    """The expression with the results of groups read from columns."""
    if isinstance(node, Over):
        return Column(names[node])

    def change(part: Any) -> Any:
        if isinstance(part, Node):
            return _read(part, names)
        return tuple(map(change, part)) if isinstance(part, tuple) else part

    return replace(node, **{part.name: change(getattr(node, part.name)) for part in fields(node) if part.init})
