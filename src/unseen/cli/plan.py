"""`unseen plan`: what a study would cost on this machine, before anything is run."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from unseen.cli.complete import complete_scale, complete_study
from unseen.cli.option_text import wrap, wrap_entry
from unseen.cli.output import fit_table, parse_seeds
from unseen.cli.settings import ONLY_HELP, SET_HELP, choose_study
from unseen.errors import UsageError

if TYPE_CHECKING:
    from rich.table import Table

    from unseen.running.plan import Plan, WorkTotals
    from unseen.running.timing import Timing
    from unseen.studies.study import Study
    from unseen.studies.trial import Entry, Trial

CORES = 2
"""The number of cores that a study's stated budget of minutes is for."""
_NARROWEST_NAME = 6
"""Characters to which the name of an axis, a level or a scale is wrapped at the narrowest."""
_PREFIXES = ((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))

Format = Literal["table", "json"]


def plan(
    study: Annotated[
        str,
        typer.Argument(
            help="A study, e.g. retrieval-table2, or your own YAML or Python file.", autocompletion=complete_study
        ),
    ],
    scale: Annotated[
        str | None,
        typer.Option(help="Scale of the study (default: mini, or else its first).", autocompletion=complete_scale),
    ] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Worker processes (default: one per core).")] = None,
    seeds: Annotated[
        str | None, typer.Option(help="Number of seeds (5), a list (0,3,7), or one (7,), if not the study's.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="A results directory: trials that have finished there are not counted.")
    ] = None,
    no_probe: Annotated[
        bool,
        typer.Option("--no-probe", help="Run no training step: estimate from earlier measurements or shipped rates."),
    ] = False,
    format: Annotated[Format, typer.Option(help="Output format.")] = "table",
    set: Annotated[list[str] | None, typer.Option("--set", help=SET_HELP)] = None,
    only: Annotated[list[str] | None, typer.Option("--only", metavar="AXIS=LEVEL", help=ONLY_HELP)] = None,
) -> None:
    """Count the trials, steps and FLOPs of a study, and estimate how long it takes on this machine.

    The time estimate comes from at most 10 short probes of about 20 seconds in total, which are cached. No results are
    stored.

    Examples:

    unseen plan retrieval-table2 --scale small

    unseen plan retrieval-table2 --scale mini --out runs/table2

    unseen plan my_study.yaml --no-probe --format json
    """
    from unseen.running.plan import check_entries
    from unseen.running.provenance import cores
    from unseen.studies.study import is_catalogued

    chosen_study, chosen_scale = choose_study(study, scale, set or [], only or [])
    seed_list = None if seeds is None else parse_seeds(seeds)
    scales = dict.fromkeys([chosen_scale, *chosen_study.scales])
    by_scale = {name: chosen_study.entries(name, seed_list) for name in scales}
    worker_count = workers or cores()
    # The claims of the catalogue are known to be right; checking some loads pandas and SciPy's statistics, which takes seconds.
    if chosen_study.own_claims or not is_catalogued(chosen_study.name):
        from unseen.claims.user_claims import check_study_claims, list_axes

        check_study_claims(chosen_study, list_axes(entry.levels for entry in by_scale[chosen_scale]))
    # Without a probe nothing runs here, so what needs a larger machine is estimated, too.
    check_entries(by_scale[chosen_scale], runnable=not no_probe)
    too_large = {} if no_probe else _drop_too_large(by_scale, chosen_scale)
    timing = _measure_timing(by_scale, chosen_scale, probe=not no_probe)
    report = _make_report(chosen_study, chosen_scale, by_scale, worker_count, timing, out)
    report["other_scales_refused"] = too_large
    report["published"] = is_catalogued(chosen_study.name)
    report["deviations"] = chosen_study.deviations(chosen_scale, seed_list)
    command = ["unseen run", shlex.quote(study), f"--scale {shlex.quote(chosen_scale)}"]
    options = {"out": out or f"runs/{chosen_study.name}-{chosen_scale}", "workers": workers, "seeds": seeds}
    for name, value in options.items():
        if value is not None:
            command.append(f"--{name} {shlex.quote(str(value))}")
    command += [f"--set {shlex.quote(assignment)}" for assignment in set or []]
    command += [f"--only {shlex.quote(assignment)}" for assignment in only or []]
    report["command"] = " ".join(command)
    if format == "json":
        typer.echo(json.dumps(report, indent=1, ensure_ascii=False))
    else:
        _print_report(report)


def _drop_too_large(by_scale: dict[str, list[Entry]], chosen: str) -> dict[str, str]:
    """Take out the other scales that this machine can't run; returns why, by scale."""
    from unseen.running.plan import check_entries

    reasons = {}
    for scale in [name for name in by_scale if name != chosen]:
        try:
            check_entries(by_scale[scale])
        except UsageError as error:
            reasons[scale] = str(error)
            del by_scale[scale]
    return reasons


def format_flops(flops: float) -> str:
    """A number of floating-point operations with a metric prefix.

    >>> format_flops(1.3e15), format_flops(4.25e6), format_flops(12)
    ('1.3 PFLOP', '4.2 MFLOP', '12 FLOP')
    """
    for size, prefix in _PREFIXES:
        if flops >= size:
            return f"{flops / size:.1f} {prefix}FLOP"
    return f"{flops:.0f} FLOP"


def _measure_timing(by_scale: dict[str, list[Entry]], scale: str, probe: bool) -> Timing:
    """Probe the chosen scale first, and the other scales with the probes that remain."""
    from rich.console import Console

    from unseen.running.timing import Timing

    trials, others = _split_trials(by_scale, scale)
    if not probe:
        return Timing.measure(trials, also=others, probes=0)
    with Console(stderr=True).status("measuring") as status:
        return Timing.measure(trials, also=others, on_probe=status.update)


def _split_trials(by_scale: dict[str, list[Entry]], scale: str) -> tuple[list[Trial], list[Trial]]:
    """The trials of the chosen scale, and the trials of all other scales."""
    others: list[Trial] = []
    for name, entries in by_scale.items():
        if name != scale:
            others += [entry.trial for entry in entries]
    return [entry.trial for entry in by_scale[scale]], others


def _make_report(
    study: Study, scale: str, by_scale: dict[str, list[Entry]], workers: int, timing: Timing, out: Path | None
) -> dict[str, Any]:
    """The whole plan as plain data: the output of `--format json`, and the source of the table."""
    from unseen.running.plan import plan as make_plan
    from unseen.running.rates import shipped_rates

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
    report["workloads"] = list(timing.measured(entry.trial for entry in entries))
    report["rates"] = "" if timing.measured_any else shipped_rates().machine
    report["levels"] = {}
    for axis, totals in remaining.levels.items():
        report["levels"][axis] = {str(level): _total_figures(total) for level, total in totals.items()}
    report["other_scales"] = {}
    for other, entries in by_scale.items():
        if other != scale:
            report["other_scales"][other] = _plan_figures(make_plan(entries, workers, timing))
    return report


def _plan_remaining(entries: list[Entry], workers: int, timing: Timing, out: Path) -> tuple[Plan, int]:
    """The plan of what a results directory does not have yet, and the number of trials that failed there."""
    from unseen.running.plan import plan as make_plan
    from unseen.running.plan import shares_done
    from unseen.store.schema import FILE
    from unseen.store.store import Store

    if out.exists() and not out.is_dir():
        raise UsageError(f"{out} is a file; give the results directory of a run")
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
        "memory_bytes": round(plan.memory),
        "workers": plan.workers,
        "wall_seconds": plan.wall_seconds,
        "at_most": plan.at_most,
    }


def _print_report(report: dict[str, Any]) -> None:
    from rich.console import Console

    console = Console(highlight=False, markup=False, soft_wrap=True)
    console.print(f"{report['study']}, scale {report['scale']}", style="bold")
    console.print("\n".join(wrap(report["question"])) + "\n")
    for title, text in _summary_lines(report):
        console.print("\n".join(wrap_entry(title, text, 10, "")))
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
            console.print(_make_table(rows, console.width, console.is_terminal))
    for scale, reason in report["other_scales_refused"].items():
        console.print("\n" + "\n".join(wrap(f"scale {scale} can't be run here: {reason}")))
    if report["deviations"]:
        console.print("\ndifferences from the paper:" if report["published"] else "\nnotes and differences:")
        for deviation in report["deviations"]:
            console.print("\n".join(wrap(f"- {deviation}", hanging="  ")))
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
        ("memory", _format_memory(report)),
        ("time", _format_time(report)),
    ]
    measured, workloads = report["workloads"]
    source = f"measured on {measured} of {workloads} workload{'s' * (workloads > 1)}"
    if report["rates"]:
        source = f"not measured here: by the rates of another machine ({report['rates']})"
    lines.append(("", f"start-up, data, steps, validations, evaluation of best and last weights; {source}"))
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


def _format_memory(figures: dict[str, Any]) -> str:
    from unseen.memory import format_bytes, memory_limit

    workers = f"{figures['workers']} worker{'s' * (figures['workers'] > 1)}"
    needed = figures["memory_bytes"]
    total = needed * figures["workers"]
    text = f"about {format_bytes(needed)} for the largest stack, {format_bytes(total)} with {workers}"
    if total > memory_limit():
        text += f": MORE than the {format_bytes(memory_limit())} of this machine (--workers, --stack)"
    return text


def _format_time(figures: dict[str, Any]) -> str:
    from unseen.running.progress import duration

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


def _make_table(rows: list[dict[str, str]], width: int, terminal: bool) -> Table | str:
    """A table in which names are wrapped and no figure is cut; in a terminal too narrow for that, blocks of lines."""
    from rich import box
    from rich.table import Table

    names = [title for title in rows[0] if title in ("axis", "level", "other scale")]
    gap = 3 if terminal else 2
    room = width - _NARROWEST_NAME * len(names)
    for title in rows[0]:
        if title not in names:
            room -= gap + max(len(title), *(len(row[title]) for row in rows))
    if room < 0:
        return "\n".join(fit_table([list(rows[0]), *(list(row.values()) for row in rows)], len(names), width))
    table = Table(box=box.SIMPLE if terminal else None, pad_edge=False)
    for title in rows[0]:
        is_name = title in names
        table.add_column(title, justify="left" if is_name else "right", no_wrap=not is_name)
    for row in rows:
        table.add_row(*row.values())
    return table
