"""Totals over groups of cells, bound: what their dimensions, labels and attributes are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from windrow.model.schema import Schema
from windrow.plan.attributes import aggregated_attribute, optional_attribute
from windrow.plan.bound import Bound, BoundTotals, NamedAggregates
from windrow.plan.grouping.label_parts import BoundParted, GroupKey, bind_grouping
from windrow.plan.grouping.values import Values, no_values
from windrow.plan.scopes import Scope
from windrow.plan.steps import one_cell


def bind_totals(
    keys: Sequence[GroupKey], source: Bound, aggregates: NamedAggregates, scope: Scope, values: Values = no_values
) -> BoundTotals | BoundParted:
    """Aggregates over the cells of ``source`` that agree in all keys; without keys, over all cells.

    ``values`` reads those of attributes that are grouped by.
    """
    if not keys:
        made = [aggregated_attribute(name, found, source, False) for name, found in aggregates]
        schema, box, labels = one_cell(made, source.schema.sparse)
        return BoundTotals(
            schema=schema, box=box, labels=labels, scalar=True, source=source, axes=(), aggregates=aggregates
        )
    groups = bind_grouping(keys, scope, source, values)
    attributes = [aggregated_attribute(name, found, source, True) for name, found in aggregates]
    if not (groups.complete or source.schema.sparse):  # a dense result has cells for groups without any
        attributes = [optional_attribute(one, found) for one, (_, found) in zip(attributes, aggregates, strict=True)]
    schema = Schema(groups.dimensions, tuple(attributes), source.schema.sparse).with_chunks()
    given: dict[str, Any] = {"source": source, "axes": groups.axes, "aggregates": aggregates}
    given |= {"schema": schema, "box": groups.box, "labels": groups.labels, "gridding": source.gridding}
    return BoundParted(**given, parts=groups.parts) if groups.has_parts else BoundTotals(**given)
