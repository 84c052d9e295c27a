"""Made-up runs of routers and biases, and the verdicts that the claims about them can come to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import pandas as pd

from unseen.claims.claim import JudgedClaim
from unseen.claims.judge import judge_tables
from unseen.claims.papers.rules_routers import BIASES, SPARSE, TOLD

ROUTED = ("rules/R1", "rules/R2", "rules/R3", "rules/R4")
LEARNING_RATES = (0.001, 0.003)
ROUTING = ("softmax", *SPARSE, *BIASES, *TOLD)
BALANCING = ("importance loss", "switch loss")


def make_runs(
    alignment: dict[str, float], ood: dict[str, float], balanced: float = 0.1, tasks: int = 6
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Runs and records in which the rate 0.003 is better in distribution, and the other would change every verdict.

    `alignment` and `ood` have, by router, the alignment beside uniform gates and the error out of distribution;
    `balanced` is the collapse with a loss that balances the modules, where others have 0.4.
    """
    runs: list[dict[str, Any]] = []
    records: list[dict[str, Any]] = []
    pairs = [(gating, routing) for gating in ("joint", "operation") for routing in ROUTING]
    for gating, routing in [*pairs, ("none", "softmax"), ("truth", "softmax")]:
        for rate in LEARNING_RATES:
            for number in range(tasks):
                trial = f"{gating}/{routing}/{rate}/{number}"
                run = {"trial": trial, "task": "rules/mlp", "model": "rules-mlp", "setting": "classification"}
                run |= {
                    "gating": gating,
                    "rules": 8,
                    "width": 32,
                    "task_seed": number,
                    "seed": number,
                    "data_seed": number,
                }
                run |= {"routing": routing, "learning_rate": rate, "status": "finished", "scale": "mini"}
                run |= {"recipe.steps": 4000, "recipe.batch": 256, "study": "rules-routers", "step": 4000}
                runs.append(run)
                key = routing if gating in ("joint", "operation") else gating
                good = rate == LEARNING_RATES[1]
                wobble = 0.001 * (number % 3)
                metrics = {
                    ("iid", "accuracy"): (0.95 if good else 0.90) - 0.1 * ood.get(key, 0.1) - wobble,
                    ("ood/amplitude=2", "accuracy"): 1 - ood.get(key, 0.1) - wobble,
                }
                if gating != "none":
                    aligned = 0.0 if gating == "truth" else alignment.get(routing, 0.5)
                    metrics["iid", "specialization/alignment"] = 0.875 * (aligned if good else 1 - aligned) + wobble
                    collapse = balanced if routing in BALANCING else 0.4
                    metrics["iid", "specialization/collapse_avg"] = collapse + wobble
                for (split, metric), value in metrics.items():
                    record = {"trial": trial, "selection": "last", "split": split, "factor": "", "level": ""}
                    records.append({**record, "metric": metric, "value": value, "n": 4000})
    frame = pd.DataFrame(runs)
    return frame, pd.DataFrame(records).merge(frame, on="trial")


def judge_routers(alignment: dict[str, float], ood: dict[str, float], **more: Any) -> dict[str, JudgedClaim]:
    """The verdicts on the claims about routers."""
    runs, records = make_runs(alignment, ood, **more)
    return {judged.claim.name: judged for judged in judge_tables(records, runs, ROUTED)}


AS_CLAIMED = {"true rule": 0.01, "rule information": 0.02}
PAYS = {"true rule": 0.02, "truth": 0.01}
Case = Callable[[], JudgedClaim]


def _case(name: str, alignment: dict[str, float], ood: dict[str, float], **more: Any) -> Case:
    return cache(partial(_judge_one, name, tuple(alignment.items()), tuple(ood.items()), tuple(more.items())))


def _judge_one(name: str, alignment: Sequence[Any], ood: Sequence[Any], more: Sequence[Any]) -> JudgedClaim:
    return judge_routers(dict(alignment), dict(ood), **dict(more))[name]


SUPPORTED: dict[str, Case] = {name: _case(name, AS_CLAIMED, PAYS) for name in ROUTED}
CONTRADICTED: dict[str, Case] = {
    "rules/R1": _case("rules/R1", {**AS_CLAIMED, "gumbel": 0.02}, PAYS),
    "rules/R2": _case("rules/R2", {}, PAYS),
    "rules/R3": _case("rules/R3", AS_CLAIMED, {"true rule": 0.3}),
    "rules/R4": _case("rules/R4", AS_CLAIMED, PAYS, balanced=0.6),
}
UNDECIDED: dict[str, Case] = {name: _case(name, AS_CLAIMED, PAYS, tasks=2) for name in ROUTED}
