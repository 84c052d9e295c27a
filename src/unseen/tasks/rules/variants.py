"""The three rules tasks: on a pair of numbers (mlp), on a set of tokens (mha), on a sequence (rnn)."""

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
from unseen.tasks.rules.audit import read_out_ceilings, state_ceilings, sum_ceilings, zero_loss
from unseen.tasks.rules.generate import (
    AnswerKind,
    Coefficients,
    Matrices,
    Process,
    Spread,
    rnn_readouts,
    task_parameters,
)
from unseen.tasks.rules.noise import state_scales
from unseen.tasks.rules.render import describe_mha, describe_mlp, describe_rnn, picture_mha, picture_mlp, picture_rnn
from unseen.tasks.rules.solver import classify, find_tokens, solve_mha, solve_mlp, solve_rnn
from unseen.tasks.rules.task import NOISY, RegressionTarget, Rules, Shift, draw_rules
from unseen.tasks.rules.variables import list_looked_up, list_signs
from unseen.tasks.variables import NONE, Variables, split_name

_SEQUENCES = 100
"""Sequences of rules from which ceilings are computed."""
_MEASURED = 4096
"""Test examples on which the size of the answers is measured."""


class _SumRules(Rules):
    # What rules/mlp and rules/mha share. (No docstring, because data cards show those of all classes of a task.)

    @cached_property
    def parameters(self) -> Coefficients:
        assert self.process != "rnn"
        return task_parameters(self.process, self.rules, self.task_seed)

    @cached_property
    def answer_scales(self) -> Floats:
        scales: Floats = np.hypot(self.parameters.alpha, self.parameters.beta)
        return scales

    def mean_size(self, split: str) -> float:
        shift = self.shift(split)
        return shift.amplitude * zero_loss(self.parameters, self.prior_of(shift))

    def clean_ceilings(self, split: str) -> Mapping[str, float]:
        shift = self.shift(split)
        return sum_ceilings(self.parameters, self.prior_of(shift), shift.length, self.setting == "classification")


class RulesMlp(_SumRules):
    """rules/mlp: y = alpha[c] · x1 + beta[c] · x2. With two rules, alpha = (1, 2) and beta = (0.5, −1):

        x = (1, 4), rule 0     → y = 3, class 1
        x = (1, 4), rule 1     → y = −2, class 0
        x = (2, 8), rule 1     → y = −4, class 0 (twice the amplitude: twice the number, the same class)
        x = (1, 2), rule 1     → y = 0, class 1 (the edge case: a number of exactly 0 is in class 1)

    >>> cases = ((1, 4), 0), ((1, 4), 1), ((2, 8), 1), ((1, 2), 1)
    >>> [solve_mlp([1.0, 2.0], [0.5, -1.0], x, rule) for x, rule in cases]
    [3.0, -2.0, -4.0, 0.0]
    """

    process: ClassVar[Process] = "mlp"

    name: Literal["rules/mlp"] = "rules/mlp"

    @cached_property
    def spec(self) -> Spec:
        return self.make_spec("x", 2, None)

    def draw(self, shift: Shift, draws: Draws) -> Array:
        return draws.normal((self.block, 2), np.float32) * np.float32(shift.amplitude)

    def answers(self, numbers: Array, rule: Array) -> Floats:
        alpha = self.parameters.alpha.tolist()
        beta = self.parameters.beta.tolist()
        pairs = zip(numbers.tolist(), rule.tolist(), strict=True)
        return np.array([solve_mlp(alpha, beta, x, r) for x, r in pairs], np.float64)

    def describe(self, examples: Examples, index: int) -> str:
        return describe_mlp(self.name, self.parameters, examples, index)

    def picture(self, examples: Examples, index: int) -> str:
        return picture_mlp(self.name, self.parameters, examples, index)


class RulesMha(_SumRules):
    """rules/mha: every token has, for every rule, two queries q, q′ and two values v, v′, and one rule c that counts
    for it.

    Among the *other* tokens, one is nearest by q of rule c and one is nearest by q′ (in a tie, the first): y = alpha[c]
    · v of the first + beta[c] · v′ of the second. With one rule, alpha = 1 and beta = 2:

        token 0: q = 0.0, q′ = 0.0, v =  1, v′ =  2     → y = 1 · 10 + 2 · 7 = 24
        token 1: q = 0.1, q′ = 5.0, v = 10, v′ = 20     → y = 1 · 1 + 2 · 7 = 15
        token 2: q = 3.0, q′ = 0.2, v =  6, v′ =  7     → y = 1 · 10 + 2 · 2 = 14

    >>> tokens = [[[0.0, 0.0, 1.0, 2.0]], [[0.1, 5.0, 10.0, 20.0]], [[3.0, 0.2, 6.0, 7.0]]]
    >>> solve_mha([1.0], [2.0], tokens, [0, 0, 0])
    [24.0, 15.0, 14.0]

    In `search` 1 queries are numbers. In `search` 2 they are points on the unit circle (out of distribution, on a circle
    of this `radius`), and the nearest token is the one at the smallest angle. The edge case: with the preset `paper`
    (or `nearest` false), search 2 follows the paper's formula to the letter and finds the token with the least product,
    which is the farthest one.
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
    def spec(self) -> Spec:
        return self.make_spec("features", self._block_width * self.rules, Stream("tokens", self.length, "set"))

    @property
    def _block_width(self) -> int:
        """The number of numbers that a token has for one rule: its queries, then its values."""
        return 2 + 2 * self.search

    def draw(self, shift: Shift, draws: Draws) -> Array:
        features = draws.normal((self.block, shift.length, self.rules, self._block_width), np.float32)
        scale = np.full(self._block_width, shift.amplitude, np.float32)
        if self.search == 2:
            points = features[..., :4].reshape(*features.shape[:3], 2, 2)  # a view, changed in place: q and q′
            points /= np.sqrt((points * points).sum(axis=-1, keepdims=True))
            scale[:4] = 1 if shift.amplitude == 1 else self.radius
        if (scale != 1).any():
            features *= scale
        return features

    def answers(self, numbers: Array, rule: Array) -> Floats:
        alpha = self.parameters.alpha.tolist()
        beta = self.parameters.beta.tolist()
        tokens = numbers.reshape(*rule.shape, self.rules, self._block_width).tolist()
        pairs = zip(tokens, rule.tolist(), strict=True)
        return np.array([solve_mha(alpha, beta, t, r, self.choices.nearest) for t, r in pairs]).reshape(rule.shape)

    def variables(self, examples: Examples) -> Variables:
        rule = examples.inputs["rule"]
        looked_up = list_looked_up(self.numbers(examples), rule, self.choices.nearest)
        return {**super().variables(examples), **looked_up}

    def answer_with(self, examples: Examples, name: str, values: Array) -> Array:
        stem, n = split_name(name)
        if stem == "rule":
            return super().answer_with(examples, name, values)
        rule = examples.inputs["rule"]
        blocks = self.numbers(examples)
        answers = self.answers(examples.inputs["features"], rule)
        for index, value in enumerate(values.tolist()):
            if value != NONE:
                c = int(rule[index, n])
                block = blocks[index, :, c].tolist()
                first, second = find_tokens(block, n, self.choices.nearest)
                if stem == "first_token":
                    first = value
                else:
                    second = value
                alpha = float(self.parameters.alpha[c])
                beta = float(self.parameters.beta[c])
                answers[index, n] = alpha * block[first][-2] + beta * block[second][-1]
        return self._as_targets(classify(answers) if self.setting == "classification" else answers, rule)

    def numbers(self, examples: Examples) -> Array:
        """The numbers of every token for every rule, (B, N, R, numbers)."""
        rule = examples.inputs["rule"]
        return examples.inputs["features"].reshape(*rule.shape, self.rules, self._block_width)

    def describe(self, examples: Examples, index: int) -> str:
        return describe_mha(self.name, self.parameters, examples, index, self.choices.nearest)

    def picture(self, examples: Examples, index: int) -> str:
        return picture_mha(self.name, self.parameters, examples, index, self.choices.nearest)


class RulesRnn(Rules):
    """rules/rnn: a state s starts at 0, and a token with numbers x and rule c turns it into s · A[c] + x · B[c] (row
    vectors).

    Classification asks at every token whether s · w ≥ 0, regression for the state or (`target` readout) for s · w. With
    one number, two rules, A = (½, 1), B = (1, 1) and w = −1:

        x = 4,  rule 1     s = 0 · 1 + 4 = 4     → s · w = −4, class 0
        x = 1,  rule 0     s = 4 · ½ + 1 = 3     → s · w = −3, class 0
        x = −3, rule 1     s = 3 · 1 − 3 = 0     → s · w = 0, class 1 (the edge case)

    >>> carry, take = np.array([[[[0.5]]], [[[1.0]]]]), np.array([[[1.0]], [[1.0]]])
    >>> states = np.array(solve_rnn(carry, take, np.array([[4.0], [1.0], [-3.0]]), [1, 0, 1]))
    >>> states.ravel().tolist(), classify(states @ [-1.0]).tolist()
    ([4.0, 3.0, 0.0], [0, 0, 1])

    Entries of A and B have the standard deviation 1/√`dimension`. With `spread` variance that is their variance, the
    paper to the letter, and states grow without bounds. `order` k carries over the last k states, not only the last.
    """

    process: ClassVar[Process] = "rnn"

    name: Literal["rules/rnn"] = "rules/rnn"
    length: int = Option(10, ge=1, description="tokens of a training example")
    target: RegressionTarget | None = Option(
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
    def kind(self) -> AnswerKind:
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

    def _states(self, numbers: Array, rule: Array) -> Floats:
        """The states by the plain solver, (B, N, D)."""
        rules = self.parameters
        pairs = zip(numbers.astype(np.float64), rule.tolist(), strict=True)
        return np.array([solve_rnn(rules.A, rules.B, x, r) for x, r in pairs]).reshape(*rule.shape, self.dimension)

    def answers(self, numbers: Array, rule: Array) -> Floats:
        states = self._states(numbers, rule)
        return states if self.kind == "regression" else states @ self.parameters.w

    def variables(self, examples: Examples) -> Variables:
        states = self._states(examples.inputs["x"], examples.inputs["rule"])
        return {**super().variables(examples), **list_signs(states @ self.parameters.w)}

    @cached_property
    def answer_scales(self) -> Floats:
        return self._scales[0]

    @property
    def answer_scale(self) -> float:
        states = self._scales[1]
        return states if self.kind == "regression" else super().answer_scale

    @cached_property
    def _scales(self) -> tuple[Floats, float]:
        return state_scales(self.parameters, self.pi, self.length)

    def noise_floor(self, split: str) -> float | None:
        floor = super().noise_floor(split)
        if not floor or self.observed is None or self.observed.kind != "logit":
            return floor
        # Read-outs grow from token to token, so under a rule they are not normally distributed.
        examples = self.sample(NOISY, _MEASURED, data_seed="test")
        readouts = rnn_readouts(self.parameters, examples.inputs["x"], examples.inputs["rule"])
        ratio = np.abs(readouts) / self.answer_scales[examples.inputs["rule"]] / self.observed.level
        return float((1 / (1 + np.exp(ratio))).mean())

    def mean_size(self, split: str) -> float:
        return float(np.abs(self._test_targets(split)).mean())

    def clean_ceilings(self, split: str) -> Mapping[str, float]:
        shift = self.shift(split)
        pi = self.prior_of(shift)
        if self.setting == "classification":
            draws = stream("ceilings", self.process, self.rules, shift.length).block()
            return read_out_ceilings(self.parameters, draw_rules(pi, (_SEQUENCES, shift.length), draws))
        variance = float((self._test_targets(split).astype(np.float64) ** 2).mean(axis=(0, 1)).sum())
        return state_ceilings(self.parameters, pi, shift.length, variance / shift.amplitude**2, self.kind == "readout")

    def _test_targets(self, split: str) -> Array:
        """Test targets: the size of the states has no closed form and is measured."""
        return self.sample(split, _MEASURED, data_seed="test").targets

    def describe(self, examples: Examples, index: int) -> str:
        return describe_rnn(self.name, self.parameters, examples, index, self.kind)

    def picture(self, examples: Examples, index: int) -> str:
        return picture_rnn(self.name, self.parameters, examples, index)
