"""Statements run and shown: a mistake is explained, and what comes after it still runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from windrow.console.commands.exits import ExitCode, explain
from windrow.console.commands.settings import Settings
from windrow.console.render.screen import Screen
from windrow.console.session.notices import Notices, saying_warnings
from windrow.console.session.stopping import run_stoppable
from windrow.errors import DataError, Error

if TYPE_CHECKING:
    import pyarrow as pa

    from windrow.api.array import Array
    from windrow.api.database import Database
    from windrow.api.plotting import Plotting
    from windrow.api.query import Query
    from windrow.api.refreshing import Check
    from windrow.api.reports import Report
    from windrow.api.session.script import Piece
    from windrow.api.session.statements import OptionSet, Session
    from windrow.api.sql_queries import SqlResult
    from windrow.console.session.viewing import Limits

AskRows = Callable[["Array"], list[Any]]
"""Asks for the rows that a ``load`` without any is to be followed by."""


class Console:
    """Shows what the statements of a session give, on a terminal or elsewhere."""

    def __init__(self, settings: Settings, *, timing: bool = False, ask_rows: AskRows | None = None) -> None:
        self.settings = settings
        self.screen = Screen()
        self._ask_rows = ask_rows
        self._notices = Notices()
        self._timing = "on" if timing else "off"
        self._session: Session | None = None

    @property
    def session(self) -> Session:
        """The session of the statements; it is made late, because what runs statements takes long to import."""
        if self._session is None:
            from windrow.api.session.statements import Hooks, Session

            hooks = Hooks(self._ask_rows, run_stoppable, self._plot, self._check_option)
            options = {"timing": self._timing, "format": self.settings.format or "table"}
            self._session = Session(self._connect, hooks, options)
        return self._session

    @property
    def options(self) -> dict[str, str]:
        return self.session.options

    def _connect(self, create: bool) -> Database:
        return self.settings.connect(create=create, progress=self._notices)

    @property
    def known_database(self) -> Database | None:
        """The warehouse if it is open, or can be; for looking up names while a statement is typed."""
        try:
            return self.session.database
        except Error:
            return None

    @property
    def batch_is_open(self) -> bool:
        return self._session is not None and self._session.batch is not None

    def close(self) -> bool:
        """Let go of the warehouse; returns whether a batch was open, of which nothing is kept."""
        return self._session is not None and self._session.close()

    # Scripts

    def run_script(self, text: str, name: str | None = None) -> int:
        """Run statements one by one up to the first mistake, which is explained; returns the exit code."""
        from windrow.api.session.script import StatementSyntaxError, line_of, point_out, split_lines

        try:
            pieces = split_lines(text)
        except StatementSyntaxError as error:
            return explain(error, self.settings.debug, self._where(name, text, error.line))
        for piece in pieces:
            try:
                self.run(piece)
            except BrokenPipeError:
                raise
            except Exception as error:
                known = point_out(error, piece.text) if isinstance(error, Error) else error
                line = line_of(known, piece) if isinstance(known, Error) else piece.line
                return explain(known, self.settings.debug, self._where(name, text, line))
        return ExitCode.DONE

    def run_sql(self, text: str, name: str | None, tables: Mapping[str, str]) -> int:
        """Run SQL statements over arrays and files, up to the first mistake; returns the exit code."""
        from windrow.api.session.script import split
        from windrow.api.sql_queries import register_table

        try:
            for table, path in tables.items():
                register_table(self.session.database, table, path)
            script = ";\n".join(f"sql {piece.text}" for piece in split(text))
        except Error as error:
            return explain(error, self.settings.debug, name)
        return self.run_script(script, name)

    def _where(self, name: str | None, text: str, line: int) -> str | None:
        if name is None:
            return f"line {line}" if "\n" in text.strip() else None
        return f"{name}, line {line}"

    def run(self, piece: Piece) -> None:
        """Run one statement and show what it gives."""
        from windrow.api.query import Query
        from windrow.api.session.statements import OptionSet
        from windrow.api.sql_queries import SqlResult

        began = time.perf_counter()
        said = None
        self._notices.begin()
        try:
            with saying_warnings():
                found = self.session.run(piece.text)
                if isinstance(found, OptionSet):
                    self._show_option(found)
                    return
                if isinstance(found, Query):
                    said = self._show_query(found)
                elif isinstance(found, SqlResult):
                    said = self._show_rows(found)
                elif found is not None:
                    self._show(found)
        finally:
            self._notices.end()
        if self.options["timing"] == "on":
            took = f"{time.perf_counter() - began:.3f} s"
            self.screen.note(f"{said}, {took}" if said else took)

    # Showing

    def _check_option(self, name: str, value: str) -> None:
        if (name, value) == ("format", "arrow") and self.screen.terminal:
            raise _not_for_terminals()

    def _show_option(self, done: OptionSet) -> None:
        self._notices.wanted = self.options.get("progress", "on") == "on"
        if self.screen.terminal:
            self.screen.say(str(done))

    @property
    def limits(self) -> Limits:
        from windrow.console.session.viewing import Limits

        return Limits(int(self.options.get("rows", Limits().rows)), self.screen.width)

    def _show_query(self, query: Query) -> str:
        from windrow.api.describe import counted

        format: Any = self.options["format"]
        if format == "table":
            from windrow.console.session.viewing import view

            seen = run_stoppable(query.database, lambda: view(query, self.limits))
            self.screen.show(seen.lines)
            return counted(seen.cells, "cell")
        from windrow.console.render.formats import write_query

        if format == "arrow" and self.screen.terminal:
            raise _not_for_terminals()
        stream: Any = self.screen.stream()
        try:
            return counted(run_stoppable(query.database, lambda: write_query(query, format, stream)), "cell")
        except KeyboardInterrupt:
            stream.stop()
            raise

    def _show_rows(self, found: SqlResult) -> str | None:
        format: Any = self.options["format"]
        if format == "table":
            from windrow.console.session.viewing import rows_view

            self.screen.show(run_stoppable(found.database, lambda: rows_view(found, self.limits)).lines)
            return None
        from windrow.api.describe import counted
        from windrow.console.render.formats import write_rows

        if format == "arrow" and self.screen.terminal:
            raise _not_for_terminals()
        stream: Any = self.screen.stream()
        return counted(run_stoppable(found.database, lambda: write_rows(found, format, stream)), "row")

    def _show(self, found: Any) -> None:
        """Show what is no query: a list, a description, an explanation, or a report of what was done."""
        import pyarrow as pa

        from windrow.api.describe import Description
        from windrow.api.refreshing import Check
        from windrow.api.reports import Report
        from windrow.api.session.statements import Done

        if isinstance(found, (Report, Done)):
            if self.options["format"] == "table":
                self.screen.say(_report_text(found) if isinstance(found, Report) else str(found))
        elif isinstance(found, Check):
            self._show_check(found)
        elif isinstance(found, pa.Table):
            self._show_table(found)
        elif self.options["format"] == "table":
            self.screen.say(str(found))
        elif isinstance(found, Description):
            facts = {"fact": [name for name, _ in found.facts], "value": [text for _, text in found.facts]}
            self._show_table(pa.table(facts))
        else:
            self._show_table(pa.table({"line": str(found).splitlines()}))

    def _show_table(self, found: pa.Table) -> None:
        format: Any = self.options["format"]
        if format == "table":
            from windrow.console.session.viewing import Limits, table_view

            self.screen.show(table_view(found, self.limits if self.screen.terminal else Limits(width=None)).lines)
            return
        from windrow.console.render.formats import write_table

        write_table(found, format, self.screen.stream())  # type: ignore[arg-type]

    def _show_check(self, check: Check) -> None:
        """What a view has otherwise than its query, which ends a script as any error does."""
        if check.ok and self.options["format"] == "table":
            self.screen.say(str(check))
        else:
            self._show_table(
                check.differences.slice(0, self.limits.rows) if self.screen.terminal else check.differences
            )
        if not check.ok:
            hint = f"refresh {check.view} full computes it anew"
            raise DataError(f"view {check.view} is not what its query gives", hint=hint)

    def _plot(self, asked: Plotting) -> None:
        """Draw into the file that is named, and on the terminal if there is one."""
        from windrow.api.plotting import plot, require_matplotlib
        from windrow.console.render.pictures import picture

        if asked.path is None and not self.screen.terminal:
            raise DataError("a plot needs a file where there is no terminal", hint="As in plot A to 'a.png'")
        if asked.path is not None:
            require_matplotlib()
        dimensions = asked.query.schema.dimension_names
        result = run_stoppable(asked.query.database, asked.query.compute)
        shown = picture(result, asked.attribute, asked.kind, dimensions)
        if asked.path is not None:
            written = plot(result, asked.path, asked.attribute, asked.kind, dimensions)
        if self.screen.terminal:
            from windrow.console.render.previews import preview

            for line in preview(shown, self.screen.width, self.screen.colours):
                self.screen.say(line)
        if asked.path is not None and self.options["format"] == "table":
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
