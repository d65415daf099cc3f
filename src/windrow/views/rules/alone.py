"""Left cells without a partner: those that an anti join keeps, and those of a left join that ``where`` drops or not.

The number of partners is kept for every left cell. It is that of a left join without ``where``, whose aggregates are
over those pairs alone for which ``where`` is true; so its results are patched as those of any left join, and what it
says of each cell decides which of them are results of the view.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.aggregates.aggregate import Aggregate
from windrow.aggregates.states.units import PREFIX
from windrow.expressions.nodes import Case, Column, Literal
from windrow.kernels.sparse.matching import match_cells
from windrow.model.arrow import arrow_type
from windrow.model.schema import Attribute, Schema
from windrow.model.types import TYPES
from windrow.operations.join.rows import Rows, as_rows
from windrow.plan.bound import BoundJoin, BoundJoined, NamedAggregates, NamedNodes, side_name
from windrow.plan.pairs import sided_types
from windrow.storage.cells import cell_fields
from windrow.views.rules.joined import JoinedRule
from windrow.views.rules.results import Patched

FOUND, KEPT = f"{PREFIX}found", f"{PREFIX}kept"
"""How many partners a left cell has, and of how many pairs ``where`` is true."""

Mask = npt.NDArray[np.bool_]


def counted(core: BoundJoin | BoundJoined) -> BoundJoined:
    """The left join that has a result for every left cell, with the number of its partners."""
    join = core if isinstance(core, BoundJoin) else core.source
    aggregates: NamedAggregates = ((FOUND, Aggregate("count", None)),)
    arguments: NamedNodes = ()
    attributes: tuple[Attribute, ...] = (Attribute(FOUND, TYPES["int64"]),)
    if isinstance(core, BoundJoined):
        arguments, own = _of_kept(core)
        aggregates = (*aggregates, *own)
        attributes += tuple(Attribute(name, TYPES["int64"]) for name, _ in own if name == KEPT)
        attributes += core.schema.attributes
    return BoundJoined(
        schema=replace(join.left.schema, attributes=attributes, sparse=True),
        box=join.left.box,
        labels=join.left.labels,
        gridding=join.left.gridding,
        source=replace(join, kind="left", where=None, nearest=None),
        groups=tuple(Column(name, side_name(1)) for name in join.left.schema.dimension_names),
        arguments=arguments,
        aggregates=aggregates,
    )


def _of_kept(core: BoundJoined) -> tuple[NamedNodes, NamedAggregates]:
    """The aggregates of those pairs for which ``where`` is true, and what they take; how many these are comes first."""
    where = core.source.where
    if where is None:
        return core.arguments, core.aggregates
    arguments = tuple((name, Case(((where, node),))) for name, node in core.arguments)
    aggregates = tuple(
        (name, a if a.attribute is not None else Aggregate("count", KEPT)) for name, a in core.aggregates
    )
    counts = Case(((where, Literal(1)),))
    return (*arguments, (KEPT, counts)), ((KEPT, Aggregate("count", KEPT)), *aggregates)


def chosen_results(core: BoundJoined, cells: pa.Table, lefts: pa.Table) -> pa.Table:
    """What a counted join says of cells, ``lefts`` being these, as results of the join that it stands for."""
    join, found = core.source, cells.column(FOUND).to_numpy()
    there = found > 0 if join.where is None else cells.column(KEPT).to_numpy() > 0
    if join.kind == "left":
        there = there | ((found == 0) & holds_alone(join, lefts))
    fields = cell_fields(core.schema)
    return cells.filter(pa.array(there)).select(fields.names).cast(fields).combine_chunks()


def holds_alone(join: BoundJoin, lefts: pa.Table) -> Mask:
    """Of which left cells ``where`` is true where nothing is known of a partner."""
    if join.where is None:
        return np.ones(lefts.num_rows, bool)
    types, rows = sided_types(join), as_rows(lefts, side_name(1))
    lacking = {column.key for column in join.where.columns()} - rows.columns.keys()
    unknown = {key: pa.nulls(rows.length, arrow_type(types[key])) for key in lacking}
    return rows.beside(Rows(rows.length, unknown)).holds(join.where)


@dataclass(frozen=True)
class AloneRule(JoinedRule):
    """The rule of ``counted`` joins, for a view of which ``core`` is the step that they stand for."""

    core: BoundJoin | BoundJoined

    @property
    def left_schema(self) -> Schema:
        """What results depend on; those of an anti join are left cells as they are."""
        if isinstance(self.core, BoundJoined):
            return super().left_schema
        return replace(self.core.left.schema, sparse=True)

    def patch(self) -> Patched:
        found, lefts = self.patch_lefts()
        cells = found.cells
        numbers = match_cells(self.places_of(cells), self.places_of(lefts))
        own = lefts.take(pa.array(numbers))
        if isinstance(self.core, BoundJoined):
            return replace(found, cells=chosen_results(self.core, cells, own))
        alone = (cells.column(FOUND).to_numpy() == 0) & holds_alone(self.core, own)
        fields = cell_fields(self.core.schema)
        return replace(found, cells=own.filter(pa.array(alone)).select(fields.names).cast(fields).combine_chunks())
