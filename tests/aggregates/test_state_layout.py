"""Layouts of states: rows come and go, and results are those of the aggregates' own evaluation, or asked for anew."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.aggregates.aggregate import Aggregate
from windrow.aggregates.columns import PLACES, Column
from windrow.aggregates.parts import evaluate_groups
from windrow.aggregates.registry import DEFINITIONS
from windrow.aggregates.states.layout import Layout, state_layout
from windrow.aggregates.states.rule import Rows, State, fold_groups
from windrow.aggregates.states.sums import PARTS as SUMMED
from windrow.aggregates.states.sums import SumRule
from windrow.aggregates.states.units import PATCHED
from windrow.errors import DataError
from windrow.model.types import TYPES, DataType

PARAMETERS = {
    "percentile": (0.0, 30.0, 70.0, 100.0),
    "quantile_disc": (0.25,),
    "quantile_cont": (0.9,),
    "quantile_index": (0.5,),
}
SPECIAL_FLOATS = [0.0, -0.0, math.inf, -math.inf, math.nan, 1e30, -1e30, 1e16, 0.1]
EXACT_OF_FLOATS = {"min", "max", "range", "first", "last", "median", "count", *PARAMETERS}

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "float64": st.integers(-4, 4).map(float)
    | st.floats(-1e6, 1e6, allow_subnormal=False)
    | st.sampled_from(SPECIAL_FLOATS),
    "float32": st.integers(-4, 4).map(float)
    | st.floats(-1e6, 1e6, width=32, allow_subnormal=False)
    | st.just(math.nan),
    "int64": st.integers(-4, 4) | st.integers(-(2**40), 2**40),
    "uint64": st.integers(0, 4) | st.integers(0, 2**57),
    "int8": st.integers(-50, 50),
    "bool": st.booleans(),
    "string": st.sampled_from(["", "a", "b", "ä", "zz", "nul"]),
    "datetime": st.integers(-(2**40), 2**40) | st.integers(0, 3),
}
STEADY = ("float64", "int64", "bool", "string", "datetime")


def aggregates_of(kind: DataType, second: bool = True) -> tuple[tuple[str, Aggregate], ...]:
    """Every aggregate that takes such values, under a name."""
    asked = [Aggregate("count", None)]
    for name, found in DEFINITIONS.items():
        try:
            found.check_type(kind)
        except DataError:
            continue
        if found.arguments == 2:
            asked += [Aggregate(name, "x", second="y")] if second else []
        else:
            asked += [Aggregate(name, "x", parameter) for parameter in PARAMETERS.get(name, (None,))]
    return tuple((f"r{number}", aggregate) for number, aggregate in enumerate(asked))


def columns_of(kind: DataType, rows: list[tuple[Any, ...]]) -> dict[str, Column]:
    """Rows of x, y and place as columns; None is missing."""
    fill = kind.fill if kind.dtype.kind != "M" else 0
    values = [fill if x is None else x for x, _, _ in rows]
    x = np.array(values, "i8").view("M8[us]") if kind.dtype.kind == "M" else np.array(values, kind.dtype)
    present = np.array([value is not None for value, _, _ in rows], bool)
    return {
        "x": Column(x, None if present.all() else present),
        "y": Column(np.array([y for _, y, _ in rows], np.float64)),
        PLACES: Column(np.array([place for _, _, place in rows], np.int64)),
    }


def grouped(kind: DataType, groups: list[list[Any]]) -> tuple[dict[str, Column], Any]:
    starts = np.concatenate([[0], np.cumsum([len(group) for group in groups])]).astype(np.int64)
    return columns_of(kind, [row for group in groups for row in group]), starts


def layout_for(kind: DataType, second: bool = True) -> Layout:
    return state_layout(aggregates_of(kind, second), {"x": kind, "y": TYPES["float64"]})


def tolerance(name: str, rows: list[Any]) -> float:
    """How far two right results may be apart: twice what SPEC section 1 allows."""
    there = [(Fraction(x), Fraction(y)) for x, y, _ in rows if x is not None and math.isfinite(x) and math.isfinite(y)]
    xs = [abs(Fraction(x)) for x, _, _ in rows if x is not None and math.isfinite(x)]
    if not xs:
        return 0.0
    if name in ("sum", "avg"):
        return 2e-12 * float(sum(xs) / (len(xs) if name == "avg" else 1))
    if name == "wavg":
        weights = abs(sum(y for _, y in there))
        if not weights:
            return 0.0
        # Weights of both signs that nearly cancel are a sum too, and are rounded as one.
        spread = 1 + sum(abs(y) for _, y in there) / weights
        return 2e-12 * float(spread * sum(abs(x * y) for x, y in there) / weights)
    if name in ("skew", "kurtosis", "corr"):
        return 2e-7
    if name.startswith("covar"):
        return 2e-9 * math.sqrt(float(sum(x * x for x, _ in there))) * math.sqrt(float(sum(y * y for _, y in there)))
    square = float(sum(x * x for x in xs) / len(xs))
    return 2e-9 * square if name.startswith("var") else 2e-9 * math.sqrt(square)


def check(layout: Layout, state: State, kind: DataType, groups: list[list[Any]]) -> dict[str, Any]:
    """Every result is the evaluation's, in type too, or asked for; where it is asked for, by name."""
    evaluation = evaluate_groups(*grouped(kind, groups))
    finished = layout.finish(state)
    for measure in layout.measures:
        wanted, found = evaluation.result(measure.aggregate), finished[measure.name]
        assert found.values.dtype == wanted.values.dtype, str(measure.aggregate)
        lacking = np.zeros(len(groups), bool) if wanted.missing is None else wanted.missing.copy()
        if wanted.values.dtype.kind == "f":
            lacking |= np.isnan(wanted.values)
        exact = measure.aggregate.name in EXACT_OF_FLOATS or wanted.values.dtype.kind != "f"
        same = (found.missing == lacking) & (lacking | (found.values == wanted.values))
        if wanted.values.dtype.kind == "f" and exact:
            same &= lacking | (np.signbit(found.values) == np.signbit(wanted.values))
        for number in np.flatnonzero(~same & ~found.recompute):
            where = (str(measure.aggregate), groups[number])
            assert found.missing[number] == lacking[number], where
            assert not exact, where
            apart = abs(float(found.values[number]) - float(wanted.values[number]))
            assert apart <= tolerance(measure.aggregate.name, groups[number]), where
    return {name: one.recompute for name, one in finished.items()}


def row_of(kind: str) -> st.SearchStrategy[Any]:
    return st.tuples(VALUES[kind] | st.none(), st.floats(0.5, 4) | st.integers(-2, 2).map(float))


def groups_of(kind: str, most: int) -> st.SearchStrategy[list[list[Any]]]:
    """Some groups of rows, no two of which are at one place."""
    found = st.lists(st.lists(row_of(kind), max_size=most), min_size=1, max_size=4)
    return found.map(
        lambda groups: [[(*row, 100 * g + k) for k, row in enumerate(rows)] for g, rows in enumerate(groups)]
    )


@pytest.mark.parametrize("kind", VALUES)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_reduced_groups_finish_as_they_are_evaluated(kind: str, data: st.DataObject) -> None:
    groups = data.draw(groups_of(kind, 25))
    layout = layout_for(TYPES[kind])
    state = layout.reduce(*grouped(TYPES[kind], groups))
    asked = check(layout, state, TYPES[kind], groups)
    for measure in layout.measures:
        if measure.aggregate.name in ("sum", "avg", "min", "max", "range", "first", "last", "median", *PARAMETERS):
            assert not asked[measure.name].any(), str(measure.aggregate)
    assert layout.is_empty(state).tolist() == [not group for group in groups]


def bit_for_bit(one: State, other: State) -> None:
    assert one.keys() == other.keys()
    for name in one:
        assert one[name].dtype == other[name].dtype, name
        assert one[name].tolist() == other[name].tolist() or one[name].tobytes() == other[name].tobytes(), name


@pytest.mark.parametrize("kind", VALUES)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_loops_give_what_merging_one_value_after_the_other_gives(kind: str, data: st.DataObject) -> None:
    groups = data.draw(groups_of(kind, 12))
    columns, starts = grouped(TYPES[kind], groups)
    for unit in layout_for(TYPES[kind]).units:
        rows = unit.rows(columns, starts)
        found, folded = unit.rule.reduce(rows), fold_groups(unit.rule, rows)
        assert found.keys() == folded.keys()
        if "held_00" not in found:
            bit_for_bit(found, folded)
        else:  # a bracket of many may lie elsewhere, and with up to 16 values it holds all of them
            bit_for_bit(found, {name: part.astype(found[name].dtype) for name, part in folded.items()})


long_floats = st.lists(VALUES["float64"] | st.floats(allow_nan=False), min_size=30, max_size=150)


@settings(max_examples=40, deadline=None)
@given(groups=st.lists(long_floats, min_size=1, max_size=2), present=st.randoms(use_true_random=False))
def test_sums_of_long_groups_keep_to_their_bounds(groups: list[list[float]], present: Any) -> None:
    rule = DEFINITIONS["var"].state
    assert isinstance(rule, SumRule)
    starts = np.concatenate([[0], np.cumsum([len(group) for group in groups])]).astype(np.int64)
    values = np.array([value for group in groups for value in group])
    there = np.array([present.random() < 0.9 for _ in values])
    rows = Rows((values,), there, starts)
    for state in (rule.reduce(rows), fold_groups(rule, rows)):
        for number in range(len(groups)):
            inside = values[starts[number] : starts[number + 1]][there[starts[number] : starts[number + 1]]]
            assert state["x_plus"][number] == np.count_nonzero(inside == np.inf)
            assert state["x_minus"][number] == np.count_nonzero(inside == -np.inf)
            for term, power in (("x", 1), ("xx", 2)):
                check_bounds({part: state[f"{term}_{part}"][number] for part in SUMMED}, inside, power)


def check_bounds(state: dict[str, Any], inside: Any, power: int) -> None:
    """The sum is no further from the true one than it says, and neither is the sum of sizes."""
    if math.isinf(state["error"]):
        assert max(abs(value) for value in inside if math.isfinite(value)) > 1e130
        return
    exact = [Fraction(float(value)) ** power for value in inside if math.isfinite(value)]
    found = Fraction(float(state["high"])) + Fraction(float(state["low"]))
    assert abs(found - sum(exact)) <= Fraction(float(state["error"])), power
    size = sum(map(abs, exact))
    allowed = Fraction(float(state["drift"])) * Fraction(1.001) + size / 2**52 + Fraction(float(state["error"]))
    assert abs(Fraction(float(state["size"])) - size) <= allowed


class Base:
    """Groups of rows in plain Python, beside their states."""

    def __init__(self, kind: str, groups: int) -> None:
        self.kind = TYPES[kind]
        self.layout = layout_for(self.kind)
        self.groups: list[list[Any]] = [[] for _ in range(groups)]
        self.state = self.layout.empty(groups)
        self.next = 0
        self.steps, self.asked = 0, dict.fromkeys((m.name for m in self.layout.measures), 0)

    def number(self, rows: list[list[Any]]) -> list[list[Any]]:
        """Give rows places of their own."""
        numbered = []
        for group in rows:
            numbered.append([(*row, self.next + place * 7919 % 1009) for place, row in enumerate(group)])
            self.next += 2000
        return numbered

    def change(self, leaving: list[list[Any]], coming: list[list[Any]]) -> None:
        """A batch, as views take it: leave, come, compute anew what is asked for."""
        self.state = self.layout.leave(self.state, *grouped(self.kind, leaving))
        self.state = self.layout.enter(self.state, *grouped(self.kind, coming))
        for group, left, came in zip(self.groups, leaving, coming, strict=True):
            for row in left:
                group.remove(row)
            group.extend(came)
            group.sort(key=lambda row: row[2])
        asked = check(self.layout, self.state, self.kind, self.groups)
        patched = [m.name for m in self.layout.measures if m.way == PATCHED]
        self.steps += sum(map(bool, self.groups))
        for name in patched:
            self.asked[name] += int(asked[name].sum())
        fresh = self.layout.reduce(*grouped(self.kind, self.groups))
        again = np.logical_or.reduce([asked[name] for name in patched])
        both = self.layout.concatenate([self.state, fresh])
        own = np.arange(len(again))
        self.state = self.layout.take(both, np.where(again, own + len(again), own))


@pytest.mark.parametrize("kind", VALUES)
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_tables_are_merged_and_taken_apart(kind: str, data: st.DataObject) -> None:
    """Parts of groups, as tasks hand them over."""
    layout, groups = layout_for(TYPES[kind]), data.draw(groups_of(kind, 24))
    firsts, lasts = [g[: len(g) // 3] for g in groups], [g[len(g) // 3 :] for g in groups]
    one, other = (layout.reduce(*grouped(TYPES[kind], part)) for part in (firsts, lasts))
    whole = layout.merge(one, other)
    check(layout, whole, TYPES[kind], groups)
    check(layout, layout.merge(other, one), TYPES[kind], groups)
    check(layout, layout.remove(whole, one), TYPES[kind], lasts)
    nothing = layout.remove(whole, whole)
    asked = check(layout, nothing, TYPES[kind], [[] for _ in groups])
    assert not any(recompute.any() for recompute in asked.values())


@pytest.mark.parametrize("kind", VALUES)
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_tables_of_parts_are_folded_into_groups(kind: str, data: st.DataObject) -> None:
    """Parts of a group lie anywhere, any number of them; a group may have none."""
    layout, parts = layout_for(TYPES[kind]), data.draw(groups_of(kind, 24))
    numbers = data.draw(st.lists(st.integers(0, 3), min_size=len(parts), max_size=len(parts)))
    groups = [
        [row for number, part in zip(numbers, parts, strict=True) for row in part if number == k] for k in range(5)
    ]
    folded = layout.fold(layout.reduce(*grouped(TYPES[kind], parts)), np.array(numbers, np.int64), 5)
    asked = check(layout, folded, TYPES[kind], groups)
    for measure in layout.measures:
        if measure.aggregate.name in ("count", "min", "max", "range") or (
            measure.aggregate.name == "sum" and "int" in kind
        ):
            assert not asked[measure.name].any()


@pytest.mark.parametrize("kind", VALUES)
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_rows_come_and_go(kind: str, data: st.DataObject) -> None:
    base = Base(kind, 2)
    row = row_of(kind)
    for _ in range(data.draw(st.integers(1, 6))):
        leaving = [
            data.draw(st.lists(st.sampled_from(group), unique_by=lambda r: r[2])) if group else []
            for group in base.groups
        ]
        base.change(leaving, base.number([data.draw(st.lists(row, max_size=8)) for _ in base.groups]))


def random_value(random: np.random.Generator, kind: str, spikes: bool) -> Any:
    if spikes and random.random() < 0.1:
        return float(random.choice([1e30, -1e30, 1e16, math.inf, -math.inf, math.nan, 0.0, -0.0]))
    if kind == "string":
        return str(random.integers(0, 500))
    if kind == "bool":
        return bool(random.random() < 0.5)
    return float(random.normal()) if kind == "float64" else int(random.integers(-1000, 1000))


def walk(kind: str, steps: int, spikes: bool) -> Base:
    """Forty groups of some 60 rows; in each step some rows go and as many come."""
    random = np.random.default_rng(5)
    base = Base(kind, 40)

    def some(count: int) -> list[Any]:
        return [(random_value(random, kind, spikes), float(random.uniform(0.5, 2))) for _ in range(count)]

    base.change([[] for _ in base.groups], base.number([some(50 + number) for number in range(len(base.groups))]))
    base.steps, base.asked = 0, dict.fromkeys(base.asked, 0)
    for _ in range(steps):
        leaving = []
        for group in base.groups:
            count = int(random.integers(0, min(3, len(group)) + 1))
            leaving.append([group[k] for k in random.choice(len(group), count, replace=False)])
        base.change(leaving, base.number([some(int(random.integers(0, 4))) for _ in base.groups]))
    return base


@pytest.mark.parametrize("kind", [*STEADY[:2], *(pytest.param(kind, marks=pytest.mark.slow) for kind in STEADY[2:])])
def test_a_thousand_steps_without_spikes_hardly_ask(kind: str) -> None:
    base = walk(kind, 25, spikes=False)
    assert base.steps >= 1000
    for measure in base.layout.measures:
        if measure.way == PATCHED:
            name = measure.aggregate.name
            # An extreme that leaves is looked for again: of 60 values each is one in 60 times.
            limit = 0.12 if name in ("min", "max", "range", "first", "last") else 0.01
            assert base.asked[measure.name] <= limit * base.steps, str(measure.aggregate)


def test_a_thousand_steps_with_spikes() -> None:
    base = walk("float64", 25, spikes=True)
    for measure in base.layout.measures:
        if measure.way == PATCHED and measure.aggregate.name in ("sum", "avg", "median", "count"):
            assert base.asked[measure.name] <= 0.35 * base.steps, str(measure.aggregate)
