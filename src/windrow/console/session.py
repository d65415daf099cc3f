"""A session of statements: each is run and shown, a mistake is explained, and what comes after it still runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windrow.console.exits import ExitCode, explain
from windrow.console.notices import Notices
from windrow.console.places import line_of, pointed
from windrow.console.screen import Screen
from windrow.console.settings import Settings
from windrow.console.stopping import run_stoppable
from windrow.errors import DataError, Error

if TYPE_CHECKING:
    from windrow.api.batch import Report
    from windrow.api.database import Database
    from windrow.api.query import Query
    from windrow.console.viewing import Limits
    from windrow.language.parser import Piece
    from windrow.plan import statements as asked

AskRows = Callable[["Database", "asked.Load"], "asked.Load"]
"""Asks for the rows that a ``load`` without any is to be followed by."""


class ConsoleSession:
    """Statements on one warehouse, which is opened when the first of them needs it."""

    def __init__(self, settings: Settings, *, timing: bool = False, ask_rows: AskRows | None = None) -> None:
        self.settings = settings
        self.screen = Screen()
        self.options: dict[str, str] = {"timing": "on" if timing else "off", "format": settings.format or "table"}
        self._ask_rows = ask_rows
        self._notices = Notices()
        self._database: Database | None = None

    # Scripts

    def run_script(self, text: str, name: str | None = None) -> int:
        """Run statements one by one up to the first mistake, which is explained; returns the exit code."""
        from windrow.language.parser import StatementSyntaxError, split

        try:
            pieces = split(text)
        except StatementSyntaxError as error:
            return explain(error, self.settings.debug, self._where(name, text, error.line))
        for piece in pieces:
            try:
                self.run(piece)
            except BrokenPipeError:
                raise
            except Exception as error:
                known = pointed(error, piece.text) if isinstance(error, Error) else error
                line = line_of(known, piece) if isinstance(known, Error) else piece.line
                return explain(known, self.settings.debug, self._where(name, text, line))
        return ExitCode.DONE

    def _where(self, name: str | None, text: str, line: int) -> str | None:
        if name is None:
            return f"line {line}" if "\n" in text.strip() else None
        return f"{name}, line {line}"

    def run(self, piece: Piece) -> None:
        """Run one statement and show what it gives."""
        from windrow.language.parser import parse
        from windrow.plan.statements import SetOption

        began = time.perf_counter()
        self._notices.begin()
        try:
            statement = parse(piece.text)
            said = self._carried_out(statement)
        finally:
            self._notices.end()
        if self.options["timing"] == "on" and not isinstance(statement, SetOption):
            took = f"{time.perf_counter() - began:.3f} s"
            self.screen.note(f"{said}, {took}" if said else took)

    def _carried_out(self, statement: asked.Statement) -> str | None:
        """Run a statement and show what it gives; returns how much that was."""
        from windrow.api.statements import session_of
        from windrow.plan import statements as asked

        if isinstance(statement, asked.SetOption):
            self._set(statement)
            return None
        database = self.database(create=isinstance(statement, (asked.CreateArray, asked.ImportFiles)))
        if isinstance(statement, asked.Load) and not statement.rows and self._ask_rows is not None:
            statement = self._ask_rows(database, statement)
        if isinstance(statement, asked.Plot):
            self._plot(database, statement)
            return None
        if isinstance(statement, asked.Explain):
            explained = statement
            self._show(run_stoppable(database, lambda: session_of(database).run(explained)))
            return None
        found = session_of(database).run(statement)
        if isinstance(statement, asked.Query) and statement.into is None:
            return self._show_query(found)
        self._show(found)
        return None

    # The warehouse

    def database(self, create: bool = False) -> Database:
        if self._database is None:
            self._database = self.settings.connect(create=create, progress=self._notices)
            self._use_engine()
        return self._database

    @property
    def known_database(self) -> Database | None:
        """The warehouse if it is open, or can be; for looking up names while a statement is typed."""
        try:
            return self.database()
        except Error:
            return None

    def _use_engine(self) -> None:
        if self._database is not None and "engine" in self.options:
            self._database.engine.name = self.options["engine"]  # type: ignore[assignment]

    @property
    def batch_is_open(self) -> bool:
        if self._database is None:
            return False
        from windrow.api.statements import session_of

        return session_of(self._database).batch is not None

    def close(self) -> bool:
        """Let go of the warehouse; returns whether a batch was open, of which nothing is kept."""
        if self._database is None:
            return False
        from windrow.api.statements import session_of
        from windrow.plan.statements import Rollback

        unfinished = self.batch_is_open
        try:
            if unfinished:
                session_of(self._database).run(Rollback())
        finally:
            self._database.close()
            self._database = None
        return unfinished

    # Showing

    def _set(self, statement: asked.SetOption) -> None:
        from windrow.api.options import checked

        name, value = checked(statement.option, statement.value)
        if (name, value) == ("format", "arrow") and self.screen.terminal:
            raise _not_for_terminals()
        self.options[name] = value
        self._notices.wanted = self.options.get("progress", "on") == "on"
        self._use_engine()
        if self.screen.terminal:
            self.screen.say(f"{name} is {value}")

    @property
    def limits(self) -> Limits:
        from windrow.console.viewing import Limits

        return Limits(int(self.options.get("rows", Limits().rows)), self.screen.width)

    def _show_query(self, query: Query) -> str:
        from windrow.api.describe import counted

        format: Any = self.options["format"]
        if format == "table":
            from windrow.console.viewing import view

            seen = run_stoppable(query.database, lambda: view(query, self.limits))
            self.screen.show(seen.lines)
            return counted(seen.cells, "cell")
        from windrow.console.formats import write_query

        if format == "arrow" and self.screen.terminal:
            raise _not_for_terminals()
        stream: Any = self.screen.stream()
        try:
            return counted(run_stoppable(query.database, lambda: write_query(query, format, stream)), "cell")
        except KeyboardInterrupt:
            stream.stop()
            raise

    def _show(self, found: Any) -> None:
        """Show what is no query: a list, a description, an explanation, or a report of what was done."""
        import pyarrow as pa

        from windrow.api.batch import Report
        from windrow.api.describe import Description
        from windrow.api.statements import Done

        format: Any = self.options["format"]
        if isinstance(found, (Report, Done)):
            if format == "table":
                self.screen.say(_report_text(found) if isinstance(found, Report) else str(found))
            return
        if format == "table":
            if isinstance(found, pa.Table):
                from windrow.console.viewing import Limits, table_view

                self.screen.show(table_view(found, self.limits if self.screen.terminal else Limits(width=None)).lines)
            else:
                self.screen.say(str(found))
            return
        from windrow.console.formats import write_table

        if isinstance(found, Description):
            found = pa.table({"fact": [name for name, _ in found.facts], "value": [text for _, text in found.facts]})
        elif not isinstance(found, pa.Table):
            found = pa.table({"line": str(found).splitlines()})
        write_table(found, format, self.screen.stream())  # type: ignore[arg-type]

    def _plot(self, database: Database, statement: asked.Plot) -> None:
        from windrow.api.plotting import plot, require_matplotlib
        from windrow.api.query import Query
        from windrow.api.statements import _chosen
        from windrow.console.pictures import picture

        attribute = _chosen(statement.settings, ("attribute",)).get("attribute")
        if statement.path is None and not self.screen.terminal:
            raise DataError("a plot needs a file where there is no terminal", hint="As in plot A to 'a.png'")
        if statement.path is not None:
            require_matplotlib()
        query = Query(database, statement.plan)
        dimensions = query.schema.dimension_names
        result = run_stoppable(database, query.compute)
        shown = picture(result, attribute, statement.kind, dimensions)
        if statement.path is not None:
            written: Path = plot(result, statement.path, attribute, statement.kind, dimensions)
        if self.screen.terminal:
            from windrow.console.previews import preview

            for line in preview(shown, self.screen.width, self.screen.colours):
                self.screen.say(line)
        if statement.path is not None and self.options["format"] == "table":
            self.screen.say(f"wrote {written}")


def _report_text(report: Report) -> str:
    """What was written, without how long it took, which differs from run to run."""
    if report.versions or (report.applied and not report.changes):
        return str(report).removesuffix(f" in {report.seconds:.2f} s")
    if not report.applied:
        return "passed over: the batch was applied before"
    return str(report).rpartition(" -> ")[0] + ", seen after commit"


def _not_for_terminals() -> DataError:
    hint = "Send it to a file or a program, as in windrow --format arrow -e 'select A' > a.arrows"
    return DataError("Arrow streams are not for terminals", hint=hint)
