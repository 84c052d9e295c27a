"""The quickstart: can a Transformer tell "a before b" from "b before a", and which of its components does the work?

The study `quickstart` of the catalogue: task T6 at length 5 with 8 features (an opaque query stands for an ordered pair of
them), the four ablations of the retrieval paper's Transformer, five seeds each, one worker process per core.

    python examples/quickstart.py --out demo        about 3 minutes on two cores

Expected: without positions and self-attention the model can't see order and stays below the order-blind ceiling (0.75);
positions alone bring it to about 0.89, self-attention alone to about 0.98. Stop it and run it again: it continues. Run it
once more: it only draws the figure.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path

import unseen
from unseen.claims.judge_studies import judge_store
from unseen.claims.render import describe_coverage
from unseen.report.data import Source
from unseen.report.export import save
from unseen.report.figures import figure
from unseen.running.runner import Interrupted
from unseen.stats import mean_interval
from unseen.store.store import Store
from unseen.studies.study import study
from unseen.tasks.base import Task

SPLIT = "ood/single"
SHORTCUTS = {
    "one feature: a present": "one feature",
    "a pair complete, order ignored": "order-blind",
    "position of a": "one position",
}


def references(task: Task) -> dict[str, float]:
    """How far shortcuts lead, measured on the test data."""
    examples = task.sample(SPLIT, 10_000, data_seed="test")
    rules = {s.name: float((s.answer(examples) == examples.targets).mean()) for s in task.shortcuts(SPLIT)}
    return {"chance": task.spec.target.chance} | {short: rules[name] for name, short in SHORTCUTS.items()}


def main() -> None:
    """Run the study, print the table, draw the picture, write the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("demo"))
    parser.add_argument("--scale", default="mini", help="smoke (seconds, nothing is learned) or mini")
    parser.add_argument("--workers", type=int, help="worker processes (default: one per core)")
    given = parser.parse_args()
    began = time.monotonic()
    quickstart = study("quickstart")
    first = quickstart.entries(given.scale)[0].trial
    print(f"{quickstart.question}\n\n{first.task.describe(first.task.sample(SPLIT, 1), 0)}\n", flush=True)
    try:
        records = unseen.run(quickstart, given.out, scale=given.scale, workers=given.workers)
    except Interrupted as stopped:
        print(f"{stopped}.", file=sys.stderr)
        sys.exit(130)
    with Store.read(given.out) as store:
        if len(store.failures()):
            sys.exit(f"{len(store.failures())} trials failed: unseen results {given.out} --failures")

    scores = records.query("split == @SPLIT and selection == 'best' and metric == 'accuracy' and factor == ''")
    scores = scores[scores.scale == given.scale][["variant", "seed", "value", "not_converged"]]
    scores = scores.assign(not_converged=scores.not_converged == 1)
    print(f"accuracy on {SPLIT} ({first.task.splits[SPLIT].summary}), weights best on validation\n")
    print(f"{'model':<11}{'mean':>6}  {'95 % interval':<15}  every seed")
    for variant, runs in scores.groupby("variant", sort=False):
        bounds = mean_interval(runs.value, covers="initialisation and data")
        each = " ".join(f"{value:.3f}" for value in runs.value)
        rising = ", ".join(map(str, runs.seed[runs.not_converged]))
        span = f"[{bounds.low:.3f}, {bounds.high:.3f}]" if len(runs) >= 3 else "needs 3 seeds"
        print(
            f"{variant:<11}{runs.value.mean():>6.3f}  {span:<15}  {each}"
            + (f"   not converged: {rising}" if rising else "")
        )
    lines, seeds = references(first.task), scores.seed.nunique()
    print("\n" + "   ".join(f"{name} {value:.3f}" for name, value in lines.items()))
    print("intervals cover initialisation and data" + ("; indicative, fewer than 10 seeds" if seeds < 10 else ""))
    print("deviates from the paper: " + "; ".join(quickstart.deviations(given.scale)))

    picture = replace(figure("seeds"), title="Does a Transformer know what came first?")
    drawing = picture.draw(Source.read(given.out, given.scale))
    assert drawing is not None
    subtitle = [
        "T6, length 5, 8 features: “did a occur before b?” behind an opaque query. Every dot is a seed, hollow if not",
        f"converged; bars are 95 % intervals over {seeds} seeds. {first.recipe.steps} steps of batch "
        f"{first.recipe.batch} (the paper: 1 000 000 of 10).",
    ]
    files = [save(picture, drawing, given.out / f"quickstart.{kind}", subtitle) for kind in ("png", "svg", "json")]
    files.append(unseen.report(given.out, given.out / "report.html", scale=given.scale))
    for verdict in judge_store(given.out).verdicts:
        if verdict.verdict != "not run" and verdict.scale == given.scale:
            print(
                f"\n{verdict.claim.name}: {verdict.verdict} ({describe_coverage(verdict)}). {verdict.claim.statement}"
            )
    print(f"\nwritten: {', '.join(str(f) for f in files)}   ({time.monotonic() - began:.0f} s)")
    print(f"open {files[-1]} in a browser; all records: unseen results {given.out}")


if __name__ == "__main__":
    main()
