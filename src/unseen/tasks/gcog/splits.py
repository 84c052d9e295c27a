"""Which operators meet which objects, and which operators meet each other, in training and in test."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import product
from typing import Literal

from unseen.tasks.gcog.plan import Group
from unseen.tasks.gcog.presets import SplitName
from unseen.tasks.gcog.records import operator_count
from unseen.tasks.gcog.schema import Schema

Side = Literal["train", "test"]
Objects = tuple[tuple[int, ...], ...]
"""Objects as numbers of their values, feature by feature."""
Combination = tuple[str, tuple[int, ...]]
"""An operator and an object."""

OPERATORS_A = ("Exist", "SumEven", "ProductEven", "GetShape")
OPERATORS_B = ("SumOdd", "ProductOdd", "GetLocation", "GetColor")

ROOTS_A, ROOTS_B = ("Exist", "SumEven", "ProductEven"), ("SumOdd", "ProductOdd")
LEAVES_A = ("SumEven", "ProductEven", "GetColor", "GetShape")
LEAVES_B = ("Exist", "SumOdd", "ProductOdd", "GetLocation")

TREE_GROUPS: dict[str, tuple[Group, ...]] = {
    "train": ((ROOTS_A, LEAVES_A, LEAVES_A), (ROOTS_B, LEAVES_B, LEAVES_B)),
    "test": ((ROOTS_A, LEAVES_B, LEAVES_B), (ROOTS_B, LEAVES_A, LEAVES_A)),
    "mixed-leaves": ((ROOTS_A + ROOTS_B, LEAVES_A, LEAVES_B), (ROOTS_A + ROOTS_B, LEAVES_B, LEAVES_A)),
}


def all_operators(schema: Schema, depth: int) -> tuple[Group, ...]:
    """Booleans above conditionals, any operator at the leaves."""
    inner = tuple(name for name in schema.enabled if schema.operators[name].boolean)
    if depth > 1 and not inner:
        raise ValueError(f"operators: a question of depth {depth} needs a boolean one, such as Exist")
    nodes = operator_count(depth)
    return (tuple([inner] * (nodes // 2) + [schema.enabled] * (nodes - nodes // 2)),)


@lru_cache(maxsize=32)
def objects_of(sizes: tuple[int, ...], split: SplitName, side: Side) -> Mapping[str, Objects]:
    """The objects that each operator is about, of features with so many values.

    `released`: the first half of the colours with all shapes, and all colours with the second half of the shapes; the
    two overlap in a quarter of all objects. `released-minus-leak` tests only what is outside the overlap. `clean`: a
    checkerboard of halves, with every colour and every shape on both sides; an operator that names one feature only is
    divided by that feature.
    """
    everything = tuple(product(*map(range, sizes)))

    def late(values: tuple[int, ...], feature: int) -> bool:
        return 2 * values[feature] >= sizes[feature]

    early_colors = tuple(v for v in everything if not late(v, 1))
    late_colors = tuple(v for v in everything if late(v, 1))
    early_shapes = tuple(v for v in everything if not late(v, 0))
    late_shapes = tuple(v for v in everything if late(v, 0))
    training = side == "train"
    if split == "clean":
        even = tuple(v for v in everything if late(v, 0) == late(v, 1))
        odd = tuple(v for v in everything if late(v, 0) != late(v, 1))
        first, second = (even, odd) if training else (odd, even)
        found = dict.fromkeys(OPERATORS_A, first) | dict.fromkeys(OPERATORS_B, second)
        found["GetShape"] = early_colors if training else late_colors
        found["GetColor"] = late_shapes if training else early_shapes
        return found
    first, second = (early_colors, late_shapes) if training else (late_shapes, early_colors)
    if split == "released-minus-leak" and not training:
        shared = set(first) & set(second)
        first, second = (tuple(v for v in group if v not in shared) for group in (first, second))
    return dict.fromkeys(OPERATORS_A, first) | dict.fromkeys(OPERATORS_B, second)


def combinations(sizes: tuple[int, ...], split: SplitName, side: Side) -> set[Combination]:
    """The pairs of operator and object on one side of a split."""
    return {(name, values) for name, objects in objects_of(sizes, split, side).items() for values in objects}


def instructions(schema: Schema, found: Iterable[Combination]) -> set[Combination]:
    """The pairs of operator and what it names, as codes; 0 for a feature that is not named."""
    return {
        (name, tuple(v + 1 if f in schema.operators[name].named else 0 for f, v in enumerate(values)))
        for name, values in found
    }
