"""Made-up records with a known truth, in the form a store gives them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from unseen.claims.papers.retrieval import TABLE2, VARIANTS
from unseen.store.tables import all_options


def option_columns(component: str, name: str, **options: Any) -> dict[str, Any]:
    """The option columns of a task or model as a runs table has them, with defaults: `task.length`, ...."""
    filled = all_options(component, {"name": name, **options})
    return {f"{component}.{option}": value for option, value in filled.items()}


def option_text(options: Mapping[str, Any]) -> str:
    """Options as text, for the made-up ids of trials."""
    return " ".join(f"{name}={value}" for name, value in options.items())


def spread_out(mean: float, spread: float, seeds: int = 5, shift: int = 0) -> list[float]:
    """One value per seed with this mean and sample standard deviation; `shift` changes which seed is the best."""
    base = np.linspace(-1, 1, seeds)
    base = base / base.std(ddof=1) if seeds > 1 else base * 0
    order = np.random.default_rng([11, shift]).permutation(seeds)
    return [float(mean + spread * base[k]) for k in order]


def rows(
    task: str,
    variant: str,
    values: Sequence[float],
    *,
    metric: str = "accuracy",
    length: int = 10,
    factor: str = "",
    level: str = "",
    n: int = 10_000,
    not_converged: Sequence[int | None] | None = None,
    **more: Any,
) -> list[dict[str, Any]]:
    """The records of one configuration, one per seed.

    `not_converged` marks runs that had not converged (1), or of which that cannot be told (None).
    """
    options = f"length={length} preset=released" if length != 10 else "preset=released"
    records = []
    for seed, value in enumerate(values):
        identity = f"{task} {options} {variant} {seed} {sorted(more.items())}"
        records.append(
            {
                "scale": "mini",
                "variant": variant,
                "task": f"retrieval/{task}",
                "task.length": length,
                "model": "retrieval-transformer",
                "seed": seed,
                "data_seed": 0,
                "status": "finished",
                "step": 100,
                "not_converged": 0 if not_converged is None else not_converged[seed],
                "selection": "best",
                "split": "ood/single",
                "factor": factor,
                "level": level,
                "metric": metric,
                "value": value,
                "standard_error": float("nan"),
                "n": n,
                "trial": hashlib.sha256(identity.encode()).hexdigest()[:16],
                **more,
            }
        )
    return records


def frame(*tables: list[dict[str, Any]]) -> pd.DataFrame:
    """Records as a store gives them, with what claims must not read: the last weights and another split."""
    table = pd.DataFrame([row for rows in tables for row in rows])
    wrong = [table.assign(selection="last", value=0.5), table.assign(split="iid", value=0.1)]
    return pd.concat([table, *wrong], ignore_index=True)


def table2(length: int = 10, tasks: Sequence[str] = tuple(TABLE2), seeds: int = 5) -> list[dict[str, Any]]:
    """The published accuracies as records."""
    return [
        row
        for t, task in enumerate(tasks)
        for v, variant in enumerate(VARIANTS)
        for row in rows(
            task,
            variant,
            spread_out(TABLE2[task][v][0] / 100, TABLE2[task][v][1] / 100, seeds, shift=10 * t + v),
            length=length,
        )
    ]


PRINTED_ATTENTION = {
    ("T5", "T−Pos+Att"): (0.03, 0.02),
    ("T5", "T+Pos+Att"): (0.01, 0.01),
    ("T6", "T−Pos+Att"): (0.79, 0.005),
    ("T6", "T+Pos+Att"): (-0.14, 0.55),
    ("T7", "T−Pos+Att"): (0.46, 0.03),
    ("T7", "T+Pos+Att"): (0.16, 0.18),
}


def attention(length: int = 10, tasks: Sequence[str] = ("T5", "T6", "T7")) -> list[dict[str, Any]]:
    """The published attention differences as records."""
    return [
        row
        for k, ((task, variant), (mean, spread)) in enumerate(PRINTED_ATTENTION.items())
        if task in tasks
        for row in rows(task, variant, spread_out(mean, spread, shift=50 + k), metric="R7/positive", length=length)
    ]


def positions(correlations: dict[str, float], length: int = 10) -> list[dict[str, Any]]:
    """Accuracy by position on T1, 0.95 ± 0.01, with a known correlation with the position, ± 0.1 over seeds."""
    place = np.arange(length) - (length - 1) / 2
    line = place / place.std()
    found = []
    for v, (variant, mean) in enumerate(correlations.items()):
        values = np.empty((length, 5))
        for seed, r in enumerate(spread_out(mean, 0.1, shift=v)):
            rest = np.random.default_rng([3, v, seed]).normal(size=length)
            rest = rest - rest.mean() - line * (rest @ line) / length
            values[:, seed] = 0.95 + 0.01 * (r * line + np.sqrt(1 - r * r) * rest / rest.std())
        for k in range(length):
            found += rows(
                "T1",
                variant,
                values[k].tolist(),
                metric="R2/accuracy",
                factor="position",
                level=str(k),
                n=500,
                length=length,
            )
    return found


def readings(length: int = 10) -> list[dict[str, Any]]:
    """What the paper prints of the analyses R1 and R3 to R6, alike for all variants."""
    printed = {
        "T1": {"R1/correct": 0.82, "R1/wrong": 0.17},
        "T3": {"R5/target": 0.65},
        "T2": {"R3/yes/diff - yes/same": -0.25, "R3/no/one - no/none": -0.40, "R4/yes/diff": 0.65},
        "T4": {"R6/favoured": 0.90, "R6/other": 0.05, "R6/agreement where the rule errs": 0.9},
    }
    return [
        row
        for task, measures in printed.items()
        for metric, mean in measures.items()
        for v, variant in enumerate(VARIANTS)
        for row in rows(
            task,
            variant,
            spread_out(mean, 0.02, shift=v),
            metric=metric,
            length=length,
            n=300 if metric == "R1/wrong" else 4_000,
        )
    ]


def lengths(lengths: Sequence[int] = (5, 10, 15, 20, 25, 30)) -> list[dict[str, Any]]:
    """Six models over the lengths as the paper describes them, with a point of spread over seeds."""
    found = []
    for k, task in enumerate(TABLE2):
        for length in lengths:
            middle = min(length - 5, 30 - length) / 12.5
            scores = dict.fromkeys(VARIANTS, 0.87)
            scores["LSTM"] = 0.85 - 0.01 * length
            scores["LSTM+Att"] = 0.87 - 0.2 * middle if task == "T1" else 0.87 - 0.009 * length
            if task in ("T2", "T4") and length == 5:
                scores["LSTM+Att"] = 0.93
            for m, (variant, score) in enumerate(scores.items()):
                found += rows(task, variant, spread_out(score, 0.01, shift=100 * k + 10 * length + m), length=length)
            if task == "T1":
                target = spread_out(0.2 + 0.65 * (length - 5) / 25, 0.02, shift=length)
                found += rows(task, "LSTM+Att", target, metric="R9/target", length=length)
    return found


def shapes(fall: float = 0.004, ends: Sequence[int] = (5, 30)) -> list[dict[str, Any]]:
    """Transformers as the paper's figure over lengths has them; `fall` is that of T5 to T7 by one more token."""
    found = []
    for k, task in enumerate(TABLE2):
        for length in ends:
            for v, variant in enumerate(VARIANTS):
                score = {"T1": 0.9 + 0.002 * length, "T2": 0.87, "T3": 0.9 + 0.003 * length, "T4": 0.87}.get(
                    task, 0.8 - fall * length + 0.05 * (variant == "T−Pos+Att")
                )
                found += rows(task, variant, spread_out(score, 0.005, shift=100 * k + 10 * length + v), length=length)
    return found


def noise(dropout: float = 0.03, positions: float = 0.0, length: int = 10) -> list[dict[str, Any]]:
    """Positions and embedding dropout crossed: what each adds to 0.9."""
    found = []
    for k, task in enumerate(("T1", "T3", "T4")):
        for p in (False, True):
            for d in (False, True):
                for a in (False, True):
                    values = spread_out(0.9 + dropout * d + positions * p, 0.005, shift=40 * k + 4 * p + 2 * d + a)
                    found += rows(
                        task,
                        f"{p}{d}{a}",
                        values,
                        length=length,
                        self_attention=a,
                        positions="sinusoidal" if p else "none",
                        embed_dropout="always" if d else "never",
                    )
    return found
