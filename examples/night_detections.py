"""Nightly detections: points on a sky grid, each night loaded exactly once, and the catalogue as it was.

Run it twice: the second run finds every night applied before, and does nothing.
"""

from __future__ import annotations

import windrow as wr
from windrow.samples import night_detections

GRID = {
    "time": ("2024-01-01", None, "1 day"),
    "ra": (0, 360, "1 arcmin"),
    "dec": (-90, 90, "1 arcmin"),
}


def load(db: wr.Database, night: int) -> wr.Report:
    """Store a night and its summary together, or neither."""
    table = night_detections(night)
    with db.batch(f"night {night}") as batch:
        batch.insert("detections", table)
        batch.insert("nights", {"night": [night], "detections": [table.num_rows]})
    assert batch.report is not None
    return batch.report


def main() -> None:
    with wr.connect("survey", progress=False) as db:
        if "detections" not in db:
            chunks = {"time": 32, "ra": 240, "dec": 240, "n": 8}
            db.create("detections", "<mag: float32> [time, ra, dec]", grid=GRID, chunks=chunks)
        if "nights" not in db:
            db.create("nights", "<detections: int64> [night=1:*]", sparse=True)
        reports = [load(db, night) for night in range(1, 6)]
        if not all(report.applied for report in reports):
            print("all nights were applied before")
            return
        sky = db.array("detections")
        shared = sum(report.duplicates for report in reports)
        print(f"{sky.read(['mag']).num_rows:,} detections, {shared:,} of them share a cell with another")
        field = sky.sel(ra=(149.9, 150.1), dec=(1.9, 2.1), time=("2024-03-03", "2024-03-04")).read()
        print(f"{field.num_rows} of them lie near the centre on 3 and 4 March")
        faint = sky.delete("mag > 23")
        print(f"{faint.cells} too faint, removed; before, there were {sky.at(version=5).read(['mag']).num_rows:,}")
        print(sky.describe())


if __name__ == "__main__":
    main()
