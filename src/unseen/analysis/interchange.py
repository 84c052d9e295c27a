"""Interchange interventions: pairs of examples, the answers of a system that computes a variable, and scores.

The base runs with the source's activation at a site. If the model has the variable there and uses it, it answers as the
solver does for the base with the source's value (Geiger et al., 2021). Only pairs whose answers differ are informative.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unseen.analysis.accuracy import decide
from unseen.errors import UsageError
from unseen.randomness import Bools, Draws
from unseen.spec import TargetKind
from unseen.tasks.base import Array, Examples, Task
from unseen.tasks.variables import Ints, Variable, get_variable

_ROUNDS = 20
"""How often partners are drawn anew to find enough pairs."""


class NoPairs(UsageError):
    """No two of the examples differ in a variable and, because of it, in their answers."""


@dataclass(frozen=True)
class Pairs:
    """Pairs of examples, and the expected answers of the bases with the sources' values of a variable.

    `matched` says whether base and source differ, for the answer, in nothing else: then the expected answer is the source's.
    """

    bases: Examples
    sources: Examples
    expected: Array
    matched: bool

    def __len__(self) -> int:
        return len(self.bases)

    def __getitem__(self, index: slice | Array) -> Pairs:
        return Pairs(self.bases[index], self.sources[index], self.expected[index], self.matched)


@dataclass(frozen=True)
class InterchangeScore:
    """The share of pairs in which the answer is that of the base with the source's value (`accuracy`), and in which it
    stays the base's own (`unchanged`).

    Both compare with answers of the solver, so a model that answers wrongly anyway scores in neither. `moved` compares with
    the model's own answers, right or wrong: the share of pairs in which its answer changes from that to the base to that to
    the source. Exchanging everything moves all answers in which base and source differ, the largest possible share. NaN
    where pairs are not matched (a source that differs in more has another answer for other reasons), or where the model's
    own answers are not passed.
    """

    accuracy: float
    unchanged: float
    moved: float
    n: int


def make_pairs(task: Task, examples: Examples, name: str, n: int, draws: Draws) -> Pairs:
    """Up to n pairs of these examples that differ in a variable and, because of it, in their answers.

    Sources are the counterparts of the bases if the task makes any, else other examples with the same context: both
    differ, for the answer, only in the variable. For variables without either, sources may differ in everything.
    """
    variable = get_variable(task.variables(examples), name)
    if not variable.causal:
        raise UsageError(
            f"{task.name} does not say what the answers would be if '{name}' were another; probe it instead"
        )
    counterparts = task.counterparts(examples, name, draws)
    if counterparts is not None:
        values = get_variable(task.variables(counterparts), name).values
        expected = task.answer_with(examples, name, values)
        present = (variable.values >= 0) & (values >= 0) & (variable.values != values)
        rows = np.flatnonzero(present & _differ(expected, examples.targets))[:n]
        if len(rows):
            return Pairs(examples[rows], counterparts[rows], expected[rows], matched=True)
    rounds: list[Ints] = []
    count = 0
    for _ in range(_ROUNDS):
        base, source = _draw_partners(variable, draws)
        if not len(base):
            continue
        expected = task.answer_with(examples[base], name, variable.values[source])
        differ = _differ(expected, examples.targets[base])
        rounds.append(np.stack([base, source])[:, differ])
        count += int(differ.sum())
        if count >= n:
            break
    if not count:
        raise NoPairs(
            f"{task.name}: no two of {len(examples)} examples differ in '{name}' and therefore in their answers; take "
            "more examples or another variable"
        )
    base, source = np.concatenate(rounds, axis=1)[:, :n]
    expected = task.answer_with(examples[base], name, variable.values[source])
    return Pairs(examples[base], examples[source], expected, matched=variable.context is not None)


def _differ(expected: Array, answers: Array) -> Bools:
    """Which examples have an answer that differs."""
    return np.asarray((expected != answers).reshape(len(answers), -1).any(1))


def _draw_partners(variable: Variable, draws: Draws) -> tuple[Ints, Ints]:
    """A random partner, with another value and the same context, for each example that gets one."""
    # A stable sort by context keeps the random order within each group of examples with equal context.
    order = draws.permutation(len(variable.values))
    order = order[variable.values[order] >= 0]
    if variable.context is not None and variable.context.shape[1]:
        _, group = np.unique(variable.context[order], axis=0, return_inverse=True)
        order = order[np.argsort(group.reshape(-1), kind="stable")]
        group = np.sort(group.reshape(-1))
    else:
        group = np.zeros(len(order), np.int64)
    # Within its group, every example is paired with the next in random order, and the last with the first.
    source = np.empty_like(order)
    starts = np.flatnonzero(np.append(True, group[1:] != group[:-1])) if len(order) else np.zeros(0, np.int64)
    for start, stop in zip(starts, [*starts[1:], len(order)], strict=True):
        source[start:stop] = np.roll(order[start:stop], -1)
    differ = variable.values[order] != variable.values[source]
    return order[differ], source[differ]


def score_pairs(
    prediction: Array, pairs: Pairs, kind: TargetKind, intact: tuple[Array, Array] | None = None
) -> InterchangeScore:
    """Score the predictions of the bases under an intervention; `intact` are those of bases and sources without one.

    Where an example has several answers, those count that differ. A real answer counts as that to which it is nearer.
    """
    answers = pairs.bases.targets
    affected: Bools = pairs.expected != answers
    if kind == "real":
        follows = _is_nearer(prediction, pairs.expected, answers)
        stays = ~follows
    else:
        answer = decide(prediction, kind)
        follows = answer == pairs.expected
        stays = answer == answers
    moved = math.nan
    if intact is not None and pairs.matched:
        if kind == "real":
            moves = _is_nearer(prediction, intact[1], intact[0])
        else:
            base_answer = decide(intact[0], kind)
            source_answer = decide(intact[1], kind)
            moves = (base_answer != source_answer) & (answer == source_answer)
        moved = _share(moves, affected)
    return InterchangeScore(_share(follows, affected), _share(stays, affected), moved, len(pairs))


def _is_nearer(prediction: Array, first: Array, second: Array) -> Bools:
    """Where predictions are nearer to the first answer than to the second."""
    return np.asarray(np.abs(prediction - first) < np.abs(prediction - second))


def _share(hits: NDArray[np.bool_], affected: Bools) -> float:
    """The mean over pairs of the share of affected answers."""
    hit_count = (hits & affected).reshape(len(hits), -1).sum(1)
    affected_count = affected.reshape(len(hits), -1).sum(1)
    return float((hit_count / affected_count).mean())
