"""The fastest way known to each operation: plain NumPy where there is next to nothing to do, else compiled code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.kernels.geometry import most_cells
from windrow.kernels.ranks import RankTable
from windrow.kernels.results import Outcome
from windrow.kernels.sweep import AnySweep, Sweep
from windrow.kernels.tiny import is_tiny, tiny_windows


def automatic_windows(
    operation: str,
    values: npt.NDArray[Any],
    present: npt.NDArray[np.bool_] | None,
    sweeps: Sequence[AnySweep],
    ranks: RankTable | None = None,
    out: npt.NDArray[Any] | None = None,
) -> Outcome:
    """As ``naive_windows``, by whatever is fastest; tiny inputs never load a compiler.

    Results may be written into ``out``, if it fits.
    """
    if is_tiny(values.shape, sweeps):
        return tiny_windows(operation, values, present, sweeps, ranks)
    from windrow.kernels.fast import fast_windows

    return fast_windows(operation, values, present, sweeps, ranks, out)


def average_windows(
    values: npt.NDArray[Any],
    present: npt.NDArray[np.bool_] | None,
    sweeps: Sequence[AnySweep],
    out: npt.NDArray[Any] | None = None,
) -> Outcome | None:
    """Averages in one go, as ``reals``; None where they are better made from sums."""
    if is_tiny(values.shape, sweeps) or not all(isinstance(sweep, Sweep) for sweep in sweeps):
        return None
    from windrow.kernels.fast import fast_windows
    from windrow.kernels.scans import averages_directly

    if not averages_directly(values.dtype, most_cells(values.shape, sweeps)):
        return None
    if values.dtype.kind != "f" and present is not None:
        return None

    return fast_windows("avg", values, present, sweeps, None, out)
