"""Writes to a warehouse on Spark while workers kill themselves; run as a script with a folder to work in.

The first worker that has done a task of a job, and so has written what it was asked to, dies before it can answer.
Spark gives the task to another.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import xarray as xr

import windrow as wr
from windrow.execution.executor import Job
from windrow.execution.spark import SparkExecutor


class DeadlyExecutor(SparkExecutor):
    """A SparkExecutor of whose jobs each loses a worker."""

    deaths: Path
    jobs = 0

    def _deadly(self, function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        self.jobs += 1
        marker = self.deaths / str(self.jobs)

        def work_and_die(task: Any) -> Any:
            receipt = function(task)
            try:
                marker.touch(exist_ok=False)
            except FileExistsError:
                return receipt
            os.kill(os.getpid(), signal.SIGKILL)
            raise AssertionError("unreachable")

        return work_and_die

    def run(self, job: Job[Any, Any]) -> list[Any]:
        return super().run(replace(job, function=self._deadly(job.function)))

    def map_sorted(self, label: str, rows: Any, order: Sequence[str], function: Any) -> list[Any]:
        return super().map_sorted(label, rows, order, self._deadly(function))

    def map_grouped(self, label: str, rows: Any, key: str, function: Any) -> list[Any]:
        return super().map_grouped(label, rows, key, self._deadly(function))


def main(folder: Path, whole: bool) -> None:
    database = wr.connect(folder / "warehouse", engine="spark", workers=2, progress=False)
    session = database.engine.spark().session
    session.conf.set("spark.sql.shuffle.partitions", "2")
    deadly = DeadlyExecutor(session, 2**30, lambda *_: None, database.engine.cancellation)
    deadly.deaths = folder / "deaths"
    deadly.deaths.mkdir()
    database.engine._spark = deadly
    write_dense(database)
    insert_sparse(database)
    move_windows(database)
    if whole:
        total(database)
        join(database)
        save(database, folder)
        move_frames(database, folder)
    for _ in deadly.deaths.iterdir():
        print("a worker died")
    database.close()
    print("all right")


def write_dense(database: wr.Database) -> None:
    array = database.create("D", "<a: int64, s: string> [i=1:40:5, j=1:40:5]")
    values = np.arange(1600).reshape(40, 40)
    array.write({"a": values, "s": values.astype(str)})
    check(array.read()["a"].values, values)
    array.update({"a": "a + 1"}, where="i <= 20")
    values[:20] += 1
    check(array.read()["a"].values, values)
    spark = database.engine.spark().session
    array.insert(spark.range(0, 40).selectExpr("id + 1 as i", "1 as j", "-id as a", "'new' as s"))
    values[:, 0] = -np.arange(40)
    check(array.read()["a"].values, values)
    if (array.version, array.chunks().cells.sum()) != (3, 1600):
        raise AssertionError(f"version {array.version}, chunks {array.chunks()}")


def insert_sparse(database: wr.Database) -> None:
    array = database.create("S", "<v: int64> [x=1:200:20, y=1:50:10]", sparse=True)
    spark = database.engine.spark().session
    array.insert(spark.range(0, 10_000).selectExpr("id div 50 + 1 as x", "id % 50 + 1 as y", "id as v"))
    check(array.read()["v"].to_numpy(), np.arange(10_000))
    array.insert(spark.range(0, 5_000).selectExpr("id div 50 + 1 as x", "id % 50 + 1 as y", "-id as v"))
    expected = np.concatenate([-np.arange(5_000), np.arange(5_000, 10_000)])
    check(array.read()["v"].to_numpy(), expected)
    listed = {part.path for part in array._snapshot().parts}
    written = {file.name for file in Path(array.location().path).glob("*.parquet")}
    if not listed < written:
        raise AssertionError("no worker died after it had written a part")
    if array.versions()[-1].cells != 10_000:
        raise AssertionError(f"the catalog counts {array.versions()[-1].cells} cells")
    array.delete("x > 100")
    check(array.read()["v"].to_numpy(), expected[:5_000])
    array.compact()
    check(array.read()["v"].to_numpy(), expected[:5_000])
    database.collect_garbage(keep_versions=1)
    kept = {file.name for file in Path(array.location().path).glob("*.parquet")}
    if kept != {part.path for part in array._snapshot().parts}:
        raise AssertionError("a collection left parts that no version has")
    check(array.read()["v"].to_numpy(), expected[:5_000])


def move_windows(database: wr.Database) -> None:
    for name, result in (("D", "DW"), ("S", "SW")):
        array = database.array(name)
        extents = {array.schema.dimension_names[0]: wr.centred(7)}
        percentile = wr.percentile(array.schema.attribute_names[0], 70)
        array.window(extents).agg(p=percentile).store(result)
        with wr.connect(database.path, engine="local", progress=False) as alone:
            expected = alone.array(name).window(extents).agg(p=percentile).compute()
        found = database.array(result).read()
        check(*(each["p"].values if name == "D" else each["p"].to_numpy() for each in (found, expected)))


def total(database: wr.Database) -> None:
    for name, attribute in (("D", "a"), ("S", "v")):
        asked = (
            f"select sum({attribute}) as s, median({attribute}) as m, count(*) as n from {name} where {attribute} > 7"
        )
        found = database.query(asked).compute()
        with wr.connect(database.path, engine="local", progress=False) as alone:
            expected = alone.query(asked).compute()
        if not found.equals(expected):
            raise AssertionError(f"{asked} gave {found} instead of {expected}")


def join(database: wr.Database) -> None:
    """Neighbours, pairs, groups of pairs and partners on the sparse array and on the dense one."""
    near = "from S L similarity join S R on abs(L.v - R.v) < 60 with shape L2(2)"
    asked = [
        "select count(*) as n, sum(v) as s, median(v) as m from S neighbours L1(2)",
        "select max(a) as m, mode(a) as o from D neighbours L2(2)",
        f"select L.v * R.v as f {near} nearest 3",
        f"select sum(L.v * R.v) as f, count(*) as n {near} group by L.x",
        f"select median(R.v) as m {near} group by L.y",
    ]
    for number, query in enumerate(asked):
        database.query(query).store(f"J{number}")
        with wr.connect(database.path, engine="local", progress=False) as alone:
            expected, found = alone.query(query).compute(), alone.array(f"J{number}").read()
        if not found.equals(expected):
            raise AssertionError(f"{query} gave {found} instead of {expected}")


def save(database: wr.Database, folder: Path) -> None:
    """A window's results into a grid, cells where a condition holds into a table: the files of a run without deaths."""
    asked = {
        "d.nc": "select percentile(a, 70) as p, max(s) as s from D window (i centred 7)",
        "s.parquet": "select v * 2 as w from S where v % 3 = 0",
    }
    for name, query in asked.items():
        database.query(f"save {query} to '{folder / name}'")
        with wr.connect(database.path, engine="local", progress=False) as alone:
            alone.query(f"save {query} to '{folder / 'alone'}-{name}'")
    grids = [xr.load_dataset(folder / f"{kind}d.nc", engine="h5netcdf") for kind in ("", "alone-")]
    tables = [pq.read_table(folder / f"{kind}s.parquet") for kind in ("", "alone-")]
    tables = [table.sort_by([("x", "ascending"), ("y", "ascending")]) for table in tables]
    if not grids[0].identical(grids[1]) or not tables[0].equals(tables[1]):
        raise AssertionError("a saved file does not hold the results")


def move_frames(database: wr.Database, folder: Path) -> None:
    """Frames over rows whose workers die on the way, by the builder and in SQL."""
    session = database.engine.spark().session
    rows = session.range(0, 40_000, 1, 4).selectExpr("id as b", "if(id % 10 = 0, null, id * 7919 % 241) as a")
    numbers = np.arange(40_000)
    values = np.ma.masked_array(numbers * 7919 % 241, numbers % 10 == 0)
    medians = wr.framed(values, "median", lo=numbers - 99, hi=numbers + 1, method="naive")
    kinds = wr.framed(values, "count_distinct", lo=numbers - 99, hi=numbers + 1, method="naive")
    over = "over (order by b rows 99 preceding)"
    text = f"select b, median(a) {over} as m, count(distinct a) {over} as k from mortal"
    for name in ("builder", "sql"):
        marker = folder / f"frames-{name}"

        def die(batches: Any, marker: Path = marker) -> Any:
            for batch in batches:
                yield batch
                try:
                    marker.touch(exist_ok=False)
                except FileExistsError:
                    continue
                os.kill(os.getpid(), signal.SIGKILL)

        mortal = rows.mapInArrow(die, rows.schema)
        if name == "sql":
            mortal.createOrReplaceTempView("mortal")
            found = database.sql(text)
        else:
            found = wr.frames(mortal).order_by("b").rows(-99, 0).agg(m=wr.median("a"), k=wr.count_distinct("a"))
        table = found.orderBy("b").toArrow()
        check(marker.exists(), True)
        # The first frame has no value, and so no median.
        np.testing.assert_array_equal(table["m"].to_numpy(), medians)
        np.testing.assert_array_equal(table["k"].to_numpy(), kinds)


def check(found: Any, expected: Any) -> None:
    if not np.array_equal(found, expected):
        raise AssertionError("the array does not hold what was written")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2] == "all")
