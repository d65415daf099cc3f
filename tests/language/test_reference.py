"""The reference of the language: its statements are statements, and it has every one of them, and every function."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from windrow.aggregates.registry import DEFINITIONS
from windrow.expressions.functions import FUNCTIONS
from windrow.language.parser import StatementSyntaxError, parse
from windrow.plan.names import KEYWORDS
from windrow.plan.nodes import Plan
from windrow.plan.operators import Operated
from windrow.plan.printing import to_text
from windrow.plan.statements import Sql, Statement

from .scripts import Parsed, parse_script

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "language.md").read_text()
BLOCKS = re.findall(r"^```wql\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def parsed() -> list[Parsed]:
    return [one for block in BLOCKS for one in parse_script(block)]


def test_its_statements_are_statements() -> None:
    for one in parsed():
        assert parse(to_text(one.statement)) == one.statement


def test_it_has_every_statement() -> None:
    assert {type(one.statement) for one in parsed()} == set(Statement.__subclasses__()) - {Sql}  # docs/sql.md


def test_it_has_every_step_of_a_query() -> None:
    plans = [getattr(one.statement, "plan", None) for one in parsed()]
    shown = {type(step) for plan in plans if plan is not None for step in plan.walk()}
    assert shown == set(Plan.__subclasses__()) - {Operated}  # users' own: docs/windows.md


def test_it_has_every_function_and_aggregate() -> None:
    codes = set(re.findall(r"`([^`\n]+)`", TEXT))
    assert {function.usage for function in FUNCTIONS.values()} - codes == set()
    assert {found.usage() for found in DEFINITIONS.values()} - codes == set()


def test_it_uses_every_keyword() -> None:
    words = set(re.findall(r"[a-z]+", TEXT.lower()))
    assert KEYWORDS - words - {"analyse", "centered", "neighbors"} == set()


def test_forms_are_the_same_as_the_selects_beside_them() -> None:
    rows = re.findall(r"^\| `(\w+\(.*\))` \| `(select .*)` \|$", TEXT, re.MULTILINE)
    assert len(rows) == 7
    for form, select in rows:
        concrete = [text.replace("condition", "v > 3") for text in (form, select)]
        assert parse(concrete[0]) == parse(concrete[1])


def test_the_mistake_it_shows_is_what_is_said() -> None:
    with pytest.raises(StatementSyntaxError) as caught:
        parse("select a form A")
    assert str(caught.value) in TEXT
