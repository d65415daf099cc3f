"""Orders and limits asked for from Python, as plans hold them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from windrow.errors import DataError
from windrow.language.expression import parse_expression
from windrow.plan.grouping.ordering import Ordered, OrderKey
from windrow.plan.nodes import Plan

_DIRECTED = re.compile(r"(?P<expression>.+?)\s+(?P<direction>asc|desc)\s*\Z", re.IGNORECASE | re.DOTALL)


def ordered(plan: Plan, keys: Sequence[str]) -> Plan:
    """The rows of a plan by keys such as ``"m desc"``."""
    if not keys:
        raise DataError("there is nothing to order by", hint='As in q.order_by("m desc")')
    return Ordered(plan, tuple(map(_key, keys)))


def _key(text: str) -> OrderKey:
    if not isinstance(text, str):
        raise DataError("what is ordered by is a text", got=repr(text), hint='As in q.order_by("m desc")')
    found = _DIRECTED.match(text)
    if found is None:
        return OrderKey(parse_expression(text))
    return OrderKey(parse_expression(found["expression"]), found["direction"].lower() == "desc")


def limited(plan: Plan, rows: int) -> Plan:
    """The first rows of a plan, in the order that it has."""
    made = Ordered(plan, (), rows)  # which looks at the number
    if not isinstance(plan, Ordered):
        return made
    return replace(plan, limit=rows if plan.limit is None else min(rows, plan.limit))
