"""Windows over a growing dense field: an appended slice and a changed box, against rebuilding."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from windrow.aggregates.aggregate import parse_aggregate
from windrow.api.array import Array
from windrow.api.database import Database, connect
from windrow.api.query import Query
from windrow.bench.race import Result
from windrow.bench.report import Measurement
from windrow.bench.tables import Line, Ratio, Table
from windrow.bench.timing import duration
from windrow.bench.views.in_memory import hold_window
from windrow.bench.views.scale import ViewsBench
from windrow.bench.views.survey import PATCH, REBUILD, best
from windrow.errors import DataError
from windrow.model.box import Box
from windrow.model.window import trailing
from windrow.samples import TemperatureSource, temperature_field

WIDTH = 30
BOX = (10, 20, 20)
CASES = {"percentile(90)": 5.0, "sum": 10.0}
BOX_GAIN = 40.0


def growing_field(database: Database, shape: tuple[int, int, int], stored: int) -> tuple[Array, np.ndarray]:
    """A field of which the first days are stored, and all its values."""
    values, _ = temperature_field(*shape)
    schema = TemperatureSource(*shape).schema
    *places, days = schema.dimensions
    # In the chunks that windrow gives an array that grows: those of the sample are meant for one that does not.
    dimensions = (*(replace(place, chunk=None) for place in places), replace(days, hi=None, chunk=None))
    array = database.create("T", replace(schema, dimensions=dimensions))
    array.write({"t": np.ascontiguousarray(values[:, :, :stored])})
    return array, values


def measure_dense(bench: ViewsBench) -> Iterator[Table | Measurement]:
    """For each aggregate: days appended one by one, boxes changed, and the view computed again."""
    lon, lat, days = bench.scale.field
    lines: list[tuple[str, Line, float]] = []
    for aggregate, target in CASES.items():
        slices, boxes = f"{aggregate}, a slice appended", f"{aggregate}, a box of {'×'.join(map(str, BOX))} changed"
        stored, held = _measure(bench, aggregate)
        for how, (slice_time, box_time, rebuild) in (("", stored), (", kernels alone", held)):
            lines.append((f"{slices}{how}", _line(aggregate, slice_time, rebuild), target))
            lines.append((f"{boxes}{how}", _line(aggregate, box_time, rebuild), BOX_GAIN))
    named = tuple(replace(line, case=what) for what, line, _ in lines)
    about = (
        f"Trailing {WIDTH}. Processor time of whole batches with storage, in the chunks that windrow gives a field "
        "that grows; anew is computing and storing the view. Kernels alone compute touched results of values in memory."
    )
    title = f"Views over a field of {lon}×{lat}×{days}"
    yield Table("dense", title, about, named, (Ratio("rebuild / batch", REBUILD, PATCH),))
    for what, line, target in lines:
        patch, rebuild = (line.result.seconds[name] for name in (PATCH, REBUILD))
        detail = f"batch {duration(patch)}, rebuild {duration(rebuild)}"
        yield Measurement("dense", what, rebuild / patch, "×", target, detail=detail)


def _line(aggregate: str, patch: float, rebuild: float) -> Line:
    return Line(aggregate, WIDTH, Result({PATCH: patch, REBUILD: rebuild}))


Times = tuple[float, float, float]
"""Seconds of an appended slice, of a changed box and of a rebuild."""


def _measure(bench: ViewsBench, aggregate: str) -> tuple[Times, Times]:
    """Whole batches with storage, and kernels alone."""
    lon, lat, days = bench.scale.field
    rounds = bench.scale.rounds
    folder = bench.folder / f"dense-{aggregate.partition('(')[0]}"
    with connect(folder, engine="local", progress=False) as database:
        array, values = growing_field(database, (lon, lat, days + rounds + 1), days)
        asked = array.window(time=trailing(WIDTH)).agg(out=parse_aggregate(aggregate).of("t"))
        view = database.create_view("V", asked, maintain="incremental")

        def append() -> None:
            day = array.shape[2]
            array.append({"t": values[:, :, day : day + 1]})

        def change() -> None:
            at = (lon // 2, lat // 3, days // 2)
            there = tuple(min(side, n) for side, n in zip(BOX, (lon // 2, lat // 2, days // 2), strict=True))
            array.write({"t": np.random.default_rng(array.version).normal(280, 9, there).astype(np.float32)}, at=at)

        append()
        change()
        slices, boxes = best([append] * rounds), best([change] * rounds)
        checked = view.check()
        if not checked.ok:
            raise DataError("a patched view is not what its query gives", got=str(checked))
        made = iter(range(rounds))
        rebuild = best([lambda: database.create_view(f"W{next(made)}", asked)] * rounds)
        return (slices, boxes, rebuild), _measure_kernels(asked, rounds)


def _measure_kernels(asked: Query, rounds: int) -> Times:
    """The results that a last slice has, those that a box touches, and all, of values in memory."""
    whole = asked.bind().box
    last = replace(whole, lo=(*whole.lo[:2], whole.hi[2]))
    lo = tuple(low + extent // 3 for low, extent in zip(whole.lo, whole.shape, strict=True))
    reached = (*BOX[:2], BOX[2] + WIDTH - 1)
    box = Box(lo, tuple(low + extent - 1 for low, extent in zip(lo, reached, strict=True))) & whole
    actions = [hold_window(asked, part) for part in (last, box, whole)]
    for action in actions:
        action()
    slices, boxes, rebuild = (best([action] * rounds) for action in actions)
    return slices, boxes, rebuild
