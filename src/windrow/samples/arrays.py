"""The synthetic arrays of papers 000 and 002: whole numbers from 0 to 1,000,000, one, two or three dimensions."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from windrow.errors import UnknownNameError, nearest

SHAPES = {"arr1D": (1_000_000,), "arr2D": (500, 500), "arr3D": (60, 60, 60)}
HIGHEST = 1_000_000


def paper_array(name: str) -> npt.NDArray[np.float64]:
    """``arr1D``, ``arr2D`` or ``arr3D``.

    >>> paper_array("arr2D").shape
    (500, 500)
    """
    if name not in SHAPES:
        raise UnknownNameError("no such array in the papers", got=repr(name), hint=nearest(name, SHAPES))
    return np.random.default_rng(13).integers(0, HIGHEST + 1, SHAPES[name]).astype(np.float64)
