"""What workers do with cells, wherever the borders of their batches fall."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from windrow.errors import DuplicateError
from windrow.model.notation import parse_schema
from windrow.operations.sparse import tasks as cell_tasks
from windrow.operations.sparse.insert import writable
from windrow.operations.sparse.tasks import CellsReceipt, WriteCells, gathered, refuse_duplicates
from windrow.storage.parts import PartReader

PLAIN = parse_schema("<v: int64> [x=0:9:3, y=0:9:4]", sparse=True)[1].with_chunks()
NUMBERED = parse_schema("<v: int64> [x=0:9:3, n=0:*:2]", sparse=True)[1].with_chunks()


def cut(rows: list[dict[str, int]], borders: list[int]) -> list[pa.RecordBatch]:
    """Rows as batches that end at the borders."""
    ends = sorted({min(border, len(rows)) for border in borders} | {0, len(rows)})
    pieces = [rows[start:stop] for start, stop in itertools.pairwise(ends)]
    return [pa.RecordBatch.from_pylist(piece) for piece in pieces if piece]


def read(directory: Path, schema: Any, receipt: CellsReceipt) -> list[dict[str, int]]:
    reader = PartReader("S@1", str(directory), schema)
    return [row for part in receipt.parts for row in reader.read(part).to_pylist()]


@pytest.fixture
def few_rows_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cell_tasks, "_ROWS_AT_ONCE", 1)


each_example_in_its_own_files = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
cells = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=12)
borders = st.lists(st.integers(0, 12), max_size=6)


@pytest.mark.usefixtures("few_rows_at_once")
@each_example_in_its_own_files
@given(cells, borders)
def test_twins_are_found_across_batches(tmp_path: Path, places: list[tuple[int, int]], at: list[int]) -> None:
    chunks = {place: (place[0] // 3, place[1] // 4) for place in places}
    rows = [
        {"x": x, "y": y, "v": number}
        for number, (x, y) in enumerate(sorted(places, key=lambda place: (chunks[place], place)))
    ]
    function = WriteCells(str(tmp_path), PLAIN, writable(PLAIN), "last")
    receipt = function(iter(cut(rows, at)))
    assert receipt.duplicates == len(places) - len(set(places))
    last = {(row["x"], row["y"]): row["v"] for row in rows}
    assert {(row["x"], row["y"]): row["v"] for row in read(tmp_path, PLAIN, receipt)} == last
    if receipt.duplicates:
        assert receipt.example in {place for place in places if places.count(place) > 1}
        with pytest.raises(DuplicateError, match=f"{receipt.duplicates} too many"):
            refuse_duplicates([receipt], PLAIN)
    else:
        refuse_duplicates([receipt], PLAIN)


@pytest.mark.usefixtures("few_rows_at_once")
@each_example_in_its_own_files
@given(st.lists(st.integers(0, 9), max_size=12), st.lists(st.integers(0, 9), max_size=12), borders)
def test_numbers_go_on_across_batches_and_inserts(
    tmp_path: Path, first: list[int], second: list[int], at: list[int]
) -> None:
    held: list[CellsReceipt] = []
    for places in (first, second):
        rows = [{"x": x, "v": number} for number, x in enumerate(sorted(places))]
        existing = tuple(part for receipt in held for part in receipt.parts)
        function = WriteCells(str(tmp_path), NUMBERED, writable(NUMBERED), "keep", existing, "S@1")
        held.append(function(iter(cut(rows, at))))
    found = [row for receipt in held for row in read(tmp_path, NUMBERED, receipt)]
    for x in range(10):
        numbers = sorted(row["n"] for row in found if row["x"] == x)
        assert numbers == list(range(first.count(x) + second.count(x)))
    assert [receipt.duplicates for receipt in held] == [len(first) - len(set(first)), len(second) - len(set(second))]


@given(st.lists(st.integers(0, 30), max_size=8))
def test_batches_are_gathered_in_order(sizes: list[int]) -> None:
    batches = [pa.record_batch({"v": pa.array(range(size), pa.int64())}) for size in sizes]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cell_tasks, "_ROWS_AT_ONCE", 25)
        tables = list(gathered(iter(batches)))
    assert all(table.num_rows >= 25 for table in tables[:-1])
    assert sum(table.num_rows for table in tables) == sum(sizes)
    assert all(table.num_rows for table in tables)
    joined = [value for table in tables for value in table["v"].to_pylist()]
    assert joined == [value for size in sizes for value in range(size)]


def test_a_refused_range_leaves_no_files(tmp_path: Path) -> None:
    function = WriteCells(str(tmp_path), PLAIN, writable(PLAIN), "error")
    with pytest.raises(Exception, match="dimension y"):
        function(iter(cut([{"x": 1, "y": 1, "v": 1}, {"x": 1, "y": 12, "v": 1}], [1])))
    assert not list(tmp_path.iterdir())
