"""What rounding took from a sum, given back to it, for compiled code."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from windrow.kernels.compiler.jit import overload


def corrected(total: Any, lost: float) -> Any:
    """A sum with what rounding took from it; whole numbers lose nothing. Compiled code has a version for each kind."""
    return total + lost if isinstance(total, float) and np.isfinite(lost) else total


@overload(corrected)
def _corrected(total: Any, lost: float) -> Any:
    def of_floats(total: Any, lost: float) -> Any:
        # A sum that met an infinity has nothing to correct, and its correction is not a number.
        return total + lost if np.isfinite(lost) else total

    def of_whole(total: Any, lost: float) -> Any:
        return total

    return of_floats if isinstance(total, types.Float) else of_whole
