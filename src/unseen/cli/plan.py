"""`unseen plan`: what a study would cost on this machine, before anything is run."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from unseen.cli.output import parse_seeds

if TYPE_CHECKING:
    from rich.table import Table

    from unseen.running.plan import Plan, WorkTotals
    from unseen.running.timing import Timing
    from unseen.studies.study import Study
    from unseen.studies.trial import Entry, Trial

CORES = 2
"""The number of cores that a study's stated budget of minutes is for."""
_PREFIXES = ((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))

Format = Literal["table", "json"]


def plan(
    study: Annotated[str, typer.Argument(help="A study, e.g. retrieval-table2, or your own YAML or Python file.")],
    scale: Annotated[str | None, typer.Option(help="Scale of the study (default: mini, or else its first).")] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Worker processes (default: one per core).")] = None,
    seeds: Annotated[
        str | None, typer.Option(help="Number of seeds (5) or a list (0,3,7), if not the study's.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="A results directory: trials that have finished there are not counted.")
    ] = None,
    no_probe: Annotated[
        bool, typer.Option("--no-probe", help="Run no training step; estimate the time from earlier measurements only.")
    ] = False,
    format: Annotated[Format, typer.Option(help="Output format.")] = "table",
) -> None:
    """Count the trials, steps and FLOPs of a study, and estimate how long it takes on this machine.

    The time estimate comes from at most 10 short probes of about 20 seconds in total, which are cached. No results are
    stored.

    Examples:

    unseen plan retrieval-table2 --scale small

    unseen plan retrieval-table2 --scale mini --out runs/table2

    unseen plan my_study.yaml --no-probe --format json
    """
    from unseen.running.provenance import cores
    from unseen.studies.study import study as find_study

    chosen_study = find_study(study)
    chosen_scale = scale or chosen_study.default_scale
    seed_list = None if seeds is None else parse_seeds(seeds)
    scales = dict.fromkeys([chosen_scale, *chosen_study.scales])
    by_scale = {name: chosen_study.entries(name, seed_list) for name in scales}
    worker_count = workers or cores()
    timing = _cached_timing(by_scale, chosen_scale) if no_probe else _measure_timing(by_scale, chosen_scale)
    report = _make_report(chosen_study, chosen_scale, by_scale, worker_count, timing, out)
    report["deviations"] = chosen_study.deviations(chosen_scale, seed_list)
    command = ["unseen run", shlex.quote(study), f"--scale {shlex.quote(chosen_scale)}"]
    options = {"out": out or f"runs/{chosen_study.name}-{chosen_scale}", "workers": workers, "seeds": seeds}
    for name, value in options.items():
        if value is not None:
            command.append(f"--{name} {shlex.quote(str(value))}")
    report["command"] = " ".join(command)
    if format == "json":
        typer.echo(json.dumps(report, indent=1, ensure_ascii=False))
    else:
        _print_report(report)


def format_flops(flops: float) -> str:
    """A number of floating-point operations with a metric prefix.

    >>> format_flops(1.3e15), format_flops(4.25e6), format_flops(12)
    ('1.3 PFLOP', '4.2 MFLOP', '12 FLOP')
    """
    for size, prefix in _PREFIXES:
        if flops >= size:
            return f"{flops / size:.1f} {prefix}FLOP"
    return f"{flops:.0f} FLOP"


def _measure_timing(by_scale: dict[str, list[Entry]], scale: str) -> Timing:
    """Probe the chosen scale first, and the other scales with the probes that remain."""
    from rich.console import Console

    from unseen.running.timing import Timing

    trials, others = _split_trials(by_scale, scale)
    with Console(stderr=True).status("measuring") as status:
        return Timing.measure(trials, also=others, on_probe=status.update)


def _cached_timing(by_scale: dict[str, list[Entry]], scale: str) -> Timing | None:
    """Times from earlier measurements; None if there are none for the chosen scale."""
    from unseen.running.timing import Timing

    trials, others = _split_trials(by_scale, scale)
    timing = Timing.measure(trials, also=others, probes=0)
    return timing if timing.measured(trials)[0] else None


def _split_trials(by_scale: dict[str, list[Entry]], scale: str) -> tuple[list[Trial], list[Trial]]:
    """The trials of the chosen scale, and the trials of all other scales."""
    others = [entry.trial for name, entries in by_scale.items() if name != scale for entry in entries]
    return [entry.trial for entry in by_scale[scale]], others


def _make_report(
    study: Study, scale: str, by_scale: dict[str, list[Entry]], workers: int, timing: Timing | None, out: Path | None
) -> dict[str, Any]:
    """The whole plan as plain data: the output of `--format json`, and the source of the table."""
    from unseen.running.plan import plan as make_plan

    entries = by_scale[scale]
    whole = make_plan(entries, workers, timing)
    on_two_cores = whole if workers == CORES else make_plan(entries, CORES, timing)
    minutes = study.scales[scale]
    report = {
        "study": f"{study.name}@{study.version}",
        "scale": scale,
        "question": study.question,
        **_plan_figures(whole),
        "budget_seconds": None if minutes is None else 60 * minutes,
        "seconds_on_two_cores": on_two_cores.wall_seconds,
    }
    remaining = whole
    if out is not None:
        remaining, failed = _plan_remaining(entries, workers, timing, out)
        report["left"] = {"directory": str(out), "failed": failed, **_plan_figures(remaining)}
    report["workloads"] = None if timing is None else list(timing.measured(entry.trial for entry in entries))
    report["levels"] = {}
    for axis, totals in remaining.levels.items():
        report["levels"][axis] = {str(level): _total_figures(total) for level, total in totals.items()}
    report["other_scales"] = {
        other: _plan_figures(make_plan(by_scale[other], workers, timing)) for other in study.scales if other != scale
    }
    return report


def _plan_remaining(entries: list[Entry], workers: int, timing: Timing | None, out: Path) -> tuple[Plan, int]:
    """The plan of what a results directory does not have yet, and the number of trials that failed there."""
    from unseen.running.plan import plan as make_plan
    from unseen.running.plan import shares_done
    from unseen.store.schema import FILE
    from unseen.store.store import Store

    if not (out / FILE).is_file():  # nothing has been run there
        return make_plan(entries, workers, timing), 0
    with Store.read(out) as store:
        done = shares_done(store, entries)
        status = store.status()
    failed = sum(status.get(entry.trial.id) == "failed" for entry in entries)
    return make_plan(entries, workers, timing, done), failed


def _total_figures(totals: WorkTotals) -> dict[str, Any]:
    return {
        "trials": totals.trials,
        "ended": totals.ended,
        "steps": totals.steps,
        "flops": totals.flops,
        "core_seconds": totals.seconds,
    }


def _plan_figures(plan: Plan) -> dict[str, Any]:
    return {
        **_total_figures(plan.whole),
        "stacks": plan.stacks,
        "parameters": list(plan.parameters),
        "workers": plan.workers,
        "wall_seconds": plan.wall_seconds,
        "at_most": plan.at_most,
    }


def _print_report(report: dict[str, Any]) -> None:
    from rich.console import Console

    console = Console(highlight=False, markup=False, soft_wrap=True)
    console.print(f"{report['study']}, scale {report['scale']}", style="bold")
    console.print(report["question"] + "\n")
    for title, text in _summary_lines(report):
        console.print(f"{title:<11} {text}")
    level_rows = []
    for axis, levels in report["levels"].items():
        for level, figures in levels.items():
            level_rows.append({"axis": axis, "level": level, **_format_figures(figures, "left" in report)})
    scale_rows = []
    for scale, figures in report["other_scales"].items():
        scale_rows.append({"other scale": scale, "stacks": f"{figures['stacks']:,}", **_format_figures(figures)})
    for rows in (level_rows, scale_rows):
        if rows:
            console.print()
            console.print(_make_table(rows, console.is_terminal))
    if report["deviations"]:
        console.print("\ndifferences from the paper:")
        for deviation in report["deviations"]:
            console.print(f"- {deviation}")
    console.print(f"\n{report['command']}")


def _summary_lines(report: dict[str, Any]) -> list[tuple[str, str]]:
    from unseen.running.progress import duration

    smallest, largest = report["parameters"]
    parameters = f"{smallest:,}" if smallest == largest else f"{smallest:,} to {largest:,}"
    lines = [
        ("trials", f"{report['trials']:,} in {report['stacks']:,} stacks"),
        ("parameters", f"{parameters} per model"),
        ("steps", f"{report['steps']:,}"),
        ("FLOPs", f"{format_flops(report['flops'])} in training"),
        ("time", _format_time(report)),
    ]
    if report["workloads"]:
        measured, workloads = report["workloads"]
        lines.append(
            (
                "",
                "start-up, data, steps, validations, evaluation of best and last weights; measured on "
                f"{measured} of {workloads} workload{'s' * (workloads > 1)}",
            )
        )
    budget = report["budget_seconds"]
    if budget is not None:
        text = f"{duration(budget)} on two cores"
        estimate = report["seconds_on_two_cores"]
        if estimate is not None:
            bound = "at most " if report["at_most"] else ""
            text += f"; estimated {bound}{duration(estimate)}: {'fits' if estimate <= budget else 'DOES NOT FIT'}"
        lines.append(("budget", text))
    if "left" in report:
        remaining = report["left"]
        failed = f", {remaining['failed']} of them failed (--retry-failed tries again)" if remaining["failed"] else ""
        lines += [
            ("ended", f"{remaining['ended']} of {remaining['trials']} trials in {remaining['directory']}{failed}"),
            ("left", f"{remaining['steps']:,} steps, {format_flops(remaining['flops'])}, {_format_time(remaining)}"),
        ]
    return lines


def _format_time(figures: dict[str, Any]) -> str:
    from unseen.running.progress import duration

    if figures["wall_seconds"] is None:
        return "not estimated (--no-probe, and there are no earlier measurements)"
    workers = f"{figures['workers']} worker{'s' * (figures['workers'] > 1)}"
    wall = duration(figures["wall_seconds"])
    text = f"{wall} with {workers}, {duration(figures['core_seconds'])} of one core"
    return f"at most {text}; trials may stop early" if figures["at_most"] else text


def _format_figures(figures: dict[str, Any], remaining: bool = False) -> dict[str, str]:
    """The columns of a table; if they are about what remains to be done, their titles say so."""
    from unseen.running.progress import duration

    row = {"trials": f"{figures['trials']:,}"}
    if remaining:
        row["ended"] = f"{figures['ended']:,}"
    costs = {"steps": f"{figures['steps']:,}", "FLOPs": format_flops(figures["flops"])}
    if figures["core_seconds"] is not None:
        costs["core time"] = duration(figures["core_seconds"])
    if figures.get("wall_seconds") is not None:
        costs["time"] = duration(figures["wall_seconds"])
    for name, text in costs.items():
        row[f"{name} left" if remaining else name] = text
    return row


def _make_table(rows: list[dict[str, str]], terminal: bool) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE if terminal else None, pad_edge=False)
    for title in rows[0]:
        table.add_column(title, justify="left" if title in ("axis", "level", "other scale") else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row.values())
    return table
