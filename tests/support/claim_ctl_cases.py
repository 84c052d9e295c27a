"""Made-up records of the ctl family with a known truth, and the verdicts that each claim can come to."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd

from support.claim_records import spread_out
from unseen.claims import CLAIMS
from unseen.claims.claim import JudgedClaim
from unseen.claims.judge import judge
from unseen.claims.papers.ctl import BILSTM, MODELS, NDR, TABLE1, TRANSFORMER

SEEDS = 25
NEW = "ood/transition"


def rows(
    task: str,
    model: str,
    values: Sequence[float],
    split: str,
    metric: str = "accuracy",
    *,
    functions: int = 32,
    factor: str = "",
    level: str = "",
    **levels: Any,
) -> list[dict[str, Any]]:
    options = "" if functions == 32 else f"functions={functions}"
    found = []
    for seed, value in enumerate(values):
        trial = hashlib.sha256(f"{task} {model} {seed} {options} {sorted(levels.items())}".encode()).hexdigest()[:16]
        found.append(
            {
                "scale": "full",
                **levels,
                "task": f"ctl/{task}",
                "task.functions": functions,
                "model": model,
                "seed": seed,
                "data_seed": seed,
                "status": "finished",
                "step": 100,
                "not_converged": 0,
                "selection": "last",
                "split": split,
                "factor": factor,
                "level": level,
                "metric": metric,
                "value": value,
                "standard_error": float("nan"),
                "n": 1_000,
                "trial": trial,
            }
        )
    return found


def spread(mean: float, width: float, shift: int) -> list[float]:
    return np.clip(spread_out(mean, width, SEEDS, shift), 0, 1).tolist()


# Means and spreads as printed; on R a third of the NDRs and a fifth of the Transformers above 0.95.
ON_R = {
    NDR: [0.99] * 8 + [min(value, 0.94) for value in spread_out(0.66, 0.25, 17)],
    TRANSFORMER: [0.99] * 5 + [min(value, 0.94) for value in spread_out(0.71, 0.25, 20)],
}


def table1(functions: int = 32) -> list[dict[str, Any]]:
    found = []
    for t, task in enumerate(TABLE1):
        for m, model in enumerate(MODELS):
            mean, width = TABLE1[task][model]
            outside = ON_R[model] if task == "R" and model in ON_R else spread(mean, width, 10 * t + m)
            found += rows(task, model, spread(0.998, 0.001, m), "iid", functions=functions)
            found += rows(
                task,
                model,
                [min(value, 0.94) if task == "A" and model != BILSTM else value for value in outside],
                NEW,
                functions=functions,
            )
            for length in (3, 4, 5):
                found += rows(
                    task,
                    model,
                    [max(0.0, value - 0.1 * (length - 4)) for value in outside],
                    NEW,
                    functions=functions,
                    factor="length",
                    level=str(length),
                )
            gaps = [0.8 * (1 - value) + 0.01 for value in outside]
            apart = [0.4 if value > 0.95 else 0.001 for value in outside]
            found += rows(task, model, apart, "probe/singles", "representation/gap_p", functions=functions)
            found += rows(
                task,
                model,
                spread_out(0.5, 0.1, SEEDS, m),
                "probe/singles",
                "representation/agreement",
                functions=functions,
            )
            found += rows(
                task,
                model,
                spread_out(0.1, 0.05, SEEDS, m + 5),
                "probe/pairs",
                "representation/group_gain",
                functions=functions,
            )
            found += rows(task, model, gaps, "probe/singles", "representation/gap", functions=functions)
            found += rows(
                task,
                model,
                spread_out(0.3, 0.05, SEEDS, m),
                "probe/pairs",
                "representation/cluster_gain",
                functions=functions,
            )
    return found


def bridged() -> list[dict[str, Any]]:
    """Figures 4, 7 and 8 as they are described."""
    found = []
    for o in (4, 8, 12, 16):
        for k in (2, 3, 4, 5, 6):
            base = 0.3 + 0.3 * (o - 4) / 12 + 0.3 * (k - 2) / 4
            scores = {
                NDR: 1.0 if (o, k) == (16, 6) else base,
                TRANSFORMER: base - 0.1 if o < 16 else base + 0.08,
                BILSTM: base - 0.2,
            }
            for model, score in scores.items():
                values = [min(1.0, score + 0.002 * s) if score < 1 else 1 - 0.0001 * s for s in range(5)]
                found += rows("S", model, [1.0] * 5, "iid", bridge=o, shared=k)
                found += rows("S", model, values, NEW, bridge=o, shared=k)
    return found


def longer(scores: dict[str, float]) -> list[dict[str, Any]]:
    found = []
    for model, score in scores.items():
        for split, value in (
            ("ood/length=6-8", 1.0),
            ("ood/length=9-10", score),
            ("iid", 1.0),
            ("ood/reserved", 0.2),
        ):
            found += rows("lengths", model, spread_out(value, 0.005, 5), split, selection="best")
    return [{**row, "selection": "best"} for row in found]


def frame(parts: list[dict[str, Any]]) -> pd.DataFrame:
    """Records, with what claims must not read: the weights of the other selection."""
    table = pd.DataFrame(parts)
    other = table.assign(selection=table.selection.map({"last": "best", "best": "last"}), value=0.5)
    return pd.concat([table, other], ignore_index=True)


@cache
def published(name: str) -> pd.DataFrame:
    made = {"ctl/K5": bridged, "ctl/lengths": lambda: longer({BILSTM: 0.99, NDR: 0.99, TRANSFORMER: 0.4})}
    return frame(made.get(name, table1)())


def changed(
    records: pd.DataFrame, task: str, model: str, split: str, value: float, metric: str = "accuracy"
) -> pd.DataFrame:
    chosen = (
        (records.task == f"ctl/{task}")
        & (records.model == model)
        & (records.split == split)
        & (records.metric == metric)
    )
    assert chosen.any()
    return records.assign(value=records.value.where(~chosen, value + 0.001 * (records.seed % 5)))


WRONG: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "ctl/K1": lambda r: changed(r, "R", TRANSFORMER, "iid", 0.7),
    "ctl/K2": lambda r: changed(r, "A", NDR, NEW, 0.97),
    "ctl/K3": lambda r: changed(r, "A", NDR, NEW, 0.97),
    "ctl/K4": lambda r: changed(r, "R", NDR, NEW, 0.6),
    "ctl/K5": lambda r: r.assign(value=r.value.where(r.split != NEW, 1.2 - r.value)),  # falls where it should grow
    "ctl/K6": lambda r: changed(r, "R", NDR, "probe/singles", -0.2, "representation/gap"),
    "ctl/K7": lambda r: changed(r, "R", NDR, "probe/pairs", -0.1, "representation/cluster_gain"),
    "ctl/K6-counted": lambda r: changed(r, "R", NDR, "probe/singles", 0.3, "representation/gap_p"),
    "ctl/K7-clusters": lambda r: changed(r, "R", NDR, "probe/pairs", 0.6, "representation/group_gain"),
    "ctl/adding-up": lambda r: r.assign(
        value=r.value.where(r.factor != "length", 0.1 * pd.to_numeric(r.level) + 0.01 * (r.seed % 5))
    ),
    # A table is contradicted if a quarter of its twelve numbers differ.
    "ctl/table1": lambda r: changed(
        changed(changed(r, "A", BILSTM, NEW, 0.7), "R", BILSTM, NEW, 0.7), "A", TRANSFORMER, NEW, 0.6
    ),
    "ctl/spreads": lambda r: changed(r, "A", NDR, NEW, 0.3),
    "ctl/lengths": lambda r: changed(r, "lengths", BILSTM, "ood/length=9-10", 0.5),
}


def few(name: str) -> pd.DataFrame:
    records = published(name)
    return records[records.seed >= records.seed.max() - 1]  # the first ones solve it, and say nothing of failures


def found(name: str, records: Callable[[str], pd.DataFrame]) -> JudgedClaim:
    return judge(CLAIMS.load(name), records(name))


SUPPORTED = {name: partial(found, name, published) for name in WRONG}
CONTRADICTED = {name: partial(found, name, lambda name: WRONG[name](published(name))) for name in WRONG}
UNDECIDED = {name: partial(found, name, few) for name in WRONG}
