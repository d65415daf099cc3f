"""How much a run of the join benchmark measures, and with whom."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import math
from dataclasses import dataclass
from pathlib import Path

from windrow.bench.windows_race import Pace


@dataclass(frozen=True)
class JoinPeer:
    """Another package that finds neighbours."""

    name: str
    package: str
    distribution: str

    @property
    def version(self) -> str | None:
        """None if it is not installed."""
        if importlib.util.find_spec(self.package) is None:
            return None
        return importlib.metadata.version(self.distribution)


PEERS = (
    JoinPeer("SciPy", "scipy", "scipy"),
    JoinPeer("DuckDB", "duckdb", "duckdb"),
    JoinPeer("polars", "polars", "polars"),
    JoinPeer("scikit-learn", "sklearn", "scikit-learn"),
    JoinPeer("OpenCV", "cv2", "opencv-python-headless"),
    JoinPeer("astropy", "astropy", "astropy"),
    JoinPeer("LSDB", "lsdb", "lsdb"),
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


@dataclass(frozen=True)
class JoinsBench:
    """One run: its scale, the peers it races against, and a folder for what it stores meanwhile."""

    scale: JoinsScale
    peers: tuple[JoinPeer, ...]
    folder: Path

    def has(self, name: str) -> bool:
        return any(peer.name == name and peer.version for peer in self.peers)
