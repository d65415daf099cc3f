"""The tutorial and the README's console session print what they say, typed as written."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from console.runs import windrow
from console.terminal import CTRL_D, console
from console.transcripts import Replay, blocks

ROOT = Path(__file__).parents[2]
TUTORIAL = ROOT / "docs" / "tutorial-console.md"


@pytest.mark.parametrize("page", ["docs/tutorial-console.md", "README.md"])
def test_sessions_print_what_they_say(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    replay = Replay(tmp_path / "warehouse")
    sessions = blocks(ROOT / page, "console")
    assert sessions
    for session in sessions:
        assert replay.run(session) == session
    replay.session.close()
    if page.startswith("docs"):
        _run_commands()
        assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", "a.png", "warehouse"]


def _run_commands() -> None:
    """The shell commands of the tutorial, and what they print together."""
    (commands,) = blocks(TUTORIAL, "sh")
    (printed,) = blocks(TUTORIAL, "text")
    shown = ""
    for line in commands.splitlines():
        program, *arguments = shlex.split(line)
        assert program == "windrow"
        ended = windrow(*arguments)
        assert ended.exit_code == 0, ended.stderr
        shown += ended.stdout
    assert shown == printed


def test_a_wrong_transcript_is_noticed(tmp_path: Path) -> None:
    replay = Replay(tmp_path / "warehouse")
    wrong = "windrow> create A [i=1:3] <int a>\ncreated B@0\n"
    assert replay.run(wrong) == wrong.replace("B@0", "A@0")
    replay.session.close()


def test_the_first_steps_at_a_terminal(tmp_path: Path) -> None:
    """The tutorial's first array, key by key; the terminal adds only how long each statement took."""
    first, second = blocks(TUTORIAL, "console")[:2]
    with console(tmp_path) as terminal:
        terminal.run("set timing off")
        typed = [line.split("> ", 1)[1] for line in first.splitlines() if "> " in line and not line.startswith("write")]
        shown = "".join(terminal.run(line) for line in typed)
        assert "created A@0\r\n" in shown
        assert "write A: 9 cells -> A@1\r\n" in shown
        lines = second.splitlines()
        shown = terminal.run(lines[0].removeprefix("windrow> "))
        assert shown.splitlines() == lines[1 : lines.index("windrow> select A <b>")]
        terminal.type(CTRL_D)
        assert terminal.end() == 0
