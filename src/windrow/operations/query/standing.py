"""What sources have in common: where their cells stand, by themselves or as the source below them has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from windrow.model.grid import ChunkGrid
from windrow.model.labels import Labels
from windrow.model.schema import Schema

if TYPE_CHECKING:
    from windrow.model.source import ComputedCells
    from windrow.operations.query.blocks import ComputedSource
    from windrow.plan.bound import LabelItems


class Labelled:
    """Labels are kept as items, so that sources can be compared and hashed."""

    label_items: LabelItems

    @property
    def labels(self) -> Mapping[str, Labels]:
        return dict(self.label_items)


class Standing(Labelled):
    """Cells that are there already: any cut is as good as another, and their own chunks are best."""

    schema: Schema

    @property
    def keep_whole(self) -> tuple[int, ...]:
        return ()

    @property
    def reading_grid(self) -> ChunkGrid:
        return self.schema.grid


class OnSource(Labelled):
    """Cells in the places that they have in the source below, which says how it is best cut."""

    source: ComputedSource | ComputedCells

    @property
    def keep_whole(self) -> tuple[int, ...]:
        return self.source.keep_whole

    @property
    def reading_grid(self) -> ChunkGrid:
        return self.source.reading_grid
