"""What ending at a plateau would have cost recorded runs: the table of docs/statistics.md.

python docs/make_plateau.py

Runs of full length from `campaign/stores` are ended by the rule after the fact, after half of their steps at least (as in the
catalogue) and never while the learning rate decays. Only differences between the end by the rule
and the real end are computed and shown, never a score.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from unseen.store.store import Store
from unseen.store.tables import all_options
from unseen.training.convergence import LEAST_VALIDATIONS, at_plateau, left_start

STORES = Path(__file__).parents[1] / "campaign" / "stores"
BOUND = 0.005
GROUPS = {
    "retrieval, learning-rate pilots (the rule was fitted to these)": ["retrieval-rate-pilot-T*"],
    "gcog, learning pilots": ["gcog-learn-pilot-*"],
    "gcog, trees (pilots)": ["gcog-trees-*"],
    "gcog-pool, mini": ["gcog-pool-seeds*"],
}
STOPPED = "retrieval-table2-T6"
"""A store whose runs really ended at a plateau."""
REAL = "retrieval-table2-T*"
"""Stores whose runs were allowed to."""


def read_curves(store: Path) -> list[tuple[str, int, list[int], list[float]]]:
    """How each run ended, the step at which its learning rate has decayed (0: never), and the steps and scores of its validation accuracy."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(store / "store.sqlite", folder)  # an older schema is read from a copy
        with Store.read(folder) as opened:
            points = opened.points()
            status = opened.status()
            identities = opened.identities()
    validation = "ood/single" if "ood/single" in set(points["split"]) else "iid"
    chosen = points[(points["split"] == validation) & (points["metric"] == "accuracy")]
    curves = []
    for trial, curve in chosen.sort_values("step").groupby("trial", sort=True):
        decay = identities[trial]["recipe"].get("decay", 0)
        curves.append((status[trial], decay, curve["step"].tolist(), curve["value"].tolist()))
    return curves


def end_by_rule(steps: Sequence[int], scores: Sequence[float], least: int) -> int:
    """The index of the validation after which the rule ends a run; the last one if it does not."""
    for number in range(LEAST_VALIDATIONS, len(scores)):
        if steps[number] >= least and at_plateau(steps[: number + 1], scores[: number + 1], BOUND):
            return number
    return len(scores) - 1


def measure_losses(patterns: Sequence[str]) -> pd.DataFrame:
    """One row per run of full length: what the rule loses, by the best validation and by the last three, and saves."""
    rows = []
    for store in sorted(path for pattern in patterns for path in STORES.glob(pattern)):
        for status, decay, steps, scores in read_curves(store):
            if status != "finished" or len(scores) <= LEAST_VALIDATIONS:
                continue
            end = end_by_rule(steps, scores, max(steps[-1] // 2, decay))
            best = max(scores[1:]) - max(scores[1 : end + 1])
            late = float(np.mean(scores[-3:]) - np.mean(scores[end - 2 : end + 1]))
            rows.append((best, late, 1 - steps[end] / steps[-1], end < len(scores) - 1))
    return pd.DataFrame(rows, columns=["best", "late", "saved", "ended"])


def count_unlearned_endings() -> tuple[int, int]:
    """How many runs of T6 really ended at a plateau, and how many of them had not left their starting level."""
    stopped = [scores for status, _, _, scores in read_curves(STORES / STOPPED) if status == "stopped"]
    return len(stopped), sum(not left_start(scores) for scores in stopped)


def measure_real_saving() -> tuple[int, int, float]:
    """The runs that were allowed to end at a plateau, how many did, and the share of all their steps that was saved."""
    ended, whole, done, runs = 0, 0, 0, 0
    for store in sorted(STORES.glob(REAL)):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(store / "store.sqlite", folder)
            with Store.read(folder) as opened:
                entries = opened.entries()
                identities = opened.identities()
        for trial, status, step in zip(entries["trial"], entries["status"], entries["step"], strict=True):
            runs += 1
            ended += status == "stopped"
            done += step
            whole += all_options("recipe", identities[trial]["recipe"])["steps"]
    return runs, ended, 1 - done / whole


def format_table() -> str:
    """The table in Markdown."""
    titles = ("runs", "number", "ended early", "lose < ½ point, best weights", "lose < ½ point, last", "steps saved")
    lines = [f"| {' | '.join(titles)} |", f"|{len(titles) * '---|'}"]
    tables = []
    for name, patterns in GROUPS.items():
        tables.append((name, measure_losses(patterns)))
    tables.append(("all", pd.concat([table for _, table in tables])))
    for name, table in tables:
        shares = [f"{(table[column] < BOUND).mean():.0%}" for column in ("best", "late")]
        fields = (name, str(len(table)), str(int(table["ended"].sum())), *shares, f"{table['saved'].mean():.0%}")
        lines.append(f"| {' | '.join(fields)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    number, unlearned = count_unlearned_endings()
    runs, ended, saved = measure_real_saving()
    for line in (
        format_table(),
        "",
        f"{STOPPED}: {number} runs ended at a plateau, {unlearned} of them unlearned",
        f"{REAL}: {ended} of {runs} runs ended at a plateau, {saved:.0%} of all steps saved",
    ):
        sys.stdout.write(line + "\n")
