"""Text tables: comma- or tab-separated, with a header, gzipped or not."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv

from windrow.errors import FileFormatError, SchemaError, nearest
from windrow.formats.apart import call_apart, stream_apart
from windrow.formats.cells import write_cells
from windrow.formats.parquet import spark_type
from windrow.formats.place import expand, replacing
from windrow.formats.registry import Paths, TableOptions
from windrow.model.arrow import arrow_type, data_type_from_arrow
from windrow.model.source import GridSource
from windrow.model.types import data_type

_BLOCK_BYTES = 8 * 2**20
_QUOTED_EMPTY = "\ue000quoted and empty"
"""What Spark is told to read for a quoted empty text, which it would otherwise take for a null."""
_TYPE_HINT = "Types are guessed from the start of the file: state them, as in types={'x': 'float64'}"


@dataclass(frozen=True)
class CsvSource:
    """Rows in text files with the same columns."""

    files: tuple[str, ...]
    arrow_schema: pa.Schema
    bytes: int
    options: TableOptions

    def batches(self) -> Iterator[pa.RecordBatch]:
        return stream_apart(", ".join(self.files), CsvSource._batches_here, self)

    def _batches_here(self) -> Iterator[pa.RecordBatch]:
        for file in self.files:
            try:
                with _reader(file, self.options, self.arrow_schema) as reader:
                    for batch in reader:
                        yield batch.select(self.arrow_schema.names).cast(self.arrow_schema)
            except (pa.ArrowException, OSError, EOFError, KeyError) as error:
                raise FileFormatError(f"cannot read {file}", got=error, hint=_TYPE_HINT) from error

    def spark_frame(self, session: Any) -> Any:
        """Spark reads columns as text, and parses them by the same rules; a value that does not parse is an error."""
        names = [f"`{name.replace('`', '``')}`" for name in self.arrow_schema.names]
        frame = session.read.csv(
            [Path(file).absolute().as_uri() for file in self.files],
            schema=", ".join(f"{name} string" for name in names),
            header=self.options.columns is None,
            sep=_delimiter(self.files[0], self.options),
            quote='"',
            escape='"',
            nullValue="",
            emptyValue=_QUOTED_EMPTY,
            multiLine=self.options.multiline,
        )
        return frame.selectExpr(*[self._parse_expression(field) for field in self.arrow_schema])

    def _parse_expression(self, field: pa.Field) -> str:
        name = f"`{field.name.replace('`', '``')}`"
        kind = spark_type(field.type)
        missing = " or ".join([f"{name} is null", *(f"{name} = {_literal(n)}" for n in self.options.nulls if n)])
        wrong = _literal(f"not a {kind} in column {field.name} of {self.files[0]}: ")
        text = f"if({name} = {_literal(_QUOTED_EMPTY)}, '', {name})"
        parsed = text if kind == "string" else f"try_cast(trim({text}) as {kind})"
        return (
            f"case when {missing} then null when {parsed} is null then raise_error(concat({wrong}, {text})) "
            f"else {parsed} end as {name}"
        )


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def open_table(path: Paths, options: TableOptions | None = None) -> CsvSource:
    files = expand(path)
    return call_apart(", ".join(files), _open_here, files, options or TableOptions())


def _open_here(files: list[str], options: TableOptions) -> CsvSource:
    common: pa.Schema | None = None
    for file in files:
        schema = _infer_schema(file, options)
        if common is not None and schema.names != common.names:
            got = f"{', '.join(schema.names)} in {file}"
            raise FileFormatError("the files differ in columns", got=got, hint=f"Expected {', '.join(common.names)}")
        try:
            common = schema if common is None else pa.unify_schemas([common, schema], promote_options="permissive")
        except pa.ArrowException as error:
            raise FileFormatError(f"column types of {file} differ from those before it", got=error) from error
    assert common is not None
    size = sum(os.path.getsize(file) for file in files)
    return CsvSource(tuple(files), _replace_unusable(common), size, options)


def _infer_schema(file: str, options: TableOptions) -> pa.Schema:
    try:
        with _reader(file, options, None) as reader:
            schema = reader.schema
    except (pa.ArrowException, OSError, EOFError) as error:
        raise FileFormatError(f"cannot read {file} as CSV", got=error) from error
    repeated = sorted({name for name in schema.names if schema.names.count(name) > 1})
    if repeated:
        raise FileFormatError(f"a column name is repeated in {file}", got=", ".join(repeated))
    if options.columns is None and any(_is_number(name) for name in schema.names):
        hint = "Name the columns if the file has no header"
        raise FileFormatError(f"the first line of {file} looks like data", got=", ".join(schema.names), hint=hint)
    for name in options.types:
        if name not in schema.names:
            raise FileFormatError(f"no such column in {file}", got=repr(name), hint=nearest(name, schema.names))
    return schema


def _is_number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return not name.strip()
    return True


def _replace_unusable(schema: pa.Schema) -> pa.Schema:
    """Columns of types that windrow lacks (times of day), or without any value, are text."""
    fields = []
    for field in schema:
        try:
            data_type_from_arrow(field.type)
            fields.append(pa.field(field.name, field.type))
        except SchemaError:
            fields.append(pa.field(field.name, pa.string()))
    return pa.schema(fields)


def _delimiter(file: str, options: TableOptions) -> str:
    if options.delimiter is not None:
        return options.delimiter
    return "\t" if file.lower().endswith((".tsv", ".tsv.gz")) else ","


def _reader(file: str, options: TableOptions, schema: pa.Schema | None) -> Any:
    """A streaming reader: in the file's own inferred types, or in those of ``schema``."""
    types = {name: arrow_type(data_type(stated)) for name, stated in options.types.items()}
    if schema is not None:
        types = {field.name: field.type for field in schema}
    return pa.csv.open_csv(
        file,
        # Without threads, errors name the row.
        read_options=pa.csv.ReadOptions(use_threads=False, block_size=_BLOCK_BYTES, column_names=options.columns),
        parse_options=pa.csv.ParseOptions(
            delimiter=_delimiter(file, options),
            newlines_in_values=options.multiline,
            # In a file of one column, an empty line is a missing value.
            ignore_empty_lines=schema is None or len(schema) > 1,
        ),
        convert_options=pa.csv.ConvertOptions(
            column_types=types,
            null_values=list(options.nulls),
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


def write_table(
    path: str | os.PathLike[str], schema: pa.Schema, batches: Iterator[pa.RecordBatch], *, overwrite: bool = False
) -> None:
    compression = "gzip" if os.fspath(path).lower().endswith(".gz") else None
    rules = pa.csv.WriteOptions(include_header=True, delimiter=_delimiter(os.fspath(path), TableOptions()))
    plain = pa.schema([_plain(field) for field in schema])
    with replacing(path, overwrite) as temporary:
        try:
            with (
                pa.output_stream(str(temporary), compression=compression) as stream,
                pa.csv.CSVWriter(stream, plain, write_options=rules) as writer,
            ):
                for batch in batches:
                    writer.write_batch(batch.cast(plain))
        except pa.ArrowException as error:
            raise FileFormatError(f"the rows do not fit in {path}", got=error) from error


def _plain(field: pa.Field) -> pa.Field:
    return pa.field(field.name, field.type.value_type) if pa.types.is_dictionary(field.type) else field


def write_grid(path: str | os.PathLike[str], source: GridSource, *, overwrite: bool = False) -> None:
    write_cells(path, source, write_table, overwrite=overwrite)
