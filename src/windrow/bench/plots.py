"""Drawing times by window width or what else grows, a panel for each table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

Curves = Mapping[str, Sequence[tuple[int, float]]]

_COLOURS = {"naive": "#b5473c", "incremental": "#d99a2b", "auto": "#3b7a57"}
_OTHERS = ("#4c6a92", "#8a6fa8", "#7f7f7f", "#3fa0a8", "#a0785a", "#c27ba0", "#5b8c2a")
_COLUMNS = 3


def draw_panels(panels: Mapping[tuple[str, str], Curves], title: str, path: Path) -> bool:
    """One panel a table, by its title and what seconds are drawn over, both logarithmic; False without matplotlib."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
        from matplotlib.ticker import NullFormatter, ScalarFormatter
    except ImportError:
        return False
    columns = min(_COLUMNS, len(panels))
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(5.2 * columns, 0.8 + 3.6 * rows), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title)
    for number, ((name, across), curves) in enumerate(panels.items(), 1):
        axes = figure.add_subplot(rows, columns, number)
        others = iter(_OTHERS * 2)
        for contender, points in curves.items():
            colour = _COLOURS.get(contender) or next(others)
            style = "-" if contender in _COLOURS else "--"
            axes.plot(*zip(*points, strict=True), style, marker="o", markersize=3, color=colour, label=contender)
        axes.set(xscale="log", yscale="log", xlabel=across, ylabel="seconds")
        axes.set_title(name, fontsize=9)
        axes.set_xticks(sorted({width for points in curves.values() for width, _ in points}))
        axes.xaxis.set_major_formatter(ScalarFormatter())
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.legend(fontsize=7)
    figure.savefig(path, dpi=100)
    return True
