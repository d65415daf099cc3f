"""Joins as sources of a query: reading a box of results computes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.expressions.nodes import Column
from windrow.kernels.contract.listing import AT_ONCE
from windrow.kernels.sparse.order import needed_order
from windrow.model.arrow import arrow_type
from windrow.model.box import Box
from windrow.model.grid import ChunkGrid
from windrow.model.labels import Labels
from windrow.model.schema import Schema
from windrow.model.source import Blocks
from windrow.operations.join.aggregates import Wanted, aggregate_rows
from windrow.operations.join.pairs import Meeting
from windrow.operations.join.reader import JoinReader, first_source, read_nodes
from windrow.operations.query.blocks import row_bytes
from windrow.operations.query.held import laid_on_grid
from windrow.plan.bound import LabelItems, NamedNodes, side_name
from windrow.storage.cells import cell_fields, in_coordinate_order

Int64Array = npt.NDArray[np.int64]

COPIES = 4
"""How often a task holds its cells: as read, as numbers in order, as columns for aggregates, as results."""

PAIRS_PER_CELL = 16
"""Pairs that are found and looked at in the time that it takes to read a cell."""

LISTED_BYTES = 64
"""What a listed pair takes: its two cells, where they are, and the values that are compared."""


@dataclass(frozen=True)
class JoinedCells:
    """Aggregates over the partners of each cell of the first array, at the cells that the join keeps. It pickles.

    With ``step`` only every so-many-th position is evaluated, and positions are numbered one by one.
    """

    reader: JoinReader
    schema: Schema
    box: Box
    label_items: LabelItems
    wanted: Wanted
    step: tuple[int, ...] = ()

    @property
    def labels(self) -> Mapping[str, Labels]:
        return dict(self.label_items)

    @property
    def keep_whole(self) -> tuple[int, ...]:
        return wide_axes(self.reader)

    @property
    def reading_grid(self) -> ChunkGrid:
        return self.schema.grid if self.step else first_source(self.reader).reading_grid

    def cells_in(self, box: Box) -> int:
        inside = box & self.box
        return 0 if inside.is_empty else min(inside.size, self.reader.left.rows_in(self._positions(inside)))

    def cells_decoded(self, results: Box) -> int:
        inside = results & self.box
        return 0 if inside.is_empty else work(self.reader, self._positions(inside))

    def touched_bytes(self, results: Box) -> int:
        return touched_bytes(self.reader, self._positions(results & self.box))

    def task_bytes(self, results: Box) -> int:
        inside = results & self.box
        if inside.is_empty:
            return 0
        return task_bytes(self.reader, self._positions(inside)) + 3 * self.cells_in(inside) * row_bytes(self.schema)

    def within(self, results: Box) -> JoinedCells:
        inside = results & self.box
        return self if inside.is_empty else replace(self, reader=self.reader.within(self._positions(inside)))

    def read(self, box: Box | None = None, attributes: Iterable[str] | None = None) -> pa.Table:
        inside = self.box if box is None else box & self.box
        chosen = self.schema if attributes is None else self.schema.select(attributes)
        if inside.is_empty:
            return cell_fields(chosen).empty_table()
        numbers = [self.schema.attribute_names.index(name) for name in chosen.attribute_names]
        wanted = replace(self.wanted, aggregates=tuple(self.wanted.aggregates[number] for number in numbers))
        with self.reader.naming():
            rows, results = aggregate_rows(self.reader, self._positions(inside), wanted, ())
        places = [rows.places(Column(d.name, side_name(1)).key) for d in first_source(self.reader).schema.dimensions]
        values = [result.to_arrow(a.type) for result, a in zip(results, chosen.attributes, strict=True)]
        if not self.step:
            return pa.table([*map(pa.array, places), *values], schema=cell_fields(chosen))
        return self._stepped(places, values, chosen)

    def _stepped(self, places: list[Int64Array], values: list[pa.Array], chosen: Schema) -> pa.Table:
        """The results at the positions that are evaluated, under the numbers of those."""
        lo = first_source(self.reader).schema.lo
        evaluated = np.ones(len(places[0]), bool)
        numbered = []
        for place, first, step in zip(places, lo, self.step, strict=True):
            evaluated &= (place - first) % step == 0
            numbered.append(pa.array(first + (place - first) // step))
        return pa.table([*numbered, *values], schema=cell_fields(chosen)).filter(pa.array(evaluated))

    def _positions(self, results: Box) -> Box:
        """The cells at which a box of results is evaluated."""
        if not self.step:
            return results
        lo = first_source(self.reader).schema.lo
        ends = [
            tuple(first + (end - first) * step for first, end, step in zip(lo, corner, self.step, strict=True))
            for corner in (results.lo, results.hi)
        ]
        return Box(*ends)


@dataclass(frozen=True)
class PairCells:
    """Expressions over pairs, at the coordinates of all their cells; of an anti join, at those of cells without any.

    It pickles. In a box along the first array's dimensions its cells are read, and along the others those of the other
    sides; where these must be looked at all together, as the nearest are, pairs are left out afterwards.
    """

    reader: JoinReader
    schema: Schema
    box: Box
    label_items: LabelItems
    places: tuple[Column, ...]
    """The coordinates that are the result's dimensions."""
    outputs: NamedNodes

    @property
    def labels(self) -> Mapping[str, Labels]:
        return dict(self.label_items)

    @property
    def keep_whole(self) -> tuple[int, ...]:
        first = len(first_source(self.reader).schema.dimensions)
        return (*wide_axes(self.reader), *range(first, self.schema.ndim))

    @property
    def reading_grid(self) -> ChunkGrid:
        """The first array's chunks; along the other sides' dimensions there is but one."""
        grid, ndim = first_source(self.reader).reading_grid, self.schema.ndim
        lo, hi = self.schema.lo[grid.ndim :], self.box.hi[grid.ndim :]
        extents = tuple(max(1, shape) for shape in self.box.shape[grid.ndim :])
        return ChunkGrid(grid.lo + lo, grid.hi + hi, grid.chunk + extents) if ndim > grid.ndim else grid

    def _asked(self, box: Box) -> tuple[JoinReader, Box]:
        """What reads the pairs in a box, and the cells of the first array that it reads."""
        sides: dict[str, list[int]] = {}
        for axis, place in enumerate(self.places):
            assert place.qualifier is not None, "coordinates are those of a side"
            sides.setdefault(place.qualifier, []).append(axis)
        boxes = {
            side: Box(tuple(box.lo[axis] for axis in axes), tuple(box.hi[axis] for axis in axes))
            for side, axes in sides.items()
        }
        others = tuple(boxes[side] for side in sides if side != side_name(1))
        if others not in self._readers_known:
            self._readers_known[others] = self.reader.asking_for(boxes)
        reader = self._readers_known[others]
        return reader, reader.reaching(boxes[side_name(1)])

    @cached_property
    def _readers_known(self) -> dict[tuple[Box, ...], JoinReader]:
        """Those made so far: they keep what estimates ask for again and again."""
        return {}

    def cells_in(self, box: Box) -> int:
        inside = box & self.box
        if inside.is_empty:
            return 0
        reader, first = self._asked(inside)
        if first.is_empty:
            return 0
        return reader.left.rows_in(first) if reader.selection.kind == "anti" else reader.rows_in(first)

    def cells_expected(self) -> int:
        selection = self.reader.selection
        return 0 if selection.nodes() or selection.kind == "anti" else self.cells_in(self.box)

    def cells_decoded(self, results: Box) -> int:
        inside = results & self.box
        return 0 if inside.is_empty else work(*self._asked(inside))

    def touched_bytes(self, results: Box) -> int:
        inside = results & self.box
        if inside.is_empty:
            return 0
        return touched_bytes(*self._asked(inside)) + self.cells_in(inside) * row_bytes(self.schema)

    def task_bytes(self, results: Box) -> int:
        inside = results & self.box
        if inside.is_empty:
            return 0
        return task_bytes(*self._asked(inside)) + COPIES * self.cells_in(inside) * row_bytes(self.schema)

    def within(self, results: Box) -> PairCells:
        inside = results & self.box
        if inside.is_empty:
            return self
        reader, first = self._asked(inside)
        # Pairs of which nothing can be asked for are none, whatever is read.
        return self if first.is_empty else replace(self, reader=reader.within(first))

    def read(self, box: Box | None = None, attributes: Iterable[str] | None = None) -> pa.Table:
        inside = self.box if box is None else box & self.box
        chosen = self.schema if attributes is None else self.schema.select(attributes)
        fields = cell_fields(chosen)
        if inside.is_empty:
            return fields.empty_table()
        outputs = dict(self.outputs)
        nodes = [outputs[name] for name in chosen.attribute_names]
        reader, first = self._asked(inside)
        if first.is_empty:
            return fields.empty_table()
        meeting, shares = reader.meet(first, read_nodes([*nodes, *self.places]))
        pieces = [fields.empty_table()]
        with self.reader.naming():
            for _, left, right in shares:
                pieces.append(self._listed(meeting, left, right, chosen, inside))
        return in_coordinate_order(pa.concat_tables(pieces), chosen)

    def _listed(self, meeting: Meeting, left: Int64Array, right: Int64Array, chosen: Schema, box: Box) -> pa.Table:
        order = needed_order([left, right])
        left, right = (left, right) if order is None else (left[order], right[order])
        outputs = dict(self.outputs)
        nodes = [outputs[name] for name in chosen.attribute_names]
        pairs = meeting.pairs(left, right, [*nodes, *self.places])
        inside, whole = np.ones(pairs.length, bool), list(zip(self.box.lo, self.box.hi, strict=True))
        places = [pairs.columns[place.key] for place in self.places]
        for axis, place in enumerate(self.places):
            # Cells of the first array were read in the box.
            if place.qualifier != side_name(1) and (box.lo[axis], box.hi[axis]) != whole[axis]:
                at = pairs.places(place.key)
                inside &= (at >= box.lo[axis]) & (at <= box.hi[axis])
        values = [pairs.evaluate(node) for node in nodes]
        values = [value.cast(arrow_type(a.type)) for value, a in zip(values, chosen.attributes, strict=True)]
        table = pa.table([*places, *values], schema=cell_fields(chosen))
        return table if inside.all() else table.filter(pa.array(inside))


@dataclass(frozen=True)
class CellsOnGrid:
    """Results at all cells of a dense array, as dense data. It pickles."""

    cells: JoinedCells

    @property
    def schema(self) -> Schema:
        return self.cells.schema

    @property
    def labels(self) -> Mapping[str, Labels]:
        return self.cells.labels

    @property
    def keep_whole(self) -> tuple[int, ...]:
        return self.cells.keep_whole

    @property
    def reading_grid(self) -> ChunkGrid:
        return self.cells.reading_grid

    def cells_decoded(self, results: Box) -> int:
        return self.cells.cells_decoded(results)

    def touched_bytes(self, results: Box, attributes: Iterable[str] | None = None) -> int:
        return self.cells.touched_bytes(results)

    def task_bytes(self, results: Box) -> int:
        return self.cells.task_bytes(results) + results.size * self.schema.cell_bytes

    def read(self, box: Box, attributes: Iterable[str] | None = None) -> Blocks:
        chosen = self.schema if attributes is None else self.schema.select(attributes)
        table = self.cells.read(box, chosen.attribute_names)
        return laid_on_grid(chosen, box, (), table).blocks


def wide_axes(reader: JoinReader) -> tuple[int, ...]:
    """The dimensions of the first array that are best not cut: a cut along them is paid for by a halo."""
    names = {
        Column(name, side_name(1)).key: axis for axis, name in enumerate(first_source(reader).schema.dimension_names)
    }
    found = set()
    for axis, place in enumerate(reader.mapping):
        wide = reader.shape.free[axis] or reader.shape.stop[axis] > reader.shape.start[axis]
        if place is not None and wide and place.cell.key in names:
            found.add(names[place.cell.key])
    return tuple(sorted(found))


def work(reader: JoinReader, box: Box) -> int:
    """What a box of the first array costs, in cells read: pairs cost too, and are most where cells crowd."""
    if box.is_empty:
        return 0
    return reader.cells_decoded(box) + reader.rows_in(box) // PAIRS_PER_CELL


def touched_bytes(reader: JoinReader, box: Box) -> int:
    """Bytes read for a box of the first array, which decide where it runs; a pair costs about as much as a byte."""
    if box.is_empty:
        return 0
    width = max(row_bytes(first_source(reader).schema), row_bytes(reader.right.schema))
    return reader.cells_decoded(box) * width + reader.rows_in(box)


def task_bytes(reader: JoinReader, box: Box) -> int:
    """Estimated peak memory of a box of the first array, halo, numbers and listed pairs included."""
    if box.is_empty:
        return 0
    cells = reader.left.rows_in(box) + reader.right_cells(box)
    # What looks at all pairs of a task together holds them all.
    pairs = reader.rows_in(box)
    listed = (pairs if reader.is_mutual or reader.sky is not None else min(pairs, AT_ONCE)) * LISTED_BYTES
    return reader.task_bytes(box) + COPIES * cells * 8 * 3 + listed
