"""Multi-query associative recall: the task `recall/mqar`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from math import comb
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from pydantic import Field as Option
from pydantic import model_validator

from unseen.randomness import Draws, Ints
from unseen.spec import Field, Spec, Stream, Target
from unseen.tasks import svg
from unseen.tasks.base import Array, Examples, Shortcut, Split, Task
from unseen.tasks.variables import Variables
from unseen.tasks.verify.baselines import expect_commonest

Count = Annotated[int, Option(ge=1)]
_HELD_OUT = 5
"""Offsets of a value to its key that are multiples of this never occur in training."""


class AssociativeRecall(Task):
    """The answers are the values that were given with the queried keys.

    A context lists pairs, each a key followed by its value, with fillers between the pairs; then every pair is asked for
    by its key, in another order. With keys a, b, … and values 0, 1, …:

        context a 3 · · b 0    queries b a    →  0 3
        context b 0 a 3 · ·    queries b a    →  0 3: the position of a pair makes no difference
        context a 3            queries a      →  3: a single pair needs no key at all

    >>> from unseen.tasks.recall.solver import solve
    >>> solve([0, 2 + 3, 9, 9, 1, 2 + 0], queries=[1, 0], keys=2, values=7)
    [0, 3]

    The keys of an example are all different; its values need not be. A model that carries a state of fixed size has to
    store all pairs in it. A combination of a key and a value is held out of training (`ood/pairs`) if the value's number
    minus the key's, modulo `values`, is a multiple of five: 7 of 32 values for every key, or 4 of 16. Other tests have
    more fillers (`ood/longer`) or twice as many pairs (`ood/more`).
    """

    report_by: ClassVar[tuple[str, ...]] = ("pairs",)
    size_options: ClassVar[frozenset[str]] = frozenset({"train_size", "evaluation_size"})

    name: Literal["recall/mqar"] = "recall/mqar"
    pairs: int = Option(8, ge=1, le=1_000, description="pairs of a context in training")
    keys: int = Option(32, ge=2, le=10_000, description="number of different keys, at least twice the pairs")
    values: int = Option(32, ge=10, le=10_000, description="number of different values")
    length: int = Option(32, ge=2, le=10_000, description="tokens of a context in training, even, two for each pair")
    train_size: Count | None = Option(None, description="examples of the training set; None: endless")
    evaluation_size: Count | None = Option(2_000, description="examples of every other split; None: endless")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.keys < 2 * self.pairs:
            raise ValueError(f"keys = {self.keys} must be at least twice pairs = {self.pairs}, which ood/more asks for")
        if self.length % 2 or self.length < 2 * self.pairs:
            raise ValueError(f"length = {self.length} must be even and at least 2 · pairs = {2 * self.pairs}")
        return self

    @cached_property
    def spec(self) -> Spec:
        return Spec(
            (Stream("context", self.length), Stream("queries", self.pairs)),
            (
                Field("token", "category", self.keys + self.values + 1, "context"),
                Field("query", "category", self.keys, "queries"),
            ),
            Target("category", self.values, "queries"),
        )

    @property
    def splits(self) -> Mapping[str, Split]:
        longer = self._sizes("ood/longer")
        more = self._sizes("ood/more")
        return {
            "train": Split("train", f"{self.pairs} pairs in {self.length} tokens"),
            "iid": Split("iid", "as in training"),
            "ood/pairs": Split("ood/pairs", "keys with values that training never puts together", ("held_out",)),
            "ood/longer": Split("ood/longer", f"as many pairs in {longer[1]} tokens", ("length",)),
            "ood/more": Split("ood/more", f"{more[0]} pairs in {more[1]} tokens", ("pairs",)),
        }

    def _sizes(self, split: str) -> tuple[int, int]:
        """Pairs and tokens of a context."""
        if split == "ood/longer":
            return self.pairs, 4 * self.length
        return (2 * self.pairs, 2 * self.length) if split == "ood/more" else (self.pairs, self.length)

    def generate(self, split: str, draws: Draws) -> Examples:
        pairs, length = self._sizes(self.get_split(split).name)
        keys = draws.permutations(self.block, self.keys)[:, :pairs]
        # A value is the key plus an offset; multiples of five are the offsets held out of training.
        held_out = split == "ood/pairs"
        offsets = self._offsets(held_out)
        values = (keys + offsets[draws.integers(len(offsets), keys.shape)]) % self.values
        # A slot has room for a key and its value; slots that are not drawn hold two fillers.
        slots = np.sort(draws.permutations(self.block, length // 2)[:, :pairs], axis=1)
        context = np.full((self.block, length), self.keys + self.values)
        np.put_along_axis(context, 2 * slots, keys, 1)
        np.put_along_axis(context, 2 * slots + 1, self.keys + values, 1)
        order = draws.permutations(self.block, pairs)
        factors = {
            "pairs": np.full(self.block, pairs),
            "length": np.full(self.block, length),
            "held_out": np.full(self.block, held_out),
        }
        inputs = {"token": context, "query": np.take_along_axis(keys, order, 1)}
        return Examples(inputs, np.take_along_axis(values, order, 1), factors)

    def _offsets(self, held_out: bool) -> Ints:
        """The differences of value and key, modulo the number of values, that a split has."""
        offsets = np.arange(self.values)
        chosen: Ints = offsets[(offsets % _HELD_OUT == 0) == held_out]
        return chosen

    # The methods below are not called in training.

    def solve(self, examples: Examples) -> Array:
        from unseen.tasks.recall.solver import solve

        contexts = examples.inputs["token"].tolist()
        answers = []
        for context, queries in zip(contexts, examples.inputs["query"].tolist(), strict=True):
            answers.append(solve(context, queries, self.keys, self.values))
        return np.array(answers, np.int64).reshape(examples.inputs["query"].shape)

    def variables(self, examples: Examples) -> Variables:
        from unseen.tasks.recall.variables import list_variables

        return list_variables(examples.inputs["token"], examples.inputs["query"], self.keys, self.values)

    def answer_with(self, examples: Examples, name: str, values: Array) -> Array:
        from unseen.tasks.recall.variables import answer_with
        from unseen.tasks.variables import split_name

        stem, _ = split_name(name)
        if stem != "value":
            return super().answer_with(examples, name, values)
        return answer_with(self.solve(examples), name, values)

    def counterparts(self, examples: Examples, name: str, draws: Draws) -> Examples | None:
        """The same contexts with another value behind the key of one query, as far as the split has the combination."""
        from unseen.tasks.recall.variables import find_value_positions
        from unseen.tasks.variables import split_name

        stem, number = split_name(name)
        if stem != "value":
            return None
        context = examples.inputs["token"].copy()
        queries = examples.inputs["query"]
        rows = np.arange(len(context))
        offsets = np.empty(len(context), np.int64)
        for held_out in (False, True):
            chosen = examples.factors["held_out"] == held_out
            allowed = self._offsets(held_out)
            offsets[chosen] = allowed[draws.integers(len(allowed), int(chosen.sum()))]
        positions = find_value_positions(context, queries)[:, number]
        context[rows, positions] = self.keys + (queries[:, number] + offsets) % self.values
        changed = replace(examples, inputs={**examples.inputs, "token": context})
        return replace(changed, targets=self.solve(changed))

    def _name_token(self, token: int) -> str:
        if token < self.keys:
            return f"k{token}"
        return "·" if token == self.keys + self.values else f"v{token - self.keys}"

    def describe(self, examples: Examples, index: int) -> str:
        context = " ".join(self._name_token(token) for token in examples.inputs["token"][index].tolist())
        queries = examples.inputs["query"][index].tolist()
        answers = examples.targets[index].tolist()
        mapped = ", ".join(f"k{query} → v{answer}" for query, answer in zip(queries, answers, strict=True))
        title = f"{self.name}, {len(queries)} pairs of a key and a value, · a filler"
        return f"{title}\n  context: {context}\nanswer: {mapped}"

    def picture(self, examples: Examples, index: int) -> str:
        wide = 40
        columns = 16
        context = [self._name_token(token) for token in examples.inputs["token"][index].tolist()]
        body = []
        for position, name in enumerate(context):
            x = 8 + position % columns * wide
            y = 26 + position // columns * 24
            colour = {"k": "#00798c", "v": "#d1495b"}.get(name[0], svg.GREY)
            body.append(svg.text(x + wide / 2, y, name, anchor="middle", colour=colour))
        y = 40 + -(-len(context) // columns) * 24
        queries = zip(examples.inputs["query"][index].tolist(), examples.targets[index].tolist(), strict=True)
        for number, (query, answer) in enumerate(queries):
            x = 8 + number % (columns // 2) * 2 * wide
            baseline = y + number // (columns // 2) * 22
            body.append(svg.text(x + wide, baseline, f"k{query} → v{answer}", anchor="middle", weight="bold"))
        rows = -(-len(examples.targets[index]) // (columns // 2))
        return svg.document(16 + columns * wide, y + rows * 22, f"an example of {self.name}", body)

    def ceilings(self, split: str) -> Mapping[str, float]:
        # A baseline is fitted to the split, and so learns which offsets the split has.
        held_out = self.get_split(split).name == "ood/pairs"
        bag_of_tokens = max(self._guess_present(split), self._guess_possible(split, held_out))
        # "This value if it is in the context, else that one" is right for two of the values.
        return {"single-feature": 2 / self.values, "bag-of-tokens": bag_of_tokens}

    def shortcuts(self, split: str) -> Sequence[Shortcut]:
        pairs, _ = self._sizes(self.get_split(split).name)

        def answer_commonest(examples: Examples) -> Array:
            """The value that is most frequent in the context, for every query."""
            values = examples.inputs["token"] - self.keys
            counts = np.stack([(values == value).sum(1) for value in range(self.values)], 1)
            return np.repeat(counts.argmax(1)[:, None], examples.targets.shape[1], 1)

        def answer_with_any(examples: Examples) -> Array:
            """A value that training has with the key; the context is ignored."""
            answers: Array = (examples.inputs["query"] + 1) % self.values
            return answers

        def answer_possible(examples: Examples) -> Array:
            """The commonest value of the context among those that training has with the key; the first of several."""
            values = self._list_values(examples)
            counts = (values[:, :, None] == values[:, None]).sum(2)
            offsets = (values[:, None] - examples.inputs["query"][:, :, None]) % self.values
            possible_counts = np.where(offsets % _HELD_OUT == 0, 0, counts[:, None])
            commonest = np.take_along_axis(values, possible_counts.argmax(2), 1)
            return np.where(possible_counts.max(2) > 0, commonest, answer_with_any(examples))

        in_order = 1 / pairs + (1 - 1 / pairs) / self.values
        # On ood/pairs, what training has with a key is never right.
        has_trained_offsets = split != "ood/pairs"
        any_trained = 1 / len(self._offsets(held_out=False)) if has_trained_offsets else 0.0
        possible = self._guess_possible(split, held_out=False) if has_trained_offsets else 0.0
        return (
            Shortcut("the commonest value of the context", answer_commonest, self._guess_present(split)),
            Shortcut("the values in the order of the context", self._list_values, in_order),
            Shortcut("a value that training has with the key", answer_with_any, any_trained),
            Shortcut("the commonest value of the context that training has with the key", answer_possible, possible),
        )

    def _list_values(self, examples: Examples) -> Array:
        """The values of each context in their order."""
        tokens = examples.inputs["token"]
        is_value = (tokens >= self.keys) & (tokens < self.keys + self.values)
        values: Array = tokens[is_value].reshape(len(tokens), -1) - self.keys
        return values

    def _guess_present(self, split: str) -> float:
        """The expected share of the commonest value among the pairs: the best guess that ignores the keys."""
        pairs, _ = self._sizes(self.get_split(split).name)
        return expect_commonest(self.values, pairs)

    def _guess_possible(self, split: str, held_out: bool) -> float:
        """The expected score of the commonest value among those that can belong to the queried key.

        Another pair's value can belong to the queried key with probability a, the mean overlap of the values that two
        different keys may have. With j such pairs, the queried one is any of j + 1. For two pairs this is exact; for more,
        the pairs are taken as independent, which they nearly are: keys do not repeat.
        """
        pairs, _ = self._sizes(self.get_split(split).name)
        offsets = self._offsets(held_out)
        allowed = np.zeros(self.values)
        allowed[offsets] = 1
        overlap = np.array([allowed @ np.roll(allowed, shift) for shift in range(self.values)])
        keys_by_residue = np.bincount(np.arange(self.keys) % self.values, minlength=self.values).astype(float)
        key_pairs = np.array([keys_by_residue @ np.roll(keys_by_residue, shift) for shift in range(self.values)])
        total = key_pairs @ overlap - self.keys * len(offsets)  # without a key and itself
        a = float(total / (self.keys * (self.keys - 1) * len(offsets)))
        scores = []
        for j in range(pairs):
            probability = comb(pairs - 1, j) * a**j * (1 - a) ** (pairs - 1 - j)
            scores.append(probability * expect_commonest(len(offsets), j + 1))
        return sum(scores)
