"""What can be typed at the prompt and is no statement: help, quit, and a few that users of psql look for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from windrow.console.help_texts import explain_topic, overview

if TYPE_CHECKING:
    from windrow.console.session import ConsoleSession

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


def run_command(text: str, session: ConsoleSession) -> bool:
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
        doing(argument, session)
    return True


def _help(argument: str, _session: ConsoleSession) -> None:
    click.echo(explain_topic(argument) if argument else overview(COMMANDS))


def _quit(_argument: str, _session: ConsoleSession) -> None:
    raise LeaveError


def _describe(argument: str, session: ConsoleSession) -> None:
    session.run_script(f"describe {argument}" if argument else "list")


def _include(argument: str, session: ConsoleSession) -> None:
    from windrow.console.exits import explain
    from windrow.console.scripts import script_text

    if not argument:
        click.echo("error: which file?\nhint: As in \\i script.wql", err=True)
        return
    try:
        text = script_text(argument)
    except Exception as error:
        explain(error, session.settings.debug)
        return
    session.run_script(text, argument)


def _timing(argument: str, session: ConsoleSession) -> None:
    wanted = argument or ("off" if session.options["timing"] == "on" else "on")
    session.run_script(f"set timing {wanted}")


_DO: dict[str, Callable[[str, ConsoleSession], None]] = {
    "help": _help,
    "quit": _quit,
    "\\d": _describe,
    "\\i": _include,
    "\\timing": _timing,
}
