"""What small changes cost on a dense array: bytes of an appended step, of a patch, and of the manifests it touches."""

from __future__ import annotations

import functools
import importlib
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from windrow.api.array import Array
from windrow.api.database import Database, connect
from windrow.bench.report import Measurement
from windrow.storage.dense.layout import compressors
from windrow.storage.places import directory_bytes

FIELD = (145, 288)
STEPS = 366
PATCH = (5, 5, 5)
MANY_CHUNKS = "<t: float32> [time=0:*:1, lat=0:99:10, lon=0:199:10]"
"""200 chunks a step: ninety steps are the 18,000 chunks whose manifests are measured."""

MANY_STEPS = 90
APPENDS = 16
ROUNDS = 5


def measure_patches(folder: Path, commits: int) -> Iterator[Measurement]:
    with connect(folder / "patches", engine="local", progress=False) as database:
        yield _measure_appends(database)
        yield from _measure_patch(database, folder)
        yield _measure_manifests(database)
        yield from _measure_commits(database, commits)


def _field(number: int, steps: int = 1) -> npt.NDArray[np.float32]:
    """Values that compress about as temperatures do."""
    dice = np.random.default_rng(number)
    return np.round(280 + 10 * dice.normal(size=(steps, *FIELD)), 1).astype(np.float32)


def _create(database: Database, name: str, patched: bool) -> Array:
    schema = f"<t: float32> [time=0:*, lat=1:{FIELD[0]}, lon=1:{FIELD[1]}]"
    return database.create(name, schema, chunks="patched" if patched else None)


def _write(array: Array, change: Callable[[], object], inside: str = "") -> int:
    place = Path(array.location().path, inside)
    before = directory_bytes(place)
    change()
    return directory_bytes(place) - before


def _measure_appends(database: Database) -> Measurement:
    array = _create(database, "appended", patched=False)
    sizes = [_write(array, functools.partial(array.append, _field(n))) for n in range(APPENDS)]
    worst = max(sizes) / _field(0).nbytes
    detail = f"of {APPENDS}, the median {statistics.median(sizes) / _field(0).nbytes:.1f}"
    return Measurement("patches", "worst append of a step, in raw steps", worst, "×", 6, "at most", detail)


def _measure_patch(database: Database, folder: Path) -> Iterator[Measurement]:
    whole, patched = (_create(database, name, name == "patched") for name in ("whole", "patched"))
    for array in (whole, patched):
        array.append(_field(1, STEPS))
    sizes = [_write(array, functools.partial(_patch, array)) for array in (whole, patched)]
    detail = f"in chunks of {patched.schema.grid.chunk}; {sizes[0] / 1e6:.2f} MB in {whole.schema.grid.chunk}"
    yield Measurement("patches", "patch of 5×5×5", sizes[1] / 1e6, "MB", 0.7, "at most", detail)
    seconds = [min(_processor_seconds(array.read) for _ in range(ROUNDS)) for array in (whole, patched)]
    detail = f"{seconds[1] * 1e3:.0f} against {seconds[0] * 1e3:.0f} ms"
    what = "full read against whole fields"
    yield Measurement("patches", what, seconds[1] / max(seconds[0], 1e-4), "×", 1.7, "at most", detail)
    yield from _measure_bare(patched, sizes[1], folder)


def _measure_bare(array: Array, ours: int, folder: Path) -> Iterator[Measurement]:
    """The same patch and the same read by Icechunk alone, with the same chunks and codecs."""
    icechunk, zarr = (importlib.import_module(name) for name in ("icechunk", "zarr"))
    place = folder / "bare-icechunk"
    repository = icechunk.Repository.create(icechunk.local_filesystem_storage(str(place)))
    session = repository.writable_session("main")
    values = _field(1, STEPS)
    bare = zarr.create_array(
        session.store, name="t", shape=values.shape, chunks=array.schema.grid.chunk, dtype="float32",
        fill_value=float("nan"), compressors=compressors(),
    )  # fmt: skip
    bare[:] = values
    session.commit("all steps")

    def patch() -> None:
        session = repository.writable_session("main")
        zarr.open_array(session.store, path="t")[18:23, 69:74, 139:144] = 0  # dimensions of the array begin at 1
        session.commit("a patch")

    def read() -> object:
        return zarr.open_array(repository.readonly_session("main").store, path="t", mode="r")[:]

    before = directory_bytes(place)
    patch()
    size = directory_bytes(place) - before
    yield Measurement("patches", "patch against bare Icechunk, bytes", ours / size, "×", detail=f"{size / 1e6:.2f} MB")
    seconds = [min(_processor_seconds(action) for _ in range(ROUNDS)) for action in (array.read, read)]
    detail = f"{seconds[0] * 1e3:.0f} against {seconds[1] * 1e3:.0f} ms"
    yield Measurement("patches", "full read against bare Icechunk", seconds[0] / seconds[1], "×", detail=detail)


def _patch(array: Array) -> None:
    """Inside one chunk."""
    array.write(np.zeros(PATCH, np.float32), at=(18, 70, 140))


def _processor_seconds(action: Callable[[], object]) -> float:
    start = time.process_time()
    action()
    return time.process_time() - start


def _measure_manifests(database: Database) -> Measurement:
    array = database.create("many", MANY_CHUNKS)
    array.append(np.ones((MANY_STEPS, 100, 200), np.float32))
    patch = np.zeros((1, 5, 5), np.float32)
    size = _write(array, lambda: array.write(patch, at=(45, 20, 20)), "manifests")
    what = "manifests of a patch among 18,000 chunks"
    return Measurement("patches", what, size / 1e3, "KB", 60, "at most")


def _measure_commits(database: Database, commits: int) -> Iterator[Measurement]:
    """How much longer the last tenth of many commits takes than the first."""
    array = database.create("committed", "<t: float32> [time=0:*, i=0:99:50]")
    values = np.ones((1, 100), np.float32)
    changes: dict[str, Callable[[int], object]] = {
        "appends": lambda _: array.append(values),
        "patches": lambda n: array.write(np.zeros((1, 5), np.float32), at=(n % commits, 10)),
    }
    for what, change in changes.items():
        seconds = [_processor_seconds(functools.partial(change, n)) for n in range(commits)]
        tenth = max(1, commits // 10)
        early, late = statistics.median(seconds[:tenth]), statistics.median(seconds[-tenth:])
        detail = f"medians of {tenth}: {early * 1e3:.0f}, {late * 1e3:.0f} ms"
        title = f"{commits:,} {what}, the last tenth against the first"
        yield Measurement("patches", title, late / early, "×", 1.3, "at most", detail)
