"""How many results a batch touches, estimated before anything is computed.

A batch of cells that lie all over an array has few boxes, which hold nearly everything. Where each cell is looked at by
itself, it is the number of cells that counts, and how many results one of them reaches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from windrow.model.box import Box
from windrow.plan.bound import Bound
from windrow.views.changes import CellChange, Change
from windrow.views.rules.choose import why_not_patched
from windrow.views.touched import find_touched


@dataclass(frozen=True)
class Estimate:
    """Results that are touched, of all that there are."""

    touched: float
    whole: float


def estimate_touched(
    before: Bound, after: Bound, changes: Mapping[str, Change], boxes: Sequence[Box], stored: int
) -> Estimate:
    """What a batch touches of a view that has so many cells; ``boxes`` hold all of it."""
    positions = max(1, _volume(after, [after.box]))
    volume = min(positions, _volume(after, boxes))
    if not after.schema.sparse:
        return Estimate(float(volume), float(positions))
    coming = max((change.came.num_rows for change in changes.values() if isinstance(change, CellChange)), default=0)
    whole = float(max(1, min(positions, max(stored, coming))))
    density = whole / positions
    touched = volume * density
    alone = bool(changes) and all(isinstance(change, CellChange) for change in changes.values())
    if alone and why_not_patched(after) is None:
        # A changed cell is most likely a result itself; of the others that it reaches as many are as elsewhere.
        reached = (
            change.cells * (1 + max(0, _reach(before, after, name, change) - 1) * density)
            for name, change in changes.items()
            if isinstance(change, CellChange) and not change.is_empty
        )
        touched = min(touched, sum(reached))
    return Estimate(min(touched, whole), whole)


def _volume(bound: Bound, boxes: Sequence[Box]) -> int:
    inside = (box & bound.box for box in boxes)
    return sum(box.size for box in inside if not box.is_empty)


def _reach(before: Bound, after: Bound, name: str, change: CellChange) -> int:
    """The most positions that one of a few changed cells reaches."""
    return max(_volume(after, find_touched(before, after, {name: [cell]})) for cell in _some_cells(change))


def _some_cells(change: CellChange) -> Iterator[Box]:
    table = change.came if change.came.num_rows else change.left
    rows = table.num_rows
    at = change.at(table)
    for row in np.unique([0, rows // 2, rows - 1]):
        place = tuple(int(column[row]) for column in at)
        yield Box(place, place)
