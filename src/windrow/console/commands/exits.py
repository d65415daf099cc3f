"""How a command ends: its exit code, and what it says when it fails."""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from enum import IntEnum

import click

from windrow.errors import Error, StoreError

GRACE_SECONDS = 5.0


class ExitCode(IntEnum):
    """What scripts can rely on; errors carry 1 or 3 themselves as ``Error.exit_code``."""

    DONE = 0
    WRONG_QUERY = 1
    WRONG_USAGE = 2
    WRONG_MACHINE = 3
    INTERRUPTED = 130


def explain(error: BaseException, debug: bool, place: str | None = None) -> int:
    """Say on standard error what went wrong, and where if ``place`` says so; return the exit code."""
    if isinstance(error, BrokenPipeError):
        # The reader, `head` say, has seen enough; what is still buffered must not fail once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.DONE
    if debug:
        click.echo("".join(traceback.format_exception(error)).rstrip(), err=True)
    if isinstance(error, (KeyboardInterrupt, click.Abort)):
        click.echo("\nstopped; what was not finished is not visible", err=True)
        return ExitCode.INTERRUPTED
    known = _as_windrow_error(error)
    text = known.what if known.got is None else f"{known.what}, got {known.got}"
    click.echo(f"error: {text}" if place is None else f"error: {place}: {text}", err=True)
    if known.excerpt is not None:
        click.echo(known.excerpt, err=True)
    if known.hint is not None:
        click.echo(f"hint: {known.hint}", err=True)
    return known.exit_code


def end_children() -> None:
    """End the processes that this one started: a Spark that was interrupted while it started would go on alone."""
    import psutil

    children = psutil.Process().children(recursive=True)
    for child in children:
        with contextlib.suppress(psutil.Error):
            child.terminate()
    _, alive = psutil.wait_procs(children, GRACE_SECONDS)
    for child in alive:
        with contextlib.suppress(psutil.Error):
            child.kill()


def _as_windrow_error(error: BaseException) -> Error:
    if isinstance(error, Error):
        return error
    first_line = (str(error).splitlines() or [""])[0]
    if isinstance(error, OSError):
        what = (error.strerror or first_line or type(error).__name__).lower()
        return StoreError(what, got=error.filename, hint="Run again with --debug to see where")
    return StoreError(
        "windrow failed in a way it should not",
        got=f"{type(error).__name__}: {first_line}",
        hint="Run again with --debug to see where, and please report it",
    )
