"""`python -m benchmarks`: measure speed, compare it with the limits of the machine and with an earlier run."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unseen.cli.output import check_output
from unseen.errors import CheckFailed, UsageError

if TYPE_CHECKING:
    from benchmarks.compare_runs import Comparison
    from benchmarks.results_file import SavedResults
    from benchmarks.rows import Asked, Row
    from benchmarks.targets import Verdict

_SHOWN = 20
"""Changes that are listed; of more, only how many there are is said."""
INTERRUPTED = 130

app = typer.Typer(pretty_exceptions_enable=False, context_settings={"help_option_names": ["-h", "--help"]})


@app.command()
def bench(
    names: Annotated[list[str] | None, typer.Argument(help="Which benchmarks (default: all).")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the figures to a file.")] = None,
    html_file: Annotated[Path | None, typer.Option("--html", help="Write a page about them.")] = None,
    against: Annotated[Path | None, typer.Option(help="Compare with the figures that an earlier --json wrote.")] = None,
    only: Annotated[str, typer.Option(metavar="TEXT", help="Only cases that have this in their name.")] = "",
    study: Annotated[str, typer.Option(metavar="NAME@SCALE", help="The study that `estimate` runs.")] = "",
    design: Annotated[
        bool, typer.Option("--design", help="Only the cases that a target of the design is about (half an hour).")
    ] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Few rounds of the smallest cases: does it run?")] = False,
) -> None:
    """Run speed benchmarks (single-threaded, interleaved; reports median and interquartile range).

    Without names all benchmarks are run; that takes about an hour, and the machine should have nothing else to do.
    Ctrl-C ends it and keeps the figures measured so far.

    Examples:

    python -m benchmarks machine steps --only retrieval

    python -m benchmarks --json mine.json --html mine.html

    python -m benchmarks --design --json design.json

    python -m benchmarks steps --against mine.json

    python -m benchmarks estimate --study quickstart@mini
    """
    from unseen.training.process import ONE_THREAD

    os.environ.update(ONE_THREAD)  # before NumPy is there: on the one core of a measurement its threads would queue

    from benchmarks import BENCHMARKS
    from benchmarks.compare_runs import compare
    from benchmarks.results_file import SavedResults
    from benchmarks.rows import Asked
    from benchmarks.targets import TARGETS, judged

    chosen = [BENCHMARKS.entry(name).name for name in names] if names else [entry.name for entry in BENCHMARKS]
    if design:
        # What a plan says is judged on whole mini studies, which take an hour of their own.
        judged_names = {target.benchmark for target in TARGETS} - {"estimate"}
        chosen = [name for name in chosen if name in judged_names]
    for file in (json_file, html_file):
        check_output(file)
    before = SavedResults.read(against) if against else None
    asked = Asked(quick, only, study=study)
    saved = _new(chosen, asked, design)
    try:
        _run(saved, chosen, asked, design)
    finally:
        compared = compare(saved.figures, before.figures) if before else None
        _write(saved, before, json_file, html_file)
    if not any(saved.figures.values()):
        raise UsageError(f"no case of {', '.join(chosen)} has '{only}' in its name")
    if compared is not None:
        _tell_changes(compared, str(against))
    _tell_targets(judged(saved.figures))
    if saved.interrupted:
        typer.echo(f"interrupted {saved.interrupted}; what was measured before is saved", err=True)
        raise typer.Exit(INTERRUPTED)


def _new(chosen: Sequence[str], asked: Asked, design: bool) -> SavedResults:
    from benchmarks.results_file import SavedResults
    from unseen.running.provenance import provenance

    load = [round(one, 2) for one in os.getloadavg()] if hasattr(os, "getloadavg") else []
    machine = {**provenance(), "cores": os.cpu_count() or 1, "load": load}
    said = {
        "benchmarks": list(chosen),
        "only": asked.only,
        "study": asked.study,
        "quick": asked.quick,
        "design": design,
    }
    return SavedResults(machine, f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC", said, interrupted="before the first figure")


def _run(saved: SavedResults, chosen: Sequence[str], asked: Asked, design: bool = False) -> None:
    """Fill in the figures, of the `design` only those of its targets. Whatever ends it early, it is known after what."""
    from benchmarks import BENCHMARKS
    from benchmarks.targets import TARGETS

    with _progress() as say:
        for place, name in enumerate(chosen, 1):
            title, rows, case = f"{name} ({place} of {len(chosen)})", list["Row"](), ""
            say(title)
            saved.figures[name] = rows
            # The targets of `trials` are exponents, which need all of its cases.
            chosen_cases = design and name != "trials"
            patterns = tuple(target.case for target in TARGETS if target.benchmark == name) if chosen_cases else ()
            told = replace(asked, patterns=patterns, say=partial(_under, say, title))
            try:
                for row in BENCHMARKS.load(name)(told):
                    rows.append(row)
                    saved.interrupted = f"in {name}, after {row.case}: {row.figure}"
                    typer.echo((f"{name} · {row.case}\n" if row.case != case else "") + _line(row))
                    case = row.case
            except KeyboardInterrupt:
                return
    saved.interrupted = ""


def _under(say: Callable[[str], None], title: str, text: str) -> None:
    say(f"{title}, {text}")


@contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """Tells what is being measured: in place on a terminal, in plain lines elsewhere."""
    from rich.console import Console
    from rich.text import Text

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda text: typer.echo(text, err=True)
        return
    with console.status("") as status:
        yield lambda text: status.update(Text(text))


def _line(row: Row) -> str:
    spread = f"  ({_number(row.low)} to {_number(row.high)})" if row.low is not None and row.high is not None else ""
    return f"  {row.figure:<32} {_number(row.value):>9} {row.unit}{spread}{f'  {row.note}' if row.note else ''}"


def _number(value: float) -> str:
    """Four digits, and no power of ten below a million.

    >>> _number(0.25), _number(123456.0), _number(3)
    ('0.25', '123456', '3')
    """
    return f"{value:.0f}" if 1e4 <= abs(value) < 1e7 else f"{value:.4g}"


def _write(saved: SavedResults, before: SavedResults | None, json_file: Path | None, html_file: Path | None) -> None:
    """Each file whole or not at all."""
    from unseen.report.export import write_file

    if json_file is not None:
        write_file(json_file, saved.text())
    if html_file is not None:
        from benchmarks.page import page

        write_file(html_file, page(saved, before))


def _tell_changes(found: Comparison, file: str) -> None:
    typer.echo(
        f"\nagainst {file}: {len(found.changed)} figures changed beyond noise, {found.same} did not, "
        f"{len(found.missing)} are missing, {len(found.new)} are new"
    )
    for one in found.changed[:_SHOWN]:
        typer.echo(
            f"  {one.word:<6} {one.ratio:.2f}×  {one.benchmark} · {one.now.case}: {one.now.figure} "
            f"{_number(one.before.value)} → {_number(one.now.value)} {one.now.unit}"
        )
    if len(found.changed) > _SHOWN:
        typer.echo(f"  and {len(found.changed) - _SHOWN} more")


def _tell_targets(verdicts: Sequence[Verdict]) -> None:
    counted = Counter(one.word for one in verdicts)
    if counted["not measured"] == len(verdicts):
        return
    typer.echo("\ntargets: " + ", ".join(f"{counted[word]} {word}" for word in ("met", "missed", "not measured")))
    for one in verdicts:
        if one.row is not None:
            said = f"{one.target.what}: {_number(one.row.value)} {one.row.unit}".rstrip()
            typer.echo(f"  {one.word:<6} {said} (target {one.target.sign} {_number(one.target.number)})")


def main() -> None:
    """Run the benchmarks. Exit codes: 2 for wrong use, 1 for a failed check."""
    try:
        app()
    except (UsageError, CheckFailed) as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(2 if isinstance(error, UsageError) else 1)


if __name__ == "__main__":
    main()
