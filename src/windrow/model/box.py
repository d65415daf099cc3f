"""Boxes of cells: per dimension an inclusive range of integers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from windrow.errors import SchemaError


@dataclass(frozen=True, slots=True)
class Box:
    """The cells between ``lo`` and ``hi``, both inclusive; empty if ``hi < lo`` in any dimension."""

    lo: tuple[int, ...]
    hi: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.lo) != len(self.hi):
            raise SchemaError("a box needs as many lower as upper bounds", got=f"{len(self.lo)} and {len(self.hi)}")

    @classmethod
    def at(cls, lo: Sequence[int], shape: Sequence[int]) -> Box:
        """The box of ``shape`` whose first cell is ``lo``."""
        return cls(tuple(lo), tuple(start + size - 1 for start, size in zip(lo, shape, strict=True)))

    @property
    def ndim(self) -> int:
        return len(self.lo)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(max(0, hi - lo + 1) for lo, hi in zip(self.lo, self.hi, strict=True))

    @property
    def size(self) -> int:
        """Number of cells."""
        return math.prod(self.shape)

    @property
    def is_empty(self) -> bool:
        return any(hi < lo for lo, hi in zip(self.lo, self.hi, strict=True))

    def __and__(self, other: Box) -> Box:
        """The cells in both boxes (possibly an empty box)."""
        self._check_same_rank(other)
        return Box(
            tuple(map(max, self.lo, other.lo)),
            tuple(map(min, self.hi, other.hi)),
        )

    def __or__(self, other: Box) -> Box:
        """The smallest box that holds both."""
        self._check_same_rank(other)
        if self.is_empty:
            return other
        if other.is_empty:
            return self
        return Box(tuple(map(min, self.lo, other.lo)), tuple(map(max, self.hi, other.hi)))

    def __contains__(self, other: Box | Sequence[int]) -> bool:
        box = other if isinstance(other, Box) else Box(tuple(other), tuple(other))
        return (self & box) == box or box.is_empty

    def overlaps(self, other: Box) -> bool:
        return not (self & other).is_empty

    def dilate(self, before: Sequence[int], after: Sequence[int]) -> Box:
        """The box grown by ``before`` cells at its low and ``after`` cells at its high ends (negative shrinks)."""
        return Box(
            tuple(lo - cells for lo, cells in zip(self.lo, before, strict=True)),
            tuple(hi + cells for hi, cells in zip(self.hi, after, strict=True)),
        )

    def shift(self, offset: Sequence[int]) -> Box:
        return self.dilate([-o for o in offset], list(offset))

    def slices(self, origin: Sequence[int]) -> tuple[slice, ...]:
        """Where this box lies in an ndarray whose first cell is ``origin``."""
        return tuple(
            slice(lo - start, max(lo, hi + 1) - start) for lo, hi, start in zip(self.lo, self.hi, origin, strict=True)
        )

    def _check_same_rank(self, other: Box) -> None:
        if self.ndim != other.ndim:
            raise SchemaError("boxes have different numbers of dimensions", got=f"{self.ndim} and {other.ndim}")

    def __str__(self) -> str:
        return "[" + ", ".join(f"{lo}:{hi}" for lo, hi in zip(self.lo, self.hi, strict=True)) + "]"


def hull(boxes: Iterable[Box]) -> Box | None:
    """The smallest box that holds all of them, or None if there are none."""
    result: Box | None = None
    for box in boxes:
        result = box if result is None else result | box
    return result
