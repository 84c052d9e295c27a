"""The ctl claims: which runs count, and where. (test_claims_verdicts shows that each can reach every verdict.)"""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pytest
from scipy.stats import t

from support.claim_ctl_cases import NEW, changed, frame, longer, rows, table1
from support.claim_records import option_columns
from unseen.claims import CLAIMS
from unseen.claims.claim import Tables
from unseen.claims.criterion import PrintedNumber
from unseen.claims.judge import judge
from unseen.claims.papers import ctl_measures as measures
from unseen.claims.papers.ctl import BILSTM, MODELS, NDR, TABLE1, TRANSFORMER
from unseen.training.recipe import published_recipe

NAMES = [entry.name for entry in CLAIMS if entry.name.startswith("ctl/")]


def test_runs_that_did_not_learn_say_nothing_out_of_distribution() -> None:
    records = changed(frame(table1()), "A", NDR, "iid", 0.9)
    found = judge(CLAIMS.load("ctl/K3"), records)
    assert found.verdict != "supported"
    assert {one.verdict for one in found.findings} == {"holds", "not run"}


def test_a_share_of_none_in_five_is_uncertain() -> None:
    """Resampling five runs that all fail gives five that all fail; Wilson's interval reaches 0.43."""
    records = frame(table1())
    for seeds, expected in ((5, "open"), (25, "holds")):
        found = judge(CLAIMS.load("ctl/K4"), records[records.seed < seeds])
        shares = [one for one in found.findings if "solved of ctl-ndr on A" in one.criterion.key]
        assert [one.verdict for one in shares] == [expected]


def test_in_another_world_directions_are_judged_and_printed_numbers_are_not() -> None:
    records = frame(table1(functions=24))
    for name in ("ctl/K2", "ctl/K3", "ctl/K4", "ctl/K6"):
        found = judge(CLAIMS.load(name), records)
        assert (found.verdict, found.setting) == ("supported", "functions 24 (paper: 32)")
    assert judge(CLAIMS.load("ctl/table1"), records).verdict == "not run"


def tables_of(records: pd.DataFrame) -> Tables:
    runs = records.drop_duplicates("trial")
    return Tables(records, measures.columns(runs))


def test_the_first_25_transformers_that_converge_count_as_published() -> None:
    """Of 60 seeds the even ones converge; other models and measures use every run."""
    accuracies = [1.0 if seed % 2 == 0 else 0.2 for seed in range(60)]
    records = []
    for task in ("A", "R"):
        for model in (TRANSFORMER, NDR):
            records += rows(task, model, accuracies, "iid")
            records += rows(task, model, [0.5] * 60, NEW)
    # In a store with runs on S as well, those on A and R have no bridge.
    records += rows("S", TRANSFORMER, accuracies, "iid", bridge=4, shared=2)
    shuffled = frame(records).sample(frac=1, random_state=3)
    table = measures.accuracies(tables_of(shuffled))
    for task in ("ctl/A", "ctl/R"):
        chosen = table[(table.metric == "OOD as published") & (table.task == task) & (table.model == TRANSFORMER)]
        assert sorted(chosen.seed) == list(range(0, 50, 2))
        assert len(table[(table.metric == "OOD as published") & (table.task == task) & (table.model == NDR)]) == 60
        assert len(table[(table.metric == "IID") & (table.task == task) & (table.model == TRANSFORMER)]) == 60
        assert len(table[(table.metric == "OOD") & (table.task == task) & (table.model == TRANSFORMER)]) == 30


def test_transformers_that_the_paper_would_not_count_do_not_contradict_k1() -> None:
    records = frame(table1())
    chosen = (records.model == TRANSFORMER) & (records.split == "iid") & (records.seed < 12)
    judged = judge(CLAIMS.load("ctl/K1"), records.assign(value=records.value.where(~chosen, 0.15)))
    assert judged.verdict == "supported"
    assert judge(CLAIMS.load("ctl/K1"), changed(records, "A", BILSTM, "iid", 0.8)).verdict == "contradicted"


def test_every_measure_has_the_iid_accuracy_by_which_runs_have_learned() -> None:
    for name in NAMES:
        claim = CLAIMS.load(name)
        assert claim.learning == ("IID", 0.95) and claim.measures is not None
        records = frame(table1()) if name != "ctl/lengths" else frame(longer({BILSTM: 0.9, NDR: 0.9, TRANSFORMER: 0.4}))
        runs = claim.columns(records.drop_duplicates("trial"))
        table = claim.measures(Tables(records, runs))
        iid = table[(table.metric == "IID") & (table.factor == "")]
        assert set(iid.trial) == set(runs.trial) and not iid.duplicated("trial").any()


def test_every_claim_quotes_the_paper_and_has_a_headline() -> None:
    for name in NAMES:
        claim = CLAIMS.load(name)
        assert claim.quote
        assert any(criterion.role == "headline" for criterion in claim.criteria)
        keys = [criterion.key for criterion in claim.criteria]
        assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("name", ["ctl/K1", "ctl/K2", "ctl/K5", "ctl/spreads", "ctl/lengths"])
def test_every_model_is_in_a_headline(name: str) -> None:
    headlines = [criterion for criterion in CLAIMS.load(name).criteria if criterion.role == "headline"]
    models = {
        model for criterion in headlines for group in criterion.quantity.groups for model in group.columns["model"]
    }
    assert models == set(MODELS)


def test_table1_is_an_agreement_of_twelve_attainable_numbers() -> None:
    claim = CLAIMS.load("ctl/table1")
    assert claim.is_agreement and len(claim.criteria) == 12
    assert {name for name in NAMES if CLAIMS.load(name).is_agreement} == {"ctl/table1"}
    for number in claim.criteria:
        assert isinstance(number, PrintedNumber) and number.seeds == 25
        points = 0.05 if number.spread > 0.02 else 0.03
        assert number.high - number.value == pytest.approx(max(points, 3 * number.spread / 5), abs=1e-3)
        half = t.ppf(0.95, 48) * number.spread * math.sqrt(2 / 25)
        assert half < number.high - number.value, number.key
    outside = [(number.value, number.spread) for number in claim.criteria if "OOD" in number.key]
    assert outside == [entry for row in TABLE1.values() for entry in row.values()]


def paper_run(task: str, model: str, model_options: dict[str, Any] | None = None, **changes: Any) -> pd.DataFrame:
    """A run of the published size as a table of runs has it, with single options replaced."""
    recipe = published_recipe(task, model)
    assert recipe is not None
    run = {
        "task": task,
        "model": model,
        "status": "finished",
        "step": recipe.steps,
        "recipe.steps": recipe.steps,
        "recipe.batch": recipe.batch,
        **option_columns("task", task),
        **option_columns("model", model, **(model_options or {})),
    }
    return pd.DataFrame([{**run, **changes}])


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("task", ["ctl/A", "ctl/R", "ctl/S"])
def test_a_run_is_reduced_if_anything_is_smaller_than_published(task: str, model: str) -> None:
    run = paper_run(task, model)
    described = measures.columns(run)
    assert described["reduced"].dtype == bool and described["reduced"].tolist() == [False]
    other_model = run.assign(**{"model": "lstm", "recipe.steps": 5, "model.width": 5})
    assert measures.columns(other_model)["reduced"].tolist() == [False]  # nothing was published of it
    smaller = {
        "task.symbols": 4,
        "task.functions": 24,
        "task.max_length": 5,
        "task.train_size": 5_000,
        "model.width": 64,
        "recipe.steps": int(run["recipe.steps"][0]) // 5,
    }
    for column, value in smaller.items():
        assert measures.columns(run.assign(**{column: value}))["reduced"].tolist() == [True], column


def test_the_original_task_has_sizes_of_its_own() -> None:
    bilstm = paper_run("ctl/lengths", BILSTM, {"embedding": 16, "width": 200})
    ndr = paper_run("ctl/lengths", NDR, {"form": "original", "layers": 14, "heads": 1})
    for run in (bilstm, ndr):
        assert measures.length_columns(run)["reduced"].tolist() == [False]
        for column, value in (("task.composed", 5), ("task.symbols", 4), ("model.width", 64), ("recipe.steps", 4_000)):
            assert measures.length_columns(run.assign(**{column: value}))["reduced"].tolist() == [True], column
    assert not CLAIMS.load("ctl/lengths").printed_for
