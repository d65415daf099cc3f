"""The windrow command: its groups and how it ends."""

from __future__ import annotations

import sys
from typing import Any

import click

import windrow
from windrow.console.commands.arrays import collect_garbage, describe, drop, list_arrays
from windrow.console.commands.benchmarks import bench
from windrow.console.commands.demo import demo
from windrow.console.commands.doctor import doctor
from windrow.console.commands.exits import ExitCode, end_children, explain
from windrow.console.commands.scripts import run_file, run_input, run_statements
from windrow.console.commands.settings import Settings, common_options, format_option
from windrow.console.commands.sql import run_sql
from windrow.console.commands.transfer import export_array, import_files
from windrow.console.session.stopping import end_if_left_behind


class Commands(click.Group):
    """A group whose failures end with a message and an exit code instead of a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit):
            raise
        except (Exception, KeyboardInterrupt) as error:
            code = explain(error, ctx.ensure_object(Settings).debug)
        ctx.exit(code)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order of a newcomer's day, which is the order they were added in."""
        return list(self.commands)


@click.group(
    cls=Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 done, 1 the query or data is wrong, 2 the command line is wrong, "
    "3 the machine or store is, 130 stopped.",
)
@click.option(
    "-e", "--execute", "statements", metavar="TEXT", multiple=True, help="Run these statements; may be given again."
)
@format_option
@common_options
@click.version_option(windrow.__version__, prog_name="windrow", message="%(prog)s %(version)s")
@click.pass_context
def commands(context: click.Context, statements: tuple[str, ...]) -> None:
    """Arrays that live on disk and on Apache Spark.

    Without a command, windrow opens its console on a terminal, and runs the statements that come through a pipe.
    --db and --debug may also be given after the command's name.
    """
    if context.invoked_subcommand is not None:
        if statements:
            raise click.UsageError("Statements (-e) and a command do not go together.")
        return
    settings = context.ensure_object(Settings)
    if statements:
        context.exit(run_statements(settings, ";\n".join(statements), None))
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        context.exit(run_input(settings))
    from windrow.console.prompt.shell import Shell

    Shell(settings).run()


for command in (
    demo,
    doctor,
    list_arrays,
    describe,
    import_files,
    export_array,
    run_file,
    run_sql,
    drop,
    collect_garbage,
    bench,
):
    commands.add_command(command)


def main() -> None:
    """What the installed script calls."""
    try:
        commands(prog_name="windrow")
    except SystemExit as end:
        if end.code == ExitCode.INTERRUPTED:
            end_children()
            # An interrupt that came through code made from text, as importing a dataclass runs it, stays noted in the
            # interpreter, which would end by the signal and not with our code. Running any text takes the note away.
            exec("")
        end_if_left_behind(end.code if isinstance(end.code, int) else 0)
        raise


if __name__ == "__main__":
    main()
