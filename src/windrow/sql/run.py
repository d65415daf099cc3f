"""``db.sql``: Spark SQL with windrow's aggregates over any frame, and with arrays as tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from windrow.errors import Error, LanguageError
from windrow.sql.definitions import definition_of, definitions_for, refuse_recursion, separate_names
from windrow.sql.frames import SortedWindows
from windrow.sql.grouped_calls import grouped_calls, register_call
from windrow.sql.items import clauses_of
from windrow.sql.left_to_spark import tell_sparks
from windrow.sql.over_clauses import is_own_name
from windrow.sql.problems import is_spark_error, translate_error
from windrow.sql.reading import Reading, SqlError, tokens_of, walk_query
from windrow.sql.scopes import ScopeReader, windows_of
from windrow.sql.splits import Split, quote_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from windrow.execution.engine import Engine

_EXPLAIN = re.compile(r"explain(\s+(?P<mode>extended|formatted|codegen|cost))?\b", re.IGNORECASE)
_TABLE = "__windrow_table_{}__"
_VERSIONED = re.compile(r"(?P<name>[^@]+)@\d+\Z")


@dataclass(frozen=True)
class Arrays:
    """The arrays that a query may name as tables: all their names, and the rows of one, or of a version (``A@3``)."""

    names: AbstractSet[str]
    rows: Callable[[str], DataFrame]


def run_sql(engine: Engine, arrays: Arrays, text: str) -> DataFrame:
    """Carry out one SQL statement; a query gives a lazy DataFrame."""
    if not isinstance(text, str) or not text.strip():
        raise LanguageError("db.sql takes the text of one query", got=repr(text), hint="As in select 1")
    body = text.strip().rstrip(";")
    asked = _EXPLAIN.match(body)
    words = [token.text.lower() for token in tokens_of(body if asked is None else body[asked.end() :])]
    session = engine.spark().session
    if "windrow_frames" in words:
        from windrow.sql.table_function import register

        register(session)
    query = SqlQuery(session, body, arrays)
    arrays_named = any(name.lower() in text.lower() for name in arrays.names)
    if "over" not in words and not arrays_named and not any(map(is_own_name, set(words))):
        return query.run_unchanged()
    return query.result() if asked is None else query.explain(asked)


class SqlQuery:
    """One text on its way to Spark: parts that Spark cannot do are replaced by tables that hold them."""

    def __init__(self, session: SparkSession, text: str, arrays: Arrays) -> None:
        self.session = session
        self.text = text
        self.tables: dict[str, DataFrame] = {}
        self.report: list[str] = []
        self._arrays = arrays
        self._meanings: dict[str, str] = {}
        self._explains = False

    def run_unchanged(self) -> DataFrame:
        """The text as it is: all of it is Spark's."""
        return self._ask_spark(self.text)

    def result(self) -> DataFrame:
        """The text with windrow's parts taken out and done."""
        try:
            reading = Reading(self.text)
        except SqlError as unread:
            return self._leave_to_spark(unread)
        self._meanings.update(separate_names(reading))
        self._put_arrays(reading)
        self._put_groups(reading)
        self._put_windows(reading)
        rest = reading.between(0, len(self.text))
        if not self.tables:
            self.report.append(f"spark    {_indent(self._restore_names(rest))}")
            return self._ask_spark(rest)
        if isinstance(reading.tree, exp.Create) and str(reading.tree.args.get("kind")).upper() == "VIEW":
            return self._create_view(reading)
        found = self._ask_spark(rest)
        self.report.append(f"spark    {_indent(self._restore_names(rest))}")
        return found

    def explain(self, asked: re.Match[str]) -> DataFrame:
        """Who does what, and Spark's own plan below it, as EXPLAIN gives it: one row, one column ``plan``."""
        self._explains = True
        mode, self.text = asked["mode"] or "", self.text[asked.end() :].strip()
        planned = self.result()
        if not self.tables and len(self.report) < 2:
            return self._ask_spark(f"explain {mode} {self.text}")
        self._meanings = {}
        name = _TABLE.format("all")
        self.tables = {name: planned}
        plan = self._ask_spark(f"explain {mode} select * from {name}").collect()[0][0]
        told = "\n".join([*self.report, "", str(plan).rstrip()])
        return self.session.createDataFrame([(told,)], "plan string")

    def _leave_to_spark(self, unread: SqlError) -> DataFrame:
        """Give Spark a text that sqlglot cannot read; if Spark cannot either, sqlglot's error has the better caret."""
        try:
            return self.session.sql(self.text)
        except Exception as error:
            if not is_spark_error(error):
                raise
            if "PARSE" in str(getattr(error, "getCondition", str)()) or "INVALID_SQL" in str(error):
                raise unread from None
            raise translate_error(error, self.text, self._known_tables) from None

    # Tables

    def _put_arrays(self, reading: Reading) -> None:
        """Arrays that are named as tables; a name that WITH defines goes before them where it is seen."""
        target = (
            reading.tree.this if isinstance(reading.tree, exp.Insert | exp.Update | exp.Delete | exp.Merge) else None
        )
        for table in list(reading.tree.find_all(exp.Table)):
            name = table.name
            versioned = _VERSIONED.match(name)
            known = (versioned["name"] if versioned else name) in self._arrays.names
            if table.args.get("db") is not None or not known or definition_of(table) is not None:
                continue
            if self._is_temporary_view(name):
                hint = "Drop the view, or give it another name"
                raise reading.error("a table's name is both an array's and a view's", table, got=repr(name), hint=hint)
            if target is not None and table in (target, target.this):
                hint = "Use db.query, or the array's own methods"
                raise reading.error("db.sql does not change arrays", table, got=name, hint=hint)
            if table.args.get("version") is not None:
                raise reading.error("a version is part of the name", table, hint=f"As in `{name}@3`")
            place = table.this.meta
            label = "" if table.alias or table.args.get("sample") else f" as {quote_name(name)}"
            reading.replace((place["start"], place["end"] + 1), self._put(self._arrays.rows(name)) + label)
            self.report.append(f"windrow  array {name}")

    def _is_temporary_view(self, name: str) -> bool:
        """Whether Spark has a view of that name in no schema, which could not be named otherwise."""
        catalog, quoted = self.session.catalog, quote_name(name)
        return catalog.tableExists(quoted) and catalog.getTable(quoted).isTemporary

    def _put(self, frame: DataFrame) -> str:
        name = _TABLE.format(len(self.tables))
        self.tables[name] = frame
        return name

    # Groups

    def _put_groups(self, reading: Reading) -> None:
        """Aggregates without OVER that Spark lacks, or means otherwise."""
        for select in list(reading.tree.find_all(exp.Select)):
            calls = list(grouped_calls(reading, select))
            for call in calls:
                span = reading.span(call.node)
                if span is None:
                    raise reading.error("windrow cannot follow this expression", call.node)
                kinds = self._types_of(reading, select, call.arguments)
                label = reading.label(call.node)
                function = register_call(self.session, call, reading, kinds)
                self._meanings[function] = call.aggregate.name
                self.report.append(f"windrow  {label}, from the values of each group")
                reading.replace(span, call.write(reading, function))
            self._keep_labels(reading, select, {id(call.node) for call in calls})

    def _types_of(self, reading: Reading, select: exp.Select, nodes: Sequence[exp.Expr]) -> list[Any]:
        """Spark's types of expressions over the tables of a FROM clause."""
        listed = ", ".join(reading.text_of(node) for node in nodes)
        tables = clauses_of(reading, select).tables
        asked = self._ask_spark(f"{definitions_for(reading, select)}select {listed} {tables}")
        return [field.dataType for field in asked.schema.fields]

    def _keep_labels(self, reading: Reading, select: exp.Select, changed: set[int]) -> None:
        """Items that have no name of their own are called what was written."""
        for item in select.expressions:
            span = reading.span(item)
            named = isinstance(item, exp.Alias | exp.Column | exp.Star)
            if span is not None and not named and any(id(part) in changed for part in walk_query(item)):
                label = re.sub(r"\s+", " ", self.text[slice(*span)]).strip()
                reading.replace(span, f"{reading.between(*span)} as {quote_name(label)}")

    # Windows

    def _put_windows(self, reading: Reading) -> None:
        """From the inside out: a query's text is final before the query around it is looked at."""
        selects = list(reading.tree.find_all(exp.Select))
        for select in sorted(selects, key=lambda node: (reading.tokens_of(node) or (0, 0))[1]):
            asks = partial(self._has_column, reading, select)
            scope = ScopeReader(reading, select, asks)
            optional = [call for call in scope.calls.values() if call.optional]
            before = len(self.report)
            try:
                self._put_calls(reading, select, scope)
            except Error as error:
                if not optional:
                    raise
                # Spark can do these as well, in one task; what is still wrong then is wrong without them.
                del self.report[before:]
                self.report += [
                    f"spark    {reading.label(call.node)} in one task, because windrow cannot: {error.what}"
                    for call in optional
                ]
                told = {id(call.node) for call in optional}
                self._put_calls(reading, select, ScopeReader(reading, select, asks, optional=False), told)

    def _put_calls(
        self, reading: Reading, select: exp.Select, scope: ScopeReader, told: AbstractSet[int] = frozenset()
    ) -> None:
        self.report += [
            self._restore_names(tell_sparks(reading, window, scope.named))
            for window in windows_of(select)
            if self._explains and id(window) not in scope.calls and id(window) not in told
        ]
        if scope.calls:
            refuse_recursion(reading, select, next(iter(scope.calls.values())).node)
            self._put_scope(reading, select, scope.split())

    def _put_scope(self, reading: Reading, select: exp.Select, split: Split) -> None:
        self._meanings.update(split.meanings)
        before = definitions_for(reading, select)
        below = self._ask_spark(before + split.inner)
        columns = below.columns
        rows = below.toDF(*split.name_columns(columns)).drop(*split.columns_to_drop(columns))
        self.report.append(f"spark    {_indent(self._restore_names(before + split.told))}")
        for sort in split.sorts:
            windows = SortedWindows(rows, sort, reading, self._restore_names)
            rows = windows.result()
            if self._explains:
                self.report.append(f"windrow  {_indent(windows.explain())}")
        # What follows in the text may begin right where the SELECT ended.
        reading.replace(split.span, split.write_outer(columns, self._put(rows)) + "\n")

    def _has_column(self, reading: Reading, select: exp.Select, name: str, tables: str) -> bool:
        """Whether the tables of a FROM clause have a column."""
        try:
            return bool(self._run(f"{definitions_for(reading, select)}select {quote_name(name)} {tables}").columns)
        except Exception as error:
            if not is_spark_error(error):
                raise
            return False

    def _create_view(self, reading: Reading) -> DataFrame:
        """A temporary view keeps its DataFrame; a stored one would keep a text that Spark cannot run."""
        name = reading.tree.this
        properties = reading.tree.args.get("properties")
        if properties is None or properties.find(exp.TemporaryProperty) is None:
            hint = "Use create temporary view, or create table … as select …"
            raise reading.error("a stored view cannot hold what windrow does", name, hint=hint)
        begin = next(token.end + 1 for token in reading.tokens if token.text.lower() == "as")
        rows = self._ask_spark(reading.between(begin, len(self.text)))
        keep = rows.createOrReplaceTempView if reading.tree.args.get("replace") else rows.createTempView
        keep(name.name)
        return rows

    # Spark

    def _ask_spark(self, text: str) -> DataFrame:
        """Spark's answer; it looks all names up now, and computes nothing."""
        try:
            found = self._run(text)
            _ = found.columns
        except Exception as error:
            if not is_spark_error(error):
                raise
            raise translate_error(error, self.text, self._known_tables, self._restore_names) from None
        return found

    def _run(self, text: str) -> DataFrame:
        used = {name: frame for name, frame in self.tables.items() if name in text}
        if not used:
            return self.session.sql(text)
        # Spark puts DataFrames where braces are; those of the text itself are doubled.
        text = text.replace("{", "{{").replace("}", "}}")
        for name in used:
            text = text.replace(name, "{" + name + "}")
        arguments: dict[str, Any] = dict(used)
        return self.session.sql(text, **arguments)

    def _restore_names(self, text: str) -> str:
        """A text in which generated names are replaced by the expressions that they stand for."""
        text = re.sub(r"__sql_i\d+ as ", "", text)
        text = re.sub(r"(__windrow_group_\w+)\(", lambda match: self._meanings.get(match[1], match[1]) + "(", text)
        text = re.sub(r"__windrow_table_(\d+)__", r"rows \1", text)
        return re.sub(r"__sql_\w\d+\b", lambda match: self._meanings.get(match[0], match[0]), text)

    def _known_tables(self) -> Sequence[str]:
        return [*self._arrays.names, *(table.name for table in self.session.catalog.listTables())]


def _indent(text: str) -> str:
    return text.strip().replace("\n", "\n         ")
