"""Users' operators as sources on sources: a block is read with its halo, given to the function, and cut out again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from windrow.errors import DataError
from windrow.model.box import Box
from windrow.model.grid import ChunkGrid
from windrow.model.labels import Labels
from windrow.model.schema import Schema
from windrow.model.source import Blocks
from windrow.operations.query.blocks import ComputedSource
from windrow.plan.bound import LabelItems
from windrow.plan.operators import Operator, Parameter

COPIES = 4
"""How often a task holds its input: as read, as the function's own arrays, as results."""


@dataclass(frozen=True)
class OperatedGrid:
    """The result of an operator: reading a box of it computes it. It pickles."""

    source: ComputedSource
    schema: Schema
    box: Box
    label_items: LabelItems
    operator: Operator
    parameters: tuple[Parameter, ...]
    halo: tuple[int, ...]

    @property
    def labels(self) -> Mapping[str, Labels]:
        return dict(self.label_items)

    @property
    def keep_whole(self) -> tuple[int, ...]:
        own = {axis for axis, side in enumerate(self.halo) if side}
        return tuple(sorted(own | set(self.source.keep_whole)))

    @property
    def reading_grid(self) -> ChunkGrid:
        return self.source.reading_grid

    def around(self, results: Box) -> Box:
        """The cells that a box of results needs."""
        lo = tuple(low - side for low, side in zip(results.lo, self.halo, strict=True))
        hi = tuple(high + side for high, side in zip(results.hi, self.halo, strict=True))
        return Box(lo, hi) & self.box

    def cells_decoded(self, results: Box) -> int:
        return 0 if results.is_empty else self.source.cells_decoded(self.around(results))

    def touched_bytes(self, results: Box, attributes: Iterable[str] | None = None) -> int:
        if results.is_empty:
            return 0
        return self.source.touched_bytes(self.around(results)) + results.size * self.schema.cell_bytes

    def task_bytes(self, results: Box) -> int:
        around = self.around(results)
        width = self.source.schema.cell_bytes + self.schema.cell_bytes
        return self.source.task_bytes(around) + COPIES * around.size * max(8, width)

    def read(self, box: Box, attributes: Iterable[str] | None = None) -> Blocks:
        names = self.schema.attribute_names if attributes is None else tuple(attributes)
        if box.is_empty:
            return {name: np.zeros(box.shape, self.schema.attribute(name).type.dtype) for name in names}
        around = self.around(box)
        given = {name: np.array(values) for name, values in self.source.read(around).items()}
        found = self._run(given, box)
        inside = box.slices(around.lo)
        return {
            name: values[inside]
            for attribute in self.schema.attributes
            if attribute.name in names
            for name, values in self._stored(attribute.name, found, around, box).items()
        }

    def _run(self, given: dict[str, Any], box: Box) -> Any:
        try:
            return self.operator.function(given, *self.parameters)
        except Exception as error:
            what = f"operator {self.operator.name} failed on the block {box}"
            raise DataError(what, got=f"{type(error).__name__}: {error}") from error

    def _stored(self, name: str, found: Any, around: Box, box: Box) -> dict[str, Any]:
        """An attribute of what the function gave, checked and in its type, with its companion."""
        attribute = self.schema.attribute(name)
        if not isinstance(found, Mapping):
            found = {self.schema.attribute_names[0]: found} if len(self.schema.attributes) == 1 else {}
        if name not in found:
            what = f"operator {self.operator.name} gave no values of {name}"
            raise DataError(what, got=", ".join(map(str, found)) or "nothing", hint="Give a dictionary of arrays")
        values = np.asarray(found[name])
        if values.shape != around.shape:
            what = f"operator {self.operator.name} gave an array of another shape than it got, for the block {box}"
            raise DataError(
                what, got=f"{values.shape} for {name}", hint=f"It must be {around.shape}, the halo included"
            )
        try:
            stored = {name: values.astype(attribute.type.dtype, copy=False)}
        except (TypeError, ValueError) as error:
            what = f"operator {self.operator.name} gave values of {name} that are no {attribute.type}"
            raise DataError(what, got=values.dtype) from error
        if attribute.has_companion:
            valid = found.get(attribute.companion)
            stored[attribute.companion] = np.ones(around.shape, bool) if valid is None else np.asarray(valid, bool)
        return stored
