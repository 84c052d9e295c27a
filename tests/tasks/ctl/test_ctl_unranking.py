"""Counting, numbering and drawing examples, against brute-force listings and plain algorithms."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from support.ctl_worlds import PUBLISHED, SMALL, STAGED, listed, make, published
from unseen.errors import UsageError
from unseen.randomness import Draws, stream
from unseen.tasks.ctl import automaton
from unseen.tasks.ctl.automaton import (
    Automaton,
    any_chain,
    bridge_walks,
    function_pairs,
    group_loops,
    intersect,
    walks_over,
)
from unseen.tasks.ctl.sampling import draw_numbers, released_count
from unseen.tasks.ctl.unranking import (
    Enumeration,
    draw_below,
    draw_distinct_walks,
    draw_subset,
    draw_walks,
    number_dtype,
    skip_excluded,
    walk_probabilities,
)
from unseen.tasks.ctl.world import World

TINY: dict[str, Any] = {"symbols": 3, "functions": 5, "train_size": 20, "iid_size": 5, "ood_size": 5}
WORLDS: dict[str, World] = {
    "A": make("ctl/A", **TINY).actual_world,
    "A, three groups": make("ctl/A", **TINY, groups=3, test_skips=(2,)).actual_world,
    "A, any maps": make("ctl/A", **TINY, bijective=False).actual_world,
    "R": make("ctl/R", **TINY).actual_world,
    "S": make("ctl/S", **{**TINY, "functions": 6}, bridge=2, shared=2).actual_world,
    "S, three stages": make(
        "ctl/S", **{**TINY, "functions": 8}, bridge=2, shared=2, stages=3, bridge_stage=2, bijective=False
    ).actual_world,
    "circle": make(
        "ctl/graph",
        symbols=3,
        functions=5,
        graph={
            "groups": {"a": 2, "b": 1, "c": 2},
            "edges": [
                {"from": "a", "to": "b", "in": "both"},
                {"from": "b", "to": "c", "in": "both"},
                {"from": "c", "to": "a", "in": "train"},
                {"from": "c", "to": "b", "in": "test"},
            ],
        },
    ).actual_world,
    "graph": make(
        "ctl/graph",
        symbols=3,
        functions=5,
        graph={
            "groups": {"a": 2, "b": 1, "c": 2},
            "nodes": [{"name": "a"}, {"name": "b", "end": False}, {"name": "c", "start": False}],
            "edges": [
                {"from": "a", "to": "b", "in": "both"},
                {"from": "b", "to": "a", "in": "test"},
                {"from": "b", "to": "c", "in": "train", "symbols": {"d": [1]}},
                {"from": "c", "to": "a", "in": "train"},
            ],
        },
    ).actual_world,
}
LANGUAGES: dict[str, tuple[Callable[[World], Automaton], automaton.Rule]] = {
    "train": (lambda world: walks_over(world, "train"), automaton.training_fault),
    "test": (lambda world: walks_over(world, "test"), automaton.testing_fault),
    "everything": (any_chain, automaton.no_fault),
    "loops": (group_loops, automaton.loop_fault),
    "bridges": (bridge_walks, automaton.bridge_fault),
    "unseen symbols": (lambda world: function_pairs(world, ["blocked"]), automaton.pair_rule("blocked")),
    "unseen pairs": (
        lambda world: function_pairs(world, ["blocked", "tested"]),
        automaton.pair_rule("blocked", "tested"),
    ),
    "pairs": (
        lambda world: function_pairs(world, ["blocked", "tested", "trained"]),
        automaton.pair_rule("blocked", "tested", "trained"),
    ),
}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("world", WORLDS)
def test_enumeration_equals_a_brute_force_listing(world: str, language: str) -> None:
    """Every example of up to three functions, in order, and nothing else."""
    build, rule = LANGUAGES[language]
    here = WORLDS[world]
    enumeration = Enumeration(build(here), here.tables)
    for length in (1, 2, 3):
        expected = listed(here, rule, length)
        assert enumeration.total(length) == len(expected)
        start, functions = enumeration.unrank(np.arange(len(expected)), length)
        assert np.column_stack([start, functions]).tolist() == [list(chain) for chain in expected]
        every = np.array(listed(here, automaton.no_fault, length))
        number = {chain: place for place, chain in enumerate(expected)}
        assert enumeration.rank(every[:, 0], every[:, 1:]).tolist() == [
            number.get(tuple(c), -1) for c in every.tolist()
        ]


@pytest.mark.parametrize("world", WORLDS)
def test_intersection_of_two_automata(world: str) -> None:
    here = WORLDS[world]
    shared = Enumeration(intersect(group_loops(here), walks_over(here, "train")), here.tables)
    for length in (1, 2, 3):
        one, other = (set(listed(here, rule, length)) for rule in (automaton.loop_fault, automaton.training_fault))
        assert shared.total(length) == len(one & other)


@pytest.mark.parametrize("world", WORLDS)
def test_covered_functions_are_those_that_occur(world: str) -> None:
    here = WORLDS[world]
    enumeration = Enumeration(walks_over(here, "test"), here.tables)
    for lengths in ([2], [2, 3]):
        seen = {f for length in lengths for chain in listed(here, automaton.testing_fault, length) for f in chain[1:]}
        assert set(np.flatnonzero(enumeration.covered(lengths)).tolist()) == seen


def test_closed_forms_of_the_paper_size() -> None:
    """Section 2.4: A and R have 2 n m^L examples, S the matrix counts."""
    for name in ("ctl/A", "ctl/R"):
        made = make(name)
        for language in ("train", "test"):
            enumeration = Enumeration(walks_over(made.actual_world, language), made.actual_world.tables)
            expected = [2 * 8 * 16**length for length in range(2, 7)]
            assert [enumeration.total(length) for length in range(2, 7)] == expected
            assert enumeration.total(1) == (256 if language == "train" else 0)
    assert expected == [4_096, 65_536, 1_048_576, 16_777_216, 268_435_456]


S_PAIRS = {(4, 2): 1_064, (8, 3): 1_104, (16, 6): 1_152}


@pytest.mark.parametrize("bridge", [4, 8, 12, 16])
@pytest.mark.parametrize("shared", [2, 3, 4, 5, 6])
def test_counts_of_all_settings_of_s(bridge: int, shared: int) -> None:
    """Blocks by the closed form, chains of blocks by powers of the block matrix, tests by (2 m²)^K."""
    made = make("ctl/S", bridge=bridge, shared=shared)
    world, m = made.actual_world, (32 - bridge) // 4
    train, test = (Enumeration(walks_over(world, split), world.tables) for split in ("train", "test"))
    assert train.total(2) == m * (2 * m * 8 + bridge * (8 + shared)) == S_PAIRS.get((bridge, shared), train.total(2))
    blocks = np.zeros((8, 8), object)
    start, functions = train.unrank(np.arange(train.total(2)), 2)
    np.add.at(blocks, (start, world.tables[functions[:, 1], world.tables[functions[:, 0], start]]), 1)
    for count in (2, 3, 4):
        assert train.total(2 * count) == np.linalg.matrix_power(blocks, count).sum()
        assert test.total(2 * count) == 8 * (2 * m**2) ** count
    assert [train.total(odd) for odd in (1, 3, 5)] == [test.total(odd) for odd in (1, 3, 5)] == [0, 0, 0]
    assert made.size("ood/symbols") == m * bridge * (8 - shared)
    assert made.size("ood/pairs") == 2 * m**2 * 8 + m * bridge * (8 - shared)
    assert made.size("probe/pairs") == 2 * m * (2 * m + bridge) * 8


@pytest.mark.parametrize("name", ["A_4_8", "S_4_12_o4_k1"])
def test_counts_of_the_published_worlds(name: str) -> None:
    made = make(f"ctl/{name[0]}", world=published(name))
    counts = PUBLISHED[name]["authors_possible_counts_train"]
    assert {str(length): released_count(made.actual_world, length) for length in map(int, counts)} == counts
    exact = [
        Enumeration(walks_over(made.actual_world, "train"), made.actual_world.tables).total(length)
        for length in (2, 4, 6)
    ]
    assert exact == ([128, 2_048, 32_768] if name[0] == "A" else [72, 1_278, 22_710])


def test_rank_and_unrank_beyond_64_bits() -> None:
    made = make("ctl/A", **SMALL)
    enumeration = Enumeration(walks_over(made.actual_world, "train"), made.actual_world.tables)
    length = 40
    assert enumeration.total(length) == 2 * 4 * 4**length > 2**63
    numbers = draw_numbers(enumeration, stream("test").block(), 200, length, np.empty(0, np.int64), "uniform")
    assert len(set(numbers.tolist())) == 200 and max(numbers.tolist()) > 2**70
    walked = enumeration.unrank(numbers, length)
    assert (enumeration.rank(*walked) == numbers).all()
    world = made.actual_world
    assert all(
        automaton.training_fault(world, [world.names[f] for f in chain], int(start)) is None
        for start, chain in zip(*walked, strict=True)
    )


@settings(derandomize=True, deadline=None, max_examples=30)
@given(st.integers(1, 6), st.integers(0, 10**6))
def test_rank_inverts_unrank(length: int, seed: int) -> None:
    made = make("ctl/S", **STAGED)
    enumeration = Enumeration(walks_over(made.actual_world, "train"), made.actual_world.tables)
    total = enumeration.total(length)
    numbers = draw_numbers(
        enumeration, stream("test", seed).block(), min(50, total), length, np.empty(0, np.int64), "uniform"
    )
    assert (enumeration.rank(*enumeration.unrank(numbers, length)) == numbers).all()


def test_unranking_is_uniform() -> None:
    """Draws of a few examples at a time hit every training example of S with two functions equally often."""
    made = make("ctl/S", **STAGED)
    enumeration = Enumeration(walks_over(made.actual_world, "train"), made.actual_world.tables)
    banned = np.array([3, 4, 40])
    hits = np.zeros(enumeration.total(2), np.int64)
    for seed in range(2_000):
        chosen = draw_numbers(enumeration, stream("uniform", seed).block(), 10, 2, banned, "uniform")
        hits[enumeration.rank(*enumeration.unrank(chosen, 2))] += 1
    assert hits[banned].sum() == 0
    assert chisquare(np.delete(hits, banned)).pvalue > 0.001


SETTINGS = settings(derandomize=True, deadline=None, max_examples=60)


def floyd(draws: Draws, population: int, count: int) -> list[int]:
    """The algorithm as it is usually written, one number after the other."""
    found: list[int] = []
    tops = np.arange(population - count, population, dtype=number_dtype(population))
    for top, drawn in zip(tops.tolist(), draw_below(draws, tops + 1).tolist(), strict=True):
        found.append(top if drawn in found else drawn)
    return found


@SETTINGS
@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 10**6))
def test_subset_equals_the_sequential_algorithm_of_floyd(count: int, more: int, seed: int) -> None:
    population, named = count + more, stream("test", seed)
    found = draw_subset(named.block(), population, count).tolist()
    assert found == floyd(named.block(), population, count)
    assert len(set(found)) == count and all(0 <= number < population for number in found)


@pytest.mark.parametrize("population", [2**61, 2**62, 2**70, 10**40])
def test_subsets_of_large_populations_are_exact(population: int) -> None:
    found = draw_subset(stream("test", population).block(), population, 500)
    assert found.tolist() == floyd(stream("test", population).block(), population, 500)
    assert found.dtype == number_dtype(population) and len(set(found.tolist())) == 500
    spread = np.array([number / population for number in found.tolist()])
    assert abs(spread.mean() - 0.5) < 4 / np.sqrt(12 * 500)


def test_every_set_is_equally_likely() -> None:
    sets = dict.fromkeys(combinations(range(6), 3), 0)
    draws = stream("test", "uniform sets").block()
    for _ in range(4_000):
        sets[tuple(sorted(draw_subset(draws, 6, 3).tolist()))] += 1
    assert chisquare(list(sets.values())).pvalue > 0.001


@SETTINGS
@given(st.integers(1, 2**62 - 1), st.integers(0, 10**6))
def test_products_of_64_bits_equal_those_of_python(bound: int, seed: int) -> None:
    drawn = draw_below(stream("test", seed).block(), np.full(20, bound)).tolist()
    words = stream("test", seed).block().words(40).tolist()
    assert drawn == [((high << 64 | low) * bound) >> 128 for high, low in zip(words[:20], words[20:], strict=True)]


@SETTINGS
@given(st.sets(st.integers(0, 40)), st.lists(st.integers(0, 30), max_size=20))
def test_skip_excluded_counts_past_excluded_numbers(banned: set[int], numbers: list[int]) -> None:
    free = [number for number in range(100) if number not in banned]
    found = skip_excluded(np.array(numbers, np.int64), np.array(sorted(banned), np.int64))
    assert found.tolist() == [free[number] for number in numbers]


def test_subset_larger_than_the_population_is_refused() -> None:
    with pytest.raises(UsageError, match="cannot draw 8 different numbers: only 7 exist"):
        draw_subset(stream("test").block(), 7, 8)
    assert draw_subset(stream("test").block(), 0, 0).tolist() == []


NOTHING = np.empty(0, np.int64)


def training(**options: object) -> Enumeration:
    world = make("ctl/S", **{**STAGED, **options}).actual_world
    return Enumeration(walks_over(world, "train"), world.tables)


def every(enumeration: Enumeration, length: int) -> tuple[np.ndarray, np.ndarray]:
    return enumeration.unrank(np.arange(enumeration.total(length)), length)


@pytest.mark.parametrize("length", [2, 4])
def test_probabilities_add_up_and_are_those_of_the_draws(length: int) -> None:
    enumeration = training()
    chances = walk_probabilities(enumeration, every(enumeration, length))
    assert chances.sum() == pytest.approx(1)
    drawn = draw_walks(enumeration, stream("test", length).block(), 60_000, length)
    counts = np.bincount(enumeration.rank(*drawn), minlength=enumeration.total(length))
    assert chisquare(counts, chances * 60_000).pvalue > 0.001


def test_stepwise_sampling_is_uniform_in_a_and_not_in_s() -> None:
    """The spread of the paper-size world: a factor of about 1.4 for pairs, 1.9 for four functions."""
    made = make("ctl/S", bridge=4, shared=2).actual_world
    enumeration = Enumeration(walks_over(made, "train"), made.tables)
    spread = [
        (chances := walk_probabilities(enumeration, every(enumeration, length))).max() / chances.min()
        for length in (2, 4)
    ]
    assert 1.2 < spread[0] < 1.6 and 1.6 < spread[1] < 2.4
    even = make("ctl/A").actual_world
    flat = Enumeration(walks_over(even, "train"), even.tables)
    chances = walk_probabilities(flat, every(flat, 2))
    assert chances.max() == pytest.approx(chances.min())


@pytest.mark.parametrize("count", [1, 20, 35, 36, 60, 69])
def test_distinct_walks_avoid_excluded_numbers(count: int) -> None:
    enumeration, banned = training(), np.array([0, 10, 71])
    assert enumeration.total(2) == 72
    found = draw_distinct_walks(enumeration, stream("test", count).block(), count, 2, banned)
    assert len(set(found.tolist())) == count and not np.isin(found, banned).any()
    with pytest.raises(UsageError, match="cannot draw 70 different examples of 2 functions: only 69 exist"):
        draw_distinct_walks(enumeration, stream("test").block(), 70, 2, banned)


def test_random_keys_select_like_dropping_repeats() -> None:
    """The same inclusion frequencies whether repeats are dropped by hand or keys are compared."""
    enumeration, count, runs = training(), 40, 800
    by_keys, by_hand = np.zeros(72), np.zeros(72)
    for seed in range(runs):
        by_keys[draw_distinct_walks(enumeration, stream("keys", seed).block(), count, 2, NOTHING)] += 1
        drawn = enumeration.rank(*draw_walks(enumeration, stream("hand", seed).block(), 1_500, 2)).tolist()
        by_hand[list(dict.fromkeys(drawn))[:count]] += 1
    error = np.sqrt(2 * by_hand / runs * (1 - by_hand / runs) / runs)
    assert (np.abs(by_keys - by_hand) / runs <= 4.5 * error).all()
    chances = walk_probabilities(enumeration, every(enumeration, 2))
    assert np.corrcoef(by_keys, chances)[0, 1] > 0.9  # and it is not the uniform choice
