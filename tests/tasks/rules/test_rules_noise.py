"""Label noise and stratified training sets: floors, streams, the solver, and verify."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from unseen.analysis import activation_matrix, alignment
from unseen.errors import UsageError
from unseen.tasks import task
from unseen.tasks.rules import task as generator
from unseen.tasks.rules.noise import balanced_rules
from unseen.tasks.verify import fingerprint, verify

NAMES = ("rules/mlp", "rules/mha", "rules/rnn")
NOISES = [
    ("classification", "flip(0.2)"),
    ("classification", "logit(0.5)"),
    ("classification", "context(0.3)"),
    ("regression", "gaussian(0.5)"),
    ("regression", "laplace(0.5)"),
    ("regression", "context(0.3)"),
]
N = 2048


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("setting", "noise"), NOISES)
def test_inputs_and_clean_answers_are_those_without_noise(name: str, setting: str, noise: str) -> None:
    """Noise has a stream of its own; all splits but `train` and `iid/noise` stay as they are."""
    clean = task(name, rules=3, setting=setting)
    noisy = task(name, rules=3, setting=setting, noise=noise)
    before, after = clean.sample("train", N), noisy.sample("train", N)
    numbers = clean.spec.inputs[0].name
    assert np.array_equal(before.inputs[numbers], after.inputs[numbers])
    assert np.array_equal(before.factors["rule"], after.factors["rule"])
    assert np.array_equal(before.inputs["rule"], after.inputs["rule"]) == (not noise.startswith("context"))
    assert np.array_equal(before.targets, after.targets) == noise.startswith("context")
    np.testing.assert_allclose(noisy.solve(after), after.targets, atol=1e-5)
    for split in ("iid", "ood/amplitude=2"):
        assert fingerprint(clean.sample(split, 50)) == fingerprint(noisy.sample(split, 50))
    assert "iid/noise" not in clean.splits


def excess(setting: str, noise: str, name: str, n: int = 40_000) -> tuple[float, float]:
    """The error of the clean answer on noisy ones, and the floor."""
    made: Any = task(name, rules=3, setting=setting, noise=noise)
    drawn = made.sample("iid/noise", n, data_seed="test")
    clean = made._solve_with(drawn, drawn.factors["rule"])
    floor = made.noise_floor("iid/noise")
    assert made.noise_floor("iid") == 0.0
    return float(np.abs(clean.astype(float) - drawn.targets).mean()), floor


@pytest.mark.parametrize("case", [case for case in NOISES if not case[1].startswith("context")], ids=lambda c: c[1])
def test_floors_are_the_error_of_the_clean_answer(case: tuple[str, str]) -> None:
    error, floor = excess(*case, "rules/mlp")
    assert error == pytest.approx(floor, rel=0.03)
    error, floor = excess(*case, "rules/rnn", 4_000)
    assert error == pytest.approx(floor, rel=0.03)


def test_worked_floors() -> None:
    """flip: ε; gaussian: σ S √(2/π); laplace: b S, where S² is the mean of α² + β²."""
    made: Any = task("rules/mlp", rules=4, setting="regression", noise="gaussian(0.3)")
    rules = made.parameters
    size = math.sqrt(float((rules.alpha**2 + rules.beta**2).mean()))
    assert made.noise_floor("train") == pytest.approx(0.3 * size * math.sqrt(2 / math.pi))
    made = task("rules/mlp", rules=4, setting="regression", noise="laplace(0.3)")
    assert made.noise_floor("train") == pytest.approx(0.3 * size)
    made = task("rules/mha", rules=4, noise="flip(0.15)")
    assert made.noise_floor("train") == 0.15


def test_logit_noise_vanishes_with_its_temperature() -> None:
    clean = task("rules/mlp", rules=3).sample("train", N)
    noisy = task("rules/mlp", rules=3, noise="logit(1e-6)")
    assert np.array_equal(clean.targets, noisy.sample("train", N).targets)
    hot: Any = task("rules/mlp", rules=3, noise="logit(1e6)")
    assert hot.noise_floor("train") == pytest.approx(0.5, abs=1e-5)


def test_logit_noise_follows_the_sigmoid() -> None:
    """Independently: the share of class 1 among answers of about one standard deviation is sigmoid(1 / τ)."""
    drawn = task("rules/mlp", rules=2, noise="logit(0.7)").sample("train", 60_000)
    made: Any = task("rules/mlp", rules=2)
    rule, x = drawn.inputs["rule"], drawn.inputs["x"]
    alpha, beta = made.parameters.alpha[rule], made.parameters.beta[rule]
    ratio = (alpha * x[:, 0] + beta * x[:, 1]) / np.hypot(alpha, beta)
    near = np.abs(ratio - 1) < 0.05
    assert drawn.targets[near].mean() == pytest.approx(1 / (1 + math.exp(-1 / 0.7)), abs=0.03)


@pytest.mark.parametrize("name", NAMES)
def test_the_best_alignment_under_context_noise(name: str) -> None:
    """Routing by the rule that is shown: alignment to the true rule is ε (1 − 1/R)."""
    drawn = task(name, rules=4, noise="context(0.3)").sample("iid/noise", 20_000)
    weights = np.eye(4)[drawn.inputs["rule"]]
    matrix = activation_matrix(weights, drawn.factors["rule"], 4)
    assert alignment(matrix) == pytest.approx(0.3 * 0.75, abs=0.01)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_sizes_of_the_rnn_are_root_mean_squares(order: int) -> None:
    """The covariance followed from token to token, against drawn sequences."""
    shared: dict[str, Any] = {"rules": 3, "dimension": 8, "order": order, "prior": (0.5, 0.3, 0.2), "length": 6}
    made: Any = task("rules/rnn", setting="regression", **shared)
    drawn = made.sample("train", 20_000)
    states = drawn.targets.astype(float)
    assert made.answer_scale == pytest.approx(math.sqrt((states**2).mean()), rel=0.01)
    readouts = states @ made.parameters.w
    for rule, scale in enumerate(made.answer_scales):
        size = math.sqrt((readouts[drawn.inputs["rule"] == rule] ** 2).mean())
        assert scale == pytest.approx(size, rel=0.03)
    read: Any = task("rules/rnn", setting="regression", target="readout", **shared)
    assert read.answer_scale == pytest.approx(math.sqrt((readouts**2).mean()), rel=0.02)


@pytest.mark.parametrize(
    ("name", "setting", "noise"),
    [
        *(("rules/mlp", *case) for case in NOISES),
        ("rules/mha", "regression", "laplace(0.5)"),
        ("rules/rnn", "classification", "logit(0.5)"),
        ("rules/rnn", "regression", "gaussian(0.5)"),
    ],
)
def test_verify(name: str, setting: str, noise: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generator, "LENGTHS", (3,))
    made = task(name, rules=3, setting=setting, noise=noise, **({} if name == "rules/mlp" else {"length": 4}))
    checks = verify(made, 200)
    assert [check for check in checks if check.status == "FAIL"] == []
    assert {"train", "iid/noise"} <= {check.split for check in checks}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"noise": "flip"}, "like flip(0.1)"),
        ({"noise": "flop(0.1)"}, "unknown noise 'flop'"),
        ({"noise": "flip(0.5)"}, "from 0 to below 0.5"),
        ({"noise": "logit(0)"}, "above 0"),
        ({"noise": "gaussian(0.1)"}, "belongs to setting regression"),
        ({"noise": "flip(0.1)", "setting": "regression"}, "belongs to setting classification"),
        ({"stratified": True}, "give train_size as well"),
    ],
)
def test_wrong_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as error:
        task("rules/mlp", **options)
    assert message in str(error.value)
    assert len(str(error.value).splitlines()) <= 2


# -- stratified training sets ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", [100, 1500])
def test_stratified_rules_differ_by_at_most_one(name: str, size: int) -> None:
    made = task(name, rules=7, train_size=size, stratified=True)
    drawn = made.sample("train", size)
    counts = np.bincount(drawn.inputs["rule"].ravel(), minlength=7)
    assert counts.max() - counts.min() <= 1
    assert np.array_equal(made.solve(drawn), drawn.targets)
    plain = task(name, rules=7, train_size=size)
    numbers = plain.spec.inputs[0].name
    assert np.array_equal(plain.sample("train", size).inputs[numbers], drawn.inputs[numbers])
    assert fingerprint(plain.sample("iid", 50)) == fingerprint(made.sample("iid", 50))
    other = made.sample("train", size, data_seed=1)
    assert not np.array_equal(other.inputs["rule"], drawn.inputs["rule"])


def test_stratified_follows_the_prior() -> None:
    made = task("rules/mlp", rules=3, prior=(0.5, 0.3, 0.2), train_size=101, stratified=True)
    assert np.bincount(made.sample("train", 101).inputs["rule"]).tolist() == [51, 30, 20]


def test_balanced_rules_are_in_random_order() -> None:
    from unseen.randomness import stream

    rules = balanced_rules(np.full(2, 500.0), stream("test").block())
    assert 400 < np.count_nonzero(np.diff(rules)) < 600


def test_stratified_and_noisy_sets_verify(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generator, "LENGTHS", (3,))
    made = task("rules/rnn", rules=3, length=4, train_size=300, stratified=True, noise="flip(0.1)")
    assert [check for check in verify(made, 200) if check.status == "FAIL"] == []
