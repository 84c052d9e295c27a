"""All specialization metrics of one router, with standard errors."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from unseen.metrics.accuracy import Score
from unseen.metrics.activation import Floats, Ints, read_prior, read_tokens, refuse_empty, rule_count, sums
from unseen.metrics.adaptation import adaptation
from unseen.metrics.alignment import alignment
from unseen.metrics.collapse import collapse_avg, collapse_worst
from unseen.metrics.information import (
    effective_modules,
    entropies,
    entropy,
    inverse_mutual_information,
    mutual_information,
    normalised,
)

MATRIX_METRICS: Mapping[str, Callable[[Floats, Floats], float]] = {
    "collapse_avg": collapse_avg,
    "collapse_worst": collapse_worst,
    "collapse_avg_uniform": partial(collapse_avg, target="uniform"),
    "collapse_worst_uniform": partial(collapse_worst, target="uniform"),
    "alignment": alignment,
    "alignment_normalised": partial(alignment, normalised=True),
    "inverse_mutual_information": inverse_mutual_information,
    "adaptation": adaptation,
    "mutual_information": mutual_information,
    "effective_modules": effective_modules,
}
"""What is measured of the matrix p(module | rule) and the rule probabilities, by name."""
GROUPS = 20
"""Groups of examples for the jackknife."""


def specialization(weights: ArrayLike, rules: ArrayLike, pi: ArrayLike | None = None) -> dict[str, Score]:
    """Every specialization metric of a router, by name, each with its standard error.

    `weights` (B, M) or (B, N, M) are the weights that multiply the module outputs of each token, `rules` (B,) or
    (B, N) the rule of each token, `pi` the rule probabilities that the metrics are about, whatever the frequencies here
    (None: uniform over 0 … the largest rule). Names are those of `MATRIX_METRICS`, and `token_entropy` and
    `token_information`. `adaptation` is the linear one: right where a token's weights depend on that token alone.

    Standard errors are a grouped jackknife: examples (the first axis: tokens of one sequence stay together) are dealt
    into 20 groups, and each metric is computed 20 times with one group left out. They cover the choice of examples, to
    about a sixth of themselves. Where a metric has a kink (loads that are equal but for noise) they are too large by
    up to two thirds. They are silent about the upward bias of I(module; rule): some (R − 1)(M − 1) / 2T nats for T
    tokens and decisive routing, less for soft. NaN where a rule occurs in one group only, or with a single example.

    >>> found = specialization([[0.9, 0.1], [0.7, 0.3], [0.2, 0.8], [0.0, 1.0]], [0, 0, 1, 1])
    >>> round(found["alignment"].value, 6), round(found["alignment"].standard_error, 3), found["alignment"].n
    (0.15, 0.087, 4)
    """
    tally = Tally(rule_count(rules) if pi is None else np.size(pi))
    tally.add(weights, rules)
    return tally.scores(pi)


class Tally:
    """What the specialization metrics need of the tokens seen so far: sums, however many tokens there are.

    >>> tally = Tally(rules=2)
    >>> for weights, rules in (([[0.9, 0.1], [0.7, 0.3]], [0, 0]), ([[0.2, 0.8], [0.0, 1.0]], [1, 1])):
    ...     tally.add(weights, rules)
    >>> tally.scores()["alignment"] == specialization([[0.9, 0.1], [0.7, 0.3], [0.2, 0.8], [0.0, 1.0]], [0, 0, 1, 1])[
    ...     "alignment"]
    True
    """

    def __init__(self, rules: int) -> None:
        self.rules, self.examples = rules, 0
        self._tokens: Ints = np.zeros((GROUPS, rules), np.int64)
        self._sums: Floats = np.zeros((GROUPS, rules, 1))

    def add(self, weights: ArrayLike, rules: ArrayLike) -> None:
        """Count some more examples: weights (B, M) or (B, N, M), rules (B,) or (B, N)."""
        tokens, of = read_tokens(weights, rules, self.rules)
        examples, shape = len(np.asarray(rules)), (GROUPS, self.rules, -1)
        number = self.examples + np.arange(examples)
        group = (number + number // GROUPS) % GROUPS  # in turn, a place on in every round: rules may come in turn, too
        dealt = np.repeat(group, len(of) // examples) * self.rules + of
        self._tokens += np.bincount(dealt, minlength=GROUPS * self.rules).reshape(self._tokens.shape)
        # Weights, and in one more column the entropy of each token, by group and rule.
        self._sums = self._sums + np.concatenate(
            [
                sums(tokens, dealt, GROUPS * self.rules).reshape(shape),
                np.bincount(dealt, entropies(tokens), GROUPS * self.rules).reshape(shape),
            ],
            axis=2,
        )
        self.examples += examples

    def scores(self, pi: ArrayLike | None = None) -> dict[str, Score]:
        """The metrics by name, under these rule probabilities (None: uniform)."""
        prior = read_prior(pi, self.rules)
        occurring, groups = np.flatnonzero(prior), min(GROUPS, self.examples)
        refuse_empty(occurring[self._tokens.sum(axis=0)[occurring] == 0])
        every, added = self._tokens[:groups, occurring, None], self._sums[:groups, occurring]
        whole, rest = added.sum(axis=0), every.sum(axis=0) - every
        values = _measure(whole / every.sum(axis=0), prior[occurring])
        if groups < 2 or (rest == 0).any():
            return {name: Score(value, math.nan, self.examples) for name, value in values.items()}
        without = [_measure((whole - one) / left, prior[occurring]) for one, left in zip(added, rest, strict=True)]
        return {
            name: Score(value, _jackknife([found[name] for found in without]), self.examples)
            for name, value in values.items()
        }


def _measure(means: Floats, prior: Floats) -> dict[str, float]:
    """The metrics of a table (R, M + 1): the activation matrix, and the mean entropy of the tokens of each rule."""
    rows, of_token = means[:, :-1].clip(min=0), float(prior @ means[:, -1])
    found = {name: metric(rows, prior) for name, metric in MATRIX_METRICS.items()}
    found["token_entropy"] = normalised(of_token, rows.shape[1])
    found["token_information"] = max(0.0, float(entropy(prior @ rows)) - of_token)
    return found


def _jackknife(values: list[float]) -> float:
    """The standard error from estimates with one group left out in turn."""
    return math.sqrt((len(values) - 1) * float(np.var(values)))
