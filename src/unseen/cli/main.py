"""`unseen`: the commands, and what becomes of an error."""

from __future__ import annotations

import sys
import traceback
import warnings
from contextlib import suppress
from pathlib import Path

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


@app.callback()
def _options(debug: bool = typer.Option(False, "--debug", help="Show the traceback of an error.")) -> None:
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


def _prepare() -> None:
    """Let `module:Class` be found in the current directory, after all that is installed; warn in one line."""
    with suppress(OSError):  # the directory may be gone
        sys.path.append(str(Path.cwd()))
    if "--debug" not in sys.argv[1:]:
        warnings.formatwarning = lambda message, *rest, **more: f"warning: {message}\n"


def main() -> None:
    """Run a command. Wrong use ends with 2, a failed check with 1, an interrupt with 130."""
    _prepare()
    try:
        app()
    except (UsageError, CheckFailed) as error:
        if "--debug" in sys.argv[1:]:
            traceback.print_exc()
        sys.stderr.write(f"error: {error}\n")
        sys.exit(2 if isinstance(error, UsageError) else 1)
    except BrokenPipeError:
        # The reader of our output went away (`unseen show … | head`): not an error.
        sys.stderr.close()
        sys.exit(0)
