"""Boxes written into dense arrays, chunk by chunk, against zarr's own writing of the same: byte for byte."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import windrow as wr
from windrow.api.array import Array
from windrow.storage.dense.snapshots import open_store

from .contents import as_blocks, positions, random_cells

SOME_TYPES = "a: float32, b: float64 null, c: int16, d: bool null, e: datetime null, f: string"


@st.composite
def arrays_and_writes(draw: st.DrawFn) -> Any:
    sides = [(draw(st.integers(-3, 3)), draw(st.integers(1, 7)), draw(st.integers(1, 4))) for _ in range(2)]
    grows = draw(st.booleans())
    ends = [lo + extent - 1 for lo, extent, _ in sides]
    tops = [str(ends[0]), "*" if grows else str(ends[1])]
    text = ", ".join(
        f"d{n}={lo}:{top}:{chunk}" for n, ((lo, _, chunk), top) in enumerate(zip(sides, tops, strict=True))
    )
    writes = []
    for _ in range(4):
        found = [sorted(draw(st.tuples(*[st.integers(lo, lo + extent - 1)] * 2))) for lo, extent, _ in sides]
        writes.append((wr.Box(*map(tuple, zip(*found, strict=True))), draw(st.integers(0, 1000)), draw(st.booleans())))
    return text, writes, draw(st.booleans())


def _chunks_of(array: Array) -> dict[str, bytes]:
    """Every document and chunk that an array's newest version has."""
    store = open_store(array.location().path, array.location().version)

    async def read() -> dict[str, bytes]:
        from zarr.core.buffer import default_buffer_prototype

        keys = [key async for key in store.list()]
        found = {key: await store.get(key, default_buffer_prototype()) for key in keys}
        return {key: value.to_bytes() for key, value in found.items() if value is not None}

    return asyncio.run(read())


@given(arrays_and_writes())
@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow])
def test_chunks_are_as_zarr_writes_them(problem: Any) -> None:
    """Whole chunks and parts of them, over the array's end, many of one value, and such as are all fill."""
    text, writes, transposed = problem
    with tempfile.TemporaryDirectory() as folder, wr.connect(folder, engine="local", progress=False) as database:
        arrays = [database.create(name, f"<{SOME_TYPES}> [{text}]") for name in ("ours", "zarrs")]
        for box, seed, is_fill in writes:
            cells = random_cells(arrays[0].schema, positions(box), seed)
            blocks = as_blocks(arrays[0].schema, box, cells)
            if is_fill:
                fills = {a.name: a.type.fill for a in arrays[0].schema.attributes}
                blocks = {name: np.full_like(values, fills.get(name, False)) for name, values in blocks.items()}
            if transposed:
                blocks = {name: np.asfortranarray(values) for name, values in blocks.items()}
            arrays[0].write(blocks, at=box.lo)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("windrow.storage.dense.blocks.layout_obstacle", lambda *_: "zarr is asked")
                arrays[1].write(blocks, at=box.lo)
            ours, zarrs = map(_chunks_of, arrays)
            assert ours == zarrs
            assert np.array_equal(arrays[0].chunks().bytes, arrays[1].chunks().bytes)


def test_times_that_are_all_missing_need_no_unit(tmp_path: Path) -> None:
    with wr.connect(tmp_path / "w", engine="local", progress=False) as database:
        array = database.create("A", "<d: datetime null> [i=1:3]")
        array.write({"d": np.full(3, np.datetime64("NaT"))})
        assert np.isnat(array.read()["d"].values).all()
