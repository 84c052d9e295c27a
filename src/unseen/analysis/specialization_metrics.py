"""Specialization of modules: collapse, alignment, information, and all metrics of a router with standard errors.

The metrics of this module read the activation matrix p(module | rule) (R, M) and the rule probabilities `pi` (R,),
uniform by default; `unseen.analysis.routing` makes the matrix, `unseen.analysis.adaptation_metric` has one more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from unseen.analysis.accuracy import Score
from unseen.analysis.adaptation_metric import adaptation
from unseen.analysis.assignment import solve_assignment
from unseen.analysis.routing import (
    AT_ONCE,
    Array,
    Floats,
    Ints,
    ideal_load,
    read_matrix,
    read_prior,
    read_tokens,
    refuse_empty,
    rule_count,
    sum_by_label,
)
from unseen.errors import UsageError, nearest

CollapseTarget = Literal["demand", "uniform"]
"""The load that a module should carry: its load in the ideal system, at most 1/M; or 1/M, for spare modules too."""


# Collapse: are modules idle that should carry load?


def collapse_avg(activation: ArrayLike, pi: ArrayLike | None = None, *, target: CollapseTarget = "demand") -> float:
    """The load that modules lack, summed over modules: 0 if none lacks any, 1 if one module carries everything.

    `activation` is p(module | rule), (R, M); `pi` are the rule probabilities (None: uniform). Loads and targets are
    compared in ascending order. For M = R and uniform rules this is R / (R − 1) · Σ max(0, 1/R − p(m)).

    >>> round(collapse_avg([[0.95, 0, 0, 0.05], [0, 0, 0, 1], [0.35, 0.10, 0, 0.55], [0, 1, 0, 0]]), 4)
    0.3333
    """
    targets, loads = _sorted_loads(activation, pi, target)
    # A collapsed system has all its load in one module, the last in this order, and lacks the targets of all others.
    largest = targets[:-1].sum()
    if largest <= 0:
        return 0.0
    return float(np.maximum(0, targets - loads).sum() / largest)


def collapse_worst(activation: ArrayLike, pi: ArrayLike | None = None, *, target: CollapseTarget = "demand") -> float:
    """The largest share of its target load that a module lacks: 1 as soon as one module that is needed is idle.

    The arguments are those of `collapse_avg`. For M = R and uniform rules this is 1 − R · min p(m).

    >>> collapse_worst([[1, 0], [0.5, 0.5]])
    0.5
    """
    targets, loads = _sorted_loads(activation, pi, target)
    needed = targets > 0
    return float(1 - np.minimum(1, loads[needed] / targets[needed]).min())


def _sorted_loads(activation: ArrayLike, pi: ArrayLike | None, target: CollapseTarget) -> tuple[Floats, Floats]:
    """The loads that modules should carry and those that they carry, both in ascending order."""
    if target not in get_args(CollapseTarget):
        raise UsageError(f"there is no target {target!r}. {nearest(str(target), get_args(CollapseTarget))}")
    rows, prior = read_matrix(activation, pi)
    even = np.full(rows.shape[1], 1 / rows.shape[1])
    targets = even if target == "uniform" else np.minimum(ideal_load(prior, len(even)), even)
    return np.sort(targets), np.sort(prior @ rows)


# Alignment: does every rule have its own module or, with fewer modules, every module its own rules?


def alignment(activation: ArrayLike, pi: ArrayLike | None = None, *, normalised: bool = False) -> float:
    """The weight outside the best map of rules to modules: 0 for a perfect one.

    `activation` is p(module | rule), (R, M); `pi` are the rule probabilities (None: uniform). The map assigns
    different modules to the rules if M ≥ R and uses every module if M ≤ R. The largest value is 1 − 1/M; `normalised`
    multiplies by M / (M − 1). For M < R every map that uses all modules is perfect, however unbalanced: read the value
    together with the collapse.

    >>> matrix = [[0.95, 0, 0, 0.05], [0, 0, 0, 1], [0.35, 0.10, 0, 0.55], [0, 1, 0, 0]]
    >>> round(alignment(matrix), 4), round(alignment(matrix, normalised=True), 4)
    (0.2625, 0.35)
    """
    rows, prior = read_matrix(activation, pi)
    modules = rows.shape[1]
    if modules == 1:
        return 0.0
    joint = prior[:, None] * rows
    # With fewer modules than rules, every rule first takes its best module; the cost of an assignment is then what the
    # rules lose that must serve another module instead.
    initial = joint.max(axis=1, keepdims=True) if modules < len(joint) else np.zeros((len(joint), 1))
    cost = (initial - joint).T  # with rules as rows the solver takes 20 times as long on near-uniform matrices
    outside = 1 - float(initial.sum()) + float(cost[solve_assignment(cost)].sum())
    # Rounding may put the weight of the best map a last bit above 1.
    return max(0.0, outside) * (modules / (modules - 1) if normalised else 1)


# Information: what modules tell about rules and tokens, and how many modules are in use.


def mutual_information(activation: ArrayLike, pi: ArrayLike | None = None) -> float:
    """I(module; rule) in nats. `activation` is p(module | rule), (R, M); `pi` the rule probabilities (None: uniform).

    >>> round(mutual_information([[0.95, 0, 0, 0.05], [0, 0, 0, 1], [0.35, 0.10, 0, 0.55], [0, 1, 0, 0]]), 4)
    0.8056
    """
    rows, prior = read_matrix(activation, pi)
    return max(0.0, float(entropy(prior @ rows) - prior @ entropy(rows)))


def inverse_mutual_information(activation: ArrayLike, pi: ArrayLike | None = None) -> float:
    """1 − I(module; rule) / H(ideal): 0 if the module tells the rule as well as possible, 1 if it tells nothing.

    The arguments are those of `mutual_information`. H(ideal) is the entropy of the modules in the ideal system (ln R
    for M = R and uniform rules). With M < R another map may tell more than the ideal one, so the value is clipped to
    [0, 1].

    >>> round(inverse_mutual_information([[0.95, 0, 0, 0.05], [0, 0, 0, 1], [0.35, 0.10, 0, 0.55], [0, 1, 0, 0]]), 4)
    0.4189
    """
    rows, prior = read_matrix(activation, pi)
    largest = float(entropy(ideal_load(prior, rows.shape[1])))
    if largest < 1e-9:
        return 0.0
    information = max(0.0, float(entropy(prior @ rows) - prior @ entropy(rows)))
    return min(1.0, max(0.0, 1 - information / largest))


def effective_modules(activation: ArrayLike, pi: ArrayLike | None = None) -> float:
    """exp H(module), the number of modules in use, from 1 to M. The arguments are those of `mutual_information`.

    >>> effective_modules([[1, 0, 0], [1, 0, 0]]), round(effective_modules([[1, 0, 0], [0, 1, 0]]), 6)
    (1.0, 2.0)
    """
    rows, prior = read_matrix(activation, pi)
    return math.exp(entropy(prior @ rows))


def token_entropy(weights: ArrayLike, rules: ArrayLike | None = None, pi: ArrayLike | None = None) -> float:
    """The mean over tokens of H(module | token) / ln M: 0 if every token goes to one module, 1 if all mix evenly.

    An even activation matrix may come from either case; this metric tells the two apart. `weights` are (…, M). With
    `rules` (…) every rule counts by its probability `pi` (None: equally), as in the metrics of the matrix; without
    rules, every token counts equally.

    >>> token_entropy([[1.0, 0.0], [0.0, 1.0]]), token_entropy([[0.5, 0.5], [0.5, 0.5]])
    (0.0, 1.0)
    """
    tokens, share = _token_shares(weights, rules, pi)
    return _normalise_entropy(float(share @ _token_entropies(tokens)), tokens.shape[1])


def token_information(weights: ArrayLike, rules: ArrayLike | None = None, pi: ArrayLike | None = None) -> float:
    """I(module; token) in nats: high if tokens go decisively to different modules, and at least I(module; rule).

    The arguments are those of `token_entropy`.

    >>> round(token_information([[1.0, 0.0], [0.0, 1.0]]), 4), token_information([[0.5, 0.5], [0.5, 0.5]])
    (0.6931, 0.0)
    """
    tokens, share = _token_shares(weights, rules, pi)
    return max(0.0, float(entropy(share @ tokens) - share @ _token_entropies(tokens)))


def entropy(shares: Array) -> Floats:
    """H in nats along the last axis, with 0 ln 0 = 0.

    >>> entropy(np.array([[1.0, 0.0], [0.5, 0.5]])).round(4).tolist()
    [0.0, 0.6931]
    """
    logarithms = np.log(np.where(shares > 0, shares, 1))
    return np.asarray(0 - (shares * logarithms).sum(axis=-1, dtype=np.float64))


def _token_entropies(tokens: Array) -> Floats:
    """H(module | token) of every row of (T, M), in nats, a few rows at a time to bound the memory."""
    step = max(1, AT_ONCE // tokens.shape[1])
    return np.concatenate([entropy(tokens[start : start + step]) for start in range(0, len(tokens), step)])


def _normalise_entropy(nats: float, modules: int) -> float:
    """An entropy divided by its largest value, ln M; 0 for a single module."""
    return nats / math.log(modules) if modules > 1 else 0.0


def _token_shares(weights: ArrayLike, rules: ArrayLike | None, pi: ArrayLike | None) -> tuple[Array, Floats]:
    """The tokens (T, M), and the weight of each in a mean over tokens (T,)."""
    if rules is None:
        # As if all tokens had one rule, so that each counts equally.
        rules = np.zeros(np.asarray(weights).shape[:-1], np.int64)
        pi = None
        number = 1
    else:
        number = rule_count(rules) if pi is None else np.size(pi)
    tokens, token_rules = read_tokens(weights, rules, number)
    tokens_per_rule = np.bincount(token_rules, minlength=number)
    prior = read_prior(pi, number)
    refuse_empty(np.flatnonzero((tokens_per_rule == 0) & (prior > 0)))
    return tokens, (prior / np.maximum(tokens_per_rule, 1))[token_rules]


# All metrics of one router.

ENTRY_METRIC = "activation/weight"
"""The metric under which the entries of an activation matrix are recorded."""
ENTRY_FACTOR = "rule, module"
"""The factor of these records: the level `2, 0` is the weight of module 0 under rule 2."""
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
"""The metrics of the matrix p(module | rule) and the rule probabilities, by name."""
GROUPS = 20
"""Groups of examples for the jackknife."""


def specialization(weights: ArrayLike, rules: ArrayLike, pi: ArrayLike | None = None) -> dict[str, Score]:
    """Every specialization metric of a router, by name, each with its standard error.

    `weights` (B, M) or (B, N, M) are the factors of the module outputs for each token, `rules` (B,) or (B, N) the rule
    of each token, `pi` the rule probabilities that the metrics refer to, independent of the frequencies in the data
    (None: uniform over 0 … the largest rule). Names are those of `MATRIX_METRICS`, and `token_entropy` and
    `token_information`. `adaptation` is the linear one: right where a token's weights depend on that token alone.

    Standard errors come from a grouped jackknife: examples (the first axis, so that tokens of one sequence stay
    together) are dealt into 20 groups, and each metric is computed 20 times with one group left out. They cover the
    choice of examples, with a relative error of about a sixth. Where a metric has a kink (loads that are equal but for
    noise) they are too large by up to two thirds. They do not cover the upward bias of I(module; rule): about
    (R − 1)(M − 1) / 2T nats for T tokens and decisive routing, less for soft routing. They are NaN where a rule occurs
    in one group only, or with a single example.

    >>> scores = specialization([[0.9, 0.1], [0.7, 0.3], [0.2, 0.8], [0.0, 1.0]], [0, 0, 1, 1])
    >>> round(scores["alignment"].value, 6), round(scores["alignment"].standard_error, 3), scores["alignment"].n
    (0.15, 0.087, 4)
    """
    tally = SpecializationTally(rule_count(rules) if pi is None else np.size(pi))
    tally.add(weights, rules)
    return tally.scores(pi)


class SpecializationTally:
    """The sums over tokens that the specialization metrics need; its size does not depend on the number of tokens.

    >>> tally = SpecializationTally(rules=2)
    >>> for weights, rules in (([[0.9, 0.1], [0.7, 0.3]], [0, 0]), ([[0.2, 0.8], [0.0, 1.0]], [1, 1])):
    ...     tally.add(weights, rules)
    >>> whole = specialization([[0.9, 0.1], [0.7, 0.3], [0.2, 0.8], [0.0, 1.0]], [0, 0, 1, 1])
    >>> tally.scores()["alignment"] == whole["alignment"]
    True
    """

    def __init__(self, rules: int) -> None:
        self.rules = rules
        self.examples = 0
        self._tokens: Ints = np.zeros((GROUPS, rules), np.int64)
        self._sums: Floats = np.zeros((GROUPS, rules, 1))

    def add(self, weights: ArrayLike, rules: ArrayLike) -> None:
        """Add examples: weights (B, M) or (B, N, M), rules (B,) or (B, N)."""
        tokens, token_rules = read_tokens(weights, rules, self.rules)
        examples = len(np.asarray(rules))
        number = self.examples + np.arange(examples)
        # Examples are dealt in turn, shifted by one group in every round, because rules may come in turn, too.
        group = (number + number // GROUPS) % GROUPS
        label = np.repeat(group, len(token_rules) // examples) * self.rules + token_rules
        labels = GROUPS * self.rules
        self._tokens += np.bincount(label, minlength=labels).reshape(self._tokens.shape)
        weight_sums = sum_by_label(tokens, label, labels).reshape(GROUPS, self.rules, -1)
        entropy_sums = np.bincount(label, _token_entropies(tokens), labels).reshape(GROUPS, self.rules, 1)
        # (group, rule, module), with the entropy of the tokens in one more column. The sum starts at (…, 1), which
        # broadcasts to the number of modules at the first call.
        self._sums = self._sums + np.concatenate([weight_sums, entropy_sums], axis=2)
        self.examples += examples

    def matrix(self) -> Floats:
        """The activation matrix (rules, modules); the row of a rule that does not occur is NaN."""
        tokens = self._tokens.sum(axis=0)[:, None].astype(float)
        tokens[tokens == 0] = math.nan
        means: Floats = self._sums.sum(axis=0)[:, :-1] / tokens
        return means

    def scores(self, pi: ArrayLike | None = None) -> dict[str, Score]:
        """The metrics by name, under these rule probabilities (None: uniform)."""
        prior = read_prior(pi, self.rules)
        occurring = np.flatnonzero(prior)
        prior = prior[occurring]
        refuse_empty(occurring[self._tokens.sum(axis=0)[occurring] == 0])
        groups = min(GROUPS, self.examples)
        group_tokens = self._tokens[:groups, occurring, None]
        group_sums = self._sums[:groups, occurring]
        tokens = group_tokens.sum(axis=0)
        sums = group_sums.sum(axis=0)
        remaining = tokens - group_tokens  # tokens of each rule with one group left out
        values = _measure(sums / tokens, prior)
        if groups < 2 or (remaining == 0).any():
            return {name: Score(value, math.nan, self.examples) for name, value in values.items()}
        jackknife = [_measure((sums - group_sums[g]) / remaining[g], prior) for g in range(groups)]
        scores = {}
        for name, value in values.items():
            # The jackknife's variance, (g − 1) / g times the sum of squared deviations of g estimates.
            variance = float(np.var([estimates[name] for estimates in jackknife]))
            scores[name] = Score(value, math.sqrt((groups - 1) * variance), self.examples)
        return scores


def _measure(means: Floats, prior: Floats) -> dict[str, float]:
    """The metrics of a table (R, M + 1): the activation matrix, and the mean entropy of the tokens of each rule."""
    matrix = means[:, :-1].clip(min=0)
    mean_entropy = float(prior @ means[:, -1])
    values = {name: metric(matrix, prior) for name, metric in MATRIX_METRICS.items()}
    values["token_entropy"] = _normalise_entropy(mean_entropy, matrix.shape[1])
    values["token_information"] = max(0.0, float(entropy(prior @ matrix)) - mean_entropy)
    return values
