"""Files are decoded in a process apart, with limits on time, memory and what a file may claim."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import psutil
import pyarrow as pa
import pytest
import xarray as xr

import windrow as wr
from windrow.errors import DataError, Error, FileFormatError
from windrow.formats import apart
from windrow.formats.apart import call_apart, stream_apart
from windrow.formats.limits import Limits, limits_now

# What the child is asked to do; it imports this module by its path.


def hold(seconds: float) -> None:
    """Hang as HDF5 does: in C, with Python's lock held, so that no thread could stop it."""
    ctypes.PyDLL(None).usleep(int(seconds * 1e6))


def read_memory(address: int) -> Any:
    return ctypes.string_at(address)


def allocate(size: int) -> int:
    return len(bytearray(size))


def fail(text: str) -> None:
    raise RuntimeError(f"{text}\nand more")


def process() -> int:
    return os.getpid()


def count(rows: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, rows, 1000):
        yield pa.record_batch({"x": np.arange(start, min(rows, start + 1000))})


def endless(rows: int) -> Iterator[pa.RecordBatch]:
    yield from count(rows)
    hold(100)


@pytest.fixture(autouse=True, scope="module")
def importable() -> Iterator[None]:
    """The child must find this module, under a name that needs no knowledge of pytest's."""
    name = Path(__file__).stem
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parent))
        patch.setitem(sys.modules, name, sys.modules[__name__])
        for function in (hold, read_memory, allocate, fail, process, count, endless):
            patch.setattr(function, "__module__", name)
        apart._children.end()  # those that were started before know another path
        yield
        apart._children.end()


def test_what_never_ends_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINDROW_FILE_SECONDS", "0.5")
    ended = call_apart("x", process)
    with pytest.raises(FileFormatError, match=r"reading bad\.nc took more than 0\.5 seconds.*WINDROW_FILE_SECONDS"):
        call_apart("bad.nc", hold, 100.0)
    assert not psutil.pid_exists(ended)
    assert call_apart("good.nc", process) != ended


def test_a_child_is_used_again_and_ended_with_its_parent() -> None:
    assert call_apart("x", process) == call_apart("x", process)
    program = f"import windrow.formats.apart as a, os; print(a.call_apart('x', os.getpid)); {'{}'}"
    for ending in ("", "os.kill(os.getpid(), 9)"):
        ran = subprocess.run([sys.executable, "-c", program.format(ending)], capture_output=True, text=True)
        child = int(ran.stdout)
        for _ in range(200):
            if not psutil.pid_exists(child):
                break
            time.sleep(0.05)
        assert not psutil.pid_exists(child)


def test_what_breaks_down_is_said_to_be_damaged() -> None:
    with pytest.raises(FileFormatError, match=r"bad\.nc.*damaged.*SIGSEGV"):
        call_apart("bad.nc", read_memory, 1)
    with pytest.raises(FileFormatError, match="RuntimeError: why"):
        call_apart("bad.nc", fail, "why")
    assert call_apart("x", process)


def test_memory_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINDROW_FILE_MEMORY", "1GB")
    with pytest.raises(FileFormatError, match="memory"):
        call_apart("bad.nc", allocate, 2**31)
    assert call_apart("x", allocate, 2**20) == 2**20
    monkeypatch.setenv("WINDROW_FILE_MEMORY", "3GB")
    assert call_apart("x", allocate, 2**31) == 2**31


def test_rows_come_in_order_and_one_batch_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [value for batch in stream_apart("x", count, 10_500) for value in batch.column(0).to_pylist()]
    assert found == list(range(10_500))
    monkeypatch.setenv("WINDROW_FILE_SECONDS", "0.5")
    stream = stream_apart("bad.csv", endless, 2000)
    assert [next(stream).num_rows, next(stream).num_rows] == [1000, 1000]
    with pytest.raises(FileFormatError, match=r"bad\.csv took more"):
        next(stream)
    unfinished = stream_apart("x", count, 10_000)
    next(unfinished)
    unfinished.close()
    assert len(list(stream_apart("x", count, 3000))) == 3


def test_threads_have_children_of_their_own() -> None:
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda number: call_apart("x", allocate, number), range(200)))
    assert found == list(range(200))


def test_an_interrupted_request_costs_its_child_and_nothing_else() -> None:
    program = (
        "import signal, windrow.formats.apart as a, time, os\n"
        "first = a.call_apart('x', os.getpid)\n"
        "signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))\n"
        "signal.setitimer(signal.ITIMER_REAL, 1)\n"
        "try: a.call_apart('x', time.sleep, 100)\n"
        "except KeyboardInterrupt: print('interrupted')\n"
        "print(a.call_apart('x', os.getpid) != first)\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100)
    assert ran.stdout.split() == ["interrupted", "True"], ran.stderr
    assert ran.returncode != -signal.SIGKILL


@pytest.mark.parametrize("stated", ["", "8GB", "512 MB", "1073741824"])
def test_limits_are_stated_in_the_environment(stated: str) -> None:
    assert limits_now({"WINDROW_FILE_MEMORY": stated, "WINDROW_FILE_SECONDS": "600"}).seconds == 600
    assert limits_now({"WINDROW_FILE_MEMORY": stated}).memory >= 2**29


@pytest.mark.parametrize(
    "stated",
    [{"WINDROW_FILE_SECONDS": text} for text in ("soon", "0", "-1", "nan", "inf")]
    + [{"WINDROW_FILE_MEMORY": text} for text in ("much", "-1GB", "1", "GB", "1.5TBs")],
    ids=str,
)
def test_limits_that_are_none(stated: dict[str, str]) -> None:
    with pytest.raises(DataError, match="As in"):
        limits_now(stated)


# Files that claim too much


def test_a_zarr_of_petabytes(tmp_path: Path) -> None:
    for name, changes in {
        "shape": {"shape": [2**20, 2**40]},
        "chunk": {"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2**20, 2**20]}}},
        "text": {
            "data_type": {"name": "fixed_length_utf32", "configuration": {"length_bytes": 2**34}},
            "fill_value": "",
        },
    }.items():
        path = tmp_path / f"{name}.zarr"
        xr.Dataset({"t": (("x", "y"), np.ones((8, 6)))}).to_zarr(
            path, consolidated=False, encoding={"t": {"compressors": None}}
        )
        document = path / "t" / "zarr.json"
        document.write_text(json.dumps(json.loads(document.read_text()) | changes))
        refuse(path)


def test_labels_of_petabytes(tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    xr.Dataset({"t": (("x",), np.ones(8))}, {"x": np.arange(8.0)}).to_zarr(path, consolidated=False)
    for name in ("t", "x"):
        document = path / name / "zarr.json"
        document.write_text(json.dumps(json.loads(document.read_text()) | {"shape": [2**46]}))
    refuse(path)


def test_netcdf_of_petabytes(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "shape.nc", "w") as file:
        file.create_dataset("t", (2**20, 2**40), "f8", chunks=(8, 8))
    with h5py.File(tmp_path / "chunk.nc", "w") as file:
        file.create_dataset("t", (2**20, 2**12), "i1", chunks=(2**20, 2**11), compression="gzip")
    with h5py.File(tmp_path / "text.nc", "w") as file:
        file.create_dataset("t", (8,), h5py.string_dtype(length=2**31 - 2), chunks=(1,), compression="gzip")
    for name in ("shape", "chunk", "text"):
        refuse(tmp_path / f"{name}.nc")


def refuse(path: Path) -> None:
    with wr.connect(path.parent / "warehouse", engine="local", progress=False) as database:
        with pytest.raises(Error, match=r"claims|memory|bytes|2\^62"):
            database.import_file(path, "A")
        assert "A" not in database
    assert peak() < 2 * 2**30


def peak() -> int:
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def test_a_limit_travels_with_the_request() -> None:
    tight = Limits(0.5, 2**30)
    with pytest.raises(FileFormatError, match=r"0\.5 seconds"):
        call_apart("x", hold, 100.0, limits=tight)
