"""What aggregates take and give: columns of values, and results, either with values that are missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from windrow.model.types import DataType

if TYPE_CHECKING:
    import pyarrow as pa

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]

PLACES = "\0places"
"""The column that has each cell's place in the order of coordinates, where that is not the order of the block."""


@dataclass(frozen=True)
class Column:
    """An attribute's values in a block; NaN in floats, and False in ``present``, is missing."""

    values: Array
    present: Mask | None = None


@dataclass(frozen=True)
class Result:
    """An aggregate's values, and where they are missing, whatever stands there; NaN is missing without being named."""

    values: Array
    missing: Mask | None

    def filled(self, out: Array | None = None) -> Array:
        """The values with NaN for missing ones; whole numbers stay whole if nothing is missing.

        Floats that are in ``out`` stay there.
        """
        if self.missing is None:
            return self.values
        if self.values.dtype.kind == "M":
            return np.where(self.missing, np.datetime64("NaT", "us"), self.values)
        if self.values.dtype.kind == "T":
            objects: Array = self.values.astype(object)
            objects[self.missing] = None
            return objects
        kind = self.values.dtype if self.values.dtype.kind == "f" else np.dtype(np.float64)
        filled = self.values if self.values is out and kind == out.dtype else self.values.astype(kind)
        filled[self.missing] = np.nan
        return filled

    def to_arrow(self, kind: DataType) -> pa.Array:
        """The values as a column of a table, null where they are missing."""
        from windrow.model.arrow import block_to_arrow

        values = self.values.astype(kind.dtype, copy=False)
        return block_to_arrow(values, None if self.missing is None else ~self.missing)
