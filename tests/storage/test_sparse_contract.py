"""Sparse arrays keep the storage contract."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import windrow as wr
from windrow.errors import DataError, DuplicateError, UnknownNameError

from .contents import Cells, as_table, cells_of_rows, check_chunks, contents, plain, positions, random_cells
from .contract import CONDITIONS, StorageContract


class TestSparse(StorageContract):
    sparse = True
    verb = "insert"

    def payload(self, schema: wr.Schema, box: wr.Box, seed: int) -> tuple[dict[str, Any], Cells]:
        random = np.random.default_rng(seed + 1000)
        places = [at for at in positions(box) if random.random() < 0.6] or [box.lo]
        cells = random_cells(schema, places, seed)
        return {"cells": as_table(schema, cells)}, cells

    def whole(self, array: wr.Array, cells: Cells) -> Cells:
        return dict(cells)

    # What only sparse arrays do

    def test_duplicates_are_refused_unless_told_otherwise(self, database: wr.Database) -> None:
        array = self.create(database, "A", "x=0:9:4, y=0:9:4", "v: int32")
        twins = {"x": [1, 5, 1, 1], "y": [2, 5, 2, 2], "v": [1, 2, 3, 4]}
        with pytest.raises(DuplicateError, match="2 too many, the first at x=1, y=2"):
            array.insert(twins)
        assert array.version == 0
        report = array.insert(twins, on_duplicate="last")
        assert (report.cells, report.duplicates, report.replaced) == (2, 2, 0)
        assert contents(array) == {(1, 2): {"v": 4}, (5, 5): {"v": 2}}
        report = array.insert({"x": [1, 2], "y": [2, 2], "v": [7, 8]})
        assert (report.cells, report.duplicates, report.replaced) == (2, 0, 1)
        assert contents(array) == {(1, 2): {"v": 7}, (2, 2): {"v": 8}, (5, 5): {"v": 2}}
        check_chunks(array)
        with pytest.raises(DataError, match="on_duplicate"):
            array.insert(twins, on_duplicate="first")
        array.insert(twins, on_duplicate="keep")  # those that are there are number 0
        there = {(1, 2, 0): 7, (1, 2, 1): 1, (1, 2, 2): 3, (1, 2, 3): 4, (2, 2, 0): 8, (5, 5, 0): 2, (5, 5, 1): 2}
        assert {place: cell["v"] for place, cell in contents(array).items()} == there
        check_chunks(array)

    def test_kept_duplicates_are_numbered_on(self, database: wr.Database) -> None:
        array = self.create(database, "A", "x=0:9:4, n=0:*:2", "v: int32")
        report = array.insert({"x": [3, 3, 7], "v": [1, 2, 3]}, on_duplicate="keep")
        assert (report.cells, report.duplicates) == (3, 1)
        with database.batch() as batch:
            batch.insert("A", {"x": [3, 7, 3], "v": [4, 5, 6]}, on_duplicate="keep")
            batch.insert("A", {"x": [3], "v": [7]}, on_duplicate="keep")
        found = contents(array)
        assert sorted(n for x, n in found if x == 3) == [0, 1, 2, 3, 4]
        assert sorted(row["v"] for (x, _), row in found.items() if x == 3) == [1, 2, 4, 6, 7]
        assert {n: row["v"] for (x, n), row in found.items() if x == 7} == {0: 3, 1: 5}
        check_chunks(array)

    def test_ordered_duplicates_across_chunks_and_inserts(self, local: wr.Database) -> None:
        array = self.create(local, "A", "x=0:99:7", "v: int64")
        random = np.random.default_rng(5)
        model: dict[int, int] = {}
        for first in range(0, 3000, 1000):
            places, values = random.integers(0, 100, 1000), np.arange(first, first + 1000)
            array.insert({"x": places, "v": values}, on_duplicate="last")
            model |= dict(zip(places.tolist(), values.tolist(), strict=True))
        assert contents(array) == {(x,): {"v": v} for x, v in model.items()}
        check_chunks(array)

    def test_deletes_use_three_valued_logic(self, patient_database: wr.Database) -> None:
        array = self.create(patient_database, "A", "i=0:8:4, j=0:8:4", "k: int16 null, m: int16 null")
        for text, condition in CONDITIONS.items():
            array.delete()
            assert contents(array) == {}
            held = self.put(array, seed=11)
            report = array.delete(text)
            kept = {at: row for at, row in held.items() if condition(*at, row["k"], row["m"]) is not True}
            assert contents(array) == kept
            assert report.cells == len(held) - len(kept)
        check_chunks(array)

    def test_every_form_of_table_is_taken(self, local: wr.Database, tmp_path: Path) -> None:
        cells = {"x": [4, 1, 9], "y": [0, 3, 3], "v": [1.5, None, -2.0], "s": ["a", "ü", None]}
        frame = pd.DataFrame(cells)
        table = pa.table(cells)
        pq.write_table(table, tmp_path / "cells.parquet")
        (tmp_path / "cells.csv").write_text("x,y,v,s\n4,0,1.5,a\n1,3,,ü\n9,3,-2.0,\n")
        forms: dict[str, Any] = {
            "Arrow table": table,
            "Arrow batch": table.to_batches()[0],
            "Arrow with other types": table.set_column(0, "x", table["x"].cast(pa.uint8())),
            "Arrow dictionary": table.set_column(3, "s", table["s"].dictionary_encode()),
            "pandas": frame,
            "polars": pl.DataFrame(cells),
            "dict": cells,
            "dict of ndarrays": {"x": np.array([4, 1, 9], np.int16), "y": np.array([0, 3, 3])}
            | {"v": np.array([1.5, np.nan, -2.0]), "s": cells["s"]},
            "list of dicts": table.to_pylist(),
            "Parquet": tmp_path / "cells.parquet",
            "CSV": str(tmp_path / "cells.csv"),
        }
        wanted = {
            (1, 3): {"v": None, "s": "ü"},
            (4, 0): {"v": (1.5).hex(), "s": "a"},
            (9, 3): {"v": (-2.0).hex(), "s": None},
        }
        for number, (form, value) in enumerate(forms.items()):
            array = self.create(local, f"A{number}", "x=0:9:4, y=0:9:4", "v: float64, s: string null")
            assert array.insert(value).cells == 3, form
            assert contents(array) == wanted, form

    @pytest.mark.spark
    def test_tables_and_files_are_taken_by_spark(
        self, connect: Callable[..., wr.Database], spark_session: Any, tmp_path: Path
    ) -> None:
        database = connect(engine="spark", spark=spark_session)
        cells = {"x": [4, 1, 9], "v": [1.5, None, -2.0], "s": ["a", "ü", None]}
        pq.write_table(pa.table(cells), tmp_path / "cells.parquet")
        (tmp_path / "cells.csv").write_text("x,v,s\n4,1.5,a\n1,,ü\n9,-2.0,\n")
        frame = spark_session.createDataFrame(pd.DataFrame({"x": [4, 1, 9], "v": [1.5, None, -2.0]})).selectExpr(
            "x", "v", "case x when 4 then 'a' when 1 then 'ü' end as s"
        )
        forms = [
            cells,
            pd.DataFrame(cells),
            pl.DataFrame(cells),
            frame,
            tmp_path / "cells.parquet",
            tmp_path / "cells.csv",
        ]
        for number, value in enumerate(forms):
            array = self.create(database, f"A{number}", "x=0:9:4", "v: float64, s: string null")
            assert array.insert(value).cells == 3
            assert contents(array) == {
                (1,): {"v": None, "s": "ü"},
                (4,): {"v": (1.5).hex(), "s": "a"},
                (9,): {"v": (-2.0).hex(), "s": None},
            }
        with pytest.raises(DataError, match="ordered"):
            array.insert(frame, on_duplicate="last")

    @pytest.mark.spark
    def test_times_keep_their_instant_whatever_the_session(
        self, connect: Callable[..., wr.Database], spark_session: Any
    ) -> None:
        array = self.create(connect(spark=spark_session), "A", "x=0:9", "t: datetime")
        spark_session.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
        try:
            frame = spark_session.sql("select 1 as x, timestamp '2012-01-01 09:00:00' as t")
            array.insert(frame)
            assert contents(array) == {(1,): {"t": plain(np.datetime64("2012-01-01T00:00:00", "us"))}}
            assert array.to_spark().where("t = timestamp '2012-01-01 09:00:00'").count() == 1
        finally:
            spark_session.conf.set("spark.sql.session.timeZone", "UTC")

    def test_points_become_cells_and_none_is_lost(self, database: wr.Database) -> None:
        array = database.create(
            "P", "<mag: float32> [ra, dec]", grid={"ra": (0, 360, "1 deg"), "dec": (-90, 90, "0.5 deg")}
        )
        random = np.random.default_rng(2)
        points = {
            "ra": np.append(random.uniform(0, 3, 400), [360.0, 0.0]),
            "dec": np.append(random.uniform(-90, -88, 400), [90.0, -90.0]),
            "mag": np.arange(402, dtype=np.float32),
        }
        for start, stop in ((0, 200), (200, 402)):
            array.insert({name: column[start:stop] for name, column in points.items()})
        found = array.read().to_pydict()
        order = np.argsort(found["mag"])
        assert np.array(found["mag"])[order].tolist() == points["mag"].tolist()
        assert np.array(found["ra_exact"])[order].tolist() == points["ra"].tolist()
        assert np.array(found["dec_exact"])[order].tolist() == points["dec"].tolist()
        assert (np.array(found["ra"])[order] == np.minimum(np.floor(points["ra"]) + 1, 360)).all()
        assert (np.array(found["dec"])[order] == np.minimum(np.floor((points["dec"] + 90) * 2) + 1, 360)).all()
        assert len(set(zip(found["ra"], found["dec"], found["n"], strict=True))) == 402
        assert array.read(ra=(1.0, 1.9)).num_rows == int((np.floor(points["ra"]) == 1).sum())
        check_chunks(array)
        with pytest.raises(DataError, match="no cell along dec"):
            array.insert({"ra": [1.0], "dec": [90.5], "mag": [0.0]})

    @pytest.mark.spark
    def test_points_come_from_spark(self, connect: Callable[..., wr.Database], spark_session: Any) -> None:
        array = connect(spark=spark_session).create(
            "P", "<id: int64> [ra, when]", grid={"ra": (0, 360, "1 deg"), "when": ("2012-01-01", None, "1 day")}
        )
        points = spark_session.range(0, 500).selectExpr(
            "id", "(id % 50) / 20 as ra", "timestamp '2012-01-05 06:00:00' + make_interval(0, 0, 0, id % 3) as when"
        )
        array.insert(points)
        array.insert(points.selectExpr("id + 500 as id", "ra", "when"))
        found = array.read().to_pydict()
        assert sorted(found["id"]) == list(range(1000))
        for id_, ra, exact, when in zip(found["id"], found["ra"], found["ra_exact"], found["when"], strict=True):
            assert exact == (id_ % 500 % 50) / 20
            assert ra == int(exact) + 1
            assert when == 5 + id_ % 500 % 3
        assert array.read(when="2012-01-06").num_rows == found["when"].count(6)

    @pytest.mark.spark
    def test_a_point_without_a_cell_is_refused_by_spark_at_its_first_try(
        self, connect: Callable[..., wr.Database], spark_session: Any
    ) -> None:
        array = connect(spark=spark_session).create("P", "<id: int64> [ra]", grid={"ra": (0, 360, "1 deg")})
        points = spark_session.range(0, 500).selectExpr("id", "if(id = 321, 400.5d, id % 50) as ra")
        with pytest.raises(DataError, match="no cell along ra") as caught:
            array.insert(points)
        assert caught.value.__cause__ is None, "Spark tried again until it gave up"
        assert array.version == 0
        assert not list(Path(array.location().path).glob("*.parquet"))

    @pytest.mark.spark
    def test_spark_refuses_a_damaged_page(self, connect: Callable[..., wr.Database], spark_session: Any) -> None:
        array = connect(spark=spark_session).create("S", "<v: int64> [x=0:*:1000]", sparse=True)
        array.insert({"x": np.arange(20_000), "v": np.random.default_rng(1).integers(0, 2**40, 20_000)})
        assert array.to_spark().selectExpr("sum(v) as v").first()["v"] == sum(array.read()["v"].to_pylist())
        (file,) = Path(array.location().path).glob("*.parquet")
        column = pq.ParquetFile(file).metadata.row_group(0).column(2)
        content = bytearray(file.read_bytes())
        content[column.data_page_offset + column.total_compressed_size // 2] ^= 0x10
        file.write_bytes(content)
        with pytest.raises(Exception, match=r"(?i)crc|checksum"):
            array.to_spark().selectExpr("sum(v) as v").collect()
        with pytest.raises(wr.CorruptionError, match=r"S@1: chunks \(0,\) to"):
            array.read()

    def test_batches_stream_all_cells(self, local: wr.Database) -> None:
        array = self.create(local, "A", "x=0:99:10, y=0:*:5")
        held = self.put(array, wr.Box((0, 0), (99, 9)))
        held |= self.put(array, wr.Box((50, 0), (60, 19)), 2)
        found = [row for table in array.batches(x=(10, 70)) for row in table.to_pylist()]
        assert cells_of_rows(found, ("x", "y"), ("a", "k")) == {
            at: row for at, row in held.items() if 10 <= at[0] <= 70
        }
        rows = array.read(["k"]).to_pylist()
        assert [(row["x"], row["y"]) for row in rows] == sorted(held)

    @pytest.mark.parametrize(
        ("cells", "error"),
        [
            ({"x": [1], "y": [1]}, DataError),
            ({"x": [1], "v": [1]}, DataError),
            ({"x": [1], "y": [1], "v": [1], "z": [1]}, UnknownNameError),
            ({"x": [10], "y": [1], "v": [1]}, DataError),
            ({"x": [-1], "y": [1], "v": [1]}, DataError),
            ({"x": [1], "y": [None], "v": [1]}, DataError),
            ({"x": [1.5], "y": [1], "v": [1]}, DataError),
            ({"x": ["1"], "y": [1], "v": [1]}, DataError),
            ({"x": [1], "y": [1], "v": [200]}, DataError),
            ({"x": [1], "y": [1], "v": [None]}, DataError),
            ({"x": [1], "y": [1], "v": ["1"]}, DataError),
            ({"x": [1, 2], "y": [1], "v": [1]}, DataError),
            (5, DataError),
            ("no such file.parquet", wr.FileFormatError),
        ],
    )
    def test_a_refused_insert_changes_nothing(
        self, patient_database: wr.Database, cells: Any, error: type[wr.Error]
    ) -> None:
        array = self.create(patient_database, "A", "x=0:9:4, y=0:*:4", "v: int8")
        with pytest.raises(error):
            array.insert(cells)
        assert array.version == 0
        assert contents(array) == {}

    def test_an_insert_of_nothing_is_no_version(self, database: wr.Database) -> None:
        array = self.create(database, "A", "x=0:9:4", "v: int8")
        assert array.insert(pa.table({"x": pa.array([], pa.int64()), "v": pa.array([], pa.int8())})).cells == 0
        assert array.version == 0
        assert contents(array) == {}
