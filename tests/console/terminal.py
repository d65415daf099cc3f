"""A real pseudo-terminal with the console in it: keys are typed, and the screen is read."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from pathlib import Path

from console.runs import PROCESS, environment

ENTER, TAB, CTRL_C, CTRL_D, UP = "\r", "\t", "\x03", "\x04", "\x1b[A"
PROMPT, ACCEPTED = "\ue000", "\ue001"
"""A prompt waits for keys; what was typed at it was accepted. A terminal is told both, to prepare it for pasting."""

_PASTING = (("\x1b[?2004h", PROMPT), ("\x1b[?2004l", ACCEPTED))
_CONTROL = re.compile(r"\x1b(\[[0-9;?]*[A-Za-z]|\][^\x07]*\x07|[=>])")
_PATIENCE = 60.0


class Terminal:
    """A process on a terminal of 40 lines and 100 columns."""

    def __init__(self, arguments: list[str], folder: Path, **settings: str) -> None:
        self._mine, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
        # No answer would come to the question where the cursor is.
        known = {"TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1", "XDG_STATE_HOME": str(folder / "state")}
        self.process = subprocess.Popen(
            [*PROCESS, *arguments], cwd=folder, env=environment() | known | settings,
            stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )  # fmt: skip
        os.close(theirs)
        self._unread = b""
        self.screen = ""

    def type(self, keys: str) -> None:
        os.write(self._mine, keys.encode())

    def read_until(self, text: str) -> str:
        """What appeared up to a text; what comes after it is read next."""
        deadline = time.monotonic() + _PATIENCE
        while text not in self.screen:
            ready, _, _ = select.select([self._mine], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"waited for {text!r} and saw {self.screen[-2000:]!r}"
            self._read()
        before, _, self.screen = self.screen.partition(text)
        return before + text

    def run(self, statement: str) -> str:
        """What appears after a statement and before the next prompt."""
        self.type(statement + ENTER)
        self.read_until(ACCEPTED)
        return self.read_until(PROMPT).removesuffix(PROMPT)

    def _read(self) -> None:
        piece = os.read(self._mine, 65536)
        assert piece, "the terminal is closed"
        self._unread += piece
        try:
            text = self._unread.decode()
        except UnicodeDecodeError:
            return  # in the middle of a letter
        cut = text.rfind("\x1b")
        whole = len(text) if cut < 0 or _CONTROL.match(text, cut) else cut
        self._unread = text[whole:].encode()
        seen = text[:whole]
        for sequence, sign in _PASTING:
            seen = seen.replace(sequence, sign)
        self.screen += _CONTROL.sub("", seen)

    def end(self) -> int:
        """The exit code of a process that was asked to leave."""
        with contextlib.suppress(OSError, AssertionError):  # a terminal whose other side is closed says so by an error
            while True:
                self._read()
        return self.process.wait(60)


@contextlib.contextmanager
def console(folder: Path, *arguments: str, **settings: str) -> Iterator[Terminal]:
    """A console that shows its prompt; it must end by itself, or is ended."""
    terminal = Terminal([*arguments], folder, **settings)
    try:
        terminal.read_until(PROMPT)
        yield terminal
    finally:
        if terminal.process.poll() is None:
            terminal.process.kill()
            terminal.process.wait(60)
        os.close(terminal._mine)
