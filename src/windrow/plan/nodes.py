"""Queries as frozen trees of names: what is asked, before any array, dimension or attribute is looked up.

Text, the Python API and stored views all build these nodes; ``printing.to_text`` writes each as text that parses to an
equal node. A plan nested too deeply cannot be built, so whoever walks one may recurse.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import ClassVar

from windrow.errors import DataError, SchemaError, nearest
from windrow.expressions.nodes import Call, Column, Literal, Node
from windrow.kernels.choose import AUTO, check_strategy, check_sweep
from windrow.kernels.windows import NAMES
from windrow.model.halo import whole_number
from windrow.model.schema import check_name
from windrow.model.shape import Shape
from windrow.plan.specs import Block, Measure, Output, Range, RegridSpec, WindowSpec, check_different, check_step

DEEPEST_PLAN = 50
"""Steps that may follow one another in a query."""

METHODS = ("auto", "incremental", "naive")
"""How aggregates may be asked to be computed."""


@dataclass(frozen=True)
class Plan:
    """A step of a query."""

    depth: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        depth = 1 + max((plan.depth for plan in self.inputs()), default=0)
        if depth > DEEPEST_PLAN:
            raise SchemaError(
                f"a query is nested more than {DEEPEST_PLAN} levels deep", hint="Keep a part of it with into"
            )
        object.__setattr__(self, "depth", depth)

    def inputs(self) -> tuple[Plan, ...]:
        """The plans that this one reads, in the order they are written."""
        found = (getattr(self, part.name) for part in fields(self) if part.name != "depth")
        return tuple(part for part in found if isinstance(part, Plan))

    def walk(self) -> Iterator[Plan]:
        """This plan and all below."""
        waiting: list[Plan] = [self]
        while waiting:
            plan = waiting.pop()
            yield plan
            waiting.extend(reversed(plan.inputs()))

    def __str__(self) -> str:
        from windrow.plan.printing import to_text

        return to_text(self)


@dataclass(frozen=True)
class Scan(Plan):
    """An array or view by name: as it is now, at a version, or as it was at a moment (UTC)."""

    array: str
    version: int | None = None
    as_of: datetime | None = None

    def __post_init__(self) -> None:
        check_name(self.array, "an array")
        if self.version is not None and self.as_of is not None:
            raise SchemaError(f"array {self.array} is asked for by version and by moment")
        if self.version is not None and self.version < 0:
            raise SchemaError("a version is a number from 0", got=self.version)
        if self.as_of is not None:
            object.__setattr__(self, "as_of", Literal(self.as_of).value)
        super().__post_init__()


@dataclass(frozen=True)
class Changes(Plan):
    """What came and what left between two versions of an array or view: rows of a table."""

    array: str
    before: int
    after: int

    def __post_init__(self) -> None:
        check_name(self.array, "an array")
        for version in (self.before, self.after):
            if whole_number(version, "a version") < 0:
                raise SchemaError("a version is a number from 0", got=version)
        super().__post_init__()

    @property
    def versions(self) -> tuple[Scan, Scan]:
        """The array before and after."""
        return Scan(self.array, self.before), Scan(self.array, self.after)


@dataclass(frozen=True)
class Alias(Plan):
    """A source under another name, by which columns may be qualified (``A1.i``)."""

    source: Plan
    name: str

    def __post_init__(self) -> None:
        check_name(self.name, "an array")
        super().__post_init__()


@dataclass(frozen=True)
class Selection(Plan):
    """The cells in a box, stated by ranges of indices or labels: all by dimension, or all by place."""

    source: Plan
    ranges: tuple[Range, ...]

    def __post_init__(self) -> None:
        names = [one.name for one in self.ranges if one.name is not None]
        if not self.ranges or (names and len(names) < len(self.ranges)):
            raise SchemaError("a selection needs ranges for dimensions named, or for all in order")
        if len(set(names)) < len(names):
            raise SchemaError("a selection names a dimension twice", got=", ".join(names))
        super().__post_init__()


@dataclass(frozen=True)
class Filter(Plan):
    """The cells where a condition is true."""

    source: Plan
    condition: Node


@dataclass(frozen=True)
class Project(Plan):
    """These attributes, and no others."""

    source: Plan
    columns: tuple[Output, ...]

    def __post_init__(self) -> None:
        _check_columns(self.columns)
        super().__post_init__()


@dataclass(frozen=True)
class Apply(Plan):
    """These attributes besides those that are there."""

    source: Plan
    columns: tuple[Output, ...]

    def __post_init__(self) -> None:
        _check_columns(self.columns)
        super().__post_init__()


@dataclass(frozen=True)
class Windowed(Plan):
    """Aggregates over the window at each position."""

    source: Plan
    window: WindowSpec
    aggregates: tuple[Measure, ...]
    method: str = "auto"
    strategy: str = AUTO
    sweep: str | None = None
    """The dimension along which windows are to slide, by the incremental method."""

    def __post_init__(self) -> None:
        _check_aggregates(self.aggregates, self.method)
        check_strategy(self.method, self.strategy, NAMES)
        if self.sweep is not None:
            check_name(self.sweep, "a dimension")
        check_sweep(self.method, self.strategy, self.sweep)
        super().__post_init__()


@dataclass(frozen=True)
class Regrid(Plan):
    """Aggregates over blocks that lie side by side."""

    source: Plan
    blocks: RegridSpec
    aggregates: tuple[Measure, ...]
    method: str = "auto"
    strategy: str = AUTO

    def __post_init__(self) -> None:
        _check_aggregates(self.aggregates, self.method)
        check_strategy(self.method, self.strategy, NAMES)
        super().__post_init__()


@dataclass(frozen=True)
class Neighbours(Plan):
    """Aggregates over the cells in a shape around each cell, or around every ``step``-th one.

    A step is one number for all dimensions, or a number for each: all by name, or all by place.
    """

    source: Plan
    shape: Shape
    aggregates: tuple[Measure, ...]
    min_count: int = 0
    method: str = "auto"
    step: int | tuple[Block, ...] = 1

    def __post_init__(self) -> None:
        _check_shape(self.shape)
        _check_aggregates(self.aggregates, self.method)
        check_step(self.step)
        _check_min_count(self.min_count)
        super().__post_init__()


@dataclass(frozen=True)
class GroupBy(Plan):
    """Aggregates over the cells that agree in some dimensions; without dimensions, over all cells.

    In the place of a dimension may stand a part of its labels, ``month(time)``. Of the pairs of a join, groups with
    fewer than ``min_count`` present values have no result.
    """

    source: Plan
    dimensions: tuple[Column | Call, ...]
    aggregates: tuple[Measure, ...]
    min_count: int = 0

    def __post_init__(self) -> None:
        _check_aggregates(self.aggregates, "auto")
        _check_min_count(self.min_count)
        if self.min_count and not self.dimensions:
            raise SchemaError("min count belongs to groups", got=self.min_count, hint="Group by dimensions")
        if len(set(self.dimensions)) < len(self.dimensions):
            raise SchemaError("a dimension is grouped by twice", got=", ".join(map(str, self.dimensions)))
        super().__post_init__()


@dataclass(frozen=True)
class Nearest:
    """Of each left cell's partners, the ``count`` nearest: by distance, or by the least of an expression.

    ``mutual`` keeps the pairs of which each cell is the other's nearest.
    """

    count: int = 1
    by: Node | None = None
    mutual: bool = False

    def __post_init__(self) -> None:
        if whole_number(self.count, "the number of partners") < 1:
            raise SchemaError("nearest keeps at least one partner", got=self.count, hint="As in nearest 1")
        if self.mutual and self.count != 1:
            raise SchemaError("mutual nearest keeps one partner", got=self.count, hint="Leave the number out")


@dataclass(frozen=True)
class SimilarityJoin(Plan):
    """Pairs of each left cell with the right cells in a shape around the cell it is mapped to.

    ``on`` is a conjunction: parts that equate a right dimension with an expression of left dimensions make the mapping
    (the identity without any), the others are conditions on the pairs. Chains nest to the left. ``kind`` is "inner",
    "left" to keep left cells without a partner, or "anti" to keep these alone.
    """

    KINDS: ClassVar[tuple[str, ...]] = ("inner", "left", "anti")

    left: Plan
    right: Plan
    shape: Shape
    on: Node | None = None
    kind: str = "inner"
    nearest: Nearest | None = None

    def __post_init__(self) -> None:
        _check_shape(self.shape)
        if self.kind not in self.KINDS:
            raise SchemaError("unknown kind of join", got=repr(self.kind), hint=nearest(str(self.kind), self.KINDS))
        names = [*joined_names(self.left), *joined_names(self.right)]
        if isinstance(self.right, SimilarityJoin):
            raise SchemaError("the right side of a join must be one array", hint="Chains are written from the left")
        if self.kind == "anti" and len(names) > 2:
            hint = "Put what is joined before in parentheses, as in (select * from A similarity join B …) X"
            raise SchemaError("an anti join has one array on its left", got=", ".join(names[:-1]), hint=hint)
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            hint = "Give each side a name of its own, as in A A1 similarity join A A2"
            raise SchemaError("two sides of a join have one name", got=repr(twice), hint=hint)
        super().__post_init__()


def joined_names(plan: Plan) -> list[str]:
    """The names by which columns of a join's side are qualified."""
    if isinstance(plan, SimilarityJoin) and plan.kind == "anti":
        return joined_names(plan.left)
    if isinstance(plan, SimilarityJoin):
        return [*joined_names(plan.left), *joined_names(plan.right)]
    if isinstance(plan, (Scan, Alias)):
        return [plan.array if isinstance(plan, Scan) else plan.name]
    raise SchemaError("a side of a join needs a name", hint="As in (select …) X similarity join …")


def _check_columns(columns: tuple[Output, ...]) -> None:
    if not columns:
        raise SchemaError("a query needs at least one column")
    check_different([column.name for column in columns], "a query")


def _check_aggregates(aggregates: tuple[Measure, ...], method: str) -> None:
    if not aggregates:
        raise DataError("there is nothing to compute", hint="As in max(a)")
    check_different([measure.name for measure in aggregates], "a query")
    if method not in METHODS:
        raise DataError("unknown method", got=repr(method), hint=nearest(str(method), METHODS))


def _check_min_count(count: int) -> None:
    if whole_number(count, "min count") < 0:
        raise SchemaError("min count must not be negative", got=count)


def _check_shape(shape: Shape) -> None:
    if not shape.terms:
        raise SchemaError("a shape needs at least one term", hint="As in L1(1)")
