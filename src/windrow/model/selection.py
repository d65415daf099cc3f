"""What a user's selection means: a box of cells from indices and labels.

Integers are indices, everything else is a label: ``i=3`` and ``i=(1, 10)`` name cells, ``lat=30.0`` and
``time=("2012-01-01", "2012-01-31")`` name what the cells are called. Ranges are inclusive at both ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np

from windrow.errors import DataError, UnknownNameError
from windrow.model.box import Box
from windrow.model.gridding import Axis, Gridding
from windrow.model.labels import Labels
from windrow.model.schema import Schema

_HINT = "Select by index, as in 3 or (1, 10), or by label, as in 12.5 or ('2012-01-01', '2012-01-31')"


def resolve(
    schema: Schema,
    box: Box,
    labels: Mapping[str, Labels],
    selection: Mapping[str, object],
    gridding: Gridding | None = None,
) -> Box:
    """The part of ``box``, the array's present cells, that ``selection`` names; dimensions left out are whole.

    Indices outside the box are an error, as clipping them would hide a mistake. A range of labels that matches
    nothing gives an empty box.
    """
    lo, hi = list(box.lo), list(box.hi)
    for name, wanted in selection.items():
        axis = schema.axis(name)
        gridded = gridding.axis(name) if gridding is not None and name in gridding.names else None
        origin = schema.dimensions[axis].lo
        dimension = _Selectable(name, box.lo[axis], box.hi[axis], origin, labels.get(name), gridded)
        lo[axis], hi[axis] = dimension.select(wanted)
    return Box(tuple(lo), tuple(hi))


@dataclass(frozen=True)
class _Selectable:
    """One dimension of the present box, with what names its cells; labels count from ``origin``."""

    name: str
    lo: int
    hi: int
    origin: int
    labels: Labels | None
    axis: Axis | None

    def select(self, wanted: object) -> tuple[int, int]:
        """The first and last cell, first > last if labels match nothing."""
        if not isinstance(wanted, (tuple, list, slice, range)):
            return self._index_range(wanted, wanted) if _is_index(wanted) else self._label(self._checked(wanted))
        first, last = self._ends(wanted)
        given = [end for end in (first, last) if end is not None]
        named = [self._checked(end) for end in given if not _is_index(end)]
        if not named:
            return self._index_range(first, last)
        if len(named) < len(given):
            raise DataError(
                f"the range of {self.name} mixes an index and a label",
                got=repr(wanted),
                hint="Write number labels with a point or in quotes, as in 30.0 or '30'",
            )
        return self._label_range(first, last)

    def _ends(self, wanted: tuple[object, ...] | list[object] | slice | range) -> tuple[object, object]:
        if isinstance(wanted, range):
            if wanted.step != 1 or not len(wanted):
                raise DataError(f"the range of {self.name} needs cells one by one", got=repr(wanted), hint=_HINT)
            return wanted.start, wanted.stop - 1
        if isinstance(wanted, slice):
            if wanted.step is not None:
                raise DataError(
                    f"a selection of {self.name} cannot skip cells", got=repr(wanted), hint="Leave the step out"
                )
            return wanted.start, wanted.stop
        if len(wanted) != 2:
            raise DataError(f"a range of {self.name} has two ends", got=repr(wanted), hint=_HINT)
        return wanted[0], wanted[1]

    def _checked(self, label: object) -> object:
        """``label`` if it is something that could name a cell of this dimension."""
        if not isinstance(label, (str, float, np.floating, np.datetime64, date)) or label != label:
            raise DataError(f"not a selection of {self.name}", got=repr(label), hint=_HINT)
        if self.labels is None and self.axis is None:
            raise DataError(
                f"dimension {self.name} has no labels to select by",
                got=repr(label),
                hint=f"Select by index. {self._present}",
            )
        return label

    @property
    def _present(self) -> str:
        return "There are no cells yet" if self.hi < self.lo else f"The cells go from {self.lo} to {self.hi}"

    def _index_range(self, first: Any, last: Any) -> tuple[int, int]:
        lo = self.lo if first is None else int(first)
        hi = self.hi if last is None else int(last)
        if first is None and last is None:
            return lo, hi
        shown = str(lo) if lo == hi else f"{lo} to {hi}"
        if not (self.lo <= lo <= self.hi and self.lo <= hi <= self.hi):
            raise DataError(f"the selection of {self.name} is outside the array", got=shown, hint=self._present)
        if lo > hi:
            raise DataError(f"the range of {self.name} ends before it starts", got=shown, hint=self._present)
        return lo, hi

    def _label(self, label: object) -> tuple[int, int]:
        """The cell of one label; a month selects all its days, as in xarray."""
        if self.labels is None or self.labels.kind == "datetime":
            first, last = self._label_range(label, label)
        else:
            first = last = self.origin + self.labels.find(label)
        if max(first, self.lo) <= min(last, self.hi):
            return first, last
        if self.labels is not None:
            self.labels.find(label)  # says which label is nearest
        raise UnknownNameError(f"no cell of {self.name} has this coordinate", got=repr(label), hint=self._present)

    def _label_range(self, lower: object, upper: object) -> tuple[int, int]:
        if self.labels is not None:
            first, last = self.labels.find_range(*self._ordered(self.labels, lower, upper))
            return max(self.origin + first, self.lo), min(self.origin + last, self.hi)
        assert self.axis is not None
        lowest, highest = self.axis.label_range(lower, upper)
        return max(lowest, self.lo), self.hi if highest is None else min(highest, self.hi)

    def _ordered(self, labels: Labels, lower: object, upper: object) -> tuple[object, object]:
        """The ends, lower first: where labels decrease, users also write the range as it lies, (60.0, 30.0)."""
        if lower is None or upper is None or labels.parse(lower) <= labels.parse(upper):
            return lower, upper
        if labels.is_decreasing:
            return upper, lower
        raise DataError(f"the range of {self.name} ends before it starts", got=f"{lower} to {upper}")


def _is_index(value: object) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_))
