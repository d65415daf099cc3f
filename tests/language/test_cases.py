"""Questions and answers: every file in ``cases`` is carried out from top to bottom on a new warehouse."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import windrow as wr
from windrow.aggregates.registry import DEFINITIONS, SYNONYMS
from windrow.errors import LanguageError
from windrow.expressions.functions import FUNCTIONS
from windrow.expressions.nodes import Call, Node
from windrow.language.parser import parse
from windrow.model.window import LabelExtent
from windrow.plan.nodes import Plan
from windrow.plan.operators import Operated
from windrow.plan.rewriting import RULES
from windrow.plan.specs import Measure
from windrow.plan.statements import Query, Sql, Statement

from .answers import Case, answer, cases
from .examples import DESIGN, PAPERS

FILES = sorted((Path(__file__).parent / "cases").glob("*.txt"))


def labelled(database: Any) -> None:
    """T, which the language has no words to make: temperatures by day, latitude and longitude."""
    days = np.datetime64("2012-01-01") + np.arange(60)
    labels = {"time": days, "lat": [60.0, 30.0, 0.0, -30.0]}
    array = database.create("T", "<t: float32> [time=1:60:7, lat=0:3, lon=0:5:3]", labels=labels)
    time, lat, lon = np.meshgrid(np.arange(60), np.arange(4), np.arange(6), indexing="ij")
    array.write({"t": ((7 * time + 3 * lat + 5 * lon) % 11).astype(np.float32)})


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_answers_are_as_written(
    path: Path, connect: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    database = connect()
    if path.stem.startswith("labels"):
        labelled(database)
    for case in cases(path):
        assert answer(database, case.statement) == case.answer, f"{path.name}, line {case.line}: {case.statement}"


@pytest.mark.spark
def test_questions_of_every_kind_are_answered_alike_on_spark(
    spark_session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The arrays are made in this process, and the longest question of each kind is asked on Spark too."""
    monkeypatch.chdir(tmp_path)
    sample = set(longest_questions().values())
    assert any("time trailing '30 days'" in case.statement for _, case in sample)
    for path in FILES:
        warehouse = tmp_path / path.stem
        with (
            wr.connect(warehouse, engine="local", progress=False) as here,
            wr.connect(warehouse, engine="spark", spark=spark_session, progress=False) as there,
        ):
            if path.stem.startswith("labels"):
                labelled(here)
            for case in cases(path):
                if (path, case) in sample:
                    found = answer(there, case.statement)
                    assert found == case.answer, f"{path.name}, line {case.line}: {case.statement}"
                answer(here, case.statement)


def longest_questions() -> dict[Any, tuple[Path, Case]]:
    """A query that shows results for each set of steps, on each kind of result."""
    found: dict[Any, tuple[Path, Case]] = {}
    for path in FILES:
        for case in cases(path):
            if case.answer.startswith("error: ") or not isinstance(statement := parse(case.statement), Query):
                continue
            steps = frozenset(type(part).__name__ for part in parts(statement) if isinstance(part, Plan | LabelExtent))
            kind = steps, bool(re.match(r"\w+:", case.answer))
            if statement.into is None and len(str(case)) > len(str(found.get(kind, (None, ""))[1])):
                found[kind] = path, case
    return found


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_all_is_answered_alike_on_spark(
    path: Path, connect: Callable[..., Any], spark_session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    database = connect(engine="spark", spark=spark_session)
    if path.stem.startswith("labels"):
        labelled(database)
    for case in cases(path):
        assert answer(database, case.statement) == case.answer, f"{path.name}, line {case.line}: {case.statement}"


def answered() -> dict[Statement, str]:
    """What was asked and could be read, with its last answer."""
    found = {}
    for path in FILES:
        for case in cases(path):
            try:
                found[parse(case.statement)] = case.answer
            except LanguageError:
                assert case.answer.startswith("error: ")
    return found


def parts(whole: Any) -> Iterator[Any]:
    """A statement, the steps of its query, their expressions and aggregates, and all that these hold."""
    yield whole
    if isinstance(whole, tuple):
        below = whole
    else:
        below = tuple(getattr(whole, part.name) for part in fields(whole)) if is_dataclass(whole) else ()
    for part in below:
        yield from parts(part)


def test_every_statement_is_asked() -> None:
    # SQL is another language, with tests of its own (tests/sql, tests/console/test_sql.py).
    assert {type(statement) for statement in answered()} == set(Statement.__subclasses__()) - {Sql}


def test_every_step_function_and_aggregate_is_asked_for_and_answered() -> None:
    found = [part for statement, text in answered().items() if "error:" not in text for part in parts(statement)]
    # Operators are users' own: tests/plan/test_operators.py.
    assert set(Plan.__subclasses__()) - {type(part) for part in found} - {Operated} == set()
    called = {part.function for part in found if isinstance(part, Call)}
    assert set(FUNCTIONS) - called == set()
    assert set(DEFINITIONS) - {part.function for part in found if isinstance(part, Measure)} == set()


def test_every_kind_of_expression_is_asked_for_and_answered() -> None:
    whole = [statement for statement, text in answered().items() if "error:" not in text]
    found = {type(part).__name__ for statement in whole for part in parts(statement)}
    # A label is what binding makes of a dimension's name: no text holds it.
    assert {kind.__name__ for kind in Node.__subclasses__()} - found == {"Label"}


def test_what_the_design_and_the_papers_print_is_asked() -> None:
    asked = answered()
    elsewhere = {"list aggregates", "import 'jra55.grib2' into T"}  # below, and a format of its own
    assert [text for text in DESIGN + PAPERS if parse(text) not in asked and text not in elsewhere] == []


def test_every_rule_is_used_somewhere() -> None:
    answers = "\n".join(case.answer for path in FILES for case in cases(path))
    assert [rule.name for rule in RULES if f"rule: {rule.name}" not in answers] == []


def test_aggregates_are_listed(connect: Callable[..., Any]) -> None:
    found = connect().query("list aggregates")
    listed = found.column("name").to_pylist()
    assert {*DEFINITIONS, *SYNONYMS} <= set(listed)  # and those that other tests registered
    row = found.to_pylist()[listed.index("quantile")]
    assert (row["usage"], row["gives"]) == ("quantile(x, q)", "another name of quantile_index")


def test_a_failed_statement_changes_nothing(connect: Callable[..., Any]) -> None:
    database = connect()
    database.query("create A [i=1:3] <a: int64>")
    database.query("load A 1 2 3")
    for statement in ("select 1 / (a - 2) as c from A into B", "update A set a = 1 // (a - 2)"):
        assert answer(database, statement).startswith("error: division by zero")
    assert "B" not in database
    assert database.array("A").version == 1
    assert answer(database, "select A") == "a: 1 2 3"


def test_attributes_keep_what_is_known_of_them(connect: Callable[..., Any], tmp_path: Path) -> None:
    database = connect()
    database.create("A", "<a: float64> [i=1:2]", metadata={"a": {"units": "K"}}).write({"a": np.array([1.0, 2.0])})
    query = database.query("select a, a as c, a * 2 as d from A where i = 1")
    found = query.compute()
    assert [found[name].attrs for name in ("a", "c", "d")] == [{"units": "K"}, {"units": "K"}, {}]
    query.store("B")
    assert database.array("B").read()["c"].attrs == {"units": "K"}
    database.query(f"save select a from A to '{tmp_path}/a.nc'")
    database.query(f"import '{tmp_path}/a.nc' into C")
    assert database.array("C").read()["a"].attrs == {"units": "K"}
