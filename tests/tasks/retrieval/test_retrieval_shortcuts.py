"""Shortcut rules: the measured table, and the closed forms against the data they are about."""

from __future__ import annotations

import numpy as np
import pytest
from retrieval_cases import KINDS, PRESETS, make
from retrieval_tables import SHORTCUTS

from unseen.tasks.base import Examples, Shortcut
from unseen.tasks.retrieval.ceilings import bit_count_ceiling
from unseen.tasks.retrieval.scenarios import scenarios
from unseen.tasks.retrieval.shortcuts import position_rule


def accuracy(shortcut: Shortcut, examples: Examples) -> float:
    answer = shortcut.answer(examples)
    assert answer.shape == examples.targets.shape and answer.dtype == np.uint8
    return float((answer == examples.targets).mean())


@pytest.mark.parametrize(("name", "kind", "measured"), SHORTCUTS)
def test_measured_table(name: str, kind: str, measured: tuple[float, float]) -> None:
    for length, expected in zip((5, 10), measured, strict=True):
        made = make(kind, preset="released", length=length)
        shortcut = {s.name: s for s in made.shortcuts("ood/single")}[name]
        assert abs(100 * accuracy(shortcut, made.sample("ood/single", 20_000)) - expected) < 1


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("kind", KINDS)
def test_ceilings_are_what_the_rules_reach(kind: str, preset: str) -> None:
    for length in (2, 10):
        made = make(kind, preset=preset, length=length)
        for condition in ("train", "ood/single"):
            examples = made.sample(condition, 20_000)
            for shortcut in made.shortcuts(condition):
                if shortcut.ceiling is not None:
                    assert abs(accuracy(shortcut, examples) - shortcut.ceiling) < 0.015, (length, condition, shortcut)


def test_known_ceilings() -> None:
    def ceilings(kind: str, **options: object) -> dict[str, float | None]:
        return {s.name: s.ceiling for s in make(kind, **options).shortcuts("ood/single")}

    for kind in ("T2", "T4"):
        assert ceilings(kind)["one feature: a present"] == 0.875
        assert ceilings(kind)["a pair in one token"] == 0.75
    assert ceilings("T3")["one feature: b present"] == 0.875
    assert ceilings("T6")["one feature: a present"] == 0.625
    assert ceilings("T6", preset="paper")["one feature: a present"] == 0.6875
    assert ceilings("T6")["a pair complete, order ignored"] == 0.75
    assert ceilings("T7")["a pair complete, order ignored"] == 0.75
    for length in (5, 30):
        assert ceilings("T5", length=length)["at least 2 of 4 present"] == 0.875
        assert ceilings("T5", length=length)["at least 3 of 4 present"] == 0.75
    assert ceilings("T5", preset="released")["at least 3 of 4 present"] is None
    assert make("T1").shortcuts("train") == []


def test_position_rule_for_every_published_length() -> None:
    found = [100 * position_rule(scenarios("T6", 0.0), n)[1] for n in (5, 10, 15, 20, 25, 30)]
    assert np.allclose(found, [80.0, 77.5, 76.8, 76.4, 76.3, 76.1], atol=0.06)


def best_threshold(count: np.ndarray, yes: np.ndarray) -> float:
    edges = np.arange(count.max() + 2)
    shares = [np.searchsorted(np.sort(count[rows]), edges) / rows.sum() for rows in (yes, ~yes)]
    return float(0.5 + np.abs(shares[0] - shares[1]).max() / 2)


@pytest.mark.parametrize("preset", [*PRESETS, "aware"])
@pytest.mark.parametrize("kind", KINDS)
def test_counting_bits_reaches_its_ceiling_and_no_more(kind: str, preset: str) -> None:
    options = {"exclusion_balance": "aware"} if preset == "aware" else {"preset": preset}
    for length in (2, 10):
        made = make(kind, length=length, **options)
        for condition, single in (("train", 0.1 if preset == "released" else 0.0), ("ood/single", 1.0)):
            examples = made.sample(condition, 20_000)
            found = best_threshold(examples.inputs["sequence"].sum(axis=(1, 2)), examples.targets[:, 0] == 1)
            ceiling = bit_count_ceiling(made.plan, single)
            assert ceiling - 0.015 < found < ceiling + 0.02, (length, condition, found, ceiling)
            assert made.ceilings(condition)["single-feature"] >= ceiling
