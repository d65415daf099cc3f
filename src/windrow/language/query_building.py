"""Syntax trees of queries to plans: one method per alternative of ``grammar.lark``."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from lark import Token
from lark.tree import Meta
from lark.visitors import v_args

from windrow.aggregates.registry import DEFINITIONS, SYNONYMS, is_built_in
from windrow.errors import ExpressionError, SchemaError, UnknownNameError, nearest
from windrow.expressions.functions import FUNCTIONS
from windrow.expressions.instants import timestamp
from windrow.expressions.nodes import Call, Column, Literal, Node, Over
from windrow.language.expression import ExpressionBuilder, plain, unquoted
from windrow.language.forms import form
from windrow.language.mistakes import MisplacedError
from windrow.language.neighbourhoods import (
    BEFORE_VERSION,
    NeighbourhoodBuilder,
    Setting,
    neighbours_clause,
    regrid_clause,
    whole,
    window_clause,
)
from windrow.language.queries import (
    FROM,
    GROUPING,
    HAVING,
    INTO,
    LIMIT,
    ORDER,
    WHERE,
    Asked,
    Assembler,
    Clause,
    Item,
    Names,
)
from windrow.plan.grouping.label_parts import PARTS, GroupKey, label_part
from windrow.plan.grouping.ordering import Ordered, OrderKey
from windrow.plan.nodes import Alias, Changes, Nearest, Plan, Project, Scan, SimilarityJoin
from windrow.plan.operators import Operated, find_operator
from windrow.plan.specs import Output

NEIGHBOURHOODS = ("window", "regrid", "neighbours")
_NAME = re.compile(r'[A-Za-z_]\w*|"[^"]*"')


def is_aggregate(name: str) -> bool:
    """Whether a function aggregates: a built-in one, or one that a user has registered."""
    if name in FUNCTIONS or is_built_in(name):
        return name not in FUNCTIONS
    from windrow.aggregates.user import user_aggregate

    try:
        user_aggregate(name)
    except UnknownNameError:
        return False
    return True


class QueryBuilder(ExpressionBuilder, NeighbourhoodBuilder):
    """Queries: select, aggr and the functional forms."""

    def __init__(self) -> None:
        super().__init__()
        self._calls: dict[int, tuple[Node, int]] = {}
        self._assembler = Assembler(is_aggregate, lambda node: self._calls[id(node)][1])

    def call(self, children: list[Any]) -> Node:
        token, arguments = children
        name = str(token).lower()
        if name not in FUNCTIONS and not is_aggregate(name):
            from windrow.aggregates.user import REGISTERED

            known = [*FUNCTIONS, *DEFINITIONS, *SYNONYMS, *REGISTERED]
            raise ExpressionError("no such function", got=repr(str(token)), hint=nearest(name, known))
        node = Call(name, arguments or ())
        self._calls[id(node)] = (node, token.start_pos)
        return node

    def over(self, children: list[Any]) -> Node:
        token, arguments, groups = children
        call = self.call([token, arguments])
        assert isinstance(call, Call)
        item = Item(call, "m", token.start_pos)
        if self._assembler.measure(item, Names(())) is None:
            hint = "As in avg(t) over (lat, month(time))"
            raise MisplacedError("only aggregates are computed over groups", item.place, got=str(token), hint=hint)
        node = Over(call, groups or ())
        self._calls[id(node)] = (node, token.start_pos)
        return node

    def over_all(self, children: list[Any]) -> Node:
        self.count_all(children[:1])  # which says of what there may be a star
        return self.over([children[0], None, children[2]])

    @v_args(meta=True)
    def item(self, meta: Meta, children: list[Any]) -> Item:
        return Item(plain(children)[0], children[1], meta.start_pos)

    @v_args(meta=True)
    def everything(self, meta: Meta, _: list[Any]) -> Item:
        return Item(None, None, meta.start_pos)

    def items(self, children: list[Any]) -> list[Item]:  # type: ignore[override]
        """Both the arguments of a call and the columns of a select are called so in the grammars."""
        return children if isinstance(children[0], Item) else tuple(plain(children))  # type: ignore[return-value]

    def whole_array(self, children: list[Any]) -> Plan:
        return self.scan(children)

    def projected_array(self, children: list[Any]) -> Plan:
        name, version, token = children
        names = [unquoted(n) if n.startswith('"') else n for n in _NAME.findall(token)]
        return Project(self.scan([name, version]), tuple(Output(n, Column(n)) for n in names))

    @v_args(meta=True)
    def select(self, meta: Meta, children: list[Any]) -> Asked:
        selected, *clauses = children
        if isinstance(selected, Item):
            selected = [selected]
        if isinstance(selected, list):
            return self._assembler.query(selected, clauses, None, meta.end_pos)
        if isinstance(selected, Project):
            # A condition may use attributes that are not shown.
            asked = self._assembler.query((), clauses, selected.source, meta.end_pos)
            if isinstance(asked.plan, Ordered):
                return Asked(replace(asked.plan, source=Project(asked.plan.source, selected.columns)), asked.into)
            return Asked(Project(asked.plan, selected.columns), asked.into)
        return self._assembler.query((), clauses, selected, meta.end_pos)

    @v_args(meta=True)
    def aggr(self, meta: Meta, children: list[Any]) -> Asked:
        source, rest = plan_of(children[0]), children[1:]
        items = [child for child in rest if isinstance(child, Item)]
        clauses = [child for child in rest if isinstance(child, Clause)]
        start = Clause("aggr", FROM, source, meta.start_pos)
        asked = self._assembler.query(items, [start, *clauses], None, meta.end_pos)
        if asked.plan is source or not any(clause.rank == GROUPING for clause in clauses):
            self._refuse_plain(items)
        return asked

    def _refuse_plain(self, items: list[Item]) -> None:
        for item in items:
            if self._assembler.measure(item, Names(())) is None and not _holds_aggregate(item.node):
                hint = "As in aggr A max(a)"
                raise MisplacedError("expected an aggregate", item.place, got=str(item.node or "*"), hint=hint)

    def form(self, children: list[Any]) -> Asked:
        word, source, *items = children
        return Asked(form(str(word).lower(), plan_of(source), items, self._assembler))

    def changes(self, children: list[Any]) -> Asked:
        name, before, after = children
        return Asked(Changes(name, whole(before), whole(after)))

    def operated(self, children: list[Any]) -> Asked:
        name, source, *items = children
        for item in items:
            if not isinstance(item.node, Literal) or item.name is not None or item.node.value is None:
                raise MisplacedError("the parameters of an operator are numbers and texts", item.place)
        parameters = tuple(item.node.value for item in items)
        return Asked(Operated(plan_of(source), find_operator(name).name, parameters))

    @v_args(meta=True)
    def from_clause(self, meta: Meta, children: list[Any]) -> Clause:
        source, *joins = children
        plan = plan_of(source)
        for kind, right, on, shape, kept in joins:
            for node, word in ((on, "on"), (None if kept is None else kept.by, "nearest")):
                if node is not None:
                    self._assembler.without_aggregates(node, word)
            plan = SimilarityJoin(plan, right, shape, on, kind, kept)
        return Clause("from", FROM, plan, meta.start_pos)

    def join(self, children: list[Any]) -> tuple[Any, ...]:
        kind, source, on, shape, kept = children
        named = "inner" if kind is None else kind.lower()
        return named, plan_of(source), None if on is None else plain([on])[0], shape, kept

    def nearest(self, children: list[Any]) -> Nearest:
        count, by = plain(children)
        return Nearest(count, by)

    def mutual_nearest(self, children: list[Any]) -> Nearest:
        return Nearest(1, plain(children)[0], mutual=True)

    @v_args(meta=True)
    def where(self, meta: Meta, children: list[Any]) -> Clause:
        return Clause("where", WHERE, plain(children)[0], meta.start_pos)

    @v_args(meta=True)
    def having(self, meta: Meta, children: list[Any]) -> Clause:
        return Clause("having", HAVING, plain(children)[0], meta.start_pos)

    @v_args(meta=True)
    def order_by(self, meta: Meta, children: list[Any]) -> Clause:
        return Clause("order by", ORDER, tuple(children), meta.start_pos)

    def order_key(self, children: list[Any]) -> OrderKey:
        node, direction = plain(children)
        return OrderKey(node, direction is not None and direction.lower() == "desc")

    @v_args(meta=True)
    def limit(self, meta: Meta, children: list[Any]) -> Clause:
        return Clause("limit", LIMIT, children[0], meta.start_pos)

    @v_args(meta=True)
    def into(self, meta: Meta, children: list[Any]) -> Clause:
        return Clause("into", INTO, children[0], meta.start_pos)

    @v_args(meta=True)
    def group_by(self, meta: Meta, children: list[Any]) -> Clause:
        least = children[1].value if children[1:] and children[1] is not None else 0
        return Clause("group by", GROUPING, children[0], meta.start_pos, min_count=least)

    def groups(self, children: list[Any]) -> tuple[GroupKey, ...]:
        return tuple(children)

    def label_part(self, children: list[Any]) -> GroupKey:
        token, arguments = children
        meant = nearest(str(token).lower(), NEIGHBOURHOODS)
        if str(token).lower() not in PARTS and meant.startswith("Did you mean"):  # by regrld(2, 2)
            raise MisplacedError("expected dimensions, or parts of times", token.end_pos, got="'('", hint=meant)
        if len(arguments) != 1 or not isinstance(arguments[0], Column):
            hint = "As in group by month(time)"
            raise ExpressionError("a part is taken of one dimension", got=_call_text(token, arguments), hint=hint)
        return label_part(str(token), arguments[0])

    def by_clause(self, children: list[Any]) -> Clause:
        clause: Clause = children[0]
        return clause

    @v_args(meta=True)
    def window(self, meta: Meta, children: list[Any]) -> Clause:
        axes = [child for child in children if not isinstance(child, Setting)]
        return window_clause(axes, children[len(axes) :], meta.start_pos)

    @v_args(meta=True)
    def regrid(self, meta: Meta, children: list[Any]) -> Clause:
        blocks = [child for child in children if not isinstance(child, Setting)]
        return regrid_clause(blocks, children[len(blocks) :], meta.start_pos)

    @v_args(meta=True)
    def neighbours(self, meta: Meta, children: list[Any]) -> Clause:
        return neighbours_clause(children[0], children[1:], meta.start_pos)

    @v_args(meta=True)
    def step(self, meta: Meta, children: list[Any]) -> Setting:
        return Setting("step", whole(children[0]), meta.start_pos)

    @v_args(meta=True)
    def steps(self, meta: Meta, children: list[Any]) -> Setting:
        return Setting("step", children, meta.start_pos)

    @v_args(meta=True)
    def boundary(self, meta: Meta, children: list[Any]) -> Setting:
        return Setting("boundary", children[0].lower(), meta.start_pos)

    @v_args(meta=True)
    def min_count(self, meta: Meta, children: list[Any]) -> Setting:
        return Setting("min count", whole(children[0]), meta.start_pos)

    @v_args(meta=True)
    def method(self, meta: Meta, children: list[Any]) -> Setting:
        return Setting("method", children[0].lower(), meta.start_pos)

    @v_args(meta=True)
    def strategy(self, meta: Meta, children: list[Any]) -> Setting:
        return Setting("strategy", children[0].lower(), meta.start_pos)

    @v_args(meta=True)
    def sweep(self, meta: Meta, children: list[Any]) -> Setting:
        return Setting("sweep", children[0], meta.start_pos)

    def scan(self, children: list[Any]) -> Plan:
        name, version = children
        return Scan(name, **(version or {}))

    def numbered(self, children: list[Any]) -> dict[str, Any]:
        return {"version": whole(Token("INTEGER", children[0].lstrip(BEFORE_VERSION)))}

    def as_of(self, children: list[Any]) -> dict[str, Any]:
        return {"as_of": timestamp(unquoted(children[0][children[0].index("'") :]))}

    def subquery(self, children: list[Any]) -> Plan:
        return plan_of(children[0])

    def alias(self, children: list[Any]) -> Plan:
        return Alias(plan_of(children[0]), children[1])

    def alias_direction(self, children: list[Any]) -> Plan:
        return Alias(plan_of(children[0]), str(children[1]))


def plan_of(source: Any) -> Plan:
    """The plan of a source, which keeps its result nowhere."""
    if isinstance(source, Asked):
        if source.into is not None:
            raise MisplacedError("into can stand in a query of its own only", source.into.place)
        return source.plan
    if not isinstance(source, Plan):
        raise SchemaError("expected a query", got=str(source))
    return source


def _call_text(name: str, arguments: tuple[Node, ...]) -> str:
    return f"{name}({', '.join(map(str, arguments))})"


def _holds_aggregate(node: Node | None) -> bool:
    return node is not None and any(isinstance(n, Call) and is_aggregate(n.function) for n in node.walk())
