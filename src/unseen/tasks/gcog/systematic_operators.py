"""Systematic generalization, single operators: every operator meets objects that it was not trained with."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Literal, Self

from pydantic import Field as Option
from pydantic import model_validator

from unseen.tasks.base import Artefact, Condition
from unseen.tasks.gcog.artefacts import leaked
from unseen.tasks.gcog.plan import Plan, allowed_numbers
from unseen.tasks.gcog.presets import PRESETS, SplitName
from unseen.tasks.gcog.splits import Combination, Side, combinations, instructions, objects_of
from unseen.tasks.gcog.task import IID, Gcog, Setting, check_standard


class SystematicOperators(Gcog):
    """Single operators, each trained with some objects and tested with others.

    In the `split` clean every colour and every letter is trained with every operator that names both, but only in half
    of their combinations. Like released-minus-leak it shares no combination of operator and object between training and
    test; released, the published one, shares half of them.
    """

    name: Literal["gcog/systematic-operators"] = "gcog/systematic-operators"
    split: SplitName | None = Option(
        None, description="how objects are divided among training and test; None: as the preset says"
    )

    @model_validator(mode="after")
    def _check_options(self) -> Self:
        check_standard(self)
        if self.two_objects:
            raise ValueError("two_objects: a combination is one operator and one object; leave it away")
        return self

    @property
    def _split(self) -> SplitName:
        return PRESETS[self.preset].split if self.split is None else self.split

    @property
    def _sizes(self) -> tuple[int, ...]:
        """How many values of each feature questions are about."""
        shapes, *others = self.domain.sizes
        return self.task_shapes or shapes, *others

    def combinations(self, side: Side) -> set[Combination]:
        """The pairs of operator and object, the latter as numbers of its values, in training or in test."""
        return combinations(self._sizes, self._split, side)

    def _settings(self) -> Sequence[Setting]:
        trained, tested = self.combinations("train"), self.combinations("test")
        both = len(trained & tested)
        unseen = () if both else ("operator", "object")
        what = f"{both} of them training combinations" if both else "none of them trained"
        train = Condition("train", f"training data: {len(trained)} combinations of operator and object")
        test = Condition("ood/operators", f"{len(tested)} combinations of operator and object, {what}", unseen)
        return [
            Setting(train, (self._restricted("train"),)),
            Setting(IID, (self._restricted("train"),)),
            Setting(test, (self._restricted("test"),)),
        ]

    def _restricted(self, side: Side) -> Plan:
        hidden = self.preset == "released"  # there the feature that is asked for is divided, too
        objects = objects_of(self._sizes, self._split, side)
        return self._plan(
            1, named=tuple((name, allowed_numbers(self.domain, name, each, hidden)) for name, each in objects.items())
        )

    def artefacts(self, condition: str) -> Sequence[Artefact]:
        usual = super().artefacts(condition)
        if condition != "ood/operators":
            return usual
        trained, tested = self.combinations("train"), self.combinations("test")
        seen, asked = (instructions(self.domain, found) for found in (trained, tested))
        leak = Artefact(
            "leak",
            "share of questions whose operator was trained with what it names "
            f"({len(trained & tested)} of {len(tested)} combinations, {len(seen & asked)} of {len(asked)} "
            "instructions)",
            partial(leaked, seen),
            0.0,
            0.0,
            self._split == "released",
        )
        return [*usual, leak]
