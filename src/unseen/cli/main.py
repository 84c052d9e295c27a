"""`unseen`: all commands, and how errors become messages and exit codes."""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from contextlib import suppress
from types import ModuleType
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
    inspect,
    merge,
    models,
    new,
    plan,
    records,
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
    "--set length=5 --set features=8 --set learning_rate=0.003 --steps 400 --out runs/t1 · unseen report runs/t1",
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
app.command("inspect")(inspect.inspect)
app.command("claims")(claims.claims)
app.command("report")(report.report)
app.command("compare")(compare.compare)
app.command("track")(track.track)
app.command("merge")(merge.merge)
app.add_typer(records.app, name="records")
app.command("bench")(bench.bench)
app.command("new")(new.new)
app.command("check")(check.check)
app.command("doctor")(doctor.doctor)


def main() -> None:
    """Run a command. Exit codes: 2 for wrong use, 1 for a failed check, 130 for an interrupt."""
    debug = "--debug" in sys.argv[1:]
    if not debug:
        warnings.formatwarning = lambda message, *details, **options: f"warning: {message}\n"
    if not sys.argv[1:] or not {"-h", "--help"}.isdisjoint(sys.argv[1:]):
        _load_help_pages()
    try:
        if "" in sys.argv[1:]:  # an empty path would be the current directory
            raise UsageError("one of the arguments is empty; is a variable of the shell not set?")
        try:
            app()
        finally:
            sys.stdout.flush()  # a full disk is noticed here, and not when the interpreter ends
    except (UsageError, CheckFailed) as error:
        if debug:
            traceback.print_exc()
        sys.stderr.write(f"error: {error}\n")
        sys.exit(2 if isinstance(error, UsageError) else 1)
    except BrokenPipeError:
        # The reader of our output has gone (`unseen show … | head`): not an error.
        sys.stderr.close()
        sys.exit(0)
    except (OSError, MemoryError) as error:
        if debug:
            traceback.print_exc()
        sys.stderr.write(f"error: {_describe_failure(error)}\n")
        _drop_output()
        sys.exit(1)


def _load_help_pages() -> None:
    """Load Typer's pages of help without what they never show here: Markdown and tracebacks. The two load a parser and
    all of Pygments, a quarter of the time of `unseen --help`."""
    stubs = []
    for name, unused in (("rich.markdown", "Markdown"), ("rich.traceback", "Traceback")):
        if name not in sys.modules:
            stubs.append(name)
            sys.modules[name] = ModuleType(name)
            setattr(sys.modules[name], unused, type(unused, (), {}))
    try:
        import typer.rich_utils  # noqa: F401
    finally:
        for name in stubs:
            del sys.modules[name]


def _describe_failure(error: OSError | MemoryError) -> str:
    """A failure of the system in one line."""
    if isinstance(error, MemoryError):
        return "memory has run out; choose a smaller model, batch or number of examples"
    file = error.filename or "the output"
    return f"{file} can't be used: {error.strerror or error}"


def _drop_output() -> None:
    """Have nothing written when the interpreter ends: what is left in the buffer could not be written a moment ago."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
