"""Commands that move data between files and arrays: import, export."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from windrow.console.selections import Wanted, selections
from windrow.console.settings import Settings, common_options, names, pass_settings, sizes

if TYPE_CHECKING:
    from windrow.execution.engine import EngineName

_FORMAT = "The files' format, if their suffix does not say: netcdf, zarr, parquet, csv."


@click.command("import")
@click.argument("files", nargs=-1, required=True, metavar="FILE…")
@click.option("--into", metavar="NAME", help="The array, made if it is not there.  [default: the file's name]")
@click.option("--variables", metavar="A,B", callback=names, help="Gridded files: only these variables.")
@click.option("--along", metavar="DIM", help="Gridded files: the dimension along which several continue one another.")
@click.option("--grow", metavar="DIM", help="Gridded files: the dimension along which a new array may grow.")
@click.option("--dims", metavar="I,J", callback=names, help="Tables: the columns that are a new array's dimensions.")
@click.option("--chunks", metavar="DIM=N,…", callback=sizes, help="A new array's chunk sizes, as in time=366,lat=145.")
@click.option("--format", metavar="FORMAT", help=_FORMAT)
@click.option("--batch", metavar="ID", help="Do nothing if a batch of this id was applied before.")
@click.option(
    "--engine",
    type=click.Choice(["auto", "local", "spark"]),
    default="auto",
    show_default=True,
    help="Where the work runs.",
)
@common_options
@pass_settings
def import_files(
    settings: Settings, /, files: tuple[str, ...], into: str | None, engine: EngineName, **options: Any
) -> None:
    """Read NetCDF, Zarr, Parquet or CSV files into an array."""
    from windrow.formats.place import expand
    from windrow.formats.registry import format_of

    # Before a warehouse is opened: a mistyped file must not leave an empty one behind.
    found = expand(files)
    format_of(found, options["format"])
    path = files[0] if len(files) == 1 else found
    target = into or _array_name(found)
    options["dimensions"] = options.pop("dims")
    with settings.connect(create=True, engine=engine) as db:
        report = db.import_file(path, target, **options)
        click.echo(str(report))
        if report.applied:
            click.echo(f"{target}: {db.array(target).schema}")


def _array_name(files: list[str]) -> str:
    """What an array is called after its file: ``data/air.2m.nc`` becomes ``air_2m``."""
    from windrow.formats.dataset import legal_name

    if len(files) > 1:
        raise click.UsageError("Several files need a name for their array: --into NAME")
    name = Path(files[0]).name
    for suffix in (".gz", Path(name.removesuffix(".gz")).suffix):
        name = name.removesuffix(suffix)
    return legal_name(name)


@click.command("export")
@click.argument("name", metavar="NAME[@VERSION]")
@click.argument("file", type=click.Path())
@click.option("--overwrite", is_flag=True, help="Replace the file if it is there.")
@click.option("--attributes", metavar="A,B", callback=names, help="Only these attributes.")
@click.option(
    "--select",
    metavar="DIM=FIRST:LAST",
    multiple=True,
    callback=selections,
    help="Only these cells, by index (i=1:10) or by label (time=2012-01-01:2012-01-31, lat=30.0), both ends included; "
    "once for each dimension.",
)
@click.option("--format", metavar="FORMAT", help=_FORMAT)
@common_options
@pass_settings
def export_array(settings: Settings, /, name: str, file: str, select: dict[str, Wanted], **options: Any) -> None:
    """Write an array, or an older version of it, to a file."""
    with settings.connect() as db:
        db.export_file(name, file, **options, **select)
    click.echo(f"wrote {name} to {file}")
