"""Adaptation: do the loads of the modules follow the frequencies of the rules?"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike

from unseen.errors import UsageError, nearest
from unseen.metrics.activation import Floats, Ints, read_matrix, read_prior, read_tokens, refuse_empty, sums
from unseen.metrics.alignment import best_map
from unseen.metrics.demand import demand_partition

Kind = Literal["auto", "linear", "sampled", "reference", "matched"]
Sampler = Callable[[Floats], tuple[ArrayLike, ArrayLike]]
"""Rule probabilities (R,) → the weights (…, M) and rules (…) of tokens whose rules were drawn from them."""

DRAWS = 100
"""How many rule distributions are tried; they are the same for all models with equal rules."""
PREFERENCE = 1e-9
"""What the ideal map is preferred by among maps that are equally good."""


def adaptation(
    activation: ArrayLike | Sampler,
    pi: ArrayLike | None = None,
    *,
    rules: int | None = None,
    kind: Kind = "auto",
    half: bool = True,
    kappa: float = 1.0,
) -> float:
    """The distance between rule frequencies and module loads, both sorted, over 100 fixed rule distributions.

    `activation` is p(module | rule), (R, M), where the weights of a token depend on the token alone; the loads under
    rule probabilities p are then pᵀA. Where they depend on other tokens (attention, a recurrent state) give a sampler:
    a function p → (weights, rules) of tokens drawn under p, and R as `rules` or by `pi`.

    `kind`: `linear` for a matrix and `sampled` for a sampler (`auto`: whichever fits), which compares loads with the
    frequencies that came about; `reference` compares a sampler's loads with the exact p, as the authors did, so that a
    perfect system scores above 0; `matched` pairs rules and modules by the best map instead of by rank, and is never
    smaller. The distance is half the L1 distance, between 0 and 1; `half=False` omits the half, as the text does.

    p are Dirichlet(κ R π) draws of NumPy's legacy generator, seeds 0 … 99. If M < R, frequencies are added up over the
    best map. Values for different R are no comparison: at R = 2 an even and a collapsed system score 0.25.

    >>> adaptation([[0, 1], [1, 0]]), round(adaptation([[0.5, 0.5], [0.5, 0.5]]), 4)
    (0.0, 0.2567)
    """
    if kind not in get_args(Kind):
        raise UsageError(f"there is no kind of adaptation {kind!r}. {nearest(str(kind), get_args(Kind))}")
    if callable(activation):
        tried = _sampled(activation, pi, rules, kind, kappa)
    else:
        tried = _linear(activation, pi, rules, kind, kappa)
    target = tried.frequencies @ np.eye(tried.loads.shape[1])[tried.places]
    return (1 if half else 2) * float(distance(target, tried.loads, matched=kind == "matched").mean())


def rule_distributions(pi: Floats, kappa: float = 1.0) -> Floats:
    """The 100 rule distributions (100, R) around a prior without zeros: the authors' own for a uniform one.

    >>> rule_distributions(np.array([0.5, 0.5]))[0].round(4).tolist()
    [0.3879, 0.6121]
    """
    if not 0 < kappa < np.inf:
        raise UsageError(f"kappa, the concentration of the rule distributions, is a positive number, got {kappa}")
    around = kappa * len(pi) * np.asarray(pi, np.float64)
    # The generator treats 1 as a case of its own: 49 · (1/49), a last bit below 1, would give quite other draws.
    return _legacy(tuple(np.where(np.isclose(around, kappa, rtol=1e-9, atol=0), kappa, around).tolist()))


def distance(target: Floats, loads: Floats, *, matched: bool = False) -> Floats:
    """Half the L1 distance of two tables (…, M) row by row, each row sorted unless `matched`.

    >>> rows = np.array([[0.75, 0.25]]), np.array([[0.25, 0.75]])
    >>> distance(*rows).tolist(), distance(*rows, matched=True).tolist()
    ([0.0], [0.5])
    """
    if not matched:
        target, loads = np.sort(target, axis=-1), np.sort(loads, axis=-1)
    half: Floats = np.abs(target - loads).sum(axis=-1) / 2
    return half


class _Tried(NamedTuple):
    """Rule frequencies (D, R) and module loads (D, M) under each rule distribution, and the module of each rule."""

    frequencies: Floats
    loads: Floats
    places: Ints


def _linear(activation: ArrayLike, pi: ArrayLike | None, rules: int | None, kind: Kind, kappa: float) -> _Tried:
    if rules is not None:
        raise UsageError(f"rules={rules} goes with a sampler; a matrix has a row for each rule")
    if kind in ("sampled", "reference"):
        raise UsageError(
            f"adaptation of kind {kind!r} needs a sampler, a function p → (weights, rules); "
            "from a matrix it is 'linear'"
        )
    rows, prior = read_matrix(activation, pi)
    drawn = rule_distributions(prior, kappa)
    return _Tried(drawn, drawn @ rows, _places(rows, prior, kind))


def _sampled(sampler: Sampler, pi: ArrayLike | None, rules: int | None, kind: Kind, kappa: float) -> _Tried:
    if kind == "linear":
        raise UsageError("adaptation of kind 'linear' needs the activation matrix; from a sampler it is 'sampled'")
    number = rules if pi is None else np.size(pi)
    if not number:
        raise UsageError("a sampler does not say how many rules there are: give rules=R or their probabilities pi")
    prior = read_prior(pi, number)
    occurring = np.flatnonzero(prior)
    drawn = np.zeros((DRAWS, len(prior)))
    drawn[:, occurring] = rule_distributions(prior[occurring], kappa)
    every, total = zip(*(_counted(sampler(p), len(prior)) for p in drawn), strict=True)
    counts, weights = np.array(every)[:, occurring], np.array(total)[:, occurring]
    tokens = counts.sum(axis=1, keepdims=True)
    pooled = counts.sum(axis=0)
    if kind == "matched" or weights.shape[2] < len(occurring):
        refuse_empty(occurring[pooled == 0])
    rows = weights.sum(axis=0) / np.maximum(pooled, 1)[:, None]
    frequencies = drawn[:, occurring] if kind == "reference" else counts / tokens
    return _Tried(frequencies, weights.sum(axis=1) / tokens, _places(rows, prior[occurring], kind))


def _counted(drawn: tuple[ArrayLike, ArrayLike], rules: int) -> tuple[Ints, Floats]:
    """The number of tokens of each rule (R,) and the sum of their weights (R, M)."""
    if not isinstance(drawn, tuple) or len(drawn) != 2:
        raise UsageError(f"a sampler gives a pair, the weights and the rules of tokens; got {type(drawn).__name__}")
    tokens, of = read_tokens(*drawn, rules)
    return np.bincount(of, minlength=rules), sums(tokens, of, rules)


def _places(rows: Floats, prior: Floats, kind: Kind) -> Ints:
    """The module of each rule under the best map; of equally good ones the one nearest to the ideal system's.

    Where modules suffice and are compared by rank, any will do.
    """
    if rows.shape[1] >= len(rows) and kind != "matched":
        return np.arange(len(rows))
    gain = prior[:, None] * rows
    gain[np.arange(len(gain)), demand_partition(prior, gain.shape[1])] += PREFERENCE
    return best_map(gain)


@lru_cache(maxsize=64)
def _legacy(concentration: tuple[float, ...]) -> Floats:
    found = np.array([np.random.RandomState(seed).dirichlet(concentration) for seed in range(DRAWS)])
    if not np.isfinite(found).all():
        raise UsageError("the rule distributions can't be drawn in double precision; give a larger kappa")
    found.setflags(write=False)
    return found
