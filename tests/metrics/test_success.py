"""How many runs converge and solve: counts against a plain loop, means apart."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from unseen.metrics.success import success_table
from unseen.stats import wilson


def records(seed: int = 0) -> pd.DataFrame:
    draws = np.random.default_rng(seed)
    found = []
    for model in ("a", "b"):
        for run in range(12):
            inside = float(draws.choice([0.5, 0.95, 1.0]))
            for condition, value in (("iid", inside), ("ood/x", draws.random()), ("ood/y", draws.choice([0.95, 0.99]))):
                for selection in ("best", "last"):
                    found.append(
                        {
                            "model": model,
                            "cell": f"{model}{run}",
                            "selection": selection,
                            "factor": "",
                            "level": "",
                            "metric": "accuracy",
                            "condition": condition,
                            "value": float(value) if selection == "last" else 0.0,
                        }
                    )
    table = pd.DataFrame(found)
    return pd.concat([table, table.assign(metric="loss", value=9.0), table.assign(factor="length", level="2")])


def test_counts_and_means_are_those_of_a_plain_loop() -> None:
    given = records()
    table = success_table(given, ["model"]).set_index(["model", "condition"])
    assert len(table) == 4
    whole = given[(given.selection == "last") & (given.metric == "accuracy") & (given.factor == "")]
    for (model, condition), row in table.iterrows():
        runs = {
            cell: dict(zip(part.condition, part.value, strict=True))
            for cell, part in whole[whole.model == model].groupby("cell")
        }
        learned = [run[condition] for run in runs.values() if run["iid"] >= 0.95]
        solved = [value for value in learned if value > 0.95]
        assert (row.runs, row.converged, row.solved) == (12, len(learned), len(solved))
        assert 0 < len(learned) < 12
        assert row.accuracy == pytest.approx(np.mean([run[condition] for run in runs.values()]))
        assert row.accuracy_converged == pytest.approx(np.mean(learned))
        assert row.accuracy_converged_spread == pytest.approx(np.std(learned, ddof=1))
        expected = wilson(len(solved), len(learned), covers="seeds")
        assert (row.solved_low, row.solved_high) == (expected.low, expected.high)


def test_exactly_at_the_bound_a_run_has_converged_but_not_solved() -> None:
    rows = [(cell, condition, 0.95) for cell in range(3) for condition in ("iid", "ood/x")]
    given = pd.DataFrame(rows, columns=["cell", "condition", "value"]).assign(
        model="m", selection="last", factor="", metric="accuracy"
    )
    (row,) = success_table(given, ["model"]).to_dict("records")
    assert (row["converged"], row["solved"]) == (3, 0)


def test_without_a_converged_run_there_is_no_conditional_mean() -> None:
    given = records()
    given = given.assign(value=given.value.where(given.condition != "iid", 0.1))
    table = success_table(given, ["model"])
    assert set(table.converged) == {0}
    assert all(math.isnan(value) for value in table.accuracy_converged)
    assert all(math.isnan(value) for value in table.solved_low)
    assert success_table(given[given.condition != "iid"], ["model"]).empty


def test_runs_that_diverged_have_not_converged() -> None:
    given = records()
    lost = pd.DataFrame({"model": ["b", "b", "elsewhere"]})
    plain, table = (
        success_table(given, ["model"], diverged=frame).set_index(["model", "condition"]) for frame in (None, lost)
    )
    assert (table.loc["a"] == plain.loc["a"]).all(axis=None)
    for condition in ("ood/x", "ood/y"):
        row, before = table.loc[("b", condition)], plain.loc[("b", condition)]
        assert (row.runs, row.diverged, row.converged) == (14, 2, before.converged)
        expected = wilson(int(row.converged), 14, covers="seeds")
        assert (row.converged_low, row.converged_high) == (expected.low, expected.high)
        assert row.accuracy == before.accuracy
