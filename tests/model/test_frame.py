"""Bounds of SQL frames in sorted partitions, against SQL's rules row by row."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import frame_oracle
import windrow as wr
from frame_bounds import (
    Bound,
    Frame,
    OrderKey,
    current_row,
    following,
    peer_bounds,
    preceding,
    row_bounds,
    unbounded_following,
    unbounded_preceding,
)
from windrow.errors import DataError, SchemaError
from windrow.model.frame import Interval, parse_interval


def rows_of(lo: Any, hi: Any) -> list[list[int]]:
    return [list(range(first, last)) for first, last in zip(lo, hi, strict=True)]


@st.composite
def keys(draw: st.DrawFn) -> tuple[list[Any], bool]:
    """Sorted keys with NULL and NaN where Spark puts them, and whether they fall."""
    kind = draw(st.sampled_from(["int", "float", "wide"]))
    value: Any = {
        "int": st.integers(-5, 5),
        "float": st.sampled_from([-math.inf, -1.5, -0.0, 0.0, 0.25, 2.0, math.inf, math.nan]),
        "wide": st.sampled_from([-(2**63), -(2**63) + 3, 0, 2**63 - 2, 2**63 - 1]),
    }[kind]
    falls, nulls_first = draw(st.booleans()), draw(st.booleans())
    found = draw(st.lists(st.one_of(value, st.none()), max_size=12))
    known = [x for x in found if x is not None]
    known.sort(key=lambda x: (x != x, x if x == x else 0), reverse=falls)
    nulls = [None] * (len(found) - len(known))
    return (nulls + known if nulls_first else known + nulls), falls


def order_key(values: list[Any], falls: bool) -> OrderKey:
    known = [x for x in values if x is not None]
    kind = np.float64 if any(isinstance(x, float) for x in known) else np.int64
    array = np.array([0 if x is None else x for x in values], kind)
    return OrderKey(array, np.array([x is not None for x in values], bool), falls)


def bound_of(offset: Any, start: bool) -> Bound:
    if offset is None:
        return unbounded_preceding if start else unbounded_following
    return Bound(offset)


offsets = st.one_of(st.none(), st.integers(-4, 4), st.sampled_from([-1.5, 0.5, 2.25]))


@given(keys(), offsets, offsets)
def test_range_frames(drawn: tuple[list[Any], bool], start: Any, end: Any) -> None:
    values, falls = drawn
    frame = Frame("range", bound_of(start, True), bound_of(end, False))
    lo, hi = row_bounds(frame, [order_key(values, falls)], len(values))
    expected = frame_oracle.range_rows(values, lambda _: start, lambda _: end, falls, frame_oracle.add_exactly)
    assert rows_of(lo, hi) == expected


@given(keys(), st.data())
def test_range_frames_with_an_offset_for_each_row(drawn: tuple[list[Any], bool], data: st.DataObject) -> None:
    values, falls = drawn
    each = data.draw(st.lists(st.integers(-3, 3), min_size=len(values), max_size=len(values)))
    frame = Frame("range", Bound(np.array(each, np.int64)), following(2))
    lo, hi = row_bounds(frame, [order_key(values, falls)], len(values))
    moved = frame_oracle.add_exactly
    assert rows_of(lo, hi) == frame_oracle.range_rows(values, each.__getitem__, lambda _: 2, falls, moved)


@given(st.integers(0, 9), st.data())
def test_rows_frames(rows: int, data: st.DataObject) -> None:
    offset = st.one_of(st.none(), st.integers(-12, 12), st.sampled_from([2**63 - 1, -(2**63)]))
    start, end = data.draw(offset), data.draw(offset)
    frame = Frame("rows", bound_of(start, True), bound_of(end, False))
    lo, hi = row_bounds(frame, [], rows)
    for current, frame_rows in enumerate(rows_of(lo, hi)):
        after = [row for row in range(rows) if start is None or row >= current + start]
        assert frame_rows == [row for row in after if end is None or row <= current + end]


@given(keys(), st.integers(-3, 3), st.integers(-3, 3))
def test_groups_frames_and_peers(drawn: tuple[list[Any], bool], start: int, end: int) -> None:
    values, falls = drawn
    key = order_key(values, falls)
    names = ["null" if x is None else "nan" if x != x else x for x in values]
    number = [len(dict.fromkeys(names[: k + 1])) for k in range(len(names))]
    lo, hi = row_bounds(Frame("groups", Bound(start), Bound(end)), [key], len(values))
    for current, rows in enumerate(rows_of(lo, hi)):
        assert rows == [k for k, n in enumerate(number) if number[current] + start <= n <= number[current] + end]
    for current, rows in enumerate(rows_of(*peer_bounds([key], len(values)))):
        assert rows == [k for k, n in enumerate(number) if n == number[current]]
    assert rows_of(*peer_bounds([], 3)) == [[0, 1, 2]] * 3


@given(st.lists(st.datetimes(datetime.datetime(1960, 1, 1), datetime.datetime(2100, 1, 1)), max_size=10), st.booleans())
def test_calendar_intervals(moments: list[datetime.datetime], falls: bool) -> None:
    moments.sort(reverse=falls)
    key = OrderKey(np.array(moments, "M8[us]"), None, falls)
    for interval, moved in (
        (Interval(months=14), lambda m, by: frame_oracle.add_months(m, by)),
        (np.timedelta64(40, "D"), lambda m, by: m + datetime.timedelta(days=by)),
    ):
        by = 14 if isinstance(interval, Interval) else 40
        lo, hi = row_bounds(Frame("range", preceding(interval), following(interval)), [key], len(moments))
        assert rows_of(lo, hi) == frame_oracle.range_rows(moments, lambda _, b=by: -b, lambda _, b=by: b, falls, moved)


def test_dates_take_days_and_decimals_take_decimals() -> None:
    days = OrderKey(np.array(["2024-02-27", "2024-02-28", "2024-03-01"], "M8[D]"))
    assert rows_of(*row_bounds(Frame("range", preceding(2), current_row), [days], 3)) == [[0], [0, 1], [1, 2]]
    tenths = OrderKey(np.array([Decimal("0.1"), Decimal("0.2"), Decimal("0.4")], object))
    frame = Frame("range", preceding(Decimal("0.1")), current_row)
    assert rows_of(*row_bounds(frame, [tenths], 3)) == [[0], [0, 1], [2]]


def test_the_default_frame_ends_with_the_current_peers() -> None:
    key = OrderKey(np.array([1, 1, 2]))
    assert rows_of(*row_bounds(Frame(), [key], 3)) == [[0, 1], [0, 1], [0, 1, 2]]
    assert rows_of(*row_bounds(Frame(), [key, OrderKey(np.array(["a", "b", "b"]))], 3)) == [[0], [0, 1], [0, 1, 2]]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: preceding(-1), "must not be negative"),
        (lambda: following(np.array([1, -2])), "must not be negative"),
        (lambda: following(np.array([1.0, math.nan])), "must not be negative or missing"),
        (lambda: preceding(np.timedelta64(-3, "D")), "must not be negative"),
        (lambda: preceding(Interval(months=-3)), "must not be negative"),
        (lambda: preceding("soon"), "number or an interval"),
        (lambda: Frame("cells"), "Did you mean|rows, range, groups"),
        (lambda: Frame("rows", exclude="tie"), "Did you mean 'ties'"),
        (lambda: Frame("rows", unbounded_following, current_row), "cannot start"),
        (lambda: Frame("rows", current_row, unbounded_preceding), "cannot end"),
        (lambda: Frame("rows", preceding(1.5), current_row), "whole numbers"),
        (lambda: Frame("groups", preceding(np.array([0.5])), current_row), "whole numbers"),
    ],
)
def test_frames_that_cannot_be(make: Any, message: str) -> None:
    with pytest.raises((DataError, SchemaError), match=message):
        make()


@pytest.mark.parametrize(
    ("columns", "offset", "message"),
    [
        ([], 1, "exactly one order column"),
        ([np.arange(2), np.arange(2)], 1, "exactly one order column"),
        ([np.array(["a", "b"])], 1, "numbers or points in time"),
        ([np.array(["a", "b"], object)], 1, "numbers or points in time"),
        ([np.array([False, True])], 1, "numbers or points in time"),
        ([np.arange(2)], np.timedelta64(1, "D"), "must be a number"),
        ([np.array([0, 1], "M8[us]")], 1, "must be an interval"),
        ([np.arange(2)], math.inf, "finite"),
        ([np.arange(2)], np.arange(3), "one offset for each of 2 rows"),
    ],
)
def test_ranges_that_cannot_be(columns: list[Any], offset: Any, message: str) -> None:
    with pytest.raises((DataError, SchemaError), match=message):
        row_bounds(Frame("range", preceding(offset), current_row), [OrderKey(c) for c in columns], 2)


# Frames as they are given


@pytest.mark.parametrize(
    ("frame", "shown"),
    [
        (wr.Frame.rows(-29, 0), "rows between 29 preceding and current row"),
        (wr.Frame.rows(None, None), "rows between unbounded preceding and unbounded following"),
        (wr.Frame.range(-0.5, 2), "range between 0.5 preceding and 2 following"),
        (wr.Frame.range("-7 days", 0), "range between -7 days and current row"),
        (
            wr.Frame.range(wr.preceding(parse_interval("1 month 36 hours")), 0).exclude("TIES"),
            "range between interval '1 month 1 day 12 hours' preceding and current row exclude ties",
        ),
        (wr.Frame.groups(wr.preceding("n"), wr.following(3)), "groups between n preceding and 3 following"),
    ],
)
def test_frames_are_shown_as_sql_writes_them(frame: wr.Frame[Any], shown: str) -> None:
    assert str(frame) == shown


@given(st.integers(-40, 40), st.integers(-(10**15), 10**15))
def test_intervals_are_shown_so_that_they_can_be_read(months: int, microseconds: int) -> None:
    interval = Interval(months, microseconds)
    assert parse_interval(str(interval)) == interval


@given(st.integers(-5, 5), st.integers(-5, 5))
def test_a_frame_that_ends_before_it_starts_is_known_to(start: int, end: int) -> None:
    sides = [wr.preceding(-n) if n < 0 else wr.following(n) for n in (start, end)]
    assert wr.Frame.rows(start, end).is_reversed is wr.Frame.rows(*sides).is_reversed is (start > end)
    assert not wr.Frame.rows(None, end).is_reversed
    assert not wr.Frame.rows("x", end).is_reversed
