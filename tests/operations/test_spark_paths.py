"""A sample of the random questions of the other suites, asked on Spark, against the same plain Python."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import windrow as wr
from operations import test_dense_paths as dense_paths
from operations import test_dense_rows as dense_rows
from operations import test_sparse_paths as sparse_paths
from operations import test_sparse_rows as sparse_rows
from operations.test_dense_paths import FOLDED, NAMES, RANKED, Problem, answer
from operations.totals_oracle import agrees, compute, group_cells
from windrow.storage import part_writing

pytestmark = pytest.mark.spark

Databases = tuple[wr.Database, wr.Database]
"""The same warehouse, asked in this process and on Spark."""


@pytest.fixture(scope="module")
def databases(tmp_path_factory: pytest.TempPathFactory, spark_session: Any) -> Iterator[Databases]:
    place: Path = tmp_path_factory.mktemp("spark") / "w"
    with (
        wr.connect(place, engine="local", progress=False, workers=2) as here,
        wr.connect(place, engine="spark", spark=spark_session, progress=False) as there,
    ):
        assert there.engine.goes_to_spark(1)  # however little is asked
        yield here, there


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several row groups and parts of a few cells, as they are written in this process."""
    monkeypatch.setattr(part_writing, "GROUP_CELLS", 4)
    monkeypatch.setattr(part_writing, "PART_BYTES", 2000)


QUESTIONS: dict[str, Any] = {
    "dense totals": dense_paths.problems(FOLDED),
    "dense ranks": dense_paths.problems(RANKED),
    "dense rows": dense_rows.questions(),
    "sparse totals": sparse_paths.problems(),
    "sparse ranks": sparse_paths.problems(sparse_paths.RANKS, 1),
    "sparse regrids": sparse_paths.regrids(),
    "sparse rows": sparse_rows.questions(),
}


def store(database: wr.Database, problem: Problem) -> wr.Array:
    if "A" in database:
        database.drop("A")
    if not isinstance(problem, sparse_paths.SparseProblem):
        array = database.create("A", problem.schema)
        array.write(problem.values)
        return array
    array = database.create("A", problem.schema, sparse=True)
    table = problem.table()
    for start in (0, 1):  # the parts of two inserts overlap
        array.insert(table.take(pa.array(np.arange(start, table.num_rows, 2))))
    array.delete("m = 100")
    return array


def check(databases: Databases, kind: str, question: Any, path: str) -> None:
    here, there = databases
    if kind.endswith("rows"):
        problem, outputs = question[0], question[1]
        array = store(here, problem)
        found = there.query(dense_rows.text_of(problem, outputs)).compute()
        if kind == "dense rows":
            assert repr(dense_rows.rows_of(found, len(problem.shape))) == repr(
                dense_rows.expected_rows(problem, outputs)
            )
        else:
            rows = list(zip(*(found.column(name).to_pylist() for name in found.column_names), strict=True))
            assert repr(rows) == repr(sparse_rows.expected_rows(problem, outputs, array))
        return
    store(here, question)
    keys = NAMES[: len(question.shape)] if kind == "sparse regrids" else question.groups
    found = ask(there, question, keys, path)
    if isinstance(found, tuple):  # a sum that is too large is so everywhere; no path may fail on its own
        expected = ask(here, question, keys, "blocks")
        assert isinstance(expected, tuple)
        assert found[0] == expected[0]
        return
    groups = group_cells(question.cells(), keys)
    if not keys:
        groups.setdefault((), [])
    assert groups.keys() <= found.keys()
    assert groups.keys() == found.keys() or (kind.startswith("dense") and not question.condition)
    for key, cells in groups.items():
        for asked, mine in zip(question.asked, found[key], strict=True):
            expected, within = compute(asked, cells)
            assert agrees(mine, expected, within), (asked.text, key, mine, expected)


def ask(database: wr.Database, question: Problem, keys: tuple[str, ...], path: str) -> Any:
    """The answer by a path, or by any where that one cannot."""

    class Keyed(type(question)):  # type: ignore[misc]
        """The question with the dimensions of its result as groups, whatever its text says."""

        text = question.text

    named = Keyed(question.schema, question.shape, question.values, question.asked, keys, question.condition)
    found = answer(database, named, path)
    refused = isinstance(found, tuple) and found[1].startswith("strategy")
    return answer(database, named, "auto") if refused else found


@st.composite
def samples(draw: st.DrawFn) -> tuple[str, Any, str]:
    kind = draw(st.sampled_from(sorted(QUESTIONS)))
    return kind, draw(QUESTIONS[kind]), draw(st.sampled_from(["fused", "ranks", "blocks"]))


@pytest.mark.parametrize("kind", sorted(QUESTIONS))
def test_a_few_questions_of_each_kind(databases: Databases, kind: str) -> None:
    @given(QUESTIONS[kind])
    @settings(max_examples=3, deadline=None, derandomize=True, phases=[Phase.generate], database=None)
    def ask_a_few(question: Any) -> None:
        check(databases, kind, question, "ranks" if kind == "dense ranks" else "fused")

    ask_a_few()


@pytest.mark.slow
@given(samples())
@settings(max_examples=40, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
def test_many_questions(databases: Databases, sample: tuple[str, Any, str]) -> None:
    check(databases, *sample)
