"""Names looked up: a plan and the arrays it reads become bound steps, or an error that knows the nearest name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from windrow.aggregates.aggregate import Aggregate
from windrow.errors import SchemaError
from windrow.expressions.nodes import Between, Call, Column, Comparison, Literal, Node
from windrow.model.box import Box
from windrow.model.gridding import Gridding
from windrow.plan.bound import (
    Bound,
    BoundJoin,
    BoundWindow,
    NamedAggregates,
    NamedNodes,
    makes_pairs,
    table_hint,
    table_words,
)
from windrow.plan.changes import Changed, bind_changes, no_changes
from windrow.plan.conditions import parts_of
from windrow.plan.grouping.label_parts import GroupKey
from windrow.plan.grouping.ordering import Ordered, bind_ordered
from windrow.plan.grouping.over import spread_groups
from windrow.plan.grouping.totals import bind_totals
from windrow.plan.grouping.values import Values, no_values
from windrow.plan.join_conditions import filtered_side
from windrow.plan.join_results import bind_joined, every_pair
from windrow.plan.joins import bind_join, settled
from windrow.plan.neighbours import bind_neighbours
from windrow.plan.nodes import (
    Alias,
    Apply,
    Changes,
    Filter,
    GroupBy,
    Neighbours,
    Plan,
    Project,
    Regrid,
    Scan,
    Selection,
    SimilarityJoin,
    Windowed,
)
from windrow.plan.operators import Operated, bind_operated
from windrow.plan.scopes import CellScope, bind_condition, bind_value
from windrow.plan.specs import Measure, Output, Range
from windrow.plan.steps import columns, narrowed
from windrow.plan.stored_shapes import Lookup, listed_shape
from windrow.plan.windows import WindowPlan


@dataclass(frozen=True)
class Named:
    """A bound step, and the names by which its columns may be qualified."""

    bound: Bound
    names: tuple[str, ...] = ()
    values: Values = no_values
    """Reads the values of attributes that cells are grouped by."""

    @property
    def scope(self) -> CellScope:
        """Where expressions over its cells look names up."""
        bound = self.bound
        return CellScope(bound.schema, bound.box, bound.coordinates, bound.dimension_names, self.names)


@dataclass(frozen=True)
class _Sources:
    scan: Lookup
    changed: Changed
    values: Values


def bind(plan: Plan, lookup: Lookup, changed: Changed = no_changes, values: Values = no_values) -> Bound:
    """The plan with every name looked up.

    ``lookup`` finds the arrays, ``changed`` reads what changed in one, ``values`` those that attributes have.
    """
    return _whole(_bind(plan, _Sources(lookup, changed, values)))


def _whole(found: Named) -> Bound:
    """A step that stands for itself: of a join, all columns of all pairs."""
    return every_pair(found.bound) if makes_pairs(found.bound) else found.bound


def _settled(found: Named) -> Named:
    return Named(_whole(found), found.names)


def _bind(plan: Plan, sources: _Sources) -> Named:
    if isinstance(plan, Scan):
        return Named(sources.scan(plan), (plan.array,))
    if isinstance(plan, Changes):
        before, after = map(sources.scan, plan.versions)
        return Named(bind_changes(plan, before, after, sources.changed), (plan.array,))
    if isinstance(plan, Alias):
        return Named(_whole(_bind(plan.source, sources)), (plan.name,))
    if isinstance(plan, SimilarityJoin):
        left, right = (_bind(side, sources).bound for side in (plan.left, plan.right))
        join = bind_join(plan, left, right, listed_shape(plan.shape, right.schema, sources.scan))
        return Named(settled(join, ()), join.names[:1]) if plan.kind == "anti" else Named(join)
    if isinstance(plan, Ordered):
        return Named(bind_ordered(plan, lambda below: _settled(_bind(below, sources))))
    source = replace(_bind(plan.inputs()[0], sources), values=sources.values)
    if makes_pairs(source.bound):
        return Named(bind_joined(plan, source.bound))
    if isinstance(plan, (Windowed, Regrid, Neighbours)) and source.bound.is_table:
        what = f"{table_words(source.bound)} is a table, which has no neighbourhoods"
        raise SchemaError(what, hint=table_hint(source.bound))
    if isinstance(plan, Neighbours):
        shape = listed_shape(plan.shape, source.bound.schema, sources.scan)
        return Named(bind_neighbours(plan, source.bound, source.scope, shape))
    return Named(_RULES[type(plan)](plan, source), source.names if isinstance(plan, (Filter, Selection)) else ())


def _selection(plan: Selection, source: Named) -> Bound:
    bound = source.bound
    if bound.scalar:
        raise SchemaError("one result over all cells has no dimensions to select by", hint="Group by some of them")
    named = [one for one in plan.ranges if one.name is not None]
    if not named and len(plan.ranges) != bound.schema.ndim:
        known = ", ".join(bound.schema.dimension_names)
        raise SchemaError(
            f"expected {bound.schema.ndim} ranges, one for each dimension",
            got=len(plan.ranges),
            hint=f"They are {known}",
        )
    names = [str(one.name) for one in named] or bound.schema.dimension_names
    ranges = [(name, one) for name, one in zip(names, plan.ranges, strict=True) if (one.low, one.high) != (None, None)]
    conditions = [bind_condition(_in_range(name, one), source.scope) for name, one in ranges]
    return narrowed(bound, conditions) if conditions else bound


def _in_range(name: str, one: Range) -> Node:
    """The condition that a cell lies in a range; one that is given by place has numbers of cells at its ends."""
    numbered = one.name is None and all(end is None or type(end) is int for end in (one.low, one.high))
    operand = Call("cell", (Column(name),)) if numbered else Column(name)
    low, high = Literal(one.low), Literal(one.high)
    if low == high:
        return Comparison("=", operand, low)
    if one.low is None or one.high is None:
        return Comparison(">=", operand, low) if one.high is None else Comparison("<=", operand, high)
    return Between(operand, low, high)


def _filter(plan: Filter, source: Named) -> Bound:
    condition = bind_condition(plan.condition, source.scope)
    if not isinstance(source.bound, BoundJoin):
        return narrowed(source.bound, [condition])
    bound: Bound = source.bound
    for part in parts_of(condition):  # of an anti join: what is not asked for need not be looked for
        bound = filtered_side(bound, part)
    return bound


def _project(plan: Project, source: Named) -> Bound:
    spread, outputs = _spread(plan.columns, source)
    return columns(spread.bound, _outputs(outputs, spread))


def _apply(plan: Apply, source: Named) -> Bound:
    kept = tuple((name, Column(name)) for name in source.bound.schema.attribute_names)
    spread, outputs = _spread(plan.columns, source)
    return columns(spread.bound, kept + _outputs(outputs, spread))


def _spread(outputs: Sequence[Output], source: Named) -> tuple[Named, Sequence[Output]]:
    """The cells with what is aggregated over their groups, if that is asked for."""

    def measured(measures: Sequence[Measure], keys: Sequence[GroupKey]) -> tuple[Bound, NamedAggregates]:
        return _measured(source, measures, keys)

    found, read = spread_groups(outputs, source.bound, source.scope, measured, source.values)
    return Named(found, source.names), read


def _outputs(outputs: Sequence[Output], source: Named) -> NamedNodes:
    """Named expressions; a dimension under its own name is there already."""
    dimensions = source.bound.dimension_names
    chosen = []
    for output in outputs:
        node = bind_value(output.expression, source.scope)[0]
        named = output.expression
        if not (isinstance(named, Column) and named.name == output.name and named.name in dimensions):
            chosen.append((output.name, node))
    if not chosen:
        name = outputs[0].name
        hint = f"A copy needs a name of its own, as in {name} as {name}_number"
        raise SchemaError("dimensions are there already, and no attribute is asked for", got=name, hint=hint)
    return tuple(chosen)


def _window(plan: Windowed | Regrid, source: Named) -> Bound:
    bound, aggregates = _measured(source, plan.aggregates)
    spec = plan.window if isinstance(plan, Windowed) else plan.blocks
    # Windows need somewhere to be, even if there are no cells.
    bounds = Box(bound.box.lo, tuple(map(max, bound.box.lo, bound.box.hi)))
    sweep = plan.sweep if isinstance(plan, Windowed) else None
    swept = None if sweep is None else bound.schema.axis(sweep)
    method = plan.method if swept is None else "incremental"
    window = WindowPlan(
        bound.schema, bounds, spec.bind(bound.schema), aggregates, bound.labels, method, plan.strategy, swept
    )
    labels = tuple(window.result_labels.items())
    box = window.results
    if bound.box.is_empty and not bound.schema.sparse:
        ends = zip(bound.box.shape, box.lo, box.hi, strict=True)
        box = Box(box.lo, tuple(hi if cells else lo - 1 for cells, lo, hi in ends))
    return BoundWindow(
        schema=window.result_schema,
        box=box,
        labels=labels,
        gridding=_unmoved(bound.gridding, window),
        source=bound,
        plan=window,
    )


def _unmoved(gridding: Gridding | None, plan: WindowPlan) -> Gridding | None:
    """The gridding of results, which steps number anew."""
    if gridding is None or any(plan.window.step[plan.schema.axis(name)] != 1 for name in gridding.names):
        return None
    return gridding


def _measured(
    source: Named, measures: Sequence[Measure], keys: Sequence[GroupKey] = ()
) -> tuple[Bound, NamedAggregates]:
    """The aggregates, and the step below with a column for each argument that has to be computed, and for each key."""
    bound = source.bound
    computed: dict[Node, str] = {}
    aggregates: list[tuple[str, Aggregate]] = []
    for measure in measures:
        arguments = [_argument(bind_value(node, source.scope)[0], bound, computed) for node in measure.arguments]
        aggregates.append((measure.name, measure.aggregate(*arguments)))
    if computed:
        read = [
            *(name for _, a in aggregates for name in a.attributes),
            *(k.name for k in keys if isinstance(k, Column)),
        ]
        plain = [name for name in read if name in bound.schema.attribute_names]
        kept = tuple((name, Column(name)) for name in dict.fromkeys(plain))
        bound = columns(bound, kept + tuple((name, node) for node, name in computed.items()))
    for _, aggregate in aggregates:
        if aggregate.attribute is not None:
            aggregate.check(*(bound.schema.attribute(name).type for name in aggregate.attributes))
    return bound, tuple(aggregates)


def _argument(node: Node, bound: Bound, computed: dict[Node, str]) -> str:
    """The attribute that is an argument, or the column that it will be computed to."""
    if isinstance(node, Column) and node.name in bound.schema.attribute_names:
        return node.name
    return computed.setdefault(node, _free_name(f"argument_{len(computed) + 1}", bound))


def _free_name(name: str, bound: Bound) -> str:
    while name in bound.types:
        name += "_"
    return name


def _totals(plan: GroupBy, source: Named) -> Bound:
    if plan.min_count:
        hint = "As in select avg(a) as m, count(a) as n … group by i having n >= 2"
        raise SchemaError("min count belongs to groups of pairs", got=f"min count {plan.min_count}", hint=hint)
    bound, aggregates = _measured(source, plan.aggregates, plan.dimensions)
    return bind_totals(plan.dimensions, bound, aggregates, source.scope, source.values)


_RULES: dict[type[Plan], Callable[[Any, Named], Bound]] = {
    Selection: _selection,
    Filter: _filter,
    Project: _project,
    Apply: _apply,
    Windowed: _window,
    Regrid: _window,
    GroupBy: _totals,
    Operated: lambda plan, source: bind_operated(plan, source.bound),
}
