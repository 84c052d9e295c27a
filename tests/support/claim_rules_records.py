"""Made-up records of the rules family with a known truth, in the form a store gives them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from random import Random
from typing import Any, NamedTuple

import pandas as pd

GATINGS = ("truth", "operation", "joint", "none")
OOD = {"mlp": "ood/amplitude=2", "mha": "ood/length=30,amplitude=2", "rnn": "ood/length=30,amplitude=2"}
ZERO = 2.5
"""The zero predictor's loss, on all data."""


class Run(NamedTuple):
    """A place in the study; `experiment` numbers the experiments of a task."""

    architecture: str
    search: int | None
    setting: str
    rules: int
    width: int
    task_seed: int
    seed: int
    gating: str
    experiment: int

    def luck(self, spread: float, *what: object, paired: bool = False) -> float:
        """Noise of this run; `paired`: of all gatings of its place, seed and task alike."""
        key = (*self, *what) if not paired else (*self[:7], *what)
        number = int(hashlib.sha256(repr(key).encode()).hexdigest()[:8], 16)
        return Random(number).gauss(0, spread)


Measure = Callable[[Run], Mapping[str, float]]
"""What a run scores: `error`; if they are others, `ood`, `best`, `best_ood`, `curve`; with longer sequences alone
`longer`; and specialization metrics."""
SCORES = ("error", "ood", "best", "best_ood", "curve", "longer")


def grid(
    rules: Sequence[int] = (2, 8, 32),
    architectures: Iterable[str] = ("mlp", "mha", "rnn"),
    searches: Sequence[int] = (1,),
    widths: Sequence[int] = (32,),
    tasks: int = 5,
    seeds: int | None = None,
) -> list[Run]:
    """All runs; without `seeds` each task is learned by the seed of its number."""
    places = [
        (a, s, k, r, w)
        for a in architectures
        for s in (searches if a == "mha" else (None,))
        for k, r, w in product(("classification", "regression"), rules, widths)
    ]
    return [
        Run(*place, task, seed, gating, number)
        for number, place in enumerate(places)
        for task in range(tasks)
        for seed in ([task] if seeds is None else range(seeds))
        for gating in GATINGS
    ]


def records(
    runs: Iterable[Run], measure: Measure, diverged: Callable[[Run], int] = lambda run: 0, decoys: bool = True
) -> pd.DataFrame:
    """Records; runs that diverged cannot be used. With decoys, which claims must not read: another split, another metric."""
    rows = []
    for run in runs:
        what = measure(run)
        error = what["error"]
        ood, best = what.get("ood", error), what.get("best", error)
        at = place(run) | {
            "not_converged": 0,
            **({"status": "diverged"} if diverged(run) else {}),
            "factor": "",
            "level": "",
            "standard_error": float("nan"),
            "n": 100,
        }
        for selection, split, value in (
            ("last", "iid", error),
            ("last", OOD[run.architecture], ood),
            ("best", "iid", best),
            ("best", OOD[run.architecture], what.get("best_ood", ood)),
            *([("last", "ood/length=3", 0.5)] if decoys else []),
            *([("last", "ood/length=30", what["longer"])] if "longer" in what and run.architecture != "mlp" else []),
        ):
            scores = (
                {"accuracy": 1 - value, "loss": 0.7}
                if run.setting == "classification"
                else {"relative_loss": value, "loss": ZERO * value}
            )
            rows += [
                at | {"selection": selection, "split": split, "metric": metric, "value": found}
                for metric, found in scores.items()
            ]
        if run.gating != "none":
            rows += [
                at | {"selection": "last", "split": "iid", "metric": f"specialization/{name}", "value": value}
                for name, value in what.items()
                if name not in SCORES
            ]
    return pd.DataFrame(rows)


def place(run: Run) -> dict[str, Any]:
    """What a store says of a run, whatever it scored."""
    trial = hashlib.sha256(repr(run).encode()).hexdigest()[:16]
    axes = run._asdict()
    del axes["experiment"]
    return axes | {
        "scale": "mini",
        "task": f"rules/{run.architecture}",
        "model": "m",
        "data_seed": run.seed,
        "status": "finished",
        "step": 100,
        "trial": trial,
    }


def curves(runs: Iterable[Run], measure: Measure) -> pd.DataFrame:
    """Curves that start at 0.9 and have the mean that is measured as `curve` (or `error`) from then on."""
    rows = []
    for run in runs:
        what = measure(run)
        mean = what.get("curve", what["error"])
        for step, value in ((0, 0.9), (50, mean + 0.01), (100, mean - 0.01)):
            scores = {"accuracy": 1 - value, "loss": 0.7} if run.setting == "classification" else {"loss": ZERO * value}
            rows += [
                {
                    "trial": place(run)["trial"],
                    "step": step,
                    "split": split,
                    "metric": metric,
                    "value": found if split == "iid" else 0.3,
                }
                for split in ("iid", "train")
                for metric, found in scores.items()
            ]
    return pd.DataFrame(rows)
