"""Columns and conditions of dense arrays: on tiles, as Arrow has them, and worked out in plain Python."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import windrow as wr
from operations.test_dense_paths import CONDITIONS, FOLDED, NAMES, Problem, problems
from operations.test_sparse_rows import FAILING, OUTPUTS
from windrow.expressions import tiles
from windrow.operations.query import cellwise

Question = tuple[Problem, list[str]]


@st.composite
def questions(draw: st.DrawFn) -> Question:
    given = draw(problems(FOLDED))
    condition, meets = draw(st.sampled_from([CONDITIONS[0], *CONDITIONS, *FAILING]))
    asked = Problem(given.schema, given.shape, given.values, (), (), condition, meets, given.box)
    outputs = draw(st.lists(st.sampled_from(sorted(OUTPUTS)), min_size=1, max_size=4, unique=True))
    if "int8" in given.schema.split("m: ")[1]:  # twice which does not fit
        outputs = [one for one in outputs if one != "m * 2"] or ["f"]
    return asked, outputs


def text_of(problem: Problem, outputs: list[str]) -> str:
    listed = ", ".join(f"{one} as r{number}" for number, one in enumerate(outputs))
    return f"select {listed} {problem.text[problem.text.index('from A') :]}"


def rows_of(found: Any, ndim: int) -> list[tuple[Any, ...]]:
    """The cells of a result in the order of their coordinates, whichever form it has."""
    if isinstance(found, pa.Table):
        rows = zip(*(found.column(name).to_pylist() for name in found.column_names), strict=True)
        return sorted(rows, key=lambda row: row[:ndim])
    rows = []
    results = [name for name in found.data_vars if not name.endswith("__valid")]
    for place in itertools.product(*(range(found.sizes[name]) for name in NAMES[:ndim])):
        one = found.isel(dict(zip(NAMES, place, strict=False)))
        at = tuple(int(one[name]) for name in NAMES[:ndim])
        rows.append(at + tuple(_plain(one, name) for name in results))
    return rows


def _plain(one: Any, name: str) -> Any:
    value, present = one[name].item(), one.get(f"{name}__valid")
    return None if value != value or (present is not None and not bool(present)) else value


def expected_rows(problem: Problem, outputs: list[str]) -> list[tuple[Any, ...]]:
    names = NAMES[: len(problem.shape)]
    return [
        tuple(cell[name] for name in names) + tuple(OUTPUTS[one](cell) for one in outputs) for cell in problem.cells()
    ]


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[wr.Database]:
    with wr.connect(tmp_path_factory.mktemp("rows"), engine="local", progress=False, workers=2) as opened:
        yield opened


@pytest.fixture(autouse=True)
def _small_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiles, "TILE_CELLS", 5)


def check(database: wr.Database, question: Question) -> None:
    problem, outputs = question
    if "A" in database:
        database.drop("A")
    database.create("A", problem.schema).write(problem.values)
    query = database.query(text_of(problem, outputs))
    expected = repr(expected_rows(problem, outputs))
    assert repr(rows_of(query.compute(), len(problem.shape))) == expected
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cellwise, "tile_obstacle", lambda *_: "Arrow is asked for")
        assert repr(rows_of(query.compute(), len(problem.shape))) == expected


@given(questions())
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_cells_are_those_of_plain_python(database: wr.Database, question: Question) -> None:
    check(database, question)


@pytest.mark.slow
@given(questions())
@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
def test_many_questions(database: wr.Database, question: Question) -> None:
    check(database, question)
