"""The variables of a retrieval example: the features that the query asks for, whether they occur, and where."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unseen.tasks.retrieval.solver import Pairs, active_features
from unseen.tasks.variables import NONE, Ints, Variable, answer_each, split_name


@dataclass(frozen=True)
class Facts:
    """The facts that decide about one pair: its features and the position of each (the first of the earlier, the last of the
    later feature, −1 if absent), which is all that an order depends on. A single feature has no second."""

    first: int
    second: int
    first_position: int
    second_position: int

    def holds(self, task: str) -> bool:
        """Whether the pair makes the answer yes."""
        first = self.first_position != NONE
        second = self.second_position != NONE
        if task == "T1":
            return first
        if task == "T3":
            return first or second
        if task in ("T6", "T7"):
            return first and second and self.first_position < self.second_position
        return first and second


def list_variables(
    task: str, sequences: NDArray[Any], queries: NDArray[Any], lists: Sequence[Pairs]
) -> dict[str, Variable]:
    """For each pair p behind the query: `first[p]`, `second[p]` (features), `first_present[p]`, `second_present[p]`,
    `first_position[p]`, `second_position[p]`, and `order[p]` (whether the first occurs before the second).

    T1 asks for a single feature and has no `second`.
    """
    length, features = sequences.shape[1:]
    facts = _find_facts(task, sequences, queries, lists)
    bits = np.array([_code(query) for query in queries.astype(bool)], np.int64)[:, None]
    variables: dict[str, Variable] = {}
    for p in range(len(facts[0]) if facts else 0):
        pair = [row[p] for row in facts]
        others = np.array([_other_pair_holds(row, p, task) for row in facts], np.int64)
        members = ("first",) if task == "T1" else ("first", "second")
        positions = {}
        for member in members:
            positions[member] = np.array([getattr(f, f"{member}_position") for f in pair], np.int64)
        for member in members:
            feature = np.array([getattr(f, member) for f in pair], np.int64)
            context = np.column_stack([bits, others])
            for other in members:
                if other != member:
                    # Where order counts, the answer depends on the position of the other feature, elsewhere on presence.
                    decisive = positions[other] if task in ("T6", "T7") else positions[other] >= 0
                    context = np.column_stack([context, decisive]).astype(np.int64)
            present = (positions[member] >= 0).astype(np.int64)
            variables[f"{member}[{p}]"] = Variable(feature, features, causes=bits)
            # Where order counts, presence alone does not decide.
            variables[f"{member}_present[{p}]"] = Variable(present, 2, context=context, causal=task not in ("T6", "T7"))
            variables[f"{member}_position[{p}]"] = Variable(positions[member], length, context=context, positions=True)
        if task != "T1":
            before = np.array([f.holds("T6") for f in pair], np.int64)
            context = np.column_stack([bits, others])
            variables[f"order[{p}]"] = Variable(before, 2, context=context, causal=task in ("T6", "T7"))
    return variables


def answer_with(
    task: str,
    sequences: NDArray[Any],
    queries: NDArray[Any],
    lists: Sequence[Pairs],
    name: str,
    values: Ints,
    targets: NDArray[Any],
) -> NDArray[Any]:
    """The answers if the query asked for another feature, or a feature were absent, present, or somewhere else."""
    stem, p = split_name(name)
    facts = _find_facts(task, sequences, queries, lists)

    def answer(index: int, value: int) -> bool:
        row = facts[index]
        others = _other_pair_holds(row, p, task)
        if stem == "order":
            return others or bool(value)
        changed = dict(vars(row[p]))
        if stem in ("first", "second"):
            changed[stem] = value
            tokens = [active_features(token) for token in sequences[index].tolist()]
            return others or _facts(changed["first"], changed["second"], tokens).holds(task)
        member, _, aspect = stem.partition("_")
        if aspect == "present":
            position = changed[f"{member}_position"]
            changed[f"{member}_position"] = NONE if not value else max(position, 0)
        else:
            changed[f"{member}_position"] = value
        return others or Facts(**changed).holds(task)

    return answer_each(targets, values, answer)


def _other_pair_holds(row: Sequence[Facts], p: int, task: str) -> bool:
    """Whether a pair other than number p makes the answer yes."""
    return any(facts.holds(task) for number, facts in enumerate(row) if number != p)


def _find_facts(task: str, sequences: NDArray[Any], queries: NDArray[Any], lists: Sequence[Pairs]) -> list[list[Facts]]:
    rows = []
    for sequence, query in zip(sequences, queries, strict=True):
        tokens = [active_features(token) for token in sequence.tolist()]
        ids = sorted(active_features(query.tolist()))
        if task == "T1":
            pairs: Pairs = [(ids[0], NONE)]
        else:
            pairs = [(ids[0], ids[1])] if task == "T2" else lists[ids[0]]
        rows.append([_facts(a, b, tokens) for a, b in pairs])
    return rows


def _facts(first: int, second: int, tokens: Sequence[Collection[int]]) -> Facts:
    earliest = latest = NONE
    for position, token in enumerate(tokens):
        if first in token and earliest == NONE:
            earliest = position
        if second in token:
            latest = position
    return Facts(first, second, earliest, latest)


def _code(bits: NDArray[np.bool_]) -> int:
    """A number for the active features of a query, at most two."""
    code = 0
    # Digits start at 1, so that the feature 0 differs from no feature.
    for feature in np.flatnonzero(bits).tolist():
        code = code * (len(bits) + 1) + feature + 1
    return code
