"""Which way a question takes, and what decided it: one path for what is computed cell by cell, one for each total."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from windrow.execution.engine import Engine
from windrow.expressions.nodes import Column
from windrow.expressions.tiles import condition_obstacle, tile_obstacle
from windrow.kernels.choose import AUTO, Candidate, Choice
from windrow.model.types import TYPES
from windrow.operations.query.cellwise import number_types, plain_types
from windrow.plan.bound import (
    Bound,
    BoundColumns,
    BoundCount,
    BoundFilter,
    BoundOrdered,
    BoundScan,
    BoundSelection,
    BoundSpread,
    BoundTotals,
    BoundWindow,
)
from windrow.plan.grouping.label_parts import BoundParted

if TYPE_CHECKING:
    from windrow.operations.query.fused.sparse_rows import SparseRows

CELLWISE = (BoundSelection, BoundColumns, BoundFilter)
"""Steps that look at one cell at a time."""
ROWS, TILES, ARROW, STORED, KERNELS, CATALOG = "rows", "tiles", "arrow", "stored", "kernels", "catalog"
AS_STORED = "parts are read as they are stored"


@dataclass(frozen=True)
class Path:
    """The way that was taken, what is done on it, and why others were not."""

    name: str
    about: str
    others: tuple[tuple[str, str], ...] = ()

    def lines(self) -> list[str]:
        """As ``explain`` shows it."""
        found = [f"{self.name}: {self.about}", *(f"not {name}: {why}" for name, why in self.others)]
        return [f"  path      {line}" for line in found]


def names_of(paths: Sequence[Path]) -> str:
    return ", ".join(path.name for path in paths)


def paths_of(engine: Engine, bound: Bound) -> Iterator[Path]:
    """The paths of a query, that of the topmost step first; joins have lines of their own."""
    if isinstance(bound, BoundCount):
        yield Path(CATALOG, "how many cells there are is known, and nothing is read")
        return
    found = _cell_path(engine, bound)
    if found is not None:
        yield found
    for step in bound.walk():
        plain = all(isinstance(below, (BoundScan, *CELLWISE)) for below in step.walk() if below is not step)
        if isinstance(step, (BoundTotals, BoundParted)) and plain:
            yield _totals_path(engine, step)


def _totals_path(engine: Engine, step: BoundTotals | BoundParted) -> Path:
    from windrow.operations.query.fused.paths import choose_path
    from windrow.operations.query.run import totals_problem

    choice: Choice[Any] = choose_path(totals_problem(engine, step))
    asked = "" if engine.path == AUTO else ", as asked"
    taken, *others = choice.candidates
    refused = tuple((one.strategy.name, _why_not(one, choice)) for one in others)
    return Path(taken.strategy.name, taken.about + asked, () if asked else refused)


def _why_not(other: Candidate[Any], choice: Choice[Any]) -> str:
    obstacle = other.obstacle
    if other.cost is None and obstacle is None:  # it was not asked, for it could not win
        obstacle = other.strategy.can(choice.problem)
    if obstacle is not None:
        return obstacle
    if other.cost is None:
        return f"there are too few cells: its code takes longer to load than they take as {choice.name}"
    return f"it would take longer, about {other.price} against {choice.taken.price}"


def _cell_path(engine: Engine, bound: Bound) -> Path | None:
    """How the results of the topmost steps are computed, where these are cells looked at one by one, or windows."""
    step = bound.source if isinstance(bound, BoundOrdered) else bound
    base = step
    while isinstance(base, CELLWISE):
        base = base.inputs()[0]
    if isinstance(base, BoundWindow):
        return window_path(engine, base) if base is bound else _kernels()
    if not isinstance(base, (BoundScan, BoundSpread)):
        return None
    if isinstance(bound, BoundOrdered):
        return Path(ARROW, "boxes are read, and the rows of each are ordered and merged")
    if bound.schema.sparse and isinstance(base, BoundScan) and base.schema.sparse:
        return _rows_path(engine, bound)
    return _box_path(bound, base)


def _rows_path(engine: Engine, bound: Bound) -> Path:
    from windrow.operations.query.fused.sparse_rows import rows_of
    from windrow.operations.query.run import source_of

    rows = rows_of(source_of(engine, bound))
    assert rows is not None  # for there is nothing but cells looked at one by one
    if not rows.can_run(engine):
        why = "the rows of a part do not fit into the memory of a worker"
        return Path(ARROW, "boxes are read, and computed as Arrow columns", ((ROWS, why),))
    found = _arrow_rows(rows)
    if found is not None:
        return Path(ROWS, f"{AS_STORED}, some columns or conditions as Arrow has them", ((TILES, found),))
    computed = rows.pipeline.conditions or any(not isinstance(node, Column) for node, _, _ in rows.outputs)
    return Path(ROWS, f"{AS_STORED}, and computed on tiles" if computed else AS_STORED)


def _arrow_rows(rows: SparseRows) -> str | None:
    """Why something about rows is not computed on tiles."""
    types = plain_types(rows.stored.schema)
    for condition in rows.pipeline.conditions:
        found = condition_obstacle(condition, number_types(rows.stored.schema))
        if found is not None:
            return found
    for attribute in rows.schema.attributes:
        node = rows.pipeline.outputs[attribute.name]
        if not isinstance(node, Column):
            found = tile_obstacle(node, types)
            if found is not None or attribute.type != TYPES["float64"]:
                return found or f"{node} is of type {attribute.type}"
    return None


def _box_path(bound: Bound, base: Bound) -> Path:
    """How boxes are computed: those of dense arrays, and of cells that have the results of their groups."""
    chain = []
    step = bound
    while step is not base:
        chain.append(step)
        step = step.inputs()[0]
    about = "boxes are read, and computed as Arrow columns"
    if bound.schema.sparse:
        dense = not base.schema.sparse
        why = "conditions choose cells of a dense array" if dense else "cells look up the results of their groups"
        return Path(ARROW, about, ((TILES if dense else ROWS, why),))
    computed = False
    for one in chain:
        if isinstance(one, BoundColumns):
            types = plain_types(one.source.schema)
            for name, node in one.outputs:
                if isinstance(node, Column) and node.key in one.source.schema.attribute_names:
                    continue
                computed = True
                kind = one.schema.attribute(name).type
                found = tile_obstacle(node, types)
                if found is not None or kind != TYPES["float64"]:
                    return Path(ARROW, about, ((TILES, found or f"{node} is of type {kind}"),))
    return (
        Path(TILES, "boxes are read, and computed on tiles") if computed else Path(STORED, "chunks are read, and kept")
    )


def _kernels(why: str | None = None) -> Path:
    return Path(KERNELS, "blocks are read with their halo, and aggregated by kernels", (("fused", why),) if why else ())


def window_path(engine: Engine, bound: BoundWindow) -> Path:
    """How windows, or the blocks of a regrid, are aggregated."""
    from windrow.operations.query.fused.paths import FUSED, blocks_obstacle
    from windrow.operations.query.run import regrid_problem, source_of

    plain = all(isinstance(below, (BoundScan, *CELLWISE)) for below in bound.source.walk())
    if bound.box.is_empty or not bound.schema.sparse or not bound.plan.is_regrid or not plain:
        return _kernels()
    problem = regrid_problem(engine, source_of(engine, bound))
    why = problem if isinstance(problem, str) else blocks_obstacle(problem)
    if why is not None:
        return _kernels(why)
    return Path(FUSED, "blocks are groups, and cells are added to them as they are decoded")
