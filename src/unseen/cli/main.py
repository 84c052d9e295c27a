"""`unseen`: all commands, and how errors become messages and exit codes."""

from __future__ import annotations

import sys
import traceback
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from unseen.cli import (
    bench,
    check,
    claims,
    compare,
    doctor,
    exam,
    export,
    merge,
    models,
    new,
    plan,
    report,
    results,
    run,
    show,
    studies,
    tasks,
    track,
    train,
    tune,
    verify,
)
from unseen.errors import CheckFailed, UsageError

app = typer.Typer(
    name="unseen",
    help="Does a neural network handle what it has never seen, and if not, why?",
    epilog="Start with: unseen tasks · unseen show retrieval/T6 · unseen train retrieval/T1 retrieval-transformer "
    "--set length=5 --steps 2000 --out runs/t1",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from unseen import __version__

        typer.echo(f"unseen {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Options before the command."""


app.command("tasks")(tasks.tasks)
app.command("models")(models.models)
app.command("studies")(studies.studies)
app.command("show")(show.show)
app.command("verify")(verify.verify)
app.command("export")(export.export)
app.command("train")(train.train)
app.command("plan")(plan.plan)
app.command("run")(run.run)
app.command("tune")(tune.tune)
app.command("exam")(exam.exam)
app.command("results")(results.results)
app.command("claims")(claims.claims)
app.command("report")(report.report)
app.command("compare")(compare.compare)
app.command("track")(track.track)
app.command("merge")(merge.merge)
app.command("bench")(bench.bench)
app.command("new")(new.new)
app.command("check")(check.check)
app.command("doctor")(doctor.doctor)


def main() -> None:
    """Run a command. Exit codes: 2 for wrong use, 1 for a failed check, 130 for an interrupt."""
    debug = "--debug" in sys.argv[1:]
    # `module:Class` may lie in the current directory. It comes last, so that it can't hide an installed module; and it
    # may have been deleted meanwhile.
    with suppress(OSError):
        sys.path.append(str(Path.cwd()))
    if not debug:
        warnings.formatwarning = lambda message, *details, **options: f"warning: {message}\n"
    try:
        app()
    except (UsageError, CheckFailed) as error:
        if debug:
            traceback.print_exc()
        sys.stderr.write(f"error: {error}\n")
        sys.exit(2 if isinstance(error, UsageError) else 1)
    except BrokenPipeError:
        # The reader of our output has gone (`unseen show … | head`): not an error.
        sys.stderr.close()
        sys.exit(0)
