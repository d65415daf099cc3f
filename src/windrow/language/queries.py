"""Clauses put together: the items, sources and groupings of a query become one plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

from windrow.errors import Error
from windrow.expressions.nodes import Call, Column, Literal, Node, Over
from windrow.language.mistakes import MisplacedError
from windrow.model.shape import Shape
from windrow.plan.grouping.label_parts import GroupKey
from windrow.plan.grouping.ordering import Ordered, OrderKey
from windrow.plan.nodes import (
    Apply,
    Filter,
    GroupBy,
    Neighbours,
    Plan,
    Project,
    Regrid,
    Scan,
    Windowed,
)
from windrow.plan.specs import Block, Measure, Output, RegridSpec, WindowSpec

_Made = TypeVar("_Made")
Grouping = WindowSpec | RegridSpec | Shape | tuple[GroupKey, ...]


@dataclass(frozen=True)
class Item:
    """What is asked for, ``*`` if there is no node, under a name if one is given."""

    node: Node | None
    name: str | None
    place: int


@dataclass(frozen=True)
class Clause:
    """One clause of a query. ``rank`` is its place in the order of clauses; into may stand anywhere."""

    word: str
    rank: int
    value: Any
    place: int
    method: str = "auto"
    min_count: int = 0
    strategy: str = "auto"
    sweep: str | None = None
    step: int | tuple[Block, ...] = 1


class Names:
    """Names for columns that were given none; a name that is taken already is numbered."""

    def __init__(self, items: Iterable[Item]) -> None:
        self._taken = {item.name for item in items if item.name is not None}
        self._counts: dict[str, int] = {}

    def free(self, name: str) -> str:
        chosen = name
        while chosen in self._taken:
            self._counts[name] = self._counts.get(name, 1) + 1
            chosen = f"{name}_{self._counts[name]}"
        self._taken.add(chosen)
        return chosen


COLUMNS = "a list of columns"
FROM, WHERE, GROUPING, HAVING, ORDER, LIMIT, INTO = range(7)


@dataclass(frozen=True)
class Asked:
    """A query as it was read, with the array that is to keep its result."""

    plan: Plan
    into: Clause | None = None


IsAggregate = Callable[[str], bool]
PlaceOf = Callable[[Node], int]


class Assembler:
    """Makes plans of items and clauses; ``place_of`` tells where a call stands in the text."""

    def __init__(self, is_aggregate: IsAggregate, place_of: PlaceOf) -> None:
        self._is_aggregate = is_aggregate
        self._place_of = place_of

    def query(self, items: Sequence[Item], clauses: Sequence[Clause], source: Plan | None, place: int) -> Asked:
        """The query of these items; ``source`` is given where the items name the array themselves."""
        found = _ordered(clauses)
        if FROM in found:
            if source is not None:
                raise MisplacedError("the array is named before from already", found[FROM].place)
            source = found[FROM].value
        elif source is None:
            source, items = _named_array(items, place), ()
        plan = self.filtered(source, found.get(WHERE))
        plan = self._chosen(plan, items, found.get(GROUPING), found.get(HAVING))
        return Asked(self._ordered(plan, found.get(ORDER), found.get(LIMIT)), found.get(INTO))

    def _chosen(self, plan: Plan, items: Sequence[Item], grouping: Clause | None, having: Clause | None) -> Plan:
        """The results, those for which having is true; aggregates that it alone names are computed and left out."""
        computed = self._computed(plan, items, grouping)
        if having is None:
            return computed
        if not _grouping_of(computed):
            self.without_aggregates(having.value, having.word)
        known = self._known(having.value, computed)
        missing = [call for call in self._aggregates(having.value) if id(call) not in known]
        if not missing:
            return Filter(computed, _replaced(having.value, known))
        wider = self._computed(plan, (*items, *(Item(call, None, self._place_of(call)) for call in missing)), grouping)
        chosen = Filter(wider, _replaced(having.value, self._known(having.value, wider)))
        return Project(chosen, tuple(Output(name, Column(name)) for name in _shown(computed)))

    def _known(self, node: Node, plan: Plan) -> dict[int, Column]:
        """The parts of an expression that are columns of the results: groups, and aggregates that are shown."""
        shown = _shown(plan)
        known = _parts_in(node, plan)
        for call in self._aggregates(node):
            alike = self._alike(call, plan)
            known |= {id(call): Column(name) for name, column in shown.items() if column in alike}
        return known

    def _alike(self, call: Call, plan: Plan) -> list[str]:
        """The names under which a query computes an aggregate."""
        wanted = self._measure(call, "m", Names(()), self._place_of(call))
        return [one.name for one in _grouping_of(plan) if replace(one, name="m") == wanted]

    def _ordered(self, plan: Plan, order: Clause | None, limit: Clause | None) -> Plan:
        if order is None and limit is None:
            return plan
        keys = () if order is None else tuple(self._key(key, plan, order.place) for key in order.value)
        rows, place = (None, 0) if limit is None else (limit.value, limit.place)
        return _at(place, lambda: Ordered(plan, keys, rows))

    def _key(self, key: OrderKey, plan: Plan, place: int) -> OrderKey:
        """A key in terms of the results: what is aggregated or grouped by has a column there."""
        known = _parts_in(key.expression, plan)
        for call in self._aggregates(key.expression):
            found = self._alike(call, plan)
            if not found:
                hint = f"As in select {call} as m … order by m"
                raise MisplacedError("what is ordered by must be selected", self._place_of(call), got=call, hint=hint)
            known[id(call)] = Column(found[0])
        return _at(place, lambda: OrderKey(_replaced(key.expression, known), key.descending))

    def filtered(self, plan: Plan, clause: Clause | None) -> Plan:
        return plan if clause is None else Filter(plan, self.without_aggregates(clause.value, clause.word))

    def without_aggregates(self, node: Node, word: str) -> Node:
        """The expression, if it can be computed cell by cell, or from the groups of cells where columns are listed."""
        for over in (part for part in node.walk() if isinstance(part, Over) and word != COLUMNS):
            advice = "Select it in a query in parentheses after from"
            raise MisplacedError(f"{over} cannot stand in {word}", self._place_of(over), hint=advice)
        for call in self._aggregates(node):
            hint = "Conditions on results go into having" if word == "where" else None
            raise MisplacedError(
                f"{call.function} is an aggregate and cannot stand in {word}", self._place_of(call), hint=hint
            )
        return node

    def _computed(self, plan: Plan, items: Sequence[Item], grouping: Clause | None) -> Plan:
        aggregated = any(item.node is not None and any(self._aggregates(item.node)) for item in items)
        if grouping is not None or aggregated:
            return self.aggregated(plan, items, grouping)
        if all(item.node is None for item in items):
            return plan
        if items[0].node is None:
            return Apply(plan, self.outputs(items[1:]))
        return Project(plan, self.outputs(items))

    def outputs(self, items: Sequence[Item]) -> tuple[Output, ...]:
        """Expressions under the names given, or names made for them."""
        names = Names(items)
        made = []
        for number, item in enumerate(items, 1):
            if item.node is None:
                raise MisplacedError("* must be the first of the columns, and stand there once", item.place)
            self.without_aggregates(item.node, COLUMNS)
            default = f"column_{number}"
            if isinstance(item.node, (Column, Over)):
                default = item.node.name if isinstance(item.node, Column) else _default_name(item.node.call)
            made.append(_output(item, item.name or names.free(default), item.node))
        return tuple(made)

    def aggregated(self, plan: Plan, items: Sequence[Item], grouping: Clause | None) -> Plan:
        """Aggregates, and on top of them whatever is computed from several."""
        columns = grouping.value if grouping is not None and isinstance(grouping.value, tuple) else ()
        shown = [item for item in items if item.node not in columns or item.node is None]
        names = Names(shown)
        measures: list[Measure] = []
        outputs: list[Output] = []
        made: dict[Call, Measure] = {}
        for number, item in enumerate(shown, 1):
            calls = [] if item.node is None else list(self._aggregates(item.node))
            for over in () if item.node is None else (part for part in item.node.walk() if isinstance(part, Over)):
                hint = "Compute one of them in a query in parentheses after from"
                what = f"{over} stands beside cells, not beside aggregates of them"
                raise MisplacedError(what, self._place_of(over), hint=hint)
            if not calls or item.node is None:
                hint = "Beside aggregates only columns that are grouped by may stand"
                raise MisplacedError("expected an aggregate", item.place, got=str(item.node or "*"), hint=hint)
            if item.node is calls[0]:
                measures.append(self._measure(calls[0], item.name, names, item.place))
                made.setdefault(calls[0], measures[-1])
                outputs.append(Output(measures[-1].name, Column(measures[-1].name)))
                continue
            for call in calls:
                if call not in made:
                    made[call] = self._measure(call, None, names, self._place_of(call))
                    measures.append(made[call])
            known = {id(call): Column(made[call].name) for call in calls}
            name = item.name or names.free(f"column_{number}")
            outputs.append(_output(item, name, _replaced(item.node, known)))
        plain = all(isinstance(output.expression, Column) for output in outputs)
        grouped = _grouped(plan, grouping, tuple(measures))
        return grouped if plain else Project(grouped, tuple(outputs))

    def measure(self, item: Item, names: Names) -> Measure | None:
        """The item as one aggregate, None if it is something else."""
        if isinstance(item.node, Call) and self._is_aggregate(item.node.function):
            return self._measure(item.node, item.name, names, item.place)
        return None

    def _measure(self, call: Call, name: str | None, names: Names, place: int) -> Measure:
        for part in call.arguments:
            for inner in self._aggregates(part):
                what = f"{inner.function} cannot stand inside {call.function}"
                raise MisplacedError(what, self._place_of(inner), hint="Use a query in parentheses after from")
        made = name or names.free(_default_name(call))
        return _at(place, lambda: Measure.of_call(made, call))

    def _aggregates(self, node: Node) -> Iterable[Call]:
        """The outermost aggregates of an expression, in the order they are written; not those over groups of cells."""
        waiting = [node]
        while waiting:
            part = waiting.pop()
            if isinstance(part, Over):
                continue
            if isinstance(part, Call) and self._is_aggregate(part.function):
                yield part
            else:
                waiting += reversed(list(part.children()))


def _ordered(clauses: Sequence[Clause]) -> dict[int, Clause]:
    """The clauses by rank, if each is there once and they follow one another as they are carried out."""
    found: dict[int, Clause] = {}
    last: Clause | None = None
    for clause in clauses:
        if clause.rank in found:
            other = found[clause.rank].word
            what = f"{clause.word} is given twice" if other == clause.word else f"{clause.word} cannot follow {other}"
            hint = "Use a query in parentheses after from" if clause.rank == GROUPING else None
            raise MisplacedError(what, clause.place, hint=hint)
        if last is not None and clause.rank < last.rank and clause.rank != INTO:
            hint = "Conditions on results go into having" if (clause.rank, last.rank) == (WHERE, GROUPING) else None
            raise MisplacedError(f"{clause.word} must stand before {last.word}", clause.place, hint=hint)
        found[clause.rank] = clause
        last = last if clause.rank == INTO else clause
    return found


def _named_array(items: Sequence[Item], place: int) -> Plan:
    """The array of ``select A``, which looks like a column at first."""
    first = items[0]
    if len(items) == 1 and isinstance(first.node, Column) and first.node.qualifier is None and first.name is None:
        name = first.node.name
        return _at(first.place, lambda: Scan(name))
    raise MisplacedError("the query does not say from which array", place, hint="As in select a from A")


def _grouped(plan: Plan, grouping: Clause | None, measures: tuple[Measure, ...]) -> Plan:
    value: Grouping = () if grouping is None else grouping.value
    if grouping is None or isinstance(value, tuple):
        columns: tuple[GroupKey, ...] = value if isinstance(value, tuple) else ()
        return GroupBy(plan, columns, measures, 0 if grouping is None else grouping.min_count)
    if isinstance(value, WindowSpec):
        return Windowed(plan, value, measures, grouping.method, grouping.strategy, grouping.sweep)
    if isinstance(value, RegridSpec):
        return Regrid(plan, value, measures, grouping.method, grouping.strategy)
    return Neighbours(plan, value, measures, grouping.min_count, grouping.method, grouping.step)


def _grouping_of(plan: Plan) -> tuple[Measure, ...]:
    """The aggregates that a query computes."""
    while isinstance(plan, (Filter, Project)):
        plan = plan.source
    return plan.aggregates if isinstance(plan, (Windowed, Regrid, Neighbours, GroupBy)) else ()


def _shown(plan: Plan) -> dict[str, str | None]:
    """The columns that a query gives, each with the aggregate that it is, if it is one and nothing else."""
    if isinstance(plan, Filter):
        return _shown(plan.source)
    if not isinstance(plan, Project):
        return {one.name: one.name for one in _grouping_of(plan)}
    below = _shown(plan.source)
    return {
        output.name: below.get(output.expression.name) if isinstance(output.expression, Column) else None
        for output in plan.columns
    }


def _parts_in(node: Node, plan: Plan) -> dict[int, Column]:
    """The parts of labels in an expression that are dimensions of the result, being grouped by."""
    while isinstance(plan, (Filter, Project)):
        plan = plan.source
    groups = plan.dimensions if isinstance(plan, GroupBy) else ()
    return {id(part): Column(part.function) for part in node.walk() if isinstance(part, Call) and part in groups}


def _default_name(call: Call) -> str:
    parts = [call.function]
    for argument in call.arguments:
        if isinstance(argument, Column):
            parts.append(argument.name)
        elif isinstance(argument, Literal) and type(argument.value) in (int, float):
            parts.append("".join(c if c.isalnum() else "_" for c in f"{argument.value:g}"))
    return "_".join(parts)


def _replaced(node: Node, known: dict[int, Column]) -> Node:
    """The expression with some of its parts read from columns."""

    def change(part: Any) -> Any:
        if isinstance(part, Node):
            return _replaced(part, known)
        return tuple(map(change, part)) if isinstance(part, tuple) else part

    if id(node) in known:
        return known[id(node)]
    names = [part.name for part in fields(node) if part.init]
    return replace(node, **{name: change(getattr(node, name)) for name in names})


def _output(item: Item, name: str, node: Node) -> Output:
    return _at(item.place, lambda: Output(name, node))


def _at(place: int, make: Callable[[], _Made]) -> _Made:
    """What ``make`` makes, or its mistake at a place of the text."""
    try:
        return make()
    except MisplacedError:
        raise
    except Error as error:
        raise MisplacedError(error.what, place, got=error.got, hint=error.hint) from None
