"""Bytes that real executors read: five correlated batches on a cluster of processes on this machine."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.api.database import Database, connect
from windrow.bench.placement.scale import PlacementBench
from windrow.bench.report import Measurement
from windrow.bench.tables import Table
from windrow.execution.pinned import SparkCluster
from windrow.execution.session import start_cluster, stop_cluster

STRATEGIES = ("auto", "baseline")
BATCHES = 5
MEMORY = 2**30
VIEW = "select count(*) as n from S neighbours L1(1) on (ra, dec), time between -200 and 0"
"""PTF-5: how much was seen at a place and beside it within 200 days before."""

CHUNK = (112, 20, 20)
CHUNKS = 12
"""Chunks of the sky along each side."""
WIDTH = 4
"""Chunks of a field along each side."""
BASE_CELLS, NEW_CELLS = 120, 80
"""Cells of a chunk that is there, and of what a batch adds to it."""
MOST_READ = 1.5
LEAST_GAIN = 1.4


def measure_cluster(bench: PlacementBench) -> Iterator[Table | Measurement]:
    """What each node reads in batches 2 to 5, by strategy; nodes built the view, and the first batch moves homes."""
    nodes = bench.scale.executors
    session = start_cluster(nodes, MEMORY)
    try:
        with tempfile.TemporaryDirectory() as folder:
            found = {name: _run(Path(folder, name), session, name, bench) for name in STRATEGIES}
    finally:
        stop_cluster(session)
    about = f"the busiest of {nodes} executors, {bench.scale.cluster_fields} fields of {WIDTH}×{WIDTH} chunks"
    for name, runs in found.items():
        for number, run in enumerate(runs, 1):
            yield Measurement("cluster", f"read in batch {number} under {name}", run["most"] / 1e6, "MB", detail=about)
    later = {name: run[1:] for name, run in found.items()}
    most = max(run["most"] / (run["changed"] / nodes) for run in later["auto"])
    yield Measurement(
        "cluster", "most that a node reads under auto, of its share of the batch", most, "×", MOST_READ, "at most",
        "batches 2 to 5; what the batch changed has to be read",
    )  # fmt: skip
    gain = sum(run["all"] for run in later["baseline"]) / sum(run["all"] for run in later["auto"])
    yield Measurement(
        "cluster", "bytes read under baseline, of those under auto", gain, "×", LEAST_GAIN, "at least",
        "batches 2 to 5, all nodes",
    )  # fmt: skip
    strayed = sum(run["strayed"] for runs in later.values() for run in runs)
    yield Measurement("cluster", "tasks that ran elsewhere than planned", strayed, "tasks", None, "at most", "")


def _run(folder: Path, session: Any, strategy: str, bench: PlacementBench) -> list[dict[str, float]]:
    random, scale = np.random.default_rng(0), bench.scale
    chosen = _draw_fields(random, scale.cluster_fields)
    places = [_places(np.arange(CHUNKS * CHUNKS), random, BASE_CELLS)]
    places += [_places(chosen, random, NEW_CELLS) for _ in range(BATCHES)]
    with connect(folder, engine="spark", spark=session, progress=False) as database:
        _await_nodes(database, scale.executors)
        # Two cores are no cluster: measured rates would plan for processors alone, and bytes are what is counted.
        database.engine.placement["rates"] = bench.cluster.receivers
        ends = [CHUNKS * size for size in CHUNK[1:]]
        sky = f"ra=1:{ends[0]}:{CHUNK[1]}, dec=1:{ends[1]}:{CHUNK[2]}"
        array = database.create("S", f"<bright: float64> [time=1:{CHUNK[0]}:{CHUNK[0]}, {sky}]", sparse=True)
        array.insert(places[0])
        # Both start where the paper does: chunks are dealt out round robin when the view is built.
        database.engine.placement["strategy"] = "baseline"
        view = database.create_view("V", VIEW, maintain="incremental", strategy=strategy)
        del database.engine.placement["strategy"]
        found = []
        for cells in places[1:]:
            array.insert(cells)
            loads = view.loads().to_pylist()
            read = [load["read_bytes"] for load in loads]
            changed = float(view.history().to_pylist()[-1]["changed_bytes"])
            strayed = sum(load["strayed"] for load in loads)
            found.append({"most": max(read), "all": sum(read), "changed": changed, "strayed": strayed})
    return found


def _await_nodes(database: Database, count: int) -> None:
    """Executors come one by one after a session has started."""
    while len(SparkCluster.of(database.engine.spark()).nodes) < count:
        time.sleep(0.2)


def _draw_fields(random: np.random.Generator, count: int) -> Any:
    """The chunks of some fields of a survey, squares that may lie over one another."""
    corners = random.integers(0, CHUNKS - WIDTH + 1, (count, 2))
    inside = np.arange(WIDTH)
    rows, columns = corners[:, :1] + inside, corners[:, 1:] + inside
    return np.unique(rows[:, :, None] * CHUNKS + columns[:, None, :])


def _places(fields: Any, random: np.random.Generator, cells: int) -> pa.Table:
    """So many cells in each of some chunks of the sky, each place once."""
    size = CHUNK[0] * CHUNK[1] * CHUNK[2]
    inside = np.concatenate([random.choice(size, cells, replace=False) for _ in fields])
    field = np.repeat(fields, cells)
    day, rest = np.divmod(inside, CHUNK[1] * CHUNK[2])
    ra, dec = np.divmod(rest, CHUNK[2])
    return pa.table(
        {
            "time": 1 + day,
            "ra": 1 + field // CHUNKS * CHUNK[1] + ra,
            "dec": 1 + field % CHUNKS * CHUNK[2] + dec,
            "bright": random.normal(18, 1, len(field)),
        }
    )
