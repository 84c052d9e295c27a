"""The sets behind the splits: allocations to the number, and every guarantee of the specification."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.ctl_worlds import PUBLISHED, SMALL, STAGED, chains_of, make, published, whole_set
from unseen.errors import UsageError
from unseen.tasks.base import Examples
from unseen.tasks.ctl.sampling import HeldOutSet, allocate, expected_counts
from unseen.tasks.ctl.task import Lookup

SEEDS = (0, 1, "validation", "test")
TASKS: dict[str, tuple[str, dict[str, Any]]] = {
    f"{name} {preset}": (f"ctl/{name}", {**options, "preset": preset})
    for name, options in (
        ("A", SMALL),
        ("R", SMALL),
        ("S", STAGED),
        (
            "graph",
            {
                **SMALL,
                "functions": 9,
                "max_length": 5,
                "graph": {
                    "groups": {"a": 3, "b": 3, "c": 3},
                    "edges": [
                        {"from": "a", "to": "b", "in": "both"},
                        {"from": "b", "to": "c", "in": "both"},
                        {"from": "c", "to": "a", "in": "train"},
                        {"from": "c", "to": "b", "in": "test"},
                    ],
                },
            },
        ),
    )
    for preset in ("clean", "released", "paper")
}


@pytest.fixture(params=TASKS, scope="module")
def made(request: pytest.FixtureRequest) -> Lookup:
    name, options = TASKS[request.param]
    return make(name, **options)


def by_length(examples: Examples) -> dict[int, int]:
    return dict(sorted(Counter(examples.factors["length"].tolist()).items()))


def values(examples: Examples, names: tuple[str, ...]) -> set[str]:
    return {str([examples.factors[name][i].tolist() for name in names]) for i in range(len(examples))}


def pool(task: Lookup) -> dict[int, int]:
    """Drawn training examples and the IID test set, by length."""
    held, lot = task.split_sources["iid"].examples, task.split_sources["train"].examples
    assert isinstance(held, HeldOutSet) and not isinstance(lot, HeldOutSet)
    return {length: count + held.counts.get(length, 0) for length, count in lot.drawn_counts.items()}


# Allocations


def test_allocation_of_a_and_r_is_exact() -> None:
    for name in ("ctl/A", "ctl/R"):
        assert pool(make(name, preset="released")) == {2: 2_048, 3: 32_768, 4: 88_728, 5: 88_728, 6: 88_728}
        for preset in ("clean", "paper"):
            assert pool(make(name, preset=preset)) == {2: 2_048, 3: 32_768, 4: 88_643, 5: 88_643, 6: 88_642}
        sizes = {preset: make(name, preset=preset).size("train") for preset in ("clean", "released", "paper")}
        assert sizes == {"clean": 300_000, "released": 304_096, "paper": 300_000}
        assert make(name).split_sources["ood/transition"].examples.counts == dict.fromkeys(range(2, 7), 200)


def test_allocation_of_s_over_the_grid() -> None:
    """With the code's estimates: 448–624 pairs, at most 105 400 of four functions, the rest of six."""
    pairs, fours, sixes = set(), set(), set()
    for bridge in (4, 8, 12, 16):
        for shared in (2, 3, 4, 5, 6):
            task = make("ctl/S", preset="released", bridge=bridge, shared=shared)
            found = pool(task)
            assert sum(found.values()) == 301_000 and list(found) == [2, 4, 6]
            pairs.add(found[2]), fours.add(found[4]), sixes.add(found[6])
            tested = {2: 256, 4: 372, 6: 372} if bridge == 16 else {2: 334, 4: 333, 6: 333}
            assert task.split_sources["ood/transition"].examples.counts == tested
    assert (min(pairs), max(pairs), max(fours), min(sixes)) == (448, 624, 105_400, 194_980)
    assert 70_000 < min(fours) < 72_000 and 228_500 < max(sixes) < 231_000  # these two depend on the tables


@pytest.mark.parametrize("name", ["A_4_8", "S_4_12_o4_k1"])
def test_sizes_and_lengths_of_the_published_sets(name: str) -> None:
    """What the released code made of its own worlds, split by split."""
    splits = {
        "ood/any": "test_all",
        "ood/loops": "test_self_loop",
        "ood/bridge": "test_all_overlap",
        "ood/symbols": "test_cross_unseen_symbols",
        "ood/pairs": "test_unseen_pairs",
        "probe/pairs": "test_all_pairs",
        "ood/transition": "test_self_loop" if name[0] == "A" else "test_group_alternate",
    }
    task = make(f"ctl/{name[0]}", world=published(name), preset="released", train_size=2_000)
    given = PUBLISHED[name]
    lengths = given["length_histograms_n_functions"]
    for split in task.splits:
        if splits.get(split) in lengths:
            found = by_length(whole_set(task, split))
            assert {str(length): count for length, count in found.items()} == lengths[splits[split]]
    theirs = Counter(lengths["iid"]) + Counter(lengths["train"])
    assert {str(length): count for length, count in pool(task).items()} == theirs
    assert task.size("train") == given["split_sizes"]["train"] + given["split_sizes"]["pairs"]
    assert task.size("iid") == given["split_sizes"]["iid"]


@settings(derandomize=True, deadline=None, max_examples=100)
@given(
    st.dictionaries(st.integers(1, 9), st.integers(0, 2_000), min_size=1),
    st.integers(1, 3_000),
    st.sampled_from([0.5, 1]),
)
def test_allocation_keeps_its_bounds(available: dict[int, int], wanted: int, share: float) -> None:
    found = allocate(available, wanted, share)
    assert set(found) == {length for length, count in available.items() if count}
    assert all(found[length] <= share * available[length] for length in found)
    possible = sum(int(share * count) for count in available.values())
    assert sum(found.values()) <= wanted
    if sum(found.values()) < wanted:  # then nothing was left over, except where an early length kept its equal part
        longest = max(found, default=0)
        assert not found or found[longest] == int(share * available[longest])
        assert possible < wanted or len(found) > 1


def test_expected_lengths_of_drawing_lengths_uniformly() -> None:
    """Against drawing them, one after the other."""
    available = {2: 30, 3: 200, 4: 3_000}
    found = expected_counts(available, 700)
    assert sum(found.values()) == 700 and found[2] == 30
    generator = np.random.Generator(np.random.PCG64(0))
    runs = []
    for _ in range(200):
        seen: set[tuple[int, int]] = set()
        while len(seen) < 700:
            length = int(generator.integers(2, 5))
            seen.add((length, int(generator.integers(available[length]))))
        runs.append([sum(length == which for length, _ in seen) for which in available])
    error = np.std(runs, axis=0) / np.sqrt(200)
    assert (np.abs(np.mean(runs, axis=0) - list(found.values())) <= 4 * error + 1).all()
    with pytest.raises(UsageError, match="needs 3231 different examples, but only 3230 can be drawn"):
        expected_counts(available, 3_231)


# Guarantees


def test_no_example_occurs_twice(made: Lookup) -> None:
    """The released preset keeps repeats of pairs, and of nothing else."""
    for split in made.splits:
        found = chains_of(whole_set(made, split))
        if split == "train" and made.preset == "released":
            found = [chain for chain in found if len(chain) != 3]
        assert len(set(found)) == len(found)
    repeats = Counter(Counter(chains_of(whole_set(made, "train"))).values())
    assert set(repeats) <= ({1, 2} if made.preset == "released" else {1})


def test_held_out_examples_are_in_no_training_set(made: Lookup) -> None:
    """Whatever the data seeds. The released preset keeps IID out of what is drawn, but not out of the pairs."""
    held = {seed: set(chains_of(whole_set(made, "iid", seed))) for seed in SEEDS}
    assert not held["validation"] & held["test"]
    assert held[0] | held[1] <= held["validation"] | held["test"]
    for seed in SEEDS:
        trained = Counter(chains_of(whole_set(made, "train", seed)))
        shared = [chain for chain in held["validation"] | held["test"] if chain in trained]
        if made.preset == "released":
            assert all(len(chain) == 3 and trained[chain] == 1 for chain in shared) and shared
        else:
            assert not shared


def test_no_unseen_transition_is_in_training(made: Lookup) -> None:
    """At any step, and for what every split calls unseen."""
    train = [whole_set(made, "train", seed) for seed in SEEDS]
    for name, split in made.splits.items():
        if split.unseen:
            known = {value for part in train for value in values(part, split.unseen)}
            assert not values(whole_set(made, name), split.unseen) & known
    tested = whole_set(made, "ood/transition").factors["transitions"]
    known_steps = set(np.concatenate([part.factors["transitions"].reshape(-1) for part in train]).tolist())
    assert all(set(row) - known_steps for row in tested.tolist())
    overlap = {chain for part in train for chain in chains_of(part)} & set(chains_of(whole_set(made, "ood/transition")))
    assert not overlap


def test_training_has_every_function_and_the_included_examples(made: Lookup) -> None:
    world = made.actual_world
    found = set(chains_of(whole_set(made, "train")))
    assert {f for chain in found for f in chain[1:]} == set(range(len(world.functions)))
    singles = {chain for chain in found if len(chain) == 2}
    pairs = {chain for chain in found if len(chain) == 3}
    staged = made.name == "ctl/S"
    if made.preset == "released":
        every = next(split for name, split in made.split_sources.items() if name == "train").examples.enumeration
        assert not singles and len(pairs) == every.total(2)
    else:
        assert len(singles) == (0 if staged else len(world.functions) * len(world.symbols))


def test_sets_do_not_depend_on_earlier_requests(made: Lookup) -> None:
    again = type(made).parse(made.options())
    again.sample("iid", 3, start=5, data_seed=1)
    for split in made.splits:
        one, other = whole_set(made, split), again.sample(split, 7, start=2)
        assert chains_of(one)[2:9] == chains_of(other)
        assert chains_of(one) != chains_of(whole_set(made, split, 1))


def test_every_data_seed_has_the_same_lengths_at_the_same_positions(made: Lookup) -> None:
    schedule = made.schedule()
    for seed in SEEDS:
        assert (whole_set(made, "train", seed).inputs["mask"].sum(1) == schedule).all()


def test_instances_of_a_share_their_schedule() -> None:
    one, other = (make("ctl/A", **SMALL, task_seed=seed) for seed in (0, 1))
    assert (one.schedule() == other.schedule()).all() and one.actual_world != other.actual_world


def test_both_orders_have_the_same_chains() -> None:
    one, other = (make("ctl/S", **STAGED, order=order) for order in ("backward", "forward"))
    a, b = (task.sample("train", 50) for task in (one, other))
    assert chains_of(a) == chains_of(b) and (a.targets == b.targets).all()
    assert not (a.inputs["token"] == b.inputs["token"]).all()


@pytest.mark.parametrize("include", ["singles", "pairs", "both", "none"])
@pytest.mark.parametrize("disjoint", [True, False])
def test_always_included_examples(include: str, disjoint: bool) -> None:
    task = make("ctl/A", **SMALL, always_include=include, disjoint=disjoint, min_length=1)
    trained = Counter(chains_of(whole_set(task, "train")))
    assert sum(trained.values()) == task.size("train") == SMALL["train_size"]
    for length, present in ((1, include in ("singles", "both")), (2, include in ("pairs", "both"))):
        every = task.split_sources["train"].examples.enumeration.total(length)
        found = {chain for chain in trained if len(chain) == length + 1}
        assert (len(found) == every) == present
        held = [chain for chain in chains_of(whole_set(task, "iid", "test")) if len(chain) == length + 1]
        assert not (held and present and disjoint)
        if not disjoint and present:
            assert all(chain in trained for chain in held) and (held or length == 1)


def test_shortage_is_an_error_with_numbers_or_takes_all() -> None:
    options = {"symbols": 4, "functions": 8, "max_length": 3}
    with pytest.raises(UsageError) as caught:
        make("ctl/A", **options).size("train")
    assert "needs 300968 different examples, but only 320 can be drawn, half of each length" in str(caught.value)
    assert "(by length 2: 64 of 128, 3: 256 of 512)" in str(caught.value)
    task = make("ctl/A", **options, on_shortage="take_all", iid_size=50)
    assert task.size("train") == 32 + 320 - 50 and task.size("iid") == 50 and task.size("ood/transition") == 640
    with pytest.raises(UsageError, match="ood/transition: needs 1000 different examples, but only 640 can be drawn"):
        make("ctl/A", **options, train_size=100, iid_size=20).size("train")
    with pytest.raises(UsageError, match="320 can be drawn"):
        make("ctl/A", **options, on_shortage="take_all", iid_size=400).size("train")
    with pytest.raises(UsageError, match="train_size = 20: 32 examples are always included"):
        make("ctl/A", **options, train_size=20).size("train")


@settings(derandomize=True, deadline=None, max_examples=40)
@given(st.data())
def test_guarantees_hold_in_any_small_world(data: st.DataObject) -> None:
    """Random variants, presets, sizes and seeds: no repeats, nothing held out in training, nothing unseen in it."""
    options: dict[str, Any] = {
        "preset": data.draw(st.sampled_from(["clean", "released", "paper"])),
        "symbols": data.draw(st.integers(4, 5)),
        "functions": data.draw(st.integers(6, 12)),
        "max_length": data.draw(st.integers(3, 4)),
        "iid_size": 8,
        "task_seed": data.draw(st.integers(0, 50)),
        "bijective": data.draw(st.booleans()),
        "on_shortage": "take_all",
        "train_size": data.draw(st.integers(100, 400)),
        "ood_size": 50,
    }
    name = data.draw(st.sampled_from(["ctl/A", "ctl/R", "ctl/S"]))
    more = {"bridge": 2, "shared": 3} if name == "ctl/S" else {"groups": data.draw(st.integers(2, 3))}
    task = make(name, **options, **more)
    seed = data.draw(st.integers(0, 5))
    trained, tested = chains_of(whole_set(task, "train", seed)), chains_of(whole_set(task, "ood/transition", "test"))
    held = [*chains_of(whole_set(task, "iid", "test")), *chains_of(whole_set(task, "iid", "validation"))]
    drawn = [chain for chain in trained if len(chain) != 3] if options["preset"] == "released" else trained
    assert len(set(drawn)) == len(drawn) and len(set(held)) == len(held) == 16 and len(set(tested)) == len(tested)
    shared = set(held) & set(trained)
    assert not shared if options["preset"] != "released" else all(len(chain) == 3 for chain in shared)
    assert not set(tested) & set(trained)
    world = task.actual_world
    if name != "ctl/S" or options["preset"] == "released":
        # Singles or pairs are always included. Otherwise a small drawn set may miss a function by chance.
        assert {f for chain in trained for f in chain[1:]} == set(range(options["functions"]))
    for chain in trained:
        assert task.split_sources["train"].rule(world, [world.names[f] for f in chain[1:]], chain[0]) is None
    for chain in tested:
        assert task.split_sources["ood/transition"].rule(world, [world.names[f] for f in chain[1:]], chain[0]) is None
    steps = set(whole_set(task, "train", seed).factors["transitions"].reshape(-1).tolist())
    assert all(set(row) - steps for row in whole_set(task, "ood/transition", "test").factors["transitions"].tolist())
