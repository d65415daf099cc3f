"""The two tasks of a node where a query is answered from a view of another shape.

The first joins the pairs of cells that the query has besides, and those that it has not. The second adds the ones to
the view's results that are at home on it, and takes the others away.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from windrow.aggregates.columns import Result
from windrow.errors import DataError
from windrow.execution.nodes import Here
from windrow.model.schema import Schema
from windrow.operations.query.adjusted import Adjusting, TooLargeError, adjust
from windrow.plan.bound import Bound
from windrow.storage.cells import cell_fields
from windrow.storage.chunks.cache import ChunkCache
from windrow.views.placed.joining import Joined, JoinNode, Partial, join_node
from windrow.views.placed.merging import merge_partials, put_above
from windrow.views.placed.shelf import ArrayChunks, Counted, Shelf
from windrow.views.rules.pairs import Kept

ADDED, TAKEN = "added", "taken"


@dataclass(frozen=True)
class JoinDifferences:
    """A task: pairs that come in addition and pairs that are taken away, by these names."""

    joins: Mapping[str, JoinNode]


@dataclass(frozen=True)
class Difference:
    """What is made of the pairs that come, or go: states, and from them the parts of results."""

    kept: Kept
    schema: Schema


@dataclass(frozen=True)
class AdjustNode:
    """A task: the chunks of a view that are at home on one node."""

    node: int
    differences: Mapping[str, Difference]
    view: ArrayChunks
    ordinals: tuple[int, ...]
    above: Bound
    """The steps from the view's cells to the parts of results, on none."""
    wanted: Adjusting
    cache_bytes: int


@dataclass(frozen=True, eq=False)
class Adjusted:
    """A receipt, with the results; None if they have to be computed from all their pairs."""

    node: int
    executor: str
    counted: Counted
    joins: list[Joined]
    cells: pa.Table | None


def join_differences(task: JoinDifferences, here: Here) -> Iterator[tuple[int, tuple[str, Partial | Joined]]]:
    """Join what the plan says, and send the states to the homes of the view's chunks."""
    for name, join in task.joins.items():
        for node, what in join_node(join, here):
            yield node, (name, what)


def adjust_node(task: AdjustNode, brought: Sequence[tuple[str, Any]], here: Here) -> Adjusted:
    """The results of the chunks that are at home here."""
    counted = Counted()
    shelf = Shelf(task.view, ChunkCache(here.folder, task.cache_bytes), counted)
    shelf.fetch(task.ordinals)
    joins = [what for _, what in brought if isinstance(what, Joined)]
    return Adjusted(task.node, here.executor, counted, joins, _adjusted(task, brought, shelf))


def _adjusted(task: AdjustNode, brought: Sequence[tuple[str, Any]], shelf: Shelf) -> pa.Table | None:
    stored = [cell_fields(task.view.snapshot.schema).empty_table(), *(shelf.old(o) for o in task.ordinals)]
    kept = put_above(task.above, pa.concat_tables(stored).combine_chunks())
    found: dict[str, pa.Table | None] = {ADDED: None, TAKEN: None}
    for name, difference in task.differences.items():
        partials = [what for sign, what in brought if sign == name and isinstance(what, Partial)]
        table = _parts(difference, partials)
        if table is None:
            return None
        found[name] = table
    if not kept.num_rows and not any(table is not None and table.num_rows for table in found.values()):
        return cell_fields(task.wanted.schema).empty_table()
    try:
        return adjust(kept, found[ADDED], found[TAKEN], task.wanted)
    except (TooLargeError, DataError):  # a sum of some pairs may be too large where that of all is not
        return None


def _parts(difference: Difference, partials: Sequence[Partial]) -> pa.Table | None:
    """Partial states merged and finished as cells; None if a state cannot tell its result."""
    layout, schema = difference.kept.layout, difference.schema
    places, state = merge_partials(layout, [piece for one in partials for piece in one.came], schema.ndim)
    finished = layout.finish(state)
    if any(one.recompute.any() for one in finished.values()):
        return None
    values = [
        Result(finished[attribute.name].values, finished[attribute.name].missing).to_arrow(attribute.type)
        for attribute in schema.attributes
    ]
    return pa.table([*(pa.array(column) for column in places), *values], schema=cell_fields(schema))
