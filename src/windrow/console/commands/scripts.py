"""Statements that come from a command line, a file or a pipe."""

from __future__ import annotations

import sys

import click

from windrow.console.commands.exits import ExitCode
from windrow.console.commands.settings import Settings, common_options, format_option, pass_settings
from windrow.errors import FileFormatError


@click.command("run")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@format_option
@common_options
@pass_settings
def run_file(settings: Settings, file: str) -> None:
    """Run the statements of a file, - for standard input.

    It stops at the first error, and says in which line that is.
    """
    name = "standard input" if file == "-" else click.format_filename(file)
    click.get_current_context().exit(run_statements(settings, script_text(file), name))


def run_statements(settings: Settings, text: str, name: str | None) -> int:
    """Run statements; returns the exit code. A batch that they leave open is an error."""
    from windrow.console.session.modules import load_statements
    from windrow.console.session.running import Console

    load_statements()
    console = Console(settings)
    try:
        code = console.run_script(text, name)
    finally:
        unfinished = console.close()
    if unfinished and code == ExitCode.DONE:
        click.echo("error: the batch was not committed, and nothing of it was kept", err=True)
        click.echo("hint: End it with commit", err=True)
        return ExitCode.WRONG_QUERY
    return code


def run_input(settings: Settings) -> int:
    """Run what comes through a pipe."""
    return run_statements(settings, script_text("-"), "standard input")


def script_text(file: str) -> str:
    """The text of a script, with or without a byte order mark."""
    if file == "-":
        data = sys.stdin.buffer.read()
    else:
        with open(file, "rb") as script:
            data = script.read()
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise FileFormatError(f"{file} is not UTF-8 text", got=f"{data[error.start]:#04x} in line {line}") from None
