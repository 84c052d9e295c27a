"""The original task: sizes of both published generators, and what is held back from training."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from support.ctl_worlds import chains_of, make, whole_set
from unseen.tasks.ctl import automaton
from unseen.tasks.ctl.lengths import Lengths


def lengths(**options: Any) -> Lengths:
    found = make("ctl/lengths", **options)
    assert isinstance(found, Lengths)
    return found


NDR = {
    "train": 53_704,
    "iid": 4_000,
    "ood/length=6-8": 1_000,
    "ood/length=9-10": 1_000,
    "ood/reserved": 604,
    "ood/table=x": 1_000,
    "ood/table=y": 1_000,
    "probe/singles": 88,
}


def test_sizes_of_the_router_generator() -> None:
    """531 360 inputs of nine tables; a tenth and the singles, those of the extra tables thirty times more."""
    task = lengths(preset="released")
    assert {name: task.size(name) for name in task.splits} == {**NDR, "ood/reserved": 608}
    assert {name: lengths().size(name) for name in task.splits} == NDR
    enumeration = task.split_sources["train"].examples.enumeration
    assert sum(enumeration.total(length) for length in range(2, 6)) == 531_360 == 8 * 66_420
    reserved = whole_set(task, "ood/reserved").factors["length"]
    assert np.bincount(reserved).tolist() == [1, 3, 21, 183, 200, 200]
    assert task.validation == "ood/length=6-8"
    world = task.actual_world
    assert [len(world.members(group)) for group in world.groups] == [9, 1, 1]
    trained = Counter(chains_of(whole_set(task, "train")))
    single = {chain: count for chain, count in trained.items() if len(chain) == 2}
    assert len(single) == 88 and Counter(single.values()) == {1: 72, 31: 16}
    assert all(count == 1 for chain, count in trained.items() if len(chain) > 2)


def test_sizes_of_the_other_generator() -> None:
    """1 548 compositions of six tables: 100 held back, two inputs of each other held back, a tenth for validation."""
    task = lengths(generator="dubois")
    left = (36 + 216 + 1_296 - 100) * 6
    assert task.size("iid") == left // 20 and task.size("train") == left - 2 * (left // 20) + 64
    expected = {
        "ood/length=5-9": 25_000,
        "ood/reserved": 800,
        "ood/inputs": 2 * 1_448,
        "ood/table=x": 5_000,
        "ood/table=y": 5_000,
        "probe/singles": 64,
    }
    assert {name: task.size(name) for name in expected} == expected and task.validation == "iid"
    assert set(Counter(whole_set(task, "ood/length=5-9").factors["length"].tolist()).values()) == {5_000}
    assert len(set(task.actual_world.functions.values())) == 8


@pytest.mark.parametrize("options", [{}, {"preset": "released"}, {"preset": "paper"}, {"generator": "dubois"}], ids=str)
def test_held_back_examples_are_in_no_training_set(options: dict[str, Any]) -> None:
    task = lengths(**options)
    apart = [name for name in task.splits if name.startswith("ood/")] + ["iid"]
    for seed in (0, 1):
        trained = chains_of(whole_set(task, "train", seed))
        compositions = {chain[1:] for chain in trained}
        for name in apart:
            found = chains_of(whole_set(task, name, "test"))
            overlap = set(found) & set(trained)
            if name == "ood/reserved" and options.get("preset") == "released":
                assert {len(chain) for chain in overlap} == {2}  # the accident: single tables
                found = [chain for chain in found if len(chain) > 2]
            else:
                assert not overlap
            if name == "ood/reserved":
                assert not {chain[1:] for chain in found} & compositions
            if name == "ood/inputs":
                assert {chain[1:] for chain in found} - compositions == set()
    drawn = [chain for chain in trained if len(chain) > 2]
    assert len(set(drawn)) == len(drawn)


def test_extra_tables_are_composed_in_their_tests_only() -> None:
    task = lengths()
    extra = {name: int(task.actual_world.members(name)[0]) for name in ("x", "y")}
    for chain in chains_of(whole_set(task, "train")):
        assert len(chain) == 2 or not set(extra.values()) & set(chain[1:])
    for name, table in extra.items():
        other = extra["y" if name == "x" else "x"]
        for chain in chains_of(whole_set(task, f"ood/table={name}")):
            assert table in chain[1:] and other not in chain[1:] and 2 <= len(chain) - 1 <= 5


def test_stepwise_sampling_exhausts_short_chains_and_uniform_takes_half() -> None:
    stepwise, uniform = (
        lengths(preset="released").split_sources["train"].examples,
        lengths().split_sources["train"].examples,
    )
    available = {2: 60 * 8, 3: (729 - 183) * 8, 4: (6_561 - 200) * 8, 5: (59_049 - 200) * 8}
    assert stepwise.counts[2] > 0.8 * available[2] and stepwise.counts[3] > 0.8 * available[3]
    assert all(uniform.counts[length] <= available[length] / 2 for length in available)


def test_options_and_explicit_worlds() -> None:
    task = lengths(composed=4, max_length=4, longer=[[5, 6]], train_size=200, iid_size=20)
    assert task.size("train") == 200 + 6 * 8 + 30 * 16 and "ood/length=5-6" in task.splits
    world = task.actual_world.model_dump(mode="json")
    again = lengths(world=world, max_length=4, longer=[[5, 6]], train_size=200, iid_size=20)
    assert again.actual_world == task.actual_world
    plain = {"symbols": 8, "functions": world["functions"], "groups": world["graph"]["groups"]}
    assert lengths(world=plain, max_length=4, longer=[]).actual_world == task.actual_world
    assert lengths(world=plain, max_length=4, longer=[]).validation == "iid"
    assert automaton.testing_fault(task.actual_world, ["a", "e"], 0) is None
