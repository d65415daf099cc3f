"""Discs and diamonds on a dense array, against OpenCV and SciPy."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.api.sliding import sliding
from windrow.bench.joins.memory import ratios
from windrow.bench.joins.race import OURS, gain
from windrow.bench.joins.scale import JoinsBench
from windrow.bench.race import Contender, race
from windrow.bench.report import Bound, Measurement
from windrow.bench.tables import Line, Table
from windrow.errors import DataError
from windrow.model.shape import L1, L2, Shape

Array = npt.NDArray[Any]
OPENCV, SCIPY = "OpenCV", "SciPy"
SUM_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Target:
    """How a peer's time over windrow's is judged."""

    peer: str
    value: float
    bound: Bound = "at least"


@dataclass(frozen=True)
class Case:
    """One aggregate over one shape, and what it is held against."""

    aggregate: str
    norm: Callable[[int], Shape]
    reach: int
    targets: tuple[Target, ...]

    @property
    def shape(self) -> Shape:
        return self.norm(self.reach)

    @property
    def footprint(self) -> npt.NDArray[np.uint8]:
        """The shape as a square of zeros and ones."""
        side = np.arange(-self.reach, self.reach + 1)
        down, across = np.meshgrid(side, side, indexing="ij")
        inside = self.shape.bind(("i", "j")).mask([down, across])
        return inside.astype(np.uint8)


CASES = (
    Case("max", L2, 10, (Target(OPENCV, 2.5), Target(SCIPY, 12.0))),
    # windrow within 1.3 times OpenCV's time.
    Case("sum", L2, 10, (Target(OPENCV, 1 / 1.3),)),
    Case("median", L2, 5, (Target(SCIPY, 20.0),)),
    Case("max", L1, 3, (Target(OPENCV, 0.8),)),
)


def measure_dense(bench: JoinsBench) -> Iterator[Table | Measurement]:
    """Every case, borders clipped, and its targets."""
    side = bench.scale.side
    values = np.random.default_rng(7).standard_normal((side, side))
    lines: list[tuple[Case, Line]] = []
    for case in CASES:
        runs = {OURS: _ours(case, values), **_peers(bench, case, values)}
        _check(case, {name: run() for name, run in runs.items()})
        contenders = [Contender(name, run) for name, run in runs.items()]
        lines.append(
            (case, Line(f"{case.aggregate} over {case.shape}", case.reach, race(contenders, bench.scale.pace)))
        )
    about = "Processor time of one thread. SciPy's medians at the border are of mirrored values, and not compared."
    title = f"Shapes on {side}×{side} float64"
    yield Table("dense", title, about, tuple(line for _, line in lines), ratios(OPENCV, SCIPY))
    for case, line in lines:
        for target in case.targets:
            what = f"{case.aggregate} over {case.shape}, {side}×{side}, against {target.peer}"
            yield gain("dense", what, line, target.peer, target.value, target.bound)


def _ours(case: Case, values: Array) -> Callable[[], Array]:
    return lambda: sliding(values, case.aggregate, shape=case.shape)


def _peers(bench: JoinsBench, case: Case, values: Array) -> dict[str, Callable[[], Array]]:
    found: dict[str, Callable[[], Array]] = {}
    if bench.has(OPENCV) and case.aggregate != "median":
        found[OPENCV] = _opencv(case, values)
    if bench.has(SCIPY):
        found[SCIPY] = _scipy(case, values)
    return found


def _opencv(case: Case, values: Array) -> Callable[[], Array]:
    cv2 = importlib.import_module("cv2")
    cv2.setNumThreads(1)
    footprint = case.footprint
    if case.aggregate == "max":
        return lambda: cv2.dilate(values, footprint)
    weights = footprint.astype(np.float64)
    return lambda: cv2.filter2D(values, -1, weights, borderType=cv2.BORDER_CONSTANT)


def _scipy(case: Case, values: Array) -> Callable[[], Array]:
    ndimage = importlib.import_module("scipy.ndimage")
    footprint = case.footprint
    if case.aggregate == "max":
        return lambda: ndimage.maximum_filter(values, footprint=footprint, mode="constant", cval=-np.inf)
    if case.aggregate == "sum":
        weights = footprint.astype(np.float64)
        return lambda: ndimage.convolve(values, weights, mode="constant")
    return lambda: ndimage.median_filter(values, footprint=footprint)


def _check(case: Case, answers: dict[str, Array]) -> None:
    """A wrong answer has no speed."""
    inner = slice(case.reach, -case.reach) if case.aggregate == "median" else slice(None)
    ours = answers[OURS][inner, inner]
    for name, theirs in answers.items():
        if not np.allclose(ours, theirs[inner, inner], rtol=SUM_TOLERANCE, atol=SUM_TOLERANCE * case.footprint.size):
            raise DataError(f"{case.aggregate} over {case.shape}: windrow and {name} disagree")
