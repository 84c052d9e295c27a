"""The exam: one battery of small tests from all four families, for any model.

A *test* is a world that a model is trained in; an *ability* is read from a test on one of its conditions. Few worlds
are trained, many abilities are read:

| ability | read from | where training and test differ in |
|---|---|---|
| in-distribution | every test | the examples |
| retrieval | presence | how often the feature asked for occurs |
| order tracking | order | the same, where the answer is in the order of two features |
| systematicity | tables | which functions follow each other |
| productivity | chains | how many functions are composed |
| distractors | scenes | how many objects stand around those that matter |
| length | states | how many tokens there are |
| amplitude | sums, states | how large numbers are |
| specialization | sums | nothing; whether each rule has a module of its own |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from unseen.config import digest
from unseen.errors import UsageError
from unseen.studies.grid import Grid
from unseen.studies.parts import Settings
from unseen.studies.study import Study

if TYPE_CHECKING:
    from torch import nn

    from unseen.config import Config

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
"""The condition on which every test says whether a run has learned."""
LEARNED = 0.5
"""The part of the way from chance to the oracle that a run must have gone on `iid`, where it may do no worse than any
shortcut: what it does elsewhere says nothing about generalisation if it has not learned what it was taught."""
NOTES = ("the models of the exam are not those of the papers, and every test has one recipe for all models",)


@dataclass(frozen=True)
class Metric:
    """A score between `chance` (None: the task's) and 1, the oracle's. It is the number of that name in the records, or
    what is missing from 1 (`missing`). `trace`, where it needs one, is what a model must keep to have it."""

    record: str
    missing: bool = False
    chance: float | None = None
    trace: str = ""


METRICS = {
    "accuracy": Metric("accuracy"),
    # Of a rule's weight, what goes to its own module, so that modules that treat all rules alike have 0.
    "specialization": Metric("specialization/alignment_normalised", missing=True, chance=0.0, trace="gating.weights"),
}


@dataclass(frozen=True)
class World:
    """What is trained at a scale, the conditions of abilities there (`iid` besides), and how it is evaluated."""

    task: Mapping[str, Any]
    recipe: Mapping[str, Any]
    conditions: Mapping[str, str]
    evaluation: Mapping[str, Any] = field(default_factory=dict)

    @property
    def settings(self) -> Settings:
        """As a level of an axis."""
        conditions = tuple(dict.fromkeys([IID, *self.conditions.values()]))
        return {"task": self.task, "recipe": self.recipe, "evaluation": {"conditions": conditions, **self.evaluation}}


@dataclass(frozen=True)
class Reading:
    """An ability, the test and condition it is read from, and the metric by which."""

    ability: str
    test: str
    condition: str
    metric: str = "accuracy"


# -- the worlds -------------------------------------------------------------------------------------------------------

# Without the four questions about parity, for which models of this size find no sense of place in the time.
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

BATTERY: Mapping[str, Mapping[str, World]] = {
    "presence": {
        "smoke": World(
            {"name": "retrieval/T1", **_FEW_FEATURES, "train_size": 500, "evaluation_size": 200},
            _TRY,
            {"retrieval": "ood/single"},
            {"examples": 200},
        ),
        "mini": World(
            {"name": "retrieval/T1", **_FEW_FEATURES},
            {**_QUICK, "steps": 1_200, "validate_every": 100},
            {"retrieval": "ood/single"},
            {"examples": 4_000},
        ),
        "full": World(
            {"name": "retrieval/T1", "preset": "released"}, {"name": "retrieval-paper"}, {"retrieval": "ood/single"}
        ),
    },
    "order": {
        "smoke": World(
            {"name": "retrieval/T6", **_FEW_FEATURES, "train_size": 500, "evaluation_size": 200},
            _TRY,
            {"order tracking": "ood/single"},
            {"examples": 200},
        ),
        "mini": World(
            {"name": "retrieval/T6", **_FEW_FEATURES},
            {**_QUICK, "steps": 2_000, "validate_every": 100},
            {"order tracking": "ood/single"},
            {"examples": 4_000},
        ),
        "full": World(
            {"name": "retrieval/T6", "preset": "released"},
            {"name": "retrieval-paper"},
            {"order tracking": "ood/single"},
        ),
    },
    "tables": {
        "smoke": World(
            {**_FEW_TABLES, "max_length": 4, "train_size": 150, "iid_size": 40, "ood_size": 100},
            _TRY_CTL,
            {"systematicity": "ood/transition"},
        ),
        # Every function alone and every legal pair are in training: without them little is learned in this time.
        "mini": World(
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
        "full": World({"name": "ctl/A"}, {"name": "ctl-ndr-paper"}, {"systematicity": "ood/transition"}),
    },
    "chains": {
        "smoke": World(
            {**_CHAINS, "max_length": 3, "longer": ((4, 5), (6, 7)), "train_size": 150, "iid_size": 20},
            _TRY_CTL,
            {"productivity": "ood/length=6-7"},
        ),
        # Weights are selected on the first of the longer lengths, so the second is the one to read.
        "mini": World(
            {**_CHAINS, "longer": ((6, 6), (7, 8)), "train_size": 5_000, "iid_size": 300},
            {**_CTL, "steps": 3_000},
            {"productivity": "ood/length=7-8"},
        ),
        "full": World(
            {"name": "ctl/lengths", "order": "backward"},
            {"name": "ctl-ndr-lengths-paper"},
            {"productivity": "ood/length=9-10"},
        ),
    },
    "scenes": {
        "smoke": World(
            {**_SCENE, "ood_distractors": (4,)}, _TRY, {"distractors": "ood/distractors=4"}, {"examples": 200}
        ),
        "mini": World(
            {**_SCENE, "ood_distractors": (6,)},
            {**_QUICK, "batch": 64, "steps": 1_500, "validate_every": 100, "validation_examples": 1_000},
            {"distractors": "ood/distractors=6"},
            {"examples": 4_000},
        ),
        "full": World(
            {"name": "gcog/distractor"}, {"name": "gcog-distractor-paper"}, {"distractors": "ood/distractors=40"}
        ),
    },
    "sums": {
        "smoke": World(
            {"name": "rules/mlp", "rules": 4},
            _TRY,
            {"amplitude": "ood/amplitude=2", "specialization": IID},
            {**_MODULES, "examples": 200, "activation_examples": 200, "adaptation_examples": 10},
        ),
        "mini": World(
            {"name": "rules/mlp", "rules": 4},
            {**_RULES, "steps": 1_500, "batch": 128},
            {"amplitude": "ood/amplitude=2", "specialization": IID},
            {**_MODULES, "examples": 4_000},
        ),
        "full": World(
            {"name": "rules/mlp", "rules": 8},
            {"name": "rules-mlp-paper"},
            {"amplitude": "ood/amplitude=2", "specialization": IID},
            {"analyses": ("specialization",)},
        ),
    },
    "states": {
        "smoke": World(
            {"name": "rules/rnn", "rules": 2},
            _TRY,
            {"length": "ood/length=20", "amplitude": "ood/amplitude=2"},
            {"examples": 200},
        ),
        "mini": World(
            {"name": "rules/rnn", "rules": 2},
            {**_RULES, "steps": 3_000, "batch": 64},
            {"length": "ood/length=20", "amplitude": "ood/amplitude=2"},
            {"examples": 4_000},
        ),
        "full": World(
            {"name": "rules/rnn", "rules": 8},
            {"name": "rules-rnn-paper"},
            {"length": "ood/length=20", "amplitude": "ood/amplitude=2"},
        ),
    },
}
"""Tests by name and scale. `smoke` is for trying whether everything runs: nothing is learned. `mini` are worlds that
small models learn in about a minute; `full` are the papers' worlds and recipes."""


def readings(scale: str) -> list[Reading]:
    """Every ability of every test of a scale, in the order of `ABILITIES`.

    >>> [one.test for one in readings("mini") if one.ability == "amplitude"]
    ['sums', 'states']
    """
    found = [Reading(INSIDE, test, IID) for test in BATTERY]
    found += [
        Reading(ability, test, condition, ability if ability in METRICS else "accuracy")
        for test, worlds in BATTERY.items()
        for ability, condition in worlds[scale].conditions.items()
    ]
    return sorted(found, key=lambda one: ABILITIES.index(one.ability))


def digest_of(task: Mapping[str, Any], recipe: str, reading: Reading) -> str:
    """What tells a test from another version of it: the task's identity, the recipe in words, what is read and how.
    Numbers are only compared between tests of one digest."""
    metric = METRICS[reading.metric]
    return digest([dict(task), recipe, reading.condition, metric.record, metric.missing])


# -- the study --------------------------------------------------------------------------------------------------------


def exam(model: str | Config | type[nn.Module]) -> Study:
    """The battery for one model: a study `exam` with the axes `test` and `model`. Directories of several can be
    merged, and have one page then.

    >>> exam("lstm").entries("smoke")[0].levels
    {'test': 'presence', 'model': 'lstm'}
    """
    from unseen.studies.cell import model_config

    chosen = model_config(model).options()

    def grids(scale: str) -> list[Grid]:
        return [
            Grid(
                axes={
                    "test": {test: worlds[scale].settings for test, worlds in BATTERY.items()},
                    "model": {chosen["name"]: {"model": chosen}},
                },
                base={},
                seeds=range(SEEDS[scale]),
            )
        ]

    return Study(NAME, VERSION, QUESTION, {"smoke": 1, "mini": None, "full": None}, grids, notes=NOTES)


def check_fit(study: Study, scale: str, device: str = "cpu") -> None:
    """Refuse a model that can't be built for one of the tests, or does not answer there, before anything is trained."""
    from unseen.studies.fit import check_cell

    for entry in study.entries(scale, [0]):
        try:
            check_cell(entry.cell, device)
        except UsageError as error:
            raise UsageError(f"test '{entry.levels['test']}' ({entry.cell.task.name}): {error}") from error
