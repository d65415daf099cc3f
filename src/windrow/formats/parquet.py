"""Parquet: one file, a directory of files (partitioned as Hive and Spark do it or not), or a pattern."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet

from windrow.errors import FileFormatError
from windrow.formats.apart import call_apart, stream_apart
from windrow.formats.cells import write_cells
from windrow.formats.place import expand, replacing
from windrow.formats.registry import Paths, TableOptions
from windrow.model.arrow import arrow_type
from windrow.model.source import GridSource
from windrow.model.types import data_type

_BATCH_ROWS = 2**17


@dataclass(frozen=True)
class ParquetSource:
    """Rows in Parquet files with one schema."""

    paths: tuple[str, ...]
    files: tuple[str, ...]
    arrow_schema: pa.Schema
    bytes: int
    types: tuple[tuple[str, str], ...] = ()

    def batches(self) -> Iterator[pa.RecordBatch]:
        return stream_apart(", ".join(self.paths), ParquetSource._batches_here, self)

    def _batches_here(self) -> Iterator[pa.RecordBatch]:
        try:
            for path in self.paths:
                # One file and few batches ahead keep the memory of wide tables bounded.
                scan = _dataset(path, self.arrow_schema).to_batches(
                    batch_size=_BATCH_ROWS, batch_readahead=2, fragment_readahead=1
                )
                yield from scan
        except (pa.ArrowException, OSError) as error:
            raise FileFormatError(f"cannot read {', '.join(self.paths)}", got=error) from error

    def spark_frame(self, session: Any) -> Any:
        frame = session.read.parquet(*[Path(path).absolute().as_uri() for path in self.paths])
        stated = dict(self.types)
        return frame.selectExpr(*[spark_cast(field, stated) for field in self.arrow_schema])


def spark_cast(field: pa.Field, stated: dict[str, str]) -> str:
    """The SQL that selects a column, cast where its type was stated."""
    name = f"`{field.name.replace('`', '``')}`"
    return f"cast({name} as {spark_type(field.type)}) as {name}" if field.name in stated else name


def spark_type(arrow: pa.DataType) -> str:
    """Spark's type for an Arrow type; unsigned integers take the next wider one."""
    return {
        "bool": "boolean",
        "int8": "tinyint",
        "int16": "smallint",
        "int32": "int",
        "int64": "bigint",
        "uint8": "smallint",
        "uint16": "int",
        "uint32": "bigint",
        "uint64": "decimal(20,0)",
        "float": "float",
        "double": "double",
        "date32[day]": "date",
    }.get(str(arrow), "timestamp_ntz" if pa.types.is_timestamp(arrow) else "string")


def open_table(path: Paths, options: TableOptions | None = None) -> ParquetSource:
    paths = expand(path)
    return call_apart(", ".join(paths), _open_here, paths, options or TableOptions())


def _open_here(paths: list[str], options: TableOptions) -> ParquetSource:
    files = [file for one in paths for file in _files(one)]
    for file in files:
        try:
            pa.parquet.read_schema(file)
        except (pa.ArrowException, OSError) as error:
            raise FileFormatError(f"cannot read {file} as Parquet", got=error) from error
    schema = _common_schema(paths, files)
    for name, stated in options.types.items():
        if name not in schema.names:
            raise FileFormatError("no such column", got=repr(name), hint=f"Found: {', '.join(schema.names)}")
        position = schema.get_field_index(name)
        schema = schema.set(position, pa.field(name, arrow_type(data_type(stated))))
    size = sum(os.path.getsize(file) for file in files)
    return ParquetSource(tuple(paths), tuple(files), schema, size, tuple(options.types.items()))


def _files(path: str) -> list[str]:
    if not os.path.isdir(path):
        return [path]
    if os.path.isdir(os.path.join(path, "_delta_log")):
        hint = "Its log says which files count: read it with Delta, not file by file"
        raise FileFormatError("this is a Delta table, not a directory of Parquet files", got=path, hint=hint)
    files = sorted(str(file) for file in Path(path).rglob("*.parquet") if _counts(file.relative_to(path)))
    if not files:
        raise FileFormatError("no Parquet files in the directory", got=path)
    return files


def _counts(file: Path) -> bool:
    return not any(part.startswith(("_", ".")) for part in file.parts)


def _dataset(path: str, schema: pa.Schema | None = None) -> Any:
    partitioning = "hive" if os.path.isdir(path) else None
    files = _files(path)
    if partitioning is None:
        return pa.dataset.dataset(files, schema=schema, format="parquet")
    return pa.dataset.dataset(path, schema=schema, format="parquet", partitioning="hive")


def _common_schema(paths: list[str], files: list[str]) -> pa.Schema:
    """The schema all files share; columns a file lacks are null in it."""
    common: pa.Schema | None = None
    for path in paths:
        for schema in [_dataset(path).schema, *(pa.parquet.read_schema(file) for file in _files(path))]:
            bare = schema.remove_metadata()
            try:
                common = bare if common is None else pa.unify_schemas([common, bare])
            except pa.ArrowException as error:
                raise FileFormatError(f"the Parquet files differ in type, {path}", got=error) from error
    if common is None:
        raise FileFormatError("no Parquet files", got=files)
    return common


def write_table(
    path: str | os.PathLike[str], schema: pa.Schema, batches: Iterator[pa.RecordBatch], *, overwrite: bool = False
) -> None:
    with replacing(path, overwrite) as temporary:
        try:
            with pa.parquet.ParquetWriter(temporary, schema, compression="zstd") as writer:
                for batch in batches:
                    writer.write_batch(batch if batch.schema == schema else batch.cast(schema))
        except pa.ArrowException as error:
            raise FileFormatError(f"the rows do not fit in {path}", got=error) from error


def write_grid(path: str | os.PathLike[str], source: GridSource, *, overwrite: bool = False) -> None:
    write_cells(path, source, write_table, overwrite=overwrite)
