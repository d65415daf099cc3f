"""How a query of any kind will run: its steps as a tree, what is read, and which rules made it so."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace

from windrow.execution.engine import Engine
from windrow.expressions.nodes import Node
from windrow.model.box import Box
from windrow.operations.explain import seconds_text, size_text
from windrow.plan.bound import (
    Bound,
    BoundColumns,
    BoundCount,
    BoundFilter,
    BoundJoin,
    BoundJoined,
    BoundNeighbours,
    BoundPairs,
    BoundScan,
    BoundSelection,
    BoundTotals,
    BoundWindow,
)
from windrow.plan.optimizer import Optimized
from windrow.plan.windows import needed_attributes


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
    seconds: float | None = None
    results: int | None = None

    def __str__(self) -> str:
        lines = [self.query]
        lines += [f"  {'  ' * step.depth}{step.text}  [{_counted(step.cells)}]" for step in self.steps]
        lines += [f"  rule      {name}: {reason}" for name, reason in self.rules]
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
        sum(_cells(step) for step in bound.walk() if isinstance(step, BoundScan)),
        size,
        _cells(bound) * (8 * bound.schema.ndim * bound.schema.sparse + bound.schema.cell_bytes),
    )


def _tree(bound: Bound, depth: int) -> Iterator[Step]:
    yield Step(depth, _text(bound), _cells(bound))
    for below in bound.inputs():
        yield from _tree(below, depth + 1)


def _cells(bound: Bound) -> int:
    if bound.box.is_empty:
        return 0
    if not bound.schema.sparse:
        return bound.box.size
    below = [_cells(step) for step in bound.inputs() if not isinstance(bound, (BoundJoin, BoundPairs))]
    known = bound.cells if isinstance(bound, BoundScan) and bound.cells is not None else bound.box.size
    return min([bound.box.size, known, *below])


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
    elif isinstance(bound, (BoundTotals, BoundNeighbours)):
        yield from _reads(bound.source, bound.source.box, needed_attributes(bound.aggregates))
    elif isinstance(bound, BoundSelection):
        yield from _reads(bound.source, box, names)
    elif not isinstance(bound, BoundCount):
        for below in bound.inputs():
            yield from _reads(below, below.box, below.schema.attribute_names)


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
    if isinstance(bound, BoundSelection):
        return f"select {bound.box}"
    if isinstance(bound, BoundFilter):
        return f"filter {bound.condition}"
    if isinstance(bound, BoundColumns):
        return "columns " + ", ".join(_output(name, str(node)) for name, node in bound.outputs)
    if isinstance(bound, BoundWindow):
        return f"{bound.plan.window}: " + ", ".join(f"{found} as {name}" for name, found in bound.plan.aggregates)
    if isinstance(bound, BoundTotals):
        by = ", ".join(bound.source.schema.dimension_names[axis] for axis in bound.axes)
        listed = ", ".join(f"{found} as {name}" for name, found in bound.aggregates)
        return f"totals{' by ' + by if by else ''}: {listed}"
    if isinstance(bound, BoundCount):
        return f"count from metadata: {bound.count:,}"
    if isinstance(bound, BoundNeighbours):
        return f"neighbours {bound.shape}: " + ", ".join(f"{found} as {name}" for name, found in bound.aggregates)
    if isinstance(bound, BoundJoin):
        return f"{'left ' if bound.kind == 'left' else ''}similarity join with shape {bound.shape}"
    if isinstance(bound, BoundPairs):
        return f"pairs: {', '.join(bound.schema.attribute_names)}"
    assert isinstance(bound, BoundJoined)
    return f"totals of pairs: {', '.join(bound.schema.attribute_names)}"


def _output(name: str, text: str) -> str:
    return name if name == text else f"{text} as {name}"
