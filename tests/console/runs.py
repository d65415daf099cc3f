"""Running windrow's command in this process and as a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner, Result

from windrow.console.main import commands

SOURCES = Path(__file__).parents[2] / "src"
PROCESS = [sys.executable, "-m", "windrow.console.main"]


def windrow(*arguments: object, typed: str | bytes | None = None) -> Result:
    """Run a command here; errors end in exit codes, as on a shell."""
    return CliRunner().invoke(commands, [str(argument) for argument in arguments], input=typed, prog_name="windrow")


def done(*arguments: object) -> str:
    """The output of a command that must succeed."""
    result = windrow(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(SOURCES), "COLUMNS": "100"}


def process(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command as a process of its own."""
    command = [*PROCESS, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environment(), timeout=120)
