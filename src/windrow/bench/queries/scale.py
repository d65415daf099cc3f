"""How much a run of the queries' benchmark measures, and with whom."""

from __future__ import annotations

from dataclasses import dataclass

from windrow.bench.peers import Package, Run

PEERS = (
    Package("xarray + Dask", "dask", "dask"),
    Package("DuckDB", "duckdb", "duckdb"),
    Package("flox", "flox", "flox"),
)
THREADS = 2
"""How many threads each side has."""


@dataclass(frozen=True)
class QueriesScale:
    """Sizes of each section; every contender is repeated equally often."""

    field: tuple[int, int, int]
    """Longitudes, latitudes and steps of the dense field."""
    chunk: tuple[int, int, int]
    steps_a_day: int
    cells: tuple[int, ...]
    """Cells of the sparse arrays."""
    inserted: int
    rounds: int
    frame_rows: int
    """Rows of the shuffled table that is framed on Spark."""


FULL = QueriesScale((288, 145, 2928), (144, 73, 92), 4, (5_000_000, 20_000_000), 5_000_000, 5, 10_000_000)
QUICK = QueriesScale((48, 25, 732), (24, 13, 92), 1, (200_000,), 100_000, 3, 500_000)


QueriesBench = Run[QueriesScale, Package]
