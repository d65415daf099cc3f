"""Sparse inserts against Spark's own sorted rewrite, and reading a small box against reading everything."""

from __future__ import annotations

import functools
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from windrow.api.array import Array
from windrow.api.database import Database
from windrow.bench.report import Measurement
from windrow.bench.timing import Timings, duration, in_turns, time_call
from windrow.model.schema import CHUNK_COLUMN
from windrow.operations.sparse.insert import with_chunk
from windrow.samples.cells import DECLINATIONS, RIGHT_ASCENSIONS, SCATTERED_SCHEMA, STRIDE, TIMES, scattered_cells

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FILES = 8


def write_parquet(folder: Path, count: int) -> Path:
    """``count`` cells in some Parquet files."""
    folder.mkdir()
    for index in range(_FILES):
        cells = scattered_cells(count, count * index // _FILES, count * (index + 1) // _FILES)
        pq.write_table(cells, folder / f"cells-{index}.parquet", compression="zstd", compression_level=1)
    return folder


class InsertRounds:
    """The same Parquet inserted by windrow, and rewritten by Spark sorted by chunk."""

    def __init__(self, database: Database, folder: Path, count: int) -> None:
        self.database = database
        self.session: SparkSession = database.engine.spark().session
        self.source = write_parquet(folder / "cells", count)
        self.rewritten = folder / "rewritten"
        self._array: Array | None = None

    def prepare(self) -> None:
        if self._array is not None:
            self._array.drop()
        self._array = self.database.create("inserted", SCATTERED_SCHEMA, sparse=True)
        shutil.rmtree(self.rewritten, ignore_errors=True)

    @property
    def array(self) -> Array:
        assert self._array is not None
        return self._array

    def insert(self) -> None:
        self.array.insert(self.source)

    def rewrite(self) -> None:
        schema = self.array.schema
        rows = with_chunk(self.session.read.parquet(str(self.source)), schema, schema.dimension_names)
        arranged = rows.repartitionByRange(CHUNK_COLUMN).sortWithinPartitions(CHUNK_COLUMN)
        options = {"compression": "zstd", "parquet.compression.codec.zstd.level": "1"}
        arranged.write.options(**options).parquet(str(self.rewritten))

    def clear(self) -> None:
        self.prepare()
        self.array.drop()
        shutil.rmtree(self.source, ignore_errors=True)


def measure_insert(database: Database, folder: Path, count: int, rounds: int) -> Iterator[Measurement]:
    """Insert speed as a share of Spark's own rewrite."""
    inserts = InsertRounds(database, folder, count)
    times = in_turns({"windrow": inserts.insert, "Spark": inserts.rewrite}, rounds, between=inserts.prepare)
    inserts.clear()
    ours, theirs = times["windrow"], times["Spark"]
    detail = (
        f"{count:,} cells: windrow {ours}, {count / ours.median / 1e6:.2f} M cells/s; Spark {theirs}; "
        f"best to best {theirs.best / ours.best:.2f}×"
    )
    what = "insert speed against Spark's sorted rewrite"
    yield Measurement("sparse", what, theirs.median / ours.median, "×", 0.5, detail=detail)


def night(session: SparkSession, number: int, nights: int, count: int) -> DataFrame:
    """The cells of one of several nights that follow one another in time, made by Spark."""
    steps = TIMES // nights
    positions = steps * RIGHT_ASCENSIONS * DECLINATIONS
    place = f"(id * {STRIDE}L % {positions}L)"
    return session.range(0, count).selectExpr(
        f"{place} div {RIGHT_ASCENSIONS * DECLINATIONS} + {number * steps + 1} as time",
        f"{place} div {DECLINATIONS} % {RIGHT_ASCENSIONS} + 1 as ra",
        f"{place} % {DECLINATIONS} + 1 as dec",
        f"cast(round(20 + 2 * randn({number}), 3) as float) as mag",
        f"rand({number + nights}) as flux",
    )


def measure_box_read(database: Database, count: int, nights: int, rounds: int) -> Iterator[Measurement]:
    """The time to read a box with a thousandth of the cells, as a share of reading all of them."""
    array = database.create("large", SCATTERED_SCHEMA, sparse=True)
    session = database.engine.spark().session
    made = [night(session, number, nights, count // nights) for number in range(nights)]
    spent = [time_call(functools.partial(array.insert, cells)) for cells in made]
    built = f"{nights} inserts, first {duration(spent[0])}, last {duration(spent[-1])}"
    yield Measurement("sparse", f"building {count / 1e6:g} M cells", sum(spent), "s", detail=built)
    found: list[int] = []

    def box() -> None:
        # A tenth of each dimension, across chunk borders.
        found.append(array.read(time=(4_275, 5_274), ra=(425, 524), dec=(475, 574)).num_rows)

    def scan() -> None:
        found.append(sum(table.num_rows for table in array.batches()))

    box_times = in_turns({"box": box}, max(5, rounds))["box"]
    in_box = found[-1]
    scan_times: Timings = in_turns({"scan": scan}, rounds)["scan"]
    assert found[-1] == count // nights * nights
    detail = f"{in_box:,} of {found[-1]:,} cells: box {box_times}; scan {scan_times}"
    value = 100 * box_times.median / scan_times.median
    yield Measurement("sparse", "box of 0.1 % of the cells against a scan", value, "%", 2, "at most", detail)
    array.drop()
