"""Extra occurrences of relevant features: which of the background's activations may stay.

Relevant features are drawn with the background; here the activations that a regime or an answer forbids are removed.
`bits` (B, n, F) are changed in place. In every function `roles` are features (B, 2 or 4): the first and second of the
chosen pair in mapping order, then those of the other pair.
"""

from __future__ import annotations

import numpy as np

from unseen.randomness import Bools, Draws, Ints


def keep(bits: Bools, feature: Ints, allowed: Bools) -> None:
    """Remove one feature per example, (B,), from the tokens where it is not allowed, (B, n)."""
    bits[np.arange(len(bits)), :, feature] &= allowed


def force(bits: Bools, feature: Ints, position: Ints) -> None:
    """Set one feature per example in one token; position −1: nowhere."""
    rows = np.flatnonzero(position >= 0)
    bits[rows, position[rows], feature[rows]] = True


def allowed_for_chosen(positions: Ints, single: Bools, length: int) -> list[Bools]:
    """Where the two features of the chosen pair may occur beside their forced tokens: two masks (B, n).

    `single`: nowhere. Otherwise anywhere but in the forced token of the partner. (Both forced in one token: that
    token is set anyway.)
    """
    tokens = np.arange(length)
    return [~single[:, None] & (tokens != positions[:, 1 - side, None]) for side in (0, 1)]


def cut(allowed: list[Bools], positions: Ints, wrong: Bools, draws: Draws) -> None:
    """In wrong-order negatives, draw a token between: the second feature stays up to it, the first after it."""
    first, second = positions[:, 0], positions[:, 1]
    span = np.where(wrong, first - second, 1)
    last = (second + draws.integers(span, len(span)))[:, None]
    tokens = np.arange(allowed[0].shape[1])
    allowed[0] &= ~wrong[:, None] | (tokens > last)
    allowed[1] &= ~wrong[:, None] | (tokens <= last)


def scan(bits: Bools, roles: Ints, positions: Ints) -> None:
    """Drop what would set the right order, token by token and inside a token by ascending feature.

    A second member goes if its first member is already there; a first member goes if its second member is forced in
    this or a later token. `positions` (B, 2 or 4) are the forced tokens, already set in `bits`; −1: none.

    First members depend on forced tokens alone, so the scan is a running "or" over the tokens, one pair at a time. That
    holds even if the pairs share a feature, which (orders alternate) is the second of one and the first of the other.
    The chosen pair's second member is settled before it counts as the other's first; and where its first member is
    the other's second, the other pair can drop it only after its forced token, which has barred its partner by then.
    """
    tokens = np.arange(bits.shape[1])
    for side in range(0, roles.shape[1], 2):
        keep(bits, roles[:, side], tokens > positions[:, side + 1, None])
    for side in range(0, roles.shape[1], 2):
        first, second = roles[:, side], roles[:, side + 1]
        there = bits[np.arange(len(bits)), :, first]
        seen = np.logical_or.accumulate(there, axis=1)
        seen[:, 1:] = seen[:, :-1]
        seen[:, 0] = False
        keep(bits, second, ~(seen | (there & (first < second)[:, None])))
