"""What is asked of a kernel of frames, and what there is to know about it before one is chosen.

Everything here is found out when it is first asked for; most of it takes compiled code and a pass over the rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from windrow.kernels.contract.problems import operation_text
from windrow.kernels.contract.ranks import RankTable
from windrow.kernels.frames.spans import Spans
from windrow.kernels.frames.sums import may_overflow

if TYPE_CHECKING:
    from windrow.kernels.frames.family import Family
    from windrow.kernels.frames.paths import ExpectedPath, Path

Array = npt.NDArray[Any]

NEAR = 4
"""Rows that frames which slide as they come are moved by."""
SEEN = 1 << 12
"""Frames before and after the middle one whose ranks tell how far ranks move."""


@dataclass(frozen=True, eq=False)
class FrameProblem:
    """One operation over frames of a vector without missing values; ``ranks`` belong to ``select``."""

    operation: str
    values: Array
    spans: Spans
    ranks: RankTable | None = None
    tau: float = 0.25

    def __str__(self) -> str:
        return f"{operation_text(self.operation)} over {self.spans.count:,} frames of up to {self.spans.most:,} rows"

    @cached_property
    def close(self) -> tuple[int, int] | None:
        """The smallest value and how far it is to the largest, of whole numbers that lie close together."""
        from windrow.kernels.counting.codes import span_of

        return span_of(self.values)

    @cached_property
    def path(self) -> Path:
        """The order in which frames slide best, as they come or by their start."""
        from windrow.kernels.frames.paths import sliding_path

        return sliding_path(self.spans)

    @cached_property
    def expected(self) -> ExpectedPath:
        """About what ``path`` is, without putting frames into another order."""
        from windrow.kernels.frames.paths import expected_path

        return expected_path(self.spans)

    @cached_property
    def best_path(self) -> Path:
        """The same, or in strips where that saves moves."""
        from windrow.kernels.frames.paths import best_path

        return best_path(self.spans)

    @cached_property
    def family(self) -> Family | None:
        """The windows that frames of one length are, if frames do not slide as they come."""
        from windrow.kernels.frames.family import family_of

        return None if self.spans.survey.shifted <= NEAR * self.spans.count else family_of(self.spans)

    @cached_property
    def family_windows(self) -> FrameProblem:
        """The same question about the windows of the family."""
        assert self.family is not None
        return replace(self, spans=self.family.windows)

    @cached_property
    def wander(self) -> float:
        """How far the wanted rank moves from frame to frame, as a share of the longest one, if fractions vary."""
        if self.ranks is None or not self.ranks.each or len(self.ranks.lower) < 2:
            return 0.0
        middle = len(self.ranks.lower) // 2
        some = self.ranks.lower[max(0, middle - SEEN) : middle + SEEN]
        return float(np.abs(np.diff(some)).mean()) / max(1, self.spans.most)

    @cached_property
    def total(self) -> int:
        """About how many rows all frames have together."""
        if self.spans.offsets is not None or self.spans.starts is not None:
            return self.spans.count * self.spans.most
        return int(self.spans.sizes.sum())

    @cached_property
    def may_overflow(self) -> bool:
        """Whether a sum of whole numbers could leave 64 bits."""
        return self.operation == "sum" and self.values.dtype.kind != "f" and may_overflow(self.values, self.spans)
