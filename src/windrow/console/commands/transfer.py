"""Commands that move data between files and arrays: import, export."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from windrow.console.commands.selections import Wanted, cell_of, selections
from windrow.console.commands.settings import Settings, common_options, names, pass_settings, sizes

if TYPE_CHECKING:
    from windrow.api.work import EngineName

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
    """Read NetCDF, GRIB, Zarr, Parquet, CSV or FITS files into an array."""
    from windrow.api.transfer import array_name, found_files

    # Before a warehouse is opened: a mistyped file must not leave an empty one behind.
    found = found_files(files, options["format"])
    if into is None and len(found) > 1:
        raise click.UsageError("Several files need a name for their array: --into NAME")
    path = files[0] if len(files) == 1 else found
    target = into or array_name(found[0])
    options["dimensions"] = options.pop("dims")
    with settings.connect(create=True, engine=engine) as db:
        report = db.import_file(path, target, **options)
        click.echo(str(report))
        if report.applied:
            click.echo(f"{target}: {db.array(target).schema}")


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
    help="Only these cells, both ends included: by label (time=2012-01-01:2012-01-31, lat=30) where there are labels, "
    "else by number (i=1:10), which is cell(lat)=1:10 too; once for each dimension.",
)
@click.option("--format", metavar="FORMAT", help=_FORMAT)
@common_options
@pass_settings
def export_array(settings: Settings, /, name: str, file: str, select: dict[str, Wanted], **options: Any) -> None:
    """Write an array, or an older version of it, to a file."""
    with settings.connect() as db:
        chosen = db.array(name).sel({dim: wanted for dim, wanted in select.items() if cell_of(dim) is None})
        cells = {cell_of(dim): wanted for dim, wanted in select.items()}
        chosen = chosen.isel({dim: wanted for dim, wanted in cells.items() if dim is not None})
        chosen.export(file, **options)
    click.echo(f"wrote {name} to {file}")
