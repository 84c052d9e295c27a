"""Productive generalization: deeper trees than in training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field as Option
from pydantic import field_validator

from unseen.tasks.base import Condition
from unseen.tasks.gcog.task import IID, Gcog, Setting

Depth = Annotated[int, Option(ge=1, le=99)]


class Productive(Gcog):
    """Trees of some depths, equally frequent; tested on deeper ones, as long as the grid has cells for them."""

    name: Literal["gcog/productive"] = "gcog/productive"
    train_depths: tuple[Depth, ...] = Option((1, 3), description="depths of the training questions, equally frequent")
    depths: tuple[Depth, ...] = Option((1, 3, 5, 7), description="depths that are tested")

    @field_validator("train_depths", "depths", mode="before")
    @classmethod
    def _listed(cls, value: object) -> object:
        """Depths may be written "1,3" or, if it is one, 1."""
        if isinstance(value, str):
            return tuple(part.strip() for part in value.split(","))
        return (value,) if isinstance(value, int) else value

    @field_validator("train_depths", "depths")
    @classmethod
    def _odd(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if not value or any(depth % 2 == 0 for depth in value) or list(value) != sorted(set(value)):
            raise ValueError("expected different odd numbers in order, such as 1,3")
        return value

    def _settings(self) -> Sequence[Setting]:
        several = len(self.train_depths) > 1
        train = tuple(self._plan(depth, self._mixed_distractors if several else None) for depth in self.train_depths)
        depths = " and ".join(map(str, self.train_depths))
        found = [Setting(Condition("train", f"training data: questions of depth {depths}"), train), Setting(IID, train)]
        for depth in sorted({*self.train_depths, *self.depths}):
            if depth not in self.train_depths:
                condition = Condition(f"ood/depth={depth}", f"questions of depth {depth}, never trained", ("depth",))
            elif several:
                condition = Condition(f"iid/depth={depth}", f"fresh questions of depth {depth}")
            else:
                continue  # that is `iid`
            trained = depth in self.train_depths  # as there, which preset released fills with fewer distractors
            found.append(Setting(condition, (self._plan(depth, self._mixed_distractors if trained else None),)))
        return found
