"""Ranges that go round a periodic dimension, as a source on a source."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from windrow.errors import DataError
from windrow.expressions.nodes import Around
from windrow.model.box import Box
from windrow.model.grid import ChunkGrid
from windrow.model.schema import Schema
from windrow.model.source import Blocks
from windrow.operations.query.blocks import ComputedSource
from windrow.operations.query.standing import OnSource
from windrow.plan.bound import Bound, BoundFilter, BoundRound, BoundSelection, LabelItems
from windrow.plan.conditions import parts_of


def pieces_around(box: Box, axis: int, seam: int, skip: int) -> Iterator[tuple[Box, Box]]:
    """The parts of a box on both sides of the seam: where they lie below, and where they lie in the box."""
    lo, hi = list(box.lo), list(box.hi)
    for first, last, back in (
        (box.lo[axis], min(seam, box.hi[axis]), 0),
        (max(seam + 1, box.lo[axis]), box.hi[axis], skip),
    ):
        if first <= last:
            lo[axis], hi[axis] = first, last
            here = Box(tuple(lo), tuple(hi))
            yield here.shift([-back if d == axis else 0 for d in range(box.ndim)]), here


def stored_boxes(bound: Bound, box: Box) -> list[Box]:
    """The boxes of a stored array of which a selection, or a part of it, is made."""
    if isinstance(bound, BoundRound):
        pieces = pieces_around(box, bound.axis, bound.seam, bound.skip)
        return [found for below, _ in pieces for found in stored_boxes(bound.source, below)]
    if isinstance(bound, BoundFilter):
        boxes = [box]
        for part in parts_of(bound.condition):
            if not isinstance(part, Around):
                hint = "The labels are not in order: select by cell, or filter the DataFrame"
                raise DataError("the cells of these labels are not next to each other", got=str(part), hint=hint)
            axis = bound.schema.axis(part.cell.name)
            boxes = [found for one in boxes for found in _cut(one, axis, part.runs)]
        return [found for one in boxes for found in stored_boxes(bound.source, one)]
    return stored_boxes(bound.source, box) if isinstance(bound, BoundSelection) else [box]


def _cut(box: Box, axis: int, runs: Iterable[tuple[int, int]]) -> Iterator[Box]:
    for first, last in runs:
        lo, hi = list(box.lo), list(box.hi)
        lo[axis], hi[axis] = max(first, lo[axis]), min(last, hi[axis])
        yield Box(tuple(lo), tuple(hi))


@dataclass(frozen=True)
class RoundGrid(OnSource):
    """A dense source whose cells up to ``seam`` are those below, and after it those ``skip`` before. It pickles."""

    source: ComputedSource
    schema: Schema
    label_items: LabelItems
    axis: int
    seam: int
    skip: int

    @property
    def reading_grid(self) -> ChunkGrid:
        return self.schema.grid

    def _below(self, box: Box) -> list[Box]:
        return [below for below, _ in pieces_around(box, self.axis, self.seam, self.skip)]

    def cells_decoded(self, results: Box) -> int:
        return sum(map(self.source.cells_decoded, self._below(results)))

    def touched_bytes(self, results: Box, attributes: Iterable[str] | None = None) -> int:
        names = None if attributes is None else tuple(attributes)
        return sum(self.source.touched_bytes(box, names) for box in self._below(results))

    def task_bytes(self, results: Box) -> int:
        return results.size * self.schema.cell_bytes + sum(map(self.source.task_bytes, self._below(results)))

    def read(self, box: Box, attributes: Iterable[str] | None = None) -> Blocks:
        names = None if attributes is None else tuple(attributes)
        if box.is_empty:
            return self.source.read(box, names)
        found = [self.source.read(below, names) for below in self._below(box)]
        if len(found) == 1:
            return found[0]
        joined: dict[str, Any] = {
            name: np.concatenate([piece[name] for piece in found], axis=self.axis) for name in found[0]
        }
        return joined
