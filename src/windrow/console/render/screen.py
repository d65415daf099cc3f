"""Where results go: a terminal, with colours and as wide as it is, or a file, always the same."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable
from typing import IO, TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from windrow.console.render.grids import Line

PLAIN_WIDTH = 100
"""How wide results are where there is no terminal, so that scripts print the same everywhere."""

_STYLES: dict[str, dict[str, Any]] = {"heading": {"bold": True}, "rule": {"dim": True}, "plain": {}}


class Screen:
    """Standard output, and whether a person looks at it."""

    def __init__(self) -> None:
        self.terminal = sys.stdout.isatty()
        self.colours = self.terminal and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
        for stream in (sys.stdout, sys.stderr):
            # A value that the terminal has no letters for must not end the session.
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="backslashreplace")

    @property
    def width(self) -> int:
        return shutil.get_terminal_size((PLAIN_WIDTH, 24)).columns if self.terminal else PLAIN_WIDTH

    def show(self, lines: Iterable[Line]) -> None:
        for line in lines:
            click.echo(click.style(line.text, **_STYLES[line.style]) if self.colours else line.text)

    def say(self, text: str) -> None:
        click.echo(text)

    def note(self, text: str) -> None:
        """Show a remark on the terminal; results that go to a file are not mixed with it."""
        click.echo(click.style(text, dim=True) if self.colours else text, err=not self.terminal)

    def stream(self) -> Stream:
        sys.stdout.flush()
        return Stream(sys.stdout.buffer)


class Stream:
    """Standard output as bytes, until what is written is not wanted any more."""

    def __init__(self, target: IO[bytes]) -> None:
        self._target: IO[bytes] | None = target

    def write(self, data: bytes) -> int:
        if self._target is None:
            raise BrokenPipeError("stopped")
        return self._target.write(data)

    def flush(self) -> None:
        if self._target is not None:
            self._target.flush()

    def stop(self) -> None:
        self._target = None
