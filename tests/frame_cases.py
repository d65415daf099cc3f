"""Random tables and what is asked of their frames, for tests that run what Spark's workers run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

import frame_tables_twin as twin
from windrow.aggregates.aggregate import Aggregate
from windrow.dataframes.cuts import TIE
from windrow.dataframes.spec import PLACE, FrameBound, FrameTask, TableAggregate, is_bounded
from windrow.dataframes.unbounded_states import can_carry
from windrow.model.frame import Frame, SortKey

KINDS = {
    "id": pa.int64(), "g": pa.int32(), "k": pa.float64(), "v": pa.int64(), "w": pa.float64(), "f": pa.bool_(),
    TIE: pa.int64(), PLACE: pa.int32(),
}  # fmt: skip
WANTED: list[tuple[str, str | None, float | None]] = [
    ("count", None, None), ("count", "v", None), ("sum", "v", None), ("avg", "w", None), ("var", "v", None),
    ("std_pop", "v", None), ("min", "w", None), ("max", "w", None), ("median", "w", None), ("percentile", "v", 70.0),
    ("quantile_disc", "v", 0.25), ("quantile_index", "w", 0.75), ("count_distinct", "w", None), ("mode", "v", None),
]  # fmt: skip


@dataclass(frozen=True)
class Case:
    """Rows and what is asked of them."""

    rows: list[dict[str, Any]]
    by: tuple[str, ...]
    order: tuple[twin.Order, ...]
    unit: str
    start: Any
    end: Any
    exclude: str
    wanted: tuple[str, str | None, float | None]
    keep: str | None

    @property
    def task(self) -> FrameTask:
        frame = Frame(self.unit, FrameBound(self.start), FrameBound(self.end), self.exclude)
        name, column, parameter = self.wanted
        same = name in ("min", "max", "percentile", "quantile_disc", "quantile_index", "mode")
        whole = name in ("count", "count_distinct") or (name == "sum" and column == "v")
        result = KINDS[str(column)] if same else pa.int64() if whole else pa.float64()
        item = TableAggregate("out", Aggregate(name, column, parameter), 0, result, self.keep)
        keys = tuple(SortKey(key.column, key.descending, key.nulls_first) for key in self.order)
        partition = tuple(SortKey(name) for name in self.by)
        task = FrameTask(partition, keys, (frame,), (item,), ("id",), kinds=tuple(KINDS.items()))
        unbounded = not is_bounded(frame)
        holds_all = unbounded and not task.only_counts
        return replace(task, loads_all=not can_carry(item, frame), is_unbounded=unbounded, holds_all=holds_all)

    def answers(self, tie: str | None) -> dict[int, Any]:
        frame = (self.unit, self.start, self.end, self.exclude)
        return twin.aggregate(self.rows, self.by, self.order, tie, frame, self.wanted, self.keep)

    def sorted(self, tie: str | None) -> list[dict[str, Any]]:
        parts = twin.partitions(self.rows, self.by, self.order, tie)
        first = [twin.Order(name) for name in self.by]
        return [row for part in sorted(parts, key=lambda p: [key.sorting(p[0]) for key in first]) for row in part]


def table(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in KINDS.items()})


NUMBERS = st.sampled_from([None, float("nan"), -0.0, 0.0, 1.0, 2.0, 2.5, 7.0, -3.0, float("inf")])

FLAGS = st.sampled_from([None, True, True, False])


@st.composite
def cases(draw: st.DrawFn, tied: bool) -> Case:
    count = draw(st.integers(0, 40))
    keys = st.sampled_from([None, float("nan"), 0.0, 1.0, 2.0, 3.0, 5.5]) if draw(st.booleans()) else st.integers(0, 30)
    ties = draw(st.permutations(range(count)))
    groups, values, numbers, flags, key_values = (
        draw(st.lists(kind, min_size=count, max_size=count))
        for kind in (st.sampled_from([None, 0, 1]), st.sampled_from([None, 0, 1, 5]), NUMBERS, FLAGS, keys)
    )
    rows = [
        {
            "id": k, "g": groups[k], "k": key_values[k], "v": values[k], "w": numbers[k], "f": flags[k],
            # Spread like hashes are: cuts through rows with equal keys count on that.
            TIE: int(-(2**63) + (ties[k] + 0.5) * 2**64 / max(count, 1)) if tied else k, PLACE: 0,
        }
        for k in range(count)
    ]  # fmt: skip
    unit = draw(st.sampled_from(["rows", "range", "groups"]))
    order = draw(st.lists(st.builds(twin.Order, st.just("k"), st.booleans(), st.booleans()), max_size=1))
    offsets = st.integers(-6, 6) if unit != "range" or order else st.just(0)
    start, end = draw(st.one_of(st.none(), offsets)), draw(st.one_of(st.none(), offsets))
    exclude = draw(st.sampled_from(["no others", "no others", "current row", "group", "ties"]))
    by = draw(st.sampled_from([(), ("g",)]))
    wanted = draw(st.sampled_from(WANTED))
    return Case(rows, by, tuple(order), unit, start, end, exclude, wanted, draw(st.sampled_from([None, "f"])))


def check(case: Case, found: list[pa.RecordBatch], tie: str | None) -> None:
    got = {row["id"]: row["out"] for batch in found for row in batch.to_pylist()}
    wanted = case.answers(tie)
    assert got.keys() == wanted.keys()
    wrong = {key: (got[key], wanted[key]) for key in wanted if not twin.same(got[key], wanted[key])}
    assert not wrong
