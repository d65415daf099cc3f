"""Partners by shape: for each left row the right cells in the shape around its centre.

Cells become numbers in an order that puts the widest range of the shape last, so that a run of offsets is one range of
numbers. Dimensions in which any offset is right play no part: left rows that differ in them alone have the same
partners, which are looked for once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from windrow.aggregates.bands import BandNeighbours
from windrow.aggregates.sparse_windows import CellNeighbours, Neighbours
from windrow.kernels.sparse.keys import KeySpace, key_space
from windrow.kernels.sparse.order import coordinate_order
from windrow.kernels.sparse.places import Bands
from windrow.kernels.sparse.rows import rows_of, shapes_at
from windrow.kernels.sparse.sorting import sort_keys
from windrow.model.bound_shape import BoundShape
from windrow.model.labels import Labels
from windrow.model.offset_runs import KeyRuns

Int64Array = npt.NDArray[np.int64]
Columns = Sequence[Int64Array]
LabelsByAxis = Mapping[int, tuple[Labels, tuple[int, int]]]
"""By dimension the labels of the right cells, and the first and last cell that they are of."""

Share = tuple[Int64Array, Int64Array, Int64Array]
"""Some left rows, and of each of their pairs the left row and the right cell (-1 where a row has no partner)."""

NOTHING = np.zeros(0, np.int64)


@dataclass(frozen=True, eq=False)
class Partners:
    """Neighbourhoods of left rows among right cells.

    ``numbers`` has the neighbourhood of each left row, ``order`` the right cell at each place that a neighbourhood
    names. ``itself`` has the cell that each row leaves out, unless the neighbourhoods leave it out already.
    """

    neighbours: Neighbours
    numbers: Int64Array
    order: Int64Array
    itself: Int64Array | None = None

    def pairs(self) -> Iterator[Share]:
        """The pairs of some left rows at a time."""
        rows = np.argsort(self.numbers, kind="stable")
        counts = self.neighbours.counts
        begins = np.searchsorted(self.numbers[rows], np.arange(len(counts) + 1))
        number = 0
        for cells, sweep in self.neighbours.lists():
            first, last = number, number + sweep.count
            number = last
            own = rows[begins[first] : begins[last]]
            # Rows of one neighbourhood have the same list.
            shared = np.repeat(np.arange(sweep.count), np.diff(begins[first : last + 1]))
            lengths = counts[first:last][shared]
            within = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
            left = np.repeat(own, lengths)
            right = self.order[cells[np.repeat(sweep.lo[shared], lengths) + within]]
            if self.itself is not None:
                kept = right != self.itself[left]
                left, right = left[kept], right[kept]
            yield own, left, right


def find_partners(
    shape: BoundShape, count: int, centres: Sequence[Int64Array | None], at: Columns, labels: LabelsByAxis
) -> Partners:
    """The partners of ``count`` left rows, whose shapes have these centres, among the cells at ``at``.

    A centre is None along dimensions that are not mapped; along these, any cell is a partner.
    """
    runs = shape.key_runs()
    cells = [at[axis] for axis in runs.axes]
    middle = [_known(centres[axis]) for axis in runs.axes]
    near, far = _ends(shape, middle, labels)
    itself = own_cells(shape, centres, at) if shape.excludes_self else None
    space = _space(runs, cells, near is not far)
    if space is None:
        return _in_rows(runs, middle, near, far, cells, itself)
    keys, order = sort_keys(space.keys(cells, len(at[0])), space.bits)
    if near is far:
        begin, rows = (keys, order) if _same(near, cells) else sort_keys(space.keys(near, count), space.bits)
        end = begin
    else:  # ranges in label units follow their centres, and rows with different ranges may begin alike
        rows = coordinate_order(middle)
        begin, end = (space.keys([column[rows] for column in side], count) for side in (near, far))
    new = np.ones(count, bool)
    if itself is None:  # rows that begin and end alike have the same partners
        new[1:] = (begin[1:] != begin[:-1]) | (end[1:] != end[:-1])
    numbers = np.empty(count, np.int64)
    numbers[rows] = np.cumsum(new) - 1
    skip = NOTHING if itself is None else _places(order, itself)[rows]
    bands = Bands(begin[new], end[new], *space.differences(runs.leading, runs.first, runs.last), skip)
    return Partners(BandNeighbours(keys, bands), numbers, order)


def _same(one: Columns, other: Columns) -> bool:
    """Whether an array is joined with itself, all of it: then both sides come in one order."""
    return len(one) > 0 and all(np.array_equal(mine, theirs) for mine, theirs in zip(one, other, strict=True))


def _known(centre: Int64Array | None) -> Int64Array:
    assert centre is not None, "dimensions that are not mapped are free"
    return centre


def _ends(shape: BoundShape, middle: Columns, labels: LabelsByAxis) -> tuple[Columns, Columns]:
    """From where to where the runs are counted; the same unless a range is stated in the units of labels."""
    searched = shape.searched
    if searched is None:
        return middle, middle
    lo, hi = searched.ranges(middle[-1], *labels[searched.axis])
    return [*middle[:-1], lo], [*middle[:-1], hi]


def check_labels(
    shape: BoundShape, centres: Sequence[Int64Array | None], at: Columns, labels: LabelsByAxis, found: Iterable[Share]
) -> Iterator[Share]:
    """The pairs for which also those ranges in label units hold that partners are not searched by."""
    ranges = []
    for one in shape.checked:
        centre = centres[one.axis]
        assert centre is not None, "dimensions that are not mapped are free"
        ranges.append((at[one.axis], *one.ranges(centre, *labels[one.axis])))
    for rows, left, right in found:
        for places, lo, hi in ranges:
            kept = (places[right] >= lo[left]) & (places[right] <= hi[left])
            left, right = left[kept], right[kept]
        yield rows, left, right


def _space(runs: KeyRuns, cells: Columns, ranged: bool) -> KeySpace | None:
    """Numbers for cells that leave room for the shape around them; None if there are not enough numbers."""
    lo = [int(column.min(initial=2**62)) if len(column) else 0 for column in cells]
    hi = [int(column.max(initial=-(2**62))) if len(column) else 0 for column in cells]
    before = [max(0, -int(column.min(initial=0))) for column in runs.leading.T]
    after = [max(0, int(column.max(initial=0))) for column in runs.leading.T]
    if len(cells):
        before.append(max(0, -int(runs.first.min(initial=0))) + ranged)
        after.append(max(0, int(runs.last.max(initial=0))) + ranged)
    return key_space(lo, hi, before, after)


def own_cells(shape: BoundShape, centres: Sequence[Int64Array | None], at: Columns) -> Int64Array:
    """For each left row the cell at its very centre, or -1."""
    both = []
    for axis, (places, centre) in enumerate(zip(at, centres, strict=True)):
        column = np.concatenate([places, _known(centre)])
        turn = shape.moduli[axis]
        # Where every cell of a periodic dimension is a partner, cells are not met again beyond its borders.
        both.append(column % turn if turn is not None and shape.free[axis] else column)
    rows = len(both[0]) - len(at[0])
    order = coordinate_order(both)
    same = np.ones(len(order), bool)
    same[:1] = False
    for column in both:
        same[1:] &= column[order][1:] == column[order][:-1]
    # The order is stable, so that a cell comes before the centres that lie there.
    group = np.cumsum(~same) - 1
    heads = order[~same]
    found = np.full(len(order), -1, np.int64)
    found[order] = np.where(heads[group] < len(at[0]), heads[group], -1)
    return found[len(both[0]) - rows :]


def _places(order: Int64Array, itself: Int64Array) -> Int64Array:
    """Where the cells that rows leave out come in the order of keys."""
    places = np.full(len(order) + 1, -1, np.int64)
    places[order] = np.arange(len(order))
    return places[itself]


def _in_rows(
    runs: KeyRuns, middle: Columns, near: Columns, far: Columns, cells: Columns, itself: Int64Array | None
) -> Partners:
    """The same by rows of cells, for arrays too large to number their cells."""
    order, rows = coordinate_order(cells), coordinate_order(middle)
    hoods = shapes_at([column[rows] for column in near], runs.leading, runs.first, runs.last)
    if far is not near:
        hoods = hoods._replace(far=np.ascontiguousarray(far[-1][rows]))
    numbers = np.empty(len(rows), np.int64)
    numbers[rows] = np.arange(len(rows))
    return Partners(CellNeighbours(rows_of([column[order] for column in cells]), hoods), numbers, order, itself)
