"""A table with two pairs per query and 36 features that has the measured wrinkles of the published one.

Of its 72 pairs 68 are distinct: four are used by two queries. In six queries the two pairs share a feature, so that 30
features lie in four queries and six in three. With T7's orders 70 ordered pairs are distinct: two of the repeated pairs
have the same order in both queries, two have both orders.
"""

from __future__ import annotations

from collections import Counter

from unseen.randomness import Draws
from unseen.tasks.retrieval.pairs import Pair, meets, part, regular_pairs

HALF, REPEATED, SHARING = 18, 4, 6
_TRIES = 1000


def wrinkled_queries(draws: Draws) -> list[list[Pair]]:
    """The queries in the order of their ids; pairs as (low, high)."""
    pairs = regular_pairs(HALF, 4, True, draws)
    for _ in range(REPEATED):
        _repeat_a_pair(pairs)
    sharing = _take_sharing(pairs, draws.permutation(2 * HALF).tolist())
    queries = sharing + part(pairs, meets)
    for _ in range(_TRIES):  # each try succeeds with probability about 3/8
        order, flips = draws.permutation(len(queries)).tolist(), draws.bernoulli(0.5, len(queries)).tolist()
        tried = [queries[i][::-1] if flip else queries[i] for i, flip in zip(order, flips, strict=True)]
        ordered = {(pair, (query + place) % 2) for query, pairs in enumerate(tried) for place, pair in enumerate(pairs)}
        if len(ordered) == 2 * len(queries) - REPEATED // 2:
            return tried
    raise RuntimeError("no order of the released-like table was found")


def _repeat_a_pair(pairs: list[Pair]) -> None:
    """Make one pair occur twice, by one switch that touches no repeated pair."""
    count = Counter(pairs)
    for low, high in pairs:
        for i, (_, b) in enumerate(pairs):
            for j, (c, _) in enumerate(pairs):
                touched = (pairs[i], pairs[j], (low, high))
                if (
                    pairs[i][0] == low
                    and pairs[j][1] == high
                    and b != high
                    and c != low
                    and count[c, b] == 0
                    and all(count[pair] == 1 for pair in touched)
                ):
                    pairs[i], pairs[j] = (low, high), (c, b)
                    return


def _take_sharing(pairs: list[Pair], features: list[int]) -> list[list[Pair]]:
    """Take out of `pairs` six queries, each of two different pairs that share one of the features, none twice."""
    taken: list[list[Pair]] = []
    for feature in features:
        mine = sorted({pair for pair in pairs if feature in pair})
        if len(mine) >= 2:
            taken.append(mine[:2])
            for pair in mine[:2]:
                pairs.remove(pair)
        if len(taken) == SHARING:
            break
    return taken
