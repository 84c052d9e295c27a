"""`verify` on the whole family: sound tasks pass, planted faults do not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from unseen.randomness import Draws
from unseen.tasks import task
from unseen.tasks.base import Array, Examples
from unseen.tasks.rules import Coefficients, Matrices, RulesMha, RulesMlp, RulesRnn
from unseen.tasks.rules import task as generator
from unseen.tasks.rules.generate import make_labels
from unseen.tasks.rules.task import Shift
from unseen.tasks.verify import Check, run, verify

N = 200


@pytest.fixture(autouse=True)
def few_lengths(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer splits, for time's sake: what holds for lengths 3 and 10 holds for 30."""
    monkeypatch.setattr(generator, "LENGTHS", (3,))


def failures(made: Any, n: int = N) -> list[Check]:
    return [check for check in verify(made, n) if check.status == "FAIL"]


@pytest.mark.parametrize(
    "options",
    [
        {"name": "rules/mlp", "rules": 1},
        {"name": "rules/mlp", "rules": 32, "preset": "paper"},
        {"name": "rules/mha", "rules": 2},
        {"name": "rules/mha", "rules": 8, "search": 2, "preset": "paper"},
        {"name": "rules/rnn", "rules": 1, "length": 5},
        {"name": "rules/rnn", "rules": 8, "length": 5, "preset": "paper"},
    ],
    ids=lambda options: " ".join(map(str, options.values())),
)
@pytest.mark.parametrize("setting", ["classification", "regression"])
def test_sound_tasks_pass(options: dict[str, Any], setting: str) -> None:
    assert failures(task(**options, setting=setting)) == []


@pytest.mark.parametrize("prior", ["zipf(1)", (1.0, 0.0, 0.0)])
def test_priors_pass(prior: Any) -> None:
    assert failures(task("rules/mlp", rules=3, prior=prior, setting="regression"), 1_000) == []


class TestPlantedFaults:
    """Each is put into the generator alone; the plain solver must disagree."""

    def plant(self, monkeypatch: pytest.MonkeyPatch, wrong: Any) -> None:
        monkeypatch.setattr(generator, "make_labels", wrong)

    @pytest.fixture(autouse=True)
    def no_lengths(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(generator, "LENGTHS", ())
        # Nor another process for each: it would not know the fault.
        monkeypatch.setattr(run, "is_importable", lambda made: False)

    @pytest.mark.parametrize("made", [RulesMlp(), RulesMha(), RulesMha(search=2), RulesRnn()])
    def test_none(self, made: Any) -> None:
        """Without a fault the checks that are to fail below pass."""
        report = verify(made, N)
        assert report.passed
        assert {"solver", "labels", "single-feature", "bag-of-tokens"} <= {check.name for check in report}

    def check_failed(self, made: Any, check: str = "solver") -> None:
        assert check in {found.name for found in failures(made)}

    @pytest.mark.parametrize("setting", ["classification", "regression"])
    @pytest.mark.parametrize("kind", [RulesMlp, RulesMha])
    def test_wrong_alpha_in_one_rule(self, monkeypatch: pytest.MonkeyPatch, kind: Any, setting: str) -> None:
        def wrong(process: str, rules: Coefficients, *others: Any, **more: Any) -> Array:
            alpha = rules.alpha.copy()
            alpha[5] += 0.2
            return make_labels(process, replace(rules, alpha=alpha), *others, **more)

        self.plant(monkeypatch, wrong)
        self.check_failed(kind(setting=setting))

    @pytest.mark.parametrize("search", [1, 2])
    def test_self_not_excluded(self, monkeypatch: pytest.MonkeyPatch, search: int) -> None:
        def wrong(process: str, rules: Coefficients, x: Array, c: Array, kind: Any, **more: Any) -> Array:
            own = np.take_along_axis(x, c[:, :, None, None], axis=2)[:, :, 0]
            sums = rules.alpha[c] * own[..., -2] + rules.beta[c] * own[..., -1]
            return (sums >= 0).astype(np.uint8)

        self.plant(monkeypatch, wrong)
        self.check_failed(RulesMha(search=search))

    def test_second_nearest(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.plant(monkeypatch, lambda *given, nearest: make_labels(*given, nearest=not nearest))
        self.check_failed(RulesMha(search=2))

    @pytest.mark.parametrize("setting", ["classification", "regression"])
    def test_transposed_matrices(self, monkeypatch: pytest.MonkeyPatch, setting: str) -> None:
        def wrong(process: str, rules: Matrices, *others: Any, **more: Any) -> Array:
            return make_labels(process, replace(rules, A=rules.A.transpose(0, 1, 3, 2)), *others, **more)

        self.plant(monkeypatch, wrong)
        self.check_failed(RulesRnn(setting=setting))

    def test_strict_sign(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def wrong(*given: Any, **more: Any) -> Array:
            return 1 - make_labels(*given, **more)

        self.plant(monkeypatch, wrong)
        self.check_failed(RulesMlp())

    def test_forgotten_amplitude_is_seen_in_the_zero_predictor(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def wrong(self: RulesMlp, shift: Shift, draws: Draws) -> Array:
            return draws.normal((self.block, 2), np.float32)

        monkeypatch.setattr(RulesMlp, "draw", wrong)
        found = failures(RulesMlp(setting="regression"))
        assert [(check.name, check.split) for check in found] == [("labels", "ood/amplitude=2")]

    def test_shifted_inputs_are_seen_in_the_balance_of_classes(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def wrong(self: RulesMlp, shift: Shift, draws: Draws) -> Array:
            return draws.normal((self.block, 2), np.float32) + np.float32(0.5)

        monkeypatch.setattr(RulesMlp, "draw", wrong)
        self.check_failed(RulesMlp(rules=1), "labels")

    def test_rules_that_tell_the_class_are_a_shortcut(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Every rule is drawn again, up to three times, until it is odd exactly where the class is 1."""
        original = RulesMlp.generate

        def wrong(self: RulesMlp, split: str, draws: Draws) -> Examples:
            found = original(self, split, draws)
            rule, targets = found.inputs["rule"], found.targets
            for _ in range(3):
                rule = np.where(rule % 2 == targets[:, 0], rule, draws.integers(self.rules, self.block))
                targets = make_labels("mlp", self.parameters, found.inputs["x"], rule, "classification")[:, None]
            return Examples({"x": found.inputs["x"], "rule": rule}, targets, {"rule": rule})

        monkeypatch.setattr(RulesMlp, "generate", wrong)
        found = {check.name for check in failures(RulesMlp(rules=32), 2_000)}
        assert "bag-of-tokens" in found and "solver" not in found
