"""Commands that measure windrow against its peers."""

from __future__ import annotations

from pathlib import Path

import click

from windrow.console.settings import common_options


@click.group()
def bench() -> None:
    """Measure windrow against its peers on this machine."""


@bench.command()
@click.option("--quick", is_flag=True, help="Small sizes: shows that all of it runs, not how fast it is.")
@click.option(
    "--out", metavar="FOLDER", type=click.Path(file_okay=False, path_type=Path), help="Keep the figures here."
)
@common_options
def storage(quick: bool, out: Path | None) -> None:
    """Write, read, insert and commit, against bare Zarr and Spark."""
    from windrow.bench.storage import run

    run(quick, out)


SECTIONS = (
    "scans",
    "percentiles",
    "missing",
    "paper-002",
    "paper-000",
    "paper-001",
    "workers",
    "store-to-store",
    "decades",
)


@bench.command()
@click.option("--quick", is_flag=True, help="About a minute: fewer widths, smaller samples, no 20 years.")
@click.option(
    "--out", metavar="FOLDER", type=click.Path(file_okay=False, path_type=Path), help="Keep tables and plots here."
)
@click.option(
    "--only", multiple=True, type=click.Choice(SECTIONS), help="Measure this section alone; may be given again."
)
@common_options
def windows(quick: bool, out: Path | None, only: tuple[str, ...]) -> None:
    """Windows: the papers' tables, other packages, and store to store through Spark."""
    from windrow.bench.windows import run

    run(quick, out, only)


FRAME_SECTIONS = ("kernels", "spark", "paper")


@bench.command()
@click.option("--quick", is_flag=True, help="Some minutes: fewer rows, smaller samples.")
@click.option(
    "--out", metavar="FOLDER", type=click.Path(file_okay=False, path_type=Path), help="Keep tables and plots here."
)
@click.option(
    "--only", multiple=True, type=click.Choice(FRAME_SECTIONS), help="Measure this section alone; may be given again."
)
@common_options
def frames(quick: bool, out: Path | None, only: tuple[str, ...]) -> None:
    """Frames: DuckDB, Polars and plain Spark, kernels alone and end to end, and paper 003's figures."""
    from windrow.bench.frames import run

    run(quick, out, only)
