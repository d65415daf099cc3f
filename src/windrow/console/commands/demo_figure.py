"""The picture that the demo draws: a map of one day, and the year at a few places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from windrow.errors import StoreError

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

FREEZING = 273.15
COLOURS = ("#c2452d", "#2f6f9f", "#4b8b3b")


@dataclass(frozen=True)
class Course:
    """The year at one place."""

    lon: float
    lat: float
    values: xr.DataArray
    windows: xr.Dataset
    """Mean (avg) and percentiles (p10, p90) of the days before."""


def draw(day: xr.DataArray, courses: Sequence[Course], width: int, path: Path) -> None:
    """Write the picture; ``day`` is lon × lat × 1 in kelvin."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    with pyplot.rc_context({"date.converter": "concise"}):
        figure, (top, bottom) = pyplot.subplots(
            2, 1, figsize=(9, 8.6), height_ratios=(1.15, 1), layout="constrained", facecolor="white"
        )
        try:
            image = _draw_map(top, day, courses)
            figure.colorbar(image, ax=top, label="temperature, °C", shrink=0.92, pad=0.015)
            _draw_courses(bottom, courses, width)
            figure.savefig(path, dpi=100, pil_kwargs={"optimize": True})
        except OSError as error:
            raise StoreError(f"cannot write {path}", got=error.strerror or error) from error
        finally:
            pyplot.close(figure)


def _draw_map(axes: Axes, day: xr.DataArray, courses: Sequence[Course]) -> Any:
    from matplotlib.colors import TwoSlopeNorm

    celsius = day.isel(time=0).transpose("lat", "lon") - FREEZING
    scale = TwoSlopeNorm(vmin=-60, vcenter=0, vmax=40)
    image = axes.pcolormesh(
        celsius.lon, celsius.lat, celsius.values, cmap="RdYlBu_r", norm=scale, shading="nearest", rasterized=True
    )
    levels = [level for level in (-30, -15, 0, 15, 30) if celsius.min() < level < celsius.max()]
    if min(celsius.shape) > 1 and levels:
        lines = axes.contour(
            celsius.lon, celsius.lat, celsius.values, levels=levels, colors="black", linewidths=0.5, alpha=0.55
        )
        axes.clabel(lines, fmt="%d°", fontsize=7)
    for course, colour in zip(courses, COLOURS, strict=False):
        axes.plot(course.lon, course.lat, "o", color=colour, markeredgecolor="white", markersize=8)
    axes.set_title(f"A made-up temperature field on {_date(day.time.values[0])}", loc="left", fontweight="bold")
    axes.set_xlabel("longitude, degrees east")
    axes.set_ylabel("latitude, degrees north")
    axes.set_xticks(range(0, 361, 60))
    axes.set_yticks(range(-90, 91, 30))
    axes.set_xlim(0, 360)
    axes.set_ylim(-90, 90)
    return image


def _draw_courses(axes: Axes, courses: Sequence[Course], width: int) -> None:
    for course, colour in zip(courses, COLOURS, strict=False):
        times = course.values.time.values
        low, mean, high = (course.windows[name].values - FREEZING for name in ("p10", "avg", "p90"))
        axes.fill_between(times, low, high, color=colour, linewidth=0, alpha=0.18)
        axes.plot(times, course.values.values - FREEZING, color=colour, linewidth=0.7, alpha=0.45)
        axes.plot(times, mean, color=colour, linewidth=2.2, label=_place(course.lat, course.lon))
    title = f"Each day (thin), mean and 10th to 90th percentile of the last {width} days"
    axes.set_title(title, loc="left", fontweight="bold")
    axes.set_ylabel("temperature, °C")
    axes.set_xlabel("date")
    axes.grid(axis="y", color="#dddddd", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.margins(x=0.01)
    axes.legend(frameon=False, ncols=3, loc="lower center", fontsize=9)


def _date(moment: Any) -> str:
    return str(np.datetime_as_string(moment, unit="D"))


def _place(lat: float, lon: float) -> str:
    east = (lon + 180) % 360 - 180
    return f"{abs(lat):g}° {'N' if lat >= 0 else 'S'}, {abs(east):g}° {'E' if east >= 0 else 'W'}"
