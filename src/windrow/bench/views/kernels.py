"""Patching PTF-5 by kernels and states alone: cells are in memory and in order, and nothing is read or written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from windrow.aggregates.aggregate import Aggregate, avg, count, median, sum
from windrow.aggregates.bands import BandNeighbours, evaluate_bands
from windrow.aggregates.columns import Column
from windrow.aggregates.states.layout import Layout, state_layout
from windrow.aggregates.states.rule import State
from windrow.aggregates.states.runs import Runs
from windrow.bench.joins.memory import PTF_5
from windrow.bench.joins.ours import space_of
from windrow.bench.race import Contender, Pace, Result, race
from windrow.bench.report import Measurement
from windrow.bench.tables import Line, Ratio, Table
from windrow.bench.timing import duration
from windrow.bench.views.scale import ViewsBench
from windrow.bench.views.survey import ANYWHERE, LATEST, Batches
from windrow.errors import DataError
from windrow.kernels.sparse.bands import Bands, met_bands
from windrow.kernels.sparse.sorting import sort_keys
from windrow.model.box import Box
from windrow.model.types import TYPES

PATCHED, ANEW = "patched", "computed anew"
GAINS = {LATEST: (35.0, 180.0), ANYWHERE: (8.0, 40.0)}
"""Of batches into the larger survey, and into the largest."""
GROWTH, MEDIANS = 6.0, 12.0
GAIN = Ratio("anew / patched", ANEW, PATCHED)
NAMES = ("time", "ra", "dec")
SUMS: Mapping[str, Aggregate] = {"n": count(), "s": sum("mag"), "mean": avg("mag")}
ABOUT = (
    "Kernels and states alone, processor time: cells are in memory and in order; merging a batch in does not count. "
    "Patched: results of new cells are computed, those of old cells near them are brought up to date by their states."
)

Float64Array = npt.NDArray[np.float64]
Int64Array = npt.NDArray[np.int64]
_EVERY = np.zeros(0, np.int64)


@dataclass(frozen=True)
class Cells:
    """Cells by their keys in order, with their values."""

    keys: Int64Array
    values: Float64Array

    @property
    def columns(self) -> dict[str, Column]:
        return {"mag": Column(self.values)}

    def without(self, gone: Int64Array) -> Cells:
        kept = np.ones(len(self.keys), bool)
        kept[gone] = False
        return Cells(self.keys[kept], self.values[kept])


@dataclass(frozen=True)
class Survey:
    """Cells before and after a batch, and the shape as bands of keys."""

    before: Cells
    after: Cells
    batch: Cells
    first: Int64Array
    last: Int64Array

    @classmethod
    def of(cls, where: str, size: int, batch: int) -> Survey:
        found = Batches.of(where, size, batch, 1)
        tables = (found.stored, found.batches[0])
        at = [np.concatenate([table.column(name).to_numpy() for table in tables]) for name in NAMES]
        values = np.concatenate([table.column("mag").to_numpy() for table in tables]).astype(np.float64)
        box = Box(tuple(int(column.min()) for column in at), tuple(int(column.max()) for column in at))
        runs = PTF_5.bind(NAMES, box).key_runs()
        space = space_of(box, runs)
        keys = space.keys([at[axis] for axis in runs.axes])

        def in_order(some: slice) -> Cells:
            ordered, order = sort_keys(np.ascontiguousarray(keys[some]), space.bits)
            return Cells(ordered, values[some][order])

        cut = found.stored.num_rows
        bands = space.differences(runs.leading, runs.first, runs.last)
        return cls(in_order(slice(cut)), in_order(slice(None)), in_order(slice(cut, None)), *bands)

    def around(self, places: Int64Array, cells: Cells) -> Runs:
        """The cells that lie in the shape around some keys."""
        bands = Bands(places, places, self.first, self.last, _EVERY)
        return Runs(BandNeighbours(cells.keys, bands), np.arange(len(places)))

    def touched(self, changed: Cells, among: Cells) -> Int64Array:
        """The rows of cells that have a changed one in their shape: those in the shape reflected."""
        bands = Bands(changed.keys, changed.keys, -self.last[::-1], -self.first[::-1], _EVERY)
        return met_bands(among.keys, bands)


@dataclass(frozen=True)
class Patch:
    """One batch on a survey whose results have states."""

    survey: Survey
    layout: Layout
    state: State

    @classmethod
    def of(cls, survey: Survey, aggregates: Mapping[str, Aggregate]) -> Patch:
        layout = state_layout(tuple(aggregates.items()), {"mag": TYPES["float64"]})
        return cls(
            survey, layout, layout.reduce(survey.before.columns, survey.around(survey.before.keys, survey.before))
        )

    def compute_anew(self) -> dict[str, Float64Array]:
        """All results."""
        after = self.survey.after
        return self._finish(self.layout.reduce(after.columns, self.survey.around(after.keys, after)))

    def bring(self) -> list[tuple[Int64Array, dict[str, Float64Array]]]:
        """Results of new cells, and those of old cells that have new ones near them, each with their keys."""
        survey, batch = self.survey, self.survey.batch
        fresh = self.layout.reduce(survey.after.columns, survey.around(batch.keys, survey.after))
        touched = survey.touched(batch, survey.before)
        old = survey.before.keys[touched]
        patched = self.layout.enter(self.state, batch.columns, survey.around(old, batch), at=touched)
        return [(batch.keys, self._finish(fresh)), (old, self._finish(patched))]

    def check(self) -> None:
        anew = self.compute_anew()
        for keys, found in self.bring():
            rows = np.searchsorted(self.survey.after.keys, keys)
            for name, whole in anew.items():
                if not np.allclose(found[name], whole[rows], rtol=1e-12, atol=0):
                    raise DataError("patched results differ from those computed anew", got=name)

    def _finish(self, state: State) -> dict[str, Float64Array]:
        return {name: found.values for name, found in self.layout.finish(state).items()}


def measure_kernels(bench: ViewsBench) -> Iterator[Table | Measurement]:
    """Batches of the latest nights and from anywhere, into surveys of three sizes."""
    scale, lines = bench.scale, dict[tuple[str, int], Line]()
    for size in (scale.few, scale.many, scale.most):
        for where in GAINS:
            patch = Patch.of(Survey.of(where, size, scale.batch), SUMS)
            patch.check()
            lines[where, size] = _race(bench, f"{where}, {size:,} cells", size, patch)
    yield Table("kernels", f"PTF-5 in memory, batches of {scale.batch:,} cells", ABOUT, tuple(lines.values()), (GAIN,))
    for where, targets in GAINS.items():
        for size, target in zip((scale.many, scale.most), targets, strict=True):
            yield _gain(f"{scale.batch:,} cells, {where}, into {size:,}", lines[where, size].result, target)
    small, large = (lines[LATEST, size].result.seconds[PATCHED] for size in (scale.few, scale.most))
    what = f"growth of the patch from {scale.few:,} to {scale.most:,} cells"
    yield Measurement("kernels", what, large / small, "×", GROWTH, "at most", f"{duration(small)} to {duration(large)}")


def _race(bench: ViewsBench, case: str, size: int, patch: Patch) -> Line:
    contenders = [Contender(PATCHED, patch.bring), Contender(ANEW, patch.compute_anew)]
    return Line(case, size, race(contenders, Pace(bench.scale.rounds, np.inf, np.inf)))


def _gain(what: str, result: Result, target: float, subject: str = "kernels") -> Measurement:
    ours, anew = (result.seconds[name] for name in (PATCHED, ANEW))
    detail = f"patched {duration(ours)}, anew {duration(anew)}"
    return Measurement(subject, what, anew / ours, "×", target, detail=detail)


def measure_medians(bench: ViewsBench) -> Iterator[Table | Measurement]:
    """Medians of PTF-5 whose values change at random: brackets shifted, against selecting the touched ones again."""
    scale = bench.scale
    survey = Survey.of(ANYWHERE, scale.many, scale.changes)
    patch = Patch.of(survey, {"m": median("mag")})
    random = np.random.default_rng(3)
    gone = np.sort(random.choice(len(survey.before.keys), scale.changes, replace=False))
    left = Cells(survey.before.keys[gone], survey.before.values[gone])
    came = Cells(left.keys, random.permutation(left.values))
    now = Cells(survey.before.keys, survey.before.values.copy())
    now.values[gone] = came.values
    touched = survey.touched(left, survey.before)
    keys = survey.before.keys[touched]

    def select() -> Float64Array:
        around = survey.around(keys, now)
        (found,) = evaluate_bands(now.columns, around.neighbours, [median("mag")], "auto", 0)
        return np.asarray(found.values)

    def shift() -> Float64Array:
        state = patch.layout.take(patch.state, survey.touched(left, survey.before))
        state = patch.layout.leave(state, left.columns, survey.around(keys, left))
        state = patch.layout.enter(state, came.columns, survey.around(keys, came))
        found = patch.layout.finish(state)["m"]
        results = np.asarray(found.values, np.float64).copy()
        lost = np.flatnonzero(found.recompute)
        if len(lost):
            around = survey.around(keys[lost], now)
            (anew,) = evaluate_bands(now.columns, around.neighbours, [median("mag")], "auto", 0)
            results[lost] = anew.values
        return results

    if not np.array_equal(shift(), select()):
        raise DataError("patched medians differ from those selected anew")
    contenders = [Contender(PATCHED, shift), Contender(ANEW, select)]
    line = Line(f"{len(keys):,} touched", scale.many, race(contenders, Pace(scale.rounds, np.inf, np.inf)))
    about = "Kernels and states alone, processor time. A bracket of neighbouring values is kept of each result."
    title = f"Medians of PTF-5, {scale.many:,} cells, {scale.changes:,} values replaced at random"
    yield Table("medians", title, about, (line,), (GAIN,))
    yield _gain(f"{len(keys):,} medians", line.result, MEDIANS, "medians")
