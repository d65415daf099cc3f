"""Rows of sparse arrays as they are stored: by chunk, then coordinate; by tiles, by Arrow and in Python the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import windrow as wr
from operations.test_dense_paths import CONDITIONS, NAMES
from operations.test_sparse_paths import SparseProblem, problems
from operations.totals_oracle import Cell
from windrow.operations.query.bound_query import CellsQuery
from windrow.operations.query.fused.sparse_rows import SparseRows, share_parts
from windrow.storage import part_writing

OUTPUTS: dict[str, Any] = {
    "f": lambda cell: cell["f"],
    "n": lambda cell: cell["n"],
    "m * 2": lambda cell: cell["m"] * 2,
    "i": lambda cell: cell["i"],
    "f * 1.8 - g": lambda cell: _number(cell["f"], cell["g"], lambda f, g: float(f) * 1.8 - float(g)),
    "-g + 0.5": lambda cell: _number(cell["g"], 0.5, lambda g, half: -g + half),
    "coalesce(g, 7.5)": lambda cell: 7.5 if cell["g"] is None else cell["g"],
}
FAILING: list[tuple[str, Any]] = [
    ("m <> 0 and 10 // m > 1", lambda c: c["m"] != 0 and 10 // c["m"] > 1),
    ("abs(f) < 2", lambda c: c["f"] is not None and abs(c["f"]) < 2),
]


def _number(one: Any, other: Any, function: Any) -> Any:
    if one is None or other is None:
        return None
    found = function(one, other)
    return None if found != found else found


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[wr.Database]:
    with wr.connect(tmp_path_factory.mktemp("rows"), engine="local", progress=False, workers=2) as opened:
        yield opened


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part_writing, "GROUP_CELLS", 4)
    monkeypatch.setattr(part_writing, "PART_BYTES", 2000)


def expected_rows(problem: SparseProblem, outputs: list[str], array: wr.Array) -> list[tuple[Any, ...]]:
    names = NAMES[: len(problem.shape)]
    grid = array.schema.grid

    def place(cell: Cell) -> tuple[Any, ...]:
        at = tuple(cell[name] for name in names)
        return (*grid.key_of(at), *at)

    return [
        tuple(cell[name] for name in names) + tuple(OUTPUTS[one](cell) for one in outputs)
        for cell in sorted(problem.cells(), key=place)
    ]


def check(database: wr.Database, problem: SparseProblem, outputs: list[str], batches: int) -> None:
    if "A" in database:
        database.drop("A")
    array = database.create("A", problem.schema, sparse=True)
    table = problem.table()
    for number in range(batches):  # parts of later batches overlap those of earlier ones
        array.insert(table.take(pa.array(np.arange(number, table.num_rows, batches))))
    array.delete("m = 100")
    listed = ", ".join(f"{one} as r{number}" for number, one in enumerate(outputs))
    query = database.query(f"select {listed} {problem.text[problem.text.index('from A') :]}")
    found = query.compute()
    rows = list(zip(*(found.column(name).to_pylist() for name in found.column_names), strict=True))
    expected = expected_rows(problem, outputs, array)
    assert repr(rows) == repr(expected)
    bound = query.bind()
    assert isinstance(bound, CellsQuery)
    ordered = bound.preview(bound.box)  # box by box, by Arrow alone
    assert repr(sorted(rows, key=lambda row: row[: len(problem.shape)])) == repr(
        list(zip(*(ordered.column(name).to_pylist() for name in ordered.column_names), strict=True))
    )
    assert found.schema == ordered.schema


@st.composite
def questions(draw: st.DrawFn) -> tuple[SparseProblem, list[str], int]:
    problem = draw(problems())
    condition, meets = draw(st.sampled_from([*CONDITIONS, *FAILING]))
    asked = SparseProblem(problem.schema, problem.shape, problem.values, (), (), condition, meets, problem.box)
    outputs = draw(st.lists(st.sampled_from(sorted(OUTPUTS)), min_size=1, max_size=4, unique=True))
    if "int8" in problem.schema.split("m: ")[1]:  # twice which does not fit
        outputs = [one for one in outputs if one != "m * 2"] or ["f"]
    return asked, outputs, draw(st.integers(1, 3))


@given(questions())
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
def test_rows_are_those_of_plain_python_in_stored_order(
    database: wr.Database, question: tuple[SparseProblem, list[str], int]
) -> None:
    check(database, *question)


@pytest.mark.slow
@given(questions())
@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
def test_many_questions(database: wr.Database, question: tuple[SparseProblem, list[str], int]) -> None:
    check(database, *question)


def test_read_gives_coordinate_order_and_a_query_stored_order(database: wr.Database) -> None:
    array = database.create("R", "<v: int64> [x=0:9:5, y=0:9:5]", sparse=True)
    x, y = np.divmod(np.arange(100), 10)
    array.insert(pa.table({"x": x, "y": y, "v": x * 10 + y}))
    assert array.read()["v"].to_pylist() == list(range(100))
    assert array.read(x=(0, 8))["v"].to_pylist() == list(range(90))
    rows = database.query("select v from R where v >= 0").compute()["v"].to_pylist()
    assert rows[:10] == [0, 1, 2, 3, 4, 10, 11, 12, 13, 14]
    assert rows == sorted(rows, key=lambda v: (v // 50, v % 10 // 5, v))
    ordered = database.query("select v from R where v >= 0 order by v desc").compute()["v"].to_pylist()
    assert ordered == list(range(99, -1, -1))


def test_results_that_do_not_fit_are_refused(database: wr.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    array = database.create("M", "<v: float64> [x=0:99999]", sparse=True)
    monkeypatch.setattr(part_writing, "GROUP_CELLS", 65_536)
    monkeypatch.setattr(part_writing, "PART_BYTES", 2**23)
    array.insert(pa.table({"x": np.arange(100_000), "v": np.random.default_rng(1).random(100_000)}))
    monkeypatch.setattr(database.engine, "memory", 2**20)
    with pytest.raises(wr.MemoryLimitError, match="the result needs about"):
        database.query("select v * 2.0 as r from M").compute()
    assert database.query("select v from M where v > 2").compute().num_rows == 0


def test_a_part_that_no_worker_can_hold_is_read_box_by_box(
    database: wr.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    array = database.create("B", "<v: int64> [x=0:9:5, y=0:9:5]", sparse=True)
    x, y = np.divmod(np.arange(100), 10)
    array.insert(pa.table({"x": x, "y": y, "v": x * 10 + y}))
    query = database.query("select v * 2.0 as r from B where v <> 7")
    expected = query.compute()
    monkeypatch.setattr(SparseRows, "can_run", lambda *_: False)
    assert query.compute().equals(expected)


def test_parts_that_overlap_are_together() -> None:
    def part(first: int, last: int) -> Any:
        from windrow.model.box import Box
        from windrow.storage.records import Part

        return Part(f"part-{first}-{last}.parquet", 1, 1, 1, Box((0,), (1,)), first=first, last=last)

    given = [part(7, 9), part(0, 3), part(4, 4), part(2, 3), part(9, 12), part(13, 13)]
    found = [[(one.first, one.last) for one in together] for together in share_parts(given)]
    assert found == [[(0, 3), (2, 3)], [(4, 4)], [(7, 9), (9, 12)], [(13, 13)]]
    assert share_parts([]) == []
