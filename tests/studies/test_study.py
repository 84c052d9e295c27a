"""Studies: scales, seeds, places, names, and what a scale says of itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import unseen
from unseen.errors import UsageError
from unseen.running import chunk
from unseen.studies.catalog import STUDIES
from unseen.studies.study import Grid, Study, study
from unseen.training.trainer import Trainer

BASE = {
    "task": {"name": "retrieval/T6", "length": 5},
    "model": {"name": "retrieval-transformer"},
    "recipe": {"name": "retrieval-paper"},
}
WIDTHS = {n: {"model": {"width": n}} for n in (20, 30)}
PACES = {"slow": {}, "fast": {"recipe": {"steps": 10}}}


def made(*grids: Grid, **scales: Sequence[Grid]) -> Study:
    by_scale = {"full": grids, **scales}
    return Study("mine", 1, "why?", dict.fromkeys(by_scale), lambda scale: by_scale[scale])


def grid(
    base: dict[str, Any] = BASE, seeds: Sequence[int] = (0, 1), data_seed: int | None = None, **axes: dict[Any, Any]
) -> Grid:
    return Grid(axes, base, seeds, data_seed)


def test_seeds_replace_those_of_the_grids() -> None:
    found = made(grid(width=WIDTHS)).entries("full", seeds=[4, 9, 5])
    assert [(e.levels["width"], e.trial.seed, e.trial.data_seed) for e in found] == [
        (w, s, s) for w in (20, 30) for s in (4, 9, 5)
    ]
    fixed = made(grid(width=WIDTHS, data_seed=3)).entries("full", seeds=[4])
    assert [e.trial.data_seed for e in fixed] == [3, 3]


def test_equal_entries_of_two_grids_are_merged() -> None:
    found = made(grid(width=WIDTHS), grid(width={30: WIDTHS[30], 40: {"model": {"width": 40}}}, seeds=(1, 2)))
    places = [(e.levels["width"], e.trial.seed) for e in found.entries("full")]
    assert places == [(20, 0), (20, 1), (30, 0), (30, 1), (30, 2), (40, 1), (40, 2)]


def test_the_same_run_at_two_places_is_refused() -> None:
    wrong = made(grid(a={"x": {}, "y": {"model": {"width": 100}}}))  # 100 is the default
    with pytest.raises(UsageError, match="a=x seed=0 and a=y seed=0 are the same run"):
        wrong.entries("full")


def test_two_runs_at_the_same_place_are_refused() -> None:
    other = {**BASE, "recipe": {"steps": 7}}
    with pytest.raises(UsageError, match="two different runs are at width=20 seed=0; add an axis"):
        made(grid(width=WIDTHS), grid(other, width=WIDTHS)).entries("full")
    # Not the same place: the data seed tells them apart.
    assert len(made(grid(data_seed=0), grid(data_seed=1)).entries("full")) == 4


def test_a_scale_with_nothing_in_it_is_refused() -> None:
    nothing = Grid({"width": WIDTHS}, BASE, [0], without=[{"width": [20, 30]}])
    with pytest.raises(UsageError, match="scale full: everything is left out"):
        made(nothing).entries("full")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"name": "a/b"}, "letters, digits"),
        ({"name": "a@1"}, "letters, digits"),
        ({"version": 0}, "versions are 1, 2, 3"),
        ({"scales": {}}, "has no scale"),
        ({"scales": {"smal": None}}, "unknown scale 'smal'. Did you mean 'small'"),
    ],
)
def test_a_wrong_study_is_refused(changed: dict[str, Any], message: str) -> None:
    right: dict[str, Any] = {
        "name": "mine",
        "version": 1,
        "question": "",
        "scales": {"full": None},
        "grids": lambda scale: [grid()],
    }
    with pytest.raises(UsageError, match=message):
        Study(**{**right, **changed})


def test_an_unknown_scale_is_answered_with_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"has no scale 'ful'\. Did you mean 'full'"):
        made(grid()).entries("ful")


# -- deviations ----------------------------------------------------------------------------------------------------


def test_the_full_study_with_the_published_recipe_deviates_in_its_notes_only() -> None:
    noted = Study("mine", 1, "", {"full": None}, lambda scale: [grid()], notes=("own data",))
    assert made(grid()).deviations("full") == []
    assert noted.deviations("full") == ["own data"]


def test_a_note_about_one_scale_is_no_deviation_of_another() -> None:
    scales: dict[str, float | None] = {"mini": None, "full": None}
    noted = Study("mine", 1, "", scales, lambda scale: [grid()], scale_notes={"mini": ("a random sample",)})
    assert noted.deviations("mini") == ["a random sample"] and noted.deviations("full") == []
    sampled = "a simple random sample of 100 of the 200 experiments"
    told = {
        scale: any(sampled in text for text in study("rules-main").deviations(scale)) for scale in ("smoke", "medium")
    }
    assert told == {"smoke": False, "medium": True}


def test_an_option_that_the_full_study_does_not_set_is_told_as_such() -> None:
    full = {"task": {"name": "ctl/A"}, "model": {"name": "lstm"}}
    less = {"task": {"name": "ctl/A", "always_include": "both"}, "model": {"name": "lstm"}}
    found = made(grid(full), mini=[grid(less)]).deviations("mini")
    assert "task always include = both (full: not set)" in found


def test_levels_seeds_and_options_are_compared_with_the_full_study() -> None:
    less = {**BASE, "task": {**BASE["task"], "length": 7}, "evaluation": {"splits": ("iid",)}}
    found = made(grid(width=WIDTHS, seeds=range(5)), mini=[grid(less, width={20: WIDTHS[20]}, seeds=range(3))])
    assert found.deviations("mini") == [
        "width: 30 left out",
        "3 seeds (full: 5)",
        "task length 7 (full: 5)",
        "evaluation splits iid (full: none)",
    ]
    assert found.deviations("full") == []


def test_levels_the_full_study_does_not_have_are_said_to_be_added() -> None:
    found = made(grid(width=WIDTHS), mini=[grid(width={**WIDTHS, 50: {"model": {"width": 50}}})])
    assert found.deviations("mini") == ["width: 50 added"]


def test_at_an_added_level_the_other_options_are_compared_with_the_places_that_are_like_it() -> None:
    less = {**BASE, "task": {**BASE["task"], "length": 7}}
    added = {50: {"model": {"width": 50}}}
    found = made(grid(width=WIDTHS, pace=PACES), mini=[grid(less, width=added, pace={"slow": PACES["slow"]})])
    assert found.deviations("mini") == [
        "width: 20, 30 left out",
        "width: 50 added",
        "pace: fast left out",
        "task length 7 (full: 5)",
    ]


def test_a_recipe_that_differs_is_said_once_or_for_the_levels_it_differs_at() -> None:
    quick = {**BASE, "recipe": {"name": "retrieval-paper", "steps": 500}}
    everywhere = made(grid(width=WIDTHS), mini=[grid(quick, width=WIDTHS)])
    assert everywhere.deviations("mini") == ["steps 500 (paper: 1000000)"]
    at_one = made(grid(width=WIDTHS, pace=PACES))
    assert at_one.deviations("full") == ["pace fast: steps 10 (paper: 1000000)"]
    crossed = made(
        Grid({"width": WIDTHS, "pace": PACES}, BASE, [0], without=[{"width": 20, "pace": "fast"}]),
        grid(seeds=[0], width={20: WIDTHS[20]}, pace={"fast": {"recipe": {"steps": 10, "batch": 5}}}),
    )
    assert crossed.deviations("full") == [
        "pace fast: steps 10 (paper: 1000000)",
        "1 of 4 combinations: batch 5 (paper: 10)",
    ]


def test_other_data_are_said() -> None:
    found = made(grid(data_seed=0), mini=[grid()], smoke=[grid(seeds=[0])])
    assert found.deviations("mini") == ["training data of other data seeds than in the full study"]
    assert found.deviations("smoke") == ["1 seed (full: 2)"]  # seed 0 on data 0 is a part of the full study


def test_a_study_without_a_full_scale_is_compared_with_the_published_recipe_only() -> None:
    found = Study(
        "mine",
        1,
        "",
        {"mini": None},
        lambda scale: [grid({**BASE, "recipe": {"name": "retrieval-paper", "batch": 50}}, seeds=[0])],
    )
    assert found.deviations("mini") == ["batch 50 (paper: 10)"]


# -- names ---------------------------------------------------------------------------------------------------------


def test_a_study_is_found_by_name_with_or_without_its_version() -> None:
    assert study("quickstart") is study("quickstart@2")
    with pytest.raises(UsageError, match="unknown version 'quickstart@3': this release of Unseen has quickstart@2"):
        study("quickstart@3")
    with pytest.raises(UsageError, match=r"unknown study 'quikstart'\. Did you mean 'quickstart'"):
        study("quikstart")
    with pytest.raises(UsageError, match="there is no such file"):
        study("nowhere.yaml")


def test_a_plug_in_must_be_a_study(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(STUDIES, "_entries", {})
    STUDIES.add("other", "math:pi")
    with pytest.raises(UsageError, match="study 'other' is a float; a plug-in must name a Study"):
        study("other")


def test_a_file_is_found_by_its_ending(tmp_path: Path) -> None:
    file = tmp_path / "own.yml"
    file.write_text("study: own\nbase: {task: {name: retrieval/T1}, model: {name: lstm}}\n")
    assert study(str(file)).name == "own"


def test_one_trial_with_two_evaluations_is_trained_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Entries that differ only in their evaluation share a training, and each has the records of its own."""
    trained: list[int] = []
    finish = chunk._finish

    def counted(trainer: Trainer, *rest: Any) -> Any:
        trained.append(len(trainer.job.members))
        return finish(trainer, *rest)

    monkeypatch.setattr(chunk, "_finish", counted)

    def grids(scale: str) -> list[Grid]:
        sizes = {"few": {"evaluation": {"examples": 20, "splits": ["iid"]}}, "many": {"evaluation": {"examples": 40}}}
        base = {
            "task": {"name": "retrieval/T1", "length": 5, "train_size": 100, "evaluation_size": 60},
            "model": {"name": "lstm", "width": 4},
            "recipe": {"steps": 4, "batch": 5, "validation_examples": 20},
        }
        return [Grid(axes={"tested": sizes}, base=base, seeds=range(2))]

    study = Study("two", 1, "", {"smoke": None}, grids)
    records = unseen.run(study, tmp_path / "both", executor="inline", progress="none")
    assert trained == [2] and records.trial.nunique() == 2
    assert set(zip(records.tested, records.split, records.n, strict=True)) >= {("few", "iid", 20), ("many", "iid", 40)}
    assert set(records[records.tested == "few"].split) == {"iid"}
    for tested in ("few", "many"):
        other = "many" if tested == "few" else "few"
        only = [replace(grids("smoke")[0], without=[{"tested": other}])]
        alone = Study("two", 1, "", {"smoke": None}, {"smoke": only}.__getitem__)
        one = unseen.run(alone, tmp_path / tested, executor="inline", progress="none")
        both = records[records.tested == tested].reset_index(drop=True)
        pd.testing.assert_frame_equal(one, both, check_exact=True)


def test_a_trial_that_gets_a_further_evaluation_is_trained_again_to_the_same_bits(tmp_path: Path) -> None:
    def grids(scale: str) -> list[Grid]:
        base = {
            "task": {"name": "retrieval/T1", "length": 5, "train_size": 100, "evaluation_size": 60},
            "model": {"name": "lstm", "width": 4},
            "recipe": {"steps": 4, "batch": 5, "validation_examples": 20},
            "evaluation": {"examples": 20 if scale == "smoke" else 40},
        }
        return [Grid(axes={}, base=base, seeds=range(2))]

    study = Study("two", 1, "", {"smoke": None, "mini": None}, grids)
    first = unseen.run(study, tmp_path / "store", scale="smoke", executor="inline", progress="none")
    both = unseen.run(study, tmp_path / "store", scale="mini", executor="inline", progress="none")
    assert both.trial.nunique() == 2 and set(both.n[both.factor == ""]) == {20, 40}
    again = both[both.scale == "smoke"].reset_index(drop=True)
    pd.testing.assert_frame_equal(again, first, check_exact=True)
