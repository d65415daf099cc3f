"""What a view must hold, by brute force: its definition evaluated over dictionaries of cells, in plain Python.

A definition is a tree of the steps below. Each step says itself in windrow's language (``text``) and knows its meaning
(``of``), which is made of the twins that joins and windows have already; windrow takes no part in it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Protocol

import join_oracle
from join_oracle import Cell, Dimension, Group, Held, Joined, Measure, Nearest, Place, Shape, Sided, Values

Arrays = Mapping[str, Held]
"""The arrays, and the views that views stand on, by name."""


class Said(Protocol):
    """An expression over one or two sides: as text, and what it means."""

    def text(self, left: str, right: str) -> str: ...

    def of(self, sides: Sided, far: float) -> Any: ...


@dataclass(frozen=True)
class Column:
    """A column by its name, of the last side, or an expression of it; missing makes missing."""

    name: str
    written: str = "{}"
    function: Callable[[Any], Any] = lambda value: value

    def text(self, left: str, right: str) -> str:
        return self.written.format(f"{right}.{self.name}" if right else self.name)

    def of(self, sides: Sided, far: float) -> Any:
        value = sides[-1][self.name]
        return None if value is None or value != value else self.function(value)


@dataclass(frozen=True)
class Taken:
    """An aggregate under a name."""

    name: str
    aggregate: str
    arguments: tuple[Said, ...] = ()
    parameter: float | None = None

    def text(self, left: str, right: str) -> str:
        if self.aggregate == "count_all":
            return f"count(*) as {self.name}"
        parts = [argument.text(left, right) for argument in self.arguments]
        parts += [] if self.parameter is None else [f"{self.parameter:g}"]
        return f"{self.aggregate}({', '.join(parts)}) as {self.name}"

    def measure(self) -> Measure:
        return Measure(self.aggregate, tuple(argument.of for argument in self.arguments), self.parameter)


@dataclass(frozen=True)
class Answer:
    """An array of results, and for those that were aggregated what each was taken of."""

    held: Held
    groups: Mapping[Cell, Group] = field(default_factory=dict)
    measures: Mapping[str, Measure] = field(default_factory=dict)

    @property
    def cells(self) -> Mapping[Cell, Values]:
        return self.held.cells

    @property
    def names(self) -> list[str]:
        return [dimension.name for dimension in self.held.dimensions]

    @property
    def lows(self) -> list[int]:
        return [dimension.lo for dimension in self.held.dimensions]


class Step(Protocol):
    def text(self) -> str: ...

    def of(self, arrays: Arrays) -> Answer: ...

    def bases(self) -> frozenset[str]: ...


def _operand(step: Step) -> str:
    return step.name if isinstance(step, Scan) else f"({step.text()})"


# One array


@dataclass(frozen=True)
class Scan:
    name: str

    def text(self) -> str:
        return f"select * from {self.name}"

    def of(self, arrays: Arrays) -> Answer:
        return Answer(arrays[self.name])

    def bases(self) -> frozenset[str]:
        return frozenset({self.name})


@dataclass(frozen=True)
class Chosen:
    """Some cells, some columns: ``where``, ``having`` and projections."""

    input: Step
    condition: Said | None = None
    columns: Mapping[str, Said] | None = None
    box: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Ranges of dimensions: the result is no longer than these."""

    def text(self) -> str:
        items = "*"
        if self.columns is not None:
            items = ", ".join(f"{one.text('', '')} as {name}" for name, one in self.columns.items())
        said = [f"{name} between {lo} and {hi}" for name, (lo, hi) in self.box.items()]
        said += [] if self.condition is None else [self.condition.text("", "")]
        where = f" where {' and '.join(said)}" if said else ""
        return f"select {items} from {_operand(self.input)}{where}"

    def of(self, arrays: Arrays) -> Answer:
        below = self._inside(self.input.of(arrays))
        kept = {cell: below.held.values(cell) for cell in below.cells}
        if self.condition is not None:
            kept = {cell: row for cell, row in kept.items() if self.condition.of([row], math.nan) is True}
        if self.columns is not None:
            cells = {
                cell: {name: one.of([row], math.nan) for name, one in self.columns.items()}
                for cell, row in kept.items()
            }
            return Answer(Held(below.held.dimensions, cells))
        return replace(below, held=Held(below.held.dimensions, {cell: below.cells[cell] for cell in kept}))

    def _inside(self, below: Answer) -> Answer:
        if not self.box:
            return below
        whole = below.held.dimensions
        ends = [self.box.get(d.name, (d.lo, d.hi)) for d in whole]
        dimensions = tuple(replace(d, lo=lo, hi=hi) for d, (lo, hi) in zip(whole, ends, strict=True))
        cells = {
            cell: row
            for cell, row in below.cells.items()
            if all(lo <= place <= hi for place, (lo, hi) in zip(cell, ends, strict=True))
        }
        return replace(below, held=Held(dimensions, cells))

    def bases(self) -> frozenset[str]:
        return self.input.bases()


@dataclass(frozen=True)
class Later:
    """The cells from some place along a growing dimension on, or from some label on, up to another or to the end."""

    array: str
    first: Any
    last: Any = None
    """Numbers of cells, or days."""

    def text(self) -> str:
        name = "cell(t)" if self.array == "D" and isinstance(self.first, int) else "t"
        said = [f"{name} >= {_said(self.first)}"] + ([] if self.last is None else [f"{name} <= {_said(self.last)}"])
        return f"select * from {self.array} where {' and '.join(said)}"

    def of(self, arrays: Arrays) -> Answer:
        held = arrays[self.array]
        axis = held.dimensions[0]
        places = [
            at for at in range(axis.lo, axis.hi + 1) if self._holds(at if axis.labels is None else self._of(axis, at))
        ]
        lo = places[0] if places else axis.hi + 1
        if isinstance(self.first, int):
            lo = max(self.first, axis.lo)
        labels = None if axis.labels is None else {at: axis.labels[at] for at in places}
        axis = replace(axis, lo=lo, hi=places[-1] if places else lo - 1, labels=labels)
        cells = {cell: row for cell, row in held.cells.items() if cell[0] in places}
        return Answer(Held((axis, *held.dimensions[1:]), cells))

    def _of(self, axis: Dimension, at: int) -> Any:
        assert axis.labels is not None
        return at if isinstance(self.first, int) else axis.labels[at]

    def _holds(self, place: Any) -> bool:
        return bool(place >= self.first and (self.last is None or place <= self.last))

    def bases(self) -> frozenset[str]:
        return frozenset({self.array})


def _said(end: Any) -> str:
    return str(end) if isinstance(end, int) else f"'{end:%Y-%m-%d}'"


@dataclass(frozen=True)
class Windowed:
    """Windows and regrids: at every cell that is there, or every so many; a block is there if it holds a cell."""

    input: Step
    extents: Mapping[str, tuple[Any, Any]]
    """In cells, or in time between labels."""
    taken: tuple[Taken, ...]
    steps: Mapping[str, int] = field(default_factory=dict)
    wraps: frozenset[str] = frozenset()
    boundary: str = "clip"
    min_count: int = 0

    @classmethod
    def regrid(cls, input: Step, sizes: Mapping[str, int], taken: tuple[Taken, ...]) -> Windowed:
        return cls(input, {name: (0, size - 1) for name, size in sizes.items()}, taken, sizes)

    @property
    def is_regrid(self) -> bool:
        """Whether its text says so; a window that moves by its own size may ask for more than a regrid can."""
        plain = not self.wraps and self.boundary == "clip" and not self.min_count
        return plain and all(self.extents[n] == (0, self.steps.get(n, 1) - 1) for n in self.extents)

    def text(self) -> str:
        items = ", ".join(one.text("", "") for one in self.taken)
        if self.is_regrid and self.steps:
            blocks = ", ".join(f"{name} {size}" for name, size in self.steps.items())
            return f"select {items} from {_operand(self.input)} regrid ({blocks})"
        axes = ", ".join(
            f"{name} {_extent(a, b)}{' wrap' if name in self.wraps else ''}" for name, (a, b) in self.extents.items()
        )
        text = f"select {items} from {_operand(self.input)} window ({axes})"
        text += f" step ({', '.join(f'{name} {step}' for name, step in self.steps.items())})" if self.steps else ""
        text += f" boundary {self.boundary}" if self.boundary != "clip" else ""
        return text + (f" min count {self.min_count}" if self.min_count else "")

    def of(self, arrays: Arrays) -> Answer:
        held = self.input.of(arrays).held
        places: dict[Cell, Cell] = {}
        for cell in held.cells:
            numbers = [(c - d.lo) // self._step(d) for c, d in zip(cell, held.dimensions, strict=True)]
            lows = [dimension.lo for dimension in held.dimensions]
            at = tuple(lo + n * self._step(d) for lo, n, d in zip(lows, numbers, held.dimensions, strict=True))
            if at == cell or self.is_regrid:
                places[tuple(lo + n for lo, n in zip(lows, numbers, strict=True))] = at
        measures = {one.name: one.measure() for one in self.taken}
        groups = {result: self._group(held, at, measures) for result, at in places.items()}
        cells = {}
        for result, at in places.items():
            whole = self.boundary == "clip" or all(
                self._is_whole(p, d) for p, d in zip(at, held.dimensions, strict=True)
            )
            cells[result] = {
                name: groups[result].result(name, one, self.min_count) if whole else None
                for name, one in measures.items()
            }
        dimensions = tuple(replace(d, hi=d.lo + (d.hi - d.lo) // self._step(d), labels=None) for d in held.dimensions)
        return Answer(Held(dimensions, cells), groups, measures)

    def _step(self, dimension: Dimension) -> int:
        """Blocks hold cells of any number, unless they name the dimension that numbers them."""
        if dimension.numbering and dimension.name not in self.extents and self.is_regrid and self.steps:
            return dimension.extent
        return self.steps.get(dimension.name, 1)

    def _is_whole(self, place: int, dimension: Dimension) -> bool:
        a, b = self.extents.get(dimension.name, (0, 0))
        assert not isinstance(a, timedelta)
        return dimension.name in self.wraps or (dimension.lo <= place + a and place + b <= dimension.hi)

    def _group(self, held: Held, at: Cell, measures: Mapping[str, Measure]) -> Group:
        axes = []
        for place, dimension in zip(at, held.dimensions, strict=True):
            a, b = self.extents.get(dimension.name, (0, 0))
            if dimension.numbering and dimension.name not in self.extents:
                axes.append(list(range(dimension.lo, dimension.hi + 1)))
                continue
            if isinstance(a, timedelta):
                assert dimension.labels is not None
                here = dimension.labels[place]
                axes.append([c for c, label in dimension.labels.items() if here + a <= label <= here + b])
                continue
            reached = range(place + a, place + b + 1)
            if dimension.name in self.wraps:
                axes.append(sorted({dimension.lo + (c - dimension.lo) % dimension.extent for c in reached}))
            else:
                axes.append([c for c in reached if dimension.lo <= c <= dimension.hi])
        return group_of([held.values(c) for c in itertools.product(*axes) if c in held.cells], measures)

    def bases(self) -> frozenset[str]:
        return self.input.bases()


@dataclass(frozen=True)
class Operated:
    """A user's operator: of the nine cells around each a multiple of the sum of m, and the largest x."""

    array: str
    factor: int

    def text(self) -> str:
        return f"select * from views_blur({self.array}, {self.factor})"

    def of(self, arrays: Arrays) -> Answer:
        held = arrays[self.array]
        cells: dict[Cell, Values] = {}
        for t, y in held.cells:
            around = [(t + a, y + b) for a in (-1, 0, 1) for b in (-1, 0, 1)]
            near = [held.values(cell) for cell in around if cell in held.cells]
            tops = [row["x"] for row in near if row["x"] is not None]
            cells[t, y] = {"total": self.factor * sum(row["m"] for row in near), "top": max(tops, default=None)}
        return Answer(Held(held.dimensions, cells))

    def bases(self) -> frozenset[str]:
        return frozenset({self.array})


def _extent(first: Any, last: Any) -> str:
    if not isinstance(first, timedelta):
        return f"between {first} and {last}"
    # A trailing window of n days ends n days after it began, so that the first moment is not in it.
    return f"within '{last.days} days'" if last else f"trailing '{-first.days + 1} days'"


def group_of(rows: Sequence[Values], measures: Mapping[str, Measure]) -> Group:
    """Cells in coordinate order, as one group."""
    group = Group(len(rows))
    for name, measure in measures.items():
        group.values[name] = [tuple(of([row], math.nan) for of in measure.arguments) for row in rows]
    return group


@dataclass(frozen=True)
class Grouped:
    """Totals: cells that agree in some dimensions. Of no dimensions there is one group, and it is always there."""

    input: Step
    by: tuple[str, ...]
    taken: tuple[Taken, ...]
    having: Said | None = None

    def text(self) -> str:
        items = ", ".join(one.text("", "") for one in self.taken)
        text = f"select {items} from {_operand(self.input)}"
        text += f" group by {', '.join(self.by)}" if self.by else ""
        return text + (f" having {self.having.text('', '')}" if self.having is not None else "")

    def of(self, arrays: Arrays) -> Answer:
        held = self.input.of(arrays).held
        rows: dict[Cell, list[Values]] = {} if self.by else {(): []}
        for cell in sorted(held.cells):
            values = held.values(cell)
            rows.setdefault(tuple(values[name] for name in self.by), []).append(values)
        measures = {one.name: one.measure() for one in self.taken}
        groups = {key: group_of(members, measures) for key, members in rows.items()}
        known = {dimension.name: dimension for dimension in held.dimensions}
        found = _answer(tuple(known[name] for name in self.by), groups, measures)
        return found if self.having is None else having(found, self.having)

    def bases(self) -> frozenset[str]:
        return self.input.bases()


def having(answer: Answer, condition: Said) -> Answer:
    kept = {
        cell: row for cell, row in answer.cells.items() if condition.of([answer.held.values(cell)], math.nan) is True
    }
    return replace(answer, held=Held(answer.held.dimensions, kept))


def _answer(
    dimensions: tuple[Dimension, ...], groups: Mapping[Cell, Group], measures: Mapping[str, Measure], min_count: int = 0
) -> Answer:
    cells = {
        key: {name: group.result(name, measure, min_count) for name, measure in measures.items()}
        for key, group in groups.items()
    }
    return Answer(Held(dimensions, cells), groups, measures)


# Shapes


@dataclass(frozen=True)
class Around:
    """``neighbours``: every cell keeps its place, over the cells inside a shape around it."""

    input: Step
    shape: Shape
    written: str
    taken: tuple[Taken, ...]
    min_count: int = 0
    steps: Mapping[str, int] = field(default_factory=dict)
    stored: str | None = None
    """The array whose cells are the shape's offsets."""

    def text(self) -> str:
        items = ", ".join(one.text("", "") for one in self.taken)
        text = f"select {items} from {_operand(self.input)} neighbours {self.written}"
        text += f" step ({', '.join(f'{name} {step}' for name, step in self.steps.items())})" if self.steps else ""
        return text + (f" min count {self.min_count}" if self.min_count else "")

    def of(self, arrays: Arrays) -> Answer:
        held = self.input.of(arrays).held
        measures = {one.name: one.measure() for one in self.taken}
        cells, groups = join_oracle.neighbours(held, self._shape(arrays), measures, self.min_count)
        steps = [self.steps.get(d.name, 1) for d in held.dimensions]
        ends = [(d.lo, step) for d, step in zip(held.dimensions, steps, strict=True)]
        numbers = {
            cell: tuple(lo + (place - lo) // step for place, (lo, step) in zip(cell, ends, strict=True))
            for cell in cells
            if all((place - lo) % step == 0 for place, (lo, step) in zip(cell, ends, strict=True))
        }
        dimensions = tuple(
            replace(d, hi=d.lo + (d.hi - d.lo) // step, labels=d.labels if step == 1 else None)
            for d, step in zip(held.dimensions, steps, strict=True)
        )
        found = Held(dimensions, {number: cells[cell] for cell, number in numbers.items()})
        return Answer(found, {number: groups[cell] for cell, number in numbers.items()}, measures)

    def _shape(self, arrays: Arrays) -> Shape:
        if self.stored is None:
            return self.shape
        offsets = arrays[self.stored]
        return Shape((join_oracle.Listed(tuple(offsets.cells), tuple(d.name for d in offsets.dimensions)),))

    def bases(self) -> frozenset[str]:
        return self.input.bases() | ({self.stored} if self.stored is not None else frozenset())


@dataclass(frozen=True)
class Partnered:
    """One array that joins another: how its cells are found."""

    right: Step
    shape: Shape
    written: str
    mapping: Mapping[str, Place] | None = None
    """Of the right side's dimensions; None is the identity."""
    condition: Said | None = None
    kind: str = "inner"
    nearest: Nearest | None = None
    nearest_by: Said | None = None

    def text(self, alias: str) -> str:
        parts = [] if self.mapping is None else [_mapped(alias, n, place) for n, place in self.mapping.items()]
        parts += [] if self.condition is None else [self.condition.text("L", alias)]
        text = f" {'' if self.kind == 'inner' else self.kind + ' '}similarity join {_operand(self.right)} {alias}"
        text += f" on {' and '.join(parts)}" if parts else ""
        text += f" with shape {self.written}"
        if self.nearest is None:
            return text
        by = "" if self.nearest_by is None else f" by {self.nearest_by.text('L', alias)}"
        return text + (" mutual nearest" if self.nearest.mutual else f" nearest {self.nearest.count}") + by

    def step(self, left: Held, arrays: Arrays) -> join_oracle.Step:
        right = self.right.of(arrays).held
        mapping = join_oracle.identity(left, right) if self.mapping is None else self.mapping
        condition = None if self.condition is None else self.condition.of
        return join_oracle.Step(right, self.shape, mapping, condition, self.kind, self.nearest)


def _mapped(alias: str, name: str, place: Place) -> str:
    """By numbers of cells, which must be said where a dimension has labels, as t has."""
    return (
        f"cell({alias}.{name}) = {_placed(place, 'cell({})')}" if name == "t" else f"{alias}.{name} = {_placed(place)}"
    )


def _placed(place: Place, written: str = "{}") -> str:
    text = written.format(f"{'LRQ'[place.side]}.{place.dimension}")
    text = f"{place.scale} * {text}" if place.scale != 1 else text
    text = f"{text} // {place.divisor}" if place.divisor != 1 else text
    return text if place.shift == 0 else f"{text} {'+' if place.shift > 0 else '-'} {abs(place.shift)}"


@dataclass(frozen=True)
class Coupled:
    """A join, or a chain of them: its groups, its pairs (``columns``), or the cells without partner."""

    left: Step
    partners: tuple[Partnered, ...]
    by: tuple[str, ...] = ()
    taken: tuple[Taken, ...] = ()
    columns: Mapping[str, Said] | None = None
    where: Said | None = None
    min_count: int = 0

    @property
    def is_anti(self) -> bool:
        return self.partners[-1].kind == "anti"

    def text(self) -> str:
        last = "RQ"[len(self.partners) - 1]
        if self.is_anti:
            items = "*"
        elif self.columns is not None:
            items = ", ".join(f"{one.text('L', last)} as {name}" for name, one in self.columns.items())
        else:
            items = ", ".join(one.text("L", last) for one in self.taken)
        text = f"select {items} from {_operand(self.left)} L"
        text += "".join(one.text(alias) for one, alias in zip(self.partners, "RQ", strict=False))
        text += "" if self.where is None else f" where {self.where.text('L', last)}"
        text += f" group by {', '.join(f'L.{name}' for name in self.by)}" if self.by else ""
        return text + (f" min count {self.min_count}" if self.min_count else "")

    def of(self, arrays: Arrays) -> Answer:
        left = self.left.of(arrays).held
        joined = join_oracle.join(left, *(one.step(left, arrays) for one in self.partners))
        if self.where is not None:
            joined = joined.where(self.where.of)
        if self.is_anti:
            return Answer(Held(left.dimensions, {row[0]: left.cells[row[0]] for row, _ in joined.rows if row[0]}))
        if self.columns is not None:
            return self._pairs(joined, self.columns)
        measures = {one.name: one.measure() for one in self.taken}
        groups = join_oracle.grouped(joined, [(0, name) for name in self.by], measures)
        known = {dimension.name: dimension for dimension in left.dimensions}
        return _answer(tuple(known[name] for name in self.by), groups, measures, self.min_count)

    def _pairs(self, joined: Joined, columns: Mapping[str, Said]) -> Answer:
        names = [[dimension.name for dimension in side.dimensions] for side in joined.sides]
        every = [name for side in names for name in side]
        dimensions = tuple(
            replace(d, name=d.name if every.count(d.name) == 1 else f"{alias}_{d.name}")
            for alias, side in zip("LRQ", joined.sides, strict=False)
            for d in side.dimensions
        )
        cells: dict[Cell, Values] = {}
        for row, far in joined.rows:
            values = joined.values(row)
            place = tuple(c for cell in row if cell is not None for c in cell)
            cells[place] = {name: one.of(values, far) for name, one in columns.items()}
        return Answer(Held(dimensions, cells))

    def bases(self) -> frozenset[str]:
        return self.left.bases().union(*(one.right.bases() for one in self.partners))
