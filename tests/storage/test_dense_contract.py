"""Dense arrays keep the storage contract."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import windrow as wr
from windrow.errors import DataError, DuplicateError, UnknownNameError

from .contents import (
    EVERY_TYPE,
    Cells,
    as_blocks,
    as_table,
    check_chunks,
    contents,
    empty_cell,
    expected,
    plain,
    positions,
    random_cells,
)
from .contract import StorageContract


class TestDense(StorageContract):
    sparse = False
    verb = "write"

    def payload(self, schema: wr.Schema, box: wr.Box, seed: int) -> tuple[dict[str, Any], Cells]:
        cells = random_cells(schema, positions(box), seed)
        return {"values": as_blocks(schema, box, cells), "at": box.lo}, cells

    def whole(self, array: wr.Array, cells: Cells) -> Cells:
        return {at: cells.get(at, empty_cell(array.schema)) for at in positions(array.box)}

    # What only dense arrays do

    def test_cells_that_were_never_written(self, local: wr.Database) -> None:
        array = self.create(local, "A", "i=0:3:2", EVERY_TYPE)
        assert contents(array) == {(i,): empty_cell(array.schema) for i in range(4)}
        array.write({"int8_": np.array([1, 2])}, at=(1,))
        wanted = {(i,): empty_cell(array.schema) | ({"int8_": i} if i in (1, 2) else {}) for i in range(4)}
        assert contents(array) == wanted

    def test_missing_values_may_be_said_in_several_ways(self, local: wr.Database) -> None:
        array = local.create("A", "<k: int16 null, t: datetime null, s: string null> [i=0:2]")
        moments = np.array(["2012-01-01", "NaT", "2013-06-30T12:00:00.000001"], "M8[us]")
        array.write(
            {
                "k": np.array([1, 2, 3]),
                "k__valid": np.array([True, False, True]),
                "t": moments,
                "s": np.array(["a", None, ""], object),
            }
        )
        assert contents(array) == {
            (0,): {"k": 1, "t": plain(moments[0]), "s": "a"},
            (1,): {"k": None, "t": None, "s": None},
            (2,): {"k": 3, "t": plain(moments[2]), "s": ""},
        }

    def test_append_continues_labels(self, patient_database: wr.Database, connect: Callable[..., wr.Database]) -> None:
        array = patient_database.create("A", "<a: float32> [day=1:*:4, x=0:2]", labels={"x": ["p", "q", "r"]})
        days = np.arange("2012-01-01", "2012-02-20", dtype="M8[D]")
        for number, day in enumerate(days):
            array.append(np.full((1, 3), number, np.float32), labels=[day])
        again = connect().array("A")
        assert again.labels["day"].values.astype("M8[D]").tolist() == days.tolist()
        assert array.read(day="2012-02")["a"].values[:, 0].tolist() == list(range(31, 50))
        early = again.at(version=10)
        assert len(early.labels["day"]) == early.shape[0] == 10
        assert again.read()["x"].values.tolist() == ["p", "q", "r"]
        with pytest.raises(DataError, match="labels"):
            array.append(np.zeros((1, 3)))
        with pytest.raises(DataError, match="differ"):
            array.write(np.zeros((1, 3)), at=(2, 0), labels={"day": [days[5]]})
        assert array.version == len(days)

    @pytest.mark.parametrize("labels", [[0.5, 1.5], ["a", "b"], np.array(["2012-01-01", "2012-01-02"], "M8[s]")])
    def test_labels_of_every_kind_grow(self, local: wr.Database, labels: Any) -> None:
        array = local.create("A", "<a: float32> [i=0:*]")
        array.append([1, 2], labels=labels)
        more = {0.5: [2.5], "a": ["c"]}.get(labels[0] if isinstance(labels, list) else 0, ["2012-01-03"])
        array.append([3], labels=np.array(more, "M8[s]") if isinstance(labels, np.ndarray) else more)
        last = array.labels["i"].values[-1]
        assert array.read(i=last if not isinstance(last, np.floating) else float(last))["a"].values.tolist() == [3]

    def test_xarray_places_itself_by_coordinates(self, patient_database: wr.Database) -> None:
        latitudes = [60.0, 30.0, 0.0, -30.0]
        array = patient_database.create(
            "A", "<a: float64, k: int32 null> [lat=1:4:3, lon=10:13:2]", labels={"lat": latitudes}
        )
        values = np.arange(16.0).reshape(4, 4)
        array.write({"a": values})
        piece = xr.Dataset(
            {"a": (("lon", "lat"), [[-1.0, -2.0], [-3.0, -4.0]])}, coords={"lat": [30.0, 0.0], "lon": [11, 12]}
        )
        array.write(piece)
        values[1:3, 1:3] = np.array([[-1.0, -2.0], [-3.0, -4.0]]).T
        assert array.read()["a"].values.tolist() == values.tolist()
        array.write(xr.DataArray([[7]], dims=("lat", "lon"), coords={"lat": [-30.0], "lon": [13]}, name="k"))
        assert contents(array)[(4, 13)] == {"a": (15.0).hex(), "k": 7}
        with pytest.raises(UnknownNameError):
            array.write(piece.assign_coords(lat=[31.0, 1.0]))
        array.write(piece.assign_coords(lat=[0.0, 30.0]))
        values[[2, 1], 1:3] = np.array([[-1.0, -2.0], [-3.0, -4.0]]).T
        assert array.read()["a"].values.tolist() == values.tolist()

    def test_what_is_read_can_be_written(self, patient_database: wr.Database) -> None:
        array = self.create(patient_database, "A", "i=-3:8:5, j=0:6:4", EVERY_TYPE)
        held = self.whole(array, self.put(array))
        copy = self.create(patient_database, "B", "i=-3:8:2, j=0:6:6", EVERY_TYPE)
        copy.write(array.read(i=(-3, 2)))
        copy.write(array.to_xarray().isel(i=slice(6, None)))
        assert contents(copy) == held

    def test_xarray_extends_a_growing_dimension(self, local: wr.Database) -> None:
        array = local.create("A", "<a: float64> [time=0:*:4, x=0:1]")
        for first in ("2012-01-01", "2012-01-04", "2012-01-03"):  # the last one lies inside
            days = np.arange(first, np.datetime64(first) + 3, dtype="M8[D]").astype("M8[ns]")
            array.write(xr.Dataset({"a": (("time", "x"), np.ones((3, 2)))}, coords={"time": days}))
        assert array.shape == (6, 2)
        assert array.read(time="2012-01-06")["a"].values.tolist() == [[1.0, 1.0]]

    @pytest.mark.parametrize("form", ["netcdf", "zarr"])
    def test_lazy_datasets_are_read_piece_by_piece(self, database: wr.Database, tmp_path: Path, form: str) -> None:
        values = np.random.default_rng(1).normal(size=(7, 5)).astype(np.float32)
        days = np.arange("2012-01-01", "2012-01-08", dtype="M8[D]").astype("M8[ns]")
        made = xr.Dataset({"a": (("time", "x"), values)}, coords={"time": days, "x": np.arange(5)})
        array = database.create("A", "<a: float32> [time=1:*:3, x=0:4:2]")
        if form == "netcdf":
            made.to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
            opened = xr.open_dataset(tmp_path / "a.nc", engine="h5netcdf")
        else:
            made.to_zarr(tmp_path / "a.zarr", consolidated=False)
            opened = xr.open_zarr(tmp_path / "a.zarr", consolidated=False, chunks=None)
        with opened:
            array.write(opened)
        assert array.read()["a"].values.tolist() == values.tolist()
        assert array.labels["time"].values.astype("M8[ns]").tolist() == days.tolist()

    def test_cells_are_inserted_into_a_dense_array(self, database: wr.Database) -> None:
        array = self.create(database, "A", "i=0:9:4, j=-2:*:3")
        held = self.put(array, wr.Box((0, -2), (9, 1)))
        cells = random_cells(array.schema, [(0, -2), (9, 1), (4, 7), (5, 7), (3, 0)], 3)
        assert array.insert(as_table(array.schema, cells)).cells == 5
        held |= expected(cells)
        assert contents(array) == self.whole(array, held)
        check_chunks(array)
        twice = {"i": [1, 1], "j": [0, 0], "a": [1.0, 2.0], "k": [1, 2]}
        with pytest.raises(DuplicateError, match="i=1, j=0"):
            array.insert(twice)
        assert contents(array) == self.whole(array, held)
        array.insert(twice, on_duplicate="last")
        assert contents(array)[(1, 0)] == {"a": (2.0).hex(), "k": 2}
        with pytest.raises(DataError, match="dimension i"):
            array.insert({"i": [10], "j": [0], "a": [1.0], "k": [1]})

    @pytest.mark.spark
    def test_a_spark_frame_sets_cells(self, connect: Callable[..., wr.Database], spark_session: Any) -> None:
        array = self.create(connect(spark=spark_session), "A", "i=0:*:4, j=0:9:3")
        frame = spark_session.range(0, 300).selectExpr(
            "id div 10 as i",
            "id % 10 as j",
            "cast(id as double) / 4 as a",
            "if(id % 3 = 0, null, cast(id as int)) as k",
        )
        assert array.insert(frame.where("j <> 5")).cells == 270
        assert array.box == wr.Box((0, 0), (29, 9))
        assert contents(array) == {
            (i, j): {"a": None, "k": None}
            if j == 5
            else {"a": ((i * 10 + j) / 4).hex(), "k": None if (i * 10 + j) % 3 == 0 else i * 10 + j}
            for i in range(30)
            for j in range(10)
        }
        check_chunks(array)
        version = array.version
        with pytest.raises(DuplicateError):
            array.insert(frame.union(frame))
        with pytest.raises(DataError, match="j"):
            array.insert(frame.selectExpr("i", "j + 5 as j", "a", "k"))
        assert array.version == version

    def test_dense_cells_cannot_be_deleted(self, local: wr.Database) -> None:
        array = self.create(local, "A", "i=0:9:4")
        with pytest.raises(DataError, match="dense"):
            array.delete("i = 1")
        with pytest.raises(DataError, match="dense"):
            array.batches()
        assert array.version == 0

    @pytest.mark.parametrize(
        ("values", "at"),
        [
            (np.zeros(11), (0,)),
            (np.zeros(3), (8,)),
            (np.zeros(3), (-1,)),
            (np.zeros((3, 3)), (0,)),
            (np.zeros(0), (0,)),
            (np.zeros(3), (0, 0)),
            (np.array(["x"]), (0,)),
            (np.array([1 + 2j]), (0,)),
            ({"z": np.zeros(3)}, (0,)),
            ({}, (0,)),
        ],
    )
    def test_a_refused_write_changes_nothing(self, local: wr.Database, values: Any, at: Any) -> None:
        array = local.create("A", "<a: float32> [i=0:9:4]")
        with pytest.raises(wr.Error):
            array.write(values, at=at)
        assert array.version == 0
        array.write(np.ones(10))
        assert array.version == 1


class TestNamedValuesInAMapping:
    """DataArrays in a dict are matched by the names of their dimensions, as a Dataset is."""

    SQUARE = xr.DataArray([[1.0, 2.0], [3.0, 4.0]], dims=("y", "x"))

    def test_dimensions_are_put_in_order(self, local: wr.Database) -> None:
        array = local.create("H", "<v: float64> [x=1:2, y=1:2]")
        array.write({"v": self.SQUARE})
        assert array.read()["v"].values.tolist() == [[1.0, 3.0], [2.0, 4.0]]
        array.write({"v": self.SQUARE.variable * 2})
        assert array.read()["v"].values.tolist() == [[2.0, 6.0], [4.0, 8.0]]
        with pytest.raises(DataError, match="x, y"):
            array.write({"v": self.SQUARE.rename(y="z")})

    def test_append_puts_them_in_order_too(self, local: wr.Database) -> None:
        array = local.create("H", "<v: float64> [x=1:*, y=1:2]")
        array.append({"v": self.SQUARE})
        array.append({"v": self.SQUARE[:, :1]})
        assert array.read()["v"].values.tolist() == [[1.0, 3.0], [2.0, 4.0], [1.0, 3.0]]

    def test_coordinates_say_where_they_go(self, local: wr.Database) -> None:
        array = local.create("H", "<v: float64, k: int32> [x=1:4, y=1:2]", labels={"x": [10.0, 20.0, 30.0, 40.0]})
        piece = self.SQUARE.assign_coords(x=[30.0, 20.0])
        array.write({"v": piece, "k": [[1, 2], [3, 4]]})
        assert array.read()["v"].values[1:3].tolist() == [[2.0, 4.0], [1.0, 3.0]]
        assert array.read()["k"].values[1:3].tolist() == [[3, 4], [1, 2]]
        with pytest.raises(DataError, match="coordinates"):
            array.write({"v": piece, "k": piece.assign_coords(x=[20.0, 30.0]).astype(int)})
        with pytest.raises(DataError, match="2 dimensions"):
            array.write({"v": piece, "k": [1, 2]})
        with pytest.raises(DataError, match="masked"):
            array.write({"v": piece, "k": np.ma.masked_equal([[1, 2], [3, 4]], 2)})
        with pytest.raises(DataError, match="a Dataset"):
            array.write({"v": piece.to_dataset(name="v")})


class TestNewSlicesNeedValues:
    """Cells that come into being have a value of every attribute that cannot be missing: none is made up."""

    SCHEMA = "<v: float64, k: int64, m: int64 null> [time=1:*, x=1:2]"

    @pytest.mark.parametrize("days", [[1, 2], [3, 5], [4]], ids=["first", "late", "next"])
    def test_a_dataset_without_them_is_refused(self, local: wr.Database, days: list[int]) -> None:
        array = local.create("H", self.SCHEMA)
        if days[0] != 1:
            first = [np.datetime64("2012-01-02"), np.datetime64("2012-01-03")]
            array.append({"v": np.ones((2, 2)), "k": np.ones((2, 2), int)}, labels=first)
        version = array.version
        times = [np.datetime64("2012-01-01", "ns") + np.timedelta64(day, "D") for day in days]
        late = xr.Dataset({"v": (("time", "x"), np.ones((len(days), 2)))}, coords={"time": times})
        with pytest.raises(DataError, match="attribute k"):
            array.write(late)
        assert array.version == version
        array.write(late.assign(k=late.v.astype(int)))
        assert not array.read()["m__valid"].values.any()

    def test_so_is_an_append_without_them(self, local: wr.Database) -> None:
        array = local.create("H", self.SCHEMA)
        with pytest.raises(DataError, match="attribute k") as caught:
            array.append({"v": np.ones((1, 2)), "m": np.ones((1, 2), int)})
        assert "null" in str(caught.value)
        array.append({"v": np.ones((1, 2)), "k": np.full((1, 2), 7)})
        array.write({"v": np.zeros((1, 2))}, at=(1, 1))
        assert array.read()["k"].values.tolist() == [[7, 7]]
