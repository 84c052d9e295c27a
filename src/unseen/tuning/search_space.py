"""The search space of tuning: a grid of 80 configurations, or a space of the user's that Optuna searches."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from unseen.errors import UsageError, nearest
from unseen.randomness import stream
from unseen.studies.grid import Level
from unseen.training.recipe import Recipe

Configuration = dict[str, Level]
"""A value for each option that is tuned."""
ScoredConfigurations = Sequence[tuple[Configuration, float]]
"""Configurations with their scores; higher is better."""
ROUND = 20
"""The number of configurations that Optuna proposes at a time; they are trained together before it hears the scores."""
_FIXED = ("name", "steps", "decay", "validate_every", "validation_examples", "ties")
"""Options that can't be tuned: the budget, and how validation is done. Decay is tuned through `cosine`."""


@dataclass(frozen=True)
class Range:
    """All numbers between two: integers uniformly, other numbers uniformly in their logarithm."""

    low: float
    high: float

    @property
    def whole(self) -> bool:
        """Whether the range is one of integers."""
        return isinstance(self.low, int) and isinstance(self.high, int)


Space = Mapping[str, Sequence[Level] | Range]


def standard_space(steps: int) -> Space:
    """The grid of 80 configurations. Warm-up takes 1 000 steps, or 1 % of all steps if that is less.

    >>> count_configurations(standard_space(100_000)), standard_space(5_000)["warmup"]
    (80, (0, 50))
    """
    return {
        "learning_rate": (3e-5, 1e-4, 3e-4, 1e-3, 3e-3),
        "warmup": (0, max(1, min(1_000, steps // 100))),
        "cosine": (False, True),
        "batch": (64, 256),
        "weight_decay": (0.0, 1e-4),
    }


def parse_space(assignments: Sequence[str]) -> Space:
    """A search space from the command line: values, or a range.

    >>> parse_space(["learning_rate=1e-5..1e-2", "batch=64,256", "cosine=true"])
    {'learning_rate': Range(low=1e-05, high=0.01), 'batch': (64, 256), 'cosine': (True,)}
    """
    space: dict[str, Sequence[Level] | Range] = {}
    for assignment in assignments:
        name, equals, values = assignment.partition("=")
        if not equals or not values or name in space:
            raise UsageError(
                f"--search {assignment}: expected each option once, like learning_rate=1e-5..1e-2 or batch=64,256"
            )
        low, dots, high = values.partition("..")
        if dots:
            space[name] = Range(_parse_bound(assignment, low), _parse_bound(assignment, high))
        else:
            space[name] = tuple(map(_parse_value, values.split(",")))
    return space


def check_space(space: Space) -> None:
    """Refuse unknown options, values that a recipe does not accept, and empty ranges."""
    tunable = [*(name for name in Recipe.model_fields if name not in _FIXED), "cosine"]
    for name, values in space.items():
        if name not in tunable:
            raise UsageError(f"search: unknown option '{name}'. {nearest(name, tunable)}")
        if isinstance(values, Range):
            if not (values.low < values.high and (values.whole or values.low > 0)):
                raise UsageError(
                    f"search: {name} from {values.low} to {values.high}: the first number must be smaller than the "
                    "second, and above 0 unless both are integers"
                )
            samples: Sequence[Level] = (values.low, values.high)
        else:
            if not values or len(set(values)) != len(values):
                raise UsageError(f"search: {name} = {list(values)}: give at least one value, and each once")
            samples = values
        for value in samples:
            tuned_recipe(Recipe(), {name: value}, 100, 100)  # raises an error that names the option
    if not space:
        raise UsageError("search: nothing is tuned; name at least one option")


def count_configurations(space: Space) -> int | None:
    """The number of configurations; None if the space has a range."""
    sizes = []
    for values in space.values():
        if isinstance(values, Range):
            return None
        sizes.append(len(values))
    return math.prod(sizes)


def propose_configurations(
    space: Space, count: int, scored: ScoredConfigurations, round_number: int
) -> list[Configuration]:
    """The `count` configurations of a round (0, 1, …), given the scores of earlier rounds.

    A grid is tried completely or, if `count` is smaller, at a random subset that is the same for all models; scores do
    not matter. A space with ranges is searched by Optuna's tree-structured Parzen estimator, whose first round, without
    any scores, is the same for all models.
    """
    total = count_configurations(space)
    if total is None:
        return _ask_optuna(space, count, scored, round_number)
    lists = [values for values in space.values() if not isinstance(values, Range)]
    chosen = set(stream("tune", "grid", total).block().permutation(total)[:count].tolist())
    configurations = []
    for number, values in enumerate(product(*lists)):
        if number in chosen:
            configurations.append(dict(zip(space, values, strict=True)))
    return configurations


def tuned_recipe(base: Recipe, configuration: Configuration, steps: int, total_steps: int) -> Recipe:
    """The recipe of a configuration that ends after `steps`, with the learning-rate schedule of `total_steps`.

    >>> tuned = tuned_recipe(Recipe(), {"learning_rate": 0.01, "cosine": True}, 500, 8_000)
    >>> tuned.learning_rate, tuned.steps, tuned.decay
    (0.01, 500, 8000)
    """
    options: dict[str, Any] = dict(configuration)
    if "cosine" in options:
        cosine = options.pop("cosine")
        if not isinstance(cosine, bool):
            raise UsageError(f"search: cosine = {cosine!r}: expected true or false")
        options["decay"] = total_steps if cosine else None
    return Recipe.parse({**base.model_dump(), **options, "steps": steps})


def optuna_study(space: Space, scored: ScoredConfigurations, seed: int = 0) -> Any:
    """An in-memory study of Optuna with the scored configurations, for its samplers and its figures."""
    optuna = import_optuna()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    # After a first round that nobody has scored, all proposals follow the scores: rounds are few.
    sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=1)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    distributions = _distributions(space)
    # Optuna needs finite numbers: a configuration that diverged gets the worst score of those that did not.
    worst = min((score for _, score in scored if math.isfinite(score)), default=0.0)
    for configuration, score in scored:
        value = score if math.isfinite(score) else worst
        trial = optuna.trial.create_trial(params=dict(configuration), distributions=distributions, value=value)
        study.add_trial(trial)
    return study


def _ask_optuna(space: Space, count: int, scored: ScoredConfigurations, round_number: int) -> list[Configuration]:
    # The seed depends on the round alone, so that a round can be proposed again after a crash.
    seed = int(stream("tune", "round", round_number).block().integers(2**31))
    study = optuna_study(space, scored, seed)
    distributions = _distributions(space)
    configurations: list[Configuration] = []
    for _ in range(10 * count):  # in a small space Optuna may propose the same configuration again
        configuration = dict(study.ask(distributions).params)
        if configuration not in configurations:
            configurations.append(configuration)
        if len(configurations) == count:
            break
    return configurations


def _distributions(space: Space) -> dict[str, Any]:
    distributions = import_optuna().distributions
    by_name = {}
    for name, values in space.items():
        if not isinstance(values, Range):
            by_name[name] = distributions.CategoricalDistribution(list(values))
        elif values.whole:
            by_name[name] = distributions.IntDistribution(values.low, values.high)
        else:
            by_name[name] = distributions.FloatDistribution(values.low, values.high, log=True)
    return by_name


def import_optuna() -> Any:
    """The library that proposes configurations; without it, an error that names the extra."""
    try:
        import optuna
    except ImportError:
        raise UsageError(
            "searching a range needs the extra 'tune': pip install 'unseen[tune]'; a list of values does not"
        ) from None
    return optuna


def _parse_value(text: str) -> Level:
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        value = {"True": True, "False": False}.get(text, text)
    if not isinstance(value, str | int | float | bool):
        raise UsageError(f"--search …={text}: expected a word, a number, true or false")
    return value


def _parse_bound(assignment: str, text: str) -> float:
    value = _parse_value(text) if text else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UsageError(f"--search {assignment}: a range has two numbers, like 1e-5..1e-2")
    return value
