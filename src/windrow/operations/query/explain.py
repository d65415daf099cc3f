"""How a query of any kind will run: its steps as a tree, what is read, and which rules made it so."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from windrow.execution.engine import Engine
from windrow.expressions.nodes import Call, Node
from windrow.model.box import Box
from windrow.operations.query.explain_paths import Path, names_of, paths_of
from windrow.operations.query.explain_windows import seconds_text, size_text
from windrow.operations.query.round import pieces_around
from windrow.plan.bound import (
    DISTANCE,
    Bound,
    BoundAdjusted,
    BoundChanges,
    BoundColumns,
    BoundCount,
    BoundFilter,
    BoundJoin,
    BoundJoined,
    BoundOrdered,
    BoundPairs,
    BoundRejoined,
    BoundRound,
    BoundScan,
    BoundSelection,
    BoundSpread,
    BoundTotals,
    BoundWindow,
    makes_pairs,
    side_name,
)
from windrow.plan.grouping.label_parts import BoundParted
from windrow.plan.grouping.positions import BoundRepeated, at_positions, positions_text
from windrow.plan.operators import BoundOperated
from windrow.plan.pairs import Qualifiers, requalified
from windrow.plan.printing import shape_text
from windrow.plan.rewriting import Considered, Optimized
from windrow.plan.substitution import replaced_columns
from windrow.plan.windows import needed_attributes

_MEASURED = {DISTANCE.key: Call("distance")}

if TYPE_CHECKING:
    from windrow.operations.join.explain import JoinExplanation, ShapeExplanation


@dataclass(frozen=True)
class Step:
    """One line of the tree."""

    depth: int
    text: str
    cells: int
    """The most cells that its result can have."""


@dataclass(frozen=True)
class QueryExplanation:
    """The plan of a query; prints as a tree, and its parts can be asked for."""

    query: str
    steps: tuple[Step, ...]
    rules: tuple[tuple[str, str], ...]
    """The name and the reason of every rule that was used."""
    engine: str
    cells_read: int
    cells_there: int
    """Cells of all arrays that are read, asked for or not."""
    bytes_read: int
    result_bytes: int
    """Bytes of a result as large as it can get."""
    joins: tuple[JoinExplanation | ShapeExplanation, ...] = ()
    considered: tuple[Considered, ...] = ()
    """The views that might have served."""
    paths: tuple[Path, ...] = ()
    """How cells and totals are computed, those of the topmost step first."""
    seconds: float | None = None
    results: int | None = None

    @property
    def path(self) -> str:
        """The way that it takes, in a word; in several where there are totals below."""
        return names_of(self.paths)

    def __str__(self) -> str:
        lines = [self.query]
        lines += [f"  {'  ' * step.depth}{step.text}  [{_counted(step.cells)}]" for step in self.steps]
        lines += [f"  rule      {name}: {reason}" for name, reason in self.rules]
        lines += [f"  view      {view.line()}" for view in self.considered]
        lines += [line for path in self.paths for line in path.lines()]
        lines += [line for join in self.joins for line in join.lines()]
        where = "on Spark" if self.engine == "spark" else "in this process"
        share = f" of {self.cells_there:,}" if self.cells_read < self.cells_there else ""
        lines.append(f"  reads     up to {_counted(self.cells_read)}{share}, {size_text(self.bytes_read)}, {where}")
        lines.append(f"  result    up to {size_text(self.result_bytes)}")
        if self.seconds is not None:
            lines.append(f"  measured  {seconds_text(self.seconds)} for {_counted(self.results or 0)}")
        return "\n".join(lines)

    __repr__ = __str__

    def measured(self, seconds: float, results: int) -> QueryExplanation:
        """The same with what a run showed."""
        return replace(self, seconds=seconds, results=results)


def explain_query(engine: Engine, optimized: Optimized, query: str) -> QueryExplanation:
    """The plan that ``compute`` would follow now; nothing is read to find out."""
    bound = optimized.bound
    read = list(_reads(bound, bound.box, bound.schema.attribute_names))
    cells = sum(cells for cells, _ in read)
    size = sum(cells * width for cells, width in read)
    return QueryExplanation(
        query,
        tuple(_tree(bound, 0)),
        tuple((rule.name, rule.reason) for rule in optimized.rules),
        "spark" if engine.goes_to_spark(size) else "local",
        cells,
        sum(_cells(scan) for scan in {id(step): step for step in bound.walk() if isinstance(step, BoundScan)}.values()),
        size,
        _cells(bound) * (8 * bound.schema.ndim * bound.schema.sparse + bound.schema.cell_bytes),
        _joins(engine, bound),
        optimized.considered,
        tuple(paths_of(engine, bound)),
    )


def _joins(engine: Engine, bound: Bound) -> tuple[JoinExplanation | ShapeExplanation, ...]:
    if not any(isinstance(step, BoundJoin) for step in bound.walk()):
        return ()
    from windrow.operations.join.explain import explain_joins
    from windrow.operations.query.run import source_of

    return tuple(explain_joins(engine, bound, lambda side: source_of(engine, side)))


def _tree(bound: Bound, depth: int) -> Iterator[Step]:
    yield Step(depth, _text(bound), _cells(bound))
    for below in _inputs(bound):
        yield from _tree(below, depth + 1)


def _inputs(bound: Bound) -> tuple[Bound, ...]:
    """The steps below; neighbours are those of one array, which is read once."""
    if isinstance(bound, BoundJoined) and bound.is_neighbourhood:
        return (bound.source.left,)
    return bound.inputs()


def _cells(bound: Bound) -> int:
    if bound.box.is_empty:
        return 0
    if makes_pairs(bound):
        return math.prod(map(_cells, bound.sides))
    if isinstance(bound, BoundJoin):
        return _cells(bound.left)
    if isinstance(bound, (BoundSpread, BoundRepeated)):
        return _cells(bound.source)
    if isinstance(bound, BoundChanges):
        return sum(map(_cells, bound.inputs()))
    if not bound.schema.sparse:
        return bound.box.size
    if bound.scalar:
        return 1
    if isinstance(bound, BoundOrdered):
        below = _cells(bound.source)
        return below if bound.limit is None else min(below, bound.limit)
    parts = [_cells(step) for step in _inputs(bound)]
    known = bound.cells if isinstance(bound, BoundScan) and bound.cells is not None else bound.box.size
    return min([bound.box.size, known, *parts])


def _reads(bound: Bound, box: Box, names: Collection[str]) -> Iterator[tuple[int, int]]:
    """For each array, the cells of whole chunks that are read for a box of results, and the bytes of a cell."""
    if isinstance(bound, BoundScan):
        yield _scanned(bound, box), _width(bound, names)
    elif isinstance(bound, BoundFilter):
        yield from _reads(bound.source, box & bound.box, {*names, *_columns([bound.condition])})
    elif isinstance(bound, BoundColumns):
        wanted = [node for name, node in bound.outputs if name in names]
        yield from _reads(bound.source, box, _columns(wanted))
    elif isinstance(bound, BoundWindow):
        yield from _reads(bound.source, _dilated(bound, box), needed_attributes(bound.plan.aggregates))
    elif isinstance(bound, (BoundTotals, BoundParted)):
        keys = bound.key_attributes if isinstance(bound, BoundParted) else ()
        yield from _reads(bound.source, bound.source.box, {*needed_attributes(bound.aggregates), *keys})
    elif isinstance(bound, (BoundPairs, BoundJoined)):
        yield from _joined_reads(bound)
    elif isinstance(bound, BoundSelection):
        yield from _reads(bound.source, box, names)
    elif isinstance(bound, BoundSpread):
        yield from _reads(bound.source, box, names)
        yield from _reads(bound.totals, bound.totals.box, names)
    elif isinstance(bound, BoundRepeated):
        yield from _reads(bound.source, box, ())
        yield from _reads(bound.results, at_positions(box, bound.schema, bound.axes), names)
    elif isinstance(bound, BoundRound):
        for piece, _ in pieces_around(box, bound.axis, bound.seam, bound.skip):
            yield from _reads(bound.source, piece, names)
    elif not isinstance(bound, BoundCount):
        for below in bound.inputs():
            yield from _reads(below, below.box, below.schema.attribute_names)


def _joined_reads(bound: BoundPairs | BoundJoined) -> Iterator[tuple[int, int]]:
    """What is read of each side of a join: the columns that are computed with, and those of the conditions."""
    join = bound.source
    nodes = [node for _, node in (bound.outputs if isinstance(bound, BoundPairs) else bound.arguments)]
    nodes += [condition for step in join.walk() if isinstance(step, BoundJoin) for condition in _conditions(step)]
    read = {column for node in nodes for column in node.columns()}
    once = isinstance(bound, BoundJoined) and bound.is_neighbourhood
    for number, side in enumerate(join.sides, 1):
        if not (once and number == 1):
            names = {column.name for column in read if column.qualifier == side_name(number)}
            yield from _reads(side, side.box, names)


def _conditions(join: BoundJoin) -> list[Node]:
    return [condition for condition in (join.condition, join.where) if condition is not None]


def _columns(nodes: Iterable[Node]) -> set[str]:
    return {column.key for node in nodes for column in node.columns()}


def _dilated(bound: BoundWindow, box: Box) -> Box:
    """What the windows of a box of results reach."""
    if box.is_empty:
        return box
    axes = bound.plan.axes(box)
    return Box(tuple(axis.lo for axis in axes), tuple(axis.hi for axis in axes))


def _width(scan: BoundScan, names: Collection[str]) -> int:
    values = sum(a.type.itemsize + a.has_companion for a in scan.schema.attributes if a.name in names)
    return values + (8 * scan.schema.ndim if scan.schema.sparse else 0)


def _scanned(scan: BoundScan, box: Box) -> int:
    if box.is_empty or scan.box.is_empty:
        return 0
    inside = scan.schema.grid.aligned(box) & scan.box
    if scan.cells is None or not scan.schema.sparse:
        return inside.size
    return min(scan.cells, -(-inside.size * scan.cells // scan.box.size))


def _counted(cells: int) -> str:
    return f"{cells:,} cell{'' if cells == 1 else 's'}"


def _text(bound: Bound) -> str:
    if isinstance(bound, BoundScan):
        return f"scan {bound.name}, {'sparse' if bound.schema.sparse else 'dense'}"
    if isinstance(bound, BoundRepeated):
        return f"view {bound.name}, the results of {positions_text(bound.schema, bound.axes)} at the cells below"
    if isinstance(bound, BoundChanges):
        return f"changes from {bound.before.name} to {bound.after.name}, a table"
    if isinstance(bound, BoundSelection):
        return f"select {bound.box}"
    if isinstance(bound, BoundRound):
        return f"select {bound.box}, going round {bound.schema.dimension_names[bound.axis]}"
    if isinstance(bound, BoundFilter):
        return f"filter {bound.condition}"
    if isinstance(bound, BoundColumns):
        return "columns " + ", ".join(_output(name, str(node)) for name, node in bound.outputs)
    if isinstance(bound, BoundWindow):
        return f"{bound.plan.window}: " + ", ".join(f"{found} as {name}" for name, found in bound.plan.aggregates)
    if isinstance(bound, BoundParted):
        return f"totals by {bound.group_words}: " + ", ".join(f"{found} as {name}" for name, found in bound.aggregates)
    if isinstance(bound, BoundTotals):
        by = ", ".join(bound.source.schema.dimension_names[axis] for axis in bound.axes)
        listed = ", ".join(f"{found} as {name}" for name, found in bound.aggregates)
        return f"totals{' by ' + by if by else ''}: {listed}"
    if isinstance(bound, BoundSpread):
        return f"cells with what is over their groups: {bound.words}"
    if isinstance(bound, BoundOrdered):
        return f"{bound.words}, a table"
    if isinstance(bound, BoundOperated):
        return f"operator {bound.text}"
    if isinstance(bound, BoundRejoined):
        by = ", ".join(bound.source.schema.dimension_names[axis] for axis in bound.axes)
        listed = ", ".join(f"{found} as {name}" for name, found in bound.aggregates)
        return f"totals of totals{' by ' + by if by else ''}: {listed}"
    if isinstance(bound, BoundAdjusted):
        parts = (
            (bound.added, "plus the pairs that a view has not"),
            (bound.taken, "less the pairs that it has too many"),
        )
        return "results of a view, " + " and ".join(text for part, text in parts if part is not None)
    if isinstance(bound, BoundCount):
        return f"count from metadata: {bound.count:,}"
    return _join_text(bound)


def _join_text(bound: Bound) -> str:
    """A join in the words of the language, with the sides under the names that the query gives them."""
    if isinstance(bound, BoundJoin):
        kind = "" if bound.kind == "inner" else f"{bound.kind} "
        on = " and ".join([*_mapping(bound), *([] if bound.condition is None else [_said(bound.condition, bound)])])
        where = "" if bound.where is None else f" where {_said(bound.where, bound)}"
        return f"{kind}similarity join on {on} with shape {shape_text(bound.shape)}{_nearest(bound)}{where}"
    if isinstance(bound, BoundPairs):
        return "pairs: " + ", ".join(_output(name, _said(node, bound.source)) for name, node in bound.outputs)
    assert isinstance(bound, BoundJoined)
    if bound.is_neighbourhood:
        found = f"neighbours {shape_text(bound.source.shape)}{_step(bound)}: {_aggregates(bound, {side_name(2): None})}"
    else:
        by = ", ".join(_said(cell, bound.source) for cell in bound.groups)
        found = f"totals of pairs{' by ' + by if by else ''}: {_aggregates(bound, _sides(bound.source))}"
    found += f" min count {bound.min_count}" if bound.min_count else ""
    return found if bound.method == "auto" else f"{found} method {bound.method}"


def _sides(join: BoundJoin) -> Qualifiers:
    return {side_name(number): name for number, name in enumerate(join.names, 1)}


def _said(node: Node, join: BoundJoin) -> str:
    return str(replaced_columns(requalified(node, _sides(join)), _MEASURED))


def _nearest(join: BoundJoin) -> str:
    if join.nearest is None:
        return ""
    by = "" if join.nearest.by is None else f" by {_said(join.nearest.by, join)}"
    return f" mutual nearest{by}" if join.nearest.mutual else f" nearest {join.nearest.count}{by}"


def _step(bound: BoundJoined) -> str:
    return f" step ({', '.join(map(str, bound.step))})" if bound.step else ""


def _mapping(join: BoundJoin) -> Iterator[str]:
    for name, place in zip(join.right.schema.dimension_names, join.mapping, strict=True):
        target = f"{join.names[-1]}.{name}"
        if place is None:
            yield f"any {target}"
            continue
        text = _said(place.cell, join)
        text = f"{place.scale} * {text}" if place.scale != 1 else text
        text = f"{text} // {place.divisor}" if place.divisor != 1 else text
        shift = "" if not place.shift else f" {'-' if place.shift < 0 else '+'} {abs(place.shift)}"
        yield f"{target} = {text}{shift}"


def _aggregates(bound: BoundJoined, names: Qualifiers) -> str:
    arguments = {name: str(replaced_columns(requalified(node, names), _MEASURED)) for name, node in bound.arguments}
    listed = []
    for name, aggregate in bound.aggregates:
        known = (
            aggregate if aggregate.attribute is None else aggregate.of(*(arguments[a] for a in aggregate.attributes))
        )
        listed.append(f"{known} as {name}")
    return ", ".join(listed)


def _output(name: str, text: str) -> str:
    return name if name == text else f"{text} as {name}"
