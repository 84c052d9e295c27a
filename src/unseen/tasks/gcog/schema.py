"""The world of a gCOG task: its operators, features, grid, answers and presets. Everything else is derived from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Literal

import numpy as np

from unseen.errors import nearest
from unseen.randomness import Bools, Ints

OperatorCategory = Literal["exist", "location", "get", "parity", "combine", "is", "same", "equal"]
Quantity = Literal["sum", "product"]

CONDITIONAL = 9
"""The code of IF-THEN-ELSE, which lies among the codes of the operators."""

STANDARD = ("Exist", "GetLocation", "GetColor", "GetShape", "SumEven", "ProductEven", "ProductOdd", "SumOdd")
"""The eight operators of the paper, in the order of their codes (5 to 8 are the parity operators)."""

LETTERS = tuple("abcdefghijklmnopqrstuvwxyz")
COLORS = {
    "red": (230, 25, 75),
    "green": (60, 180, 75),
    "blue": (0, 130, 200),
    "yellow": (255, 225, 25),
    "purple": (145, 30, 180),
    "orange": (245, 130, 48),
    "white": (255, 255, 255),
    "pink": (250, 190, 190),
    "cyan": (70, 240, 240),
    "brown": (170, 110, 40),
    # The release names these for extensions. Where it gives no RGB value, the value is ours.
    "magenta": (240, 50, 230),
    "lime": (210, 245, 60),
    "teal": (0, 128, 128),
    "lavender": (230, 190, 255),
    "beige": (255, 250, 200),
    "maroon": (128, 0, 0),
    "mint": (170, 255, 195),
    "olive": (128, 128, 0),
    "coral": (255, 215, 180),
    "navy": (0, 0, 128),
    "grey": (128, 128, 128),
}
"""RGB values by colour name; the first ten colours are the paper's, in its order."""

Feature = tuple[str, tuple[str, ...]]
"""The name of a feature and its values. Value number v has the code v + 1; the code 0 means "nothing"."""

FEATURES: tuple[Feature, ...] = (("shape", LETTERS), ("color", tuple(COLORS)[:10]))

Answer = bool | tuple[int, int] | tuple[str, str]
"""A boolean, a location (x, y), or a value as (feature, value)."""

# Words of the sentence forms: a feature value that equals one of them could not be read back from a sentence.
_RESERVED = {"object", "current", "the", "a", "an", "and", "or", "of", "is"} - set(LETTERS)


@dataclass(frozen=True)
class Operator:
    """One row of the operator table.

    Attributes:
        answer: `boolean`, `location`, or the feature whose value is the answer.
        object_counts: the numbers of objects that the operator accepts, (1,), (2,) or (1, 2).
        named_features: the indices of the features that a question states for each object.
        key: the index of the one feature by which the object is found, if there is one. In clean data, no other
            object on the grid shares its value.
        about: the index of the feature that is asked for or compared.
        quantity, even: what a parity or equality operator computes, and which parity makes it true.
        negated: whether the operator is true if the compared values differ.
    """

    name: str
    code: int
    category: OperatorCategory
    answer: str
    object_counts: tuple[int, ...]
    named_features: tuple[int, ...]
    key: int | None = None
    about: int | None = None
    quantity: Quantity | None = None
    even: bool | None = None
    negated: bool = False

    @property
    def boolean(self) -> bool:
        """Whether the operator answers True or False, so that it may control a conditional."""
        return self.answer == "boolean"


def build_operators(features: Sequence[str]) -> dict[str, Operator]:
    """Return all operators over features of these names, by operator name and in the order of their codes.

    The first two features are shape and colour. An object is found by its shape or, if its shape is in question, by
    its colour. Further features add Get, Is, Same and NotSame operators with codes after the 21 of the specification.

    >>> build_operators(["shape", "color"])["GetColor"].named_features
    (0,)
    >>> build_operators(["shape", "color", "size"])["GetSize"].code
    22
    """
    everything = tuple(range(len(features)))
    single = (1,)
    pair = (2,)
    either = (1, 2)
    operators = [
        Operator("Exist", 1, "exist", "boolean", single, everything),
        Operator("GetLocation", 2, "location", "location", single, everything),
        Operator("SumEven", 5, "parity", "boolean", either, everything, quantity="sum", even=True),
        Operator("ProductEven", 6, "parity", "boolean", either, everything, quantity="product", even=True),
        Operator("ProductOdd", 7, "parity", "boolean", either, everything, quantity="product", even=False),
        Operator("SumOdd", 8, "parity", "boolean", either, everything, quantity="sum", even=False),
        Operator("ExistAnd", 10, "combine", "boolean", pair, everything),
        Operator("ExistOr", 11, "combine", "boolean", pair, everything),
        Operator("ExistXor", 12, "combine", "boolean", pair, everything),
        Operator("AddEqual", 19, "equal", "boolean", either, everything, quantity="sum"),
        Operator("SubtractEqual", 20, "equal", "boolean", either, everything, quantity="sum", negated=True),
        Operator("MultiplyEqual", 21, "equal", "boolean", either, everything, quantity="product"),
    ]
    for about, feature in enumerate(features):
        key = 1 if about == 0 else 0
        both = tuple(sorted((key, about)))
        name = feature.capitalize()
        if about < 2:
            # The specification fixes these codes; colour (1) comes before shape (0) in each pair.
            get = 4 - about
            is_ = 14 - about
            same = 16 - about
            not_same = 18 - about
        else:
            get = 22 + 4 * (about - 2)
            is_ = get + 1
            same = get + 2
            not_same = get + 3
        operators += [
            Operator(f"Get{name}", get, "get", feature, single, (key,), key, about),
            Operator(f"Is{name}", is_, "is", "boolean", single, both, key, about),
            Operator(f"Same{name}", same, "same", "boolean", pair, (key,), key, about),
            Operator(f"NotSame{name}", not_same, "same", "boolean", pair, (key,), key, about, negated=True),
        ]
    operators.sort(key=lambda operator: operator.code)
    return {operator.name: operator for operator in operators}


@dataclass(frozen=True)
class Schema:
    """Features, a grid of columns (x) and rows (y), and the operators in use.

    >>> schema = Schema()
    >>> len(schema.answers), schema.answers[3], schema.answers[127], schema.answers[128]
    (138, (1, 0), ('shape', 'z'), ('color', 'red'))
    >>> schema.cell(3, 4), schema.coordinates(34)
    (34, (3, 4))
    """

    features: tuple[Feature, ...] = FEATURES
    columns: int = 10
    rows: int = 10
    enabled: tuple[str, ...] = STANDARD

    def __post_init__(self) -> None:
        _check_features(self.features)
        if self.columns < 2 or self.rows < 2:
            raise ValueError(f"grid: expected at least 2 columns and 2 rows, got {self.columns} × {self.rows}")
        for name in self.enabled:
            if name not in self.operators:
                raise ValueError(f"unknown operator '{name}'. {nearest(name, self.operators)}")
        if len(set(self.enabled)) != len(self.enabled) or not self.enabled:
            raise ValueError("operators: expected at least one operator and none twice")

    @cached_property
    def operators(self) -> dict[str, Operator]:
        """Every operator over these features by name, enabled or not."""
        return build_operators([name for name, _ in self.features])

    @cached_property
    def by_code(self) -> dict[int, Operator]:
        """Every operator by code."""
        return {operator.code: operator for operator in self.operators.values()}

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The number of values of each feature."""
        return tuple(len(values) for _, values in self.features)

    @cached_property
    def object_count(self) -> int:
        """The number of different objects."""
        return int(np.prod(self.sizes))

    @property
    def cells(self) -> int:
        """The number of cells of the grid."""
        return self.columns * self.rows

    @cached_property
    def highest_code(self) -> int:
        """The highest code among the enabled operators and the conditional."""
        return max([CONDITIONAL, *(self.operators[name].code for name in self.enabled)])

    @cached_property
    def numbers(self) -> bool:
        """Whether a question may contain a number."""
        return any(self.operators[name].category == "equal" for name in self.enabled)

    @cached_property
    def answers(self) -> tuple[Answer, ...]:
        """The answers by class: booleans, locations (x runs fastest), then the values of each feature."""
        answers: list[Answer] = [True, False]
        for y in range(self.rows):
            answers += [(x, y) for x in range(self.columns)]
        for name, values in self.features:
            answers += [(name, value) for value in values]
        return tuple(answers)

    def cell(self, x: Any, y: Any) -> Any:
        """Return the index of a cell among the stimulus tokens, where y runs fastest. Takes numbers or arrays."""
        return x * self.rows + y

    def coordinates(self, cell: Any) -> Any:
        """Return the column x and the row y of a cell index: the inverse of `cell`."""
        return divmod(cell, self.rows)

    def location_answer(self, cell: Any) -> Any:
        """Return the class of a cell as an answer. Here x runs fastest, unlike among the tokens."""
        x, y = self.coordinates(cell)
        return 2 + x + self.columns * y

    def value_answer(self, feature: int, code: Any) -> Any:
        """Return the class of a feature's value from its code."""
        return 2 + self.cells + sum(self.sizes[:feature]) + code - 1

    @cached_property
    def answer_kinds(self) -> np.ndarray[Any, np.dtype[np.str_]]:
        """The kind of each class: `boolean`, `location` or the name of a feature."""
        kinds = ["boolean"] * 2 + ["location"] * self.cells
        for name, values in self.features:
            kinds += [name] * len(values)
        return np.array(kinds)

    def answer_name(self, index: int) -> str:
        """Return the answer of a class as text.

        >>> Schema().answer_name(0), Schema().answer_name(12), Schema().answer_name(137)
        ('True', '(0, 1)', 'brown')
        """
        return format_answer(self.answers[index])


def format_answer(answer: Answer) -> str:
    """Return an answer as text: `True`, `(3, 4)` or the value of a feature."""
    if isinstance(answer, bool):
        return str(answer)
    return answer[1] if isinstance(answer[1], str) else f"({answer[0]}, {answer[1]})"


def _check_features(features: tuple[Feature, ...]) -> None:
    names = [name for name, _ in features]
    if names[:2] != ["shape", "color"] or len(set(names)) != len(names):
        raise ValueError(
            f"features: expected shape, color and then further features, none twice; got {', '.join(names)}"
        )
    # Shapes and colours are drawn in pictures, so only known ones are allowed; further features are only named.
    drawable = {"shape": LETTERS, "color": tuple(COLORS)}
    all_values: set[str] = set()
    for name, values in features:
        if not _is_word(name):
            raise ValueError(f"features: expected names of lower-case ASCII letters, got {', '.join(names)}")
        if not 2 <= len(values) <= 255:
            raise ValueError(f"features: {name} needs 2 to 255 values, got {len(values)}")
        for value in values:
            if name in drawable and value not in drawable[name]:
                raise ValueError(f"features: unknown {name} '{value}'. {nearest(value, drawable[name])}")
            if not _is_word(value) or value in _RESERVED:
                raise ValueError(f"features: expected values of lower-case ASCII letters, got {name} '{value}'")
            if value in all_values:
                raise ValueError(f"features: the value '{value}' occurs twice, but a value must identify its feature")
            all_values.add(value)


def _is_word(text: str) -> bool:
    return text.isascii() and text.isalpha() and text.islower()


@dataclass(frozen=True)
class OperatorArrays:
    """The operator table as arrays that are indexed by operator code, for the generators.

    Attributes:
        key, about: the index of a feature, or −1.
        names: (F, codes), whether a question states this feature.
        optional, pair: whether the operator accepts one or two objects, or always takes two.
        presence: whether the operator is about the presence of objects (Exist and its forms for two objects).
        exist, is_, same, not_same: whether the operator is of this category.
    """

    key: Ints
    about: Ints
    names: Bools
    optional: Bools
    pair: Bools
    exist: Bools
    presence: Bools
    is_: Bools
    same: Bools
    not_same: Bools


@lru_cache(maxsize=32)
def get_operator_arrays(schema: Schema) -> OperatorArrays:
    """Return the operator table of a schema as arrays."""
    length = max(schema.by_code) + 1

    def mark(test: Callable[[Operator], bool]) -> Bools:
        marks = np.zeros(length, np.bool_)
        for code, operator in schema.by_code.items():
            marks[code] = test(operator)
        return marks

    # −1 equals no index of a feature, so an operator without a key matches none.
    key = np.full(length, -1)
    about = np.full(length, -1)
    names = np.zeros((len(schema.features), length), np.bool_)
    for code, operator in schema.by_code.items():
        if operator.key is not None and operator.about is not None:
            key[code] = operator.key
            about[code] = operator.about
        names[list(operator.named_features), code] = True
    return OperatorArrays(
        key=key,
        about=about,
        names=names,
        optional=mark(lambda operator: operator.object_counts == (1, 2)),
        pair=mark(lambda operator: operator.object_counts == (2,)),
        exist=mark(lambda operator: operator.category == "exist"),
        presence=mark(lambda operator: operator.category in ("exist", "combine")),
        is_=mark(lambda operator: operator.category == "is"),
        same=mark(lambda operator: operator.category == "same"),
        not_same=mark(lambda operator: operator.category == "same" and operator.negated),
    )


PresetName = Literal["clean", "released"]
HoldOut = Literal["clean", "released", "released-minus-leak"]
"""How `gcog/systematic-operators` divides the objects of each operator between training and test."""
Ties = Literal["error", "smallest"]
"""If several objects match: refuse the question, or take the one with the smallest (x, y), as the release does."""


@dataclass(frozen=True)
class GcogPreset:
    """The differences between the presets apart from their generators.

    - `distractors`: the lowest and the highest number of distractors in training;
    - `mixed_distractors`: the same if a split mixes questions of several depths;
    - `two_objects`: how often a parity operator of a tree is about two objects;
    - `hold_out`: how operators and objects are divided between training and test;
    - `masked`: whether a mask marks padding, which is otherwise only zeros;
    - `unnamed_code`: the code of a feature that a question does not state;
    - `ties`: which object counts if several match.
    """

    distractors: tuple[int, int]
    mixed_distractors: tuple[int, int]
    two_objects: float
    hold_out: HoldOut
    masked: bool
    unnamed_code: int
    ties: Ties


PRESETS: dict[PresetName, GcogPreset] = {
    "clean": GcogPreset((1, 5), (1, 5), 0.0, "clean", True, 0, "error"),
    # The released code forgets the distractors if it joins depths, and writes 1, which also means a or red, for an
    # unnamed feature.
    "released": GcogPreset((0, 5), (0, 0), 0.5, "released", False, 1, "smallest"),
}
