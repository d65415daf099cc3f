"""What questions cost where there is hardly any data: a first answer, and a small total."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from windrow.bench.queries.scale import QueriesBench
from windrow.bench.report import Measurement
from windrow.bench.timing import fresh_process

FIRST_ANSWER, SMALL_TOTAL = 1.5, 5.0
PROCESSES = 5

_FIRST = """
import json, sys, tempfile, time
started = time.perf_counter()
import windrow as wr
with tempfile.TemporaryDirectory() as folder, wr.connect(folder, engine="local", progress=False) as database:
    array = database.create("A", "<a: float64> [i=0:2:3, j=0:2:3]")
    array.write({"a": [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]]})
    array.window(i=3, j=3).agg(m=wr.max("a")).compute()
    array.read()
    first = time.perf_counter() - started
    query = database.query("select sum(a) as s from A")
    took = []
    for _ in range(40):
        started = time.perf_counter()
        query.compute()
        took.append(time.perf_counter() - started)
    heavy = [name for name in ("dask", "numbagg") if name in sys.modules]
    print(json.dumps({"first": first, "total": sorted(took)[20], "heavy": len(heavy)}))
"""


def measure_small(_bench: QueriesBench) -> Iterator[Measurement]:
    """A 3×3 array in fresh processes."""
    found = [fresh_process(_FIRST) for _ in range(PROCESSES)]
    first = statistics.median(one["first"] for one in found)
    total = statistics.median(one["total"] for one in found)
    what = "3×3 array, fresh process: create, write, window, read"
    yield Measurement("small", what, first, "s", FIRST_ANSWER, "at most")
    yield Measurement("small", "a total over it, warm", 1000 * total, "ms", SMALL_TOTAL, "at most")
    heavy = max(one["heavy"] for one in found)
    yield Measurement("small", "of dask and numbagg, imported by then", heavy, "", 0, "at most")
