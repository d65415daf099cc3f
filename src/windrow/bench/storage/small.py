"""What small work costs: importing, a first little array, and commits when there are many versions already."""

from __future__ import annotations

import functools
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from windrow.api.database import Database, connect
from windrow.bench.report import Measurement
from windrow.bench.timing import duration, environment, fresh_process, time_call

NEIGHBOURS = 20
BASE_PARTS = 500

_IMPORT = """
import json, sys, time
start = time.perf_counter()
import windrow
print(json.dumps({"seconds": time.perf_counter() - start}))
"""

_PACKAGES = """
import json, time
start = time.perf_counter()
import numpy, sqlalchemy.dialects.sqlite, pyarrow, zarr, icechunk, xarray
print(json.dumps({"seconds": time.perf_counter() - start}))
"""
"""What a small dense array cannot do without: the catalog, the store, and the form in which it is read."""

_FIRST_ARRAY = """
import json, sys, time
start = time.perf_counter()
import windrow
if sys.argv[2] == "imported":
    import numpy, xarray, windrow.api.database, windrow.api.labelled
    start = time.perf_counter()
import numpy
database = windrow.connect(sys.argv[1])
array = database.create("A", "<a: float64> [i=1:3, j=1:3]")
array.write({"a": numpy.arange(9.0).reshape(3, 3)})
assert array.read()["a"].values.sum() == 36
seconds = time.perf_counter() - start
assert "pyspark" not in sys.modules
print(json.dumps({"seconds": seconds}))
"""


def measure_start(folder: Path, rounds: int) -> Iterator[Measurement]:
    """Fresh processes: the import, and a 3×3 array from nothing."""
    # Installed packages have their bytecode; a tree of sources gets it here, in the rounds that do not count.
    with environment({"PYTHONPYCACHEPREFIX": str(folder / "bytecode"), "PYTHONDONTWRITEBYTECODE": ""}):
        yield _best("import windrow", _seconds(_IMPORT, rounds), 0.3)
        yield _best("3×3 array, imports done", _first_array(folder, "imported", rounds), 1.0)
        packages = statistics.median(_seconds(_PACKAGES, rounds))
        beneath = f"; importing the packages beneath windrow alone takes {duration(packages)}"
        yield _best("3×3 array, imports included", _first_array(folder, "fresh", rounds), 1.0, beneath)


def _seconds(code: str, rounds: int, arguments: Callable[[int], list[str]] = lambda _: []) -> list[float]:
    """How long code took in each of several processes, after one that does not count."""
    return [fresh_process(code, arguments(number))["seconds"] for number in range(rounds + 1)][1:]


def _first_array(folder: Path, mode: str, rounds: int) -> list[float]:
    return _seconds(_FIRST_ARRAY, rounds, lambda number: [str(folder / f"{mode}-{number}"), mode])


def _best(what: str, seconds: list[float], target: float, remark: str = "") -> Measurement:
    detail = f"best of {len(seconds)} processes, median {duration(statistics.median(seconds))}{remark}"
    return Measurement("start", what, min(seconds), "s", target, "at most", detail)


def dense_commits(database: Database) -> Callable[[int], object]:
    """One chunk of a dense array a commit."""
    array = database.create("blocks", "<a: float32> [i=0:99:10, j=0:99:10]")
    values = np.ones((10, 10), np.float32)
    return lambda n: array.write({"a": values}, at=(n // 10 % 10 * 10, n % 10 * 10))


def growing_commits(database: Database) -> Callable[[int], object]:
    """One labelled step of a growing array a commit."""
    array = database.create("days", "<a: float32> [day=0:*, i=0:99]")
    values = np.ones((1, 100), np.float32)
    first = np.datetime64("2000-01-01", "us")
    return lambda n: array.append(values, labels={"day": first + np.arange(n, n + 1) * np.timedelta64(1, "D")})


def sparse_commits(database: Database) -> Callable[[int], object]:
    """A hundred cells of a sparse array a commit."""
    array = database.create("cells", "<a: float32> [i=0:*:100, j=0:99:100]", sparse=True)
    return lambda n: array.insert(_row(n))


def sparse_commits_on_parts(database: Database) -> Callable[[int], object]:
    """The same on an array that many parts were written into before."""
    array = database.create("parts", "<a: float32> [i=0:*:100, j=0:99:100]", sparse=True)
    with database.batch() as batch:
        for n in range(BASE_PARTS):
            batch.insert("parts", _row(n))
    return lambda n: array.insert(_row(BASE_PARTS + n))


def _row(n: int) -> dict[str, object]:
    return {"i": np.full(100, n), "j": np.arange(100), "a": np.ones(100, np.float32)}


CASES: dict[str, Callable[[Database], Callable[[int], object]]] = {
    "one-chunk writes": dense_commits,
    "labelled appends": growing_commits,
    "small sparse inserts": sparse_commits,
    f"sparse inserts on {BASE_PARTS} parts": sparse_commits_on_parts,
}


def measure_commits(folder: Path, versions: int) -> Iterator[Measurement]:
    """How much longer a commit takes when there are ``versions`` of them than when there are ten."""
    for what, begin in CASES.items():
        with connect(folder / what.replace(" ", "-"), engine="local", progress=False) as database:
            commit = begin(database)
            seconds = [time_call(functools.partial(commit, n)) for n in range(versions + NEIGHBOURS // 2)]
        early = statistics.median(seconds[:NEIGHBOURS])
        late = statistics.median(seconds[-NEIGHBOURS:])
        detail = f"10th {duration(early)}, {versions:,}th {duration(late)} (medians of {NEIGHBOURS} neighbours)"
        yield Measurement("commit", f"latency growth, {what}", late / early, "×", 3, "at most", detail)
