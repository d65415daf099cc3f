"""Engines that several benchmarks measure against or run on, set up as they need them."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy.typing as npt
import pyarrow as pa

from windrow.api.database import Database, connect
from windrow.execution.engine import default_memory
from windrow.execution.session import start_session


def duckdb_connection(threads: int) -> Any:
    """DuckDB in memory, with so many threads; it must not draw over what the benchmark prints."""
    connection = importlib.import_module("duckdb").connect(config={"threads": threads})
    connection.execute("set enable_progress_bar = false")
    return connection


def load_table(connection: Any, columns: Mapping[str, npt.NDArray[Any]]) -> None:
    """Table t in DuckDB's own form, so that reading it costs no conversion."""
    connection.register("given", pa.table(dict(columns)))
    connection.execute("create table t as select * from given")
    connection.unregister("given")


@contextmanager
def spark_database(folder: Path, workers: int) -> Iterator[Database]:
    """A warehouse whose work runs on so many workers of a Spark session of its own."""
    session = start_session(workers, default_memory())
    try:
        with connect(folder / "warehouse", spark=session, engine="spark", progress=False) as database:
            yield database
    finally:
        session.stop()
