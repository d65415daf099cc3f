"""The xarray accessor: windows on Datasets and DataArrays, in the form and with the coordinates they came in."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import windrow as wr


def weather() -> xr.Dataset:
    values = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    values[5, 1] = np.nan
    return xr.Dataset(
        {"t": (("time", "lat"), values, {"units": "K"}), "n": (("time",), np.arange(40))},
        coords={
            "time": pd.date_range("2012-01-01", periods=40),
            "lat": [1.0, 2.0, 3.0],
            "station": ("lat", list("abc")),
        },
    )


def test_one_aggregate_of_a_dataset() -> None:
    ds = weather()
    found = ds.windrow.window(time=wr.trailing(30)).percentile("t", 70)
    wanted = wr.sliding(ds["t"].values, "percentile(70)", (30, 1), "trailing", method="naive")
    np.testing.assert_array_equal(found.values, wanted)
    assert found.name == "t"
    assert found.attrs == {"units": "K"}
    assert set(found.coords) == {"time", "lat", "station"}


def test_agreement_with_xarrays_own_rolling() -> None:
    ds = weather()
    ours = ds.windrow.window(time=wr.trailing(7), min_count=7).avg("t")
    theirs = ds["t"].astype(np.float64).rolling(time=7).mean()
    np.testing.assert_allclose(ours.values, theirs.values, rtol=1e-12)


def test_several_aggregates_of_several_variables() -> None:
    ds = weather()
    found = ds.windrow.window(time=wr.centred(5)).agg(low=wr.min("t"), high=wr.max("t"), kinds=wr.count_distinct("n"))
    assert list(found.data_vars) == ["low", "high", "kinds"]
    assert found["kinds"].dims == ("time",)
    assert found["low"].dims == ("time", "lat")
    assert found["kinds"].values[:3].tolist() == [3, 4, 5]


def test_dataarray_label_units_and_steps() -> None:
    data = weather()["t"]
    found = data.windrow.window(time=wr.trailing("7 days"), step=2).max()
    wanted = data.rolling(time=7, min_periods=1).max()[::2]
    np.testing.assert_array_equal(found.values, wanted.values)
    assert found.time.values.tolist() == data.time.values[::2].tolist()
    assert found.name == "t"


def test_missing_results_of_whole_numbers_are_nan() -> None:
    found = weather().windrow.window(time=wr.trailing(3), boundary="drop").max("n")
    np.testing.assert_array_equal(found.values[:4], [np.nan, np.nan, 2, 3])


@pytest.mark.parametrize(
    ("ask", "error", "said"),
    [
        (lambda ds: ds.windrow.window(time=3), wr.SchemaError, "anchor"),
        (lambda ds: ds.windrow.window(), wr.SchemaError, "no dimension"),
        (lambda ds: ds.windrow.window(tine=wr.trailing(3)).max("t"), wr.UnknownNameError, "no such dimension"),
        (lambda ds: ds.windrow.window(time=wr.trailing(3)).max("x"), wr.UnknownNameError, "no such variable"),
        (lambda ds: ds.windrow.window(time=wr.trailing(3)).percentile("t", 140), wr.DataError, "between 0 and 100"),
        (lambda ds: ds.windrow.window(time=wr.trailing(3), method="best").max("t"), wr.DataError, "method"),
        (lambda ds: ds.windrow.window(time=wr.trailing(3)).agg(), wr.DataError, "nothing to compute"),
        (lambda ds: ds.isel(time=[]).windrow.window(time=wr.trailing(3)).max("t"), wr.DataError, "no cells"),
        (lambda ds: ds.station.windrow.window(lat=wr.trailing(2)).sum(), wr.DataError, "cannot take"),
    ],
)
def test_mistakes(ask: Any, error: type[wr.Error], said: str) -> None:
    with pytest.raises(error, match=said):
        ask(weather())


@pytest.mark.parametrize("order", ["import windrow, xarray", "import xarray, windrow"])
def test_the_accessor_is_there_whichever_is_imported_first(order: str) -> None:
    program = f"{order}; print(hasattr(xarray.Dataset, 'windrow'), hasattr(xarray.DataArray, 'windrow'))"
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert said.stdout.split() == ["True", "True"]


def test_importing_windrow_does_not_import_xarray() -> None:
    program = "import sys, windrow; print('xarray' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "False"


def test_regrids_are_blocks_as_coarsen_makes_them() -> None:
    data = xr.Dataset({"t": (("time", "x"), np.arange(28.0).reshape(7, 4))}, {"time": pd.date_range("2012", periods=7)})
    found = data.windrow.regrid(time=3, x=2).agg(m=wr.max("t"))
    expected = data.t.coarsen(time=3, x=2, boundary="pad").max()
    assert np.array_equal(found.m, expected)
    assert found.time.values.tolist() == data.time.values[::3].tolist()
    assert np.array_equal(data.t.windrow.regrid(time=3).avg()[0], data.t[:3].mean("time"))
    with pytest.raises(wr.SchemaError, match="no dimension"):
        data.windrow.regrid()
