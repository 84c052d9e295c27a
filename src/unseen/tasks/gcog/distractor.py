"""Distractor generalization: more objects on the grid than in training."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from pydantic import Field as Option

from unseen.tasks.base import Condition
from unseen.tasks.gcog.task import IID, TRAIN, Count, Gcog, Setting

_SHIFT = "nothing is unseen, only their number shifts"


class Distractor(Gcog):
    """Single operators among 1 … 5 distractors; tested among more, up to 40 and beyond."""

    name: Literal["gcog/distractor"] = "gcog/distractor"
    ood_distractors: tuple[Count, ...] = Option(
        (10, 20, 30, 40), description="how many there are in the tests; those count that are more than in training"
    )

    def _settings(self) -> Sequence[Setting]:
        low, high = self._distractors
        found = [Setting(TRAIN, (self._plan(1),)), Setting(IID, (self._plan(1),))]
        for n in dict.fromkeys((min(max(low, 1), high), high)):
            found.append(self._setting(f"iid/distractors={n}", (n, n), "as many as in some of the training data"))
        more_than_trained = [n for n in self.ood_distractors if n > high]
        for n in more_than_trained:
            found.append(self._setting(f"ood/distractors={n}", (n, n), _SHIFT))
        most = max(more_than_trained, default=0)
        more = min(most + 10, self._room)
        if 0 < most < more:  # where the paper compares representations
            found.append(self._setting(f"ood/distractors={most}-{more}", (most, more), _SHIFT))
        return found

    @property
    def _room(self) -> int:
        """How many distractors fit beside one object: in cells, and where a value of a feature is its alone."""
        objects = math.prod(self.domain.sizes)
        return min(self.domain.cells - 1, *(objects - objects // size for size in self.domain.sizes))

    def _setting(self, name: str, distractors: tuple[int, int], what: str) -> Setting:
        many = " to ".join(str(n) for n in dict.fromkeys(distractors))
        return Setting(Condition(name, f"{many} distractors: {what}"), (self._plan(1, distractors),))
