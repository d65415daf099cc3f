"""Medians patched from kept states, against selecting them anew: kernels alone, in memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from windrow.aggregates.aggregate import parse_aggregate
from windrow.aggregates.states.layout import Layout, state_layout
from windrow.aggregates.states.rule import State
from windrow.aggregates.windows import Column
from windrow.bench.report import Measurement
from windrow.bench.timing import duration
from windrow.bench.views.scale import ViewsBench
from windrow.bench.windows_race import Contender, Pace, race
from windrow.bench.windows_report import Line, Ratio, Table
from windrow.errors import DataError
from windrow.model.types import TYPES

PATCHED, SELECTED = "patched", "selected anew"
GAIN = 12.0
GROUP = 80
"""Values of a group: about as many as a detection has neighbours."""

Float64Array = npt.NDArray[np.float64]
Int64Array = npt.NDArray[np.int64]


def measure_medians(bench: ViewsBench) -> Iterator[Table | Measurement]:
    """In each of so many groups one value leaves and another comes."""
    scale, random = bench.scale, np.random.default_rng(3)
    groups = max(1, scale.values // GROUP)
    values = random.normal(size=(groups, GROUP))
    touched = np.sort(random.choice(groups, min(scale.changes, groups), replace=False))
    column = random.integers(0, GROUP, len(touched))
    old, new = values[touched, column].copy(), random.normal(size=len(touched))
    layout = state_layout((("m", parse_aggregate("median").of("x")),), {"x": TYPES["float64"]})
    state = layout.reduce(*_grouped(values))
    values[touched, column] = new
    changed = values[touched]

    def patch() -> Float64Array:
        return _patched(layout, layout.take(state, touched), changed, old, new)

    def select() -> Float64Array:
        return np.median(changed, axis=1)

    if not np.allclose(patch(), select(), rtol=1e-12, atol=0):
        raise DataError("patched medians differ from those selected anew")
    pace = Pace(max(3, scale.rounds), np.inf, np.inf)
    line = Line(f"{len(touched):,} groups", GROUP, race([Contender(PATCHED, patch), Contender(SELECTED, select)], pace))
    about = f"Kernels alone, processor time; NumPy selects. {groups:,} groups of {GROUP} values, each with a bracket."
    yield Table(
        "medians",
        f"Medians of {groups * GROUP:,} values",
        about,
        (line,),
        (Ratio("anew / patched", SELECTED, PATCHED),),
    )
    ours, theirs = (line.result.seconds[name] for name in (PATCHED, SELECTED))
    detail = f"patched {duration(ours)}, anew {duration(theirs)}"
    yield Measurement("medians", f"{len(touched):,} medians", theirs / ours, "×", GAIN, detail=detail)


def _grouped(values: Float64Array) -> tuple[dict[str, Column], Int64Array]:
    count = len(values)
    starts = np.arange(count + 1, dtype=np.int64) * (values.shape[1] if values.ndim > 1 else 1)
    return {"x": Column(np.ascontiguousarray(values.reshape(-1)))}, starts


def _patched(layout: Layout, state: State, values: Float64Array, old: Float64Array, new: Float64Array) -> Float64Array:
    """The medians after one value of each group was replaced; those that the state cannot tell are selected."""
    state = layout.enter(layout.leave(state, *_grouped(old)), *_grouped(new))
    found = layout.finish(state)["m"]
    results = np.asarray(found.values, np.float64).copy()
    if found.recompute.any():
        results[found.recompute] = np.median(values[found.recompute], axis=1)
    return results
