"""Neighbours of cells in memory: PTF-5, PTF-25 and GEO of paper 004, against trees and databases."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from windrow.bench.joins import peers as peers
from windrow.bench.joins.ours import neighbours
from windrow.bench.joins.race import OURS, Answer, Prepared, always, gain, raced
from windrow.bench.joins.scale import JoinsBench
from windrow.bench.race import Contender, race
from windrow.bench.report import Measurement
from windrow.bench.tables import Line, Ratio, Table
from windrow.bench.timing import duration
from windrow.model.shape import L1, Linf, any_offset, offsets
from windrow.samples import places, survey_nights
from windrow.samples.survey import STEPS_A_DAY

DAYS = 200
STEPS = DAYS * STEPS_A_DAY
PTF_5 = L1(1, on=("ra", "dec")) & offsets(time=(-STEPS, 0))
PTF_25 = Linf(2, on=("ra", "dec")) & offsets(time=any_offset)
GEO = Linf(1)

TREE, PAIRS, BALLS, POSITIONS = "cKDTree", "cKDTree pairs", "BallTree", "cKDTree positions"
DUCKDB, BY_HAND, POLARS = "DuckDB", "DuckDB by hand", "polars"
PTF_5_COUNTS, PTF_5_SUMS, PTF_5_RANGES = 100.0, 50.0, 1_000.0
PTF_25_TREE, PTF_25_DUCKDB, PTF_25_BY_HAND, PTF_25_POSITIONS = 100.0, 60.0, 6.0, 2.0
TIME_FIRST = 1.5
GEO_PAIRS, GEO_DUCKDB, GEO_BALLS = 8.0, 8.0, 40.0

Contenders = dict[str, Prepared]


def detections(count: int, order: tuple[str, ...] = ("time", "ra", "dec")) -> dict[str, np.ndarray]:
    """A survey's cells in the order in which an array of these dimensions holds them."""
    table = survey_nights(count).table()
    columns = {name: table.column(name).to_numpy() for name in order}
    columns["mag"] = table.column("mag").to_numpy().astype(np.float64)
    sorting = np.lexsort([columns[name] for name in order[::-1]])
    return {name: np.ascontiguousarray(column[sorting]) for name, column in columns.items()}


def entered(
    bench: JoinsBench, ours: Callable[[], Answer], others: Mapping[str, tuple[str, Callable[[], Prepared]]]
) -> Contenders:
    """windrow, and those of the others whose package is installed."""
    found: Contenders = {OURS: always(ours)}
    for name, (package, make) in others.items():
        if bench.has(package) and (package != POLARS or peers.is_single_threaded()):
            found[name] = make()
    return found


def ratios(*names: str) -> tuple[Ratio, ...]:
    return tuple(Ratio(f"{name} / windrow", name, OURS) for name in names)


def coordinates(cells: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: column for name, column in cells.items() if name != "mag"}


def measure_ptf5(bench: JoinsBench) -> Iterator[Table | Measurement]:
    """The last 200 days within a cross: counts against a tree, counts and sums against databases."""
    cells = detections(bench.scale.detections)
    places_of, mag, size = coordinates(cells), cells["mag"], bench.scale.detections
    five, when = peers.crosses(STEPS)
    counted = functools.partial(neighbours, places_of, PTF_5)
    summed = functools.partial(neighbours, places_of, PTF_5, mag)
    tree = {TREE: ("SciPy", functools.partial(peers.tree_of_crosses, cells, STEPS))}
    counts = raced(bench, "count", entered(bench, counted, tree), size)
    joins = {
        DUCKDB: (DUCKDB, functools.partial(peers.duckdb_offsets, cells, ("ra", "dec"), five, when)),
        POLARS: (POLARS, functools.partial(peers.polars_offsets, cells, STEPS, five)),
    }
    sums = raced(bench, "count and sum, hash joins", entered(bench, summed, joins), size)
    few = detections(bench.scale.range_cells)
    ranges = {
        DUCKDB: (DUCKDB, functools.partial(peers.duckdb_ranges, few, STEPS)),
        POLARS: (POLARS, functools.partial(peers.polars_ranges, few, STEPS)),
    }
    of_few = functools.partial(neighbours, coordinates(few), PTF_5, few["mag"])
    ranged = raced(
        bench, f"the same, range joins of {bench.scale.range_cells:,}", entered(bench, of_few, ranges), len(few["ra"])
    )
    partners = float(neighbours(places_of, PTF_5).counts.mean())
    title = f"PTF-5, {size:,} detections, {partners:.0f} neighbours a cell"
    about = (
        "Synthetic survey nights; processor time of one thread, from coordinates in memory to results, sort included."
    )
    yield Table("ptf5", title, about, (counts, sums, ranged), ratios(TREE, DUCKDB, POLARS))
    yield gain("ptf5", "PTF-5 counts against cKDTree", counts, TREE, PTF_5_COUNTS)
    for peer in (DUCKDB, POLARS):
        yield gain("ptf5", f"PTF-5 counts and sums against {peer}'s hash join", sums, peer, PTF_5_SUMS)
    for peer in (DUCKDB, POLARS):
        what = f"PTF-5 of {bench.scale.range_cells:,} against {peer}'s range join"
        yield gain("ptf5", what, ranged, peer, PTF_5_RANGES)


def measure_ptf25(bench: JoinsBench) -> Iterator[Table | Measurement]:
    """Any time within a square: as others are asked, as they are asked by experts, and by order of dimensions."""
    cells = detections(bench.scale.detections)
    mag, size = cells["mag"], bench.scale.detections
    square = peers.squares(2)
    counted = functools.partial(neighbours, coordinates(cells), PTF_25)
    summed = functools.partial(neighbours, coordinates(cells), PTF_25, mag)
    trees = {TREE: ("SciPy", functools.partial(peers.tree_of_squares, cells, ("ra", "dec"), 2))}
    counts = raced(bench, "count", entered(bench, counted, trees), size)
    others = {
        DUCKDB: (DUCKDB, functools.partial(peers.duckdb_offsets, cells, ("ra", "dec"), square)),
        BY_HAND: (DUCKDB, functools.partial(peers.duckdb_positions, cells, square)),
        POSITIONS: ("SciPy", functools.partial(peers.tree_of_positions, cells, 2)),
    }
    sums = raced(bench, "count and sum", entered(bench, summed, others), size)
    title = f"PTF-25, {size:,} detections"
    about = "Any time. By hand: time is reduced away by the query's author, positions are joined."
    yield Table("ptf25", title, about, (counts, sums), ratios(TREE, DUCKDB, BY_HAND, POSITIONS))
    yield gain("ptf25", "PTF-25 against cKDTree on all cells", counts, TREE, PTF_25_TREE)
    yield gain("ptf25", "PTF-25 against DuckDB as one would write it", sums, DUCKDB, PTF_25_DUCKDB)
    yield gain("ptf25", "PTF-25 against DuckDB, reduced by hand", sums, BY_HAND, PTF_25_BY_HAND)
    yield gain("ptf25", "PTF-25 against cKDTree and bincount, reduced by hand", sums, POSITIONS, PTF_25_POSITIONS)
    yield from _orders(bench, cells)


def _orders(bench: JoinsBench, time_first: dict[str, np.ndarray]) -> Iterator[Table | Measurement]:
    """The paper's order of dimensions, time first, against time last."""
    time_last = detections(bench.scale.detections, ("ra", "dec", "time"))
    lines: list[Line] = []
    for name, shape in (("PTF-5", PTF_5), ("PTF-25", PTF_25)):
        pair = {
            OURS: always(functools.partial(neighbours, coordinates(time_first), shape, time_first["mag"])),
            "time last": always(functools.partial(neighbours, coordinates(time_last), shape, time_last["mag"])),
        }
        # The cells are in another order, so that answers cannot be compared one by one.
        one, other = (np.sort(contender.fetch().counts) for contender in pair.values())
        assert np.array_equal(one, other), "the order of dimensions changes results"
        lines.append(_time(bench, f"{name}, count and sum", pair))
    ratio = Ratio("time first / time last", OURS, "time last")
    about = "The same cells with time as the first dimension (windrow) and as the last."
    yield Table("ptf25", f"Order of dimensions, {bench.scale.detections:,} detections", about, tuple(lines), (ratio,))
    for line in lines:
        value = line.ratio(ratio)
        assert value is not None
        detail = ", ".join(f"{name} {duration(took)}" for name, took in line.result.seconds.items())
        what = f"{line.case}: time first over time last"
        yield Measurement("ptf25", what, value, "×", TIME_FIRST, "at most", detail)


def _time(bench: JoinsBench, case: str, contenders: Contenders) -> Line:
    entered_here = [Contender(name, one.action) for name, one in contenders.items()]
    return Line(case, bench.scale.detections, race(entered_here, bench.scale.pace))


def measure_geo(bench: JoinsBench) -> Iterator[Table | Measurement]:
    """Places within a square of each place."""
    table = places(bench.scale.places)
    names = ("long", "lat")
    cells = {name: table.column(name).to_numpy() for name in names}
    valued = {**cells, "mag": np.zeros(table.num_rows)}
    others = {
        PAIRS: ("SciPy", functools.partial(peers.tree_of_pairs, cells, names, 1)),
        DUCKDB: (DUCKDB, functools.partial(peers.duckdb_offsets, valued, names, peers.squares(1))),
        BALLS: ("scikit-learn", functools.partial(peers.ball_tree, cells, names, 1)),
    }
    counts = raced(bench, "count", entered(bench, functools.partial(neighbours, cells, GEO), others), table.num_rows)
    source = (table.schema.metadata or {}).get(b"source", b"").decode()
    title = f"GEO, {table.num_rows:,} places"
    yield Table("geo", title, f"Places: {source}.", (counts,), ratios(PAIRS, DUCKDB, BALLS))
    yield gain("geo", "GEO counts against cKDTree's pairs and bincount", counts, PAIRS, GEO_PAIRS)
    yield gain("geo", "GEO counts against DuckDB", counts, DUCKDB, GEO_DUCKDB)
    lacking = None if bench.has("scikit-learn") else "scikit-learn is not installed"
    yield gain("geo", "GEO counts against BallTree", counts, BALLS, GEO_BALLS, lacking=lacking)
