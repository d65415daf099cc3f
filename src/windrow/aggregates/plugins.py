"""Aggregates and operators that installed packages bring, by entry points: found once, and what fails is remembered."""

from __future__ import annotations

from functools import lru_cache
from importlib.metadata import entry_points
from typing import Any, NamedTuple

from windrow.errors import DataError

AGGREGATES, OPERATORS = "windrow.aggregates", "windrow.operators"


class Plugins(NamedTuple):
    """What the packages of a group gave, and for those that cannot be imported why, by the entry point's name."""

    found: tuple[Any, ...]
    failed: tuple[tuple[str, str], ...]


@lru_cache(maxsize=8)
def load_plugins(group: str) -> Plugins:
    """Import what the entry points of a group name."""
    found, failed = [], []
    for entry in entry_points(group=group):
        try:
            found.append(entry.load())
        except Exception as error:
            package = "" if entry.dist is None else f" of the package {entry.dist.name}"
            failed.append((entry.name, f"plug-in {entry.name}{package}: {type(error).__name__}: {error}"))
    return Plugins(tuple(found), tuple(failed))


def refuse_broken(group: str, name: str) -> None:
    """Refuse a name that a plug-in would have brought, had it been imported."""
    for known, reason in load_plugins(group).failed:
        if known.lower() == name.lower():
            raise DataError("a plug-in cannot be imported", got=reason, hint="Mend or uninstall its package")
