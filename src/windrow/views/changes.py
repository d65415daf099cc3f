"""What happened to an array between two moments: the cells that left, those that came, and where they lie.

Only what the two moments do not share is read: parts of a sparse array, chunks of a dense one. What is the same before
and after is no change, however it was written.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from windrow.kernels.sparse.matching import found_in, match_cells
from windrow.model.box import Box
from windrow.model.schema import VALID_SUFFIX, Schema
from windrow.plan.bound import Bound, BoundNamed, BoundScan
from windrow.plan.grouping.positions import BoundRepeated
from windrow.storage.cells import cell_fields, coordinates, in_coordinate_order
from windrow.storage.pieces import pieces_of, read_piece, read_rows_of
from windrow.views.regions import MOST_CLUSTERS, cluster_cells, merge_boxes

Int64Array = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

FEW_CLUSTERS = 8
"""Boxes where each costs more than the cells between two."""


@dataclass(frozen=True, eq=False)
class CellChange:
    """Cells of a sparse array: those that left, with the values they had, and those that came, with their new ones.

    A cell that was replaced is in both.
    """

    schema: Schema
    left: pa.Table
    came: pa.Table

    @property
    def is_empty(self) -> bool:
        return not self.left.num_rows and not self.came.num_rows

    @property
    def cells(self) -> int:
        """How many cells are not as they were."""
        both = 0
        if self.left.num_rows and self.came.num_rows:
            both = found_in(self.at(self.came), self.at(self.left)).sum()
        return int(self.left.num_rows + self.came.num_rows - both)

    def at(self, table: pa.Table) -> list[Int64Array]:
        return coordinates(table, self.schema)

    def of(self, attributes: Collection[str]) -> CellChange:
        """Without the cells that stayed and have the same values of some attributes."""
        if all(name in attributes for name in self.schema.attribute_names):
            return self
        if not self.left.num_rows or not self.came.num_rows:
            return self
        compared = [name for name in self.schema.attribute_names if name in attributes]
        return net_tables(self.schema, self.left, self.came, compared)

    @cached_property
    def boxes(self) -> list[Box]:
        """Where they lie."""
        return self._clusters(MOST_CLUSTERS)

    @cached_property
    def regions(self) -> list[Box]:
        """Where they lie, in a few boxes: enough for those who look at each cell anyway."""
        return self._clusters(FEW_CLUSTERS)

    def _clusters(self, most: int) -> list[Box]:
        both = zip(self.at(self.left), self.at(self.came), strict=True)
        return cluster_cells([np.concatenate(pair) for pair in both], self.schema.grid, most)


@dataclass(frozen=True)
class GridChange:
    """Boxes of a dense array outside which all is as it was."""

    boxes: list[Box]
    cells: int
    by_attribute: Mapping[str, list[Box]]
    """The same of each attribute."""

    @property
    def is_empty(self) -> bool:
        return not self.boxes

    @property
    def regions(self) -> list[Box]:
        return self.boxes

    def of(self, attributes: Collection[str]) -> GridChange:
        """Where some attributes are not as they were."""
        if all(name in attributes for name in self.by_attribute):
            return self
        chosen = {name: boxes for name, boxes in self.by_attribute.items() if name in attributes or not name}
        return GridChange(merge_boxes(box for boxes in chosen.values() for box in boxes), self.cells, chosen)


Change = CellChange | GridChange


def differ(before: BoundNamed, after: BoundNamed) -> bool:
    """Whether anything was done to an array; it may be the same all the same."""
    if before.labels != after.labels or before.box != after.box:
        return True
    if isinstance(before, BoundRepeated) and isinstance(after, BoundRepeated):
        return differ(before.results, after.results) or differ(_cells_of(before), _cells_of(after))
    assert isinstance(before, BoundScan)
    assert isinstance(after, BoundScan)
    if not after.schema.sparse:
        return bool(before.snapshot.pointer != after.snapshot.pointer)
    return pieces_of(before.snapshot) != pieces_of(after.snapshot)


def _cells_of(view: BoundRepeated) -> BoundNamed:
    """The array at whose cells a view is shown."""
    return next(step for step in view.source.walk() if isinstance(step, BoundNamed))


def find_change(before: BoundScan, after: BoundScan, written: Iterable[Box] | None = None) -> Change:
    """What happened to an array; ``written`` are the boxes of a dense one that may not be as they were."""
    if after.schema.sparse:
        return net_cells(before, after)
    return net_grid(before, after, written)


def net_cells(before: BoundScan, after: BoundScan) -> CellChange:
    """The cells of parts that are not in both moments, without those that are the same."""
    old, new = (_apart(one, other) for one, other in ((before, after), (after, before)))
    return net_tables(after.schema, old, new)


def net_tables(schema: Schema, old: pa.Table, new: pa.Table, compared: Sequence[str] | None = None) -> CellChange:
    """What distinguishes two tables of cells; of those in both, by the attributes that are compared."""
    names = cell_fields(schema).names
    old, new = old.select(names), new.select(names)
    if not old.num_rows or not new.num_rows:  # as most batches are: nothing left, or nothing came
        return CellChange(schema, in_coordinate_order(old, schema), in_coordinate_order(new, schema))
    at_old, at_new = coordinates(old, schema), coordinates(new, schema)
    numbers = match_cells(at_new, at_old)
    stays_new = np.flatnonzero(numbers >= 0)
    stays_old = numbers[stays_new]
    alone = schema if compared is None else schema.select(compared)
    same = same_values(alone, old.take(pa.array(stays_old)), new.take(pa.array(stays_new)))
    left, came = np.ones(old.num_rows, bool), np.ones(new.num_rows, bool)
    left[stays_old[same]] = False
    came[stays_new[same]] = False
    return CellChange(
        schema, *(in_coordinate_order(t.filter(pa.array(m)), schema) for t, m in ((old, left), (new, came)))
    )


def same_values(schema: Schema, one: pa.Table, other: pa.Table) -> Mask:
    """In which rows all attributes are the same; what is missing is the same as what is missing."""
    same = np.ones(one.num_rows, bool)
    for name in schema.attribute_names:
        a, b = _plain(one.column(name)), _plain(other.column(name))
        equal = pc.fill_null(pc.equal(a, b), False).to_numpy(zero_copy_only=False).astype(bool)
        neither = (a.is_null() if a.null_count else None, b.is_null() if b.null_count else None)
        if neither[0] is not None and neither[1] is not None:
            equal |= pc.and_(neither[0], neither[1]).to_numpy(zero_copy_only=False).astype(bool)
        same &= equal
    return same


def _plain(column: pa.ChunkedArray) -> pa.Array:
    """A column in one piece, in which NaN is missing."""
    whole = column.combine_chunks()
    whole = whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole
    if pa.types.is_floating(whole.type):
        return pc.if_else(pc.is_nan(whole), pa.scalar(None, whole.type), whole)
    return whole


def _apart(one: BoundScan, other: BoundScan) -> pa.Table:
    """The cells of the pieces that the other moment does not have; of a part that both have, those dead there alone."""
    snapshot, schema = one.snapshot, one.snapshot.schema
    shared = {part.path: part for part in other.snapshot.parts}
    tables = [cell_fields(schema).empty_table()]
    for piece in pieces_of(snapshot) - pieces_of(other.snapshot):
        twin = shared.get(piece.path)
        if twin is None:
            tables.append(read_piece(snapshot, piece))
            continue
        rows = _without(snapshot.reader.live_rows(piece.part), other.snapshot.reader.live_rows(twin))
        if len(rows):
            tables.append(read_rows_of(snapshot, piece, rows))
    return pa.concat_tables(tables)


def _without(rows: Int64Array, others: Int64Array) -> Int64Array:
    """The rows that are not among others. Rows of a part are few enough to be marked, which takes no sorting."""
    marked = np.zeros(int(max(rows.max(initial=-1), others.max(initial=-1))) + 1, bool)
    marked[others] = True
    return rows[~marked[rows]]


def net_grid(before: BoundScan, after: BoundScan, written: Iterable[Box] | None) -> GridChange:
    """The smallest boxes in each chunk outside which values are the same, put together where they meet."""
    grid = after.schema.grid
    ends = zip(before.box.hi, after.box.hi, strict=True)
    if before.schema.lo != after.schema.lo or any(old > new for old, new in ends):  # it begins or ends elsewhere
        whole = before.box | after.box
        every = [] if whole.is_empty else [whole]
        return GridChange(every, whole.size, {"": every})
    regions = [after.box] if written is None else _written_regions(before, after, written)
    found: dict[str, list[Box]] = {}
    differing, cells = list[Box](), 0
    for region in (region for whole in regions for region in grid.blocks(whole, 2**22) if not whole.is_empty):
        differs = np.zeros(region.shape, bool)
        for name, unlike in _differences(before, after, region):
            if unlike.any():
                found.setdefault(name, []).append(bounding_box(unlike, region))
                differs |= unlike
        cells += int(differs.sum())
        if differs.any():
            differing.append(bounding_box(differs, region))
    return GridChange(merge_boxes(differing), cells, {name: merge_boxes(boxes) for name, boxes in found.items()})


def _written_regions(before: BoundScan, after: BoundScan, written: Iterable[Box]) -> list[Box]:
    """Boxes without a common cell that hold all that was written, and in the same chunks all that is new."""
    grid, found = after.schema.grid, dict[int, Box]()
    for box in written:
        for key in grid.keys_touching(box & after.box):
            chunk, ordinal = grid.box_of(key) & after.box, grid.ordinal(key)
            part = chunk & box
            for axis, (old, new) in enumerate(zip(before.box.hi, chunk.hi, strict=True)):
                if old < new:  # a write further behind makes the cells between, too
                    part |= chunk & Box(
                        (*chunk.lo[:axis], max(old + 1, chunk.lo[axis]), *chunk.lo[axis + 1 :]), chunk.hi
                    )
            found[ordinal] = found[ordinal] | part if ordinal in found else part
    return [found[ordinal] for ordinal in sorted(found)]


def bounding_box(chosen: Mask, region: Box) -> Box:
    """The smallest box that holds the chosen cells of a region, of which there are some."""
    others = [tuple(other for other in range(region.ndim) if other != axis) for axis in range(region.ndim)]
    places = [np.flatnonzero(chosen.any(axis=axes)) for axes in others]
    lo = tuple(at + int(place[0]) for at, place in zip(region.lo, places, strict=True))
    return Box(lo, tuple(at + int(place[-1]) for at, place in zip(region.lo, places, strict=True)))


def _differences(before: BoundScan, after: BoundScan, region: Box) -> Iterator[tuple[str, Mask]]:
    """Which cells of a region were not there (as those of no attribute), and by attribute which are other ones."""
    new = np.ones(region.shape, bool)
    common = region & before.box
    if common.is_empty:
        yield "", new
        return
    inside = common.slices(region.lo)
    new[inside] = False
    yield "", new
    old = before.snapshot.read(common)
    for name, values in after.snapshot.read(common).items():
        differs = np.zeros(region.shape, bool)
        differs[inside] = ~same_blocks(values, old[name]) if name in old else True
        yield name.removesuffix(VALID_SUFFIX), differs


def same_blocks(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> Mask:
    same: Mask = np.asarray(one == other)
    if one.dtype.kind in "fM":
        same |= (one != one) & (other != other)
    return same


def label_boxes(before: Bound, after: Bound) -> list[Box]:
    """Where cells have other labels than before."""
    found = (_label_box(before, after, axis) for axis in range(after.schema.ndim))
    return [box for box in found if box is not None]


def _label_box(before: Bound, after: Bound, axis: int) -> Box | None:
    """The cells from the first one on whose label along an axis is another than before."""
    first = first_new_label(before, after, after.schema.dimensions[axis].name)
    if first is None:
        return None
    lo = [*after.box.lo]
    lo[axis] += first
    return Box(tuple(lo), after.box.hi)


def first_new_label(before: Bound, after: Bound, name: str) -> int | None:
    """The first place along a dimension at which there was another label before; None if all have theirs still."""
    old, new = dict(before.labels).get(name), dict(after.labels).get(name)
    if old is None or new is None:
        return None if old is new or (old is None and before.box.is_empty) else 0
    common = min(len(old), len(new))
    if old.slice(0, common).same_values(new.slice(0, common)):
        return None
    differs = np.flatnonzero(np.asarray(old.values[:common] != new.values[:common]))
    return int(differs[0]) if len(differs) else 0


def relabelled(before: Bound, after: Bound) -> Sequence[str]:
    """The dimensions along which cells that were there have other labels now."""
    names = after.schema.dimension_names
    return [name for name in names if first_new_label(before, after, name) is not None]
