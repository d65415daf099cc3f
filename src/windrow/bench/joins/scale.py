"""How much a run of the join benchmark measures, and with whom."""

from __future__ import annotations

import math
from dataclasses import dataclass

from windrow.bench.peers import Package, Run
from windrow.bench.race import Pace

PEERS = (
    Package("SciPy", "scipy", "scipy"),
    Package("DuckDB", "duckdb", "duckdb"),
    Package("polars", "polars", "polars"),
    Package("scikit-learn", "sklearn", "scikit-learn"),
    Package("OpenCV", "cv2", "opencv-python-headless"),
    Package("astropy", "astropy", "astropy", needs="scipy"),
    Package("LSDB", "lsdb", "lsdb"),
)


@dataclass(frozen=True)
class JoinsScale:
    """Sizes of each section; every contender is repeated equally often."""

    detections: int
    range_cells: int
    """Cells on which other databases' range joins are tried, which compare far too many pairs for more."""
    places: int
    rounds: int
    spark_detections: int
    spark_rounds: int
    stars: int
    side: int
    old_chunks: int
    new_chunks: int

    @property
    def pace(self) -> Pace:
        return Pace(self.rounds, math.inf, math.inf)


FULL = JoinsScale(
    detections=1_000_000,
    range_cells=20_000,
    places=1_000_000,
    rounds=3,
    spark_detections=10_000_000,
    spark_rounds=1,
    stars=1_870_000,
    side=1_000,
    old_chunks=1_800_000,
    new_chunks=2_800,
)
QUICK = JoinsScale(
    detections=100_000,
    range_cells=3_000,
    places=100_000,
    rounds=2,
    spark_detections=300_000,
    spark_rounds=1,
    stars=100_000,
    side=300,
    old_chunks=100_000,
    new_chunks=300,
)


JoinsBench = Run[JoinsScale, Package]
