"""States against exact arithmetic: values come and go, and results stay within the rule or ask to be computed anew."""

from __future__ import annotations

import functools
import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import window_oracle as oracle
from windrow.aggregates.registry import DEFINITIONS
from windrow.aggregates.states.rule import State
from windrow.aggregates.states.sums import for_types
from windrow.errors import DataError
from windrow.model.types import TYPES

SUMS = ("sum", "avg", "var", "std", "var_pop", "std_pop", "skew", "kurtosis")
PAIRS = ("wavg", "covar", "covar_pop", "corr")
EXTREMES = ("min", "max", "range")
OFTEN = ("sum", "var", "kurtosis", "corr")
MOST_OFTEN = [name if name in OFTEN else pytest.param(name, marks=pytest.mark.slow) for name in (*SUMS, *PAIRS)]
"""One of each kind of state with every run; the others are made of the same parts."""


def rule_of(name: str, kind: str = "float64") -> Any:
    rule = for_types(DEFINITIONS[name].state, [TYPES[kind]])
    assert rule is not None
    return rule


def state_of(rule: Any, *arguments: Any) -> State:
    return rule.of_values([np.array([value], dtype=getattr(value, "dtype", None)) for value in arguments])


def expected(name: str, values: list[Any]) -> Any:
    if name in PAIRS:
        return oracle.of_pairs(name, values)
    return oracle.aggregate(name, None, values, len(values))


def tolerance(name: str, values: list[Any]) -> float:
    """How far a result may be off: SPEC section 1."""
    if name in PAIRS:
        xs, ys = [abs(Fraction(x)) for x, _ in values], [abs(Fraction(y)) for _, y in values]
        if name == "wavg":
            weights = abs(sum(Fraction(y) for _, y in values))
            return 1e-12 * float(sum(x * y for x, y in zip(xs, ys, strict=True)) / weights) if weights else 0.0
        if name == "corr":
            return 1e-8
        return 1e-9 * math.sqrt(float(sum(x * x for x in xs))) * math.sqrt(float(sum(y * y for y in ys)))
    sizes = [abs(Fraction(value)) for value in values]
    if name == "sum":
        return 1e-12 * float(sum(sizes))
    if name == "avg":
        return 1e-12 * float(sum(sizes) / len(sizes))
    if name in ("skew", "kurtosis"):
        return 1e-7
    square = float(sum(size * size for size in sizes) / len(sizes))
    return 1e-9 * square if name.startswith("var") else 1e-9 * math.sqrt(square)


def group_of(rule: Any, name: str, values: list[Any]) -> State:
    """The state of several values."""
    states = [state_of(rule, *(value if name in PAIRS else (value,))) for value in values]
    return functools.reduce(rule.merge, states)


def check(name: str, finished: Any, inside: list[Any]) -> bool:
    """A result is within the rule, or asked for anew; whether it is asked for."""
    if finished.recompute[0]:
        return True
    known = expected(name, inside)
    if known is None or math.isnan(known):
        assert finished.missing[0] or math.isnan(finished.values[0])
    else:
        assert not finished.missing[0]
        assert finished.values[0] == pytest.approx(known, rel=0, abs=tolerance(name, inside))
    return False


def run(name: str, values: list[Any], leaves: list[bool]) -> tuple[int, int]:
    """Values come in turn and, where ``leaves`` says so, one of those inside goes; how many steps asked for help."""
    rule, inside, recomputed = rule_of(name), [values[0]], 0
    state = group_of(rule, name, inside)
    for step, (value, leave) in enumerate(zip(values[1:], leaves, strict=False)):
        if leave and inside:
            state = rule.remove(state, group_of(rule, name, [inside.pop(step % len(inside))]))
        else:
            inside.append(value)
            state = rule.merge(state, group_of(rule, name, [value]))
        if check(name, rule.finish(state), inside):
            recomputed += 1
            # What is asked for anew becomes the state from here on, as views do it.
            state = group_of(rule, name, inside) if inside else state
    return recomputed, len(values) - 1


numbers = st.floats(-1e6, 1e6, allow_subnormal=False) | st.integers(-5, 5).map(float)
spiky = numbers | st.sampled_from([1e30, -1e30, 1e16, -1e16, 1e22, 0.1])


@pytest.mark.parametrize("name", SUMS)
@settings(max_examples=40)
@given(values=st.lists(spiky, min_size=2, max_size=25), leaves=st.lists(st.booleans(), min_size=25, max_size=25))
def test_no_result_is_outside_the_rule(name: str, values: list[float], leaves: list[bool]) -> None:
    run(name, values, leaves)


@pytest.mark.parametrize("name", PAIRS)
@settings(max_examples=40)
@given(
    values=st.lists(st.tuples(spiky, spiky), min_size=2, max_size=20),
    leaves=st.lists(st.booleans(), min_size=20, max_size=20),
)
def test_no_result_of_pairs_is_outside_the_rule(
    name: str, values: list[tuple[float, float]], leaves: list[bool]
) -> None:
    run(name, values, leaves)


def with_spikes(random: np.random.Generator, count: int) -> list[float]:
    values = random.normal(size=count) * 10.0 ** random.integers(-3, 4, count)
    values[random.random(count) < 0.05] = 1e30
    values[random.random(count) < 0.05] = -1e30
    return list(map(float, values))


@pytest.mark.parametrize("name", MOST_OFTEN)
def test_a_thousand_steps_with_spikes(name: str) -> None:
    random = np.random.default_rng(7)
    values: list[Any] = with_spikes(random, 1001)
    if name in PAIRS:
        values = list(zip(values, with_spikes(random, 1001), strict=True))
    recomputed, steps = run(name, values, list(random.random(1000) < 0.49))
    # It must help itself most of the time: a state that always asks is none.
    assert steps == 1000
    assert recomputed < 600


@pytest.mark.parametrize("name", [*SUMS, *PAIRS])
@settings(max_examples=30)
@given(data=st.data())
def test_groups_are_merged_and_taken_out_whole(name: str, data: st.DataObject) -> None:
    one_value = st.tuples(spiky, spiky) if name in PAIRS else spiky
    stays, leaves = (data.draw(st.lists(one_value, min_size=1, max_size=8)) for _ in range(2))
    rule = rule_of(name)
    stay, leave = group_of(rule, name, stays), group_of(rule, name, leaves)
    both = rule.merge(stay, leave)
    check(name, rule.finish(both), [*stays, *leaves])
    check(name, rule.finish(rule.merge(leave, stay)), [*stays, *leaves])
    check(name, rule.finish(rule.remove(both, leave)), stays)
    nothing = rule.finish(rule.remove(both, both))
    assert nothing.missing[0]
    assert not nothing.recompute[0]


@pytest.mark.parametrize("name", MOST_OFTEN)
def test_without_spikes_hardly_anything_is_computed_anew(name: str) -> None:
    random = np.random.default_rng(11)
    values: list[Any] = list(map(float, random.normal(size=600)))
    if name in PAIRS:
        values = list(zip(values, map(float, random.uniform(0.5, 2, 600)), strict=True))
    # The first steps have too few values for some of them to mean anything.
    recomputed, steps = run(name, values, [False] * 40 + list(random.random(560) < 0.45))
    assert recomputed < 0.01 * steps


def test_products_that_are_too_small_for_doubles_are_not_0() -> None:
    rule = rule_of("wavg")
    assert rule.finish(group_of(rule, "wavg", [(0.0, 0.0), (1e-200, 1e-200)])).recompute[0]
    assert not rule.finish(group_of(rule, "wavg", [(0.0, 3.0), (0.0, 1e-200)])).recompute[0]


def test_infinities_and_missing_values_leave_without_a_trace() -> None:
    rule = rule_of("sum")
    state = rule.of_values(
        [
            np.array([0.1]),
        ]
    )
    for value in (0.2, 0.3):
        state = rule.merge(state, state_of(rule, value))
    for value in (1e16, -math.inf, math.inf, math.nan):
        state = rule.merge(state, state_of(rule, value))
    assert math.isnan(rule.finish(state).values[0])
    state = rule.remove(state, state_of(rule, math.inf))
    assert rule.finish(state).values[0] == -math.inf
    for value in (math.nan, 1e16, -math.inf):
        state = rule.remove(state, state_of(rule, value))
    finished = rule.finish(state)
    assert finished.recompute[0] or finished.values[0] == pytest.approx(0.6, abs=6e-13)
    assert state["count"][0] == 3


def test_an_emptied_group_is_as_new() -> None:
    for name in (*SUMS, "min", "range"):
        rule = rule_of(name)
        state = rule.merge(state_of(rule, 1e300), state_of(rule, -3.0))
        for value in (1e300, -3.0):
            state = rule.remove(state, state_of(rule, value))
        fresh = rule.merge(state, state_of(rule, 2.0))
        assert not rule.finish(fresh).recompute[0], name
        with pytest.raises(DataError, match="more values leave"):
            rule.remove(state, state_of(rule, 1.0))


def test_whole_sums_are_judged_when_they_are_asked_for() -> None:
    rule = rule_of("sum", "int64")
    big = np.int64(2**62)
    state = rule.merge(state_of(rule, big), state_of(rule, np.int64(2**62 - 1)))
    assert rule.finish(state).values.tolist() == [2**63 - 1]
    over = rule.merge(state, state_of(rule, big))
    with pytest.raises(DataError, match="overflows int64"):
        rule.finish(over)
    assert rule.finish(rule.remove(over, state_of(rule, big))).values.tolist() == [2**63 - 1]
    average = rule_of("avg", "uint64")
    both = average.merge(state_of(average, np.uint64(2**64 - 1)), state_of(average, np.uint64(2**64 - 3)))
    assert average.finish(both).values[0] == pytest.approx(2.0**64)


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=12), st.data())
def test_whole_sums_are_exact(values: list[int], data: st.DataObject) -> None:
    rule = rule_of("sum", "int64")
    state = state_of(rule, np.int64(values[0]))
    for value in values[1:]:
        state = rule.merge(state, state_of(rule, np.int64(value)))
    gone = data.draw(st.lists(st.sampled_from(range(len(values))), unique=True, max_size=len(values) - 1))
    for number in gone:
        state = rule.remove(state, state_of(rule, np.int64(values[number])))
    left = sum(value for number, value in enumerate(values) if number not in gone)
    if -(2**63) <= left < 2**63:
        assert rule.finish(state).values.tolist() == [left]
    else:
        with pytest.raises(DataError, match="overflows int64"):
            rule.finish(state)


@pytest.mark.parametrize("name", EXTREMES)
@given(values=st.lists(st.integers(0, 3).map(float), min_size=1, max_size=15), data=st.data())
def test_extremes_ask_when_the_last_of_their_kind_left(name: str, values: list[float], data: st.DataObject) -> None:
    rule = rule_of(name)
    state, inside = state_of(rule, values[0]), Counter(values[:1])
    for value in values[1:]:
        state = rule.merge(state, state_of(rule, value))
        inside[value] += 1
    while inside:
        gone = data.draw(st.sampled_from(sorted(inside)))
        state = rule.remove(state, state_of(rule, gone))
        inside[gone] -= 1
        inside += Counter()
        finished = rule.finish(state)
        if not inside:
            assert finished.missing[0]
        elif finished.recompute[0]:
            break
        else:
            wanted = {"min": min(inside), "max": max(inside), "range": max(inside) - min(inside)}[name]
            assert finished.values[0] == wanted
    else:
        return
    # It asked: then an extreme had left.
    assert gone not in inside


def test_counts_of_anything() -> None:
    rule = rule_of("count", "string")
    state = rule.of_values([np.array(["a", "b"], np.dtypes.StringDType())], np.array([True, False]))
    assert rule.finish(rule.merge(state, state)).values.tolist() == [2, 0]
