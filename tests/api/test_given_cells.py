"""Cells and places as users have them: tables of many libraries, coordinates with units, cells by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import xarray as xr

import windrow as wr

ROWS = [{"i": 1, "j": 2, "v": 0.5, "s": "a"}, {"i": 3, "j": 4, "v": 1.5, "s": "b"}]
FRAME = pd.DataFrame(ROWS)
FIELDS = [("i", ">i4"), ("j", ">i8"), ("v", ">f8"), ("s", "U1")]

TABLES: dict[str, Callable[[], Any]] = {
    "list of dicts": lambda: ROWS,
    "dict of lists": lambda: {name: FRAME[name].tolist() for name in FRAME},
    "pandas": lambda: FRAME,
    "pandas with an index of dimensions": lambda: FRAME.set_index(["i", "j"]),
    "pandas with one dimension as index": lambda: FRAME.set_index("j"),
    "pandas with an index of no name": lambda: FRAME.set_index(pd.Index([7, 8])),
    "polars": lambda: pl.DataFrame(ROWS),
    "lazy polars": lambda: pl.DataFrame(ROWS).lazy(),
    "arrow": lambda: pa.Table.from_pylist(ROWS),
    "structured array, as of FITS": lambda: np.array([tuple(row.values()) for row in ROWS], dtype=FIELDS),
    "record array": lambda: FRAME.astype({"s": "U1"}).to_records(index=False),
}


@pytest.mark.parametrize("kind", TABLES)
def test_tables_of_every_kind_are_inserted(connect: Any, kind: str) -> None:
    array = connect().create("S", "<v: float64, s: string> [i=1:9, j=1:9]", sparse=True)
    array.insert(TABLES[kind]())
    assert array.read().to_pylist() == ROWS


def test_the_units_of_a_coordinate_make_a_dimension_go_round(connect: Any) -> None:
    lon = xr.DataArray(np.arange(0, 360, 45.0), dims="lon", attrs={"units": "degrees_east"})
    array = connect().create("T", "<t: float32> [lon=0:7]", labels={"lon": lon})
    assert array.sel(lon=(-50, 50)).read().lon.values.tolist() == [315, 0, 45]


def test_a_place_may_be_given_by_names(connect: Any) -> None:
    array = connect().create("D", "<a: float64> [i=1:3, j=1:4]")
    array.write(np.zeros((3, 4)))
    array.write(np.ones((1, 2)), at={"j": 3, "i": 2})
    assert array.read().a.values[1].tolist() == [0, 0, 1, 1]
    with pytest.raises(wr.DataError, match="one per dimension"):
        array.write(np.ones((1, 2)), at={"i": 2})


def test_spark_must_be_a_session(tmp_path: Any) -> None:
    with pytest.raises(wr.DataError, match="SparkSession"):
        wr.connect(tmp_path / "w", spark=3)  # type: ignore[arg-type]
