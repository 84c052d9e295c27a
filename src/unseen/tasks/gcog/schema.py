"""What a question may be about: features, grid, operators and answers. Everything else is derived from it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from unseen.errors import UsageError, nearest
from unseen.tasks.gcog.operators import CONDITIONAL, STANDARD, Operator, operator_table

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
    # Named in the release for extensions; the values of those it does not give are ours.
    "magenta": (240, 50, 230),
    "lime": (210, 245, 60),
    "teal": (0, 128, 128),
    "lavender": (220, 190, 255),
    "beige": (255, 250, 200),
    "maroon": (128, 0, 0),
    "mint": (170, 255, 195),
    "olive": (128, 128, 0),
    "coral": (255, 127, 80),
    "navy": (0, 0, 128),
    "grey": (128, 128, 128),
}
"""Red, green and blue of each colour; the first ten are the paper's, in its order."""

Feature = tuple[str, tuple[str, ...]]
"""A kind of feature and its values; value number v has the code v + 1, and 0 means nothing."""

FEATURES: tuple[Feature, ...] = (("shape", LETTERS), ("color", tuple(COLORS)[:10]))

Answer = bool | tuple[int, int] | tuple[str, str]
"""A boolean, a location (x, y), or the value of a feature, as (feature, value)."""

_RESERVED = {"object", "current", "the", "a", "an", "and", "or", "of", "is"} - set(LETTERS)


@dataclass(frozen=True)
class Schema:
    """Features, a grid of columns (x) and rows (y), and the operators in use.

    >>> schema = Schema()
    >>> len(schema.answers), schema.answers[3], schema.answers[127], schema.answers[128]
    (138, (1, 0), ('shape', 'z'), ('color', 'red'))
    >>> schema.cell(3, 4), schema.place(34)
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
            raise ValueError("operators: expected at least one, each named once")

    @cached_property
    def operators(self) -> dict[str, Operator]:
        """Every operator over these features by name, in use or not."""
        return operator_table([name for name, _ in self.features])

    @cached_property
    def by_code(self) -> dict[int, Operator]:
        """Every operator by code."""
        return {operator.code: operator for operator in self.operators.values()}

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """How many values each feature has."""
        return tuple(len(values) for _, values in self.features)

    @property
    def cells(self) -> int:
        """How many cells the grid has."""
        return self.columns * self.rows

    @cached_property
    def highest_code(self) -> int:
        """The highest code of an operator in use or of the conditional."""
        return max([CONDITIONAL, *(self.operators[name].code for name in self.enabled)])

    @cached_property
    def numbers(self) -> bool:
        """Whether some question may name a number."""
        return any(self.operators[name].kind == "equal" for name in self.enabled)

    @cached_property
    def answers(self) -> tuple[Answer, ...]:
        """The answers in the order of their classes: booleans, locations (x runs fastest), values of each feature."""
        places = [(x, y) for y in range(self.rows) for x in range(self.columns)]
        values = [(name, value) for name, each in self.features for value in each]
        return (True, False, *places, *values)

    def cell(self, x: Any, y: Any) -> Any:
        """The number of a cell among the stimulus tokens: y runs fastest. Takes numbers and arrays."""
        return x * self.rows + y

    def place(self, cell: Any) -> Any:
        """The column x and the row y of a cell: the inverse of `cell`."""
        return divmod(cell, self.rows)

    def location_answer(self, cell: Any) -> Any:
        """The class of a cell as an answer: x runs fastest, unlike among the tokens."""
        x, y = self.place(cell)
        return 2 + x + self.columns * y

    def value_answer(self, feature: int, code: Any) -> Any:
        """The class of a feature's value, given its code."""
        return 2 + self.cells + sum(self.sizes[:feature]) + code - 1

    @cached_property
    def answer_kinds(self) -> np.ndarray[Any, np.dtype[np.str_]]:
        """The kind of each answer: `boolean`, `location` or the name of a feature."""
        return np.array(
            ["boolean"] * 2 + ["location"] * self.cells + [name for name, values in self.features for _ in values]
        )

    def answer_name(self, index: int) -> str:
        """An answer in words.

        >>> Schema().answer_name(0), Schema().answer_name(12), Schema().answer_name(137)
        ('True', '(0, 1)', 'brown')
        """
        answer = self.answers[index]
        if isinstance(answer, bool):
            return str(answer)
        return answer[1] if isinstance(answer[1], str) else f"({answer[0]}, {answer[1]})"

    def code(self, feature: int, value: str) -> int:
        """The code of a feature's value."""
        name, values = self.features[feature]
        if value not in values:
            raise UsageError(f"unknown {name} '{value}'. {nearest(value, values)}")
        return values.index(value) + 1


def _check_features(features: tuple[Feature, ...]) -> None:
    names = [name for name, _ in features]
    if names[:2] != ["shape", "color"] or len(set(names)) != len(names):
        raise ValueError(f"features: expected shape, color and then further ones, each once; got {', '.join(names)}")
    known = {"shape": LETTERS, "color": tuple(COLORS)}
    for name, values in features:
        if not 2 <= len(values) <= 255:
            raise ValueError(f"features: {name} needs 2 … 255 values, got {len(values)}")
        for value in values:
            if name in known and value not in known[name]:
                raise ValueError(f"features: unknown {name} '{value}'. {nearest(value, known[name])}")
            if not (value.isascii() and value.isalpha() and value.islower()) or value in _RESERVED:
                raise ValueError(f"features: a value is a word of small letters; got {name} '{value}'")
    if not all(name.isascii() and name.isalpha() and name.islower() for name in names):
        raise ValueError(f"features: a name is a word of small letters; got {', '.join(names)}")
    words = [value for _, values in features for value in values]
    if len(set(words)) != len(words):
        twice = next(word for word in words if words.count(word) > 1)
        raise ValueError(f"features: the value '{twice}' occurs twice; a value must tell its feature")
