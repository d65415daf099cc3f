"""Where a window kernel evaluates, per axis of its input."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Int64Array = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Sweep:
    """Along one axis: outputs at positions ``first + k * step`` for ``k < count``.

    The output at position p covers the input cells from ``p + start`` to ``p + stop``, both included, as far as the
    input has them. Positions may lie outside the input, and so may whole windows.
    """

    first: int
    count: int
    start: int
    stop: int
    step: int = 1

    @property
    def width(self) -> int:
        return self.stop - self.start + 1

    def clipped(self, extent: int) -> tuple[Int64Array, Int64Array]:
        """The first and last input cell of each output's window; the last is before the first where it is empty."""
        after = self.first + self.count * self.step
        lo, hi = (
            np.arange(self.first + end, after + end, self.step, dtype=np.int64) for end in (self.start, self.stop)
        )
        return np.clip(lo, 0, extent, out=lo), np.clip(hi, -1, extent - 1, out=hi)


@dataclass(frozen=True, eq=False)
class VariableSweep:
    """Along one axis: the k-th output covers the cells from ``lo[k]`` to ``hi[k]``; neither may ever decrease.

    Windows given in label units are such, where labels do not lie at equal steps.
    """

    lo: Int64Array
    hi: Int64Array

    @property
    def count(self) -> int:
        return len(self.lo)

    @property
    def width(self) -> int:
        return int((self.hi - self.lo + 1).max(initial=0))

    def clipped(self, extent: int) -> tuple[Int64Array, Int64Array]:
        return np.clip(self.lo, 0, extent), np.clip(self.hi, -1, extent - 1)


AnySweep = Sweep | VariableSweep
