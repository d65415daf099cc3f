"""Texts that are one query, for tests of plans."""

from __future__ import annotations

from windrow.language.parser import parse
from windrow.plan.nodes import Plan
from windrow.plan.statements import Query


def parse_query(text: str) -> Plan:
    """The plan of a query that stands alone."""
    statement = parse(text)
    assert isinstance(statement, Query)
    assert statement.into is None
    return statement.plan
