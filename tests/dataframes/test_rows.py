"""Bounds of many partitions at once against those of one partition at a time."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from frame_bounds import Bound, OrderKey, row_bounds
from frame_bounds import Frame as PlainFrame
from windrow.dataframes.rows import SortedRows
from windrow.dataframes.spec import FrameBound
from windrow.kernels.frames.segments import search_segments
from windrow.model.frame import DAY, Frame, Interval, SortKey

HOUR = 3_600_000_000
START = datetime.date(2024, 1, 20)


def _days(number: int) -> datetime.date:
    return START + datetime.timedelta(days=number)


def _hours(number: int) -> datetime.datetime:
    return datetime.datetime(2024, 1, 30) + datetime.timedelta(hours=number)


def _edge(number: int) -> int:
    """Numbers at both ends of what int64 holds."""
    return 2**63 - 1 - number if number % 2 else number - 2**63


def _plain(keys: pa.Array) -> Any:
    return np.array(keys.to_pylist()) if pa.types.is_decimal(keys.type) else keys.to_numpy(zero_copy_only=False)


KINDS: dict[str, tuple[pa.DataType, Any, Any]] = {
    # Arrow's type, the key of a number, and as an offset there what is so many steps here.
    "integers": (pa.int64(), int, int),
    "edges": (pa.int64(), _edge, int),
    "dates": (pa.date32(), _days, lambda n: Interval(0, n * DAY)),
    "moments": (pa.timestamp("us"), _hours, lambda n: Interval(0, n * HOUR)),
    "decimals": (pa.decimal128(10, 1), lambda n: Decimal(n) / 2, lambda n: Decimal(n) / 10),
}
STEP = {"dates": DAY, "moments": HOUR}


@settings(max_examples=80)
@given(
    st.sampled_from(list(KINDS)),
    st.lists(st.lists(st.integers(0, 40), min_size=1, max_size=15), min_size=1, max_size=4),
    st.booleans(),
    st.integers(-30, 30),
    st.integers(-30, 30),
    st.data(),
)
def test_range_bounds_are_those_of_each_partition(
    name: str, groups: list[list[int]], descending: bool, start: int, end: int, data: st.DataObject
) -> None:
    kind, key_of, offset_of = KINDS[name]
    months = data.draw(st.integers(-2, 2)) if name in STEP else 0
    sorted_groups = [sorted((key_of(n) for n in group), reverse=descending) for group in groups]
    table = pa.table(
        {
            "g": pa.array([g for g, keys in enumerate(sorted_groups) for _ in keys], pa.int32()),
            "k": pa.array([key for keys in sorted_groups for key in keys], kind),
        }
    )
    rows = SortedRows(table, [SortKey("g")], [SortKey("k", descending)])
    step = STEP.get(name, 1)
    low_bound: Any = Interval(months, start * step) if months else start * step
    frame = Frame("range", FrameBound(low_bound), FrameBound(end * step))
    assert rows.in_order
    low, high = rows.bounds(frame, 0, table.num_rows)
    begin = 0
    for keys in sorted_groups:
        order = OrderKey(_plain(pa.array(keys, kind)), descending=descending)
        first = Interval(months, start * step) if months else offset_of(start)
        wanted = row_bounds(PlainFrame("range", Bound(_zero(first)), Bound(_zero(offset_of(end)))), [order], len(keys))
        assert (low[begin : begin + len(keys)] - begin).tolist() == wanted[0].tolist()
        assert (high[begin : begin + len(keys)] - begin).tolist() == wanted[1].tolist()
        begin += len(keys)


def _zero(offset: Any) -> Any:
    """The current row is the number 0 in every unit."""
    return 0 if offset in (0, Interval()) else offset


@given(st.lists(st.integers(0, 9), max_size=30), st.lists(st.integers(-1, 10), min_size=1, max_size=30), st.booleans())
def test_searches_are_those_of_numpy(values: list[int], wanted: list[int], after: bool) -> None:
    ordered = np.sort(np.array(values, np.int64))
    out = np.empty(len(wanted), np.int64)
    first, last = np.zeros(len(wanted), np.int64), np.full(len(wanted), len(ordered), np.int64)
    search_segments(ordered, np.array(wanted, np.int64), first, last, after, out)
    assert out.tolist() == np.searchsorted(ordered, wanted, "right" if after else "left").tolist()
