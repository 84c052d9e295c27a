"""rules/rnn: a state that each token moves by the matrices of its rule."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import ClassVar, Literal, Self

import numpy as np
from pydantic import Field as Option
from pydantic import model_validator

from unseen.randomness import Draws, Floats, stream
from unseen.spec import Spec, Stream
from unseen.tasks.base import Array, Examples
from unseen.tasks.rules.baselines import read_out_ceilings, state_ceilings
from unseen.tasks.rules.labels import Kind
from unseen.tasks.rules.parameters import Matrices, Process, Spread, task_parameters
from unseen.tasks.rules.pictures import picture_rnn
from unseen.tasks.rules.presets import Answer
from unseen.tasks.rules.prior import draw_rules
from unseen.tasks.rules.shift import Shift
from unseen.tasks.rules.solver import solve_rnn
from unseen.tasks.rules.task import Rules
from unseen.tasks.rules.views import describe_rnn


class RulesRnn(Rules):
    """A state starts at 0, and a token with numbers x and rule c turns s into s · A[c] + x · B[c] (row vectors).

    Classification asks at every token whether s · w ≥ 0, regression for the state or (`target` readout) for s · w.
    With one number, two rules, A = (½, 1), B = (1, 1) and w = −1:

        x = 4, rule 1     s = 0 · 1 + 4 = 4     → s · w = −4, class 0
        x = 1, rule 0     s = 4 · ½ + 1 = 3     → s · w = −3, class 0
        x = 0, rule 1     s = 3 · 1 + 0 = 3     → s · w = −3, class 0

    Entries of A and B have the standard deviation 1/√`dimension`. With `spread` variance that is their variance, the
    paper to the letter, and states grow without bounds. `order` k carries the last k states, not only the last.
    """

    process: ClassVar[Process] = "rnn"

    name: Literal["rules/rnn"] = "rules/rnn"
    length: int = Option(10, ge=1, description="tokens of a training example")
    target: Answer | None = Option(
        None, description="regression: asks for the state or for its read-out; None: as the preset says"
    )
    order: int = Option(1, ge=1, description="how many of the last states are carried over")
    dimension: int = Option(32, ge=1, description="numbers of a token, and of the state")
    spread: Spread = Option(
        "deviation",
        description="what 1/√dimension is of the entries of A and B: their standard deviation, or their variance",
    )

    @model_validator(mode="after")
    def _check_target(self) -> Self:
        if self.target is not None and self.setting == "classification":
            raise ValueError("target belongs to setting regression; classification reads the state out")
        return self

    @property
    def tokens(self) -> int:
        return self.length

    @property
    def kind(self) -> Kind:
        return "readout" if self.setting == "regression" and self.choices.target == "readout" else self.setting

    @cached_property
    def parameters(self) -> Matrices:
        return task_parameters(
            "rnn", self.rules, self.task_seed, dimension=self.dimension, order=self.order, spread=self.spread
        )

    @cached_property
    def spec(self) -> Spec:
        outputs = self.dimension if self.kind == "regression" else 1
        return self.make_spec("x", self.dimension, Stream("tokens", self.length), outputs)

    def draw(self, shift: Shift, draws: Draws) -> Array:
        x = draws.normal((self.block, shift.length, self.dimension), np.float32)
        if shift.amplitude != 1:
            x *= np.float32(shift.amplitude)
        return x

    def answers(self, numbers: Array, rule: Array) -> Floats:
        carry, take, read = self.parameters.A, self.parameters.B, self.parameters.w
        pairs = zip(numbers.astype(np.float64), rule.tolist(), strict=True)
        states = np.array([solve_rnn(carry, take, x, r) for x, r in pairs]).reshape(*rule.shape, self.dimension)
        return states if self.kind == "regression" else states @ read

    def mean_size(self, condition: str) -> float:
        return float(np.abs(self._test_targets(condition)).mean())

    def ceilings(self, condition: str) -> Mapping[str, float]:
        shift = self.shift(condition)
        pi = self.prior_of(shift)
        if self.setting == "classification":
            draws = stream("ceilings", self.process, self.rules, shift.length).block()
            return read_out_ceilings(self.parameters, draw_rules(pi, (_SEQUENCES, shift.length), draws))
        variance = float((self._test_targets(condition).astype(np.float64) ** 2).mean(axis=(0, 1)).sum())
        return state_ceilings(self.parameters, pi, shift.length, variance / shift.amplitude**2, self.kind == "readout")

    def _test_targets(self, condition: str) -> Array:
        """How large states get has no closed form; it is measured on test data."""
        return self.sample(condition, _MEASURED, data_seed="test").targets

    def describe(self, examples: Examples, index: int) -> str:
        return describe_rnn(self.name, self.parameters, examples, index, self.kind)

    def picture(self, examples: Examples, index: int) -> str:
        return picture_rnn(self.name, self.parameters, examples, index)


_SEQUENCES = 100
"""Examples of rules that ceilings are worked out from."""
_MEASURED = 4096
"""Test examples on which answers are measured."""
