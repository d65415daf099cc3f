"""Expression trees: plain, frozen, hashable data that prints as text which parses back to an equal tree.

A tree that would be nested too deeply cannot be built, so whoever walks one may recurse.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar

from windrow.errors import ExpressionError
from windrow.expressions.written import Value, check_call, check_known, check_number, held_value, quoted, written_name
from windrow.model.types import DataType

if TYPE_CHECKING:
    from windrow.model.coordinates import Coordinate

DEEPEST = 100
"""Levels of nesting an expression may have, so few that no walk or pickle needs more than 600 of 1,000 frames."""

Pieces = list["str | tuple[Node, int]"]

_OR, _AND, _NOT, _PREDICATE, _SUM, _PRODUCT, _SIGN, _ATOM = range(1, 9)
ARITHMETIC = {"+": _SUM, "-": _SUM, "||": _SUM, "*": _PRODUCT, "/": _PRODUCT, "//": _PRODUCT, "%": _PRODUCT}
COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")


@dataclass(frozen=True, slots=True, repr=False)
class Node(ABC):
    """A part of an expression."""

    binding: ClassVar[int] = _ATOM
    depth: int = field(init=False, compare=False)

    def __post_init__(self) -> None:
        depth = 1 + max((child.depth for child in self.children()), default=0)
        if depth > DEEPEST:
            raise ExpressionError(
                f"an expression is nested more than {DEEPEST} levels deep", hint="Compute it in steps"
            )
        object.__setattr__(self, "depth", depth)

    def children(self) -> Iterator[Node]:
        """The nodes directly below, in the order they are written."""
        waiting: list[Any] = [getattr(self, part.name, None) for part in reversed(fields(self))]
        while waiting:
            part = waiting.pop()
            if isinstance(part, Node):
                yield part
            elif isinstance(part, tuple):
                waiting.extend(reversed(part))

    def walk(self) -> Iterator[Node]:
        """This node and all below."""
        waiting: list[Node] = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(node.children())

    def columns(self) -> set[Column]:
        """The columns that the expression reads."""
        return {node for node in self.walk() if isinstance(node, Column)}

    @abstractmethod
    def _pieces(self) -> Pieces:
        """What the node prints as: texts, and nodes below with how tightly their surroundings bind."""

    def __str__(self) -> str:
        # Printing puts more frames on the stack than any other walk, so it is the one that does not recurse.
        texts: list[str] = []
        waiting: Pieces = [(self, 0)]
        while waiting:
            piece = waiting.pop()
            if isinstance(piece, str):
                texts.append(piece)
                continue
            node, binding = piece
            pieces = node._pieces()
            waiting += reversed(pieces if node.binding >= binding else ["(", *pieces, ")"])
        return "".join(texts)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self}>"


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Literal(Node):
    """A constant; None is null. Equal only to a literal of the same type: 1, 1.0 and true differ."""

    value: Value

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", held_value(self.value))
        Node.__post_init__(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Literal) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    @property
    def _identity(self) -> tuple[type, str]:
        return type(self.value), repr(self.value)

    @property
    def is_negative(self) -> bool:
        """Whether the literal is a number printed with a minus sign."""
        return type(self.value) in (int, float) and math.copysign(1, self.value) < 0  # type: ignore[arg-type]

    def _pieces(self) -> Pieces:
        if isinstance(self.value, str):
            return [quoted(self.value, "'")]
        if isinstance(self.value, datetime):
            return [f"timestamp '{self.value.isoformat(' ')}'"]
        return ["null" if self.value is None else repr(self.value).lower()]


@dataclass(frozen=True, slots=True, repr=False)
class Column(Node):
    """A dimension or attribute by name, of the array called ``qualifier`` if that is given (``A1.i``, ``left.m``)."""

    name: str
    qualifier: str | None = None
    said: str | None = field(default=None, compare=False)
    """What the query calls the array, where the plan calls it by another qualifier or by none."""

    def __post_init__(self) -> None:
        if not self.name or self.qualifier == "":
            raise ExpressionError("a column needs a name", got="an empty one")
        Node.__post_init__(self)

    @property
    def key(self) -> str:
        """What the column is called in the mappings given to ``check`` and ``evaluate``."""
        return self.name if self.qualifier is None else f"{self.qualifier}.{self.name}"

    def _pieces(self) -> Pieces:
        return [".".join(written_name(part) for part in (self.qualifier, self.name) if part is not None)]


@dataclass(frozen=True, slots=True, repr=False)
class Cell(Column):
    """The number of the cell along a dimension whose name alone is its label. It is read as the column ``name``."""

    def _pieces(self) -> Pieces:
        return ["cell(", *Column._pieces(self), ")"]


@dataclass(frozen=True, slots=True, repr=False)
class Label(Node):
    """The label of the cell along a dimension, found by its number; ``coordinate`` knows the labels.

    Only bound expressions hold it, so that whoever evaluates one needs no more than the numbers of the cells.
    """

    cell: Cell
    coordinate: Coordinate

    def _pieces(self) -> Pieces:
        return Column._pieces(self.cell)


@dataclass(frozen=True, slots=True, repr=False)
class Unary(Node):
    """A minus sign before a number."""

    binding: ClassVar[int] = _SIGN
    operator: str
    operand: Node

    def __post_init__(self) -> None:
        check_known(self.operator, ("-",))
        Node.__post_init__(self)

    def _pieces(self) -> Pieces:
        # -(1) is the minus of a literal and -1 a negative literal; two signs in a row would read as a comment.
        number = isinstance(self.operand, Literal) and type(self.operand.value) in (int, float)
        return ["-(", (self.operand, 0), ")"] if number else ["-", (self.operand, _ATOM)]


@dataclass(frozen=True, slots=True, repr=False)
class Binary(Node):
    """Arithmetic, or the joining of two texts with ``||``."""

    operator: str
    left: Node
    right: Node

    def __post_init__(self) -> None:
        check_known(self.operator, tuple(ARITHMETIC))
        Node.__post_init__(self)

    @property
    def binding(self) -> int:  # type: ignore[override]
        return ARITHMETIC[self.operator]

    def _pieces(self) -> Pieces:
        return [(self.left, self.binding), f" {self.operator} ", (self.right, self.binding + 1)]


@dataclass(frozen=True, slots=True, repr=False)
class Comparison(Node):
    """One of ``=  <>  <  <=  >  >=``."""

    binding: ClassVar[int] = _PREDICATE
    operator: str
    left: Node
    right: Node

    def __post_init__(self) -> None:
        check_known(self.operator, COMPARISONS)
        Node.__post_init__(self)

    def _pieces(self) -> Pieces:
        return [(self.left, _SUM), f" {self.operator} ", (self.right, _SUM)]


@dataclass(frozen=True, slots=True, repr=False)
class And(Node):
    """True where every operand is."""

    binding: ClassVar[int] = _AND
    operands: tuple[Node, ...]

    def __post_init__(self) -> None:
        check_number(self.operands, 2, "and")
        Node.__post_init__(self)

    def _pieces(self) -> Pieces:
        return _listed(self.operands, " and ", _NOT)


@dataclass(frozen=True, slots=True, repr=False)
class Or(Node):
    """True where some operand is."""

    binding: ClassVar[int] = _OR
    operands: tuple[Node, ...]

    def __post_init__(self) -> None:
        check_number(self.operands, 2, "or")
        Node.__post_init__(self)

    def _pieces(self) -> Pieces:
        return _listed(self.operands, " or ", _AND)


@dataclass(frozen=True, slots=True, repr=False)
class Around(Or):
    """True for cells in a range that goes round a periodic dimension: from a cell to the last, or from the first on."""

    @property
    def cell(self) -> Column:
        """The number of the cell."""
        first = self.operands[0]
        assert isinstance(first, Between)
        assert isinstance(first.operand, Column)
        return first.operand

    @property
    def runs(self) -> tuple[tuple[int, int], ...]:
        """The first and the last cell of both parts, in the order in which they are met."""
        return tuple((part.low.value, part.high.value) for part in self.operands)  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True, repr=False)
class Not(Node):
    """True where the operand is false."""

    binding: ClassVar[int] = _NOT
    operand: Node

    def _pieces(self) -> Pieces:
        return ["not ", (self.operand, _NOT)]


@dataclass(frozen=True, slots=True, repr=False)
class Between(Node):
    """``low <= operand <= high``, or its opposite."""

    binding: ClassVar[int] = _PREDICATE
    operand: Node
    low: Node
    high: Node
    negated: bool = False

    def _pieces(self) -> Pieces:
        word = " not between " if self.negated else " between "
        return [(self.operand, _SUM), word, (self.low, _SUM), " and ", (self.high, _SUM)]


@dataclass(frozen=True, slots=True, repr=False)
class InList(Node):
    """Whether the operand equals one of the options, or none of them."""

    binding: ClassVar[int] = _PREDICATE
    operand: Node
    options: tuple[Node, ...]
    negated: bool = False

    def __post_init__(self) -> None:
        check_number(self.options, 1, "in")
        Node.__post_init__(self)

    def _pieces(self) -> Pieces:
        word = " not in (" if self.negated else " in ("
        return [(self.operand, _SUM), word, *_listed(self.options, ", ", 0), ")"]


@dataclass(frozen=True, slots=True, repr=False)
class IsNull(Node):
    """Whether the operand is missing, or present; never null itself."""

    binding: ClassVar[int] = _PREDICATE
    operand: Node
    negated: bool = False

    def _pieces(self) -> Pieces:
        return [(self.operand, _SUM), " is not null" if self.negated else " is null"]


@dataclass(frozen=True, slots=True, repr=False)
class Case(Node):
    """The result of the first branch, a pair (condition, result), whose condition is true; else ``otherwise``."""

    branches: tuple[tuple[Node, Node], ...]
    otherwise: Node | None = None

    def __post_init__(self) -> None:
        check_number(self.branches, 1, "case")
        Node.__post_init__(self)

    def _pieces(self) -> Pieces:
        pieces: Pieces = ["case"]
        for condition, result in self.branches:
            pieces += [" when ", (condition, 0), " then ", (result, 0)]
        if self.otherwise is not None:
            pieces += [" else ", (self.otherwise, 0)]
        return [*pieces, " end"]


@dataclass(frozen=True, slots=True, repr=False)
class Call(Node):
    """A function of some arguments; its name is in lower case."""

    function: str
    arguments: tuple[Node, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "function", self.function.lower())
        check_call(self.function)
        Node.__post_init__(self)

    def _pieces(self) -> Pieces:
        return [f"{self.function}(", *_listed(self.arguments, ", ", 0), ")"]


@dataclass(frozen=True, slots=True, repr=False)
class Over(Node):
    """An aggregate over the group that a cell belongs to: ``avg(t) over (lat, month(time))``.

    Only the columns of a query hold it. Binding puts a column in its place, which has the group's result at each cell.
    """

    call: Call
    groups: tuple[Node, ...] = ()

    def _pieces(self) -> Pieces:
        inside: Pieces = [(self.call, 0)] if self.call.arguments else [f"{self.call.function}(*)"]
        return [*inside, " over (", *_listed(self.groups, ", ", 0), ")"]


@dataclass(frozen=True, slots=True, repr=False)
class Cast(Node):
    """The operand as another type; what does not fit that type is an error."""

    operand: Node
    type: DataType

    def _pieces(self) -> Pieces:
        return ["cast(", (self.operand, 0), f" as {self.type})"]


def _listed(nodes: tuple[Node, ...], between: str, binding: int) -> Pieces:
    pieces: Pieces = []
    for node in nodes:
        pieces += [between, (node, binding)]
    return pieces[1:]
