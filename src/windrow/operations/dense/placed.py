"""Dense data that does not go into an array as it lies: dimensions in another order, cells between others."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.errors import SchemaError
from windrow.model.box import Box
from windrow.model.conform import conform
from windrow.model.labels import Labels
from windrow.model.placing import NONE, Placed
from windrow.model.schema import Schema
from windrow.model.source import Blocks, GridSource
from windrow.operations.dense.sources import MemorySource
from windrow.storage.dense.snapshots import DenseSnapshot

Int64Array = npt.NDArray[np.int64]


def arranged(source: GridSource, names: Sequence[str], what: str) -> GridSource:
    """The source with its dimensions in the order of ``names``; an error if it has others."""
    theirs = source.schema.dimension_names
    if theirs == tuple(names):
        return source
    if set(theirs) != set(names):
        raise SchemaError(
            f"{what} has other dimensions than the array",
            got=", ".join(theirs),
            hint=f"The array has {', '.join(names)}",
        )
    return TransposedSource(source, tuple(theirs.index(name) for name in names))


@dataclass(frozen=True)
class TransposedSource:
    """A source whose dimensions come in another ``order``."""

    source: GridSource
    order: tuple[int, ...]

    @property
    def schema(self) -> Schema:
        schema = self.source.schema
        return replace(schema, dimensions=tuple(schema.dimensions[axis] for axis in self.order))

    @property
    def labels(self) -> Mapping[str, Labels]:
        return self.source.labels

    @property
    def numbered(self) -> Sequence[str]:
        """The dimensions along which the source says the numbers of its cells."""
        return getattr(self.source, "numbered", ())

    def read(self, box: Box) -> Blocks:
        back = [self.order.index(axis) for axis in range(box.ndim)]
        inner = Box(tuple(box.lo[axis] for axis in back), tuple(box.hi[axis] for axis in back))
        return {name: values.transpose(self.order) for name, values in self.source.read(inner).items()}


@dataclass(frozen=True, eq=False)
class PlacedSource:
    """A box of an array as it is after a write: cells of ``source``, those that were there, and missing ones.

    ``theirs`` and ``ours`` have, for each position of the box along each dimension, that of the cell in the source,
    counted from ``first``, and of the cell that the array had; -1 where there is none. A cell is the source's if it
    has a place there along all dimensions, else the array's own.
    """

    source: GridSource
    snapshot: DenseSnapshot
    box: Box
    theirs: tuple[Int64Array, ...]
    ours: tuple[Int64Array, ...]
    first: tuple[int, ...]
    attributes: tuple[str, ...]

    @property
    def schema(self) -> Schema:
        ends = zip(self._stored.dimensions, self.box.lo, self.box.hi, strict=True)
        return replace(self._stored, dimensions=tuple(replace(d, lo=lo, hi=hi) for d, lo, hi in ends))

    @property
    def _stored(self) -> Schema:
        return self.snapshot.growing_schema.select(self.attributes)

    @property
    def labels(self) -> Mapping[str, Labels]:
        return {}

    def read(self, box: Box) -> Blocks:
        blocks: dict[str, Any] = {}
        for attribute in self._stored.attributes:
            blocks[attribute.name] = np.full(box.shape, attribute.type.fill, attribute.type.dtype)
            if attribute.has_companion:
                blocks[attribute.companion] = np.zeros(box.shape, bool)
        theirs, ours = (self._part(places, box) for places in (self.theirs, self.ours))
        whole = all((places != NONE).all() for places in theirs)
        if not whole or set(self.attributes) - set(self.source.schema.attribute_names):
            old = self.snapshot
            _fill(blocks, lambda inner: old.read(inner.shift(old.growing_schema.lo), self.attributes), ours)
        _fill(blocks, lambda inner: self._converted(inner.shift(self.first)), theirs)
        return blocks

    def _converted(self, box: Box) -> Blocks:
        """The source's cells with a companion where the array has one: a file may know nothing of missing values."""
        found = self.source.read(box)
        result: dict[str, Any] = {}
        for attribute in self._stored.attributes:
            if attribute.name in found:
                values, valid = conform(found[attribute.name], attribute, found.get(attribute.companion))
                result[attribute.name] = values
                if attribute.has_companion:
                    result[attribute.companion] = np.ones(values.shape, bool) if valid is None else valid
        return result

    def _part(self, places: Sequence[Int64Array], box: Box) -> tuple[Int64Array, ...]:
        return tuple(found[part] for found, part in zip(places, box.slices(self.box.lo), strict=True))

    def touches(self, box: Box) -> bool:
        """Whether any cell of the source lies in the box."""
        return all((places != NONE).any() for places in self._part(self.theirs, box))

    def narrow(self, box: Box) -> PlacedSource:
        """The part of it that a task needs, so that no more travels to a worker."""
        theirs, ours = (self._part(places, box) for places in (self.theirs, self.ours))
        source = self.source
        if isinstance(source, MemorySource) and self.touches(box):
            present = [places[places != NONE] for places in theirs]
            needed = Box(tuple(int(p.min()) for p in present), tuple(int(p.max()) for p in present))
            source = source.narrow(needed.shift(self.first))
        return replace(self, source=source, box=box, theirs=theirs, ours=ours)


def placed_source(
    source: GridSource, snapshot: DenseSnapshot, region: Box, placed: Sequence[Placed], attributes: Iterable[str]
) -> PlacedSource:
    """What a region of an array holds after a write whose cells go where ``placed`` says."""
    theirs, ours = [], []
    wanted = region.slices(snapshot.growing_schema.lo)
    for one, part, extent in zip(placed, wanted, snapshot.box.shape, strict=True):
        there, before = np.full(one.extent, NONE, np.int64), np.full(one.extent, NONE, np.int64)
        there[one.targets] = np.arange(len(one.targets))
        before[np.arange(extent) if one.moved_to is None else one.moved_to] = np.arange(extent)
        theirs.append(there[part])
        ours.append(before[part])
    return PlacedSource(source, snapshot, region, tuple(theirs), tuple(ours), source.schema.lo, tuple(attributes))


def _fill(blocks: Mapping[str, Any], read: Callable[[Box], Blocks], places: Sequence[Int64Array]) -> None:
    """Put what ``read`` gives for the cells named into ``blocks``, run by run."""
    for runs in itertools.product(*map(_runs, places)):
        box = Box(tuple(run[0] for run in runs), tuple(run[1] for run in runs))
        where = tuple(run[2] for run in runs)
        for name, values in read(box).items():
            if all(isinstance(index, slice) for index in where):
                blocks[name][where] = values
            else:
                every = [np.arange(n)[index] for index, n in zip(where, blocks[name].shape, strict=True)]
                blocks[name][np.ix_(*every)] = values


def _runs(places: Int64Array) -> Iterator[tuple[int, int, Any]]:
    """Cells that lie side by side: the first, the last, and where in the block they go."""
    targets = np.flatnonzero(places != NONE)
    targets = targets[np.argsort(places[targets], stable=True)]
    if not len(targets):
        return
    cells = places[targets]
    breaks = [0, *(np.flatnonzero(np.diff(cells) != 1) + 1).tolist(), len(cells)]
    for start, stop in itertools.pairwise(breaks):
        index: Any = targets[start:stop]
        if np.all(np.diff(index) == 1):
            index = slice(int(index[0]), int(index[-1]) + 1)
        yield int(cells[start]), int(cells[stop - 1]), index
