"""Neighbourhoods by shape on NumPy arrays, with no database: ``wr.sliding(values, "median", shape=wr.L2(3))``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.aggregates.aggregate import Aggregate
from windrow.aggregates.columns import Column
from windrow.aggregates.shape_blocks import ShapeRequest, evaluate_shape
from windrow.errors import SchemaError
from windrow.kernels.choose import check_strategy
from windrow.kernels.shapes.strategies import NAMES
from windrow.model.box import Box
from windrow.model.shape import Shape

Array = npt.NDArray[Any]


def axis_names(ndim: int) -> tuple[str, ...]:
    """What shapes call the axes of a NumPy array: axis0, axis1 and so on."""
    return tuple(f"axis{number}" for number in range(ndim))


def shape_request(
    shape: object, cells: tuple[int, ...], wraps: Sequence[bool], steps: Sequence[int], min_count: int, method: str,
    strategy: str,
) -> ShapeRequest:  # fmt: skip
    """The shape on an array of so many cells; ``wraps`` makes further axes periodic."""
    if not isinstance(shape, Shape):
        hint = "As in shape=wr.L2(3), or wr.L1(1, on=('axis0', 'axis1'))"
        raise SchemaError("the shape must be one of windrow's", got=repr(shape), hint=hint)
    check_strategy(method, strategy, NAMES)
    return _bound(shape, cells, tuple(map(bool, wraps)), tuple(steps), min_count, method, strategy)


@lru_cache(maxsize=64)
def _bound(
    shape: Shape, cells: tuple[int, ...], wraps: tuple[bool, ...], steps: tuple[int, ...], min_count: int, method: str,
    strategy: str,
) -> ShapeRequest:  # fmt: skip
    names = axis_names(len(cells))
    periodic = shape.wrap(*(name for name, wraps_here in zip(names, wraps, strict=True) if wraps_here))
    bounds = Box.at([0] * len(cells), cells)
    return ShapeRequest(periodic.bind(names, bounds, coordinates={}), bounds, steps, (), min_count, method, strategy)


def shaped(request: ShapeRequest, columns: dict[str, Column], aggregate: Aggregate, out: Array | None) -> Array:
    """The aggregate around every cell at which the request evaluates, NaN for missing."""
    found = evaluate_shape(request, columns, request.bounds, request.results, {"result": aggregate}, out)
    return np.asarray(found["result"].filled(out))
