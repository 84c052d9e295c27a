"""The figures of the gCOG paper, from made-up records of our own studies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest

from support.figure_sources import quick, rendered
from support.made_sources import Key, made
from unseen.claims.papers.gcog import TREE_VALUES
from unseen.report import baselines
from unseen.report.data import Source
from unseen.report.figure import Drawing
from unseen.report.figures import figures, gcog
from unseen.report.figures.gcog import FIGURES
from unseen.report.figures.gcog_splits import FIGURE4, printed_marks
from unseen.studies.catalog.gcog import MODELS
from unseen.studies.trial import Entry
from unseen.tasks.gcog.schema import STANDARD

FIGURE = {one.name: one for one in FIGURES}
PAPER = {f"gcog/figure{number}" for number in ("2f", 3, 4, 5, 6, 7, 9, 10, 11)}
EVERYWHERE = ("gcog/figure2f", "gcog/operators", "gcog/kinds")
KINDS = ("boolean", "location", "shape", "color")


@pytest.fixture(autouse=True, scope="module")
def few_examples() -> Iterator[None]:
    """Shortcuts are measured on few examples, and of many settings one is drawn: neither is asked about here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(baselines, "EXAMPLES", 100)
        patch.setattr(gcog, "MAX_BLOCKS", 1)
        yield
    baselines.task_baselines.cache_clear()


def value(entry: Entry, split: str) -> float:
    """Different for every split, model and seed; one run, the GRU's of seed 2, has not learned."""
    if split == "train":
        return 0.5 if (entry.trial.model.name, entry.trial.seed) == ("gcog-gru", 2) else 0.95 + 0.01 * entry.trial.seed
    models = (*MODELS, "gcog-bert")
    own = 0.05 * models.index(entry.trial.model.name) + 0.02 * entry.trial.seed
    return 0.3 + own + 0.001 * sum(map(ord, split)) % 0.1


def numbers(entry: Entry) -> dict[Key, float]:
    found: dict[Key, float] = {}
    for place, split in enumerate(entry.trial.task.splits):
        found[split, "accuracy"] = value(entry, split)
        for metric in ("accuracy", "right_kind"):
            found |= {(split, metric, "operator", name): 0.01 * place + 0.1 * STANDARD.index(name) for name in STANDARD}
            found |= {
                (split, metric, "answer_kind", name): 0.01 * place
                + 0.1 * KINDS.index(name)
                + 0.001 * entry.trial.seed
                + 0.5 * (metric == "right_kind")
                for name in KINDS
            }
    return found


def curve(entry: Entry) -> dict[tuple[int, str, str], float]:
    return {
        (step, split, metric): 0.01 * step + 0.1 * entry.trial.seed + 0.1
        for step in (20, 40)
        for split, metric in (("iid", "accuracy"), ("train", "loss"))
    }


@cache
def distractors() -> Source:
    return made("gcog-distractors", "smoke", numbers, curve=curve)


def drawn(name: str, source: Source) -> Drawing:
    found = quick(FIGURE[name], source)
    assert found is not None
    return found


def one(data: pd.DataFrame, **chosen: object) -> pd.Series:
    for column, wanted in chosen.items():
        data = data[data[column] == wanted]
    (row,) = data.to_dict("records")
    return pd.Series(row)


def test_every_figure_of_the_paper_is_there() -> None:
    names = [figure.name for figure in FIGURES]
    assert len(names) == len(set(names)) and set(names) >= PAPER
    assert {"gcog/operators", "gcog/kinds", "gcog/pool"} <= set(names)
    assert all(figure.title and figure.origin and figure.caption for figure in FIGURES)
    assert set(names) == {figure.name for figure in figures(["gcog"])}


@pytest.mark.parametrize(
    ("study", "names"),
    [
        ("gcog-distractors", {"gcog/figure2f", "gcog/figure3", "gcog/operators", "gcog/kinds"}),
        ("gcog-systematicity", {"gcog/figure2f", "gcog/figure4", "gcog/operators", "gcog/kinds"}),
        ("gcog-productivity", {"gcog/figure2f", "gcog/figure5", "gcog/figure11", "gcog/operators", "gcog/kinds"}),
        ("gcog-layers", {"gcog/figure2f", "gcog/figure6", "gcog/operators", "gcog/kinds"}),
        ("gcog-pool", {"gcog/figure2f", "gcog/pool", "gcog/operators", "gcog/kinds"}),
    ],
)
def test_each_study_has_its_figures_and_they_compile(study: str, names: set[str]) -> None:
    source = made(
        study,
        "smoke",
        numbers,
        curve=curve,
        seeds=range(1),
        only=lambda entry: study != "gcog-layers" or entry.trial.task.name == "gcog/distractor",
    )
    drawings = {figure.name: quick(figure, source) for figure in FIGURES}
    assert {name for name, found in drawings.items() if found is not None} == names
    for name, found in drawings.items():
        if found is not None:
            assert len(found.data) and "runs" in found.data
            # Those of all studies are the same chart again.
            assert (study != "gcog-distractors" and name in EVERYWHERE) or rendered(found)


@pytest.mark.parametrize("study", ["gcog-distractors", "gcog-layers", "gcog-pool", "retrieval-table2"])
def test_nothing_is_drawn_of_nothing(study: str) -> None:
    source = made(study, "smoke", numbers, status=lambda entry: "pending", seeds=range(1))
    # How large a model is, is known before it is trained.
    assert [figure.name for figure in FIGURES if figure.draw(source) is not None] == (
        ["gcog/figure2f"] if study.startswith("gcog") else []
    )


def test_figure3_is_the_last_weights_of_every_run() -> None:
    source = distractors()
    data = drawn("gcog/figure3", source).data
    records = source.records[(source.records["factor"] == "") & (source.records["selection"] == "last")]
    for model in MODELS:
        own = records[records["model"] == model]
        for panel, splits in (
            ("training accuracy", ["train"]),
            ("IID", ["iid/distractors=1", "iid/distractors=3"]),
            ("OOD", ["ood/distractors=4"]),
        ):
            here = own[own["split"].isin(splits)]
            expected = {seed: float(np.mean(found["value"])) for seed, found in here.groupby("seed")}
            rows = data[(data["panel"] == panel) & (data["model"] == model) & (data["what"] == "run")]
            assert dict(zip(rows["seed"], rows["value"], strict=True)) == pytest.approx(expected)
            counted = [seed for seed in expected if panel == "training accuracy" or (model, seed) != ("gcog-gru", 2)]
            mean = one(data, panel=panel, model=model, what="mean")
            assert mean["value"] == pytest.approx(np.mean([expected[seed] for seed in counted]))
            assert mean["runs"] == len(counted)
            assert np.isnan(mean["low"]) == (len(counted) < 3)


def test_runs_that_have_not_learned_are_hollow_and_said() -> None:
    drawing = drawn(
        "gcog/figure3",
        made("gcog-distractors", "smoke", numbers, not_converged=lambda entry: int(entry.trial.seed == 1)),
    )
    states = drawing.data[(drawing.data["panel"] == "OOD") & (drawing.data["what"] == "run")]
    told = {(row["model"], row["seed"]): row["state"] for row in states.to_dict("records")}
    assert told["gcog-gru", 2] == "not learned" and told["gcog-gru", 1] == "not converged"
    assert told["gcog-gru", 0] == "ended"
    assert any("1 run has not learned" in note for note in drawing.notes)
    assert any("6 runs had not converged" in note for note in drawing.notes)


def test_curves_are_against_samples_seen() -> None:
    data = drawn("gcog/figure3", distractors()).data
    points = data[(data["panel"] == "training loss") & (data["what"] == "run") & (data["model"] == "gcog-rnn")]
    assert sorted(set(points["samples"])) == [20 * 32, 40 * 32]  # smoke has batches of 32
    mean = one(data, panel="fresh examples while training", what="mean", model="gcog-rnn", samples=40 * 32)
    assert mean["value"] == pytest.approx(0.4 + 0.1 + 0.1) and mean["runs"] == 3


def test_distractors_one_by_one() -> None:
    data = drawn("gcog/figure3", distractors()).data
    found = data[
        (data["panel"] == "by number of distractors")
        & (data["what"] == "run")
        & (data["model"] == "gcog-perceiver")
        & (data["seed"] == 1)
    ]
    source = distractors()
    entry = source.records[
        (source.records["model"] == "gcog-perceiver")
        & (source.records["seed"] == 1)
        & (source.records["selection"] == "last")
        & (source.records["factor"] == "")
    ]
    expected = {
        float(name.rpartition("=")[2]): number
        for name, number in zip(entry["split"], entry["value"], strict=True)
        if name in ("iid/distractors=1", "iid/distractors=3", "ood/distractors=4")
    }
    assert dict(zip(found["distractors"], found["value"], strict=True)) == pytest.approx(expected)


def test_a_partial_study_gives_a_partial_figure_with_its_counts() -> None:
    def status(entry: Entry) -> str:
        done = entry.trial.seed == 0 and entry.trial.model.name != "gcog-rnn"
        return "finished" if done else "failed" if entry.trial.seed == 1 else "pending"

    source = made("gcog-distractors", "smoke", numbers, curve=curve, status=status)
    drawing = drawn("gcog/figure3", source)
    rows = drawing.data[(drawing.data["panel"] == "OOD") & (drawing.data["what"] == "mean")]
    assert set(rows["model"]) == set(MODELS[1:]) and (rows["runs"] == 1).all() and rows["low"].isna().all()
    assert drawing.notes[0] == "5 of 18 runs are drawn; 6 failed, 7 have not ended."
    assert rendered(drawing)


def test_printed_marks_only_in_the_papers_world() -> None:
    trees = printed_marks(FIGURE4[-1])
    values = {(row["row"], row["metric"]): row["value"] for row in trees[trees["mark"] == "|"].to_dict("records")}
    assert values == pytest.approx(TREE_VALUES)
    assert printed_marks(FIGURE4[0]).empty, "the paper's numbers are of the published split"
    single = printed_marks(FIGURE4[1]).set_index(["metric", "row"])["value"]
    assert single["OOD", "gcog-perceiver"] == 0.97 and single["OOD", "gcog-rnn"] == 0.78
    assert single["training accuracy", "gcog-rnn"] == 0.92
    assert printed_marks(FIGURE4[2]).set_index(["metric", "row"])["value"]["OOD", "gcog-rnn"] == 0.64
    large = made("gcog-systematicity", "small", numbers, seeds=range(1))
    found = drawn("gcog/figure4", large)
    assert set(found.data["what"]) == {"run", "mean", "printed"} and any("printed" in note for note in found.notes)
    small = drawn("gcog/figure4", made("gcog-systematicity", "smoke", numbers, seeds=range(1)))
    assert set(small.data["what"]) == {"run", "mean"} and not any("printed" in note for note in small.notes)


def test_relative_positions_and_splits_stand_apart() -> None:
    source = made("gcog-systematicity", "full", numbers, seeds=range(1))
    data = drawn("gcog/figure4", source).data
    assert data["setting"].nunique() == 4
    assert set(drawn("gcog/figure9", source).data["model"]) == set(MODELS[2:])  # recurrent models have no positions
    runs = source.runs
    relative = runs[runs["model_options"].str.contains("relative")]
    assert len(relative) == 4
    shown = data[(data["task"] == "gcog/systematic-trees") & (data["what"] == "run") & (data["panel"] == "OOD")]
    assert sorted(shown["model"]) == sorted(MODELS)


def test_deeper_questions_by_depth() -> None:
    source = made("gcog-productivity", "smoke", numbers, seeds=range(2))
    both, single = (drawn(name, source).data for name in ("gcog/figure5", "gcog/figure11"))
    assert list(dict.fromkeys(both["panel"])) == [
        "training accuracy",
        "depth 1 (IID)",
        "depth 3 (IID)",
        "depth 5 (OOD)",
    ]
    assert list(dict.fromkeys(single["panel"])) == [
        "training accuracy",
        "depth 1 (IID)",
        "depth 3 (OOD)",
        "depth 5 (OOD)",
    ]
    own = source.records[source.records["trained_on"] == "1"]
    expected = own[
        (own["model"] == "gcog-rnn")
        & (own["split"] == "ood/depth=3")
        & (own["selection"] == "last")
        & (own["factor"] == "")
        & (own["seed"] == 1)
    ]["value"].item()
    assert one(single, panel="depth 3 (OOD)", model="gcog-rnn", what="run", seed=1)["value"] == expected


def test_relative_deeper_questions() -> None:
    source = made("gcog-productivity", "full", numbers, seeds=range(1))
    assert set(drawn("gcog/figure10", source).data["model"]) == set(MODELS[2:])
    assert set(drawn("gcog/figure5", source).data["model"]) == set(MODELS)


def test_layers_and_heads() -> None:
    source = made(
        "gcog-layers",
        "smoke",
        lambda entry: {
            **numbers(entry),
            ("ood/operators", "accuracy"): 0.1 * entry.trial.model.layers
            + 0.01 * entry.trial.model.heads
            + 0.001 * entry.trial.seed,
        },
    )
    data = drawn("gcog/figure6", source).data
    here = data[data["task"] == "gcog/systematic-operators"]
    cell = one(here[here["panel"] == "OOD"], layers="2", heads="4")
    assert cell["value"] == pytest.approx(0.2 + 0.04 + 0.001) and cell["runs"] == 3
    by_layers = one(here[(here["panel"] == "OOD, by layers") & (here["what"] == "mean")], layers="2")
    assert by_layers["value"] == pytest.approx(0.2 + 0.025 + 0.001) and by_layers["runs"] == 6
    by_heads = one(here[(here["panel"] == "OOD, by heads") & (here["what"] == "mean")], heads="1")
    assert by_heads["value"] == pytest.approx(0.15 + 0.01 + 0.001)


def test_alignment() -> None:
    def aligned(entry: Entry) -> dict[Key, float]:
        return {
            ("train", "accuracy"): 0.95,
            ("ood/distractors=4-14", "similarity/stimulus_alignment"): entry.trial.seed,
            ("ood/distractors=4-14", "similarity/target_alignment"): -2.0 * entry.trial.seed,
        }

    drawing = drawn("gcog/figure7", made("gcog-distractors", "smoke", aligned))
    assert one(drawing.data, panel="alignment to the stimulus", model="gcog-gru", what="mean")["value"] == 1.0
    assert one(drawing.data, panel="alignment to the target", model="gcog-gru", what="run", seed=2)["value"] == -4.0
    assert rendered(drawing)


def test_sizes_are_those_of_the_published_models() -> None:
    data = drawn("gcog/figure2f", made("gcog-distractors", "full", numbers, seeds=range(2))).data
    assert dict(zip(data["model"], data["parameters"], strict=True)) == {
        "gcog-rnn": 494_218,
        "gcog-gru": 1_339_018,
        "gcog-single-stream": 1_652_362,
        "gcog-dual-stream": 3_230_602,
        "gcog-cross-attention": 1_524_618,
        "gcog-perceiver": 4_284_298,
    }
    assert (data["runs"] == 2 * 2).all(), "of fresh questions and of those as published"
    both = drawn("gcog/figure2f", made("gcog-productivity", "full", numbers, seeds=range(1))).data
    assert {"gcog-perceiver · positions absolute", "gcog-perceiver · positions relative"} <= set(both["label"])


def test_operators_and_kinds_with_their_chance() -> None:
    source = distractors()
    data = drawn("gcog/operators", source).data
    assert one(data, panel="OOD, accuracy", operator="SumOdd", model="gcog-rnn", what="run", seed=0)["value"] == (
        pytest.approx(0.01 * list(_splits(source)).index("ood/distractors=4") + 0.1 * STANDARD.index("SumOdd"))
    )
    chance = data[(data["what"] == "chance") & (data["panel"] == "IID, accuracy")].set_index("operator")["value"]
    assert chance["GetLocation"] == 1 / 16 and chance["GetShape"] == 1 / 6 and chance["Exist"] == 0.5
    kinds = drawn("gcog/kinds", source).data
    means = kinds[(kinds["what"] == "mean") & (kinds["model"] == "gcog-rnn")]
    means = means.set_index(["panel", "answer_kind"])["value"]
    assert means["IID, of the right kind", "color"] - means["IID, accuracy", "color"] == pytest.approx(0.5)
    assert "chance" not in set(kinds[kinds["panel"] == "OOD, of the right kind"]["what"])


def _splits(source: Source) -> list[str]:
    task = source.task(source.runs["trial"].iloc[0])
    assert task is not None
    return list(task.splits)


def test_pools_in_order_with_all_runs_in_all_means() -> None:
    def of(entry: Entry) -> dict[Key, float]:
        size = entry.trial.task.pool or 1_000
        return {
            ("train", "accuracy"): 0.5,
            ("iid", "accuracy"): size / 1_000,
            ("iid/depth=3", "accuracy"): 0.2,
            ("ood/trees", "accuracy"): 0.1 + 0.01 * entry.trial.seed,
        }

    drawing = drawn("gcog/pool", made("gcog-pool", "smoke", of))
    data = drawing.data
    assert data["setting"].nunique() == 2 and list(dict.fromkeys(data["pool"])) == ["200", "fresh"]
    here = data[data["setting"].str.contains("integer") & (data["what"] == "mean")]
    fresh = here[here["panel"] == "IID, all questions"].set_index("pool")["value"]
    assert fresh.to_dict() == pytest.approx({"200": 0.2, "fresh": 1.0})
    assert one(here, panel="OOD, trees", pool="200")["value"] == pytest.approx(0.11)
    assert one(here, panel="OOD, trees", pool="200")["runs"] == 3
    assert any("12 runs have not learned" in note for note in drawing.notes)


def test_names_are_text() -> None:
    source = made("gcog-distractors", "smoke", numbers, seeds=range(1))
    odd = "a.b[0]: <script>alert(1)</script> 'datum' \\"
    runs = source.runs.assign(**{odd: [odd, "x"] * (len(source.runs) // 2)})
    records = source.records.merge(runs[["trial", odd]], on="trial")
    drawing = drawn("gcog/operators", replace(source, runs=runs, records=records, axes=(*source.axes, odd)))
    assert "<script>" not in rendered(drawing) and "&lt;script&gt;" in rendered(drawing)
