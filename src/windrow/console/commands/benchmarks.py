"""Commands that measure windrow against its peers."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path

import click

from windrow.console.commands.settings import Command, common_options


@click.group()
def bench() -> None:
    """Measure windrow against its peers on this machine."""


@dataclass(frozen=True)
class Benchmark:
    """A command of ``windrow bench``; the module of that name in ``windrow.bench`` runs it.

    Sections stand here too, because a command's help must not wait for the benchmarks to be imported.
    """

    name: str
    says: str
    quick: str
    sections: tuple[str, ...] = ()


BENCHMARKS = (
    Benchmark(
        "storage",
        "Write, read, insert, change a little and commit, against bare files, deltalake, Lance and Spark.",
        "Small sizes: shows that all of it runs, not how fast it is.",
        ("start", "commit", "batches", "metadata", "patches", "dense", "sparse"),
    ),
    Benchmark(
        "windows",
        "Windows: the papers' tables, other packages, and store to store through Spark.",
        "About a minute: fewer widths, smaller samples, no 20 years.",
        (
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
        ),
    ),
    Benchmark(
        "frames",
        "Frames: DuckDB, Polars and plain Spark, kernels alone and end to end, and paper 003's figures.",
        "Some minutes: fewer rows, smaller samples.",
        ("kernels", "domains", "spark", "one-partition", "scalability", "paper"),
    ),
    Benchmark(
        "joins",
        "Neighbours and joins: trees, databases, image filters and Spark's own join, in memory and from the store.",
        "Some minutes: a tenth of the cells.",
        ("ptf5", "ptf25", "geo", "store", "spark", "sky", "dense", "chunk-pairs"),
    ),
    Benchmark(
        "views",
        "Views: batches against rebuilding, against batches without views, against DuckDB, and a year of days.",
        "Two minutes: shows that all of it runs, not how fast it is.",
        ("kernels", "ptf5", "ptf25", "medians", "batches", "dense", "days", "nights", "answers", "reads"),
    ),
    Benchmark(
        "queries",
        "Plain questions: totals, groups, conditions and expressions against xarray with Dask and against DuckDB.",
        "A minute: shows that all of it runs, not how fast it is.",
        ("dense", "memory", "sparse", "dead", "inserts", "small", "frames"),
    ),
    Benchmark(
        "placement",
        "Planning across nodes: strategies on a modelled cluster, the exact optimum, and the time of planning.",
        "Some minutes at most: one seed, two batches, smaller problems.",
        ("paper-model", "own-model", "assignments", "history", "sensitivity", "exact", "planning", "cluster"),
    ),
)
SECTIONS = {benchmark.name: benchmark.sections for benchmark in BENCHMARKS}


def _with_options(benchmark: Benchmark, command: Command) -> Command:
    folder = click.Path(file_okay=False, path_type=Path)
    command = click.option("--out", metavar="FOLDER", type=folder, help="Keep tables and plots here.")(command)
    if benchmark.sections:
        sections = click.Choice(benchmark.sections)
        says = "Measure this section alone; may be given again."
        command = click.option("--only", multiple=True, type=sections, help=says)(command)
    return click.option("--quick", is_flag=True, help=benchmark.quick)(common_options(command))


def _add(benchmark: Benchmark) -> None:
    def measure(quick: bool, out: Path | None, **only: tuple[str, ...]) -> None:
        importlib.import_module(f"windrow.bench.{benchmark.name}").run(quick, out, *only.values())

    bench.command(benchmark.name, help=benchmark.says)(_with_options(benchmark, measure))


for _benchmark in BENCHMARKS:
    _add(_benchmark)
