"""Fingerprints of users' aggregates: a changed function is noticed, the same one is known again in any process."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

import windrow as wr
from windrow.aggregates.fingerprint import fingerprint

SCALED = """
import numpy as np
import windrow as wr
from windrow.aggregates.fingerprint import fingerprint

FACTOR = 2.5
TABLE = np.array([1.0, 2.0])

def clean(x):
    return x if x in {"known", "names"} or x > 0 else FACTOR

def made(power):
    class Scaled:
        def empty():
            return (0.0, 0)

        def add(state, x):
            return (state[0] + clean(x) ** power * TABLE[1], state[1] + 1)

        def result(state):
            return np.sqrt(state[0]) / max(state[1], 1)

    return wr.aggregate("fingerprinted")(Scaled)

found = fingerprint(made(3))
"""


def printed(text: str, seed: str) -> str:
    """What a process of its own finds; sets have another order in each."""
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    found = subprocess.run(
        [sys.executable, "-c", text + "print(found)"], capture_output=True, text=True, check=True, env=environment
    )
    return found.stdout.strip()


def here(text: str) -> str:
    """The same in this process, at other lines of another file."""
    names: dict[str, Any] = {}
    exec(compile("\n\n\n" + text, "elsewhere.py", "exec"), names)
    return str(names["found"])


def test_it_is_the_same_in_other_processes() -> None:
    assert printed(SCALED, "1") == printed(SCALED, "2") == here(SCALED) == here(SCALED)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("state[0] + clean", "state[0] - clean"),
        ("return (0.0, 0)", "return (0.0, 1)"),
        ("return (0.0, 0)", "return (0, 0)"),
        ("made(3)", "made(4)"),
        ("FACTOR = 2.5", "FACTOR = 2.25"),
        ("np.array([1.0, 2.0])", "np.array([1.0, 3.0])"),
        ("np.array([1.0, 2.0])", "np.array([1.0, 2.0], np.float32)"),
        ("np.sqrt", "np.cbrt"),
        ('"known", "names"', '"known"'),
        ("x > 0", "x >= 0"),
        ('"fingerprinted")', '"fingerprinted", result="float32")'),
        ("max(state[1], 1)", "min(state[1], 1)"),
    ],
)
def test_what_computes_something_else_has_another(old: str, new: str) -> None:
    assert old in SCALED
    assert here(SCALED.replace(old, new)) != here(SCALED)


def test_words_and_places_do_not_count() -> None:
    spaced = SCALED.replace("def clean(x):\n", "def clean(x):\n    # A remark.\n\n")
    assert here(spaced) == here(SCALED)


def test_functions_that_call_themselves_come_to_an_end() -> None:
    text = SCALED.replace("return x if", "return clean(x - 1) if x > 9 else x if")
    assert here(text) != here(SCALED)
    assert here(text) == here(text)


def test_added_functions_count() -> None:
    functions = {"empty": lambda: (0,), "add": lambda s, x: (s[0] + x,), "result": lambda s: s[0]}
    plain = wr.aggregate("fingerprinted_plain")(type("Plain", (), functions))
    removing = {**functions, "remove": lambda s, x: (s[0] - x,)}
    one = wr.aggregate("fingerprinted_plain")(type("Removing", (), removing))
    two = wr.aggregate("fingerprinted_plain", exact_remove=True)(type("Removing", (), removing))
    assert len({fingerprint(plain), fingerprint(one), fingerprint(two)}) == 3
