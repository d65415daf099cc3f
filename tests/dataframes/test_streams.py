"""Frames of tables cut into tasks, without Spark: the functions that its workers run, fed as Spark would feed them."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import frame_tables_twin as twin
import windrow as wr
from frame_cases import KINDS, Case, cases, check, table
from windrow.aggregates.aggregate import Aggregate
from windrow.dataframes.blocks import FrameStream
from windrow.dataframes.cuts import LOWER, NOWHERE, TIE, UPPER, Cuts, choose_cuts
from windrow.dataframes.exact_route import run_sorted
from windrow.dataframes.in_place_route import run_in_place
from windrow.dataframes.keys import distances, join_chunks, steps
from windrow.dataframes.order import PartitionLook, are_in_order, halos, look, open_looks
from windrow.dataframes.rank_bands import band_of
from windrow.dataframes.slices import Piece, divide
from windrow.dataframes.spec import (
    CARRIED,
    HOME,
    PLACE,
    TARGET,
    TIMES,
    FrameTask,
    TableAggregate,
    is_bounded,
)
from windrow.dataframes.unbounded_states import Part, outside_parts, state_of, unite_parts
from windrow.dataframes.unbounded_summaries import _assign_to_tasks, _combine
from windrow.dataframes.unseen_pieces import Elsewhere, Sent, find_elsewhere
from windrow.errors import DataError
from windrow.model.frame import SortKey


@settings(max_examples=60)
@given(cases(tied=False), st.lists(st.integers(0, 12), max_size=50), st.integers(1, 8))
def test_rows_in_order_stay_where_they_are(case: Case, sizes: list[int], batch_rows: int) -> None:
    """However rows are cut into Spark partitions, empty ones and those of one row among them."""
    rows = case.sorted(None)
    for row, number in zip(rows, itertools.count()):
        row["id"] = number  # ties are in the order in which rows are
    task = replace(case.task, loads_all=True, holds_all=False)
    ends = [min(end, len(rows)) for end in itertools.accumulate(sizes)]
    parts = [rows[begin:end] for begin, end in itertools.pairwise([0, *ends, len(rows)])]
    batches = [
        table([{**row, PLACE: place} for row in part]).to_batches(max_chunksize=batch_rows)
        for place, part in enumerate(parts)
    ]
    seen = [batch.to_pylist()[0:] for part in batches for batch in look(task, True, iter(part))]
    looks = [one for one in open_looks([(row["seen"],) for rows in seen for row in rows]) if one.rows]
    assert are_in_order(task, looks)
    held = halos(task, looks)
    found = [batch for part in batches for batch in run_in_place(task, held, {}, iter(part))]
    check(case, found, "id")


@settings(max_examples=30)
@given(cases(tied=False).filter(lambda case: bool(case.order)), st.data())
def test_rows_out_of_order_are_noticed(case: Case, data: st.DataObject) -> None:
    rows = data.draw(st.permutations(case.sorted(None)))
    cut = data.draw(st.integers(0, len(rows)))
    parts = [part for part in (rows[:cut], rows[cut:]) if part]
    keys = [twin.Order(name) for name in case.by] + list(case.order)
    sorting = [tuple(key.sorting(row) for key in keys) for row in rows]
    seen = [
        batch.to_pylist()
        for place, part in enumerate(parts)
        for batch in look(case.task, True, iter(table([{**row, PLACE: place} for row in part]).to_batches()))
    ]
    looks = open_looks([(row["seen"],) for rows in seen for row in rows])
    in_order = all(not later < earlier for earlier, later in itertools.pairwise(sorting))
    assert are_in_order(case.task, looks) == in_order


def slice_of(cuts: Cuts, row: dict[str, Any]) -> int:
    """A row's piece by comparing it with every cut: the twin of what Spark is told to do."""
    keys = [twin.Order(key.column, key.descending, key.nulls_first) for key in cuts.partition + cuts.order]
    own = tuple(key.sorting(row) for key in keys)
    number = 0
    rows = cuts.keys.to_pylist()
    for cut, tie in zip(rows, cuts.ties, strict=True):
        there = tuple(key.sorting(cut) for key in keys)
        number += own > there or (not own < there and (tie is None or row[TIE] >= tie))
    groups = len(cuts.partition)

    def shares(cut: int) -> bool:
        there = tuple(key.sorting(rows[cut]) for key in keys[:groups])
        return not (own[:groups] < there or there < own[:groups])

    if number > 0 and shares(number - 1):
        return 3 * number + LOWER
    return 3 * number + (UPPER if number < len(cuts.ties) and shares(number) else NOWHERE)


def pieces_of(task: FrameTask, placed: dict[int, list[dict[str, Any]]]) -> list[Piece]:
    found = []
    for number, rows in placed.items():
        part = table(rows)
        least = most = None
        unordinary = 0
        if task.order:
            values, plain = distances(join_chunks(part.column("k")), task.order[0])
            keys = values if plain is None else values[plain]
            least, most = (keys.min(), keys.max()) if len(keys) else (None, None)
            unordinary = len(values) - len(keys)
        distinct = len({repr([twin.Order(k.column).sorting(row) for k in task.order]) for row in rows})
        found.append(Piece(number, len(rows), least, most, unordinary, distinct))
    return found


def parts_of(task: FrameTask, placed: dict[int, list[dict[str, Any]]]) -> dict[int, Part]:
    """What Spark would work out of each piece."""
    item = task.aggregates[0]
    definition, column = item.aggregate.definition, item.aggregate.attribute
    found = {}
    for number, rows in placed.items():
        kept = [row for row in rows if item.keep is None or row[item.keep]]
        values = [1 if column is None else row[column] for row in kept]
        present = [value for value in values if value is not None]
        if definition.tallies:
            column_values = pa.array(present, KINDS[str(column)])
            found[number] = Part(len(present), values=column_values, times=np.ones(len(present), np.int64))
            continue
        numbers = np.array(present if definition.takes[0] == "number" else [], float)
        with np.errstate(invalid="ignore"):
            extreme = twin.partitions([{"x": v} for v in present], (), [twin.Order("x")], None)
            ends = [row["x"] for part in extreme for row in part]
            known = {
                "count": len(present),
                "sum": sum(present) if present else None,
                "avg": numbers.mean() if len(numbers) else None,
                "moment_xx": numbers.var() * len(numbers) if len(numbers) else None,
                "min": ends[0] if ends else None,
                "max": ends[-1] if ends else None,
            }
        found[number] = state_of(item, [known[part] for part in item.aggregate.parts()])
    return found


def present(rows: list[dict[str, Any]], item: TableAggregate) -> list[Any]:
    kept = [row[str(item.aggregate.attribute)] for row in rows if item.keep is None or row[item.keep]]
    return [value for value in kept if value is not None]


def ranked(values: list[Any]) -> dict[str, int]:
    """The number of each value in their order; NaN is the last, and -0.0 is 0.0."""
    ordered = sorted(values, key=lambda value: twin.Order("x").sorting({"x": value}))
    return {text: rank for rank, text in enumerate(dict.fromkeys(repr(value + 0) for value in ordered))}


def sent_to(
    task: FrameTask, placed: dict[int, list[dict[str, Any]]], place: Elsewhere, step: int
) -> tuple[Part, list[Any]]:
    """What a task learns of values elsewhere if it gets only those that matter, and the values themselves."""
    item = task.aggregates[0]
    values = {piece: present(rows, item) for piece, rows in placed.items()}
    outside = [value for piece in place.outside for value in values.get(piece, [])]
    if item.aggregate.name in ("count_distinct", "mode"):
        seen = {repr(value + 0) for piece in place.seen for value in values.get(piece, [])}
        texts = [repr(value + 0) for value in outside]
        part = Part(len(outside), distinct=len(set(texts)), has_seen=place.whole)
        if item.aggregate.name == "mode" and outside:
            rank = ranked(outside)
            best = min(set(texts), key=lambda text: (-texts.count(text), rank[text]))
            kind = KINDS[str(item.aggregate.attribute)]
            part = replace(part, best=pa.array([float(best)]).cast(kind), best_times=texts.count(best))
        return part, [value for value in outside if repr(value + 0) in seen]
    rank = ranked([value for held in values.values() for value in held])
    slices = len(rank) // step + 1
    counts = {
        piece: np.bincount([rank[repr(value + 0)] // step for value in held], minlength=slices)
        for piece, held in values.items()
    }
    band = band_of(place, item, counts)
    return band.part, [value for value in outside if rank[repr(value + 0)] // step in band.slices]


def sent_rows(values: list[Any], item: TableAggregate, place: Elsewhere) -> pa.Table:
    """Values as the rows that bring them; equal values are brought once."""
    column = str(item.aggregate.attribute)
    times: dict[str, int] = {}
    for value in values:
        times[repr(value + 0)] = times.get(repr(value + 0), 0) + 1
    rows = len(times)
    columns = {name: pa.nulls(rows, kind) for name, kind in KINDS.items()}
    columns[column] = pa.array([float(text) for text in times]).cast(KINDS[column])
    columns |= {HOME: pa.array([False] * rows), TARGET: pa.array([place.share] * rows, pa.int32())}
    columns |= {
        CARRIED: pa.array([int(place.after)] * rows, pa.int32()),
        TIMES: pa.array(list(times.values()), pa.int64()),
    }
    return pa.table(columns)


@settings(max_examples=150)
@given(cases(tied=True), st.integers(1, 12), st.integers(1, 4), st.integers(1, 7), st.integers(0, 3))
def test_rows_are_cut_into_tasks(case: Case, tasks: int, slices: int, stride: int, step: int) -> None:
    """With a ``step`` values elsewhere come as rows, from slices of so many different values."""
    task = case.task
    sampled = table(case.rows[::stride]).select([key.column for key in task.keys])
    looks = [PartitionLook(0, len(case.rows), sample=[sampled], stride=stride)] if case.rows else []
    if not case.rows:
        return
    cuts = choose_cuts(task, looks, tasks * slices)
    placed: dict[int, list[dict[str, Any]]] = {}
    for row in case.rows:
        placed.setdefault(slice_of(cuts, row), []).append(row)
    division = divide(task, cuts, pieces_of(task, placed), tasks)
    spread = list(division.spread())
    carried = {}
    brought: dict[int, list[pa.Table]] = {}
    if not task.loads_all and not is_bounded(task.frames[0]) and spread:
        if step and task.aggregates[0].aggregate.definition.tallies:
            sent = {}
            for place in find_elsewhere(division, task.frames[0]):
                part, values = sent_to(task, placed, place, step)
                sent[place.share, place.after] = part
                brought.setdefault(place.share, []).append(sent_rows(values, task.aggregates[0], place))
            carried = _combine(task, {}, {0: Sent(sent, None)}).outside
        else:
            carried = _assign_to_tasks(task, division, spread, {0: parts_of(task, placed)})
    rank = {row["id"]: number for number, row in enumerate(case.sorted(TIE))}
    found = []
    for share in division.shares:
        own = [
            {**row, PLACE: piece, "home": division.home[piece] == share.number}
            for piece, rows in placed.items()
            if division.lowest[piece] <= share.number <= division.highest[piece]
            for row in rows
        ]
        own.sort(key=lambda row: rank[row["id"]])
        rows = table(own).append_column(HOME, pa.array([row["home"] for row in own], pa.bool_()))
        rows = rows.append_column(TARGET, pa.array([share.number] * len(own), pa.int32()))
        rows = pa.concat_tables([*brought.get(share.number, ()), rows], promote_options="default")
        found += list(run_sorted(task, carried, iter(rows.combine_chunks().to_batches(max_chunksize=5))))
    check(case, found, TIE)


@settings(max_examples=40)
@given(cases(tied=False), st.integers(1, 9), st.integers(1, 9))
def test_blocks_of_any_size_give_the_same(case: Case, block_rows: int, batch_rows: int) -> None:
    rows = case.sorted(None)
    for number, row in enumerate(rows):
        row["id"] = number
    stream = FrameStream(replace(case.task, loads_all=True, holds_all=False), block_rows=block_rows)
    whole = table(rows)
    found = []
    for begin in range(0, len(rows), batch_rows):
        found += list(stream.add(whole.slice(begin, batch_rows)))
    found += list(stream.finish())
    check(case, found, "id")


@settings(max_examples=60)
@given(cases(tied=False), st.one_of(st.just(0), st.integers(-6, 6)), st.integers(1, 9), st.integers(1, 9))
def test_running_counts_hold_no_rows(case: Case, end: int, block_rows: int, batch_rows: int) -> None:
    """Rows that no other row needs are let go of and counted, whatever is excluded."""
    end = end if case.unit != "range" or case.order else 0
    case = replace(case, by=(), start=None, end=end, wanted=("count", None, None), keep=None)
    rows = case.sorted(None)
    for number, row in enumerate(rows):
        row["id"] = number
    assert case.task.only_counts
    assert not case.task.holds_all
    stream, whole, found = FrameStream(case.task, block_rows=block_rows), table(rows), []
    for begin in range(0, len(rows), batch_rows):
        found += list(stream.add(whole.slice(begin, batch_rows)))
    found += list(stream.finish())
    check(case, found, "id")


def test_a_stream_out_of_order_is_an_error() -> None:
    case = Case([], (), (twin.Order("k"),), "rows", -1, 0, "no others", ("count", None, None), None)
    rows = [{"id": k, "g": 0, "k": float(-k), "v": 0, "w": 0.0, "f": True, TIE: k, PLACE: 0} for k in range(3)]
    stream = FrameStream(case.task)
    list(stream.add(table(rows)))
    with pytest.raises(DataError, match="out of order"):
        list(stream.finish())


@given(st.integers(0, 300), st.sampled_from([wr.median("x"), wr.percentile("x", 33.3), wr.quantile_disc("x", 0.1),
       wr.quantile_cont("x", 0.9), wr.quantile_index("x", 0.7)]))  # fmt: skip
def test_ranks_are_those_of_windows(count: int, aggregate: Aggregate) -> None:
    ranks = aggregate.ranks(count)
    assert ranks is not None
    rule = aggregate.definition.ranks
    assert rule is not None
    lower, upper, weight = rule.at(aggregate.fraction, np.arange(count + 1))
    assert lower[1:].tolist() == ranks.lower[1:].tolist()
    assert upper[1:].tolist() == ranks.upper[1:].tolist()
    assert weight[1:].tolist() == ranks.weight[1:].tolist()


def test_parts_join_as_one() -> None:
    item = TableAggregate("out", Aggregate("var", "v"), 0, pa.float64())
    values = np.array([3.0, 8.0, -1.0, 4.0, 4.0])
    parts = [state_of(item, [len(v), v.mean(), v.var() * len(v)]) for v in (values[:2], values[2:])]
    whole = unite_parts([*parts, Part()], item)
    assert whole.rows == 5
    assert whole.known["moment_xx"] == pytest.approx(values.var() * 5)
    outside = outside_parts({1: parts[0], 2: parts[1]}, [1, 2], [], item)
    assert outside.before is not None
    assert outside.before.known["avg"] == pytest.approx(values.mean())
    assert outside.after is None


def test_steps_follow_spark() -> None:
    column = pa.table({"x": pa.array([None, -1.0, -0.0, 0.0, float("nan"), float("nan"), 2.0])})
    assert steps(column, [SortKey("x")]).tolist() == [1, 1, 0, 1, 0, -1]
    assert steps(column, [SortKey("x", True, False)]).tolist() == [-1, -1, 0, -1, 0, 1]
