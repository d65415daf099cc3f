"""Rows of windows merged into rows of results: added, or the least or most of them taken."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy.typing as npt

from windrow.kernels.compiler.jit import BARE, bare, inlined, overload

Array = npt.NDArray[Any]

AT_ONCE = 5
"""Rows that are merged in one pass."""


class Adding(NamedTuple):
    """Windows are merged by adding them. What such a rule holds is where there is nothing; its type says the rest."""

    nothing: Any


class Least(NamedTuple):
    nothing: Any


class Most(NamedTuple):
    nothing: Any


Rule = Adding | Least | Most


def merged(rule: Rule, one: Any, other: Any) -> Any:
    """Two values as one; compiled code has a version for each rule."""
    if isinstance(rule, Adding):
        return one + other
    return min(one, other) if isinstance(rule, Least) else max(one, other)


@overload(merged, strict=False, jit_options={"forceinline": True, **BARE})
def _merged(rule: Any, one: Any, other: Any) -> Any:
    def added(rule: Any, one: Any, other: Any) -> Any:
        return one + other

    def least(rule: Any, one: Any, other: Any) -> Any:
        return one if one < other else other

    def most(rule: Any, one: Any, other: Any) -> Any:
        return one if one > other else other

    versions: dict[type, Any] = {Adding: added, Least: least, Most: most}
    return versions[rule.instance_class]


@bare
def merge_rows(rule: Rule, flat: Array, places: Array, met: int, fresh: bool, line: Array) -> None:
    """A row of results from the ``met`` rows at these places of ``flat``, and from itself unless it is ``fresh``.

    Several are merged at a time, for every pass writes the whole row. Adding 0 makes -0.0 a 0.0, or which of two equal
    zeros is found would be chance.
    """
    count = len(line)
    if fresh and met == 0:
        for x in range(count):
            line[x] = rule.nothing
    run = 0
    while run < met:
        some = (met - run - 1) % AT_ONCE + 1
        last = met - 1
        one, other = _row(flat, places[run], count), _row(flat, places[min(run + 1, last)], count)
        third, fourth = _row(flat, places[min(run + 2, last)], count), _row(flat, places[min(run + 3, last)], count)
        fifth = _row(flat, places[min(run + 4, last)], count)
        if some == 1:
            _merge_one(rule, fresh, one, line)
        elif some == 2:
            _merge_two(rule, fresh, one, other, line)
        elif some == 3:
            _merge_three(rule, fresh, one, other, third, line)
        elif some == 4:
            _merge_four(rule, fresh, one, other, third, fourth, line)
        else:
            _merge_five(rule, fresh, one, other, third, fourth, fifth, line)
        run += some
        fresh = False


@inlined
def _row(flat: Array, place: int, count: int) -> Array:
    return flat[place : place + count]


@bare
def _merge_one(rule: Rule, fresh: bool, a: Array, line: Array) -> None:
    if fresh:
        for x in range(len(line)):
            line[x] = a[x] + 0
    else:
        for x in range(len(line)):
            line[x] = merged(rule, line[x], a[x]) + 0


@bare
def _merge_two(rule: Rule, fresh: bool, a: Array, b: Array, line: Array) -> None:
    if fresh:
        for x in range(len(line)):
            line[x] = merged(rule, a[x], b[x]) + 0
    else:
        for x in range(len(line)):
            line[x] = merged(rule, line[x], merged(rule, a[x], b[x])) + 0


@bare
def _merge_three(rule: Rule, fresh: bool, a: Array, b: Array, c: Array, line: Array) -> None:
    if fresh:
        for x in range(len(line)):
            line[x] = merged(rule, merged(rule, a[x], b[x]), c[x]) + 0
    else:
        for x in range(len(line)):
            line[x] = merged(rule, merged(rule, line[x], a[x]), merged(rule, b[x], c[x])) + 0


@bare
def _merge_four(rule: Rule, fresh: bool, a: Array, b: Array, c: Array, d: Array, line: Array) -> None:
    if fresh:
        for x in range(len(line)):
            line[x] = merged(rule, merged(rule, a[x], b[x]), merged(rule, c[x], d[x])) + 0
    else:
        for x in range(len(line)):
            both = merged(rule, merged(rule, a[x], b[x]), merged(rule, c[x], d[x]))
            line[x] = merged(rule, line[x], both) + 0


@bare
def _merge_five(rule: Rule, fresh: bool, a: Array, b: Array, c: Array, d: Array, e: Array, line: Array) -> None:
    if fresh:
        for x in range(len(line)):
            both = merged(rule, merged(rule, a[x], b[x]), merged(rule, c[x], d[x]))
            line[x] = merged(rule, both, e[x]) + 0
    else:
        for x in range(len(line)):
            both = merged(rule, merged(rule, a[x], b[x]), merged(rule, c[x], d[x]))
            line[x] = merged(rule, both, merged(rule, line[x], e[x])) + 0
