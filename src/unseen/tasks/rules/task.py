"""What the three rules tasks have in common: options, conditions, and how a block is drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, ClassVar, Self

import numpy as np
from pydantic import Field as Option
from pydantic import model_validator

from unseen.errors import UsageError
from unseen.randomness import Draws, Floats
from unseen.spec import Field, Spec, Stream, Target
from unseen.tasks.base import Array, Condition, Examples, Judgement, Task
from unseen.tasks.rules.judge import judge_file
from unseen.tasks.rules.labels import Kind, labels
from unseen.tasks.rules.parameters import Coefficients, Matrices, Process
from unseen.tasks.rules.presets import PRESETS, Preset, PresetName, Setting
from unseen.tasks.rules.prior import Prior, draw_rules, rule_prior
from unseen.tasks.rules.shift import Shift, shifts
from unseen.tasks.rules.solver import classes


class Rules(Task):
    """Normal numbers and a rule, per example or per token; the answer is what the rule makes of the numbers.

    The model is told which rule counts, but has to learn what each rule does. Classification asks for the sign of the
    answer, regression for the answer itself; both settings and both presets train on the same inputs. Out of
    distribution inputs are multiplied by `amplitude`; answers scale with them, so no class changes.
    """

    instance: ClassVar[frozenset[str]] = frozenset({"task_seed"})
    readings: ClassVar[frozenset[str]] = frozenset({"preset", "setting", "amplitude", "radius", "nearest", "target"})
    alike: ClassVar[bool] = True  # foreign examples say which process they are of
    process: ClassVar[Process]

    preset: PresetName = Option("clean", description="the authors' program without its bugs, or the text to the letter")
    setting: Setting = Option(
        "classification", description="asks for the sign of the number (1 if it is ≥ 0), or for the number"
    )
    rules: int = Option(8, ge=1, description="how many rules there are")
    task_seed: int = Option(0, ge=0, lt=2**32, description="draws the rules, as the authors did; theirs are 0 … 4")
    prior: Prior = Option(
        "uniform",
        description="how often each rule occurs: uniform, zipf(s), dirichlet(kappa, seed), or a list of probabilities",
    )
    amplitude: Annotated[float, Option(gt=0)] | None = Option(
        None, description="what inputs are multiplied by out of distribution; None: as the preset says"
    )

    @model_validator(mode="after")
    def _check_prior(self) -> Self:
        rule_prior(self.prior, self.rules)
        return self

    @property
    def parameters(self) -> Coefficients | Matrices:
        """The rules."""
        raise NotImplementedError

    @property
    def tokens(self) -> int:
        """How many tokens an example has in training; 0: it has none."""
        return 0

    @property
    def kind(self) -> Kind:
        """Which answer is asked for."""
        return self.setting

    def draw(self, shift: Shift, draws: Draws) -> Array:
        """The numbers of a block, (B, …), in single precision."""
        raise NotImplementedError

    def answers(self, numbers: Array, rule: Array) -> Floats:
        """What the plain solver makes of the numbers: of classes, the real-valued answers behind them."""
        raise NotImplementedError

    def mean_size(self, condition: str) -> float:
        """The mean absolute answer, in regression."""
        raise NotImplementedError

    @cached_property
    def choices(self) -> Preset:
        """What the preset says, where no option of the same name says otherwise."""
        given = {f.name: getattr(self, f.name, None) for f in fields(Preset)}
        return replace(PRESETS[self.preset], **{name: value for name, value in given.items() if value is not None})

    @cached_property
    def pi(self) -> Floats:
        """The probability of each rule, (R,)."""
        return rule_prior(self.prior, self.rules)

    @cached_property
    def shifts(self) -> Mapping[str, Shift]:
        """The conditions by name, as the generator needs them."""
        return shifts(self.tokens, self.choices.amplitude, uniform=bool(np.allclose(self.pi, 1 / self.rules)))

    @cached_property
    def conditions(self) -> Mapping[str, Condition]:
        return {name: Condition(name, shift.summary()) for name, shift in self.shifts.items()}

    def generate(self, condition: str, draws: Draws) -> Examples:
        shift = self.shift(condition)
        numbers_field, _ = self.spec.inputs
        rule = draw_rules(self.prior_of(shift), (self.block, shift.length) if shift.length else self.block, draws)
        numbers = self.draw(shift, draws)
        answers = labels(self.process, self.parameters, numbers, rule, self.kind, nearest=self.choices.nearest)
        inputs = {numbers_field.name: numbers.reshape(*rule.shape, numbers_field.width), "rule": rule}
        return Examples(inputs, self._as_targets(answers, rule), {"rule": rule})

    def solve(self, examples: Examples) -> Array:
        rule = examples.inputs["rule"]
        answers = self.answers(examples.inputs[self.spec.inputs[0].name], rule)
        return self._as_targets(classes(answers) if self.setting == "classification" else answers, rule)

    def zero_loss(self, condition: str) -> float | None:
        return None if self.setting == "classification" else self.mean_size(condition)

    def judge(self, path: Path, **companions: Path) -> Judgement:
        if companions:
            raise UsageError(f"{self.name}: examples carry their own parameters; leave {', '.join(companions)} away")
        return judge_file(path, nearest=self.choices.nearest)

    def shift(self, condition: str) -> Shift:
        """How a condition departs from the training data."""
        return self.shifts[self.condition(condition).name]

    def prior_of(self, shift: Shift) -> Floats:
        """How often each rule occurs in a condition."""
        return np.full(self.rules, 1 / self.rules) if shift.uniform_rules else self.pi

    def make_spec(self, numbers: str, width: int, stream: Stream | None, outputs: int = 1) -> Spec:
        """The spec of a process: its numbers and the rule, along a stream or given once, and as many outputs."""
        along = stream.name if stream else None
        return Spec(
            (stream,) if stream else (),
            (Field(numbers, "real", width, along), Field("rule", "category", self.rules, along)),
            Target("binary" if self.setting == "classification" else "real", outputs, along),
        )

    def _as_targets(self, answers: Array, rule: Array) -> Array:
        kept = answers if self.setting == "classification" else answers.astype(np.float32)
        return kept.reshape(*rule.shape, self.spec.target.width)
