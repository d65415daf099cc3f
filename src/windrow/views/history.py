"""What was done to a view, batch by batch: planned before, measured after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from windrow.storage.working import WorkingArray
from windrow.views.apply import Applied
from windrow.views.cost import Choice
from windrow.views.placed.measured import Placement, describe_loads

FIELDS = pa.schema(
    [
        ("version", pa.int64()),
        ("batch", pa.string()),
        ("time", pa.timestamp("us", tz="UTC")),
        ("way", pa.string()),
        ("why", pa.string()),
        ("planned", pa.string()),
        ("netted", pa.int64()),
        ("cells", pa.int64()),
        ("touched", pa.int64()),
        ("pairs", pa.int64()),
        ("chunks", pa.int64()),
        ("bytes", pa.int64()),
        ("seconds", pa.float64()),
        ("phases", pa.string()),
        ("strategy", pa.string()),
        ("objective", pa.float64()),
        ("bound", pa.float64()),
        ("changed_bytes", pa.int64()),
        ("planned_bytes", pa.int64()),
        ("read_bytes", pa.int64()),
        ("cached_bytes", pa.int64()),
        ("nodes", pa.string()),
    ]
)


_DONE = {"rebuild": "rebuilt", "patch": "patched"}


@dataclass(frozen=True)
class Entry:
    """One line of a view's history."""

    way: str
    why: str
    time: str
    planned: str | None = None
    batch: str | None = None
    netted: int = 0
    """Cells of the bases that are not as they were."""
    cells: int = 0
    """Cells of the view that are not as they were."""
    touched: int = 0
    pairs: int = 0
    chunks: int = 0
    bytes: int = 0
    seconds: float = 0.0
    phases: str = ""
    placement: Mapping[str, Any] | None = None
    """What several nodes were planned to take and took, if they did it."""

    @classmethod
    def now(cls, way: str, why: str, **known: Any) -> Entry:
        return cls(way, why, datetime.now(UTC).isoformat(), **known)

    @classmethod
    def of_choice(cls, choice: Choice, batch: str | None, netted: int) -> Entry:
        """What is about to be done."""
        return cls.now("", choice.why, planned=choice.planned, batch=batch, netted=netted)

    def done(self, applied: Applied, touched: int, working: WorkingArray, phases: Mapping[str, float]) -> Entry:
        """The same after it was done."""
        cells = applied.cells
        added = [part for path, part in working.parts.items() if path not in working.base_parts]
        chunks = sum(len(part.chunks) for part in added if part.chunks is not None)
        size = sum(part.bytes for part in added)
        for written in working.written_chunks:
            chunks, size = chunks + len(written), size + int(written.bytes.sum())
        return replace(
            self,
            way=_DONE[self.planned or ""] if cells or applied.rewritten else "unchanged",
            cells=cells,
            touched=applied.touched or touched,
            pairs=applied.pairs,
            chunks=chunks,
            bytes=size,
            seconds=sum(phases.values()),
            phases=", ".join(f"{name} {seconds:.3f} s" for name, seconds in phases.items()),
        )

    def placed(self, placement: Placement | None) -> Entry:
        return self if placement is None else replace(self, placement=placement.as_json())

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def as_table(entries: Sequence[Mapping[str, Any]]) -> pa.Table:
    """The history of a view as a table, oldest first."""
    rows = [{**entry, **_shared_out(entry), "time": datetime.fromisoformat(entry["time"])} for entry in entries]
    return pa.Table.from_pylist([{name: row.get(name) for name in FIELDS.names} for row in rows], schema=FIELDS)


def without_nodes(history: pa.Table) -> pa.Table:
    """A history without what nodes were planned to do and did, where there were none."""
    placed = FIELDS.names[FIELDS.names.index("strategy") :]
    return history.drop_columns([name for name in placed if history[name].null_count == history.num_rows])


LOADS = pa.schema(
    [
        ("version", pa.int64()),
        ("batch", pa.string()),
        ("node", pa.string()),
        ("planned_bytes", pa.int64()),
        ("baseline_bytes", pa.int64()),
        ("read_bytes", pa.int64()),
        ("received_bytes", pa.int64()),
        ("cached_bytes", pa.int64()),
        ("hits", pa.int64()),
        ("misses", pa.int64()),
        ("seconds", pa.float64()),
        ("strayed", pa.int64()),
    ]
)


def loads_table(entries: Sequence[Mapping[str, Any]]) -> pa.Table:
    """What each node was planned to take and took, at each batch that several nodes did, oldest first."""
    rows = [
        {"version": entry.get("version"), "batch": entry.get("batch"), **load}
        for entry in entries
        if entry.get("placement")
        for load in entry["placement"]["loads"]
    ]
    return pa.Table.from_pylist(rows, schema=LOADS)


def _shared_out(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of a batch that several nodes did; bytes are those of all nodes together."""
    found = entry.get("placement")
    if not found:
        return {}
    loads = found["loads"]
    taken = found["taken"]
    return {
        "strategy": taken if taken == found["strategy"] else f"{found['strategy']}, by the plan of {taken}",
        "objective": found["objective"],
        "bound": found["bound"],
        "changed_bytes": found["changed_bytes"],
        "planned_bytes": sum(load["planned_bytes"] for load in loads),
        "read_bytes": sum(load["read_bytes"] + load["received_bytes"] for load in loads),
        "cached_bytes": sum(load["cached_bytes"] for load in loads),
        "nodes": describe_loads(loads),
    }
