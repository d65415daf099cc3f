"""Small rewriting rules for bound queries, each with its reason; ``explain`` prints those that were used.

Two things need no rule. A box asked of a window is dilated by the window when it is read, so a selection on top of it
reads no more than that. And aggregates over one window stand in one step, which reads and sweeps once for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from typing import Any, cast

from windrow.expressions.nodes import And, Column, Node
from windrow.model.box import Box
from windrow.plan.bound import (
    Bound,
    BoundColumns,
    BoundCount,
    BoundFilter,
    BoundNamed,
    BoundScan,
    BoundSelection,
    BoundTotals,
    BoundWindow,
)
from windrow.plan.grouping.label_parts import BoundParted
from windrow.plan.steps import columns, filtered, selected
from windrow.plan.substitution import replaced_columns
from windrow.plan.windows import needed_attributes


@dataclass(frozen=True)
class Rule:
    """``apply`` gives a better step for one, or None."""

    name: str
    reason: str
    apply: Callable[[Bound], Bound | None]


@dataclass(frozen=True)
class Considered:
    """A view that was looked at. Costs are estimated nanoseconds of one worker; None where the view cannot serve."""

    view: str
    taken: bool
    why: str
    """How it serves, or why it does not."""
    direct: float | None = None
    from_view: float | None = None

    def line(self) -> str:
        if self.direct is None or self.from_view is None:
            return f"{self.view}: not used, {self.why}"
        costs = f"about {_time(self.from_view)} against {_time(self.direct)} from the arrays"
        return f"{self.view}: {'used' if self.taken else 'not used'}, {self.why}; {costs}"


def _time(nanoseconds: float) -> str:
    seconds = nanoseconds / 1e9
    return f"{seconds * 1000:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


@dataclass(frozen=True)
class Optimized:
    """A query, and the rules that made it what it is."""

    bound: Bound
    rules: tuple[Rule, ...]
    considered: tuple[Considered, ...] = ()
    """The views that were looked at."""
    asked: Bound | None = None
    """The query's own steps, where parts of them are read from views instead."""

    @property
    def lists_stored_cells(self) -> bool:
        """Whether what was asked are cells of a stored array, looked at one by one, and not results of other steps."""
        step = self.bound if self.asked is None else self.asked
        while isinstance(step, (BoundColumns, BoundFilter, BoundSelection)):
            step = step.source
        return isinstance(step, BoundNamed) and step.schema.sparse


def optimize(bound: Bound) -> Optimized:
    """Apply the rules from the top down, again and again until none fits: one may make room for another above it."""
    used: dict[str, Rule] = {}
    better = _rewritten(bound, used)
    while better is not bound:
        bound, better = better, _rewritten(better, used)
    return Optimized(bound, tuple(used.values()))


def _rewritten(bound: Bound, used: dict[str, Rule]) -> Bound:
    changed = True
    while changed:
        changed = False
        for rule in RULES:
            better = rule.apply(bound)
            if better is not None:
                used[rule.name] = rule
                bound, changed = better, True
    inputs = {part.name: getattr(bound, part.name) for part in fields(bound)}
    below = {name: _rewritten(part, used) for name, part in inputs.items() if isinstance(part, Bound)}
    if all(below[name] is inputs[name] for name in below):
        return bound
    # What is below has the same cells and columns as before, only found in another way.
    return replace(bound, **cast(Any, below))


def _select_first(bound: Bound) -> Bound | None:
    if not isinstance(bound, BoundSelection):
        return None
    source = bound.source
    if isinstance(source, BoundSelection):
        return selected(source.source, bound.box)
    if isinstance(source, BoundColumns):
        return _alike(columns(selected(source.source, bound.box), source.outputs), bound)
    if isinstance(source, BoundFilter):
        return _alike(filtered(selected(source.source, bound.box), source.condition), bound)
    return None


def _alike(better: Bound, bound: Bound) -> Bound:
    """The better step under the schema and the labels that were promised, which go together."""
    return replace(better, schema=bound.schema, labels=bound.labels, box=better.box & bound.box)


def _fuse_filters(bound: Bound) -> Bound | None:
    if isinstance(bound, BoundFilter) and isinstance(bound.source, BoundFilter):
        condition = And((bound.source.condition, bound.condition))
        return replace(bound, source=bound.source.source, condition=condition, box=bound.box & bound.source.box)
    return None


def _fuse_columns(bound: Bound) -> Bound | None:
    if not isinstance(bound, BoundColumns) or not isinstance(bound.source, BoundColumns):
        return None
    below = dict(bound.source.outputs)
    if not _computed_once([node for _, node in bound.outputs], below):
        return None
    outputs = tuple((name, replaced_columns(node, below)) for name, node in bound.outputs)
    return replace(bound, source=bound.source.source, outputs=outputs)


def _computed_once(nodes: Iterable[Node], below: dict[str, Node]) -> bool:
    """Whether putting expressions in the place of columns would compute none of them twice."""
    uses = [part.key for node in nodes for part in node.walk() if isinstance(part, Column)]
    return all(isinstance(node, Column) or uses.count(name) < 2 for name, node in below.items())


def _filter_before_columns(bound: Bound) -> Bound | None:
    if not isinstance(bound, BoundFilter) or not isinstance(bound.source, BoundColumns):
        return None
    below = dict(bound.source.outputs)
    read = {column.key for column in bound.condition.columns()}
    if not all(isinstance(below[name], Column) for name in read if name in below):
        return None
    inner = filtered(bound.source.source, replaced_columns(bound.condition, below))
    return _alike(columns(inner, bound.source.outputs), bound)


def _project_early(bound: Bound) -> Bound | None:
    """Leaves out columns, computed below an aggregate or another column, that nobody reads."""
    needed = _needed(bound)
    source = getattr(bound, "source", None)
    if needed is None or not isinstance(source, BoundColumns):
        return None
    kept = tuple((name, node) for name, node in source.outputs if name in needed)
    if len(kept) == len(source.outputs) or not kept:
        return None
    inner = columns(source.source, kept)
    if isinstance(bound, BoundWindow):
        return replace(bound, source=inner, plan=replace(bound.plan, schema=inner.schema))
    return replace(bound, **cast(Any, {"source": inner}))


def _needed(bound: Bound) -> set[str] | None:
    if isinstance(bound, BoundColumns):
        return {column.key for _, node in bound.outputs for column in node.columns()}
    if isinstance(bound, BoundParted):
        return {*needed_attributes(bound.aggregates), *bound.key_attributes}
    if isinstance(bound, BoundTotals):
        return set(needed_attributes(bound.aggregates))
    if isinstance(bound, BoundWindow):
        return set(needed_attributes(bound.plan.aggregates))
    return None


def _count_from_metadata(bound: Bound) -> Bound | None:
    if not isinstance(bound, BoundTotals) or bound.axes:
        return None
    if any(aggregate.attribute is not None for _, aggregate in bound.aggregates):
        return None
    count = _known_cells(bound.source)
    if count is None:
        return None
    return BoundCount(schema=bound.schema, box=bound.box, scalar=True, source=bound.source, count=count)


def _known_cells(source: Bound) -> int | None:
    if not source.schema.sparse:
        return _size(source.box)
    if isinstance(source, BoundColumns):
        return _known_cells(source.source)
    return source.cells if isinstance(source, BoundScan) else None


def _size(box: Box) -> int:
    return 0 if box.is_empty else box.size


RULES = (
    Rule("select first", "cells that are not asked for are not read", _select_first),
    Rule("filter before columns", "columns are computed only where the condition holds", _filter_before_columns),
    Rule("fuse conditions", "two conditions are looked at in one pass", _fuse_filters),
    Rule("fuse columns", "steps that follow one another cell by cell are one pass", _fuse_columns),
    Rule("project early", "columns that nobody reads are not computed", _project_early),
    Rule("count from metadata", "how many cells there are is known without reading them", _count_from_metadata),
)
