"""Commands that measure windrow against its peers."""

from __future__ import annotations

from pathlib import Path

import click

from windrow.console.commands.settings import common_options


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
    "choices",
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


JOIN_SECTIONS = ("ptf5", "ptf25", "geo", "store", "spark", "sky", "dense", "chunk-pairs")


@bench.command()
@click.option("--quick", is_flag=True, help="Some minutes: a tenth of the cells.")
@click.option(
    "--out", metavar="FOLDER", type=click.Path(file_okay=False, path_type=Path), help="Keep tables and plots here."
)
@click.option(
    "--only", multiple=True, type=click.Choice(JOIN_SECTIONS), help="Measure this section alone; may be given again."
)
@common_options
def joins(quick: bool, out: Path | None, only: tuple[str, ...]) -> None:
    """Neighbours and joins: trees, databases, image filters and Spark's own join, in memory and from the store."""
    from windrow.bench.joins import run

    run(quick, out, only)


VIEW_SECTIONS = ("ptf5", "ptf25", "medians", "batches", "dense", "days", "nights", "answers", "reads")


@bench.command()
@click.option("--quick", is_flag=True, help="Two minutes: shows that all of it runs, not how fast it is.")
@click.option(
    "--out", metavar="FOLDER", type=click.Path(file_okay=False, path_type=Path), help="Keep tables and plots here."
)
@click.option(
    "--only", multiple=True, type=click.Choice(VIEW_SECTIONS), help="Measure this section alone; may be given again."
)
@common_options
def views(quick: bool, out: Path | None, only: tuple[str, ...]) -> None:
    """Views: batches against rebuilding, against batches without views, against DuckDB, and a year of days."""
    from windrow.bench.views import run

    run(quick, out, only)


PLACEMENT_SECTIONS = ("paper-model", "own-model", "assignments", "history", "sensitivity", "exact", "planning")


@bench.command()
@click.option("--quick", is_flag=True, help="Some minutes at most: one seed, two batches, smaller problems.")
@click.option(
    "--out", metavar="FOLDER", type=click.Path(file_okay=False, path_type=Path), help="Keep tables and plots here."
)
@click.option(
    "--only", multiple=True, type=click.Choice(PLACEMENT_SECTIONS), help="Run this section alone; may be given again."
)
@common_options
def placement(quick: bool, out: Path | None, only: tuple[str, ...]) -> None:
    """Planning across nodes: strategies on a modelled cluster, the exact optimum, and the time of planning."""
    from windrow.bench.placement import run

    run(quick, out, only)
