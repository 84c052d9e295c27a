"""The gcog claims: which runs count, and where. (test_claims_verdicts shows that each can reach every verdict.)"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from support.claim_gcog_cases import (
    DETAILS_WRONG,
    OF_STUDY,
    OPERATORS,
    POOLS,
    SMALL,
    changed,
    depths,
    distractors,
    found,
    frame,
    operators,
    paper_sizes,
    pools,
    published,
    trees,
)
from unseen.claims import CLAIMS
from unseen.claims.claim import Tables
from unseen.claims.judge import judge
from unseen.claims.papers import gcog_measures as measures
from unseen.claims.papers.gcog import CROSS, PERCEIVER, RNN, SINGLE, TREE_VALUES
from unseen.store.tables import all_options
from unseen.studies.catalog import gcog as catalog
from unseen.studies.study import study

NAMES = [entry.name for entry in CLAIMS if entry.name.startswith("gcog/")]
ROLES = ("headline", "detail")


@pytest.mark.parametrize("name", NAMES)
def test_without_runs_of_the_family_nothing_is_judged(name: str) -> None:
    records = published(name)
    assert found(name, records[records.task == "ctl/A"]).verdict == "not run"
    bare = ["hold_out", "positions", "trained_on", "layers", "heads", "pool", "preset", "distractors", "coding"]
    elsewhere = records[records.task == "ctl/A"].drop(columns=[name for name in bare if name in records])
    assert found(name, elsewhere).verdict == "not run"


@pytest.mark.parametrize("name", ["gcog/distractors-drop", "gcog/layers-trees", "gcog/pool"])
def test_the_order_of_records_does_not_matter(name: str) -> None:
    records = published(name)
    mixed = records.sample(frac=1, random_state=np.random.RandomState(3))
    assert found(name, mixed).findings == found(name, records).findings


# -- which runs count -------------------------------------------------------------------------------------------------


def test_runs_that_did_not_learn_say_nothing_of_generalization() -> None:
    records = changed(published("gcog/distractors-weakest"), "train", 0.85, model=RNN)
    verdict = found("gcog/distractors-weakest", records)
    said = {one.verdict for one in verdict.findings if "of gcog-rnn" in one.criterion.key}
    assert (verdict.verdict, said) == ("undecided", {"not run"})
    assert {one.verdict for one in verdict.findings if "of gcog-gru" in one.criterion.key} == {"holds"}
    assert found("gcog/distractors-learned", records).verdict == "contradicted"


def test_one_run_that_did_not_learn_is_left_out() -> None:
    records = published("gcog/trees-values")
    one = (records.seed == 4) & (records.model == PERCEIVER) & (records.selection == "last") & (records.factor == "")
    records.loc[one & (records.split == "train"), "value"] = 0.5
    records.loc[one & (records.split == "iid/depth=3"), "value"] = 0.0
    verdict = found("gcog/trees-values", records)
    assert verdict.verdict == "supported"
    assert [f.estimate.interval.n for f in verdict.findings if f.estimate] == [4, 4, 5, 5]
    assert verdict.setting == "cells 100; published_setting True"


def test_a_study_that_asks_nothing_new_says_nothing_of_distractors() -> None:
    """Records of the analysis `similarity` alone are of the same models, tested on less."""
    for name in NAMES[:4]:
        assert found(name, published("gcog/similarity")).verdict == "not run"
    assert found("gcog/similarity", published("gcog/distractors")).verdict == "not run"


@pytest.mark.parametrize("name", ["gcog/trees-learned", "gcog/trees-values", "gcog/layers-trees"])
def test_pools_are_not_mixed_with_fresh_questions(name: str) -> None:
    assert found(name, published("gcog/pool")).verdict == "not run"
    both = pd.concat([published(name), published("gcog/pool")], ignore_index=True)
    assert found(name, both).verdict == "supported"
    unnamed = [{**row, "pool": None} for row in pools() if row["pool"] != "fresh"]
    assert found(name, frame(OF_STUDY[CLAIMS.load(name).study]() + unnamed)).verdict == "supported"


@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith("gcog/layers")])
def test_the_series_of_layers_is_another_study(name: str) -> None:
    assert found(name, published("gcog/layers-trees")).verdict == "not run"


def test_a_pool_that_was_not_learned_says_nothing() -> None:
    records = changed(published("gcog/pool"), "train", 0.85, pool="10000", model=CROSS)
    records = changed(records, "train", 0.5, pool="1000000", model=PERCEIVER)
    found_in = measures.gaps(Tables(records, CLAIMS.load("gcog/pool").columns(records.drop_duplicates("trial"))))
    assert set(found_in.model[found_in.metric == measures.TRAINING]) == {CROSS, PERCEIVER}
    found_in = found_in[found_in.metric == measures.GAP]
    assert set(found_in.model) == {PERCEIVER}
    assert set(found_in.pool) == set(POOLS), "if the smallest pool was learned, the others count whatever they learned"
    assert found("gcog/pool", changed(published("gcog/pool"), "train", 0.85, pool="10000")).verdict == "not run"


def test_the_pool_claim_compares_what_agrees_in_all_else() -> None:
    """Cross-attention with the smallest pool alone: without a partner it does not count."""
    parts = [row for row in pools() if row["model"] == PERCEIVER or row["pool"] == "10000"]
    records = changed(frame(parts), "iid/depth=3", 0.99, pool="10000", model=CROSS)
    verdict = found("gcog/pool", records)
    assert verdict.verdict == "supported"
    assert verdict.setting == (
        "pool: 10000, 100000, 1000000, fresh; model: gcog-cross-attention, gcog-perceiver; "
        "preset: clean, released; distractors: some; coding: integer"
    )


def test_one_pool_leaves_the_larger_ones_open() -> None:
    verdict = found("gcog/pool", frame(pools(pools={name: POOLS[name] for name in ("10000", "fresh")})))
    assert [one.verdict for one in verdict.findings] == ["holds", "not run", "holds", "holds", "holds"]


def test_without_relative_positions_other_splits_or_depth_1_their_claims_are_not_run() -> None:
    absolute = frame(
        [row for row in trees() + depths() if row["positions"] == "absolute" and row.get("trained_on") != "1"]
    )
    clean = frame([row for row in operators() if row["hold_out"] == "clean"])
    for name in ("relative-trees", "relative-productivity", "depth-1"):
        assert found(f"gcog/{name}", absolute).verdict == "not run"
    assert found("gcog/leak", clean).verdict == "not run"
    assert found("gcog/trees-values", absolute.drop(columns="positions")).verdict == "supported"
    assert found("gcog/operators-learned", clean.drop(columns="hold_out")).verdict == "supported"


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
    verdict = found(name, published(name, small=True))
    assert verdict.setting == "cells 25 (paper: 100); published_setting False (paper: True)"
    assert verdict.verdict == ("not run" if name == "gcog/trees-values" else "supported")
    assert [one.compared for one in verdict.findings] == [not one.criterion.printed for one in verdict.findings]


def test_new_numbers_of_distractors_are_in_order() -> None:
    """As words 12 comes before 6; and the range is none of them."""
    records = frame(distractors(SMALL, (6, 9, 12)))
    claim = CLAIMS.load("gcog/distractors-drop")
    runs = claim.columns(records.drop_duplicates("trial"))
    table = measures.accuracies(Tables(records, runs))
    means = table[table.model == SINGLE].groupby("metric")["value"].mean()
    assert means[measures.FIRST] == pytest.approx(0.75)
    assert means[measures.SECOND] == pytest.approx(0.55)
    assert means["OOD"] == pytest.approx((0.75 + 0.55 + 0.50) / 3)
    assert means["IID"] == pytest.approx(0.97)


def test_columns_come_from_the_options_of_real_studies() -> None:
    """Cells, chance, hold-outs, depths and positions; chance is checked by counting the classes of each kind."""
    seen = set()
    for name in ("gcog-systematicity", "gcog-productivity"):
        for scale in ("mini", "full"):
            for entry in study(name).entries(scale, seeds=[0])[::5]:
                trial, levels = entry.trial, entry.levels
                if levels["questions"] != "fresh":
                    continue
                options = {}
                for component, config in (("task", trial.task), ("model", trial.model)):
                    for option, value in all_options(component, config.identity()).items():
                        options[f"{component}.{option}"] = value
                runs = pd.DataFrame([{"task": trial.task.name, "model": trial.model.name, **options, **levels}])
                (run,) = measures.columns(trial.task.name, runs).itertuples()
                classes = np.unique(trial.task.answer_kinds, return_counts=True)[1]
                booleans = classes == 2
                assert booleans.sum() == 1
                assert run.cells == trial.task.domain.cells
                assert run.chance == pytest.approx((2.5 + (1 / classes[~booleans]).sum()) / 8)
                assert run.hold_out == levels.get("hold_out", "clean")
                assert run.positions == levels.get("positions", "absolute")
                assert run.trained_on == levels.get("trained_on", "")
                seen |= {run.hold_out, run.positions, run.trained_on} - {""}
    assert seen == {"clean", "released", "released-minus-leak", "absolute", "relative", "1", "1 and 3"}


def test_a_hold_out_that_was_not_chosen_is_that_of_the_preset() -> None:
    options = {f"task.{name}": value for name, value in all_options("task", {"name": OPERATORS}).items()}
    assert options["task.split"] is None
    (run,) = measures.columns(OPERATORS, pd.DataFrame([{"task": OPERATORS, "model": RNN, **options}])).itertuples()
    assert run.hold_out == "clean"


def test_names_are_those_of_the_studies() -> None:
    assert measures.TASKS == catalog.TASKS
    assert set(TREE_VALUES.values()) == {0.754, 0.657, 0.592, 0.541}
    studies = [study(f"gcog-{name}") for name in ("distractors", "systematicity", "productivity", "layers", "pool")]
    named = {claim: entry.name for entry in studies for claim in entry.claims}
    assert set(named) == set(NAMES)
    for name, made_by in named.items():
        assert CLAIMS.load(name).study == made_by
    assert measures.FRESH == catalog.FRESH
    assert set(measures.SETTING) | {"pool"} == set(study("gcog-pool").entries("mini", seeds=[0])[0].levels)


# -- the paper's own setting, and sizes below it ----------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_every_claim_quotes_the_paper_and_has_headline_criteria(name: str) -> None:
    claim = CLAIMS.load(name)
    assert claim.quote
    assert claim.learning == (measures.TRAINING, measures.LEARNED)
    assert any(criterion.role == "headline" for criterion in claim.criteria)
    keys = [criterion.key for criterion in claim.criteria]
    assert len(set(keys)) == len(keys)
    compared = claim.name != "gcog/trees-values"
    assert all(criterion.role == "detail" for criterion in claim.criteria if criterion.printed and compared)


@pytest.mark.parametrize("name", DETAILS_WRONG)
def test_wrong_details_leave_the_headline_alone(name: str) -> None:
    verdict = found(name, DETAILS_WRONG[name](published(name)))
    by_role = {role: [one.verdict for one in verdict.findings if one.criterion.role == role] for role in ROLES}
    assert "contradicted" in by_role["detail"]
    assert set(by_role["headline"]) == {"holds"}


def test_printed_numbers_of_trees_agree_if_the_runs_have_them() -> None:
    """A pool of which 98 % are learned, and fresh trees as printed; runs on fresh questions are not looked at."""
    records = published("gcog/trees-values")
    fresh = records["task.preset"] == "clean"
    verdict = found("gcog/trees-values", records[~fresh])
    assert verdict.claim.is_agreement and verdict.verdict == "supported"
    other = records.assign(value=records.value.where(~fresh, 0.95))
    assert found("gcog/trees-values", other).findings == verdict.findings
    assert found("gcog/trees-values", records[fresh]).verdict == "not run"


@pytest.mark.parametrize(
    "option, value",
    [
        ("model.width", 128),
        ("model.hidden", 256),
        ("task.coding", "embedding"),
        ("recipe.steps", 21_086),
        ("task.pool", 10_000),
        ("task.preset", "clean"),
        ("task.distractors", (0, 5)),
    ],
)
def test_printed_numbers_are_not_compared_in_another_setting(option: str, value: object) -> None:
    records = published("gcog/trees-learned")
    as_published = records["task.pool"].notna()
    values = records[option].astype(object)
    values[as_published] = pd.Series([value] * int(as_published.sum()), records.index[as_published], dtype=object)
    records[option] = values
    if option == "model.hidden":
        records = records[~records.model.isin([RNN, catalog.GRU])]
    assert found("gcog/trees-values", records).verdict == "not run"
    learned = found("gcog/trees-learned", records)
    assert [one.compared for one in learned.findings] == [not one.criterion.printed for one in learned.findings]


def test_another_width_of_fresh_questions_compares_no_printed_number() -> None:
    """The old claims compared whatever had 100 cells."""
    records = published("gcog/operators")
    records = records[records["task.pool"].isna()].assign(**{"model.width": 64})
    verdict = found("gcog/operators", records)
    assert verdict.setting == "cells 100; published_setting False (paper: True)"
    assert [one.compared for one in verdict.findings] == [not one.criterion.printed for one in verdict.findings]
    assert verdict.verdict == "supported"


def _run(task: str = OPERATORS, model: str = SINGLE, **changes: object) -> pd.DataFrame:
    options = {f"task.{name}": value for name, value in all_options("task", {"name": task}).items()}
    sizes = paper_sizes(task, model)
    return pd.DataFrame([{"task": task, "model": model, **options, **sizes, **changes}])


@pytest.mark.parametrize(
    "changes, reduced",
    [
        ({}, False),
        ({"recipe.batch": 64, "recipe.steps": 749_688}, False),
        ({"recipe.steps": 1_000_000}, False),
        ({"recipe.steps": 20_000}, True),
        ({"recipe.steps": None}, False),
        ({"model.width": 64}, True),
        ({"model.hidden": 128}, True),
        ({"model.width": 512}, False),
        ({"task.grid": (4, 4)}, True),
        ({"task.features": (("shape", ("a", "b")), ("color", ("red", "green")))}, True),
        ({"task.distractors": (1, 3)}, True),
        ({"task.distractors": (0, 5)}, False),
    ],
)
def test_runs_below_the_paper_s_sizes_are_reduced(changes: dict[str, object], reduced: bool) -> None:
    (run,) = measures.claim_columns(OPERATORS, _run(**changes)).itertuples()
    assert run.reduced is reduced


def test_studies_are_reduced_except_at_full_scale() -> None:
    for name in ("gcog-distractors", "gcog-systematicity", "gcog-productivity", "gcog-layers", "gcog-pool"):
        for scale in ("mini", "medium", "full"):
            entry = study(name).entries(scale, seeds=[0])[0]
            row = {"task": entry.trial.task.name, "model": entry.trial.model.name}
            for component in ("task", "model", "recipe"):
                identity = getattr(entry.trial, component).identity()
                row |= {f"{component}.{key}": value for key, value in all_options(component, identity).items()}
            assert measures.is_reduced(pd.DataFrame([row])).tolist() == [scale != "full"], (name, scale)


# -- states ------------------------------------------------------------------------------------------------------------


def test_similarity_is_judged_from_either_study_and_from_both() -> None:
    alone = published("gcog/similarity")
    together = pd.concat([published("gcog/distractors"), alone], ignore_index=True)
    verdict = found("gcog/similarity", together)
    assert verdict.verdict == "supported" and CLAIMS.load("gcog/similarity").study == "gcog-distractors"
    # A run that two studies evaluated is in the table of runs twice.
    runs = together.drop_duplicates(["trial", "split"])
    assert runs.trial.duplicated().any()
    again = judge(CLAIMS.load("gcog/similarity"), together, runs)
    assert again.findings == verdict.findings and found("gcog/similarity", alone).findings == verdict.findings
