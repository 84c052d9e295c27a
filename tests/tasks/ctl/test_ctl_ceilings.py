"""The ceilings of single tokens, against counting over every example of a small language."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ctl_worlds import make

from unseen.tasks.base import Examples
from unseen.tasks.ctl.ceilings import token_ceilings
from unseen.tasks.ctl.chains import Chains
from unseen.tasks.ctl.encode import encode
from unseen.tasks.ctl.stepwise import probabilities
from unseen.tasks.verify import verify

TINY = {"symbols": 4, "functions": 7, "train_size": 60, "iid_size": 5, "ood_size": 5}


def counted(examples: Examples, weight: np.ndarray, symbols: int, functions: int) -> dict[str, float]:
    """The same accuracies by counting: columns one by one, answers one by one."""
    answers, tokens = examples.targets, examples.inputs["token"]
    total = np.array([weight[answers == t].sum() for t in range(symbols)])
    columns, places = [], []
    for place in range(1, tokens.shape[1]):
        here = tokens[:, place]
        token = [
            np.array([weight[(here == v) & (answers == t)].sum() for t in range(symbols)])
            for v in range(symbols + functions)
        ]
        columns += token
        places.append(sum(part.max() for part in token) + (total - sum(token)).max())
    for v in range(symbols + functions):
        occurs = (tokens == v).any(1)
        columns.append(np.array([weight[occurs & (answers == t)].sum() for t in range(symbols)]))
    best = max(column.max() + (total - column).max() for column in columns)
    return {"majority": float(total.max()), "single-feature": float(best), "bag-of-tokens": float(max(places))}


@pytest.mark.parametrize("order", ["backward", "forward"])
@pytest.mark.parametrize("sampling", ["uniform", "stepwise"])
@pytest.mark.parametrize(("name", "options"), [("ctl/S", {"bridge": 3, "shared": 2}), ("ctl/A", {"bijective": False})])
def test_ceilings_are_what_counting_gives(name: str, options: dict[str, Any], sampling: Any, order: Any) -> None:
    task = make(name, **TINY, **options, order=order)
    world = task.actual_world
    ranks = task.splits["train"].lot.ranks
    counts = {length: count for length, count in {2: 30, 3: 20, 4: 50}.items() if ranks.total(length)}
    parts, weights = [], []
    for length, count in counts.items():
        walks = ranks.unrank(np.arange(ranks.total(length)), length)
        chance = probabilities(ranks, walks) if sampling == "stepwise" else np.full(len(walks[0]), 1 / len(walks[0]))
        parts.append(Chains.of(walks))
        weights.append(chance * count / sum(counts.values()))
    examples = encode(world, task.trained, order, Chains.join(parts))
    expected = counted(examples, np.concatenate(weights), 4, 7)
    assert token_ceilings(ranks, counts, sampling, order) == pytest.approx(expected)


def test_even_languages_have_nothing_above_chance_for_the_majority() -> None:
    found = make("ctl/A").ceilings("train")
    assert found["majority"] == pytest.approx(1 / 8) and found["bag-of-tokens"] < 0.13
    uneven = make("ctl/A", bijective=False).ceilings("train")
    assert uneven["majority"] > 0.14


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("ctl/A", {}),
        ("ctl/A", {"bijective": False}),
        ("ctl/S", {"functions": 12, "bridge": 4, "max_length": 6}),
        ("ctl/S", {"functions": 12, "bridge": 4, "max_length": 6, "preset": "released"}),
        ("ctl/lengths", {"generator": "dubois"}),
    ],
    ids=str,
)
def test_verify_passes(name: str, options: dict[str, Any]) -> None:
    small = (
        {}
        if name == "ctl/lengths"
        else {"symbols": 4, "functions": 8, "train_size": 2_000, "iid_size": 200, "ood_size": 300, "shared": 1}
        | options
    )
    if name == "ctl/A":
        del small["shared"]
    report = verify(make(name, **(small or options)), 1_500)
    assert report.passed, [check for check in report if check.status == "FAIL"]


def test_verify_knows_what_the_released_preset_leaks() -> None:
    task = make("ctl/A", preset="released", symbols=4, functions=8, train_size=2_000)
    leak = [c for c in verify(task, 6_000) if c.name == "artefact included" and c.condition == "iid"]
    assert [c.status for c in leak] == ["known"]


def test_a_forbidden_transition_is_an_undeclared_artefact() -> None:
    task = make("ctl/A", symbols=4, functions=8, train_size=2_000)
    (artefact,) = task.artefacts("train")
    assert [artefact.measure(task.sample(name, 500)) for name in ("train", "iid", "ood/transition")] == [0, 0, 1]
    assert not artefact.known
