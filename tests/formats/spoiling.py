"""Files with some bytes changed: drawn by Hypothesis, so that a failure shrinks to the change that matters."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

ODD = (0, 1, 2**7, 2**15, 2**31 - 1, 2**32 - 1, 2**62, 2**64 - 1)
"""Numbers that are odd as sizes, offsets, types or counts."""
_DIGITS = re.compile(rb"\d+")


@dataclass(frozen=True)
class Change:
    """One change of a file's bytes; places are taken modulo what there is."""

    kind: str
    at: int
    other: int = 0
    length: int = 1
    number: int = 0
    put: bytes = b""
    order: str = "little"

    def apply(self, data: bytes) -> bytes:
        size = len(data)
        at, other = self.at % max(1, size), self.other % max(1, size)
        end = min(at + self.length, size)
        if self.kind == "flip" and size:
            return data[:at] + bytes([data[at] ^ (1 << self.number % 8)]) + data[at + 1 :]
        if self.kind == "clear":
            return data[:at] + bytes(end - at) + data[end:]
        if self.kind == "cut":
            return data[:at]
        if self.kind == "leave out":
            return data[:at] + data[end:]
        if self.kind == "put in":
            return data[:at] + self.put + data[at:]
        if self.kind == "copy":
            return data[:at] + data[other : other + end - at] + data[end:]
        if self.kind == "swap":
            return self._swap(data, *sorted((at, other)))
        if self.kind == "number":
            width = 1 << self.length % 4
            put = (self.number % 2 ** (8 * width)).to_bytes(width, "big" if self.order == "big" else "little")
            return data[:at] + put + data[at + width :]
        return self._say_another_number(data)

    def _swap(self, data: bytes, first: int, second: int) -> bytes:
        length = min(self.length, second - first, len(data) - second)
        one, two = data[first : first + length], data[second : second + length]
        return data[:first] + two + data[first + length : second] + one + data[second + length :]

    def _say_another_number(self, data: bytes) -> bytes:
        """Change a number that is written in digits, as sizes are in JSON."""
        found = list(_DIGITS.finditer(data))
        if not found:
            return data
        chosen = found[self.at % len(found)]
        return data[: chosen.start()] + str(self.number).encode() + data[chosen.end() :]


KINDS = ("flip", "number", "digits", "clear", "copy", "swap", "cut", "leave out", "put in")


def changes(size: int) -> st.SearchStrategy[Change]:
    places = st.integers(0, max(0, size - 1))
    return st.builds(
        Change,
        kind=st.sampled_from(KINDS),
        at=places,
        other=places,
        length=st.integers(1, 64),
        number=st.sampled_from(ODD) | st.integers(0, 2**64 - 1),
        put=st.binary(min_size=1, max_size=8),
        order=st.sampled_from(["little", "big"]),
    )


@dataclass(frozen=True)
class Spoiling:
    """What is done to a file, or to one file of a folder; without changes that file is removed."""

    file: str
    changes: tuple[Change, ...]

    def spoil(self, original: Path, target: Path) -> None:
        """Make a spoilt copy."""
        if original.is_dir():
            shutil.copytree(original, target)
        chosen = target / self.file if original.is_dir() else target
        data = (original / self.file if original.is_dir() else original).read_bytes()
        for change in self.changes:
            data = change.apply(data)
        chosen.write_bytes(data)
        if not self.changes:
            chosen.unlink()


def spoilings(original: Path) -> st.SearchStrategy[Spoiling]:
    """One to three changes of a file; a folder loses one of its files now and then."""
    if original.is_file():
        return st.builds(Spoiling, st.just(""), _several(original.stat().st_size, 1))
    files = sorted(file for file in original.rglob("*") if file.is_file())
    return st.sampled_from(files).flatmap(
        lambda file: st.builds(Spoiling, st.just(str(file.relative_to(original))), _several(file.stat().st_size, 0))
    )


def _several(size: int, least: int) -> st.SearchStrategy[tuple[Change, ...]]:
    return st.lists(changes(size), min_size=least, max_size=3).map(tuple)


# What other readers find in a spoilt file. They run in a process apart, as windrow's own do: some never end.


def read_plainly(path: str) -> dict[str, Any]:
    """Values by name, in the order of the file's own dimensions, and rows by column."""
    import pyarrow.csv
    import pyarrow.parquet
    import xarray as xr

    if path.endswith(".parquet"):
        return dict(pyarrow.parquet.read_table(path).to_pydict())
    if path.endswith((".csv", ".gz")):
        nulls = pyarrow.csv.ConvertOptions(null_values=["", "NA", "NaN", "null"], strings_can_be_null=True)
        return dict(pyarrow.csv.read_csv(path, convert_options=nulls).to_pydict())
    if path.endswith(".fits"):
        from astropy.table import Table

        table = Table.read(path, hdu=1)
        return {name: [_fits_value(value) for value in table[name].tolist()] for name in table.colnames}
    if path.endswith(".grib2"):
        return {"": ((), _grib_values(path))}
    options = {"consolidated": False} if path.endswith(".zarr") else {}
    engine: Any = "zarr" if path.endswith(".zarr") else "h5netcdf"
    with xr.open_dataset(path, engine=engine, backend_kwargs=options) as dataset:
        return {str(name): (tuple(map(str, one.dims)), plain(one.values)) for name, one in dataset.data_vars.items()}


def _fits_value(value: Any) -> Any:
    """In FITS a text ends at its first NUL, and blanks at its end do not count."""
    text = value.decode() if isinstance(value, bytes) else value
    return text.partition("\0")[0].rstrip() if isinstance(text, str) else text


def _grib_values(path: str) -> list[float]:
    """The values of all messages, by size: which message is which map is for the other reader to say."""
    import eccodes

    found: list[float] = []
    with open(path, "rb") as file:
        while (message := eccodes.codes_grib_new_from_file(file)) is not None:
            eccodes.codes_set(message, "missingValue", 1e38)
            values = eccodes.codes_get_values(message).astype(np.float32)
            found += values[values < np.float32(1e38)].tolist()
            eccodes.codes_release(message)
    return sorted(found)


def plain(values: Any) -> Any:
    """Values as nested lists, with None for what is missing, so that all types compare."""
    found = np.asarray(values)
    if found.dtype.kind == "M":
        found = found.astype("M8[us]")
    flat = np.empty(found.size, object)
    flat[:] = [None if value is None or value != value else value for value in found.ravel().tolist()]
    return flat.reshape(found.shape).tolist()
