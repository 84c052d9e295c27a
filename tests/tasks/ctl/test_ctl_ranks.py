"""Exact counts, numbering and languages, against a brute-force listing by the plain rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from ctl_worlds import PUBLISHED, SMALL, STAGED, listed, make, published
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from unseen.randomness import stream
from unseen.tasks.ctl import grammar
from unseen.tasks.ctl.estimate import estimated_count
from unseen.tasks.ctl.language import Language, both, bridges, everything, loops, pairs, walks
from unseen.tasks.ctl.lots import choose
from unseen.tasks.ctl.ranks import Ranks
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
LANGUAGES: dict[str, tuple[Callable[[World], Language], grammar.Rule]] = {
    "train": (lambda world: walks(world, "train"), grammar.fault_in_training),
    "test": (lambda world: walks(world, "test"), grammar.fault_in_testing),
    "everything": (everything, grammar.any_fault),
    "loops": (loops, grammar.loops_fault),
    "bridges": (bridges, grammar.bridge_fault),
    "unseen symbols": (lambda world: pairs(world, ["blocked"]), grammar.symbols_fault),
    "unseen pairs": (lambda world: pairs(world, ["blocked", "tested"]), grammar.unseen_pairs_fault),
    "pairs": (lambda world: pairs(world, ["blocked", "tested", "trained"]), grammar.pairs_fault),
}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("world", WORLDS)
def test_counts_and_numbers_are_those_of_a_listing(world: str, language: str) -> None:
    """Every example of up to three functions, in order, and nothing else."""
    build, rule = LANGUAGES[language]
    here = WORLDS[world]
    ranks = Ranks(build(here), here.tables)
    for length in (1, 2, 3):
        expected = listed(here, rule, length)
        assert ranks.total(length) == len(expected)
        start, functions = ranks.unrank(np.arange(len(expected)), length)
        assert np.column_stack([start, functions]).tolist() == [list(chain) for chain in expected]
        every = np.array(listed(here, grammar.any_fault, length))
        number = {chain: place for place, chain in enumerate(expected)}
        assert ranks.rank(every[:, 0], every[:, 1:]).tolist() == [number.get(tuple(c), -1) for c in every.tolist()]


@pytest.mark.parametrize("world", WORLDS)
def test_what_two_languages_share(world: str) -> None:
    here = WORLDS[world]
    shared = Ranks(both(loops(here), walks(here, "train")), here.tables)
    for length in (1, 2, 3):
        one, other = (set(listed(here, rule, length)) for rule in (grammar.loops_fault, grammar.fault_in_training))
        assert shared.total(length) == len(one & other)


@pytest.mark.parametrize("world", WORLDS)
def test_coverage_names_the_functions_that_occur(world: str) -> None:
    here = WORLDS[world]
    ranks = Ranks(walks(here, "test"), here.tables)
    for lengths in ([2], [2, 3]):
        seen = {f for length in lengths for chain in listed(here, grammar.fault_in_testing, length) for f in chain[1:]}
        assert set(np.flatnonzero(ranks.covered(lengths)).tolist()) == seen


def test_closed_forms_of_the_paper_size() -> None:
    """Section 2.4: A and R have 2 n m^L examples, S the matrix counts."""
    for name in ("ctl/A", "ctl/R"):
        made = make(name)
        for language in ("train", "test"):
            ranks = Ranks(walks(made.actual_world, language), made.actual_world.tables)
            expected = [2 * 8 * 16**length for length in range(2, 7)]
            assert [ranks.total(length) for length in range(2, 7)] == expected
            assert ranks.total(1) == (256 if language == "train" else 0)
    assert expected == [4_096, 65_536, 1_048_576, 16_777_216, 268_435_456]


S_PAIRS = {(4, 2): 1_064, (8, 3): 1_104, (16, 6): 1_152}


@pytest.mark.parametrize("bridge", [4, 8, 12, 16])
@pytest.mark.parametrize("shared", [2, 3, 4, 5, 6])
def test_counts_of_all_settings_of_s(bridge: int, shared: int) -> None:
    """Blocks by the closed form, chains of blocks by powers of the block matrix, tests by (2 m²)^K."""
    made = make("ctl/S", bridge=bridge, shared=shared)
    world, m = made.actual_world, (32 - bridge) // 4
    train, test = (Ranks(walks(world, split), world.tables) for split in ("train", "test"))
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
    assert {str(length): estimated_count(made.actual_world, length) for length in map(int, counts)} == counts
    exact = [Ranks(walks(made.actual_world, "train"), made.actual_world.tables).total(length) for length in (2, 4, 6)]
    assert exact == ([128, 2_048, 32_768] if name[0] == "A" else [72, 1_278, 22_710])


def test_beyond_64_bits() -> None:
    made = make("ctl/A", **SMALL)
    ranks = Ranks(walks(made.actual_world, "train"), made.actual_world.tables)
    length = 40
    assert ranks.total(length) == 2 * 4 * 4**length > 2**63
    numbers = choose(ranks, stream("test").block(), 200, length, np.empty(0, np.int64), "uniform")
    assert len(set(numbers.tolist())) == 200 and max(numbers.tolist()) > 2**70
    walked = ranks.unrank(numbers, length)
    assert (ranks.rank(*walked) == numbers).all()
    world = made.actual_world
    assert all(
        grammar.fault_in_training(world, [world.names[f] for f in chain], int(start)) is None
        for start, chain in zip(*walked, strict=True)
    )


@settings(derandomize=True, deadline=None, max_examples=30)
@given(st.integers(1, 6), st.integers(0, 10**6))
def test_number_and_back(length: int, seed: int) -> None:
    made = make("ctl/S", **STAGED)
    ranks = Ranks(walks(made.actual_world, "train"), made.actual_world.tables)
    total = ranks.total(length)
    numbers = choose(ranks, stream("test", seed).block(), min(50, total), length, np.empty(0, np.int64), "uniform")
    assert (ranks.rank(*ranks.unrank(numbers, length)) == numbers).all()


def test_unranking_is_uniform() -> None:
    """Draws of a few examples at a time hit every training example of S with two functions equally often."""
    made = make("ctl/S", **STAGED)
    ranks = Ranks(walks(made.actual_world, "train"), made.actual_world.tables)
    banned = np.array([3, 4, 40])
    hits = np.zeros(ranks.total(2), np.int64)
    for seed in range(2_000):
        chosen = choose(ranks, stream("uniform", seed).block(), 10, 2, banned, "uniform")
        hits[ranks.rank(*ranks.unrank(chosen, 2))] += 1
    assert hits[banned].sum() == 0
    assert chisquare(np.delete(hits, banned)).pvalue > 0.001
