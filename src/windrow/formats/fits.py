"""FITS tables: the catalogues of astronomy. The first table of a file comes in, and rows go out as one."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from astropy.io import fits

from windrow.errors import FileFormatError
from windrow.formats.apart import call_apart, stream_apart
from windrow.formats.limits import check_data
from windrow.formats.place import expand, replacing
from windrow.formats.registry import Paths, TableOptions
from windrow.model.arrow import arrow_type
from windrow.model.types import data_type

_BATCH_ROWS = 2**17
_FORMATS = {2: "I", 4: "J", 8: "K"}
"""What FITS calls whole numbers of so many bytes."""


@dataclass(frozen=True)
class FitsSource:
    """Rows of the first tables of some files, which have the same columns."""

    files: tuple[str, ...]
    arrow_schema: pa.Schema
    bytes: int

    def batches(self) -> Iterator[pa.RecordBatch]:
        return stream_apart(", ".join(self.files), FitsSource._batches_here, self)

    def _batches_here(self) -> Iterator[pa.RecordBatch]:
        for path in self.files:
            with _opened(path) as file:
                table = _first_table(path, file)
                for start in range(0, len(table.data), _BATCH_ROWS):
                    yield _convert(path, table, self.arrow_schema, slice(start, start + _BATCH_ROWS))

    def spark_frame(self, session: Any) -> Any:
        """Spark reads no FITS: the rows go through this process."""
        return session.createDataFrame(pa.Table.from_batches(self.batches(), self.arrow_schema))


def open_table(path: Paths, options: TableOptions | None = None) -> FitsSource:
    files = expand(path)
    return call_apart(", ".join(files), _open_here, files, options or TableOptions())


def _open_here(files: list[str], options: TableOptions) -> FitsSource:
    common: pa.Schema | None = None
    for path in files:
        with _opened(path) as file:
            table = _first_table(path, file)
            check_data(f"the table of {path}", table.header["NAXIS1"] * table.header["NAXIS2"])
            schema = pa.schema([_field(path, table, column) for column in table.columns])
        if common is not None and schema != common:
            hint = f"{files[0]} has {', '.join(common.names)}"
            raise FileFormatError(f"the columns of {path} are others", got=", ".join(schema.names), hint=hint)
        common = schema
    assert common is not None
    for name, stated in options.types.items():
        if name not in common.names:
            raise FileFormatError("no such column", got=repr(name), hint=f"Found: {', '.join(common.names)}")
        common = common.set(common.get_field_index(name), pa.field(name, arrow_type(data_type(stated))))
    return FitsSource(tuple(files), common, sum(os.path.getsize(file) for file in files))


def _opened(path: str) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", fits.verify.VerifyWarning)  # what astropy would mend in silence
            return fits.open(path, memmap=not path.endswith(".gz"), lazy_load_hdus=False)
    except Exception as error:  # astropy raises whatever it likes over damaged headers
        raise FileFormatError(f"cannot read {path} as FITS", got=str(error).splitlines()[0][:300]) from error


def _first_table(path: str, file: Any) -> Any:
    found = next((unit for unit in file if isinstance(unit, (fits.BinTableHDU, fits.TableHDU))), None)
    if found is None:
        kinds = ", ".join(type(unit).__name__ for unit in file)
        raise FileFormatError(f"{path} has no table", got=kinds, hint="Images are not read: only tables are")
    return found


def _field(path: str, table: Any, column: Any) -> pa.Field:
    values = table.data[column.name][:1]
    if values.ndim != 1 or values.dtype.kind not in "biufUS" or "P" in column.format or "Q" in column.format:
        hint = "Keep columns of single numbers, texts and booleans, as with astropy's Table.keep_columns"
        raise FileFormatError(f"column {column.name} of {path} has no single values", got=column.format, hint=hint)
    if values.dtype.kind in "US":
        return pa.field(column.name, pa.string())
    return pa.field(column.name, pa.from_numpy_dtype(values.dtype.newbyteorder("=")))


def _convert(path: str, table: Any, schema: pa.Schema, rows: slice) -> pa.RecordBatch:
    columns = []
    for field in schema:
        try:
            values = _arrow_values(table.columns[field.name], table.data[field.name][rows])
            columns.append(values if values.type == field.type else values.cast(field.type))
        except Exception as error:  # texts that are none, numbers that do not fit
            raise FileFormatError(f"cannot read column {field.name} of {path}", got=error) from error
    return pa.record_batch(columns, schema=schema)


def _arrow_values(column: Any, values: npt.NDArray[Any]) -> pa.Array:
    """FITS stores numbers with the highest byte first, and says which whole number stands for none."""
    if values.dtype.kind in "US":
        return pa.array(np.char.rstrip(values.astype(str)), pa.string())
    native = np.ascontiguousarray(values.astype(values.dtype.newbyteorder("=")))
    missing = None if column.null is None or native.dtype.kind not in "iu" else native == column.null
    return pa.array(native, mask=missing)


def write_table(
    path: str | os.PathLike[str], schema: pa.Schema, batches: Iterator[pa.RecordBatch], *, overwrite: bool = False
) -> None:
    """Write rows as the one table of a file; a catalogue is held in memory while it is written."""
    table = pa.Table.from_batches(list(batches), schema)
    columns = [_column(name, table.column(name)) for name in table.column_names]
    with replacing(path, overwrite) as temporary:
        fits.BinTableHDU.from_columns(columns).writeto(temporary, overwrite=True, output_verify="exception")


def _column(name: str, values: pa.ChunkedArray) -> Any:
    kind = values.type
    if pa.types.is_timestamp(kind):
        values, kind = values.cast(pa.string()), pa.string()
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        texts = np.array(["" if text is None else text for text in values.to_pylist()], dtype=str)
        if any(not text.isascii() for text in texts):
            raise FileFormatError(f"FITS holds plain ASCII, and column {name} has other texts")
        return fits.Column(name, format=f"{max(1, texts.dtype.itemsize // 4)}A", array=texts)
    if pa.types.is_floating(kind):
        return fits.Column(name, format="E" if kind == pa.float32() else "D", array=values.to_numpy())
    if pa.types.is_boolean(kind):
        if values.null_count:
            raise FileFormatError(f"FITS cannot say that truths of column {name} are missing")
        return fits.Column(name, format="L", array=np.array(values.to_pylist(), bool))
    return _column_of_whole_numbers(name, values)


def _column_of_whole_numbers(name: str, values: pa.ChunkedArray) -> Any:
    """FITS knows signed ones, and one of them stands for what is missing: wide enough that it is no value."""
    signed = pa.types.is_signed_integer(values.type)
    bits = values.type.bit_width + (1 if not signed or values.null_count else 0)
    width = next((width for width in (2, 4, 8) if 8 * width >= bits), 8)
    null = -(2 ** (8 * width - 1)) if values.null_count else None
    try:
        numbers = values.cast(pa.from_numpy_dtype(np.dtype(f"i{width}")))
    except pa.ArrowException as error:
        raise FileFormatError(f"FITS holds no whole numbers as large as those of column {name}", got=error) from error
    if null is not None and pc.any(pc.equal(numbers, null)).as_py():
        raise FileFormatError(f"no whole number is left to stand for what is missing in column {name}")
    held = numbers if null is None else numbers.fill_null(null)
    return fits.Column(name, format=_FORMATS[width], array=held.to_numpy(), null=null)
