"""Views kept on Spark: as those kept in this process, whatever kind they are, and whoever dies or streams meanwhile."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import windrow as wr

from . import dying_workers
from .checking import assert_same_result, assert_way, dimension_names, read
from .dying_workers import BATCHES, VIEWS, create

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


@pytest.fixture
def on_spark(tmp_path: Path, spark_session: Any) -> Any:
    create(tmp_path / "spark")
    with wr.connect(tmp_path / "spark", engine="spark", spark=spark_session, progress=False) as database:
        yield database


def test_every_kind_is_kept_as_in_process(on_spark: wr.Database, tmp_path: Path, connect: Any) -> None:
    create(tmp_path / "warehouse")
    local = connect()
    for batch in BATCHES:
        for database in (on_spark, local):
            batch(database)
        for name in VIEWS:
            view, twin = on_spark.view(name), local.view(name)
            found = read(view)
            assert_same_result(found, read(twin), dimension_names(view, found))
            assert_way(view)
            way, other = (one.history().to_pylist()[-1]["way"] for one in (view, twin))
            assert way == other, name
    for name in VIEWS:
        assert local.view(name).check().ok, name


@pytest.mark.slow
def test_a_worker_that_dies_changes_nothing(tmp_path: Path) -> None:
    """Workers die after they have computed or written, and before they have said so."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", dying_workers.__name__, str(tmp_path)]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=580)
    assert ended.returncode == 0, ended.stderr[-2000:]
    said = ended.stdout.splitlines()
    assert said[-1] == "all right"
    assert said.count("a worker died during a batch") >= 3


def test_a_stream_of_two_micro_batches(tmp_path: Path, spark_session: Any, connect: Any) -> None:
    on_spark = connect(engine="spark", spark=spark_session)
    on_spark.create("N", "<mag: float64> [ra=1:40:8, dec=1:40:8]", sparse=True)
    view = on_spark.create_view("near", "select count(*) as n, avg(mag) as mean from N neighbours L1(1)")
    nights = tmp_path / "nights"
    nights.mkdir()
    random = np.random.default_rng(5)
    places = random.permutation(1600)[:300]
    table = pa.table({"ra": places // 40 + 1, "dec": places % 40 + 1, "mag": random.normal(18, 1, 300)})
    for number in range(2):
        pq.write_table(table.slice(150 * number, 150), nights / f"night{number}.parquet")

    def insert(cells: Any, number: int) -> None:
        on_spark.array("N").insert(cells, batch=f"stream {number}")

    rows = spark_session.readStream.schema("ra long, dec long, mag double").option("maxFilesPerTrigger", 1)
    for _ in range(2):  # a second run finds no new file, and does nothing
        stream = rows.parquet(str(nights)).writeStream.foreachBatch(insert)
        stream = stream.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
        stream.awaitTermination()
        ways = [(row["batch"], row["way"]) for row in view.history().to_pylist()]
        assert ways == [(None, "created"), ("stream 0", "patched"), ("stream 1", "patched")]
    assert view.check().ok
    assert view.read().num_rows == 300
