"""The gcog claims: which runs count, and where. (That each can come to every word: test_claim_words.)"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from claim_gcog_cases import (
    OF_STUDY,
    POOLS,
    SMALL,
    changed,
    depths,
    distractors,
    found,
    frame,
    operators,
    pools,
    published,
    trees,
)

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
from unseen.studies.claims.claim import Tables
from unseen.studies.claims.gcog import CROSS, PERCEIVER, RNN, SINGLE, TREE_VALUES

NAMES = [entry.name for entry in CLAIMS if entry.name.startswith("gcog/")]


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
    assert verdict.setting == (
        "pool: 10000, 100000, 1000000, fresh; model: gcog-cross-attention, gcog-perceiver; "
        "preset: clean, released; distractors: some; coding: integer"
    )


def test_one_pool_leaves_the_larger_ones_open() -> None:
    verdict = found("gcog/pool", frame(pools(pools={name: POOLS[name] for name in ("10000", "fresh")})))
    assert [one.word for one in verdict.findings] == ["supported", "not run", "supported", "supported", "supported"]


def test_without_relative_positions_other_splits_or_depth_1_their_claims_are_not_run() -> None:
    absolute = frame(
        [row for row in trees() + depths() if row["positions"] == "absolute" and row.get("trained_on") != "1"]
    )
    clean = frame([row for row in operators() if row["split"] == "clean"])
    for name in ("relative-trees", "relative-productivity", "depth-1"):
        assert found(f"gcog/{name}", absolute).word == "not run"
    assert found("gcog/leak", clean).word == "not run"
    assert found("gcog/trees-values", absolute.drop(columns="positions")).word == "supported"
    assert found("gcog/operators-learned", clean.drop(columns="split")).word == "supported"


# -- the world --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        f"gcog/{name}"
        for name in (
            "distractors-learned",
            "distractors-drop",
            "operators",
            "leak",
            "trees-values",
            "productivity",
            "layers-trees",
        )
    ],
)
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
                assert measures.schema_of(said).cells == cell.task.domain.cells
                assert measures.chance_of(said) == pytest.approx((2.5 + (1 / kinds[~booleans]).sum()) / 8)
                run = pd.DataFrame(
                    [
                        {
                            "task": cell.task.name,
                            "task_options": task,
                            "model": levels.get("model", "x"),
                            "model_options": model,
                            **levels,
                        }
                    ]
                )
                if "model" in levels:
                    (placed,) = measures.columns(cell.task.name, run).itertuples()
                    assert placed.split == levels.get("split", "clean")
                    assert placed.positions == levels.get("positions", "absolute")
                    assert placed.trained_on == levels.get("trained_on", "1 and 3")
                    seen |= {placed.split, placed.positions, placed.trained_on}
    assert seen == {"clean", "released", "released-minus-leak", "absolute", "relative", "1", "1 and 3"}


def test_names_are_those_of_the_studies() -> None:
    assert measures.TASKS == gcog_layers.TASKS
    assert set(TREE_VALUES.values()) == {0.754, 0.657, 0.592, 0.541}
    studies = [
        module.STUDY
        for module in (gcog_distractors, gcog_systematicity, gcog_productivity, gcog_layers, gcog_rsa, gcog_pool)
    ]
    named = {claim: study.name for study in studies for claim in study.claims}
    assert named == {name: CLAIMS.load(name).study for name in NAMES}
    assert measures.FRESH == gcog_pool.FRESH
    assert set(measures.SETTING) | {"pool"} == set(gcog_pool.STUDY.entries("mini", seeds=[0])[0].levels)
