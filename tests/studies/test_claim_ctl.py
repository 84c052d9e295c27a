"""The ctl claims: the published numbers support them, other numbers contradict them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from claim_records import spread_out

from unseen.studies.claims import CLAIMS
from unseen.studies.claims.claim import judge
from unseen.studies.claims.ctl import BILSTM, MODELS, NDR, TABLE1, TRANSFORMER
from unseen.studies.claims.ctl_measures import functions_of

NAMES = [entry.name for entry in CLAIMS if entry.name.startswith("ctl/")]
SEEDS = 25
NEW = "ood/transition"


def rows(task: str, model: str, values: Sequence[float], condition: str, metric: str = "accuracy", *,
         options: str = "", **levels: Any) -> list[dict[str, Any]]:
    found = []
    for seed, value in enumerate(values):
        cell = hashlib.sha256(f"{task} {model} {seed} {options} {sorted(levels.items())}".encode()).hexdigest()[:16]
        found.append({"scale": "full", **levels, "task": f"ctl/{task}", "task_options": options, "model": model,
                      "model_options": "", "recipe": "x", "recipe_options": "", "seed": seed, "data_seed": seed,
                      "status": "finished", "step": 100, "still_learning": 0, "selection": "last",
                      "condition": condition, "factor": "", "level": "", "metric": metric, "value": value,
                      "standard_error": float("nan"), "n": 1_000, "cell": cell})
    return found


def spread(mean: float, width: float, shift: int) -> list[float]:
    return np.clip(spread_out(mean, width, SEEDS, shift), 0, 1).tolist()


# Means and spreads as printed; on R a third of the NDRs and a fifth of the Transformers above 0.95.
ON_R = {NDR: [0.99] * 8 + [min(value, 0.94) for value in spread_out(0.66, 0.25, 17)],
        TRANSFORMER: [0.99] * 5 + [min(value, 0.94) for value in spread_out(0.71, 0.25, 20)]}


def table1(options: str = "") -> list[dict[str, Any]]:
    found = []
    for t, task in enumerate(TABLE1):
        for m, model in enumerate(MODELS):
            mean, width = TABLE1[task][model]
            outside = ON_R[model] if task == "R" and model in ON_R else spread(mean, width, 10 * t + m)
            found += rows(task, model, spread(0.998, 0.001, m), "iid", options=options)
            found += rows(task, model, [min(value, 0.94) if task == "A" and model != BILSTM else value
                                        for value in outside], NEW, options=options)
            gaps = [0.8 * (1 - value) + 0.01 for value in outside]
            found += rows(task, model, gaps, "probe/singles", "representation/gap", options=options)
            found += rows(task, model, spread_out(0.3, 0.05, SEEDS, m), "probe/pairs", "representation/cluster_gain",
                          options=options)
    return found


def bridged() -> list[dict[str, Any]]:
    """Figures 4, 7 and 8 as they are described."""
    found = []
    for o in (4, 8, 12, 16):
        for k in (2, 3, 4, 5, 6):
            base = 0.3 + 0.3 * (o - 4) / 12 + 0.3 * (k - 2) / 4
            scores = {NDR: 1.0 if (o, k) == (16, 6) else base, TRANSFORMER: base - 0.1 if o < 16 else base + 0.08,
                      BILSTM: base - 0.2}
            for model, score in scores.items():
                values = [min(1.0, score + 0.002 * s) if score < 1 else 1 - 0.0001 * s for s in range(5)]
                found += rows("S", model, [1.0] * 5, "iid", bridge=o, shared=k)
                found += rows("S", model, values, NEW, bridge=o, shared=k)
    return found


def longer(scores: dict[str, float]) -> list[dict[str, Any]]:
    found = []
    for model, score in scores.items():
        for condition, value in (("ood/length=6-8", 1.0), ("ood/length=9-10", score), ("iid", 1.0),
                                 ("ood/reserved", 0.2)):
            found += rows("lengths", model, spread_out(value, 0.005, 5), condition, selection="best")
    return [{**row, "selection": "best"} for row in found]


def frame(parts: list[dict[str, Any]]) -> pd.DataFrame:
    """Records, with what claims must not read: the weights of the other selection."""
    table = pd.DataFrame(parts)
    other = table.assign(selection=table.selection.map({"last": "best", "best": "last"}), value=0.5)
    return pd.concat([table, other], ignore_index=True)


def published(name: str) -> pd.DataFrame:
    made = {"ctl/K5": bridged, "ctl/lengths": lambda: longer({BILSTM: 0.99, NDR: 0.99, TRANSFORMER: 0.4})}
    return frame(made.get(name, table1)())


@pytest.mark.parametrize("name", NAMES)
def test_the_published_numbers_support_the_claims(name: str) -> None:
    found = judge(CLAIMS.load(name), published(name))
    assert [one.part.says for one in found.findings if one.word != "supported"] == []
    assert found.word == "supported"
    assert all(one.compared for one in found.findings)


def changed(records: pd.DataFrame, task: str, model: str, condition: str, value: float,
            metric: str = "accuracy") -> pd.DataFrame:
    chosen = ((records.task == f"ctl/{task}") & (records.model == model) & (records.condition == condition)
              & (records.metric == metric))
    assert chosen.any()
    return records.assign(value=records.value.where(~chosen, value + 0.001 * (records.seed % 5)))


WRONG: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "ctl/K1": lambda r: changed(r, "R", TRANSFORMER, "iid", 0.7),
    "ctl/K2": lambda r: changed(r, "A", NDR, NEW, 0.97),
    "ctl/K3": lambda r: changed(r, "A", NDR, NEW, 0.97),
    "ctl/K4": lambda r: changed(r, "R", NDR, NEW, 0.6),
    "ctl/K5": lambda r: changed(r, "S", NDR, NEW, 0.6),
    "ctl/K6": lambda r: changed(r, "A", NDR, "probe/singles", -0.2, "representation/gap"),
    "ctl/K7": lambda r: changed(r, "R", NDR, "probe/pairs", -0.1, "representation/cluster_gain"),
    "ctl/table1": lambda r: changed(r, "A", BILSTM, NEW, 0.7),
    "ctl/lengths": lambda r: changed(r, "lengths", BILSTM, "ood/length=9-10", 0.5),
}


@pytest.mark.parametrize("name", NAMES)
def test_other_numbers_contradict_them(name: str) -> None:
    assert judge(CLAIMS.load(name), WRONG[name](published(name))).word == "contradicted"


@pytest.mark.parametrize("name", NAMES)
def test_a_few_seeds_leave_them_open(name: str) -> None:
    records = published(name)
    few = records[records.seed >= records.seed.max() - 1]  # the first ones solve it, and say nothing of failures
    assert judge(CLAIMS.load(name), few).word == "undecided"


def test_runs_that_did_not_learn_say_nothing_out_of_distribution() -> None:
    records = changed(frame(table1()), "A", NDR, "iid", 0.9)
    found = judge(CLAIMS.load("ctl/K3"), records)
    assert found.word != "supported"
    assert {one.word for one in found.findings} == {"supported", "not run"}


def test_none_of_five_is_not_none() -> None:
    """Resampling five runs that all fail gives five that all fail; Wilson's interval reaches 0.43."""
    records = frame(table1())
    for seeds, expected in ((5, "undecided"), (25, "supported")):
        found = judge(CLAIMS.load("ctl/K4"), records[records.seed < seeds])
        shares = [one for one in found.findings if "solved of ctl-ndr on A" in one.part.says]
        assert [one.word for one in shares] == [expected]


def test_in_another_world_directions_are_judged_and_printed_numbers_are_not() -> None:
    records = frame(table1("symbols=4 functions=24"))
    assert functions_of("symbols=4 functions=24") == 24
    for name in ("ctl/K2", "ctl/K3", "ctl/K4", "ctl/K6"):
        found = judge(CLAIMS.load(name), records)
        assert (found.word, found.setting) == ("supported", "functions 24 (paper: 32)")
    assert judge(CLAIMS.load("ctl/table1"), records).word == "not run"
