"""Tables in Parquet and CSV, and dense data as tables of cells."""

from __future__ import annotations

import datetime
import gzip
import itertools
import pickle
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formats.memory import MemorySource, element, sources
from windrow.errors import FileFormatError
from windrow.formats.cells import cells_schema, dense_to_batches
from windrow.formats.registry import TableOptions, format_of
from windrow.model.arrow import arrow_type
from windrow.model.types import TYPES


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    rows = draw(st.integers(0, 6))
    columns: dict[str, pa.Array] = {}
    for number, name in enumerate(draw(st.lists(st.sampled_from(list(TYPES)), min_size=1, max_size=4))):
        values = draw(st.lists(st.none() | element(name), min_size=rows, max_size=rows))
        columns[f"{name}_{number}"] = pa.array(values, arrow_type(TYPES[name]))
    return pa.table(columns)


def stated(table: pa.Table) -> TableOptions:
    return TableOptions(types={name: name.split("_")[0] for name in table.column_names})


def rows_of(batches: Any) -> list[tuple[Any, ...]]:
    return [tuple(map(repr, row.values())) for batch in batches for row in batch.to_pylist()]


@pytest.mark.parametrize("name", ["x.parquet", "x.csv", "x.csv.gz", "x.tsv"])
@settings(max_examples=20)
@given(table=tables())
def test_written_is_read(name: str, table: pa.Table) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / name
        form = format_of(path)
        form.write_table(path, table.schema, iter(table.to_batches(max_chunksize=2)))
        source = pickle.loads(pickle.dumps(form.open_table(path, stated(table))))
        assert source.arrow_schema == table.schema
        assert rows_of(source.batches()) == rows_of(table.to_batches())
        assert source.files == (str(path),)
        assert source.bytes == path.stat().st_size


def test_csv_infers_types_and_nulls(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text(
        'i,x,s,d,t,e,h\n1,1.5,a,2012-01-01,2012-01-01 06:00:00,,12:30:00\nNA,NaN,"NA",,null,,\n3,inf,"",,,,\n'
    )
    source = format_of(path).open_table(path)
    types = dict(zip(source.arrow_schema.names, map(str, source.arrow_schema.types), strict=True))
    assert types == {
        "i": "int64",
        "x": "double",
        "s": "string",
        "d": "date32[day]",
        "t": "timestamp[s]",
        "e": "string",
        "h": "string",
    }
    rows = [row for batch in source.batches() for row in batch.to_pylist()]
    assert [row["i"] for row in rows] == [1, None, 3]
    assert [row["x"] for row in rows] == [1.5, None, float("inf")]
    assert [row["s"] for row in rows] == ["a", "NA", ""]
    assert rows[0]["d"] == datetime.date(2012, 1, 1)
    assert rows[0]["t"] == datetime.datetime(2012, 1, 1, 6)
    assert rows[0]["h"] == "12:30:00"


def test_csv_without_header_other_delimiter_and_nulls(tmp_path: Path) -> None:
    path = tmp_path / "x.csv.gz"
    path.write_bytes(gzip.compress(b"1;-;a\n2;3.5;NA\n"))
    options = TableOptions(columns=("i", "x", "s"), delimiter=";", nulls=("-",), types={"i": "uint8"})
    batches = list(format_of(path).open_table(path, options).batches())
    assert pa.Table.from_batches(batches).to_pylist() == [{"i": 1, "x": None, "s": "a"}, {"i": 2, "x": 3.5, "s": "NA"}]
    assert batches[0].schema.field("i").type == pa.uint8()


def test_csv_files_together(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    (tmp_path / "b.csv").write_text("x,y\n1.5,3\n")
    source = format_of("*.csv").open_table(tmp_path / "*.csv")
    assert [r for b in source.batches() for r in b.to_pylist()] == [{"x": 1.0, "y": 2}, {"x": 1.5, "y": 3}]
    (tmp_path / "c.csv").write_text("x,z\n1,2\n")
    with pytest.raises(FileFormatError, match=r"c\.csv.*Expected x, y"):
        format_of("*.csv").open_table(tmp_path / "*.csv")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Empty CSV"),
        ("a,b\n1,2\n3\n", r"Row #3"),
        ("1,2\n3,4\n", "looks like data.*Name the columns"),
        ("a,a\n1,2\n", "repeated.*got a"),
    ],
)
def test_csv_that_is_wrong(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text(text)
    with pytest.raises(FileFormatError, match=message) as caught:
        list(format_of(path).open_table(path).batches())
    assert str(path) in str(caught.value)


def test_csv_value_of_another_type_names_the_row(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("a,b\n1,2\n3,oops\n")
    with pytest.raises(FileFormatError, match=r"x\.csv.*Row #3.*oops"):
        list(format_of(path).open_table(path, TableOptions(types={"b": "int32"})).batches())
    with pytest.raises(FileFormatError, match=r"no such column.*'c'"):
        format_of(path).open_table(path, TableOptions(types={"c": "int32"}))
    path.write_bytes(b"a\n\xff\xfe\n")
    with pytest.raises(FileFormatError, match="UTF8"):
        list(format_of(path).open_table(path, TableOptions(types={"a": "string"})).batches())
    (tmp_path / "y.csv.gz").write_bytes(gzip.compress(b"a\n" + b"1\n" * 5000)[:-20])
    with pytest.raises(FileFormatError, match=r"y\.csv\.gz"):
        list(format_of("y.csv.gz").open_table(tmp_path / "y.csv.gz").batches())


def test_parquet_directories(tmp_path: Path) -> None:
    for night in (1, 2):
        directory = tmp_path / "d.parquet" / f"night={night}"
        directory.mkdir(parents=True)
        pq.write_table(pa.table({"x": [night * 10, None]}), directory / "part.parquet")
    (tmp_path / "d.parquet" / "_SUCCESS").touch()
    source = format_of("d.parquet").open_table(tmp_path / "d.parquet")
    rows = [row for batch in source.batches() for row in batch.to_pylist()]
    assert rows == [{"x": 10, "night": 1}, {"x": None, "night": 1}, {"x": 20, "night": 2}, {"x": None, "night": 2}]
    assert len(source.files) == 2
    flat = format_of("x.parquet").open_table(str(tmp_path / "d.parquet" / "*" / "*.parquet"))
    assert [row for b in flat.batches() for row in b.to_pylist()] == [{"x": x} for x in (10, None, 20, None)]
    (tmp_path / "d.parquet" / "_delta_log").mkdir()
    with pytest.raises(FileFormatError, match="Delta table"):
        format_of("d.parquet").open_table(tmp_path / "d.parquet")


def test_parquet_files_that_differ(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"x": [2], "y": ["b"]}), tmp_path / "b.parquet")
    form = format_of("a.parquet")
    rows = [row for b in form.open_table(tmp_path / "*.parquet").batches() for row in b.to_pylist()]
    assert rows == [{"x": 1, "y": None}, {"x": 2, "y": "b"}]
    pq.write_table(pa.table({"x": ["text"]}), tmp_path / "c.parquet")
    with pytest.raises(FileFormatError, match="differ in type"):
        form.open_table(tmp_path / "*.parquet")


def test_parquet_damage(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"x": np.random.default_rng(1).random(50_000)}), path, compression="zstd")
    whole = path.read_bytes()
    for size in (0, 10, len(whole) // 2):
        path.write_bytes(whole[:size])
        with pytest.raises(FileFormatError, match=r"x\.parquet"):
            format_of(path).open_table(path)
    path.write_bytes(whole[:100_000] + bytes(3000) + whole[103_000:])
    with pytest.raises(FileFormatError, match=r"x\.parquet"):
        list(format_of(path).open_table(path).batches())
    (tmp_path / "empty.parquet").mkdir()
    with pytest.raises(FileFormatError, match="no Parquet files"):
        format_of(path).open_table(tmp_path / "empty.parquet")


@pytest.mark.parametrize("name", ["x.parquet", "x.csv"])
def test_wrong_rows_leave_no_file(name: str, tmp_path: Path) -> None:
    schema = pa.schema([("x", pa.int8())])
    batches = iter([pa.record_batch({"x": pa.array([1], pa.int8())}), pa.record_batch({"x": pa.array([1000])})])
    with pytest.raises(FileFormatError, match=name.replace(".", r"\.")):
        format_of(name).write_table(tmp_path / name, schema, batches)
    assert not list(tmp_path.iterdir())


def slow_rows(source: MemorySource) -> dict[tuple[int, ...], tuple[str, ...]]:
    """Cell by cell, with nothing but Python."""
    rows = {}
    box = source.schema.box()
    for cell in itertools.product(*(range(lo, hi + 1) for lo, hi in zip(box.lo, box.hi, strict=True))):
        at = tuple(c - lo for c, lo in zip(cell, box.lo, strict=True))
        row: list[object] = []
        for attribute in source.schema.attributes:
            value = source.cells[attribute.name][at]
            valid = source.cells[attribute.companion][at] if attribute.has_companion else value == value
            row.append(value.item() if valid and hasattr(value, "item") else str(value) if valid else None)
        for name, labels in source.labels.items():
            label = labels.values[at[source.schema.axis(name)]]
            row.append(label.item() if hasattr(label, "item") else str(label))
        rows[cell] = tuple(map(repr, row))
    return rows


@settings(max_examples=30)
@given(source=sources())
def test_cells_of_dense_data(source: MemorySource) -> None:
    got = {}
    names = [*source.schema.attribute_names, *(f"{name}_label" for name in source.labels)]
    for batch in dense_to_batches(source, labels=True):
        assert batch.schema == cells_schema(source, labels=True)
        for row in batch.to_pylist():
            cell = tuple(row[name] for name in source.schema.dimension_names)
            assert cell not in got
            got[cell] = tuple(repr(row[name]) for name in names)
    assert got == slow_rows(source)
    plain = next(dense_to_batches(source))
    assert plain.schema.names == [*source.schema.dimension_names, *source.schema.attribute_names]


@settings(max_examples=20)
@given(source=sources(("float64", "int16", "string", "datetime")))
def test_dense_data_exports_to_tables(source: MemorySource) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "x.parquet"
        format_of(path).write_grid(path, source)
        expected = pa.Table.from_batches(dense_to_batches(source, labels=bool(source.labels)))
        assert rows_of(pq.read_table(path).to_batches()) == rows_of(expected.to_batches())


class Reader:
    """Stands for a Spark session's reader, and keeps what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.read = self

    def csv(self, files: list[str], **options: Any) -> Reader:
        self.asked.append((files, options))
        return self

    def parquet(self, *files: str) -> Reader:
        self.asked.append(files)
        return self

    def selectExpr(self, *columns: str) -> Reader:  # noqa: N802
        self.asked.append(columns)
        return self


def test_spark_is_asked_for_the_same_files(tmp_path: Path) -> None:
    path = tmp_path / "x y.csv"
    path.write_text("a`b,s\n1,x\n")
    reader = Reader()
    format_of(path).open_table(path).spark_frame(reader)
    (files, options), columns = reader.asked
    assert files == [path.as_uri()]
    assert options["schema"] == "`a``b` string, `s` string"
    assert "`a``b` = 'NA' or `a``b` = 'NaN'" in columns[0]
    assert " as bigint) end as `a``b`" in columns[0]
    assert "try_cast" not in columns[1]
    pq.write_table(pa.table({"x": [1]}), tmp_path / "x.parquet")
    reader = Reader()
    format_of("x.parquet").open_table(tmp_path / "x.parquet", TableOptions(types={"x": "int8"})).spark_frame(reader)
    assert reader.asked == [((tmp_path / "x.parquet").as_uri(),), ("cast(`x` as tinyint) as `x`",)]
