"""The doctor: what is wrong with this machine or this warehouse, and how to mend it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from windrow.console.commands.exits import ExitCode
from windrow.console.commands.settings import Settings, common_options, pass_settings
from windrow.console.render.output import on_terminal

if TYPE_CHECKING:
    from rich.text import Text

    from windrow.api.doctor.findings import Finding

_STYLES = {"ok": "green", "warning": "yellow", "problem": "bold red"}


@click.command()
@click.option("--no-spark", is_flag=True, help="Do not start Spark, which takes some seconds.")
@click.option("--repair", is_flag=True, help="Mend arrays that an earlier windrow left out of order.")
@common_options
@click.pass_context
@pass_settings
def doctor(settings: Settings, context: click.Context, no_spark: bool, repair: bool) -> None:
    """Check this machine and the warehouse.

    Looks at Java, Spark, packages, memory, disk, and at what the warehouse's catalog and stores say of one another.
    """
    from windrow.api.doctor.findings import State, check_all

    worst = State.OK
    order = list(State)
    counts = dict.fromkeys(State, 0)
    for finding in check_all(settings.db, start_spark=not no_spark, repair=repair):
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


def _show(finding: Finding) -> None:
    if on_terminal():
        from rich.console import Console

        Console(highlight=False, soft_wrap=True).print(_colour(finding))
        return
    click.echo(f"{finding.state:<7}  {finding.subject:<9}  {finding.text}")
    if finding.mend is not None:
        click.echo(f"{'':<7}  {'':<9}  hint: {finding.mend}")


def _colour(finding: Finding) -> Text:
    from rich.text import Text

    text = Text()
    text.append(f"{finding.state:<7}", style=_STYLES[finding.state])
    text.append(f"  {finding.subject:<9}", style="cyan")
    text.append(f"  {finding.text}")
    if finding.mend is not None:
        text.append(f"\n{'':<7}  {'':<9}  hint: {finding.mend}", style="italic")
    return text
