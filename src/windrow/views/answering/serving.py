"""What a view has of what a query asks for: whole columns, and parts that aggregates are joined from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from windrow.aggregates.aggregate import Aggregate
from windrow.aggregates.parts import can_join
from windrow.expressions.nodes import Column
from windrow.operations.query.adjusted import needed_parts
from windrow.operations.query.totals import column_of
from windrow.plan.bound import Bound
from windrow.plan.steps import columns, selected
from windrow.views.answering.candidates import Candidate
from windrow.views.answering.cores import Core, Measured, Topped


@dataclass(frozen=True)
class Served:
    """A step's results from a view, and how."""

    bound: Bound
    how: str


class NotServedError(Exception):
    """Why a view cannot serve a step."""


class UnlikeError(NotServedError):
    """It is a query of another kind altogether."""


def read_columns(stored: Bound, names: Mapping[str, str], like: Bound) -> Bound:
    """Columns of a view under other names, as the results that a step promises."""
    for name, column in names.items():
        mine, theirs = like.schema.attribute(name), stored.schema.attribute(column)
        other_form = not like.schema.sparse and mine.has_companion != theirs.has_companion
        if mine.type != theirs.type or other_form:
            raise NotServedError(f"its {column} is kept in another form")
    if not like.schema.sparse and like.box not in stored.box:
        raise NotServedError("it has not all of the cells")
    found = columns(selected(stored, like.box), tuple((name, Column(column)) for name, column in names.items()))
    return replace(
        found, schema=like.schema, box=like.box, labels=like.labels, gridding=like.gridding, scalar=like.scalar
    )


def serve_as_it_is(step: Bound, core: Core, view: Candidate, topped: Topped) -> Served:
    """The aggregates as the view has them."""
    if topped.box != topped.core.step.box and step.box not in topped.box:
        raise NotServedError("it has a part of the results only")
    names = {}
    for name, aggregate in core.aggregates:
        column = column_for(core, aggregate, topped)
        if column is None:
            raise NotServedError(f"it has no {aggregate.name} of what {name} is of")
        names[name] = column
    return Served(read_columns(view.stored, names, step), "it has these results")


def column_for(core: Core, aggregate: Aggregate, topped: Topped) -> str | None:
    """The view's column that has an aggregate of the query; counting what is never missing is counting rows."""
    found = topped.core.find(Measured.of(aggregate, core.nodes))
    if found is None and aggregate.definition.counts and aggregate.attribute in core.certain:
        found = topped.core.find(Measured(Aggregate("count", None), ()))
    return None if found is None else topped.columns.get(found)


@dataclass(frozen=True)
class Part:
    """A part of an aggregate, and the view's column that has it."""

    aggregate: Aggregate
    column: str


def parts_for(core: Core, topped: Topped, adds_only: bool) -> dict[str, Part]:
    """The parts from which the query's aggregates are joined, by the names that they have there."""
    found: dict[str, Part] = {}
    for name, aggregate in core.aggregates:
        if not can_join(aggregate) or aggregate.definition.ordered:
            raise NotServedError(f"{name}, {aggregate.name}, cannot be joined from results of parts")
        asked = aggregate.definition
        if not adds_only and not (asked.counts or asked.sums or asked.averages):
            raise NotServedError(f"pairs that are too many cannot be taken out of {name}, {aggregate.name}")
        there = _there(core, aggregate, topped)
        for part in needed_parts(aggregate, there) if adds_only else _counted(aggregate):
            if column_of(part) not in there:
                raise NotServedError(f"{name} is joined from parts, and it has no {part.name} of what {name} is of")
            found[column_of(part)] = Part(part, there[column_of(part)])
    taken = set(found) & set(topped.core.step.schema.dimension_names)
    if taken:
        raise NotServedError(f"a dimension is called {', '.join(sorted(taken))}")
    return found


def _counted(aggregate: Aggregate) -> list[Aggregate]:
    """What is needed where parts are also taken away."""
    count = Aggregate("count", aggregate.attribute)
    return [count] if aggregate.definition.counts else [count, Aggregate("sum", aggregate.attribute)]


def _there(core: Core, aggregate: Aggregate, topped: Topped) -> dict[str, str]:
    """The parts of an aggregate that the view has."""
    parts = list(aggregate.parts().values())
    if aggregate.definition.averages:
        parts.append(Aggregate("sum", aggregate.attribute))
    known = {column_of(part): column_for(core, part, topped) for part in parts}
    return {part: column for part, column in known.items() if column is not None}
