"""Parts: whole chunks in row groups, several parts when there is much, errors that name what is damaged."""

from __future__ import annotations

import itertools
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from windrow.errors import CorruptionError
from windrow.model.box import Box
from windrow.model.notation import parse_schema
from windrow.model.schema import CHUNK_COLUMN
from windrow.storage import part_writing
from windrow.storage.cells import to_stored
from windrow.storage.checksums import footer_checksum
from windrow.storage.footers import read_footer
from windrow.storage.part_writing import GROUP_CELLS, PartWriter
from windrow.storage.parts import PartReader
from windrow.storage.records import Part

SCHEMA = parse_schema("<v: int64> [x=0:*:1000]", sparse=True)[1].with_chunks()


def stored(first: int, last: int) -> pa.Table:
    x = np.arange(first, last)
    return to_stored(pa.table({"x": x, "v": -x}), x // 1000, SCHEMA)


def write(directory: Path, *tables: pa.Table) -> list[Part]:
    writer = PartWriter(str(directory), SCHEMA)
    for table in tables:
        writer.append(table)
    return writer.close()


def read(directory: Path, part: Part, box: Box | None = None) -> list[int]:
    values: list[int] = PartReader("S@1", str(directory), SCHEMA).read(part, box)["x"].to_pylist()
    return values


def test_row_groups_hold_whole_chunks(tmp_path: Path) -> None:
    (part,) = write(tmp_path, *(stored(start, start + 7_777) for start in range(0, 300_000, 7_777)))
    metadata = pq.ParquetFile(tmp_path / part.path).metadata
    assert metadata.num_row_groups > 1
    borders = [metadata.row_group(group).column(0).statistics for group in range(metadata.num_row_groups)]
    assert all(left.max < right.min for left, right in itertools.pairwise(borders))
    assert max(metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)) <= GROUP_CELLS
    assert part.cells == metadata.num_rows
    assert part.bytes == (tmp_path / part.path).stat().st_size
    assert read(tmp_path, part) == list(range(part.cells))


@pytest.mark.parametrize(
    ("distinct", "cells", "repays"),
    [(1, 30_000, True), (4_000, 30_000, True), (10**9, 30_000, False), (4_000, 3_000, False), (50, 3_000, True)],
)
def test_values_that_repeat_often_enough_get_a_dictionary(
    tmp_path: Path, distinct: int, cells: int, repays: bool
) -> None:
    values = np.random.default_rng(1).integers(0, distinct, cells)
    x = np.arange(cells)
    (part,) = write(tmp_path, to_stored(pa.table({"x": x, "v": values}), x // 1000, SCHEMA))
    encodings = pq.ParquetFile(tmp_path / part.path).metadata.row_group(0).column(2).encodings
    assert ("RLE_DICTIONARY" in encodings) is repays
    assert PartReader("S@1", str(tmp_path), SCHEMA).read(part)["v"].to_pylist() == values.tolist()


@pytest.mark.parametrize(
    ("values", "compression"),
    [
        (np.arange(5_000), "LZ4"),
        (np.random.default_rng(2).integers(-(2**62), 2**62, 5_000), "UNCOMPRESSED"),
        (np.random.default_rng(2).integers(0, 10, 5_000), "LZ4"),
        (np.full(3, 7), "LZ4"),
    ],
    ids=["compressible", "random", "by dictionary", "few"],
)
def test_what_lz4_makes_no_smaller_is_stored_as_it_is(tmp_path: Path, values: np.ndarray, compression: str) -> None:
    x = np.arange(len(values))
    (part,) = write(tmp_path, to_stored(pa.table({"x": x, "v": values}), x // 1000, SCHEMA))
    group = pq.ParquetFile(tmp_path / part.path).metadata.row_group(0)
    assert [group.column(number).compression for number in range(group.num_columns)] == ["LZ4", "LZ4", compression]
    assert PartReader("S@1", str(tmp_path), SCHEMA).read(part)["v"].to_pylist() == values.tolist()


def test_row_groups_that_follow_one_another_are_decoded_together(tmp_path: Path) -> None:
    (part,) = write(tmp_path, stored(0, 400_000))
    reader = PartReader("S@1", str(tmp_path), SCHEMA)
    groups = pq.ParquetFile(tmp_path / part.path).metadata.num_row_groups
    found = list(reader.masked_batches(part, None, ["x"]))
    assert 1 < len(found) < groups
    assert np.array_equal(np.concatenate([table["x"].to_numpy() for table, _ in found]), np.arange(400_000))
    box = Box((399_000,), (399_005,))
    (one,) = reader.masked_batches(part, box, ["x"])
    assert one[0].num_rows <= GROUP_CELLS
    assert one[1] is not None
    assert one[0]["x"].to_numpy()[one[1]].tolist() == list(range(399_000, 399_006))


@pytest.mark.parametrize("compression", ["zstd", "snappy", "none"])
def test_parts_of_other_compressions_and_row_groups_are_read(tmp_path: Path, compression: str) -> None:
    """As they were written before, and as anybody else may write them."""
    (part,) = write(tmp_path, stored(0, 5_000))
    path = tmp_path / part.path
    pq.write_table(pq.read_table(path), path, compression=compression, row_group_size=999, write_page_checksum=True)
    old = replace(part, checksum=footer_checksum(str(path)), bytes=path.stat().st_size)
    assert read(tmp_path, old) == list(range(5_000))
    assert read(tmp_path, old, Box((998,), (1001,))) == [998, 999, 1000, 1001]


def test_a_chunk_larger_than_a_row_group_is_split(tmp_path: Path) -> None:
    schema = parse_schema("<v: int64> [x=0:*:1000000]", sparse=True)[1].with_chunks()
    x = np.arange(3 * GROUP_CELLS)
    writer = PartWriter(str(tmp_path), schema)
    writer.append(to_stored(pa.table({"x": x, "v": x}), x // 1_000_000, schema))
    (part,) = writer.close()
    assert part.chunks is not None
    assert (part.chunks.ordinals.tolist(), part.chunks.cells.tolist()) == ([0], [3 * GROUP_CELLS])
    assert (part.chunks.lo.tolist(), part.chunks.hi.tolist()) == ([[0]], [[3 * GROUP_CELLS - 1]])


def test_much_becomes_several_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part_writing, "PART_BYTES", 100_000)
    written = write(tmp_path, stored(0, 400_000))
    assert len(written) > 1
    assert [value for part in written for value in read(tmp_path, part)] == list(range(400_000))
    ordinals = [part.chunks.ordinals for part in written if part.chunks is not None]
    assert all(left.max() < right.min() for left, right in itertools.pairwise(ordinals))


def test_a_box_reads_only_the_row_groups_it_needs(tmp_path: Path) -> None:
    (part,) = write(tmp_path, stored(0, 300_000))
    reader = PartReader("S@1", str(tmp_path), SCHEMA)
    assert read(tmp_path, part, Box((150_500,), (150_502,))) == [150_500, 150_501, 150_502]
    assert len(list(reader.batches(part, Box((150_500,), (150_502,))))) == 1
    assert read(tmp_path, part, Box((300_000,), (300_001,))) == []


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(places=st.sets(st.tuples(st.integers(0, 29), st.integers(0, 29)), min_size=1, max_size=60), data=st.data())
def test_the_row_groups_of_a_box_are_those_that_may_hold_its_cells(
    places: set[tuple[int, int]], data: st.DataObject, tmp_path: Path
) -> None:
    schema = parse_schema("<v: int64> [x=0:29:7, y=0:29:5]", sparse=True)[1].with_chunks()
    grid = schema.grid
    cells = sorted((grid.ordinal(grid.key_of(place)), *place) for place in places)
    columns = [np.array(column, np.int64) for column in zip(*cells, strict=True)]
    table = to_stored(pa.table({"x": columns[1], "y": columns[2], "v": columns[1]}), columns[0], schema)
    group_cells = data.draw(st.integers(1, 10))
    path = tmp_path / "part.parquet"
    pq.write_table(table, path, row_group_size=group_cells)
    lo = data.draw(st.tuples(st.integers(0, 29), st.integers(0, 29)))
    hi = data.draw(st.tuples(st.integers(lo[0], 29), st.integers(lo[1], 29)))
    box = Box(lo, hi)
    chosen = read_footer(str(path), footer_checksum(str(path)), 2).groups_touching(box, grid.ordinals_touching(box))
    groups = [cells[start : start + group_cells] for start in range(0, len(cells), group_cells)]
    touched = {grid.ordinal(key) for key in grid.keys_touching(box)}
    for number, group in enumerate(groups):
        ordinals, xs, ys = zip(*group, strict=True)
        reached = any(ordinals[0] <= ordinal <= ordinals[-1] for ordinal in touched)
        overlapping = min(xs) <= hi[0] and max(xs) >= lo[0] and min(ys) <= hi[1] and max(ys) >= lo[1]
        assert (number in chosen) == (reached and overlapping)


def test_a_footer_damaged_after_it_was_read_is_found(tmp_path: Path) -> None:
    (part,) = write(tmp_path, stored(0, 5_000))
    file = tmp_path / part.path
    whole = file.read_bytes()
    box = Box((10,), (12,))
    assert read(tmp_path, part, box) == [10, 11, 12]
    file.write_bytes(whole[:-20] + bytes([whole[-20] ^ 1]) + whole[-19:])
    os.utime(file, (1, 1))
    with pytest.raises(CorruptionError, match="footer"):
        read(tmp_path, part, box)
    file.write_bytes(whole)
    assert read(tmp_path, part, box) == [10, 11, 12]
    file.write_bytes(whole[:-1])
    with pytest.raises(CorruptionError, match="footer"):
        read(tmp_path, part, box)


def test_nothing_makes_no_part_and_an_abandoned_writer_leaves_none(tmp_path: Path) -> None:
    assert write(tmp_path, stored(0, 0)) == []
    writer = PartWriter(str(tmp_path), SCHEMA)
    writer.append(stored(0, 300_000))
    assert list(tmp_path.glob("*.parquet"))
    writer.abandon()
    assert not list(tmp_path.iterdir())


def test_a_damaged_page_is_found_and_named(tmp_path: Path) -> None:
    (part,) = write(tmp_path, stored(0, 200_000))
    file = tmp_path / part.path
    metadata = pq.ParquetFile(file).metadata
    group = next(g for g in range(metadata.num_row_groups) if metadata.row_group(g).column(0).statistics.max > 150)
    column = metadata.row_group(group).column(2)
    content = bytearray(file.read_bytes())
    middle = (column.dictionary_page_offset or column.data_page_offset) + column.total_compressed_size // 2
    content[middle] ^= 0xFF
    file.write_bytes(content)
    low = metadata.row_group(group).column(0).statistics.min
    with pytest.raises(CorruptionError, match=rf"S@1: chunks \({low},\)"):
        read(tmp_path, part)
    with pytest.raises(CorruptionError, match=rf"S@1: chunks \({low},\)"):  # also where several are decoded together
        list(PartReader("S@1", str(tmp_path), SCHEMA).masked_batches(part, None, ["v"]))
    assert read(tmp_path, part, Box((0,), (5,))) == [0, 1, 2, 3, 4, 5]  # other row groups are whole


def test_a_lost_part_is_named(tmp_path: Path) -> None:
    (part,) = write(tmp_path, stored(5_000, 6_500))
    (tmp_path / part.path).unlink()
    with pytest.raises(CorruptionError, match=r"chunks \(5,\) to \(6,\)"):
        read(tmp_path, part)
    assert CHUNK_COLUMN == "_chunk"
