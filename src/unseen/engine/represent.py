"""What a ctl model makes of functions with the same outcome: do they look alike, by group, and do they work together?

For an output symbol s′ every function f is shown alone at the symbols it turns into s′, and the vector that enters the
classifier is taken (its mean where there are several such symbols). A model that sees only the outcome has the same
vector for all functions; one that keeps groups apart has clusters.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from unseen.engine.measure import Measure
from unseen.engine.origin import Origin
from unseen.engine.predict import NOT_KEPT, predictions
from unseen.engine.recipe import REPRESENTATION, Evaluation
from unseen.engine.stack import Stack
from unseen.metrics.accuracy import accuracy, accuracy_by, right
from unseen.metrics.activation import sums
from unseen.metrics.compatibility import Gain, explained_gain
from unseen.metrics.grouping import adjusted_rand, complete_linkage_clusters, group_gap, silhouette
from unseen.metrics.representation import cosine_matrix
from unseen.randomness import Draws, Floats, Ints, stream
from unseen.tasks.base import Array, Examples, Task
from unseen.tasks.ctl.task import Lookup
from unseen.tasks.ctl.world import World

STATE = "readout.state"
"""The trace that a ctl model keeps: the vector that enters its classifier."""
SINGLES, PAIRS = "probe/singles", "probe/pairs"
"""The complete lists that are shown: every function alone, every pair of functions."""
PERMUTATIONS = 2_000
"""Labelings drawn for each test, where they are too many to try all."""


def why_not(stack: Stack, task: Task, origin: Origin | None = None) -> str:
    """Why there are no representations to compare; empty if there are."""
    if not isinstance(task, Lookup):
        return "it is about tasks with tables of functions (ctl)"
    missing = [name for name in (SINGLES, PAIRS) if name not in task.conditions]
    if missing:
        return f"{task.name} has no condition {', '.join(missing)}"
    if not _comparable(task.actual_world.group_of):
        return "it compares functions within and across groups, and there are none of one kind"
    kept = predictions(stack, task.sample(SINGLES, 1, data_seed="test"), task.spec, [STATE])
    return "" if STATE in kept else f"{NOT_KEPT}{STATE}"


def cosines(stack: Stack, task: Lookup) -> Floats:
    """The cosines between the states of any two functions with the same outcome, (member, symbol, F, F).

    NaN in the rows and columns of a function that never has that outcome (or whose state is zero there).
    """
    singles = _all(task, SINGLES)
    kept = predictions(stack, singles, task.spec, [STATE])[STATE]
    return np.stack([_cosines(member, singles, task.actual_world) for member in kept])


def measures(stack: Stack, task: Task, evaluation: Evaluation, origin: Origin | None = None) -> list[list[Measure]]:
    """What the representations of every member are like, as measures on the two probing conditions.

    On `probe/singles`, by `symbol` and overall: mean cosine `within` and `across` groups, their `gap` and its `gap_p`
    (shuffling the groups of functions), `silhouette`, how many `clusters` by the paper's rule, and their `agreement`
    with the groups; and the `accuracy`. On `probe/pairs`: `compatibility`, the accuracy by transition and symbol in the
    middle, and by the cluster of the first function there, the group of the second and that symbol (the paper's figure
    6: levels like `0→b,3`); and how much of it the clusters or the groups of the first function explain
    (`cluster_gain`, …).
    """
    assert isinstance(task, Lookup)
    singles, pairs = _all(task, SINGLES), _all(task, PAIRS)
    alone = predictions(stack, singles, task.spec, [STATE])
    paired = predictions(stack, pairs, task.spec)["prediction"]
    found = []
    for state, answer, of_pairs in zip(alone[STATE], alone["prediction"], paired, strict=True):
        score = accuracy(answer, singles.targets, "category")
        matrices = _cosines(state, singles, task.actual_world)
        clusters = np.stack([_clusters(matrix) for matrix in matrices])
        found.append(
            [
                Measure(SINGLES, "", "", f"{REPRESENTATION}/accuracy", score.value, score.standard_error, score.n),
                *_grouped(matrices, clusters, task.actual_world),
                *_compatibility(of_pairs, pairs, clusters, task.actual_world),
                *_explained(right(of_pairs, pairs.targets, "category"), pairs, clusters, task.actual_world),
            ]
        )
    return found


def examples(task: Task, evaluation: Evaluation) -> int:
    """How many examples are shown to find this."""
    return sum(task.size(name) or 0 for name in (SINGLES, PAIRS) if name in task.conditions)


def _grouped(matrices: Floats, clusters: Ints, world: World) -> Iterator[Measure]:
    """How far the groups are apart, by symbol and overall.

    Overall all pairs of functions count alike whatever their symbol, so that one shuffle of the functions' groups moves
    them at all symbols; the other numbers are means over symbols.
    """
    rows: list[tuple[float, int, float, int]] = []
    for symbol, matrix in enumerate(matrices):
        here = np.flatnonzero(clusters[symbol] >= 0)
        groups = world.group_of[here]
        if _comparable(groups):
            seen, cluster = matrix[np.ix_(here, here)], clusters[symbol, here]
            apart = group_gap(seen, groups, generator=_draws("gap"), permutations=PERMUTATIONS)
            shape = (silhouette(1 - seen, groups), int(cluster.max()) + 1, adjusted_rand(cluster, groups), len(here))
            yield from _singles("symbol", world.symbols[symbol], (*apart, *shape[:3]), len(here))
            rows.append(shape)
    if rows:
        there = np.isfinite(matrices)
        counted = there.sum(axis=0)
        mean = np.where(there, matrices, 0.0).sum(axis=0) / np.maximum(counted, 1)
        apart = group_gap(mean, world.group_of, weights=counted, generator=_draws("gap"), permutations=PERMUTATIONS)
        silhouettes, counts, agreements, sizes = zip(*rows, strict=True)
        shapes = [math.fsum(values) / len(rows) for values in (silhouettes, counts, agreements)]
        yield from _singles("", "", (*apart, *shapes), sum(sizes))


def _singles(factor: str, level: str, values: tuple[float, ...], n: int) -> Iterator[Measure]:
    names = "within", "across", "gap", "gap_p", "silhouette", "clusters", "agreement"
    for name, value in zip(names, values, strict=True):
        yield Measure(SINGLES, factor, level, f"{REPRESENTATION}/{name}", float(value), math.nan, n)


def _compatibility(predicted: Array, pairs: Examples, clusters: Ints, world: World) -> Iterator[Measure]:
    """The accuracy on pairs: overall, by transition, by transition and the symbol between the two functions, and by the
    cluster of the first function's output in place of its group (−1 where it has no state)."""
    transition, symbol = pairs.factors["transition"], pairs.factors["symbols"][:, 1].astype(np.int64)
    first, second = pairs.factors["functions"][:, :2].astype(np.int64).T
    group, middle = np.array(list(world.groups))[world.group_of[second]], np.array(world.symbols)[symbol]
    cluster = [f"{c}→{g},{s}" for c, g, s in zip(clusters[symbol, first], group, middle, strict=True)]
    by = {
        "": np.full(len(pairs), ""),
        "transition": transition,
        "transition,symbol": np.char.add(np.char.add(transition, ","), middle),
        "cluster,symbol": np.array(cluster),
    }
    for factor, levels in by.items():
        table = accuracy_by(predicted, pairs.targets, "category", levels)
        for level, value, error, n in table[["level", "value", "standard_error", "n"]].to_numpy():
            yield Measure(
                PAIRS, factor, str(level), f"{REPRESENTATION}/compatibility", float(value), float(error), int(n)
            )


def _explained(correct: Floats, pairs: Examples, clusters: Ints, world: World) -> Iterator[Measure]:
    """How much of what works the clusters of the first function explain, or its groups, given the group of the second.

    By symbol between the two, and overall. Left out where nothing is to be explained: all pairs right, or all wrong.
    """
    functions, symbols = world.tables.shape
    first, second = pairs.factors["functions"][:, :2].astype(np.int64).T
    cell = (pairs.factors["symbols"][:, 1].astype(np.int64) * functions + first) * functions + second
    count = np.bincount(cell, minlength=symbols * functions**2)
    total = np.bincount(cell, correct, len(count))
    tables = np.where(count > 0, total / np.maximum(count, 1), np.nan).reshape(symbols, functions, functions)
    groups = np.where(clusters >= 0, world.group_of, -1)
    parts = [("", "", slice(None)), *(("symbol", name, slice(s, s + 1)) for s, name in enumerate(world.symbols))]
    for factor, level, part in parts:
        for kind, labels in (("cluster", clusters), ("group", groups)):
            # Functions that never come first have no part in the shuffling.
            first_ones = np.isfinite(tables[part]).any(axis=(0, 2))
            gain = explained_gain(
                tables[part][:, first_ones],
                labels[part][:, first_ones],
                world.group_of,
                generator=_draws(kind),
                permutations=PERMUTATIONS,
            )
            yield from _gain(factor, level, kind, gain, int(count.reshape(tables.shape)[part].sum()))


def _gain(factor: str, level: str, kind: str, gain: Gain, n: int) -> Iterator[Measure]:
    if not math.isnan(gain.explained):
        for name, value in (("explained", gain.explained), ("gain", gain.gain), ("gain_p", gain.p_value)):
            yield Measure(PAIRS, factor, level, f"{REPRESENTATION}/{kind}_{name}", value, math.nan, n)


def _cosines(state: Array, singles: Examples, world: World) -> Floats:
    """The cosines (symbol, F, F) of one member's states on the singles, NaN where there is no state."""
    functions, symbols = world.tables.shape
    cell = singles.targets.astype(np.int64) * functions + singles.factors["functions"][:, 0]
    count = np.bincount(cell, minlength=symbols * functions)
    mean = sums(state.reshape(len(state), -1), cell, len(count)) / np.maximum(count, 1)[:, None]
    by_symbol = mean.reshape(symbols, functions, -1)
    found = np.full((symbols, functions, functions), np.nan)
    for matrix, vectors in zip(found, by_symbol, strict=True):
        here = np.flatnonzero(np.isfinite(vectors).all(axis=1) & vectors.any(axis=1))
        if len(here):
            matrix[np.ix_(here, here)] = cosine_matrix(vectors[here])
    return found


def _clusters(matrix: Floats) -> Ints:
    """The cluster of each function, −1 where it has no state."""
    here = np.flatnonzero(np.isfinite(np.diagonal(matrix)))
    found = np.full(len(matrix), -1, np.int64)
    if len(here):
        found[here] = complete_linkage_clusters(matrix[np.ix_(here, here)])
    return found


def _comparable(groups: Ints) -> bool:
    """Whether there are two functions of one group, and two of different groups."""
    sizes = np.bincount(groups, minlength=1)
    return bool(sizes.max() > 1 and np.count_nonzero(sizes) > 1)


def _all(task: Lookup, condition: str) -> Examples:
    return task.sample(condition, task.size(condition) or 0, data_seed="test")


def _draws(test: str) -> Draws:
    """The same shuffles for every member and symbol: no number depends on what else is measured."""
    return stream("shuffled labels", REPRESENTATION, test).block()
