"""How other packages find the neighbours of detections and places: trees, hash joins and range joins, on one thread."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.bench.engines import duckdb_connection, load_table
from windrow.bench.joins.race import Answer, Prepared, always

Array = npt.NDArray[Any]
Columns = Mapping[str, Array]
"""Coordinates by name, and ``mag``."""
Offsets = Sequence[tuple[int, int]]


def module(name: str) -> Any:
    return importlib.import_module(name)


# Trees


def tree_of_crosses(cells: Columns, steps: int) -> Prepared:
    """PTF-5 with cKDTree: a cross is a square of the sums and differences, and the time before is around a moment."""
    spatial = module("scipy.spatial")
    half = steps // 2

    def run() -> Answer:
        turned = [(cells["ra"] + cells["dec"]) * half, (cells["ra"] - cells["dec"]) * half]
        points = np.stack([*turned, cells["time"]], axis=1).astype(np.float64)
        centres = points - [0.0, 0.0, half]
        tree = spatial.cKDTree(points)
        return Answer(tree.query_ball_point(centres, half, p=np.inf, return_length=True))

    return always(run)


def tree_of_squares(cells: Columns, names: tuple[str, str], radius: int) -> Prepared:
    """Counts in squares around every cell, with cKDTree."""
    spatial = module("scipy.spatial")

    def run() -> Answer:
        points = np.stack([cells[name] for name in names], axis=1).astype(np.float64)
        tree = spatial.cKDTree(points)
        return Answer(tree.query_ball_point(points, radius, p=np.inf, return_length=True))

    return always(run)


def tree_of_pairs(cells: Columns, names: tuple[str, str], radius: int) -> Prepared:
    """All pairs of cells in a square, with cKDTree, counted at both ends."""
    spatial = module("scipy.spatial")

    def run() -> Answer:
        points = np.stack([cells[name] for name in names], axis=1).astype(np.float64)
        pairs = spatial.cKDTree(points).query_pairs(radius, p=np.inf, output_type="ndarray")
        return Answer(1 + np.bincount(pairs.reshape(-1), minlength=len(points)))

    return always(run)


def tree_of_positions(cells: Columns, radius: int) -> Prepared:
    """PTF-25 by someone who sees that time does not matter: pairs of distinct positions, weighted."""
    spatial = module("scipy.spatial")

    def run() -> Answer:
        base = int(cells["dec"].max()) + 1
        places, inverse = np.unique(cells["ra"] * base + cells["dec"], return_inverse=True)
        points = np.stack(np.divmod(places, base), axis=1).astype(np.float64)
        counts = np.bincount(inverse)
        sums = np.bincount(inverse, cells["mag"])
        pairs = spatial.cKDTree(points).query_pairs(radius, p=np.inf, output_type="ndarray")
        one, other = pairs[:, 0], pairs[:, 1]
        found = [
            own
            + np.bincount(one, own[other], minlength=len(places))
            + np.bincount(other, own[one], minlength=len(places))
            for own in (counts, sums)
        ]
        return Answer(found[0].astype(np.int64)[inverse], found[1][inverse])

    return always(run)


def ball_tree(cells: Columns, names: tuple[str, str], radius: int) -> Prepared:
    """Counts in squares, with scikit-learn's BallTree."""
    neighbors = module("sklearn.neighbors")

    def run() -> Answer:
        points = np.stack([cells[name] for name in names], axis=1).astype(np.float64)
        tree = neighbors.BallTree(points, metric="chebyshev")
        return Answer(tree.query_radius(points, radius, count_only=True))

    return always(run)


# Databases


def crosses(steps: int) -> tuple[Offsets, str]:
    """PTF-5's offsets of place, and its condition on the times of a pair.

    It is a condition on the difference, so that DuckDB joins by hashes of places: given a range of times it would
    sort by time, and take many times as long.
    """
    return ((0, 0), (1, 0), (-1, 0), (0, 1), (0, -1)), f"a.time - b.time between 0 and {steps}"


def squares(radius: int) -> Offsets:
    side = range(-radius, radius + 1)
    return tuple((across, along) for across in side for along in side)


def duckdb_offsets(cells: Columns, names: tuple[str, str], offsets: Offsets, condition: str = "true") -> Prepared:
    """A hash join on each of some offsets, as one would write it."""
    ra, dec = names
    grouped = (
        f"with a as (select * replace ({ra} + across as {ra}, {dec} + along as {dec}) from t, offsets)"
        f" select a.id, count(*) as n, sum(b.mag) as s from a join t b using ({ra}, {dec})"
        f" where {condition} group by a.id"
    )
    return _duckdb(cells, grouped, offsets)


def duckdb_ranges(cells: Columns, steps: int) -> Prepared:
    """PTF-5 as a range join."""
    grouped = (
        "select a.id, count(*) as n, sum(b.mag) as s from t a join t b on b.ra between a.ra - 1 and a.ra + 1"
        f" and b.dec between a.dec - 1 and a.dec + 1 and b.time between a.time - {steps} and a.time"
        " and abs(a.ra - b.ra) + abs(a.dec - b.dec) <= 1 group by a.id"
    )
    return _duckdb(cells, grouped, ())


def duckdb_positions(cells: Columns, offsets: Offsets) -> Prepared:
    """PTF-25 reduced by hand: positions are joined, and the detections then look theirs up."""
    grouped = (
        "with p as (select ra, dec, count(*) as n, sum(mag) as s from t group by ra, dec),"
        " around as (select a.ra, a.dec, sum(b.n) as n, sum(b.s) as s from p a, offsets o, p b"
        " where b.ra = a.ra + o.across and b.dec = a.dec + o.along group by a.ra, a.dec)"
        " select t.id, around.n, around.s from t join around using (ra, dec)"
    )
    return _duckdb(cells, grouped, offsets)


def _duckdb(cells: Columns, grouped: str, offsets: Offsets) -> Prepared:
    connection = duckdb_connection(1)
    load_table(connection, {"id": np.arange(len(next(iter(cells.values())))), **cells})
    connection.execute("create table offsets (across bigint, along bigint)")
    if offsets:
        connection.execute("insert into offsets values " + ", ".join(map(str, offsets)))

    def fetch() -> Answer:
        found = connection.execute(f"select n, s from ({grouped}) order by id").fetchnumpy()
        return Answer(found["n"].astype(np.int64), found["s"].astype(np.float64))

    # A sum reads all results and is cheaper than handing them out.
    return Prepared(lambda: connection.execute(f"select sum(n), sum(s) from ({grouped})").fetchall(), fetch)


def is_single_threaded() -> bool:
    """Polars fixes its threads when it is imported."""
    return bool(module("polars").thread_pool_size() == 1)


def polars_offsets(cells: Columns, steps: int, offsets: Offsets) -> Prepared:
    """A hash join on each of some offsets, in batches so that the pairs need not fit into memory."""
    polars = module("polars")
    table = polars.from_arrow(pa.table({"id": np.arange(len(cells["ra"])), **cells})).lazy()
    shifts = polars.DataFrame(
        {"across": [across for across, _ in offsets], "along": [along for _, along in offsets]}
    ).lazy()
    column = polars.col
    moved = table.join(shifts, how="cross").select(
        "id", column("time").alias("to"), column("ra") + column("across"), column("dec") + column("along")
    )
    paired = moved.join(table.select("time", "ra", "dec", "mag"), on=["ra", "dec"])
    near = paired.filter((column("time") <= column("to")) & (column("time") >= column("to") - steps))
    return _polars(near)


def polars_ranges(cells: Columns, steps: int) -> Prepared:
    """PTF-5 as a range join."""
    polars = module("polars")
    table = polars.from_arrow(pa.table({"id": np.arange(len(cells["ra"])), **cells}))
    column = polars.col
    left = table.select("id", *(column(name).alias(f"{name}_a") for name in ("time", "ra", "dec"))).lazy()
    paired = left.join_where(
        table.lazy(),
        column("ra") >= column("ra_a") - 1,
        column("ra") <= column("ra_a") + 1,
        column("dec") >= column("dec_a") - 1,
        column("dec") <= column("dec_a") + 1,
        column("time") <= column("time_a"),
        column("time") >= column("time_a") - steps,
    )
    across, along = (column(name) - column(f"{name}_a") for name in ("ra", "dec"))
    return _polars(paired.filter(across.abs() + along.abs() <= 1).drop("id_right", strict=False))


def _polars(pairs: Any) -> Prepared:
    polars = module("polars")
    grouped = pairs.group_by("id").agg(n=polars.len(), s=polars.col("mag").sum())

    def run() -> Any:
        return grouped.collect(engine="streaming")

    def fetch() -> Answer:
        found = run().sort("id")
        return Answer(found["n"].to_numpy().astype(np.int64), found["s"].to_numpy())

    return Prepared(run, fetch)
