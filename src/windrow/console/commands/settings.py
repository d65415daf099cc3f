"""The options that every command takes, before or after its name."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from windrow.api.database import Database
    from windrow.api.work import EngineName, Progress

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass
class Settings:
    """What the options said so far."""

    db: str = "warehouse"
    debug: bool = False
    format: str | None = None

    def connect(
        self, create: bool = False, engine: EngineName = "auto", progress: bool | Progress | None = None
    ) -> Database:
        """Open the warehouse; one that is not there is made only for commands that write."""
        from windrow.api.database import connect

        # In the environment, because others can read a command line and an address may hold a password.
        catalog = os.environ.get("WINDROW_CATALOG") or None
        return connect(self.db, engine=engine, create=create, progress=progress, catalog=catalog)


pass_settings = click.make_pass_decorator(Settings, ensure=True)


def _keep_db(context: click.Context, _parameter: click.Parameter, value: str | None) -> None:
    settings = context.ensure_object(Settings)
    if value is not None:
        settings.db = value


def _keep_debug(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    settings = context.ensure_object(Settings)
    settings.debug = settings.debug or value


def _keep_format(context: click.Context, _parameter: click.Parameter, value: str | None) -> None:
    settings = context.ensure_object(Settings)
    settings.format = value or settings.format


format_option = click.option(
    "--format",
    type=click.Choice(("table", "csv", "json", "arrow")),
    expose_value=False,
    callback=_keep_format,
    help="How statements print results.  [default: table]",
)


def common_options(command: Command) -> Command:
    """Give a command or group ``--db`` and ``--debug``."""
    debug = click.option(
        "--debug", is_flag=True, expose_value=False, callback=_keep_debug, help="Show the traceback of an error."
    )
    db = click.option(
        "--db",
        metavar="PATH",
        type=click.Path(),
        expose_value=False,
        callback=_keep_db,
        help="The warehouse to work on.  [default: ./warehouse]",
    )
    return db(debug(command))


def names(_context: click.Context, parameter: click.Parameter, value: str | None) -> list[str] | None:
    """``a,b`` as a list of names."""
    if value is None:
        return None
    listed = [name.strip() for name in value.split(",")]
    if not all(listed):
        raise click.BadParameter(f"names are separated by commas, as in a,b; got {value!r}", param=parameter)
    return listed


def sizes(_context: click.Context, parameter: click.Parameter, value: str | None) -> dict[str, int] | None:
    """``time=366,lat=145`` as sizes by name."""
    if value is None:
        return None
    result: dict[str, int] = {}
    for item in value.split(","):
        name, _, size = (part.strip() for part in item.partition("="))
        if not name or not size.isdigit() or int(size) < 1:
            raise click.BadParameter(f"sizes are written as time=366,lat=145; got {item!r}", param=parameter)
        result[name] = int(size)
    return result
