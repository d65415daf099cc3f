"""Tables of states: what is shared, what goes to Arrow and back, what is refused, and how it is explained."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import windrow as wr
from windrow.aggregates.aggregate import Aggregate
from windrow.aggregates.columns import PLACES, Column
from windrow.aggregates.registry import DEFINITIONS
from windrow.aggregates.states.layout import PAIRS, ROWS, Layout, state_layout
from windrow.aggregates.states.rule import State
from windrow.aggregates.states.units import PATCHED, RECOMPUTED
from windrow.aggregates.states.user import UserRule
from windrow.errors import DataError
from windrow.model.types import TYPES


def layout_of(*aggregates: Aggregate, counters: tuple[str, ...] = (PAIRS,), **types: str) -> Layout:
    named = tuple((f"r{number}", aggregate) for number, aggregate in enumerate(aggregates))
    return state_layout(named, {name: TYPES[kind] for name, kind in types.items()}, counters)


def values(*numbers: object, dtype: object = None) -> dict[str, Column]:
    return {"x": Column(np.array(numbers, dtype)), PLACES: Column(np.arange(len(numbers)))}


def one_group(layout: Layout, columns: dict[str, Column]) -> State:
    return layout.reduce(columns, np.array([0, len(columns["x"].values)]))


# What is kept


def test_sums_of_one_argument_are_kept_once() -> None:
    together = layout_of(wr.count("x"), wr.sum("x"), wr.avg("x"), wr.var("x"), wr.std_pop("x"), x="float64")
    assert together.attributes == layout_of(wr.var("x"), x="float64").attributes
    assert len(together.units) == 1
    assert len(layout_of(wr.avg("x"), wr.sum("x"), x="int64").units) == 1


def test_extremes_are_shared_and_counts_are_one_for_all() -> None:
    layout = layout_of(wr.range("x"), wr.min("x"), wr.max("x"), wr.first("x"), wr.count("x"), x="string")
    names = [attribute.name for attribute in layout.attributes]
    assert len(names) == len(set(names)) == 9  # pairs, count, two extremes with their times, value, place, times
    assert all(name.startswith("__windrow_") for name in names)
    assert layout.arguments == ("x", PLACES)


def test_medians_share_a_bracket_and_other_fractions_do_not() -> None:
    layout = layout_of(wr.median("x"), wr.quantile_cont("x", 0.5), wr.quantile_cont("x", 0.9), x="float64")
    assert len(layout.units) == 2


def test_counting_rows_and_pairs_needs_no_argument() -> None:
    layout = layout_of(wr.count(), wr.sum("x"), counters=(PAIRS, ROWS), x="float64")
    nothing = {"x": Column(np.zeros(0))}
    state = layout.reduce(nothing, np.array([0, 0, 0]), np.array([1, 0]))
    assert layout.is_empty(state).tolist() == [False, True]
    finished = layout.finish(state)
    assert finished["r0"].values.tolist() == [0, 0]
    assert finished["r1"].missing.all()
    state = layout.enter(state, values(5.0), np.array([0, 1, 1]))
    state = layout.leave(state, values(5.0), np.array([0, 1, 1]), np.array([1, 0]))
    assert layout.is_empty(state).all()


def test_each_aggregate_says_how_it_is_maintained() -> None:
    for name, found in DEFINITIONS.items():
        second = "y" if found.arguments == 2 else None
        aggregate = Aggregate(name, "x", 0.5 if found.parameter else None, second=second)
        (measure,) = layout_of(aggregate, x="float64", y="float64").measures
        assert measure.way == (RECOMPUTED if found.counts_values else PATCHED), name
        assert measure.why
    (measure,) = layout_of(wr.mode("x"), x="int64").measures
    assert measure.why == "mode keeps no state: touched cells are computed again"


def test_too_few_values_make_no_result() -> None:
    layout = layout_of(wr.count(), wr.count("x"), wr.max("x"), wr.mode("x"), x="float64")
    state = layout.reduce(values(1.0, np.nan, 2.0, 3.0), np.array([0, 2, 4]))
    finished = layout.finish(state, min_count=2)
    missing = [found.missing.tolist() for found in finished.values()]
    assert missing == [[False, False], [True, False], [True, False], [False, False]]
    gone = layout.leave(state, values(1.0), np.array([0, 1, 1]))
    assert not layout.finish(gone, min_count=2)["r2"].recompute.any()


def test_what_keeps_no_state_is_asked_for_wherever_there_are_rows() -> None:
    layout = layout_of(wr.mode("x"), wr.count_distinct("x"), x="int64")
    finished = layout.finish(layout.reduce(values(3, 4), np.array([0, 2, 2])))
    assert layout.recomputed == ("r0", "r1")
    assert finished["r0"].recompute.tolist() == finished["r1"].recompute.tolist() == [True, False]
    assert finished["r0"].missing.tolist() == [False, True]
    assert finished["r1"].missing.tolist() == [False, False]
    assert finished["r1"].values[1] == 0


# To the store and back

EVERY_TYPE = {
    "float64": [0.5, -0.0, np.inf, np.nan, 1e30],
    "float32": [0.5, np.nan],
    "int64": [2**63 - 1, -(2**63)],
    "uint64": [2**64 - 1, 0],
    "int8": [-128, 127],
    "bool": [True, False],
    "string": ["", "ä", "b"],
    "datetime": ["2020-01-01T00:00:00.000001", "NaT", "1900-01-01"],
}


@pytest.mark.parametrize("kind", EVERY_TYPE)
def test_states_go_to_arrow_and_back(kind: str) -> None:
    given = np.array(EVERY_TYPE[kind], TYPES[kind].dtype)
    ordered = [wr.min("x"), wr.max("x"), wr.first("x"), wr.last("x"), wr.quantile_disc("x", 0.5), wr.count("x")]
    numbers = [] if kind in ("string", "datetime") else [wr.avg("x"), wr.var("x"), wr.median("x")]
    layout = layout_of(*ordered, *numbers, x=kind)
    columns = {"x": Column(given), PLACES: Column(np.arange(len(given)))}
    state = layout.reduce(columns, np.array([0, 0, len(given), len(given)]))
    table = pa.table(layout.to_arrow(state))
    assert [table.schema.field(a.name).name for a in layout.attributes] == [a.name for a in layout.attributes]
    assert not any(column.null_count for column in table.columns)
    back = layout.from_arrow(table)
    for attribute in layout.attributes:
        assert back[attribute.name].dtype == attribute.type.dtype
        assert back[attribute.name].tolist() == state[attribute.name].tolist()
    again = layout.enter(back, columns, np.array([0, 0, len(given), len(given)]))
    assert layout.finish(again)["r5"].values[1] == 2 * layout.finish(state)["r5"].values[1]


def test_tables_are_cut_and_put_together() -> None:
    layout = layout_of(wr.max("x"), wr.sum("x"), x="int64")
    state = layout.reduce(values(1, 2, 3), np.array([0, 1, 3]))
    chosen = layout.take(state, np.array([1, -1, 0, 1]))
    assert layout.finish(chosen)["r1"].values.tolist() == [5, 0, 1, 5]
    assert layout.is_empty(chosen).tolist() == [False, True, False, False]
    assert layout.is_empty(layout.take(layout.empty(0), np.array([-1, -1]))).all()
    both = layout.concatenate([state, chosen])
    assert layout.finish(both)["r0"].values.tolist() == [1, 3, 3, 0, 1, 3]
    merged = layout.merge(state, layout.take(state, np.array([1, 0])))
    assert layout.finish(merged)["r0"].values.tolist() == [3, 3]
    assert layout.is_empty(layout.remove(merged, merged)).all()


# What is refused


@pytest.mark.parametrize(
    ("aggregate", "leaving"),
    [
        (wr.sum("x"), [1, 2, 3]),
        (wr.count(), [1, 2, 3]),
        (wr.max("x"), [9]),
        (wr.max("x"), [2, 2]),
        (wr.min("x"), [0]),
        (wr.median("x"), [7]),
        (wr.median("x"), [1, 1]),
        (wr.last("x"), [1, 2, 3]),
    ],
)
def test_what_is_not_there_cannot_leave(aggregate: Aggregate, leaving: list[int]) -> None:
    layout = layout_of(aggregate, x="int64")
    state = one_group(layout, values(1, 2))
    with pytest.raises(DataError, match="leave"):
        layout.leave(state, values(*leaving), np.array([0, len(leaving)]))
    with pytest.raises(DataError, match="leave"):
        layout.remove(state, one_group(layout, values(*leaving)))


def test_a_batch_may_undo_what_would_overflow() -> None:
    layout = layout_of(wr.sum("x"), x="int64")
    state = one_group(layout, values(2**62, 2**62 - 1))
    over = layout.enter(state, values(2**62), np.array([0, 1]))
    with pytest.raises(DataError, match="overflows int64"):
        layout.finish(over)
    back = layout.leave(over, values(2**62), np.array([0, 1]))
    assert layout.finish(back)["r0"].values.tolist() == [2**63 - 1]
    replaced = layout.enter(layout.leave(state, values(2**62), np.array([0, 1])), values(2**62), np.array([0, 1]))
    assert layout.finish(replaced)["r0"].values.tolist() == [2**63 - 1]


def test_sums_of_uint64_that_leave_int64_are_refused_and_averages_are_not() -> None:
    largest = values(2**64 - 1, 2**63, dtype=np.uint64)
    layout = layout_of(wr.sum("x"), x="uint64")
    state = one_group(layout, largest)
    with pytest.raises(DataError, match="overflows int64"):
        layout.finish(state)
    layout = layout_of(wr.avg("x"), wr.max("x"), wr.median("x"), x="uint64")
    finished = layout.finish(one_group(layout, largest))
    assert finished["r0"].values[0] == finished["r2"].values[0] == 2.0**63 * 1.5
    assert finished["r1"].values[0] == 2**64 - 1


def test_a_replaced_extreme_is_not_asked_for() -> None:
    layout = layout_of(wr.max("x"), wr.last("x"), x="float64")
    state = one_group(layout, values(3.0, 1.0, 5.0))
    gone = {"x": Column(np.array([5.0])), PLACES: Column(np.array([2]))}
    without = layout.leave(state, gone, np.array([0, 1]))
    assert all(found.recompute.all() for found in layout.finish(without).values())
    for value in (5.0, 6.0):
        came = {"x": Column(np.array([value])), PLACES: Column(np.array([2]))}
        finished = layout.finish(layout.enter(without, came, np.array([0, 1])))
        assert [found.values.tolist() for found in finished.values()] == [[value], [value]]
        assert not any(found.recompute.any() for found in finished.values())


def test_two_values_at_one_place_are_told_apart_by_nobody() -> None:
    layout = layout_of(wr.first("x"), x="int64")
    state = layout.reduce({"x": Column(np.array([7, 8])), PLACES: Column(np.array([4, 4]))}, np.array([0, 2]))
    assert layout.finish(state)["r0"].recompute.all()
    one = {"x": Column(np.array([7])), PLACES: Column(np.array([4]))}
    assert layout.finish(layout.leave(state, one, np.array([0, 1])))["r0"].recompute.all()


# Brackets


def test_a_bracket_follows_its_rank() -> None:
    """VIEWS: 40 batches that push the rank one way equal scratch."""
    layout = layout_of(wr.median("x"), wr.percentile("x", 90), x="float64")
    inside = [float(number) for number in range(50)]
    state, asked = one_group(layout, values(*inside)), 0
    for batch in range(40):
        coming = [100.0 + batch, 200.0 + batch]
        inside += coming
        state = layout.enter(state, values(*coming), np.array([0, 2]))
        finished = layout.finish(state)
        if finished["r0"].recompute.any() or finished["r1"].recompute.any():
            asked += 1
            state = one_group(layout, values(*inside))
            finished = layout.finish(state)
        assert finished["r0"].values[0] == np.median(inside)
        assert finished["r1"].values[0] == np.sort(inside)[int(0.9 * len(inside))]
    assert 0 < asked < 20


def test_brackets_of_large_groups_are_merged_only_with_what_is_held_whole() -> None:
    layout = layout_of(wr.median("x"), x="int64")
    large, small = one_group(layout, values(*range(101))), one_group(layout, values(50, 51, 52))
    for one, other in ((large, small), (small, large)):
        assert layout.finish(layout.merge(one, other))["r0"].values.tolist() == [50.5]
    both = layout.merge(large, large)
    assert layout.finish(both)["r0"].recompute.all()
    assert layout.is_empty(layout.remove(both, both)).all()
    assert layout.finish(layout.remove(layout.merge(large, small), small))["r0"].values.tolist() == [50.0]


# Users' own

Total = wr.aggregate("states_total", result="int64", exact_remove=True)(
    type(
        "Total",
        (),
        {
            "empty": lambda: (0, False),
            "add": lambda state, x: (state[0] + int(x), state[1] or x > 100),
            "remove": lambda state, x: (state[0] - int(x), state[1]),
            "result": lambda state: state[0],
        },
    )
)
Spread = wr.aggregate("states_spread")(
    type(
        "Spread",
        (),
        {
            "empty": lambda: (np.inf, -np.inf),
            "add": lambda state, x: (min(state[0], x), max(state[1], x)),
            "result": lambda state: state[1] - state[0],
        },
    )
)


def test_users_states_are_kept_if_their_remove_is_exact() -> None:
    layout = layout_of(Total("x"), Spread("x"), x="float64")
    assert [measure.way for measure in layout.measures] == [PATCHED, RECOMPUTED]
    assert "not declared exact" in layout.measures[1].why
    assert [str(attribute.type) for attribute in layout.attributes[-2:]] == ["int64", "bool"]
    state = layout.reduce(values(1.0, np.nan, 2.0, 7.0), np.array([0, 3, 4, 4]))
    state = layout.leave(state, values(2.0, 7.0), np.array([0, 1, 2, 2]))
    finished = layout.finish(state)["r0"]
    assert finished.values.tolist()[:1] == [1]
    assert finished.missing.tolist() == [False, True, True]
    state = layout.enter(state, values(10.0, 20.0), np.array([0, 1, 2, 2]))
    assert layout.finish(state)["r0"].values.tolist()[:2] == [11, 20]
    back = layout.from_arrow(pa.table(layout.to_arrow(state)))
    assert layout.finish(back)["r0"].values.tolist()[:2] == [11, 20]


def test_users_states_without_merge_are_lost_when_put_together() -> None:
    layout = layout_of(Total("x"), x="int64")
    one, nothing = one_group(layout, values(1, 2)), layout.empty(1)
    assert layout.finish(layout.merge(nothing, one))["r0"].values.tolist() == [3]
    both = layout.merge(one, one)
    assert layout.finish(both)["r0"].recompute.all()
    emptied = layout.remove(layout.remove(both, one), one)
    assert layout.finish(layout.merge(emptied, one))["r0"].values.tolist() == [3]
    with pytest.raises(DataError, match="more"):
        layout.leave(one, values(1, 1, 1), np.array([0, 3]))


def test_users_states_with_merge_are_merged() -> None:
    functions = {name: getattr(Total.functions, name) for name in ("empty", "add", "remove", "result")}
    merged = wr.aggregate("states_merged", result="int64", exact_remove=True)(
        type("Merged", (), {**functions, "merge": lambda a, b: (a[0] + b[0], a[1] or b[1])})
    )
    layout = layout_of(merged("x"), x="datetime")
    assert isinstance(layout.units[0].rule, UserRule)
    one = one_group(layout, {"x": Column(np.array([1, 2], "M8[us]"))})
    assert layout.finish(layout.merge(one, one))["r0"].values.tolist() == [6]


def test_exact_remove_needs_a_remove() -> None:
    with pytest.raises(DataError, match="lacks the function remove"):
        wr.aggregate("states_lacking", exact_remove=True)(
            type("Lacking", (), {"empty": lambda: (0,), "add": lambda s, x: s, "result": lambda s: s[0]})
        )
