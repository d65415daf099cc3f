"""Which part of a query's result is shown: the first rows and columns of large dense results. Only that is computed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from windrow import Box
from windrow.api.describe import counted
from windrow.api.results import Result
from windrow.console.render.grids import Axis, Column, Laid, Line, matrix, table
from windrow.console.render.values import column_texts, texts

if TYPE_CHECKING:
    import pyarrow as pa

    from windrow import Labels, Schema
    from windrow.api.query import Query
    from windrow.api.sql_queries import SqlResult

_NARROWEST_COLUMN = 3
_LINES_AROUND = 3
"""Lines of a matrix that are not rows: its name, its headings, the space before it."""


_REASONS = ("why", "phases")
"""Columns of a list that hold sentences, each of which has a line of its own below its row."""


@dataclass(frozen=True)
class Limits:
    """How much is shown: so many rows, and lines no longer than ``width``."""

    rows: int = 40
    width: int | None = 100

    @property
    def columns(self) -> int:
        """Columns that could be shown if all were narrow."""
        return 1000 if self.width is None else max(1, self.width // _NARROWEST_COLUMN)


@dataclass(frozen=True)
class View:
    """Lines to print, and how many cells the result has."""

    lines: tuple[Line, ...]
    cells: int


def view(query: Query, limits: Limits) -> View:
    """A query's result as lines."""
    result = Result(query)
    if result.sparse:
        return _cells_view(result, limits)
    if result.box.is_empty:
        return View((Line("no cells"),), 0)
    box = _shown_box(result.box, limits)
    blocks = result.grid(box)
    if result.scalar:
        return View(tuple(Line(f"{name} = {shown[0]}") for name, shown in _columns(result.schema, blocks)), 1)
    axes = [_axis(result.schema, result.labels, box, axis) for axis in range(box.ndim)]
    if box.ndim == 1:
        lines = _rows(axes[0], result.schema, blocks, result.box, limits)
    else:
        lines = _matrices(axes, result.schema, blocks, result.box, limits)
    return View(tuple(lines), result.box.size)


def _shown_box(box: Box, limits: Limits) -> Box:
    """The first rows and columns, of the first slices; of further dimensions only the first cell."""
    shape = [1] * box.ndim
    if box.ndim == 1:
        shape[0] = min(box.shape[0], limits.rows)
    else:
        shape[-1] = min(box.shape[-1], limits.columns)
        shape[-2] = min(box.shape[-2], limits.rows)
    if box.ndim > 2:
        shape[-3] = min(box.shape[-3], max(1, limits.rows // (shape[-2] + _LINES_AROUND)))
    return Box(box.lo, tuple(lo + extent - 1 for lo, extent in zip(box.lo, shape, strict=True)))


def _axis(schema: Schema, labels: Mapping[str, Labels], box: Box, axis: int) -> Axis:
    dimension, lo, hi = schema.dimensions[axis], box.lo[axis], box.hi[axis]
    named = labels.get(dimension.name)
    shown = None if named is None else texts(named.values[lo - dimension.lo : hi + 1 - dimension.lo])
    return Axis(dimension.name, [str(number) for number in range(lo, hi + 1)], shown)


def _columns(schema: Schema, blocks: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    """Each attribute's values as texts, in row-major order."""
    return [
        (attribute.name, texts(blocks[attribute.name], blocks.get(attribute.companion)))
        for attribute in schema.attributes
    ]


def _keys(axis: Axis) -> list[Column]:
    numbers = Column(axis.name, axis.numbers, right=True)
    return [numbers] if axis.labels is None else [numbers, Column("", axis.labels)]


def _rows(axis: Axis, schema: Schema, blocks: Mapping[str, Any], whole: Box, limits: Limits) -> list[Line]:
    values = [
        Column(name, shown, right=attribute.type.name != "string")
        for (name, shown), attribute in zip(_columns(schema, blocks), schema.attributes, strict=True)
    ]
    laid = table(_keys(axis), values, limits.width)
    return [*laid.lines, *_note_left_out(rows=whole.shape[0] - len(axis.numbers), columns=len(values) - laid.columns)]


def _matrices(
    axes: Sequence[Axis], schema: Schema, blocks: Mapping[str, Any], whole: Box, limits: Limits
) -> list[Line]:
    """A matrix for each slice, with all attributes of a cell side by side if that fits, else one for each."""
    columns = _columns(schema, blocks)
    size = len(axes[-2].numbers) * len(axes[-1].numbers)
    slices = math.prod(len(axis.numbers) for axis in axes[:-2])
    lines: list[Line] = []
    fewest = len(axes[-1].numbers)
    for number in range(slices):
        part = slice(number * size, (number + 1) * size)
        here = [(name, shown[part]) for name, shown in columns]
        if number or len(axes) > 2:
            lines += [Line("")] * bool(number) + [Line(_slice_title(axes, number), "heading")]
        for title, laid in _in_matrices(axes, here, limits):
            lines += [Line(title, "heading"), *laid.lines]
            fewest = min(fewest, laid.columns)
    total = math.prod(whole.shape[:-2])
    return [
        *lines,
        *_note_left_out(
            rows=whole.shape[-2] - len(axes[-2].numbers), columns=whole.shape[-1] - fewest, slices=total - slices
        ),
    ]


def _in_matrices(
    axes: Sequence[Axis], columns: Sequence[tuple[str, list[str]]], limits: Limits
) -> list[tuple[str, Laid]]:
    if len(columns) > 1:
        cells = ["(" + ", ".join(values) + ")" for values in zip(*(shown for _, shown in columns), strict=True)]
        together = matrix(axes[-2], axes[-1], _in_rows(cells, axes), limits.width)
        if together.columns == len(axes[-1].numbers):
            return [("(" + ", ".join(name for name, _ in columns) + ")", together)]
    return [(name, matrix(axes[-2], axes[-1], _in_rows(shown, axes), limits.width)) for name, shown in columns]


def _in_rows(shown: Sequence[str], axes: Sequence[Axis]) -> list[Sequence[str]]:
    width = len(axes[-1].numbers)
    return [shown[start : start + width] for start in range(0, len(shown), width)]


def _slice_title(axes: Sequence[Axis], number: int) -> str:
    """Which slice it is; only the last dimension before the matrix has more than one."""
    parts = []
    for position, axis in enumerate(axes[:-2]):
        at = number if position == len(axes) - 3 else 0
        label = "" if axis.labels is None else f" ({axis.labels[at]})"
        parts.append(f"{axis.name}={axis.numbers[at]}{label}")
    return ", ".join(parts)


def _note_left_out(**counts: int) -> list[Line]:
    parts = [counted(number, thing.removesuffix("s")) for thing, number in counts.items() if number > 0]
    return [Line(f"… {' and '.join(parts)} more", "rule")] if parts else []


# Sparse results


def _cells_view(result: Result, limits: Limits) -> View:
    shown, cells = result.first_cells(limits.rows)
    attributes, labels = result.schema.attributes, result.labels
    if result.scalar:
        return View(tuple(Line(f"{a.name} = {column_texts(shown.column(a.name))[0]}") for a in attributes), 1)
    if not cells:
        return View((Line("no cells"),), 0)
    keys: list[Column] = []
    for dimension in result.schema.dimensions:
        numbers = shown.column(dimension.name).to_numpy()
        named = labels.get(dimension.name)
        said = None if named is None else texts(named.values[numbers - dimension.lo])
        keys += _keys(Axis(dimension.name, [str(number) for number in numbers.tolist()], said))
    values = [Column(a.name, column_texts(shown.column(a.name)), right=a.type.name != "string") for a in attributes]
    laid = table(keys, values, limits.width)
    more = _note_left_out(cells=cells - shown.num_rows, columns=len(values) - laid.columns)
    return View((*laid.lines, *more), cells)


def table_view(found: pa.Table, limits: Limits) -> View:
    """A list of things: arrays, versions, functions, what was done to a view."""
    if not found.num_rows:
        return View((Line("none"),), 0)
    fields = [field for field in found.schema if field.name not in _REASONS]
    columns = [Column(field.name, column_texts(found.column(field.name)), _is_number(field)) for field in fields]
    laid = table((), columns, limits.width)
    head, rows = laid.lines[: -found.num_rows], laid.lines[-found.num_rows :]
    reasons = _reasons(found)
    lines = [line for row, below in zip(rows, reasons, strict=True) for line in (row, *below)]
    return View((*head, *lines, *_note_left_out(columns=len(columns) - laid.columns)), found.num_rows)


def _reasons(found: pa.Table) -> list[list[Line]]:
    """What is said below each row."""
    texts: list[list[str]] = [[] for _ in range(found.num_rows)]
    for name in _REASONS:
        if name in found.column_names:
            for below, text in zip(texts, found.column(name).to_pylist(), strict=True):
                below += [text] if text else []
    return [[Line(f"  {text}") for text in below] for below in texts]


def rows_view(found: SqlResult, limits: Limits) -> View:
    """The first rows that a SQL query gives; how many there are in all is not computed."""
    if found.is_text:
        lines = (line for text in found.head(1).column(0).to_pylist() for line in str(text).splitlines())
        return View(tuple(map(Line, lines)), 1)
    head = found.head(limits.rows + 1)
    if not head.num_rows:
        return View((Line("no rows"),), 0)
    shown = table_view(head.slice(0, limits.rows), limits)
    more = (Line("… more rows", "rule"),) if head.num_rows > limits.rows else ()
    return View((*shown.lines, *more), shown.cells)


def _is_number(field: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_integer(field.type) or pa.types.is_floating(field.type))
