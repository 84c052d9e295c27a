"""`unseen plan`: what a study would cost here, before anything is run."""

from __future__ import annotations

import json
import shlex
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unseen.cli.train import seed_numbers

if TYPE_CHECKING:
    from rich.table import Table

    from unseen.studies.cell import Cell
    from unseen.studies.plan import Plan, Tally
    from unseen.studies.rates import Rates
    from unseen.studies.study import Entry, Study

CORES = 2
"""What the stated budgets are for."""
_PREFIXES = ((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


class Format(StrEnum):
    """How to print a plan."""

    table = "table"
    json = "json"


def plan(
    study: Annotated[str, typer.Argument(help="A study, e.g. retrieval-table2, or your own YAML or Python file.")],
    scale: Annotated[str | None, typer.Option(help="How much of it (default: mini, or else its first).")] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Worker processes (default: one per core).")] = None,
    seeds: Annotated[str | None, typer.Option(help="How many seeds, or which (0,3,7), instead of the study's.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="A directory of results: what is finished there is not counted.")
    ] = None,
    no_probe: Annotated[
        bool, typer.Option("--no-probe", help="No training step: count, and no time but by what was measured before.")
    ] = False,
    format: Annotated[Format, typer.Option(help="For people, or for programs.")] = Format.table,
) -> None:
    """Count cells, steps and operations of a study, and estimate its time on this machine; nothing is kept.

    The time comes from at most 10 short probes, about 20 seconds in all, by as many processes as there are workers;
    they are remembered.

    Examples:

    unseen plan retrieval-table2 --scale small

    unseen plan retrieval-table2 --scale mini --out runs/table2

    unseen plan my_study.yaml --no-probe --format json
    """
    from unseen.studies.provenance import cores
    from unseen.studies.study import study as find

    found = find(study)
    chosen = scale or found.default_scale
    numbers = None if seeds is None else seed_numbers(seeds)
    by_scale = {name: found.entries(name, numbers) for name in dict.fromkeys([chosen, *found.scales])}
    count = workers or cores()
    rates = _known(by_scale, chosen) if no_probe else _measure(by_scale, chosen, count)
    report = _report(found, chosen, by_scale, count, rates, out)
    report["deviations"] = found.deviations(chosen, numbers)
    options = {"scale": chosen, "out": out or f"runs/{found.name}-{chosen}", "workers": workers, "seeds": seeds}
    given = [f"--{name} {shlex.quote(str(value))}" for name, value in options.items() if value is not None]
    report["command"] = " ".join(["unseen run", shlex.quote(study), *given])
    if format is Format.json:
        typer.echo(json.dumps(report, indent=1, ensure_ascii=False))
    else:
        _print(report)


def operations(flops: float) -> str:
    """A number of floating-point operations for people.

    >>> operations(1.3e15), operations(4.25e6), operations(12)
    ('1.3 PFLOP', '4.2 MFLOP', '12 FLOP')
    """
    for size, prefix in _PREFIXES:
        if flops >= size:
            return f"{flops / size:.1f} {prefix}FLOP"
    return f"{flops:.0f} FLOP"


def _measure(by_scale: dict[str, list[Entry]], chosen: str, workers: int) -> Rates:
    """Rates for the chosen scale first, for the others with what is left of the probes."""
    from rich.console import Console

    from unseen.studies.provenance import cores
    from unseen.studies.rates import Rates

    cells, also = _cells(by_scale, chosen)
    with Console(stderr=True).status("measuring") as status:
        return Rates.measure(cells, also=also, workers=min(workers, cores(), len(cells)), on_probe=status.update)


def _known(by_scale: dict[str, list[Entry]], chosen: str) -> Rates | None:
    """The rates that were measured before; None where there are none for the chosen scale."""
    from unseen.studies.rates_cache import RatesCache

    if not RatesCache().known:
        return None
    from unseen.studies.rates import Rates  # loads much

    cells, also = _cells(by_scale, chosen)
    rates = Rates.measure(cells, also=also, probes=0)
    return rates if rates.measured(cells)[0] else None


def _cells(by_scale: dict[str, list[Entry]], chosen: str) -> tuple[list[Cell], list[Cell]]:
    """The cells of the chosen scale, and those of the others."""
    others = [entry.cell for other, entries in by_scale.items() if other != chosen for entry in entries]
    return [entry.cell for entry in by_scale[chosen]], others


def _report(
    study: Study, chosen: str, by_scale: dict[str, list[Entry]], workers: int, rates: Rates | None, out: Path | None
) -> dict[str, Any]:
    """Everything there is to say, as plain data."""
    from unseen.studies.plan import plan as make

    entries = by_scale[chosen]
    whole = make(entries, workers, rates)
    in_budget = whole if workers == CORES else make(entries, CORES, rates)
    minutes = study.scales[chosen]
    report = {
        "study": f"{study.name}@{study.version}",
        "scale": chosen,
        "question": study.question,
        **_plain(whole),
        "budget_seconds": None if minutes is None else 60 * minutes,
        "seconds_on_two_cores": in_budget.wall_seconds,
    }
    left = whole
    if out is not None:
        left, failed = _left(entries, workers, rates, out)
        report["left"] = {"directory": str(out), "failed": failed, **_plain(left)}
    report["kinds"] = None if rates is None else list(rates.measured(e.cell for e in entries))
    report["levels"] = {
        axis: {str(level): _amounts(tally) for level, tally in levels.items()} for axis, levels in left.levels.items()
    }
    report["other_scales"] = {
        other: _plain(make(by_scale[other], workers, rates)) for other in study.scales if other != chosen
    }
    return report


def _left(entries: list[Entry], workers: int, rates: Rates | None, out: Path) -> tuple[Plan, int]:
    """What a directory has not yet, and how many cells have failed there."""
    from unseen.studies.database import FILE
    from unseen.studies.plan import plan as make
    from unseen.studies.plan import shares_done
    from unseen.studies.store import Store

    if not (out / FILE).is_file():  # nothing was run yet
        return make(entries, workers, rates), 0
    with Store.read(out) as store:
        done, status = shares_done(store, entries), store.status()
    return make(entries, workers, rates, done), sum(status.get(e.cell.id) == "failed" for e in entries)


def _amounts(tally: Tally) -> dict[str, Any]:
    return {
        "cells": tally.cells,
        "ended": tally.ended,
        "steps": tally.steps,
        "flops": tally.flops,
        "core_seconds": tally.seconds,
    }


def _plain(plan: Plan) -> dict[str, Any]:
    return {
        **_amounts(plan.whole),
        "stacks": plan.stacks,
        "parameters": list(plan.parameters),
        "workers": plan.workers,
        "wall_seconds": plan.wall_seconds,
        "at_most": plan.at_most,
    }


def _print(report: dict[str, Any]) -> None:
    from rich.console import Console

    console = Console(highlight=False, markup=False, soft_wrap=True)
    console.print(f"{report['study']}, scale {report['scale']}", style="bold")
    console.print(report["question"] + "\n")
    for title, text in _lines(report):
        console.print(f"{title:<11} {text}")
    levels = [
        {"axis": axis, "level": level, **_words(amounts, "left" in report)}
        for axis, found in report["levels"].items()
        for level, amounts in found.items()
    ]
    scales = [
        {"other scale": scale, "stacks": f"{amounts['stacks']:,}", **_words(amounts)}
        for scale, amounts in report["other_scales"].items()
    ]
    for rows in (levels, scales):
        if rows:
            console.print()
            console.print(_table(rows, console.is_terminal))
    if report["deviations"]:
        console.print("\n".join(["", "differs from the paper:", *(f"- {said}" for said in report["deviations"])]))
    console.print(f"\n{report['command']}")


def _lines(report: dict[str, Any]) -> list[tuple[str, str]]:
    from unseen.studies.progress import duration

    few, many = report["parameters"]
    lines = [
        ("cells", f"{report['cells']:,} in {report['stacks']:,} stacks"),
        ("parameters", f"{few:,}" + ("" if few == many else f" to {many:,}") + " per model"),
        ("steps", f"{report['steps']:,}"),
        ("operations", f"{operations(report['flops'])} in training"),
        ("time", _time(report)),
        *([("", _contents(*report["kinds"]))] if report["kinds"] else []),
    ]
    budget, estimated, left = report["budget_seconds"], report["seconds_on_two_cores"], report.get("left")
    if budget is not None:
        bound = "at most " if report["at_most"] else ""
        verdict = (
            ""
            if estimated is None
            else f"; estimated {bound}{duration(estimated)}: " + ("fits" if estimated <= budget else "DOES NOT FIT")
        )
        lines.append(("budget", f"{duration(budget)} on two cores{verdict}"))
    if left is not None:
        failed = f", {left['failed']} of them failed (--retry-failed tries again)" if left["failed"] else ""
        lines += [
            ("ended", f"{left['ended']} of {left['cells']} cells in {left['directory']}{failed}"),
            ("left", f"{left['steps']:,} steps, {operations(left['flops'])}, {_time(left)}"),
        ]
    return lines


def _time(plan: dict[str, Any]) -> str:
    from unseen.studies.progress import duration

    if plan["wall_seconds"] is None:
        return "not estimated (--no-probe, and nothing was measured before)"
    workers = f"{plan['workers']} worker{'s' if plan['workers'] > 1 else ''}"
    bound, early = ("at most ", "; cells may stop early") if plan["at_most"] else ("", "")
    wall, core = duration(plan["wall_seconds"]), duration(plan["core_seconds"])
    return f"{bound}{wall} with {workers}, {core} of one core{early}"


def _contents(measured: int, kinds: int) -> str:
    """What an estimate is made of.

    >>> _contents(2, 3)
    'start, data, steps, validations, evaluation of best and last; measured on 2 of 3 kinds of step'
    """
    return (
        "start, data, steps, validations, evaluation of best and last; measured on "
        f"{measured} of {kinds} kind{'s' if kinds > 1 else ''} of step"
    )


def _words(amounts: dict[str, Any], left: bool = False) -> dict[str, str]:
    """The columns of a table; those of what is left say so."""
    from unseen.studies.progress import duration

    row = {"cells": f"{amounts['cells']:,}"} | ({"ended": f"{amounts['ended']:,}"} if left else {})
    costs = {"steps": f"{amounts['steps']:,}", "FLOPs": operations(amounts["flops"])}
    if amounts["core_seconds"] is not None:
        costs["core time"] = duration(amounts["core_seconds"])
    if amounts.get("wall_seconds") is not None:
        costs["time"] = duration(amounts["wall_seconds"])
    return row | {f"{name} left" if left else name: text for name, text in costs.items()}


def _table(rows: list[dict[str, str]], terminal: bool) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE if terminal else None, pad_edge=False)
    for title in rows[0]:
        table.add_column(title, justify="left" if title in ("axis", "level", "other scale") else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row.values())
    return table
