"""Syntax trees to statements: one method per alternative of ``grammar.lark``."""

from __future__ import annotations

from typing import Any

from lark.tree import Meta
from lark.visitors import Transformer_NonRecursive, v_args

from windrow.expressions.nodes import Literal, Node
from windrow.expressions.written import Value
from windrow.language.expression import plain, unquoted
from windrow.language.mistakes import MisplacedError
from windrow.language.queries import Asked, Clause
from windrow.language.query_building import QueryBuilder, plan_of
from windrow.model.notation import NotationError, parse_schema
from windrow.plan import statements as st
from windrow.plan.nodes import Scan


class StatementBuilder(QueryBuilder, Transformer_NonRecursive):  # type: ignore[type-arg]
    """Everything else that can be said."""

    def run(self, children: list[Any]) -> st.Statement:
        asked: Asked = children[0]
        return st.Query(asked.plan, None if asked.into is None else asked.into.value)

    def run_into(self, children: list[Any]) -> st.Statement:
        return st.Query(children[0].plan, children[1].value)

    def statement(self, children: list[Any]) -> st.Statement:
        found: st.Statement = children[0]
        return found

    def create_array(self, children: list[Any]) -> st.Statement:
        sparse, _, name, token = children
        try:
            _, schema = parse_schema(str(token), sparse=sparse is not None)
        except NotationError as error:
            advice = (error.hint or "").splitlines()[0]
            hint = None if advice == "Here:" else advice
            raise MisplacedError(error.what, token.start_pos + error.position, got=error.got, hint=hint) from None
        return st.CreateArray(name, schema)

    def create_from(self, children: list[Any]) -> st.Statement:
        return st.CreateFrom(children[1], plan_of(children[2]))

    def create_view(self, children: list[Any]) -> st.Statement:
        _, name, before, settings, asked, after = children
        if before and after:
            raise MisplacedError("deferred is given twice", after.start_pos)
        return st.CreateView(name, plan_of(asked), bool(before or after), settings or ())

    def refresh(self, children: list[Any]) -> st.Statement:
        return st.Refresh(children[0], children[1] is not None)

    def check_view(self, children: list[Any]) -> st.Statement:
        return st.CheckView(children[0])

    def explain_view(self, children: list[Any]) -> st.Statement:
        return st.ExplainView(children[0])

    def drop(self, children: list[Any]) -> st.Statement:
        kind, existing, name, cascade = children
        return st.Drop(name, None if kind is None else kind.lower(), existing is not None, cascade is not None)

    def load_typed(self, children: list[Any]) -> st.Statement:
        name, *typed = children
        rows: list[list[Value]] = []
        last = 0
        for begin, end, value in typed:
            if begin > last:
                rows.append([])
            rows[-1].append(value)
            last = end
        return st.Load(name, tuple(map(tuple, rows)))

    @v_args(meta=True)
    def typed(self, meta: Meta, children: list[Any]) -> tuple[int, int, Value]:
        return meta.line, meta.end_line, _constant(children[0])

    def load_file(self, children: list[Any]) -> st.Statement:
        return st.LoadFile(children[0], unquoted(children[1]), children[2] or ())

    def import_file(self, children: list[Any]) -> st.Statement:
        *paths, name, settings = children
        return st.ImportFiles(tuple(map(unquoted, paths)), name, settings or ())

    def insert_cells(self, children: list[Any]) -> st.Statement:
        name, *cells, settings = children
        return st.InsertCells(name, tuple(cells), settings or ())

    def insert_file(self, children: list[Any]) -> st.Statement:
        return st.InsertFile(children[0], unquoted(children[1]), children[2] or ())

    def insert_query(self, children: list[Any]) -> st.Statement:
        return st.InsertQuery(children[0], plan_of(children[1]))

    def cell(self, children: list[Any]) -> st.Cell:
        return st.Cell(children[0], children[1] or ())

    def delete(self, children: list[Any]) -> st.Statement:
        name, where = children
        return st.Delete(name, self._condition(where))

    def update(self, children: list[Any]) -> st.Statement:
        name, *assignments, where = children
        return st.Update(name, tuple(assignments), self._condition(where))

    def _condition(self, where: Clause | None) -> Node | None:
        return None if where is None else self._assembler.without_aggregates(where.value, "where")

    def assignment(self, children: list[Any]) -> tuple[str, Node]:
        return children[0], self._assembler.without_aggregates(plain(children)[2], "set")

    def describe(self, children: list[Any]) -> st.Statement:
        found = self.scan(children)
        assert isinstance(found, Scan)
        return st.Describe(found)

    def explain(self, children: list[Any]) -> st.Statement:
        return st.Explain(plan_of(children[1]), children[0] is not None)

    def list_things(self, children: list[Any]) -> st.Statement:
        return st.List("arrays" if children[0] is None else children[0].lower())

    def list_versions(self, children: list[Any]) -> st.Statement:
        return st.List("versions", children[0])

    def history(self, children: list[Any]) -> st.Statement:
        return st.ShowHistory(children[0])

    def save(self, children: list[Any]) -> st.Statement:
        return st.Save(plan_of(children[0]), unquoted(children[1]), children[2] or ())

    def plot(self, children: list[Any]) -> st.Statement:
        source, path, kind, settings = children
        kind = None if kind is None else kind.split()[-1].lower()
        return st.Plot(plan_of(source), None if path is None else unquoted(path), kind, settings or ())

    def begin(self, children: list[Any]) -> st.Statement:
        return st.Begin(None if children[0] is None else unquoted(children[0]))

    def commit(self, _: list[Any]) -> st.Statement:
        return st.Commit()

    def rollback(self, _: list[Any]) -> st.Statement:
        return st.Rollback()

    def set_option(self, children: list[Any]) -> st.Statement:
        return st.SetOption(children[0], _constant(children[-1]))

    def set_word(self, children: list[Any]) -> st.Statement:
        return st.SetOption(children[0], str(children[-1]).lower())

    def set_on(self, children: list[Any]) -> st.Statement:
        return st.SetOption(children[0], "on")

    def settings(self, children: list[Any]) -> st.Settings:
        return tuple(children)

    def setting(self, children: list[Any]) -> tuple[str, Value]:
        return children[0], _constant(children[2])

    def setting_word(self, children: list[Any]) -> tuple[str, Value]:
        return children[0], str(children[2])

    def constants(self, children: list[Any]) -> tuple[Value, ...]:
        return tuple(map(_constant, children))


def _constant(child: Any) -> Value:
    return child.value if isinstance(child, Literal) else child
