"""Collapse, alignment and mutual information of p(module | rule): the spec's numbers, and independent checks."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from scipy.stats import entropy

from unseen.analysis import (
    adaptation,
    alignment,
    collapse_avg,
    collapse_worst,
    collapsed_activation,
    effective_modules,
    ideal_partition,
    inverse_mutual_information,
    mutual_information,
    uniform_activation,
)
from unseen.analysis.assignment import best_map

FIXTURE = json.loads((Path(__file__).parent / "specialization.json").read_text())
FIVE = (collapse_avg, collapse_worst, alignment, inverse_mutual_information, adaptation)
PAPER = np.array([[0.95, 0, 0, 0.05], [0, 0, 0, 1], [0.35, 0.10, 0, 0.55], [0, 1, 0, 0]])
quick = settings(deadline=None, derandomize=True, max_examples=80)


@st.composite
def systems(draw, rules=(1, 6), modules=(1, 6), zeros=True):
    """An activation matrix and a prior, some entries of both 0 and some rows tied."""
    shape = draw(st.integers(*rules)), draw(st.integers(*modules))
    numbers = np.random.default_rng(draw(st.integers(0, 10**6)))
    matrix = numbers.dirichlet(np.full(shape[1], draw(st.sampled_from([0.1, 1.0, 10.0]))), shape[0])
    kind = draw(st.sampled_from(["soft", "hard", "same"]))
    if kind == "hard":
        matrix = np.eye(shape[1])[matrix.argmax(axis=1)]
    if kind == "same":
        matrix[:] = matrix[0]
    prior = numbers.dirichlet(np.full(shape[0], 2.0)) if draw(st.booleans()) else np.full(shape[0], 1 / shape[0])
    if zeros and shape[0] > 1 and draw(st.booleans()):
        prior[draw(st.integers(0, shape[0] - 1))] = 0
    return matrix, prior / prior.sum()


def maps(rules, modules):
    """Every map of rules to modules that the alignment may choose."""
    for chosen in itertools.product(range(modules), repeat=rules):
        used = len(set(chosen))
        if used == rules if modules >= rules else used == modules:
            yield chosen


# --- the spec's numbers ---


@pytest.mark.parametrize("case", FIXTURE["metrics"], ids=lambda case: case["id"])
def test_values_of_the_published_implementation(case):
    matrix, reference, exact = np.array(case["A"]), case["reference"], case["exact"]
    assert collapse_avg(matrix) == pytest.approx(reference["collapse_avg"], abs=1e-9)
    assert collapse_worst(matrix) == pytest.approx(reference["collapse_worst"], abs=1e-9)
    assert alignment(matrix) == pytest.approx(reference["alignment"], abs=1e-9)
    # The original guards its logarithm by 1e-8.
    assert mutual_information(matrix) == pytest.approx(reference["mutual_information_nats"], abs=2e-5)
    assert inverse_mutual_information(matrix) == pytest.approx(reference["inverse_mutual_information"], abs=3e-6)
    assert mutual_information(matrix) == pytest.approx(exact["mutual_information_nats"], abs=1e-12)
    assert inverse_mutual_information(matrix) == pytest.approx(exact["inverse_mutual_information"], abs=1e-12)
    assert alignment(matrix) == pytest.approx(exact["alignment_if_rows_sum_to_1"], abs=1e-12)


def test_the_worked_example_of_the_paper():
    found = [metric(PAPER) for metric in (*FIVE[:4], mutual_information)]
    assert found == pytest.approx([0.3333, 1, 0.2625, 0.4189, 0.8056], abs=5e-5)


def dead(rules):
    matrix = np.eye(rules)
    matrix[0] = matrix[1]
    return matrix


@pytest.mark.parametrize(
    ("matrix", "expected"),
    [
        (np.eye(4)[[0, 0, 1, 1]], (0.6667, 1, 0.5, 0.5)),
        (dead(4), (0.3333, 1, 0.25, 0.25)),
        (dead(32), (0.0323, 1, 0.03125, 0.0125)),
    ],
    ids=["half used", "one dead of 4", "one dead of 32"],
)
def test_worked_examples(matrix, expected):
    assert [metric(matrix) for metric in FIVE[:4]] == pytest.approx(expected, abs=5e-5)


@pytest.mark.parametrize("rules", [1, 2, 4, 8, 16, 32])
def test_ideal_uniform_and_collapsed_systems(rules):
    top, spread = 1 - 1 / rules, min(1, rules - 1)
    for ideal in (np.eye(rules), np.eye(rules)[::-1]):
        assert [metric(ideal) for metric in FIVE] == pytest.approx([0] * 5, abs=1e-12)
    assert [metric(uniform_activation(rules)) for metric in FIVE[:4]] == pytest.approx([0, 0, top, spread], abs=1e-12)
    collapsed = [metric(collapsed_activation(rules)) for metric in FIVE[:4]]
    assert collapsed == pytest.approx([spread, spread, top, spread], abs=1e-12)


TABLE = [
    (4, 4, (0.7, 0.1, 0.1, 0.1), (0, 0.3, 0.75), (0, 0.4, 1)),
    (4, 6, None, (0, 0.75, 0.8333), (0, 0.9, 1)),
    (6, 3, None, (0, 0.3333, 0.6667), (0, 0.5, 1)),
    (5, 2, None, (0, 0.2, 0.5), (0, 0.4, 1)),
    (3, 5, (0.5, 0.3, 0.2), (0, 0.5, 0.8), (0, 0.625, 1)),
]


@pytest.mark.parametrize(("rules", "modules", "pi", "raw", "normalised"), TABLE)
def test_every_row_of_the_table_of_generalised_metrics(rules, modules, pi, raw, normalised):
    prior = np.full(rules, 1 / rules) if pi is None else pi
    ideal = np.eye(modules)[ideal_partition(prior, modules)]
    three = ideal, collapsed_activation(rules, modules), uniform_activation(rules, modules)
    assert [collapse_avg(one, pi) for one in three] == pytest.approx([0, 1, 0], abs=1e-12)
    assert [collapse_worst(one, pi) for one in three] == pytest.approx([0, 1, 0], abs=1e-12)
    assert [alignment(one, pi) for one in three] == pytest.approx(raw, abs=5e-5)
    assert [alignment(one, pi, normalised=True) for one in three] == pytest.approx(normalised, abs=5e-5)
    assert [inverse_mutual_information(one, pi) for one in three] == pytest.approx([0, 1, 1], abs=1e-12)


def test_the_uniform_target_counts_spare_modules_as_collapse():
    skewed = np.eye(4), (0.7, 0.1, 0.1, 0.1)
    assert collapse_avg(*skewed, target="uniform") == pytest.approx(0.6)
    assert collapse_worst(*skewed, target="uniform") == pytest.approx(0.6)
    spare = np.eye(6)[:4]
    assert collapse_avg(spare, target="uniform") == pytest.approx(0.4)
    assert collapse_worst(spare, target="uniform") == pytest.approx(1)


def test_a_rule_that_never_occurs_is_dropped_first():
    collapsed = np.array([[1, 0], [1, 0], [math.nan, math.nan]])
    assert alignment(collapsed, (0.5, 0.5, 0)) == pytest.approx(0.5)
    assert alignment(np.array([[1, 0], [1, 0], [0, 1]]), (0.5, 0.5, 0)) == pytest.approx(0.5)


def test_a_better_partition_than_the_greedy_one_is_clipped():
    prior = np.array([3, 3, 2, 2, 2]) / 12
    greedy, better = np.eye(2)[ideal_partition(prior, 2)], np.eye(2)[[0, 0, 1, 1, 1]]
    assert sorted(prior @ greedy) == pytest.approx([5 / 12, 7 / 12])
    assert 1 - mutual_information(better, prior) / entropy([7 / 12, 5 / 12]) == pytest.approx(-0.0205, abs=5e-5)
    assert inverse_mutual_information(better, prior) == 0


def test_alignment_of_unbalanced_partitions():
    assert alignment(collapsed_activation(3, 2), (0.5, 0.49, 0.01)) == pytest.approx(0.01)


# --- independent checks ---


@quick
@given(systems())
def test_alignment_by_trying_every_map(system):
    matrix, prior = system
    rows, pi = matrix[prior > 0], prior[prior > 0]
    best = max(sum(p * row[m] for p, row, m in zip(pi, rows, chosen, strict=True)) for chosen in maps(*rows.shape))
    assert alignment(matrix, prior) == pytest.approx(1 - best, abs=1e-12)


@quick
@given(systems(rules=(2, 30), modules=(1, 12)))
def test_alignment_with_free_places(system):
    """As the map is found: with fewer modules than rules, R − M columns more, in which a rule has its best module."""
    matrix, prior = system
    joint = (prior[:, None] * matrix)[prior > 0]
    rules, modules = joint.shape
    table = np.hstack([joint, *[joint.max(axis=1, keepdims=True)] * (rules - modules)])
    most = table[linear_sum_assignment(table, maximize=True)].sum()
    assert alignment(matrix, prior) == pytest.approx(1 - most if modules > 1 else 0, abs=1e-12)
    places = best_map(joint)
    assert joint[np.arange(rules), places].sum() == pytest.approx(most, abs=1e-12)
    assert len(set(places)) == min(rules, modules)


@quick
@given(systems(rules=(2, 8), modules=(2, 8), zeros=False))
def test_mutual_information_by_scipy(system):
    matrix, prior = system
    joint = prior[:, None] * matrix
    expected = entropy(joint.sum(axis=0)) + entropy(joint.sum(axis=1)) - entropy(joint.ravel())
    assert mutual_information(matrix, prior) == pytest.approx(expected, abs=1e-12)
    assert effective_modules(matrix, prior) == pytest.approx(math.exp(entropy(joint.sum(axis=0))))
    if matrix.shape[1] >= len(matrix):
        imi = inverse_mutual_information(matrix, prior)
        assert imi == pytest.approx(1 - expected / entropy(prior), abs=1e-9)


@quick
@given(st.integers(2, 12), st.integers(0, 10**6))
def test_for_as_many_modules_and_uniform_rules_they_are_the_originals(rules, seed):
    matrix = np.random.default_rng(seed).dirichlet(np.full(rules, 0.3), rules)
    loads = matrix.sum(axis=0) / rules
    short = rules / (rules - 1) * sum(max(0, 1 / rules - p) for p in loads)
    assert collapse_avg(matrix) == pytest.approx(short, abs=1e-12)
    assert collapse_worst(matrix) == pytest.approx(1 - rules * loads.min(), abs=1e-12)
    assert collapse_avg(matrix, target="uniform") == pytest.approx(collapse_avg(matrix), abs=1e-12)
    information = mutual_information(matrix) / math.log(rules)
    assert inverse_mutual_information(matrix) == pytest.approx(1 - information, abs=1e-12)
    permutation = np.eye(rules)[linear_sum_assignment(1 - matrix)[1]]
    assert alignment(matrix) == pytest.approx(np.abs(matrix - permutation).sum() / (2 * rules), abs=1e-12)


@quick
@given(systems(), st.randoms(use_true_random=False))
def test_modules_and_rules_may_change_places(system, random):
    matrix, prior = system
    columns, rows = list(range(matrix.shape[1])), list(range(len(matrix)))
    random.shuffle(columns)
    random.shuffle(rows)
    metrics = [*FIVE[:4], mutual_information, effective_modules]
    if matrix.shape[1] >= len(prior[prior > 0]):
        metrics.append(adaptation)  # with fewer modules, ties between maps are settled by number
    for metric in metrics:
        assert metric(matrix[:, columns], prior) == pytest.approx(metric(matrix, prior), abs=1e-9)
        if metric is not adaptation:  # its 100 draws are fixed, rule by rule
            assert metric(matrix[rows], prior[rows]) == pytest.approx(metric(matrix, prior), abs=1e-9)


@quick
@given(systems())
def test_values_lie_in_their_range(system):
    matrix, prior = system
    modules = matrix.shape[1]
    for target in ("demand", "uniform"):
        assert -1e-12 <= collapse_avg(matrix, prior, target=target) <= 1 + 1e-12
        assert -1e-12 <= collapse_worst(matrix, prior, target=target) <= 1 + 1e-12
        assert collapse_avg(matrix, prior, target=target) <= collapse_worst(matrix, prior, target=target) + 1e-9
    assert 0 <= alignment(matrix, prior) <= 1 - 1 / modules + 1e-12
    assert alignment(matrix, prior, normalised=True) <= 1 + 1e-12
    assert 0 <= inverse_mutual_information(matrix, prior) <= 1
    assert 1 - 1e-12 <= effective_modules(matrix, prior) <= modules + 1e-9
    assert 0 <= adaptation(matrix, prior) < 1
    assert all(isinstance(metric(matrix, prior), float) for metric in FIVE)


@quick
@given(systems(zeros=False))
def test_ideal_systems_score_zero_and_one_module_scores_one(system):
    matrix, prior = system
    rules, modules = matrix.shape
    ideal = np.eye(modules)[ideal_partition(prior, modules)]
    for metric in FIVE[:4]:
        assert metric(ideal, prior) == pytest.approx(0, abs=1e-9)
    if rules > 1 and modules > 1:
        collapsed = collapsed_activation(rules, modules)
        assert [metric(collapsed, prior) for metric in (*FIVE[:2], FIVE[3])] == pytest.approx([1, 1, 1])
        assert alignment(uniform_activation(rules, modules), prior) == pytest.approx(1 - 1 / modules)


# --- the demand ---


def test_the_demand_partition():
    assert ideal_partition([1 / 6] * 6, 3).tolist() == [0, 1, 2, 0, 1, 2]
    assert ideal_partition([0.2] * 5, 2).tolist() == [0, 1, 0, 1, 0]
    assert ideal_partition([0.1, 0.2, 0.7], 3).tolist() == [0, 1, 2]
    assert ideal_partition([0.1, 0.2, 0.7], 5).tolist() == [0, 1, 2]
    assert ideal_partition([0.1, 0.2, 0.7], 2).tolist() == [1, 1, 0]
    assert ideal_partition([0.15, 0.2, 0.1, 0.15, 0.2, 0.1, 0.1], 3).tolist() == [2, 0, 0, 2, 1, 1, 0]
    # Rules of probability 0 are placed last.
    assert ideal_partition([0, 0.4, 0.3, 0.2, 0.1, 0], 2).tolist() == [0, 0, 1, 1, 0, 0]


@quick
@given(st.lists(st.integers(0, 6), min_size=2, max_size=9).filter(any), st.integers(1, 8))
def test_the_demand_partition_in_exact_arithmetic(counts, modules):
    """In floating point .15 + .15 is lighter than .2 + .1; in truth they tie, and the lower module is next."""
    assume(modules < len(counts))
    expected, loads = [0] * len(counts), [0] * modules
    for rule in sorted(range(len(counts)), key=lambda rule: -counts[rule]):
        expected[rule] = loads.index(min(loads))
        loads[expected[rule]] += counts[rule]
    assert ideal_partition(np.array(counts) / sum(counts), modules).tolist() == expected


@quick
@given(st.integers(1, 40), st.integers(1, 40))
def test_uniform_rules_are_dealt_in_turn(rules, modules):
    expected = np.arange(rules) if modules >= rules else np.arange(rules) % modules
    assert ideal_partition(np.full(rules, 1 / rules), modules).tolist() == expected.tolist()


# --- wrong use ---


@pytest.mark.parametrize("metric", [*FIVE, mutual_information, effective_modules], ids=lambda metric: metric.__name__)
@pytest.mark.parametrize(
    ("matrix", "pi", "says"),
    [
        ([[1, math.nan], [0, 1]], None, "NaN"),
        ([[1.5, -0.5], [0, 1]], None, "-0.5"),
        ([[1, 1], [0, 1]], None, "sum to 1"),
        ([[0.9995, 0], [0, 1]], None, "sum to 1 within 0.0001, got a sum of 0.9995"),
        ([[math.inf, 0], [0, 1]], None, "sum to 1"),
        ([[0, 0], [0, 1]], None, "without tokens"),
        ([1.0, 0.0], None, "row per rule"),
        ([[[1.0]]], None, "row per rule"),
        (np.empty((0, 2)), None, "row per rule"),
        (np.empty((2, 0)), None, "row per rule"),
        ([["a", "b"]], None, "array of numbers"),
        ([[1.0], [0.5, 0.5]], None, "different lengths"),
        (np.eye(2), [1.0], "one probability per rule"),
        (np.eye(2), [0.7, 0.7], "pi must sum to 1"),
        (np.eye(2), [1.5, -0.5], "-0.5"),
        (np.eye(2), [math.nan, 1], "NaN"),
    ],
)
def test_bad_matrices_are_value_errors(metric, matrix, pi, says):
    with pytest.raises(ValueError, match=says):
        metric(matrix, pi)


def test_small_deviations_and_single_precision_are_fine():
    single = np.random.default_rng(0).dirichlet(np.ones(7), 5).astype(np.float32)
    for metric in FIVE:
        assert metric(single) == pytest.approx(metric(single.astype(float)), abs=1e-6)
    assert alignment([[0.99995, 0], [0, 1]]) == pytest.approx(0, abs=1e-4)


def test_unknown_options_are_answered():
    with pytest.raises(ValueError, match="Did you mean 'uniform'"):
        collapse_avg(np.eye(2), target="unifrom")
    with pytest.raises(ValueError, match="at least one module"):
        ideal_partition([0.5, 0.5], 0)
    for baseline, *shape in itertools.product((uniform_activation, collapsed_activation), (0, -1, 2), (None, 0)):
        if min(shape[0], shape[0] if shape[1] is None else shape[1]) < 1:
            with pytest.raises(ValueError, match="at least one rule and one module"):
                baseline(*shape)


@pytest.mark.parametrize("shape", [(1024, 1024), (1024, 16)])
def test_large_matrices(shape):
    """A planted map is found again among a thousand modules."""
    numbers = np.random.default_rng(1)
    noise = numbers.dirichlet(np.ones(shape[1]), shape[0])
    planted = np.eye(shape[1])[numbers.permutation(shape[0]) % shape[1]]
    matrix = 0.7 * planted + 0.3 * noise
    expected = 1 - (matrix * planted).sum() / shape[0]
    assert alignment(matrix) == pytest.approx(expected, abs=1e-9)
    assert all(math.isfinite(metric(matrix)) for metric in FIVE)
    alike = np.tile(noise[0], (shape[0], 1))  # a router that ignores the rule: every map of as many is as good
    assert alignment(alike) == pytest.approx(1 - noise[0].max() if shape[0] > shape[1] else 1 - 1 / shape[1], abs=0.02)
