"""SQL from a terminal: the queries of ``db.sql`` over arrays and files."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import click

from windrow.console.commands.scripts import script_text
from windrow.console.commands.settings import Settings, common_options, format_option, pass_settings


def _tables(_context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """Each ``name=path`` by its name."""
    result: dict[str, str] = {}
    for text in values:
        name, equals, path = (part.strip() for part in text.partition("="))
        if not name or not equals or not path:
            raise click.BadParameter(f"a table is written as name=path; got {text!r}", param=parameter)
        if name in result:
            raise click.BadParameter(f"table {name} is given twice", param=parameter)
        result[name] = path
    return result


@click.command("sql")
@click.argument("query", metavar="QUERY|FILE")
@click.option(
    "--table",
    "tables",
    metavar="NAME=PATH",
    multiple=True,
    callback=_tables,
    help="A Parquet or CSV file, or a Delta table, as a table of that name; may be given again.",
)
@format_option
@common_options
@pass_settings
def run_sql(settings: Settings, query: str, tables: dict[str, str]) -> None:
    """Run SQL with windrow's aggregates over any frame; - reads it from standard input.

    Arrays of the warehouse are tables by their names. No warehouse is needed for queries on files.

    \b
    windrow sql "select day, median(delay) over (order by day rows 6 preceding) from t" --table t=flights.parquet
    """
    is_file = query == "-" or (os.path.isfile(query) and " " not in query.strip())
    text = script_text(query) if is_file else query
    name = ("standard input" if query == "-" else click.format_filename(query)) if is_file else None
    with tempfile.TemporaryDirectory(prefix="windrow-sql-") as empty:
        if settings.db == Settings.db and not Path(settings.db).exists():
            from windrow.api.database import connect

            settings.db = os.path.join(empty, "warehouse")
            connect(settings.db, engine="local", progress=False).close()
        click.get_current_context().exit(_run(settings, text, name, tables))


def _run(settings: Settings, text: str, name: str | None, tables: dict[str, str]) -> int:
    from windrow.console.session.modules import load_statements
    from windrow.console.session.running import Console

    load_statements()
    console = Console(settings)
    try:
        return console.run_sql(text, name, tables)
    finally:
        console.close()
