"""Neighbours and similarity joins by brute force: every pair of cells is looked at, every rule is applied by its words.

Plain Python, and nothing of windrow: dictionaries of cells, loops over pairs, sums of fractions.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import window_oracle

Cell = tuple[int, ...]
Row = tuple["Cell | None", ...]
"""A cell of each side of a join; None where a left cell has no partner."""
Values = dict[str, Any]
Sided = Sequence[Values]
"""Of each side of a row: its dimensions and attributes by name; all None where a left cell has no partner."""


@dataclass(frozen=True)
class Dimension:
    name: str
    lo: int
    hi: int
    numbering: bool = False
    """Whether it numbers the detections of one cell."""
    labels: Mapping[int, Any] | None = None

    @property
    def extent(self) -> int:
        return self.hi - self.lo + 1


@dataclass(frozen=True)
class Held:
    """An array: its dimensions, and the attributes of each cell that exists, None where missing."""

    dimensions: tuple[Dimension, ...]
    cells: Mapping[Cell, Values]

    def values(self, cell: Cell | None) -> Values:
        names = [dimension.name for dimension in self.dimensions]
        if cell is None:
            return _Nothing()
        found: Values = dict(zip(names, cell, strict=True))
        # NaN is a missing value.
        return found | {name: None if value != value else value for name, value in self.cells[cell].items()}


class _Nothing(dict[str, Any]):
    """Of a cell that is not there, whatever is asked for: an array without cells does not say what it would have."""

    def __missing__(self, name: str) -> None:
        return None


# Shapes


@dataclass(frozen=True)
class Norm:
    """``L1``, ``L2``, ``Linf``, ``Lp`` or ``Hamming``, on some dimensions, or on all but the numbering one."""

    kind: str
    radius: float
    on: tuple[str, ...] | None = None
    power: float | None = None

    def holds(self, components: Sequence[int]) -> bool:
        lengths = [abs(component) for component in components]
        radius = Fraction(self.radius)
        if self.kind == "L1":
            return sum(lengths) <= radius
        if self.kind == "L2":
            return sum(length**2 for length in lengths) <= radius**2
        if self.kind == "Linf":
            return max(lengths, default=0) <= radius
        if self.kind == "Hamming":
            return sum(length != 0 for length in lengths) <= radius
        assert self.kind == "Lp"
        assert self.power is not None
        return sum(length**self.power for length in lengths) <= self.radius**self.power


@dataclass(frozen=True)
class Between:
    """Offsets along one dimension, both ends included; without limits (None) any."""

    name: str
    first: Any
    last: Any
    by_label: bool = False
    """Whether the ends are distances between labels instead of cells."""


@dataclass(frozen=True)
class Listed:
    """Exactly these offsets."""

    offsets: tuple[Cell, ...]
    on: tuple[str, ...]


@dataclass(frozen=True)
class Sky:
    """No more than so many degrees apart on the sphere, by exact coordinates; it is a shape's only term."""

    radius: float

    def distance(self, one: Values, other: Values) -> float | None:
        """In degrees, by the haversine; None if it is too far."""
        north, north2 = math.radians(one["dec_exact"]), math.radians(other["dec_exact"])
        east = math.radians(one["ra_exact"] - other["ra_exact"])
        half = math.sin((north - north2) / 2) ** 2 + math.cos(north) * math.cos(north2) * math.sin(east / 2) ** 2
        far = math.degrees(2 * math.asin(min(1.0, math.sqrt(half))))
        return far if far <= self.radius else None


@dataclass(frozen=True)
class Shape:
    terms: tuple[Any, ...]
    """Norms, ranges and lists, all of which hold; or the sky."""
    wraps: frozenset[str] = frozenset()
    excludes_self: bool = False

    def named(self, dimensions: Sequence[Dimension]) -> set[str]:
        """The dimensions that a term speaks of."""
        found: set[str] = set()
        for term in self.terms:
            if isinstance(term, Between):
                found.add(term.name)
            else:
                found |= set(self._on(term, dimensions))
        return found

    def normed(self, dimensions: Sequence[Dimension]) -> set[str]:
        """The dimensions that distances are measured along."""
        norms = [term for term in self.terms if isinstance(term, Norm)]
        found = {name for term in norms for name in self._on(term, dimensions)}
        return found or {dimension.name for dimension in dimensions if not dimension.numbering}

    @staticmethod
    def _on(term: Norm | Listed, dimensions: Sequence[Dimension]) -> tuple[str, ...]:
        if term.on is not None:
            return term.on
        return tuple(dimension.name for dimension in dimensions if not dimension.numbering)

    def holds(self, offset: Mapping[str, int], dimensions: Sequence[Dimension]) -> bool:
        """Whether an offset, of those dimensions that have a partner, is one of the shape's; labels apart."""
        named = self.named(dimensions)
        for dimension in dimensions:
            name = dimension.name
            if name in offset and name not in named and not dimension.numbering and offset[name] != 0:
                return False
        for term in self.terms:
            if isinstance(term, Between):
                unlimited = term.by_label or term.first is None
                if not unlimited and not term.first <= offset[term.name] <= term.last:
                    return False
                continue
            components = tuple(offset[name] for name in self._on(term, dimensions))
            if isinstance(term, Norm) and not term.holds(components):
                return False
            if isinstance(term, Listed) and components not in term.offsets:
                return False
        return True

    def reach(self) -> int:
        """No term with a limit allows a longer component."""
        ends = [0]
        for term in self.terms:
            if isinstance(term, Norm):
                ends.append(math.ceil(term.radius))
            elif isinstance(term, Listed):
                ends += [abs(component) for offset in term.offsets for component in offset]
            elif not term.by_label and term.first is not None:
                ends += [abs(term.first), abs(term.last)]
        return max(ends)


# The mapping


@dataclass(frozen=True)
class Place:
    """Where a shape is centred along a right dimension: at ``scale * d + shift``, or at ``d // divisor + shift``."""

    dimension: str
    scale: int = 1
    divisor: int = 1
    shift: int = 0
    side: int = 0

    def of(self, sides: Sided) -> int:
        return self.scale * sides[self.side][self.dimension] // self.divisor + self.shift


Condition = Callable[[Sided, float], "bool | None"]
"""Of a row, and of the distance of its last two cells (NaN if there is none)."""
Measured = Callable[[Sided, float], Any]


@dataclass(frozen=True)
class Nearest:
    count: int = 1
    by: Measured | None = None
    mutual: bool = False


@dataclass(frozen=True)
class Step:
    """One join: the array on its right, and how its cells are found. What ``mapping`` leaves out may be anywhere."""

    right: Held
    shape: Shape
    mapping: Mapping[str, Place]
    condition: Condition | None = None
    kind: str = "inner"
    nearest: Nearest | None = None


def identity(left: Held, right: Held) -> dict[str, Place]:
    """Each right dimension at the left one of the same name."""
    known = {dimension.name for dimension in left.dimensions}
    return {d.name: Place(d.name) for d in right.dimensions if d.name in known}


# Pairs


@dataclass(frozen=True)
class Joined:
    """The rows of a chain of joins, in the order of their coordinates, with the distance of each row's last pair."""

    sides: tuple[Held, ...]
    rows: tuple[tuple[Row, float], ...]

    def values(self, row: Row) -> list[Values]:
        return [side.values(cell) for side, cell in zip(self.sides, row, strict=True)]

    def where(self, condition: Condition) -> Joined:
        """The rows for which a condition is true, those without partner among them."""
        kept = [(row, far) for row, far in self.rows if condition(self.values(row), far) is True]
        return Joined(self.sides, tuple(kept))


def join(first: Held, *steps: Step) -> Joined:
    found = Joined((first,), tuple(((cell,), math.nan) for cell in sorted(first.cells)))
    for step in steps:
        found = _step(found, step)
    return found


def _step(left: Joined, step: Step) -> Joined:
    partners: dict[Row, list[tuple[Cell, float]]] = {}
    for row, _ in left.rows:
        values = left.values(row)
        near = []
        for cell in sorted(step.right.cells):
            far = _distance(values, cell, step)
            if far is None:
                continue
            paired = [*values, step.right.values(cell)]
            if step.condition is None or step.condition(paired, far) is True:
                near.append((cell, far))
        partners[row] = near
    if step.nearest is not None:
        partners = _nearest(partners, left, step)
    rows: list[tuple[Row, float]] = []
    for row, near in partners.items():
        if step.kind != "anti":
            rows += [((*row, cell), far) for cell, far in near]
        if not near and step.kind != "inner":
            rows.append(((*row, None), math.nan))
    return Joined((*left.sides, step.right), tuple(rows))


def _distance(left: Sided, cell: Cell, step: Step) -> float | None:
    """The length of the shortest offset of the shape that leads to a cell; None if none does."""
    dimensions = step.right.dimensions
    centre = {name: place.of(left) for name, place in step.mapping.items()}
    found = dict(zip((dimension.name for dimension in dimensions), cell, strict=True))
    if step.shape.excludes_self and all(
        name in centre and _same(found[name], centre[name], dimension, step.shape)
        for name, dimension in zip(found, dimensions, strict=True)
    ):
        return None
    for term in step.shape.terms:
        if isinstance(term, Sky):
            return term.distance(left[-1], step.right.values(cell))
    if not all(_labels_hold(term, found, centre, dimensions) for term in step.shape.terms):
        return None
    measured = step.shape.normed(dimensions) & set(centre)
    lengths = [
        sum(offset[name] ** 2 for name in measured)
        for offset in _ways(found, centre, dimensions, step.shape)
        if step.shape.holds(offset, dimensions)
    ]
    return math.sqrt(min(lengths)) if lengths else None


def _same(place: int, centre: int, dimension: Dimension, shape: Shape) -> bool:
    apart = place - centre
    return apart % dimension.extent == 0 if dimension.name in shape.wraps else apart == 0


def _ways(
    found: Mapping[str, int], centre: Mapping[str, int], dimensions: Sequence[Dimension], shape: Shape
) -> Iterator[dict[str, int]]:
    """Every offset that leads from the centre to a cell: one, or many where a dimension goes round."""
    choices: dict[str, list[int]] = {}
    for dimension in dimensions:
        name = dimension.name
        if name not in centre:
            continue
        apart = found[name] - centre[name]
        choices[name] = [apart]
        if name in shape.wraps:
            limit = shape.reach() + dimension.extent
            choices[name] = [o for o in range(-limit, limit + 1) if (o - apart) % dimension.extent == 0]
    for offset in itertools.product(*choices.values()):
        yield dict(zip(choices, offset, strict=True))


def _labels_hold(
    term: Norm | Between | Listed,
    found: Mapping[str, int],
    centre: Mapping[str, int],
    dimensions: Sequence[Dimension],
) -> bool:
    if not isinstance(term, Between) or not term.by_label:
        return True
    labels = next(dimension.labels for dimension in dimensions if dimension.name == term.name)
    assert labels is not None
    return bool(term.first <= labels[found[term.name]] - labels[centre[term.name]] <= term.last)


def _nearest(
    partners: dict[Row, list[tuple[Cell, float]]], left: Joined, step: Step
) -> dict[Row, list[tuple[Cell, float]]]:
    assert step.nearest is not None
    rule = step.nearest

    def key(row: Row, cell: Cell, far: float) -> float:
        if rule.by is None:
            return far
        found = rule.by([*left.values(row), step.right.values(cell)], far)
        return math.inf if found is None or found != found else found

    if not rule.mutual:
        return {
            row: sorted(sorted(near, key=lambda pair: (key(row, *pair), pair[0]))[: rule.count])
            for row, near in partners.items()
        }
    first_right = {
        row: min(near, key=lambda pair: (key(row, *pair), pair[0]))[0] for row, near in partners.items() if near
    }
    first_left: dict[Cell, tuple[float, Row]] = {}
    for row, near in partners.items():
        for cell, far in near:
            mine = (key(row, cell, far), row)
            first_left[cell] = min(first_left.get(cell, mine), mine)  # type: ignore[type-var]
    return {
        row: [(cell, far) for cell, far in near if first_right[row] == cell and first_left[cell][1] == row]
        for row, near in partners.items()
    }


# Aggregates


@dataclass(frozen=True)
class Measure:
    """An aggregate of expressions over rows; ``count_all`` is count(*) and takes none."""

    aggregate: str
    arguments: tuple[Measured, ...] = ()
    parameter: float | None = None


@dataclass
class Group:
    """The values of each measure's arguments over the pairs of one group."""

    pairs: int = 0
    values: dict[str, list[tuple[Any, ...]]] = field(default_factory=dict)

    def result(self, name: str, measure: Measure, min_count: int = 0) -> Any:
        present = [v for v in self.values.get(name, []) if all(_is_present(part) for part in v)]
        count = self.pairs if measure.aggregate == "count_all" else len(present)
        if count < min_count:
            return None
        if measure.aggregate == "count_all":
            return self.pairs
        if len(measure.arguments) == 2:
            return window_oracle.of_pairs(measure.aggregate, [(a, b) for a, b in present])
        return window_oracle.aggregate(measure.aggregate, measure.parameter, [v for (v,) in present], self.pairs)


def _is_present(value: Any) -> bool:
    return value is not None and value == value


def grouped(joined: Joined, by: Sequence[tuple[int, str]], measures: Mapping[str, Measure]) -> dict[Cell, Group]:
    """Rows that agree in some dimensions, each given as its side and name. Of no dimensions there is one group."""
    groups: dict[Cell, Group] = {} if by else {(): Group()}
    for row, far in sorted(joined.rows, key=lambda pair: tuple(cell or () for cell in pair[0])):
        values = joined.values(row)
        group = groups.setdefault(tuple(values[side][name] for side, name in by), Group())
        if row[-1] is None:
            continue
        group.pairs += 1
        for name, measure in measures.items():
            group.values.setdefault(name, []).append(tuple(of(values, far) for of in measure.arguments))
    return groups


def aggregated(
    joined: Joined, by: Sequence[tuple[int, str]], measures: Mapping[str, Measure], min_count: int = 0
) -> dict[Cell, Values]:
    """The results of each group by name, None where missing."""
    return {
        key: {name: group.result(name, measure, min_count) for name, measure in measures.items()}
        for key, group in grouped(joined, by, measures).items()
    }


def neighbours(
    array: Held, shape: Shape, measures: Mapping[str, Measure], min_count: int = 0
) -> tuple[dict[Cell, Values], dict[Cell, Group]]:
    """Aggregates around every cell of an array, and what they were taken of."""
    around = join(array, Step(array, shape, identity(array, array), kind="left"))
    by = [(0, dimension.name) for dimension in array.dimensions]
    return aggregated(around, by, measures, min_count), grouped(around, by, measures)
