"""How much time and memory the reading of a file may take, and how much a file may claim to hold."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from windrow.errors import DataError, FileFormatError

SECONDS = "WINDROW_FILE_SECONDS"
MEMORY = "WINDROW_FILE_MEMORY"
_UNITS = {"": 1, "kb": 2**10, "mb": 2**20, "gb": 2**30}
LARGEST_DATA = 2**50
"""No disk that windrow works on holds a petabyte: a file that claims more is damaged, or made to fill the disk."""


@dataclass(frozen=True)
class Limits:
    """For one step: the seconds that opening a file or reading one block of it may take, and the bytes it may use."""

    seconds: float
    memory: int

    @property
    def piece(self) -> int:
        """The most that one stored chunk, or the labels of one dimension, may take up."""
        return self.memory // 4


def limits_now(environment: Mapping[str, str] = os.environ) -> Limits:
    """The limits that the environment states, or else those that suit this machine."""
    try:
        seconds = float(environment.get(SECONDS) or 120)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds <= 1e6:
        raise DataError(f"{SECONDS} is a number of seconds", got=repr(environment[SECONDS]), hint="As in 600")
    stated = environment.get(MEMORY)
    return Limits(seconds, _usual_memory() if not stated else _parse_memory(stated))


def _usual_memory() -> int:
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(2**30, min(4 * 2**30, physical // 2))


def _parse_memory(text: str) -> int:
    number = text.strip().lower().rstrip("kmgb")
    unit = text.strip().lower()[len(number) :]
    if not number.strip().isdigit() or unit not in _UNITS or int(number) * _UNITS[unit] < 2**28:
        raise DataError(f"{MEMORY} is a number of bytes, at least 256 MB", got=repr(text), hint="As in 8GB")
    return int(number) * _UNITS[unit]


def check_piece(what: str, size: int) -> None:
    """Refuse what has to be held in memory as a whole and claims to be larger than may be."""
    if size > limits_now().piece:
        raise FileFormatError(
            f"{what} would take up too much memory: it may be damaged",
            got=f"{size:,} bytes",
            hint=f"At most {limits_now().piece:,} are read at once; set {MEMORY} to four times what is needed",
        )


def check_data(what: str, size: int) -> None:
    """Refuse data that nothing could hold, before anything is made for it."""
    if size > LARGEST_DATA:
        raise FileFormatError(f"{what} claims to be larger than any store: it may be damaged", got=f"{size:,} bytes")
