"""Label noise of the rules tasks: what is observed in place of the answer, and the error that cannot be avoided.

| noise | setting | observed | floor |
|---|---|---|---|
| `flip(ε)` | classification | the class, exchanged with probability ε | error ε |
| `logit(τ)` | classification | class 1 with probability sigmoid(y / (τ σ_c)) | mean of sigmoid(−|y| / (τ σ_c)) |
| `gaussian(σ)` | regression | y + σ S ξ, ξ standard normal | mean absolute error σ S √(2/π) |
| `laplace(b)` | regression | y + b S ξ, ξ Laplace of scale 1 | mean absolute error b S |
| `context(ε)` | both | the rule that is shown is, with probability ε, a rule drawn uniformly | not known in closed form |

y is the real answer before its sign, σ_c its root mean square under rule c, S the root mean square of all answers of the
task in training. Noise acts on the training data and on the split `iid/noise`; it is drawn from a stream of its own, so
inputs and clean answers are those without noise. The factors `flipped` and `noise` say what happened to an answer; under
`context` the factor `rule` is the rule that makes the answer, and the input `rule` the one that is shown.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, cast

import numpy as np
from scipy.special import expit

from unseen.errors import nearest
from unseen.randomness import Draws, Floats, portable_log
from unseen.tasks.base import Array, Artefact, Examples
from unseen.tasks.rules.generate import Matrices

NoiseKind = Literal["flip", "logit", "gaussian", "laplace", "context"]
_SETTINGS = {"flip": "classification", "logit": "classification", "gaussian": "regression", "laplace": "regression"}
_LIMITS = {"flip": (0.0, 0.5), "context": (0.0, 1.0)}
"""From the first, which is allowed, to below the second; `context(1)` is allowed as well."""


@dataclass(frozen=True)
class Noise:
    """The noise of a task, as its option `noise` has it: kind and level.

    >>> Noise.parse("flip(0.1)", "classification")
    Noise(kind='flip', level=0.1)
    """

    kind: NoiseKind
    level: float

    @classmethod
    def parse(cls, text: str, setting: str) -> Noise:
        """Read the option; what can't be read, or does not fit the setting, raises a ValueError."""
        kinds = (*_SETTINGS, "context")
        match = re.fullmatch(r"(\w+)\(([^()]*)\)", text.strip())
        if match is None:
            raise ValueError(f"expected a kind and a level like flip(0.1); got '{text}'")
        if match[1] not in kinds:
            raise ValueError(f"unknown noise '{match[1]}'. {nearest(match[1], kinds)}")
        kind = cast(NoiseKind, match[1])
        try:
            level = float(match[2])
        except ValueError:
            level = math.nan
        low, high = _LIMITS.get(kind, (0.0, math.inf))
        if not (low <= level < high or (kind == "context" and level == high)) or (kind == "logit" and level == 0):
            limits = "above 0" if kind == "logit" else f"from {low:g} to below {high:g}"
            raise ValueError(f"noise '{text}': expected a level {limits}")
        if _SETTINGS.get(kind, setting) != setting:
            raise ValueError(f"noise '{kind}' belongs to setting {_SETTINGS[kind]}; the setting is {setting}")
        return cls(kind, level)

    def summary(self) -> str:
        """A description for a split."""
        return {
            "flip": f"classes exchanged with probability {self.level:g}",
            "logit": f"classes drawn from a sigmoid of temperature {self.level:g}",
            "gaussian": f"normal noise of {self.level:g} times the size of the answers",
            "laplace": f"Laplace noise of {self.level:g} times the size of the answers",
            "context": f"rules exchanged with probability {self.level:g}",
        }[self.kind]

    def add(self, examples: Examples, draws: Draws, rules: int, scale: Floats, answers: Floats) -> Examples:
        """Examples as they are observed.

        `scale` and `answers` are what the noise is measured in: σ by rule and y by answer (logit), or S (gaussian, laplace).
        """
        targets = examples.targets
        if self.kind == "context":
            rule = examples.inputs["rule"]
            exchanged = draws.uniform(rule.shape) < self.level
            shown = np.where(exchanged, draws.integers(rules, rule.shape), rule).astype(rule.dtype)
            return replace(examples, inputs={**examples.inputs, "rule": shown})
        if self.kind in ("flip", "logit"):
            probability: Floats | float = self.level
            if self.kind == "logit":
                # The probability of the wrong class falls with the distance of the answer from the boundary at 0.
                ratio = np.abs(answers) / scale[examples.inputs["rule"]] / self.level
                probability = expit(-ratio).reshape(targets.shape)
            flipped = (draws.uniform(targets.shape) < probability).astype(targets.dtype)
            return replace(examples, targets=targets ^ flipped, factors={**examples.factors, "flipped": flipped})
        noise = (self.level * float(scale) * self._numbers(draws, targets.shape)).astype(np.float32)
        return replace(examples, targets=targets + noise, factors={**examples.factors, "noise": noise})

    def _numbers(self, draws: Draws, shape: tuple[int, ...]) -> Floats:
        """Standard normal numbers, or Laplace numbers of scale 1 by the inverse of their distribution."""
        if self.kind == "gaussian":
            return draws.normal(shape)
        # A centred uniform number, never ±½: its logarithm below is finite.
        centred = draws.uniform(shape) + 2.0**-54 - 0.5
        numbers: Floats = -np.sign(centred) * portable_log(1 - 2 * np.abs(centred))
        return numbers

    def floor(self, scale: float) -> float | None:
        """The error (classification) or mean absolute error (regression) of a model that answers by the rules.

        `scale` is S. Answers under a rule are taken as normal, which they are in mlp and mha. None: no closed form.

        >>> Noise("gaussian", 0.5).floor(2.0)
        0.7978845608028654
        """
        if self.kind == "flip":
            return self.level
        if self.kind == "logit":
            from scipy.integrate import quad  # slow to load

            def density(z: float) -> float:
                return math.sqrt(2 / math.pi) * math.exp(-z * z / 2) * float(expit(-z / self.level))

            return float(quad(density, 0, math.inf)[0])
        if self.kind == "gaussian":
            return self.level * scale * math.sqrt(2 / math.pi)
        return self.level * scale if self.kind == "laplace" else None

    @property
    def factors(self) -> tuple[str, ...]:
        """The factors that record what the noise did, from which the solver computes the observed answers."""
        if self.kind == "context":
            return ("rule",)
        return ("flipped",) if self.kind in ("flip", "logit") else ("noise",)

    def artefact(self, rules: int, floor: float | None) -> Artefact:
        """How far what is observed is from the truth, for `verify`; it may not be farther than the level says."""
        if self.kind == "context":
            most = self.level * (1 - 1 / rules)
            return Artefact("noise", "rules that are shown but do not count", _exchanged, 0.0, 0.005, True, most)
        summary = "classes that are exchanged" if self.factors == ("flipped",) else "mean absolute noise"
        factor = self.factors[0]
        return Artefact("noise", summary, lambda e: float(np.abs(e.factors[factor]).mean()), 0.0, 0.005, True, floor)

    def remaining_share(self) -> float:
        """The share of a shortcut's ceiling, beyond chance, that is left under noise; 1 where it is only a bound."""
        if self.kind == "flip":
            return 1 - 2 * self.level
        variance = {"gaussian": self.level**2, "laplace": 2 * self.level**2}.get(self.kind, 0.0)
        return 1 / (1 + variance)


def _exchanged(examples: Examples) -> float:
    return float((examples.inputs["rule"] != examples.factors["rule"]).mean())


def observe(targets: Array, factors: Mapping[str, Array]) -> Array:
    """Clean targets as they were observed, by the factors that say what happened: the counterpart of `Noise.add`."""
    if "flipped" in factors:
        return np.where(factors["flipped"] == 1, 1 - targets, targets).astype(targets.dtype)
    if "noise" in factors:
        noisy: Array = targets + factors["noise"]
        return noisy
    return targets


def state_scales(rules: Matrices, pi: Floats, length: int) -> tuple[Floats, float]:
    """Of rules/rnn, the root mean square of the read-outs under each rule, (R,), and of the numbers of the states.

    All positions of training sequences count alike. Exact: the covariance of the last states is followed from token to
    token, over all rules that may come.
    """
    order, dimension = rules.A.shape[1:3]
    carry = rules.A.reshape(len(pi), order * dimension, dimension)
    covariance = np.zeros((order * dimension, order * dimension))  # of the last states, the newest first
    squares = np.zeros(len(pi))
    states = 0.0
    for _ in range(length):
        by_rule = carry.mT @ covariance @ carry + rules.B.mT @ rules.B
        squares += np.einsum("i,rij,j->r", rules.w, by_rule, rules.w)
        new = np.einsum("r,rij->ij", pi, by_rule)
        states += float(new.trace()) / dimension
        cross = np.einsum("r,rij->ij", pi, carry.mT @ covariance)
        older = (order - 1) * dimension
        covariance = np.block([[new, cross[:, :older]], [cross[:, :older].T, covariance[:older, :older]]])
    return np.sqrt(squares / length), math.sqrt(states / length)


def balanced_rules(counts: Floats, draws: Draws) -> Array:
    """As many rules as `counts` adds up to, in random order, each as often as it is expected, rounded.

    Counts are rounded down, and what remains goes to the rules with the largest fractions: with a uniform prior they differ
    by at most one.

    >>> from unseen.randomness import stream
    >>> np.bincount(balanced_rules(np.full(3, 10 / 3), stream("doc").block())).tolist()
    [4, 3, 3]
    """
    whole = np.floor(counts + 1e-9).astype(np.int64)
    total = round(float(counts.sum()))
    order = np.argsort(whole - counts, kind="stable")
    # `order` begins with the largest fractions that were cut off; a stable sort makes ties go to the lower rule.
    whole[order[: total - int(whole.sum())]] += 1
    rules: Array = np.repeat(np.arange(len(counts)), whole)[draws.permutation(total)]
    return rules
