"""How much a run of the views' benchmark measures, and with whom."""

from __future__ import annotations

from dataclasses import dataclass

from windrow.bench.peers import Package, Run

PEERS = (Package("DuckDB", "duckdb", "duckdb"),)


@dataclass(frozen=True)
class ViewsScale:
    """Sizes of each section; every contender is repeated equally often."""

    few: int
    """Cells of the smaller survey."""
    many: int
    """Cells of the larger one."""
    most: int
    """Cells of the largest one, into which some batches go."""
    batch: int
    """Cells of a batch."""
    rounds: int
    changes: int
    """Values that are replaced in the section of medians."""
    field: tuple[int, int, int]
    """Longitudes, latitudes and days of the dense field."""
    days: int
    """Slices that come one by one, and nights."""
    span: int
    """How many batches at the beginning and at the end are compared."""
    night: int
    """Detections of a night."""


FULL = ViewsScale(
    few=100_000,
    many=1_000_000,
    most=10_000_000,
    batch=10_000,
    rounds=3,
    changes=12_000,
    field=(288, 145, 366),
    days=365,
    span=30,
    night=5_000,
)
QUICK = ViewsScale(
    few=4_000,
    many=12_000,
    most=24_000,
    batch=300,
    rounds=2,
    changes=1_200,
    field=(36, 19, 90),
    days=32,
    span=10,
    night=100,
)


ViewsBench = Run[ViewsScale, Package]
