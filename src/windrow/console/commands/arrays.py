"""Commands on the arrays of a warehouse: list, describe, drop, collect-garbage."""

from __future__ import annotations

import sys

import click

from windrow.console.commands.settings import Settings, common_options, pass_settings
from windrow.console.render.output import show_facts, show_table


@click.command("list")
@common_options
@pass_settings
def list_arrays(settings: Settings) -> None:
    """List the arrays of the warehouse."""
    from windrow.api.describe import human_bytes

    with settings.connect() as db:
        rows = []
        for array in db.arrays():
            newest = array.versions()[-1]
            kind = "sparse" if array.sparse else "dense"
            size = human_bytes(newest.bytes)
            rows.append((array.name, kind, str(newest.number), f"{newest.cells:,}", size, str(newest.schema)))
    if rows:
        columns = ("name", "kind", "version", "cells", "stored", "schema")
        show_table(columns, rows, right=("version", "cells", "stored"))
    else:
        click.echo(f"no arrays yet in {settings.db}")


@click.command()
@click.argument("name", metavar="NAME[@VERSION]")
@common_options
@pass_settings
def describe(settings: Settings, name: str) -> None:
    """Show an array's schema, size, labels and history."""
    with settings.connect() as db:
        description = db.array(name).describe()
    show_facts(description.title, description.facts)


@click.command()
@click.argument("name")
@click.option("--yes", "-y", is_flag=True, help="Do not ask, on a terminal, whether that is meant.")
@common_options
@pass_settings
def drop(settings: Settings, name: str, yes: bool) -> None:
    """Remove an array with all its versions."""
    with settings.connect() as db:
        array = db.array(name)
        asks = not yes and array.name == name and sys.stdin.isatty()  # an old version is refused without a question
        if asks and not click.confirm(f"Remove {name} with its {len(array.versions())} versions?"):
            click.echo(f"kept {name}")
            return
        array.drop()
    click.echo(f"dropped {name}")


@click.command("collect-garbage")
@click.option(
    "--keep-versions",
    type=click.IntRange(min=1),
    metavar="N",
    help="Also give up all but the newest N versions of each array.",
)
@common_options
@pass_settings
def collect_garbage(settings: Settings, keep_versions: int | None) -> None:
    """Free what no version needs any more.

    That is what dead writers and dropped arrays left behind, and versions that are given up.
    """
    from windrow.api.describe import counted, human_bytes

    with settings.connect() as db:
        done = db.collect_garbage(keep_versions)
    versions, folders = counted(done.versions, "version"), counted(done.directories, "folder")
    click.echo(f"freed {human_bytes(done.bytes)}: gave up {versions}, removed {folders}")
