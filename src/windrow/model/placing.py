"""Where the cells of a write go along one dimension: to the cells of their labels, between them, or after the end.

A labelled growing dimension stays in order. A slice whose label is there replaces the one that has it, and a late one
goes where it belongs, which moves those behind it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from windrow.errors import DataError, DuplicateError, UnknownNameError
from windrow.model.labels import Labels

Int64Array = npt.NDArray[np.int64]

NONE = -1
"""Stands for a position at which there is nothing."""


@dataclass(frozen=True)
class Side:
    """A dimension that is written to: its name, whether it grows, how many cells it has, and their labels."""

    name: str
    growing: bool
    extent: int
    labels: Labels | None = None


@dataclass(frozen=True, eq=False)
class Placed:
    """Where the cells of a write go along one dimension, all counted from its first cell.

    ``targets`` has a position for each cell that is written, as a range if they lie side by side as they come.
    ``moved_to`` has one for each that was there, or is None if all stay. ``labels`` are those of the dimension
    afterwards, from ``label_start`` on others than before; None if they stay as they are.
    """

    targets: Int64Array | range
    extent: int
    labels: Labels | None = None
    label_start: int = 0
    moved_to: Int64Array | None = None

    @property
    def is_run(self) -> bool:
        """Whether the cells go side by side, as they come."""
        return isinstance(self.targets, range)

    @property
    def first(self) -> int:
        return self.targets.start if isinstance(self.targets, range) else int(self.targets.min())

    @property
    def last(self) -> int:
        return self.targets.stop - 1 if isinstance(self.targets, range) else int(self.targets.max())

    def replaced(self, extent: int) -> int:
        """How many of the cells were among the ``extent`` ones that the dimension had."""
        if self.moved_to is not None:
            return int(np.isin(self.targets, self.moved_to).sum())
        if isinstance(self.targets, range):
            return max(0, min(extent, self.targets.stop) - self.targets.start)
        return int((self.targets < extent).sum())

    @property
    def first_moved(self) -> int:
        """The first position at which there is another cell than before, if any was moved."""
        assert self.moved_to is not None
        return int(np.flatnonzero(self.moved_to != np.arange(len(self.moved_to)))[0])


def place(side: Side, count: int, given: Labels | None, first: int | None) -> Placed:
    """The place of ``count`` cells, with the labels ``given``; ``first`` is that of the first one, if it was stated."""
    if given is not None and len(given) != count:
        raise DataError(f"dimension {side.name} gets {count} cells", got=f"{len(given)} labels")
    if given is None:
        return _place_unlabelled(side, count, first or 0)
    if side.labels is None:
        return _label_all(side, given, first or 0)
    if len(side.labels):
        given = Labels.of(given.values, given.attributes, side.labels.kind)  # dates may be given as text
    if not side.growing:
        return _find(side, side.labels, given, first)
    placed = _merge(side, side.labels, given)
    if first not in (None, side.extent, int(placed.targets[0])):
        raise _contradiction(side, side.labels, given, first or 0)
    return placed


def _find(side: Side, known: Labels, given: Labels, first: int | None) -> Placed:
    """The cells of a dimension that does not grow; labels need not be unique where they lie as those that are there."""
    start = first or 0
    if start + len(given) <= len(known) and known.slice(start, start + len(given)).same_values(given):
        return Placed(range(start, start + len(given)), side.extent)
    if first is not None:
        raise _contradiction(side, known, given, first)
    _refuse_twins(side.name, given)
    targets = known.positions(given)
    if (targets == NONE).any():
        try:
            known.find(given.values[int(np.argmin(targets))])  # says which label is nearest
        except UnknownNameError as error:
            raise UnknownNameError(f"no such label in {side.name}", got=error.got, hint=error.hint) from None
    return Placed(_as_run(targets), side.extent)


def _place_unlabelled(side: Side, count: int, first: int) -> Placed:
    extent = max(side.extent, first + count)
    if side.labels is not None and extent > side.extent:
        raise DataError(
            f"dimension {side.name} has labels, so cells that are added need some", got="none", hint="Give labels="
        )
    return Placed(range(first, first + count), extent)


def _label_all(side: Side, given: Labels, first: int) -> Placed:
    if first != 0 or len(given) < side.extent:
        raise DataError(
            f"dimension {side.name} has no labels, and a write can only label all of it",
            got=f"labels for {len(given)} cells from the {first + 1}. on, of {max(side.extent, first + len(given))}",
            hint="Set all labels with set_labels()",
        )
    if side.growing and side.extent == 0:
        return _merge(side, given.slice(0, 0), given)
    return Placed(range(len(given)), len(given), given)


def _merge(side: Side, known: Labels, given: Labels) -> Placed:
    """Labels among those that are there: each in its place, if they are in order, else new ones at the end."""
    _refuse_twins(side.name, given)
    there = known.positions(given)
    new = there == NONE
    joined = known.concat(given.take(np.flatnonzero(new)))
    order = _order(known, given, joined)
    place_of = np.empty(len(order), np.int64)
    place_of[order] = np.arange(len(order))
    targets = there.copy()
    targets[new] = np.arange(len(known), len(joined))
    moved = place_of[: len(known)]
    stays = bool(np.all(moved == np.arange(len(known))))
    labels = None if not new.any() else joined.take(order)
    start = len(known) if stays else int(np.flatnonzero(moved != np.arange(len(known)))[0])
    return Placed(_as_run(place_of[targets]), len(joined), labels, start, None if stays else moved)


def _as_run(targets: Int64Array) -> Int64Array | range:
    run = range(int(targets[0]), int(targets[0]) + len(targets))
    return run if np.array_equal(targets, np.arange(run.start, run.stop)) else targets


def _order(known: Labels, given: Labels, joined: Labels) -> Int64Array:
    """How the labels lie afterwards. One label alone says nothing of the order; ascending then, if nothing else is."""
    telling = known if len(known) > 1 else given
    if telling is known and not known.is_monotonic:
        return np.arange(len(joined))
    ascending = np.argsort(joined.values, stable=True).astype(np.int64)
    return ascending[::-1] if len(telling) > 1 and telling.is_decreasing else ascending


def _refuse_twins(name: str, given: Labels) -> None:
    twin = given.first_twin()
    if twin is not None:
        raise DuplicateError(
            f"several slices along {name} have one label", got=str(given.values[twin]), hint="Write one slice for each"
        )


def _contradiction(side: Side, known: Labels, given: Labels, first: int) -> DataError:
    if first > side.extent:
        what = f"dimension {side.name} would be left with unlabelled cells"
        return DataError(what, got=f"labels from the {first + 1}. cell on", hint=f"It has {side.extent}")
    return DataError(
        f"the labels given for dimension {side.name} differ from those of the cells written to",
        got=f"{given.values[0]} where the array has {known.values[min(first, len(known) - 1)]}",
        hint="Leave at= out, and labels decide; or change them with set_labels()",
    )
