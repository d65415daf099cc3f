"""The fastest way known to each operation: plain NumPy where there is next to nothing to do, else compiled code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.kernels.ranks import RankTable
from windrow.kernels.results import Outcome
from windrow.kernels.sweep import AnySweep
from windrow.kernels.tiny import is_tiny, tiny_windows


def automatic_windows(
    operation: str,
    values: npt.NDArray[Any],
    present: npt.NDArray[np.bool_] | None,
    sweeps: Sequence[AnySweep],
    ranks: RankTable | None = None,
) -> Outcome:
    """As ``naive_windows``, by whatever is fastest; tiny inputs never load a compiler."""
    if is_tiny(values.shape, sweeps):
        return tiny_windows(operation, values, present, sweeps, ranks)
    from windrow.kernels.fast import fast_windows

    return fast_windows(operation, values, present, sweeps, ranks)
