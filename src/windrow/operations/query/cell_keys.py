"""The groups that cells of a table are in: by their coordinates, by parts of labels, by values of attributes."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.plan.grouping.label_parts import Part
from windrow.plan.grouping.values import ValuePart

Int64Array = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def cell_keys(
    table: pa.Table, dimensions: Sequence[str], axes: Sequence[int], parts: Sequence[Part | None]
) -> tuple[list[Int64Array], Mask | None]:
    """The coordinates of the groups of those cells that are in one, and which cells these are; None: all are."""
    found, there = [], None
    for axis, part in itertools.zip_longest(axes, parts):
        if isinstance(part, ValuePart):
            found.append(part.codes(table.column(part.name)))
            there = found[-1] >= 0 if there is None else there & (found[-1] >= 0)
        else:
            cells = table.column(dimensions[axis]).to_numpy()
            found.append(cells if part is None else part.numbers(cells))
    if there is not None and there.all():
        there = None
    keys = []
    for numbers, part in itertools.zip_longest(found, parts):
        chosen = numbers if there is None else numbers[there]
        keys.append(part.places(chosen) if isinstance(part, ValuePart) else chosen)
    return keys, there
