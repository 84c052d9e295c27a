"""Adaptation: do the loads of the modules follow the frequencies of the rules?"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike

from unseen.analysis.assignment import best_map
from unseen.analysis.routing import (
    Floats,
    Ints,
    ideal_partition,
    read_matrix,
    read_prior,
    read_tokens,
    refuse_empty,
    sum_by_label,
)
from unseen.errors import UsageError, nearest

AdaptationKind = Literal["auto", "linear", "sampled", "reference", "matched"]
Sampler = Callable[[Floats], tuple[ArrayLike, ArrayLike]]
"""Rule probabilities (R,) → the weights (…, M) and rules (…) of tokens whose rules were drawn from them."""

DRAWS = 100
"""The number of rule distributions; they are the same for all models with equal rules."""
PREFERENCE = 1e-9
"""The advantage of the ideal map among maps that are equally good."""


class _Loads(NamedTuple):
    """Rule frequencies (D, R) and module loads (D, M) under each rule distribution, and the module of each rule."""

    frequencies: Floats
    loads: Floats
    modules: Ints


def adaptation(
    activation: ArrayLike | Sampler,
    pi: ArrayLike | None = None,
    *,
    rules: int | None = None,
    kind: AdaptationKind = "auto",
    half: bool = True,
    kappa: float = 1.0,
) -> float:
    """The distance between rule frequencies and module loads, both sorted, over 100 fixed rule distributions.

    `activation` is p(module | rule), (R, M), where the weights of a token depend on the token alone; the loads under
    rule probabilities p are then pᵀA. Where they depend on other tokens (attention, a recurrent state), pass a sampler:
    a function p → (weights, rules) of tokens drawn under p, and R as `rules` or through `pi`.

    `kind`: `linear` for a matrix and `sampled` for a sampler (`auto` chooses between them), which compares loads with
    the frequencies of the drawn rules; `reference` compares a sampler's loads with the exact p, as the authors did, so
    that a perfect system scores above 0; `matched` pairs rules and modules by the best map instead of by rank, and is
    never smaller. The distance is half the L1 distance, between 0 and 1; `half=False` omits the half, as the paper's
    text does.

    The distributions p are Dirichlet(κ R π) draws of NumPy's legacy generator, seeds 0 … 99. If M < R, frequencies are
    summed over the best map. Values for different R are not comparable: at R = 2 an even and a collapsed system score
    0.25.

    >>> adaptation([[0, 1], [1, 0]]), round(adaptation([[0.5, 0.5], [0.5, 0.5]]), 4)
    (0.0, 0.2567)
    """
    if kind not in get_args(AdaptationKind):
        raise UsageError(f"there is no kind of adaptation {kind!r}. {nearest(str(kind), get_args(AdaptationKind))}")
    if callable(activation):
        result = _sampled_loads(activation, pi, rules, kind, kappa)
    else:
        result = _linear_loads(activation, pi, rules, kind, kappa)
    # The one-hot rows of the modules sum the frequencies of rules that share a module.
    targets = result.frequencies @ np.eye(result.loads.shape[1])[result.modules]
    return (1 if half else 2) * float(distance(targets, result.loads, matched=kind == "matched").mean())


def rule_distributions(pi: Floats, kappa: float = 1.0) -> Floats:
    """The 100 rule distributions (100, R) around a prior without zeros; for a uniform prior, those of the authors.

    >>> rule_distributions(np.array([0.5, 0.5]))[0].round(4).tolist()
    [0.3879, 0.6121]
    """
    if not 0 < kappa < np.inf:
        raise UsageError(f"kappa, the concentration of the rule distributions, is a positive number, got {kappa}")
    concentration = kappa * len(pi) * np.asarray(pi, np.float64)
    # The generator treats 1 as a special case: 49 · (1/49), a last bit below 1, would lead to quite different draws.
    exact = np.where(np.isclose(concentration, kappa, rtol=1e-9, atol=0), kappa, concentration)
    return _draw_legacy(tuple(exact.tolist()))


def distance(target: Floats, loads: Floats, *, matched: bool = False) -> Floats:
    """Half the L1 distance of two tables (…, M) row by row, each row sorted unless `matched`.

    >>> rows = np.array([[0.75, 0.25]]), np.array([[0.25, 0.75]])
    >>> distance(*rows).tolist(), distance(*rows, matched=True).tolist()
    ([0.0], [0.5])
    """
    if not matched:
        target = np.sort(target, axis=-1)
        loads = np.sort(loads, axis=-1)
    half: Floats = np.abs(target - loads).sum(axis=-1) / 2
    return half


def _linear_loads(
    activation: ArrayLike, pi: ArrayLike | None, rules: int | None, kind: AdaptationKind, kappa: float
) -> _Loads:
    if rules is not None:
        raise UsageError(f"rules={rules} goes with a sampler; a matrix has a row for each rule")
    if kind in ("sampled", "reference"):
        raise UsageError(
            f"adaptation of kind {kind!r} needs a sampler, a function p → (weights, rules); "
            "from a matrix it is 'linear'"
        )
    rows, prior = read_matrix(activation, pi)
    distributions = rule_distributions(prior, kappa)
    return _Loads(distributions, distributions @ rows, _module_of_rule(rows, prior, kind))


def _sampled_loads(
    sampler: Sampler, pi: ArrayLike | None, rules: int | None, kind: AdaptationKind, kappa: float
) -> _Loads:
    if kind == "linear":
        raise UsageError("adaptation of kind 'linear' needs the activation matrix; from a sampler it is 'sampled'")
    number = rules if pi is None else np.size(pi)
    if not number:
        raise UsageError("a sampler does not say how many rules there are: give rules=R or their probabilities pi")
    prior = read_prior(pi, number)
    occurring = np.flatnonzero(prior)
    distributions = np.zeros((DRAWS, number))
    distributions[:, occurring] = rule_distributions(prior[occurring], kappa)
    token_counts = []
    weight_sums = []
    for p in distributions:
        sample = sampler(p)
        if not isinstance(sample, tuple) or len(sample) != 2:
            raise UsageError(
                f"a sampler returns a pair, the weights and the rules of tokens; got {type(sample).__name__}"
            )
        tokens, token_rules = read_tokens(*sample, number)
        token_counts.append(np.bincount(token_rules, minlength=number))
        weight_sums.append(sum_by_label(tokens, token_rules, number))
    counts = np.array(token_counts)[:, occurring]  # (D, R)
    weights = np.array(weight_sums)[:, occurring]  # (D, R, M)
    total = counts.sum(axis=1, keepdims=True)
    tokens_per_rule = counts.sum(axis=0)
    if kind == "matched" or weights.shape[2] < len(occurring):
        refuse_empty(occurring[tokens_per_rule == 0])
    rows = weights.sum(axis=0) / np.maximum(tokens_per_rule, 1)[:, None]
    frequencies = distributions[:, occurring] if kind == "reference" else counts / total
    return _Loads(frequencies, weights.sum(axis=1) / total, _module_of_rule(rows, prior[occurring], kind))


def _module_of_rule(rows: Floats, prior: Floats, kind: AdaptationKind) -> Ints:
    """The module of each rule under the best map; among equally good maps, the one nearest to the ideal system's."""
    if rows.shape[1] >= len(rows) and kind != "matched":
        return np.arange(len(rows))  # compared by rank, where any map to different modules is the same
    gain = prior[:, None] * rows
    gain[np.arange(len(gain)), ideal_partition(prior, gain.shape[1])] += PREFERENCE
    return best_map(gain)


@lru_cache(maxsize=64)
def _draw_legacy(concentration: tuple[float, ...]) -> Floats:
    distributions = np.array([np.random.RandomState(seed).dirichlet(concentration) for seed in range(DRAWS)])
    if not np.isfinite(distributions).all():
        raise UsageError("the rule distributions can't be drawn in double precision; give a larger kappa")
    distributions.setflags(write=False)  # the cache hands out the same array again
    return distributions
