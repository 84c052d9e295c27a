"""How a ctl model represents functions with the same outcome: are they alike by group, and do they work together?

For an output symbol s′, every function f is shown alone on the symbols that it turns into s′, and the vector that enters
the classifier is captured (its mean if there are several such symbols). A model that represents only the outcome has the
same vector for all functions; one that keeps groups apart has clusters.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np

from unseen.analysis import representation
from unseen.analysis.accuracy import accuracy, accuracy_by, share_correct
from unseen.analysis.routing import sum_by_label
from unseen.randomness import Draws, Floats, Ints, stream
from unseen.tasks.base import Array, Examples, Task
from unseen.tasks.ctl.task import Lookup
from unseen.tasks.ctl.world import World
from unseen.training.evaluate import Measure, Origin, Unavailable, predict
from unseen.training.recipe import REPRESENTATION, Evaluation
from unseen.training.stack import Stack

STATE = "readout.state"
"""The activation that a ctl model captures: the vector that enters its classifier."""
SINGLES = "probe/singles"
"""The split with every function alone, at every symbol."""
PAIRS = "probe/pairs"
"""The split with every pair of functions, at every symbol."""
PERMUTATIONS = 2_000
"""Labelings drawn for each test, where they are too many to try all."""


def unavailable(stack: Stack, task: Task, origin: Origin | None = None) -> Unavailable | None:
    """Why there are no representations to compare; None if there are."""
    if not isinstance(task, Lookup):
        return Unavailable("it is about tasks with tables of functions (ctl)")
    missing = [name for name in (SINGLES, PAIRS) if name not in task.splits]
    if missing:
        return Unavailable(f"{task.name} has no split {', '.join(missing)}")
    if not _comparable(task.actual_world.group_of):
        return Unavailable("it needs two functions of one group and two of different groups")
    captured = predict(stack, task.sample(SINGLES, 1, data_seed="test"), task.spec, [STATE])
    return None if STATE in captured else Unavailable.without([STATE])


def cosines(stack: Stack, task: Lookup) -> Floats:
    """The cosines between the states of any two functions with the same outcome, (member, symbol, F, F).

    NaN in the rows and columns of a function that never has that outcome (or whose state is zero there).
    """
    singles = _sample_all(task, SINGLES)
    captured = predict(stack, singles, task.spec, [STATE])[STATE]
    return np.stack([_cosines(state, singles, task.actual_world) for state in captured])


def measures(stack: Stack, task: Task, evaluation: Evaluation, origin: Origin | None = None) -> list[list[Measure]]:
    """The measures of every member's representations on the two probing splits.

    On `probe/singles`, by `symbol` and overall: mean cosine `within` and `across` groups, their `gap` and its `gap_p`
    (shuffling the groups of functions), `silhouette`, how many `clusters` by the paper's rule, and their `agreement`
    with the groups; and the `accuracy`. On `probe/pairs`: `compatibility`, the accuracy by transition and symbol in the
    middle, and by the cluster of the first function there, the group of the second and that symbol (the paper's figure
    6: levels like `0→b,3`); and how much of it the clusters or the groups of the first function explain
    (`cluster_gain`, …).
    """
    assert isinstance(task, Lookup)
    singles = _sample_all(task, SINGLES)
    pairs = _sample_all(task, PAIRS)
    on_singles = predict(stack, singles, task.spec, [STATE])
    on_pairs = predict(stack, pairs, task.spec)["prediction"]
    measures_by_member = []
    for state, answers, pair_answers in zip(on_singles[STATE], on_singles["prediction"], on_pairs, strict=True):
        score = accuracy(answers, singles.targets, "category")
        matrices = _cosines(state, singles, task.actual_world)
        clusters = np.stack([_clusters(matrix) for matrix in matrices])
        correct = share_correct(pair_answers, pairs.targets, "category")
        measures_by_member.append(
            [
                Measure(SINGLES, "", "", f"{REPRESENTATION}/accuracy", score.value, score.standard_error, score.n),
                *_grouped(matrices, clusters, task.actual_world),
                *_compatibility(pair_answers, pairs, clusters, task.actual_world),
                *_explained(correct, pairs, clusters, task.actual_world),
            ]
        )
    return measures_by_member


def examples(task: Task, evaluation: Evaluation) -> int:
    """The number of examples that the analysis evaluates."""
    return sum(task.size(name) or 0 for name in (SINGLES, PAIRS) if name in task.splits)


def _grouped(matrices: Floats, clusters: Ints, world: World) -> Iterator[Measure]:
    """How far the groups are apart, by symbol and overall.

    Overall, pairs of functions have equal weights at all symbols, so that one shuffle of the functions' groups moves them
    at all symbols; the other numbers are means over symbols.
    """
    silhouettes: list[float] = []
    cluster_counts: list[float] = []
    agreements: list[float] = []
    states = 0
    for symbol, matrix in enumerate(matrices):
        functions = np.flatnonzero(clusters[symbol] >= 0)  # those that have a state at this symbol
        groups = world.group_of[functions]
        if not _comparable(groups):
            continue
        cosine = matrix[np.ix_(functions, functions)]
        cluster = clusters[symbol, functions]
        silhouettes.append(representation.silhouette(1 - cosine, groups))
        cluster_counts.append(int(cluster.max()) + 1)
        agreements.append(representation.adjusted_rand(cluster, groups))
        states += len(functions)
        gap = representation.group_gap(cosine, groups, generator=_draws("gap"), permutations=PERMUTATIONS)
        values = {"silhouette": silhouettes[-1], "clusters": cluster_counts[-1], "agreement": agreements[-1]}
        yield from _group_measures("symbol", world.symbols[symbol], gap, values, len(functions))
    if states:
        finite = np.isfinite(matrices)
        counted = finite.sum(axis=0)
        mean = np.where(finite, matrices, 0.0).sum(axis=0) / np.maximum(counted, 1)
        gap = representation.group_gap(
            mean, world.group_of, weights=counted, generator=_draws("gap"), permutations=PERMUTATIONS
        )
        means = {}
        for name, by_symbol in (("silhouette", silhouettes), ("clusters", cluster_counts), ("agreement", agreements)):
            means[name] = math.fsum(by_symbol) / len(by_symbol)
        yield from _group_measures("", "", gap, means, states)


def _group_measures(
    factor: str, level: str, gap: representation.Gap, values: Mapping[str, float], n: int
) -> Iterator[Measure]:
    """The measures of how groups are apart, at one symbol or overall."""
    by_name = {"within": gap.within, "across": gap.across, "gap": gap.gap, "gap_p": gap.p_value, **values}
    for name, value in by_name.items():
        yield Measure(SINGLES, factor, level, f"{REPRESENTATION}/{name}", float(value), math.nan, n)


def _compatibility(predicted: Array, pairs: Examples, clusters: Ints, world: World) -> Iterator[Measure]:
    """The accuracy on pairs: overall, by transition, by transition and the symbol between the two functions, and by the
    cluster of the first function's output in place of its group (−1 where it has no state)."""
    # Column 0 has the symbols before the first function, column 1 those between the two.
    transition = pairs.factors["transition"]
    symbol = pairs.factors["symbols"][:, 1].astype(np.int64)
    first, second = pairs.factors["functions"][:, :2].astype(np.int64).T
    group = np.array(list(world.groups))[world.group_of[second]]
    middle = np.array(world.symbols)[symbol]
    cluster = []
    for number, group_name, symbol_name in zip(clusters[symbol, first], group, middle, strict=True):
        cluster.append(f"{number}→{group_name},{symbol_name}")
    levels_by_factor = {
        "": np.full(len(pairs), ""),
        "transition": transition,
        "transition,symbol": np.char.add(np.char.add(transition, ","), middle),
        "cluster,symbol": np.array(cluster),
    }
    for factor, levels in levels_by_factor.items():
        table = accuracy_by(predicted, pairs.targets, "category", levels)
        for level, value, error, n in table[["level", "value", "standard_error", "n"]].to_numpy():
            yield Measure(
                PAIRS, factor, str(level), f"{REPRESENTATION}/compatibility", float(value), float(error), int(n)
            )


def _explained(correct: Floats, pairs: Examples, clusters: Ints, world: World) -> Iterator[Measure]:
    """The share of the accuracy on pairs that the clusters of the first function explain, or its groups, given the group
    of the second.

    By the symbol between the two, and overall. Left out if all pairs are right, or all are wrong.
    """
    functions, symbols = world.tables.shape
    first, second = pairs.factors["functions"][:, :2].astype(np.int64).T
    # (symbol, first, second) as one index, to count with `bincount`.
    index = (pairs.factors["symbols"][:, 1].astype(np.int64) * functions + first) * functions + second
    count = np.bincount(index, minlength=symbols * functions**2)
    total = np.bincount(index, correct, len(count))
    tables = np.where(count > 0, total / np.maximum(count, 1), np.nan).reshape(symbols, functions, functions)
    groups = np.where(clusters >= 0, world.group_of, -1)
    selections = [("", "", slice(None))]
    for symbol, name in enumerate(world.symbols):
        selections.append(("symbol", name, slice(symbol, symbol + 1)))
    for factor, level, chosen in selections:
        # Functions that never come first are not shuffled.
        is_first = np.isfinite(tables[chosen]).any(axis=(0, 2))
        n = int(count.reshape(tables.shape)[chosen].sum())
        for labeling, labels in (("cluster", clusters), ("group", groups)):
            gain = representation.explained_gain(
                tables[chosen][:, is_first],
                labels[chosen][:, is_first],
                world.group_of,
                generator=_draws(labeling),
                permutations=PERMUTATIONS,
            )
            yield from _gain_measures(factor, level, labeling, gain, n)


def _gain_measures(factor: str, level: str, labeling: str, gain: representation.Gain, n: int) -> Iterator[Measure]:
    if not math.isnan(gain.explained):
        for name, value in (("explained", gain.explained), ("gain", gain.gain), ("gain_p", gain.p_value)):
            yield Measure(PAIRS, factor, level, f"{REPRESENTATION}/{labeling}_{name}", value, math.nan, n)


def _cosines(state: Array, singles: Examples, world: World) -> Floats:
    """The cosines (symbol, F, F) of one member's states on the singles, NaN where there is no state."""
    functions, symbols = world.tables.shape
    # (outcome, function) as one index.
    index = singles.targets.astype(np.int64) * functions + singles.factors["functions"][:, 0]
    count = np.bincount(index, minlength=symbols * functions)
    mean = sum_by_label(state.reshape(len(state), -1), index, len(count)) / np.maximum(count, 1)[:, None]
    by_symbol = mean.reshape(symbols, functions, -1)
    matrices = np.full((symbols, functions, functions), np.nan)
    for matrix, vectors in zip(matrices, by_symbol, strict=True):
        present = np.flatnonzero(np.isfinite(vectors).all(axis=1) & vectors.any(axis=1))
        if len(present):
            matrix[np.ix_(present, present)] = representation.cosine_matrix(vectors[present])
    return matrices


def _clusters(matrix: Floats) -> Ints:
    """The cluster of each function, −1 where it has no state."""
    present = np.flatnonzero(np.isfinite(np.diagonal(matrix)))
    clusters = np.full(len(matrix), -1, np.int64)
    if len(present):
        clusters[present] = representation.complete_linkage_clusters(matrix[np.ix_(present, present)])
    return clusters


def _comparable(groups: Ints) -> bool:
    """Whether there are two functions of one group, and two of different groups."""
    sizes = np.bincount(groups, minlength=1)
    return bool(sizes.max() > 1 and np.count_nonzero(sizes) > 1)


def _sample_all(task: Lookup, split: str) -> Examples:
    """All examples of a finite split."""
    return task.sample(split, task.size(split) or 0, data_seed="test")


def _draws(test: str) -> Draws:
    """The same shuffles for every member and symbol: no number depends on what else is measured."""
    return stream("shuffled labels", REPRESENTATION, test).block()
