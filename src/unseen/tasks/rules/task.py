"""The base of the three rules tasks: options, presets, splits, the prior of the rules, and how a block is drawn."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from pydantic import Field as Option
from pydantic import model_validator

from unseen.errors import UsageError
from unseen.randomness import Draws, Floats, Ints, Shape, stream
from unseen.spec import Field, Spec, Stream, Target
from unseen.tasks.base import Array, Artefact, DataSeed, Examples, Expressions, ForeignFileReport, Split, Task
from unseen.tasks.rules.audit import judge_file
from unseen.tasks.rules.generate import AnswerKind, Coefficients, Matrices, Process, make_labels
from unseen.tasks.rules.noise import Noise, balanced_rules, observe
from unseen.tasks.rules.solver import classify
from unseen.tasks.rules.variables import answer_with_rule, list_rules
from unseen.tasks.variables import Variables, split_name

PresetName = Literal["clean", "paper"]
Setting = Literal["classification", "regression"]
RegressionTarget = Literal["state", "readout"]
Prior = str | tuple[float, ...]

LENGTHS = (3, 5, 10, 20, 30)
"""The lengths on which sequences are tested."""
NOISY = "iid/noise"
"""The split with the noise of the training data, if these have some."""
_MEASURED = 4096
"""Test examples on which the size of noisy answers is measured."""


@dataclass(frozen=True)
class RulesPreset:
    """The options that the two presets set differently: `clean` follows the authors' program without its bugs, `paper`
    the text to the letter. Each is also an option of the tasks.

    - `amplitude`: the factor of all normal inputs out of distribution (D1: N(0, 2 I) is a variance).
    - `nearest`: whether search 2 of rules/mha finds the nearest token or the one with the least product (D2).
    - `target`: the target of rules/rnn in regression (D6).
    """

    amplitude: float
    nearest: bool
    target: RegressionTarget


PRESETS: dict[PresetName, RulesPreset] = {
    "clean": RulesPreset(2.0, True, "state"),
    "paper": RulesPreset(math.sqrt(2), False, "readout"),
}


class Rules(Task):
    """Normal numbers and a rule, per example or per token; the answer is a linear function of the numbers, and the rule
    says which one.

    The input names the rule, but the model has to learn what each rule does. Classification asks for the sign of the
    answer (1 if it is ≥ 0, so an answer of exactly 0 is in class 1), regression for the answer itself; both settings
    and both presets train on the same inputs. Out of distribution, inputs are multiplied by `amplitude`; answers scale
    with them, so no class changes.

    Examples for the process `mlp`, which weights two numbers, with the weights (1, 0.5) of rule 0 and (2, −1) of rule 1:

        numbers (1, 4), rule 0    1 · 1 + 0.5 · 4 = 3    regression 3, class 1
        numbers (1, 4), rule 1    2 · 1 − 1 · 4 = −2     regression −2, class 0

    Edge case: under rule 1 the numbers (1, 2) give exactly 0, which is in class 1.

    >>> from unseen.tasks.rules.solver import solve_mlp
    >>> alpha, beta = [1.0, 2.0], [0.5, -1.0]
    >>> [solve_mlp(alpha, beta, numbers, rule) for numbers, rule in (((1, 4), 0), ((1, 4), 1), ((1, 2), 1))]
    [3.0, -2.0, 0.0]
    """

    instance_options: ClassVar[frozenset[str]] = frozenset({"task_seed"})
    interpretation_options: ClassVar[frozenset[str]] = frozenset(
        {"preset", "setting", "amplitude", "radius", "nearest", "target", "noise", "stratified"}
    )
    size_options: ClassVar[frozenset[str]] = frozenset({"train_size"})
    shares_file_format: ClassVar[bool] = True  # foreign examples name their process
    process: ClassVar[Process]

    preset: PresetName = Option("clean", description="the authors' program without its bugs, or the text to the letter")
    setting: Setting = Option(
        "classification", description="asks for the sign of the number (1 if it is ≥ 0), or for the number"
    )
    rules: int = Option(8, ge=1, le=10_000, description="how many rules there are")
    task_seed: int = Option(0, ge=0, lt=2**32, description="draws the rules, as the authors did; theirs are 0 … 4")
    prior: Prior = Option(
        "uniform",
        description="how often each rule occurs: uniform, zipf(s), dirichlet(kappa, seed), or a list of probabilities",
    )
    amplitude: Annotated[float, Option(gt=0)] | None = Option(
        None, description="factor of the inputs out of distribution; None: as the preset says"
    )
    train_size: Annotated[int, Option(ge=1)] | None = Option(
        None, description="examples of the training set, the first of the endless stream; None: endless"
    )

    stratified: bool = Option(
        False, description="the rules of a finite training set occur as often as expected, to within one"
    )
    noise: str | None = Option(
        None,
        description="of the training data: flip(p), logit(t), gaussian(s), laplace(b) or context(p); None: no noise",
    )

    @model_validator(mode="after")
    def _check_prior(self) -> Self:
        rule_prior(self.prior, self.rules)
        if self.stratified and self.train_size is None:
            raise ValueError("stratified belongs to a finite training set; give train_size as well")
        if self.noise is not None:
            Noise.parse(self.noise, self.setting)
        return self

    # What each variant defines.

    @property
    def parameters(self) -> Coefficients | Matrices:
        """The numbers of the rules."""
        raise NotImplementedError

    @property
    def tokens(self) -> int:
        """The number of tokens of a training example; 0 if the input is not a sequence."""
        return 0

    @property
    def kind(self) -> AnswerKind:
        """The kind of answer that the task asks for."""
        return self.setting

    def draw(self, shift: Shift, draws: Draws) -> Array:
        """The numbers of a block, (B, …), in single precision."""
        raise NotImplementedError

    def answers(self, numbers: Array, rule: Array) -> Floats:
        """The real-valued answers by the plain solver, also where the target is their class."""
        raise NotImplementedError

    def mean_size(self, split: str) -> float:
        """The mean absolute answer, in regression, without noise."""
        raise NotImplementedError

    def clean_ceilings(self, split: str) -> Mapping[str, float]:
        """The ceilings of shortcuts without noise."""
        raise NotImplementedError

    @property
    def answer_scales(self) -> Floats:
        """The root mean square of the real answers in training under each rule, (R,)."""
        raise NotImplementedError

    @property
    def answer_scale(self) -> float:
        """The root mean square of the targets of regression in training."""
        return math.sqrt(float(self.pi @ self.answer_scales**2))

    def numbers(self, examples: Examples) -> Array:
        """The numbers of examples in the shape in which they are drawn."""
        return examples.inputs[self.spec.inputs[0].name]

    # What they share.

    @cached_property
    def choices(self) -> RulesPreset:
        """The preset, with the options that are set instead."""
        chosen = {}
        for field in fields(RulesPreset):
            value = getattr(self, field.name, None)
            if value is not None:
                chosen[field.name] = value
        return replace(PRESETS[self.preset], **chosen)

    @cached_property
    def pi(self) -> Floats:
        """The probability of each rule, (R,)."""
        return rule_prior(self.prior, self.rules)

    @cached_property
    def shifts(self) -> Mapping[str, Shift]:
        """The splits by name, as the generator needs them."""
        uniform = bool(np.allclose(self.pi, 1 / self.rules))
        shifts = make_shifts(self.tokens, self.choices.amplitude, uniform=uniform)
        if self.observed is not None:
            noisy = Shift(self.tokens, noise=self.observed.summary())
            shifts = {**shifts, "train": noisy, NOISY: noisy}
        return shifts

    @cached_property
    def observed(self) -> Noise | None:
        """The noise of the training data."""
        return None if self.noise is None else Noise.parse(self.noise, self.setting)

    @cached_property
    def splits(self) -> Mapping[str, Split]:
        return {name: Split(name, shift.summary()) for name, shift in self.shifts.items()}

    def generate(self, split: str, draws: Draws) -> Examples:
        shift = self.shift(split)
        numbers_field = self.spec.inputs[0]
        # The rules are drawn before the numbers; the order is part of the data.
        rule = draw_rules(self.prior_of(shift), (self.block, shift.length) if shift.length else self.block, draws)
        numbers = self.draw(shift, draws)
        answers = self._label(numbers, rule, self.kind)
        inputs = {numbers_field.name: numbers.reshape(*rule.shape, numbers_field.width), "rule": rule}
        return Examples(inputs, self._as_targets(answers, rule), {"rule": rule})

    def _label(self, numbers: Array, rule: Array, kind: AnswerKind) -> Array:
        return make_labels(self.process, self.parameters, numbers, rule, kind, nearest=self.choices.nearest)

    def blocks(self, split: str, data_seed: DataSeed) -> Callable[[int], Examples]:
        make_block = super().blocks(split, data_seed)
        if split == "train" and self.stratified:
            make_block = self._stratify(make_block, data_seed)
        if not self.shift(split).noise:
            return make_block
        # A stream of its own: inputs and clean answers are those without noise.
        noise_stream = stream("label noise", self.drawn_by(), self.noise, split, data_seed)
        make_clean = make_block
        return lambda number: self._add_noise(make_clean(number), noise_stream.block(number))

    def _stratify(self, make_block: Callable[[int], Examples], data_seed: DataSeed) -> Callable[[int], Examples]:
        """The same blocks with other rules, which are balanced within the whole training set, and their answers."""
        size = self.train_size or 0
        shape = (size, self.tokens) if self.tokens else (size,)
        draws = stream("stratified", self.drawn_by(), size, data_seed).block()
        balanced = balanced_rules(self.pi * math.prod(shape), draws).reshape(shape)

        def make_stratified(number: int) -> Examples:
            examples = make_block(number)
            rule = examples.inputs["rule"].copy()
            block_rules = balanced[number * self.block : (number + 1) * self.block]
            rule[: len(block_rules)] = block_rules  # the rest of the last block belongs to no training set
            answers = self._label(self.numbers(examples), rule, self.kind)
            return Examples({**examples.inputs, "rule": rule}, self._as_targets(answers, rule), {"rule": rule})

        return make_stratified

    def _add_noise(self, examples: Examples, draws: Draws) -> Examples:
        noise = self.observed
        assert noise is not None
        scale = answers = np.zeros(())
        if noise.kind == "logit":
            scale = self.answer_scales
            kind: AnswerKind = "readout" if self.process == "rnn" else "regression"
            answers = self._label(self.numbers(examples), examples.inputs["rule"], kind)
        elif noise.kind in ("gaussian", "laplace"):
            scale = np.asarray(self.answer_scale)
        return noise.add(examples, draws, self.rules, scale, answers)

    def noise_floor(self, split: str) -> float | None:
        """The error, or mean absolute error, of answering by the rules in a split; None if there is no closed form.

        >>> from unseen.tasks import task
        >>> task("rules/mlp", noise="flip(0.1)").noise_floor("iid/noise")
        0.1
        """
        if self.observed is None or not self.shift(split).noise:
            return 0.0
        return self.observed.floor(self.answer_scale if self.setting == "regression" else 0.0)

    def ceilings(self, split: str) -> Mapping[str, float]:
        clean = self.clean_ceilings(split)
        if self.observed is None or not self.shift(split).noise:
            return clean
        chance = self.spec.target.chance if self.setting == "classification" else 0.0
        return {name: chance + self.observed.remaining_share() * (value - chance) for name, value in clean.items()}

    def solve(self, examples: Examples) -> Array:
        rule = examples.inputs["rule"]
        if self.observed is not None and self.observed.kind == "context":
            rule = examples.factors.get("rule", rule)  # the rule that makes the answer, whichever is shown
        return observe(self._solve_with(examples, rule), examples.factors)

    def noise_factors(self, split: str) -> tuple[str, ...]:
        return () if self.observed is None or not self.shift(split).noise else self.observed.factors

    def artefacts(self, split: str) -> Sequence[Artefact]:
        if self.observed is None or not self.shift(split).noise:
            return ()
        return (self.observed.artefact(self.rules, self.noise_floor(split)),)

    def _solve_with(self, examples: Examples, rule: Array) -> Array:
        """The targets under these rules."""
        answers = self.answers(examples.inputs[self.spec.inputs[0].name], rule)
        return self._as_targets(classify(answers) if self.setting == "classification" else answers, rule)

    def variables(self, examples: Examples) -> Variables:
        return list_rules(examples.inputs["rule"], self.rules)

    def answer_with(self, examples: Examples, name: str, values: Array) -> Array:
        stem, token = split_name(name)
        if stem != "rule":
            return super().answer_with(examples, name, values)
        rule = examples.inputs["rule"]
        return answer_with_rule(lambda changed: self._solve_with(examples, changed), rule, token, values)

    def expressions(self, examples: Examples) -> Expressions | None:
        # The rule of an example, or of each of its tokens, is what is computed; no two rules are the same.
        rules = [tuple(row) for row in examples.inputs["rule"].reshape(len(examples), -1).tolist()]
        return Expressions(rules, rules)

    def counterparts(self, examples: Examples, name: str, draws: Draws) -> Examples | None:
        stem, token = split_name(name)
        if stem != "rule" or self.rules == 1:
            return None
        rule = examples.inputs["rule"].copy()
        column = rule if rule.ndim == 1 else rule[:, token]
        column[:] = (column + 1 + draws.integers(self.rules - 1, len(rule))) % self.rules
        changed = Examples({**examples.inputs, "rule": rule}, examples.targets, {}, self)
        return replace(changed, targets=self.solve(changed))

    def zero_loss(self, split: str) -> float | None:
        if self.setting == "classification":
            return None
        if self.observed is not None and self.shift(split).noise and self.observed.kind != "context":
            # Measured where examples have no end; the training set has the same distribution.
            return float(np.abs(self.sample(NOISY, _MEASURED, data_seed="test").targets).mean())
        return self.mean_size(split)

    def judge(self, path: Path, **companions: Path) -> ForeignFileReport:
        if companions:
            raise UsageError(f"{self.name}: examples carry their own parameters; leave {', '.join(companions)} away")
        return judge_file(path, nearest=self.choices.nearest)

    def shift(self, split: str) -> Shift:
        """The difference of a split to the training data."""
        return self.shifts[self.get_split(split).name]

    def prior_of(self, shift: Shift) -> Floats:
        """The probability of each rule in a split, (R,)."""
        return np.full(self.rules, 1 / self.rules) if shift.uniform_rules else self.pi

    def make_spec(self, numbers: str, width: int, stream: Stream | None, outputs: int = 1) -> Spec:
        """The spec of a variant: its numbers and the rule, along a stream or once per example, and its target."""
        along = stream.name if stream else None
        # Ground-truth routing to fewer modules than rules depends on how often each rule occurs.
        even = bool(np.allclose(self.pi, 1 / self.rules))
        prior = None if even else tuple(self.pi.tolist())
        return Spec(
            (stream,) if stream else (),
            (Field(numbers, "real", width, along), Field("rule", "category", self.rules, along, prior)),
            Target("binary" if self.setting == "classification" else "real", outputs, along),
        )

    def _as_targets(self, answers: Array, rule: Array) -> Array:
        targets = answers if self.setting == "classification" else answers.astype(np.float32)
        return targets.reshape(*rule.shape, self.spec.target.width)


# Splits.


@dataclass(frozen=True)
class Shift:
    """The difference of a split to the training data: number of tokens (0: the input is not a sequence), scale of the
    inputs, and whether all rules occur equally often; and in words the noise of its labels."""

    length: int
    amplitude: float = 1.0
    uniform_rules: bool = False
    noise: str = ""

    def summary(self) -> str:
        """A description of the split."""
        tokens = f"{self.length} tokens" if self.length else "inputs"
        scaled = (
            "with the amplitude of training" if self.amplitude == 1 else f"with {self.amplitude:g} times the amplitude"
        )
        rules = "; all rules equally often" if self.uniform_rules else ""
        noise = f"; {self.noise}" if self.noise else ""
        return f"{tokens} {scaled}{rules}{noise}"


def make_shifts(length: int, amplitude: float, uniform: bool) -> dict[str, Shift]:
    """The splits, by name, of a task trained on this length (0: none); `uniform` says whether its prior is uniform.

    >>> list(make_shifts(0, 2.0, uniform=False))
    ['train', 'iid', 'ood/amplitude=2', 'ood/rules=uniform']
    >>> list(make_shifts(10, 2.0, uniform=True))[2:9]
    ['ood/length=3', 'ood/length=5', 'ood/length=20', 'ood/length=30', 'ood/length=3,amplitude=2', \
'ood/length=5,amplitude=2', 'ood/amplitude=2']
    """
    shifts = {"train": Shift(length), "iid": Shift(length)}
    lengths = sorted({length, *LENGTHS}) if length else [0]
    for scale in (1.0, amplitude):
        for tokens in lengths:
            changes = []
            if tokens != length:
                changes.append(f"length={tokens}")
            if scale != 1:
                changes.append(f"amplitude={amplitude:g}")
            if changes:
                shifts[f"ood/{','.join(changes)}"] = Shift(tokens, scale)
    if not uniform:
        shifts["ood/rules=uniform"] = Shift(length, uniform_rules=True)
    return shifts


# The prior of the rules.

_SLACK = 1e-6
_NUMBER = r"(\d+(?:\.\d+)?(?:[eE]-?\d+)?)"


def rule_prior(prior: Prior, rules: int) -> Floats:
    """The probability of each rule, (R,): uniform, a power law, a Dirichlet draw, or the probabilities themselves.

    A prior that cannot be read raises a ValueError.

    >>> rule_prior("zipf(1)", 3).round(4).tolist()
    [0.5455, 0.2727, 0.1818]
    >>> rule_prior((0.5, 0.25, 0.25), 3).tolist()
    [0.5, 0.25, 0.25]
    """
    probabilities: Floats
    if not isinstance(prior, str):
        probabilities = np.array(prior, np.float64)
    elif prior == "uniform":
        probabilities = np.full(rules, 1 / rules)
    elif match := re.fullmatch(rf"zipf\({_NUMBER}\)", prior):
        weights = np.arange(1.0, rules + 1) ** -float(match[1])
        probabilities = weights / weights.sum()
    elif match := re.fullmatch(rf"dirichlet\({_NUMBER}, ?(\d+)\)", prior):
        concentration = np.full(rules, float(match[1]))
        probabilities = np.random.RandomState(int(float(match[2]))).dirichlet(concentration)
    else:
        raise ValueError(f"expected uniform, zipf(s), dirichlet(kappa, seed) or the probabilities; got '{prior}'")
    if probabilities.shape != (rules,):
        raise ValueError(f"the prior must have a probability for each of the {rules} rules; got {len(probabilities)}")
    valid = np.isfinite(probabilities).all() and (probabilities >= 0).all()
    if not (valid and abs(probabilities.sum() - 1) <= _SLACK):
        raise ValueError(f"the prior must be probabilities that add up to 1; got {probabilities.tolist()}")
    normalised: Floats = probabilities / probabilities.sum()
    return normalised


def draw_rules(pi: Floats, shape: Shape, draws: Draws) -> Ints:
    """Independent rules, each with its probability to 2**-32; a rule of probability 0 never occurs."""
    if (pi == pi[0]).all():
        return draws.integers(len(pi), shape)
    # Rule r has the 32-bit words between the boundaries r − 1 and r of the cumulative distribution.
    boundaries = np.round(np.cumsum(pi)[:-1] * 2.0**32).astype(np.uint64)
    return np.searchsorted(boundaries, draws.lanes(shape, np.uint32).astype(np.uint64), side="right")
