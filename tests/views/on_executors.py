"""Views kept by real executors of a local cluster; as a script, with a folder and the name of a story.

A session exists once in a process, so each story is a process of its own.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa

import windrow as wr
from windrow.execution.pinned import SparkCluster
from windrow.execution.session import start_cluster, stop_cluster
from windrow.views.placed import joining, merging

from .checking import assert_same_result, read

NODES = 3
VIEW = "select count(*) as n, sum(x) as s, avg(x) as a from A neighbours L1(2)"
SIZE = 40
JOIN, MERGE = joining.join_node, merging.merge_node


@contextmanager
def local_cluster(nodes: int = NODES) -> Iterator[Any]:
    """A session whose executors are processes of their own."""
    session = start_cluster(nodes, 2**30)
    try:
        yield session
    finally:
        stop_cluster(session)


def await_nodes(database: wr.Database, count: int = NODES) -> None:
    while len(SparkCluster.of(database.engine.spark()).nodes) < count:
        time.sleep(0.2)


def cells(seed: int, count: int) -> pa.Table:
    random = np.random.default_rng(seed)
    places = np.sort(random.permutation(SIZE * SIZE)[:count])
    return pa.table({"i": places // SIZE + 1, "j": places % SIZE + 1, "x": random.normal(0, 100, count)})


def create(path: Path, **options: Any) -> None:
    with wr.connect(path, engine="local", progress=False) as database:
        array = database.create("A", f"<x: float64> [i=1:{SIZE}:8, j=1:{SIZE}:8]", sparse=True)
        array.insert(cells(0, 400))
        database.create_view("V", VIEW, maintain="incremental", **options)


def change(database: wr.Database, seed: int, deletes: bool = True) -> dict[str, Any]:
    """A batch; returns what the history says of it."""
    with database.batch() as batch:
        batch.insert("A", cells(seed, 60))
        if deletes:
            batch.delete("A", f"x > {150 + seed}")
    found: dict[str, Any] = database.view("V").history().to_pylist()[-1]
    print(found["strategy"], found["nodes"], flush=True)
    return found


def loads(database: wr.Database) -> list[dict[str, Any]]:
    return database.view("V").loads().to_pylist()


def kept_as_in_process(root: Path, session: Any) -> None:
    """Random batches; every task runs where it was sent."""
    create(root / "here")
    create(root / "there")
    with wr.connect(root / "there", engine="spark", spark=session, progress=False) as there:
        await_nodes(there)
        with wr.connect(root / "here", engine="local", progress=False) as here:
            for seed in range(1, 5):
                for database in (here, there):
                    change(database, seed)
                assert_same_result(read(there.view("V")), read(here.view("V")), ["i", "j"])
                last = loads(there)
                assert len(last) == NODES
                assert sum(load["strayed"] for load in last) == 0 or seed == 1, last
        assert there.view("V").check().ok
        assert sum(load["hits"] for load in last) > 0


def built_and_asked(root: Path, session: Any) -> None:
    """A view that executors build, all of whose states the first batch finds; and a query that they answer from it."""
    create(root / "here")
    with (
        wr.connect(root / "here", engine="local", progress=False) as here,
        wr.connect(root / "there", engine="spark", spark=session, progress=False) as there,
    ):
        await_nodes(there)
        array = there.create("A", f"<x: float64> [i=1:{SIZE}:8, j=1:{SIZE}:8]", sparse=True)
        array.insert(cells(0, 400))
        there.create_view("V", VIEW, maintain="incremental")
        assert there.view("V").history().to_pylist()[0]["strategy"] is not None
        assert len(loads(there)) == NODES
        assert_same_result(read(there.view("V")), read(here.view("V")), ["i", "j"])
        for database in (here, there):
            change(database, 1)
        assert sum(load["hits"] for load in loads(there)) > sum(load["misses"] for load in loads(there))
        assert_same_result(read(there.view("V")), read(here.view("V")), ["i", "j"])
        query = "select count(*) as n from A neighbours L1(3)"
        labels: list[str] = []
        cluster = there.engine.cluster
        there.engine.cluster = lambda size: noting(cluster(size), labels)  # type: ignore[method-assign]
        answered, direct = (there.query(query).using_views(use).compute() for use in ("always", "off"))
        assert labels == ["answering from V"]
        assert_same_result(answered, direct, ["i", "j"])


def noting(cluster: Any, labels: list[str]) -> Any:
    """The same cluster, and what it is asked to do."""
    run = SparkCluster.exchange

    class Noting(SparkCluster):
        def exchange(self, work: Any) -> Any:
            labels.append(work.label)
            return run(self, work)

    return Noting(cluster.spark, cluster.nodes)


class HidingCluster(SparkCluster):
    """Executors that cannot read any part of the store while they work."""

    folder: Path

    def exchange(self, work: Any) -> Any:
        hidden = list(self.folder.glob("arrays/*/*.parquet"))
        assert hidden
        for file in hidden:
            file.rename(file.with_suffix(".hidden"))
        try:
            return super().exchange(work)
        finally:
            for file in hidden:
                file.with_suffix(".hidden").rename(file)


def chunks_are_at_hand(root: Path, session: Any) -> None:
    """With the baseline's plan old chunks are read at their homes alone: from there, if the store cannot be read."""
    create(root / "there", strategy="baseline")
    HidingCluster.folder = root / "there"
    with wr.connect(root / "there", engine="spark", spark=session, progress=False) as there:
        await_nodes(there)
        for _ in range(3):  # until no task had to run elsewhere
            change(there, 1, deletes=False)
            change(there, 2, deletes=False)
            if sum(load["strayed"] for load in loads(there)) == 0:
                break
        there.engine.cluster = lambda size: HidingCluster.of(there.engine.spark())  # type: ignore[method-assign]
        change(there, 3, deletes=False)
        assert sum(load["misses"] for load in loads(there)) == 0
        assert sum(load["hits"] for load in loads(there)) > 20
        assert there.view("V").check().ok


def wait_to_die(marker: Path) -> None:
    """Called by a worker: say which process to kill, and wait for it; once only."""
    try:
        descriptor = os.open(marker, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    except FileExistsError:
        return
    executor = next(p for p in psutil.Process().parents() if "--executor-id" in p.cmdline())
    number = executor.cmdline()[executor.cmdline().index("--executor-id") + 1]
    with os.fdopen(descriptor, "w") as file:
        file.write(f"{executor.pid} {number}\n")
    time.sleep(600)


def kill_when_told(marker: Path, dead: list[str]) -> None:
    while not marker.exists() or not marker.read_text().endswith("\n"):
        time.sleep(0.05)
    process, number = marker.read_text().split()
    assert int(process) in {child.pid for child in psutil.Process().children(recursive=True)}
    psutil.Process(int(process)).kill()
    dead.append(number)


def executors_die(root: Path, session: Any) -> None:
    """One while it joins, one while it merges: the result is the same, and nothing is planned for the dead."""
    create(root / "there")
    with wr.connect(root / "there", engine="spark", spark=session, progress=False) as there:
        await_nodes(there)
        change(there, 1)
        for seed, stage in ((2, "join"), (4, "merge")):
            marker, dead = root / stage, list[str]()

            def join(task: Any, here: Any, marker: Path = marker) -> Any:
                if task.node == 1:
                    wait_to_die(marker)
                return JOIN(task, here)

            def merge(task: Any, brought: Any, here: Any, marker: Path = marker) -> Any:
                if task.node == 1:
                    wait_to_die(marker)
                return MERGE(task, brought, here)

            if stage == "join":
                joining.join_node = join
            else:
                merging.merge_node = merge
            killer = threading.Thread(target=kill_when_told, args=(marker, dead), daemon=True)
            killer.start()
            began = time.perf_counter()
            change(there, seed)
            joining.join_node, merging.merge_node = JOIN, MERGE
            killer.join(60)
            assert dead, "nobody died"
            print(f"an executor died during the {stage}: {time.perf_counter() - began:.1f} s", flush=True)
            assert there.view("V").check().ok
            began = time.perf_counter()
            change(there, seed + 1)
            print(f"the batch after it: {time.perf_counter() - began:.1f} s", flush=True)
            assert dead[0] not in {load["node"] for load in loads(there)}
            assert there.view("V").check().ok


STORIES = {story.__name__: story for story in (kept_as_in_process, built_and_asked, chunks_are_at_hand, executors_die)}


def main() -> None:
    with local_cluster() as session:
        STORIES[sys.argv[2]](Path(sys.argv[1]), session)
    print("all right")


if __name__ == "__main__":
    main()
