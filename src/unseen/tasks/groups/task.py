"""Word problems over groups: the tasks `groups/*`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field as Option
from pydantic import field_validator, model_validator

from unseen.errors import UsageError
from unseen.names import name_in_family
from unseen.randomness import Draws, Floats, Ints
from unseen.spec import Field, Spec, Stream, Target
from unseen.tasks import svg
from unseen.tasks.base import Array, Examples, Shortcut, Split, Task
from unseen.tasks.groups.group import PermutationGroup, generate_group, make_named_group, read_group_table
from unseen.tasks.variables import Variables

Count = Annotated[int, Option(ge=1)]
Element = Annotated[int, Option(ge=0)]
_MOST_TOKENS = 12
"""The number of tokens in a picture and in a description; longer words are cut in the middle."""
_LISTED = 120
"""The number of elements that are listed, those of S5; larger groups are cut."""
_WINDOWS = (1, 4, 16)
"""How many of the latest tokens the shortcuts multiply."""


class WordProblem(Task):
    """The answer is the product of the group elements read so far, from left to right.

    A token is an element of a finite group, and a state that every token changes has to be tracked. In S3, the
    permutations of three points, where (1 2) swaps the points 1 and 2, a product is its left factor first:

        (1 2) (2 3)            →  (1 2), then (1 3 2)
        (1 2) (2 3) (1 3 2)    →  the same and then (1 2 3)
        e                      →  e: the identity changes nothing, and a word may be a single token

    >>> from unseen.tasks import task
    >>> from unseen.tasks.groups.solver import solve
    >>> group = task("groups/S3").group
    >>> word = [group.names.index(name) for name in ("(1 2)", "(2 3)", "(1 3 2)")]
    >>> [group.names[product] for product in solve(group.table.tolist(), word)]
    ['(1 2)', '(1 3 2)', '(1 2 3)']

    A test asks for longer words than training has. The factor `complexity` says how hard that is for a circuit: the
    word problem of a solvable group (Z2, which is parity, or S3) is in ACC0, that of any other (A5, S5) is complete for
    NC1 (Barrington 1989).

    `answer` asks after every token, where all words have `length` tokens, or at the end, where words of all lengths up to
    that are padded. The factor `prefix` is how many tokens have been multiplied, in ranges.
    """

    report_by: ClassVar[tuple[str, ...]] = ("prefix",)
    size_options: ClassVar[frozenset[str]] = frozenset({"train_size", "evaluation_size"})

    name: Literal["groups/Z2", "groups/S3", "groups/A5", "groups/S5", "groups/own"]
    answer: Literal["every", "last"] = Option("every", description="asked after every token, or at the end alone")
    length: int = Option(40, ge=1, le=10_000, description="tokens of the longest words in training")
    longest: int = Option(
        256, ge=3, le=10_000, description="tokens of the longest words in tests, more than twice `length`"
    )
    generators: tuple[Element, ...] | None = Option(
        None, description="the elements that occur as tokens, by number; they must generate the group. None: all"
    )
    train_size: Count | None = Option(None, description="examples of the training set; None: endless")
    evaluation_size: Count | None = Option(2_000, description="examples of every other split; None: endless")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.longest <= 2 * self.length:
            raise ValueError(f"longest = {self.longest} must be more than twice length = {self.length}")
        if self.generators is not None:
            wrong = [number for number in self.generators if number >= self.group.order]
            if wrong or len(set(self.generators)) != len(self.generators):
                raise ValueError(f"generators must be different elements, 0 to {self.group.order - 1}")
            reached = len(self.group.generate(self.generators))
            if reached < self.group.order:
                raise ValueError(
                    f"generators {list(self.generators)} generate {reached} of the {self.group.order} elements of the "
                    "group; add an element, or leave generators out for all"
                )
        return self

    @cached_property
    def group(self) -> PermutationGroup:
        """The group."""
        return make_named_group(name_in_family(self.name))

    @cached_property
    def token_elements(self) -> Ints:
        """The element behind each token."""
        return np.arange(self.group.order) if self.generators is None else np.array(self.generators, dtype=np.int64)

    @cached_property
    def spec(self) -> Spec:
        token = Field("token", "category", len(self.token_elements), "tokens")
        mask = Field("mask", "mask", 1, "tokens")
        every = self.answer == "every"
        target = Target("category", self.group.order, "tokens" if every else None)
        return Spec((Stream("tokens", self.length),), (token,) if every else (token, mask), target)

    @property
    def splits(self) -> Mapping[str, Split]:
        up_to = "of" if self.answer == "every" else "of up to"
        beyond = "of" if self.answer == "every" else "longer than before, of up to"
        return {
            "train": Split("train", f"words {up_to} {self.length} tokens"),
            "iid": Split("iid", f"words {up_to} {self.length} tokens, as in training"),
            "ood/twice": Split("ood/twice", f"words {beyond} {2 * self.length} tokens", ("length",)),
            "ood/longest": Split("ood/longest", f"words {beyond} {self.longest} tokens", ("length",)),
        }

    def lengths_of(self, split: str) -> range:
        """The lengths of a split's words."""
        name = self.get_split(split).name
        least, most = {
            "ood/twice": (self.length + 1, 2 * self.length),
            "ood/longest": (2 * self.length + 1, self.longest),
        }.get(name, (1, self.length))
        return range(most, most + 1) if self.answer == "every" else range(least, most + 1)

    def generate(self, split: str, draws: Draws) -> Examples:
        lengths = self.lengths_of(split)
        tokens = draws.integers(len(self.token_elements), (self.block, lengths[-1]))
        length = lengths[0] + draws.integers(len(lengths), (self.block,))
        # Generated with permutations, where the solver looks products up in the table.
        elements = self.group.permutations[self.token_elements]
        state = np.broadcast_to(self.group.permutations[0], (self.block, self.group.permutations.shape[1]))
        products = np.empty(tokens.shape, np.int64)
        for position in range(lengths[-1]):
            state = np.take_along_axis(elements[tokens[:, position]], state, 1)  # the state first, then the token
            products[:, position] = self.group.number(state)
        factors = {"length": length, "complexity": np.full(self.block, self.complexity)}
        if self.answer == "every":
            multiplied = np.broadcast_to(np.arange(1, lengths[-1] + 1), tokens.shape)
            return Examples({"token": tokens}, products, {**factors, "prefix": self._name_range(multiplied)})
        # The word is the first `length` tokens; those behind it were drawn, too, and are set to 0.
        mask = np.arange(lengths[-1]) < length[:, None]
        targets = products[np.arange(self.block), length - 1]
        return Examples(
            {"token": tokens * mask, "mask": mask}, targets, {**factors, "prefix": self._name_range(length)}
        )

    @cached_property
    def complexity(self) -> str:
        """The complexity class of the group's word problem."""
        return "ACC0" if self.group.solvable else "NC1-complete"

    def _name_range(self, multiplied: Ints) -> Array:
        """The range in which a number of tokens lies, with leading zeros so that names are in the order of numbers."""
        bounds = [0, self.length, 2 * self.length, self.longest]
        digits = len(str(self.longest))
        names = [f"{low + 1:0{digits}}-{high:0{digits}}" for low, high in pairwise(bounds)]
        ranges: Array = np.array(names)[np.searchsorted(bounds[1:], multiplied)]
        return ranges

    # The methods below are not called in training.

    def _solve_words(self, examples: Examples) -> Ints:
        """The products after every token, also of padding, by the plain solver."""
        from unseen.tasks.groups.solver import solve

        table = self.group.table.tolist()
        elements = self.token_elements[examples.inputs["token"]]
        products = [solve(table, row) for row in elements.tolist()]
        return np.array(products, np.int64).reshape(elements.shape)

    def solve(self, examples: Examples) -> Array:
        return self._take_asked(examples, self._solve_words(examples))

    def variables(self, examples: Examples) -> Variables:
        # Known for whole words; an answer at the end has products of its own word alone.
        from unseen.tasks.variables import NONE, Variable

        products = self._solve_words(examples)
        if self.answer == "last":
            products = np.where(examples.inputs["mask"], products, NONE)
        order = self.group.order
        return {f"product[{number}]": Variable(column, order) for number, column in enumerate(products.T, start=1)}

    def answer_with(self, examples: Examples, name: str, values: Array) -> Array:
        from unseen.tasks.groups.solver import solve
        from unseen.tasks.variables import answer_each, split_name

        stem, number = split_name(name)
        if stem != "product":
            return super().answer_with(examples, name, values)
        table = self.group.table.tolist()
        words = self.token_elements[examples.inputs["token"]].tolist()
        targets = self.solve(examples)

        def answer(index: int, value: int) -> Any:
            word = words[index]
            if self.answer == "every":
                return [*targets[index][: number - 1], value, *solve(table, word[number:], value)]
            length = int(examples.inputs["mask"][index].sum())
            return [value, *solve(table, word[number:length], value)][-1]

        return answer_each(targets, values, answer)

    def _word(self, examples: Examples, index: int) -> tuple[list[str], list[str]]:
        """The names of the tokens of an example, and of their products."""
        from unseen.tasks.groups.solver import solve

        count = int(examples.inputs["mask"][index].sum()) if self.answer == "last" else None
        elements = self.token_elements[examples.inputs["token"][index][:count]].tolist()
        names = self.group.names
        products = solve(self.group.table.tolist(), elements)
        if self.answer == "every":
            products = examples.targets[index].tolist()
        return [names[element] for element in elements], [names[product] for product in products]

    def legend(self) -> str:
        names = self.group.names[:_LISTED]
        more = ", …" if len(names) < self.group.order else ""
        listed = ", ".join(f"{number} {name}" for number, name in enumerate(names))
        return f"elements by number, for generators: {listed}{more}"

    def describe(self, examples: Examples, index: int) -> str:
        tokens, products = self._word(examples, index)
        lines = [f"{self.name}, {len(tokens)} tokens, {self.group.order} elements; multiplied from left to right"]
        for position in _select_positions(len(tokens)):
            if position is None:
                lines.append("  …")
            else:
                lines.append(f"  {position + 1:>3}.  {tokens[position]}  →  {products[position]}")
        answer = self.group.names[int(np.ravel(examples.targets[index])[-1])]
        lines.append(
            f"answer: {answer}" if self.answer == "last" else f"answer after every token; the last is {answer}"
        )
        return "\n".join(lines)

    def picture(self, examples: Examples, index: int) -> str:
        tokens, products = self._word(examples, index)
        wide = 26 + 6 * max(map(len, self.group.names))
        body = [svg.text(8, 34, "token"), svg.text(8, 74, "product")]
        positions = _select_positions(len(tokens))
        for column, position in enumerate(positions):
            x = 70 + column * wide
            if position is None:
                body.append(svg.text(x + wide / 2, 54, "…", anchor="middle"))
                continue
            body.append(svg.rectangle(x + 2, 18, wide - 4, 24, fill="#eceef1", rx=4))
            body.append(svg.text(x + wide / 2, 34, tokens[position], anchor="middle"))
            is_asked = self.answer == "every" or position == len(tokens) - 1
            weight = "bold" if is_asked else "normal"
            body.append(svg.text(x + wide / 2, 74, products[position], anchor="middle", weight=weight))
        return svg.document(80 + len(positions) * wide, 92, f"an example of {self.name}", body)

    def ceilings(self, split: str) -> Mapping[str, float]:
        # With the latest token and the number of tokens, the product is as likely as that of the tokens before it.
        latest = self._expect(split, lambda before: float(self._product_odds(before).max()), window=1)
        # Of one or two tokens, all that is lost by counting is their order.
        counted = 0.0 if self.answer == "every" else self._expect(split, lambda _: self.spec.target.chance, window=2)
        return {"majority": latest, "single-feature": latest, "bag-of-tokens": max(latest, counted)}

    def shortcuts(self, split: str) -> Sequence[Shortcut]:
        shortcuts = []
        for window in _WINDOWS:
            ceiling = self._expect(split, lambda before: float(self._product_odds(before)[0]), window=window)
            tokens = "the latest token" if window == 1 else f"the latest {window} tokens"
            shortcuts.append(Shortcut(f"the product of {tokens}", self._answer_by_window(window), ceiling))
        # In a group that commutes the quotient is the group, and in one without a quotient it says nothing.
        if 1 < len(np.unique(self.group.abelian_quotient)) < self.group.order:
            name = "the abelian quotient of the product"
            shortcuts.append(self._use_quotient(name, split, window=0))
            window = _WINDOWS[-1]
            name = f"the product of {window} tokens, the abelian quotient of that of more"
            shortcuts.append(self._use_quotient(name, split, window))
        return shortcuts

    def _use_quotient(self, name: str, split: str, window: int) -> Shortcut:
        """The likeliest element of the product's coset, which the numbers of the tokens tell without their order.

        The products of up to `window` tokens are known. After many tokens all elements of a coset are equally probable.
        """
        cosets = self.group.abelian_quotient

        def guess(count: int) -> Ints:
            """The likeliest product of `count` tokens in the coset of each element."""
            odds = self._product_odds(count)
            same_coset = cosets[:, None] == cosets
            likeliest: Ints = np.where(same_coset, odds, -1.0).argmax(1)
            return likeliest

        def odds_after(before: int) -> float:
            count = before + window
            return float(self._product_odds(count)[np.unique(guess(count)[np.unique(cosets)])].sum())

        def answer(examples: Examples) -> Array:
            tokens = self.token_elements[examples.inputs["token"]]
            answers = np.empty(tokens.shape, np.int64)
            product = np.zeros(len(tokens), np.int64)
            coset = np.zeros(len(tokens), np.int64)
            for position in range(tokens.shape[1]):
                # A coset is named by its first element, so the product of two names lies in the product's coset.
                coset = cosets[self.group.table[coset, cosets[tokens[:, position]]]]
                if position < window:
                    product = self.group.table[product, tokens[:, position]]
                    answers[:, position] = product
                else:
                    answers[:, position] = guess(position + 1)[coset]
            return self._take_asked(examples, answers)

        return Shortcut(name, answer, self._expect(split, odds_after, window))

    def _answer_by_window(self, window: int) -> Any:
        def answer(examples: Examples) -> Array:
            tokens = self.token_elements[examples.inputs["token"]]
            length = tokens.shape[1]
            answers = np.empty(tokens.shape, np.int64)
            for position in range(length):
                product = np.zeros(len(tokens), np.int64)
                for earlier in range(max(0, position - window + 1), position + 1):
                    product = self.group.table[product, tokens[:, earlier]]
                answers[:, position] = product
            return self._take_asked(examples, answers)

        return answer

    def _take_asked(self, examples: Examples, answers: Array) -> Array:
        """Of answers after every token those that are asked for."""
        if self.answer == "every":
            return answers
        last: Array = answers[np.arange(len(answers)), examples.inputs["mask"].sum(1) - 1]
        return last

    def _expect(self, split: str, odds: Any, window: int) -> float:
        """The mean of `odds` over all answers; its argument is the number of tokens before the latest `window`."""
        lengths = self.lengths_of(split)
        token_counts = range(1, lengths[-1] + 1) if self.answer == "every" else lengths
        return float(np.mean([odds(count - window) if count > window else 1.0 for count in token_counts]))

    @cached_property
    def _odds(self) -> list[Floats]:
        start = np.zeros(self.group.order)
        start[0] = 1.0
        return [start]

    def _product_odds(self, tokens: int) -> Floats:
        """The probability of each element as the product of `tokens` tokens."""
        while len(self._odds) <= tokens:
            before = self._odds[-1]
            after = np.zeros(self.group.order)
            # All tokens are equally probable; column `element` of the table says what each product becomes with it.
            for element in self.token_elements:
                np.add.at(after, self.group.table[:, element], before / len(self.token_elements))
            self._odds.append(after)
        return self._odds[tokens]


class OwnGroup(WordProblem):
    """A group of your own, by permutations that generate it or by its multiplication table.

    The elements are numbered: the identity is 0, then come the permutations as they are given, then their products.
    The default is the group of the square, generated by a quarter turn and a reflection.

    >>> from unseen.tasks import task
    >>> task("groups/own").group.order, task("groups/own", permutations=((1, 2, 0),)).group.order
    (8, 3)
    """

    name: Literal["groups/own"] = "groups/own"
    permutations: tuple[tuple[Element, ...], ...] = Option(
        ((1, 2, 3, 0), (0, 3, 2, 1)), description="permutations that generate the group: where each point goes"
    )
    table: tuple[tuple[Element, ...], ...] | None = Option(
        None, description="the multiplication table, or the path of a JSON file with it; None: by the permutations"
    )

    @field_validator("table", mode="before")
    @classmethod
    def _read_table(cls, value: object) -> object:
        """Replace the path of a file by its content."""
        if not isinstance(value, str | Path):
            return value
        from unseen.tasks.ctl.world import read_json

        return read_json(value, "a multiplication table")

    @cached_property
    def group(self) -> PermutationGroup:
        """The group."""
        return generate_group(self.permutations) if self.table is None else read_group_table(self.table)

    @model_validator(mode="after")
    def _check_group(self) -> Self:
        if self.table is not None and self.permutations != type(self).model_fields["permutations"].default:
            raise ValueError("a group is given by its table or by permutations that generate it; leave one of them out")
        try:
            trivial = self.group.order < 2
        except UsageError as error:
            raise ValueError(str(error)) from error
        if trivial:
            raise ValueError("the group has one element, so that there is nothing to track; add a permutation")
        return self


def _select_positions(count: int) -> list[int | None]:
    """The positions in a picture or a description; None marks the gap where the middle is cut out."""
    if count <= _MOST_TOKENS:
        return list(range(count))
    return [*range(_MOST_TOKENS - 3), None, count - 2, count - 1]
