"""A view of each kind, and batches for them; as a script, with a folder, kept while workers kill themselves."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa

import windrow as wr
from crash_spark import DeadlyExecutor

from .checking import assert_same_result, dimension_names, read

VIEWS = {
    "windows": "select percentile(t, 70) as p, avg(t) as a from F window (d trailing 3, y centred 3 wrap)",
    "sparse_windows": "select sum(v) as s, median(x) as m from A window (i centred 3, j 2)",
    "blocks": "select min(x) as low, count(*) as n from A regrid (i 4, j 4)",
    "months": "select avg(t) as a from F regrid (d 3)",
    "total": "select sum(v) as s, avg(x) as a, median(v) as m from A",
    "groups": "select count(*) as n, max(x) as top, var(x) as spread from A group by i",
    "near": "select count(*) as n, avg(x) as a, max(v) as top from A neighbours L2(2)",
    "often": "select mode(v) as often, count_distinct(v) as kinds from A neighbours L1(1)",
    "inner": "select sum(L.v * R.v) as f, median(R.x) as m from A L similarity join B R on L.v <= R.v "
    "with shape Linf(2) group by L.i, L.j",
    "kept": "select count(*) as n, sum(R.x) as s from A L left similarity join B R with shape L1(1) group by L.i, L.j",
    "lonely": "select * from A L anti similarity join B R with shape L1(1)",
    "nearest": "select L.v - R.v as f from A L similarity join B R with shape Linf(3) nearest 2",
    "mutual": "select L.v as v from A L similarity join B R with shape Linf(3) mutual nearest",
    "rows": "select sum(R.v) as s from A L similarity join B R with shape Linf(1) group by L.j",
    "pairs": "select L.x * R.x as f from A L similarity join B R with shape L1(1)",
    "chosen": "select v * 2 as w, x from A where v > 3",
    "upon": "select max(n) as most, sum(n) as all_of from near group by j",
    "both": "select sum(L.n * R.n) as f from near L similarity join kept R with shape L1(1) group by L.i, L.j",
}
"""One of each kind, on two sparse arrays and a growing dense one, and on one another."""


MORTAL = ("windows", "near", "inner", "upon")
"""Those that are kept while workers die: a death costs a second, and every job sees one."""


def cells(seed: int, count: int) -> pa.Table:
    random = np.random.default_rng(seed)
    places = np.sort(random.permutation(400)[:count])
    columns = {"i": places // 20 + 1, "j": places % 20 + 1, "v": random.integers(0, 9, count)}
    return pa.table(columns | {"x": random.normal(0, 100, count)})


def field(seed: int, days: int) -> dict[str, np.ndarray]:
    return {"t": np.random.default_rng(seed).normal(280, 9, (days, 6))}


def create(path: Path, names: Iterable[str] = VIEWS) -> None:
    """A warehouse with the arrays and views, made in this process: what is tested is how they are kept."""
    with wr.connect(path, engine="local", progress=False) as database:
        create_arrays(database)
        for name in names:
            database.create_view(name, VIEWS[name])


def create_arrays(database: wr.Database) -> None:
    for number, name in enumerate(("A", "B")):
        array = database.create(name, "<v: int64, x: float64> [i=1:20:6, j=1:20:5]", sparse=True)
        array.insert(cells(number, 120))
    database.create("F", "<t: float64> [d=1:*:3, y=1:6:4]").append(field(0, 5))


def _inserts(database: wr.Database) -> None:
    with database.batch("night 1") as batch:
        batch.insert("A", cells(7, 12))
        batch.insert("B", cells(8, 9))
        batch.append("F", field(1, 2))


def _changes(database: wr.Database) -> None:
    with database.batch("night 2") as batch:
        batch.delete("A", "v = 3")
        batch.update("B", {"x": "x * 2", "v": "v + 1"}, "i < 6")
        batch.update("F", {"t": "t + 1"}, "t > 290")


BATCHES: tuple[Callable[[wr.Database], None], ...] = (_inserts, _changes)


def main(folder: Path) -> None:
    for name in ("spark", "alone"):
        create(folder / name, MORTAL)
    database = wr.connect(folder / "spark", engine="spark", workers=2, progress=False)
    alone = wr.connect(folder / "alone", engine="local", progress=False)
    session = database.engine.spark().session
    session.conf.set("spark.sql.shuffle.partitions", "2")
    deadly = DeadlyExecutor(session, 2**30, lambda *_: None, database.engine.cancellation)
    deadly.deaths = folder / "deaths"
    deadly.deaths.mkdir()
    database.engine._spark = deadly
    for one in (database, alone):
        _changes(one)
    for _ in deadly.deaths.iterdir():
        print("a worker died during a batch")
    for name in MORTAL:
        view = alone.view(name)
        wanted = read(view)
        assert_same_result(read(database.view(name)), wanted, dimension_names(view, wanted))
        if database.view(name).version != view.version:
            raise AssertionError(f"{name} has version {database.view(name).version} instead of {view.version}")
    alone.close()
    database.close()
    print("all right")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
