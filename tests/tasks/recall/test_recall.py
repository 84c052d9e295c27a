"""Associative recall: solver, distinct keys, held-out pairs and what ignoring the keys is worth."""

from __future__ import annotations

import numpy as np
import pytest

from support.golden_tables import RECALL
from unseen.errors import UsageError
from unseen.tasks import task
from unseen.tasks.base import Examples, Task
from unseen.tasks.recall.solver import solve
from unseen.tasks.verify import fingerprint, verify


def pairs_of(made: Task, examples: Examples) -> set[tuple[int, int]]:
    """All pairs of key and value in the contexts, found by their places."""
    found = set()
    for row in examples.inputs["token"].tolist():
        for key, value in zip(row[::2], row[1::2], strict=True):
            if key < made.keys:
                found.add((key, value - made.keys))
    return found


def test_golden_blocks() -> None:
    made = task("recall/mqar")
    assert {split: fingerprint(made.sample(split, 1024)) for split in made.splits} == RECALL


def test_held_out_pairs_are_in_no_training_example_and_all_others_are() -> None:
    made = task("recall/mqar", keys=16, values=10, train_size=None)
    trained, tested = (pairs_of(made, made.sample(split, 2000)) for split in ("train", "ood/pairs"))
    assert not trained & tested
    assert len(trained) + len(tested) == 16 * 10 and len(tested) == 16 * 2


def test_keys_are_different_and_every_pair_is_asked_for_once() -> None:
    made = task("recall/mqar")
    for split, pairs, length in (("train", 8, 32), ("ood/longer", 8, 128), ("ood/more", 16, 64)):
        examples = made.sample(split, 100)
        assert examples.inputs["token"].shape == (100, length)
        for row, queries in zip(examples.inputs["token"], examples.inputs["query"], strict=True):
            keys = row[row < made.keys]
            assert len(set(keys.tolist())) == len(keys) == pairs
            assert sorted(keys.tolist()) == sorted(queries.tolist())


def test_the_best_guess_without_keys_is_what_is_declared() -> None:
    made = task("recall/mqar", pairs=8, keys=16, values=10)
    drawn = np.random.default_rng(0).integers(10, size=(20_000, 8))
    commonest = np.mean([np.bincount(row).max() / 8 for row in drawn])
    for shortcut in made.shortcuts("train"):
        examples = made.sample("train", 4000)
        assert shortcut.ceiling is not None
        assert abs((shortcut.answer(examples) == examples.targets).mean() - shortcut.ceiling) < 0.01
    assert made.shortcuts("train")[0].ceiling == pytest.approx(commonest, abs=0.003)


@pytest.mark.parametrize(
    ("options", "measured"),
    [
        # The scores are those of an independent script of an audit, and agree with the simulation below.
        ({}, 0.250),
        ({"pairs": 8, "keys": 16, "values": 16, "length": 20}, 0.326),
        ({"pairs": 2, "keys": 8, "values": 10, "length": 6}, 0.665),
    ],
)
def test_a_value_that_training_has_with_the_key_is_a_declared_shortcut(
    options: dict[str, int], measured: float
) -> None:
    made = task("recall/mqar", **options)
    simulated = simulate_possible_values(made.pairs, made.keys, made.values)
    shortcut = {shortcut.name: shortcut for shortcut in made.shortcuts("iid")}[
        "the commonest value of the context that training has with the key"
    ]
    assert shortcut.ceiling == pytest.approx(simulated, abs=0.006)
    assert shortcut.ceiling == pytest.approx(measured, abs=0.015)
    for split in ("iid", "ood/longer", "ood/more"):
        examples = made.sample(split, 2000)
        declared = {shortcut.name: shortcut for shortcut in made.shortcuts(split)}[shortcut.name]
        assert (declared.answer(examples) == examples.targets).mean() == pytest.approx(declared.ceiling, abs=0.02)
    assert made.ceilings("iid")["bag-of-tokens"] == pytest.approx(shortcut.ceiling)


def simulate_possible_values(pairs: int, keys: int, values: int) -> float:
    """The score of the rule, from pairs drawn and counted one by one; ties count as a random choice."""
    random = np.random.default_rng(1)
    offsets = [offset for offset in range(values) if offset % 5]
    total = 0.0
    for _ in range(4000):
        chosen_keys = random.permutation(keys)[:pairs].tolist()
        chosen_values = [(key + offsets[random.integers(len(offsets))]) % values for key in chosen_keys]
        for key, answer in zip(chosen_keys, chosen_values, strict=True):
            possible = [value for value in chosen_values if (value - key) % values % 5]
            most = max(possible.count(value) for value in possible)
            best = {value for value in possible if possible.count(value) == most}
            total += (answer in best) / len(best) / pairs
    return total / 4000


def test_the_key_alone_excludes_what_is_held_out_and_neither_shortcut_helps_with_held_out_pairs() -> None:
    made = task("recall/mqar")
    by_name = {shortcut.name: shortcut for shortcut in made.shortcuts("iid")}
    assert by_name["a value that training has with the key"].ceiling == pytest.approx(1 / 25)
    examples = made.sample("ood/pairs", 500)
    for shortcut in made.shortcuts("ood/pairs")[2:]:
        assert shortcut.ceiling == 0.0
        assert not (shortcut.answer(examples) == examples.targets).any()


def test_other_sizes_are_proven_too() -> None:
    assert verify(task("recall/mqar", pairs=3, keys=8, values=12, length=10), 1000).passed


def test_the_solver_refuses_a_key_without_a_value() -> None:
    with pytest.raises(ValueError, match="key 0 is followed by token 1, which is not a value"):
        solve([0, 1, 1, 2], [0], keys=2, values=2)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"keys": 15}, "keys = 15 must be at least twice pairs = 8"),
        ({"length": 33}, "length = 33 must be even and at least 2 · pairs = 16"),
        ({"length": 14}, "length = 14 must be even"),
        ({"values": 9}, "values = 9"),
    ],
)
def test_wrong_sizes_are_refused_in_a_line(options: dict[str, int], said: str) -> None:
    with pytest.raises(UsageError, match=said) as refusal:
        task("recall/mqar", **options)
    assert len(str(refusal.value).splitlines()) <= 2
