"""rules/mlp: a weighted sum of two numbers, with the weights of a rule."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from unseen.randomness import Draws, Floats
from unseen.spec import Spec
from unseen.tasks.base import Array, Examples
from unseen.tasks.rules.baselines import sum_ceilings, zero_loss
from unseen.tasks.rules.parameters import Coefficients, Process, task_parameters
from unseen.tasks.rules.pictures import picture_mlp
from unseen.tasks.rules.shift import Shift
from unseen.tasks.rules.solver import solve_mlp
from unseen.tasks.rules.task import Rules
from unseen.tasks.rules.views import describe_mlp


class RulesMlp(Rules):
    """y = alpha[c] · x1 + beta[c] · x2. With two rules, alpha = (1, 2) and beta = (0.5, −1):

    x = (1, 4), rule 0     → y = 3, class 1
    x = (1, 4), rule 1     → y = −2, class 0
    x = (2, 8), rule 1     → y = −4, class 0 (twice the amplitude: twice the number, the same class)
    """

    process: ClassVar[Process] = "mlp"

    name: Literal["rules/mlp"] = "rules/mlp"

    @cached_property
    def parameters(self) -> Coefficients:
        return task_parameters("mlp", self.rules, self.task_seed)

    @cached_property
    def spec(self) -> Spec:
        return self.make_spec("x", 2, None)

    def draw(self, shift: Shift, draws: Draws) -> Array:
        return draws.normal((self.block, 2), np.float32) * np.float32(shift.amplitude)

    def answers(self, numbers: Array, rule: Array) -> Floats:
        alpha, beta = self.parameters.alpha.tolist(), self.parameters.beta.tolist()
        pairs = zip(numbers.tolist(), rule.tolist(), strict=True)
        return np.array([solve_mlp(alpha, beta, x, r) for x, r in pairs], np.float64)

    def mean_size(self, condition: str) -> float:
        shift = self.shift(condition)
        return shift.amplitude * zero_loss(self.parameters, self.prior_of(shift))

    def ceilings(self, condition: str) -> Mapping[str, float]:
        pi = self.prior_of(self.shift(condition))
        return sum_ceilings(self.parameters, pi, 0, self.setting == "classification")

    def describe(self, examples: Examples, index: int) -> str:
        return describe_mlp(self.name, self.parameters, examples, index)

    def picture(self, examples: Examples, index: int) -> str:
        return picture_mlp(self.name, self.parameters, examples, index)
