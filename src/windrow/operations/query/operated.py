"""Users' operators as sources on sources: a block is read with its halo, given to the function, and cut out again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from windrow.errors import DataError
from windrow.model.box import Box
from windrow.model.conform import conform
from windrow.model.grid import ChunkGrid
from windrow.model.labels import Labels
from windrow.model.schema import Attribute, Schema
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
        stored: dict[str, Any] = {}
        for attribute in self.schema.attributes:
            if attribute.name in names:
                stored |= self._stored(attribute, found, around, box)
        return stored

    def _run(self, given: dict[str, Any], box: Box) -> Any:
        try:
            return self.operator.function(given, *self.parameters)
        except Exception as error:
            what = f"operator {self.operator.name} failed on the block {box}"
            raise DataError(what, got=f"{type(error).__name__}: {error}") from error

    def _stored(self, attribute: Attribute, found: Any, around: Box, box: Box) -> dict[str, Any]:
        """The block of an attribute of what the function gave, checked and in its type, with its companion."""
        name, inside = attribute.name, box.slices(around.lo)
        if not isinstance(found, Mapping):
            found = {self.schema.attribute_names[0]: found} if len(self.schema.attributes) == 1 else {}
        if name not in found:
            what = f"operator {self.operator.name} gave no values of {name}"
            raise DataError(what, got=", ".join(map(str, found)) or "nothing", hint="Give a dictionary of arrays")
        values = self._shaped(np.asarray(found[name]), name, around, box)[inside]
        given = found.get(attribute.companion) if attribute.has_companion else None
        valid = None
        if given is not None:
            valid = self._shaped(np.asarray(given, bool), attribute.companion, around, box)[inside]
        fitted, valid = self._fit(values, attribute, valid, box)
        if not attribute.has_companion:
            return {name: fitted}
        return {name: fitted, attribute.companion: np.ones(box.shape, bool) if valid is None else valid}

    def _shaped(self, values: Any, name: str, around: Box, box: Box) -> Any:
        if values.shape == around.shape:
            return values
        what = f"operator {self.operator.name} gave an array of another shape than it got, for the block {box}"
        raise DataError(what, got=f"{values.shape} for {name}", hint=f"It must be {around.shape}, the halo included")

    def _fit(self, values: Any, attribute: Attribute, valid: Any, box: Box) -> tuple[Any, Any]:
        """Values in the attribute's type, and which are present; one that would become another value is refused."""
        kind = attribute.type.dtype
        if values.dtype == kind:
            return values, valid
        what = (
            f"operator {self.operator.name} gave values of {attribute.name} that {attribute.type} does not hold,"
            f" in the block {box}"
        )
        hint = f"""Declare what it gives, as in wr.operator(…, result="<{attribute.name}: float64>"), or round it"""
        if kind.kind not in "biu" or values.dtype.kind not in "biuf":
            plain = values.astype(np.int8) if values.dtype.kind == "b" else values
            try:
                return conform(plain, attribute, valid)
            except DataError as error:
                raise DataError(what, got=error.got, hint=hint) from None
        with np.errstate(invalid="ignore"):
            fitted = values.astype(kind)
        changed = fitted != values if valid is None else (fitted != values) & valid
        if changed.any():
            raise DataError(what, got=values[changed].flat[0], hint=hint)
        return fitted, valid
