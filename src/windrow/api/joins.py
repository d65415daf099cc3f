"""Neighbours and similarity joins from Python, which ``Array.neighbours`` and ``Array.join`` make."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from windrow.aggregates.aggregate import Aggregate
from windrow.aggregates.windows import METHODS
from windrow.api.query import Query, measures_of
from windrow.errors import DataError, SchemaError, UnknownNameError, nearest
from windrow.expressions.nodes import And, Call, Column, Comparison, Node, Not
from windrow.language.expression import parse_expression
from windrow.model.schema import Schema
from windrow.model.shape import Shape
from windrow.plan.conditions import parts_of
from windrow.plan.nodes import Alias, GroupBy, Nearest, Neighbours, Plan, Project, SimilarityJoin
from windrow.plan.pairs import requalified
from windrow.plan.specs import Block, Output

if TYPE_CHECKING:
    from windrow.api.cells import Cells
    from windrow.api.query import Pinned

LEFT, RIGHT = "left", "right"
"""What the two sides are called in expressions."""

KINDS = SimilarityJoin.KINDS


@dataclass(frozen=True)
class Neighbouring:
    """An array with a shape around each of its cells; ``agg`` says what to compute."""

    array: Cells
    shape: Shape
    step: int | tuple[Block, ...] = 1
    min_count: int = 0

    def agg(self, *, method: str = "auto", **aggregates: Aggregate) -> Query:
        """Named aggregates over the neighbours of every cell: ``.agg(n=wr.count(), m=wr.avg("bright"))``.

        ``method`` is "auto" (the fastest), "incremental" or "naive"; all of them agree.
        """
        if method not in METHODS:
            raise DataError("method must be one of " + ", ".join(METHODS), got=repr(method))
        scan, pinned = self.array._steps()
        plan = Neighbours(scan, self.shape, measures_of(aggregates), self.min_count, method, self.step)
        return Query(self.array._database, plan, pinned, self.array._batch)

    def __repr__(self) -> str:
        return f"<windrow neighbours {self.shape} on {self.array.name}: .agg(n=wr.count()) computes something>"


@dataclass(frozen=True)
class Joined:
    """The pairs of a similarity join: aggregate them with ``agg`` or ``groupby``, or look at them with ``select``."""

    array: Cells
    plan: SimilarityJoin
    pinned: Pinned
    min_count: int = 0

    def agg(self, **aggregates: Aggregate) -> Query:
        """Named aggregates over the partners of every left cell: ``.agg(n=wr.count(), s=wr.sum("left.m * right.m"))``.

        The result has the dimensions of the left array. Of an anti join it aggregates the cells without partner, each
        by itself; ``.select()`` gives these cells.
        """
        return self.groupby(*self.array.schema.dimension_names).agg(**aggregates)

    def groupby(self, *dimensions: str) -> GroupedPairs:
        """The pairs that agree in some dimensions of the left array; without any, all of them together."""
        known = self.array.schema.dimension_names
        columns = [_left_dimension(name, known) for name in dimensions]
        return GroupedPairs(self, tuple(columns))

    def select(self, **columns: str | Node) -> Query:
        """Columns of every pair: ``.select(f="left.r * right.s", far="distance()")``; without any, all there are.

        The result is a sparse array with the dimensions of both sides, for ``how="left"`` a table, and for
        ``how="anti"`` the left cells without partner.
        """
        if self.min_count:
            got = f"min_count={self.min_count}"
            raise SchemaError("min_count belongs to aggregates of pairs", got=got, hint="Leave it out")
        if not columns:
            return self._query(self.plan)
        outputs = tuple(Output(name, _parsed(given, f"column {name}")) for name, given in columns.items())
        return self._query(Project(self.plan, outputs))

    def _query(self, plan: Plan) -> Query:
        return Query(self.array._database, plan, self.pinned, self.array._batch)

    def __repr__(self) -> str:
        return f"<windrow {self.plan}: .agg(n=wr.count()) or .select(…) computes something>"


@dataclass(frozen=True)
class GroupedPairs:
    """Pairs of a join, grouped; ``agg`` says what to compute."""

    joined: Joined
    dimensions: tuple[Column, ...]

    def agg(self, **aggregates: Aggregate) -> Query:
        """Named aggregates over each group of pairs: ``.groupby("i").agg(n=wr.count())``."""
        joined = self.joined
        return joined._query(GroupBy(joined.plan, self.dimensions, measures_of(aggregates), joined.min_count))

    def __repr__(self) -> str:
        by = ", ".join(map(str, self.dimensions)) or "nothing"
        return f"<windrow pairs grouped by {by}: .agg(n=wr.count()) computes something>"


def neighbours(array: Cells, shape: object, step: object, min_count: int) -> Neighbouring:
    """See ``Array.neighbours``."""
    return Neighbouring(array, _shape(shape), _step(step), min_count)


def join(array: Cells, other: object, shape: object, on: object, where: object, how: str, nearest_: object) -> Joined:
    """See ``Array.join``."""
    if how not in KINDS:
        raise DataError("a join is one of " + ", ".join(KINDS), got=repr(how), hint=nearest(str(how), KINDS))
    left, pinned = array._steps()
    right, schema, others = _right(array, other)
    parts = [*_mapping(on, array.schema, schema)]
    if where is not None:
        parts += [_unmapped(part) for part in parts_of(_parsed(where, "where"))]
    condition = None if not parts else parts[0] if len(parts) == 1 else And(tuple(parts))
    kept = None if nearest_ is None else _nearest(nearest_)
    plan = SimilarityJoin(Alias(left, LEFT), Alias(right, RIGHT), _shape(shape), condition, how, kept)
    return Joined(array, plan, tuple(dict([*pinned, *others]).items()))


def _right(array: Cells, other: object) -> tuple[Plan, Schema, Pinned]:
    """The right side: an array, or a query."""
    from windrow.api.array import Array

    if not isinstance(other, (Array, Query)):
        raise DataError("an array is joined with an array or a query", got=repr(other), hint="As in A.join(B, …)")
    database = other._database if isinstance(other, Array) else other.database
    if database is not array._database and database.path != array._database.path:
        raise DataError("both sides of a join are in one warehouse", got=database.path, hint="Copy one of them")
    if isinstance(other, Query):
        return other.plan, other.schema, other.pinned
    scan, pinned = other._steps()
    return scan, other.schema, pinned


def _mapping(on: object, left: Schema, right: Schema) -> list[Node]:
    """The parts of a condition that state how left cells are mapped."""
    if on is None:
        return []
    if isinstance(on, (str, Node)):
        return [_parsed(on, "on")]
    if not isinstance(on, Mapping):
        hint = 'As in on={"i": "i + 3", "j": "j // 2"}'
        raise DataError("on maps right dimensions to expressions of left ones", got=repr(on), hint=hint)
    return [_mapped(name, given, left, right) for name, given in on.items()]


def _mapped(name: object, given: object, left: Schema, right: Schema) -> Node:
    known = right.dimension_names
    if name not in known:
        hint = nearest(str(name), known)
        raise UnknownNameError("on maps to a dimension that the right array does not have", got=repr(name), hint=hint)
    node = _parsed(given, f"on[{name!r}]")
    read = {column for column in node.columns() if column.qualifier in (None, LEFT)}
    strange = [column for column in node.columns() if column.name not in left.dimension_names or column not in read]
    if strange or not read:
        got = str(strange[0]) if strange else str(node)
        hint = f"They are {', '.join(left.dimension_names)}. Conditions on pairs go into where="
        raise SchemaError(f"{name} is mapped from a dimension of the left array", got=got, hint=hint)
    target: Node = Column(str(name), RIGHT)
    if any(isinstance(part, Call) and part.function == "cell" for part in node.walk()):
        target = Call("cell", (target,))
    return Comparison("=", target, requalified(node, {None: LEFT}))


def _unmapped(part: Node) -> Node:
    """A condition on pairs that says nothing of the mapping, also if it equates dimensions."""
    if isinstance(part, Comparison) and part.operator == "=":
        return Not(Comparison("<>", part.left, part.right))
    return part


def _nearest(given: Any) -> Nearest:
    hint = 'As in nearest=3, nearest=(3, "abs(left.m - right.m)") or nearest="mutual"'
    if given == "mutual":
        return Nearest(mutual=True)
    count, by = given if isinstance(given, tuple | list) and len(given) == 2 else (given, None)
    if isinstance(count, bool) or not hasattr(count, "__index__"):
        raise DataError("nearest is a number of partners", got=repr(given), hint=hint)
    return Nearest(count.__index__(), None if by is None else _parsed(by, "nearest"))


def _shape(given: object) -> Shape:
    if not isinstance(given, Shape):
        hint = "As in wr.L1(1); an array that holds the offsets is wr.shape(S)"
        raise SchemaError("a shape is needed", got=repr(given), hint=hint)
    return given


def _step(given: Any) -> int | tuple[Block, ...]:
    """A number for all dimensions, one for each in order, or some by name."""
    if given is None:
        return 1
    if isinstance(given, Mapping):
        return tuple(Block(name, size) for name, size in given.items())
    if isinstance(given, tuple | list):
        return tuple(Block(None, size) for size in given)
    step: int = given
    return step


def _left_dimension(given: str, known: tuple[str, ...]) -> Column:
    name = given.removeprefix(f"{LEFT}.") if isinstance(given, str) else given
    if name not in known:
        hint = nearest(str(name), known)
        raise UnknownNameError("pairs are grouped by dimensions of the left array", got=repr(given), hint=hint)
    return Column(name, LEFT)


def _parsed(given: object, what: str) -> Node:
    if isinstance(given, Node):
        return given
    if not isinstance(given, str):
        hint = "As in 'abs(left.m - right.m) < 1'"
        raise DataError(f"{what} is an expression, as text", got=repr(given), hint=hint)
    return parse_expression(given)
