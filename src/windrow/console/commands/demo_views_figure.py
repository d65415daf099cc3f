"""The picture that the demos of views draw: a map of the view, and the time of each batch beside that of a rebuild."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windrow.errors import StoreError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PATCHED, REBUILT = "#2f6f9f", "#c2452d"


@dataclass(frozen=True)
class Map:
    """The cells of a view, with a count ``n``, and the two dimensions that they are drawn in."""

    title: str
    axes: tuple[str, str]
    cells: pa.Table


@dataclass(frozen=True)
class Batches:
    """Seconds of each batch with its view, and of two rebuilds: before the first batch, and after the last."""

    name: str
    seconds: Sequence[float]
    rebuilds: tuple[float, float]


def draw(map: Map, batches: Batches, path: Path) -> None:
    """Write the picture."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (top, bottom) = pyplot.subplots(
        2, 1, figsize=(9, 8), height_ratios=(1.5, 1), layout="constrained", facecolor="white"
    )
    try:
        points = _draw_map(top, map)
        figure.colorbar(points, ax=top, label="cells nearby", shrink=0.92, pad=0.015)
        _draw_batches(bottom, batches)
        figure.savefig(path, dpi=100, pil_kwargs={"optimize": True})
    except OSError as error:
        raise StoreError(f"cannot write {path}", got=error.strerror or error) from error
    finally:
        pyplot.close(figure)


def _draw_map(axes: Axes, map: Map) -> Any:
    from matplotlib.colors import LogNorm

    across, along = (map.cells.column(name).to_numpy() for name in map.axes)
    count = map.cells.column("n").to_numpy()
    order = np.argsort(count, kind="stable")  # crowded ones last, on top of the others
    norm = LogNorm(1, max(2, int(count.max(initial=2))))
    points = axes.scatter(
        across[order], along[order], c=count[order], s=2, cmap="viridis", norm=norm, linewidths=0, rasterized=True
    )
    axes.set_title(map.title, loc="left", fontweight="bold")
    axes.set_xlabel(map.axes[0])
    axes.set_ylabel(map.axes[1])
    return points


def _draw_batches(axes: Axes, batches: Batches) -> None:
    numbers = np.arange(1, len(batches.seconds) + 1)
    axes.bar(numbers, batches.seconds, color=PATCHED, label=f"a {batches.name} inserted, the view with it")
    ends = (0.5, len(batches.seconds) + 0.5)
    axes.plot(ends, batches.rebuilds, "o--", color=REBUILT, label="all of the view computed again")
    axes.set_title("Patched, not rebuilt", loc="left", fontweight="bold")
    axes.set_xlabel(batches.name)
    axes.set_ylabel("seconds")
    axes.set_ylim(0)
    axes.set_xticks(numbers)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=9)
