"""Whether a whole number leaves its type, for compiled code."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from windrow.kernels.compiler.jit import overload


def sum_overflows(before: Any, added: Any) -> bool:
    """Whether a sum of two numbers leaves int64; floats never do. Compiled code has a version for each kind below."""
    return not isinstance(before, float) and not -(2**63) <= int(before) + int(added) < 2**63


@overload(sum_overflows)
def _sum_overflows(before: Any, added: Any) -> Any:
    def of_floats(before: Any, added: Any) -> bool:
        return False

    def of_signed(before: Any, added: Any) -> bool:
        # Half of the sum is looked at, for that cannot overflow itself.
        half = (before >> 1) + (added >> 1) + (before & added & 1)
        return half >= 4611686018427387904 or half < -4611686018427387904

    def of_unsigned(before: Any, added: Any) -> bool:
        one = np.uint64(1)
        return (before >> one) + (added >> one) + (before & added & one) >= np.uint64(4611686018427387904)

    kind: Any = before
    if not isinstance(kind, types.Integer):
        return of_floats
    return of_signed if kind.signed else of_unsigned  # type: ignore[attr-defined]
