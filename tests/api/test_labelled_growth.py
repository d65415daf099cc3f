"""Slices that overlap the end of a labelled growing dimension, extend it or come late: in files, xarray and arrays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import windrow as wr
from windrow.errors import DataError, DuplicateError, FileFormatError, SchemaError, UnknownNameError

LATITUDES = [60.0, 30.0, 0.0]


def days(*numbers: int) -> Any:
    return np.array([np.datetime64("2012-01-01") + number - 1 for number in numbers], "M8[ns]")


def field(*numbers: int, value: float = 0.0, lat: Any = LATITUDES) -> xr.Dataset:
    """A field whose values say which day and latitude they are of; ``value`` tells versions of it apart."""
    values = np.add.outer(100.0 * np.array(numbers), np.asarray(lat)) + value
    return xr.Dataset({"t": (("time", "lat"), values)}, coords={"time": days(*numbers), "lat": lat})


def merged(*fields: xr.Dataset) -> xr.Dataset:
    """What xarray alone makes of the same: the last of each day, in order."""
    joined = xr.concat(fields, "time", data_vars="minimal").sortby("lat", ascending=False)
    keep = [index for index, day in enumerate(joined.time.values) if day not in joined.time.values[index + 1 :]]
    return joined.isel(time=keep).sortby("time")


def holds(array: wr.Array, wanted: xr.Dataset) -> None:
    found = array.read()
    assert found.time.values.astype("M8[ns]").tolist() == wanted.time.values.astype("M8[ns]").tolist()
    np.testing.assert_array_equal(found["t"].values, wanted["t"].transpose("time", "lat").values)
    np.testing.assert_array_equal(array.to_xarray()["t"].values, found["t"].values)
    stored = array.chunks()
    assert int(stored.cells.sum()) == found["t"].size


@pytest.fixture
def array(local: wr.Database) -> wr.Array:
    return local.create("T", "<t: float64> [time=1:*:4, lat=1:3:2]", labels={"lat": LATITUDES})


class TestXarray:
    @pytest.mark.parametrize(
        "later",
        [(2, 3, 4), (3, 4, 5), (1, 2), (5, 6), (0,), (0, 2, 9), (9, 0, 2), (4, 3, 2), (7, 6, 5)],
        ids=lambda numbers: "-".join(map(str, numbers)),
    )
    def test_slices_replace_extend_and_come_late(self, array: wr.Array, later: tuple[int, ...]) -> None:
        first, second = field(1, 2, 3, 5), field(*later, value=0.5)
        array.write(first)
        report = array.write(second)
        holds(array, merged(first, second))
        there = len(set(later) & {1, 2, 3, 5})
        assert (report.cells, report.replaced, report.version) == (3 * len(later), 3 * there, 2)
        holds(array.at(version=1), first)

    def test_a_late_slice_is_reported_with_what_it_moved(self, array: wr.Array) -> None:
        array.write(field(1, 2, 4, 5))
        assert "6 moved" in str(array.write(field(3)))

    def test_many_writes_in_any_order(self, array: wr.Array) -> None:
        pieces = [field(10, 11, 12), field(1, 5), field(4, 3, 2, 1, value=0.25), field(12, 13, 6, value=0.5), field(7)]
        for piece in pieces:
            array.write(piece)
        holds(array, merged(*pieces))

    def test_descending_labels_stay_descending(self, local: wr.Database) -> None:
        array = local.create("L", "<a: float64> [level=0:*:2]")
        array.write(xr.Dataset({"a": ("level", [1000.0, 850.0, 500.0])}, coords={"level": [1000.0, 850.0, 500.0]}))
        array.write(xr.Dataset({"a": ("level", [700.0, 300.0, 1013.0])}, coords={"level": [700.0, 300.0, 1013.0]}))
        wanted = [1013.0, 1000.0, 850.0, 700.0, 500.0, 300.0]
        assert array.read()["level"].values.tolist() == array.read()["a"].values.tolist() == wanted

    def test_labels_out_of_order_from_the_start_get_new_ones_at_the_end(self, local: wr.Database) -> None:
        array = local.create("N", "<a: float64> [site=0:*:2]")
        array.append([1.0, 2.0, 3.0])
        array.set_labels("site", ["rome", "bonn", "oslo"])
        report = array.append([4.0, 22.0], labels=["athens", "bonn"])
        assert array.read()["site"].values.tolist() == ["rome", "bonn", "oslo", "athens"]
        assert array.read()["a"].values.tolist() == [1.0, 22.0, 3.0, 4.0]
        assert report.replaced == 1

    def test_a_label_twice_in_one_write_is_refused(self, array: wr.Array) -> None:
        array.write(field(1, 2))
        with pytest.raises(DuplicateError, match="2012-01-03"):
            array.write(field(3, 4, 3))
        assert array.version == 1
        holds(array, field(1, 2))

    def test_fixed_dimensions_are_matched_by_label_too(self, array: wr.Array) -> None:
        array.write(field(1, 2))
        array.write(field(2, 3, lat=[0.0, 60.0], value=0.5))
        wanted = xr.concat([field(1, 2), field(3, value=0.5)], "time")
        wanted["t"][2, 1] = np.nan
        wanted["t"][1, [0, 2]] += 0.5
        holds(array, wanted)
        with pytest.raises(UnknownNameError, match="nearest is 60"):
            array.write(field(4, lat=[61.0, 0.0]))

    def test_a_stated_place_is_enough_without_labels(self, local: wr.Database) -> None:
        array = local.create("A", "<a: float64> [i=1:4, j=1:2]")
        part = xr.Dataset({"a": (("i", "j"), [[1.0, 2.0]])}, coords={"i": [0.5], "j": [7.0, 8.0]})
        array.write(part, at=(2, 1))
        assert array.read()["a"].values[1].tolist() == [1.0, 2.0]
        assert set(array.labels) == {"j"}
        with pytest.raises(DataError, match="only label all of it"):
            array.write(part)

    def test_labels_that_are_there_twice(self, local: wr.Database) -> None:
        array = local.create("A", "<a: float64> [site=1:3]", labels={"site": ["bonn", "oslo", "bonn"]})
        array.write(xr.Dataset({"a": ("site", [1.0, 2.0, 3.0])}, coords={"site": ["bonn", "oslo", "bonn"]}))
        array.write(xr.Dataset({"a": ("site", [4.0])}, coords={"site": ["oslo"]}))
        assert array.read()["a"].values.tolist() == [1.0, 4.0, 3.0]
        with pytest.raises(DataError, match="several cells"):
            array.write(xr.Dataset({"a": ("site", [5.0, 6.0])}, coords={"site": ["oslo", "bonn"]}))
        with pytest.raises(DuplicateError, match="oslo"):
            array.write(xr.Dataset({"a": ("site", [5.0, 6.0])}, coords={"site": ["oslo", "oslo"]}))

    def test_attributes_that_a_late_slice_does_not_bring_are_moved_with_the_others(self, local: wr.Database) -> None:
        array = local.create("T", "<t: float64, k: int32 null, s: string null> [time=1:*:2]")
        first = {"t": np.array([1.0, 3.0, 4.0]), "k": np.array([1, 3, 4]), "s": np.array(["1", "3", "4"], object)}
        array.append(first, labels=days(1, 3, 4))
        array.append({"t": np.array([2.0])}, labels=days(2))
        found = array.read()
        assert found["t"].values.tolist() == [1.0, 2.0, 3.0, 4.0]
        assert found["k"].values[[0, 2, 3]].tolist() == [1, 3, 4]
        assert found["s"].values[[0, 2, 3]].tolist() == ["1", "3", "4"]
        assert found["k__valid"].values.tolist() == found["s__valid"].values.tolist() == [True, False, True, True]

    def test_two_growing_dimensions(self, local: wr.Database) -> None:
        array = local.create("G", "<a: float64> [x=0:*:2, y=0:*:3]")

        def piece(x: list[float], y: list[float]) -> xr.Dataset:
            return xr.Dataset({"a": (("x", "y"), np.add.outer(10 * np.array(x), y))}, coords={"x": x, "y": y})

        array.write(piece([1.0, 3.0], [1.0, 2.0]))
        array.write(piece([2.0, 3.0], [0.0, 2.0, 5.0]))
        found = array.read()["a"]
        assert found.x.values.tolist() == [1.0, 2.0, 3.0]
        assert found.y.values.tolist() == [0.0, 1.0, 2.0, 5.0]
        nan = np.nan
        wanted = [[nan, 11.0, 12.0, nan], [20.0, nan, 22.0, 25.0], [30.0, 31.0, 32.0, 35.0]]
        np.testing.assert_array_equal(found.values, wanted)


class TestArrays:
    def test_append_puts_slices_where_they_belong(self, array: wr.Array) -> None:
        array.append(field(1, 2, 4)["t"].values, labels=days(1, 2, 4))
        array.append(field(4, 5, 3, value=0.5)["t"].values, labels=days(4, 5, 3))
        holds(array, merged(field(1, 2, 4), field(4, 5, 3, value=0.5)))

    def test_write_at_a_place_with_labels(self, array: wr.Array) -> None:
        array.append(field(1, 2, 3)["t"].values, labels=days(1, 2, 3))
        later = field(2, 3, 4, value=0.5)
        array.write(later["t"].values, at=(2, 1), labels={"time": days(2, 3, 4)})
        holds(array, merged(field(1, 2, 3), later))
        array.write(field(0)["t"].values, at=(5, 1), labels={"time": days(0)})
        holds(array, merged(field(1, 2, 3), later, field(0)))
        with pytest.raises(DataError, match="differ"):
            array.write(field(3)["t"].values, at=(2, 1), labels={"time": days(3)})
        with pytest.raises(DataError, match="unlabelled"):
            array.write(field(9)["t"].values, at=(9, 1), labels={"time": days(9)})

    def test_write_by_labels_alone(self, array: wr.Array) -> None:
        array.append(field(1, 2, 3)["t"].values, labels=days(1, 2, 3))
        array.write(field(2, 5, value=0.5)["t"].values, labels={"time": days(2, 5)})
        holds(array, merged(field(1, 2, 3), field(2, 5, value=0.5)))

    def test_dates_may_be_given_as_text(self, array: wr.Array) -> None:
        array.append(field(1, 3)["t"].values, labels=days(1, 3))
        array.append(field(2, 3, value=0.5)["t"].values, labels=["2012-01-02", "2012-01-03"])
        holds(array, merged(field(1, 3), field(2, 3, value=0.5)))

    def test_a_batch_sees_the_order_it_made(self, local: wr.Database, array: wr.Array) -> None:
        with local.batch() as batch:
            for number in (3, 1, 4, 2, 3):
                batch.append("T", field(number)["t"].values, days(number))
        holds(array, field(1, 2, 3, 4))
        assert array.version == 1


@pytest.mark.parametrize("suffix", ["nc", "zarr"])
class TestFiles:
    @pytest.fixture
    def save(self, tmp_path: Path, suffix: str) -> Any:
        def save(name: str, data: xr.Dataset) -> str:
            path = str(tmp_path / f"{name}.{suffix}")
            if suffix == "nc":
                data.to_netcdf(path, engine="h5netcdf")
            else:
                data.to_zarr(path, consolidated=False)
            return path

        return save

    def test_files_overlap_extend_and_come_late(self, local: wr.Database, save: Any) -> None:
        pieces = [field(2, 3, 5), field(3, 4, 6, value=0.5), field(1, 7, value=0.25)]
        for number, piece in enumerate(pieces):
            report = local.import_file(save(f"p{number}", piece), "T", grow="time")
        holds(local.array("T"), merged(*pieces))
        assert report.version == 3

    def test_dimensions_in_another_order_are_put_right(self, local: wr.Database, save: Any) -> None:
        local.import_file(save("a", field(1, 2, 3)), "T", grow="time")
        local.import_file(save("b", field(4, 5, 6).transpose("lat", "time")), "T")
        holds(local.array("T"), field(1, 2, 3, 4, 5, 6))

    def test_other_names_are_an_error_that_names_both(self, local: wr.Database, save: Any) -> None:
        local.import_file(save("a", field(1, 2, 3)), "T", grow="time")
        with pytest.raises(SchemaError, match=r"(?s)latitude.*lat\b"):
            local.import_file(save("b", field(4).rename(lat="latitude")), "T")
        holds(local.array("T"), field(1, 2, 3))

    def test_a_label_that_is_not_there_is_told_plainly_with_the_file(self, local: wr.Database, save: Any) -> None:
        local.import_file(save("a", field(1)), "T", grow="time")
        with pytest.raises(UnknownNameError, match=r"no such label in lat, got 20\.0\. .*30\.0") as caught:
            local.import_file(save("b", field(2, lat=[60.0, 20.0, 0.0])), "T")
        assert str(caught.value).startswith("file /")
        assert "np." not in str(caught.value)

    def test_a_file_without_the_variables_is_refused(self, local: wr.Database, save: Any) -> None:
        local.import_file(save("a", field(1, 2, 3)), "T", grow="time")
        path = save("humidity", field(4).rename(t="q"))
        with pytest.raises(FileFormatError, match=r"(?s)humidity.*'?t'?"):
            local.import_file(path, "T")
        assert local.array("T").version == 1

    def test_some_variables_may_be_asked_for(self, local: wr.Database, save: Any) -> None:
        both = field(1, 2).assign(q=field(1, 2, value=7.0)["t"])
        local.import_file(save("a", both), "T", grow="time")
        with pytest.raises(FileFormatError, match="q"):
            local.import_file(save("b", field(2, value=0.5)), "T")
        local.import_file(save("c", field(2, value=0.5)), "T", variables=["t"])
        holds(local.array("T"), merged(field(1, 2), field(2, value=0.5)))
        assert local.array("T").read()["q"].values[1].tolist() == both["q"].values[1].tolist()

    def test_a_date_in_two_files_of_one_import_is_refused(self, local: wr.Database, save: Any) -> None:
        paths = [save("a", field(1, 2)), save("b", field(3, 4)), save("c", field(4, 5))]
        with pytest.raises(FileFormatError, match=r"(?s)2012-01-04.*b\..*c\."):
            local.import_file(paths, "T", along="time")
        assert "T" not in local

    def test_files_of_one_import_may_differ_in_the_order_of_dimensions(self, local: wr.Database, save: Any) -> None:
        paths = [save("a", field(1, 2, 3)), save("b", field(4, 5).transpose("lat", "time"))]
        local.import_file(paths, "T", along="time")
        holds(local.array("T"), field(1, 2, 3, 4, 5))

    def test_cells_that_were_exported_go_back_to_their_place(
        self, local: wr.Database, save: Any, tmp_path: Path
    ) -> None:
        array = local.create("I", "<a: float64> [i=1:9:4, j=1:2]")
        array.write(np.arange(18.0).reshape(9, 2))
        path = tmp_path / "part.zarr"
        local.export_file("I", path, i=(4, 6))
        array.update({"a": "a + 100"})
        local.import_file(path, "I")
        wanted = np.arange(18.0).reshape(9, 2) + 100
        wanted[3:6] -= 100
        assert array.read()["a"].values.tolist() == wanted.tolist()


@pytest.mark.spark
def test_late_slices_on_spark(connect: Any, spark_session: Any, tmp_path: Path) -> None:
    database = connect(engine="spark", spark=spark_session)
    pieces = [field(2, 3, 6), field(4, 3, 1, value=0.5)]
    for number, piece in enumerate(pieces):
        piece.to_netcdf(tmp_path / f"{number}.nc", engine="h5netcdf")
        database.import_file(tmp_path / f"{number}.nc", "T", grow="time")
    database.array("T").write(field(5, 7, 2, value=0.25))
    holds(database.array("T"), merged(*pieces, field(5, 7, 2, value=0.25)))
