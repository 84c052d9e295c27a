"""The quickstart: can a Transformer tell "a before b" from "b before a", and which part of it does the work?

Task T6 at length 5 (an opaque query stands for an ordered pair of features), the four ablations of the retrieval
paper's Transformer, five seeds each, two worker processes.

    python examples/quickstart.py --out demo        about 3 minutes on two cores

Expected: without positions and without self-attention the model can't see order and stays near the order-blind ceiling
or below it; with both it goes well beyond. Run it again and it only reads what it finished.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

import pandas as pd

import unseen
from unseen.randomness import stream
from unseen.report.figures import every_seed, save
from unseen.stats import bootstrap

TASK = {"name": "retrieval/T6", "length": 5}
VARIANTS = {
    "T−Pos−Att": {"positions": "none", "self_attention": False},
    "T+Pos−Att": {"positions": "sinusoidal", "self_attention": False},
    "T−Pos+Att": {"positions": "none", "self_attention": True},
    "T+Pos+Att": {"positions": "sinusoidal", "self_attention": True},
}
CONDITION = "ood/single"


def train(variant: str, out: Path, seeds: int, steps: int) -> unseen.Runs:
    """All seeds of one variant, as one stack."""
    model = unseen.model("retrieval-transformer", **VARIANTS[variant])
    return unseen.train(unseen.task(**TASK), model, seeds=seeds, steps=steps, validate_every=100,
                        out=out / variant.replace("−", "-"), progress="lines")


def train_all(out: Path, seeds: int, steps: int, workers: int) -> None:
    """Every variant in its own process; the costly ones first, so that the workers end together."""
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        begun = {pool.submit(train, v, out, seeds, steps): v for v in reversed(VARIANTS)}
        try:
            for done in as_completed(begun):
                accuracies = done.result().accuracy(CONDITION)
                print(f"  {begun[done]}: {' '.join(f'{a:.3f}' for a in accuracies)}", flush=True)
        except KeyboardInterrupt:
            pool.shutdown(wait=True, cancel_futures=True)
            print(f"\nstopped; everything so far is in {out}. The same command goes on from there.")
            sys.exit(130)


def references() -> dict[str, float]:
    """What can be had without doing the task: measured on the test data, not typed in."""
    task = unseen.task(**TASK)
    examples = task.sample(CONDITION, 10_000, data_seed="test")
    rules = {s.name: float((s.answer(examples) == examples.targets).mean()) for s in task.shortcuts(CONDITION)}
    names = {"one feature: a present": "one feature", "a pair complete, order ignored": "order-blind",
             "position of a": "one position"}
    return {"chance": task.spec.target.chance} | {short: rules[name] for name, short in names.items()}


def main() -> None:
    """Train, print the table, draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("demo"))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=2_000)
    parser.add_argument("--workers", type=int, default=min(2, os.cpu_count() or 1))
    given = parser.parse_args()
    began = time.monotonic()
    task = unseen.task(**TASK)
    print(f"{task.name}, length {TASK['length']}: {len(VARIANTS)} models × {given.seeds} seeds, {given.steps} steps\n")
    print(task.describe(task.sample(CONDITION, 1), 0), "\n")
    train_all(given.out, given.seeds, given.steps, given.workers)

    finished = {v: train(v, given.out, given.seeds, given.steps) for v in VARIANTS}
    lines, runs, means = references(), [], []
    print(f"\naccuracy on {CONDITION} ({task.conditions[CONDITION].summary}), weights best on validation\n")
    print(f"{'model':<11}{'mean':>6}  {'95 % interval':<15} every seed")
    for variant, done in finished.items():
        scores = done.accuracy(CONDITION)
        interval = bootstrap(scores, generator=stream("interval", variant).block(), covers="initialisation and data")
        each = " ".join(f"{s:.3f}" for s in scores)
        rising = done.cells.set_index("seed").still_learning == 1
        marks = f"   still learning: {', '.join(str(s) for s in rising[rising].index)}" if rising.any() else ""
        span = f"[{interval.low:.3f}, {interval.high:.3f}]" if given.seeds >= 3 else "needs 3 seeds"
        print(f"{variant:<11}{scores.mean():>6.3f}  {span:<15}  {each}{marks}")
        means.append({"model": variant, "mean": scores.mean(), "low": interval.low, "high": interval.high})
        runs += [{"model": variant, "seed": seed, "value": score, "still_learning": bool(rising[seed])}
                 for seed, score in scores.items()]
    print("\n" + "   ".join(f"{name} {value:.3f}" for name, value in lines.items()))
    print("intervals cover initialisation and data" + ("; indicative, fewer than 10 seeds" if given.seeds < 10 else ""))
    deviations = finished["T+Pos+Att"].deviations
    print("deviates from the paper: " + "; ".join(["length 5 (paper: 10)", *deviations]))

    chart = every_seed(
        pd.DataFrame(runs), pd.DataFrame(means), lines,
        title="Does a Transformer know what came first?",
        subtitle=["T6, length 5: “did a occur before b?” behind an opaque query. Every dot is a seed; bars are",
                  f"95 % intervals over {given.seeds} seeds. {given.steps} steps of batch 100 "
                  "(the paper: 1 000 000 of 10)."],
    )
    files = save(chart, given.out / "quickstart")
    print(f"\nwritten: {', '.join(str(f) for f in files)}   ({time.monotonic() - began:.0f} s)")


if __name__ == "__main__":
    main()
