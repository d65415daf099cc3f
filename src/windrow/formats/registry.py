"""The file formats windrow reads and writes, each one entry here or in the entry-point group ``windrow.formats``.

Nothing heavy is imported until a format is used, so that ``import windrow`` stays quick and a format whose package is
not installed disturbs nobody who does not ask for it.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from windrow.errors import FileFormatError, MachineError, nearest
from windrow.model.source import GridSource

if TYPE_CHECKING:
    import pyarrow as pa

ENTRY_POINTS = "windrow.formats"
Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
"""One file, a pattern such as ``jra55.*.nc``, or several files in order."""


@dataclass(frozen=True)
class GridOptions:
    """How a dense file is read.

    ``variables`` chooses data variables by their names in the file, ``lo`` states the first cell (of all dimensions,
    or by name), ``along`` names the dimension that several files continue.
    """

    variables: tuple[str, ...] | None = None
    lo: int | Mapping[str, int] | None = None
    along: str | None = None


@dataclass(frozen=True)
class TableOptions:
    """How a table is read; all but ``types`` is for text files.

    ``columns`` names the columns of a file without a header, ``types`` states windrow types by column, ``nulls`` are
    the texts that mean missing unless quoted. ``multiline`` allows line breaks inside quotes, at the price that Spark
    cannot split a file.
    """

    columns: tuple[str, ...] | None = None
    types: Mapping[str, str] = field(default_factory=dict)
    delimiter: str | None = None
    nulls: tuple[str, ...] = ("", "NA", "NaN", "null")
    multiline: bool = True


class TableSource(Protocol):
    """Cells or rows readable as a stream of Arrow batches; it pickles."""

    @property
    def arrow_schema(self) -> pa.Schema: ...

    @property
    def files(self) -> tuple[str, ...]: ...

    @property
    def bytes(self) -> int:
        """Size on disk."""
        ...

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows in file order, in batches of bounded size."""
        ...

    def spark_frame(self, session: Any) -> Any:
        """The rows as a DataFrame of a Spark session, read by Spark itself."""
        ...


class OpenGrid(Protocol):
    def __call__(self, path: Paths, options: GridOptions = ...) -> GridSource: ...


class OpenTable(Protocol):
    def __call__(self, path: Paths, options: TableOptions = ...) -> TableSource: ...


class WriteGrid(Protocol):
    def __call__(self, path: str | os.PathLike[str], source: GridSource, *, overwrite: bool = False) -> None: ...


class WriteTable(Protocol):
    def __call__(
        self,
        path: str | os.PathLike[str],
        schema: pa.Schema,
        batches: Iterator[pa.RecordBatch],
        *,
        overwrite: bool = False,
    ) -> None: ...


@dataclass(frozen=True)
class FileFormat:
    """What a format can do; what it cannot is None."""

    name: str
    suffixes: tuple[str, ...]
    open_grid: OpenGrid | None = None
    open_table: OpenTable | None = None
    write_grid: WriteGrid | None = None
    write_table: WriteTable | None = None
    begins: tuple[bytes, ...] = ()
    """What its files begin with, by which one without a known suffix is recognised."""


def import_lazily(
    module: str, function: str, needs: Sequence[str] = (), install: str = "windrow"
) -> Callable[..., Any]:
    """``module.function``, imported at its first call; ``needs`` are packages that ``pip install install`` brings."""

    def call(*arguments: Any, **options: Any) -> Any:
        try:
            if function.startswith("open_"):  # files are decoded by a child, which needs the same packages
                importlib.import_module("windrow.formats.apart").prepare_child(module)
            for package in needs:
                importlib.import_module(package)
            target = getattr(importlib.import_module(module), function)
        except ImportError as error:
            missing = error.name or str(error)
            hint = f"Install it: pip install '{install}'"
            raise MachineError("a package for this file format is missing", got=missing, hint=hint) from error
        return target(*arguments, **options)

    return call


_EXTRAS = ("netcdf", "grib", "fits")
"""Formats whose packages are installed on demand, by extras of the same names."""


def _declare(
    name: str,
    suffixes: tuple[str, ...],
    functions: Sequence[str],
    needs: Sequence[str] = (),
    begins: tuple[bytes, ...] = (),
) -> FileFormat:
    install = f"windrow[{name}]" if name in _EXTRAS else "windrow"
    module = f"windrow.formats.{name}"
    lazy = {function: import_lazily(module, function, needs, install) for function in functions}
    return FileFormat(name, suffixes, **lazy, begins=begins)


_GRID = ("open_grid", "write_grid")
_TABLE = ("open_table", "write_table", "write_grid")
_FORMATS: dict[str, FileFormat] = {
    entry.name: entry
    for entry in (
        _declare(
            "netcdf",
            (".nc", ".nc4", ".cdf", ".netcdf"),
            _GRID,
            ("xarray", "h5py", "h5netcdf"),
            (b"\x89HDF\r\n\x1a\n", b"CDF\x01", b"CDF\x02", b"CDF\x05"),
        ),
        _declare(
            "grib",
            (".grib", ".grib1", ".grib2", ".grb", ".grb2", ".gb2"),
            ("open_grid",),
            ("xarray", "eccodes", "cfgrib"),
            (b"GRIB",),
        ),
        _declare("zarr", (".zarr",), _GRID, ("xarray", "zarr")),
        _declare("parquet", (".parquet", ".pq"), _TABLE, ("pyarrow",), (b"PAR1",)),
        _declare("csv", (".csv", ".csv.gz", ".tsv", ".tsv.gz"), _TABLE, ("pyarrow",)),
        _declare("fits", (".fits", ".fit", ".fits.gz"), ("open_table", "write_table"), ("astropy",), (b"SIMPLE  =",)),
    )
}


def register(entry: FileFormat) -> None:
    """Add a format; names and suffixes must be new."""
    known = {suffix: other.name for other in _FORMATS.values() for suffix in other.suffixes}
    taken = [suffix for suffix in entry.suffixes if known.get(suffix, entry.name) != entry.name]
    if entry.name in _FORMATS and _FORMATS[entry.name] != entry:
        raise FileFormatError("a file format of this name is already registered", got=repr(entry.name))
    if taken:
        raise FileFormatError("a suffix belongs to another file format", got=f"{taken[0]} of {known[taken[0]]}")
    _FORMATS[entry.name] = entry


def formats() -> Mapping[str, FileFormat]:
    """All formats by name, those of installed plug-ins included."""
    for point in entry_points(group=ENTRY_POINTS):
        if point.name in _FORMATS:
            continue
        try:
            loaded = point.load()
        except Exception as error:
            raise MachineError(f"the plug-in for file format {point.name} does not load", got=error) from error
        if not isinstance(loaded, FileFormat):
            raise MachineError(f"the plug-in {point.value} is not a windrow FileFormat", got=type(loaded).__name__)
        register(loaded)
    return dict(_FORMATS)


def format_of(path: Paths, name: str | None = None) -> FileFormat:
    """The format called ``name``, or the one that the path's suffix, a directory's content or a file's start tells."""
    if name is not None:
        found = _FORMATS.get(name.lower()) or formats().get(name.lower())
        if found is None:
            raise FileFormatError("unknown file format", got=repr(name), hint=nearest(name, _FORMATS))
        return found
    if not isinstance(path, (str, os.PathLike)):
        kinds = {format_of(one).name: format_of(one) for one in path}
        if len(kinds) != 1:
            got = ", ".join(sorted(kinds)) or "no files"
            raise FileFormatError("several files must be of one format", got=got)
        return next(iter(kinds.values()))
    text = os.fspath(path)
    found = _by_suffix(text, _FORMATS) or _by_content(Path(text)) or _by_suffix(text, formats())
    if found is None:
        suffixes = [suffix for entry in _FORMATS.values() for suffix in entry.suffixes]
        hint = nearest(Path(text).suffix, suffixes) + " Or name the format"
        raise FileFormatError("no file format has this suffix", got=text, hint=hint)
    return found


def _by_suffix(text: str, known: Mapping[str, FileFormat]) -> FileFormat | None:
    folded = text.rstrip("/").lower()
    matches = [(len(s), entry.name) for entry in known.values() for s in entry.suffixes if folded.endswith(s)]
    return known[max(matches)[1]] if matches else None


def _by_content(path: Path) -> FileFormat | None:
    if not path.is_dir():
        return _by_start(path)
    if any((path / marker).exists() for marker in ("zarr.json", ".zgroup", ".zmetadata")):
        return _FORMATS["zarr"]
    return _FORMATS["parquet"] if any(path.rglob("*.parquet")) else None


def _by_start(path: Path) -> FileFormat | None:
    try:
        with path.open("rb") as file:
            start = file.read(16)
    except OSError:  # also of a pattern, or of what is not there: whoever opens it says so
        return None
    return next((entry for entry in _FORMATS.values() if any(start.startswith(mark) for mark in entry.begins)), None)
