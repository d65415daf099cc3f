"""Every plan and statement prints as text that parses to an equal one."""

from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import given, settings

from parsing import parse_query
from windrow.language.parser import parse
from windrow.plan.nodes import Plan
from windrow.plan.printing import to_text
from windrow.plan.statements import Statement

from .plans import any_statement, plans


@settings(max_examples=300)
@given(plans)
def test_plans_round_trip(plan: Plan) -> None:
    assert parse_query(to_text(plan)) == plan
    assert str(plan) == to_text(plan)


@settings(max_examples=300)
@given(any_statement)
def test_statements_round_trip(statement: Statement) -> None:
    text = to_text(statement)
    assert parse(text) == statement
    assert parse(text + ";") == statement
    assert to_text(parse(text)) == text


@given(any_statement)
def test_statements_travel(statement: Statement) -> None:
    """They are keys, go to workers, and are kept in the catalog as text."""
    assert pickle.loads(pickle.dumps(statement)) == statement
    assert copy.deepcopy(statement) == statement
    assert hash(parse(str(statement))) == hash(statement)


@pytest.mark.slow
@settings(max_examples=5000)
@given(any_statement)
def test_many_statements_round_trip(statement: Statement) -> None:
    assert parse(to_text(statement)) == statement
