"""What a shape is made of: norms, ranges, lists, stored arrays and circles on the sky, each with its text."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

Names = tuple[str, ...] | None
"""The dimensions a term speaks of; None for all of the array's but its numbering dimension."""

LabelEnd = str | Literal[0]
"""One end of a range in label units: text like '-200 days', or 0, the cell's own label."""


@dataclass(frozen=True, slots=True)
class Norm:
    """Offsets no longer than ``radius`` in one of the norms ``L1``, ``L2``, ``Linf`` or, with a ``power``, ``Lp``.

    ``Hamming`` is taken as one too: its radius is the number of components that may differ from 0.
    """

    kind: str
    radius: float
    on: Names
    power: float | None = None

    def reflect(self) -> Norm:
        return self

    def __str__(self) -> str:
        power = "" if self.power is None else f"{_number(self.power)}, "
        return f"{self.kind}({power}{_number(self.radius)}){_on(self.on)}"


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """Offsets along one dimension from ``start`` to ``stop``, both inclusive; None is no limit."""

    name: str
    start: int | None
    stop: int | None

    def reflect(self) -> OffsetRange:
        return OffsetRange(
            self.name, None if self.stop is None else -self.stop, None if self.start is None else -self.start
        )

    def __str__(self) -> str:
        return f"{self.name} any" if self.start is None else f"{self.name} between {self.start} and {self.stop}"


@dataclass(frozen=True, slots=True)
class LabelRange:
    """Cells whose label lies from ``start`` to ``stop``, both inclusive, after that of the cell."""

    name: str
    start: LabelEnd
    stop: LabelEnd

    def reflect(self) -> LabelRange:
        return LabelRange(self.name, negative(self.stop), negative(self.start))

    def __str__(self) -> str:
        start, stop = (f"'{end}'" if isinstance(end, str) else str(end) for end in (self.start, self.stop))
        return f"{self.name} between {start} and {stop}"


@dataclass(frozen=True, slots=True)
class OffsetList:
    """Exactly these offsets, sorted."""

    offsets: tuple[tuple[int, ...], ...]
    on: Names

    def reflect(self) -> OffsetList:
        return OffsetList(tuple(sorted(tuple(-o for o in offset) for offset in self.offsets)), self.on)

    def __str__(self) -> str:
        shown = ", ".join("(" + ", ".join(map(str, offset)) + ")" for offset in self.offsets)
        return f"offsets ({shown}){_on(self.on)}"


@dataclass(frozen=True, slots=True)
class StoredOffsets:
    """The cells of a stored array, read when a query is bound; ``reflected``, their negatives.

    ``array`` is its name, with a version where one is meant, as in ``S@3``.
    """

    array: str
    on: Names
    reflected: bool = False

    def reflect(self) -> StoredOffsets:
        return StoredOffsets(self.array, self.on, not self.reflected)

    def __str__(self) -> str:
        return f"{self.array}{_on(self.on)}" + (" reflected" if self.reflected else "")


@dataclass(frozen=True, slots=True)
class Sky:
    """Cells whose exact coordinates are at most ``radius`` degrees away on the sphere.

    ``on`` names the longitude, then the latitude; ``text`` is the radius as it was written.
    """

    radius: Fraction
    text: str
    on: tuple[str, str]

    def reflect(self) -> Sky:
        return self

    def __str__(self) -> str:
        return f"Sky('{self.text}'){_on(self.on)}"


Term = Norm | OffsetRange | LabelRange | OffsetList | StoredOffsets | Sky


def negative(end: LabelEnd) -> LabelEnd:
    """An end of a range in label units as it looks from the other side."""
    if not isinstance(end, str):
        return end
    return end[1:] if end.startswith("-") else f"-{end.removeprefix('+')}"


def term_key(term: Term) -> object:
    """What two terms have in common that mean the same on every array."""
    if isinstance(term, Norm):
        return term.kind, term.power, term.radius, None if term.on is None else frozenset(term.on)
    if isinstance(term, OffsetList) and term.on is not None:
        order = sorted(range(len(term.on)), key=lambda k: (term.on or ())[k])
        columns = tuple(term.on[k] for k in order)
        return columns, frozenset(tuple(row[k] for k in order) for row in term.offsets)
    if isinstance(term, Sky):
        return "Sky", term.radius, term.on
    return term


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


def _on(names: Names) -> str:
    return "" if names is None else f" on ({', '.join(names)})"
