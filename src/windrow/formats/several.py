"""Several files that continue one another along a dimension, as one dense source."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.errors import DataError, FileFormatError, nearest
from windrow.formats.dataset import DatasetSource, legal_name
from windrow.model.box import Box
from windrow.model.labels import Labels
from windrow.model.schema import Schema
from windrow.model.source import Blocks


@dataclass(frozen=True)
class ConcatenatedSource:
    """The cells of ``parts`` one after the other along ``axis``; a read opens only the files it needs."""

    parts: tuple[DatasetSource, ...]
    axis: int
    starts: tuple[int, ...]
    schema: Schema
    labels: Mapping[str, Labels] = field(default_factory=dict)
    metadata: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    numbered: tuple[str, ...] = ()

    def read(self, box: Box) -> Blocks:
        if box not in self.schema.box():
            raise DataError("the box is outside the files' cells", got=box, hint=f"They are {self.schema.box()}")
        first = max(0, bisect_right(self.starts, box.lo[self.axis]) - 1)
        last = max(first + 1, bisect_right(self.starts, box.hi[self.axis]))
        pieces = [self._piece(number, box) for number in range(first, last)]
        if len(pieces) == 1:
            return pieces[0]
        joined: dict[str, npt.NDArray[Any]] = {
            name: np.concatenate([piece[name] for piece in pieces], axis=self.axis) for name in pieces[0]
        }
        return joined

    def _piece(self, number: int, box: Box) -> Blocks:
        part = self.parts[number]
        offset = self.starts[number] - part.schema.lo[self.axis]
        shift = [-offset if axis == self.axis else 0 for axis in range(box.ndim)]
        moved = box.shift(shift)
        own = part.schema.box()
        lo, hi = list(moved.lo), list(moved.hi)
        lo[self.axis] = max(lo[self.axis], own.lo[self.axis])
        hi[self.axis] = min(hi[self.axis], own.hi[self.axis])
        return part.read(Box(tuple(lo), tuple(hi)))


def concatenate(parts: Sequence[DatasetSource], along: str | None, *, in_order: bool) -> ConcatenatedSource:
    """Join files along a dimension; those of a pattern are put in the order of their labels."""
    names = parts[0].schema.dimension_names
    parts = [part.arranged(names) if set(part.schema.dimension_names) == set(names) else part for part in parts]
    axis = _axis(parts, along)
    name = parts[0].schema.dimension_names[axis]
    if not in_order and all(name in part.labels for part in parts):
        parts = sorted(parts, key=lambda part: part.labels[name].values[0])
    for part in parts[1:]:
        _check_alike(parts[0], part, axis)
    _refuse_overlap(parts, name)
    starts = [parts[0].schema.lo[axis]]
    for part in parts:
        starts.append(starts[-1] + part.schema.box().shape[axis])
    dimensions = list(parts[0].schema.dimensions)
    dimensions[axis] = replace(dimensions[axis], hi=starts[-1] - 1)
    attributes = tuple(
        replace(a, nullable=any(part.schema.attribute(a.name).nullable for part in parts))
        for a in parts[0].schema.attributes
    )
    schema = replace(parts[0].schema, dimensions=tuple(dimensions), attributes=attributes)
    labels = dict(parts[0].labels)
    for part in parts[1:] if name in labels else ():
        labels[name] = labels[name].concat(part.labels[name])
    # The parts travel to every worker: they need neither their labels nor their metadata there.
    bare = tuple(replace(p, schema=replace(p.schema, attributes=attributes), labels={}, metadata={}) for p in parts)
    return ConcatenatedSource(bare, axis, tuple(starts[:-1]), schema, labels, parts[0].metadata, parts[0].numbered)


def _axis(parts: Sequence[DatasetSource], along: str | None) -> int:
    names = parts[0].schema.dimension_names
    if along is not None:
        if legal_name(along) not in names:
            raise FileFormatError(f"no such dimension in {parts[0].path}", got=repr(along), hint=nearest(along, names))
        return names.index(legal_name(along))
    differing = [
        axis
        for axis, name in enumerate(names)
        if any(p.schema.ndim == len(names) and not _same_axis(parts[0], p, axis, name) for p in parts[1:])
    ]
    if len(differing) != 1:
        got = f"{len(parts)} files of [{', '.join(names)}]"
        hint = f"Name the dimension they continue, as in along={names[0]!r}"
        raise FileFormatError("it is not clear how the files continue one another", got=got, hint=hint)
    return differing[0]


def _same_axis(one: DatasetSource, other: DatasetSource, axis: int, name: str) -> bool:
    if one.schema.box().shape[axis] != other.schema.box().shape[axis]:
        return False
    mine, theirs = one.labels.get(name), other.labels.get(name)
    if mine is None or theirs is None:
        return mine is theirs
    return mine.same_values(theirs)


def _refuse_overlap(parts: Sequence[DatasetSource], name: str) -> None:
    """Refuse files that have one label twice, for nothing says which of the two slices is meant."""
    seen: dict[object, str] = {}
    for part in parts:
        for label in part.labels[name].values.tolist() if name in part.labels else ():
            if label in seen:
                got = f"{label} in {seen[label]} and in {part.path}"
                raise FileFormatError(
                    f"two files overlap along {name}", got=got, hint="Import them one after the other"
                )
            seen[label] = part.path


def _check_alike(first: DatasetSource, other: DatasetSource, axis: int) -> None:
    """Refuse a file that does not continue the first one."""
    if first.schema.dimension_names != other.schema.dimension_names:
        got = f"[{', '.join(other.schema.dimension_names)}] in {other.path}"
        hint = f"{first.path} has [{', '.join(first.schema.dimension_names)}]"
        raise FileFormatError("the files differ in dimensions", got=got, hint=hint)
    for number, name in enumerate(first.schema.dimension_names):
        if number != axis and not _same_axis(first, other, number, name):
            raise FileFormatError(f"the files differ along {name}", got=f"{first.path} and {other.path}")
        if number == axis and (name in first.labels) != (name in other.labels):
            raise FileFormatError(f"only some files label {name}", got=f"{first.path} and {other.path}")
    mine = [(attribute.name, attribute.type) for attribute in first.schema.attributes]
    if mine != [(attribute.name, attribute.type) for attribute in other.schema.attributes]:
        got = f"{', '.join(map(str, other.schema.attributes))} in {other.path}"
        hint = f"{first.path} has {', '.join(map(str, first.schema.attributes))}"
        raise FileFormatError("the files differ in variables or their types", got=got, hint=hint)
