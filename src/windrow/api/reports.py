"""What a batch did, step by step, and what is kept of it under its id."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from windrow.errors import DataError


@dataclass(frozen=True)
class Change:
    """One step of a batch."""

    array: str
    operation: str
    cells: int
    replaced: int = 0
    duplicates: int = 0
    moved: int = 0
    """Cells that were written anew because a slice before them came late."""


@dataclass(frozen=True)
class Report:
    """What a write did, or that its batch id had been applied before.

    ``versions`` says at which version each array is now; ``unchanged`` names those that nothing was done to, which
    have the version they had.
    """

    batch: str | None
    applied: bool
    versions: Mapping[str, int]
    changes: tuple[Change, ...] = ()
    seconds: float = 0.0
    unchanged: tuple[str, ...] = ()
    views: Mapping[str, int] = field(default_factory=dict)
    """The views that followed, with the version that each has now."""

    @property
    def version(self) -> int:
        """The version of the array, when one was written."""
        if len(self.versions) != 1:
            raise DataError("the batch wrote several arrays", got=", ".join(self.versions), hint="Use .versions")
        return next(iter(self.versions.values()))

    @property
    def cells(self) -> int:
        return sum(change.cells for change in self.changes)

    @property
    def replaced(self) -> int:
        return sum(change.replaced for change in self.changes)

    @property
    def duplicates(self) -> int:
        return sum(change.duplicates for change in self.changes)

    def __str__(self) -> str:
        same = dict.fromkeys(self.unchanged, " as before")
        versions = ", ".join(f"{name}@{number}{same.get(name, '')}" for name, number in self.versions.items())
        if not self.applied:
            return f"batch {self.batch!r} was applied before ({versions}); nothing was done"
        steps = "; ".join(_described(change) for change in self.changes) or "nothing"
        views = ", ".join(f"{name}@{number}" for name, number in self.views.items())
        followed = f", views {views}" if views else ""
        return f"{steps} -> {versions or 'no version'}{followed} in {self.seconds:.2f} s"


def _described(change: Change) -> str:
    extra = [f"{change.replaced:,} replaced"] if change.replaced else []
    extra += [f"{change.duplicates:,} duplicates"] if change.duplicates else []
    extra += [f"{change.moved:,} moved"] if change.moved else []
    return f"{change.operation} {change.array}: {change.cells:,} cells" + (f" ({', '.join(extra)})" if extra else "")


@dataclass(frozen=True)
class Earlier:
    """The batch of an id that was applied before: a replay may touch ``known`` arrays and must touch those needed."""

    versions: Mapping[str, int] = field(default_factory=dict)
    known: frozenset[str] = frozenset()
    needed: frozenset[str] = frozenset()
    folders: Mapping[str, str] = field(default_factory=dict)
    """Of each array that it left: another array of the name has another folder."""

    @classmethod
    def of(cls, report: str) -> Earlier:
        found = json.loads(report or "{}")
        if not isinstance(found.get("versions"), dict):  # earlier windrows kept no more than the versions
            return cls(found, frozenset(found), frozenset(found))
        known = frozenset(found["versions"]) | frozenset(found["dropped"])
        return cls(found["versions"], known, known - frozenset(found["unchanged"]), dict(found.get("folders", {})))
