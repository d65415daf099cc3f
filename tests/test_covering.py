"""The covering arrays of the tests cover what they say."""

from __future__ import annotations

import itertools
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from covering import Rule, covering_rows, pairs_of, possible_pairs


@given(st.lists(st.integers(1, 4), min_size=2, max_size=5), st.integers(0, 6))
def test_every_pair_that_can_be_is_there(sizes: list[int], banned: int) -> None:
    factors = {f"f{k}": list(range(size)) for k, size in enumerate(sizes)}

    def is_possible(row: dict[str, Any]) -> bool:
        return sum(row.values()) != banned

    rules = [Rule(tuple(factors), lambda *levels: sum(levels) != banned)]
    rows = covering_rows(factors, rules)
    assert all(is_possible(row) for row in rows)
    held = set().union(*(pairs_of(row) for row in rows)) if rows else set()
    every = [dict(zip(factors, levels, strict=True)) for levels in itertools.product(*factors.values())]
    meant = set().union(*(pairs_of(row) for row in every if is_possible(row)))
    assert held == meant == possible_pairs(factors, rules)


def test_rows_are_few_and_the_same_each_time() -> None:
    factors = {name: list(range(4)) for name in "abcdef"}
    rows = covering_rows(factors, [])
    assert rows == covering_rows(factors, [])
    assert 16 <= len(rows) <= 32
