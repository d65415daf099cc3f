"""Covering arrays: few rows of levels in which every two levels of different factors that can meet, meet."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]


@dataclass(frozen=True)
class Rule:
    """What the levels of some factors must satisfy to be had together."""

    factors: tuple[str, ...]
    test: Callable[..., bool]

    def holds(self, row: Mapping[str, Any]) -> bool:
        """Whether a row, which may lack levels still, does not break it."""
        if any(factor not in row for factor in self.factors):
            return True
        return self.test(*(row[factor] for factor in self.factors))


Pair = tuple[tuple[str, Any], tuple[str, Any]]


def pairs_of(row: Mapping[str, Any]) -> set[Pair]:
    """Every two levels of a row, factors in the row's order."""
    return set(itertools.combinations(row.items(), 2))


def possible_pairs(factors: Mapping[str, Sequence[Any]], rules: Sequence[Rule]) -> set[Pair]:
    """Every two levels that some possible row holds, whatever else it holds."""
    every = {
        ((first, a), (second, b))
        for first, second in itertools.combinations(factors, 2)
        for a, b in itertools.product(factors[first], factors[second])
    }
    return {pair for pair in every if _extended(dict(pair), factors, rules, set()) is not None}


def covering_rows(factors: Mapping[str, Sequence[Any]], rules: Sequence[Rule]) -> list[Row]:
    """Rows that hold every possible pair: each is begun from the first pair left, and filled greedily.

    The same for the same factors: there is no chance in it.
    """
    left = possible_pairs(factors, rules)
    rows = []
    for pair in sorted(left, key=repr):
        if pair not in left:
            continue
        row = _extended(dict(pair), factors, rules, left)
        assert row is not None
        rows.append(row)
        left -= pairs_of(row)
    return rows


def _extended(begun: Row, factors: Mapping[str, Sequence[Any]], rules: Sequence[Rule], wanted: set[Pair]) -> Row | None:
    """A possible row that holds these levels, and of those that are wanted as many as each next level can add."""

    order = {name: place for place, name in enumerate(factors)}

    def grown(row: Row, remaining: list[str]) -> Row | None:
        if not all(rule.holds(row) for rule in rules):
            return None
        if not remaining:
            return {name: row[name] for name in factors}
        factor, *rest = remaining
        levels = sorted(factors[factor], key=lambda level: -_gain(row, factor, level, order, wanted))
        for level in levels:
            found = grown(row | {factor: level}, rest)
            if found is not None:
                return found
        return None

    return grown(begun, [name for name in factors if name not in begun])


def _gain(row: Row, factor: str, level: Any, order: Mapping[str, int], wanted: set[Pair]) -> int:
    """How many wanted pairs a level makes with those that a row has."""
    mine = (factor, level)
    return sum(((other, mine) if order[other[0]] < order[factor] else (mine, other)) in wanted for other in row.items())
