"""From the weights of single tokens: the activation matrix, token entropy, and all metrics with standard errors."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import entropy

from unseen.analysis import (
    activation_matrix,
    mutual_information,
    routing,
    specialization,
    specialization_metrics,
    token_entropy,
    token_information,
)
from unseen.analysis.specialization_metrics import MATRIX_METRICS, SpecializationTally

FIXTURE = json.loads((Path(__file__).parent / "specialization.json").read_text())
quick = settings(deadline=None, derandomize=True, max_examples=40)


def tokens(rules, modules, number, seed, length=None, tilt=0.4):
    """A soft router: a preferred module for each rule, modules liked more and more, and noise in every token."""
    numbers = np.random.default_rng([3, seed])
    shape = (number,) if length is None else (number, length)
    of = numbers.integers(rules, size=shape)
    scores = 2.0 * (np.arange(modules) == of[..., None] % modules) + tilt * np.arange(modules)
    weights = np.exp(scores + numbers.normal(size=(*shape, modules)))
    return (weights / weights.sum(axis=-1, keepdims=True)).astype(np.float32), of


@pytest.mark.parametrize("case", FIXTURE["activation_matrix"], ids=["R2", "R4"])
def test_activation_matrices_of_the_published_implementation(case):
    found = activation_matrix(case["weights"], case["rules"], len(case["A"]))
    assert found == pytest.approx(np.array(case["A"]), abs=1e-6)


@quick
@given(st.integers(1, 5), st.integers(1, 4), st.integers(0, 10**6), st.sampled_from([None, 3]))
def test_activation_matrix_token_by_token(rules, modules, seed, length):
    weights, of = tokens(rules, modules, 40, seed, length=length)
    of.flat[:rules] = np.arange(rules)
    expected = np.zeros((rules, modules))
    for rule in range(rules):
        rows = [w for w, r in zip(weights.reshape(-1, modules), of.ravel(), strict=True) if r == rule]
        expected[rule] = np.mean(rows, axis=0)
    assert activation_matrix(weights, of) == pytest.approx(expected, abs=1e-6)
    assert activation_matrix(weights, of, rules) == pytest.approx(expected, abs=1e-6)


def test_many_tokens_are_added_up_piece_by_piece(monkeypatch):
    weights, of = tokens(3, 4, 100, 0)
    whole = activation_matrix(weights, of), token_entropy(weights, of)
    monkeypatch.setattr(routing, "AT_ONCE", 4 * 7)
    monkeypatch.setattr(specialization_metrics, "AT_ONCE", 4 * 7)
    assert activation_matrix(weights, of) == pytest.approx(whole[0], abs=1e-12)
    assert token_entropy(weights, of) == pytest.approx(whole[1], abs=1e-6)


def test_decisive_and_mixed_tokens_are_told_apart():
    """Two routers with the same even activation matrix."""
    decisive, mixed = np.eye(2)[[0, 1, 0, 1]], np.full((4, 2), 0.5)
    rules = [0, 0, 1, 1]
    assert activation_matrix(decisive, rules).tolist() == activation_matrix(mixed, rules).tolist()
    assert (token_entropy(decisive, rules), token_entropy(mixed, rules)) == (0, 1)
    assert token_information(decisive, rules) == pytest.approx(math.log(2))
    assert token_information(mixed, rules) == 0


@quick
@given(st.integers(2, 5), st.integers(2, 5), st.integers(0, 10**6), st.booleans())
def test_token_measures_by_scipy(rules, modules, seed, skewed):
    weights, of = tokens(rules, modules, 60, seed)
    of[:rules] = np.arange(rules)
    prior = np.random.default_rng(seed).dirichlet(np.ones(rules)) if skewed else np.full(rules, 1 / rules)
    each = [entropy(row) for row in weights.astype(float)]
    assert token_entropy(weights) == pytest.approx(np.mean(each) / math.log(modules), abs=1e-6)
    assert token_information(weights) == pytest.approx(entropy(weights.mean(axis=0)) - np.mean(each), abs=1e-5)
    by_rule = np.array([np.mean([h for h, r in zip(each, of, strict=True) if r == rule]) for rule in range(rules)])
    matrix = activation_matrix(weights, of)
    assert token_entropy(weights, of, prior) == pytest.approx(prior @ by_rule / math.log(modules), abs=1e-6)
    information = token_information(weights, of, prior)
    assert information == pytest.approx(entropy(prior @ matrix) - prior @ by_rule, abs=1e-5)
    assert information >= mutual_information(matrix, prior) - 1e-6, "a token tells at least its rule"


@pytest.mark.parametrize("pi", [None, (0.5, 0.3, 0.2), (0.5, 0.5, 0.0)])
def test_all_metrics_of_a_router(pi):
    weights, of = tokens(3, 4, 600, 1)
    found = specialization(weights, of, pi)
    prior = np.full(3, 1 / 3) if pi is None else np.array(pi)
    matrix = activation_matrix(weights, of)
    for name, metric in MATRIX_METRICS.items():
        assert found[name].value == pytest.approx(metric(matrix, prior), abs=1e-9)
    assert found["token_entropy"].value == pytest.approx(token_entropy(weights, of, pi), abs=1e-7)
    assert found["token_information"].value == pytest.approx(token_information(weights, of, pi), abs=1e-6)
    assert found.keys() == {*MATRIX_METRICS, "token_entropy", "token_information"}
    assert all(score.n == 600 and score.standard_error >= 0 for score in found.values())


@pytest.mark.parametrize(
    ("rules", "modules", "length", "tilt", "most"),
    [
        (4, 4, 6, 0.4, 1.4),
        (3, 5, None, 0.4, 1.4),
        (5, 2, None, 0.4, 1.4),
        (4, 4, None, 0.0, 2.0),  # loads that are equal but for noise: a kink, where the jackknife errs on the safe side
    ],
)
def test_standard_errors_are_the_spread_over_data_sets(rules, modules, length, tilt, most):
    """The mean error over 60 data sets against the spread of the values: each is known to about a tenth."""
    runs = [specialization(*tokens(rules, modules, 400, seed, length, tilt)) for seed in range(60)]
    for name in runs[0]:
        values = np.array([run[name].value for run in runs])
        errors = np.array([run[name].standard_error for run in runs])
        if values.std() > 1e-6:  # a collapse that is 0 in every data set has no error to check
            ratio = math.sqrt((errors**2).mean()) / values.std(ddof=1)
            assert 0.7 < ratio < most, (name, ratio)


def test_tokens_of_one_sequence_are_one_example():
    """Ten copies of every token: no more is known than from one."""
    weights, of = tokens(3, 3, 200, 0)
    one, ten = specialization(weights, of), specialization(*(np.repeat(x[:, None], 10, axis=1) for x in (weights, of)))
    for name in one:
        assert ten[name].value == pytest.approx(one[name].value, abs=1e-6)
        assert ten[name].standard_error == pytest.approx(one[name].standard_error, abs=1e-6)
    assert ten["alignment"].n == 200


@pytest.mark.parametrize("rules", [4, 20, 40])
def test_rules_that_come_in_turn_have_errors_too(rules):
    """Also where the number of groups is a multiple of theirs."""
    weights, _ = tokens(1, 3, 4_000, 0)
    found = specialization(weights, np.arange(4_000) % rules)
    mixed = specialization(weights, np.random.default_rng(0).permutation(np.arange(4_000) % rules))
    for name in ("mutual_information", "token_entropy"):
        assert found[name].standard_error == pytest.approx(mixed[name].standard_error, rel=0.6)


def test_examples_may_come_in_pieces():
    weights, of = tokens(3, 4, 203, 2, length=5)
    whole, tally = specialization(weights, of), SpecializationTally(3)
    for start, stop in ((0, 7), (7, 8), (8, 150), (150, 203)):
        tally.add(weights[start:stop], of[start:stop])
    for name, score in tally.scores().items():
        expected = (whole[name].value, whole[name].standard_error, 203)
        assert (score.value, score.standard_error, score.n) == pytest.approx(expected, abs=1e-9)


def test_a_perfect_router_has_no_error():
    of = np.arange(200) % 4
    found = specialization(np.eye(4)[of], of)
    five = [
        found[name]
        for name in (
            "collapse_avg",
            "collapse_worst",
            "alignment",
            "inverse_mutual_information",
            "adaptation",
            "token_entropy",
        )
    ]
    assert [score.value for score in five] == pytest.approx([0] * 6, abs=1e-12)
    assert [score.standard_error for score in five] == pytest.approx([0] * 6, abs=1e-12)
    assert found["effective_modules"].value == pytest.approx(4)


def test_too_few_examples_have_no_error():
    single = specialization([[[0.9, 0.1], [0.2, 0.8]]], [[0, 1]])
    lonely = specialization(np.full((30, 2), 0.5), [0] * 29 + [1])
    assert math.isnan(single["alignment"].standard_error) and single["alignment"].value == pytest.approx(0.15)
    assert math.isnan(lonely["alignment"].standard_error) and lonely["alignment"].value == pytest.approx(0.5)


GOOD = np.full((4, 2), 0.5)


@pytest.mark.parametrize("function", [activation_matrix, specialization, token_entropy])
@pytest.mark.parametrize(
    ("weights", "rules", "says"),
    [
        (np.where(np.eye(4, 2) > 0, math.nan, GOOD), [0, 1, 0, 1], "NaN"),
        ([[1.2, -0.2]] * 4, [0, 1, 0, 1], "-0.2"),
        ([[0.5, 0.6]] * 4, [0, 1, 0, 1], "sum to 1"),
        (GOOD, [0, 1, 0], "shapes"),
        (GOOD, [[0, 1, 0, 1]], "shapes"),
        (GOOD[0], 0, "shapes"),
        (GOOD, [0.0, 1.0, 0.0, 1.0], "whole numbers"),
        (GOOD, [0, 1, math.nan, 1], "whole numbers"),
        (GOOD, list("abab"), "the rule of every token as an array of numbers"),
        (GOOD, [[0], [1, 0], [1]], "rows of different lengths"),
        (GOOD, [0, 1, 0, 10**12], "no token has rule 2, 3"),
        (GOOD, [0, 1, -1, 1], "numbered"),
        (GOOD, [0, 2, 0, 2], "no token has rule 1"),
        (np.empty((0, 2)), np.empty(0, int), "nothing to measure"),
    ],
)
def test_bad_tokens_are_value_errors(function, weights, rules, says):
    with pytest.raises(ValueError, match=says):
        function(weights, rules)


def test_rules_beyond_the_count_and_missing_ones():
    with pytest.raises(ValueError, match="numbered 0 … 1, got 0 … 3"):
        activation_matrix(GOOD, [0, 1, 2, 3], 2)
    with pytest.raises(ValueError, match="no token has rule 2, 3"):
        activation_matrix(GOOD, [0, 1, 0, 1], 4)
    with pytest.raises(ValueError, match="no token has rule 2"):
        specialization(GOOD, [0, 1, 0, 1], [0.4, 0.4, 0.2])
    assert specialization(GOOD, [0, 1, 0, 1], [0.5, 0.5, 0.0])["alignment"].value == pytest.approx(0.5)


def test_the_example_of_the_page_runs(capsys):
    page = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text()
    example = next(block for block in page.split("```python\n")[1:] if "import activation_matrix" in block)
    exec(example.split("```")[0], {})
    printed = capsys.readouterr().out.splitlines()
    names = {line.split()[0] for line in printed[1:]}
    assert names == {*MATRIX_METRICS, "token_entropy", "token_information"}
    assert all(f"`{name}`" in page for name in names)
