"""Patch or rebuild: what each would cost, and which is taken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from windrow.model.box import Box
from windrow.plan.bound import Bound

FIXED_CELLS = 20_000.0
"""What a patch costs whatever its size, in cells: what is stored is read again to be compared."""

LEARNING = 0.3
"""The weight of what was measured last; what was measured long ago is forgotten."""


@dataclass(frozen=True)
class Choice:
    """A way to bring a view up to date, and why it was taken."""

    rebuilds: bool
    why: str
    patch: float = 0.0
    rebuild: float = 0.0

    @property
    def planned(self) -> str:
        return "rebuild" if self.rebuilds else "patch"

    def learn(self, known: Mapping[str, float], seconds: float) -> dict[str, float]:
        """What the run says about the cost of a cell, that way."""
        cells = self.rebuild if self.rebuilds else self.patch
        if not cells:
            return dict(known)
        found = seconds / cells
        before = known.get(self.planned, found)
        return dict(known) | {self.planned: (1 - LEARNING) * before + LEARNING * found}


def choose(maintain: str, after: Bound, boxes: Sequence[Box], learned: Mapping[str, float]) -> Choice:
    """The way that the setting asks for, or the cheaper one; of what nothing reaches there is nothing to rebuild."""
    if not boxes:
        return Choice(False, "no result is touched")
    whole = float(max(1, after.box.size if not after.box.is_empty else 1))
    patch = float(sum((box & after.box).size for box in boxes if not (box & after.box).is_empty))
    if maintain == "full":
        return Choice(True, "maintain = full", patch, whole)
    if maintain in ("incremental", "strict"):
        return Choice(False, f"maintain = {maintain}", patch, whole)
    # A ratio of speeds that was measured counts, within limits: a single slow run must not decide for ever.
    ratio = learned.get("patch", 1.0) / learned.get("rebuild", 1.0) if {"patch", "rebuild"} <= learned.keys() else 1.0
    ratio = min(4.0, max(0.25, ratio))
    share = patch / whole
    if share * ratio > 0.9 and whole > FIXED_CELLS:
        return Choice(True, f"{share:.0%} of the results are touched", patch, whole)
    return Choice(False, f"{share:.1%} of the results are touched", patch, whole)
