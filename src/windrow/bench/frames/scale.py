"""How much a run of the frame benchmark measures, and with whom."""

from __future__ import annotations

from dataclasses import dataclass

from windrow.bench.frames.peers import FramePeer
from windrow.bench.peers import Run
from windrow.bench.race import Pace


@dataclass(frozen=True)
class FramesScale:
    """Rows, frame sizes and patience of each section."""

    kernel_rows: int
    kernel_pace: Pace
    spark_rows: int
    spark_rounds: int
    spark_width: int
    percentile_rows: int
    """Rows on which Spark's own percentile is tried, over frames of ``percentile_width`` rows."""
    percentile_width: int
    paper_rows: int
    paper_pace: Pace
    widths: tuple[int, ...] = (10, 100, 1_000, 10_000)
    paper_widths: tuple[int, ...] = (1, 10, 100, 1_000, 10_000)


FULL = FramesScale(
    kernel_rows=2_000_000,
    kernel_pace=Pace(rounds=7, patience=5.0, sample=5.0),
    spark_rows=10_000_000,
    spark_rounds=3,
    spark_width=1_000,
    percentile_rows=20_000,
    percentile_width=4_001,
    paper_rows=10_000_000,
    paper_pace=Pace(rounds=5, patience=3.0, sample=1.5),
)
QUICK = FramesScale(
    kernel_rows=500_000,
    kernel_pace=Pace(rounds=5, patience=0.3, sample=0.6),
    spark_rows=2_000_000,
    spark_rounds=2,
    spark_width=1_000,
    percentile_rows=15_000,
    percentile_width=4_001,
    paper_rows=200_000,
    paper_pace=Pace(rounds=3, patience=0.1, sample=0.05),
)


FramesBench = Run[FramesScale, FramePeer]
