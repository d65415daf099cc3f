"""Small pictures in a terminal: maps of half blocks, lines of dots, histograms of bars."""

from __future__ import annotations

import itertools
import warnings

import numpy as np

from windrow.console.render.pictures import Floats, Picture
from windrow.console.render.values import display_width, number_text

HEIGHT = 16
"""Lines of text that a picture takes, its title and its scale not counted."""

_SHADES = " ░▒▓█"
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_BINS = 12
_LARGEST_CELL = 8
"""Half blocks a side of one cell of a small map."""
# From dark blue to light yellow, of the 256 colours that terminals share; no two need red told from green.
_SCALE = (17, 18, 19, 25, 31, 37, 36, 35, 71, 107, 143, 179, 185, 221, 227, 229)


def preview(shown: Picture, width: int, colours: bool) -> list[str]:
    """The lines of a picture that fits ``width``."""
    width = max(20, width)
    if shown.kind == "map":
        return _map(shown, width, colours)
    return _line(shown, width) if shown.kind == "line" else _histogram(shown, width)


def _map(shown: Picture, width: int, colours: bool) -> list[str]:
    room = width - max(map(display_width, shown.down[1:])) - 2
    values = _average(shown.values, *_size(shown.values.shape, room))
    low, high = _range(values)
    share = (values - low) / (high - low) if high > low else np.where(np.isfinite(values), 0.5, np.nan)
    rows = _draw_coloured(share) if colours else _draw_shaded(share)
    first, last = shown.down[1], shown.down[2]
    side = max(display_width(first), display_width(last))
    ends = [first, *[""] * max(0, len(rows) - 2), last] if len(rows) > 1 else [first]
    lines = [f"{end:>{side}} {row}" for end, row in zip(ends, rows, strict=True)]
    foot = f"{shown.across[1]} {shown.across[0]} {shown.across[2]}".strip()
    scale = f"{shown.title}: {number_text(low)} to {number_text(high)}"
    return [scale, *lines, f"{'':>{side}} {foot}".rstrip()]


def _size(shape: tuple[int, ...], room: int) -> tuple[int, int]:
    """Rows and columns of half blocks, which are square: cells keep their shape, and small maps are made larger."""
    rows, columns = shape
    scale = min(room / columns, 2 * HEIGHT / rows)
    scale = min(_LARGEST_CELL, int(scale)) if scale >= 1 else scale
    high = max(2, round(rows * scale))
    return high + high % 2, max(1, round(columns * scale))


def _average(values: Floats, rows: int, columns: int) -> Floats:
    """The values on a grid of another size: means where it is coarser, repeated where it is finer."""
    for axis, size in ((0, rows), (1, columns)):
        extent = values.shape[axis]
        if size >= extent:
            values = np.repeat(values, 1, axis).take(np.arange(size) * extent // size, axis)
            continue
        cuts = np.arange(size + 1) * extent // size
        parts = [values.take(np.arange(cuts[k], cuts[k + 1]), axis) for k in range(size)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a part in which everything is missing has no mean
            values = np.stack([np.nanmean(np.where(np.isfinite(part), part, np.nan), axis) for part in parts], axis)
    return values


def _range(values: Floats) -> tuple[float, float]:
    present = values[np.isfinite(values)]
    return float(present.min()), float(present.max())


def _draw_coloured(share: Floats) -> list[str]:
    """Two rows of cells in each line: the upper half of a block in one colour, the ground in the other."""
    lines = []
    for upper, lower in zip(share[::2], share[1::2], strict=True):
        signs = []
        for above, below in zip(upper, lower, strict=True):
            fore = f"38;5;{_colour(above)}" if np.isfinite(above) else "39"
            back = f"48;5;{_colour(below)}" if np.isfinite(below) else "49"
            sign = "▀" if np.isfinite(above) else " "
            signs.append(f"\x1b[{fore};{back}m{sign}")
        lines.append("".join(signs) + "\x1b[0m")
    return lines


def _colour(share: float) -> int:
    return _SCALE[min(len(_SCALE) - 1, max(0, int(share * len(_SCALE))))]


def _draw_shaded(share: Floats) -> list[str]:
    lines = []
    for upper, lower in zip(share[::2], share[1::2], strict=True):
        both = np.stack([upper, lower])
        means = np.where(np.isfinite(both), both, 0).sum(0) / np.maximum(1, np.isfinite(both).sum(0))
        steps = np.clip((means * (len(_SHADES) - 1)).astype(int) + 1, 1, len(_SHADES) - 1)
        there = np.isfinite(both).any(0)
        lines.append("".join(_SHADES[step] if seen else " " for step, seen in zip(steps, there, strict=True)))
    return lines


def _line(shown: Picture, width: int) -> list[str]:
    """Dots in a grid of two by four for each sign; every value of the line has its dot."""
    low, high = _range(shown.values)
    scale = [number_text(high), number_text(low)]
    side = max(map(len, scale))
    columns, rows = 2 * (width - side - 1), 4 * HEIGHT
    places = np.arange(len(shown.values)) * (columns - 1) // max(1, len(shown.values) - 1)
    present = np.isfinite(shown.values)
    heights = np.zeros(len(shown.values), int)
    if high > low:
        heights[present] = np.round((shown.values[present] - low) / (high - low) * (rows - 1)).astype(int)
    signs = np.zeros((HEIGHT, columns // 2), int)
    for place, height in _steps(places, heights, present):
        row = rows - 1 - height
        signs[row // 4, place // 2] |= _DOTS[row % 4][place % 2]
    ends = [scale[0], *[""] * (HEIGHT - 2), scale[1]]
    lines = [
        f"{end:>{side}} {''.join(chr(0x2800 + sign) for sign in row)}".rstrip("\u2800 ")
        for end, row in zip(ends, signs.tolist(), strict=True)
    ]
    foot = f"{shown.across[1]} {shown.across[0]} {shown.across[2]}".strip()
    return [shown.title, *lines, f"{'':>{side}} {foot}".rstrip()]


def _steps(places: np.ndarray, heights: np.ndarray, present: np.ndarray) -> list[tuple[int, int]]:
    """The dots of a line from each value to the next one, where both are there."""
    dots: list[tuple[int, int]] = []
    for number in np.flatnonzero(present).tolist():
        here = (int(places[number]), int(heights[number]))
        dots.append(here)
        if number + 1 < len(present) and present[number + 1]:
            there = (int(places[number + 1]), int(heights[number + 1]))
            count = max(abs(there[0] - here[0]), abs(there[1] - here[1]))
            for step in range(1, count):
                dots.append(
                    (here[0] + (there[0] - here[0]) * step // count, here[1] + (there[1] - here[1]) * step // count)
                )
    return dots


def _histogram(shown: Picture, width: int) -> list[str]:
    present = shown.values[np.isfinite(shown.values)]
    counts, edges = np.histogram(present, bins=_BINS)
    names = [f"{number_text(float(lo))} to {number_text(float(hi))}" for lo, hi in itertools.pairwise(edges)]
    side, most = max(map(len, names)), max(1, int(counts.max()))
    room = max(5, width - side - len(f"{most:,}") - 4)
    lines = [shown.title]
    for name, count in zip(names, counts.tolist(), strict=True):
        eighths = round(count / most * room * 8)
        bar = "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()
        lines.append(f"{name:>{side}} │{bar} {count:,}")
    return lines
