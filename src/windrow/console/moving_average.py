"""A plain moving average along one dimension of a dense array, block by block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from windrow.model.box import Box
from windrow.model.labels import Labels
from windrow.model.schema import Attribute, Schema
from windrow.model.source import Blocks
from windrow.model.types import data_type
from windrow.storage.dense import DenseSnapshot


@dataclass(frozen=True)
class MovingAverage:
    """The mean of each cell and the ``width - 1`` before it along ``dimension``: a GridSource that workers read.

    At the array's start the mean is of the cells that there are.
    """

    snapshot: DenseSnapshot
    attribute: str
    dimension: str
    width: int

    @property
    def schema(self) -> Schema:
        return Schema(self.snapshot.schema.dimensions, (Attribute("avg", data_type("float64")),))

    @property
    def labels(self) -> Mapping[str, Labels]:
        return self.snapshot.labels

    def read(self, box: Box) -> Blocks:
        axis = self.schema.axis(self.dimension)
        before = [self.width - 1 if other == axis else 0 for other in range(box.ndim)]
        halo = box.dilate(before, [0] * box.ndim) & self.snapshot.box
        values = self.snapshot.read(halo, [self.attribute])[self.attribute]
        averaged = trailing_mean(np.moveaxis(values, axis, -1), self.width)
        inside = averaged[..., -box.shape[axis] :]
        return {"avg": np.moveaxis(inside, -1, axis)}


def trailing_mean(values: npt.NDArray[np.floating], width: int) -> npt.NDArray[np.float64]:
    """Means along the last axis of up to ``width`` values, each with those before it.

    The values of a window are always added in the same order, so that a mean does not depend on how the array was cut.
    """
    length = values.shape[-1]
    total = np.zeros(values.shape, np.float64)
    for back in range(min(width, length) - 1, -1, -1):
        total[..., back:] += values[..., : length - back]
    counts = np.minimum(np.arange(1, length + 1), width)
    return total / counts
