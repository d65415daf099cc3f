"""Results as text: matrices with their dimensions as headings, and tables with a column for everything."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from windrow.console.render.values import display_width, on_points, pad, shorten

_GAP = "  "
_NARROWEST = 12
"""Columns of a text that is cut to make room for others."""

Style = Literal["heading", "rule", "plain"]


@dataclass(frozen=True)
class Line:
    text: str
    style: Style = "plain"


@dataclass(frozen=True)
class Axis:
    """Cells along one dimension: their numbers, and their labels where it has any."""

    name: str
    numbers: Sequence[str]
    labels: Sequence[str] | None = None


@dataclass(frozen=True)
class Column:
    """A column of a table. Numbers stand on the right; a column of labels has no heading of its own."""

    name: str
    texts: Sequence[str]
    right: bool = False


@dataclass(frozen=True)
class Laid:
    """Lines, and how many of the columns that were given they hold."""

    lines: tuple[Line, ...]
    columns: int


def matrix(down: Axis, across: Axis, cells: Sequence[Sequence[str]], width: int | None) -> Laid:
    """Rows and columns of cells; those on the right that do not fit ``width`` are left out."""
    aligned = [on_points([row[number] for row in cells]) for number in range(len(across.numbers))]
    heads = [[number] for number in across.numbers]
    if across.labels is not None:
        heads = [[*head, label] for head, label in zip(heads, across.labels, strict=True)]
    columns = [_justify([*head, *texts], right=True) for head, texts in zip(heads, aligned, strict=True)]
    side = _side(down, f"{down.name}\\{across.name}", heights=len(heads[0]) if heads else 1)
    shown = _count_fitting([display_width(side[0])], [display_width(column[0]) for column in columns], width)
    return Laid(tuple(_draw_ruled(side, columns[:shown], headings=len(heads[0]) if heads else 1)), shown)


def _side(down: Axis, title: str, heights: int) -> list[str]:
    """The left border of a matrix: the two dimensions, then the number and the label of each row."""
    if down.labels is None:
        rows = list(down.numbers)
    else:
        numbers = _justify(down.numbers, right=True)
        rows = [f"{n}{_GAP}{label}" for n, label in zip(numbers, _justify(down.labels, right=True), strict=True)]
    return _justify([title, *[""] * (heights - 1), *rows], right=True)


def table(keys: Sequence[Column], values: Sequence[Column], width: int | None) -> Laid:
    """A row for each cell: where it is, and what it holds; long texts are cut before columns are left out."""
    left = [_cells(column, None) for column in keys]
    right = [_cells(column, None) for column in values]
    if width is not None:
        left, right = _narrow(keys, left, values, right, width)
    widths = [[display_width(cells[0]) for cells in block] for block in (left, right)]
    shown = _count_fitting(widths[0], widths[1], width) if width is not None else len(values)
    border = [_GAP.join(row) for row in zip(*left, strict=True)] if left else []
    body = right[:shown]
    if not border:
        return Laid(tuple(_draw_plain(body)), shown)
    return Laid(tuple(_draw_ruled(border, body, headings=1)), shown)


def _cells(column: Column, width: int | None) -> list[str]:
    shown = [*column.texts]
    if column.right:
        shown = on_points(shown)
    if width is not None:
        shown = [shorten(text, width) for text in shown]
    return _justify([column.name, *shown], column.right)


def _narrow(
    keys: Sequence[Column], left: list[list[str]], values: Sequence[Column], right: list[list[str]], width: int
) -> tuple[list[list[str]], list[list[str]]]:
    """The columns with the longest text cut, as far as that makes all of them fit."""
    columns, cells = [*keys, *values], [*left, *right]
    widths = [display_width(block[0]) for block in cells]
    excess = sum(widths) + len(_GAP) * len(widths) + 1 - width
    texts = [number for number, column in enumerate(columns) if not column.right]
    if excess > 0 and texts:
        widest = max(texts, key=lambda number: widths[number])
        room = max(_NARROWEST, widths[widest] - excess)
        if room < widths[widest]:
            cells[widest] = _cells(columns[widest], room)
    return cells[: len(left)], cells[len(left) :]


def _count_fitting(fixed: Sequence[int], widths: Sequence[int], width: int | None) -> int:
    """How many columns fit beside those that must be there; one always does."""
    if width is None:
        return len(widths)
    used = sum(fixed) + len(_GAP) * max(0, len(fixed) - 1) + 2
    for number, size in enumerate(widths):
        used += size + len(_GAP)
        if used > width + 1 and number:
            return number
    return len(widths)


def _justify(texts: Sequence[str], right: bool) -> list[str]:
    width = max(map(display_width, texts), default=0)
    return [pad(text, width, right) for text in texts]


def _draw_ruled(border: Sequence[str], columns: Sequence[Sequence[str]], headings: int) -> Iterator[Line]:
    """The border, a line, and the columns; a line below the headings."""
    rows = [_GAP.join(row) for row in zip(*columns, strict=True)] or [""] * len(border)
    for number, (side, row) in enumerate(zip(border, rows, strict=True)):
        if number == headings:
            yield Line("─" * (display_width(side) + 1) + "┼" + "─" * (display_width(row) + 1), "rule")
        yield Line(f"{side} │ {row}".rstrip(), "heading" if number < headings else "plain")


def _draw_plain(columns: Sequence[Sequence[str]]) -> Iterator[Line]:
    for number, row in enumerate(zip(*columns, strict=True)):
        text = _GAP.join(row)
        yield Line(text.rstrip(), "heading" if number == 0 else "plain")
        if number == 0:
            yield Line("─" * display_width(text), "rule")
