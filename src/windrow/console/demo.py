"""The demo's command; what it does is in demo_run, which imports what is heavy."""

from __future__ import annotations

from pathlib import Path

import click

from windrow.console.settings import Settings, common_options, pass_settings

_SIZE = click.IntRange(min=1)


@click.command()
@click.option(
    "--out",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("windrow-demo.png"),
    show_default=True,
    help="Where to write the picture.",
)
@click.option("--lon", type=_SIZE, default=288, show_default=True, help="Longitudes.")
@click.option("--lat", type=_SIZE, default=145, show_default=True, help="Latitudes.")
@click.option("--days", type=_SIZE, default=366, show_default=True, help="Days from the start of 2012.")
@common_options
@pass_settings
def demo(settings: Settings, out: Path, lon: int, lat: int, days: int) -> None:
    """Make, store, average and draw a year of weather.

    The arrays T and T30 of an earlier demo are replaced; arrays of yours are not.
    """
    from windrow.console.demo_run import run_demo

    run_demo(settings, out, lon, lat, days)
