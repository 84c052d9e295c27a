"""The battery of the exam: what it covers, what it refuses, and that it runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from torch import Tensor, nn

import unseen
from unseen.errors import CheckFailed, UsageError
from unseen.exam import reference as exam_reference
from unseen.exam.exam import ABILITIES, BATTERY, IID, SEEDS, AbilityReading, check_model, compute_digest, exam, readings
from unseen.exam.zoo import DROPOUT, PARAMETERS, STUDY, WIDTHS, options
from unseen.models import BACKBONES
from unseen.spec import Spec
from unseen.studies.deviations import deviations
from unseen.studies.study import study
from unseen.tasks import task


class OnlyRetrieval(nn.Module):
    """Can be built for one family only."""

    def __init__(self, spec: Spec) -> None:
        super().__init__()
        self.answer = nn.Linear(spec.field("query").width, 1)

    def forward(self, inputs: dict[str, Tensor]) -> Tensor:
        return self.answer(inputs["query"])


@pytest.mark.parametrize("scale", SEEDS)
def test_battery_covers_all_abilities_and_families(scale: str) -> None:
    found = readings(scale)
    assert {one.ability for one in found} == set(ABILITIES)
    tasks = {test: task(**worlds[scale].task) for test, worlds in BATTERY.items()}
    assert {one.family for one in tasks.values()} == {"retrieval", "ctl", "gcog", "rules"}
    for one in found:
        assert one.split in tasks[one.test].splits
        assert one.split in BATTERY[one.test][scale].settings["evaluation"]["splits"]
        assert tasks[one.test].spec.target.kind != "real"  # a chance and an oracle are defined
    # What models are selected on is not what an ability out of distribution is read from, but where the papers do so.
    selected = {one.ability for one in found if one.split == tasks[one.test].validation != IID}
    assert selected == {"retrieval", "order tracking"}


def test_every_test_is_read_inside_the_training_distribution() -> None:
    assert [one.test for one in readings("mini") if one.ability == ABILITIES[0]] == list(BATTERY)


def test_exam_has_a_trial_for_every_test_and_seed() -> None:
    entries = exam(unseen.model("lstm", width=16)).entries("mini")
    assert [(entry.levels["test"], entry.trial.seed) for entry in entries] == [
        (test, seed) for test in BATTERY for seed in range(3)
    ]
    assert {entry.levels["model"] for entry in entries} == {"lstm"}
    assert {entry.trial.model.options()["width"] for entry in entries} == {16}


def test_a_class_that_fits_one_family_is_refused_with_the_test() -> None:
    with pytest.raises(UsageError, match=r"test 'tables' \(ctl/A\): .*query"):
        check_model(exam(OnlyRetrieval), "smoke")


def test_digest_tells_versions_of_a_test_apart() -> None:
    one = AbilityReading("length", "states", "ood/length=20")
    identity = task("rules/rnn", rules=2).identity()
    same = compute_digest(identity, "quick steps=10", one)
    assert same == compute_digest(dict(reversed(identity.items())), "quick steps=10", one)
    assert same != compute_digest(identity, "quick steps=11", one)
    assert same != compute_digest({**identity, "rules": 3}, "quick steps=10", one)
    assert same != compute_digest(identity, "quick steps=10", replace(one, split="ood/length=30"))


# -- the reference ----------------------------------------------------------------------------------------------------


def made(**more: object) -> dict[str, object]:
    return {
        "backbone": "lstm",
        "ability": "length",
        "test": "states",
        "task": "rules/rnn",
        "split": "ood/length=20",
        "metric": "accuracy",
        "seed": 0,
        "value": 0.75,
        "learned": 1,
        "not_converged": 0,
        "scale": "mini",
        "digest": "aa",
        **more,
    }


def test_the_shipped_reference_can_be_read() -> None:
    assert tuple(exam_reference.read().columns) == exam_reference.COLUMNS


def test_a_file_of_other_columns_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    with pytest.raises(CheckFailed, match="no reference of the exam"):
        exam_reference.read(tmp_path / "other.csv")


def test_a_reference_of_another_digest_is_refused() -> None:
    scores = pd.DataFrame([made(), made(test="sums", ability="amplitude", digest="bb")])
    reference = pd.DataFrame([made(backbone="gru", value=0.5), made(test="sums", ability="amplitude", digest="old")])
    same, said = exam_reference.comparable(reference, scores)
    assert same[["backbone", "value"]].to_numpy().tolist() == [["gru", 0.5]]
    assert said == ["Not compared with the reference: sums there is of another version."]


def test_a_reference_of_another_scale_is_not_compared() -> None:
    same, said = exam_reference.comparable(pd.DataFrame([made(scale="full")]), pd.DataFrame([made()]))
    assert same.empty and "of scale full" in said[0]


def test_no_reference_says_so() -> None:
    same, said = exam_reference.comparable(pd.DataFrame(columns=exam_reference.COLUMNS), pd.DataFrame([made()]))
    assert same.empty and "no reference yet" in said[0]


# -- the zoo ----------------------------------------------------------------------------------------------------------


def test_zoo_covers_every_backbone_and_family() -> None:
    entries = study("exam-zoo@1").entries("smoke")
    assert len(entries) == len(BACKBONES) * len(BATTERY)
    assert {(e.trial.model.name, e.trial.task.family) for e in entries} == {
        (name, family) for name in BACKBONES for family in ("retrieval", "ctl", "gcog", "rules")
    }
    assert {str(e.trial.model.options()["matched"]) for e in entries} == {
        str({"by": "parameters", "to": PARAMETERS["smoke"]})
    }


def test_zoo_and_exam_are_the_same_tests() -> None:
    zoo = {e.levels["test"]: e.trial for e in STUDY.entries("mini", [0])}
    for entry in exam("lstm").entries("mini", [0]):
        other = zoo[str(entry.levels["test"])]
        assert (entry.trial.task, entry.trial.recipe, entry.trial.evaluation) == (
            other.task,
            other.recipe,
            other.evaluation,
        )


@pytest.mark.parametrize(("test", "scale"), [("sums", "smoke"), ("presence", "mini")])
def test_widths_are_those_of_matching(test: str, scale: str) -> None:
    from unseen.models.matching import match

    spec = task(**BATTERY[test][scale].task).spec
    for backbone in BACKBONES:
        assert unseen.model(**options(backbone, test, scale)) == match(
            backbone, spec, by="parameters", to=PARAMETERS[scale], dropout=DROPOUT[scale]
        )


@pytest.mark.parametrize("scale", PARAMETERS)
def test_widths_come_near_to_what_was_asked(scale: str) -> None:
    """Cheaper than to search again: all that are in the table have about as many parameters."""
    from unseen.models.matching import measure

    assert {test: len(widths) for test, widths in WIDTHS[scale].items()} == dict.fromkeys(BATTERY, len(BACKBONES))
    for entry in STUDY.entries(scale, [0]):
        found = measure(entry.trial.model, entry.trial.task.spec, "parameters")
        assert found == pytest.approx(PARAMETERS[scale], rel=0.3 if scale == "smoke" else 0.2), entry.levels


@pytest.mark.slow
def test_two_backbones_run(tmp_path: Path) -> None:
    def few(scale: str) -> list[object]:
        return [
            replace(grid, axes={**grid.axes, "model": {name: grid.axes["model"][name] for name in ("rnn", "modular")}})
            for grid in STUDY.grids(scale)
        ]

    records = unseen.run(replace(STUDY, grids=few), tmp_path / "zoo", scale="smoke", executor="inline", progress="none")
    assert set(records["status"]) == {"finished"}
    assert set(zip(records["test"], records["model"], strict=True)) == {
        (test, name) for test in BATTERY for name in ("rnn", "modular")
    }
    gated = records[records["metric"] == "specialization/alignment_normalised"]
    assert set(gated["model"]) == {"modular"}

    from unseen.report.data import Source
    from unseen.report.exam_scores import read_exam

    found = read_exam(Source.read(tmp_path / "zoo"))
    assert found is not None and found.reference.empty
    assert set(found.scores["ability"]) == set(ABILITIES)
    assert found.untraced == {("rnn", "specialization"): "gating.weights"}


def test_matched_widths_are_said_once() -> None:
    """Each backbone has a width of its own on each test: what all are matched by says it for all."""
    said = deviations(STUDY.entries("mini"), STUDY.entries("full"))
    assert "model matched by parameters to 20000 (full: by parameters to 1000000)" in said
    assert not [phrase for phrase in said if "width" in phrase]
