"""Sessions as documents print them, typed again: what is printed must be the same."""

from __future__ import annotations

import contextlib
import io
import re
from collections import deque
from pathlib import Path
from typing import Any

from windrow.console.commands.settings import Settings
from windrow.console.prompt.words import LeaveError, run_command
from windrow.console.session.load import ask_rows
from windrow.console.session.running import Console

_TYPED = re.compile(r"(?P<prompt>windrow\*?> |    \.\.\.> |\d+ of \d+ values> )(?P<text>.*)")


class Replay:
    """A console without a terminal, to which the typed lines of transcripts are given."""

    def __init__(self, warehouse: Path) -> None:
        self._lines: deque[str] = deque()
        self.session = Console(Settings(db=str(warehouse)), ask_rows=self._ask_rows)

    def run(self, transcript: str) -> str:
        """The transcript as it is printed now."""
        self._lines = deque(transcript.splitlines())
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(shown):
            while self._lines:
                self._turn(self._lines.popleft())
        return "".join(f"{line.rstrip()}\n" for line in shown.getvalue().splitlines())

    def _turn(self, line: str) -> None:
        typed = _TYPED.fullmatch(line)
        if typed is None:
            return
        print(line)
        text = typed["text"]
        while self._lines and self._lines[0].startswith("    ...> "):
            print(self._lines[0])
            text += "\n" + self._lines.popleft().removeprefix("    ...> ")
        with contextlib.suppress(LeaveError):
            if not run_command(text, self.session):
                self.session.run_script(text)

    def _ask_rows(self, array: Any) -> list[Any]:
        return ask_rows(array, self._row, print)

    def _row(self, prompt: str) -> str:
        while self._lines:
            typed = _TYPED.fullmatch(self._lines.popleft())
            if typed is not None:
                assert typed["prompt"] == prompt
                print(prompt + typed["text"])
                return typed["text"]
        raise EOFError


def blocks(page: Path, language: str) -> list[str]:
    found: list[str] = re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    return found
