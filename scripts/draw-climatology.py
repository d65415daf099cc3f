"""Draw docs/pictures/climatology.png: the mean of July, the anomaly of a day, and the mean of the globe by year."""

import tempfile
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

import windrow as wr

matplotlib.use("Agg")
from matplotlib import pyplot as plt

TIME = np.arange("2001-01-01", "2021-01-01", dtype="datetime64[D]")
LAT, LON = np.arange(87.5, -90.0, -5.0), np.arange(0.0, 360.0, 10.0)


def made_up_field() -> np.ndarray:
    """Twenty years of daily temperature: seasons, a slow warming, and weather that drifts eastwards."""
    random = np.random.default_rng(7)
    days = np.arange(len(TIME))[:, None, None]
    of_year = (TIME - TIME.astype("datetime64[Y]")).astype(int)[:, None, None]
    north, east = np.radians(LAT)[None, :, None], np.radians(LON)[None, None, :]
    season = -18 * np.sin(north) * np.cos(2 * np.pi * (of_year - 15) / 365)
    field = 301 - 42 * np.sin(north) ** 2 + season + 0.03 * days / 365
    for waves in (2, 3, 5):
        phase = random.normal(0, 0.25, len(TIME)).cumsum()[:, None, None]
        field = field + 2.5 * np.cos(north) * np.sin(waves * east + waves * north + phase)
    return (field + random.normal(0, 0.5, field.shape)).astype("float32")


def draw_map(axes: Any, values: Any, title: str, colours: str, reach: float | None = None) -> None:
    limits = {} if reach is None else {"vmin": -reach, "vmax": reach}
    drawn = axes.pcolormesh(LON, LAT, values.transpose("lat", "lon"), cmap=colours, **limits)
    axes.figure.colorbar(drawn, ax=axes, orientation="horizontal", shrink=0.85, label="K")
    axes.set_title(title, fontsize=10)
    axes.set_xticks([0, 90, 180, 270])
    axes.set_yticks([-60, 0, 60])


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, wr.connect(folder, progress=False) as db:
        array = db.create("T", "<t: float32> [time=0:*:365, lat=0:35, lon=0:35]", labels={"lat": LAT, "lon": LON})
        array.append({"t": made_up_field()}, labels=TIME)
        july = db.query("select avg(t) as t from T group by lat, lon, month(time) having month(time) = 7").compute()
        away = "select * from (select t - avg(t) over (lat, lon, month(time)) as anomaly from T)"
        day = db.query(f"{away} where time = '2020-07-14'").compute()
        globe = db.query("select wavg(t, cos(radians(lat))) as t from T group by year(time)").compute()
    figure, axes = plt.subplots(1, 3, figsize=(12.5, 3.6), layout="constrained")
    draw_map(axes[0], july["t"].isel(month=0), "mean of July", "viridis")
    draw_map(axes[1], day["anomaly"].isel(time=0), "anomaly of 14 July 2020", "RdBu_r", 8)
    axes[2].plot(globe["year"], globe["t"], "o-", color="#3b7ea1")
    axes[2].set_title("mean of the globe, weighted by area", fontsize=10)
    axes[2].set_ylabel("K")
    axes[2].set_xticks([2001, 2006, 2011, 2016])
    axes[2].grid(alpha=0.3)
    figure.savefig(Path(__file__).parents[1] / "docs" / "pictures" / "climatology.png", dpi=90)


if __name__ == "__main__":
    main()
