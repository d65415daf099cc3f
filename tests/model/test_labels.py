"""Labels: normal form, finding by value, windows in label units, bytes."""

from __future__ import annotations

import pickle
from datetime import UTC, date, datetime, timedelta, timezone
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from windrow.errors import CorruptionError, DataError, StoreError, UnknownNameError
from windrow.model import units
from windrow.model.labels import Labels

int64s = st.integers(-(2**63), 2**63 - 1)
EPOCH = datetime(1970, 1, 1)
instants = st.datetimes(datetime(1850, 1, 1), datetime(2100, 12, 31))
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
any_values = st.one_of(
    st.lists(int64s, max_size=12),
    st.lists(st.floats(allow_nan=False), max_size=12),
    st.lists(instants, max_size=12),
    st.lists(texts, max_size=12),
)


def ordered(numbers: list, direction: str) -> list:
    if direction == "any":
        return numbers
    return sorted(set(numbers), reverse=direction == "down")


directions = st.sampled_from(["up", "down", "any"])


# Normal form


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([1, 2], "int64"),
        (np.array([1, 2], "u1"), "int64"),
        ([1, 2.5], "float64"),
        (np.array([0.5], "f4"), "float64"),
        (range(3), "int64"),
        (np.array(["2012-01"], "M8[M]"), "datetime64[us]"),
        ([date(2012, 1, 1), datetime(2012, 1, 1, 6)], "datetime64[us]"),
        (pd.date_range("2012", periods=3), "datetime64[us]"),
        (pd.Index(["a", "b"]), np.dtypes.StringDType()),
        (["2012-01-01"], np.dtypes.StringDType()),
        (np.array([b"ab", b"c"]), np.dtypes.StringDType()),
        ((x for x in "ab"), np.dtypes.StringDType()),
    ],
)
def test_normal_form(values, dtype):
    labels = Labels.of(values)
    assert labels.values.dtype == dtype
    with pytest.raises(ValueError, match="read-only"):
        labels.values[0] = labels.values[0]


@pytest.mark.parametrize(
    "values",
    [
        [True, False],
        np.array([True]),
        [1, "a"],
        [1, datetime(2012, 1, 1)],
        [1.0, float("nan")],
        [1.0, None],
        ["a", None],
        [pd.NaT, datetime(2012, 1, 1)],
        [np.datetime64("NaT"), np.datetime64("2012")],
        np.array(["NaT", "2012"], "M8[ns]"),
        np.ma.masked_array([1.0, 2.0], [True, False]),
        pd.Series([1, None], dtype="Int64"),
        pd.Series(["a", None], dtype="string"),
        pd.period_range("2012", periods=2, freq="M"),
        np.array([1], "m8[h]"),
        np.array([1j]),
        [[1, 2], [3, 4]],
        np.zeros((2, 2)),
        "abc",
        5,
        None,
        np.array([2**63], "u8"),
        [2**63, -1],
        [10**30],
        ["\ud800"],
        np.array([b"\xff"]),
        np.array([10**15], "M8[s]"),
    ],
)
def test_what_cannot_be_labels(values):
    with pytest.raises(DataError):
        Labels.of(values)


def test_cftime_is_named():
    kind = type("DatetimeNoLeap", (), {"__module__": "cftime._cftime"})
    with pytest.raises(DataError, match="calendar"):
        Labels.of([kind(), kind()])


def test_text_becomes_what_is_asked_for():
    assert Labels.of(["2012-01", "2012-02"], kind="datetime").values[1] == np.datetime64("2012-02-01")
    assert Labels.of(["1", "2.5"], kind="number").values.tolist() == [1.0, 2.5]
    assert Labels.of([], kind="datetime").kind == "datetime"
    with pytest.raises(DataError):
        Labels.of([1, 2], kind="string")
    with pytest.raises(DataError, match="date"):
        Labels.of(["yesterday"], kind="datetime")


def test_zones_and_nanoseconds():
    berlin = pd.date_range("2012-01-01", periods=2, tz="Europe/Berlin")
    assert Labels.of(berlin).values[0] == np.datetime64("2011-12-31T23:00")
    aware = datetime(2012, 1, 1, tzinfo=timezone(timedelta(hours=-5)))
    assert Labels.of([aware]).values[0] == np.datetime64("2012-01-01T05:00")
    almost_one = np.array(["1969-12-31T00:59:59.999999999", "2012-01-01T00:59:59.999999999"], "M8[ns]")
    assert Labels.of(almost_one).values.tolist() == [datetime(1969, 12, 31, 1), datetime(2012, 1, 1, 1)]


def test_source_is_not_shared():
    source = np.array([1, 2, 3])
    labels = Labels.of(source)
    source[0] = 99
    assert labels.values[0] == 1
    assert source.flags.writeable


def test_equality_and_attributes():
    labels = Labels.of([1, 2], {"units": "m", "n": 3})
    assert dict(labels.attributes) == {"units": "m", "n": "3"}
    assert Labels.of(labels) == labels
    assert labels != Labels.of([1, 2])
    assert labels.same_values(Labels.of([1.0, 2.0]))
    assert hash(Labels.of([1, 2])) == hash(Labels.of([1.0, 2.0]))
    assert Labels.of(["1"]) != Labels.of([1])
    assert labels != "labels"
    copy = pickle.loads(pickle.dumps(labels))
    assert copy == labels
    assert not copy.values.flags.writeable


# Order and step


@given(st.lists(st.integers(-50, 50), max_size=6))
def test_monotonic_and_regular_twin(numbers):
    labels = Labels.of(np.array(numbers, np.int64))
    steps = {b - a for a, b in pairwise(numbers)}
    assert labels.is_monotonic == (all(s > 0 for s in steps) or all(s < 0 for s in steps))
    assert labels.is_regular == (len(steps) == 1 and 0 not in steps)
    assert labels.step == (steps.pop() if labels.is_regular else None)


def test_steps():
    assert Labels.of(np.linspace(-90, 90, 145)).step == 1.25
    assert Labels.of(np.arange(0, 1, 0.1, dtype="f4")).is_regular
    assert not Labels.of([0.0, 1.0, 2.1]).is_regular
    assert Labels.of(pd.date_range("2012", periods=4, freq="6h")).step == np.timedelta64(6, "h")
    assert Labels.of([-(2**63), 2**63 - 1]).step == 2**64 - 1
    assert not Labels.of([-(2**63), 2**63 - 1, -(2**63)]).is_regular
    assert Labels.of(["a", "b"]).step is None
    assert not Labels.of([0.0, float("inf")]).is_regular


# Editing


@given(st.lists(int64s, max_size=8), st.data())
def test_slice_concat_take_twin(numbers, data):
    labels = Labels.of(np.array(numbers, np.int64), {"units": "m"})
    start = data.draw(st.integers(0, len(numbers)))
    stop = data.draw(st.integers(start, len(numbers)))
    assert labels.slice(start, stop).values.tolist() == numbers[start:stop]
    joined = labels.slice(0, start).concat(labels.slice(start, len(numbers)))
    assert joined == labels
    assert labels.take(np.arange(start, stop)[::-1]).values.tolist() == numbers[start:stop][::-1]


@given(st.lists(st.integers(0, 20), max_size=8), st.lists(st.integers(0, 20), max_size=8))
def test_positions_twin(numbers, wanted):
    labels, asked = Labels.of(np.array(numbers, np.int64)), Labels.of(np.array(wanted, np.float64))
    twins = [number for number in numbers if numbers.count(number) > 1]
    assert labels.first_twin() == (min(numbers.index(t, numbers.index(t) + 1) for t in twins) if twins else None)
    if set(twins) & set(wanted):
        with pytest.raises(DataError, match="several"):
            labels.positions(asked)
    else:
        assert labels.positions(asked).tolist() == [numbers.index(w) if w in numbers else -1 for w in wanted]


def test_editing_refuses_and_promotes():
    labels = Labels.of([1, 2, 3])
    assert labels.concat(Labels.of([0.5])).values.tolist() == [1, 2, 3, 0.5]
    assert Labels.of([]).concat(Labels.of(["a"])).kind == "string"
    assert Labels.of(["a"]).concat(Labels.of([])).kind == "string"
    for action in (
        lambda: labels.concat(Labels.of(["a"])),
        lambda: labels.slice(0, 4),
        lambda: labels.slice(2, 1),
    ):
        with pytest.raises(DataError):
            action()


# Finding


def check_range(labels: Labels, lower: object, upper: object, inside: list[bool]) -> None:
    above = [True] * len(labels) if lower is None else labels.compared(">=", lower)
    below = [True] * len(labels) if upper is None else labels.compared("<=", upper)
    assert np.logical_and(above, below).tolist() == inside


bounds = st.one_of(st.none(), st.integers(-12, 12), st.floats(-12, 12), st.just(float("inf")))


@given(st.lists(st.integers(-10, 10), max_size=10), directions, bounds, bounds, st.booleans())
def test_number_range_twin(numbers, direction, lower, upper, floats):
    values = ordered(numbers, direction)
    labels = Labels.of(np.array(values, np.float64 if floats else np.int64))
    inside = [(lower is None or v >= lower) and (upper is None or v <= upper) for v in values]
    check_range(labels, lower, upper, inside)


@given(st.lists(int64s, max_size=6), st.one_of(int64s, st.integers(-(2**70), 2**70), st.floats(-1e19, 1e19)))
def test_large_integers_compare_exactly(values, bound):
    values = sorted(set(values))
    check_range(Labels.of(np.array(values, np.int64)), bound, None, [Fraction(v) >= Fraction(bound) for v in values])


def test_integers_are_not_compared_as_doubles():
    labels = Labels.of([2**53 + 1])
    assert not labels.compared("<=", 2.0**53).any()
    with pytest.raises(UnknownNameError):
        labels.find(2.0**53)


@given(st.lists(texts, max_size=8), directions, st.none() | texts, st.none() | texts)
def test_string_range_twin(names, direction, lower, upper):
    values = ordered(names, direction)
    labels = Labels.of(np.array(values, np.dtypes.StringDType()))
    inside = [(lower is None or v >= lower) and (upper is None or v <= upper) for v in values]
    check_range(labels, lower, upper, inside)


FORMATS = ["%Y", "%Y-%m", "%Y-%m-%d", "%Y-%m-%dT%H", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d %H:%M:%S.%f"]


def shares_prefix(instant: datetime, bound: datetime, form: str) -> bool:
    return instant.strftime(form) == bound.strftime(form)


@given(
    st.lists(instants, max_size=10), directions, instants, instants, st.sampled_from(FORMATS), st.sampled_from(FORMATS)
)
def test_datetime_range_twin(stamps, direction, lower, upper, lower_form, upper_form):
    values = ordered(stamps, direction)
    labels = Labels.of(np.array(values, "M8[us]"))

    def within(instant: datetime) -> bool:
        above = instant >= lower or shares_prefix(instant, lower, lower_form)
        return above and (instant <= upper or shares_prefix(instant, upper, upper_form))

    check_range(labels, lower.strftime(lower_form), upper.strftime(upper_form), [within(v) for v in values])


@given(st.lists(instants, min_size=1, max_size=8), instants, st.sampled_from(FORMATS), st.data())
def test_find_datetime_twin(stamps, stranger, form, data):
    wanted = data.draw(st.sampled_from([*stamps, stranger]))
    hits = [i for i, stamp in enumerate(stamps) if shares_prefix(stamp, wanted, form)]
    labels = Labels.of(stamps)
    if len(hits) == 1:
        assert labels.find(wanted.strftime(form)) == hits[0]
    else:
        with pytest.raises(DataError if hits else UnknownNameError):
            labels.find(wanted.strftime(form))


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=8), st.integers(-60, 60).map(lambda n: n / 10), st.booleans())
def test_find_number_twin(numbers, wanted, as_text):
    hits = [i for i, number in enumerate(numbers) if number == wanted]
    labels = Labels.of(numbers)
    label = str(wanted) if as_text else wanted
    if len(hits) == 1:
        assert labels.find(label) == hits[0]
    else:
        with pytest.raises(DataError if hits else UnknownNameError):
            labels.find(label)


def test_month_end_is_covered_and_hints_help():
    labels = Labels.of(pd.date_range("2012-01-01", periods=366 * 4, freq="6h"))
    assert np.flatnonzero(labels.compared("=", "2012-01-31")).tolist() == [120, 121, 122, 123]
    assert np.flatnonzero(labels.compared("=", date(2012, 2, 29))).tolist() == [236, 237, 238, 239]
    assert labels.compared("<=", np.datetime64("2012-01", "M")).sum() == 124
    assert labels.compared("<=", datetime(2012, 1, 2)).sum() == 5
    assert np.flatnonzero(labels.compared("=", "2012-01-01T08:00+02:00")).tolist() == [1]
    with pytest.raises(UnknownNameError, match="nearest is 2012-03-01T00"):
        labels.find("2012-03-01T01:00")
    with pytest.raises(UnknownNameError, match=r"nearest is 2\.5"):
        Labels.of([0.0, 2.5, 5.0]).find(2.4)
    with pytest.raises(UnknownNameError, match="Did you mean 'Potsdam'"):
        Labels.of(["Lindenberg", "Potsdam"]).find("potsdam")
    with pytest.raises(UnknownNameError, match="no labels yet"):
        Labels.of([]).find(1)


@pytest.mark.parametrize(
    "text", ["", "12", "2012-13", "2012-02-30", "2012-1-1", "20120101", "2012-01-01T25", "2012Z", "now"]
)
def test_text_that_is_no_date(text):
    with pytest.raises(DataError):
        Labels.of([datetime(2012, 1, 1)]).parse(text)


def test_parse():
    times = Labels.of([datetime(2012, 1, 1)])
    for value in ("2012", "2012-01-01", date(2012, 1, 1), datetime(2012, 1, 1, tzinfo=UTC), pd.Timestamp("2012")):
        assert times.parse(value) == np.datetime64("2012-01-01", "us")
    assert times.parse("2012-01-01T00:00:00.25") == np.datetime64("2012-01-01T00:00:00.250000")
    assert times.parse("+12012-01-01") == np.datetime64("+12012-01-01", "us")
    numbers = Labels.of([1.5])
    assert [numbers.parse(v) for v in ("30", "1e3", 2, np.float32(0.5))] == [30, 1000.0, 2, 0.5]
    assert Labels.of(["a"]).parse("b") == "b"
    for labels, value in [(times, 5), (numbers, "x"), (numbers, True), (numbers, "nan"), (Labels.of(["a"]), 1)]:
        with pytest.raises(DataError):
            labels.parse(value)


# Windows in label units


@given(
    st.lists(st.integers(-40, 40), max_size=10, unique=True),
    st.sampled_from(["up", "down"]),
    st.integers(-8, 30),
    st.integers(-8, 30),
    st.sampled_from(["int", "tenths", "single", "datetime"]),
)
def test_neighbour_ranges_twin(numbers, direction, before, after, kind):
    positions = ordered(numbers, direction)
    if kind == "datetime":
        labels = Labels.of(np.array([EPOCH + timedelta(hours=p) for p in positions], "M8[us]"))
        reach = (timedelta(hours=before), f"{after} hours")
    elif kind == "int":
        labels, reach = Labels.of(np.array(positions, np.int64)), (before + 0.5, after)
    else:
        labels = Labels.of(np.array([p / 10 for p in positions], "f4" if kind == "single" else "f8"))
        reach = (before / 10, after / 10)
    lo, hi = labels.neighbour_ranges(*reach)
    for i, position in enumerate(positions):
        inside = [j for j, other in enumerate(positions) if position - before <= other <= position + after]
        if inside:
            assert (lo[i], hi[i]) == (inside[0], inside[-1])
        else:
            assert lo[i] > hi[i]


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_extents_reach_whole_steps_of_inexact_grids(dtype):
    labels = Labels.of(np.array([n / 10 for n in range(-900, 901)], dtype))
    for steps in (1, 3, 50):
        lo, hi = labels.neighbour_ranges(steps / 10, f"{steps / 10} degrees")
        assert lo.tolist() == [max(0, i - steps) for i in range(1801)]
        assert hi.tolist() == [min(1800, i + steps) for i in range(1801)]


def test_neighbour_ranges_at_the_ends_of_int64():
    lo, hi = Labels.of([-(2**63), 0, 2**63 - 1]).neighbour_ranges(2**63 - 1, float("inf"))
    assert lo.tolist() == [0, 1, 1]
    assert hi.tolist() == [2, 2, 2]


def test_numbers_beyond_doubles():
    for labels in (Labels.of([1, 2]), Labels.of([1.5, 2.5])):
        assert labels.compared(">=", -(10**400)).all()
        assert labels.compared("<=", 10**400).all()
        with pytest.raises(UnknownNameError, match="nearest"):
            labels.find(10**400)
    lo, hi = Labels.of([1e308, -1e308]).neighbour_ranges(1e308, float("inf"))
    assert (lo.tolist(), hi.tolist()) == ([0, 0], [0, 1])


@pytest.mark.parametrize("values", [["a", "b"], [1, 3, 2], [1, 1]])
def test_windows_need_sorted_numbers(values):
    with pytest.raises(DataError):
        Labels.of(values).neighbour_ranges(1, 1)


def test_extents():
    times = Labels.of([datetime(2012, 1, 1)])
    assert times.parse_extent("30 days") == 30 * 86400 * 10**6
    assert times.parse_extent("1.5h") == 5400 * 10**6
    assert Labels.of([1.0], {"units": "degrees_north"}).parse_extent("5 degrees") == 5
    assert Labels.of([1.0]).parse_extent("30 arcmin") == 0.5
    assert Labels.of([1.0], {"units": "hPa"}).parse_extent("100 hPa") == 100
    assert Labels.of([1.0], {"units": "hours"}).parse_extent("2 days") == 48
    assert Labels.of([1.0], {"units": "radians"}).parse_extent("180 deg") == pytest.approx(np.pi)
    for labels, text in [
        (times, "5"),
        (times, "5 degrees"),
        (times, "1 month"),
        (times, "0.1 us"),
        (Labels.of([1.0]), "2 days"),
        (Labels.of([1.0], {"units": "hPa"}), "5 degrees"),
        (Labels.of(["a"]), "5"),
    ]:
        with pytest.raises(DataError):
            labels.parse_extent(text)


@pytest.mark.parametrize(
    ("text", "pattern"), [("1 year", "vary"), ("3 dgrees", "degrees"), ("days", "quantity"), ("1e999", "double")]
)
def test_bad_quantities(text, pattern):
    with pytest.raises(DataError, match=pattern):
        units.parse_quantity(text)


def test_quantities():
    assert units.parse_quantity("1 arcsec") == (Fraction(1, 3600), "angle")
    assert units.parse_quantity(0.1) == (Fraction(1, 10), "number")
    assert units.parse_quantity(np.timedelta64(2, "m")) == (120 * 10**6, "time")
    assert units.parse_quantity(np.timedelta64(1500, "ns")).microseconds == 1
    for value in (True, float("nan"), None, np.timedelta64(1, "M")):
        with pytest.raises(DataError):
            units.parse_quantity(value)


# Bytes


@given(any_values, st.dictionaries(texts, texts, max_size=3))
def test_bytes_round_trip(values, attributes):
    labels = Labels.of(values, attributes)
    again = Labels.from_bytes(labels.to_bytes())
    assert again == labels
    assert again.values.dtype == labels.values.dtype
    assert again.to_bytes() == labels.to_bytes()
    assert not again.values.flags.writeable


@given(any_values, st.data())
def test_damage_is_seen(values, data):
    stored = Labels.of(values, {"units": "m"}).to_bytes()
    position = data.draw(st.integers(0, len(stored) - 1))
    damaged = bytearray(stored)
    damaged[position] ^= data.draw(st.integers(1, 255))
    with pytest.raises(StoreError):
        Labels.from_bytes(bytes(damaged))
    with pytest.raises(CorruptionError):
        Labels.from_bytes(stored[:position])
    with pytest.raises(CorruptionError):
        Labels.from_bytes(stored + b"x")


def test_regular_labels_are_small():
    hourly = Labels.of(np.arange(0, 10**5, dtype="M8[h]"))
    assert len(hourly.to_bytes()) < 2000


def test_attributes_of_an_xarray_coordinate_are_kept() -> None:
    coordinate = xr.DataArray([0.0, 90.0, 180.0, 270.0], dims="lon", attrs={"units": "degrees_east"})
    assert Labels.of(coordinate).attributes == {"units": "degrees_east"}
    assert Labels.of(coordinate, {}).attributes == {}
