"""windrow's side of the race in memory: from coordinates to the results of every cell, in the order they are given.

The kernels are those of queries over stored arrays; sections that read from the store go through the public names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.bench.joins.race import Answer
from windrow.kernels.sparse.bands import Bands, Reduction, count_bands, reduce_several
from windrow.kernels.sparse.keys import KeySpace, key_space, unique_keys
from windrow.kernels.sparse.sorting import sort_keys
from windrow.model.box import Box
from windrow.model.offset_runs import KeyRuns
from windrow.model.shape import Shape

Array = npt.NDArray[Any]
Int64Array = npt.NDArray[np.int64]
_EVERY = np.zeros(0, np.int64)


def neighbours(columns: Mapping[str, Int64Array], shape: Shape, values: Array | None = None) -> Answer:
    """How many cells lie in a shape around each cell, and the sum of their values."""
    ends = [(int(column.min()), int(column.max())) for column in columns.values()]
    box = Box(tuple(lo for lo, _ in ends), tuple(hi for _, hi in ends))
    runs = shape.bind(tuple(columns), box).key_runs()
    coordinates = list(columns.values())
    searched = [coordinates[axis] for axis in runs.axes]
    space = space_of(box, runs)
    ordered, order = sort_keys(space.keys(searched), space.bits)
    first, last = space.differences(runs.leading, runs.first, runs.last)
    if len(runs.axes) < len(coordinates):
        found = _reduce(ordered, order, first, last, values)
    else:
        found = _of_cells(ordered, order, first, last, values)
    return found.scattered(order)


def space_of(box: Box, runs: KeyRuns) -> KeySpace:
    """Keys for the cells of a box, with room for a shape around them."""
    lows = [*runs.leading.min(axis=0).tolist(), int(runs.first.min())]
    highs = [*runs.leading.max(axis=0).tolist(), int(runs.last.max())]
    before, after = [max(0, -low) for low in lows], [max(0, high) for high in highs]
    space = key_space([box.lo[axis] for axis in runs.axes], [box.hi[axis] for axis in runs.axes], before, after)
    assert space is not None, "the benchmark's arrays fit into 62 bits"
    return space


def _of_cells(
    ordered: Int64Array, order: Int64Array, first: Int64Array, last: Int64Array, values: Array | None
) -> Answer:
    bands = Bands(ordered, ordered, first, last, _EVERY)
    if values is None:
        return Answer(count_bands(ordered, bands))
    (found,) = reduce_several([Reduction("sum", values[order])], ordered, bands)
    return Answer(_present(found.counts), found.reals)


def _reduce(
    ordered: Int64Array, order: Int64Array, first: Int64Array, last: Int64Array, values: Array | None
) -> Answer:
    """Cells that agree in all dimensions that the shape limits have one result: they are joined as one."""
    keys, starts = unique_keys(ordered)
    sizes = np.diff(starts)
    reductions = [Reduction("sum", sizes)]
    if values is not None:
        reductions.append(Reduction("sum", np.add.reduceat(values[order], starts[:-1])))
    found = reduce_several(reductions, keys, Bands(keys, keys, first, last, _EVERY))
    counts = np.repeat(found[0].exact, sizes)
    return Answer(counts, None if values is None else np.repeat(found[1].reals, sizes))


def _present(counts: Int64Array | None) -> Int64Array:
    assert counts is not None
    return counts
