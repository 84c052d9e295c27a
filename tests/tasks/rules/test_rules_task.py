"""The tasks themselves: options, specs, splits, streams, presets, golden numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from unseen.errors import UsageError
from unseen.spec import Field, Spec, Stream, Target
from unseen.tasks import task
from unseen.tasks.base import Examples
from unseen.tasks.verify import fingerprint

GOLDEN = {
    "mlp": ("c26d65bf2bbaeb13a788ecea1c2545b1", "e584f8731c284ec648f244d52ea16b32"),
    "mlp zipf(1)": ("706c81a568c1316132c147382207719a", "0fb71ecc3b65c2d2d11603f65d9d280e"),
    "mha": ("12dbf6225d2ca562b64baa3d5f95cfd9", "bea414795967b4c2a0de97489c82c45f"),
    "mha 2": ("6162e7ad3f2ace5a2635b5a56ee5f5fc", "63080ebfe0013eb83e6bd65464eb205e"),
    "rnn": ("c363a6e0572bb766281bd57a8c23be98", "cdb9a68288548caa2311bb7f10cae90b"),
}
NUMBERS = {
    "mlp": [-0.8886595964431763, -0.15686523914337158],
    "mlp zipf(1)": [-2.479210138320923, -0.20316439867019653],
    "mha": [0.34046101570129395, 0.03649144619703293, 0.12929269671440125],
    "mha 2": [-1.8969178199768066, -0.773198127746582, -1.76327645778656],
    "rnn": [-0.6010426878929138, 0.7341130375862122, 0.327219158411026],
}
NAMES = ("rules/mlp", "rules/mha", "rules/rnn")
BLOCK = 1024


@pytest.mark.parametrize("which", GOLDEN)
def test_golden_blocks(which: str) -> None:
    """The numbers of every task; a change is a decision and raises the task's version.

    Classes are hashed, answers compared to rounding: those of the rnn rest on the processor's library.
    """
    name, _, more = which.partition(" ")
    options: dict[str, Any] = {"": {}, "2": {"search": 2}, "zipf(1)": {"prior": more}}[more]
    made = task(f"rules/{name}", **options)
    assert tuple(fingerprint(made.sample(c, BLOCK)) for c in ("train", "ood/amplitude=2")) == GOLDEN[which]
    answers = task(f"rules/{name}", setting="regression", **options).sample("train", 2).targets.reshape(-1)
    np.testing.assert_allclose(answers[:3], NUMBERS[which], rtol=1e-6)


def test_specs() -> None:
    tokens, rule = Stream("tokens", 10), Field("rule", "category", 4)
    along = Field("rule", "category", 4, "tokens")
    for setting, kind in (("classification", "binary"), ("regression", "real")):
        options = {"rules": 4, "setting": setting}
        assert task("rules/mlp", **options).spec == Spec((), (Field("x", "real", 2), rule), Target(kind))
        for search, width in ((1, 16), (2, 24)):
            assert task("rules/mha", search=search, **options).spec == Spec(
                (Stream("tokens", 10, "set"),),
                (Field("features", "real", width, "tokens"), along),
                Target(kind, 1, "tokens"),
            )
        outputs = 32 if kind == "real" else 1
        assert task("rules/rnn", **options).spec == Spec(
            (tokens,), (Field("x", "real", 32, "tokens"), along), Target(kind, outputs, "tokens")
        )
    read = task("rules/rnn", setting="regression", target="readout", dimension=5)
    assert read.spec.target == Target("real", 1, "tokens") and read.spec.field("x").width == 5


def test_splits() -> None:
    assert list(task("rules/mlp").splits) == ["train", "iid", "ood/amplitude=2"]
    assert list(task("rules/mlp", preset="paper").splits)[-1] == "ood/amplitude=1.41421"
    for name in ("rules/mha", "rules/rnn"):
        found = task(name).splits
        assert set(found) == {"train", "iid", "ood/amplitude=2"} | {
            f"ood/length={n}{more}" for n in (3, 5, 20, 30) for more in ("", ",amplitude=2")
        }
        assert not any(split.unseen for split in found.values())
        for split, length in (("iid", 10), ("ood/length=3", 3), ("ood/length=30,amplitude=2", 30)):
            assert task(name).sample(split, 2).inputs["rule"].shape == (2, length)
        assert "ood/length=10" in task(name, length=7).splits
    assert "ood/rules=uniform" in task("rules/mlp", prior="zipf(1)").splits
    assert "ood/rules=uniform" not in task("rules/mlp", prior="zipf(0)").splits


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("rules/mlp", {"rules": 0}, "rules = 0: Input should be greater than or equal to 1"),
        ("rules/mlp", {"task_seed": -1}, "task_seed = -1"),
        ("rules/mlp", {"amplitude": 0}, "amplitude = 0"),
        ("rules/mlp", {"setting": "both"}, "setting = 'both'"),
        ("rules/mlp", {"preset": "released"}, "preset = 'released'"),
        ("rules/mlp", {"length": 5}, "unknown option 'length'"),
        ("rules/mha", {"length": 1}, "length = 1: Input should be greater than or equal to 2"),
        ("rules/mha", {"search": 3}, "search = 3"),
        ("rules/rnn", {"target": "state"}, "target belongs to setting regression"),
        ("rules/rnn", {"dimension": 0}, "dimension = 0"),
    ],
)
def test_wrong_options(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        task(name, **options)


def same_inputs(one: Examples, two: Examples) -> bool:
    return all(np.array_equal(one.inputs[key], two.inputs[key]) for key in one.inputs)


class TestStreams:
    @pytest.mark.parametrize("name", NAMES)
    def test_settings_and_presets_see_the_same_inputs(self, name: str) -> None:
        plain = task(name).sample("train", 50)
        for options in ({"setting": "regression"}, {"preset": "paper"}, {"preset": "paper", "setting": "regression"}):
            assert same_inputs(task(name, **options).sample("train", 50), plain)
        real = task(name, setting="regression", preset="paper").sample("train", 50)
        assert name != "rules/mlp" or ((real.targets >= 0) == plain.targets).all()

    @pytest.mark.parametrize("name", NAMES)
    def test_tasks_of_other_rules_see_other_inputs(self, name: str) -> None:
        plain = task(name).sample("train", 5)
        for options in ({"task_seed": 1}, {"rules": 7}):
            other = task(name, **options).sample("train", 5)
            first = next(iter(plain.inputs))
            assert not np.intersect1d(other.inputs[first], plain.inputs[first]).size

    def test_what_differs_between_the_presets(self) -> None:
        """D1: the amplitude; D2: search 2; D6: the target of the rnn. Nothing else."""
        for name, options in (
            ("rules/mlp", {}),
            ("rules/mha", {"search": 1}),
            ("rules/mha", {"search": 2}),
            ("rules/rnn", {}),
        ):
            for setting in ("classification", "regression"):
                clean, paper = (task(name, preset=preset, setting=setting, **options) for preset in ("clean", "paper"))
                one, two = clean.sample("train", 40), paper.sample("train", 40)
                assert same_inputs(one, two)
                equal = one.targets.shape == two.targets.shape and np.array_equal(one.targets, two.targets)
                expected = options.get("search") != 2 and (name, setting) != ("rules/rnn", "regression")
                assert equal == expected
                amplitudes = [made.choices.amplitude for made in (clean, paper)]
                assert amplitudes == [2.0, math.sqrt(2)]

    def test_every_difference_is_an_option_of_its_own(self) -> None:
        amplitude = task("rules/mlp", amplitude=math.sqrt(2))
        assert "ood/amplitude=1.41421" in amplitude.splits
        for name, options, given, undone in (
            ("rules/mha", {"search": 2}, {"nearest": False}, {"nearest": True}),
            ("rules/rnn", {"setting": "regression"}, {"target": "readout"}, {"target": "state"}),
        ):
            ours = task(name, **options, **given).sample("train", 40)
            papers = task(name, preset="paper", **options).sample("train", 40)
            assert fingerprint(ours) == fingerprint(papers)
            back = task(name, preset="paper", **options, **undone).sample("train", 40)
            assert fingerprint(back) == fingerprint(task(name, **options).sample("train", 40))


class TestDistributions:
    @pytest.mark.parametrize("name", NAMES)
    def test_inputs_are_normal_and_rules_uniform_and_independent(self, name: str) -> None:
        made = task(name, rules=4)
        field = made.spec.inputs[0].name
        for split, amplitude in (("iid", 1.0), ("ood/amplitude=2", 2.0)):
            examples = made.sample(split, 4_000 if name == "rules/mlp" else 400)
            numbers, rule = examples.inputs[field].astype(np.float64), examples.inputs["rule"].reshape(-1)
            assert numbers.dtype == np.float64 and examples.inputs[field].dtype == np.float32
            assert stats.kstest(numbers.reshape(-1)[::3], "norm", (0, amplitude)).pvalue > 1e-3
            assert stats.chisquare(np.bincount(rule, minlength=4)).pvalue > 1e-3
            groups = [numbers.reshape(len(rule), -1)[rule == r].reshape(-1) for r in range(4)]
            assert stats.f_oneway(*groups).pvalue > 1e-3

    def test_queries_of_search_2_lie_on_a_circle(self) -> None:
        made = task("rules/mha", search=2, rules=3, preset="paper", radius=3.0)
        for split, radius, amplitude in (("train", 1, 1), ("ood/amplitude=1.41421", 3, math.sqrt(2))):
            features = made.sample(split, 300).inputs["features"].reshape(-1, 6).astype(np.float64)
            for first in (0, 2):
                x, y = features[:, first : first + 2].T
                np.testing.assert_allclose(np.hypot(x, y), radius, rtol=1e-6)
                assert stats.kstest(np.arctan2(y, x) / (2 * np.pi) + 0.5, "uniform").pvalue > 1e-3
            assert stats.kstest(features[:, 4:].reshape(-1), "norm", (0, amplitude)).pvalue > 1e-3

    def test_prior_holds_everywhere_but_where_rules_are_uniform(self) -> None:
        made = task("rules/rnn", rules=3, prior=(0.5, 0.5, 0.0), dimension=2)
        assert made.pi.tolist() == [0.5, 0.5, 0.0]
        for split in made.splits:
            counts = np.bincount(made.sample(split, 600).factors["rule"].reshape(-1), minlength=3)
            if split == "ood/rules=uniform":
                assert stats.chisquare(counts).pvalue > 1e-3
            else:
                assert counts[2] == 0 and stats.chisquare(counts[:2]).pvalue > 1e-3

    def test_states_grow_as_the_root_of_their_number(self) -> None:
        """E‖s_n‖² = 32 n over tasks, and the rough figures of the zero predictor with it."""
        tasks = [task("rules/rnn", rules=32, task_seed=seed, setting="regression") for seed in range(5)]
        states = np.concatenate([made.sample("train", BLOCK).targets for made in tasks])
        np.testing.assert_allclose((states**2).sum(axis=2).mean(axis=0), 32 * np.arange(1, 11), rtol=0.1)


LENGTHS = (3, 5, 10, 20, 30)
MEASURED = ((1.09, 1.09), (1.31, 1.32), (1.70, 1.75), (2.22, 2.36), (2.58, 2.82))
"""Zero predictors of rules/rnn at each length: the mean of the authors' five tasks, its range over numbers of rules."""
SINGLE = {2: (2.06, 3.04), 4: (2.37, 3.59), 32: (2.71, 2.93)}
"""The range of single tasks at length 30, by the number of rules."""


@pytest.mark.parametrize("rules", [2, 4, 8, 16, 32])
def test_zero_predictor_of_the_rnn_is_measured_on_test_data(rules: int) -> None:
    tasks = [task("rules/rnn", rules=rules, task_seed=seed, setting="regression") for seed in range(5)]
    found = np.array([[made.zero_loss("iid" if n == 10 else f"ood/length={n}") for made in tasks] for n in LENGTHS])
    for mean, (low, high) in zip(found.mean(axis=1), MEASURED, strict=True):
        assert low - 0.01 <= mean <= high + 0.01
    if rules in SINGLE:
        assert (found[-1].min(), found[-1].max()) == pytest.approx(SINGLE[rules], abs=0.04)
    # The rough formula: a coordinate of the nth state has a standard deviation of about √n.
    rough = [math.sqrt(2 / math.pi) * np.sqrt(np.arange(1, n + 1)).mean() for n in LENGTHS]
    assert rough == pytest.approx([1.10, 1.34, 1.79, 2.46, 2.98], abs=0.005)
    assert found.mean(axis=1) == pytest.approx(rough, rel=0.14)
    assert tasks[0].zero_loss("ood/amplitude=2") / found[2, 0] == pytest.approx(2, rel=0.02)


def test_zero_predictor() -> None:
    assert task("rules/mlp").zero_loss("iid") is None
    made = task("rules/mha", rules=2, setting="regression", prior=(1.0, 0.0))
    alpha, beta = made.parameters.alpha, made.parameters.beta
    assert made.zero_loss("iid") == pytest.approx(math.sqrt(2 / math.pi) * math.hypot(alpha[0], beta[0]))
    both = made.zero_loss("ood/rules=uniform")
    assert both == pytest.approx(math.sqrt(2 / math.pi) * np.hypot(alpha, beta).mean())
    assert made.zero_loss("ood/amplitude=2") == pytest.approx(2 * made.zero_loss("iid"))
    with pytest.raises(UsageError, match="Did you mean"):
        made.zero_loss("ood/amplitude=3")


def test_one_rule_is_a_task_like_any_other() -> None:
    for name in NAMES:
        for setting in ("classification", "regression"):
            made = task(name, rules=1, setting=setting)
            examples = made.sample("train", 20)
            assert not examples.inputs["rule"].any()
            np.testing.assert_allclose(made.solve(examples), examples.targets, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("options", "exact"),
    [({"order": 3, "dimension": 4}, True), ({"spread": "variance"}, False), ({"dimension": 1, "length": 1}, True)],
)
def test_other_recurrences_are_solved(options: dict[str, Any], exact: bool) -> None:
    made = task("rules/rnn", setting="regression", **options)
    for split in ("train", "ood/length=20"):
        examples = made.sample(split, 20)
        np.testing.assert_allclose(made.solve(examples), examples.targets, rtol=1e-5, atol=1e-5 if exact else 1)


@pytest.mark.parametrize("kind", ["mlp", "mha", "rnn"])
def test_a_finite_training_set_is_the_beginning_of_the_endless_one(kind: str) -> None:
    """So a larger set contains the smaller one; tests are the same, and all else is endless."""
    endless, finite = task(f"rules/{kind}", rules=2), task(f"rules/{kind}", rules=2, train_size=300)
    assert [finite.size(split) for split in finite.splits] == [300] + [None] * (len(finite.splits) - 1)
    assert fingerprint(finite.sample("train", 300)) == fingerprint(endless.sample("train", 300))
    assert fingerprint(finite.sample("iid", 50)) == fingerprint(endless.sample("iid", 50))
    assert endless.identity() == task(f"rules/{kind}", rules=2, train_size=None).identity()
    with pytest.raises(UsageError, match="has 300 examples"):
        finite.sample("train", 301)
    with pytest.raises(UsageError, match="train_size = 0"):
        task(f"rules/{kind}", train_size=0)


def test_training_on_a_finite_set_sees_every_example_once_in_an_epoch() -> None:
    from unseen.training.batches import TrainingData

    data = TrainingData(task("rules/mlp", train_size=96), 0, 32, "shuffled")
    epochs = [np.concatenate([data.batch(3 * epoch + k).inputs["x"] for k in range(3)]) for epoch in range(2)]
    assert not np.array_equal(*epochs)
    assert np.array_equal(*(np.sort(epoch, axis=0) for epoch in epochs))
