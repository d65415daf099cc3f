"""The doctor: what is wrong with this machine or this warehouse, and how to mend it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import click

from windrow.console.exits import ExitCode
from windrow.console.output import on_terminal
from windrow.console.settings import Settings, common_options, pass_settings

if TYPE_CHECKING:
    from rich.text import Text


class State(StrEnum):
    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


_STYLES = {State.OK: "green", State.WARNING: "yellow", State.PROBLEM: "bold red"}


@dataclass(frozen=True)
class Finding:
    """One thing looked at: how it is, and how to mend it."""

    subject: str
    state: State
    text: str
    mend: str | None = None


@click.command()
@click.option("--no-spark", is_flag=True, help="Do not start Spark, which takes some seconds.")
@common_options
@click.pass_context
@pass_settings
def doctor(settings: Settings, context: click.Context, no_spark: bool) -> None:
    """Check this machine and the warehouse.

    Looks at Java, Spark, packages, memory, disk, and at what the warehouse's catalog and stores say of one another.
    """
    worst = State.OK
    order = list(State)
    counts = dict.fromkeys(State, 0)
    for finding in _findings(settings, no_spark):
        _show(finding)
        counts[finding.state] += 1
        worst = max(worst, finding.state, key=order.index)
    if worst is State.OK:
        click.echo("all is well")
    else:
        listed = [f"{counts[state]} {state}{'s' if counts[state] != 1 else ''}" for state in order[:0:-1]]
        click.echo(", ".join(text for text in listed if not text.startswith("0 ")))
    if worst is State.PROBLEM:
        context.exit(ExitCode.WRONG_MACHINE)


def _findings(settings: Settings, no_spark: bool) -> Iterator[Finding]:
    from windrow.console.machine_checks import (
        check_disk,
        check_java,
        check_memory,
        check_packages,
        check_spark,
        check_temporary,
    )
    from windrow.console.warehouse_checks import check_warehouse

    yield from check_java()
    if not no_spark:
        yield from check_spark()
    yield from check_packages()
    yield from check_memory()
    yield from check_temporary()
    yield from check_disk(settings.db)
    yield from check_warehouse(settings.db)


def _show(finding: Finding) -> None:
    if on_terminal():
        from rich.console import Console

        Console(highlight=False, soft_wrap=True).print(_coloured(finding))
        return
    click.echo(f"{finding.state:<7}  {finding.subject:<9}  {finding.text}")
    if finding.mend is not None:
        click.echo(f"{'':<7}  {'':<9}  hint: {finding.mend}")


def _coloured(finding: Finding) -> Text:
    from rich.text import Text

    text = Text()
    text.append(f"{finding.state:<7}", style=_STYLES[finding.state])
    text.append(f"  {finding.subject:<9}", style="cyan")
    text.append(f"  {finding.text}")
    if finding.mend is not None:
        text.append(f"\n{'':<7}  {'':<9}  hint: {finding.mend}", style="italic")
    return text
