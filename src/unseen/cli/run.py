"""`unseen run`: run a study, and resume it after any interruption."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from unseen.cli.complete import complete_scale, complete_study
from unseen.cli.output import count_of, exit_when_interrupted, parse_seeds
from unseen.cli.settings import ONLY_HELP, SET_HELP, choose_study
from unseen.cli.track import HELP as TRACK
from unseen.errors import CheckFailed, UsageError

if TYPE_CHECKING:
    from unseen.claims.until_decided import Decision
    from unseen.studies.study import Study
    from unseen.studies.trial import Entry

Executor = Literal["local", "ray", "slurm", "inline"]
Weights = Literal["none", "best", "all"]


def run(
    study: Annotated[
        str,
        typer.Argument(
            help="A study's name (see `unseen studies`), or a YAML or Python file.", autocompletion=complete_study
        ),
    ],
    out: Annotated[Path, typer.Option(help="Results directory; the same study there is resumed or extended.")],
    scale: Annotated[
        str | None,
        typer.Option(help="smoke, mini, small, medium or full (default: mini).", autocompletion=complete_scale),
    ] = None,
    seeds: Annotated[
        str | None, typer.Option(help="Number of seeds (5), a list (0,3,7), or one (7,), if not the study's.")
    ] = None,
    workers: Annotated[int | None, typer.Option(help="Worker processes (default: one per core).")] = None,
    executor: Annotated[
        Executor,
        typer.Option(help="local: processes on this machine; ray: a Ray cluster; slurm: jobs; inline: this process."),
    ] = "local",
    address: Annotated[
        str | None,
        typer.Option(help="ray: address of the cluster (default: start one here); slurm: a YAML file about the jobs."),
    ] = None,
    weights: Annotated[
        Weights, typer.Option(help="Which checkpoints to keep for trials that finish from now on.")
    ] = "none",
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Train failed trials again.")] = False,
    discard_damaged: Annotated[
        bool, typer.Option("--discard-damaged", help="Retrain trials whose checkpoint is damaged.")
    ] = False,
    stack: Annotated[int | None, typer.Option(help="Trials trained as one stack (default: chosen by a probe).")] = None,
    chunk_seconds: Annotated[float, typer.Option(help="Seconds of training between two checkpoints.")] = 60.0,
    device: Annotated[str, typer.Option(help="cpu, or another torch device.")] = "cpu",
    track: Annotated[list[str] | None, typer.Option(help=TRACK)] = None,
    until_decided: Annotated[
        bool, typer.Option("--until-decided", help="Add seeds and steps where they are most likely to decide a claim.")
    ] = False,
    claim: Annotated[
        list[str] | None, typer.Option(help="With --until-decided: only this claim; may be repeated.")
    ] = None,
    hours: Annotated[
        float | None,
        typer.Option(min=0.0, help="With --until-decided: at most this many core-hours, by shipped rates."),
    ] = None,
    reuse: Annotated[
        list[Path] | None,
        typer.Option(help="Take over finished trials from this directory or records file; may be repeated."),
    ] = None,
    extend: Annotated[
        bool, typer.Option("--extend", help="Begin from the records of this study that come with the package.")
    ] = False,
    set: Annotated[list[str] | None, typer.Option("--set", help=SET_HELP)] = None,
    shard: Annotated[
        str | None,
        typer.Option(metavar="I/N", help="Run one of N shards of the study; `unseen merge` joins their directories."),
    ] = None,
    only: Annotated[list[str] | None, typer.Option("--only", metavar="AXIS=LEVEL", help=ONLY_HELP)] = None,
) -> None:
    """Run a study and store its results. It can be stopped or killed at any time and resumed with the same command.

    An interrupted and resumed study ends with the same numbers as an undisturbed one.

    Examples:

    unseen run quickstart --out demo

    unseen run retrieval-table2 --scale mini --out runs/table2

    unseen run ctl-table1 --set preset=released --out runs/table1-released

    unseen run rules-main --only architecture=mlp --only rules=2,8 --out runs/rules-mlp

    unseen run my_study.yaml --out runs/mine --executor ray --address auto

    unseen run retrieval-table2 --out runs/decided --until-decided --hours 2

    unseen run quickstart --seeds 10 --out runs/more --reuse runs/quick
    """
    from unseen.api import run as run_study
    from unseen.cli.option_text import wrap
    from unseen.cli.summary import summarize
    from unseen.studies.study import is_catalogued

    chosen_study, chosen_scale = choose_study(study, scale, set or [], only or [])
    seed_list = None if seeds is None else parse_seeds(seeds)
    with exit_when_interrupted():
        run_study(
            chosen_study,
            out,
            scale=chosen_scale,
            seeds=seed_list,
            workers=workers,
            device=device,
            executor=executor,
            address=address,
            keep=weights,
            retry_failed=retry_failed,
            discard_damaged=discard_damaged,
            stack=stack,
            chunk_seconds=chunk_seconds,
            track=track or (),
            until_decided=until_decided,
            claims=claim or (),
            hours=hours,
            on_decision=_print_decision,
            reuse=reuse or (),
            extend=extend,
            shard=None if shard is None else _parse_shard(shard),
        )
    typer.echo(summarize(out))
    deviations = chosen_study.deviations(chosen_scale, seed_list)
    if deviations:
        title = "differs from the paper" if is_catalogued(chosen_study.name) else "notes and differences"
        typer.echo("\n" + "\n".join(wrap(f"{title}: {'; '.join(deviations)}")), err=True)
    typer.echo(f"all records: unseen results {out}   {suggest_next(chosen_study, out)}", err=True)
    check_failures(out, chosen_study.entries(chosen_scale, seed_list))


def suggest_next(study: Study, out: Path) -> str:
    """What to do with the records: look at verdicts, or at the page where there are no claims to judge."""
    from unseen.claims.user_claims import has_registered

    if study.claims or (study.own_claims and has_registered(out)):
        return f"verdicts: unseen claims {out}"
    if study.own_claims:
        return (
            f"the claims of {study.name} were added after its runs had begun, so they are exploratory: copy them into a "
            f"file of their own (docs/your-claims.md), then unseen claims {out} --file FILE"
        )
    return f"page: unseen report {out}"


def _parse_shard(text: str) -> tuple[int, int]:
    """`2/8` as a pair of numbers."""
    number, slash, count = text.partition("/")
    if not (slash and number.isdecimal() and count.isdecimal()):
        raise UsageError(f"shard '{text}': expected I/N, such as 2/8")
    return int(number), int(count)


def _print_decision(decision: Decision) -> None:
    """Say what was decided at a look, in one line."""
    counts = ", ".join(f"{count} {verdict}" for verdict, count in Counter(decision.verdicts.values()).items())
    text = f"look after {decision.hours:.2f} core-hours: {counts}; "
    if decision.action == "end":
        text += f"end: {decision.reason}"
    else:
        work = f"{decision.units} {decision.unit}s"
        if decision.action == "steps":
            work += f" and {decision.longer} times the steps"
        text += f"next {decision.claim} with {work} (chance to decide {decision.chance:.0%}, {decision.price:.2f} core-hours)"
    typer.echo(text, err=True)


def check_failures(out: Path, entries: Sequence[Entry]) -> None:
    """End with exit code 1 if any of these trials has failed."""
    from unseen.store.store import Store

    with Store.read(out) as store:
        failed = {entry.trial.id for entry in entries} & set(store.failures().trial)
    if failed:
        raise CheckFailed(
            f"{count_of(len(failed), 'trial')} failed. `unseen results {out} --failures` shows why; --retry-failed trains {'it' if len(failed) == 1 else 'them'} again"
        )
