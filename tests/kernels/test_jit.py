"""Compiled code on disk: found again, never mistaken for other code, whoever writes at the same time."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from windrow.kernels import warm
from windrow.kernels.compiler import jit
from windrow.kernels.contract.sweeps import Sweep

DOUBLER = """
import sys
import numpy as np
from windrow.kernels.compiler.jit import inner, kernel

@inner
def twice(number):
    return number + number

@kernel
def doubled(values):
    total = values[0] - values[0]
    for value in values:
        total += twice(value)
    return total
"""
USE = """
import sys
import numpy as np
import doubler
for kind in sys.argv[1:]:
    print(kind, doubler.doubled(np.arange(5).astype(kind)), sum(doubler.doubled._cache_hits.values()))
"""


def start(folder: Path, *kinds: str) -> subprocess.Popen[str]:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder / "cache")}
    environment["PYTHONPATH"] = os.pathsep.join([str(folder), *sys.path])
    return subprocess.Popen([sys.executable, "-c", USE, *kinds], env=environment, stdout=subprocess.PIPE, text=True)


def answer(process: subprocess.Popen[str]) -> list[str]:
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    return output.split()


def test_processes_that_compile_at_the_same_time_keep_each_others_code(tmp_path: Path) -> None:
    (tmp_path / "doubler.py").write_text(DOUBLER)
    running = [start(tmp_path, "float64", "float32"), start(tmp_path, "int64", "uint8")]
    assert answer(running[0]) == ["float64", "20.0", "0", "float32", "20.0", "0"]
    assert answer(running[1])[:3] == ["int64", "20", "0"]
    later = answer(start(tmp_path, "float64", "int64", "float32", "uint8"))
    assert later == ["float64", "20.0", "1", "int64", "20", "2", "float32", "20.0", "3", "uint8", "20", "4"]
    assert len(list((tmp_path / "cache").rglob("*.nbc"))) == 4
    # Whatever is changed in the module, inner functions included, makes other code.
    (tmp_path / "doubler.py").write_text(DOUBLER.replace("number + number", "number + number + 1"))
    assert answer(start(tmp_path, "float64")) == ["float64", "25.0", "0"]


def test_code_that_cannot_be_written_is_still_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "doubler.py").write_text(DOUBLER)
    for place in ("cache", "__pycache__"):
        (tmp_path / place).write_text("no folder")
    monkeypatch.setenv("HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert answer(start(tmp_path, "float64")) == ["float64", "20.0", "0"]


def test_code_depends_on_all_modules_it_uses() -> None:
    importlib.import_module("windrow.kernels.scans.strip")  # which is loaded only when it is needed
    used = jit._used("windrow.kernels.scans.strip", set())
    assert {
        f"windrow.kernels.{name}" for name in ("scans.strip", "scans.rows", "scans.loops", "compiler.addresses")
    } <= used
    assert "windrow.kernels.order.bitset" not in used


def test_warming_tells_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    for name in ("_scans", "_selections", "_networks", "_frames"):
        jobs = [warm.Job(f"{name} {k}", lambda name=name: done.append(name)) for k in range(2)]  # type: ignore[misc]
        monkeypatch.setattr(warm, name, lambda jobs=jobs: jobs)
    for name in ("_simple_methods", "_shapes", "_joins", "_states", "_folds"):
        monkeypatch.setattr(warm, name, list)
    told: list[Any] = []
    assert warm.warm(lambda *step: told.append(step)) == 8
    assert len(done) == 8
    assert told[0] == (0, 8, "_scans 0")
    assert told[-1] == (8, 8, "done")


def test_jobs_of_warming_run() -> None:
    """One of each kind; the others differ in widths, types and ranks."""
    jobs = [job for make in (warm._scans, warm._networks, warm._frames) for job in make()]
    names = [job.name for job in jobs]
    assert len(set(names)) == len(names)
    for wanted in (
        "sum 3×3 float64",
        "count 5 float32",
        "median 1×5 float32",
        "percentile 90 3×3 float64",
        "distinct of few values, sliding frames",
    ):
        next(job for job in jobs if job.name == wanted).run()
    assert warm._sweeps((9, 9), (1, 4)) == [Sweep(0, 9, 0, 0), Sweep(0, 9, -2, 1)]
