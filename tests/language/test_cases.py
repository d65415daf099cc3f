"""Questions and answers: every file in ``cases`` is carried out from top to bottom on a new warehouse."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from windrow.errors import LanguageError
from windrow.expressions.functions import FUNCTIONS
from windrow.language.parser import parse
from windrow.plan.optimizer import RULES
from windrow.plan.specs import PARAMETERS
from windrow.plan.statements import Statement

from .answers import answer, cases

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


def test_every_statement_is_asked() -> None:
    asked = set()
    for path in FILES:
        for case in cases(path):
            try:
                asked.add(type(parse(case.statement)))
            except LanguageError:
                assert case.answer.startswith("error: ")
    assert asked == set(Statement.__subclasses__())


def test_every_function_and_aggregate_is_asked_for() -> None:
    text = "\n".join(case.statement for path in FILES for case in cases(path)).lower()
    assert [name for name in (*FUNCTIONS, *PARAMETERS) if f"{name}(" not in text] == []


def test_every_rule_is_used_somewhere() -> None:
    answers = "\n".join(case.answer for path in FILES for case in cases(path))
    assert [rule.name for rule in RULES if f"rule: {rule.name}" not in answers] == []


def test_aggregates_are_listed(connect: Callable[..., Any]) -> None:
    listed = connect().query("list aggregates").column("name").to_pylist()
    assert set(PARAMETERS) <= set(listed)  # and those that other tests registered


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
