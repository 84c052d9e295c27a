"""What single tokens say about the answer, worked out from the language: the ceilings of the generic baselines.

Drawing an example is a Markov chain over places (state and symbol): uniform sampling takes a function in proportion to
the ways to go on after it, step-wise sampling takes all viable ones alike. From the chain follows how often each token
stands at each place, or anywhere, together with each answer.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from unseen.randomness import Floats
from unseen.tasks.ctl.encode import Order
from unseen.tasks.ctl.lots import Sampling
from unseen.tasks.ctl.ranks import Ranks


def token_ceilings(ranks: Ranks, counts: Mapping[int, int], sampling: Sampling, order: Order) -> dict[str, float]:
    """Accuracies of knowing nothing, one column, or one token, on so many examples of each length."""
    share = {length: count / sum(counts.values()) for length, count in counts.items() if count}
    symbols, functions = ranks.symbols, len(ranks.tables)
    longest = max(share)
    at = np.zeros((longest + 1, symbols + functions, symbols))  # token at a place behind SOS, answer
    anywhere = np.zeros((symbols + functions, symbols))
    answers = np.zeros(symbols)
    for length, weight in share.items():
        steps = [_step(ranks, length - step, sampling) for step in range(length)]
        begin = _begin(ranks, length, sampling)
        answer = _answers(ranks, steps)
        first = np.zeros(len(ranks.after))
        first[:symbols] = begin
        whole = weight * (begin[:, None] * answer[0][:symbols])
        answers += whole.sum(0)
        at[length if order == "backward" else 0, :symbols] += whole
        anywhere[:symbols] += whole
        here: Floats = first
        for step, chosen in enumerate(steps):
            joint = here[:, None] * chosen
            place = length - 1 - step if order == "backward" else 1 + step
            at[place, symbols:] += weight * np.einsum("pf,pft->ft", joint, answer[step + 1][ranks.after])
            here = _arrive(ranks, joint)
        for function in range(functions):
            anywhere[symbols + function] += whole.sum(0) - weight * _without(ranks, steps, first, function)
    columns = np.concatenate([at.reshape(-1, symbols), anywhere])
    one = columns.max(1) + (answers - columns).max(1)
    token = at.max(2).sum(1) + (answers - at.sum(1)).max(1)
    return {"majority": float(answers.max()), "single-feature": float(one.max()), "bag-of-tokens": float(token.max())}


def _step(ranks: Ranks, left: int, sampling: Sampling) -> Floats:
    """How likely each function is to come next, (places, functions), with so many to go."""
    ways = ranks.ways(left) if sampling == "uniform" else ranks.viable(left).astype(object)
    found: Floats = (ways / np.maximum(ways.sum(1, keepdims=True), 1)).astype(np.float64)
    return found


def _begin(ranks: Ranks, length: int, sampling: Sampling) -> Floats:
    begins = ranks.begins(length) if sampling == "uniform" else (ranks.begins(length) > 0).astype(object)
    found: Floats = (begins / begins.sum()).astype(np.float64)
    return found


def _answers(ranks: Ranks, steps: list[Floats]) -> list[Floats]:
    """How likely each answer is from each place, (places, symbols), before each step and after the last."""
    found = [np.tile(np.eye(ranks.symbols), (len(ranks.after) // ranks.symbols, 1))]
    for chosen in reversed(steps):
        found.insert(0, np.einsum("pf,pft->pt", chosen, found[0][ranks.after]))
    return found


def _arrive(ranks: Ranks, joint: Floats) -> Floats:
    """From how likely each function is at each place, how likely each place is next."""
    found: Floats = np.bincount(ranks.after.reshape(-1), joint.reshape(-1), len(ranks.after)).astype(np.float64)
    return found


def _without(ranks: Ranks, steps: list[Floats], here: Floats, function: int) -> Floats:
    """How likely each answer is together with a function not occurring."""
    for chosen in steps:
        kept = here[:, None] * chosen
        kept[:, function] = 0
        here = _arrive(ranks, kept)
    found: Floats = here.reshape(-1, ranks.symbols).sum(0)
    return found
