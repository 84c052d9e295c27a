"""Adaptation: its fixed draws, its closed forms, sampled against linear, sorted against matched."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unseen.analysis import adaptation, collapsed_activation, ideal_partition, uniform_activation
from unseen.analysis.adaptation_metric import rule_distributions

FIXTURE = json.loads((Path(__file__).parent / "specialization.json").read_text())
RULES = (2, 4, 8, 16, 32)
quick = settings(deadline=None, derandomize=True, max_examples=25)


def sampler(matrix, tokens, seed=0):
    """Tokens of a router whose weights depend on the rule alone."""
    numbers, matrix = np.random.default_rng(seed), np.asarray(matrix)

    def draw(p):
        rules = numbers.choice(len(p), tokens, p=p)
        return matrix[rules], rules

    return draw


def slowly(matrix, half=True):
    """The original, for M = R and uniform rules, draw by draw."""
    rules, found = len(matrix), []
    for seed in range(100):
        p = np.random.RandomState(seed).dirichlet([1.0] * rules)
        q = sum(p[r] * matrix[r] for r in range(rules))
        found.append(sum(abs(a - b) for a, b in zip(sorted(p), sorted(q), strict=True)) * (0.5 if half else 1))
    return sum(found) / 100


@pytest.mark.parametrize("rules", ["2", "4"])
def test_the_fixed_draws(rules):
    found = rule_distributions(np.full(int(rules), 1 / int(rules)))
    assert found.shape == (100, int(rules))
    assert found[:3] == pytest.approx(np.array(FIXTURE["dirichlet"][rules]), abs=1e-15)


def test_uniform_priors_of_every_size_are_ones():
    """49 · (1/49) is a last bit below 1, where the legacy generator takes another way."""
    found = rule_distributions(np.full(49, 1 / 49))
    assert (found[7] == np.random.RandomState(7).dirichlet(np.ones(49))).all()


@pytest.mark.parametrize("case", FIXTURE["adaptation"], ids=lambda case: case["id"])
def test_values_of_the_published_implementation(case):
    matrix = np.array(case["A"])
    assert adaptation(matrix) == pytest.approx(case["linear"], abs=1e-12)
    sampled = adaptation(sampler(matrix, 10_000), rules=2, kind="reference")
    assert sampled == pytest.approx(case["sampled"], abs=0.002)


@quick
@given(st.integers(2, 9), st.integers(0, 10**6))
def test_linear_by_a_slow_loop(rules, seed):
    matrix = np.random.default_rng(seed).dirichlet(np.full(rules, 0.5), rules)
    assert adaptation(matrix) == pytest.approx(slowly(matrix), abs=1e-12)
    assert adaptation(matrix, half=False) == pytest.approx(slowly(matrix, half=False), abs=1e-12)


@pytest.mark.parametrize(
    ("rules", "drawn", "expected"),
    list(zip(RULES, (0.2567, 0.3007, 0.3350, 0.3540, 0.3650), (0.2500, 0.3164, 0.3436, 0.3561, 0.3621), strict=True)),
)
def test_the_random_baseline(rules, drawn, expected):
    assert adaptation(uniform_activation(rules)) == pytest.approx(drawn, abs=5e-5)
    assert (1 - 1 / rules) ** rules == pytest.approx(expected, abs=5e-5)
    assert monte_carlo(uniform_activation(rules)) == pytest.approx(expected, abs=0.004)


@pytest.mark.parametrize(("rules", "expected"), [(2, 0.2500), (4, 0.4792), (8, 0.6603), (16, 0.7887), (32, 0.8732)])
def test_the_collapsed_baseline(rules, expected):
    assert 1 - sum(1 / k for k in range(1, rules + 1)) / rules == pytest.approx(expected, abs=5e-5)
    assert monte_carlo(collapsed_activation(rules)) == pytest.approx(expected, abs=0.004)
    # 100 draws of a maximum: the standard deviation of one is below 0.15.
    assert adaptation(collapsed_activation(rules)) == pytest.approx(expected, abs=0.045)


def monte_carlo(matrix):
    """The expectation over all rule distributions."""
    p = np.random.default_rng(5).dirichlet(np.ones(len(matrix)), 20_000)
    return np.abs(np.sort(p) - np.sort(p @ matrix)).sum(axis=1).mean() / 2


@pytest.mark.parametrize(
    ("rules", "one", "ten"),
    list(zip(RULES, (0.003, 0.006, 0.009, 0.013, 0.016), (0.001, 0.002, 0.003, 0.004, 0.006), strict=True)),
)
def test_a_perfect_system_and_its_floor(rules, one, ten):
    perfect = np.eye(rules)
    assert adaptation(perfect) == 0
    assert adaptation(sampler(perfect, 2_000), rules=rules) == pytest.approx(0, abs=1e-12)
    assert adaptation(sampler(perfect, 10_000), rules=rules, kind="reference") == pytest.approx(one, abs=6e-4)
    # Tokens of one sequence are as independent here as any; the noise falls by √10.
    if rules <= 4:
        assert adaptation(sampler(perfect, 100_000), rules=rules, kind="reference") == pytest.approx(ten, abs=6e-4)


@pytest.mark.parametrize(("rules", "modules"), [(4, 4), (3, 5), (5, 2)])
def test_sampled_agrees_with_linear(rules, modules):
    matrix = np.random.default_rng(rules).dirichlet(np.ones(modules), rules)
    for kind, other in (("auto", "auto"), ("matched", "matched"), ("reference", "linear")):
        found = adaptation(sampler(matrix, 20_000), rules=rules, kind=kind)
        assert found == pytest.approx(adaptation(matrix, kind=other), abs=0.01)


@quick
@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 10**6), st.booleans())
def test_matched_is_never_smaller(rules, modules, seed, skewed):
    numbers = np.random.default_rng(seed)
    matrix = numbers.dirichlet(np.full(modules, 0.4), rules)
    prior = numbers.dirichlet(np.ones(rules)) if skewed else None
    assert adaptation(matrix, prior, kind="matched") >= adaptation(matrix, prior) - 1e-12


def test_matched_sees_a_wrong_pairing_that_sorting_does_not():
    """A perfect system, its modules permuted; then rules that lend two fifths of their weight to the next module."""
    assert adaptation(np.eye(3)[[1, 2, 0]], kind="matched") == pytest.approx(0, abs=1e-12)
    tilted = np.array([[0.6, 0.4, 0.0], [0.0, 0.6, 0.4], [0.4, 0.0, 0.6]])
    assert adaptation(tilted, kind="matched") > adaptation(tilted) + 0.01


def test_fewer_modules_than_rules():
    """The ideal system, {0, 2, 4} and {1, 3}, settles the tie of the uniform matrix: other maps give 0.16 to 0.32."""
    assert adaptation(uniform_activation(5, 2)) == pytest.approx(0.1866, abs=5e-5)
    p = rule_distributions(np.full(5, 0.2))
    big = p[:, [0, 2, 4]].sum(axis=1)
    assert adaptation(uniform_activation(5, 2)) == pytest.approx(np.abs(big - 0.5).mean(), abs=1e-12)
    for rules, modules in ((6, 3), (5, 2), (7, 4)):
        ideal = np.eye(modules)[ideal_partition(np.full(rules, 1 / rules), modules)]
        assert adaptation(ideal) == pytest.approx(0, abs=1e-12)
    assert adaptation(np.ones((3, 1))) == 0


def test_spare_modules_and_rules_that_never_occur():
    assert adaptation(np.eye(6)[:4]) == 0
    prior, rows = np.array([0.5, 0.2, 0.3]), np.random.default_rng(0).dirichlet(np.ones(3), 3)
    padded = np.insert(rows, 1, math.nan, axis=0)
    assert adaptation(padded, [0.5, 0, 0.2, 0.3]) == adaptation(rows, prior)

    def strict(p):
        assert p.shape == (4,) and p[1] == 0
        return sampler(np.insert(rows, 1, 1 / 3, axis=0), 4_000)(p)

    assert adaptation(strict, [0.5, 0, 0.2, 0.3]) == pytest.approx(adaptation(rows, prior), abs=0.01)


def test_the_concentration_of_the_rule_distributions():
    p = rule_distributions(np.array([0.6, 0.3, 0.1]), kappa=50)
    assert p.mean(axis=0) == pytest.approx([0.6, 0.3, 0.1], abs=0.02)
    assert p.var(axis=0) == pytest.approx(np.array([0.24, 0.21, 0.09]) / 151, rel=0.5)
    assert adaptation(uniform_activation(4), kappa=50) < 0.1 < adaptation(uniform_activation(4), kappa=0.1)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: adaptation(np.eye(2), kind="sampled"), "needs a sampler"),
        (lambda: adaptation(np.eye(2), kind="reference"), "needs a sampler"),
        (lambda: adaptation(np.eye(2), kind="lineal"), "Did you mean 'linear'"),
        (lambda: adaptation(sampler(np.eye(2), 9), rules=2, kind="linear"), "needs the activation matrix"),
        (lambda: adaptation(sampler(np.eye(2), 9)), "how many rules"),
        (lambda: adaptation(sampler(np.eye(2), 9), rules=0), "how many rules"),
        (lambda: adaptation(np.eye(2), rules=2), "goes with a sampler"),
        (lambda: adaptation(lambda p: np.eye(2), rules=2), "returns a pair"),
        (lambda: adaptation(np.eye(2), kappa=0), "positive"),
        (lambda: adaptation(np.eye(2), kappa=1e-4), "larger kappa"),
        (lambda: adaptation(lambda p: (np.ones((3, 1)), [0, 1, 5]), rules=2), "numbered 0 … 1"),
        (lambda: adaptation(lambda p: (np.ones((3, 1)), [0, 0, 0]), rules=2), "no token has rule 1"),
    ],
)
def test_wrong_use_is_answered(call, says):
    with pytest.raises(ValueError, match=says):
        call()
