"""The demos' commands; what they do is in demo_run and demo_views, which import what is heavy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from windrow.console.commands.settings import Settings, common_options, pass_settings

_SIZE = click.IntRange(min=1)
_Command = TypeVar("_Command", bound=Callable[..., Any])


def _out(name: str) -> Callable[[_Command], _Command]:
    return click.option(
        "--out",
        metavar="FILE",
        type=click.Path(dir_okay=False, path_type=Path),
        default=Path(name),
        show_default=True,
        help="Where to write the picture.",
    )


@click.group(invoke_without_command=True)
@_out("windrow-demo.png")
@click.option("--lon", type=_SIZE, default=288, show_default=True, help="Longitudes.")
@click.option("--lat", type=_SIZE, default=145, show_default=True, help="Latitudes.")
@click.option("--days", type=_SIZE, default=366, show_default=True, help="Days from the start of 2012.")
@common_options
@pass_settings
@click.pass_context
def demo(context: click.Context, settings: Settings, out: Path, lon: int, lat: int, days: int) -> None:
    """Make, store, average and draw a year of weather; or keep a catalogue of the sky, or of places, up to date.

    The array T and the view T30 of an earlier demo are replaced; arrays of yours are not.
    """
    if context.invoked_subcommand is None:
        from windrow.console.commands.demo_run import run_demo

        run_demo(settings, out, lon, lat, days)


@demo.command()
@_out("windrow-sky.png")
@click.option("--detections", type=click.IntRange(min=1_000), default=150_000, show_default=True, help="Detections.")
@click.option("--nights", type=_SIZE, default=12, show_default=True, help="The last nights, which come one by one.")
@common_options
@pass_settings
def sky(settings: Settings, out: Path, detections: int, nights: int) -> None:
    """Keep a neighbour catalogue up to date, night by night.

    A made-up survey: for each detection, how many others lie beside it within 200 days before, and their mean
    magnitude. The array SKY and the view SKY_NEAR of an earlier demo are replaced; arrays of yours are not.
    """
    from windrow.console.commands.demo_views import run_sky

    run_sky(settings, out, detections, nights)


@demo.command()
@_out("windrow-places.png")
@click.option("--places", "count", type=click.IntRange(min=1_000), default=100_000, show_default=True, help="Places.")
@click.option("--regions", type=_SIZE, default=8, show_default=True, help="Regions, which come one by one.")
@common_options
@pass_settings
def places(settings: Settings, out: Path, count: int, regions: int) -> None:
    """Keep up to date how crowded the surroundings of each place on earth are.

    The array GEO and the view GEO_NEAR of an earlier demo are replaced; arrays of yours are not.
    """
    from windrow.console.commands.demo_views import run_places

    run_places(settings, out, count, regions)
