"""The tasks themselves: options, errors, identity, specs, streams and golden numbers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from unseen.cli.main import app
from unseen.errors import UsageError
from unseen.spec import Field, GridShape, Spec, Stream, Target
from unseen.tasks import task
from unseen.tasks.base import Examples
from unseen.tasks.gcog.encode import CODINGS
from unseen.tasks.gcog.render import decode
from unseen.tasks.gcog.schema import FEATURES, STANDARD
from unseen.tasks.gcog.task import GcogTask
from unseen.tasks.gcog.text import read_sentence
from unseen.tasks.verify import fingerprint, verify

NAMES = ("gcog/distractor", "gcog/systematic-operators", "gcog/systematic-trees", "gcog/productive")
PRESETS = ("clean", "released")
GOLDEN: dict[str, dict[str, str]] = {
    "gcog/distractor clean": {
        "train": "6cdf160bf652",
        "iid": "413e696ba01e",
        "iid/distractors=1": "e214e7151a40",
        "iid/distractors=5": "0597d55d17e8",
        "ood/distractors=10": "888389d2c1d2",
        "ood/distractors=20": "fd05c7cfad02",
        "ood/distractors=30": "2ba7d7ec1f52",
        "ood/distractors=40": "6d1046b91a48",
        "ood/distractors=40-50": "86fedf33e569",
    },
    "gcog/distractor released": {
        "train": "0c419287f7ac",
        "iid": "7138c15487c1",
        "iid/distractors=1": "9f910266faee",
        "iid/distractors=5": "d9c3c09b61e5",
        "ood/distractors=10": "5ff9c7ee198f",
        "ood/distractors=20": "dc40deb5fb47",
        "ood/distractors=30": "8df6991742f8",
        "ood/distractors=40": "b8e9d029e4ec",
        "ood/distractors=40-50": "5b69b8483c9d",
    },
    "gcog/systematic-operators clean": {
        "train": "7e729516f167",
        "iid": "874d8d02387e",
        "ood/operators": "2abebbd6e993",
    },
    "gcog/systematic-operators released": {
        "train": "18e3d83707b5",
        "iid": "60337886e60d",
        "ood/operators": "07522e570bb6",
    },
    "gcog/systematic-trees clean": {
        "train": "5bf16cbae4f0",
        "iid": "7560fc2a226f",
        "iid/depth=3": "c5464716f358",
        "ood/trees": "04751c11523d",
        "ood/mixed-leaves": "de91cf4ae198",
    },
    "gcog/systematic-trees released": {
        "train": "48cf7f37efd0",
        "iid": "fe5e87055cfe",
        "iid/depth=3": "4324ed65482e",
        "ood/trees": "9736f22618ec",
        "ood/mixed-leaves": "d595a1eef8ee",
    },
    "gcog/productive clean": {
        "train": "62cfa5939167",
        "iid": "4503535caea5",
        "iid/depth=1": "a3ef47c91222",
        "iid/depth=3": "6c442c7e5c6d",
        "ood/depth=5": "5befeda48525",
        "ood/depth=7": "5d88b3632254",
    },
    "gcog/productive released": {
        "train": "9c9e7c05cd80",
        "iid": "e00e90b6edf4",
        "iid/depth=1": "d49361f1d03b",
        "iid/depth=3": "a452a1259a83",
        "ood/depth=5": "77ab4c00a6cb",
        "ood/depth=7": "90b5587c8d2b",
    },
    "everything": {
        "train": "9738ac0bc758",
    },
}


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("name", NAMES)
def test_golden_blocks(name: str, preset: str) -> None:
    """The numbers of every task, preset and split; a change is a decision and raises the task's version."""
    gcog_task = task(name, preset=preset)
    assert {c: fingerprint(gcog_task.sample(c, 1024))[:12] for c in gcog_task.splits} == GOLDEN[f"{name} {preset}"]


def test_golden_block_with_everything_on() -> None:
    gcog_task = task(
        "gcog/productive",
        operators=(*STANDARD, *FURTHER),
        two_objects=0.5,
        constant_count=True,
        coding="embedding",
        features={**dict(FEATURES), "size": ["small", "big", "huge"]},
        grid=(12, 9),
    )
    assert fingerprint(gcog_task.sample("train", 1024))[:12] == GOLDEN["everything"]["train"]


FURTHER = (
    "ExistAnd",
    "ExistOr",
    "ExistXor",
    "IsColor",
    "IsShape",
    "SameColor",
    "SameShape",
    "NotSameColor",
    "NotSameShape",
    "AddEqual",
    "SubtractEqual",
    "MultiplyEqual",
    "GetSize",
    "IsSize",
    "SameSize",
    "NotSameSize",
)


def test_specs() -> None:
    streams = (Stream("rule", 5), Stream("stimulus", 101, GridShape(10, 10)))
    fields = (Field("rule", "real", 8, "rule"), Field("stimulus", "real", 3, "stimulus"))
    mask, target = Field("rule_mask", "mask", along="rule"), Target("category", 138)
    assert task("gcog/productive").spec == Spec(streams, (*fields, mask), target)
    assert task("gcog/productive", preset="released").spec == Spec(streams, fields, target)
    assert task("gcog/distractor").spec.stream("rule").length == 2
    assert task("gcog/productive", train_depths="1").spec.stream("rule").length == 2
    two = {f.name for f in task("gcog/productive", preset="released", coding="embedding").spec.inputs}
    assert {"rule_shape_2", "rule_color_2"} <= two
    assert "rule_shape_2" not in {f.name for f in task("gcog/productive", coding="embedding").spec.inputs}
    wide = task(
        "gcog/distractor",
        grid=(12, 9),
        features={**dict(FEATURES), "size": ["small", "big"]},
        operators=(*STANDARD, "AddEqual"),
    ).spec
    assert wide.stream("stimulus") == Stream("stimulus", 109, GridShape(12, 9))
    assert (wide.field("rule").width, wide.field("stimulus").width, wide.target.width) == (11, 4, 2 + 108 + 26 + 10 + 2)


def test_splits_and_what_is_unseen() -> None:
    unseen = {name: {c.name: c.unseen for c in task(name).splits.values()} for name in NAMES}
    assert unseen == {
        "gcog/distractor": dict.fromkeys(
            [
                "train",
                "iid",
                "iid/distractors=1",
                "iid/distractors=5",
                "ood/distractors=10",
                "ood/distractors=20",
                "ood/distractors=30",
                "ood/distractors=40",
                "ood/distractors=40-50",
            ],
            (),
        ),
        "gcog/systematic-operators": {"train": (), "iid": (), "ood/operators": ("operator", "object")},
        "gcog/systematic-trees": {
            "train": (),
            "iid": (),
            "iid/depth=3": (),
            "ood/trees": ("operators",),
            "ood/mixed-leaves": ("operators",),
        },
        "gcog/productive": {
            "train": (),
            "iid": (),
            "iid/depth=1": (),
            "iid/depth=3": (),
            "ood/depth=5": ("depth",),
            "ood/depth=7": ("depth",),
        },
    }
    alone = task("gcog/productive", train_depths=1, depths="1,3,5,7,9")
    assert list(alone.splits) == ["train", "iid", "ood/depth=3", "ood/depth=5", "ood/depth=7", "ood/depth=9"]
    leaking = task("gcog/systematic-operators", split="released").splits["ood/operators"]
    assert leaking.unseen == () and "520 of them training combinations" in leaking.summary
    assert list(task("gcog/distractor", ood_distractors=(7,)).splits)[-2:] == [
        "ood/distractors=7",
        "ood/distractors=7-17",
    ]


def test_in_small_worlds_the_widest_split_ends_where_there_is_no_room_left() -> None:
    small = {"grid": (4, 4), "features": (("shape", tuple("abcdef")), ("color", ("red", "green", "blue", "pink")))}
    gcog_task = task("gcog/distractor", **small, ood_distractors=(6, 12))
    assert list(gcog_task.splits)[-2:] == ["ood/distractors=12", "ood/distractors=12-15"]
    assert gcog_task.sample("ood/distractors=12-15", 500).factors["distractors"].max() == 15
    few = task("gcog/distractor", **{**small, "grid": (10, 10)}, ood_distractors=(12,))
    assert list(few.splits)[-1] == "ood/distractors=12-18"  # of 24 objects 6 may have the colour that is asked for
    assert few.sample("ood/distractors=12-18", 500).factors["distractors"].max() == 18
    full = task("gcog/distractor", **small, ood_distractors=(15,))
    assert list(full.splits)[-1] == "ood/distractors=15"


@pytest.mark.parametrize("preset", PRESETS)
def test_numbers_of_distractors_and_depths(preset: str) -> None:
    gcog_task = task("gcog/distractor", preset=preset)
    assert set(gcog_task.sample("train", 2000).factors["distractors"].tolist()) == set(
        range(1, 6) if preset == "clean" else range(6)
    )
    forty = gcog_task.sample("ood/distractors=40", 500).factors["distractors"]
    assert (forty == 40).all() if preset == "clean" else (forty <= 40).all() and forty.mean() < 38
    mixed = task("gcog/productive", preset=preset).sample("train", 2000).factors
    assert set(mixed["distractors"].tolist()) == (set(range(1, 6)) if preset == "clean" else {0})
    assert abs((mixed["depth"] == 3).mean() - 0.5) < 0.06


def test_codings_are_readings_of_the_same_examples() -> None:
    gcog_task = {coding: task("gcog/productive", coding=coding) for coding in CODINGS}
    examples = {coding: each.sample("train", 300) for coding, each in gcog_task.items()}
    first = gcog_task["integer"].tokens(examples["integer"])
    for coding, each in gcog_task.items():
        np.testing.assert_array_equal(each.tokens(examples[coding]).rule, first.rule)
        np.testing.assert_array_equal(each.tokens(examples[coding]).grid, first.grid)
        np.testing.assert_array_equal(examples[coding].targets, examples["integer"].targets)


def test_a_finite_training_set_begins_the_endless_one() -> None:
    endless, pool = task("gcog/productive"), task("gcog/productive", train_size=1500)
    assert (endless.size("train"), pool.size("train"), pool.size("iid")) == (None, 1500, None)
    assert fingerprint(pool.sample("train", 1500)) == fingerprint(endless.sample("train", 1500))
    with pytest.raises(UsageError, match="has 1500 examples"):
        pool.sample("train", 1501)


def test_padding_is_masked_in_clean_and_zero_in_both() -> None:
    examples = task("gcog/productive").sample("train", 400)
    rule, mask = examples.inputs["rule"], examples.inputs["rule_mask"]
    np.testing.assert_array_equal(mask.sum(axis=1), np.where(examples.factors["depth"] == 1, 2, 5))
    assert not rule[~mask].any() and rule[mask].any(axis=1).all()
    assert "rule_mask" not in task("gcog/productive", preset="released").sample("train", 2).inputs


def test_unnamed_features_are_zero_in_clean_and_one_in_released() -> None:
    for preset, code in (("clean", 0), ("released", 1)):
        rule = task("gcog/distractor", preset=preset).sample("train", 500).inputs["rule"][:, 0]
        assert (rule[rule[:, 0] == 3][:, 2] == code).all() and (rule[rule[:, 0] == 4][:, 1] == code).all()


def test_options_that_are_equal_make_equal_hashable_tasks() -> None:
    one = task("gcog/productive", train_depths="1,3", features=dict(FEATURES))
    assert one == task("gcog/productive") and hash(one) == hash(task("gcog/productive"))
    assert one.options() == {"name": "gcog/productive"}


ERRORS = [
    (
        "gcog/productive",
        {"train_depths": "1,2"},
        "train_depths = .*: expected different odd numbers in ascending order",
    ),
    ("gcog/productive", {"depths": "3,1"}, "depths = .*: expected different odd numbers in ascending order"),
    ("gcog/productive", {"depths": ""}, "depths"),
    (
        "gcog/productive",
        {"depths": "1,3,5,7,9,11,13"},
        "questions of depth 13 have 127 operators and up to 5 distractors, but the grid has only 100 cells",
    ),
    ("gcog/productive", {"depths": "1,99"}, "but the grid has only 100 cells"),
    ("gcog/productive", {"depths": "1,101"}, "less than or equal to 99"),
    ("gcog/productive", {"distractors": (5, 1)}, "expected the lowest and the highest number, got 5, 1"),
    ("gcog/productive", {"distractors": (-1, 1)}, "greater than or equal to 0"),
    ("gcog/productive", {"grid": (4, 4)}, "but the grid has only 16 cells; use smaller depths"),
    (
        "gcog/distractor",
        {"features": {"shape": ["a", "b", "c"], "color": ["red", "blue"]}},
        "there are only 6 different objects; use smaller depths, fewer distractors or more features",
    ),
    ("gcog/distractor", {"operators": ("Exist", "Getcolor")}, "unknown operator 'Getcolor'. Did you mean 'GetColor'"),
    ("gcog/productive", {"operators": ("GetColor",)}, "a question of depth 3 needs a boolean operator, such as Exist"),
    ("gcog/productive", {"preset": "released", "task_shapes": 27}, "task_shapes = 27"),
    ("gcog/distractor", {"preset": "released", "two_objects": 0.5}, "two_objects: fixed in the preset released"),
    ("gcog/distractor", {"preset": "released", "grid": (9, 9)}, "grid: fixed in the preset released"),
    ("gcog/distractor", {"task_shapes": 10}, "task_shapes: only for the preset released"),
    ("gcog/distractor", {"ties": "largest"}, "ties = 'largest'"),
    ("gcog/distractor", {"ood_distractors": (100,)}, "but the grid has only 100 cells"),
    ("gcog/systematic-operators", {"operators": STANDARD[:4]}, "divides the eight operators of the paper"),
    ("gcog/systematic-operators", {"two_objects": 0.5}, "one operator and one object; omit this option"),
    ("gcog/systematic-trees", {"operators": STANDARD[:4]}, "divides the eight operators of the paper"),
    ("gcog/systematic-operators", {"split": "strict"}, "split = 'strict'"),
    ("gcog/productive", {"train_size": 0}, "train_size = 0"),
    ("gcog/productive", {"tain_size": 5}, "unknown option 'tain_size'. Did you mean 'train_size'"),
]


@pytest.mark.parametrize(("name", "options", "message"), ERRORS, ids=range(len(ERRORS)))
def test_wrong_options(name: str, options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        task(name, **options)


VARIANTS = [
    ("gcog/systematic-operators", {}),
    ("gcog/systematic-operators", {"split": "released"}),
    ("gcog/systematic-trees", {"coding": "embedding"}),
    ("gcog/productive", {"preset": "released"}),
    ("gcog/productive", {"operators": (*STANDARD, *FURTHER[:12]), "two_objects": 0.5, "depths": "1,3"}),
    ("gcog/productive", {"train_depths": "1", "depths": "1,9", "constant_count": True}),
]


@pytest.mark.parametrize(("name", "options"), VARIANTS, ids=range(len(VARIANTS)))
def test_verify_passes(name: str, options: dict[str, object]) -> None:
    report = verify(task(name, **options), n=800)
    assert report.passed, [check for check in report if check.status == "FAIL"]
    known = {check.name for check in report if check.status == "known"}
    assert ("artefact leak" in known) == (options.get("split") == "released")
    assert ("artefact ambiguity" in known) == (options.get("preset") == "released")


def test_verify_finds_a_leak_nobody_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    from unseen.tasks.gcog import SystematicOperators

    gcog_task = task("gcog/systematic-operators")
    monkeypatch.setattr(
        SystematicOperators,
        "generate",
        lambda self, split, draws: super(SystematicOperators, self).generate("train", draws),
    )
    failed = {check.name for check in verify(gcog_task, n=400) if check.status == "FAIL"}
    assert {"unseen", "artefact leak"} <= failed


def test_verify_finds_wrong_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    from unseen.tasks.gcog import Distractor

    plain = Distractor.generate

    def wrong(self: Distractor, split: str, draws: object) -> Examples:
        examples = plain(self, split, draws)
        return Examples(examples.inputs, np.where(np.arange(len(examples)) == 7, 5, examples.targets), examples.factors)

    monkeypatch.setattr(Distractor, "generate", wrong)
    report = verify(task("gcog/distractor", ood_distractors=()), n=400)
    assert {check.split for check in report if check.name == "solver" and check.status == "FAIL"} == {
        "train",
        "iid",
        "iid/distractors=1",
        "iid/distractors=5",
    }


@pytest.mark.parametrize("name", ["gcog/productive", "gcog/systematic-trees"])
def test_iid_splits_have_as_many_distractors_as_training(name: str) -> None:
    gcog_task = task(name, preset="released")
    numbers = {
        split: set(gcog_task.sample(split, 300).factors["distractors"].tolist())
        for split in gcog_task.splits
        if split == "train" or split.startswith("iid")
    }
    assert len(numbers) > 2 and set(map(tuple, numbers.values())) == {(0,)}


def test_splits_out_of_distribution_have_more_distractors_than_training() -> None:
    assert list(task("gcog/distractor", distractors=(1, 20)).splits) == [
        "train",
        "iid",
        "iid/distractors=1",
        "iid/distractors=20",
        "ood/distractors=30",
        "ood/distractors=40",
        "ood/distractors=40-50",
    ]
    assert list(task("gcog/distractor", distractors=(0, 0), ood_distractors=()).splits) == [
        "train",
        "iid",
        "iid/distractors=0",
    ]


def test_questions_need_objects_to_ask_about() -> None:
    with pytest.raises(UsageError, match="have 31 operators, but there are only 20 objects to ask about"):
        task("gcog/productive", preset="released", task_shapes=2, depths=(1, 3, 9))


def gcog(name: str = "gcog/productive", **options: object) -> GcogTask:
    gcog_task = task(name, **options)
    assert isinstance(gcog_task, GcogTask)
    return gcog_task


@pytest.mark.parametrize("coding", ["integer", "onehot", "embedding"])
def test_views_are_of_one_record(coding: str) -> None:
    """Tokens, tree, objects, sentence, picture and target of an example agree, whatever the coding."""
    gcog_task = gcog(coding=coding)
    examples = gcog_task.sample("ood/depth=5", 20)
    sentences, images = gcog_task.sentences(examples, "released"), gcog_task.pixels(examples, cell=9)
    np.testing.assert_array_equal(decode(gcog_task.domain, images), gcog_task.tokens(examples).grid)
    for i in range(20):
        seen, record = gcog_task.view(examples, i), gcog_task.record(examples, i)
        assert read_sentence(gcog_task.domain, sentences[i], "released") == seen.tree
        assert record["sentences"]["released"] == sentences[i]
        assert record["target"] == examples.targets[i] == seen.solution.answer
        assert [(o["shape"], o["color"]) for o in record["objects"]] == [t.values for t in seen.objects]
        assert record["path"] == examples.factors["path"][i].astype(bool).tolist()
    assert json.loads(json.dumps(record)) == record


@pytest.mark.parametrize(
    ("format", "begins"),
    [("text", "gcog/productive · train"), ("json", '{"tree"'), ("svg", "<svg"), ("html", "<!doctype html>")],
)
def test_show(format: str, begins: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["show", "gcog/productive", "-n", "1", "--format", format])
    assert result.exit_code == 0 and result.output.startswith(begins)


def test_show_json_is_what_verify_reads(tmp_path: Path) -> None:
    path = tmp_path / "examples.jsonl"
    shown = CliRunner().invoke(
        app,
        [
            "show",
            "gcog/systematic-trees",
            "-n",
            "30",
            "--split",
            "ood/trees",
            "--format",
            "json",
            "--out",
            str(path),
        ],
    )
    assert shown.exit_code == 0
    result = CliRunner().invoke(app, ["verify", "gcog", "--data", str(path)])
    assert result.exit_code == 0 and "30 of 30 answers agree with gcog" in result.output
