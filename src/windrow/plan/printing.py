"""Plans and statements as text that parses to an equal plan or statement."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from windrow.expressions.nodes import Between, Call, Column, Comparison, Literal
from windrow.model.shape import Shape
from windrow.model.shape_terms import LabelRange, Norm, OffsetList, OffsetRange, Sky, StoredOffsets, Term
from windrow.plan import statements as st
from windrow.plan.grouping.ordering import Ordered, ordering_text
from windrow.plan.names import name_text, text_text, value_text
from windrow.plan.nodes import (
    Alias,
    Apply,
    Changes,
    Filter,
    GroupBy,
    Nearest,
    Neighbours,
    Plan,
    Project,
    Regrid,
    Scan,
    Selection,
    SimilarityJoin,
    Windowed,
)
from windrow.plan.operators import Operated
from windrow.plan.specs import Block, Measure, Output, Range, RegridSpec, WindowSpec


def to_text(thing: Plan | st.Statement) -> str:
    """The canonical text of a plan or statement.

    >>> from windrow.plan.nodes import Scan
    >>> to_text(st.Describe(Scan("A", version=3)))
    'describe A@3'
    """
    if isinstance(thing, Plan):
        return _query(thing)
    return _STATEMENTS[type(thing)](thing)


# Plans


def _query(plan: Plan) -> str:
    """A plan as a query of its own."""
    if isinstance(plan, Operated):
        return _select(["*"], plan)
    if isinstance(plan, Ordered):
        # What has an order of its own, and a form, can only be read from.
        apart = isinstance(plan.source, (Ordered, Selection))
        return f"{_select(['*'], plan.source) if apart else _query(plan.source)} {ordering_text(plan)}"
    if isinstance(plan, Selection):
        return f"between({_listed([_source(plan.source), *_ranges(plan.ranges)])})"
    if isinstance(plan, Project):
        return _select(map(_output, plan.columns), plan.source)
    if isinstance(plan, Apply):
        return _select(["*", *map(_output, plan.columns)], plan.source)
    if isinstance(plan, (Windowed, Regrid, Neighbours, GroupBy)):
        return _select(map(_measure, plan.aggregates), plan.source) + _grouping(plan)
    return _select(["*"], plan)


def _select(items: Iterable[str], source: Plan) -> str:
    if isinstance(source, Filter):
        return f"select {_listed(items)} from {_from(source.source)} where {source.condition}"
    return f"select {_listed(items)} from {_from(source)}"


def _from(plan: Plan) -> str:
    """A plan as what stands after from."""
    if isinstance(plan, Alias):
        return f"{_source(plan.source)} {name_text(plan.name)}"
    if isinstance(plan, SimilarityJoin):
        kind = "" if plan.kind == "inner" else f" {plan.kind}"
        on = "" if plan.on is None else f" on {plan.on}"
        shape = shape_text(plan.shape) + ("" if plan.nearest is None else f" {_nearest(plan.nearest)}")
        return f"{_from(plan.left)}{kind} similarity join {_from(plan.right)}{on} with shape {shape}"
    return _source(plan)


def _nearest(kept: Nearest) -> str:
    by = "" if kept.by is None else f" by {kept.by}"
    return f"mutual nearest{by}" if kept.mutual else f"nearest {kept.count}{by}"


def _source(plan: Plan) -> str:
    if isinstance(plan, Scan):
        return _scan(plan)
    if isinstance(plan, Changes):
        return f"changes({name_text(plan.array)}, {plan.before}, {plan.after})"
    if isinstance(plan, Operated):
        return f"{name_text(plan.operator)}({_listed([_source(plan.source), *map(value_text, plan.parameters)])})"
    return _query(plan) if isinstance(plan, Selection) else f"({_query(plan)})"


def _scan(plan: Scan) -> str:
    name = name_text(plan.array)
    if plan.version is not None:
        return f"{name}@{plan.version}"
    return name if plan.as_of is None else f"{name} as of {value_text(plan.as_of)}"


def _output(column: Output) -> str:
    expression = column.expression
    if isinstance(expression, Column) and expression.name == column.name:
        return str(expression)
    return f"{expression} as {name_text(column.name)}"


def _measure(measure: Measure) -> str:
    inside = ["*" if measure.argument is None else str(measure.argument)]
    if measure.second is not None:
        inside.append(str(measure.second))
    if measure.parameter is not None:
        inside.append(_number(measure.parameter))
    return f"{measure.function}({_listed(inside)}) as {name_text(measure.name)}"


def _grouping(plan: Windowed | Regrid | Neighbours | GroupBy) -> str:
    if isinstance(plan, GroupBy):
        least = f" min count {plan.min_count}" if plan.min_count else ""
        return f" group by {_listed(map(group_text, plan.dimensions))}{least}" if plan.dimensions else ""
    if isinstance(plan, Windowed):
        text = window_text(plan.window)
    elif isinstance(plan, Regrid):
        text = f"regrid ({_listed(map(_block, plan.blocks.blocks))}){_edges(plan.blocks)}"
    else:
        text = f"neighbours {shape_text(plan.shape)}{_step(plan.step)}"
        text += f" min count {plan.min_count}" if plan.min_count else ""
    if isinstance(plan, Windowed) and plan.sweep is not None:
        text += f" sweep {name_text(plan.sweep)}"
    if plan.method != "auto":
        return f" {text} method {plan.method}"
    forced = "auto" if isinstance(plan, Neighbours) else plan.strategy
    return f" {text}" if forced == "auto" else f" {text} strategy {forced}"


def group_text(key: Column | Call) -> str:
    """What cells are grouped by, as it stands in a query."""
    if isinstance(key, Call):
        return f"{key.function}({_listed(group_text(part) for part in key.arguments if isinstance(part, Column))})"
    return ".".join(name_text(part) for part in (key.qualifier, key.name) if part)


def window_text(window: WindowSpec) -> str:
    """A window as it stands in a query."""
    axes = [f"{_name_before(axis.name)}{axis.extent}" for axis in window.axes]
    text = f"window ({_listed(axes)})"
    if any(axis.step != 1 for axis in window.axes):
        text += f" step ({_listed(str(axis.step) for axis in window.axes)})"
    return text + _edges(window)


def _step(step: int | tuple[Block, ...]) -> str:
    if isinstance(step, tuple):
        return f" step ({_listed(map(_block, step))})"
    return "" if step == 1 else f" step {step}"


def _block(block: Block) -> str:
    return f"{_name_before(block.name)}{block.size}"


def _edges(spec: WindowSpec | RegridSpec) -> str:
    boundary = "" if spec.boundary == "clip" else f" boundary {spec.boundary}"
    return boundary + (f" min count {spec.min_count}" if spec.min_count else "")


def shape_text(shape: Shape) -> str:
    """A shape as it stands in a query."""
    parts = [_term(term) for term in shape.terms]
    if shape.wraps:
        parts.append(f"wrap ({_listed(map(name_text, sorted(shape.wraps)))})")
    return _listed(parts + (["excluding self"] if shape.excludes_self else []))


def _term(term: Term) -> str:
    if isinstance(term, (OffsetRange, LabelRange)):
        ends = [text_text(end) if isinstance(end, str) else str(end) for end in (term.start, term.stop)]
        limits = "any" if term.start is None else f"between {ends[0]} and {ends[1]}"
        return f"{name_text(term.name)} {limits}"
    on = "" if term.on is None else f" on ({_listed(map(name_text, term.on))})"
    if isinstance(term, Norm):
        power = "" if term.power is None else f"{_number(term.power)}, "
        return f"{term.kind}({power}{_number(term.radius)}){on}"
    if isinstance(term, Sky):
        return f"Sky({text_text(term.text)}){on}"
    if isinstance(term, StoredOffsets):
        return f"reflected({_stored(term.array)}){on}" if term.reflected else f"{_stored(term.array)}{on}"
    assert isinstance(term, OffsetList)
    rows = [f"({_listed(map(str, row))})" for row in term.offsets]
    return f"offsets ({_listed(rows)}){on}"


def _stored(array: str) -> str:
    name, _, version = array.partition("@")
    return name_text(name) + (f"@{version}" if version else "")


def _ranges(ranges: tuple[Range, ...]) -> list[str]:
    if ranges[0].name is None:
        return [value_text(one.low) for one in ranges] + [value_text(one.high) for one in ranges]
    return [_range(one) for one in ranges]


def _range(one: Range) -> str:
    column, low, high = Column(one.name or ""), Literal(one.low), Literal(one.high)
    if one.low is None or one.high is None:
        return str(Comparison("<=", column, high) if one.low is None else Comparison(">=", column, low))
    return str(Between(column, low, high))


# Statements


def _run(query: st.Query) -> str:
    return _query(query.plan) + ("" if query.into is None else f" into {name_text(query.into)}")


def _create_array(create: st.CreateArray) -> str:
    return f"create {'sparse ' if create.schema.sparse else ''}array {name_text(create.array)} {create.schema}"


def _create_view(create: st.CreateView) -> str:
    deferred = " deferred" if create.deferred else ""
    head = f"create array view {name_text(create.view)}{deferred}{_settings(create.settings)}"
    return f"{head} as {_query(create.plan)}"


def _load(load: st.Load) -> str:
    rows = ["\n" + " ".join(map(value_text, row)) for row in load.rows]
    return f"load {name_text(load.array)}" + (" values" if rows else "") + "".join(rows)


def _insert_cells(insert: st.InsertCells) -> str:
    cells = []
    for cell in insert.cells:
        values = f": {_listed(map(value_text, cell.values))}" if cell.values else ""
        cells.append(f"({_listed(map(value_text, cell.coordinates))}{values})")
    return f"insert into {name_text(insert.array)} values {_listed(cells)}{_settings(insert.settings)}"


def _inserted(plan: Plan) -> str:
    return f"({_query(plan)})" if isinstance(plan, Selection) else _query(plan)


def _delete(delete: st.Delete) -> str:
    return f"delete from {name_text(delete.array)}" + ("" if delete.condition is None else f" where {delete.condition}")


def _update(update: st.Update) -> str:
    assignments = _listed(f"{name_text(name)} = {value}" for name, value in update.assignments)
    where = "" if update.condition is None else f" where {update.condition}"
    return f"update {name_text(update.array)} set {assignments}{where}"


def _list(listing: st.List) -> str:
    return f"list {listing.kind}" + ("" if listing.array is None else f" {name_text(listing.array)}")


def _drop(drop: st.Drop) -> str:
    words = ["drop", *([drop.kind] if drop.kind else []), *(["if exists"] if drop.if_exists else [])]
    return " ".join([*words, name_text(drop.name), *(["cascade"] if drop.cascade else [])])


def _plot(plot: st.Plot) -> str:
    path = "" if plot.path is None else f" to {text_text(plot.path)}"
    kind = "" if plot.kind is None else f" as {plot.kind}"
    return f"plot {_shown(plot.plan)}{path}{kind}{_settings(plot.settings)}"


def _shown(plan: Plan) -> str:
    return _scan(plan) if isinstance(plan, Scan) else f"({_query(plan)})"


_STATEMENTS: dict[type, Callable[[Any], str]] = {
    st.Query: _run,
    st.CreateArray: _create_array,
    st.CreateFrom: lambda s: f"create array {name_text(s.array)} as {_query(s.plan)}",
    st.CreateView: _create_view,
    st.Load: _load,
    st.LoadFile: lambda s: f"load {name_text(s.array)} from {text_text(s.path)}{_settings(s.settings)}",
    st.ImportFiles: lambda s: (
        f"import {_listed(map(text_text, s.paths))} into {name_text(s.array)}{_settings(s.settings)}"
    ),
    st.InsertCells: _insert_cells,
    st.InsertFile: lambda s: f"insert into {name_text(s.array)} from {text_text(s.path)}{_settings(s.settings)}",
    st.InsertQuery: lambda s: f"insert into {name_text(s.array)} {_inserted(s.plan)}",
    st.Delete: _delete,
    st.Update: _update,
    st.Describe: lambda s: f"describe {_scan(s.source)}",
    st.Explain: lambda s: f"explain {'analyze ' if s.analyze else ''}{_query(s.plan)}",
    st.ExplainView: lambda s: f"explain {_create_view(s.create)}",
    st.List: _list,
    st.ShowHistory: lambda s: f"show history {name_text(s.name)}",
    st.Refresh: lambda s: f"refresh {name_text(s.view)}{' full' if s.full else ''}",
    st.CheckView: lambda s: f"check view {name_text(s.view)}",
    st.Drop: _drop,
    st.Save: lambda s: f"save {_shown(s.plan)} to {text_text(s.path)}{_settings(s.settings)}",
    st.Plot: _plot,
    st.Begin: lambda s: "begin" if s.batch is None else f"begin {text_text(s.batch)}",
    st.Commit: lambda _: "commit",
    st.Rollback: lambda _: "rollback",
    st.SetOption: lambda s: f"set {name_text(s.option)} = {value_text(s.value)}",
}


def _settings(settings: st.Settings) -> str:
    if not settings:
        return ""
    return f" with ({_listed(f'{name_text(name)} = {value_text(value)}' for name, value in settings)})"


def _listed(parts: Iterable[str]) -> str:
    return ", ".join(parts)


def _name_before(name: str | None) -> str:
    return "" if name is None else f"{name_text(name)} "


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) and abs(value) < 2**53 else repr(value)
