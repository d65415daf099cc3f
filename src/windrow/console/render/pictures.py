"""What a plot shows, taken from a result: the values of a map, a line or a histogram."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.api.plotting import KINDS, chosen_attribute, last_of_further, plain_numbers, reads_upward
from windrow.console.render.values import texts
from windrow.errors import DataError

_ACROSS = ("lon", "longitude", "x", "ra")
_FINEST = 512
"""Cells a side of a map of sparse cells; a terminal has fewer."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Picture:
    """Numbers to draw: a map's from top to bottom and left to right, a line's or histogram's one after the other.

    ``across`` and ``down`` name the dimensions and their first and last cells.
    """

    kind: str
    title: str
    values: Floats
    across: tuple[str, str, str] = ("", "", "")
    down: tuple[str, str, str] = ("", "", "")


def picture(result: Any, attribute: str | None, kind: str | None, dimensions: tuple[str, ...]) -> Picture:
    """One attribute of a result, as the kind that is asked for or the one that fits."""
    if kind is not None and kind not in KINDS:
        raise DataError("a plot is one of " + ", ".join(KINDS), got=repr(kind))
    found = (
        _of_grid(result, attribute, kind)
        if hasattr(result, "data_vars")
        else _of_cells(result, attribute, kind, dimensions)
    )
    if not np.isfinite(found.values).any():
        raise DataError("there is nothing to plot", got="no present values")
    return found


def _of_grid(result: Any, attribute: str | None, kind: str | None) -> Picture:
    name = chosen_attribute(attribute, [name for name in result.data_vars if not str(name).endswith("__valid")])
    variable = result[name]
    if variable.size == 0:
        raise DataError("there is nothing to plot", got="a result without cells")
    numbers = plain_numbers(variable.values)
    if f"{name}__valid" in result:
        numbers = np.where(result[f"{name}__valid"].values, numbers, np.nan)
    variable = variable.copy(data=numbers)
    kind = kind or ("map" if sum(extent > 1 for extent in variable.shape) > 1 else "line")
    if kind == "histogram":
        return Picture(kind, name, numbers.reshape(-1))
    shown, fixed = last_of_further(variable, 2 if kind == "map" else 1)
    title = ", ".join([name, *fixed])
    if kind == "line":
        return Picture(kind, title, shown.values.reshape(-1), _ends(shown, shown.dims[0] if shown.dims else None))
    return _map(shown if shown.ndim == 2 else shown.expand_dims("row", 0) if shown.ndim == 1 else _square(shown), title)


def _square(single: Any) -> Any:
    return single.expand_dims(("row", "column"))


def _map(shown: Any, title: str) -> Picture:
    if str(shown.dims[0]) in _ACROSS:
        shown = shown.transpose()
    down, across = shown.dims
    ends, values = _ends(shown, down), shown.values
    labels = shown[down].values if down in shown.coords else None
    if labels is not None and reads_upward(labels, str(down)) and labels[-1] > labels[0]:
        values, ends = values[::-1], (ends[0], ends[2], ends[1])
    return Picture("map", title, values, _ends(shown, across), ends)


def _ends(shown: Any, dimension: Any) -> tuple[str, str, str]:
    """A dimension's name, and what its first and last cell are called."""
    if dimension is None or dimension not in shown.coords:
        return ("" if dimension is None else str(dimension), "", "")
    ends = shown[dimension].values[[0, -1]]
    first, last = texts(np.asarray(ends)) if ends.dtype.kind in "iufM" else map(str, ends)
    return str(dimension), first, last


def _of_cells(cells: Any, attribute: str | None, kind: str | None, dimensions: tuple[str, ...]) -> Picture:
    places = [name for name in dimensions if name in cells.column_names]
    name = chosen_attribute(attribute, [column for column in cells.column_names if column not in places])
    if cells.num_rows == 0:
        raise DataError("there is nothing to plot", got="no cells")
    numbers = plain_numbers(cells.column(name).to_numpy(zero_copy_only=False))
    kind = kind or ("map" if len(places) > 1 else "line")
    if kind == "histogram" or not places:
        return Picture("histogram" if kind == "histogram" else "line", name, numbers)
    if kind == "line" or len(places) < 2:
        order = np.argsort(cells.column(places[-1]).to_numpy(), kind="stable")
        at = cells.column(places[-1]).to_numpy()[order]
        return Picture("line", name, numbers[order], (places[-1], str(at[0]), str(at[-1])))
    down, across = places[-2:]
    if down in _ACROSS:
        down, across = across, down
    return _average_on_grid(name, numbers, *((side, cells.column(side).to_numpy()) for side in (down, across)))


def _average_on_grid(name: str, numbers: Floats, down: tuple[str, Any], across: tuple[str, Any]) -> Picture:
    """Cells on a grid that holds all of them, averaged where several fall on one place."""
    sides, places = [], []
    for side, numbers_at in (down, across):
        lo, hi = int(numbers_at.min()), int(numbers_at.max())
        bins = min(_FINEST, hi - lo + 1)
        places.append((numbers_at - lo) * bins // (hi - lo + 1))
        sides.append((side, str(lo), str(hi), bins))
    shape = (sides[0][3], sides[1][3])
    flat = places[0] * shape[1] + places[1]
    present = np.isfinite(numbers)
    size = shape[0] * shape[1]
    sums = np.bincount(flat[present], numbers[present], size)
    counts = np.bincount(flat[present], minlength=size)
    with np.errstate(invalid="ignore", divide="ignore"):
        values = (sums / counts).reshape(shape)
    if down[0].lower() in ("lat", "latitude", "y", "dec"):
        return Picture("map", name, values[::-1], sides[1][:3], (sides[0][0], sides[0][2], sides[0][1]))
    return Picture("map", name, values, sides[1][:3], sides[0][:3])
