"""Reading a join: the pairs of the first side's cells in a box, from the sources of its sides."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

from windrow.errors import Error
from windrow.expressions.nodes import Column, Node
from windrow.model.bound_shape import BoundShape
from windrow.model.box import Box
from windrow.model.source import BoundedCells, ChunkedCells, ComputedCells
from windrow.operations.join.near import partner_chunks
from windrow.operations.join.pairs import CellDistances, Meeting, Selection, select_mutual, select_pairs
from windrow.operations.join.partners import LabelsByAxis, Partners, Share, check_labels, find_partners
from windrow.operations.join.reach import NOWHERE, Piece, Span, image, partner_pieces, reaching_spans
from windrow.operations.join.rows import Cells, Rows, read_cells, read_rows
from windrow.operations.join.sky import SkyReach
from windrow.plan.bound import side_name
from windrow.plan.join_terms import AxisLabels, AxisMap

Int64Array = npt.NDArray[np.int64]


class LeftSide(Protocol):
    """What stands on the left of a join: the cells of an array, or the pairs of a join before it."""

    def read(self, box: Box, keys: Iterable[str]) -> Rows:
        """The rows whose first cell lies in a box, with the columns of these keys and all coordinates."""
        ...

    def within(self, box: Box) -> LeftSide: ...

    def rows_in(self, box: Box) -> int:
        """About how many rows there are."""
        ...

    def cells_decoded(self, box: Box) -> int: ...

    def task_bytes(self, box: Box) -> int: ...

    def spans(self, box: Box) -> dict[str, Span]:
        """The range of each coordinate, by key."""
        ...


@dataclass(frozen=True)
class FirstSide:
    """The cells of the first array."""

    source: ComputedCells

    def read(self, box: Box, keys: Iterable[str]) -> Rows:
        return read_rows(self.source, side_name(1), box, attributes_of(keys, side_name(1), self.source))

    def within(self, box: Box) -> FirstSide:
        return replace(self, source=self.source.within(box))

    def rows_in(self, box: Box) -> int:
        return self.source.cells_in(box)

    def cells_decoded(self, box: Box) -> int:
        return self.source.cells_decoded(box)

    def task_bytes(self, box: Box) -> int:
        return self.source.task_bytes(box)

    def spans(self, box: Box) -> dict[str, Span]:
        inside = box & self.source.box
        names = (Column(name, side_name(1)).key for name in self.source.schema.dimension_names)
        return dict(zip(names, zip(inside.lo, inside.hi, strict=True), strict=True))


def attributes_of(keys: Iterable[str], side: str, source: ComputedCells) -> list[str]:
    """The attributes of a side among the columns that are read."""
    wanted = set(keys)
    return [name for name in source.schema.attribute_names if f"{side}.{name}" in wanted]


@dataclass(frozen=True)
class JoinReader:
    """A join whose pairs can be read. It pickles. A join may itself be the left side of another."""

    left: LeftSide
    right: ComputedCells
    side: str
    """What expressions call the right side."""
    shape: BoundShape
    mapping: tuple[AxisMap | None, ...]
    selection: Selection
    distance_axes: tuple[int, ...]
    axis_labels: tuple[AxisLabels, ...]
    """Those by which ranges in label units are measured."""
    names: tuple[str, ...] = ()
    """What the query calls the sides."""
    itself: bool = False
    """Whether both sides are one array, each cell of which is mapped to itself."""
    sky: SkyReach | None = None
    """Where partners are found by their distance on the sky."""
    asked: Box | None = None
    """The right cells whose pairs are asked for; None: all."""

    @contextmanager
    def naming(self) -> Iterator[None]:
        """Says in errors about expressions over pairs what the query calls the sides."""
        try:
            yield
        except Error as error:
            what, got, hint = (text and self._named(text) for text in (error.what, error.got, error.hint))
            if (what, got, hint) == (error.what, error.got, error.hint):
                raise
            raise type(error)(str(what), got=got, hint=hint) from None

    def _named(self, text: str) -> str:
        return re.sub(r"\bside(\d+)\.", lambda found: f"{self.names[int(found[1]) - 1]}.", text)

    @property
    def labels(self) -> LabelsByAxis:
        return {one.axis: (one.labels, (one.first, one.first + len(one.labels) - 1)) for one in self.axis_labels}

    @property
    def is_by_shape(self) -> bool:
        """Whether the cells in the shape are the partners, and all of them."""
        return self.sky is None and not self.shape.checked

    @cached_property
    def volume(self) -> float:
        """How many cells a shape holds that lies within the right side's bounds."""
        extents = self.right.box.shape
        runs = self.shape.key_runs()
        listed = float((runs.last - runs.first + 1.0).sum())
        for labelled in self.shape.labelled:
            listed *= self.shape.stop[labelled.axis] - self.shape.start[labelled.axis] + 1.0
        free = [extent for extent, is_free in zip(extents, self.shape.free, strict=True) if is_free]
        return listed * math.prod(map(float, free))

    @property
    def is_mutual(self) -> bool:
        return self.selection.nearest is not None and self.selection.nearest.mutual

    # Boxes of pairs

    def asking_for(self, boxes: Mapping[str, Box]) -> JoinReader:
        """The same without pairs whose right cells lie outside of boxes, by side, as far as others do not change.

        A pair that is left out may have been the nearest, or all that a cell had.
        """
        left = self.left
        if isinstance(left, JoinReader) and not self.is_mutual:
            left = left.asking_for(boxes)
        alone = self.selection.kind == "inner" and self.selection.nearest is None
        asked = boxes.get(self.side) if alone else None
        return replace(self, left=left, asked=None if asked is None or self.right.box in asked else asked)

    def reaching(self, box: Box) -> Box:
        """The first array's cells in a box that can have a partner among those asked for."""
        if self.asked is None or self.sky is not None or not isinstance(self.left, FirstSide):
            return box
        spans = reaching_spans(self.shape, self.mapping, self.asked, self.left.spans(box))
        return Box(tuple(lo for lo, _ in spans.values()), tuple(hi for _, hi in spans.values()))

    def _asked_of(self, pieces: list[Piece]) -> list[Piece]:
        if self.asked is None:
            return pieces
        inside = [replace(piece, box=piece.box & self.asked) for piece in pieces]
        return [piece for piece in inside if not piece.box.is_empty]

    # Estimates

    def right_pieces(self, box: Box) -> list[Piece]:
        """The right cells that can be partners of rows whose first cell lies in a box."""
        return self._asked_of(self._reached_pieces(box))

    def _reached_pieces(self, box: Box) -> list[Piece]:
        """The same, whether these are asked for or not."""
        if (spans := self.left.spans(box)) and any(hi < lo for lo, hi in spans.values()):
            return []
        return partner_pieces(self.shape, self.mapping, spans, self.right.box)

    def _expected_pieces(self, box: Box) -> list[Piece]:
        """Those asked for as far as estimates go: on the sky, cells are where their coordinates say."""
        return self._asked_of(self._all_expected(box))

    def _all_expected(self, box: Box) -> list[Piece]:
        if box not in self._pieces_known:
            held = bounds_in(first_source(self), box)
            pieces = [] if held.is_empty else self._reached_pieces(held)
            self._pieces_known[box] = pieces if self.sky is None else self.sky.expected(held, pieces)
        return self._pieces_known[box]

    @cached_property
    def _pieces_known(self) -> dict[Box, list[Piece]]:
        """Those found so far: estimates ask many times about the same boxes."""
        return {}

    def right_cells(self, box: Box) -> int:
        return sum(self.right.cells_in(piece.box) for piece in self._expected_pieces(box))

    def rows_in(self, box: Box) -> int:
        """About how many pairs there are: right cells lie evenly, as far as anybody knows before reading them."""
        rows = self.left.rows_in(box)
        pieces = self._all_expected(box)
        there = sum(self.right.cells_in(piece.box) for piece in pieces)
        room = max(1, sum(bounds_in(self.right, piece.box).size for piece in pieces))
        partners = there * (min(1.0, self.volume / room) if self.sky is None else self.sky.share)
        if self.selection.nearest is not None:
            partners = min(partners, self.selection.nearest.count)
        pairs = rows * max(1.0, partners)
        if self.asked is None:
            return int(pairs)
        asked = self.right_cells(box)
        if not asked and self.sky is not None:  # coordinates may say otherwise than the cells that they were put into
            asked = min(1, sum(self.right.cells_in(piece.box) for piece in self.right_pieces(box)))
        return max(1, int(pairs * asked / max(1, there))) if asked and rows else 0

    def cells_decoded(self, box: Box) -> int:
        return self.left.cells_decoded(box) + sum(self.right.cells_decoded(p.box) for p in self._expected_pieces(box))

    def task_bytes(self, box: Box) -> int:
        return self.left.task_bytes(box) + 2 * sum(self.right.task_bytes(p.box) for p in self._expected_pieces(box))

    def spans(self, box: Box) -> dict[str, Span]:
        bounds = self.right.box if self.asked is None else self.right.box & self.asked
        names = (f"{self.side}.{name}" for name in self.right.schema.dimension_names)
        return {**self.left.spans(box), **dict(zip(names, zip(bounds.lo, bounds.hi, strict=True), strict=True))}

    def within(self, box: Box) -> JoinReader:
        """The same, as far as a box of the first side needs it."""
        left = self.left.within(self._compared(box)) if self.is_mutual else self.left.within(box)
        pieces = self.right_pieces(box)
        hull = None
        for piece in pieces:
            hull = piece.box if hull is None else hull | piece.box
        return replace(self, left=left, right=self.right if hull is None else self.right.within(hull))

    # Pairs

    def read(self, box: Box, keys: Iterable[str]) -> Rows:
        """All pairs as rows."""
        wanted = set(keys)
        meeting, shares = self.meet(box, wanted)
        left, right = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for _, mine, theirs in shares:
            left.append(mine)
            right.append(theirs)
        return pair_rows(meeting, np.concatenate(left), np.concatenate(right))

    def meet(self, box: Box, keys: Iterable[str]) -> tuple[Meeting, Iterator[Share]]:
        """The rows and cells that meet, and the pairs of some left rows at a time."""
        read = {*keys, *read_nodes([*self.selection.nodes(), *([] if self.sky is None else self.sky.nodes())])}
        if self.is_mutual:
            return self._meet_mutually(box, read)
        meeting = self.gather(box, read)
        return meeting, select_pairs(meeting, self.selection, self._found(meeting))

    def gather(self, box: Box, keys: Iterable[str]) -> Meeting:
        """The rows and the cells that can be partners, read and not yet compared."""
        wanted = set(keys)
        found = self._gather_once(box, wanted) if self.itself and self.sky is None else None
        if found is not None:
            return self._meeting(*found)
        rows = self.left.read(box, wanted)
        return self._meeting(rows, self._partners_of(rows, wanted))

    def _gather_once(self, box: Box, keys: set[str]) -> tuple[Rows, Cells] | None:
        """Cells that are on both sides, read once; None where those of the box are not all among the partners."""
        own = box & self.right.box
        pieces = self.right_pieces(box)
        if not any(own in piece.box and not any(piece.shift) for piece in pieces):
            return None
        mine = side_name(1)
        both = {*attributes_of(keys, mine, self.right), *self._attributes(keys)}
        cells = read_cells(self.right, self.side, pieces, [a for a in self.right.schema.attribute_names if a in both])
        inside = np.ones(cells.rows.length, bool)
        for axis, name in enumerate(self.right.schema.dimension_names):
            places = cells.rows.places(f"{self.side}.{name}")
            inside &= (places == cells.at[axis]) & (places >= own.lo[axis]) & (places <= own.hi[axis])
        taken = cells.rows.take(np.flatnonzero(inside))
        return Rows(taken.length, {mine + key.removeprefix(self.side): c for key, c in taken.columns.items()}), cells

    def _partners_of(self, rows: Rows, keys: set[str]) -> Cells:
        pieces: list[Piece] = []
        if rows.length:
            pieces = partner_pieces(self.shape, self.mapping, _spans(rows, self.mapping), self.right.box)
            pieces = self._asked_of(pieces)
            pieces = pieces if self.sky is None else self.sky.narrowed(rows, pieces)
        return read_cells(self._near(rows, pieces), self.side, pieces, self._attributes(keys))

    def _near(self, rows: Rows, pieces: Sequence[Piece]) -> ComputedCells:
        """The right side without chunks that no row reaches: rows far apart reach few of those between them."""
        if self.sky is not None or len(pieces) != 1 or not isinstance(self.right, ChunkedCells):
            return self.right
        centres = [None if place is None else self._centres(place, rows) for place in self.mapping]
        chunks = partner_chunks(self.shape, centres, self.right.schema.grid, pieces[0].box)
        return self.right if chunks is None else self.right.in_chunks(chunks)

    def _attributes(self, keys: set[str]) -> list[str]:
        return attributes_of(keys, self.side, self.right)

    def _meeting(self, rows: Rows, cells: Cells) -> Meeting:
        centres = [None if place is None else self._centres(place, rows) for place in self.mapping]
        if self.sky is not None:
            return Meeting(rows, cells, centres, self.sky.distances(rows, cells.rows))
        return Meeting(rows, cells, centres, CellDistances(centres, cells.at, self.distance_axes, self._periods()))

    def _periods(self) -> tuple[int, ...]:
        """The extents of periodic dimensions, 0 for the others."""
        return tuple(n * wraps for n, wraps in zip(self.right.box.shape, self.shape.wraps, strict=True))

    def _centres(self, place: AxisMap, rows: Rows) -> Int64Array:
        cells = rows.places(place.cell.key)
        found = image(place, cells)
        # A partner that is not there, in a chain of left joins, has no partner either.
        return np.where(cells == NOWHERE, NOWHERE, found) if (cells == NOWHERE).any() else found

    def partners(self, meeting: Meeting) -> Partners:
        return find_partners(self.shape, meeting.rows.length, meeting.centres, meeting.cells.at, self.labels)

    def _found(self, meeting: Meeting) -> Iterator[Share]:
        if not meeting.rows.length:
            return iter(())
        found = self.partners(meeting).pairs() if self.sky is None else self.sky.pairs(meeting, self.shape)
        return (
            check_labels(self.shape, meeting.centres, meeting.cells.at, self.labels, found)
            if self.shape.checked
            else found
        )

    def _meet_mutually(self, box: Box, keys: set[str]) -> tuple[Meeting, Iterator[Share]]:
        """As meet; other left rows that can have the same partners are there to be compared with."""
        wide = self._compared(box)
        rows = self.left.read(wide, keys)
        own = np.ones(rows.length, bool)
        for name, lo, hi in zip(first_source(self).schema.dimension_names, box.lo, box.hi, strict=True):
            places = rows.places(Column(name, side_name(1)).key)
            own &= (places >= lo) & (places <= hi)
        meeting = self._meeting(rows, self._partners_of(rows.take(np.flatnonzero(own)), keys))
        return meeting, select_mutual(meeting, self.selection, self._found(meeting), own)

    def _compared(self, box: Box) -> Box:
        """The first array's cells whose rows can have partners in common with those in a box."""
        whole = first_source(self).box
        if not isinstance(self.left, FirstSide):  # rows of several cells may come from anywhere
            return whole
        pieces = self.right_pieces(box)
        if not pieces:
            return box & whole
        hull = pieces[0].box
        for piece in pieces[1:]:
            hull = hull | piece.box
        spans = reaching_spans(self.shape, self.mapping, hull, self.left.spans(whole))
        return Box(tuple(lo for lo, _ in spans.values()), tuple(hi for _, hi in spans.values())) | (box & whole)


def bounds_in(source: ComputedCells, box: Box) -> Box:
    """Where in a box a source has cells, as far as that is known before they are read."""
    return source.bounds_in(box) if isinstance(source, BoundedCells) else box & source.box


def pair_rows(meeting: Meeting, left: Int64Array, right: Int64Array) -> Rows:
    """Pairs in the order of their cells, with all columns that were read."""
    order = np.lexsort((right, left))
    return meeting.rows.take(left[order]).beside(meeting.cells.rows.take(right[order]))


def _spans(rows: Rows, mapping: Sequence[AxisMap | None]) -> dict[str, Span]:
    """The ranges of the coordinates that are mapped."""
    spans = {}
    for place in mapping:
        if place is not None:
            cells = rows.places(place.cell.key)
            cells = cells[cells != NOWHERE]
            spans[place.cell.key] = (int(cells.min()), int(cells.max())) if len(cells) else (0, -1)
    return spans


def read_nodes(nodes: Iterable[Node]) -> set[str]:
    """The keys of the columns that expressions read."""
    return {column.key for node in nodes for column in node.columns()}


def first_source(reader: JoinReader) -> ComputedCells:
    left = reader.left
    while isinstance(left, JoinReader):
        left = left.left
    assert isinstance(left, FirstSide)
    return left.source
