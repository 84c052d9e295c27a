"""rules/mha: each token looks up two values in other tokens, by its rule, and adds them up."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field as Option

from unseen.randomness import Draws, Floats
from unseen.spec import Spec, Stream
from unseen.tasks.base import Array, Examples
from unseen.tasks.rules.baselines import sum_ceilings, zero_loss
from unseen.tasks.rules.parameters import Coefficients, Process, task_parameters
from unseen.tasks.rules.pictures import picture_mha
from unseen.tasks.rules.shift import Shift
from unseen.tasks.rules.solver import solve_mha
from unseen.tasks.rules.task import Rules
from unseen.tasks.rules.views import describe_mha


class RulesMha(Rules):
    """Every token has, for every rule, two queries q, q′ and two values v, v′, and one rule c that counts for it.

    Among the *other* tokens one is nearest by q of rule c, and one by q′: y = alpha[c] · v of the first + beta[c] · v′
    of the second. With one rule, alpha = 1 and beta = 2:

        token 0: q = 0.0, q′ = 0.0, v =  1, v′ =  2     → y = 1 · 10 + 2 · 7 = 24
        token 1: q = 0.1, q′ = 5.0, v = 10, v′ = 20     → y = 1 · 1 + 2 · 7 = 15
        token 2: q = 3.0, q′ = 0.2, v =  6, v′ =  7     → y = 1 · 10 + 2 · 2 = 14

    In `search` 1 queries are numbers; in `search` 2 they are points of the unit circle, of the circle of that `radius`
    out of distribution, and the nearest is that at the smallest angle. There the preset `paper` takes its formula to
    the letter: the token with the least product is found, which is the farthest (`nearest` says so too).
    """

    process: ClassVar[Process] = "mha"

    name: Literal["rules/mha"] = "rules/mha"
    length: int = Option(10, ge=2, description="tokens of a training example")
    search: Literal[1, 2] = Option(1, description="queries are numbers (1), or points of the unit circle (2)")
    radius: float = Option(2.0, gt=0, description="search 2: the circle that points lie on out of distribution")
    nearest: bool | None = Option(
        None, description="search 2: finds the nearest token, or that with the least product; None: as the preset says"
    )

    @property
    def tokens(self) -> int:
        return self.length

    @cached_property
    def parameters(self) -> Coefficients:
        return task_parameters("mha", self.rules, self.task_seed)

    @cached_property
    def spec(self) -> Spec:
        return self.make_spec("features", self._wide * self.rules, Stream("tokens", self.length, "set"))

    @property
    def _wide(self) -> int:
        """Numbers of one rule in a token: its queries, then its values."""
        return 2 + 2 * self.search

    def draw(self, shift: Shift, draws: Draws) -> Array:
        features = draws.normal((self.block, shift.length, self.rules, self._wide), np.float32)
        scale = np.full(self._wide, shift.amplitude, np.float32)
        if self.search == 2:
            points = features[..., :4].reshape(*features.shape[:3], 2, 2)  # a view: q and q′
            points /= np.sqrt((points * points).sum(axis=-1, keepdims=True))
            scale[:4] = 1 if shift.amplitude == 1 else self.radius
        if (scale != 1).any():
            features *= scale
        return features

    def answers(self, numbers: Array, rule: Array) -> Floats:
        alpha, beta = self.parameters.alpha.tolist(), self.parameters.beta.tolist()
        tokens = numbers.reshape(*rule.shape, self.rules, self._wide).tolist()
        pairs = zip(tokens, rule.tolist(), strict=True)
        return np.array([solve_mha(alpha, beta, t, r, self.choices.nearest) for t, r in pairs]).reshape(rule.shape)

    def mean_size(self, condition: str) -> float:
        shift = self.shift(condition)
        return shift.amplitude * zero_loss(self.parameters, self.prior_of(shift))

    def ceilings(self, condition: str) -> Mapping[str, float]:
        shift = self.shift(condition)
        return sum_ceilings(self.parameters, self.prior_of(shift), shift.length, self.setting == "classification")

    def describe(self, examples: Examples, index: int) -> str:
        return describe_mha(self.name, self.parameters, examples, index, self.choices.nearest)

    def picture(self, examples: Examples, index: int) -> str:
        return picture_mha(self.name, self.parameters, examples, index, self.choices.nearest)
