"""A weather archive: a growing array, a day appended at a time, each day exactly once.

Run it twice: the second run finds every day applied before, and does nothing.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

import windrow as wr

DAYS = np.arange("2024-01-01", "2024-02-01", dtype="datetime64[D]")
LATITUDES = np.linspace(60.0, 50.0, 21)
LONGITUDES = np.linspace(0.0, 15.0, 31)


def field_of(day: np.datetime64) -> npt.NDArray[np.float32]:
    """A made-up temperature field: colder to the north, with weather on top."""
    random = np.random.default_rng(int(day.astype(int)))
    weather = random.normal(0.0, 1.0, (1, len(LATITUDES), len(LONGITUDES)))
    return (290.0 - 0.5 * (LATITUDES[None, :, None] - 50.0) + weather).astype(np.float32)


def open_archive(db: wr.Database) -> wr.Array:
    if "t2m" in db:
        return db.array("t2m")
    return db.create(
        "t2m",
        "<kelvin: float32> [time=1:*, lat=1:21, lon=1:31]",
        labels={
            "lat": wr.Labels.of(LATITUDES, {"units": "degrees_north"}),
            "lon": wr.Labels.of(LONGITUDES, {"units": "degrees_east"}),
        },
        metadata={"kelvin": {"units": "K", "long_name": "2 metre temperature"}},
    )


def main() -> None:
    with wr.connect("weather", progress=False) as db:
        archive = open_archive(db)
        reports = [archive.append(field_of(day), labels=[day], batch=f"t2m {day}") for day in DAYS]
        print(f"{sum(report.applied for report in reports)} days appended")
        skipped = sum(not report.applied for report in reports)
        if skipped:
            print(f"{skipped} days were applied before")
            return
        archive.compact()
        week = archive.sel(time=("2024-01-08", "2024-01-14"), lat=(55, 60)).read()
        print(f"second week, north of 55 degrees: {float(week['kelvin'].mean()):.1f} K on average")
        first = archive.at(version=1)
        print(f"after the first append there were {first.shape[0]} day, now there are {archive.shape[0]}")
        db.export_file("t2m", "january.zarr", overwrite=True)
        print(archive.describe())


if __name__ == "__main__":
    main()
