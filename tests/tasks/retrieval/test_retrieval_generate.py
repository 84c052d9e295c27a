"""Generated datapoints: scenarios, occurrences, excluded features, and the scan against the rule written out."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from support.retrieval_cases import KINDS, LENGTHS, PRESETS, answers, chosen_columns, make, other_features, within
from unseen.randomness import stream
from unseen.tasks.retrieval.formulas import Before, columns_of
from unseen.tasks.retrieval.generate import (
    allowed_tokens,
    cut_wrong_order,
    draw_exclusion,
    draw_subsets,
    scan_wrong_order,
)
from unseen.tasks.retrieval.mapping import draw_released_table
from unseen.tasks.retrieval.task import Retrieval

any_task = st.builds(
    lambda kind, preset, length, seed: (make(kind, preset=preset, length=length), seed),
    st.sampled_from(KINDS), st.sampled_from(PRESETS), st.sampled_from(LENGTHS), st.integers(0, 10**6),
)  # fmt: skip


@settings(derandomize=True, deadline=None, max_examples=84)
@given(any_task, st.sampled_from(["train", "iid", "ood/single"]))
def test_form_answer_and_factors(case: tuple[Retrieval, int], split: str) -> None:
    made, seed = case
    examples = made.sample(split, 1024, data_seed=seed)
    sequence, query = examples.inputs["sequence"], examples.inputs["query"]
    assert sequence.shape == (1024, made.length, 36) and sequence.dtype == np.uint8 and sequence.max() <= 1
    assert query.shape == (1024, 36) and (query.sum(axis=1) == (2 if made.kind == "T2" else 1)).all()
    assert examples.targets.shape == (1024, 1) and examples.targets.dtype == np.uint8
    assert np.array_equal(made.solve(examples[:64]), examples.targets[:64])
    assert within(answers(examples).mean(), 0.5, 1024)

    factors = examples.factors
    relevant = factors["relevant"]
    if made.kind in ("T1", "T2"):
        assert np.array_equal(np.take_along_axis(query, relevant, axis=1), np.ones_like(relevant))
    else:
        assert np.array_equal(query.argmax(axis=1), factors["query_id"])
        assert np.array_equal(np.array(made.table).reshape(36, -1)[factors["query_id"]], relevant)
    columns = columns_of(sequence, relevant)
    assert np.array_equal(factors["occurrences"], columns.sum(axis=2))
    positions, pair = factors["positions"], chosen_columns(examples)
    for side in range(pair.shape[1]):
        present = positions[:, side] >= 0
        assert np.array_equal(present, pair[:, side].any(axis=1))
        assert pair[present, side, positions[present, side]].all()
    starts_yes = np.char.startswith(factors["scenario"], "yes")
    assert np.array_equal(starts_yes, answers(examples))
    if split == "ood/single":
        assert (factors["regime"] == "single").all()
    else:
        assert within((factors["regime"] == "single").mean(), 0.1 if made.preset == "released" else 0.0, 1024)


@settings(derandomize=True, deadline=None, max_examples=63)
@given(any_task)
def test_single_occurrences(case: tuple[Retrieval, int]) -> None:
    made, seed = case
    examples = made.sample("ood/single", 1024, data_seed=seed)
    yes, counts = answers(examples), chosen_columns(examples).sum(axis=2)
    assert counts.max() <= 1
    if made.kind in ("T1", "T2", "T4", "T5", "T6", "T7"):
        assert (counts[yes] == 1).all()
    if made.kind in ("T5", "T7"):
        columns = columns_of(examples.inputs["sequence"], examples.factors["relevant"])
        if made.kind == "T5":
            satisfied = columns.any(axis=2).reshape(-1, 2, 2).all(axis=2).sum(axis=1)
        else:
            satisfied = sum(Before(*slots).holds(columns).astype(int) for slots in ((0, 1), (2, 3)))
        assert (satisfied == yes).all()


@settings(derandomize=True, deadline=None, max_examples=63)
@given(any_task, st.sampled_from(["train", "ood/single"]))
def test_negatives_and_orders(case: tuple[Retrieval, int], split: str) -> None:
    made, seed = case
    examples = made.sample(split, 1024, data_seed=seed)
    no, pair, scenario = ~answers(examples), chosen_columns(examples), examples.factors["scenario"]
    present = pair.any(axis=2)
    if made.kind in ("T2", "T4", "T5"):
        assert not present[no].all(axis=1).any()
    if made.kind == "T3":
        assert not present[no].any()
    if made.kind in ("T6", "T7"):
        if made.preset != "paper":
            assert present[no].any(axis=1).all()
        assert Before(0, 1).holds(pair[~no]).all()
        wrong = pair[scenario == "no/wrong-order"]
        earliest_first = wrong[:, 0].argmax(axis=1)
        latest_second = made.length - 1 - wrong[:, 1, ::-1].argmax(axis=1)
        assert (latest_second <= earliest_first).all()
        if split == "ood/single" or made.preset != "released":
            assert (latest_second < earliest_first).all()


@settings(derandomize=True, deadline=None, max_examples=63)
@given(any_task, st.sampled_from(["train", "ood/single"]))
def test_excluded_features_never_occur(case: tuple[Retrieval, int], split: str) -> None:
    made, seed = case
    examples = made.sample(split, 1024, data_seed=seed)
    never = 36 - examples.inputs["sequence"].any(axis=1).sum(axis=1)
    excluded = examples.factors["excluded"]
    if made.preset != "released":
        assert excluded.min() >= 1 and excluded.max() <= 6
        assert (never >= excluded).all()
    elif made.kind in ("T1", "T2"):
        assert (never >= 1).all()


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("kind", KINDS)
def test_scenario_proportions(kind: str, preset: str) -> None:
    both_or_not = {"yes/same": 1 / 2, "yes/diff": 1 / 2, "no/none": 1 / 2, "no/a-only": 1 / 4, "no/b-only": 1 / 4}
    one, none = (1 / 8, 1 / 4) if preset == "paper" else (1 / 4, 0.0)
    ordered = {"yes": 1.0, "no/wrong-order": 1 / 2, "no/a-only": one, "no/b-only": one, "no/none": none}
    expected = {
        "T1": {"yes": 1.0, "no": 1.0},
        "T2": both_or_not, "T4": both_or_not, "T5": both_or_not,
        "T3": {"yes/both-same": 1 / 4, "yes/both-diff": 1 / 4, "yes/a-only": 1 / 4, "yes/b-only": 1 / 4, "no": 1.0},
        "T6": ordered, "T7": ordered,
    }[kind]  # fmt: skip
    examples = make(kind, preset=preset, length=5).sample("train", 20_000)
    scenario, yes = examples.factors["scenario"], answers(examples)
    assert set(scenario) == {name for name, share in expected.items() if share}
    for name, share in expected.items():
        among = scenario[yes if name.startswith("yes") else ~yes]
        assert within((among == name).mean(), share, len(among)), name
    chosen = examples.factors["chosen"]
    assert within(chosen.mean(), 0.5, 20_000) if kind in ("T5", "T7") else not chosen.any()
    queries = np.bincount(examples.factors["query_id"])
    assert len(queries) == (630 if kind == "T2" else 36) and chisquare(queries).pvalue > 1e-5


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("length", [2, 5])
def test_positions_are_uniform_or_triangular(kind: str, preset: str, length: int) -> None:
    examples = make(kind, preset=preset, length=length).sample("ood/single", 20_000)
    scenario, positions = examples.factors["scenario"], examples.factors["positions"]
    falling = 2 * (length - 1 - np.arange(length)) / (length * (length - 1))
    uniform = np.full(length, 1 / length)
    for name in np.unique(scenario):
        if kind in ("T6", "T7") and name in ("yes", "no/wrong-order"):
            laws = (falling, falling[::-1]) if name == "yes" else (falling[::-1], falling)
        else:
            laws = (uniform, uniform)
        for side, law in enumerate(laws):
            found = positions[scenario == name, side]
            if (found >= 0).all():
                counts, possible = np.bincount(found, minlength=length), law > 0
                assert counts[~possible].sum() == 0
                assert possible.sum() == 1 or chisquare(counts[possible], law[possible] * len(found)).pvalue > 1e-5
            else:
                assert (found == -1).all()


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("kind", KINDS)
def test_background_density_does_not_depend_on_position_or_answer(kind: str, preset: str) -> None:
    """At length 30 a feature that never occurs was excluded, but for one in 800: the rest has density 0.2."""
    examples = make(kind, preset=preset, length=30).sample("train", 8192)
    bits = examples.inputs["sequence"].astype(np.float64)
    counted = examples.inputs["sequence"].any(axis=1)
    np.put_along_axis(counted, examples.factors["relevant"], False, axis=1)
    expected = 0.2 / (1 - 0.8**30)
    for value in (True, False):
        rows = answers(examples) == value
        cells = counted[rows].sum()
        density = (bits[rows] * counted[rows][:, None]).sum(axis=(0, 2)) / cells
        assert np.abs(density - expected).max() < 5 * np.sqrt(0.16 / cells)


def test_other_pair_of_clean_has_one_law_for_both_answers_and_regimes() -> None:
    for kind in ("T5", "T7"):
        for split in ("train", "ood/single"):
            examples = make(kind, length=5).sample(split, 20_000)
            columns = columns_of(examples.inputs["sequence"], other_features(examples))
            shown, yes = columns.any(axis=2), answers(examples)
            assert not shown.all(axis=1).any()
            for rows in (yes, ~yes):
                assert within(shown[rows].any(axis=1).mean(), 0.5, rows.sum())
                assert within(shown[rows, 0].mean(), 0.25, rows.sum())
            counts = columns.sum(axis=2).max(axis=1)
            assert (counts.max() == 1) == (split == "ood/single")
            if split == "ood/single":
                assert chisquare(columns.sum(axis=(0, 1))).pvalue > 1e-4


def test_other_pair_of_paper_is_blocked_once_and_background_otherwise() -> None:
    for kind in ("T5", "T7"):
        for split in ("train", "ood/single"):
            examples = make(kind, preset="paper", length=5).sample(split, 20_000)
            shown = columns_of(examples.inputs["sequence"], other_features(examples)).any(axis=2)
            yes = answers(examples)
            for rows in (yes, ~yes):
                assert not shown[rows].all(axis=1).any()
                assert within(shown[rows].any(axis=1).mean(), 1 - 0.8**5, rows.sum())


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("kind", ["T5", "T7"])
def test_a_shared_feature_follows_the_chosen_pair_and_the_other_one_is_blocked(kind: str, preset: str) -> None:
    made = make(kind, preset=preset, length=5, mapping=draw_released_table(kind, 36, 2))
    for split in ("train", "ood/single"):
        examples = made.sample(split, 20_000)
        assert np.array_equal(made.solve(examples[:2000]), examples.targets[:2000])
        relevant = np.sort(examples.factors["relevant"], axis=1)
        sharing = (relevant[:, 1:] == relevant[:, :-1]).any(axis=1)
        assert within(sharing.mean(), 1 / 6, 20_000)
        examples = examples[sharing]
        relevant, chosen = examples.factors["relevant"], examples.factors["chosen"]
        mine = np.where(chosen[:, None] == 0, relevant[:, :2], relevant[:, 2:])
        other = other_features(examples)
        own = ~(other[:, :, None] == mine[:, None, :]).any(axis=2)
        assert (own.sum(axis=1) == 1).all()
        shown = columns_of(examples.inputs["sequence"], other[own][:, None]).any(axis=(1, 2))
        free = (examples.factors["regime"] == "free") & (preset == "released")
        blocked = ~free if kind == "T7" else ~free | ~answers(examples)
        assert not shown[blocked].any()
        if (~blocked).any():
            assert shown[~blocked].any()


def test_repeated_features_in_training_follow_the_density() -> None:
    examples = make("T1", length=5).sample("train", 20_000)
    counts = examples.factors["occurrences"][answers(examples), 0]
    law = [0.8**4, 4 * 0.2 * 0.8**3, 6 * 0.04 * 0.64, 4 * 0.008 * 0.8, 0.2**4]
    assert chisquare(np.bincount(counts, minlength=6)[1:], np.array(law) / sum(law) * len(counts)).pvalue > 1e-4


@pytest.mark.parametrize("kind", KINDS)
def test_other_sizes_of_the_feature_space(kind: str) -> None:
    smallest = {"T1": 7, "T2": 8, "T3": 8, "T4": 8, "T5": 10, "T6": 8, "T7": 10}[kind]
    for features in (smallest, 64):
        for preset in PRESETS:
            made = make(kind, preset=preset, length=4, features=features, density=0.3)
            examples = made.sample("train", 1500)
            assert examples.inputs["sequence"].shape == (1500, 4, features)
            assert np.array_equal(made.solve(examples[:300]), examples.targets[:300])


@pytest.mark.parametrize("kind", ["T6", "T7"])
def test_none_share_sets_how_many_negatives_show_nothing(kind: str) -> None:
    for share in (0.0, 0.3, 1.0):
        examples = make(kind, none_share=share, length=5).sample("train", 20_000)
        scenario = examples.factors["scenario"][~answers(examples)]
        assert within((scenario == "no/wrong-order").mean(), 0.5, len(scenario))
        assert within((scenario == "no/none").mean(), share / 2, len(scenario))


@pytest.mark.parametrize("kind", KINDS)
def test_aware_exclusion_is_the_same_for_both_answers(kind: str) -> None:
    examples = make(kind, exclusion_balance="aware", length=30).sample("train", 20_000)
    never = ~examples.inputs["sequence"].any(axis=1)
    np.put_along_axis(never, examples.factors["relevant"], False, axis=1)
    count, yes = never.sum(axis=1), answers(examples)
    for rows in (yes, ~yes):
        assert abs(count[rows].mean() - 3.5) < 0.15
    assert abs(count[yes].mean() - count[~yes].mean()) < 0.1


def test_order_in_which_t2_names_its_features() -> None:
    for preset in PRESETS:
        examples = make("T2", preset=preset, length=5).sample("train", 20_000)
        named, relevant = examples.factors["named"], examples.factors["relevant"]
        assert np.array_equal(np.sort(named, axis=1), relevant) and (relevant[:, 0] < relevant[:, 1]).all()
        assert within((named[:, 0] < named[:, 1]).mean(), 0.5, 20_000)
        present = columns_of(examples.inputs["sequence"], named).any(axis=2)
        one = present.sum(axis=1) == 1
        assert within(present[one, 1].mean(), 1.0 if preset == "released" else 0.5, one.sum())


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("kind", KINDS)
def test_scenarios_have_exact_shares_in_a_block(kind: str, preset: str) -> None:
    """Yes and no, each scenario and, within it, each pair: as often as the table says, up to one card."""
    made = make(kind, preset=preset, length=5)
    factors = made.sample("train", 1024, 1024).factors
    pairs = 2 if kind in ("T5", "T7") else 1
    for scenario in made.plan.scenarios:
        for chosen in range(pairs):
            found = np.count_nonzero((factors["scenario"] == scenario.name) & (factors["chosen"] == chosen))
            assert abs(found - 512 * scenario.weight / pairs) <= 1
    order = made.sample("train", 1024).factors["scenario"]
    assert len(set(order[:40])) > 1  # shuffled


FEATURES, LENGTH = 8, 7


def plain_scan(tokens: np.ndarray, roles: list[int], forced: dict[int, int]) -> np.ndarray:
    """Tokens from left to right, features ascending: drop what would set the right order."""
    pairs = [(roles[i], roles[i + 1]) for i in range(0, len(roles), 2)]
    kept = tokens.copy()
    there = set()
    for t in range(len(tokens)):
        for feature in sorted(set(roles)):
            if forced.get(feature) == t or not tokens[t, feature]:
                continue
            first_there = any(
                second == feature and (first in there or forced.get(first, t) < t) for first, second in pairs
            )
            second_comes = any(first == feature and forced.get(second, -1) >= t for first, second in pairs)
            if first_there or second_comes:
                kept[t, feature] = False
            else:
                there.add(feature)
    return kept


# Chosen pair (first, second), then the other pair: distinct, and the two ways to share a feature.
ROLES = [(1, 5), (5, 1), (1, 5, 6, 2), (5, 1, 2, 6), (5, 1, 1, 6), (1, 5, 6, 1), (2, 7, 7, 0), (7, 2, 3, 7)]


@pytest.mark.parametrize("roles", ROLES)
@pytest.mark.parametrize("density", [0.2, 0.6])
def test_scan_follows_the_rule_token_by_token(roles: tuple[int, ...], density: float) -> None:
    draws = stream("test", "scan", roles, density).block()
    count = 300
    bits = draws.bernoulli(density, (count, LENGTH, FEATURES))
    early, late = np.sort(draws.permutations(count, LENGTH)[:, :2], axis=1).T
    which = draws.integers(3, count)  # both present in the wrong order, first only, second only
    positions = np.stack([np.where(which == 2, -1, late), np.where(which == 1, -1, early)], axis=1)
    forced = [{roles[side]: int(p[side]) for side in (0, 1) if p[side] >= 0} for p in positions]
    for row, places in enumerate(forced):
        for side in (0, 1):
            if roles[side] not in places:
                bits[row, :, roles[side]] = False
        for own, t in places.items():
            for feature in set(roles) - {own}:  # nothing relevant enters a forced token but what is forced there
                bits[row, t, feature] = False
            bits[row, t, own] = True
    expected = np.stack([plain_scan(bits[i], list(roles), forced[i]) for i in range(count)])
    whole = np.array([[places.get(f, -1) for f in roles] for places in forced])
    scanned = bits.copy()
    scan_wrong_order(scanned, np.tile(roles, (count, 1)), whole)
    assert np.array_equal(scanned, expected)
    assert not np.array_equal(scanned, bits)


def test_scan_lets_both_share_a_token_only_if_the_second_has_the_smaller_id() -> None:
    for first, second, both in ((5, 1, True), (1, 5, False)):
        bits = np.zeros((1, 4, FEATURES), np.bool_)
        bits[0, :, [first, second]] = True  # candidates everywhere
        positions = np.array([[3, 0]])  # the second feature is forced at 0, the first at 3
        bits[0, 0, first] = bits[0, 3, second] = False
        scan_wrong_order(bits, np.array([[first, second]]), positions)
        assert bits[0, :, first].tolist() == [False, True, True, True]
        assert bits[0, :, second].tolist() == [True, both, False, False]


def test_cut_keeps_the_second_feature_up_to_a_token_and_the_first_after_it() -> None:
    count = 6000
    positions = np.tile([5, 2], (count, 1))
    wrong = np.arange(count) % 2 == 0
    allowed = [np.ones((count, LENGTH), np.bool_) for _ in range(2)]
    cut_wrong_order(allowed, positions, wrong, stream("test", "cut").block())
    first, second = allowed
    assert first[~wrong].all() and second[~wrong].all()
    assert (first[wrong] != second[wrong]).all()
    last = second[wrong].sum(axis=1) - 1
    assert np.array_equal(second[wrong], np.arange(LENGTH) <= last[:, None])
    shares = np.bincount(last, minlength=LENGTH) / len(last)
    assert np.abs(shares - [0, 0, 1 / 3, 1 / 3, 1 / 3, 0, 0]).max() < 0.04


def test_single_allows_no_extra_and_free_all_but_the_partner() -> None:
    positions = np.array([[1, 3], [1, 3], [2, -1]])
    first, second = allowed_tokens(positions, np.array([True, False, False]), 4)
    assert not first[0].any() and not second[0].any()
    assert first[1].tolist() == [True, True, True, False] and second[1].tolist() == [True, False, True, True]
    assert first[2].all()


def test_subsets_are_uniform_for_every_size() -> None:
    count = 6000
    for size in range(1, 5):
        draws = stream("test", "subsets", size).block()
        picks = draw_subsets(np.full(count, size), np.full(count, 6), draws)
        assert (picks[:, size:] == -1).all()
        found = [tuple(sorted(row[:size])) for row in picks.tolist()]
        possible = list(combinations(range(6), size))
        counts = [found.count(subset) for subset in possible]
        assert sum(counts) == count and chisquare(counts).pvalue > 1e-4


def test_sizes_may_differ_and_reach_the_whole_pool() -> None:
    size = np.array([0, 1, 6, 6, 3])
    picks = draw_subsets(size, np.array([9, 1, 6, 30, 3]), stream("test").block())
    assert [sorted(set(row) - {-1}) for row in picks.tolist()][:3] == [[], [0], [0, 1, 2, 3, 4, 5]]
    assert sorted(picks[4][:3].tolist()) == [0, 1, 2]
    assert (picks >= 0).sum(axis=1).tolist() == size.tolist()


def exclude(roles: list[int], absent: list[bool], size: int, hits_relevant: bool, count: int = 4000) -> np.ndarray:
    return draw_exclusion(
        np.tile(roles, (count, 1)),
        np.tile(absent, (count, 1)),
        np.full(count, size),
        hits_relevant,
        12,
        stream("test", roles, absent, size).block(),
    )


def test_relevant_features_are_spared_or_not() -> None:
    spared = exclude([3, 9, 0, 11], [False, True, False, False], 4, hits_relevant=False)
    assert (spared.sum(axis=1) == 5).all()
    assert spared[:, 9].all() and not spared[:, [3, 0, 11]].any()
    others = spared[:, [1, 2, 4, 5, 6, 7, 8, 10]].mean(axis=0)
    assert np.abs(others - 4 / 8).max() < 0.04
    hit = exclude([3, 9, 0, 11], [False, True, False, False], 4, hits_relevant=True)
    assert np.abs(np.delete(hit.mean(axis=0), 9) - 4 / 12).max() < 0.04 and hit[:, 9].all()


def test_a_shared_feature_counts_once() -> None:
    excluded = exclude([3, 9, 3, 11], [False, False, False, True], 5, hits_relevant=False)
    assert (excluded.sum(axis=1) == 6).all()
    assert not excluded[:, [3, 9]].any()
    others = excluded[:, [0, 1, 2, 4, 5, 6, 7, 8, 10]].mean(axis=0)
    assert np.abs(others - 5 / 9).max() < 0.04
