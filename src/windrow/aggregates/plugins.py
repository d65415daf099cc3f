"""Aggregates and operators that installed packages bring, by entry points: found once, and what fails is remembered."""

from __future__ import annotations

from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, NamedTuple

from windrow.errors import DataError

AGGREGATES, OPERATORS = "windrow.aggregates", "windrow.operators"


class Plugins(NamedTuple):
    """What the packages of a group gave, and of the others the entry point's name, what they cannot be, and why."""

    found: tuple[Any, ...]
    failed: tuple[tuple[str, str, str], ...]


@lru_cache(maxsize=8)
def load_plugins(group: str, kind: type) -> Plugins:
    """Import what the entry points of a group name, which must be of a kind."""
    found, failed = [], []
    for entry in entry_points(group=group):
        try:
            loaded = entry.load()
        except Exception as error:
            failed.append((entry.name, "imported", f"{_told(entry)}: {type(error).__name__}: {error}"))
            continue
        if isinstance(loaded, kind):
            found.append(loaded)
        else:
            made = f"wr.{group.rpartition('.')[2].removesuffix('s')}"
            reason = f"{entry.value} is a {type(loaded).__name__}, and not what {made} makes"
            failed.append((entry.name, "used", f"{_told(entry)}: {reason}"))
    return Plugins(tuple(found), tuple(failed))


def _told(entry: EntryPoint) -> str:
    package = "" if entry.dist is None else f" of the package {entry.dist.name}"
    return f"plug-in {entry.name}{package}"


def refuse_broken(group: str, kind: type, name: str) -> None:
    """Refuse a name that a plug-in would have brought, had it been what its group is for."""
    for known, what, reason in load_plugins(group, kind).failed:
        if known.lower() == name.lower():
            raise DataError(f"a plug-in cannot be {what}", got=reason, hint="Mend or uninstall its package")
