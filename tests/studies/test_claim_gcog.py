"""The gcog claims: the published numbers support them, other numbers contradict them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from claim_records import spread_out

from unseen.studies.catalog import gcog as catalog
from unseen.studies.catalog import (
    gcog_distractors,
    gcog_layers,
    gcog_pool,
    gcog_productivity,
    gcog_rsa,
    gcog_systematicity,
)
from unseen.studies.cell import words
from unseen.studies.claims import CLAIMS
from unseen.studies.claims import gcog_measures as measures
from unseen.studies.claims.claim import Tables, Verdict, judge
from unseen.studies.claims.gcog import CROSS, DUAL, GRU, MODELS, PERCEIVER, RNN, SINGLE, TREE_VALUES

NAMES = [entry.name for entry in CLAIMS if entry.name.startswith("gcog/")]
SEEDS = 5
CROWD = "gcog/distractor"
OPERATORS, TREES, PRODUCTIVE = "gcog/systematic-operators", "gcog/systematic-trees", "gcog/productive"
SMALL = ("coding=embedding distractors=[1, 3] features=[['shape', ['a', 'b', 'c', 'd', 'e', 'f']], ['color', ['red', "
         "'green', 'blue', 'yellow']]] grid=[5, 5]")
Rows = list[dict[str, Any]]


def rows(task: str, model: str, scores: Mapping[str, float], *, options: str = "", model_options: str = "",
         metric: str = "accuracy", width: float = 0.004, **levels: Any) -> Rows:
    """The records of one place on some conditions, one per seed."""
    found = []
    for shift, (condition, mean) in enumerate(scores.items()):
        for seed, value in enumerate(spread_out(mean, width, SEEDS, shift)):
            what = f"{task} {model} {seed} {options} {model_options} {sorted(levels.items())}"
            found.append({
                "scale": "full", **levels, "task": task, "task_options": options, "model": model,
                "model_options": model_options, "recipe": "x", "recipe_options": "", "seed": seed, "data_seed": seed,
                "status": "finished", "step": 100, "still_learning": 0, "selection": "last", "condition": condition,
                "factor": "", "level": "", "metric": metric, "value": value, "standard_error": float("nan"),
                "n": 10_000, "cell": hashlib.sha256(what.encode()).hexdigest()[:16]})
    return found


# -- the figures, as printed or described -----------------------------------------------------------------------------

CROWDED = {RNN: (0.45, 0.40, 0.36, 0.34), GRU: (0.60, 0.45, 0.40, 0.37), SINGLE: (0.75, 0.55, 0.50, 0.45),
           DUAL: (0.76, 0.56, 0.51, 0.46), CROSS: (0.96, 0.95, 0.94, 0.93), PERCEIVER: (0.97, 0.95, 0.94, 0.93)}
MET = {RNN: 0.81, GRU: 0.82, SINGLE: 0.83, DUAL: 0.84, CROSS: 0.98, PERCEIVER: 0.985}
GROWN = {RNN: (0.55, 0.541), GRU: (0.54, 0.50), SINGLE: (0.50, 0.45), DUAL: (0.52, 0.47), CROSS: (0.592, 0.50),
         PERCEIVER: (0.754, 0.657)}
POSITIONED = (SINGLE, DUAL, CROSS, PERCEIVER)


def distractors(options: str = "", numbers: tuple[int, ...] = (10, 20, 30, 40)) -> Rows:
    """Figure 3; the range is in none of its numbers."""
    found = []
    for model, levels in CROWDED.items():
        new = {f"ood/distractors={n}": value for n, value in zip(numbers, levels, strict=False)}
        found += rows(CROWD, model, {"train": 0.97, "iid": 0.2, "iid/distractors=1": 0.98, "iid/distractors=5": 0.96,
                                     f"ood/distractors={numbers[-1]}-50": 0.01, **new}, options=options)
    return found


def operators(options: str = "") -> Rows:
    """Figures 4a to c; without the leak as calculated."""
    found = []
    for model, met in MET.items():
        learned = 0.99 if model in (CROSS, PERCEIVER) else 0.96
        for split, value in (("clean", met), ("released", met), ("released-minus-leak", 2 * met - learned)):
            found += rows(OPERATORS, model, {"train": learned, "iid": learned, "ood/operators": value}, width=0.001,
                          options=" ".join(filter(None, (options, f"split={split}"))), split=split)
    return found


def trees(options: str = "") -> Rows:
    """Figures 4d to f and 9."""
    found = []
    for model, (inside, outside) in GROWN.items():
        for positions in ("absolute", "relative")[: 1 + (model in POSITIONED)]:
            less = 0.04 * (positions == "relative")
            found += rows(TREES, model, {"train": 0.985, "iid": 0.9, "iid/depth=3": inside - less,
                                         "ood/trees": outside - less, "ood/mixed-leaves": 0.1}, options=options,
                          model_options=f"positions={positions}" if less else "", positions=positions)
    return found


def depths(options: str = "") -> Rows:
    """Figures 5, 10 and 11."""
    found = []
    for model in MODELS:
        for positions in ("absolute", "relative")[: 1 + (model in POSITIONED)]:
            found += rows(PRODUCTIVE, model, {"train": 0.96, "iid": 0.96, "iid/depth=1": 0.97, "iid/depth=3": 0.95,
                                              "ood/depth=5": 0.30, "ood/depth=7": 0.29}, options=options,
                          model_options=f"positions={positions}" if positions == "relative" else "",
                          positions=positions, trained_on="1 and 3")
        found += rows(PRODUCTIVE, model, {"train": 0.96, "iid": 0.96, "ood/depth=3": 0.34, "ood/depth=5": 0.30,
                                          "ood/depth=7": 0.28}, options=f"{options} train_depths=[1]".strip(),
                      positions="absolute", trained_on="1")
    return found


def layers(options: str = "") -> Rows:
    """Figure 6."""
    new = {CROWD: "ood/distractors=10", OPERATORS: "ood/operators", TREES: "ood/trees", PRODUCTIVE: "ood/depth=5"}
    found = []
    for task, condition in new.items():
        for number in (1, 2, 3, 4):
            for heads in (1, 4, 8):
                score = 0.3 if task == PRODUCTIVE else 0.45 + 0.12 * number + 0.01 * heads
                found += rows(task, measures.BERT, {"train": 0.96, condition: score}, options=options, layers=number,
                              heads=heads)
    return found


def similarity(options: str = "") -> Rows:
    """Figure 7: what the study gcog-rsa records."""
    near = {RNN: 2.0, GRU: 2.1, SINGLE: 10.0, DUAL: 10.1, CROSS: 20.0, PERCEIVER: 20.1}
    found = []
    for model, moved in near.items():
        found += rows(CROWD, model, {"train": 0.97, "iid": 0.97}, options=options)
        for side, away in (("stimulus", 0), ("target", 30)):  # all may move away, too: it is the order that counts
            found += rows(CROWD, model, {"ood/distractors=40-50": moved - away}, options=options,
                          metric=f"similarity/{side}_alignment")
    return found


POOLS = {"10000": (0.98, 0.75, 0.60), "100000": (0.97, 0.86, 0.75), "1000000": (0.96, 0.93, 0.90),
         "fresh": (0.95, 0.95, 0.93)}


def pools(options: str = "", pools: Mapping[str, tuple[float, float, float]] = POOLS) -> Rows:
    """The prediction of the spec."""
    found = []
    for preset in ("clean", "released"):
        for model in (CROSS, PERCEIVER):
            for pool, scores in pools.items():
                said = [options, "preset=released" * (preset == "released"), f"pool={pool}" * (pool != "fresh")]
                found += rows(TREES, model, dict(zip(("train", "iid", "iid/depth=3"), scores, strict=True)),
                              options=" ".join(filter(None, said)), preset=preset, distractors="some", coding="integer",
                              pool=pool)
    return found


def systematicity(options: str = "") -> Rows:
    return operators(options) + trees(options)


OF_STUDY = {"gcog-distractors": distractors, "gcog-systematicity": systematicity, "gcog-productivity": depths,
            "gcog-layers": layers, "gcog-rsa": similarity, "gcog-pool": pools}


def frame(found: Rows) -> pd.DataFrame:
    """Records, with what claims must not read: other weights, levels, metrics, and another family."""
    table = pd.DataFrame(found)
    wrong = [table.assign(selection="best", value=0.5), table.assign(factor="operator", level="Exist", value=0.1),
             table.assign(metric="right_kind", value=1.0), table.assign(metric="loss", value=3.0)]
    other = table.assign(task="ctl/A", cell="c" + table.cell, model="ctl-ndr", value=0.7)
    return pd.concat([table, *wrong, other], ignore_index=True)


@cache
def of_study(study: str, options: str) -> pd.DataFrame:
    return frame(OF_STUDY[study](options))


def published(name: str, options: str = "") -> pd.DataFrame:
    return of_study(CLAIMS.load(name).study, options).copy()


def found(name: str, records: pd.DataFrame) -> Verdict:
    return judge(CLAIMS.load(name), records)


@pytest.mark.parametrize("name", NAMES)
def test_the_published_numbers_support_the_claims(name: str) -> None:
    verdict = found(name, published(name))
    assert [(one.part.says, one.open) for one in verdict.findings if one.word != "supported"] == []
    assert verdict.word == "supported"
    assert all(one.compared for one in verdict.findings)


def changed(records: pd.DataFrame, condition: str, value: float, metric: str = "accuracy",
            **places: Any) -> pd.DataFrame:
    chosen = ((records.condition == condition) & (records.metric == metric) & (records.selection == "last")
              & (records.factor == "") & records.task.str.startswith("gcog/"))
    for column, place in places.items():
        chosen &= records[column] == place
    assert chosen.any()
    return records.assign(value=records.value.where(~chosen, value + 0.001 * records.seed))


WRONG: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "gcog/distractors-learned": lambda r: changed(r, "train", 0.7, model=GRU),
    "gcog/distractors": lambda r: changed(r, "ood/distractors=40", 0.3, model=CROSS),
    "gcog/distractors-drop": lambda r: changed(r, "ood/distractors=20", 0.59, model=GRU),
    "gcog/distractors-weakest": lambda r: changed(r, "ood/distractors=10", 0.05, model=SINGLE),
    "gcog/operators-learned": lambda r: changed(r, "train", 0.91, model=GRU),
    "gcog/operators": lambda r: changed(r, "ood/operators", 0.96, model=PERCEIVER),
    "gcog/leak": lambda r: changed(r, "ood/operators", 0.80, model=RNN, split="released-minus-leak"),
    "gcog/trees-learned": lambda r: changed(r, "train", 0.95, model=RNN),
    "gcog/trees": lambda r: changed(r, "ood/trees", 0.6, model=GRU),
    "gcog/trees-values": lambda r: changed(r, "iid/depth=3", 0.9, model=PERCEIVER),
    "gcog/relative-trees": lambda r: changed(r, "iid/depth=3", 0.9, model=PERCEIVER, positions="relative"),
    "gcog/productivity-learned": lambda r: changed(r, "train", 0.7, model=DUAL),
    "gcog/productivity": lambda r: changed(r, "ood/depth=7", 0.37, model=CROSS, trained_on="1 and 3"),
    "gcog/relative-productivity": lambda r: changed(r, "ood/depth=5", 0.5, model=CROSS, positions="relative"),
    "gcog/depth-1": lambda r: changed(r, "ood/depth=3", 0.5, model=CROSS),
    "gcog/layers-distractors": lambda r: changed(r, "ood/distractors=10", 0.5),
    "gcog/layers-operators": lambda r: changed(r, "ood/operators", 0.8, layers=4),
    "gcog/layers-trees": lambda r: changed(r, "ood/trees", 0.2, heads=1),
    "gcog/layers-productivity": lambda r: changed(r, "ood/depth=5", 0.6, layers=4),
    "gcog/similarity": lambda r: changed(r, "ood/distractors=40-50", 25.0, "similarity/target_alignment", model=GRU),
    "gcog/pool": lambda r: changed(r, "iid/depth=3", 0.5, pool="fresh"),
}


@pytest.mark.parametrize("name", NAMES)
def test_other_numbers_contradict_them(name: str) -> None:
    assert found(name, WRONG[name](published(name))).word == "contradicted"


@pytest.mark.parametrize("name", NAMES)
def test_a_few_seeds_leave_them_open(name: str) -> None:
    records = published(name)
    assert found(name, records[records.seed < 2]).word == "undecided"


@pytest.mark.parametrize("name", NAMES)
def test_nothing_of_the_family_is_nothing_run(name: str) -> None:
    records = published(name)
    assert found(name, records[records.task == "ctl/A"]).word == "not run"
    bare = ["split", "positions", "trained_on", "layers", "heads", "pool", "preset", "distractors", "coding"]
    elsewhere = records[records.task == "ctl/A"].drop(columns=[name for name in bare if name in records])
    assert found(name, elsewhere).word == "not run"


@pytest.mark.parametrize("name", ["gcog/distractors-drop", "gcog/layers-trees", "gcog/pool"])
def test_the_order_of_records_does_not_matter(name: str) -> None:
    records = published(name)
    mixed = records.sample(frac=1, random_state=np.random.RandomState(3))
    assert found(name, mixed).findings == found(name, records).findings


# -- which runs count -------------------------------------------------------------------------------------------------


def test_runs_that_did_not_learn_say_nothing_of_generalization() -> None:
    records = changed(published("gcog/distractors-weakest"), "train", 0.85, model=RNN)
    verdict = found("gcog/distractors-weakest", records)
    said = {one.word for one in verdict.findings if "of gcog-rnn" in one.part.says}
    assert (verdict.word, said) == ("undecided", {"not run"})
    assert {one.word for one in verdict.findings if "of gcog-gru" in one.part.says} == {"supported"}
    assert found("gcog/distractors-learned", records).word == "contradicted"


def test_one_run_that_did_not_learn_is_left_out() -> None:
    records = published("gcog/trees-values")
    one = (records.seed == 4) & (records.model == PERCEIVER) & (records.selection == "last") & (records.factor == "")
    records.loc[one & (records.condition == "train"), "value"] = 0.5
    records.loc[one & (records.condition == "iid/depth=3"), "value"] = 0.0
    verdict = found("gcog/trees-values", records)
    assert verdict.word == "supported"
    assert [f.estimate.interval.n for f in verdict.findings if f.estimate] == [4, 4, 5, 5]


def test_a_study_that_asks_nothing_new_says_nothing_of_distractors() -> None:
    """gcog-rsa trains the same models, and tests them on less."""
    for name in NAMES[:4]:
        assert found(name, published("gcog/similarity")).word == "not run"
    assert found("gcog/similarity", published("gcog/distractors")).word == "not run"


@pytest.mark.parametrize("name", ["gcog/trees-learned", "gcog/trees-values", "gcog/layers-trees"])
def test_pools_are_not_mixed_with_fresh_questions(name: str) -> None:
    assert found(name, published("gcog/pool")).word == "not run"
    both = pd.concat([published(name), published("gcog/pool")], ignore_index=True)
    assert found(name, both).word == "supported"
    unnamed = [{**row, "pool": None} for row in pools() if row["pool"] != "fresh"]
    assert found(name, frame(OF_STUDY[CLAIMS.load(name).study]() + unnamed)).word == "supported"


@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith("gcog/layers")])
def test_the_series_of_layers_is_another_study(name: str) -> None:
    assert found(name, published("gcog/layers-trees")).word == "not run"


def test_a_pool_that_was_not_learned_says_nothing() -> None:
    records = changed(published("gcog/pool"), "train", 0.85, pool="10000", model=CROSS)
    records = changed(records, "train", 0.5, pool="1000000", model=PERCEIVER)
    found_in = measures.gaps(Tables(records, CLAIMS.load("gcog/pool").columns(records.drop_duplicates("cell"))))
    assert set(found_in.model) == {PERCEIVER}
    assert set(found_in.pool) == set(POOLS), "if the smallest pool was learned, the others count whatever they learned"
    assert found("gcog/pool", changed(published("gcog/pool"), "train", 0.85, pool="10000")).word == "not run"


def test_the_pool_claim_compares_what_agrees_in_all_else() -> None:
    """Cross-attention with the smallest pool alone: without a partner it does not count."""
    parts = [row for row in pools() if row["model"] == PERCEIVER or row["pool"] == "10000"]
    records = changed(frame(parts), "iid/depth=3", 0.99, pool="10000", model=CROSS)
    verdict = found("gcog/pool", records)
    assert verdict.word == "supported"
    assert verdict.setting == ("pool: 10000, 100000, 1000000, fresh; model: gcog-cross-attention, gcog-perceiver; "
                               "preset: clean, released; distractors: some; coding: integer")


def test_one_pool_leaves_the_larger_ones_open() -> None:
    verdict = found("gcog/pool", frame(pools(pools={name: POOLS[name] for name in ("10000", "fresh")})))
    assert [one.word for one in verdict.findings] == ["supported", "not run", "supported", "supported", "supported"]


def test_without_relative_positions_other_splits_or_depth_1_their_claims_are_not_run() -> None:
    absolute = frame([row for row in trees() + depths() if row["positions"] == "absolute"
                      and row.get("trained_on") != "1"])
    clean = frame([row for row in operators() if row["split"] == "clean"])
    for name in ("relative-trees", "relative-productivity", "depth-1"):
        assert found(f"gcog/{name}", absolute).word == "not run"
    assert found("gcog/leak", clean).word == "not run"
    assert found("gcog/trees-values", absolute.drop(columns="positions")).word == "supported"
    assert found("gcog/operators-learned", clean.drop(columns="split")).word == "supported"


# -- the world --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [f"gcog/{name}" for name in (
    "distractors-learned", "distractors-drop", "operators", "leak", "trees-values", "productivity", "layers-trees")])
def test_in_another_world_directions_are_judged_and_printed_numbers_are_not(name: str) -> None:
    verdict = found(name, published(name, SMALL))
    assert verdict.setting == "cells 25 (paper: 100)"
    assert verdict.word == ("not run" if name == "gcog/trees-values" else "supported")
    assert [one.compared for one in verdict.findings] == [not one.part.printed for one in verdict.findings]


def test_new_numbers_of_distractors_are_in_order() -> None:
    """As words 12 comes before 6; and the range is none of them."""
    records = frame(distractors(SMALL, (6, 9, 12)))
    claim = CLAIMS.load("gcog/distractors-drop")
    runs = claim.columns(records.drop_duplicates("cell"))
    table = measures.accuracies(Tables(records, runs))
    means = table[table.model == SINGLE].groupby("metric")["value"].mean()
    assert means[measures.FIRST] == pytest.approx(0.75)
    assert means[measures.SECOND] == pytest.approx(0.55)
    assert means["OOD"] == pytest.approx((0.75 + 0.55 + 0.50) / 3)
    assert means["IID"] == pytest.approx(0.97)


def test_options_are_read_as_the_tables_print_them() -> None:
    """Cells, chance, splits, depths and positions of real studies; chance by counting the classes of each kind."""
    seen = set()
    for module in (gcog_systematicity, gcog_productivity, gcog_layers):
        for scale in ("mini", "full"):
            for entry in module.STUDY.entries(scale, seeds=[0])[::5]:
                cell, levels = entry.cell, entry.levels
                task, model = (words(part.options()).partition(" ")[2] for part in (cell.task, cell.model))
                said = measures.read_options(task)
                kinds = np.unique(cell.task.answer_kinds, return_counts=True)[1]
                booleans = kinds == 2
                assert booleans.sum() == 1
                assert measures.cells_of(said) == cell.task.domain.cells
                assert measures.chance_of(said) == pytest.approx((2.5 + (1 / kinds[~booleans]).sum()) / 8)
                run = pd.DataFrame([{"task": cell.task.name, "task_options": task, "model": levels.get("model", "x"),
                                     "model_options": model, **levels}])
                if "model" in levels:
                    (placed,) = measures.columns(cell.task.name, run).itertuples()
                    assert placed.split == levels.get("split", "clean")
                    assert placed.positions == levels.get("positions", "absolute")
                    assert placed.trained_on == levels.get("trained_on", "1 and 3")
                    seen |= {placed.split, placed.positions, placed.trained_on}
    assert seen == {"clean", "released", "released-minus-leak", "absolute", "relative", "1", "1 and 3"}


def test_names_are_those_of_the_studies() -> None:
    assert (measures.MODELS, measures.BERT) == (catalog.MODELS, catalog.BERT)
    assert measures.TASKS == gcog_layers.TASKS
    assert set(TREE_VALUES.values()) == {0.754, 0.657, 0.592, 0.541}
    studies = [module.STUDY for module in (gcog_distractors, gcog_systematicity, gcog_productivity, gcog_layers,
                                           gcog_rsa, gcog_pool)]
    named = {claim: study.name for study in studies for claim in study.claims}
    assert named == {name: CLAIMS.load(name).study for name in NAMES}
    assert measures.FRESH == gcog_pool.FRESH
    assert set(measures.SETTING) | {"pool"} == set(gcog_pool.STUDY.entries("mini", seeds=[0])[0].levels)
