"""Read-only memory lent to kernels as if it could be written to.

Numba compiles a version of a kernel for every way in which its arguments may be used, and Arrow's memory may not be
written to. A copy of what was decoded would take as long as the fold of it. So kernels get the memory itself; they
write to nothing but states.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class _Loan:
    """Memory that NumPy takes for its own, and whose owner it keeps."""

    def __init__(self, owner: Array) -> None:
        self.owner = owner
        address = owner.__array_interface__["data"][0]
        self.__array_interface__ = {
            "shape": owner.shape, "typestr": owner.dtype.str, "data": (address, False), "version": 3,
        }  # fmt: skip


def lend(values: Array) -> Array:
    """The same values in one row, for a kernel that reads them."""
    if values.flags.writeable and values.flags.c_contiguous:
        return values
    if not values.flags.c_contiguous or not values.flags.aligned or not len(values):
        return np.require(values, requirements=["C", "W", "A"])
    return np.asarray(_Loan(values))
