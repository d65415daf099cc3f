"""``db.sql``: Spark SQL with windrow's aggregates over any frame, and with arrays as tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from windrow.errors import LanguageError
from windrow.language.sql_reading import Reading, SqlError, tokens_of
from windrow.language.sql_scopes import ScopeReader
from windrow.language.sql_splits import Split, quoted
from windrow.tables.sql_frames import SortedWindows
from windrow.tables.sql_problems import is_sparks, sparks_problem

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from windrow.api.database import Database

_EXPLAIN = re.compile(r"explain(\s+(?P<mode>extended|formatted|codegen|cost))?\b", re.IGNORECASE)
_TABLE = "__windrow_table_{}__"
_VERSIONED = re.compile(r"(?P<name>[^@]+)@\d+\Z")


def run_sql(database: Database, text: str) -> DataFrame:
    """Carry out one SQL statement; a query gives a lazy DataFrame."""
    if not isinstance(text, str) or not text.strip():
        raise LanguageError("db.sql takes the text of one query", got=repr(text), hint="As in select 1")
    body = text.strip().rstrip(";")
    asked = _EXPLAIN.match(body)
    words = [token.text.lower() for token in tokens_of(body if asked is None else body[asked.end() :])]
    arrays = set(database.catalog.array_names())
    session = database.engine.spark().session
    if "windrow_frames" in words:
        from windrow.tables.table_function import register

        register(session)
    query = SqlQuery(session, body, lambda name: database.array(name).to_spark(), arrays)
    if "over" not in words and not any(name.lower() in text.lower() for name in arrays):
        return query.straight()
    return query.result() if asked is None else query.explained(asked)


class SqlQuery:
    """One text on its way to Spark: parts that Spark cannot do are replaced by tables that hold them."""

    def __init__(
        self, session: SparkSession, text: str, array: Callable[[str], DataFrame], arrays: AbstractSet[str]
    ) -> None:
        self.session = session
        self.text = text
        self.tables: dict[str, DataFrame] = {}
        self.report: list[str] = []
        self._array = array
        self._arrays = arrays
        self._meanings: dict[str, str] = {}
        self._explains = False

    def straight(self) -> DataFrame:
        """The text as it is: all of it is Spark's."""
        return self._spark(self.text)

    def result(self) -> DataFrame:
        """The text with windrow's parts taken out and done."""
        try:
            reading = Reading(self.text)
        except SqlError as unread:
            return self._unread(unread)
        self._put_arrays(reading)
        self._put_windows(reading)
        rest = reading.between(0, len(self.text))
        if not self.tables:
            return self._spark(rest)
        if isinstance(reading.tree, exp.Create) and str(reading.tree.args.get("kind")).upper() == "VIEW":
            return self._view(reading)
        found = self._spark(rest)
        self.report.append(f"spark    {_indented(self._named(rest))}")
        return found

    def explained(self, asked: re.Match[str]) -> DataFrame:
        """Who does what, and Spark's own plan below it, as EXPLAIN gives it: one row, one column ``plan``."""
        self._explains = True
        mode, self.text = asked["mode"] or "", self.text[asked.end() :].strip()
        planned = self.result()
        if not self.tables:
            return self._spark(f"explain {mode} {self.text}")
        self._meanings = {}
        name = _TABLE.format("all")
        self.tables = {name: planned}
        plan = self._spark(f"explain {mode} select * from {name}").collect()[0][0]
        told = "\n".join([*self.report, "", str(plan).rstrip()])
        return self.session.createDataFrame([(told,)], "plan string")

    def _unread(self, unread: SqlError) -> DataFrame:
        """Spark may know what the parser does not; if neither does, the parser has the better caret."""
        try:
            return self.session.sql(self.text)
        except Exception as error:
            if not is_sparks(error):
                raise
            if "PARSE" in str(getattr(error, "getCondition", str)()) or "INVALID_SQL" in str(error):
                raise unread from None
            raise sparks_problem(error, self.text, self._known_tables) from None

    # Tables

    def _put_arrays(self, reading: Reading) -> None:
        """Arrays that are named as tables; names that WITH defines go before them."""
        defined = {cte.alias.lower() for cte in reading.tree.find_all(exp.CTE)}
        target = (
            reading.tree.this if isinstance(reading.tree, exp.Insert | exp.Update | exp.Delete | exp.Merge) else None
        )
        for table in list(reading.tree.find_all(exp.Table)):
            name = table.name
            versioned = _VERSIONED.match(name)
            known = (versioned["name"] if versioned else name) in self._arrays
            if table.args.get("db") is not None or name.lower() in defined or not known:
                continue
            if target is not None and table in (target, target.this):
                hint = "Use db.query, or the array's own methods"
                raise reading.error("db.sql does not change arrays", table, got=name, hint=hint)
            if table.args.get("version") is not None:
                raise reading.error("a version is part of the name", table, hint=f"As in `{name}@3`")
            place = table.this.meta
            label = "" if table.alias or table.args.get("sample") else f" as {quoted(name)}"
            reading.replace((place["start"], place["end"] + 1), self._put(self._array(name)) + label)
            self.report.append(f"windrow  array {name}")

    def _put(self, frame: DataFrame) -> str:
        name = _TABLE.format(len(self.tables))
        self.tables[name] = frame
        return name

    # Windows

    def _put_windows(self, reading: Reading) -> None:
        """From the inside out: a query's text is final before the query around it is looked at."""
        selects = list(reading.tree.find_all(exp.Select))
        for select in sorted(selects, key=lambda node: (reading.tokens_of(node) or (0, 0))[1]):
            scope = ScopeReader(reading, select, partial(self._has, reading, select))
            if scope.calls:
                self._put_scope(reading, select, scope.split())

    def _put_scope(self, reading: Reading, select: exp.Select, split: Split) -> None:
        self._meanings.update(split.meanings)
        before = _visible(reading, select)
        below = self._spark(before + split.inner)
        columns = below.columns
        rows = below.toDF(*split.names(columns)).drop(*split.dropped(columns))
        self.report.append(f"spark    {_indented(self._named(before + split.told))}")
        for sort in split.sorts:
            windows = SortedWindows(rows, sort, reading, self._named)
            rows = windows.result()
            if self._explains:
                self.report.append(f"windrow  {_indented(windows.explained())}")
        # What follows in the text may begin right where the SELECT ended.
        reading.replace(split.span, split.outer(columns, self._put(rows)) + "\n")

    def _has(self, reading: Reading, select: exp.Select, name: str, tables: str) -> bool:
        """Whether the tables of a FROM clause have a column."""
        try:
            return bool(self._run(f"{_visible(reading, select)}select {quoted(name)} {tables}").columns)
        except Exception as error:
            if not is_sparks(error):
                raise
            return False

    def _view(self, reading: Reading) -> DataFrame:
        """A temporary view keeps its DataFrame; a stored one would keep a text that Spark cannot run."""
        name = reading.tree.this
        properties = reading.tree.args.get("properties")
        if properties is None or properties.find(exp.TemporaryProperty) is None:
            hint = "Use create temporary view, or create table … as select …"
            raise reading.error("a stored view cannot hold what windrow does", name, hint=hint)
        begin = next(token.end + 1 for token in reading.tokens if token.text.lower() == "as")
        rows = self._spark(reading.between(begin, len(self.text)))
        keep = rows.createOrReplaceTempView if reading.tree.args.get("replace") else rows.createTempView
        keep(name.name)
        return rows

    # Spark

    def _spark(self, text: str) -> DataFrame:
        """Spark's answer; it looks all names up now, and computes nothing."""
        try:
            found = self._run(text)
            _ = found.columns
        except Exception as error:
            if not is_sparks(error):
                raise
            raise sparks_problem(error, self.text, self._known_tables, self._named) from None
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

    def _named(self, text: str) -> str:
        """A text as a reader would write it: with the expressions that generated names stand for."""
        text = re.sub(r"__sql_i\d+ as ", "", text)
        text = re.sub(r"__windrow_table_(\d+)__", r"rows \1", text)
        return re.sub(r"__sql_\w\d+\b", lambda match: self._meanings.get(match[0], match[0]), text)

    def _known_tables(self) -> Sequence[str]:
        return [*self._arrays, *(table.name for table in self.session.catalog.listTables())]


def _visible(reading: Reading, select: exp.Select) -> str:
    """The WITH clause that a query needs to stand alone: what is defined around it, and before it."""
    definitions: dict[str, str] = {}
    levels: list[list[exp.Expr]] = []
    node: exp.Expr | None = select
    inside: exp.Expr | None = None
    while node is not None:
        if isinstance(node, exp.CTE):
            inside = node
        clause = node.args.get("with_")
        if clause is not None:
            known = list(clause.expressions)
            before = known[: known.index(inside)] if inside is not None and inside in known else known
            levels.append(before)
        node = node.parent
    for level in reversed(levels):
        for definition in level:
            definitions.pop(definition.alias.lower(), None)
            definitions[definition.alias.lower()] = reading.written_definition(definition)
    return f"with {', '.join(definitions.values())}\n" if definitions else ""


def _indented(text: str) -> str:
    return text.strip().replace("\n", "\n         ")
