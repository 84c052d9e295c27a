"""Coverage: which values of factors and variables, and which combinations of them, training contains.

Compared are single values, pairs of factors, and neighbours in a sequence: in a chain of functions, the functions wherever
they are applied, the pairs of a function and the next, and the functions at their positions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unseen.tasks.base import Examples, Task
from unseen.tasks.variables import split_name
from unseen.tasks.verify.equivalence import TRAINING, count_training, training_blocks

_LISTED = 6
"""The properties that a sentence lists."""
_PAIR = 2
"""An array (B, K) of at most this many numbers is one value per example, such as a shape and a colour. A longer one is a
sequence of values, unless a split declares it unseen as a whole."""
_RANKS = {"declared": 0, "value": 1, "neighbours": 2, "pair": 3, "by position": 4, "position": 5}
"""The order in which properties are listed: those that a split declares unseen come first, positions last."""

Codes = NDArray[np.int64]


@dataclass(frozen=True)
class Lack:
    """A property that training lacks in part: of the examples with it, the share with a value unknown to training."""

    kind: str
    name: str
    share: float


@dataclass
class TrainingCoverage:
    """The values that training has, by kind and name of the property; `training` examples, all of them if `complete`."""

    training: int
    complete: bool
    known: dict[tuple[str, str], set[int]] = field(default_factory=dict)
    _numbers: dict[str, dict[Any, int]] = field(default_factory=dict)
    _factors_of: dict[str, tuple[str, str]] = field(default_factory=dict)

    def add(self, task: Task, examples: Examples) -> None:
        """Take in training examples."""
        for kind, name, codes in self._list_codes(task, examples):
            self.known.setdefault((kind, name), set()).update(np.unique(codes[codes >= 0]).tolist())

    def find_lacking(self, task: Task, examples: Examples) -> list[Lack]:
        """The properties of which these examples have values that training lacks, the most telling first.

        A pair counts where training has both of its values, but never together.
        """
        lacking: list[Lack] = []
        lacks_value: dict[str, NDArray[np.bool_]] = {}
        for kind, name, codes in self._list_codes(task, examples):
            trained = np.fromiter(self.known.get((kind, name), ()), np.int64)
            present = codes >= 0
            unknown = np.asarray((present & ~np.isin(codes, trained)).reshape(len(codes), -1).any(1), np.bool_)
            if kind == "value":
                lacks_value[name] = unknown
            if kind == "pair":
                for factor in self._factors_of[name]:
                    unknown = unknown & ~lacks_value[factor]
            having = present.reshape(len(codes), -1).any(1)
            if unknown.any():
                lacking.append(Lack(kind, name, float(unknown.sum() / having.sum())))
        # What is declared unseen is listed as that, and not once more as a value or a pair.
        declared_names = {lack.name for lack in lacking if lack.kind == "declared"}
        lacking = [lack for lack in lacking if lack.kind == "declared" or lack.name not in declared_names]
        return sorted(lacking, key=lambda lack: (_RANKS[lack.kind], -lack.share, lack.name))

    def _list_codes(self, task: Task, examples: Examples) -> Iterator[tuple[str, str, Codes]]:
        """The kind and the name of every property, and its values as numbers, −1 for none: (B,) or, of sequences, (B, K)."""
        values: dict[str, Codes] = {}
        declared = dict.fromkeys(split.unseen for split in task.splits.values() if split.unseen)
        for name, array in examples.factors.items():
            if array.dtype.kind not in "biuUT" or not array.size:
                continue
            whole = any(name in factors for factors in declared)
            codes = self._number(name, array, whole)
            values[name] = codes
            yield "value", name, codes
            if codes.ndim > 1:
                yield from _neighbours(name, codes)
        single = [name for name, codes in values.items() if codes.ndim == 1]
        for pair in combinations(single, 2):
            self._factors_of[" × ".join(pair)] = pair
            yield "pair", " × ".join(pair), _join([values[name] for name in pair])
        for factors in declared:
            if all(name in single for name in factors):
                yield "declared", " × ".join(factors), _join([values[name] for name in factors])
        yield from _list_variables(task, examples)

    def _number(self, name: str, array: NDArray[Any], whole: bool) -> Codes:
        """Numbers for the values of a factor, the same in every call; with `whole`, a sequence is one value."""
        numbers = self._numbers.setdefault(name, {})
        if array.ndim > 1 and (whole or array.shape[1] <= _PAIR):
            distinct, inverse = np.unique(array.reshape(len(array), -1), axis=0, return_inverse=True)
            keys: list[Any] = [tuple(row) for row in distinct.tolist()]
            shape: tuple[int, ...] = (len(array),)
        else:
            distinct, inverse = np.unique(array, return_inverse=True)
            keys = distinct.tolist()
            shape = (len(array), -1) if array.ndim > 1 else (len(array),)
        codes = np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.int64)
        # In a sequence, −1 or an empty text marks a position without a value.
        absent = np.array([len(shape) > 1 and key in (-1, "") for key in keys])
        return np.where(absent, -1, codes)[inverse.reshape(-1)].reshape(shape)


def read_coverage(task: Task, training: int = TRAINING, data_seed: int = 0) -> TrainingCoverage:
    """The values and combinations in the training set, or in the first examples of a larger or endless one."""
    count = count_training(task, training)
    coverage = TrainingCoverage(count, count == task.size("train"))
    for block in training_blocks(task, training, data_seed):
        coverage.add(task, block)
    return coverage


def describe_coverage(coverage: TrainingCoverage, lacking: Sequence[Lack]) -> str:
    """A sentence about what training lacks."""
    whole = "the" if coverage.complete else "the first"
    if not lacking:
        return f"{whole} {coverage.training:,} training examples have every value, and every pair, that occurs here"
    listed = ", ".join(f"{lack.name} in {lack.share:.1%}" for lack in lacking[:_LISTED])
    more = f" and {len(lacking) - _LISTED} more" if len(lacking) > _LISTED else ""
    return f"not in {whole} {coverage.training:,} training examples: {listed}{more}"


def summarize_coverage(lacking_by_split: Mapping[str, Sequence[Lack]]) -> str:
    """A sentence about all splits: the first property that each of them has and training lacks.

    >>> summarize_coverage({"iid": [], "ood/pairs": [Lack("declared", "operator × object", 1.0)]})
    'training lacks operator × object (100.0% of ood/pairs)'
    """
    splits_by_name: dict[str, list[str]] = {}
    for split, lacking in lacking_by_split.items():
        if lacking:
            splits_by_name.setdefault(lacking[0].name, []).append(f"{lacking[0].share:.1%} of {split}")
    if not splits_by_name:
        return "training has every value and every pair that occurs in another split"
    sentences = [f"{name} ({', '.join(splits)})" for name, splits in splits_by_name.items()]
    return f"training lacks {'; '.join(sentences)}"


def _list_variables(task: Task, examples: Examples) -> Iterator[tuple[str, str, Codes]]:
    """The variables that are not factors; those with an index are joined to sequences."""
    columns: dict[str, list[Codes]] = {}
    are_positions: dict[str, bool] = {}
    for name, variable in task.variables(examples).items():
        stem, _ = split_name(name)
        if stem in examples.factors or f"{stem}s" in examples.factors:
            continue
        columns.setdefault(stem, []).append(variable.values)
        are_positions[stem] = variable.positions
    for stem, values in columns.items():
        codes = np.stack(values, axis=1)
        if are_positions[stem]:
            yield "position", stem, codes
            continue
        yield "value", stem, codes
        if len(values) > 1:
            yield from _neighbours(stem, codes)


def _neighbours(name: str, codes: Codes) -> Iterator[tuple[str, str, Codes]]:
    """The pairs of consecutive values of a sequence, wherever they are, and the values at their positions."""
    if codes.shape[1] > 1:
        following = [_join([codes[:, i], codes[:, i + 1]]) for i in range(codes.shape[1] - 1)]
        yield "neighbours", f"{name} × next", np.stack(following, axis=1)
    positions = np.broadcast_to(np.arange(codes.shape[1]), codes.shape)
    yield "by position", f"{name} by position", _join([codes, positions])


def _join(columns: Sequence[Codes]) -> Codes:
    """One number for several, −1 where one of them is."""
    joined: Codes = columns[0]
    for column in columns[1:]:
        # Numbers of values stay far below 2²⁰, so that three of them fit into 64 bits.
        joined = np.where((joined >= 0) & (column >= 0), joined * (1 << 20) + column, -1)
    return joined
