"""What commands print: tables on a terminal, plain text that stays the same elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click


def on_terminal() -> bool:
    return sys.stdout.isatty()


def show_table(columns: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str] = ()) -> None:
    """A table; the columns named in ``right`` hold numbers."""
    if on_terminal():
        _show_rich(columns, rows, right)
        return
    widths = [max(map(len, column)) for column in zip(columns, *rows, strict=True)]
    for row in (columns, *rows):
        cells = [
            text.rjust(width) if name in right else text.ljust(width)
            for text, width, name in zip(row, widths, columns, strict=True)
        ]
        click.echo("  ".join(cells).rstrip())


def show_facts(title: str, facts: Sequence[tuple[str, str]]) -> None:
    """Named facts about one thing, in order."""
    if on_terminal():
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table(title=Text(title, style="bold"), title_justify="left", show_header=False, box=None)
        for name, text in facts:
            table.add_row(Text(name, style="cyan"), Text(text))
        Console().print(table)
        return
    width = max(len(name) for name, _ in facts)
    click.echo(title)
    for name, text in facts:
        first, *rest = text.splitlines() or [""]
        click.echo(f"  {name:<{width}}  {first}".rstrip())
        for line in rest:
            click.echo(f"  {'':<{width}}  {line}")


def _show_rich(columns: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in columns:
        table.add_column(name, justify="right" if name in right else "left", overflow="fold")
    for row in rows:
        # Text objects, because a schema's brackets would be taken for markup.
        table.add_row(*map(Text, row))
    Console().print(table)
