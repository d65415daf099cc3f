"""Boxes of dense arrays, read chunk by chunk, against zarr's own reading of the same store."""

from __future__ import annotations

import tempfile
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import windrow as wr
from windrow.storage.dense import chunks

from .contents import EVERY_TYPE, as_blocks, positions, random_cells


@st.composite
def arrays_and_boxes(draw: st.DrawFn) -> Any:
    sides = [(draw(st.integers(-3, 3)), draw(st.integers(1, 7)), draw(st.integers(1, 4))) for _ in range(2)]
    text = ", ".join(f"d{n}={lo}:{lo + extent - 1}:{chunk}" for n, (lo, extent, chunk) in enumerate(sides))
    boxes = []
    for _ in range(4):
        ends = [sorted(draw(st.tuples(*[st.integers(lo, lo + extent - 1)] * 2))) for lo, extent, _ in sides]
        boxes.append(wr.Box(tuple(end[0] for end in ends), tuple(end[1] for end in ends)))
    return text, boxes, draw(st.integers(0, 1000)), draw(st.booleans())


@given(arrays_and_boxes())
@settings(max_examples=10, suppress_health_check=[HealthCheck.too_slow])
def test_boxes_are_as_zarr_reads_them(problem: Any) -> None:
    """On one thread and on several; the last chunks of a side are shorter, and some are never written."""
    text, boxes, seed, on_threads = problem
    with tempfile.TemporaryDirectory() as folder, wr.connect(folder, engine="local", progress=False) as database:
        array = database.create("A", f"<{EVERY_TYPE}> [{text}]")
        cells = random_cells(array.schema, positions(boxes[0]), seed)
        array.write(as_blocks(array.schema, boxes[0], cells), at=boxes[0].lo)
        for box in boxes:
            cells_of = {f"d{axis}": ends for axis, ends in enumerate(zip(box.lo, box.hi, strict=True))}
            with pytest.MonkeyPatch.context() as patch:
                if on_threads:
                    patch.setattr(chunks, "WORTH_THREADS", 0)
                    patch.setattr(chunks, "_CORES", 3)
                found = array.read(**cells_of)
                patch.setattr("windrow.storage.dense.snapshots.layout_obstacle", lambda *_: "zarr is asked")
                wanted = array.read(**cells_of)
            assert found.identical(wanted)


def test_a_damaged_chunk_is_named_by_whoever_reads_it_on_many_threads(local: Any, monkeypatch: Any) -> None:
    array = local.create("A", "<v: int64> [i=0:8191:1024]")
    array.write({"v": np.random.default_rng(1).integers(0, 2**60, 8192)})
    files = sorted(Path(array.location().path, "chunks").rglob("*"), key=lambda file: file.stat().st_size)
    large = [file for file in files if file.is_file()]
    content = bytearray(large[-1].read_bytes())
    content[len(content) // 2] ^= 0xFF
    large[-1].write_bytes(content)
    monkeypatch.setattr(chunks, "WORTH_THREADS", 0)
    with pytest.raises(wr.CorruptionError, match="chunk"):
        array.read()


def test_a_chunk_that_was_taken_is_not_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slower thread asks ahead over places that a faster one is done with."""
    asked: list[int] = []
    done: Future[Any] = Future()
    done.set_result(None)

    def get(_: Any, key: int) -> Future[Any]:
        asked.append(key)
        return done

    monkeypatch.setattr(chunks, "get_chunk", get)
    monkeypatch.setattr(chunks, "decode", lambda stored, encoded, into: into)
    requests = chunks.ChunkRequests({"v": None}, range(4), lambda *_: wr.Error("damaged"))  # type: ignore[dict-item,arg-type]
    for place in (1, 3, 0, 2):
        requests.ask(place, place + 4)
        requests.take(place, _Nowhere())
    assert sorted(asked) == [0, 1, 2, 3]


class _Nowhere:
    def place(self, variable: str, stored: Any) -> Any:
        return None


def test_what_one_thread_forgets_another_may_still_take(local: Any) -> None:
    """After a failure a slower thread goes on until it is ended: the failure is told, not that chunks are gone."""
    array = local.create("A", "<v: int64> [i=0:8191:1024]")
    values = np.arange(8192)
    array.write({"v": values})
    requests = array._snapshot().requests(["v"], [(place,) for place in range(8)])
    requests.ask(0, 8)
    requests.forget()
    taken = requests.take(5, chunks.ChunkBuffers())["v"]
    assert np.array_equal(taken, values[5 * 1024 : 6 * 1024])
