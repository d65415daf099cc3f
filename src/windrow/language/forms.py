"""SciDB's functional forms: ``window(A, 1, 1, 0, 0, max(v) as m)`` and its kin become the same plans as select."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from windrow.errors import SchemaError
from windrow.expressions.nodes import Between, Column, Comparison, Literal, Node
from windrow.language.mistakes import MisplacedError
from windrow.language.queries import Assembler, Item, Names
from windrow.model.window import between
from windrow.plan.nodes import Apply, Filter, GroupBy, Plan, Project, Regrid, Selection, Windowed
from windrow.plan.specs import Block, Measure, Output, Range, RegridSpec, WindowAxis, WindowSpec

_MIRRORED = {"<=": ">=", ">=": "<=", "=": "="}


def form(word: str, source: Plan, items: Sequence[Item], assembler: Assembler) -> Plan:
    """The plan of a functional form, called ``word``, on a source."""
    for item in items:
        if item.node is None:
            raise MisplacedError(f"* cannot stand in {word}", item.place)
    return _FORMS[word](source, list(items), assembler)


def _window(source: Plan, items: list[Item], assembler: Assembler) -> Plan:
    sizes, rest = _whole_numbers(items)
    if not sizes or len(sizes) % 2:
        raise SchemaError(
            "window needs two numbers for each dimension", got=len(sizes), hint="As in window(A, 1, 1, 0, 0, max(v))"
        )
    pairs = zip(sizes[::2], sizes[1::2], strict=True)
    axes = tuple(WindowAxis(None, between(-before, after)) for before, after in pairs)
    return Windowed(source, WindowSpec(axes), _measures("window", rest, assembler))


def _regrid(source: Plan, items: list[Item], assembler: Assembler) -> Plan:
    sizes, rest = _whole_numbers(items)
    blocks = RegridSpec(tuple(Block(None, size) for size in sizes))
    return Regrid(source, blocks, _measures("regrid", rest, assembler))


def _aggregate(source: Plan, items: list[Item], assembler: Assembler) -> Plan:
    """SciDB's order: aggregates first, then the dimensions to group by."""
    names = Names(items)
    measures = [assembler.measure(item, names) for item in items]
    columns = [item for item, measure in zip(items, measures, strict=True) if measure is None]
    for item in columns:
        if not isinstance(item.node, Column) or item.name is not None:
            raise MisplacedError("expected an aggregate or a dimension", item.place, got=str(item.node))
    dimensions = tuple(item.node for item in columns if isinstance(item.node, Column))
    return GroupBy(source, dimensions, tuple(measure for measure in measures if measure is not None))


def _filter(source: Plan, items: list[Item], assembler: Assembler) -> Plan:
    if len(items) != 1 or items[0].node is None or items[0].name is not None:
        raise SchemaError("filter needs one condition", got=len(items), hint="As in filter(A, v > 3)")
    return Filter(source, assembler.without_aggregates(items[0].node, "filter"))


def _project(source: Plan, items: list[Item], assembler: Assembler) -> Plan:
    return Project(source, assembler.outputs(items))


def _apply(source: Plan, items: list[Item], assembler: Assembler) -> Plan:
    """Names and expressions in turn, or expressions with ``as``."""
    if any(item.name is not None for item in items):
        return Apply(source, assembler.outputs(items))
    if len(items) % 2:
        raise SchemaError("apply needs names and expressions in turn", hint="As in apply(A, c, a + b)")
    outputs = []
    for named, item in zip(items[::2], items[1::2], strict=True):
        if not isinstance(named.node, Column) or named.node.qualifier is not None or item.node is None:
            hint = "As in apply(A, c, a + b)"
            raise MisplacedError("expected a name for the next column", named.place, got=str(named.node), hint=hint)
        outputs.append(Output(named.node.name, assembler.without_aggregates(item.node, "apply")))
    return Apply(source, tuple(outputs))


def _between(source: Plan, items: list[Item], assembler: Assembler) -> Plan:
    """First and last cells of all dimensions, null for no limit, or conditions on dimensions by name."""
    ends = [item.node.value for item in items if isinstance(item.node, Literal)]
    if len(ends) < len(items):
        return Selection(source, tuple(_range(item) for item in items))
    if not ends or len(ends) % 2:
        hint = "As in between(A, 1, 1, 2, 2) or between(A, i between 1 and 2)"
        raise SchemaError("between needs two numbers for each dimension", got=len(ends), hint=hint)
    half = len(ends) // 2
    return Selection(source, tuple(Range(None, low, high) for low, high in zip(ends[:half], ends[half:], strict=True)))


def _range(item: Item) -> Range:
    node = item.node
    if isinstance(node, Between) and not node.negated:
        sides: tuple[Node, Node, Node] = (node.operand, node.low, node.high)
    elif isinstance(node, Comparison) and node.operator in _MIRRORED:
        sides = _compared(node)
    else:
        sides = (Literal(None),) * 3
    column, low, high = sides
    plain = isinstance(column, Column) and column.qualifier is None
    if not plain or not isinstance(column, Column) or not isinstance(low, Literal) or not isinstance(high, Literal):
        hint = "As in i between 1 and 10, time >= '2012-01-01' or k = 3"
        raise MisplacedError("expected a range of one dimension", item.place, got=str(node), hint=hint)
    return Range(column.name, low.value, high.value)


def _compared(node: Comparison) -> tuple[Node, Node, Node]:
    """A comparison as a column with the ends of its range."""
    column, operator, value = node.left, node.operator, node.right
    if isinstance(column, Literal):
        column, operator, value = node.right, _MIRRORED[operator], node.left
    nothing = Literal(None)
    return column, nothing if operator == "<=" else value, nothing if operator == ">=" else value


def _scan(source: Plan, items: list[Item], assembler: Assembler) -> Plan:
    if items:
        raise MisplacedError("scan takes an array alone", items[0].place, got=str(items[0].node))
    return source


def _whole_numbers(items: list[Item]) -> tuple[list[int], list[Item]]:
    """The whole numbers that the items begin with, and the rest."""
    numbers: list[int] = []
    for item in items:
        if not isinstance(item.node, Literal) or type(item.node.value) is not int:
            break
        numbers.append(item.node.value)
    return numbers, items[len(numbers) :]


def _measures(word: str, items: list[Item], assembler: Assembler) -> tuple[Measure, ...]:
    names = Names(items)
    measures = []
    for item in items:
        measure = assembler.measure(item, names)
        if measure is None:
            raise MisplacedError(
                f"expected an aggregate in {word}", item.place, got=str(item.node), hint="As in max(v)"
            )
        measures.append(measure)
    return tuple(measures)


_FORMS: dict[str, Callable[[Any, list[Item], Assembler], Plan]] = {
    "aggregate": _aggregate,
    "apply": _apply,
    "between": _between,
    "filter": _filter,
    "project": _project,
    "regrid": _regrid,
    "scan": _scan,
    "window": _window,
}
