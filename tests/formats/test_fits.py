"""FITS tables in and out, compared with what astropy wrote and reads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from astropy.io import fits
from astropy.table import MaskedColumn, Table

import windrow as wr
from windrow.errors import Error, FileFormatError
from windrow.formats.registry import format_of

DETECTIONS = {
    "night": np.array([1, 1, 2], np.int32),
    "ra": np.array([10.5, 200.25, 10.5]),
    "mag": np.array([17.5, np.nan, 16.25], np.float32),
    "band": np.array(["g", "r", "g "]),
    "good": np.array([True, False, True]),
    "count": np.array([1, 2**40, 3], np.int64),
    "small": np.array([0, 255, 7], np.uint8),
    "large": np.array([0, 40_000, 7], np.uint16),
}


def write(path: Path, table: Table) -> Path:
    table.write(path, format="fits")
    return path


def read(path: Path) -> pa.Table:
    source = format_of(path).open_table(path)  # type: ignore[misc]
    return pa.Table.from_batches(source.batches(), source.arrow_schema)


@pytest.mark.parametrize("name", ["cat.fits", "cat.fits.gz"])
def test_a_catalogue_comes_in_as_astropy_wrote_it(tmp_path: Path, name: str) -> None:
    found = read(write(tmp_path / name, Table(DETECTIONS)))
    assert found.column_names == list(DETECTIONS)
    for column, values in DETECTIONS.items():
        expected = np.char.rstrip(values) if values.dtype.kind == "U" else values
        got = found.column(column).to_numpy()
        assert np.array_equal(got, expected, equal_nan=values.dtype.kind == "f"), column
    assert found.schema.field("mag").type == pa.float32()
    assert found.schema.field("night").type == pa.int32()


def test_whole_numbers_that_are_missing_are_null(tmp_path: Path) -> None:
    column = MaskedColumn(np.array([1, 2, 3], np.int32), mask=[False, True, False])
    assert read(write(tmp_path / "a.fits", Table({"n": column}))).column("n").to_pylist() == [1, None, 3]


def test_detections_become_cells(tmp_path: Path, local: wr.Database) -> None:
    path = write(tmp_path / "night.fits", Table(DETECTIONS))
    local.create("PTF", "<mag: float32, band: string> [night=1:*, ra=0:359, dec=0:9]", sparse=True)
    rows = Table({"night": [1, 2], "ra": [10, 20], "dec": [3, 4], "mag": np.float32([1, 2]), "band": ["g", "r"]})
    other = write(tmp_path / "cells.fits", rows)
    local.query(f"insert into PTF from '{other}'")
    assert local.array("PTF").read().to_pydict()["band"] == ["g", "r"]
    with pytest.raises(Error):
        local.query(f"insert into PTF from '{path}'")
    assert local.array("PTF").read().num_rows == 2


def test_cells_go_out_and_come_back(tmp_path: Path, local: wr.Database) -> None:
    local.create("S", "<n: int16 null, m: float64, s: string, b: bool, u: uint32, k: int64 null> [x=1:9]", sparse=True)
    rows = {
        "x": [1, 2], "n": [None, -32768], "m": [1.5, None], "s": ["a", "bc"], "b": [True, False], "u": [0, 2**32 - 1],
        "k": [None, 5],
    }  # fmt: skip
    local.array("S").insert(rows)
    path = tmp_path / "s.fits"
    local.export_file("S", str(path))
    theirs = Table.read(path)
    assert theirs["n"].tolist() == [None, -32768]
    assert theirs["u"].tolist() == [0, 2**32 - 1]
    found = read(path).to_pydict()
    assert found["n"] == rows["n"]
    assert found["k"] == rows["k"]
    assert found["s"] == rows["s"]
    assert found["b"] == rows["b"]
    assert np.isnan(found["m"][1])


def test_what_fits_cannot_hold_is_refused(tmp_path: Path, local: wr.Database) -> None:
    local.create("S", "<s: string, b: bool null> [x=1:9]", sparse=True)
    local.array("S").insert({"x": [1], "s": ["é"], "b": [None]})
    path = tmp_path / "s.fits"
    with pytest.raises(FileFormatError, match="ASCII"):
        local.export_file("S", str(path))
    assert not path.exists()


def test_columns_of_several_values_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match=r"column v of .* has no single values"):
        read(write(tmp_path / "a.fits", Table({"v": np.zeros((3, 2))})))


def test_images_and_damaged_files_are_refused(tmp_path: Path) -> None:
    image = tmp_path / "image.fits"
    fits.PrimaryHDU(np.zeros((4, 4))).writeto(image)
    with pytest.raises(FileFormatError, match="has no table"):
        read(image)
    whole = write(tmp_path / "a.fits", Table(DETECTIONS)).read_bytes()
    for cut in (100, 3000, len(whole) - 2880):
        path = tmp_path / f"cut{cut}.fits"
        path.write_bytes(whole[:cut])
        with pytest.raises(Error):
            read(path)
    text = tmp_path / "text.fits"
    text.write_text("no FITS at all")
    with pytest.raises(FileFormatError, match="cannot read"):
        read(text)


def test_several_catalogues_are_one_table(tmp_path: Path) -> None:
    paths = [write(tmp_path / f"{n}.fits", Table({"x": [n, n + 1]})) for n in (1, 5)]
    source = format_of(paths).open_table(paths)  # type: ignore[misc]
    assert pa.Table.from_batches(source.batches()).column("x").to_pylist() == [1, 2, 5, 6]
    write(tmp_path / "other.fits", Table({"y": [1]}))
    with pytest.raises(FileFormatError, match=r"columns of .* are others"):
        format_of(paths).open_table([paths[0], tmp_path / "other.fits"])  # type: ignore[misc]
