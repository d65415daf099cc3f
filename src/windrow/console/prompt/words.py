"""What can be typed at the prompt and is no statement: help, quit, and a few that users of psql look for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from windrow.console.prompt.help_texts import explain_topic, overview

if TYPE_CHECKING:
    from windrow.console.session.running import Console

COMMANDS = {
    "help": "what can be typed; help select explains one statement",
    "quit": "leave, as exit and Ctrl-D do",
    "\\d": "list arrays; \\d A describes one",
    "\\i": "run the statements of a file: \\i script.wql",
    "\\timing": "show how long statements take, or stop showing it",
}
_SAME = {"exit": "quit", "\\q": "quit", "\\?": "help", "\\h": "help"}


class LeaveError(Exception):
    """The user wants to leave."""


def run_command(text: str, console: Console) -> bool:
    """Carry out what is a command; returns whether it was one."""
    word, _, rest = text.strip().rstrip(";").strip().partition(" ")
    name = _SAME.get(word.lower(), word.lower())
    if name not in COMMANDS and not name.startswith("\\"):
        return False
    argument = rest.strip()
    doing = _DO.get(name)
    if doing is None:
        click.echo(f"error: no such command, got {word!r}\nhint: Known: {', '.join(COMMANDS)}", err=True)
    else:
        doing(argument, console)
    return True


def _help(argument: str, _console: Console) -> None:
    click.echo(explain_topic(argument) if argument else overview(COMMANDS))


def _quit(_argument: str, _console: Console) -> None:
    raise LeaveError


def _describe(argument: str, console: Console) -> None:
    console.run_script(f"describe {argument}" if argument else "list")


def _include(argument: str, console: Console) -> None:
    from windrow.console.commands.exits import explain
    from windrow.console.commands.scripts import script_text

    if not argument:
        click.echo("error: which file?\nhint: As in \\i script.wql", err=True)
        return
    try:
        text = script_text(argument)
    except Exception as error:
        explain(error, console.settings.debug)
        return
    console.run_script(text, argument)


def _timing(argument: str, console: Console) -> None:
    wanted = argument or ("off" if console.options["timing"] == "on" else "on")
    console.run_script(f"set timing {wanted}")


_DO: dict[str, Callable[[str, Console], None]] = {
    "help": _help,
    "quit": _quit,
    "\\d": _describe,
    "\\i": _include,
    "\\timing": _timing,
}
