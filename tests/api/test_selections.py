"""Selections by label, by cell, and by what is unmistakable; ranges that go round; what can be done with them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import windrow as wr
from windrow.errors import DataError, SchemaError, UnknownNameError
from windrow.model.labels import Labels
from windrow.operations.query.round import stored_boxes

DAYS = np.arange("2012-06-28", "2012-07-05", dtype="M8[D]")
LATITUDES = [60.0, 45.0, 30.0, 15.0]
LONGITUDES = np.arange(0, 360, 30.0)


@pytest.fixture(scope="module")
def made() -> xr.Dataset:
    values = np.arange(7 * 4 * 12, dtype=float).reshape(7, 4, 12)
    coords: dict[str, Any] = {"time": DAYS.astype("M8[ns]"), "lat": LATITUDES}
    data = xr.Dataset({"t": (("time", "lat", "lon"), values)}, coords=coords | {"lon": LONGITUDES})
    data.lon.attrs["units"] = "degrees_east"
    data.t.attrs["units"] = "K"
    return data


@pytest.fixture(scope="module")
def array(made: xr.Dataset, tmp_path_factory: pytest.TempPathFactory) -> Iterator[wr.Array]:
    """For tests that change nothing."""
    place = tmp_path_factory.mktemp("selections")
    with wr.connect(place / "warehouse", engine="local", progress=False) as database:
        yield stored(database, made, place)


def stored(database: wr.Database, made: xr.Dataset, place: Path) -> wr.Array:
    made.to_zarr(place / "t.zarr", consolidated=False)
    database.import_file(place / "t.zarr", "T", chunks={"time": 2, "lat": 3, "lon": 5})
    return database.array("T")


def same(found: Any, wanted: xr.Dataset) -> None:
    assert found["t"].dims == wanted["t"].dims
    np.testing.assert_array_equal(found["t"].values, wanted["t"].values)
    for name in ("lat", "lon"):
        assert found[name].values.tolist() == wanted[name].values.tolist()
    assert found.time.values.astype("M8[s]").tolist() == wanted.time.values.astype("M8[s]").tolist()


class TestByLabel:
    @pytest.mark.parametrize(
        ("asked", "xarray"),
        [
            ({"lat": 30}, {"lat": [30.0]}),
            ({"lat": 30.0, "lon": 60}, {"lat": [30.0], "lon": [60.0]}),
            ({"lat": np.float32(30)}, {"lat": [30.0]}),
            ({"lat": (15, 45)}, {"lat": slice(45.0, 15.0)}),
            ({"lat": (45, 15)}, {"lat": slice(45.0, 15.0)}),
            ({"lat": slice(45, None)}, {"lat": slice(60.0, 45.0)}),
            ({"time": "2012-07"}, {"time": "2012-07"}),
            ({"time": ("2012-06-30", "2012-07")}, {"time": slice("2012-06-30", "2012-07")}),
            ({"time": date(2012, 7, 1)}, {"time": slice("2012-07-01", "2012-07-01")}),
            ({"time": datetime(2012, 7, 1)}, {"time": slice("2012-07-01", "2012-07-01")}),
            ({"time": np.datetime64("2012-07")}, {"time": "2012-07"}),
            ({"time": (None, np.datetime64("2012-06-29T00:00:00"))}, {"time": slice(None, "2012-06-29")}),
            ({"lat": slice(None)}, {}),
            ({}, {}),
        ],
    )
    def test_as_xarray_selects(self, array: wr.Array, made: xr.Dataset, asked: Any, xarray: Any) -> None:
        same(array.sel(**asked).read(), made.sel(xarray))

    def test_the_nearest_label(self, array: wr.Array, made: xr.Dataset) -> None:
        wanted = made.sel(lat=[45.0], time=DAYS[[3]])
        same(array.sel(lat=41, time="2012-07-01T03:00", nearest=True).read(), wanted)
        same(array.sel({"lat": (17, 41)}, nearest=True).read(), made.sel(lat=slice(45, 15)))
        assert array.sel(lon=350, nearest=True).read().lon.values.tolist() == [0.0]
        assert array.sel(lon=-31, nearest=True).read().lon.values.tolist() == [330.0]

    def test_selections_of_selections(self, array: wr.Array, made: xr.Dataset) -> None:
        same(
            array.sel(time="2012-07").isel(lat=(2, 3)).sel(lon=30).read(),
            made.sel(time="2012-07", lat=[45, 30], lon=[30]),
        )

    @pytest.mark.parametrize(
        ("asked", "kind", "match"),
        [
            ({"lat": 31}, UnknownNameError, "nearest is 30"),
            ({"time": 3}, DataError, r"isel\(time=3\)"),
            ({"lat": True}, DataError, "not a selection"),
            ({"lat": [15, 30]}, DataError, "not a selection"),
            ({"lat": (1, 2, 3)}, DataError, "two ends"),
            ({"lat": "north"}, DataError, "numbers"),
            ({"lta": 3}, UnknownNameError, "'lat'"),
            ({"time": ("2012-07-03", "2012-07-01")}, DataError, "ends before"),
            ({"lat": slice(15, 45, 15)}, DataError, "skip"),
        ],
    )
    def test_mistakes(self, array: wr.Array, asked: Any, kind: Any, match: str) -> None:
        with pytest.raises(kind, match=match):
            array.sel(**asked)

    def test_without_labels_numbers_are_names(self, local: wr.Database) -> None:
        array = local.create("A", "<a: int64> [i=1:9:4]")
        array.write(np.arange(9))
        assert array.sel(i=(2, 4)).read()["a"].values.tolist() == [1, 2, 3]
        with pytest.raises(DataError, match="no labels"):
            array.sel(i=2.5)

    def test_labels_in_no_order(self, local: wr.Database) -> None:
        array = local.create("A", "<a: int64> [i=1:4]", labels={"i": [3.0, 1.0, 4.0, 2.0]})
        array.write(np.arange(4))
        assert array.sel(i=(1, 4)).shape == (4,)
        with pytest.raises(DataError, match="next to each other"):
            array.sel(i=(2, 3))

    def test_labels_in_no_order_of_a_sparse_array(self, local: wr.Database) -> None:
        array = local.create("A", "<a: int64> [i=1:4]", sparse=True, labels={"i": [3.0, 1.0, 4.0, 2.0]})
        array.insert({"i": [1, 2, 3, 4], "a": [3, 1, 4, 2]})
        chosen = array.sel(i=(2, 3))
        assert chosen.read().column("a").to_pylist() == [3, 2]
        with pytest.raises(DataError, match="next to each other"):
            stored_boxes(chosen._bound, chosen.box)

    def test_a_selection_by_label_follows_the_label(self, local: wr.Database) -> None:
        array = local.create("A", "<a: int64> [time=1:*:2]")
        array.append([1, 3], labels=np.array(["2012-01-01", "2012-01-03"], "M8[D]"))
        third = array.sel(time="2012-01-03")
        array.append([2], labels=np.array(["2012-01-02"], "M8[D]"))
        assert third.read()["a"].values.tolist() == [3]
        assert array.at(version=1).sel(time="2012-01").read()["a"].values.tolist() == [1, 3]


class TestByCell:
    def test_both_ends_are_inside(self, array: wr.Array, made: xr.Dataset) -> None:
        same(array.isel(lat=(1, 3), time=7).read(), made.isel(lat=slice(0, 3), time=[6]))
        same(array.isel(lat=range(2, 4)).read(), made.isel(lat=slice(1, 3)))
        same(array.isel(lat=(2, None)).read(), made.isel(lat=slice(1, None)))

    @pytest.mark.parametrize(
        ("asked", "match"),
        [
            ({"lat": 5}, "outside"),
            ({"lat": 0}, "outside"),
            ({"lat": (3, 2)}, "ends before"),
            ({"lat": 1.0}, r"sel\(lat=1\.0\)"),
            ({"time": "2012"}, r"sel\(time='2012'\)"),
            ({"lat": slice(1, 3)}, "pair"),
            ({"lat": [1, 2]}, "not a selection"),
        ],
    )
    def test_mistakes(self, array: wr.Array, asked: Any, match: str) -> None:
        with pytest.raises(DataError, match=match):
            array.isel(**asked)


class TestUnmistakable:
    def test_what_is(self, array: wr.Array, made: xr.Dataset) -> None:
        same(
            array.read(lat=30.0, time="2012-07", lon=(30.0, 90.0)),
            made.sel(lat=[30], time="2012-07", lon=slice(30, 90)),
        )
        same(array.read(time=(2, 3)), made.isel(time=slice(1, 3)))

    @pytest.mark.parametrize("asked", [{"lat": 30}, {"lat": (1, 3)}, {"lat": (15, 30.0)}, {"lon": np.int64(30)}])
    def test_what_is_not_names_both_ways(self, array: wr.Array, asked: Any) -> None:
        with pytest.raises(DataError, match=r"(?s)sel\(.*isel\("):
            array.read(**asked)

    def test_gridded_dimensions_are_numbers_too(self, local: wr.Database) -> None:
        points = local.create(
            "P", "<m: float64> [ra, dec]", sparse=True, grid={"ra": (0, 360, 1.0), "dec": (-90, 90, 1.0)}
        )
        points.insert({"ra": [0.5, 10.5, 359.5], "dec": [0.5, 0.5, 0.5], "m": [1.0, 2.0, 3.0]})
        with pytest.raises(DataError, match=r"(?s)sel\(.*isel\("):
            points.read(ra=(1, 3))
        assert points.isel(ra=(1, 11)).read().column("m").to_pylist() == [1.0, 2.0]
        assert points.sel(ra=(0, 11)).read().column("m").to_pylist() == [1.0, 2.0]
        assert points.sel(ra=(-1, 1)).read(["m"]).column("m").to_pylist() == [1.0, 3.0]
        assert points.sel(ra=(350, 1)).agg(n=wr.count()).compute().column("n").to_pylist() == [2]
        assert sum(table.num_rows for table in points.batches(ra=(-1.0, 1.0))) == 2


def test_a_stored_result_lies_on_the_grid_of_its_array(local: wr.Database) -> None:
    points = local.create("P", "<m: float64> [ra, dec]", sparse=True, grid={"ra": (0, 360, 1.0), "dec": (-90, 90, 1.0)})
    points.insert({"ra": [0.5, 10.5, 359.5], "dec": [0.5, 0.5, 0.5], "m": [1.0, 2.0, 3.0]})
    points.sel(ra=(-1, 1)).store("B")
    assert local.array("B").gridding == points.gridding
    assert local.array("B").sel(ra=359.5).read().column("m").to_pylist() == [3.0]
    local.array("B").insert({"ra": [1.5], "dec": [1.5], "m": [4.0]})
    assert local.array("B").sel(ra=(1, 2)).read().column("m").to_pylist() == [4.0]
    local.query("select max(m) as top from P window (ra centred 3) into W")
    near = local.array("W")
    assert near.sel(ra=(10, 11)).read().column("top").to_pylist() == [2.0]
    near.insert({"ra": [5], "dec": [1], "n": [0], "top": [7.0]})  # without exact coordinates these are cells
    assert near.sel(ra=4.5).read().column("top").to_pylist() == [7.0]


class TestRound:
    @pytest.mark.parametrize(
        ("asked", "wanted"),
        [
            ((-30, 30), [330, 0, 30]),
            ((-30.0, 30.0), [330, 0, 30]),
            ((330, 30), [330, 0, 30]),
            ((330, 390), [330, 0, 30]),
            ((-45, -15), [330]),
            ((-60, 0), [300, 330, 0]),
            ((-180, 180), [180, 210, 240, 270, 300, 330, 0, 30, 60, 90, 120, 150]),
            ((0, 360), list(range(0, 360, 30))),
            ((10, 20), []),
            ((-20, -10), []),
        ],
    )
    def test_ranges_go_round(self, array: wr.Array, made: xr.Dataset, asked: Any, wanted: list[int]) -> None:
        found = array.sel(lon=asked).read()
        same(found, made.sel(lon=wanted))
        assert found.lon.attrs["units"] == "degrees_east"

    def test_one_label(self, array: wr.Array, made: xr.Dataset) -> None:
        same(array.sel(lon=-30).read(), made.sel(lon=[330]))
        with pytest.raises(UnknownNameError, match="nearest"):
            array.sel(lon=-31)

    def test_in_text(self, array: wr.Array, made: xr.Dataset) -> None:
        local = array._database
        wanted = made.sel(lon=[330, 0, 30], lat=[30])
        same(local.query("select * from T where lon between -30 and 30 and lat = 30").compute(), wanted)
        total = local.query("select avg(t) as m from T where lon between -30 and 30").compute()
        assert float(total["m"]) == float(made.sel(lon=[330, 0, 30]).t.mean())
        labels = local.query("select lon as east from T where lon between -30 and 30 and lat = 30").compute()
        assert labels["east"].values[0, 0].tolist() == [330.0, 0.0, 30.0]
        cells = local.query("select t from T where lon between -30 and 30 and t > 300").compute()
        assert set(cells.column("lon").to_pylist()) == {12, 1, 2}
        others = local.query("select count(*) as n from T where lon not between -30 and 30").compute()
        assert int(others["n"] if hasattr(others, "data_vars") else others.column("n")[0].as_py()) == 7 * 4 * 9

    def test_read_and_export(self, local: wr.Database, made: xr.Dataset, tmp_path: Path) -> None:
        array = stored(local, made, tmp_path)
        wanted = made.sel(lon=[330, 0, 30])
        same(array.read(lon=(-30.0, 30.0)), wanted)
        local.export_file("T", tmp_path / "a.nc", lon=(-30.0, 30.0))
        array.sel(lon=(-30, 30)).export(tmp_path / "b.zarr")
        same(xr.open_dataset(tmp_path / "a.nc", engine="h5netcdf"), wanted)
        same(xr.open_zarr(tmp_path / "b.zarr", consolidated=False, chunks=None), wanted)
        array.update({"t": "t + 1000"})
        local.import_file(tmp_path / "a.nc", "T")
        after = made + 1000
        after["t"].loc[{"lon": [330, 0, 30]}] = wanted["t"]
        same(array.read(), after)

    def test_what_a_file_says_of_itself_is_exported(self, local: wr.Database, made: xr.Dataset, tmp_path: Path) -> None:
        stored(local, made.assign_attrs(title="a title"), tmp_path)
        local.export_file("T", tmp_path / "again.zarr", lat=30.0)
        again = xr.open_zarr(tmp_path / "again.zarr", consolidated=False, chunks=None)
        assert (again.attrs["title"], again.t.attrs["units"]) == ("a title", "K")

    def test_a_region_does_not_go_round(self, local: wr.Database) -> None:
        array = local.create("A", "<a: int64> [lon=1:4]")
        array.write(np.arange(4))
        array.set_labels("lon", Labels.of([0.0, 10.0, 20.0, 30.0], {"units": "degrees_east"}))
        assert array.sel(lon=(-30, 10)).shape == (2,)

    def test_a_meridian_that_is_there_twice_is_met_once(self, local: wr.Database) -> None:
        array = local.create("A", "<a: int64> [lon=1:5]")
        array.write(np.arange(5))
        array.set_labels("lon", Labels.of([0.0, 90.0, 180.0, 270.0, 360.0], {"units": "degrees_east"}))
        assert array.sel(lon=(-90, 90)).read()["a"].values.tolist() == [3, 0, 1]

    def test_a_dimension_that_is_declared_to_wrap(self, local: wr.Database) -> None:
        array = local.create("H", "<a: int64> [hour=0:23:7 wrap]", labels={"hour": np.arange(24)})
        array.write(np.arange(24))
        assert "wrap" in str(local.array("H").schema)
        assert array.sel(hour=(22, 1)).read()["a"].values.tolist() == [22, 23, 0, 1]
        assert array.sel(hour=(-2, 1)).read()["hour"].values.tolist() == [22, 23, 0, 1]
        with pytest.raises(SchemaError, match="wrap"):
            local.create("G", "<a: int64> [hour=0:* wrap]")

    def test_cells_beyond_the_seam_are_not_joined_by_number(self, array: wr.Array) -> None:
        chosen = array.sel(lon=(-30, 30))
        with pytest.raises(SchemaError, match="label"):
            chosen.join(array, wr.Linf(0)).agg(n=wr.count())
        same_way = chosen.join(chosen, wr.Linf(0)).agg(n=wr.count()).compute()
        assert int(np.asarray(same_way["n"]).sum()) == 7 * 4 * 3

    def test_descending(self, local: wr.Database) -> None:
        array = local.create("D", "<a: int64> [lon=1:4]")
        array.write(np.arange(4))
        array.set_labels("lon", Labels.of([270.0, 180.0, 90.0, 0.0], {"units": "degrees_east"}))
        assert array.sel(lon=(-90, 90)).read()["lon"].values.tolist() == [90.0, 0.0, 270.0]


class TestWhatCanBeDone:
    def test_windows_are_those_of_the_selection(self, array: wr.Array, made: xr.Dataset) -> None:
        chosen = array.sel(lon=(-60, 60), lat=(15, 45))
        found = chosen.window(lon=wr.centred(3)).agg(m=wr.avg("t")).compute()
        wanted = (
            made.sel(lon=[300, 330, 0, 30, 60], lat=slice(45, 15)).rolling(lon=3, center=True, min_periods=1).mean()
        )
        np.testing.assert_allclose(found["m"].values, wanted["t"].values)
        assert found.lon.values.tolist() == [300.0, 330.0, 0.0, 30.0, 60.0]
        blocks = chosen.regrid(lon=2, lat=3, time=7).agg(n=wr.count("t")).compute()
        assert blocks["n"].values.tolist() == [[[42, 42, 21]]]

    def test_totals_neighbours_and_joins(self, array: wr.Array, made: xr.Dataset) -> None:
        chosen = array.sel(time="2012-07", lon=(-30, 30))
        wanted = made.sel(time="2012-07", lon=[330, 0, 30])
        assert float(chosen.agg(m=wr.max("t")).compute()["m"]) == float(wanted.t.max())
        assert int(array.agg(n=wr.count()).compute()["n"]) == made.t.size
        around = chosen.neighbours(wr.L1(1, on=("lat", "lon"))).agg(n=wr.count()).compute()
        assert around["n"].values[0].tolist() == [[3, 4, 3], [4, 5, 4], [4, 5, 4], [3, 4, 3]]
        paired = array.isel(time=1).join(array.isel(time=1), wr.Linf(0)).agg(n=wr.count()).compute()
        assert int(np.asarray(paired["n"]).sum()) == 48

    def test_stored_and_drawn(self, local: wr.Database, made: xr.Dataset, tmp_path: Path) -> None:
        array = stored(local, made, tmp_path)
        array.sel(lon=(-30, 30)).store("B")
        same(local.array("B").read(), made.sel(lon=[330, 0, 30]))
        assert local.array("B").metadata["t"]["units"] == "K"
        assert array.sel(lon=(-30, 30)).plot(tmp_path / "b.png").stat().st_size > 0
        assert "going round lon" in str(array.sel(lon=(-30, 30)).explain())
        assert array.sel(time="2012-07").to_xarray().sizes == {"time": 4, "lat": 4, "lon": 12}
        assert "lon between -30 and 30" in repr(array.sel(lon=(-30, 30)))


@pytest.mark.spark
def test_selections_on_spark(connect: Any, spark_session: Any, made: xr.Dataset, tmp_path: Path) -> None:
    made.to_zarr(tmp_path / "t.zarr", consolidated=False)
    database = connect(engine="spark", spark=spark_session)
    database.import_file(tmp_path / "t.zarr", "T", chunks={"lon": 5})
    chosen = database.array("T").sel(lon=(-30, 30), time="2012-07")
    wanted = made.sel(lon=[330, 0, 30], time="2012-07")
    same(chosen.compute(), wanted)
    rows = chosen.to_spark().toPandas()
    assert sorted(rows["t"]) == sorted(wanted.t.values.reshape(-1).tolist())
    assert float(chosen.agg(m=wr.avg("t")).compute()["m"]) == pytest.approx(float(wanted.t.mean()))
