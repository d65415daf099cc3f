"""How a view would be kept up to date, said before it is made; and which views cannot be kept strictly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from windrow.aggregates.aggregate import Aggregate
from windrow.errors import SchemaError
from windrow.plan.bound import (
    Bound,
    BoundColumns,
    BoundCount,
    BoundFilter,
    BoundJoin,
    BoundJoined,
    BoundPairs,
    BoundRound,
    BoundScan,
    BoundSelection,
    BoundTotals,
    BoundWindow,
    side_name,
)
from windrow.plan.grouping.positions import positions_text
from windrow.plan.operators import BoundOperated
from windrow.views.definition import PLACEMENT, Settings
from windrow.views.making import view_schema
from windrow.views.placed.choice import why_not_placed
from windrow.views.reduced.form import free_dimensions, reduced_by, stored_form
from windrow.views.rules.choose import core_of, why_not_patched
from windrow.views.rules.sides import joined_layout
from windrow.views.rules.totals import totals_layout


@dataclass(frozen=True)
class Part:
    """One step or aggregate of a view, and what becomes of it when a batch comes."""

    what: str
    way: str
    why: str


@dataclass(frozen=True)
class ViewExplanation:
    """What keeps a view up to date; prints as a page."""

    query: str
    settings: Settings
    bases: tuple[str, ...]
    parts: tuple[Part, ...]
    stored: str | None = None
    """How results are stored that do not depend on all dimensions of their cells."""
    unplanned: str | None = None
    """Why it is not planned which of several executors does what; None if it is."""

    def __str__(self) -> str:
        width = max(len(part.what) for part in self.parts)
        lines = [f"view of: {self.query}", f"reads: {', '.join(self.bases)}"]
        lines += [f"  {part.what:<{width}}  {part.way}: {part.why}" for part in self.parts]
        if self.stored is not None:
            lines.append(self.stored)
        when = "by refresh alone" if self.settings.deferred else "with every batch, in the batch's own version"
        lines.append(
            f"brought up to date {when}; maintain = {self.settings.maintain}: {_MAINTAIN[self.settings.maintain]}"
        )
        lines.append(f"with several executors: {self._sharing()}")
        lines.append(f"if a batch breaks it: {_ON_FAILURE[self.settings.on_failure]}")
        return "\n".join(lines)

    def _sharing(self) -> str:
        if self.unplanned is not None:
            return (
                f"not planned, because {self.unplanned}; what is large is cut into tasks that run where there is room"
            )
        said = ", ".join(f"{name} = {number:g}" for name, number in {**PLACEMENT, **self.settings.placement}.items())
        return f"built, kept and asked where a plan says; strategy = {self.settings.strategy}, {said}"


_MAINTAIN = {
    "auto": "patched, or rebuilt where that is cheaper",
    "incremental": "always patched, never rebuilt unless asked",
    "strict": "always patched, and no change makes all results be computed again",
    "full": "always rebuilt",
}
_ON_FAILURE = {"refuse": "the batch is refused", "stale": "the batch goes through, and the view is left behind"}


def explain(query: str, bound: Bound, settings: Settings, bases: tuple[str, ...]) -> ViewExplanation:
    stores = stored_form(bound, reduced_by(bound, settings))
    reason = why_not_placed(stores, view_schema(bound, settings.chunks).with_chunks())
    if settings.maintain == "full":
        reason = "all of it is computed again at every batch"
    return ViewExplanation(query, settings, bases, tuple(_parts(bound)), _stored(bound, settings), reason)


def _stored(bound: Bound, settings: Settings) -> str | None:
    free = free_dimensions(bound)
    if not free:
        return None
    shared = positions_text(bound.schema, tuple(map(bound.schema.axis, free)))
    why = f"no result depends on {' or '.join(free)}"
    if reduced_by(bound, settings):
        return f"stored by {shared}: {why}, so that cells which differ in nothing else share theirs"
    return f"stored by cell, as store = {settings.store} says, though {why}"


def _parts(bound: Bound) -> Iterator[Part]:
    core, why = core_of(bound), why_not_patched(bound)
    for step in bound.walk():
        if step is core and isinstance(core, BoundJoined | BoundTotals):
            layout = joined_layout(core) if isinstance(core, BoundJoined) else totals_layout(core)
            ranked = isinstance(core, BoundJoined) and core.source.nearest is not None
            for measure in layout.measures:
                patched = why is None and not ranked
                reason = measure.why if patched or measure.name in layout.recomputed else why or _NEAREST
                what = f"{measure.name} = {_as_written(measure.aggregate, core)}"
                yield Part(what, "patched" if patched else "computed again", reason)
        elif step is core and isinstance(core, BoundJoin) and why is None:
            yield Part("cells without a partner", "patched", "the number of partners of every cell is kept")
        elif not isinstance(step, BoundScan):
            yield Part(_NAMES[type(step)], *_WAYS[type(step)])


def _as_written(aggregate: Aggregate, core: BoundJoined | BoundTotals) -> Aggregate:
    """The aggregate of what was asked for, not of the columns that hold it while it is computed."""
    texts: dict[str, str] = {}
    if isinstance(core, BoundJoined):
        texts = {name: _name_sides(str(node), core) for name, node in core.arguments}
    elif isinstance(core.source, BoundColumns):
        texts = {name: str(node) for name, node in core.source.outputs}
    written = [texts.get(name, name) for name in aggregate.attributes]
    return aggregate.of(*written) if written else aggregate


def _name_sides(text: str, core: BoundJoined) -> str:
    """Neighbours are the cells of one array, which needs no name; the sides of a join have those of the query."""
    for number, name in enumerate(core.source.names, 1):
        text = text.replace(f"{side_name(number)}.", "" if core.is_neighbourhood else f"{name}.")
    return text


_NEAREST = "only where the nearest partners can be others: how far the last of them is is kept"
_CELL = ("cell by cell", "the cells that changed pass through")
_NAMES: dict[type[Bound], str] = {
    BoundColumns: "columns",
    BoundFilter: "condition",
    BoundSelection: "selection",
    BoundRound: "range that goes round",
    BoundWindow: "window",
    BoundOperated: "operator",
    BoundTotals: "groups",
    BoundCount: "count of cells",
    BoundJoined: "aggregates of pairs",
    BoundPairs: "pairs",
    BoundJoin: "join",
}
_WAYS: dict[type[Bound], tuple[str, str]] = {
    BoundColumns: _CELL,
    BoundFilter: _CELL,
    BoundSelection: _CELL,
    BoundRound: _CELL,
    BoundOperated: ("computed again", "the blocks that have a changed cell within the operator's halo"),
    BoundWindow: ("computed again", "the windows that a changed cell lies in, and no others"),
    BoundTotals: ("computed again", "the groups that a changed cell belongs to"),
    BoundCount: ("computed again", "known without reading cells"),
    BoundJoined: ("computed again", "the cells that have a changed partner"),
    BoundPairs: ("computed again", "the pairs of cells that changed, and of those within reach of them"),
    BoundJoin: ("by reach", "chunk pairs within reach of changed cells"),
}


def check_strict(bound: Bound) -> None:
    """Refuse a view of which one changed cell can force all results to be computed again."""
    core = core_of(bound)
    if isinstance(core, BoundTotals) and not core.axes:
        ranked = [name for name, aggregate in core.aggregates if aggregate.definition.ranks is not None]
        lacking = [*totals_layout(core).recomputed, *ranked]
        if lacking:
            raise _too_wide(f"{', '.join(dict.fromkeys(lacking))} over all cells may have to look at all of them again")
    if isinstance(core, BoundJoined) and not core.groups and (why := why_not_patched(core)) is not None:
        raise _too_wide(f"pairs are one group, and {why}")
    for step in bound.walk():
        if isinstance(step, BoundJoined) and step.source.sky is None and all(step.source.offsets.free):
            raise _too_wide("every cell is a neighbour of every other")
        if isinstance(step, BoundWindow):
            extents = step.plan.resolved.extents
            if all(getattr(extent, "is_any", False) for extent in extents):
                raise _too_wide("every window holds all cells")


def _too_wide(why: str) -> SchemaError:
    return SchemaError(
        "a strict view must not need all results computed again for one changed cell",
        got=why,
        hint="Use maintain = incremental, or auto",
    )
