"""Measuring how long things take, fairly: warmed up, in turns, several times."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from windrow.errors import MachineError

Action = Callable[[], object]


@dataclass(frozen=True)
class Timings:
    """Seconds of several rounds of one thing."""

    seconds: tuple[float, ...]

    @property
    def best(self) -> float:
        return min(self.seconds)

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    def __str__(self) -> str:
        return f"{duration(self.median)} (best {duration(self.best)})"


def duration(seconds: float) -> str:
    """Seconds in a unit that suits them."""
    return f"{seconds * 1000:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"


def time_call(action: Action) -> float:
    """The seconds that one call takes."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def in_turns(
    actions: Mapping[str, Action], rounds: int, warm_up: int = 1, between: Action | None = None
) -> dict[str, Timings]:
    """Time each action once a round, the order turned round every time, after rounds that do not count.

    ``between`` runs before each action, off the clock.
    """
    seconds: dict[str, list[float]] = {name: [] for name in actions}
    for number in range(-warm_up, rounds):
        names = list(actions)[:: 1 if number % 2 == 0 else -1]
        for name in names:
            if between is not None:
                between()
            took = time_call(actions[name])
            if number >= 0:
                seconds[name].append(took)
    return {name: Timings(tuple(took)) for name, took in seconds.items()}


def fresh_process(code: str, arguments: Sequence[str] = ()) -> dict[str, float]:
    """Run Python code in a new process; it prints one JSON object of numbers, which is returned."""
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    if done.returncode or not lines:
        raise MachineError("a measured process failed", got=(done.stderr.splitlines() or ["no output"])[-1])
    result: dict[str, float] = json.loads(lines[-1])
    return result


@contextmanager
def environment(values: Mapping[str, str]) -> Iterator[None]:
    """Environment variables set for a while."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
