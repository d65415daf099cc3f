"""Views kept by the executors of a real cluster on this machine, each story in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from . import on_executors

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1200)]


@pytest.mark.parametrize("story", list(on_executors.STORIES))
def test_story(story: str, tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", on_executors.__name__, str(tmp_path), story]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=1100)
    assert ended.returncode == 0, ended.stderr[-3000:]
    assert ended.stdout.splitlines()[-1] == "all right"
