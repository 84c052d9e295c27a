"""`unseen`: the commands, and what becomes of an error."""

from __future__ import annotations

import sys
import traceback

import typer

from unseen.cli import (
    bench,
    claims,
    compare,
    doctor,
    merge,
    models,
    plan,
    report,
    results,
    run,
    show,
    studies,
    tasks,
    train,
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
app.command("train")(train.train)
app.command("plan")(plan.plan)
app.command("run")(run.run)
app.command("results")(results.results)
app.command("claims")(claims.claims)
app.command("report")(report.report)
app.command("compare")(compare.compare)
app.command("merge")(merge.merge)
app.command("bench")(bench.bench)
app.command("doctor")(doctor.doctor)


def main() -> None:
    """Run a command. Wrong use ends with 2, a failed check with 1, an interrupt with 130."""
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
