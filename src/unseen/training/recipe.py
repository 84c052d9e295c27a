"""How to train, and what to measure afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

from pydantic import (
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    field_validator,
    model_validator,
)

from unseen.config import Config
from unseen.errors import UnknownName, nearest
from unseen.names import family_of, name_in_family

SPECIALIZATION = "specialization"
"""How modules divide the rules among themselves; unlike the analyses of one split, it draws its own data."""
REPRESENTATION = "representation"
"""How functions with one outcome are represented, and which of them can be combined; it draws its own data."""
BY_RULE = "by-rule"
"""How well each rule of a task is learned; it evaluates the test data once more."""
SIMILARITY = "similarity"
"""How similar the states of a model are to stimuli and targets, before and after training."""
PROBES = "probes"
"""Where variables of a task can be read off the activations of a model."""
INTERCHANGE = "interchange"
"""Whether the model uses variables where they are: answers that follow an exchange of activations."""
ABLATION = "ablation"
"""How much worse a modular model answers without each of its modules."""
FUNCTIONS = "functions"
"""How accurate answers are on functions that training has in another form, and on new ones."""
DRAW_THEIR_OWN = (
    *(SPECIALIZATION, REPRESENTATION, BY_RULE, SIMILARITY),
    *(PROBES, INTERCHANGE, ABLATION, FUNCTIONS),
)
"""The analyses that draw their own data (`unseen.training.analyses`), in the order in which an evaluation names them."""

PER_MEMBER = frozenset({"name", "learning_rate", "weight_decay", "clip", "plateau", "least_steps"})
"""The options of a recipe in which the members of one stack may differ."""
Batches = Literal["shuffled", "passes", "lengths", "balanced", "given"]


class Recipe(Config):
    """Optimiser, steps, batch, clipping, validation, and when training ends: after `steps`, or before at a plateau.

    The defaults are sized for two CPU cores; `retrieval-paper` and its like are the published recipes.
    """

    name: str = "quick"
    optimiser: Literal["adam", "adamw", "sgd"] = "adam"
    learning_rate: PositiveFloat = 1e-3
    weight_decay: NonNegativeFloat = 0.0
    steps: PositiveInt = 10_000
    batch: PositiveInt = 100
    clip: PositiveFloat | None = Field(0.5, description="largest global gradient norm of one member")
    warmup: NonNegativeInt = Field(0, description="linear warm-up steps")
    decay: PositiveInt | None = Field(
        None,
        description="step by which the learning rate has fallen to nothing along "
        "half a cosine, which begins after the warm-up (None: it "
        "stays); training may end before, by `steps`",
    )
    batches: Batches = Field(
        "shuffled",
        description="of a finite set: shuffled in every epoch, batches going on into the next; passes, which drop an "
        "incomplete last batch (a set smaller than the batch is the batch); shuffled in batches of equal lengths, balanced (every "
        "length equally often in a batch), or as given",
    )
    validate_every: PositiveInt = 500
    validation_examples: PositiveInt = 2_000
    ties: Literal["first", "latest"] = Field("first", description="of equally good validations, whose weights are best")
    plateau: PositiveFloat | None = Field(
        None,
        description="end once the score (accuracy, or the negative loss) has left its start and gains less than this over "
        "the last third of training, like 0.005 (None: all `steps`)",
    )
    least_steps: NonNegativeInt = Field(
        0, description="minimum number of steps before a plateau may end the run; it never ends before the decay does"
    )

    @model_validator(mode="before")
    @classmethod
    def _without_patience(cls, options: Any) -> Any:
        """Studies and stores from before the plateau may name `patience`, which stopped runs that had not begun to learn."""
        if isinstance(options, dict) and "patience" in options:
            raise ValueError(
                "option 'patience' was replaced by 'plateau': give plateau = 0.005 to end a run that gains less over the "
                "last third of its training. Trials that were begun with patience can be read, and not continued"
            )
        return options


class Evaluation(Config):
    """Which splits, how many examples of each, and which analyses. No splits named: all but `train`.

    `train`, where it is named, is the run's own training data: the first examples it was trained on. Where answers are
    of several kinds (gcog), `right_kind` beside `accuracy` is the share of answers of the right kind.

    An analysis (`R7`) leaves measures like `R7/positive` on the split it is about, where the evaluation covers it;
    `specialization` leaves `specialization/alignment` and its like of modular models on the rules family,
    `representation` leaves `representation/gap` and its like on the ctl family; `by-rule` leaves `by-rule/accuracy` of
    every rule and `by-rule/worst_accuracy` on the rules family; `similarity` leaves `similarity/stimulus_alignment`,
    `similarity/target_alignment` and their like on gcog/distractor (all of them: `training/analyses/gcog_similarity.py`).
    `probes`, `interchange` and `ablation` look inside the model, on every split (`training/analyses/inside_measures.py`).
    `functions` leaves `functions/accuracy` of examples whose function training has in any form (`known`), and of others (`new`).
    """

    name: str = "standard"
    splits: tuple[str, ...] = ()
    examples: PositiveInt = 10_000
    analyses: tuple[str, ...] = ()
    activation_examples: PositiveInt = Field(10_000, description="specialization: examples behind activation matrices")
    adaptation_examples: PositiveInt = Field(200, description="specialization: examples per distribution of rules")
    curve: tuple[str, ...] = Field((), description="splits that are on the learning curve, beside the validation's")
    curve_points: PositiveInt = Field(25, description="how often they are measured in the course of training")
    curve_examples: PositiveInt = Field(500, description="on how many of their test examples, at most")

    @field_validator("analyses")
    @classmethod
    def _sort_analyses(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        """Put the analyses into the order of the table, each once, so that the same work has the same id."""
        if not names:
            return ()
        from unseen.analysis.attention import ANALYSES  # loads pandas

        all_names = (*ANALYSES, *DRAW_THEIR_OWN)
        for name in names:
            if name not in all_names:
                raise ValueError(f"unknown analysis '{name}'. {nearest(name, all_names)}")
        return tuple(name for name in all_names if name in names)

    def identity(self) -> dict[str, Any]:
        """Without the options of curves: these are drawn while a run is trained, and change none of its records."""
        return {name: value for name, value in super().identity().items() if name not in CURVE_OPTIONS}

    def with_curve_of(self, other: Evaluation) -> Self:
        """The same, with the splits of both on the curve, measured as often and on as many examples as either asks."""
        return self.model_copy(
            update={
                "curve": tuple(dict.fromkeys((*self.curve, *other.curve))),
                "curve_points": max(self.curve_points, other.curve_points),
                "curve_examples": max(self.curve_examples, other.curve_examples),
            }
        )


CURVE_OPTIONS = ("curve", "curve_points", "curve_examples")
"""The options of an evaluation that say what is measured in the course of training."""


@dataclass(frozen=True)
class CurveSplit:
    """A split on the learning curve: at how many points, on how many examples."""

    split: str
    points: int
    examples: int


def curve_splits(evaluations: Sequence[Evaluation]) -> tuple[CurveSplit, ...]:
    """The splits on the learning curve of a run with several evaluations: each once, with the most points and examples.

    >>> curve_splits([Evaluation(curve=("iid",)), Evaluation(curve=("iid", "ood"), curve_points=50)])[0]
    CurveSplit(split='iid', points=50, examples=500)
    """
    curves: dict[str, CurveSplit] = {}
    for evaluation in evaluations:
        for split in evaluation.curve:
            before = curves.get(split, CurveSplit(split, 0, 0))
            points = max(before.points, evaluation.curve_points)
            curves[split] = CurveSplit(split, points, max(before.examples, evaluation.curve_examples))
    return tuple(curves.values())


def curve_steps(recipe: Recipe, points: int) -> frozenset[int]:
    """The steps at which a curve of this many points is measured: evenly spaced from step 0 to the last.

    The last step of a run that may end at a plateau is not known in advance: its points are all its validations.

    >>> sorted(curve_steps(recipe(steps=100), 4))
    [0, 25, 50, 75, 100]
    """
    if recipe.plateau is not None:
        return frozenset((*range(0, recipe.steps, recipe.validate_every), recipe.steps))
    return frozenset(-(-i * recipe.steps // points) for i in range(points + 1))


# Modularity paper: 100 000 steps (MLP) or 500 000, every batch fresh; clipping for the RNN only.
_RULES = {"learning_rate": 1e-4, "batch": 256, "clip": None, "validate_every": 5_000, "validation_examples": 2_560}

# CTL++: batches of equal lengths; the last weights are reported. On S the code trains the Bi-LSTM otherwise than on A
# and R; the paper says alike. The original task (`lengths`) has no warm-up, and reports the latest of the best weights.
_CTL = {
    "optimiser": "adamw",
    "learning_rate": 1.5e-4,
    "batch": 512,
    "clip": 5.0,
    "warmup": 500,
    "batches": "lengths",
    "validate_every": 1_000,
    "validation_examples": 1_000,
}

# gCOG: fresh samples; what the paper prints is how many were seen, and that is kept. It prints no batch size (the
# released demonstrations load 64): 256 is ours.
_GCOG = {
    "optimiser": "adamw",
    "learning_rate": 1e-4,
    "weight_decay": 0.01,
    "clip": 1.0,
    "batch": 256,
    "validate_every": 5_000,
    "validation_examples": 2_000,
}


def _seen(samples: int) -> int:
    """The number of steps of 256 examples in which at least this many samples are seen."""
    return -(-samples // 256)


RECIPES: dict[str, dict[str, Any]] = {
    "quick": {},
    # Retrieval paper: 100 epochs of 10 000 steps; the best epoch on validation is kept.
    "retrieval-paper": {
        "learning_rate": 1e-4,
        "steps": 1_000_000,
        "batch": 10,
        "validate_every": 10_000,
        "validation_examples": 10_000,
    },
    "rules-mlp-paper": {**_RULES, "steps": 100_000},
    "rules-mha-paper": {**_RULES, "steps": 500_000},
    "rules-rnn-paper": {**_RULES, "steps": 500_000, "clip": 1.0},
    "ctl-bilstm-paper": {**_CTL, "steps": 80_000},
    "ctl-bilstm-S-released": {**_CTL, "steps": 80_000, "optimiser": "adam", "learning_rate": 1e-3, "batch": 128},
    "ctl-transformer-paper": {**_CTL, "steps": 300_000, "weight_decay": 0.0025},
    "ctl-ndr-paper": {**_CTL, "steps": 80_000, "clip": 1.0},
    # Batches of one length are NDR's alone here: the RNNs and the Transformer shuffle.
    "ctl-bilstm-lengths-paper": {
        **_CTL,
        "batches": "shuffled",
        "steps": 20_000,
        "optimiser": "adam",
        "learning_rate": 1e-3,
        "batch": 256,
        "warmup": 0,
        "ties": "latest",
    },
    "ctl-transformer-lengths-paper": {
        **_CTL,
        "batches": "shuffled",
        "steps": 30_000,
        "weight_decay": 0.0025,
        "warmup": 0,
        "ties": "latest",
    },
    "ctl-ndr-lengths-paper": {**_CTL, "steps": 30_000, "weight_decay": 0.01, "warmup": 0, "ties": "latest"},
    "gcog-distractor-paper": {**_GCOG, "steps": _seen(53_980_000)},
    "gcog-systematic-operators-paper": {**_GCOG, "steps": _seen(47_980_000)},
    "gcog-systematic-trees-paper": {**_GCOG, "steps": _seen(53_980_000)},
    "gcog-productive-paper": {**_GCOG, "steps": _seen(59_980_000)},
    "gcog-bert-paper": {**_GCOG, "steps": _seen(11_980_000)},
}


def recipe(name: str = "quick", **options: Any) -> Recipe:
    """A named recipe, with single options replaced.

    >>> recipe("retrieval-paper", steps=20_000).batch
    10
    """
    if name not in RECIPES:
        raise UnknownName(f"unknown recipe '{name}'. {nearest(name, RECIPES)}")
    return Recipe.parse({"name": name, **RECIPES[name], **options})


def published_recipe(task: str, model: str) -> Recipe | None:
    """The recipe this model was published with on this task, if there is one: the paper's, or the released code's.

    >>> published_recipe("ctl/S", "ctl-bilstm").name, published_recipe("ctl/A", "ctl-bilstm").name, published_recipe("ctl/A", "lstm")
    ('ctl-bilstm-S-released', 'ctl-bilstm-paper', None)
    >>> published_recipe("gcog/distractor", "gcog-rnn").name, published_recipe("gcog/distractor", "gcog-bert").name
    ('gcog-distractor-paper', 'gcog-bert-paper')
    """
    family = family_of(task)
    variant = name_in_family(task)
    stems = [f"{model}-{variant}", model]
    if model.startswith(f"{family}-"):  # a generic backbone was trained by no paper
        stems += [f"{family}-{variant}", family]
    for stem in stems:
        for source in ("paper", "released"):
            name = f"{stem}-{source}"
            if name in RECIPES:
                return recipe(name)
    return None


def deviations(used: Recipe, task: str, model: str) -> list[str]:
    """How a recipe differs from the published one, one phrase each; [] if there is none.

    >>> deviations(recipe("retrieval-paper", steps=500), "retrieval/T6", "retrieval-lstm")
    ['steps 500 (paper: 1000000)']
    >>> deviations(recipe("retrieval-paper", plateau=0.005), "retrieval/T6", "retrieval-lstm")
    ['plateau 0.005 (paper: not set)']
    >>> deviations(recipe("quick"), "retrieval/T6", "lstm")  # no paper trained this model
    []
    """
    theirs = published_recipe(task, model)
    if theirs is None:
        return []
    source = {"paper": "paper", "released": "released code"}[theirs.name.rpartition("-")[2]]
    phrases = []
    for option in Recipe.model_fields:
        used_value = getattr(used, option)
        published_value = getattr(theirs, option)
        if option != "name" and used_value != published_value:
            used_text = _format_option(used_value)
            phrases.append(f"{option.replace('_', ' ')} {used_text} ({source}: {_format_option(published_value)})")
    return phrases


def _format_option(value: object) -> str:
    return "not set" if value is None else str(value)
