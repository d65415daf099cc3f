"""Results that cells share: where those cells lie, and the results given back to each of them.

Along some axes it makes no difference to a result where its cell lies. All cells that agree in the others then have
one result, which lies at the *position* that they share: the first place along the axes that do not matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from windrow.model.box import Box
from windrow.model.schema import Schema
from windrow.plan.bound import Bound, BoundNamed, BoundScan

Int64Array = npt.NDArray[np.int64]
Axes = tuple[int, ...]
"""Axes along which it makes no difference where a cell lies."""


@dataclass(frozen=True, kw_only=True)
class BoundPositions(Bound):
    """The positions of the cells of a sparse step, without attributes."""

    source: Bound
    axes: Axes


@dataclass(frozen=True, kw_only=True)
class BoundRepeated(BoundNamed):
    """A stored view with a row for each position: the cells of ``source``, each with the results of its position.

    A cell whose position has no results is left out.
    """

    source: Bound
    results: BoundScan
    axes: Axes


def positions_of(source: Bound, axes: Axes) -> BoundPositions:
    schema = replace(source.schema, attributes=())
    return BoundPositions(
        schema=schema,
        box=at_positions(source.box, schema, axes),
        labels=source.labels,
        gridding=source.gridding,
        source=source,
        axes=axes,
    )


def at_positions(box: Box, schema: Schema, axes: Axes) -> Box:
    """The positions of the cells in a box."""
    if box.is_empty:
        return box
    lo, hi = list(box.lo), list(box.hi)
    for axis in axes:
        lo[axis] = hi[axis] = schema.lo[axis]
    return Box(tuple(lo), tuple(hi))


def cells_at(positions: Box, whole: Box, axes: Axes) -> Box:
    """The cells that can lie at the positions in a box, of those in another."""
    lo, hi = list(positions.lo), list(positions.hi)
    for axis in axes:
        lo[axis], hi[axis] = whole.lo[axis], whole.hi[axis]
    return positions if positions.is_empty else Box(tuple(lo), tuple(hi)) & whole


def move_to_positions(at: Sequence[Int64Array], schema: Schema, axes: Axes) -> list[Int64Array]:
    """The position of each cell; cells that share one give it several times."""
    return [np.full_like(column, schema.lo[axis]) if axis in axes else column for axis, column in enumerate(at)]


def positions_text(schema: Schema, axes: Axes) -> str:
    """What tells positions apart: ``(ra, dec)``."""
    return f"({', '.join(name for axis, name in enumerate(schema.dimension_names) if axis not in axes)})"
