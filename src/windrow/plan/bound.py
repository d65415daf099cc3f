"""Queries whose names were looked up: every step knows the schema, the cells and the labels of its result."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, TypeGuard

from windrow.aggregates.aggregate import Aggregate
from windrow.expressions.nodes import Column, Node
from windrow.model.bound_shape import BoundShape
from windrow.model.box import Box
from windrow.model.coordinates import Coordinate, coordinates_of
from windrow.model.gridding import Gridding
from windrow.model.labels import Labels
from windrow.model.schema import Schema
from windrow.model.shape import Shape
from windrow.model.types import TYPES, DataType
from windrow.plan.join_terms import AxisLabels, AxisMap, BoundNearest, BoundSky
from windrow.plan.windows import WindowPlan

if TYPE_CHECKING:
    from windrow.plan.grouping.label_parts import Part

LabelItems = tuple[tuple[str, Labels], ...]
NamedAggregates = tuple[tuple[str, Aggregate], ...]
NamedNodes = tuple[tuple[str, Node], ...]
Metadata = Mapping[str, Mapping[str, str]]
"""What is known of attributes besides their types: units, long names."""


@dataclass(frozen=True, kw_only=True)
class Bound:
    """A step of a query. ``box`` holds the cells of its result, which a schema cannot say of an empty one."""

    schema: Schema
    box: Box
    labels: LabelItems = ()
    gridding: Gridding | None = None
    scalar: bool = False
    """Whether it is one result over all cells; its one dimension only serves to store it."""

    def inputs(self) -> tuple[Bound, ...]:
        found = (getattr(self, part.name) for part in fields(self))
        return tuple(part for part in found if isinstance(part, Bound))

    def walk(self) -> Iterator[Bound]:
        """This step and all below."""
        yield self
        for step in self.inputs():
            yield from step.walk()

    @property
    def dimension_names(self) -> tuple[str, ...]:
        """The dimensions that may be named."""
        return () if self.scalar else self.schema.dimension_names

    @property
    def coordinates(self) -> dict[str, Coordinate]:
        """What the cells are called along those dimensions that have more than numbers."""
        return coordinates_of(self.schema, dict(self.labels), self.gridding)

    @property
    def is_table(self) -> bool:
        """Whether it is rows of a table, of which several may have one place, and not the cells of an array."""
        return False

    @property
    def types(self) -> dict[str, DataType]:
        """What an expression over the cells may read; a dimension is read as the numbers of cells."""
        dimensions = dict.fromkeys(self.dimension_names, TYPES["int64"])
        return dimensions | {attribute.name: attribute.type for attribute in self.schema.attributes}


@dataclass(frozen=True, kw_only=True)
class BoundNamed(Bound):
    """A version of an array or view, as queries see it."""

    name: str
    metadata: Metadata = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class BoundScan(BoundNamed):
    """A version of an array. ``snapshot`` reads it, ``cells`` says how many it has where that is known."""

    snapshot: Any
    cells: int | None = None
    chunks: Callable[[], Any] | None = field(default=None, compare=False, repr=False)
    """Reads where its cells lie, chunk by chunk."""


@dataclass(frozen=True, kw_only=True)
class BoundHeld(Bound):
    """Cells that are in memory, in the order of their coordinates."""

    table: Any = field(compare=False, repr=False)


@dataclass(frozen=True, kw_only=True)
class BoundChanges(Bound):
    """What came and left between two versions of an array: a table, in which a place may stand twice.

    ``read`` gives its rows: coordinates, then attributes.
    """

    before: BoundNamed
    after: BoundNamed
    read: Callable[[], Any] = field(compare=False, repr=False)

    @property
    def is_table(self) -> bool:
        return True


@dataclass(frozen=True, kw_only=True)
class BoundSelection(Bound):
    """The cells in ``box``."""

    source: Bound

    @property
    def is_table(self) -> bool:
        return self.source.is_table


@dataclass(frozen=True, kw_only=True)
class BoundRound(Bound):
    """The cells of a dense step that a range going round a periodic dimension meets, in that order.

    Cells up to ``seam`` have the numbers they have below; those after it are ``skip`` higher than there.
    """

    source: Bound
    axis: int
    seam: int
    skip: int


@dataclass(frozen=True, kw_only=True)
class BoundFilter(Bound):
    """The cells where a condition is true; ``box`` is as small as the condition's dimensions allow."""

    source: Bound
    condition: Node

    @property
    def is_table(self) -> bool:
        return self.source.is_table


@dataclass(frozen=True, kw_only=True)
class BoundColumns(Bound):
    """Attributes computed cell by cell."""

    source: Bound
    outputs: NamedNodes

    @property
    def is_table(self) -> bool:
        return self.source.is_table


@dataclass(frozen=True, kw_only=True)
class BoundWindow(Bound):
    """Aggregates over a window or over blocks."""

    source: Bound
    plan: WindowPlan


@dataclass(frozen=True, kw_only=True)
class BoundTotals(Bound):
    """Aggregates over the cells that agree in the dimensions ``axes``; over all of them if there are none."""

    source: Bound
    axes: tuple[int, ...]
    aggregates: NamedAggregates


@dataclass(frozen=True, kw_only=True)
class BoundSpread(Bound):
    """Cells with the results of the groups that they belong to, which ``totals`` has, as further attributes.

    ``axes`` and ``parts`` say which group a cell is in, as they do in the step that has the totals.
    """

    source: Bound
    totals: Bound
    axes: tuple[int, ...]
    parts: tuple[Part | None, ...]
    words: str
    """What is grouped by and computed, as it is told."""

    @property
    def is_table(self) -> bool:
        return self.source.is_table


@dataclass(frozen=True, kw_only=True)
class BoundOrdered(Bound):
    """Rows in an order: a table. ``source`` has a column for each key, besides those of the result."""

    source: Bound
    keys: tuple[tuple[str, bool], ...]
    """The columns to order by, and whether the largest come first."""
    limit: int | None
    words: str
    """What was asked for, as it is told."""

    @property
    def is_table(self) -> bool:
        return True


@dataclass(frozen=True, kw_only=True)
class BoundRejoined(Bound):
    """Totals of finer totals: aggregates joined from their parts, which ``source`` has under the parts' names.

    ``axes`` are the dimensions of ``source`` that the results are grouped by.
    """

    source: Bound
    axes: tuple[int, ...]
    aggregates: NamedAggregates


@dataclass(frozen=True, kw_only=True)
class BoundAdjusted(Bound):
    """Aggregates over pairs, made of those over other pairs: some come in addition, others are taken away.

    All three have the parts of the aggregates, under the parts' names, where the results lie. ``direct`` are the same
    results from the arrays themselves. ``by_nodes`` computes all of it on several nodes, or gives None if they do not.
    """

    source: Bound
    added: Bound | None
    taken: Bound | None
    aggregates: NamedAggregates
    direct: Bound
    by_nodes: Callable[[], Any] | None = field(default=None, compare=False, repr=False)

    def inputs(self) -> tuple[Bound, ...]:
        return tuple(part for part in (self.source, self.added, self.taken) if part is not None)


@dataclass(frozen=True, kw_only=True)
class BoundCount(Bound):
    """Counts of all cells, known without reading any."""

    source: Bound
    count: int


@dataclass(frozen=True, kw_only=True)
class BoundJoin(Bound):
    """Pairs of left cells with the right cells in a shape around the cell that they are mapped to.

    Expressions over the pairs name the sides ``side1``, ``side2``, …, whatever the query calls them, so that equal
    joins are equal; ``names`` are the query's. ``pair.distance`` is how far apart the cells of a pair are. ``mapping``
    has, for each right dimension, where the shape is centred, or None where any cell is a partner.

    What is said of pairs is carried out in this order: ``offsets`` and ``sky``, ``condition``, ``nearest``, then what
    becomes of left cells that have no pair by now (``kind``), then ``where``. What is said of one side alone is a
    filter of that side wherever that means the same, and ``where`` is part of the condition wherever that does.

    An "anti" join is no set of pairs but an array: the left cells that have none.
    """

    left: Bound
    right: Bound
    names: tuple[str, ...] = field(compare=False)
    shape: Shape = field(compare=False)
    offsets: BoundShape
    kind: str
    mapping: tuple[AxisMap | None, ...]
    condition: Node | None = None
    where: Node | None = None
    nearest: BoundNearest | None = None
    sky: BoundSky | None = None
    distance_axes: tuple[int, ...] = ()
    """The right dimensions along which distances are measured; none if nothing asks for distances, or under Sky."""
    axis_labels: tuple[AxisLabels, ...] = ()
    """One for each axis that ``offsets.labelled`` speaks of."""

    @property
    def sides(self) -> tuple[Bound, ...]:
        """All arrays that are joined, in the order they are written."""
        first = self.left.sides if makes_pairs(self.left) else (self.left,)
        return (*first, self.right)

    @property
    def optional_sides(self) -> tuple[int, ...]:
        """The numbers of the sides of which a row may have no cell, counted from 1."""
        first = self.left.optional_sides if makes_pairs(self.left) else ()
        return (*first, len(self.sides)) if self.kind == "left" else first

    @property
    def is_table(self) -> bool:
        return self.kind != "anti" and bool(self.optional_sides)


def makes_pairs(bound: Bound) -> TypeGuard[BoundJoin]:
    """Whether a step is a join whose result are pairs."""
    return isinstance(bound, BoundJoin) and bound.kind != "anti"


@dataclass(frozen=True, kw_only=True)
class BoundPairs(Bound):
    """Attributes computed pair by pair; a pair lies at the coordinates of all its cells.

    Where left cells without partner are kept it is a table: its dimensions are those of the sides that every row has,
    and the coordinates of the others are its first attributes, null where there is no such cell.
    """

    source: BoundJoin
    outputs: NamedNodes
    """One for each attribute, in order."""

    @property
    def is_table(self) -> bool:
        return self.source.is_table


@dataclass(frozen=True, kw_only=True)
class BoundJoined(Bound):
    """Aggregates over the pairs of a join that agree in some left dimensions; over all of them if there are none.

    ``arguments`` are computed pair by pair, and the aggregates take them by name. ``step`` has for each dimension how
    many positions lie between those at which neighbours are looked for; it is empty if that is everywhere.
    """

    source: BoundJoin
    groups: tuple[Column, ...]
    arguments: NamedNodes
    aggregates: NamedAggregates
    min_count: int = 0
    method: str = "auto"
    step: tuple[int, ...] = ()

    @property
    def is_neighbourhood(self) -> bool:
        """Whether each cell of an array is joined with its neighbours in the same array, and keeps its place."""
        join = self.source
        itself = tuple(AxisMap(cell) for cell in self.groups)
        every = tuple(cell.name for cell in self.groups) == join.left.schema.dimension_names
        read = {column.qualifier for _, node in self.arguments for column in node.columns()}
        plain = join.condition is None and join.where is None and join.nearest is None
        own = read <= {side_name(2), DISTANCE.qualifier} and join.mapping == itself
        return join.kind == "left" and join.left == join.right and every and plain and own

    @property
    def reads_distance(self) -> bool:
        """Whether an argument is computed from the distance of a pair's cells."""
        return any(DISTANCE in node.columns() for _, node in self.arguments)


DISTANCE = Column("distance", "pair")
"""How far apart the cells of a pair are: in cells along the ``distance_axes``, or in degrees on the sky."""


def side_name(number: int) -> str:
    """What expressions over pairs call the side of that number, counted from 1."""
    return f"side{number}"


def table_words(bound: Bound) -> str:
    """What a table is, for those who need an array in its place."""
    if _has_order(bound):
        return "what order by or limit gives"
    of_changes = any(isinstance(step, BoundChanges) for step in bound.walk())
    return "what changes(…) gives" if of_changes else "a left join without group by"


def table_hint(bound: Bound) -> str:
    """What to do where an array is needed in the place of a table."""
    if _has_order(bound):
        return "An array has no order of rows: leave order by and limit out"
    return "Group it by dimensions"


def _has_order(bound: Bound) -> bool:
    return any(isinstance(step, BoundOrdered) for step in bound.walk())


def carried_metadata(bound: Bound) -> dict[str, Mapping[str, str]]:
    """What is known of the attributes that come from an array as they are; computed ones have units of their own."""
    if isinstance(bound, BoundNamed):
        return {name: bound.metadata[name] for name in bound.schema.attribute_names if name in bound.metadata}
    if isinstance(bound, (BoundSelection, BoundRound, BoundFilter, BoundSpread)):
        return carried_metadata(bound.source)
    if isinstance(bound, BoundColumns):
        below = carried_metadata(bound.source)
        return {name: below[node.key] for name, node in bound.outputs if isinstance(node, Column) and node.key in below}
    return {}
