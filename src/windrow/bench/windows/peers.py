"""Other packages that compute windows, each optional, each held to one thread: who they are and how they are called.

The same table is raced by the benchmark and compared with windrow by the tests.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from windrow.bench.peers import Package
from windrow.bench.race import Contender, Pace, Problem, compiling_seconds
from windrow.bench.timing import Action

_XARRAY_CELLS = 125
"""The largest n-dimensional window given to xarray, which writes out every window before it reduces them."""

Make = Callable[[Problem], "Action | None"]


@dataclass(frozen=True)
class Peer(Package):
    """``make`` returns a function that computes a problem, or None if the package has no such window."""

    anchor: str
    make: Make

    def label(self, problem: Problem) -> str:
        """The peer's name, with what it computes if it has only something like the problem."""
        stands_in = self.name in _MEDIAN_ONLY and problem.aggregate == "percentile" and problem.percent != 50
        return f"{self.name} (median)" if stands_in else self.name


def peer_contenders(problem: Problem, pace: Pace, peers: Sequence[Peer]) -> Iterator[Contender]:
    """Every installed peer that can do a problem; slow ones get the first part of the array."""
    for peer in peers:
        if peer.version is None:
            continue
        length, least = problem.values.shape[0], problem.window[0]
        cells = min(length, max(least, length // 256))
        probe = peer.make(problem.cut(cells))
        if probe is None:
            continue
        compiling, took = compiling_seconds(probe)
        measured = length
        if took * length / cells > 2 * pace.sample:
            measured = min(length, max(cells, round(cells * pace.sample / max(took, 1e-9))))
        action = peer.make(problem if measured == length else problem.cut(measured))
        assert action is not None
        yield Contender(peer.label(problem), action, length / measured, compiling)


def _module(name: str) -> Any:
    return importlib.import_module(name)


def _opencv(problem: Problem) -> Action | None:
    values = problem.values
    if values.ndim != 2 or values.dtype.kind != "f" or problem.aggregate == "percentile":
        return None
    cv2 = _module("cv2")
    cv2.setNumThreads(1)
    height, width = problem.window
    if problem.aggregate in ("sum", "avg"):
        normalise, border = problem.aggregate == "avg", cv2.BORDER_CONSTANT
        size = (width, height)
        return lambda: cv2.boxFilter(values, -1, size, dst=problem.out, normalize=normalise, borderType=border)
    morphology = cv2.dilate if problem.aggregate == "max" else cv2.erode
    box = np.ones((height, width), np.uint8)
    return lambda: morphology(values, box, dst=problem.out)


def _scipy(problem: Problem) -> Action | None:
    ndimage = _module("scipy.ndimage")
    values, size, out = problem.values, problem.window, problem.out
    if problem.aggregate == "percentile":
        if problem.along_last:  # SciPy's fast way is for one dimension: all series end to end, borders not minded
            flat = values.reshape(-1)
            return lambda: ndimage.percentile_filter(flat, problem.percent, size=size[-1], mode="nearest")
        return lambda: ndimage.percentile_filter(values, problem.percent, size=size, mode="nearest")
    if problem.aggregate in ("min", "max"):
        extreme = ndimage.minimum_filter if problem.aggregate == "min" else ndimage.maximum_filter
        return lambda: extreme(values, size=size, mode="nearest", output=out)
    if problem.aggregate == "avg":
        return lambda: ndimage.uniform_filter(values, size=size, mode="constant", output=out)

    def total() -> Any:
        found = ndimage.uniform_filter(values, size=size, mode="constant", output=out)
        found *= math.prod(size)
        return found

    return total


def _bottleneck(problem: Problem) -> Action | None:
    if not problem.along_last or problem.window[-1] > problem.values.shape[-1]:
        return None
    names = {"sum": "move_sum", "avg": "move_mean", "percentile": "move_median"}
    move = getattr(_module("bottleneck"), names.get(problem.aggregate, f"move_{problem.aggregate}"))
    return lambda: move(problem.values, problem.window[-1], min_count=1, axis=-1)


def _numbagg(problem: Problem) -> Action | None:
    names = {"sum": "move_sum", "avg": "move_mean"}
    if not problem.along_last or problem.aggregate not in names or problem.window[-1] > problem.values.shape[-1]:
        return None
    numbagg = _module("numbagg")
    _module("numba").set_num_threads(1)
    move = getattr(numbagg, names[problem.aggregate])
    return lambda: move(problem.values, window=problem.window[-1], min_count=1, axis=-1)


def _pandas(problem: Problem) -> Action | None:
    if not problem.along_last:
        return None
    rolling = _module("pandas").Series(problem.values.reshape(-1)).rolling(problem.window[-1], min_periods=1)
    if problem.aggregate == "percentile":
        assert problem.percent is not None
        fraction = problem.percent / 100
        return lambda: rolling.quantile(fraction, interpolation="higher").to_numpy()
    method = {"avg": "mean"}.get(problem.aggregate, problem.aggregate)
    return lambda: getattr(rolling, method)().to_numpy()


def _polars(problem: Problem) -> Action | None:
    polars = _module("polars")
    if not problem.along_last or polars.thread_pool_size() > 1:
        return None
    series, width = polars.Series(problem.values.reshape(-1)), problem.window[-1]
    if problem.aggregate == "percentile":
        assert problem.percent is not None
        fraction = problem.percent / 100
        return lambda: series.rolling_quantile(fraction, "nearest", window_size=width, min_samples=1).to_numpy()
    move = getattr(series, "rolling_" + {"avg": "mean"}.get(problem.aggregate, problem.aggregate))
    return lambda: move(width, min_samples=1).to_numpy()


def _xarray(problem: Problem) -> Action | None:
    if problem.aggregate == "percentile":  # there is no rolling quantile
        return None
    if not problem.along_last and math.prod(problem.window) > _XARRAY_CELLS:
        return None
    if any(width > length for width, length in zip(problem.window, problem.values.shape, strict=True)):
        return None
    array = _module("xarray").DataArray(problem.values)
    wide = {name: width for name, width in zip(array.dims, problem.window, strict=True) if width > 1}
    rolling = array.rolling(wide or {array.dims[-1]: 1}, min_periods=1)
    method = {"avg": "mean"}.get(problem.aggregate, problem.aggregate)
    return lambda: getattr(rolling, method)().to_numpy()


_MEDIAN_ONLY = ("bottleneck",)

PEERS = (
    Peer("OpenCV", "cv2", "opencv-python-headless", "centred", _opencv),
    Peer("SciPy", "scipy", "scipy", "centred", _scipy),
    Peer("bottleneck", "bottleneck", "bottleneck", "trailing", _bottleneck),
    Peer("numbagg", "numbagg", "numbagg", "trailing", _numbagg),
    Peer("pandas", "pandas", "pandas", "trailing", _pandas),
    Peer("polars", "polars", "polars", "trailing", _polars),
    Peer("xarray", "xarray", "xarray", "trailing", _xarray),
)
