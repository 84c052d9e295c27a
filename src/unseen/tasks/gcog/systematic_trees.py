"""Systematic generalization, trees: operators that were not trained together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Self

from pydantic import model_validator

from unseen.tasks.base import Condition
from unseen.tasks.gcog.splits import TREE_GROUPS
from unseen.tasks.gcog.task import IID, Gcog, Setting, check_standard


class SystematicTrees(Gcog):
    """Single operators and trees of three, in which a boolean one chooses one of two others; some are never trained.

    In training the booleans Exist, SumEven and ProductEven choose between questions of one group (SumEven, ProductEven,
    GetColor, GetShape), SumOdd and ProductOdd between those of another (Exist, SumOdd, ProductOdd, GetLocation). Tests
    exchange the two groups, or take one question from each.
    """

    name: Literal["gcog/systematic-trees"] = "gcog/systematic-trees"

    @model_validator(mode="after")
    def _check_options(self) -> Self:
        check_standard(self)
        return self

    def _settings(self) -> Sequence[Setting]:
        mixed, triple = self._mixed_distractors, ("operators",)
        train = (self._plan(1, mixed), self._plan(3, mixed, TREE_GROUPS["train"]))
        trees = {name: (self._plan(3, groups=groups),) for name, groups in TREE_GROUPS.items() if name != "train"}
        return [
            Setting(Condition("train", "training data: single operators, and 80 triples of operators in trees"), train),
            Setting(IID, train),
            Setting(Condition("iid/depth=3", "fresh trees of the 80 training triples"), train[1:]),
            Setting(
                Condition("ood/trees", "trees of 80 other triples: roots and leaves change partners", triple),
                trees["test"],
            ),
            Setting(
                Condition("ood/mixed-leaves", "trees whose two leaves come from different groups", triple),
                trees["mixed-leaves"],
            ),
        ]
