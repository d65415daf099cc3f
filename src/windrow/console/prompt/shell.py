"""The prompt: lines are typed, completed, coloured and remembered, and what they say is run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from prompt_toolkit import PromptSession
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.key_binding.key_processor import KeyPressEvent
from prompt_toolkit.shortcuts import CompleteStyle

import windrow
from windrow.console.commands.exits import explain
from windrow.console.commands.settings import Settings
from windrow.console.prompt.colouring import STYLE, StatementColours
from windrow.console.prompt.completion import StatementCompleter
from windrow.console.prompt.words import COMMANDS, LeaveError, run_command
from windrow.console.session.load import ask_rows
from windrow.console.session.modules import Loading
from windrow.console.session.running import Console

if TYPE_CHECKING:
    from windrow.api.array import Array

HISTORY = "WINDROW_HISTORY"
"""The environment variable that names the history's file; empty for none."""


class Shell:
    """A console on a terminal."""

    def __init__(self, settings: Settings) -> None:
        self.console = Console(settings, timing=True, ask_rows=self._ask_rows)
        self._language = Loading()
        self._prompt: PromptSession[str] = PromptSession(
            history=open_history(),
            lexer=StatementColours(lambda: self._language.done),
            completer=StatementCompleter(self._known_database),
            complete_style=CompleteStyle.READLINE_LIKE,
            style=STYLE,
            multiline=True,
            key_bindings=self._keys(),
            prompt_continuation=lambda width, _line, _soft: "...> ".rjust(width),
        )
        self._rows: PromptSession[str] = PromptSession(history=InMemoryHistory())

    def run(self) -> None:
        """Read and run until the user leaves."""
        click.echo(f"windrow {windrow.__version__} on {self.console.settings.db}. Type help, or quit to leave.")
        if not Path(self.console.settings.db).exists():
            click.echo("There is no warehouse yet; the first create or import makes it.")
        self._language.start()
        try:
            while self._goes_on():
                pass
        finally:
            self._language.wait()
            if self.console.close():
                click.echo("the open batch was given up", err=True)

    def _goes_on(self) -> bool:
        """Read and run one line of statements, or several; returns whether to go on."""
        try:
            sign = "windrow*> " if self.console.batch_is_open else "windrow> "
            text = self._prompt.prompt([("class:prompt", sign)])
        except KeyboardInterrupt:
            return True
        except EOFError:
            return False
        try:
            self._language.wait()
            if not run_command(text, self.console):
                self.console.run_script(text)
        except LeaveError:
            return False
        except KeyboardInterrupt:
            click.echo("stopped; what was not finished is not visible", err=True)
        except Exception as error:
            explain(error, self.console.settings.debug)
        return True

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()

        @keys.add("enter")
        def _enter(event: KeyPressEvent) -> None:
            buffer = event.current_buffer
            if self._runs(buffer.text):
                buffer.validate_and_handle()
            else:
                buffer.insert_text("\n")

        @keys.add("escape", "enter")
        def _another_line(event: KeyPressEvent) -> None:
            event.current_buffer.insert_text("\n")

        return keys

    def _runs(self, text: str) -> bool:
        first = text.split(maxsplit=1)
        if first and (first[0].startswith("\\") or first[0].rstrip(";").lower() in (*COMMANDS, "exit")):
            return True
        self._language.wait()
        from windrow.api.session.script import is_ready

        return is_ready(text, self._is_array)

    def _is_array(self, name: str) -> bool:
        database = self.console.known_database
        return database is None or name in database

    def _known_database(self) -> Any:
        self._language.wait()
        return self.console.known_database

    def _ask_rows(self, array: Array) -> list[Any]:
        return ask_rows(array, self._rows.prompt, self.console.screen.say)


def open_history() -> History:
    """What was typed in earlier sessions, in a file of the user's own; without one, only what is typed in this."""
    stated = os.environ.get(HISTORY)
    if stated == "":
        return InMemoryHistory()
    try:
        path = Path(stated) if stated else _state_folder() / "windrow" / "history"
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.touch(mode=0o600)
        with path.open("rb+"):
            return FileHistory(str(path))
    except (OSError, RuntimeError):
        return InMemoryHistory()


def _state_folder() -> Path:
    stated = os.environ.get("XDG_STATE_HOME")
    return Path(stated) if stated and Path(stated).is_absolute() else Path.home() / ".local" / "state"
