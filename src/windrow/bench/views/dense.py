"""Windows over a growing dense field: an appended slice and a changed box, against rebuilding."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from windrow.aggregates.aggregate import parse_aggregate
from windrow.api.array import Array
from windrow.api.database import Database, connect
from windrow.bench.race import Result
from windrow.bench.report import Measurement
from windrow.bench.tables import Line, Ratio, Table
from windrow.bench.timing import duration
from windrow.bench.views.scale import ViewsBench
from windrow.bench.views.survey import PATCH, REBUILD, best
from windrow.errors import DataError
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
        slices, boxes, rebuild = _measure(bench, aggregate)
        lines.append((f"{aggregate}, a slice appended", _line(aggregate, slices, rebuild), target))
        lines.append(
            (f"{aggregate}, a box of {'×'.join(map(str, BOX))} changed", _line(aggregate, boxes, rebuild), BOX_GAIN)
        )
    named = tuple(replace(line, case=what) for what, line, _ in lines)
    about = f"Trailing {WIDTH}. Processor time of whole batches with storage; anew is computing and storing the view."
    title = f"Views over a field of {lon}×{lat}×{days}"
    yield Table("dense", title, about, named, (Ratio("rebuild / batch", REBUILD, PATCH),))
    for what, line, target in lines:
        patch, rebuild = (line.result.seconds[name] for name in (PATCH, REBUILD))
        detail = f"batch {duration(patch)}, rebuild {duration(rebuild)}"
        yield Measurement("dense", what, rebuild / patch, "×", target, detail=detail)


def _line(aggregate: str, patch: float, rebuild: float) -> Line:
    return Line(aggregate, WIDTH, Result({PATCH: patch, REBUILD: rebuild}))


def _measure(bench: ViewsBench, aggregate: str) -> tuple[float, float, float]:
    """Seconds of an appended slice, of a changed box and of a rebuild."""
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
        return slices, boxes, best([lambda: database.create_view(f"W{next(made)}", asked)] * rounds)
