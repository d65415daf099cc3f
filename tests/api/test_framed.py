"""``wr.framed``: types in and out, exclusion, filters, bad input, and agreement with DuckDB."""

from __future__ import annotations

import datetime
import itertools
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import frame_oracle
import windrow as wr
from windrow.aggregates.frames import Coded, Column, FrameEvaluation, Frames
from windrow.kernels import tiny

LO, HI = np.array([0, 0, 1, 2, 9, 3]), np.array([1, 3, 4, 2, 12, 99])


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    "values",
    [
        np.array(["pear", "fig", "fig", "apple", "pear", ""], np.dtypes.StringDType()),
        np.array(["pear", None, "fig", "apple", None, "fig"], object),
        np.array(["b", "a", "b", "c", "a", "a"]),
        np.array(["2024-01-03", "NaT", "2024-01-01", "2024-01-01", "2023-12-31", "2024-01-03"], "M8[D]"),
        np.array([datetime.datetime(2024, 1, 3), None, datetime.datetime(2024, 1, 1)] * 2, object),
        np.array([Decimal("1.50"), Decimal("-2"), None, Decimal("1.5"), Decimal("1e3"), Decimal("0.001")], object),
        np.array([Decimal(10**37), Decimal("-0.5"), Decimal(10**37), None, Decimal(2), Decimal(2)], object),
        np.array([True, False, True, True, False, False]),
        np.array([3, 200, 3, 7, 200, 0], np.uint8),
        np.array([2**64 - 1, 0, 2**63, 2**64 - 1, 1, 1], np.uint64),
        np.ma.masked_array([1, 2, 3, 4, 5, 5], [0, 1, 0, 0, 0, 1]),
        np.array([1.5, -0.0, 0.0, np.nan, np.inf, -np.inf], np.float32),
    ],
    ids=str,
)
def test_types(values: Any, compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if compiled:
        monkeypatch.setattr(tiny, "MOST_CELLS", 0)
    plain = [None if x is np.ma.masked or (x is not None and x != x) else x for x in values]
    plain = [x.item() if isinstance(x, np.generic) and not isinstance(x, np.datetime64) else x for x in plain]
    rows = frame_oracle.frame_rows(LO, HI, 6)
    names = ["count", "min", "max", "mode", "count_distinct"]
    names += ["sum"] if isinstance(next(x for x in plain if x is not None), (Decimal, bool)) else []
    for name in names:
        found = wr.framed(values, name, lo=LO, hi=HI)
        expected = frame_oracle.evaluate(plain, rows, (name, None))
        for got, want in zip(found, expected, strict=True):
            if want is None:
                assert got is None or got != got, name
            else:
                assert (Fraction(got) if isinstance(want, Fraction) else got) == want, (name, got, want)


def test_results_keep_their_type_where_nothing_is_missing() -> None:
    whole = wr.framed(np.array([3, 1, 2], np.int16), "max", lo=[0, 0, 1], hi=[1, 2, 3])
    assert whole.dtype == np.int16
    assert whole.tolist() == [3, 3, 2]
    assert wr.framed(np.array([3, 1], np.int16), "max", lo=[0, 1], hi=[1, 1]).tolist()[0] == 3.0
    assert np.isnan(wr.framed(np.array([3, 1], np.int16), "max", lo=[0, 1], hi=[1, 1])[1])
    assert wr.framed(np.array(["2024-01-03"], "M8[D]"), "min", lo=[0], hi=[1]).dtype == "M8[D]"


def test_aggregate_objects_texts_and_parameters() -> None:
    values = np.array([5.0, 1.0, 4.0, 2.0])
    assert wr.framed(values, "percentile(50)", lo=[0], hi=[4]) == wr.framed(values, wr.percentile("t", 50), [0], [4])
    assert wr.framed(values, "count", lo=[0, 3], hi=[4, 2]).tolist() == [4, 0]


def test_where_and_exclude() -> None:
    values = np.array([1, 2, 2, 3])
    everything: Any = {"lo": [0] * 4, "hi": [4] * 4}
    peers = ([0, 1, 1, 3], [1, 3, 3, 4])
    assert wr.framed(values, "sum", **everything, where=values > 1).tolist() == [7, 7, 7, 7]
    assert wr.framed(values, "sum", **everything, exclude="current row").tolist() == [7, 6, 6, 5]
    assert wr.framed(values, "sum", **everything, exclude="group", peers=peers).tolist() == [7, 4, 4, 5]
    assert wr.framed(values, "sum", **everything, exclude="ties", peers=peers).tolist() == [8, 6, 6, 8]


def test_no_rows_no_frames() -> None:
    assert wr.framed(np.array([], float), "median", lo=[], hi=[]).tolist() == []
    assert wr.framed(np.array([1.0]), "mode", lo=[], hi=[]).tolist() == []
    assert wr.framed(np.array([], int), "count_distinct", lo=[0, 3], hi=[5, 4]).tolist() == [0, 0]
    assert np.isnan(wr.framed(np.array([], int), "mode", lo=[0], hi=[5])).all()


def test_coded_columns_and_shared_evaluation() -> None:
    codes = Coded(np.array([1, 0, 1, 2]), np.array(["a", "b", "c"], np.dtypes.StringDType()))
    frames = Frames(np.zeros(4, np.int64), np.arange(1, 5))
    evaluation = FrameEvaluation({"s": codes, "x": Column(np.array([1.0, np.nan, 3.0, 3.0]))}, frames)
    assert evaluation.result(wr.mode("s")).values.tolist() == ["b", "a", "b", "b"]
    assert evaluation.result(wr.count()).values.tolist() == [1, 2, 3, 4]
    assert evaluation.result(wr.sum("x")).values.tolist() == [1, 1, 4, 7]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"agg": "quantile_cont(1.5)"}, "between 0 and 1, got 1.5"),
        ({"agg": "percentile(140)"}, "between 0 and 100"),
        ({"agg": "medain"}, "Did you mean 'median'"),
        ({"lo": [0, 1, 2]}, "one length"),
        ({"lo": [0.5, 1.0]}, "whole numbers"),
        ({"lo": [[0], [1]]}, "vector of row numbers"),
        ({"values": np.ones((2, 2))}, "a vector of values"),
        ({"values": np.array([{}, {}], object)}, "cannot be aggregated"),
        ({"values": np.array([1, "a"], object)}, "cannot be aggregated"),
        ({"values": np.array([1j, 2j])}, "no windrow type"),
        ({"values": np.array(["a", "b"]), "agg": "median"}, "median cannot take values of type string"),
        ({"values": np.array([0, 1], "M8[us]"), "agg": "sum"}, "sum cannot take values of type datetime"),
        ({"method": "fast"}, "method must be one of"),
        ({"method": "reuse", "agg": "sum"}, "method reuse is for quantiles only"),
        ({"method": "segment_tree", "agg": "mode"}, "method segment_tree is for sums"),
        ({"exclude": "me"}, "exclude must be one of"),
        ({"exclude": "ties"}, "which rows are peers"),
        ({"exclude": "current row", "lo": [0], "hi": [1]}, "one frame for each of 2 rows"),
        ({"where": [True]}, "a boolean for each of 2 rows"),
        ({"where": [1, 0]}, "a boolean for each of 2 rows"),
        ({"tau": 1.1}, "tau must be from 0 to 1"),
    ],
)
def test_bad_input(arguments: dict[str, Any], message: str) -> None:
    call: dict[str, Any] = {"values": np.array([1.0, 2.0]), "agg": "median", "lo": [0, 0], "hi": [1, 2]}
    with pytest.raises(wr.Error, match=message):
        wr.framed(**(call | arguments))


@settings(max_examples=25)
@given(st.data())
def test_duckdb_agrees(data: st.DataObject) -> None:
    """Modes are left out: among equally frequent values DuckDB takes the first it meets, windrow the smallest."""
    import duckdb

    rows = data.draw(st.integers(1, 30))
    random = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    values = random.integers(0, data.draw(st.sampled_from([3, 100])), rows)
    before, after = random.integers(0, 6, rows), random.integers(0, 6, rows)
    key = np.sort(random.integers(0, rows, rows))
    exclude = data.draw(st.sampled_from(["no others", "current row", "group", "ties"]))
    calls = {
        "median": "median(v)", "count_distinct": "count(distinct v)", "sum": "sum(v)", "max": "max(v)",
        "quantile_disc(0.3)": "quantile_disc(v, 0.3)", "quantile_cont(0.9)": "quantile_cont(v, 0.9)",
    }  # fmt: skip
    table = {"i": np.arange(rows), "v": values, "b": before, "a": after, "k": key}
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.register("t", connection.from_arrow(_arrow(table)))
        over = f"over (order by k, i rows between b preceding and a following exclude {exclude})"
        if exclude in ("group", "ties"):
            over = f"over (order by k groups between 1 preceding and 1 following exclude {exclude})"
        columns = ", ".join(f"{call} {over}" for call in calls.values())
        expected = connection.sql(f"select {columns} from t order by i").fetchall()
    peers = (np.searchsorted(key, key, "left"), np.searchsorted(key, key, "right"))
    place = np.arange(rows)
    lo, hi = place - before, place + after + 1
    if exclude in ("group", "ties"):
        starts = np.append(np.unique(peers[0]), rows)
        group = np.searchsorted(starts, peers[0])
        lo, hi = starts[np.maximum(group - 1, 0)], starts[np.minimum(group + 2, len(starts) - 1)]
    for column, name in enumerate(calls):
        found = wr.framed(values, name, lo=lo, hi=hi, exclude=exclude, peers=peers)
        for got, row in itertools.zip_longest(found, expected):
            assert (np.isnan(got) and row[column] is None) or got == pytest.approx(row[column]), name


def _arrow(table: dict[str, Any]) -> Any:
    import pyarrow as pa

    return pa.table(table)


def test_a_tau_of_one_is_naive_and_small_tables_are_kept() -> None:
    chance = np.random.default_rng(16)
    row = np.arange(6000)
    for values in (chance.integers(0, 100, len(row)), chance.integers(0, 5000, len(row))):
        for agg in ("count_distinct", "mode"):
            naive = wr.framed(values, agg, row - 9, row + 1, method="naive")
            for tau in (0.0, 0.25, 0.9, 1.0):
                found = wr.framed(values, agg, row - 9, row + 1, method="incremental", tau=tau)
                np.testing.assert_array_equal(found, naive)


def test_when_a_table_of_counts_is_flushed() -> None:
    from windrow.kernels.papers.frame_table import NONZERO, SMALL, TAKEN, frame_table, is_worn

    table = frame_table(10_000, 10, 0.25, np.dtype(np.int64))
    for taken, nonzero, tau, worn in (
        (SMALL, 1, 0.25, False), (SMALL + 1, 1, 0.25, True), (SMALL + 1, SMALL, 0.25, False), (1, 1, 1.0, True),
    ):  # fmt: skip
        table.state[TAKEN], table.state[NONZERO] = taken, nonzero
        assert bool(is_worn.py_func(table, tau)) is worn
