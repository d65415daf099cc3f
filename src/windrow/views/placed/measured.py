"""What a batch on several nodes was planned to take, and what it took: counted where workers read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from windrow.execution.nodes import Node
from windrow.placement import Decision
from windrow.views.placed.joining import Joined
from windrow.views.placed.merging import Merged


@dataclass(frozen=True)
class NodeLoad:
    """One node: bytes that the plan had it receive, bytes of chunks and changes that it read from the store, of
    partial states that it received, and of chunks that it had; seconds of joining and merging, reading included."""

    node: str
    planned_bytes: int
    baseline_bytes: int
    read_bytes: int
    received_bytes: int
    cached_bytes: int
    hits: int
    misses: int
    seconds: float
    strayed: int = 0
    """Tasks that were sent to it and ran elsewhere."""


@dataclass(frozen=True)
class Placement:
    """A batch on several nodes."""

    strategy: str
    taken: str
    objective: float
    bound: float
    baseline: float
    changed_bytes: int
    """Bytes of what the batch did: no node had them, and each has to be read somewhere."""
    share: float
    """How many times as many partial states as expected there were."""
    loads: tuple[NodeLoad, ...]

    def as_json(self) -> dict[str, Any]:
        return {**self.__dict__, "loads": [load.__dict__ for load in self.loads]}


def measure(
    decision: Decision, nodes: Sequence[Node], receipts: Sequence[Merged], changed: int, share: float
) -> Placement:
    """Planned and measured, node by node; what ran elsewhere counts there, if it is still one of the nodes."""
    numbers = {node.executor: number for number, node in enumerate(nodes)}
    count = len(nodes)
    totals = {name: [0] * count for name in ("read", "received", "cached", "hits", "misses", "strayed")}
    seconds = [0.0] * count
    for receipt in receipts:
        tasks: list[Joined | Merged] = [*receipt.joins, receipt]
        for task in tasks:
            at = numbers.get(task.executor, task.node)
            counted = task.counted
            totals["read"][at] += counted.store_bytes + counted.staged_bytes
            totals["cached"][at] += counted.cache_bytes
            totals["hits"][at] += counted.hits
            totals["misses"][at] += counted.misses
            totals["strayed"][task.node] += task.executor != nodes[task.node].executor
            seconds[at] += task.seconds
        totals["received"][numbers.get(receipt.executor, receipt.node)] += receipt.received_bytes
    loads = [
        NodeLoad(
            node.executor,
            int(decision.cost.bytes_received[number]),
            int(decision.baseline.bytes_received[number]),
            totals["read"][number],
            totals["received"][number],
            totals["cached"][number],
            totals["hits"][number],
            totals["misses"][number],
            seconds[number],
            totals["strayed"][number],
        )
        for number, node in enumerate(nodes)
    ]
    return Placement(
        decision.strategy, decision.taken, decision.cost.objective, decision.bound, decision.baseline.objective,
        changed, share, tuple(loads),
    )  # fmt: skip


def describe_loads(loads: Sequence[Mapping[str, Any]]) -> str:
    """Each node in a few words."""
    return "; ".join(
        f"{load['node']}: {load['read_bytes'] / 1e6:.3f} MB read, {load['received_bytes'] / 1e6:.3f} MB of states, "
        f"{load['planned_bytes'] / 1e6:.3f} MB planned, {load['hits']} of {load['hits'] + load['misses']} chunks at "
        f"hand, {load['seconds']:.2f} s" + (f", {load['strayed']} tasks elsewhere" if load["strayed"] else "")
        for load in loads
    )
