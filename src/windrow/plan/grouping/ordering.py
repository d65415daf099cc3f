"""Rows in an order, and the first of them: what ``order by`` and ``limit`` ask for.

An array has no order of rows, so the result is a table of the cells, whatever the query gave before.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any

from windrow.errors import DataError, ExpressionError, SchemaError, UnknownNameError
from windrow.expressions.nodes import Column, Literal, Node
from windrow.model.halo import whole_number
from windrow.plan.bound import Bound, BoundOrdered
from windrow.plan.nodes import Filter, Plan, Project
from windrow.plan.scopes import bind_value
from windrow.plan.specs import Output
from windrow.plan.steps import columns, ended


@dataclass(frozen=True)
class OrderKey:
    """An expression that rows are ordered by. Missing values come last, in either direction."""

    expression: Node
    descending: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.expression, Literal):
            hint = "Name the column, as in order by a desc"
            raise ExpressionError("a constant orders nothing", got=self.expression, hint=hint)

    def __str__(self) -> str:
        return f"{self.expression} desc" if self.descending else str(self.expression)


@dataclass(frozen=True)
class Ordered(Plan):
    """The rows of a result by some keys, and by coordinates where these are equal; with a limit, the first of them."""

    source: Plan
    keys: tuple[OrderKey, ...] = ()
    limit: int | None = None

    def __post_init__(self) -> None:
        if not self.keys and self.limit is None:
            raise DataError("there is nothing to order by", hint="As in order by a desc, or limit 10")
        if self.limit is not None and whole_number(self.limit, "a limit") < 0:
            raise SchemaError("a limit must not be negative", got=self.limit, hint="As in limit 10")
        super().__post_init__()

    def __str__(self) -> str:
        from windrow.plan.printing import to_text

        return to_text(self)


def bind_ordered(plan: Ordered, bind: Callable[[Plan], Any]) -> BoundOrdered:
    """The rows of a result; ``bind`` looks up the names of a plan.

    Keys are expressions of the results, or of the cells that these are computed from: ``select a from A order by b``.
    """
    found = bind(plan.source)
    shown, nodes = found.bound.schema.attribute_names, [key.expression for key in plan.keys]
    lacking = {number: node for number, node in enumerate(nodes) if not _is_known(node, found, plan.source)}
    if lacking:
        taken = set(found.bound.types)
        outputs = []
        for number, node in lacking.items():
            outputs.append(Output(_free_name("order", taken), node))
            nodes[number] = Column(outputs[-1].name)
        found = bind(_widened(plan.source, tuple(outputs)) or plan.source)
    bound = found.bound
    taken, names, computed = set(bound.types), [], []
    for node in nodes:
        value = bind_value(node, found.scope)[0]
        if isinstance(value, Column):
            names.append(value.name)
        else:
            names.append(_free_name("order", taken))
            computed.append((names[-1], value))
    if computed:
        kept = [(name, Column(name)) for name in bound.schema.attribute_names]
        bound = columns(bound, (*kept, *computed))
    keys = tuple((name, key.descending) for name, key in zip(names, plan.keys, strict=True))
    return _rows(bound, shown, keys, plan)


def _is_known(node: Node, found: Any, source: Plan) -> bool:
    """Whether a key can be computed from the results; if not, it may be from what these are computed from."""
    try:
        bind_value(node, found.scope)
    except UnknownNameError:
        if _widened(source, ()) is None:
            raise
        return False
    return True


def _widened(plan: Plan, outputs: tuple[Output, ...]) -> Plan | None:
    """The plan with more columns; None where what is below its columns cannot be reached any more."""
    if isinstance(plan, Filter):
        below = _widened(plan.source, outputs)
        return None if below is None else Filter(below, plan.condition)
    return Project(plan.source, (*plan.columns, *outputs)) if isinstance(plan, Project) else None


def _free_name(name: str, taken: set[str]) -> str:
    number = 1
    while f"{name}_{number}" in taken:
        number += 1
    taken.add(f"{name}_{number}")
    return f"{name}_{number}"


def _rows(bound: Bound, shown: Collection[str], keys: tuple[tuple[str, bool], ...], plan: Ordered) -> BoundOrdered:
    schema = bound.schema
    if not schema.sparse:
        schema = replace(ended(schema, bound.box), sparse=True).with_chunks()
    return BoundOrdered(
        schema=schema.select(shown),
        box=bound.box,
        labels=bound.labels,
        gridding=bound.gridding,
        scalar=bound.scalar,
        source=bound,
        keys=keys,
        limit=plan.limit,
        words=ordering_text(plan),
    )


def ordering_text(plan: Ordered) -> str:
    """The clauses that ask for it."""
    keys = ", ".join(map(str, plan.keys))
    return " ".join(
        [*([f"order by {keys}"] if keys else []), *([f"limit {plan.limit}"] if plan.limit is not None else [])]
    )
