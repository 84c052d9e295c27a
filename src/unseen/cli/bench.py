"""`unseen bench`: how fast it is here, and against an earlier run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from unseen.cli.output import check_folder, write
from unseen.errors import UsageError


def bench(
    names: Annotated[list[str] | None, typer.Argument(help="Which benchmarks (default: all).")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the figures to a file.")] = None,
    against: Annotated[Path | None, typer.Option(help="Compare with the figures in a file.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Few rounds of the smallest cases: does it run?")] = False,
) -> None:
    """Run benchmarks: ratios inside one run, one thread, medians.

    Examples:

    unseen bench generator

    unseen bench --json mine.json

    unseen bench --against mine.json
    """
    from unseen.benchmarks import BENCHMARKS
    from unseen.studies.provenance import provenance

    chosen = [BENCHMARKS.entry(name).name for name in names] if names else [entry.name for entry in BENCHMARKS]
    check_folder(json_file)
    before = _read(against) if against else {}
    figures: dict[str, list[dict[str, Any]]] = {}
    for name in chosen:
        typer.echo(f"{name}:")
        run: Any = BENCHMARKS.load(name)
        figures[name] = []
        for row in run(quick=quick):
            figures[name].append(row)
            typer.echo("  " + "  ".join(f"{k} {v}" for k, v in row.items()) + _change(row, before.get(name, [])))
    if json_file is not None:
        write(json.dumps({"machine": provenance(), "figures": figures}, indent=1), json_file)


def _read(path: Path) -> dict[str, list[dict[str, Any]]]:
    try:
        found: dict[str, list[dict[str, Any]]] = json.loads(path.read_text())["figures"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{path} holds no figures of `unseen bench --json`: {error}") from error
    return found


def _change(row: dict[str, Any], before: list[dict[str, Any]]) -> str:
    """The last figure of a row (the headline) as a multiple of the same row's earlier one."""
    *keys, headline = row
    same = [b for b in before if all(b.get(k) == row[k] for k in keys if not isinstance(row[k], float))]
    return f"  ({row[headline] / same[0][headline]:.2f}× before)" if same and same[0].get(headline) else ""
