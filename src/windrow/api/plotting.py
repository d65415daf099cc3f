"""Pictures of results: maps, lines and histograms, drawn with matplotlib into a file."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from windrow.errors import DataError, MachineError, UnknownNameError, nearest

if TYPE_CHECKING:
    import pyarrow as pa
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from windrow.api.query import Query

KINDS = ("map", "line", "histogram")
_ACROSS = ("lon", "longitude", "x", "ra")
"""Dimensions that people expect from left to right."""
_FINEST = 2000
"""Cells a side that a picture can show; more are thinned out."""


@dataclass(frozen=True)
class Plotting:
    """A plot that was asked for: of what, and into which file, if into one."""

    query: Query
    path: str | None = None
    attribute: str | None = None
    kind: str | None = None


def require_matplotlib() -> None:
    if importlib.util.find_spec("matplotlib") is None:
        raise MachineError("a picture needs matplotlib", got="none", hint="pip install 'windrow[plot]'")


def plot(
    result: xr.Dataset | pa.Table,
    path: str | Path,
    attribute: str | None = None,
    kind: str | None = None,
    dimensions: tuple[str, ...] = (),
) -> Path:
    """Draw one attribute of a result: two dimensions as a map, one as a line, any as a histogram.

    Of further dimensions the last cell is shown, and the title says which. ``dimensions`` names those of a table.
    """
    require_matplotlib()
    if kind is not None and kind not in KINDS:
        raise DataError("a plot is one of " + ", ".join(KINDS), got=repr(kind))
    target = Path(path)
    if not target.parent.is_dir():
        raise DataError("there is no such directory", got=str(target.parent), hint="Create it, or give another path")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    if hasattr(result, "data_vars"):
        _draw_dense(figure, axes, result, attribute, kind)
    else:
        _draw_cells(figure, axes, result, attribute, kind, dimensions)
    try:
        figure.savefig(target, dpi=120)
    except ValueError as error:
        raise DataError("this kind of picture cannot be written", got=target.suffix, hint=str(error)[:200]) from None
    except OSError as error:
        raise DataError("the picture cannot be written", got=str(error)) from None
    return target


def _draw_dense(figure: Figure, axes: Axes, result: Any, attribute: str | None, kind: str | None) -> None:
    drawn = [name for name in result.data_vars if not str(name).endswith("__valid")]
    name = chosen_attribute(attribute, drawn)
    variable = result[name]
    if f"{name}__valid" in result:
        variable = variable.where(result[f"{name}__valid"])
    if variable.size == 0:
        raise DataError("there is nothing to plot", got="a result without cells")
    kind = kind or ("map" if sum(n > 1 for n in variable.shape) > 1 else "line")
    if kind == "histogram":
        _histogram(axes, name, np.asarray(variable.values).reshape(-1))
        return
    wide = 2 if kind == "map" else 1
    shown, fixed = last_of_further(variable, wide)
    axes.set_title(", ".join([name, *fixed]))
    if wide == 1:
        _line(axes, shown)
    else:
        _map(figure, axes, shown)


def chosen_attribute(attribute: str | None, names: list[Any]) -> str:
    """The attribute that is asked for, or the first there is."""
    if attribute is None:
        if not names:
            raise DataError("there is nothing to plot", got="no attributes")
        return str(names[0])
    if attribute not in names:
        raise UnknownNameError("no such attribute", got=repr(attribute), hint=nearest(attribute, map(str, names)))
    return attribute


def last_of_further(variable: Any, wide: int) -> tuple[Any, list[str]]:
    """The variable in ``wide`` dimensions, the longest ones; at the last cell of all others."""
    by_length = sorted(variable.dims, key=lambda name: (variable.sizes[name] > 1, name in _ACROSS), reverse=True)
    kept = [name for name in variable.dims if name in by_length[:wide]]
    fixed = []
    for name in variable.dims:
        if name not in kept:
            label = variable[name].values[-1]
            fixed.append(f"{name} {np.datetime_as_string(label, 'm') if label.dtype.kind == 'M' else label}")
            variable = variable.isel({name: -1})
    return variable, fixed


def plain_numbers(values: Any) -> Any:
    """Values as floats; what is no number cannot be drawn."""
    array = np.asarray(values)
    if array.dtype.kind in "biuf":
        return array.astype(np.float64)
    raise DataError("only numbers can be plotted", got=str(array.dtype))


def _line(axes: Axes, variable: Any) -> None:
    if variable.ndim == 0:
        variable = variable.expand_dims("value")
    name = variable.dims[0]
    places = _unrolled(variable[name].values) if name in variable.coords else np.arange(variable.size)
    axes.plot(places, plain_numbers(variable.values), marker="." if variable.size < 60 else None, linewidth=1)
    axes.set_xlabel(str(name))


def _map(figure: Figure, axes: Axes, variable: Any) -> None:
    if variable.ndim < 2:
        variable = variable.expand_dims("row")
    down, across = variable.dims
    if str(down) in _ACROSS:
        variable = variable.transpose()
        down, across = across, down
    variable = variable[tuple(slice(None, None, max(1, -(-n // _FINEST))) for n in variable.shape)]
    sides = [variable[d].values if d in variable.coords else np.arange(variable.sizes[d]) for d in (across, down)]
    sides = [np.arange(len(side)) if side.dtype.kind not in "iufM" else _unrolled(side) for side in sides]
    mesh = axes.pcolormesh(*sides, np.ma.masked_invalid(plain_numbers(variable.values)), shading="nearest")
    figure.colorbar(mesh, ax=axes)
    axes.set_xlabel(str(across))
    axes.set_ylabel(str(down))
    if not reads_upward(sides[1], str(down)):
        axes.invert_yaxis()


def _unrolled(side: Any) -> Any:
    """Longitudes that go round on one line: 330, 0, 30 are drawn at -30, 0, 30."""
    falls = np.flatnonzero(side[1:] < side[:-1])
    if side.dtype.kind not in "iuf" or len(falls) != 1:
        return side
    moved = np.where(np.arange(len(side)) <= falls[0], side - 360, side)
    return moved if np.all(np.diff(moved) > 0) else side


def reads_upward(labels: Any, name: str) -> bool:
    """Latitudes and the like grow upward; the rows of a matrix are numbered downward."""
    return name.lower() in ("lat", "latitude", "y", "dec") or labels.dtype.kind in "fM"


def _histogram(axes: Axes, name: str, values: Any) -> None:
    numbers = plain_numbers(values)
    numbers = numbers[np.isfinite(numbers)]
    if numbers.size == 0:
        raise DataError("there is nothing to plot", got="no present values")
    axes.hist(numbers, bins=min(100, max(10, int(np.sqrt(numbers.size)))))
    axes.set_xlabel(name)
    axes.set_ylabel("cells")
    axes.set_title(name)


def _draw_cells(
    figure: Figure, axes: Axes, cells: Any, attribute: str | None, kind: str | None, dimensions: tuple[str, ...]
) -> None:
    name = chosen_attribute(attribute, [column for column in cells.column_names if column not in dimensions])
    columns: Mapping[str, Any] = {c: cells.column(c).to_numpy(zero_copy_only=False) for c in (*dimensions, name)}
    if cells.num_rows == 0:
        raise DataError("there is nothing to plot", got="no cells")
    kind = kind or ("map" if len(dimensions) > 1 else "line")
    if kind == "histogram":
        _histogram(axes, name, columns[name])
        return
    axes.set_title(name)
    values = plain_numbers(columns[name])
    if kind == "line":
        axes.plot(columns[dimensions[-1]], values, ".", markersize=3)
        axes.set_xlabel(dimensions[-1])
        return
    down, across = dimensions[-2:]
    if down in _ACROSS:
        down, across = across, down
    drawn = axes.scatter(columns[across], columns[down], c=values, s=4, linewidths=0)
    figure.colorbar(drawn, ax=axes)
    axes.set_xlabel(across)
    axes.set_ylabel(down)


def plot_loads(loads: pa.Table, path: str | Path, name: str) -> Path:
    """Draw the bytes that each node had to read, as planned and as measured, beside those of the baseline's plan."""
    require_matplotlib()
    if not loads.num_rows:
        raise DataError(f"no batch of view {name} was shared out to several nodes", hint="See show history")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    nodes = loads.column("node").to_pylist()
    measured = np.array(loads.column("read_bytes")) + np.array(loads.column("received_bytes"))
    bars = {
        "baseline, planned": np.array(loads.column("baseline_bytes")),
        "planned": np.array(loads.column("planned_bytes")),
        "measured": measured,
    }
    for number, (label, sizes) in enumerate(bars.items()):
        axes.bar(np.arange(len(nodes)) + 0.27 * (number - 1), sizes / 1e6, 0.25, label=label)
    axes.set_xticks(np.arange(len(nodes)), [f"executor {node}" for node in nodes])
    axes.set_ylabel("MB received")
    axes.set_title(f"Load of each node at the last batch of {name}")
    axes.legend()
    target = Path(path)
    try:
        figure.savefig(target, dpi=120)
    except (OSError, ValueError) as error:
        raise DataError("the picture cannot be written", got=f"{target}: {error}") from None
    return target
