"""What is tuned: the grid of the specification, or a space of one's own that Optuna searches."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from unseen.engine.recipe import Recipe
from unseen.errors import UsageError, nearest
from unseen.randomness import stream
from unseen.studies.grid import Level

Configuration = dict[str, Level]
"""A value for each option that is tuned."""
Told = Sequence[tuple[Configuration, float]]
"""Configurations and how well they did; the more the better."""
ROUND = 20
"""So many configurations Optuna proposes at once: one stack or a few, trained together, before it hears of them."""
_FIXED = ("name", "steps", "decay", "validate_every", "validation_examples", "ties")
"""What no configuration may change: the budget, and how validation is done. Decay is tuned by the word `cosine`."""


@dataclass(frozen=True)
class Range:
    """All numbers between two: whole ones evenly, others evenly in their logarithm."""

    low: float
    high: float

    @property
    def whole(self) -> bool:
        """Whether these are whole numbers."""
        return isinstance(self.low, int) and isinstance(self.high, int)


Space = Mapping[str, Sequence[Level] | Range]


def standard(steps: int) -> Space:
    """The 80 configurations that every model gets. Warm-up takes 1 000 steps, or one in a hundred if that is less.

    >>> size(standard(100_000)), standard(5_000)["warmup"]
    (80, (0, 50))
    """
    return {
        "learning_rate": (3e-5, 1e-4, 3e-4, 1e-3, 3e-3),
        "warmup": (0, max(1, min(1_000, steps // 100))),
        "cosine": (False, True),
        "batch": (64, 256),
        "weight_decay": (0.0, 1e-4),
    }


def parse(given: Sequence[str]) -> Space:
    """A space from the command line: values, or two ends.

    >>> parse(["learning_rate=1e-5..1e-2", "batch=64,256", "cosine=true"])
    {'learning_rate': Range(low=1e-05, high=0.01), 'batch': (64, 256), 'cosine': (True,)}
    """
    space: dict[str, Sequence[Level] | Range] = {}
    for text in given:
        name, equals, values = text.partition("=")
        low, dots, high = values.partition("..")
        if not equals or not values or name in space:
            raise UsageError(
                f"--search {text}: expected each option once, like learning_rate=1e-5..1e-2 or batch=64,256"
            )
        space[name] = (
            Range(_number(text, low), _number(text, high))
            if dots
            else tuple(_value(part) for part in values.split(","))
        )
    return space


def check(space: Space) -> None:
    """Refuse options that a recipe does not have, values it does not take, and ranges that are none."""
    known = [*(name for name in Recipe.model_fields if name not in _FIXED), "cosine"]
    for name, values in space.items():
        if name not in known:
            raise UsageError(f"search: unknown option '{name}'. {nearest(name, known)}")
        if isinstance(values, Range):
            if not (values.low < values.high and (values.whole or values.low > 0)):
                raise UsageError(
                    f"search: {name} from {values.low} to {values.high}: the first must be the smaller, "
                    "and above 0 unless both are whole numbers"
                )
        elif not values or len(set(values)) != len(values):
            raise UsageError(f"search: {name} = {list(values)}: give at least one value, and each once")
        ends = (values.low, values.high) if isinstance(values, Range) else values
        for value in ends:
            recipe_of(Recipe(), {name: value}, 100, 100)
    if not space:
        raise UsageError("search: nothing is tuned; name at least one option")


def size(space: Space) -> int | None:
    """How many configurations there are; None: endlessly many."""
    if any(isinstance(values, Range) for values in space.values()):
        return None
    return math.prod(len(values) for values in space.values() if not isinstance(values, Range))


def propose(space: Space, count: int, told: Told, number: int) -> list[Configuration]:
    """The configurations of a round (0, 1, …), of which `count` are wanted, given how earlier ones did.

    A grid is tried whole, or as many of it as wanted, drawn once for all models: nothing is to be learned from earlier
    rounds. A space with ranges is searched by Optuna's tree-structured Parzen estimator; the first round, of which
    nothing has been told, is the same for all models.
    """
    whole = size(space)
    if whole is None:
        return _ask(space, count, told, number)
    every = [
        dict(zip(space, values, strict=True))
        for values in product(*(v for v in space.values() if not isinstance(v, Range)))
    ]
    chosen = sorted(stream("tune", "grid", whole).block().permutation(whole)[:count].tolist())
    return [every[i] for i in chosen]


def recipe_of(base: Recipe, configuration: Configuration, steps: int, whole: int) -> Recipe:
    """A recipe with a configuration, that ends at `steps` of the `whole` budget, for which its schedule is made.

    >>> tuned = recipe_of(Recipe(), {"learning_rate": 0.01, "cosine": True}, 500, 8_000)
    >>> tuned.learning_rate, tuned.steps, tuned.decay
    (0.01, 500, 8000)
    """
    given: dict[str, Any] = {k: v for k, v in configuration.items() if k != "cosine"}
    if "cosine" in configuration:
        if not isinstance(configuration["cosine"], bool):
            raise UsageError(f"search: cosine = {configuration['cosine']!r}: it is true or false")
        given["decay"] = whole if configuration["cosine"] else None
    return Recipe.parse({**base.model_dump(), **given, "steps": steps})


def optuna_study(space: Space, told: Told, seed: int = 0) -> Any:
    """Configurations and how they did as a study of Optuna, in memory, for its samplers and its figures."""
    optuna = _optuna()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=1)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    distributions = _distributions(space)
    # Optuna wants numbers: one that diverged did as badly as the worst that did not.
    worst = min((value for _, value in told if math.isfinite(value)), default=0.0)
    for configuration, value in told:
        study.add_trial(
            optuna.trial.create_trial(
                params=dict(configuration), distributions=distributions, value=value if math.isfinite(value) else worst
            )
        )
    return study


def _ask(space: Space, count: int, told: Told, number: int) -> list[Configuration]:
    """A round depends on what was told and on its number alone, so that it can be asked for again after a crash."""
    study, distributions = optuna_study(space, told, _seed(number)), _distributions(space)
    found: list[Configuration] = []
    for _ in range(10 * count):  # in a small space it may say the same again
        asked = dict(study.ask(distributions).params)
        if asked not in found:
            found.append(asked)
        if len(found) == count:
            break
    return found


def _seed(number: int) -> int:
    return int(stream("tune", "round", number).block().integers(2**31))


def _distributions(space: Space) -> dict[str, Any]:
    distributions = _optuna().distributions
    return {
        name: distributions.CategoricalDistribution(list(values))
        if not isinstance(values, Range)
        else distributions.IntDistribution(values.low, values.high)
        if values.whole
        else distributions.FloatDistribution(values.low, values.high, log=True)
        for name, values in space.items()
    }


def _optuna() -> Any:
    try:
        import optuna
    except ImportError:
        raise UsageError(
            "to search ranges needs the extra 'tune': pip install 'unseen[tune]'; values alone do not"
        ) from None
    return optuna


def _value(text: str) -> Level:
    try:
        found = json.loads(text)
    except json.JSONDecodeError:
        found = {"True": True, "False": False}.get(text, text)
    if not isinstance(found, str | int | float | bool):
        raise UsageError(f"--search …={text}: a value is a word, a number, true or false")
    return found


def _number(text: str, end: str) -> float:
    found = _value(end) if end else None
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise UsageError(f"--search {text}: a range has two numbers, like 1e-5..1e-2")
    return found
