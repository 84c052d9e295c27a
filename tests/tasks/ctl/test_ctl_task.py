"""The task itself: spec, splits, factors, streams and golden numbers."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from support.ctl_worlds import SMALL, STAGED, make
from unseen.spec import Field, Spec, Stream, Target
from unseen.tasks.ctl.encode import ChainCache, Chains
from unseen.tasks.verify import fingerprint

PRESETS = ["clean", "released", "paper"]
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "A": ("ctl/A", {}),
    "R": ("ctl/R", {"train_size": 5_000}),
    "S": ("ctl/S", {"train_size": 5_000}),
    "graph": ("ctl/graph", {"train_size": 5_000}),
    "lengths": ("ctl/lengths", {}),
    "lengths dubois": ("ctl/lengths", {"generator": "dubois"}),
}
# The first 1 000 training examples, 300 IID ones and 300 of the third split.
GOLDEN = {
    "A clean": "2ddde01ad6c1 cd8baab33cc8 e13788f274e7",
    "A released": "92472f06a64e 05e414fbdd2f 953c947c856c",
    "A paper": "873e5a5fd79a 489c65df8489 db7d2e53bd2c",
    "R clean": "7bb6f8af4572 86be82132216 5bc7d9a3fa19",
    "R released": "45da64f2e743 2aea890a5561 908be85f1c2a",
    "R paper": "4527be640a36 6c653de767e7 beecaed66089",
    "S clean": "42136cb0cc46 1627534b7e1e 8f9c7dd7578b",
    "S released": "e37192ffd28f d38e2af436ec 2ec9103b9120",
    "S paper": "49f9127b25ff b30aa66fa3df 55699d0a7aeb",
    "graph clean": "9031bde3ea4f b7e73c76ab58 2739a1be1b2f",
    "graph released": "dde99f294344 12cec2a107ce b706af608098",
    "graph paper": "74629359b981 8b8e24ae244a 055b79bde2fd",
    "lengths clean": "6dfcb7f91ee0 26463dc0140a eb26518a2382",
    "lengths released": "c5f151b7040b dc6289fc9e27 d9226dd2ae3d",
    "lengths paper": "2fd018fe67bc 9dfbbde53fb4 5a0ee83acb22",
    "lengths dubois clean": "56f59a71b195 20c424bea97b 1706e304650d",
    "lengths dubois released": "f880e35d7805 c2d8038547b4 8855d24f744f",
    "lengths dubois paper": "6cdc88efe8d0 905c0745023b cdcec187af63",
}


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("case", CASES)
def test_golden_sets(case: str, preset: str) -> None:
    """The numbers of every preset and task; a change is a decision and raises the task's version."""
    name, options = CASES[case]
    made = make(name, preset=preset, **options)
    last = list(made.splits)[2]
    found = " ".join(
        fingerprint(made.sample(split, 1_000 if split == "train" else 300))[:12] for split in ("train", "iid", last)
    )
    assert found == GOLDEN[f"{case} {preset}"]


def test_spec_splits_and_sizes() -> None:
    made = make("ctl/A")
    assert made.spec == Spec(
        (Stream("tokens", 9),),
        (Field("token", "category", 42, "tokens"), Field("mask", "mask", 1, "tokens")),
        Target("category", 8),
    )
    assert list(made.splits) == [
        "train",
        "iid",
        "ood/transition",
        "ood/any",
        "ood/pairs",
        "probe/pairs",
        "probe/singles",
    ]
    assert made.validation == "iid" and made.report_by == ("length",)
    assert [made.size(name) for name in made.splits] == [300_000, 1_000, 1_000, 1_000, 4_096, 8_192, 256]
    assert made.splits["ood/transition"].unseen == made.splits["ood/pairs"].unseen == ("transition",)
    staged = make("ctl/S")
    unseen = {name: split.unseen for name, split in staged.splits.items() if split.unseen}
    assert unseen == {
        "ood/transition": ("transition",),
        "ood/loops": ("transition",),
        "ood/symbols": ("entry",),
        "ood/pairs": ("entry",),
    }
    assert set(staged.splits) - set(made.splits) == {"ood/loops", "ood/bridge", "ood/symbols"}


def test_factors_by_hand() -> None:
    made = make("ctl/S", **STAGED)
    world = made.actual_world
    groups = list(world.groups)
    for split in ("train", "ood/transition", "ood/symbols", "ood/any", "probe/singles"):
        examples = made.sample(split, 24)
        for i in range(24):
            factors = {name: values[i].tolist() for name, values in examples.factors.items()}
            functions = [f for f in factors["functions"] if f >= 0]
            symbols = [factors["start"]]
            for f in functions:
                symbols.append(world.functions[world.names[f]][symbols[-1]])
            here = [groups.index(world.group_name(world.names[f])) for f in functions]
            pad = len(factors["functions"]) - len(functions)
            assert factors["length"] == len(functions)
            assert factors["groups"] == here + [-1] * pad and factors["symbols"] == symbols + [-1] * pad
            codes = [a * len(groups) + b for a, b in pairwise(here)]
            assert factors["transitions"] == codes + [-1] * (len(factors["transitions"]) - len(codes))
            steps = [
                (f"{groups[a]}→{groups[b]}", f"{groups[a]}→{world.names[f]}({s})", made.trained_entries[a, f, s])
                for a, b, f, s in zip(here, here[1:], functions[1:], symbols[1:], strict=False)
            ]
            deciding = next((step for step in steps if not step[2]), steps[0] if steps else ("", "", True))
            assert (factors["transition"], factors["entry"]) == deciding[:2]
            assert symbols[-1] == examples.targets[i]


def test_sampling_option_and_preset_choose_the_same_way() -> None:
    one = make("ctl/S", **STAGED, preset="paper")
    assert (one.actual_sampling, make("ctl/S", preset="paper", sampling="uniform").actual_sampling) == (
        "stepwise",
        "uniform",
    )
    assert make("ctl/S").actual_sampling == "uniform" and make("ctl/S", preset="released").actual_sampling == "stepwise"


def test_world_does_not_depend_on_sizes_and_presets() -> None:
    worlds = [
        make("ctl/S", **options).actual_world
        for options in ({}, {"preset": "released"}, {"train_size": 1_000}, {"max_length": 4})
    ]
    assert all(world == worlds[0] for world in worlds) and make("ctl/S", task_seed=1).actual_world != worlds[0]
    assert make("ctl/A").actual_world.functions == make("ctl/R").actual_world.functions


def test_changing_examples_does_not_change_the_cached_set() -> None:
    made = make("ctl/A", **SMALL)
    before = fingerprint(made.sample("train", 10))
    spoilt = made.sample("train", 10)
    for values in (*spoilt.inputs.values(), *spoilt.factors.values(), spoilt.targets):
        values[:] = 0
    assert fingerprint(spoilt) != before == fingerprint(made.sample("train", 10))


def test_cache_drops_the_least_recently_used_sets() -> None:
    made: list[str] = []
    recent = ChainCache(25)

    def set_of(key: str) -> Chains:
        made.append(key)
        return Chains.from_walks((np.zeros(30 if key == "large" else 10, np.int64), np.zeros((1, 1), np.int64)))

    for key in ("a", "b", "a", "c", "a", "b", "large", "large", "a"):
        recent.get(key, lambda key=key: set_of(key))
    assert made == ["a", "b", "c", "b", "large", "a"]  # b went when c came; the large one stays until the next


def test_tasks_with_equal_options_are_equal_and_hash_alike() -> None:
    one, other = make("ctl/A", **SMALL), make("ctl/A", **SMALL)
    for task in (one, other):
        task.sample("train", 1)
    assert one == other and hash(one) == hash(other) and one != make("ctl/R", **SMALL)
    assert len({one: 0, other: 1}) == 1 and one != "ctl/A"


def test_chains_whose_numbers_exceed_64_bits() -> None:
    """Chains so long that their numbers need Python integers."""
    made = make("ctl/A", **{**SMALL, "max_length": 36})
    examples = made.sample("train", 300)
    assert (made.solve(examples) == examples.targets).all() and examples.factors["length"].max() == 36
    assert np.unique(examples.factors["functions"], axis=0).shape[0] > 280
