"""The exam: one battery of small tests from the four papers' families, for any model.

A *test* is a world in which a model is trained; an *ability* is measured by a test on one of its splits. So a few
trainings measure many abilities:

| ability | measured by | training and test differ in |
|---|---|---|
| in-distribution | every test | the examples |
| retrieval | presence | how often the feature asked for occurs |
| order tracking | order | the same, where the answer depends on the order of two features |
| systematicity | tables | which functions follow each other |
| productivity | chains | how many functions are composed |
| distractors | scenes | how many objects surround those that matter |
| length | states | how many tokens there are |
| amplitude | sums, states | how large numbers are |
| specialization | sums | nothing; it measures whether each rule has a module of its own |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any

from unseen.config import digest
from unseen.errors import UsageError
from unseen.studies.build_trials import Settings
from unseen.studies.grid import Grid
from unseen.studies.study import Study

if TYPE_CHECKING:
    from torch import nn

    from unseen.config import Config
    from unseen.studies.catalog import Axis

NAME, VERSION, SEEDS = "exam", 1, {"smoke": 1, "mini": 3, "full": 5}
QUESTION = "Which abilities does a model have that it was not trained for, and how does it compare with others?"
INSIDE = "in-distribution"
ABILITIES = (
    INSIDE,
    "retrieval",
    "order tracking",
    "systematicity",
    "productivity",
    "distractors",
    "length",
    "amplitude",
    "specialization",
)
IID = "iid"
"""The split that shows whether a run has learned."""
LEARNED = 0.5
"""The share of the way from chance to the oracle that a run must reach on `iid`, where it must also do no worse than any
shortcut: a run that has not learned its task says nothing about generalization."""
NOTES = ("the models of the exam are not those of the papers, and every test has one recipe for all models",)


@dataclass(frozen=True)
class ExamMetric:
    """A score between `chance` (None: that of the task) and 1, the oracle's.

    It is the number called `record` in the records, or 1 minus that number (`missing`). `activation` names the activation
    that a model must capture to have this score, if any.
    """

    record: str
    missing: bool = False
    chance: float | None = None
    activation: str = ""


METRICS = {
    "accuracy": ExamMetric("accuracy"),
    # The share of a rule's weight that goes to its own module, so that modules that treat all rules alike have 0.
    "specialization": ExamMetric(
        "specialization/alignment_normalised", missing=True, chance=0.0, activation="gating.weights"
    ),
}


@dataclass(frozen=True)
class ExamWorld:
    """The task and recipe of a test at one scale, the split of each ability, and how it is evaluated."""

    task: Mapping[str, Any]
    recipe: Mapping[str, Any]
    splits: Mapping[str, str]
    evaluation: Mapping[str, Any] = field(default_factory=dict)

    @property
    def settings(self) -> Settings:
        """The same as the settings of a level of an axis; `iid` is always evaluated."""
        splits = tuple(dict.fromkeys([IID, *self.splits.values()]))
        return {"task": self.task, "recipe": self.recipe, "evaluation": {"splits": splits, **self.evaluation}}


@dataclass(frozen=True)
class AbilityReading:
    """An ability, the test and split that measure it, and the metric."""

    ability: str
    test: str
    split: str
    metric: str = "accuracy"


# -- the worlds -------------------------------------------------------------------------------------------------------

# Without the four questions about parity: models of this size do not learn about locations in the time.
_SCENE = {
    "name": "gcog/distractor",
    "coding": "embedding",
    "grid": (3, 3),
    "distractors": (1, 2),
    "features": (("shape", tuple("abcd")), ("color", ("red", "green", "blue", "yellow"))),
    "operators": ("Exist", "GetShape", "GetColor", "GetLocation"),
}
_FEW_FEATURES = {"length": 5, "features": 12}
_FEW_TABLES = {"name": "ctl/A", "symbols": 4, "functions": 6, "order": "backward"}
_CHAINS = {"name": "ctl/lengths", "symbols": 4, "composed": 5, "order": "backward"}
_TRY = {"steps": 20, "batch": 16, "validate_every": 10, "validation_examples": 100}
_TRY_CTL = {**_TRY, "optimiser": "adamw", "batches": "lengths"}
_QUICK = {"learning_rate": 2e-3, "warmup": 100}
_CTL = {
    **_QUICK,
    "optimiser": "adamw",
    "batches": "lengths",
    "batch": 64,
    "clip": 1.0,
    "validate_every": 200,
    "validation_examples": 300,
}
_RULES = {**_QUICK, "clip": 1.0, "validate_every": 200}
_MODULES = {"analyses": ("specialization",), "activation_examples": 4_000, "adaptation_examples": 100}

BATTERY: Mapping[str, Mapping[str, ExamWorld]] = {
    "presence": {
        "smoke": ExamWorld(
            {"name": "retrieval/T1", **_FEW_FEATURES, "train_size": 500, "evaluation_size": 200},
            _TRY,
            {"retrieval": "ood/single"},
            {"examples": 200},
        ),
        "mini": ExamWorld(
            {"name": "retrieval/T1", **_FEW_FEATURES},
            {**_QUICK, "steps": 1_200, "validate_every": 100},
            {"retrieval": "ood/single"},
            {"examples": 4_000},
        ),
        "full": ExamWorld(
            {"name": "retrieval/T1", "preset": "released"}, {"name": "retrieval-paper"}, {"retrieval": "ood/single"}
        ),
    },
    "order": {
        "smoke": ExamWorld(
            {"name": "retrieval/T6", **_FEW_FEATURES, "train_size": 500, "evaluation_size": 200},
            _TRY,
            {"order tracking": "ood/single"},
            {"examples": 200},
        ),
        "mini": ExamWorld(
            {"name": "retrieval/T6", **_FEW_FEATURES},
            {**_QUICK, "steps": 2_000, "validate_every": 100},
            {"order tracking": "ood/single"},
            {"examples": 4_000},
        ),
        "full": ExamWorld(
            {"name": "retrieval/T6", "preset": "released"},
            {"name": "retrieval-paper"},
            {"order tracking": "ood/single"},
        ),
    },
    "tables": {
        "smoke": ExamWorld(
            {**_FEW_TABLES, "max_length": 4, "train_size": 150, "iid_size": 40, "ood_size": 100},
            _TRY_CTL,
            {"systematicity": "ood/transition"},
        ),
        # Every function alone and every legal pair are in training: without them little is learned in this time.
        "mini": ExamWorld(
            {
                **_FEW_TABLES,
                "max_length": 6,
                "train_size": 3_500,
                "iid_size": 300,
                "ood_size": 500,
                "always_include": "both",
            },
            {**_CTL, "steps": 5_000},
            {"systematicity": "ood/transition"},
        ),
        "full": ExamWorld({"name": "ctl/A"}, {"name": "ctl-ndr-paper"}, {"systematicity": "ood/transition"}),
    },
    "chains": {
        "smoke": ExamWorld(
            {**_CHAINS, "max_length": 3, "longer": ((4, 5), (6, 7)), "train_size": 150, "iid_size": 20},
            _TRY_CTL,
            {"productivity": "ood/length=6-7"},
        ),
        # Weights are selected on the first of the longer lengths, so the second one is the test.
        "mini": ExamWorld(
            {**_CHAINS, "longer": ((6, 6), (7, 8)), "train_size": 5_000, "iid_size": 300},
            {**_CTL, "steps": 3_000},
            {"productivity": "ood/length=7-8"},
        ),
        "full": ExamWorld(
            {"name": "ctl/lengths", "order": "backward"},
            {"name": "ctl-ndr-lengths-paper"},
            {"productivity": "ood/length=9-10"},
        ),
    },
    "scenes": {
        "smoke": ExamWorld(
            {**_SCENE, "ood_distractors": (4,)}, _TRY, {"distractors": "ood/distractors=4"}, {"examples": 200}
        ),
        "mini": ExamWorld(
            {**_SCENE, "ood_distractors": (6,)},
            {**_QUICK, "batch": 64, "steps": 1_500, "validate_every": 100, "validation_examples": 1_000},
            {"distractors": "ood/distractors=6"},
            {"examples": 4_000},
        ),
        "full": ExamWorld(
            {"name": "gcog/distractor"}, {"name": "gcog-distractor-paper"}, {"distractors": "ood/distractors=40"}
        ),
    },
    "sums": {
        "smoke": ExamWorld(
            {"name": "rules/mlp", "rules": 4},
            _TRY,
            {"amplitude": "ood/amplitude=2", "specialization": IID},
            {**_MODULES, "examples": 200, "activation_examples": 200, "adaptation_examples": 10},
        ),
        "mini": ExamWorld(
            {"name": "rules/mlp", "rules": 4},
            {**_RULES, "steps": 1_500, "batch": 128},
            {"amplitude": "ood/amplitude=2", "specialization": IID},
            {**_MODULES, "examples": 4_000},
        ),
        "full": ExamWorld(
            {"name": "rules/mlp", "rules": 8},
            {"name": "rules-mlp-paper"},
            {"amplitude": "ood/amplitude=2", "specialization": IID},
            {"analyses": ("specialization",)},
        ),
    },
    "states": {
        "smoke": ExamWorld(
            {"name": "rules/rnn", "rules": 2},
            _TRY,
            {"length": "ood/length=20", "amplitude": "ood/amplitude=2"},
            {"examples": 200},
        ),
        "mini": ExamWorld(
            {"name": "rules/rnn", "rules": 2},
            {**_RULES, "steps": 3_000, "batch": 64},
            {"length": "ood/length=20", "amplitude": "ood/amplitude=2"},
            {"examples": 4_000},
        ),
        "full": ExamWorld(
            {"name": "rules/rnn", "rules": 8},
            {"name": "rules-rnn-paper"},
            {"length": "ood/length=20", "amplitude": "ood/amplitude=2"},
        ),
    },
}
"""Tests by name and scale. `smoke` tries whether everything runs; nothing is learned. `mini` are worlds that small models
learn in about a minute; `full` are the papers' worlds and recipes."""


def readings(scale: str) -> list[AbilityReading]:
    """Return every ability of every test of a scale, in the order of `ABILITIES`.

    >>> [reading.test for reading in readings("mini") if reading.ability == "amplitude"]
    ['sums', 'states']
    """
    by_ability: dict[str, list[AbilityReading]] = {ability: [] for ability in ABILITIES}
    for test, worlds in BATTERY.items():
        by_ability[INSIDE].append(AbilityReading(INSIDE, test, IID))
        for ability, split in worlds[scale].splits.items():
            metric = ability if ability in METRICS else "accuracy"
            by_ability[ability].append(AbilityReading(ability, test, split, metric))
    return list(chain.from_iterable(by_ability.values()))


def compute_digest(task: Mapping[str, Any], recipe: str, reading: AbilityReading) -> str:
    """Return a hash that tells a test from another version of it.

    It covers the task's identity, the recipe in words, the split, and the metric. Numbers are only compared between
    tests of equal digests.
    """
    metric = METRICS[reading.metric]
    return digest([dict(task), recipe, reading.split, metric.record, metric.missing])


# -- the study --------------------------------------------------------------------------------------------------------


def exam(model: str | Config | type[nn.Module]) -> Study:
    """Make the study `exam` of one model, with the axes `test` and `model`.

    Directories of several models can be merged, and then have one page.

    >>> exam("lstm").entries("smoke")[0].levels
    {'test': 'presence', 'model': 'lstm'}
    """
    from unseen.studies.trial import model_config

    options = model_config(model).options()

    def grids(scale: str) -> list[Grid]:
        axes: dict[str, Axis] = {
            "test": {test: worlds[scale].settings for test, worlds in BATTERY.items()},
            "model": {options["name"]: {"model": options}},
        }
        return [Grid(axes=axes, base={}, seeds=range(SEEDS[scale]))]

    return Study(NAME, VERSION, QUESTION, {"smoke": 1, "mini": None, "full": None}, grids, notes=NOTES)


def check_model(study: Study, scale: str, device: str = "cpu") -> None:
    """Refuse a model that cannot be built for one of the tests, or gives no answer there, before anything is trained."""
    from unseen.running.chunk import check_trial
    from unseen.running.memory import check_memory

    for entry in study.entries(scale, [0]):
        try:
            check_memory([entry.trial], device)
            check_trial(entry.trial, device)
        except UsageError as error:
            raise UsageError(f"test '{entry.levels['test']}' ({entry.trial.task.name}): {error}") from error
