"""Unordered rows cut by a sample, without Spark: whatever the sample is, results are right or the route is refused."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import frame_tables_twin as twin
from frame_cases import Case, cases, check, table
from windrow.dataframes import sampled_cuts
from windrow.dataframes.cuts import TIE
from windrow.dataframes.order import Halo
from windrow.dataframes.row_order import encode_key, sort_table
from windrow.dataframes.sampled_cuts import (
    AT,
    FIRST,
    Border,
    KeySample,
    Mark,
    choose_borders,
    choose_clean_borders,
    estimate_tasks,
    share_out,
)
from windrow.dataframes.sampled_route import run_sampled
from windrow.dataframes.spec import PLACE, FrameTask, is_bounded
from windrow.errors import DataError
from windrow.kernels.frames.row_sorting import sort_rows
from windrow.model.frame import SortKey


def is_below(sample: KeySample, mark: Mark, row: dict[str, Any]) -> bool:
    """Whether a row sorts before a mark: the twin of what Spark is told to compare."""
    there = sample.keys.slice(mark.row, 1).to_pylist()[0]
    keys = [
        twin.Order(key.column, key.descending, key.nulls_first)
        for key in sample.partition + (sample.order if mark.side == AT else ())
    ]
    own, other = (tuple(key.sorting(one) for key in keys) for one in (row, there))
    if own < other or other < own:
        return own < other
    if mark.side != AT:
        return mark.side != FIRST
    tie = sample.ties[mark.row]
    return tie is not None and row[TIE] < tie


def task_of(sample: KeySample, borders: tuple[Border, ...], row: dict[str, Any]) -> int:
    return sum(not is_below(sample, border.cut, row) for border in borders)


def is_reached(sample: KeySample, borders: tuple[Border, ...], row: dict[str, Any]) -> bool:
    return any(not is_below(sample, one.start, row) and is_below(sample, one.stop, row) for one in borders)


def sample_of(case: Case, rows: list[dict[str, Any]], with_ties: bool) -> KeySample:
    task = case.task
    keys = table(rows).select([*(key.column for key in task.keys), TIE])
    ordered = sort_table(keys, task.keys, ())
    distinct, groups = (
        len({repr([twin.Order(k.column).sorting(row) for k in task.keys]) for row in some})
        for some in (rows, case.rows)
    )
    if distinct == len(rows) and task.keys and not with_ties:
        ordered = ordered.drop_columns([TIE])
    return KeySample(ordered, len(case.rows), task.partition, task.order, groups)


def run(case: Case, sample: KeySample, tasks: int) -> list[pa.RecordBatch] | str:
    """What all tasks give, or why the route was refused."""
    task = case.task
    borders = choose_borders(task, sample, tasks)
    near = [row for row in case.rows if is_reached(sample, borders, row)]
    shares = share_out(task, sample, borders, table(near))
    if shares.obstacle is not None:
        return shares.obstacle
    found = []
    for number in range(len(borders) + 1):
        own = [{**row, PLACE: number} for row in case.rows if task_of(sample, borders, row) == number]
        batches = table(own).to_batches(max_chunksize=5)
        found += list(run_sampled(task, [TIE], shares.halos, {}, iter(batches)))
    return found


BOUNDED = cases(tied=True).filter(lambda case: is_bounded(case.task.frames[0]) and bool(case.rows))


@settings(max_examples=60)
@given(BOUNDED, st.integers(1, 9), st.data())
def test_any_sample_gives_right_results_or_none(case: Case, tasks: int, data: st.DataObject) -> None:
    """Samples are as misleading as can be: any rows at all."""
    drawn = data.draw(st.lists(st.sampled_from(case.rows), unique_by=lambda row: row["id"], min_size=1))
    found = run(case, sample_of(case, drawn, data.draw(st.booleans())), tasks)
    if isinstance(found, str):
        assert "misleading" in found
        assert case.unit != "range"
    else:
        check(case, found, TIE)


UNBOUNDED = cases(tied=True).filter(
    lambda case: not is_bounded(case.task.frames[0]) and bool(case.rows) and bool(case.task.partition)
)


@settings(max_examples=60)
@given(UNBOUNDED, st.integers(1, 9), st.data())
def test_partitions_that_stay_whole_need_nothing_of_others(case: Case, tasks: int, data: st.DataObject) -> None:
    """Unbounded frames, and samples that are as misleading as can be."""
    drawn = data.draw(st.lists(st.sampled_from(case.rows), unique_by=lambda row: row["id"], min_size=1))
    sample = sample_of(case, drawn, False)
    borders = choose_clean_borders(sample, tasks, through=False)
    assert len(estimate_tasks(sample, borders)) == len(borders) + 1 <= tasks
    found = []
    for number in range(len(borders) + 1):
        own = [{**row, PLACE: number} for row in case.rows if task_of(sample, borders, row) == number]
        found += list(run_sampled(case.task, [TIE], {}, {}, iter(table(own).to_batches(max_chunksize=5))))
    check(case, found, TIE)


def test_rows_that_came_since_they_were_counted_are_noticed() -> None:
    """What was worked out for the tasks after this one would be wrong."""
    rows = pa.table({"k": [2, 1, 3], PLACE: pa.array([0, 0, 0], pa.int32())})
    task = FrameTask((), (SortKey("k"),), (), (), ("k",), is_unbounded=True, kinds=(("k", pa.int64()),))
    ran = partial(run_sampled, task, ["k"])
    assert sum(batch.num_rows for batch in ran({0: Halo(3, None, None)}, {0: ()}, iter(rows.to_batches()))) == 3
    with pytest.raises(DataError, match=r"the input changed .* 3 rows in a partition that had 2"):
        list(ran({0: Halo(2, None, None)}, {0: ()}, iter(rows.to_batches())))


@settings(max_examples=40)
@given(BOUNDED, st.integers(1, 9))
def test_a_sample_of_all_rows_is_never_refused(case: Case, tasks: int) -> None:
    found = run(case, sample_of(case, case.rows, False), tasks)
    assert not isinstance(found, str)
    check(case, found, TIE)


def thin_case(rows: int, start: int, end: int) -> tuple[Case, KeySample]:
    """Rows 0, 1, 2, … of which every tenth was sampled."""
    made = [
        {"id": k, "g": 0, "k": float(k), "v": k % 7, "w": 0.0, "f": True, TIE: k, PLACE: 0} for k in range(rows)
    ]  # fmt: skip
    case = Case(made, (), (twin.Order("k"),), "rows", start, end, "no others", ("sum", "v", None), None)
    return case, sample_of(case, made[::10], False)


@pytest.mark.parametrize(("start", "end"), [(-30, 0), (0, 30), (-40, 25)])
def test_too_short_a_halo_is_noticed(monkeypatch: pytest.MonkeyPatch, start: int, end: int) -> None:
    case, sample = thin_case(400, start, end)
    found = run(case, sample, 4)
    assert not isinstance(found, str)
    check(case, found, TIE)
    # Exactly enough: so many sampled rows hold so many rows. One fewer is ten rows too short.
    monkeypatch.setattr(sampled_cuts, "DEVIATIONS", 0.0)
    monkeypatch.setattr(sampled_cuts, "SPARE", 0)
    found = run(case, sample, 4)
    assert not isinstance(found, str)
    check(case, found, TIE)
    monkeypatch.setattr(sampled_cuts, "SPARE", -1)
    refused = run(case, sample, 4)
    assert isinstance(refused, str)
    assert "the sample is misleading" in refused


def test_a_halo_one_row_short_is_noticed() -> None:
    case, sample = thin_case(100, -10, 0)
    borders = (Border(Mark(4), Mark(5), Mark(5)),)
    for missing, enough in ((0, True), (1, False)):
        rows = table(case.rows[40 + missing : 50])
        assert (share_out(case.task, sample, borders, rows).obstacle is None) is enough


KEYS = st.sampled_from([None, float("nan"), -float("nan"), -0.0, 0.0, 1.5, -2.0, float("inf"), -float("inf"), 1e-320])


@given(st.lists(st.tuples(KEYS, st.integers(-(2**63), 2**63 - 1)), max_size=60), *[st.booleans()] * 4)
def test_rows_sort_as_spark_sorts(
    rows: list[tuple[Any, int]], descending: bool, nulls_first: bool, second_descending: bool, ties: bool
) -> None:
    held = [
        {"x": x, "y": y % 3 if ties else y, TIE: (k * 7919) % 61 - 30, "id": k} for k, (x, y) in enumerate(rows)
    ]  # fmt: skip
    keys = [SortKey("x", descending, nulls_first), SortKey("y", second_descending)]
    orders = [twin.Order("x", descending, nulls_first), twin.Order("y", second_descending), twin.Order(TIE)]
    wanted = sorted(held, key=lambda row: tuple(key.sorting(row) for key in orders))
    columns = {"x": pa.float64(), "y": pa.int64(), TIE: pa.int64(), "id": pa.int64()}
    given_table = pa.table({name: pa.array([row[name] for row in held], kind) for name, kind in columns.items()})
    assert sort_table(given_table, keys, ()).column("id").to_pylist() == [row["id"] for row in wanted]


@given(st.lists(st.integers(0, 2**64 - 1), max_size=50), st.integers(0, 63))
def test_sorting_is_stable(values: list[int], shift: int) -> None:
    codes = np.array(values, np.uint64) >> np.uint64(shift)
    assert sort_rows([codes], len(values)).tolist() == np.argsort(codes, kind="stable").tolist()
    assert sort_rows([codes & np.uint64(1), codes], len(values)).tolist() == np.lexsort([codes, codes & 1]).tolist()


def test_texts_and_decimals_have_codes() -> None:
    from decimal import Decimal

    for column in (
        pa.array(["b", None, "", "ä", "a"]),
        pa.array([Decimal(x) if x is not None else None for x in ("1.5", None, "-7", "300", "0")], pa.decimal128(9, 2)),
        pa.array(
            [Decimal(x) if x is not None else None for x in ("1.5", None, "-7", "300", "0")], pa.decimal128(30, 2)
        ),
        pa.array([True, None, False, True, None]),
    ):
        order = sort_rows(encode_key(column, SortKey("x", True, False)), 5)
        values = [value for value in column.to_pylist() if value is not None]
        assert [column[int(k)].as_py() for k in order][: len(values)] == sorted(
            values, key=lambda v: v.encode() if isinstance(v, str) else v, reverse=True
        )


def test_marks_lie_in_the_order_of_their_partitions() -> None:
    """Partition 1 ends before partition 2 begins, and both lie around their rows."""
    marks = [Mark(0, FIRST), Mark(0), Mark(3), Mark(3, sampled_cuts.LAST), Mark(4, FIRST), Mark(4)]
    assert sorted({*marks}) == marks
    assert replace(marks[0], side=AT) == marks[1]
