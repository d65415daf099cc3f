"""Patch or rebuild: what each would cost, and which is taken."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from windrow.views.estimate import Estimate

FIXED_CELLS = 20_000.0
"""What a patch costs whatever its size, in cells: what is stored is read again to be compared."""

WORTH = 0.9
"""The share of the results from which on it is cheaper to compute all of them, other things being equal."""

LEARNING = 0.3
"""The weight of what was measured last; what was measured long ago is forgotten."""

FURTHEST = 4.0
"""How far what was measured may shift the choice: a single slow run must not decide for ever."""

TRY_AFTER = 10
"""Rebuilds in a row after which a patch is tried: an estimate that is wrong is found out by nothing else."""

IN_A_ROW = "rebuilds"
"""How many rebuilds there were, one after the other, because they seemed cheaper."""

NEVER_REBUILT = ("incremental", "strict")
"""Settings under which what is touched is computed again, be it everything."""


@dataclass(frozen=True)
class Choice:
    """A way to bring a view up to date, and why it was taken."""

    rebuilds: bool
    why: str
    patch: float = 0.0
    rebuild: float = 0.0
    weighed: bool = False
    """Whether costs decided."""

    @property
    def planned(self) -> str:
        return "rebuild" if self.rebuilds else "patch"

    def learn(self, known: Mapping[str, float], seconds: float) -> dict[str, float]:
        """What the run says about the cost of a cell, that way."""
        learned = dict(known)
        if self.weighed:
            learned[IN_A_ROW] = known.get(IN_A_ROW, 0.0) + 1 if self.rebuilds else 0.0
        cells = self.rebuild if self.rebuilds else self.patch
        if not cells:
            return learned
        found = seconds / cells
        learned[self.planned] = (1 - LEARNING) * known.get(self.planned, found) + LEARNING * found
        return learned


def choose(maintain: str, found: Estimate, learned: Mapping[str, float]) -> Choice:
    """The way that the setting asks for, or the cheaper one."""
    patch, whole = found.touched, found.whole
    if maintain == "full":
        return Choice(True, "maintain = full", patch, whole)
    if maintain in NEVER_REBUILT:
        return Choice(False, f"maintain = {maintain}", patch, whole)
    share = min(1.0, patch / whole)
    said = f"{share:.0%}" if share > WORTH else f"{share:.1%}" if share > 0.01 else f"{share:.2%}"
    why = f"{said} of the results are touched"
    if whole <= FIXED_CELLS or share * _ratio(learned) <= WORTH:
        return Choice(False, why, patch, whole, weighed=True)
    if learned.get(IN_A_ROW, 0.0) >= TRY_AFTER:
        return Choice(False, f"{why}, but a patch is tried after {TRY_AFTER} rebuilds", patch, whole, weighed=True)
    return Choice(True, why, patch, whole, weighed=True)


def choose_for_all(maintain: str, why: str, cells: int) -> Choice:
    """The way where all results have to be computed again, of which there are about so many."""
    said = f", and maintain = {maintain}" if maintain in ("full", *NEVER_REBUILT) else ""
    return Choice(maintain not in NEVER_REBUILT, f"{why}{said}", cells, cells)


def _ratio(learned: Mapping[str, float]) -> float:
    """What a result costs when it is patched, of what it costs when all are computed; 1 while that is not known.

    Seconds are learned of each result that was expected, so that a wrong estimate is in them: a patch that touched less
    than was thought took less time.
    """
    if not {"patch", "rebuild"} <= learned.keys():
        return 1.0
    return min(FURTHEST, max(1 / FURTHEST, learned["patch"] / learned["rebuild"]))
